"""ONNX files through onnxruntime: shapes as declared, no Python of anybody executed, and nothing unpickled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidFile, InvalidInput
from ..problem.policy import shown_numbers
from ..validation import FloatArray
from .answers import AT_ONCE, required, whole_numbers
from .onnx_graph import UNKNOWN, Maker, maker_of, names_files

PICKLES = frozenset({".pkl", ".pickle", ".joblib", ".pt", ".pth", ".sav", ".d3", ".dill", ".zip", ".bin", ".ckpt"})
"""What models are pickled as."""

LARGEST_FILE = 2 * 2**30
"""An ONNX file in one piece is smaller than this many bytes."""

LARGEST_SINGLE = float(np.finfo(np.float32).max)

NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
"""What an input may take."""


@dataclass(frozen=True)
class Tensor:
    """An input or output as declared; a size that is open is None."""

    name: str
    kind: str
    shape: tuple[int | None, ...]
    maker: Maker = UNKNOWN

    @property
    def columns(self) -> int | None:
        """Numbers per row, 1 where there is but a row; None where that is open."""
        sizes = [size for size in self.shape[1:] if size is not None]
        return int(np.prod(sizes)) if len(sizes) == len(self.shape[1:]) else None

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.kind in ("tensor(int64)", "tensor(int32)")

    def cast(self, values: NDArray[Any], model: str) -> NDArray[Any]:
        """Rows as this input takes them."""
        kind, what = NUMBERS[self.kind], f"{model}: the input `{self.name}`"
        if self.whole:
            return np.ascontiguousarray(whole_numbers(values, kind, what).reshape(len(values), *self._inner(values)))
        if self.kind == "tensor(float)" and values.size and float(np.abs(values).max()) > LARGEST_SINGLE:
            raise InvalidInput(f"{what} takes numbers of single precision, and is given ones that are too large for it.")
        return np.ascontiguousarray(values.astype(kind).reshape(len(values), *self._inner(values)))

    def _inner(self, values: NDArray[Any]) -> tuple[int, ...]:
        if len(self.shape) == 1:
            return ()
        return tuple(-1 if size is None else size for size in self.shape[1:])


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """A loaded file: what goes in, what comes out."""

    name: str
    session: Any
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnnxModel:
        """Raises where the file is no ONNX model, or its inputs are not rows of numbers."""
        content = _read(path)
        runtime = required("onnxruntime", "An ONNX model", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # sums in a fixed order
        options.log_severity_level = 4
        try:
            # The runtime would look for them in the working directory, whatever lies there.
            if content[4:8] == b"ORTM" or names_files(content):
                raise InvalidFile(
                    f"{os.fspath(path)} keeps numbers in other files or in a form of onnxruntime alone: save it as one ONNX file "
                    "(onnx.save(onnx.load(path), new_path), with external_data=False where torch exports it)."
                )
            session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            outputs = tuple(_tensor(each, maker_of(content, each.name)) for each in session.get_outputs())
        except InvalidFile:
            raise
        except Exception as error:  # whatever the runtime raises on foreign bytes
            raise InvalidFile(f"{os.fspath(path)} cannot be read as an ONNX model: {_words(error)}.") from error
        found = cls(os.fspath(path), session, tuple(_tensor(each) for each in session.get_inputs()), outputs)
        for each in found.inputs:
            if each.kind not in NUMBERS or not each.shape:
                raise InvalidFile(f"{found.name}: the input `{each.name}` must be rows of numbers. It is {each.kind}.")
        if not found.inputs or not found.outputs:
            raise InvalidFile(f"{found.name} must have an input and an output.")
        return found

    def run(self, rows: tuple[NDArray[Any], ...], output: Tensor) -> NDArray[Any]:
        """The answer to rows, one array per input, checked against the shape that is declared for it."""
        total, size = len(rows[0]), self._batch()
        parts = []
        for begin in range(0, max(total, 1), size or AT_ONCE):
            some = [each[begin : begin + (size or AT_ONCE)] for each in rows]
            count = len(some[0])
            if size is not None and count < size:  # a model for so many rows at a time is given the last one again
                some = [np.concatenate([each, np.repeat(each[-1:], size - count, axis=0)]) for each in some]
            parts.append(self._answer(some, output)[:count])
        found = np.concatenate(parts)
        if found.ndim < 1 or len(found) != total:
            raise InvalidInput(f"{self.name} must answer one row per state ({total}). Its answer has shape {found.shape}.")
        return found

    def _answer(self, rows: list[NDArray[Any]], output: Tensor) -> NDArray[Any]:
        try:
            feeds = {each.name: each.cast(values, self.name) for each, values in zip(self.inputs, rows, strict=True)}
            (found,) = self.session.run([output.name], feeds)
        except InvalidInput:
            raise
        except Exception as error:  # whatever the runtime raises on shapes that do not fit
            raise InvalidInput(f"{self.name} could not be run on {len(rows[0])} rows: {_words(error)}.") from error
        array = np.asarray(found)
        fits = len(array.shape) == len(output.shape) and all(
            declared in (None, size) for declared, size in zip(output.shape[1:], array.shape[1:], strict=True)
        )
        if array.ndim < 1 or len(array) != len(rows[0]) or (output.shape and not fits):
            shape = tuple("any" if size is None else size for size in output.shape)
            raise InvalidInput(
                f"{self.name}: the output `{output.name}` is declared with shape {shape} and has {array.shape} for "
                f"{len(rows[0])} rows."
            )
        return array.reshape(len(array), -1) if array.ndim > 2 else array

    def _batch(self) -> int | None:
        """So many rows at a time, where the model is declared for that many."""
        return next((each.shape[0] for each in self.inputs if each.shape[0] is not None), None)

    def output(self, names: tuple[str, ...]) -> Tensor:
        """The only output, or the one that one of these words is part of."""
        if len(self.outputs) == 1:
            return self.outputs[0]
        for word in names:
            for each in self.outputs:
                if word in each.name.lower():
                    return each
        listed = ", ".join(f"`{each.name}`" for each in self.outputs)
        raise InvalidFile(f"{self.name} has several outputs, {listed}: export the one that is meant, or call it `{names[0]}`.")

    def refuse_columns(self, tensor: Tensor, columns: int, what: str) -> None:
        """Raise where an input is declared for another number of columns."""
        if tensor.columns is not None and tensor.columns != columns:
            raise InvalidInput(
                f"{self.name}: the input `{tensor.name}` is declared for {tensor.columns} numbers per row, but {what} {columns}."
            )


def finite_values(values: NDArray[Any], states: FloatArray, name: str) -> FloatArray:
    """One number per row, or one sentence that names the state."""
    found = np.asarray(values, dtype=np.float64)
    wrong = ~np.isfinite(found.reshape(len(found), -1)).all(axis=1)
    if wrong.any():
        at = shown_numbers(states[int(np.argmax(wrong))])
        raise InvalidInput(f"{name} answered NaN or infinity at {int(wrong.sum())} rows, first at the state {at}.")
    return found


def refuse_pickle(path: str | os.PathLike[str], head: bytes = b"") -> None:
    """Raise at a file that holds, or by its name probably holds, pickled objects."""
    by_content = len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5
    if by_content or head[:2] == b"PK" or Path(path).suffix.lower() in PICKLES:
        raise InvalidFile(
            f"{os.fspath(path)} is a pickle or an archive of pickles, which can run any code when it is read, and is not opened: "
            "export the model to ONNX, or load it yourself in a module and name it by module:function."
        )


def _read(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    refuse_pickle(file)
    try:
        if not file.is_file():
            raise InvalidFile(f"There is no file {file}.")
        if file.stat().st_size > LARGEST_FILE:
            raise InvalidFile(f"{file} is larger than an ONNX file in one piece can be (2 GiB).")
        content = file.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidFile):
            raise
        raise InvalidFile(f"{file} cannot be read: {error}.") from error
    refuse_pickle(file, content[:2])
    if not content:
        raise InvalidFile(f"{file} is empty.")
    return content


def _tensor(value: Any, maker: Maker = UNKNOWN) -> Tensor:
    shape = value.shape if isinstance(value.shape, list | tuple) else ()
    return Tensor(value.name, value.type, tuple(size if isinstance(size, int) else None for size in shape), maker)


def _words(error: Exception) -> str:
    """The first line of what the runtime says, without its codes."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return text.rpartition(" : ")[2].strip().rstrip(".")[:300] or type(error).__name__
