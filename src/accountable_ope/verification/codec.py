"""Records as JSON and back, by the types of their fields alone; and the JSON Schema of a record.

Numbers keep every bit: a float is written with as many digits as it has, infinities and NaN as strings. A matrix is its shape and
its float64 numbers, little-endian, row by row, in base64.
"""

from __future__ import annotations

import base64
import math
import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import InvalidFile
from ..validation import BoolArray, FloatArray

_NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def to_json(value: Any) -> Any:
    """Dataclasses, tuples, arrays and numbers as what `json` writes."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in _hints(type(value))}
    if isinstance(value, np.ndarray):
        if value.ndim == 2:
            packed = base64.b64encode(np.ascontiguousarray(value, dtype="<f8").tobytes()).decode("ascii")
            return {"shape": list(value.shape), "float64": packed}
        return [to_json(each) for each in value.tolist()]
    if isinstance(value, tuple | list):
        return [to_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def from_json(hint: Any, value: Any, where: str = "certificate") -> Any:
    """The other way; refuses what is missing, unknown or of another type, and names it."""
    if hint == FloatArray:
        return _array(value, where)
    if hint == BoolArray:
        flags = from_json(tuple[bool, ...], value, where)
        return np.array(flags, dtype=bool)
    if is_dataclass(hint):
        return _dataclass(hint, value, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, where)
    if origin is tuple:
        return _tuple(arguments, value, where)
    if hint is float:
        if isinstance(value, str) and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif hint is type(None):
        if value is None:
            return None
    elif type(value) is hint:
        return value
    raise InvalidFile(f"`{where}` must be {_word(hint)}. Got {_shown(value)}.")


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a record, with every dataclass among its definitions."""
    definitions: dict[str, Any] = {}
    top = _schema(hint, definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": dict(sorted(definitions.items()))}


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise InvalidFile(f"`{where}` must be an object. Got {_shown(value)}.")
    hints = _hints(kind)
    unknown, missing = sorted(set(value) - set(hints)), sorted(set(hints) - set(value))
    if unknown or missing:
        raise InvalidFile(f"`{where}` has {'an unknown' if unknown else 'no'} entry `{(unknown or missing)[0]}`.")
    return kind(**{name: from_json(hint, value[name], f"{where}.{name}") for name, hint in hints.items()})


def _one_of(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    errors = []
    for hint in hints:
        if hint is not type(None):
            try:
                return from_json(hint, value, where)
            except InvalidFile as error:
                errors.append(error)
    raise errors[-1]


def _tuple(hints: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise InvalidFile(f"`{where}` must be a list. Got {_shown(value)}.")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(from_json(hints[0], each, f"{where}[{k}]") for k, each in enumerate(value))
    if len(value) != len(hints):
        raise InvalidFile(f"`{where}` must have {len(hints)} entries. Got {len(value)}.")
    return tuple(from_json(hint, each, f"{where}[{k}]") for k, (hint, each) in enumerate(zip(hints, value, strict=True)))


def _array(value: Any, where: str) -> FloatArray:
    if isinstance(value, list):
        return np.array(from_json(tuple[float, ...], value, where), dtype=np.float64)
    if isinstance(value, dict) and set(value) == {"shape", "float64"} and isinstance(value["float64"], str):
        shape = from_json(tuple[int, int], value["shape"], f"{where}.shape")
        try:
            numbers = np.frombuffer(base64.b64decode(value["float64"], validate=True), dtype="<f8")
            return np.asarray(numbers.reshape(shape).astype(np.float64))
        except ValueError:
            raise InvalidFile(f"`{where}` does not hold {shape[0]} x {shape[1]} numbers.") from None
    raise InvalidFile(f"`{where}` must be a list of numbers or a matrix. Got {_shown(value)}.")


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    number = {"anyOf": [{"type": "number"}, {"enum": list(_NOT_FINITE)}]}
    plain: dict[Any, dict[str, Any]] = {
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        str: {"type": "string"},
        float: number,
        type(None): {"type": "null"},
    }
    if hint == FloatArray:
        definitions["matrix"] = {
            "type": "object",
            "properties": {
                "shape": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                "float64": {"type": "string", "contentEncoding": "base64"},
            },
            "required": ["shape", "float64"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": "array", "items": number}, {"$ref": "#/$defs/matrix"}]}
    if hint == BoolArray:
        return {"type": "array", "items": {"type": "boolean"}}
    if is_dataclass(hint):
        name = hint.__name__  # type: ignore[union-attr]
        if name not in definitions:
            definitions[name] = {}
            properties = {key: _schema(each, definitions) for key, each in _hints(hint).items()}  # type: ignore[arg-type]
            definitions[name] = {
                "type": "object",
                "description": (hint.__doc__ or "").split("\n\n")[0].strip(),
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}"}
    arguments = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return {"anyOf": [_schema(each, definitions) for each in arguments]}
    if get_origin(hint) is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": _schema(arguments[0], definitions)}
        items = [_schema(each, definitions) for each in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    return plain[hint]


def _word(hint: Any) -> str:
    return {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}.get(hint, "null")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
