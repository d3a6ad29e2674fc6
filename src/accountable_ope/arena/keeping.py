"""Trials that are kept: in the folder of a run, and in one file from which another run goes on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import InvalidFile, InvalidInput
from ..runner.store import Store, load_rows, save_rows
from ..runner.truth import same_truth
from .bout import Bout
from .challenge import Challenge


def read_bouts(folder: str | os.PathLike[str], challenges: Sequence[Challenge]) -> Iterator[Bout]:
    """What a folder holds of these challenges; refused where one of the same name had another truth."""
    if not Path(folder).is_dir():
        raise InvalidFile(f"{os.fspath(folder)} is not a folder.")
    yield from _of_challenges(Store(Path(folder), Bout).read_all(), folder, challenges)


def read_kept(path: str | os.PathLike[str], challenges: Sequence[Challenge]) -> tuple[Bout, ...]:
    """What one file of finished trials holds of these challenges, whichever version of the package made them."""
    return tuple(_of_challenges(load_rows(Bout, path), path, challenges))


def keep_bouts(bouts: Sequence[Bout], path: str | os.PathLike[str]) -> None:
    """Write trials as one compact file, in the order of their keys, so that the same trials make the same file."""
    save_rows(sorted(bouts, key=lambda row: row.key), path, compact=True)


def _of_challenges(rows: Iterable[Bout], place: str | os.PathLike[str], challenges: Sequence[Challenge]) -> Iterator[Bout]:
    truths = {challenge.name: challenge.truth.value for challenge in challenges}
    for row in rows:
        if row.challenge in truths:
            if not same_truth(row.truth, truths[row.challenge]):
                raise InvalidInput(f"{os.fspath(place)} holds rows of another problem {row.challenge!r}: use another one.")
            yield row
