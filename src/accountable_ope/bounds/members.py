"""One class of Q beside its statistic, with what the assumptions say about it: all that a radius needs."""

from __future__ import annotations

import math

import numpy as np

from ..classes.description import describe_class
from ..classes.features import ListedFeatures
from ..classes.function_class import FunctionClass
from ..classes.ranges import residual_range
from ..kernels.kernel import Kernel
from ..problem.problem import Problem
from ..programs.rest_ball import RestBall
from ..radii.member import Member
from ..radii.premises import VALUE_NORM, counted_norm
from ..statistics.bellman import BellmanSystem
from ..statistics.statistic import KernelStatistic
from .ends import value_box

UNDECLARED_NORM = 1e4
"""Without a declared norm bound, ||Q|| is taken to be at most so many times the largest value: wild enough for any Q."""


def class_member(
    problem: Problem,
    kernel: Kernel,
    function_class: FunctionClass,
    system: BellmanSystem,
    statistic: KernelStatistic,
    *,
    anchored: bool,
) -> Member:
    """A class with its system and statistic; anchored: it lies around an estimate."""
    facts, ranges = problem.assumptions, problem.ranges
    largest, note = _largest_norm(problem, function_class, system.reference, anchored=anchored)
    return Member(
        name=repr(function_class),
        system=system,
        statistic=statistic,
        kernel=kernel,
        ranges=ranges,
        residuals=residual_range(
            function_class,
            problem.policy,
            facts,
            ranges,
            terminates=problem.terminates,
            anchored=anchored,
            rest=system.rest,
            reference=system.reference,
        ),
        box=value_box(system, ranges, facts.misfit),
        norm=facts.norm_bound,
        largest_norm=largest,
        misfit=facts.misfit,
        rounding=rounding_slack(system, statistic, problem),
        description=describe_class(function_class),
        listed=isinstance(function_class.feature_map, ListedFeatures),
        episodes=problem.data.episodes,
        note=note,
        offered=problem.propensity_weights,
        row_ranges=problem.row_ranges.bounds() if problem.knowledge.given else None,
        rest=None if system.rest is None else RestBall(system.rest.coordinates, facts.misfit_norm or 0.0),
    )


def _largest_norm(problem: Problem, function_class: FunctionClass, reference: float, *, anchored: bool) -> tuple[float, str]:
    """(what ||Q|| is taken to be at most where no norm bound is declared, why)."""
    facts, ranges = problem.assumptions, problem.ranges
    if facts.norm_bound is None and not anchored:
        # One-hot features: the coefficients are values, about their middle where a constant is free.
        highest = 0.5 * ranges.span if function_class.intercept else max(map(abs, ranges.value))
        implied = function_class.norm_of_values(highest + facts.misfit)
        if 0 < implied < math.inf:
            return implied, VALUE_NORM
    return UNDECLARED_NORM * ranges.largest_from(reference) or 1.0, ""


def rounding_slack(system: BellmanSystem, statistic: KernelStatistic, problem: Problem) -> float:
    """kernel_error * (mean of |Z||theta| + |v|)^2: how far rounding can move the loss of the true Q.

    The penalized part of theta has the declared norm, or at most sqrt(m) times the largest value; where that is a restriction,
    the premises say so.
    """
    scale, penalized = statistic.column_scale[: system.dimension], system.penalized.copy()
    largest_value, norm_bound = problem.ranges.largest_from(system.reference), problem.assumptions.norm_bound
    if system.reference:  # an estimate around which the class lies may be elsewhere
        largest_value += abs(system.offset - system.reference)
    norm = counted_norm(system.dimension, problem.ranges, system.reference)
    if isinstance(norm_bound, float):
        norm = min(norm, norm_bound)
    residual_size, free = float(statistic.column_scale[system.dimension]), ~penalized
    if system.rest is not None:
        first, rho = slice(0, system.rest.coordinates), problem.assumptions.misfit_norm or 0.0
        penalized[first] = False
        residual_size += rho * (float(np.linalg.norm(scale[first])) + float(scale[free].sum()))
    residual_size += norm * float(np.linalg.norm(scale[penalized]))
    if free.any():
        residual_size += (largest_value + norm) * float(scale[free].sum())
    return statistic.kernel_error * residual_size**2
