"""Files that are written atomically, and arrays in .npz files that execute nothing on loading."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidFile


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside the target to write to; it replaces the target only when the block ends well."""
    target = Path(path)
    if not target.name:
        raise InvalidFile(f"`path` must name a file. Got {os.fspath(path)!r}.")
    partial = target.with_name(f"{target.stem}.partial{target.suffix}")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise InvalidFile(f"{target} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as .npz."""
    with whole_file(path) as partial, open(partial, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_arrays(path: str | os.PathLike[str], what: str, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Read what `save_arrays` wrote; a file that is none, or lacks one of the names, is not `what`."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PK\x03\x04":
                raise ValueError("it is no .npz file")
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array")
        with loaded as archive:
            arrays = {name: archive[name] for name in archive.files}
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ValueError(f"it has no array {missing[0]!r}")
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidFile(f"{os.fspath(path)} is not {what} ({error}).") from error
    return arrays
