"""Numbers as they are proved, where rounding tells that from what a solver found.

Where nothing is random, as at discount 0 with a reward that is a function of (s, a), the limit of the loss is rounding alone,
about 1e-13 of the squares that cancel in it. Multipliers of such a limit are 1e11 and more, and the rounding of the loss times
them is a share of the ends and of the least norm. Then what is reported is what a verifier proves from the same multipliers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..programs.certificate import Certificate, LeastNormFound, SolveStatus
from ..programs.constraint import Constraint
from ..programs.constraint_set import ConstraintSet
from ..programs.solver import Solution
from ..validation import FloatArray
from ..verification.dual import STEPS, UNIT, Bound, Form, least_value

ALIKE = 5e-7
"""What is proved up to this share of its size is reported as it was found."""

CANCELS = 1e-3
"""An end has no fewer digits than one of this share of the terms that it is a sum of."""

POSSIBLY = 1e-3
"""Rounding that is estimated at this share of what counts is looked at more closely: the estimate leaves out what cancels."""

TIMES = 8
"""So often is a norm put into the limit that depends on it; every time brings it nearer by a factor of hundreds."""


def proved_solution(solution: Solution) -> Solution:
    """The same, with ends no narrower than what their multipliers prove; for evidence that is one number."""
    if solution.empty or solution.tightening is not None:
        return solution
    return replace(solution, upper=_proved_end(solution.upper), lower=_proved_end(solution.lower))


def proved_norm(constraints: ConstraintSet, found: LeastNormFound | None) -> LeastNormFound | None:
    """The same norm where its multipliers prove it, else what they do prove; for evidence that is one number."""
    if found is None or constraints.follows_variance or found.value == 0 or not len(found.argument.multipliers):
        return found
    argument, goal = found.argument, constraints.decomposition.squared_norm
    form = Form.of(goal.A, goal.a, goal.a0)
    if not _matters(argument.constraints, argument.multipliers, found.value**2):
        return found
    # With a part that coordinates miss, a norm of r allows a root loss that is larger by r times what is missed.
    missed = constraints.evidence[0].missed[0] if constraints.unseen is not None else 0.0
    root, norm = math.sqrt(argument.constraints[0].limit) - found.value * missed, found.value
    for _ in range(TIMES):
        (loss,) = argument.constraints
        argument = replace(argument, constraints=(replace(loss, limit=(root + norm * missed) ** 2),))
        proved = math.sqrt(max(least_value(form, _bounds(argument.constraints), argument.multipliers.tolist()), 0.0))
        if abs(proved - norm) <= ALIKE * found.value:
            break
        norm = min(proved, found.value)
    else:
        return LeastNormFound(0.0)  # of which nobody needs a proof
    return found if norm == found.value else LeastNormFound(norm, argument)


def _proved_end(end: Certificate) -> Certificate:
    if end.status not in (SolveStatus.OPTIMAL, SolveStatus.BOUND_ONLY) or not math.isfinite(end.bound):
        return end
    size = abs(end.bound) + (0.0 if end.point is None else float(np.abs(end.objective) @ np.abs(end.point)))
    # Large terms may cancel in an end: the digits that are reported, and compared, are those of the end itself.
    shown = max(abs(end.bound), CANCELS * size)
    if not _matters(end.constraints, end.multipliers, shown):
        return end
    bound = -least_value(Form.linear(end.objective), _bounds(end.constraints), end.multipliers.tolist())
    return replace(end, bound=bound) if ALIKE * shown < bound - end.bound < math.inf else end


def _matters(constraints: Sequence[Constraint], multipliers: FloatArray, size: float) -> bool:
    """Whether rounding of the constraints times their multipliers may be a share of a number of this size."""
    terms = zip(constraints, multipliers.tolist(), strict=True)
    weighted = sum(alpha * (abs(each.quadratic.a0) + abs(each.limit)) for each, alpha in terms)
    return bool((STEPS + max(len(each.quadratic.a) for each in constraints)) * UNIT * weighted > POSSIBLY * ALIKE * size)


def _bounds(constraints: Sequence[Constraint]) -> list[Bound]:
    quadratics = ((each.quadratic, each.limit) for each in constraints)
    return [Bound(Form.of(each.A, each.a, each.a0), limit) for each, limit in quadratics]
