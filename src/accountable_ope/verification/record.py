"""What a certificate file says: the question, what was assumed, sums over the data, multipliers, and what is claimed.

All that a verifier needs is here as numbers. What can be derived (radii, constraints, ranges) is not: the verifier derives it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problem.assumptions import Assumptions
from ..problem.average_reward import AverageReward
from ..problem.description import Description
from ..statistics.norm_test import NormTest
from ..statistics.specification import SpecificationTest
from ..validation import BoolArray, FloatArray

FORMAT = "accountable-ope certificate"
VERSION = 1


class Refuted(Exception):
    """Something that a certificate claims does not follow."""


@dataclass(frozen=True)
class DataRecord:
    """Which rows were used.

    rows:    how many.
    sha256:  of states, actions, rewards, next states, terminations and episodes, as numbers (see docs/certificates.md).
    starts:  the same of the start states and their weights.
    """

    rows: int
    sha256: str
    starts: str


@dataclass(frozen=True)
class DeltaRecord:
    """total = kernel + start + features."""

    total: float
    kernel: float
    start: float
    features: float


@dataclass(frozen=True)
class Circumstances:
    """What a result rests on beside data and assumptions.

    terminates:      whether states may be terminal.
    start_is_exact:  whether the value at the start is known exactly for every Q.
    effective_starts: N of the error of sampled start states.
    exact_policy:    whether expectations over the policy's actions are exact.
    planned:         the number of rows at which a radius for all n at once is tightest.
    growing:         one of many looks at data that grow, all of them valid at once.
    anchored:        whether the class lies around a given estimate of Q.
    earlier_rows:    how many earlier rows chose the class (0: none), kernel_chosen: and the kernel.
    estimate_before: whether the estimate was made before the rows of the bound, points_before: and listed points known.
    coefficient_variance: of a whole RKHS through random features, else null.
    row_ranges:      SHA-256 of ranges that were declared row by row (of functions that a file cannot hold), else null.
    propensities:    whether recorded probabilities of the logged actions may weigh rows.
    copied_rows:     how many rows are copies of earlier ones, where these are too many.
    showing_rows:    where the class lies around a fit: how many effective rows show what the target policy does, if too few.
    left_out:        how many last rows of episodes were left out, since the log does not hold their next states.
    """

    terminates: bool
    start_is_exact: bool
    effective_starts: float
    exact_policy: bool
    planned: int
    growing: bool
    anchored: bool
    earlier_rows: int
    kernel_chosen: bool
    coefficient_variance: float | None
    row_ranges: str | None = None
    propensities: bool = False
    estimate_before: bool = False
    points_before: bool = True
    left_out: int = 0
    copied_rows: int = 0
    showing_rows: int = 0


@dataclass(frozen=True, eq=False)
class StatisticRecord:
    """C'KC and C' diag(K) C of the columns C = [Z | v | 1] (and what an RKHS in coordinates misses)."""

    pair_gram: FloatArray
    diag_gram: FloatArray
    column_scale: FloatArray
    count: int
    kernel_supremum: float
    kernel_error: float
    has_remainder: bool


@dataclass(frozen=True, eq=False)
class CutRecord:
    """sum_i w_i C_i / n and sum_i w_i^2 C_i C_i' / n^2 of the columns C = [Z | v], over the n rows that have a weight.

    absolute, length: sum_i |w_i| and sqrt(sum_i w_i^2).
    kind, earlier, rate: where the weights come from, how many first rows (without weight) chose them, and which rate these chose.
    missed: sum_i |w_i| tau_i / n and sqrt(sum_i w_i^2 tau_i^2) / n, tau_i what an RKHS in coordinates misses of a residual.
    """

    total: FloatArray
    squares: FloatArray
    count: int
    absolute: float
    length: float
    kind: str
    earlier: int
    rate: float
    missed: tuple[float, float]


@dataclass(frozen=True)
class PlanRecord:
    """What rates, weights and factors of rows were fixed for: assumptions, and the share of delta of all martingales together."""

    assumptions: Assumptions
    delta: float


@dataclass(frozen=True, eq=False)
class RowsRecord:
    """Sums over the rows beside the statistic, null where the radius needs none.

    log_determinant: log det(I + c sigma^2 K) of the self-normalized radius; the pair_gram is then that of its own weights.
    bootstrap:       the quantile of a resampled radius.
    cut:             one more martingale.
    no_cut:          why there is none, where the radius would have one.
    planned_for:     where rates and weights were fixed for other assumptions on the same data, or together with others.
    largest_scaled:  where ranges of rows scale the kernel, u(x) K(x, y) u(y): no u(x_i) |eps_i| can be larger.
    """

    log_determinant: float | None
    bootstrap: float | None
    cut: CutRecord | None
    no_cut: str | None
    planned_for: PlanRecord | None
    largest_scaled: float | None


@dataclass(frozen=True, eq=False)
class CoverRecord:
    """sup ||phi(x) - phi(y)||, and features at points that stand for all others up to the slack; center: any point."""

    diameter: float
    slack: float
    points: FloatArray | None
    center: FloatArray | None


@dataclass(frozen=True)
class RestRecord:
    """What features miss: so many coefficients, the first ones, are of it, and it differs by its norm times diameter at most."""

    coordinates: int
    diameter: float


@dataclass(frozen=True, eq=False)
class AveragedRecord:
    """Boxes at some points or rows, weighed: f_i'theta + offset_i lies in a range, one row f_i of features per point.

    Of values the range is that of values, and offsets are the anchor's values. Of residuals (residual: true) f_i is a row of Z,
    offsets are -v_i, and the range is that of residuals before the round of this number; missed: what an RKHS in coordinates
    misses of it per unit of norm, ranges: what was declared for this row; null: nothing.
    """

    features: FloatArray
    offsets: FloatArray
    weights: FloatArray
    residual: bool
    round: int
    missed: FloatArray | None
    ranges: FloatArray | None


@dataclass(frozen=True)
class TermRecord:
    """A constraint and its multiplier.

    role:     loss, variance (V_n is at most what is known of it), ball, rest (the ball of what features miss), enclosing (an
              ellipsoid around both), box, or rows (boxes averaged over points or rows).
    limit:    what the left side is held to; a loss may be held to more than the radius, never to less; null: to what follows.
    evidence, rate, round: of a loss or variance: which martingale, q of eps'(K - qD)eps, and in which round.
    rows:     which averaged box.
    """

    role: str
    multiplier: float
    limit: float | None
    evidence: int = 0
    rate: float = 0.0
    round: int = 0
    rows: int = 0


@dataclass(frozen=True)
class EndRecord:
    """The largest objective'theta (upper end) or -objective'theta (lower end) is at most `bound`, by these terms."""

    status: str
    bound: float
    terms: tuple[TermRecord, ...]


@dataclass(frozen=True)
class StepRecord:
    """What proves the variances (one per evidence, null: as before) and the range with which the next round begins."""

    variances: tuple[tuple[TermRecord, ...] | None, ...]
    range: tuple[tuple[TermRecord, ...], ...]


@dataclass(frozen=True)
class StepsRecord:
    """No step can be larger than `largest`, none of the data is larger than `observed`; squares: the sum of squared widths."""

    largest: float
    observed: float
    squares: float


@dataclass(frozen=True)
class RoundRecord:
    """Known before a round: every |eps| at most residual_bound, V_n at most these, one number per martingale.

    steps: of |eps_i| sqrt(K(x_i, x_i)) (or |eps_i w_i|), one entry per martingale.
    """

    residual_bound: float
    variances: tuple[float, ...]
    steps: tuple[StepsRecord, ...]


@dataclass(frozen=True, eq=False)
class ClassRecord:
    """One class of Q: sums over the data, the proofs of both ends, and what is claimed about it.

    listed:       whether the class is one-hot over a list of points.
    moments:      the mean of u u' over data, next and start points, u = [phi, 1] or [phi, 1, anchor].
    inside:       where the loss is least within the ball, and the multiplier of the ball that proves it.
    unseen:       what the coordinates of an RKHS miss of the objective and at the box points, per unit of norm; null: nothing.
    rest:         which part has a norm of its own, the declared misfit_norm; null: one norm counts all.
    reference:    the constant from which values are counted in sums, moments and boxes: the anchor there is less this constant.
    """

    description: Description
    nonnegative_kernel: bool
    listed: bool
    statistic: StatisticRecord
    objective: FloatArray
    offset: float
    penalized: BoolArray
    moments: FloatArray
    unseen: tuple[float, float] | None
    cover: CoverRecord
    sums: RowsRecord
    rows: tuple[AveragedRecord, ...]
    norm_bound: float | None
    least_norm: float | None
    least_norm_terms: tuple[TermRecord, ...]
    note: str
    inside: FloatArray
    ball_multiplier: float
    least_loss_terms: tuple[TermRecord, ...]
    rounds: tuple[RoundRecord, ...]
    steps: tuple[StepRecord, ...]
    upper: EndRecord
    lower: EndRecord
    least_loss: float
    least_misfit: float
    specification: SpecificationTest
    norm_test: NormTest | None
    identification: float
    last_rate: float
    rest: RestRecord | None = None
    reference: float = 0.0


@dataclass(frozen=True)
class RadiusRecord:
    """The radius by name, and what is printed of it."""

    name: str
    theorem: str
    uses: str
    guarantee: str
    level: float
    rounding: float


@dataclass(frozen=True)
class ResultRecord:
    """What is claimed."""

    lower: float
    upper: float
    unclipped: tuple[float, float]
    status: str
    start_error: float


@dataclass(frozen=True)
class PremiseRecord:
    """One premise: its name and its sentence."""

    name: str
    text: str


@dataclass(frozen=True, eq=False)
class Record:
    """A whole certificate, made by `Interval.record` or `load_record`; see docs/certificates.md.

    Attributes
    ----------
    format, package, estimand : str
    version : int
    data : DataRecord
    kernel : Description
    assumptions : Assumptions
    average : AverageReward or None
    setting : Circumstances
    delta : DeltaRecord
    radius : RadiusRecord
    classes : tuple of ClassRecord
    result : ResultRecord
    premises, doubts, remarks : tuple of PremiseRecord
    steps : tuple of PremiseRecord
        What was declared of single steps.
    """

    format: str
    version: int
    package: str
    estimand: str
    data: DataRecord
    kernel: Description
    assumptions: Assumptions
    average: AverageReward | None
    setting: Circumstances
    delta: DeltaRecord
    radius: RadiusRecord
    classes: tuple[ClassRecord, ...]
    result: ResultRecord
    premises: tuple[PremiseRecord, ...]
    doubts: tuple[PremiseRecord, ...]
    remarks: tuple[PremiseRecord, ...]
    steps: tuple[PremiseRecord, ...]
