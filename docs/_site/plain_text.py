"""Docstrings are plain text, as a terminal shows them; here they become the markup that Sphinx reads."""

from __future__ import annotations

import re

PROMPT = re.compile(r"\s*(>>>|\.\.\.)( |$)")
CODE = re.compile(r"(`[^`]+`)")
SPECIAL = re.compile(r"([\\*|]|_(?!\w))")
LETTER = re.compile(r"^(\s*)(?=[A-Za-z][.)](?:\s|$))")
"""Where a line begins with what would number a list by letters: "K." is a matrix."""
RULE = re.compile(r"-{3,}$")


def as_markup(lines: list[str]) -> list[str]:
    """The text of a docstring as reStructuredText; examples are what they are."""
    found: list[str] = []
    example, prose, set_off = False, True, False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if RULE.match(after.strip()):
            prose = line.strip() == "Notes"
        example = bool(PROMPT.match(line)) or (example and bool(line.strip()))
        if example or not line.strip():
            found.append(line)
            continue
        text = "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\1", part) for part in CODE.split(line))
        text = LETTER.sub(r"\1\\", text)
        indented = prose and line[0].isspace()
        if indented != set_off and found and found[-1].strip():
            found.append("")
        found.append(f"| {text.strip()}" if indented else text)
        set_off = indented
    return found
