"""Does the class contain Q? A test of the premise that everything else rests on; asymptotic, and no guarantee.

If Q = phi'theta for some theta, the residuals eps = v - Z theta have mean 0 given what came before, so they are uncorrelated with
every function of (s, a). A fit takes up as many such moments as the class has coefficients; what is left of them, C'Psi'e with C
a basis of the complement of range(Psi'Z), does not depend on the fit and is about normal with covariance
C'Psi' diag(eps^2) Psi C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..validation import FloatArray, matrix, vector
from .moments import FLAT, Moments, landmarks
from .weighted_chi_square import weighted_chi_square_tail

FEWEST_ROWS = 50
"""With fewer rows no limit of many rows says anything."""
ROWS_PER_COEFFICIENT = 10
LEADING = 20
"""So many more of the leading moments than coefficients have equal say in one component."""
DIGITS = 1e-7
"""Residuals below this share of what they are differences of are rounding, of the data if not of the arithmetic."""
SMALLEST = 1e-300
CAP = 0.99
"""Components above this count as this: a component near 1 would outweigh any doubt of the others."""


@dataclass(frozen=True)
class Component:
    """One of the tests that are combined.

    Attributes
    ----------
    kind : str
        "all moments": the sum of squares of what is left of them, against a weighted sum of chi-squares. "leading moments": those
        in which the rows vary most, each in units of its own deviation, against a chi-square.
    factor : float
        Of the bandwidths of the kernel.
    p_value : float
    """

    kind: str
    factor: float
    p_value: float


@checked
@dataclass(frozen=True)
class SpecificationTest:
    """Whether residuals of the best fit of a class are chance alone.

    Attributes
    ----------
    components : tuple of Component
        At several bandwidths; empty where the class cannot be tested.
    reason : str
        Why it cannot; empty where it can.
    first_rows : int or None
        How many first rows were tested, of a log that is read in parts; None: all.

    Examples
    --------
    >>> from accountable_ope.statistics import SpecificationTest
    >>> SpecificationTest(reason="40 rows are too few: a test needs at least 50.").tested
    False
    """

    components: tuple[Component, ...] = ()
    reason: str = ""
    first_rows: int | None = None

    @property
    def tested(self) -> bool:
        return bool(self.components)

    @property
    def p_value(self) -> float:
        """In how many data sets, for many rows, chance alone gives as much, were Q in the class; NaN where it is not known.

        The Cauchy combination of the components, which may depend on each other in any way (Liu and Xie, 2020).
        """
        return cauchy_combination([each.p_value for each in self.components])

    @property
    def smallest(self) -> Component | None:
        """The component that speaks loudest against the class; None where it cannot be tested."""
        return min(self.components, key=lambda each: each.p_value, default=None)


@dataclass(frozen=True, eq=False)
class Fit:
    """The best fit of the class in its own moments: what tests of a norm ball need.

    Attributes
    ----------
    matrix : array (D, m)
        A = Psi'Z.
    target : array (D,)
        Psi'v.
    theta : array (m,)
        Where ||Psi'v - A theta|| is least.
    covariance : array (D, D)
        Psi' diag(e^2) Psi.
    """

    matrix: FloatArray
    target: FloatArray
    theta: FloatArray
    covariance: FloatArray


@dataclass(frozen=True, eq=False)
class Examination:
    """The test of a class and the fit behind it; no fit where there are too few rows for the coefficients."""

    test: SpecificationTest
    fit: Fit | None


@checked
def specification_test(kernel: Kernel, points: FloatArray, residuals: FloatArray, target: FloatArray) -> SpecificationTest:
    """Test whether some v - Z theta has mean zero at every (s, a), at several bandwidths of the kernel.

    At each factor c, Psi are moments at c times the bandwidths, e = v - Z thetahat the residuals of the best fit at
    c = 1 (else at the first factor at which Psi'Z has its largest rank),
    G = Psi' diag(e^2 + tau^2) Psi n / (n - m) and C a basis of the complement of range(Psi'Z):

    - all moments: ||C'Psi'e||^2 against sum_j w_j chi^2_1, w the eigenvalues of C'GC;
    - leading moments: (B'Psi'e)'M^+(B'Psi'e) against a chi-square, B = V C' for the eigenvectors V of the m + 20 largest
      eigenvalues of Psi'Psi. M is B'GB but in directions that are quieter than rows are on average, where it is
      mean(e^2 + tau^2) B'Psi'Psi B n / (n - m): a direction that has not seen a rare jump only looks quiet.

    tau = 1e-7 (rms v + rms |Z||theta|): rounding is no evidence.

    Parameters
    ----------
    kernel : Kernel
        Its bandwidths set the scale; of a kernel without any, such as `Tabular`, only the kernel itself is used.
    points : array (n, d)
        x_i = (s_i, a_i).
    residuals : array (n, m)
        Z.
    target : array (n,)
        v.

    Returns
    -------
    SpecificationTest

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Gaussian
    >>> from accountable_ope.statistics import specification_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(500, 1))
    >>> y = np.sin(3 * x[:, 0]) + 0.3 * rng.normal(size=500)
    >>> line = np.column_stack([x[:, 0], np.ones(500)])
    >>> bool(specification_test(Gaussian(1.0), x, line, y).p_value < 1e-6)
    True
    >>> wave = np.column_stack([np.sin(3 * x[:, 0]), np.ones(500)])
    >>> bool(specification_test(Gaussian(1.0), x, wave, y).p_value > 0.05)
    True
    """
    return examine(kernel, points, residuals, target).test


def examine(kernel: Kernel, points: FloatArray, residuals: FloatArray, target: FloatArray) -> Examination:
    """`specification_test`, with the fit behind it."""
    x, z, v = matrix(points, "points"), matrix(residuals, "residuals"), vector(target, "target")
    n, m = z.shape
    if not len(x) == n == len(v):
        raise InvalidInput(f"`points`, `residuals` and `target` must have equally many rows. Got {len(x)}, {n} and {len(v)}.")
    if n < FEWEST_ROWS:
        return Examination(SpecificationTest(reason=f"{n} rows are too few: a test needs at least {FEWEST_ROWS}."), None)
    if m * ROWS_PER_COEFFICIENT > n:
        text = f"{m} coefficients are too many for {n} rows: a test needs {ROWS_PER_COEFFICIENT} rows for each."
        return Examination(SpecificationTest(reason=text), None)
    places = landmarks(kernel, x, m)
    moments = {factor: places.moments(factor) for factor in places.factors}
    together = np.column_stack([z, v])
    own, sums = 1.0, moments[1.0].sums(together)
    for factor in places.factors[1:]:
        # Moments of a kernel far too wide are few and fit a class only in part: then those of the next scale that fit more.
        rank = range_and_complement(sums[:, :m])[0].shape[1]
        if rank == m:
            break
        other = moments[factor].sums(together)
        if range_and_complement(other[:, :m])[0].shape[1] > rank:
            own, sums = factor, other
    theta = _least_squares(sums[:, :m], sums[:, m])
    e = v - z @ theta
    rows = _Rows(z, e, _squares(z, v, e, theta))
    found, covariance = [], np.zeros((0, 0))
    for factor in places.factors:
        components, gram = _components(moments[factor], factor, rows)
        found += components
        covariance = gram if factor == own else covariance
    reason = "" if found else "The class is saturated: it fits whatever the kernel can see, so that nothing could contradict it."
    return Examination(SpecificationTest(tuple(found), reason), Fit(sums[:, :m], sums[:, m], theta, covariance))


def cauchy_combination(p_values: Sequence[float]) -> float:
    """1/2 - arctan(mean_j tan((1/2 - p_j) pi)) / pi; NaN of none."""
    if not p_values:
        return float("nan")
    p = np.clip(p_values, SMALLEST, CAP)
    mean = float(np.mean(1 / np.tan(np.pi * p)))
    # The first form keeps its digits where p is tiny.
    return float(np.arctan(1 / mean) / np.pi) if mean > 0 else float(0.5 - np.arctan(mean) / np.pi)


def range_and_complement(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal bases of the range of a matrix, its columns scaled alike, and of the complement."""
    lengths = np.sqrt((matrix**2).sum(axis=0))
    u, s, _ = np.linalg.svd(matrix / np.where(lengths > 0, lengths, 1.0), full_matrices=True)
    rank = int((s > FLAT * s[0]).sum()) if len(s) else 0
    return u[:, :rank], u[:, rank:]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Z, e and what stands for eps^2."""

    z: FloatArray
    e: FloatArray
    squares: FloatArray


def _components(moments: Moments, factor: float, rows: _Rows) -> tuple[list[Component], FloatArray]:
    """Both tests at one factor, none where the class is saturated; and Psi' diag(e^2) Psi."""
    from scipy.special import chdtrc

    n, m = rows.z.shape
    sums, plain, gram = moments.sums_and_grams(np.column_stack([rows.z, rows.e]), rows.squares)
    A, b = sums[:, :m], sums[:, m]
    C = range_and_complement(A)[1]
    if C.shape[1] == 0:
        return [], gram
    left = C.T @ b
    p = weighted_chi_square_tail(float(left @ left), np.maximum(np.linalg.eigvalsh(C.T @ gram @ C), 0.0))
    found = [Component("all moments", factor, p)]
    most = min(m + LEADING, len(b), max(n // 10, m + 1))
    V = np.linalg.eigh(plain)[1][:, ::-1][:, :most]
    B = V @ range_and_complement(V.T @ A)[1]
    if B.shape[1] > 0:
        # Rare jumps that a direction has not seen make it look quiet: no direction counts as quieter than rows are on average.
        # In the units of that average its covariance is I.
        w, vectors = np.linalg.eigh(float(rows.squares.mean()) * (B.T @ plain @ B))
        kept = w > 1e-9 * w[-1] if w[-1] > 0 else np.zeros(len(w), dtype=bool)
        to_unit = B @ (vectors[:, kept] / np.sqrt(w[kept]))
        own, turned = np.linalg.eigh(to_unit.T @ gram @ to_unit)
        size = float((((to_unit @ turned).T @ b) ** 2 / np.maximum(own, 1.0)).sum())
        found.append(Component("leading moments", factor, float(chdtrc(int(kept.sum()), size)) if kept.any() else 1.0))
    return found, gram


def _least_squares(A: FloatArray, b: FloatArray) -> FloatArray:
    """The least-norm solution in units where every column has length 1."""
    lengths = np.sqrt((A**2).sum(axis=0))
    scale = 1 / np.where(lengths > 0, lengths, 1.0)
    return np.asarray(scale * np.linalg.lstsq(A * scale, b, rcond=FLAT)[0])


def _squares(z: FloatArray, v: FloatArray, e: FloatArray, theta: FloatArray) -> FloatArray:
    """(e^2 + tau^2) n / (n - m)."""
    n, m = z.shape
    sizes = np.abs(z) @ np.abs(theta)
    tau = DIGITS * (np.sqrt(np.mean(v**2)) + np.sqrt(np.mean(sizes**2)))
    return np.asarray((e**2 + tau**2) * (n / (n - m)))
