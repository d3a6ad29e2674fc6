"""What is refused before any work: questions, kernels, and radii that need what is not there."""

from __future__ import annotations

from collections.abc import Sequence

from ..classes.function_class import FunctionClass
from ..classes.semi_parametric import SemiParametric
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions, RelativeNorm
from ..problem.problem import Problem
from ..radii.registry import Approach, LossKind, RadiusRule, radius_rule


def check_asked(problem: object, kernel: object) -> None:
    """Raise where the question or the kernel is something else."""
    if not isinstance(problem, Problem):
        raise InvalidInput(
            f"`problem` must be a Problem: aope.Problem(data, starts, policy, assumptions). Got {type(problem).__name__}."
        )
    check_kernel(kernel)


def check_kernel(kernel: object) -> None:
    """Raise where the kernel is something else, such as its name or its class."""
    if isinstance(kernel, type) or not isinstance(kernel, Kernel):
        given = repr(kernel) if isinstance(kernel, type | str | float | int) else type(kernel).__name__
        raise InvalidInput(f"`kernel` must be a kernel, such as aope.Gaussian(0.5). Got {given}.")


def refuse_unfit(rules: Sequence[RadiusRule], classes: Sequence[FunctionClass], kernel: Kernel, problem: Problem) -> None:
    """Raise where a radius, a class that its coordinates do not span, or a misfit needs what is not there."""
    check_asked(problem, kernel)
    facts, rows = problem.assumptions, len(problem.data)
    if any(rule.guarantee is radius_rule("symmetric").guarantee for rule in rules) and not facts.symmetric_noise:
        raise InvalidInput("`radius` symmetric needs `symmetric_noise=True`: residuals symmetric about 0 must be declared.")
    many = max((each.dimension for each in classes if each.dimension is not None), default=0)
    if many >= rows and any(rule.approach is Approach.BOOTSTRAP for rule in rules):
        raise InvalidInput(f"`radius` wild needs more rows than features: with {many} features nothing is left of the residuals.")
    sections = any(each.has_remainder for each in classes)
    _refuse_misfit_norm(classes, facts)
    if sections and facts.norm_bound is None:
        raise InvalidInput("`norm_bound` is needed with KernelSections: without it nothing limits what the coordinates miss.")
    if sections and isinstance(facts.norm_bound, RelativeNorm):
        raise InvalidInput(
            "`norm_bound` must be a number with KernelSections: their coordinates bound the least norm that is consistent with "
            "the data from below only."
        )
    if not sections and facts.misfit == 0:
        return
    what = "what KernelSections miss" if sections else "a `misfit`"
    for rule in rules:
        if rule.loss is LossKind.U:
            raise InvalidInput(f"`radius` {rule.name} bounds a U-statistic, which says nothing about {what}.")
        if rule.approach is Approach.SELF_NORMALIZED or (sections and rule.approach is Approach.BOOTSTRAP):
            raise InvalidInput(f"`radius` {rule.name} says nothing about {what}.")
    if not kernel.nonnegative:
        raise InvalidInput(f"`kernel` must have no negative values with {what}. Got {kernel!r}.")


def _refuse_misfit_norm(classes: Sequence[FunctionClass], facts: Assumptions) -> None:
    """Raise where what features miss has no norm bound, or one was declared and no class has such a part."""
    wanted = any(isinstance(each, SemiParametric) for each in classes)
    if wanted and facts.misfit_norm is None:
        raise InvalidInput("`misfit_norm` is needed with SemiParametric: without it nothing limits what the features miss.")
    if facts.misfit_norm is not None and not wanted:
        raise InvalidInput("`misfit_norm` is of what the features of a SemiParametric class miss. There is no such class.")
