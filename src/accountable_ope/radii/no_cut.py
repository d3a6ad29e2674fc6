"""Why a result has no cut: no weighted sum of residuals beside the kernel's martingale."""

from __future__ import annotations

from enum import Enum

from ..classes.function_class import FunctionClass
from ..classes.semi_parametric import SemiParametric
from ..problem.policy import SampledPolicy
from ..problem.problem import Problem
from ..problem.statements import Statement, remark


class NoCut(Enum):
    """Each value is the reason, as a result says it."""

    GROWING = "the data may grow and be looked at again, and weights are made for one number of rows"
    ANCHORED = "the class lies around an estimate that may have been fitted to these rows, so that no row is later than it"
    COORDINATES = "the coordinates of the class were chosen by looking at all rows, and weights must depend on earlier ones alone"
    POLICY = "the policy draws its actions from a stream that is not known to be apart from the data"
    POINTS = "later rows show states that the earlier ones did not, and weights must not depend on how many there are"
    STARTS = "the start states come from the log itself, and weights must not depend on later rows"
    STARTS_SEEN = "the log shows that start states were taken from it, and weights must not depend on later rows"
    SUMS = "only sums over the rows are at hand (no row may be in two of them), and weights are made row by row"
    WEIGHTS = "the first rows gave no weights that point at the value"

    @property
    def found_later(self) -> bool:
        """Whether rows of the bound decided that there is none: then the share of delta that a cut has is spent all the same."""
        return self in (NoCut.WEIGHTS, NoCut.POINTS, NoCut.STARTS_SEEN)

    @property
    def statement(self) -> Statement:
        """What a result says."""
        text = f"There is no cut, a second bound by weighted rows that makes an interval narrower: {self.value}."
        return remark("no-cut", text, ("reason", self.name.lower()))


def why_no_cut(
    problem: Problem, function_class: FunctionClass, *, anchored: bool, growing: bool, listed: bool = True
) -> NoCut | None:
    """What stands against a cut before any row of it is looked at; None: nothing.

    anchored: around an estimate that may know these rows. listed: whether listed points were known before these rows.
    """
    if growing:
        return NoCut.GROWING
    if anchored:
        return NoCut.ANCHORED
    # Of a semi-parametric class the features are fixed, and weights are made from them alone.
    if function_class.has_remainder and not isinstance(function_class, SemiParametric):
        return NoCut.COORDINATES
    if not (problem.policy.exact or isinstance(problem.policy, SampledPolicy)):
        return NoCut.POLICY
    if not problem.starts.fixed:
        return NoCut.STARTS
    # What rows tell comes last: where something is known before them, the kernel keeps the whole delta.
    if not listed:
        return NoCut.POINTS
    return None if problem.starts_are_fixed else NoCut.STARTS_SEEN
