"""Whether a certificate fits together: numbers that sums can have, a class that is what it says, a radius that is allowed."""

from __future__ import annotations

import math

import numpy as np

from ..classes.description import described_class
from ..classes.function_class import FunctionClass, as_class
from ..classes.semi_parametric import SemiParametric
from ..kernels.description import described_kernel
from ..problem.assumptions import value_ranges
from ..problem.statements import Guarantee
from ..radii.registry import Approach, LossKind, RadiusRule
from .facts import ClassFacts
from .record import ClassRecord, Record, Refuted, RestRecord

STEP_PREMISES = ("terminal-region", "reach", "one-step-range")
"""What can be declared of single steps."""

VALUE, AVERAGE = "Value of the target policy", "Average reward of the target policy"


def check_setting(record: Record, rule: RadiusRule) -> None:
    """What was declared allows this radius, and the setting is one in which it was."""
    setting, facts, average = record.setting, record.assumptions, record.average
    require(record.estimand == (VALUE if average is None else AVERAGE), "it names something else than what it bounds")
    require(record.data.rows >= 2, "it has fewer than two rows")
    require(math.isfinite(setting.effective_starts) and setting.effective_starts > 0, "its number of start states is none")
    require(0 <= setting.copied_rows <= record.data.rows, "more rows are copies than there are")
    require(0 <= setting.showing_rows <= record.data.rows, "more rows show what the policy does than there are")
    require(setting.earlier_rows >= 0 and setting.planned >= 1 and setting.left_out >= 0, "a number of rows is negative")
    require(rule.anytime or not setting.growing, "its radius does not hold at all numbers of rows")
    require(setting.growing or setting.planned == record.data.rows, "it was planned for another number of rows")
    if rule.guarantee is Guarantee.FINITE_SAMPLE_DECLARED_NOISE:
        require(facts.symmetric_noise, "its radius needs symmetric noise, which is not declared")
    if any(part.unseen is not None for part in record.classes):
        silent = rule.approach in (Approach.SELF_NORMALIZED, Approach.BOOTSTRAP)
        require(rule.loss is LossKind.V and not silent, "its radius says nothing about what coordinates miss")
        require(_nonnegative(record) and isinstance(facts.norm_bound, float), "nothing limits what coordinates miss")
    declared = facts.misfit_norm is not None
    has_rest = any(part.rest is not None for part in record.classes)
    require(declared == has_rest, "the norm of what features miss does not fit the classes")
    require(not has_rest or (average is None and setting.coefficient_variance is None), "nothing is known of what features miss")
    if average is not None:
        plain = not (setting.growing or setting.anchored or setting.terminates or setting.earlier_rows or setting.propensities)
        require(plain and setting.kernel_chosen and setting.start_is_exact, "an average reward has no such setting")
        require(setting.row_ranges is None and not record.steps, "nothing is declared of single steps for an average reward")
        return
    require((setting.row_ranges is not None) == bool(record.steps), "its ranges of rows do not fit what it says of single steps")
    require(all(each.name in STEP_PREMISES for each in record.steps), "it says something of single steps that cannot be declared")
    if facts.horizon is not None or facts.terminal_reward or facts.terminates is True:
        require(setting.terminates, "episodes end, and it says that no state is terminal")
    require(facts.terminates is not False or not setting.terminates, "it says that states are terminal, and that none is")
    require(setting.exact_policy or not setting.start_is_exact, "a policy that draws its actions has no exact start")
    if facts.misfit > 0:
        fits = rule.loss is LossKind.V and rule.approach is not Approach.SELF_NORMALIZED
        require(fits and _nonnegative(record), "its radius or kernel says nothing about a misfit")
    if setting.coefficient_variance is not None:
        fits = rule.loss is LossKind.V and rule.approach is Approach.CONSTANT and _nonnegative(record)
        of_features = all(part.description.kind == "RandomFourier" for part in record.classes)
        require(fits and of_features and not setting.anchored, "random features cannot stand for an RKHS here")


