"""Pieces of work in parallel, their rows kept in a folder so that nothing is computed twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Protocol, TypeVar

from threadpoolctl import threadpool_limits

from ..arguments import checked
from .processes import as_finished, process_count
from .store import Store

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Report = Callable[[int, int], None]
"""Called with how much of the work is done and how much there is, in the sizes of the pieces."""


class Piece(Protocol[R_co]):
    """Work that can be sent to another process and gives at least one row. Its name tells all that the rows depend on."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def run(self) -> Sequence[R_co]: ...


def run_pieces(
    pieces: Sequence[Piece[R]], store: Store[R] | None = None, *, workers: int | None = None, report: Report | None = None
) -> tuple[R, ...]:
    """Return the rows of all pieces, in the order of the pieces. Those whose rows the store holds are not run again.

    workers: processes; None: one per core; 1: only this one. They start fresh interpreters, so a script that asks for more than
             one must do so below `if __name__ == "__main__"`.
    """
    count = process_count(workers)
    rows_of: dict[str, Sequence[R]] = {}
    if store is not None:
        rows_of = {piece.name: kept for piece in pieces if (kept := store.read(piece.name)) is not None}
    missing = [piece for piece in pieces if piece.name not in rows_of]
    total, done = sum(piece.size for piece in pieces), sum(piece.size for piece in pieces if piece.name in rows_of)
    if report is not None:
        report(done, total)
    with closing(as_finished(_run, missing, count)) as results:
        for piece, rows in results:
            if store is not None:
                store.write(piece.name, rows)
            rows_of[piece.name] = rows
            done += piece.size
            if report is not None:
                report(done, total)
    return tuple(row for piece in pieces for row in rows_of[piece.name])


@checked
def trial_seed(*what: object) -> int:
    """A seed that depends on what is drawn and on nothing else of a run: neither on order nor on the other pieces.

    Parameters
    ----------
    *what : object
        Names and numbers that tell this draw from all others.

    Returns
    -------
    int

    Examples
    --------
    >>> from accountable_ope.laboratory import trial_seed
    >>> trial_seed("chain", 100, 0) == trial_seed("chain", 100, 0) != trial_seed("chain", 100, 1)
    True
    """
    digest = hashlib.sha256("|".join(map(str, what)).encode()).digest()
    return int.from_bytes(digest[:6], "big")


def _run(piece: Piece[R]) -> Sequence[R]:
    with threadpool_limits(limits=1):  # the cores are for the workers
        return piece.run()
