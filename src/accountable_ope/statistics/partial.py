"""The kernel statistic of a part of the rows, in a form that can be added up.

A kernel of finite rank is K = Psi Psi', so C'KC = P'P with P = Psi'C, and P is a sum over rows: that of all rows is the sum of
those of its parts, in whatever order. So are C' diag(K) C, the squares of the columns, and the moments of the features.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..io.shelf import Shelf
from ..kernels.blocks import roundings
from ..kernels.kernel import distinct_rows, group_sums
from ..validation import FloatArray
from .engines.finite_rank import rank_error
from .statistic import KernelStatistic

_STORED = (
    "labels",
    "projected",
    "diag_gram",
    "column_squares",
    "data_moments",
    "next_moments",
    "objective",
    "counts",
    "numbers",
    "names",
)

_SUMS = _STORED[:6]

REFUSED = "Sums of different questions cannot be added"

CLOSE = 1e-9
"""Two machines that compute one c0 agree so far, relative to its largest entry."""


@checked
@dataclass(frozen=True, eq=False)
class Subject:
    """What sums over rows are of: parts can be added where these are equal.

    Attributes
    ----------
    kernel, features : str
        As they are printed.
    discount : float
    fingerprint : str
        SHA-256 of kernel and class as data, with all their numbers.
    kernel_supremum : float
        sup K(x, x).
    objective : array (m,)
        c0, the mean of the features at the start states over the target policy: the value of Q is c0'theta. Two policies, or
        two functions with one name, differ here where they differ at the start states; what is elsewhere cannot be compared.
    reference : float
        The constant from which values are counted.
    anchor : float or None
        The value of the estimate around which the class lies; None: there is none.
    declared : str
        What every row was checked against: the range of rewards, the state box, and what is said of rewards and ends.
    """

    kernel: str
    features: str
    discount: float
    fingerprint: str
    kernel_supremum: float
    objective: FloatArray
    reference: float = 0.0
    anchor: float | None = None
    declared: str = ""

    @property
    def anchor_or_nan(self) -> float:
        """As an array holds it."""
        return math.nan if self.anchor is None else self.anchor

    def refuse_other(self, other: Subject) -> None:
        """Raise where sums of the other cannot be added to those of this one."""
        for name in ("kernel", "features", "discount", "reference", "kernel_supremum"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                raise InvalidInput(f"{REFUSED}: `{name}` is {one} in one and {two} in the other.")
        if self.declared != other.declared:
            raise InvalidInput(
                f"{REFUSED}: rows of one were checked against {self.declared}, those of the other against {other.declared}."
            )
        if self.fingerprint != other.fingerprint:
            named = f"kernel {self.kernel} and class {self.features}"
            raise InvalidInput(f"{REFUSED}: {named} are called alike in both, and differ in their numbers.")
        close = CLOSE * max(float(np.abs(self.objective).max()), float(np.abs(other.objective).max()))
        if self.objective.shape != other.objective.shape or np.abs(self.objective - other.objective).max() > close:
            raise InvalidInput(
                f"{REFUSED}: the mean of the features at the start states differs, so policy, start states or features do."
            )
        if not np.isclose(self.anchor_or_nan, other.anchor_or_nan, rtol=CLOSE, atol=0, equal_nan=True):
            raise InvalidInput(f"{REFUSED}: they are of different estimates, or one of them is of none.")


@checked
@dataclass(frozen=True, eq=False)
class PartialStatistic:
    """Sums over some rows from which the statistic follows, and which can be added; made by `partial_statistic`.

    `+` is commutative, and associative up to rounding, which `kernel_error` counts: in whatever order parts are added, the
    statistic is that of all their rows. That no row is in two parts is up to the caller.

    Attributes
    ----------
    subject : Subject
        What the sums are of.
    labels : array (rank, d)
        What names the features of the kernel: for `Tabular` the different points that were met, else their numbers.
    projected : array (rank, k)
        P = Psi'C, for the columns C = [Z | v | 1].
    diag_gram : array (k, k)
        C' diag(K) C.
    column_squares : array (k,)
        The sum of the squares of every column.
    data_moments, next_moments : array (m + 1, m + 1)
        The sums of u u', u = [phi, 1], or [phi, 1, anchor], over the data and over the next states that are not terminal: for a
        value box.
    count : int
        The number of rows.
    ended : int
        How many of them are terminated.
    left_out : int
        How many other rows were left out since their next states were not logged.
    roundings : int
        So many additions, at most, were done one after the other for any of the sums.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1))
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> first, second = (mdp.sample(np.random.default_rng(k), trajectories=10) for k in (0, 1))
    >>> both = aope.partial_statistic(first, question) + aope.partial_statistic(second, question)
    >>> both
    PartialStatistic(1000 rows, rank 100, 6 coefficients)
    >>> both.statistic()
    KernelStatistic(1000 rows, 6 coefficients)
    """

    subject: Subject
    labels: FloatArray
    projected: FloatArray
    diag_gram: FloatArray
    column_squares: FloatArray
    data_moments: FloatArray
    next_moments: FloatArray
    count: int
    ended: int
    left_out: int
    roundings: int

    def __repr__(self) -> str:
        return f"PartialStatistic({self.count} rows, rank {len(self.labels)}, {len(self.subject.objective)} coefficients)"

    def __add__(self, other: object) -> PartialStatistic:
        if not isinstance(other, PartialStatistic):
            return NotImplemented
        self.subject.refuse_other(other.subject)
        labels, projected = self._together(other)
        return PartialStatistic(
            subject=self.subject,
            labels=labels,
            projected=projected,
            diag_gram=self.diag_gram + other.diag_gram,
            column_squares=self.column_squares + other.column_squares,
            data_moments=self.data_moments + other.data_moments,
            next_moments=self.next_moments + other.next_moments,
            count=self.count + other.count,
            ended=self.ended + other.ended,
            left_out=self.left_out + other.left_out,
            roundings=max(self.roundings, other.roundings) + 1,
        )

    def __radd__(self, other: object) -> PartialStatistic:
        """`sum` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _together(self, other: PartialStatistic) -> tuple[FloatArray, FloatArray]:
        """The features that either has, and their sums."""
        if np.array_equal(self.labels, other.labels):
            return self.labels, self.projected + other.projected
        if self.labels.shape[1] != other.labels.shape[1]:
            raise InvalidInput(
                f"{REFUSED}: points have {self.labels.shape[1]} columns in one, {other.labels.shape[1]} in the other."
            )
        labels = np.concatenate([self.labels, other.labels])
        first, group = distinct_rows(labels)
        return labels[first], group_sums(group, np.concatenate([self.projected, other.projected]))

    @property
    def kernel_error(self) -> float:
        """How far an entry of K may be off, counted as for all rows at once unless there were more additions than that."""
        return rank_error(self.subject.kernel_supremum, len(self.labels), max(self.roundings, roundings(self.count)))

    def check_counts(self) -> None:
        """`ValueError` where these cannot be sums: columns of ones among them say again how many rows there are."""
        for name in _SUMS:
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"its {name} are not all finite numbers")
        m, rows, live = len(self.subject.objective), self.count, self.count - self.ended
        said = (self.column_squares[m + 1], self.data_moments[m, m], self.next_moments[m, m])
        if not (0 <= self.ended <= rows >= 2 and self.roundings >= 0 and self.left_out >= 0 and said == (rows, rows, live)):
            raise ValueError(f"it is said to be of {rows} rows, of which {self.ended} are terminated, and its sums are not")
        if self.column_squares.min() < 0 or not self.subject.kernel_supremum > 0:
            raise ValueError("its squares are negative")

    def statistic(self) -> KernelStatistic:
        """The statistic of all rows that were added."""
        pair_gram, scale = self.projected.T @ self.projected, np.sqrt(self.column_squares / self.count)
        if not (np.isfinite(pair_gram).all() and np.isfinite(scale).all()):
            raise InvalidInput("The kernel statistic is not finite: states, rewards or features are too large to be squared.")
        return KernelStatistic(
            pair_gram=pair_gram,
            diag_gram=self.diag_gram,
            column_scale=scale,
            count=self.count,
            kernel_supremum=self.subject.kernel_supremum,
            kernel_error=self.kernel_error,
        )

    def keep(self, shelf: Shelf) -> None:
        """The sums, without what they are of."""
        for name in _SUMS:
            shelf.put(name, getattr(self, name))
        shelf.put("counts", np.array([self.count, self.ended, self.left_out, self.roundings], dtype=np.int64))

    @classmethod
    def kept(cls, shelf: Shelf, subject: Subject) -> PartialStatistic:
        """What `keep` kept; `ValueError` where that cannot be."""
        m, wide = len(subject.objective), len(subject.objective) + 1 + (subject.anchor is not None)
        count, ended, left_out, roundings = shelf.whole("counts", 4).tolist()
        labels = shelf.floats("labels", None, None)
        found = cls(
            subject=subject,
            labels=labels,
            projected=shelf.floats("projected", len(labels), m + 2),
            diag_gram=shelf.floats("diag_gram", m + 2, m + 2),
            column_squares=shelf.floats("column_squares", m + 2),
            data_moments=shelf.floats("data_moments", wide, wide),
            next_moments=shelf.floats("next_moments", wide, wide),
            count=count,
            ended=ended,
            left_out=left_out,
            roundings=roundings,
        )
        found.check_counts()
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as .npz, atomically."""
        subject = self.subject
        stored: tuple[NDArray[Any], ...] = (
            self.labels,
            self.projected,
            self.diag_gram,
            self.column_squares,
            self.data_moments,
            self.next_moments,
            subject.objective,
            np.array([self.count, self.ended, self.left_out, self.roundings], dtype=np.int64),
            np.array(
                [
                    subject.discount,
                    subject.kernel_supremum,
                    subject.reference,
                    math.nan if subject.anchor is None else subject.anchor,
                ]
            ),
            np.array([subject.kernel, subject.features, subject.fingerprint, subject.declared]),
        )
        save_arrays(path, dict(zip(_STORED, stored, strict=True)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PartialStatistic:
        """Read what `save` wrote; nothing in the file is executed."""
        what = "a saved PartialStatistic"
        arrays = load_arrays(path, what, _STORED)
        labels, projected, diag_gram, squares, data, after, objective, counts, numbers, names = (arrays[name] for name in _STORED)
        m, rank = objective.size, len(labels) if labels.ndim == 2 else -1
        wanted = (
            ("projected", projected, (rank, m + 2)),
            ("diag_gram", diag_gram, (m + 2, m + 2)),
            ("column_squares", squares, (m + 2,)),
            ("objective", objective, (m,)),
            ("numbers", numbers, (4,)),
        )
        wrong = [name for name, array, shape in wanted if array.shape != shape or array.dtype != np.float64]
        wide = m + 1 + (numbers.shape == (4,) and not math.isnan(numbers[3]))
        moments = (("data_moments", data), ("next_moments", after))
        wrong += [name for name, array in moments if array.shape != (wide, wide) or array.dtype != np.float64]
        if counts.shape != (4,) or counts.dtype != np.int64 or names.shape != (4,) or names.dtype.kind != "U":
            wrong.append("counts" if names.shape == (4,) else "names")
        if wrong or labels.dtype != np.float64:
            raise InvalidFile(f"{os.fspath(path)} is not {what} (its array {(wrong or ['labels'])[0]!r} is of another kind).")
        count, ended, left_out, roundings = counts.tolist()
        kernel, features, fingerprint, declared = (str(name) for name in names)
        discount, supremum, reference, anchor = numbers.tolist()
        subject = Subject(
            kernel,
            features,
            discount,
            fingerprint,
            supremum,
            objective,
            reference,
            None if math.isnan(anchor) else anchor,
            declared,
        )
        found = cls(subject, labels, projected, diag_gram, squares, data, after, count, ended, left_out, roundings)
        try:
            found.check_counts()
        except ValueError as error:
            raise InvalidFile(f"{os.fspath(path)} is not {what} ({error}).") from error
        return found
