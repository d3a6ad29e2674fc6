"""Radii by name: how large the loss of the true Q may be, which theorem says so, and under which assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.statements import Guarantee
from ..programs.envelope import ConstantEnvelope, Envelope
from ..programs.evidence import Evidence
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray
from .cut import Cut, CutQuestion, choose_cut, cut_evidence
from .envelope import RateMixture, SymmetricEnvelope, cut_mixture, rate_mixture
from .martingale import azuma, azuma_anytime
from .member import Member
from .no_cut import NoCut
from .paper import hoeffding_u, hoeffding_v, largest_loss
from .plan import Plan
from .self_normalized import self_normalized_statistic
from .sums import NO_SUMS, PlannedFor, RowSums

KERNEL_SHARE = 0.5
"""The share of delta that the kernel's martingale keeps beside a cut."""

DEFAULT_RADIUS = "certified"
"""The radius that is used unless another is named."""


class LossKind(Enum):
    """Which statistic the radius bounds."""

    V = "V-statistic"
    U = "U-statistic"


class Rests(Enum):
    """Which range of the residuals a radius rests on."""

    SUPREMUM = "sup"
    WIDTH = "width"
    NOTHING = "residuals at the least loss"


class Approach(Enum):
    """How a radius comes about."""

    CONSTANT = "one number, known before the data"
    FOLLOWING = "a number that follows the largest variance of the set, iterated"
    JOINT = "a bound that follows the variance of each Q, iterated"
    SELF_NORMALIZED = "one number for a loss weighed by the data's own covariance"
    BOOTSTRAP = "a quantile of resampled losses"


