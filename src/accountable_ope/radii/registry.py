"""A radius by name: how large the loss of the true Q may be, which theorem says so, and under which assumptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ..errors import InvalidInput
from ..problem.assumptions import ValueRanges
from ..programs.envelope import Envelope
from .envelope import SymmetricEnvelope, rate_mixture
from .martingale import azuma, azuma_anytime
from .paper import hoeffding_u, hoeffding_v, largest_loss


class Guarantee(Enum):
    """How strong the statement is."""

    FINITE_SAMPLE = "finite-sample"
    FINITE_SAMPLE_DECLARED_NOISE = "finite-sample under a declared noise assumption"
    ASYMPTOTIC = "asymptotic"


class LossKind(Enum):
    """Which statistic the radius bounds."""

    V = "V-statistic"
    U = "U-statistic"


class Method(Enum):
    """How a radius comes about."""

    CONSTANT = "one number, known before the data"
    FOLLOWING = "a number that follows the largest variance of the set, iterated"
    JOINT = "a bound that follows the variance of each Q, iterated"
    SELF_NORMALIZED = "one number for a loss weighed by the data's own covariance"
    BOOTSTRAP = "a quantile of resampled losses"


@dataclass(frozen=True)
class Radius:
    """P(loss of the true Q <= level) >= 1 - delta.

    uses:     the quantity that it rests on, in short.
    level:    lambda_K, what the theorem gives; for a radius that follows the variance, its value at the largest variance left.
    rounding: what is added for the rounding of the statistic, so that the bound holds for the loss as it was computed.
    """

    name: str
    theorem: str
    uses: str
    guarantee: Guarantee
    loss: LossKind
    level: float
    rounding: float
    delta: float

    @property
    def total(self) -> float:
        return self.level + self.rounding


@dataclass(frozen=True)
class RadiusInputs:
    """What any radius may use: the number of transitions, the ranges that were declared, and the kernel's supremum.

    planned: the number of transitions at which radii that hold for all n at once are to be tightest; fixed before the data.
    """

    count: int
    ranges: ValueRanges
    kernel_supremum: float
    delta: float
    planned: int


@dataclass(frozen=True)
class RadiusRule:
    """A theorem with its name: as a number (level), or as an envelope of the variance.

    level:    lambda_K from the inputs, None where the data are needed for it.
    envelope: from (range of a step, number of transitions, delta), None where the radius does not follow the variance.
    anytime:  whether the same event serves all n at once, so that data may be looked at again and again (`Monitor`).
    cut:      whether half of delta goes to one more martingale, with weights fitted on earlier episodes.
    """

    name: str
    theorem: str
    uses: Callable[[RadiusInputs], str]
    guarantee: Guarantee
    loss: LossKind
    method: Method = Method.CONSTANT
    level: Callable[[RadiusInputs], float] | None = None
    envelope: Callable[[float, int, float], Envelope] | None = None
    anytime: bool = False
    cut: bool = False

    @property
    def rests_on_width(self) -> bool:
        """Whether the width of residuals must be right: not where the paper's supremum counts, nor in the limit."""
        return self.uses is _width and self.guarantee is not Guarantee.ASYMPTOTIC

    def radius(self, inputs: RadiusInputs, rounding: float) -> Radius:
        """The radius of a rule that is one number."""
        if self.level is None:
            raise InvalidInput(f"The radius {self.name!r} depends on the data; {self.method.value}.")
        return self.at(self.level(inputs), self.uses(inputs), inputs.delta, rounding)

    def at(self, level: float, uses: str, delta: float, rounding: float) -> Radius:
        """The radius at a level that was found from the data."""
        return Radius(
            name=self.name,
            theorem=self.theorem,
            uses=uses,
            guarantee=self.guarantee,
            loss=self.loss,
            level=level,
            rounding=rounding,
            delta=delta,
        )


def _hoeffding_v(printed: bool) -> Callable[[RadiusInputs], float]:
    return lambda x: hoeffding_v(x.count, largest_loss(x.ranges.residual_bound, x.kernel_supremum), x.delta, printed=printed)


