"""The largest steps in the data, round by round, found again from the rows: what a certificate alone cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..programs.step_rows import StepRows
from ..validation import FloatArray
from ..verification.class_proof import ClassProof
from ..verification.ranges import Ellipsoid, ellipsoid

ROUNDING = 1e-6


def observed_steps_hold(proof: ClassProof, rows: StepRows, scales: Sequence[FloatArray | None]) -> bool:
    """Whether no step in the data can be larger than a certificate says, given the proofs of its rounds.

    scales: sqrt(K(x_i, x_i)) or |w_i| of every row, one array per martingale.
    """
    derived, known = proof.constraints, proof.known
    for step, after in zip(derived.part.steps, known[1:], strict=True):
        found = [ellipsoid(*derived.bounds(terms, known)) for terms in step.range]
        largest = rows.bounds(after.residual_bound)
        for each in found:
            if each is not None:
                largest = np.minimum(largest, _reach(rows, each) + rows.hidden(derived.radius))
        for claimed, scale, evidence in zip(after.observed, scales, derived.evidence, strict=True):
            steps = evidence.reach * largest if scale is None else scale * largest
            if float(steps.max(initial=0.0)) > claimed * (1 + ROUNDING):
                return False
    return True


def _reach(rows: StepRows, around: Ellipsoid) -> FloatArray:
    """sup |v_i - Z_i theta| over the ellipsoid."""
    Z = rows.residuals
    turned = np.linalg.solve(around.factor, np.vstack([Z.T, np.zeros((len(around.center) - Z.shape[1], len(Z)))]))
    center = around.center[: Z.shape[1]]
    return np.asarray(np.abs(rows.target - Z @ center) + around.radius * np.sqrt(np.einsum("ij,ij->j", turned, turned)))
