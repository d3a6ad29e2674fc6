"""How an interval and a decision hang on the declared norm of what features miss: what no rows tell, varied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arguments import checked
from ..io.display import confidence
from ..io.shown import Drawn, Shown
from ..problem.statements import Statement, remark
from .findings import Curve, Flip, FlipOutcome, LeastNorm, Parameter
from .sensitivity import study_of

if TYPE_CHECKING:
    from .interval import Interval

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The norms that are tried, in units of the declared one."""
LEAST_TOLERANCE = 0.1
FLIP_TOLERANCE = 0.1
"""A norm that nobody knows is not worth more digits."""


@checked
@dataclass(frozen=True)
class MisfitNorms(Shown, Drawn):
    """What the norm of what features miss decides; made by `Interval.misfit_norms`.

    All intervals lie on one event, with rates that leave room for larger norms: that at the declared norm may be a little wider
    than the interval itself.

    Attributes
    ----------
    curve : Curve
        The interval at norms from a quarter to four times the declared one.
    least : LeastNorm
        What the norm exceeds, with probability 1 - delta.
    flip : Flip or None
        Up to which norm "value >= threshold" is supported, where a threshold was given.
    """

    curve: Curve
    least: LeastNorm
    flip: Flip | None = None

    def __repr__(self) -> str:
        return f"MisfitNorms(least {self.least.value:.3g}, {len(self.curve.values)} norms, {self.curve.radius})"

    @property
    def statements(self) -> tuple[Statement, ...]:
        """In words: what data say of the norm, and where the decision flips."""
        found = [remark("least-misfit-norm", least_misfit_text(self.least), ("value", self.least.value))]
        if self.flip is not None:
            found.append(remark("misfit-norm-flip", _flip_text(self.flip), ("value", self.flip.value)))
        return tuple(found)


def misfit_norms_of(interval: Interval, at_least: float | None = None) -> MisfitNorms | None:
    """Other norms of what features miss; None where none was declared, or the rows cannot be bounded again."""
    again, declared = interval.rebound, interval.assumptions.misfit_norm
    if again is None or declared is None or again.growing:
        return None
    study = study_of(again.evaluation, again.asked.radius, again.asked.delta)
    return MisfitNorms(
        curve=study.curve(Parameter.MISFIT_NORM, [factor * declared for factor in FACTORS]),
        least=study.least_misfit_norm(LEAST_TOLERANCE),
        flip=None if at_least is None else study.flip_point(at_least, Parameter.MISFIT_NORM, FLIP_TOLERANCE),
    )


def least_misfit_text(least: LeastNorm) -> str:
    """What the data say of the norm."""
    if least.consistent is None:
        return "The data refute the class whatever the norm of what features miss."
    if least.value == 0:
        return "The data do not show that the features miss anything, and cannot show that they miss nothing."
    return (
        f"What features miss has a norm above {least.value:.3g} with {confidence(least.delta)} confidence: smaller norms are "
        "refuted. A bound from above cannot be learned from data."
    )


def _flip_text(flip: Flip) -> str:
    claim = f'"value >= {flip.threshold:g}"'
    if flip.outcome is FlipOutcome.FLIPS:
        return f"{claim} is supported up to a norm of {flip.value:.3g} of what features miss, and not at {flip.beyond:.3g}."
    if flip.outcome is FlipOutcome.ALWAYS:
        return f"{claim} is supported whatever the norm of what features miss, as far as was tried ({flip.value:.3g})."
    if flip.outcome is FlipOutcome.NEVER:
        return f"{claim} is supported at no norm of what features miss that the data leave."
    return f"{claim}: the data refute the class whatever the norm of what features miss."
