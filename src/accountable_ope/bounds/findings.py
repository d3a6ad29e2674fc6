"""What a sensitivity study finds: curves, flip points, the least norm, and rows needed for a width."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..arguments import checked
from ..io.display import confidence
from ..io.shown import Drawn, Shown
from ..problem.assumptions import Range
from ..problem.statements import Guarantee, Statement, Status


class Parameter(Enum):
    """What is varied."""

    NORM_BOUND = "norm_bound"
    MISFIT = "misfit"
    DELTA = "delta"
    DISCOUNT = "discount"
    REWARD_RANGE = "reward_range"
    MISFIT_NORM = "misfit_norm"


class FlipOutcome(Enum):
    """Whether a decision rests on an assumption; the value is the advice."""

    FLIPS = "The decision is supported up to the reported value, and not beyond it."
    ALWAYS = "The decision is supported at every value that was tried: it does not rest on this assumption."
    NEVER = "The decision is supported at no value at which the class is consistent with the data."
    REFUTED = "No function of the class is consistent with the data, whatever the value. Use more or other features."


class RowsOutcome(Enum):
    """What can be said about the number of rows; the value is the advice."""

    ENOUGH = "The data at hand give this width already."
    EXTRAPOLATED = "Extrapolated from fewer rows, not guaranteed."
    FLOOR = "More rows alone never give this width: sampled start states and the misfit take all of it."
    STUCK = "The width hardly falls with the number of rows: more rows of this kind will not do, other data or assumptions may."
    VACUOUS = "Fewer than two prefixes of the data gave an interval that says anything: there is nothing to extrapolate from."
    REFUTED = "No function of the class is consistent with all the data. Use more or other features."


@dataclass(frozen=True)
class CurveRow:
    """One interval of a curve."""

    value: float
    lower: float
    upper: float
    status: Status
    baseline: bool


@checked
@dataclass(frozen=True)
class Curve(Shown, Drawn):
    """The interval at each value of one parameter, all else as declared; its ends are NaN where it is INCONSISTENT.

    Attributes
    ----------
    parameter : Parameter
    values : tuple of float
        Ascending; for the range of rewards, factors by which the declared one is widened about its middle.
    lower, upper : tuple of float
    statuses : tuple of Status
    allowed : tuple of pairs of floats
        The range of values that the assumptions allow there.
    baseline : float or None
        What was declared, None where no norm bound was.
    radius : str
    guarantee : Guarantee
    delta : float
    premises : tuple of Statement
        What every interval rests on, and that each takes its own value of the parameter.
    """

    parameter: Parameter
    values: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    statuses: tuple[Status, ...]
    allowed: tuple[Range, ...]
    baseline: float | None
    radius: str
    guarantee: Guarantee
    delta: float
    premises: tuple[Statement, ...] = ()

    def __repr__(self) -> str:
        return f"Curve({self.parameter.value}, {len(self.values)} values, {self.radius}, {confidence(self.delta)})"

    def rows(self) -> tuple[CurveRow, ...]:
        """The curve as a table."""
        columns = zip(self.values, self.lower, self.upper, self.statuses, strict=True)
        return tuple(CurveRow(x, low, high, status, x == self.baseline) for x, low, high, status in columns)


@checked
@dataclass(frozen=True)
class LeastNorm(Shown, Drawn):
    """A norm exceeds the value with probability 1 - delta: the data refute bounds up to it. None from above can be learned.

    Attributes
    ----------
    value : float
    consistent : float or None
        A bound just above it that is not refuted; None where the class is refuted whatever the norm.
    radius : str
    guarantee : Guarantee
    delta : float
    premises : tuple of Statement
        What it rests on; a bound of this norm is not among it.
    parameter : Parameter
        Which norm: NORM_BOUND, ||Q||; or MISFIT_NORM, that of what the features of a `SemiParametric` class miss.
    """

    value: float
    consistent: float | None
    radius: str
    guarantee: Guarantee
    delta: float
    premises: tuple[Statement, ...] = ()
    parameter: Parameter = Parameter.NORM_BOUND

    def __repr__(self) -> str:
        which = "" if self.parameter is Parameter.NORM_BOUND else f"{self.parameter.value}, "
        return f"LeastNorm({which}{self.value:.4g}, {self.radius}, {confidence(self.delta)})"


@checked
@dataclass(frozen=True)
class Flip(Shown, Drawn):
    """Where the decision "value of the policy >= threshold" stops being supported, which it is while lower >= threshold.

    Attributes
    ----------
    parameter : Parameter
    threshold : float
    outcome : FlipOutcome
    value : float or None
        The last value of the parameter at which the interval was computed and supports it; None where there is none.
    lower : float or None
        The lower end there.
    beyond : float or None
        The next value that was computed, which does not support it.
    baseline : float or None
        What was declared.
    baseline_supports : bool
        Whether the interval at what was declared supports the decision.
    radius : str
    guarantee : Guarantee
    delta : float
    premises : tuple of Statement
        What the interval at `value` rests on; where there is none, that at what was declared.
    """

    parameter: Parameter
    threshold: float
    outcome: FlipOutcome
    value: float | None
    lower: float | None
    beyond: float | None
    baseline: float | None
    baseline_supports: bool
    radius: str
    guarantee: Guarantee
    delta: float
    premises: tuple[Statement, ...] = ()

    def __repr__(self) -> str:
        return f"Flip({self.outcome.name}, value >= {self.threshold:g}, {self.parameter.value} up to {self.value}, {self.radius})"


@dataclass(frozen=True)
class Prefix:
    """The interval from the first rows only."""

    rows: int
    width: float
    status: Status


@checked
@dataclass(frozen=True)
class RowsNeeded(Shown, Drawn):
    """How many rows a wanted width takes. Extrapolated, not guaranteed.

    Attributes
    ----------
    width : float
        The wanted one.
    outcome : RowsOutcome
    points : tuple of Prefix
        The widths that were computed.
    floor : float
        What no number of rows takes away: the error of sampled start states, and the misfit.
    rows : int or None
        By the fit of width = floor + a n^(-1/2) + b n^(-1), a and b not negative, to the points that are OK.
    slower : int or None
        If the width fell as n^(-1/2) only, from the data at hand on.
    """

    width: float
    outcome: RowsOutcome
    points: tuple[Prefix, ...]
    floor: float
    rows: int | None = None
    slower: int | None = None

    def __repr__(self) -> str:
        return f"RowsNeeded({self.outcome.name}, width {self.width:g}, rows {self.rows})"
