"""Trials of every family, size and method, run in parallel and kept in a folder to which more can be added."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from ..arguments import checked
from ..errors import AopeError, InvalidFile, InvalidInput
from ..runner.processes import process_count
from ..runner.run import Report, run_pieces, trial_seed
from ..runner.store import Store
from ..runner.truth import same_truth
from ..validation import probability_level, whole
from .family import Family
from .methods import IntervalMethod, known_methods, methods_named, outcomes
from .trial import Key, Trial

DEFAULT_COUNTS = (300, 1000, 3000)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive trials of one family and one size, and what to compute on each: the most that a killed worker loses."""

    family: Family
    n: int
    trials: range
    methods: tuple[IntervalMethod, ...]
    delta: float

    @property
    def name(self) -> str:
        methods = ",".join(method.name for method in self.methods)
        return f"{self.family.name} n{self.n} trials {self.trials[0]}-{self.trials[-1]} delta {self.delta!r} {methods}"

    @property
    def size(self) -> int:
        return len(self.trials)

    def run(self) -> list[Trial]:
        return [row for trial in self.trials for row in self._rows(trial)]

    def _rows(self, trial: int) -> Iterator[Trial]:
        """Every method on the data set of one trial."""
        family = self.family
        seed = trial_seed(family.name, self.n, trial)
        try:
            data = family.draw(np.random.default_rng(seed), self.n)
            found = outcomes(family, data, self.methods, self.delta, seed)
        except AopeError as error:
            raise InvalidInput(f"Family {family.name}, n = {self.n}, trial {trial}: {error}") from error
        for outcome in found:
            yield Trial(
                family=family.name,
                data_kind=family.data_kind.value,
                method=outcome.method,
                guarantee=outcome.guarantee,
                n=self.n,
                trial=trial,
                seed=seed,
                delta=self.delta,
                lower=outcome.lower,
                upper=outcome.upper,
                truth=family.truth,
                covered=outcome.lower <= family.truth <= outcome.upper,  # an empty interval has NaN ends and covers nothing
                width=family.scale * (outcome.upper - outcome.lower),
                status=outcome.status,
                seconds=outcome.seconds,
            )


@checked
def run_trials(
    families: Sequence[Family],
    counts: Sequence[int] = DEFAULT_COUNTS,
    *,
    chosen: Sequence[IntervalMethod] | None = None,
    trials: int = 100,
    delta: float = 0.1,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    report: Report | None = None,
) -> tuple[Trial, ...]:
    """Trials 0, 1, ... of every family, every n and every method that applies.

    The rows do not depend on the number of workers, but for `seconds`.

    Parameters
    ----------
    families : sequence of Family
    counts : sequence of int
        The sizes n.
    chosen : sequence of IntervalMethod, optional
        The methods; None: those of `methods_named()`.
    trials : int
        How many of each.
    delta : float
    workers : int, optional
        Processes; None: one per core; 1: only this one. They start fresh interpreters, so a script that asks for more than one
        must do so below `if __name__ == "__main__"`.
    folder : path, optional
        Where finished chunks are kept. A trial that is found there is not repeated; more trials, sizes, families or methods are
        added to it. Trials of another delta stand beside each other.
    report : callable, optional
        Called with how much of the work is done and how much there is.

    Returns
    -------
    tuple of Trial

    Raises
    ------
    InvalidInput
        Where there is nothing to run, or the folder holds trials of another family of the same name.

    Examples
    --------
    >>> from accountable_ope.laboratory import fair_coin, methods_named, run_trials
    >>> table = run_trials([fair_coin()], [50], chosen=methods_named(["azuma"]), trials=3, workers=1)
    >>> [(row.n, row.trial) for row in table]
    [(50, 0), (50, 1), (50, 2)]
    """
    methods = methods_named() if chosen is None else tuple(chosen)
    probability_level(delta)
    whole(trials, "trials", least=1)
    processes = process_count(workers)
    sizes = tuple(dict.fromkeys(whole(n, "n", least=2) for n in counts))
    for name, listed in (("family", families), ("n", sizes), ("radius", methods)):
        if not listed:
            raise InvalidInput(f"At least one `{name}` is needed. Got none.")
    cells = [(family, n, tuple(method for method in methods if method.applies(family, n))) for family in families for n in sizes]
    if not any(applying for _, _, applying in cells):
        raise InvalidInput("None of the methods applies to any of the families at these sizes.")

    store = None if folder is None else Store(Path(folder), Trial)
    rows = {} if folder is None else {row.key: row for row in _stored(folder, families, delta)}
    chunks = [
        chunk
        for family, n, applying in cells
        for chunk in _missing(family, n, applying, trials, delta, rows, _chunk_size(n, trials, processes))
    ]
    rows.update({row.key: row for row in run_pieces(chunks, store, workers=workers, report=report)})
    return tuple(
        rows[family.name, n, trial, method.name, delta]
        for family, n, applying in cells
        for method in applying
        for trial in range(trials)
    )


