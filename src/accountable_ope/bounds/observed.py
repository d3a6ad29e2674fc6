"""The largest steps in the data, round by round, found again from the rows: what a certificate alone cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..programs.quadratic import Quadratic
from ..programs.step_rows import StepRows
from ..validation import FloatArray
from ..verification.class_proof import ClassProof
from ..verification.dual import Form
from ..verification.evidence import Known
from ..verification.ranges import Ellipsoid, ellipsoid, root_variance

ROUNDING = 1e-6


def observed_steps_hold(proof: ClassProof, rows: StepRows, scales: Sequence[FloatArray | None]) -> bool:
    """Whether no step in the data can be larger than a certificate says, given the proofs of its rounds.

    scales: sqrt(K(x_i, x_i)) or |w_i| of every row, one array per martingale.
    """
    derived, known = proof.constraints, proof.known
    if rows.ranges is not None and not all(_possible_steps_hold(each, rows, scales) for each in known):
        return False
    for step, before, after in zip(derived.facts.part.steps, known, known[1:], strict=False):
        found = [ellipsoid(*derived.bounds(terms, known)) for terms in step.range]
        largest = rows.bounds(after.residual_bound)
        for each in found:
            if each is not None:
                largest = np.minimum(largest, _reach(rows, each) + rows.hidden(derived.facts.hidden))
        for claimed, last, scale, evidence in zip(after.steps, before.steps, scales, derived.evidence, strict=True):
            steps = evidence.reach * largest if scale is None else scale[: len(largest)] * largest
            seen = float(steps.max(initial=0.0))
            if rows.others is not None and scale is not None:
                root = min((root_variance(_form(rows.others), each) for each in found if each is not None), default=np.inf)
                seen = max(seen, float(scale[-1]) * root)
            if min(seen, last.observed) > claimed.observed * (1 + ROUNDING):
                return False
    return True


def _possible_steps_hold(known: Known, rows: StepRows, scales: Sequence[FloatArray | None]) -> bool:
    """Whether ranges that were declared for rows allow no larger steps than is said."""
    possible = rows.bounds(known.residual_bound)
    for claimed, scale in zip(known.steps, scales, strict=True):
        if scale is not None:
            steps = scale * possible
            allowed = max(claimed.largest, 1e-300) * (1 + ROUNDING), max(claimed.squares, 1e-300) * (1 + ROUNDING)
            if float(steps.max(initial=0.0)) > allowed[0] or float(steps @ steps) > allowed[1]:
                return False
    return True


def _reach(rows: StepRows, around: Ellipsoid) -> FloatArray:
    """sup |v_i - Z_i theta| over the ellipsoid."""
    Z = rows.residuals
    turned = Z @ np.linalg.inv(around.factor)[:, : Z.shape[1]].T
    center = around.center[: Z.shape[1]]
    return np.asarray(np.abs(rows.target - Z @ center) + around.radius * np.sqrt(np.einsum("ij,ij->i", turned, turned)))


def _form(squared: Quadratic) -> Form:
    return Form.of(squared.A, squared.a, squared.a0)
