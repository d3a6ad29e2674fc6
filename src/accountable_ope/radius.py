"""A radius by name: how large the loss of the true Q may be, which theorem says so, and under which assumptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from .assumptions import ValueRanges
from .concentration.martingale import azuma
from .concentration.paper import hoeffding_u, hoeffding_v, largest_loss
from .errors import InvalidInput


class Guarantee(Enum):
    """How strong the statement is."""

    FINITE_SAMPLE = "finite-sample"
    FINITE_SAMPLE_DECLARED_NOISE = "finite-sample under a declared noise assumption"
    ASYMPTOTIC = "asymptotic"


class LossKind(Enum):
    """Which statistic the radius bounds."""

    V = "V-statistic"
    U = "U-statistic"


@dataclass(frozen=True)
class Radius:
    """P(loss of the true Q <= level) >= 1 - delta.

    uses:     the declared quantity that it rests on, in short.
    level:    lambda_K, what the theorem gives.
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
    """What any radius may use: the number of transitions, the ranges that were declared, and the kernel's supremum."""

    count: int
    ranges: ValueRanges
    kernel_supremum: float
    delta: float


@dataclass(frozen=True)
class RadiusRule:
    """A theorem as a function of the inputs, with its name and the declared quantity that it rests on."""

    name: str
    theorem: str
    uses: Callable[[RadiusInputs], str]
    guarantee: Guarantee
    loss: LossKind
    level: Callable[[RadiusInputs], float]

    def radius(self, inputs: RadiusInputs, rounding: float) -> Radius:
        return Radius(
            name=self.name,
            theorem=self.theorem,
            uses=self.uses(inputs),
            guarantee=self.guarantee,
            loss=self.loss,
            level=self.level(inputs),
            rounding=rounding,
            delta=inputs.delta,
        )


def _hoeffding_v(printed: bool) -> Callable[[RadiusInputs], float]:
    return lambda x: hoeffding_v(x.count, largest_loss(x.ranges.residual_bound, x.kernel_supremum), x.delta, printed=printed)


def _hoeffding_u(printed: bool) -> Callable[[RadiusInputs], float]:
    return lambda x: hoeffding_u(x.count, largest_loss(x.ranges.residual_bound, x.kernel_supremum), x.delta, printed=printed)


def _sup(x: RadiusInputs) -> str:
    return f"sup {x.ranges.residual_bound:.4g}"


def _width(x: RadiusInputs) -> str:
    return f"width {x.ranges.residual_width:.4g}"


RULES: tuple[RadiusRule, ...] = (
    RadiusRule("hoeffding", "Hoeffding, V-statistic (paper)", _sup, Guarantee.FINITE_SAMPLE, LossKind.V, _hoeffding_v(False)),
    RadiusRule("hoeffding-u", "Hoeffding, U-statistic (paper)", _sup, Guarantee.FINITE_SAMPLE, LossKind.U, _hoeffding_u(False)),
    RadiusRule(
        "hoeffding-printed", "Hoeffding, V-statistic, as printed", _sup, Guarantee.FINITE_SAMPLE, LossKind.V, _hoeffding_v(True)
    ),
    RadiusRule(
        "azuma",
        "Hilbert-space Azuma-Hoeffding (Theorem A)",
        _width,
        Guarantee.FINITE_SAMPLE,
        LossKind.V,
        lambda x: azuma(x.count, x.ranges.residual_width, x.kernel_supremum, x.delta),
    ),
)

LADDER = ("hoeffding", "hoeffding-u", "azuma")
"""The radii shown side by side, weakest first."""


def radius_rule(name: str) -> RadiusRule:
    """The rule of this name."""
    for rule in RULES:
        if rule.name == name:
            return rule
    raise InvalidInput(f"`radius` must be one of {', '.join(rule.name for rule in RULES)}. Got {name!r}.")
