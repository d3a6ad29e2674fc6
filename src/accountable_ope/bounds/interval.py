"""The result of bounding a value: both ends, what proves them, what was assumed, and what to do next."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..arguments import checked
from ..defaults.recipe import Recipe
from ..io.display import interval_html, one_line
from ..io.shown import Drawn, Shown
from ..problem.assumptions import Assumptions, ValueRanges
from ..problem.average_reward import AverageReward
from ..problem.description import Description
from ..problem.statements import Guarantee, Statement, Status, advice
from ..radii.accounting import DeltaSplit
from ..radii.doubts import Doubt, TestedClass, all_doubted, class_doubts, copy_doubts, few_row_doubts, shown_status, statements
from ..radii.premises import cut_remarks
from ..radii.registry import Radius
from ..statistics.engines.used import EngineUsed
from ..statistics.specification import SpecificationTest
from ..verification.record import Circumstances, DataRecord, Record
from ..verification.verify import Verification
from .class_certificates import ClassCertificates
from .fragility import Fragility, fragility_of
from .rebound import Rebound

if TYPE_CHECKING:
    from .breakdown import Breakdown
    from .companions import Companions
    from .decision import Ruling
    from .half_class import HalfClass
    from .misfit_norms import MisfitNorms
    from .verdict import Verdict

SHOWN_ROWS = 20_000
"""With at most so many rows a notebook shows what takes a second pass over them."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What a result rests on beside its assumptions: which rows, which kernel, how and when they were chosen.

    Attributes
    ----------
    data : DataRecord
    kernel : Description
    average : AverageReward or None
        What was declared, where an average reward is bounded.
    circumstances : Circumstances
    steps : tuple of Statement
        What was declared of single steps.
    """

    data: DataRecord
    kernel: Description
    average: AverageReward | None
    circumstances: Circumstances
    steps: tuple[Statement, ...] = ()


@checked
@dataclass(frozen=True, eq=False)
class Interval(Shown, Drawn):
    """lower <= value of the target policy <= upper with probability 1 - delta, if the premises hold.

    Made by `bound_value` and its relatives. `value in interval` and `interval.width` do what they say.

    Attributes
    ----------
    lower, upper : float
        The ends, cut to the range of values that the assumptions allow; NaN where the status is INCONSISTENT.
    status : Status
        OK, DOUBTED, VACUOUS or INCONSISTENT.
    outcome : Status
        The same before any doubt: OK, VACUOUS or INCONSISTENT.
    premises, remarks : tuple of Statement
        What must be true for the guarantee, and how it came about.
    doubts : tuple of Doubt
        What speaks against the premises: asymptotic tests, made when asked for.
    doubted : bool
        Whether more than a weak sign does.
    radius : Radius
        The radius, its theorem and guarantee.
    certificates : tuple of ClassCertificates
        What proves the ends, one entry per class of Q.
    unclipped : tuple of float
        The ends before they were cut.
    rebound : Rebound or None
        Bounds the same rows under another norm bound; None where that is not offered.
    recipe : Recipe or None
        What was chosen on earlier rows, where class and kernel were not given.
    engine : EngineUsed or None
        Which engine made the sums over the rows, and why; None where none was asked for. No part of the certificate.
    """

    lower: float
    upper: float
    unclipped: tuple[float, float]
    outcome: Status
    radius: Radius
    start_error: float
    split: DeltaSplit
    assumptions: Assumptions
    ranges: ValueRanges
    certificates: tuple[ClassCertificates, ...]
    count: int
    kernel: str
    terminates: bool
    setting: Setting
    premises: tuple[Statement, ...]
    estimand: str = "Value of the target policy"
    rebound: Rebound | None = None
    recipe: Recipe | None = None
    engine: EngineUsed | None = None

    def __repr__(self) -> str:
        return one_line("Interval", self.lower, self.upper, self.delta, self.radius.name, self.status)

    def _repr_html_(self) -> str:
        from .companions import Companions
        from .verdict import verdict_of

        leading = None if self.rebound is None else self.rebound.leading  # whatever the size: it is what answers
        companions = self.companions() if self.count <= SHOWN_ROWS else Companions(weighed=leading, leads=leading is not None)
        verdict = verdict_of(self, companions)
        lead = (verdict.sentence, verdict.second_line)
        if leading is not None:
            return interval_html(leading, self.estimand, leading.method, leading.doubts, lead, leading.advice.text)
        method = f"{self.radius.name}: {self.radius.theorem}"
        return interval_html(self, self.estimand, method, statements(self.doubts), lead)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def status(self) -> Status:
        """What the interval says; DOUBTED in place of OK where the data speak against the class or its norm bound."""
        return shown_status(self.outcome, doubted=self.doubted)

    @property
    def delta(self) -> float:
        """The failure probability of the two-sided statement."""
        return self.split.total

    @property
    def guarantee(self) -> Guarantee:
        return self.radius.guarantee

    @property
    def advice(self) -> Statement:
        """What to do next."""
        return advice(self.status.name.lower(), self.status.value)

    @property
    def normalized(self) -> tuple[float, float]:
        """(1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself."""
        scale = normalizer(self.assumptions.discount)
        return (scale * self.lower, scale * self.upper)

    @property
    def clipped(self) -> tuple[bool, bool]:
        """Which ends are those of the declared ranges rather than of the data."""
        return (self.unclipped[0] < self.ranges.value[0], self.unclipped[1] > self.ranges.value[1])

    def record(self) -> Record:
        """The certificate as data: all that is needed to prove the result again; see `save`."""
        from .recording import record_of

        return record_of(self)

    def verify(self) -> Verification:
        """Everything that the result says, derived and proved again from sums over the data, assumptions and delta."""
        from .recording import verify_interval

        return verify_interval(self)

    def check(self) -> bool:
        """Whether everything that the result says can be proved again; `verify` says what cannot."""
        return self.verify().valid

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as JSON, atomically; `aope verify` and `aope.verify` check it again.

        Parameters
        ----------
        path : str or path
            A file that ends in .json.
        """
        from ..verification.files import save_record

        save_record(path, self.record())

    @property
    def remarks(self) -> tuple[Statement, ...]:
        """Which weights the cut has, or why there is none."""
        return _cut_remarks(self.certificates)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Which classes, or norm bounds, probably do not hold Q, though the data do not refute them at this radius and size.

        And whether rows stand in the log again, as where files were put together twice, or too few of them show what the target
        policy does. That there are none is no evidence that a class is right.
        """
        return (*self._copied, *class_doubts(self._tested, self.assumptions.misfit), *self._few_rows)

    @property
    def doubted(self) -> bool:
        """Whether the premise is doubted that one of the classes, within its norm bound, holds Q, or rows are copies or few."""
        return bool(self._copied or self._few_rows) or all_doubted(self._tested, self.assumptions.misfit)

    @checked
    def decide(self, at_least: float) -> Ruling:
        """Whether the value is at least so much: SUPPORTED, REFUTED, UNDECIDED, or why nothing is decided.

        By this interval, or by that of recorded probabilities where it answers first (`Companions.leads`).

        Parameters
        ----------
        at_least : float
            The threshold of the claim "value >= at_least".

        Returns
        -------
        Ruling
        """
        from .decision import at_least as ruling

        return ruling(self, at_least)

    def better_than_logged(self) -> Ruling:
        """Whether the target policy is better than the one that logged the data, by intervals at delta / 2 each.

        Raises InvalidInput where episodes are unknown or the value of the logging policy cannot be known otherwise.
        """
        from .decision import better_than_logged

        return better_than_logged(self)

    def companions(self) -> Companions:
        """What stands beside the interval: the logged policy's value and a large-sample interval, from the same rows."""
        from .companions import Companions

        return Companions() if self.rebound is None else self.rebound.companions

    @checked
    def verdict(self, at_least: float | None = None) -> Verdict:
        """What the result says in one sentence, beside the logged policy's value and a large-sample interval.

        Parameters
        ----------
        at_least : float, optional
            A threshold to decide on (`decide`); by default whether the target policy is better than the logged one.

        Returns
        -------
        Verdict
        """
        from .verdict import verdict_of

        return verdict_of(self, self.companions(), None if at_least is None else self.decide(at_least))

    @checked
    def breakdown(self, rows: bool = True) -> Breakdown | None:
        """What the width is made of, and which declaration or how many rows would narrow it: the same rows bounded again.

        Takes a few times as long as the interval itself: each goes on from where its bound ended. None where there is no
        interval, and for an average reward.

        Parameters
        ----------
        rows : bool
            Whether to extrapolate how many rows half of the width takes, from half and a quarter of the data.

        Returns
        -------
        Breakdown or None
        """
        from .breakdown import breakdown_of

        return breakdown_of(self, rows=rows)

    def fragility(self) -> Fragility | None:
        """The ends at twice and five times the declared norm bound, bounded anew; None where the ball decides no end.

        Of a `SemiParametric` class the norm is that of what its features miss, the declared `misfit_norm`.
        """
        return self._fragility

    def half_class(self) -> HalfClass | None:
        """The ends had every class half of its features, bounded anew: how much the answer hangs on the class.

        Takes about as long as the interval itself. None where there is no interval, for a table, a whole RKHS, or columns that
        were given as numbers.
        """
        return self._half_class

    @cached_property
    def _fragility(self) -> Fragility | None:
        return None if self.rebound is None else fragility_of(self, self.rebound)

    @cached_property
    def _half_class(self) -> HalfClass | None:
        from .half_class import half_class_of

        return None if self.rebound is None else half_class_of(self, self.rebound)

    @checked
    def misfit_norms(self, at_least: float | None = None) -> MisfitNorms | None:
        """What the declared `misfit_norm` of a `SemiParametric` class decides: the same rows bounded again at other norms.

        Takes about fifteen times as long as the interval itself. None where no such norm was declared.

        Parameters
        ----------
        at_least : float, optional
            A threshold: asks up to which norm a value of at least that much is supported.

        Returns
        -------
        MisfitNorms or None
        """
        from .misfit_norms import misfit_norms_of

        return misfit_norms_of(self, at_least)

    @property
    def specifications(self) -> tuple[SpecificationTest, ...]:
        """The tests behind the doubts about classes, one per class."""
        return tuple(part.specification for part in self.certificates)

    @property
    def copied(self) -> int:
        """How many rows are copies of earlier ones, where these are too many to be passed over; else 0."""
        return self.setting.circumstances.copied_rows

    @property
    def _copied(self) -> tuple[Doubt, ...]:
        return copy_doubts(self.copied, self.setting.data.rows)

    @property
    def _few_rows(self) -> tuple[Doubt, ...]:
        return few_row_doubts(self.setting.circumstances.showing_rows, self.setting.data.rows, self.assumptions.misfit)

    @property
    def _tested(self) -> list[TestedClass]:
        return [part.tested for part in self.certificates if part.consistent]


def _cut_remarks(parts: Sequence[ClassCertificates]) -> tuple[Statement, ...]:
    return cut_remarks([part.words.cut for part in parts], [part.basis.no_cut for part in parts])


def clip(unclipped: tuple[float, float], allowed: tuple[float, float]) -> tuple[float, float, Status]:
    """(lower, upper, status): the ends cut to what the assumptions allow; vacuous when both ends were."""
    low, high = allowed
    if math.isnan(unclipped[0]):
        return math.nan, math.nan, Status.INCONSISTENT
    # Sorted, as rounding may cross two ends that are as good as equal.
    lower, upper = sorted((min(max(unclipped[0], low), high), max(min(unclipped[1], high), low)))
    return lower, upper, Status.VACUOUS if unclipped[0] <= low and unclipped[1] >= high else Status.OK


def normalizer(discount: float) -> float:
    """1 - discount, which puts values on the scale of one reward; 1 at discount 1."""
    return 1.0 if discount == 1 else 1 - discount
