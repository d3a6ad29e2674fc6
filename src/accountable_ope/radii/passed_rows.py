"""Rows that went by in a stream: what a radius needs of them when they are gone."""

from __future__ import annotations

from dataclasses import dataclass

from ..programs.quadratic import Quadratic
from ..validation import FloatArray
from .sums import CutSums


@dataclass(frozen=True, eq=False)
class PassedRows:
    """Columns of the rows that were kept, and how large those of the others can be.

    Attributes
    ----------
    residuals : array (k, m)
        Z of the rows that were kept.
    target : array (k,)
        v of these.
    scale : array (k,) or (k + 1,), or None
        sqrt(K(x_i, x_i)) of these, and where there are others the largest sqrt(K(x_i, x_i)) h_i of them. None: of the rows
        nothing is known but sums.
    weights : array (k,) or (k + 1,), or None
        |w_i| of the cut likewise; None where there is no cut.
    others : Quadratic or None
        q with |eps_i| <= h_i sqrt(q(theta)) at every row, h_i its leverage; None where all rows were kept.
    cut : CutSums or None
        The sums of the cut, None where there is none.
    """

    residuals: FloatArray
    target: FloatArray
    scale: FloatArray | None = None
    weights: FloatArray | None = None
    others: Quadratic | None = None
    cut: CutSums | None = None
