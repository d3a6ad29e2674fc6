"""Files that are written atomically, and arrays in .npz files that execute nothing on loading."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidFile


def place(path: str | os.PathLike[str]) -> Path:
    """Where a file will be written, links followed; refused where that is no place for a file."""
    given = Path(path)
    try:
        mode = os.stat(given).st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{given} cannot be written: {_reason(error)}.") from error
    if mode is not None and not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "no file")
        raise InvalidFile(f"{given} cannot be written: it is {kind}.")
    target = Path(os.path.realpath(given))
    if not target.parent.is_dir():
        raise InvalidFile(f"{given} cannot be written: there is no folder {given.parent}.")
    if not os.access(target.parent, os.W_OK) or (mode is not None and not os.access(target, os.W_OK)):
        raise InvalidFile(f"{given} cannot be written: permission denied.")
    return target


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by whatever spelling, symbolic link or hard link."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside the target to write to; it replaces the target only when the block ends well.

    Its name is new, so that nothing of anybody else is written over and two runs do not meet.
    """
    target = place(path)
    partial = target.with_name(f".{secrets.token_hex(8)}.partial{target.suffix}")
    try:
        yield partial
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    except OSError as error:
        raise InvalidFile(f"{os.fspath(path)} cannot be written: {_reason(error)}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def _reason(error: Exception) -> str:
    """Why, in a few words, without the name of the partial file."""
    words = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
    return words.rstrip(".")


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
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ValueError(f"it has no array {missing[0]!r}")
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidFile(f"{os.fspath(path)} is not {what} ({error}).") from error
    return arrays
