"""What an ONNX file says and onnxruntime does not show: whether it names other files, and which node makes an output.

Fields of protobuf messages, by their numbers in onnx.proto. A length that leads out of its message, or a kind of field that ONNX
does not have, is a ValueError: nothing is guessed of bytes that are not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PARTS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Where tensors can be: the messages inside of messages, by the number of their field."""

EXTERNAL_DATA, DATA_LOCATION = 13, 14
"""Fields of a tensor that say that its numbers are in another file."""

PASSING = frozenset({"Cast", "Flatten", "Identity", "LogSoftmax", "Normalizer", "Reshape", "Softmax", "Squeeze", "Unsqueeze"})
"""Operators that leave columns in their order."""

NUMBERS = re.compile(rb"(?:\x3d.{4}|\x40[\x80-\xff]{0,9}[\x00-\x7f])++", re.DOTALL)
"""A run of single numbers in an attribute (`floats`, `ints`): a forest has millions of them, one by one."""

Value = int | tuple[int, int]


@dataclass(frozen=True)
class Maker:
    """The node that makes an output: its operator, and the classes that its columns stand for, where it names them."""

    operator: str = ""
    labels: tuple[str, ...] | tuple[int, ...] = ()


UNKNOWN = Maker()
"""Of an output that no node makes, or that is made by nodes without an order of columns."""


def names_files(content: bytes) -> bool:
    """Whether any tensor of a model is kept in another file."""
    todo = [("model", 0, len(content))]
    while todo:
        kind, begin, end = todo.pop()
        for number, value in _fields(content, begin, end, NUMBERS if kind == "attribute" else None):
            if kind == "tensor" and (number == EXTERNAL_DATA or (number == DATA_LOCATION and value != 0)):
                return True
            if number in PARTS[kind] and not isinstance(value, int):
                todo.append((PARTS[kind][number], *value))
    return False


def maker_of(content: bytes, output: str) -> Maker:
    """The node that makes an output of the model, seen through those that leave columns in their order."""
    made = {}
    for graph in _parts(content, (0, len(content)), 7):
        for node in _parts(content, graph, 1):
            made.update({_bytes(content, name): node for name in _parts(content, node, 2)})
    wanted = output.encode()
    while wanted in made:
        node = made.pop(wanted)  # a circle ends
        operator = b"".join(_bytes(content, each) for each in _parts(content, node, 4)).decode(errors="replace")
        labels, inputs = _labels(content, node), _parts(content, node, 1)
        if labels or operator not in PASSING or not inputs:
            return Maker(operator, labels)
        wanted = _bytes(content, inputs[0])
    return UNKNOWN


def _labels(content: bytes, node: tuple[int, int]) -> tuple[str, ...] | tuple[int, ...]:
    """What ai.onnx.ml calls classlabels_strings, classlabels_ints or classlabels_int64s."""
    for attribute in _parts(content, node, 5):
        if not any(_bytes(content, name).startswith(b"classlabels_") for name in _parts(content, attribute, 1)):
            continue
        words = tuple(_bytes(content, each).decode(errors="replace") for each in _parts(content, attribute, 9))
        if words:
            return words
        numbers: list[int] = []
        for number, value in _fields(content, *attribute):
            if number == 8 and isinstance(value, int):
                numbers.append(value)
            elif number == 8 and not isinstance(value, int):  # packed
                at, end = value
                while at < end:
                    each, at = _varint(content, at, end)
                    numbers.append(each)
        if numbers:
            return tuple(each - (1 << 64) if each >> 63 else each for each in numbers)
    return ()


def _parts(content: bytes, message: tuple[int, int], wanted: int) -> list[tuple[int, int]]:
    """Where the messages or texts of one field are."""
    return [value for number, value in _fields(content, *message) if number == wanted and not isinstance(value, int)]


def _bytes(content: bytes, place: tuple[int, int]) -> bytes:
    return content[place[0] : place[1]]


def _fields(content: bytes, at: int, end: int, skipped: re.Pattern[bytes] | None = None) -> Iterator[tuple[int, Value]]:
    """Numbers of fields with their whole number, or with begin and end of what they hold."""
    while at < end:
        run = skipped.match(content, at, end) if skipped is not None else None
        if run is not None:
            at = run.end()
            continue
        tag, at = _varint(content, at, end)
        number, kind = (tag & 0xFFFFFFFF) >> 3, tag & 7
        if kind == 0:
            value, at = _varint(content, at, end)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(content, at, end)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"field {number} is of kind {kind}, which ONNX does not have")
        if size > end - at:
            raise ValueError(f"field {number} leads out of its message")
        if kind == 2:
            yield number, (at, at + size)
        at += size


def _varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """A whole number of up to ten bytes, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError("a number does not end")