@checked
def read_trials(folder: str | os.PathLike[str]) -> tuple[Trial, ...]:
    """Every trial that a folder holds; once, also where two runs at the same time computed it twice.

    Parameters
    ----------
    folder : path

    Returns
    -------
    tuple of Trial

    Raises
    ------
    InvalidFile
        Where there is no such folder.

    Examples
    --------
    >>> import tempfile
    >>> from accountable_ope.laboratory import fair_coin, methods_named, read_trials, run_trials
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run_trials([fair_coin()], [50], chosen=methods_named(["azuma"]), trials=3, workers=1, folder=folder)
    ...     len(read_trials(folder))
    3
    """
    if not Path(folder).is_dir():
        raise InvalidFile(f"{os.fspath(folder)} is not a folder.")
    return tuple({row.key: row for row in Store(Path(folder), Trial).read_all()}.values())


@checked
def stored_trials(
    folder: str | os.PathLike[str],
    families: Sequence[Family],
    counts: Sequence[int] | None = None,
    chosen: Sequence[IntervalMethod] | None = None,
    delta: float = 0.1,
) -> tuple[Trial, ...]:
    """What a folder holds of these families at this delta, ordered as `run_trials` would.

    Parameters
    ----------
    folder : path
    families : sequence of Family
    counts : sequence of int, optional
        None: every n.
    chosen : sequence of IntervalMethod, optional
        None: every known method.
    delta : float

    Returns
    -------
    tuple of Trial

    Raises
    ------
    InvalidInput
        Where the folder holds no such trials, or those of another family of the same name.

    Examples
    --------
    >>> import tempfile
    >>> from accountable_ope.laboratory import fair_coin, methods_named, run_trials, stored_trials
    >>> azuma = methods_named(["azuma"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run_trials([fair_coin()], [50], chosen=azuma, trials=3, workers=1, folder=folder)
    ...     stored_trials(folder, [fair_coin()]) == table
    True
    """
    methods = known_methods() if chosen is None else tuple(chosen)
    family_order = {family.name: index for index, family in enumerate(families)}
    method_order = {method.name: index for index, method in enumerate(methods)}
    rows = [
        row
        for row in _stored(folder, families, probability_level(delta))
        if row.method in method_order and (not counts or row.n in counts)
    ]
    if not rows:
        raise InvalidInput(f"{os.fspath(folder)} holds no such trials at delta = {delta:g}.")
    return tuple(sorted(rows, key=lambda row: (family_order[row.family], row.n, method_order[row.method], row.trial)))


def _stored(folder: str | os.PathLike[str], families: Sequence[Family], delta: float) -> list[Trial]:
    """What the folder holds of these families at this delta."""
    truths = {family.name: family.truth for family in families}
    rows = [row for row in read_trials(folder) if row.family in truths and row.delta == delta]
    for row in rows:
        if not same_truth(row.truth, truths[row.family]) or row.seed != trial_seed(row.family, row.n, row.trial):
            raise InvalidInput(
                f"{os.fspath(folder)} holds trials of another family {row.family!r} (truth {row.truth!r}, here "
                f"{truths[row.family]!r}): use another folder."
            )
    return rows


def _missing(
    family: Family,
    n: int,
    methods: tuple[IntervalMethod, ...],
    trials: int,
    delta: float,
    finished: Container[Key],
    size: int,
) -> Iterator[Chunk]:
    """What is not finished, in chunks of at most `size` trials that lack the same methods."""

    def lacking(trial: int) -> tuple[IntervalMethod, ...]:
        return tuple(method for method in methods if (family.name, n, trial, method.name, delta) not in finished)

    for to_do, group in groupby(range(trials), key=lacking):
        numbers = list(group)
        if to_do:
            for first in range(numbers[0], numbers[-1] + 1, size):
                yield Chunk(family, n, range(first, min(first + size, numbers[-1] + 1)), to_do, delta)


def _chunk_size(n: int, trials: int, processes: int) -> int:
    """As many data sets as take about as long as a few of the largest, and no fewer files than processes."""
    return max(1, min(50, max(5, 300_000 // n), -(-trials // processes)))