def check_class(facts: ClassFacts) -> None:
    """Shapes that fit, numbers that sums over rows can have, and a class that is what its text says."""
    record, part, statistic = facts.record, facts.part, facts.part.statistic
    m = len(part.penalized)
    k = m + 2 + statistic.has_remainder
    shapes = (statistic.pair_gram.shape, statistic.diag_gram.shape, statistic.column_scale.shape)
    require(shapes == ((k, k), (k, k), (k,)) and part.objective.shape == (m,), "its matrices do not fit together")
    require(statistic.count == record.data.rows, "the statistic is of another number of rows")
    require(statistic.has_remainder == (part.unseen is not None), "what is unseen does not fit the statistic")
    numbers = (statistic.pair_gram, statistic.diag_gram, statistic.column_scale, part.objective, part.moments, part.inside)
    require(all(np.isfinite(each).all() for each in numbers) and math.isfinite(part.offset), "a number is not finite")
    sizes = (statistic.kernel_supremum, statistic.kernel_error, part.cover.slack, part.cover.diameter, *(part.unseen or ()))
    require(all(size >= 0 for size in sizes) and statistic.kernel_supremum > 0, "a size is negative")
    require(all(math.isfinite(size) for size in sizes if size is not part.cover.diameter), "a size is not finite")
    require((statistic.column_scale >= 0).all() and (np.diagonal(statistic.diag_gram) >= 0).all(), "a sum of squares is negative")
    grams = (statistic.pair_gram, statistic.diag_gram, part.moments)
    require(all(np.allclose(gram, gram.T, rtol=1e-9, atol=1e-300) for gram in grams), "a matrix is not symmetric")
    if part.rest is not None:
        fits = 0 <= part.rest.coordinates <= int(part.penalized.sum()) and 0 <= part.rest.diameter < math.inf
        require(fits and part.unseen is not None, "what features miss does not fit the class")
        require(bool(part.penalized[: part.rest.coordinates].all()), "what features miss does not fit the class")
    cut = part.sums.cut
    if cut is not None:
        require(cut.total.shape == (m + 1,) and cut.squares.shape == (m + 1, m + 1), "its cut does not fit")
        fits = 1 <= cut.count <= record.data.rows and 0 <= cut.length <= cut.absolute <= cut.count * (1 + 1e-9)
        require(fits and np.isfinite(cut.squares).all() and np.isfinite(cut.total).all(), "its cut has weights beyond 1")
    if record.average is None:
        require(part.moments.shape == (m + 1 + record.setting.anchored,) * 2, "its value box does not fit")
        require(record.setting.anchored or part.offset == part.reference, "a class around no estimate has no value of one")
        _check_reference(record, part)
    else:
        eta = np.append(np.zeros(m - 1), 1.0)
        require(part.offset == record.average.middle, "it does not count from the middle of the rewards")
        require(part.reference == 0, "relative values are not counted from a value")
        require(np.array_equal(part.objective, eta), "its objective is not the average reward")
        require(part.unseen in (None, (0.0, 0.0)), "nothing of the average reward is unseen")
        require(all(each.residual for each in part.rows), "relative values have no range at single points")
    if record.setting.anchored:
        require(math.isinf(part.cover.diameter) and part.cover.points is None, "an anchored class has no range of its own")
    points = part.cover.points
    require(points is None or (points.ndim == 2 and points.shape[1] == m and np.isfinite(points).all()), "its points do not fit")
    if points is not None and record.average is not None:
        require(not points[:, -1].any(), "the average reward is a part of its values")
    _check_description(record, part)


def _check_reference(record: Record, part: ClassRecord) -> None:
    """Values are counted from 0, or from their middle as ranges say that were declared, here or where weights were fixed."""
    if part.reference == 0:
        return
    planned = part.sums.planned_for
    declared = [record.assumptions] if planned is None else [record.assumptions, planned.assumptions]
    ends = record.setting.terminates
    known = [value_ranges(each, terminates=ends).reference(terminates=ends) for each in declared]
    require(part.reference in known, "it counts values from elsewhere than their middle")
    require(record.setting.anchored or not part.penalized.all(), "nothing holds the constant from which values are counted")


def _check_description(record: Record, part: ClassRecord) -> None:
    """A kernel and a class that can be made again are what their texts say."""
    if record.kernel.kind:
        kernel = described_kernel(record.kernel)
        same(record.kernel.text, repr(kernel), "the kernel")
        same(part.nonnegative_kernel, kernel.nonnegative, "whether the kernel has negative values")
        same(part.statistic.kernel_supremum, kernel.supremum, "the supremum of the kernel")
    if not part.description.kind:
        require(not part.listed or record.average is None or part.cover.diameter > 0, "a list of points has a diameter")
        return
    made = as_class(described_class(part.description))
    same(part.description.text, repr(made), "the class")
    same(part.listed, part.description.kind == "TabularFeatures", "whether the class is a list of points")
    same(part.unseen is not None, made.has_remainder, "whether its coordinates miss a part")
    require(part.penalized.tolist() == _penalized(record, part, made), "its coefficients are not those of the class")
    rest = None
    if isinstance(made, SemiParametric):
        rest = RestRecord(len(part.penalized) - made.features.dimension - made.intercept, made.missed.diameter)
    same(part.rest, rest, "what the features of the class miss")
    if record.average is None and made.intercept:
        require(abs(float(part.objective[-1]) - 1) <= 1e-9, "the constant of Q does not count in the value")
    if not record.setting.anchored:
        widest, points = made.diameter, part.cover.points
        known = part.cover.diameter == widest if points is None else part.cover.diameter <= widest * (1 + 1e-9)
        require(known, "the diameter of the class is another")
        if points is not None and part.listed:
            require(np.array_equal(points[:, : len(points)], np.eye(len(points))), "its points are not those of the list")


def _penalized(record: Record, part: ClassRecord, made: FunctionClass) -> list[bool]:
    """Which coefficients the norm counts: all but a constant, or the average reward in its place."""
    free = made.intercept or record.average is not None
    count = len(part.penalized) - free if made.dimension is None else made.dimension
    return [True] * count + [False] * free


def _nonnegative(record: Record) -> bool:
    return all(part.nonnegative_kernel for part in record.classes)


def require(condition: bool | np.bool_, otherwise: str) -> None:
    """Refuse a certificate, and say why."""
    if not condition:
        raise Refuted(otherwise)


def same(claimed: object, derived: object, what: str) -> None:
    """Refuse a certificate that claims something else than what follows."""
    if claimed != derived:
        raise Refuted(f"{what} is {derived}, not {claimed}")