def _hoeffding_u(printed: bool) -> Callable[[RadiusInputs], float]:
    return lambda x: hoeffding_u(x.count, largest_loss(x.ranges.residual_bound, x.kernel_supremum), x.delta, printed=printed)


def _sup(x: RadiusInputs) -> str:
    return f"sup {x.ranges.residual_bound:.4g}"


def _width(x: RadiusInputs) -> str:
    return f"width {x.ranges.residual_width:.4g}"


def _symmetric(step_range: float, count: int, delta: float) -> Envelope:
    """Theorem D; rho only says where it is tightest, at about the variance of residuals of a hundredth of their range."""
    return SymmetricEnvelope(5e-5 * count * step_range**2, delta)


_FINITE, _V = Guarantee.FINITE_SAMPLE, LossKind.V

RULES: tuple[RadiusRule, ...] = (
    RadiusRule("hoeffding", "Hoeffding, V-statistic (paper)", _sup, _FINITE, _V, level=_hoeffding_v(False)),
    RadiusRule("hoeffding-u", "Hoeffding, U-statistic (paper)", _sup, _FINITE, LossKind.U, level=_hoeffding_u(False)),
    RadiusRule("hoeffding-printed", "Hoeffding, V-statistic, as printed", _sup, _FINITE, _V, level=_hoeffding_v(True)),
    RadiusRule(
        "azuma",
        "Hilbert-space Azuma-Hoeffding (Theorem A)",
        _width,
        _FINITE,
        _V,
        level=lambda x: azuma(x.count, x.ranges.residual_width, x.kernel_supremum, x.delta),
    ),
    RadiusRule(
        "azuma-anytime",
        "Azuma-Hoeffding for all n at once (Theorem A')",
        _width,
        _FINITE,
        _V,
        level=lambda x: azuma_anytime(x.count, x.ranges.residual_width, x.kernel_supremum, x.delta, x.planned),
        anytime=True,
    ),
    RadiusRule(
        "self-normalized",
        "Self-normalized martingale (Theorem C)",
        _width,
        _FINITE,
        _V,
        method=Method.SELF_NORMALIZED,
        anytime=True,
    ),
    RadiusRule(
        "empirical-bernstein",
        "Empirical Bernstein in Hilbert space (Theorem B), tightened",
        _width,
        _FINITE,
        _V,
        method=Method.FOLLOWING,
        envelope=rate_mixture,
        anytime=True,
    ),
    RadiusRule(
        "certified",
        "Empirical Bernstein with the variance inside the constraint (Theorem B, joint)",
        _width,
        _FINITE,
        _V,
        method=Method.JOINT,
        envelope=rate_mixture,
        anytime=True,
    ),
    RadiusRule(
        "certified-cut",
        "Empirical Bernstein, joint, and a weighted sum of residuals (Theorem B, twice)",
        _width,
        _FINITE,
        _V,
        method=Method.JOINT,
        envelope=rate_mixture,
        cut=True,
    ),
    RadiusRule(
        "symmetric",
        "Symmetric residuals (Theorem D), joint",
        _width,
        Guarantee.FINITE_SAMPLE_DECLARED_NOISE,
        _V,
        method=Method.JOINT,
        envelope=_symmetric,
        anytime=True,
    ),
    RadiusRule("wild", "Wild bootstrap", _width, Guarantee.ASYMPTOTIC, _V, method=Method.BOOTSTRAP),
)

LADDER = ("hoeffding", "azuma", "certified")
"""The radii shown side by side, weakest first."""

AVERAGE_LADDER = ("hoeffding", "azuma")
"""The same for the average reward, whose program takes constant radii only."""


def radius_rule(name: str) -> RadiusRule:
    """The rule of this name."""
    for rule in RULES:
        if rule.name == name:
            return rule
    raise InvalidInput(f"`radius` must be one of {', '.join(rule.name for rule in RULES)}. Got {name!r}.")
