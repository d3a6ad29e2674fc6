"""JSON Schema in few words: what a field may hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Shape = dict[str, Any]
"""A JSON Schema, or a part of one; used at the border of the program only."""

TEXT: Shape = {"type": "string"}
FLAG: Shape = {"type": "boolean"}
NUMBER: Shape = {"type": "number"}
COUNT: Shape = {"type": "integer", "minimum": 0}
SHARE: Shape = {"type": "number", "minimum": 0, "maximum": 1}


def maybe(shape: Shape) -> Shape:
    """That, or null."""
    return {"anyOf": [shape, {"type": "null"}]}


def many(shape: Shape) -> Shape:
    """A list of any length."""
    return {"type": "array", "items": shape}


def pair(shape: Shape) -> Shape:
    """A list of two."""
    return {"type": "array", "items": shape, "minItems": 2, "maxItems": 2}


def one_of(names: Iterable[str]) -> Shape:
    """One of these words."""
    return {"enum": list(names)}


def ref(name: str) -> Shape:
    """A shape that has a name."""
    return {"$ref": f"#/$defs/{name}"}


def record(fields: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """All of these fields, some more that may be left out, and no others."""
    extra = dict(optional or {})
    return {
        "type": "object",
        "properties": {**fields, **extra},
        "required": list(fields),
        "additionalProperties": False,
    }


def free(fields: Mapping[str, Shape]) -> Shape:
    """All of these fields, and any others whose values are plain."""
    plain = {"type": ["string", "number", "boolean", "null"]}
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": plain}
