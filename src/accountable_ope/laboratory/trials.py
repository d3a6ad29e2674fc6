"""The runner: trials of every family, size and method, in parallel, kept in files so that nothing is computed twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from threadpoolctl import threadpool_limits

from ..errors import AopeError, InvalidInput
from ..parallel import Report, as_finished, processes
from ..validation import probability_level, whole
from .family import Family
from .methods import Method, evaluate, known_methods, methods_named
from .store import TrialFolder
from .trial import Trial

DEFAULT_COUNTS = (300, 1000, 3000)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some data sets of one family and one size, and what to compute on each: what is lost at most when a run is killed."""

    family: Family
    n: int
    trials: tuple[int, ...]
    methods: tuple[Method, ...]
    delta: float


def trial_seed(family: str, n: int, trial: int) -> int:
    """The seed of a data set: a hash of what it is, so that neither order nor the rest of a run matters."""
    digest = hashlib.sha256(f"{family}|{n}|{trial}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


def run_chunk(chunk: Chunk) -> tuple[Trial, ...]:
    """All trials of a chunk, in this process and with one BLAS thread."""
    family, rows = chunk.family, []
    with threadpool_limits(limits=1):
        for trial in chunk.trials:
            seed = trial_seed(family.name, chunk.n, trial)
            try:
                data = family.draw(np.random.default_rng(seed), chunk.n)
                outcomes = evaluate(family, data, chunk.methods, chunk.delta, seed)
            except AopeError as error:
                raise InvalidInput(f"Family {family.name}, n = {chunk.n}, trial {trial}: {error}") from error
            rows += [
                Trial(
                    family=family.name,
                    data_kind=family.data_kind.value,
                    method=outcome.method,
                    guarantee=outcome.guarantee,
                    n=chunk.n,
                    trial=trial,
                    seed=seed,
                    delta=chunk.delta,
                    lower=outcome.lower,
                    upper=outcome.upper,
                    truth=family.truth,
                    covered=outcome.lower <= family.truth <= outcome.upper,  # an empty interval has NaN ends and covers nothing
                    width=family.scale * (outcome.upper - outcome.lower),
                    status=outcome.status,
                    seconds=outcome.seconds,
                )
                for outcome in outcomes
            ]
    return tuple(rows)


def run_trials(
    families: Sequence[Family],
    counts: Sequence[int] = DEFAULT_COUNTS,
    *,
    chosen: Sequence[Method] | None = None,
    trials: int = 100,
    delta: float = 0.1,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    report: Report | None = None,
) -> tuple[Trial, ...]:
    """Trials 0, 1, ... of every family, every n and every method that applies.

    chosen:  the methods; None: those of `methods_named()`.
    workers: processes; None: one per core; 1: none but this one. They start fresh interpreters, so a script that asks for more
             than one must do so below `if __name__ == "__main__"`.
    folder:  where finished chunks are kept. A trial that is found there is not repeated; more trials, sizes, families or methods
             are added to it. Trials of another delta stand beside each other.
    The rows do not depend on the number of workers, but for `seconds`.
    """
    wanted = methods_named() if chosen is None else tuple(chosen)
    probability_level(delta)
    whole(trials, "trials", least=1)
    cores = processes(workers)
    sizes = tuple(dict.fromkeys(whole(n, "n", least=2) for n in counts))
    for name, listed in (("family", families), ("n", sizes), ("radius", wanted)):
        if not listed:
            raise InvalidInput(f"At least one `{name}` is needed. Got none.")
    cells = [(one, n, tuple(method for method in wanted if method.applies(one, n))) for one in families for n in sizes]
    if not any(applying for _, _, applying in cells):
        raise InvalidInput("None of the methods applies to any of the families at these sizes.")

    kept = None if folder is None else TrialFolder(folder)
    rows = {} if kept is None else _stored(kept, families, delta)
    chunks = [
        chunk
        for one, n, applying in cells
        for chunk in _chunks(one, n, applying, trials, delta, rows, _chunk_size(n, trials, cores))
    ]
    total, done = sum(len(chunk.trials) for chunk in chunks), 0
    if report is not None:
        report(done, total)
    with closing(as_finished(run_chunk, chunks, cores)) as results:
        for chunk, found in results:
            if kept is not None:
                kept.write(found)
            rows.update({_key(row): row for row in found})
            done += len(chunk.trials)
            if report is not None:
                report(done, total)
    return tuple(
        rows[one.name, n, trial, method.name] for one, n, applying in cells for method in applying for trial in range(trials)
    )


def stored_trials(
    folder: str | os.PathLike[str],
    families: Sequence[Family],
    counts: Sequence[int] | None = None,
    chosen: Sequence[Method] | None = None,
    delta: float = 0.1,
) -> tuple[Trial, ...]:
    """What a folder holds of these families at this delta, ordered as `run_trials` would; None: every n, every known method."""
    wanted = known_methods() if chosen is None else tuple(chosen)
    place = {one.name: index for index, one in enumerate(families)}
    rank = {method.name: index for index, method in enumerate(wanted)}
    rows = [
        row
        for row in _stored(TrialFolder(folder), families, probability_level(delta)).values()
        if row.method in rank and (not counts or row.n in counts)
    ]
    if not rows:
        raise InvalidInput(f"{os.fspath(folder)} holds no such trials at delta = {delta:g}.")
    return tuple(sorted(rows, key=lambda row: (place[row.family], row.n, rank[row.method], row.trial)))


Key = tuple[str, int, int, str]
"""(family, n, trial, method)."""


def _key(row: Trial) -> Key:
    return (row.family, row.n, row.trial, row.method)


def _stored(kept: TrialFolder, families: Sequence[Family], delta: float) -> dict[Key, Trial]:
    """What the folder holds of these families at this delta."""
    known = {one.name: one for one in families}
    rows = {}
    for row in kept.read():
        if row.family not in known or row.delta != delta:
            continue
        truth = known[row.family].truth
        if row.truth != truth or row.seed != trial_seed(row.family, row.n, row.trial):
            raise InvalidInput(
                f"{kept.folder} holds trials of another family {row.family!r} (truth {row.truth!r}, here {truth!r}): use another "
                "folder."
            )
        rows[_key(row)] = row
    return rows


def _chunks(
    family: Family, n: int, applying: tuple[Method, ...], trials: int, delta: float, rows: dict[Key, Trial], size: int
) -> Iterator[Chunk]:
    """What is missing, in pieces of at most `size` trials that lack the same methods."""
    missing = [
        tuple(method for method in applying if (family.name, n, trial, method.name) not in rows) for trial in range(trials)
    ]
    for to_do, group in groupby(range(trials), key=missing.__getitem__):
        numbers = tuple(group)
        if to_do:
            yield from (Chunk(family, n, numbers[i : i + size], to_do, delta) for i in range(0, len(numbers), size))


def _chunk_size(n: int, trials: int, workers: int) -> int:
    """As many data sets as take about as long as a few of the largest, and no fewer files than workers."""
    return max(1, min(50, max(5, 300_000 // n), -(-trials // workers)))
