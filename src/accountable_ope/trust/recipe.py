"""What made an answer, in twelve letters: so that answers of another recipe are not counted among those of this one unseen."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

CHOOSING = ("defaults", "fitting/training.py", "fitting/neural.py", "bounds/first_answer.py", "radii", "trust/methods.py")
"""Modules that choose class, ball and radius, below the package."""


@cache
def recipe_mark() -> str:
    """The beginning of a SHA-256 of these modules as they are parsed: comments, docstrings and layout have no part in it."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for name in CHOOSING:
        place = package / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(_parsed(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:12]


def made_by(recipes: Iterable[str]) -> str:
    """Which recipes answers are of, in one sentence; it says so where they are of several."""
    counted = Counter(recipe or "not written down" for recipe in recipes)
    listed = ", ".join(f"{name} ({count})" for name, count in counted.most_common())
    mixed = " They are not of one recipe, so that a row of the table may mix several." if len(counted) > 1 else ""
    here = "" if set(counted) <= {recipe_mark()} else f" This version's is {recipe_mark()}."
    return f"Answers by the recipe that made them: {listed}.{mixed}{here}"


def _parsed(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