@checked
@dataclass(frozen=True)
class Radius:
    """P(loss of the true Q <= level) >= 1 - delta.

    Attributes
    ----------
    name, theorem : str
    uses : str
        The quantity that it rests on, in short.
    guarantee : Guarantee
    loss : LossKind
        The V- or the U-statistic.
    level : float
        lambda_K, what the theorem gives; for a radius that follows the variance, its value at the largest variance left.
    rounding : float
        What is added for the rounding of the statistic, so that the bound holds for the loss as it was computed.
    delta : float
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


@dataclass(frozen=True, eq=False)
class Grounds:
    """The evidence of one class, from which sums over the rows it comes, and what it rests on, in short.

    no_cut: why there is no cut, where the radius would have one.
    plan:   rates and weights that were fixed, where the radius has any.
    """

    evidence: tuple[Evidence, ...]
    statistic: KernelStatistic
    uses: str
    sums: RowSums = NO_SUMS
    no_cut: NoCut | None = None
    plan: Plan | None = None


@checked
@dataclass(frozen=True)
class RadiusRule:
    """A theorem with its name: as a number (level), or as an envelope of the variance.

    Attributes
    ----------
    name, theorem : str
    rests : Rests
        What it rests on.
    guarantee : Guarantee
    loss : LossKind
        The V- or the U-statistic.
    approach : Approach
        How a radius comes from the theorem.
    level : callable or None
        lambda_K of a class at (delta, planned), None where more than the ranges are needed for it.
    envelope : callable or None
        From (range of a step, number of transitions, delta), None where the radius does not follow the variance.
    anytime : bool
        Whether the same event serves all n at once, so that data may be looked at again and again (`Monitor`).
    cut : bool
        Whether half of delta goes to one more martingale, with weights made from earlier rows, where nothing stands against it.
    """

    name: str
    theorem: str
    rests: Rests
    guarantee: Guarantee = Guarantee.FINITE_SAMPLE
    loss: LossKind = LossKind.V
    approach: Approach = Approach.CONSTANT
    level: Callable[[Member, float, int], float] | None = None
    envelope: Callable[[float, int, float], RateMixture | SymmetricEnvelope] | None = None
    anytime: bool = False
    cut: bool = False

    @property
    def joint(self) -> bool:
        return self.approach is Approach.JOINT

    @property
    def follows_variance(self) -> bool:
        return self.envelope is not None

    def evidence(self, member: Member, delta: float, planned: int) -> Grounds:
        """What the data say about one class at this delta: a constant radius is an envelope that ignores the variance.

        planned: the number of rows at which a radius for all n at once is tightest, fixed before the data.
        """
        statistic, system, sums = member.statistic, member.system, RowSums()
        match self.approach:
            case Approach.FOLLOWING | Approach.JOINT:
                if member.residuals.before_data > 0:
                    return self._following(member, delta, planned)
                level, uses = 0.0, "range 0"  # residuals of the true Q are exactly 0
            case Approach.SELF_NORMALIZED:
                width = member.residuals.before_data
                weighed = self_normalized_statistic(system, member.kernel, statistic, width, delta, planned)
                statistic, level, uses = weighed.statistic, weighed.level, f"width {width:.4g}"
                sums = RowSums(log_determinant=weighed.log_determinant)
            case Approach.BOOTSTRAP:
                from ..programs.ellipsoid_ball import decompose  # the solver, which a verifier of certificates does without
                from .wild import wild_radius  # few programs need it

                center = decompose(statistic.v_loss(), system.penalized).least_loss(None).theta
                level, uses = wild_radius(system, member.kernel, center, delta), self.rests.value
                sums = RowSums(bootstrap=level)
            case Approach.CONSTANT:
                assert self.level is not None
                level, uses = self.level(member, delta, planned), self._uses(member)
        squared_level = level * statistic.count**2
        evidence = kernel_evidence(member, statistic, ConstantEnvelope(squared_level), self.loss)
        return Grounds((evidence,), statistic, uses, sums)

    def _following(self, member: Member, delta: float, planned: int) -> Grounds:
        """Kernel evidence and, with a cut, that of one more martingale: half of delta each."""
        assert self.envelope is not None
        statistic, plan, prior = member.statistic, member.plan, member.prior
        wanted = self.cut and member.no_cut is None
        refused = member.no_cut is not None and not member.no_cut.found_later
        # Whether or not the rows give weights: no choice by the data.
        share = KERNEL_SHARE * delta if self.cut and not refused else delta
        tuned = share if plan is None else plan.share
        largest = prior if member.largest_scaled is None else min(prior, member.largest_scaled)
        envelope = self.envelope(largest * math.sqrt(statistic.kernel_supremum), planned, tuned)
        found = [kernel_evidence(member, statistic, replace(envelope, delta=share), self.loss)]
        cut = plan.cut if plan is not None and wanted else None
        if plan is None and wanted and member.passed is None:
            declared = member.norm if isinstance(member.norm, float) else None
            fixed = member.system.fixed_before
            cut = choose_cut(CutQuestion(fixed, member.kernel, prior, delta - share, declared, member.offered))
        sums, scale = (None, None) if cut is None else (cut.sums(member.system), np.abs(cut.weights))
        if wanted and member.passed is not None:
            sums, scale = member.passed.cut, member.passed.weights
        if sums is not None and scale is not None:
            mixture = cut_mixture(prior, sums.rate, sums.count, tuned, room=plan is not None and plan.room)
            weighed = replace(mixture, delta=delta - share)
            found.append(cut_evidence(sums, scale, weighed, member.residual_gap))
        return Grounds(
            evidence=tuple(found),
            statistic=statistic,
            uses="range",
            sums=RowSums(
                cut=sums,
                largest_scaled=member.largest_scaled,
                planned_for=None if plan is None else plan.planned_for,
            ),
            no_cut=None if not self.cut or sums is not None else member.no_cut or NoCut.WEIGHTS,
            plan=_planned(member, delta, share, cut) if plan is None else plan,
        )

    def _uses(self, member: Member) -> str:
        number = member.ranges.residual_bound if self.rests is Rests.SUPREMUM else member.ranges.residual_width
        return f"{self.rests.value} {number:.4g}"

    def at(self, level: float, uses: str, delta: float, rounding: float) -> Radius:
        """The radius at a level that was found from the data."""
        return Radius(self.name, self.theorem, uses, self.guarantee, self.loss, level, rounding, delta)


def _planned(member: Member, delta: float, share: float, cut: Cut | None) -> Plan:
    """What was fixed for this class as it is."""
    planned_for = PlannedFor(member.residuals.assumptions, delta)
    statistic = None if member.scale is None else member.statistic
    return Plan(planned_for, member.prior, share, cut, member.scale, statistic)


def kernel_evidence(member: Member, statistic: KernelStatistic, envelope: Envelope, loss: LossKind) -> Evidence:
    """The martingale sum_i eps_i K(x_i, .) of a class."""
    gap = member.residual_gap
    return Evidence(
        name="kernel",
        squared=statistic.v_loss() if loss is LossKind.V else statistic.u_loss(),
        variance=statistic.variance(),
        count=statistic.count,
        reach=math.sqrt(statistic.kernel_supremum),
        mass=(statistic.kappa_variance * statistic.count) ** 2,
        envelope=envelope,
        scale=_kernel_scale(member) if envelope.follows_variance else None,
        missed=(statistic.missed, statistic.missed_variance),
        gap=(gap * statistic.kappa, gap * statistic.kappa_variance),
        rounding=member.rounding,
    )


def _kernel_scale(member: Member) -> FloatArray | None:
    """sqrt(K(x_i, x_i)), times the factor of the row."""
    if member.passed is not None:
        return member.passed.scale
    scale = np.sqrt(member.kernel.diagonal(member.system.points))
    return np.asarray(scale if member.system.row_scale is None else scale * member.system.row_scale)


def _paper(formula: Callable[..., float], *, printed: bool = False) -> Callable[[Member, float, int], float]:
    def level(member: Member, delta: float, planned: int) -> float:
        statistic = member.statistic
        l_max = largest_loss(member.ranges.residual_bound, statistic.kernel_supremum)
        return formula(statistic.count, l_max, delta, printed=printed)

    return level


def _azuma(member: Member, delta: float, planned: int) -> float:
    statistic = member.statistic
    return azuma(statistic.count, member.ranges.residual_width, statistic.kernel_supremum, delta)


def _azuma_anytime(member: Member, delta: float, planned: int) -> float:
    statistic = member.statistic
    return azuma_anytime(statistic.count, member.ranges.residual_width, statistic.kernel_supremum, delta, planned)


def _symmetric(step_range: float, count: int, delta: float) -> SymmetricEnvelope:
    """Theorem D; rho only says where it is tightest, at about the variance of residuals of a hundredth of their range."""
    return SymmetricEnvelope(5e-5 * count * step_range**2, delta)


RULES: tuple[RadiusRule, ...] = (
    RadiusRule("hoeffding", "Hoeffding, V-statistic (paper)", Rests.SUPREMUM, level=_paper(hoeffding_v)),
    RadiusRule("hoeffding-u", "Hoeffding, U-statistic (paper)", Rests.SUPREMUM, loss=LossKind.U, level=_paper(hoeffding_u)),
    RadiusRule(
        "hoeffding-printed",
        "Hoeffding, V-statistic, as printed",
        Rests.SUPREMUM,
        level=_paper(hoeffding_v, printed=True),
    ),
    RadiusRule("azuma", "Hilbert-space Azuma-Hoeffding (Theorem A)", Rests.WIDTH, level=_azuma),
    RadiusRule(
        "azuma-anytime",
        "Azuma-Hoeffding for all n at once (Theorem A')",
        Rests.WIDTH,
        level=_azuma_anytime,
        anytime=True,
    ),
    RadiusRule(
        "self-normalized",
        "Self-normalized martingale (Theorem C)",
        Rests.WIDTH,
        approach=Approach.SELF_NORMALIZED,
        anytime=True,
    ),
    RadiusRule(
        "empirical-bernstein",
        "Empirical Bernstein in Hilbert space (Theorems A and B'), tightened",
        Rests.WIDTH,
        approach=Approach.FOLLOWING,
        envelope=rate_mixture,
        anytime=True,
    ),
    RadiusRule(
        "certified",
        "Empirical Bernstein with the variance inside the constraint (Theorems A and B', joint), and a cut",
        Rests.WIDTH,
        approach=Approach.JOINT,
        envelope=rate_mixture,
        anytime=True,
        cut=True,
    ),
    RadiusRule(
        "symmetric",
        "Symmetric residuals (Theorem D), joint",
        Rests.WIDTH,
        guarantee=Guarantee.FINITE_SAMPLE_DECLARED_NOISE,
        approach=Approach.JOINT,
        envelope=_symmetric,
        anytime=True,
    ),
    RadiusRule("wild", "Wild bootstrap", Rests.NOTHING, guarantee=Guarantee.ASYMPTOTIC, approach=Approach.BOOTSTRAP),
)
"""Every radius, in the order in which they are listed."""

LADDER = ("hoeffding", "azuma", "certified")
"""The radii shown side by side, weakest first."""


@checked
def radius_rule(name: str) -> RadiusRule:
    """The rule of this name.

    Parameters
    ----------
    name : str

    Returns
    -------
    RadiusRule

    Raises
    ------
    InvalidInput
        Where there is none; names those that there are.

    Examples
    --------
    >>> from accountable_ope.radii import radius_rule
    >>> rule = radius_rule("azuma-anytime")
    >>> rule.anytime, rule.guarantee.name
    (True, 'FINITE_SAMPLE')
    """
    for rule in RULES:
        if rule.name == name:
            return rule
    raise InvalidInput(f"`radius` must be one of {', '.join(rule.name for rule in RULES)}. Got {name!r}.")
