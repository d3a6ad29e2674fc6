"""Sums over the rows that a radius needs beside the kernel statistic."""

from __future__ import annotations

from dataclasses import dataclass

from ..problem.assumptions import Assumptions
from ..validation import FloatArray


@dataclass(frozen=True, eq=False)
class CutSums:
    """Of weights w_i and the columns C = [Z | v] of the n rows that have one.

    Attributes
    ----------
    total : array (m + 1,)
        sum_i w_i C_i / n.
    squares : array (m + 1, m + 1)
        sum_i w_i^2 C_i C_i' / n^2.
    count : int
        n.
    absolute, length : float
        sum_i |w_i| and sqrt(sum_i w_i^2).
    kind : str
        Where the weights come from.
    earlier : int
        How many first rows, which have no weight, chose them.
    rate : float
        The rate that these rows chose.
    missed : tuple of two floats
        sum_i |w_i| tau_i / n and sqrt(sum_i w_i^2 tau_i^2) / n, tau_i what coordinates miss of a residual, else 0.
    """

    total: FloatArray
    squares: FloatArray
    count: int
    absolute: float
    length: float
    kind: str
    earlier: int
    rate: float
    missed: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class PlannedFor:
    """What rates and weights were fixed for, where it was not what they are used for.

    Attributes
    ----------
    assumptions : Assumptions
    delta : float
        The share of the kernel's martingale and the cut together.
    """

    assumptions: Assumptions
    delta: float


@dataclass(frozen=True, eq=False)
class RowSums:
    """What one pass over the rows found; None where the radius needs none of it.

    Attributes
    ----------
    log_determinant : float or None
        log det(I + c sigma^2 K) of the self-normalized radius.
    bootstrap : float or None
        The quantile of the wild radius.
    cut : CutSums or None
    largest_scaled : float or None
        Of rows with factors u_i: no u_i |eps_i| can be larger.
    planned_for : PlannedFor or None
        Where rates and weights were fixed for other assumptions on the same data.
    """

    log_determinant: float | None = None
    bootstrap: float | None = None
    cut: CutSums | None = None
    largest_scaled: float | None = None
    planned_for: PlannedFor | None = None


NO_SUMS = RowSums()
