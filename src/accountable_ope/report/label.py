"""Which schema a document meets: the first field of all that is printed by `--json` or made by `to_dict`."""

from __future__ import annotations

import math
from typing import Any

from .document import Document

PUBLISHER, VERSION = "accountable-ope", 1
"""A field that goes, or means something else, takes a new version; a new field that may be left out does not."""


def schema_name(kind: str) -> str:
    """Such as accountable-ope/bound/1."""
    return f"{PUBLISHER}/{kind}/{VERSION}"


def labeled(kind: str, document: Document) -> Document:
    """The document, with the name of its schema first, as JSON has it: lists for tuples, null for what is not finite."""
    return {"schema": schema_name(kind), **_plain(document)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
