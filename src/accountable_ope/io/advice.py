"""Advice on columns in a sentence: written for a shell, and again for the arguments of a function that takes a data frame."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

_WORD = r"('(?:[^']|'\"'\"')*'|[^\s').,]+(?:[.,][^\s').,]+)*)"
"""What `shell_word` writes, without the punctuation of the sentence behind it."""


def shell_word(text: str) -> str:
    """Text as one word of a shell; in quotes too where it would run into the sentence, or look like several names."""
    quoted = shlex.quote(text)
    return f"'{text}'" if quoted == text and ("," in text or text.endswith(".")) else quoted


def in_python(sentence: str, arguments: Collection[str]) -> str:
    """Advice on options of the command line as advice on arguments; what is none of these can be renamed or ignored only."""

    def argument(found: re.Match[str]) -> str:
        base, _, names = shlex.split(found[1])[0].partition("=")
        several = [names] if found[1].startswith("'") else names.split(",")
        return f"{base}={several!r}" if len(several) > 1 else f"{base}={names!r}"

    def offer(found: re.Match[str]) -> str:
        base = shlex.split(found[1])[0].partition("=")[0]
        return found[0] if base in arguments else "Rename it"

    said = re.sub(rf"Say so \(--column {_WORD}\), rename it", offer, sentence)
    said = re.sub(rf"--column {_WORD}", argument, said)
    said = re.sub(rf"`ignore` or --ignore-column {_WORD}", lambda found: f"ignore={shlex.split(found[1])!r}", said)
    for option, meant in (
        ("; a column of continuous actions is called `action_0`", "; continuous actions are a list, action=['dose']"),
        (": number the actions 0, 1, 2, ...", ": give their labels by actions=[...]"),
        ("In the file:", "There:"),
    ):
        said = said.replace(option, meant)
    return said
