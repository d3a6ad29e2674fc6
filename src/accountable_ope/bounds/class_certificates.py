"""What one class of Q contributes to an interval: both ends, what proves them, and the tests of the class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments import checked
from ..classes.ranges import ResidualRange
from ..problem.description import Description
from ..programs.certificate import Certificate, SolveStatus
from ..programs.constraint_set import ConstraintSet
from ..programs.proofs import Tightening
from ..radii.doubts import TestedClass
from ..radii.no_cut import NoCut
from ..radii.premises import ClassWords, CutWords, rest_kernel
from ..radii.registry import Radius
from ..radii.sums import RowSums
from ..statistics.examiner import ClassTests
from ..statistics.norm_test import NormTest
from ..statistics.specification import SpecificationTest
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray
from ..verification.record import TermRecord


@dataclass(frozen=True, eq=False)
class Basis:
    """What the data and a class of Q give beside the statistic: all else of its certificates is derived from these.

    Attributes
    ----------
    description : Description
        What the class is.
    nonnegative_kernel : bool
    listed : bool
        Whether the class is one-hot over a list of points.
    objective : array (m,)
        c0.
    moments : array
        Of the value box.
    reference : float
        The constant from which values are counted there.
    residuals : ResidualRange
        How large residuals can be.
    sums : RowSums
        Sums over the rows that the radius needs.
    no_cut : NoCut or None
        Why there is no cut, where the radius would have one.
    """

    description: Description
    nonnegative_kernel: bool
    listed: bool
    objective: FloatArray
    moments: FloatArray
    residuals: ResidualRange
    sums: RowSums
    no_cut: NoCut | None = None
    reference: float = 0.0


@checked
@dataclass(frozen=True, eq=False)
class ClassCertificates:
    """What one class of Q contributes: both ends with their certificates, or the proof that it is inconsistent.

    Attributes
    ----------
    features : str
        The class, in words.
    constraints : ConstraintSet
    upper, lower : Certificate
    norm_bound : float or None
    least_norm : float or None
        The least norm of a function that is consistent with the data.
    least_loss : float
        The smallest loss over ball and box.
    least_misfit : float
        Where the class is inconsistent, every function of it differs from Q somewhere by at least this much, with probability
        1 - delta.
    statistic : KernelStatistic
    note : str
    offset : float
        The value of the Q at which the class is anchored.
    missed : float
        What the coordinates of an RKHS can hide from either end, beyond what is part of the program.
    tightening : Tightening or None
        The rounds behind a radius that follows the variance.
    basis : Basis
        What the data and the class give.
    least_norm_terms, least_loss_terms : tuple of TermRecord
        What proves that none is smaller.
    tests : ClassTests
        Whether the class, within its norm bound, contains Q: asymptotic tests, made when asked for.
    """

    features: str
    constraints: ConstraintSet
    upper: Certificate
    lower: Certificate
    norm_bound: float | None
    least_norm: float | None
    least_loss: float
    least_misfit: float
    statistic: KernelStatistic
    basis: Basis
    least_norm_terms: tuple[TermRecord, ...]
    least_loss_terms: tuple[TermRecord, ...]
    tests: ClassTests
    note: str = ""
    offset: float = 0.0
    missed: float = 0.0
    tightening: Tightening | None = None

    def __repr__(self) -> str:
        return f"ClassCertificates({self.features}, {self.upper.status.name}, {self.lower.status.name})"

    @property
    def words(self) -> ClassWords:
        """What premises say of the class."""
        kind = self.basis.description.kind
        rest = "" if self.constraints.rest is None else rest_kernel(self.basis.description)
        planned = self.basis.sums.planned_for is not None
        return ClassWords(
            features=self.features,
            norm_bound=self.norm_bound,
            note=self.note,
            dimension=self.statistic.dimension,
            cut=self.cut,
            kind=kind,
            rest=rest,
            planned=planned,
            reference=self.basis.reference,
        )

    @property
    def cut(self) -> CutWords | None:
        """What premises say of the cut, None where there is none."""
        sums = self.basis.sums.cut
        return None if sums is None else CutWords(sums.kind, sums.earlier)

    @property
    def consistent(self) -> bool:
        return self.upper.status is not SolveStatus.EMPTY

    @property
    def specification(self) -> SpecificationTest:
        """Whether the class contains Q: a test for many rows, no guarantee. A large p-value is no evidence that it does."""
        return self.tests.specification

    @property
    def norm_test(self) -> NormTest | None:
        """Whether the declared norm bound is large enough; None where none was declared or it cannot be tested."""
        return self.tests.norm

    @property
    def tested(self) -> TestedClass:
        """What doubts are told from."""
        return TestedClass(self.features, self.specification, self.norm_test)

    def refutation(self, radius: Radius) -> str:
        """In words, how the class was refuted."""
        text = f"{self.features}: least loss {self.least_loss:.3g} above the radius {radius.total:.3g}"
        if self.least_loss <= radius.total:
            text = f"{self.features}: no function has a loss within the radius and values within their range and the norm bound"
        if self.least_misfit > 0:
            text += f"; every function of this class within the norm bound misses Q somewhere by at least {self.least_misfit:.3g}"
        return f"{text}."


def hull(parts: Sequence[ClassCertificates], start_error: float) -> tuple[float, float]:
    """The lowest lower and the highest upper end over the consistent classes; NaN when there is none."""
    consistent = [part for part in parts if part.consistent]
    lower = min((part.offset - part.lower.bound - part.missed for part in consistent), default=math.nan)
    upper = max((part.offset + part.upper.bound + part.missed for part in consistent), default=math.nan)
    return (lower - start_error, upper + start_error)
