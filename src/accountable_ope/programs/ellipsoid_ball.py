"""The program of Algorithm 1, fast: max c'theta over {loss(theta) <= lambda} and {||theta_penalized|| <= R}.

The unpenalized coordinates are eliminated (Schur complement), what is left of the loss is diagonalized once, and in these
coordinates the dual has two multipliers and costs O(m): ball multiplier `nu` by a monotone Newton iteration, ellipsoid
multiplier `mu` by a safeguarded one. The decomposition serves both ends, every radius and every norm bound.

In the eigenbasis the loss is  least + sum_i g_i (t_i - center_i)^2,  and the ball counts the first `penalized` coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arguments import checked
from ..validation import BoolArray, FloatArray, same_size, vector
from .quadratic import Quadratic
from .spheres import inside_ball, least_loss_multiplier, step_to_sphere

UNIT = float(np.finfo(np.float64).eps)
LINEAR = 1e-8
"""A relative step this small is made to first order: what it leaves out is below rounding."""


@dataclass(frozen=True, eq=False)
class DiagonalSolution:
    """A dual point and a primal point; `bound` is the dual value and never below the true maximum."""

    bound: float
    loss_multiplier: float
    ball_multiplier: float
    theta: FloatArray | None


@dataclass(frozen=True, eq=False)
class LeastLoss:
    """The least loss over the ball: a point that attains it (t in the own coordinates of the loss), and a lower bound that
    proves it (multiplier of the ball).
    """

    t: FloatArray
    theta: FloatArray
    loss: float
    lower_bound: float
    ball_multiplier: float


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The loss in its own coordinates; see `decompose`. A loss that is not convex has no such coordinates (convex=False).

    units: the norm counts coefficients in these; None: in units of one.
    """

    quadratic: Quadratic
    mask: BoolArray
    convex: bool
    g: FloatArray
    basis: FloatArray
    center: FloatArray
    penalized: int
    least: float
    noise: float
    units: FloatArray | None = None

    @cached_property
    def scaled(self) -> tuple[float, FloatArray, FloatArray]:
        """The largest g, g divided by it, and the inverse of that (0 where g = 0)."""
        largest = float(self.g.max(initial=0.0)) or 1.0
        g = self.g / largest
        return largest, g, np.where(g > 0, 1 / np.where(g > 0, g, 1.0), 0.0)

    @cached_property
    def squared_norm(self) -> Quadratic:
        """||theta_penalized||^2, in the units of each."""
        weights = self.mask.astype(float) if self.units is None else self.mask / self.units**2
        return Quadratic(np.diag(weights), np.zeros(len(self.mask)), 0.0)

    def coordinates(self, c: FloatArray) -> FloatArray:
        return np.asarray(self.basis.T @ c)

    def theta(self, t: FloatArray) -> FloatArray:
        return np.asarray(self.basis @ t)

    def loss(self, t: FloatArray) -> float:
        return self.least + float(self.g @ (t - self.center) ** 2)

    def maximize(self, c: FloatArray, limit: float, radius: float | None, least: LeastLoss | None = None) -> DiagonalSolution:
        """max c'theta subject to loss <= limit and, unless `radius` is None, the ball. The set must not be empty.

        `least`, where it is known for this radius, saves finding it again.
        """
        slack = max(limit - self.least, 0.0) + self.noise
        return _maximize(self, self.coordinates(c), slack, radius, least)

    def least_loss(self, radius: float | None) -> LeastLoss:
        """min loss over the ball."""
        return _least_loss(self, radius)

    def proving_multiplier(self, radius: float | None) -> float:
        """The multiplier of the ball by which the least loss is proved from the quadratic itself, where no eigenvalue is cut.

        It is that of `least_loss`, or where this is 0 and coordinates are flat, as good as 0: columns that are rounding alone
        explain some of any loss with coefficients as large as you please. The ball forbids these, at a price of at most a
        billionth of the loss.
        """
        found = self.least_loss(radius).ball_multiplier
        if found > 0 or not radius or (self.g[: self.penalized] > 0).all():
            return found
        rounding = max(len(self.g), 8) * UNIT * float(self.g.max(initial=0.0))
        return min(rounding, 1e-9 * abs(self.quadratic.a0) / radius**2)

    def least_norm(self, limit: float) -> FloatArray | None:
        """The theta of least (penalized) norm whose loss is at most `limit`; None when no theta reaches it."""
        slack = limit - self.least
        if slack < -self.noise:
            return None
        return self.theta(_least_norm(self, max(slack, self.noise)))


@checked
def decompose(loss: Quadratic, penalized: BoolArray, units: FloatArray | None = None) -> Decomposition:
    """Diagonalize a convex loss against the ball.

    theta_f = u - W theta_p, W = A_ff^+ A_fp, leaves (theta_p' S theta_p, u'A_ff u) with S = A_pp - A_pf W. Eigenvalues at the
    level of rounding are set to zero: that only enlarges the set, so bounds stay valid.

    Parameters
    ----------
    loss : Quadratic
    penalized : array (m,) of bool
        Which coordinates the ball counts (p); the others are free (f).
    units : array (m,), optional
        The ball counts coordinates in these, theta_i / units_i: then it is an ellipsoid. By default in units of one.

    Returns
    -------
    Decomposition
        The loss in its own coordinates; `convex` is False where it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import Quadratic, decompose
    >>> decomposition = decompose(Quadratic(np.eye(2), np.array([1.0, 0.0]), 1.25), np.array([True, True]))
    >>> decomposition.convex, round(decomposition.least, 9)
    (True, 0.25)
    """
    p, f = np.flatnonzero(penalized), np.flatnonzero(~penalized)
    A = 0.5 * (loss.A + loss.A.T)
    if units is not None:
        same_size(len(penalized), vector(units, "units"), "units")
        A = units[:, None] * A * units
    size = float(np.abs(np.diagonal(A)).max(initial=0.0))
    cut = max(len(A), 8) * UNIT * size
    free_values, free_vectors = np.linalg.eigh(A[np.ix_(f, f)])
    free_values = np.where(np.abs(free_values) > cut, free_values, 0.0)
    inverse = np.where(free_values > 0, 1 / np.where(free_values > 0, free_values, 1.0), 0.0)
    W = (free_vectors * inverse) @ (free_vectors.T @ A[np.ix_(f, p)])
    values, vectors = np.linalg.eigh(A[np.ix_(p, p)] - A[np.ix_(p, f)] @ W)
    convex = bool((values >= -cut).all() and (free_values >= 0).all())
    values = np.where(values > cut, values, 0.0)
    m = len(A)
    basis = np.zeros((m, m))
    basis[p, : len(p)] = vectors
    basis[f, : len(p)] = -W @ vectors
    basis[f, len(p) :] = free_vectors
    if units is not None:
        basis = units[:, None] * basis
    g = np.concatenate([values, free_values])
    a = basis.T @ loss.a
    center = np.where(g > 0, a / np.where(g > 0, g, 1.0), 0.0)
    explained = float(g @ center**2)
    return Decomposition(
        quadratic=loss,
        mask=penalized,
        convex=convex,
        g=g,
        basis=basis,
        center=center,
        penalized=len(p),
        least=loss.a0 - explained,
        noise=max(16 * UNIT * (abs(loss.a0) + explained), 1e-300),
        units=units,
    )


def _maximize(
    system: Decomposition, c: FloatArray, slack: float, radius: float | None, least: LeastLoss | None
) -> DiagonalSolution:
    g, p = system.g, system.penalized
    largest = float(np.abs(c).max(initial=0.0))
    c = np.where(np.abs(c) > 4 * UNIT * largest, c, 0.0)
    flat = g == 0
    if radius is None:
        if c[flat].any():
            return DiagonalSolution(math.inf, 0.0, 0.0, None)
        return _ellipsoid_only(system, c, slack)
    if c[p:][flat[p:]].any():
        return DiagonalSolution(math.inf, 0.0, 0.0, None)
    inside = (system.least_loss(radius) if least is None else least).t[:p] / radius
    return _TwoMultipliers(system, c, slack, radius, inside).solve()


def _ellipsoid_only(system: Decomposition, c: FloatArray, slack: float) -> DiagonalSolution:
    """c'center + sqrt(slack * sum c^2/g)."""
    g = system.g
    inverse = np.where(g > 0, 1 / np.where(g > 0, g, 1.0), 0.0)
    length = math.sqrt(float(c**2 @ inverse))
    t = system.center.copy()
    if length == 0 or slack == 0:
        return DiagonalSolution(float(c @ t), 0.0, 0.0, system.theta(t))
    t += math.sqrt(slack) / length * c * inverse
    value = float(c @ system.center) + math.sqrt(slack) * length
    return DiagonalSolution(value, 0.5 * length / math.sqrt(slack), 0.0, system.theta(t))


class _DualPoint(NamedTuple):
    """The dual at one mu: ball multiplier, maximizer t of the Lagrangian, its value, the loss q at t; dq, dnu and dt by dmu."""

    nu: float
    t: FloatArray
    value: float
    q: float
    slope: float
    drift: float
    velocity: FloatArray


class _TwoMultipliers:
    """Both constraints, in units where the ball has radius 1, the largest g is 1 and the penalized part of c has length 1."""

    def __init__(self, system: Decomposition, c: FloatArray, slack: float, radius: float, inside: FloatArray) -> None:
        p = system.penalized
        self.system, self.radius, self.inside = system, radius, inside
        self.g_max, self.all_g, inverse = system.scaled
        self.c_size = math.sqrt(float(c.dot(c))) or 1.0
        c = c / self.c_size
        self.all_t0 = system.center / radius
        self.g, self.c, self.t0 = self.all_g[:p], c[:p], self.all_t0[:p]
        free_c, self.free_t0 = c[p:], self.all_t0[p:]
        self.s = slack / (self.g_max * radius**2)
        # sum c^2/g, and the same over the unpenalized coordinates: the ellipsoid alone holds them.
        self.free_step = free_c * inverse[p:]
        self.free_length2 = float(free_c.dot(self.free_step))
        self.length2 = float(self.c.dot(self.c * inverse[:p])) + self.free_length2
        self.free_value = float(free_c.dot(self.free_t0))
        self.gt0 = self.g * self.t0
        self.half_c = 0.5 * self.c
        self.best = (math.inf, 0.0, 0.0)

    def solve(self) -> DiagonalSolution:
        g, c, t0, s = self.g, self.c, self.t0, self.s
        self.least = float(g @ (self.inside - t0) ** 2)
        c_length = math.sqrt(float(c.dot(c)))
        if self.free_length2 == 0:
            # The ball alone; when its maximizer satisfies the loss this is the answer.
            self.best = (self.free_value + c_length, 0.5 * c_length, 0.0)
            t = c / c_length if c_length > 0 else self.inside
            if float(g @ (t - t0) ** 2) <= s:
                return self._result(t, self.free_t0)
        mu, t = self._search_mu(max(s, 1e-300))
        free = self.free_t0 + (self.free_step / (2 * mu) if mu > 0 else 0.0)
        return self._result(t, free)

    def _search_mu(self, s: float) -> tuple[float, FloatArray]:
        """Safeguarded Newton on log(q(mu) - q(infinity)) in log(mu): nearly a line, as q falls like a power of mu."""
        # The multiplier of the ellipsoid alone, to begin with.
        mu, nu = min(max(0.5 * math.sqrt(max(self.length2, 1e-300) / s), 1e-12), 1e30), 0.0
        low, high = 0.0, math.inf
        floor = min(self.least, s * (1 - 1e-6))
        wanted = max(s - floor, 1e-300)
        for _ in range(200):
            here = self._dual_point(mu, nu)
            if here.value < self.best[0]:
                self.best = (here.value, here.nu, mu)
            if here.q > s:
                low = mu
            else:
                high = mu
            if abs(here.q - s) <= 1e-13 * s or (high < math.inf and high - low <= 4 * UNIT * high):
                break
            rest = here.q - floor
            step = math.nan
            if here.slope < 0 and rest > 0:
                step = mu * math.exp(min(max(math.log(wanted / rest) * rest / (here.slope * mu), -7.0), 7.0))
            if not low < step < high:
                step = math.sqrt(low * high) if low > 0 and high < math.inf else (8 * mu if high == math.inf else mu / 8)
            if step > 1e30:
                break
            if abs(step - mu) <= LINEAR * mu:
                return step, here.t + (step - mu) * here.velocity
            nu = here.nu + here.drift * (step - mu)
            mu = step
        return mu, here.t

    def _dual_point(self, mu: float, guess: float) -> _DualPoint:
        """All that the search asks at one mu; `guess` is a first nu, 0 for none."""
        nu, t, inverse = self._ball_multiplier(mu, guess)
        excess = self.t0 - t
        pull = self.g * excess
        loss = float(pull.dot(excess))
        velocity, drift = pull * inverse, 0.0
        if nu > 0:
            weighted = t * inverse
            drift = float(weighted.dot(pull)) / max(float(weighted.dot(t)), 1e-300)
            velocity -= drift * weighted
        # t maximizes the Lagrangian at (nu, mu), so the Lagrangian at t is the dual value; rounding of t enters squared.
        value = float(self.c.dot(t)) + nu * (1 - float(t.dot(t))) + mu * (self.s - loss) + self.free_value
        free = self.free_length2 / (4 * mu)
        slope = -2 * (float(pull.dot(velocity)) + free / mu**2)
        return _DualPoint(nu, t, value + free, loss + free / mu, slope, drift, velocity)

    def _ball_multiplier(self, mu: float, guess: float) -> tuple[float, FloatArray, FloatArray]:
        """nu >= 0 with ||t|| = 1, t = (c/2 + mu g t0) / (nu + mu g), or 0 when the ball is not reached; t and 1 / (nu + mu g).

        Newton on 1/||t||, which is concave and grows with nu: from any guess the first step ends at or below the root, and
        further ones climb. Without a guess, or when that step leaves the positive numbers, start at a bound from below.
        """
        v = self.half_c + mu * self.gt0
        b = mu * self.g
        nu = guess
        for trial in range(100):
            if nu <= 0:
                nu = float((np.abs(v) - b).max(initial=0.0))
                inside = inside_ball(v, b) if nu <= 0 else None
                if inside is not None:
                    return (0.0, *inside)
                nu = max(nu, 1e-300)
            inverse = 1 / (nu + b)
            t = v * inverse
            weighted = t * inverse
            square, change = float(t.dot(t)), float(t.dot(weighted))
            step = (math.sqrt(square) - 1) * square / change if change > 0 else -nu
            if abs(step) <= LINEAR * nu:
                return nu + step, t - step * weighted, inverse
            if not math.isfinite(step) or (step < 0 and trial > 0):
                break
            nu += step
        return nu, t, inverse

    def _result(self, t: FloatArray, free: FloatArray) -> DiagonalSolution:
        value, nu, mu = self.best
        # The search takes the Lagrangian at t, the dual value only if t is exact; what is reported is the dual value itself.
        value = max(value, self._dual_value(nu, mu))
        point = self._into_set(t, free) * self.radius
        return DiagonalSolution(
            bound=value * self.c_size * self.radius,
            loss_multiplier=mu * self.c_size / (self.g_max * self.radius),
            ball_multiplier=nu * self.c_size / self.radius,
            theta=self.system.theta(point),
        )

    def _dual_value(self, nu: float, mu: float) -> float:
        """nu + mu s + sum (c^2/4 + mu g t0 c - nu mu g t0^2) / (nu + mu g), and the unpenalized part."""
        denominator = nu + mu * self.g
        flat = denominator == 0
        if self.c[flat].any() or (mu == 0 and self.free_length2 > 0):
            return math.inf
        pull = mu * self.gt0
        terms = (self.half_c * self.half_c + pull * (self.c - nu * self.t0)) / np.where(flat, 1.0, denominator)
        free = self.free_length2 / (4 * mu) if mu > 0 else 0.0
        return nu + mu * self.s + float(terms.sum()) + self.free_value + free

    def _into_set(self, t: FloatArray, free: FloatArray) -> FloatArray:
        """Rescale into the ball, then move toward the least-loss point until the loss constraint holds."""
        t = t / max(1.0, math.sqrt(float(t.dot(t))))
        start = np.concatenate([self.inside, self.free_t0])
        direction = np.concatenate([t, free]) - start
        offset = start - self.all_t0
        share = 1.0
        if float(self.all_g @ (offset + direction) ** 2) > self.s:
            share = step_to_sphere(offset, direction, self.all_g, self.s)
        return np.asarray(start + share * direction)


def _least_loss(system: Decomposition, radius: float | None) -> LeastLoss:
    p = system.penalized
    t = system.center.copy()
    if radius is None or float(t[:p] @ t[:p]) <= radius**2:
        return LeastLoss(t, system.theta(t), system.least, system.least, 0.0)
    g, t0 = system.g[:p], system.center[:p]
    nu = least_loss_multiplier(g, t0, radius)
    t[:p] = g * t0 / (nu + g)
    t[:p] *= min(1.0, radius / float(np.linalg.norm(t[:p])))
    bound = system.least + nu * (float(t0**2 @ (g / (nu + g))) - radius**2)
    return LeastLoss(t, system.theta(t), system.loss(t), bound, nu)


def _least_norm(system: Decomposition, slack: float) -> FloatArray:
    """t = mu g t0 / (1 + mu g) with sum g (t - t0)^2 = slack: monotone Newton on 1/sqrt."""
    p = system.penalized
    g, t0 = system.g[:p], system.center[:p]
    t = system.center.copy()
    if float(g @ t0**2) <= slack:
        t[:p] = 0.0
        return t
    mu = 0.0
    for _ in range(200):
        shrink = 1 / (1 + mu * g)
        left = g * t0**2 * shrink**2
        q = float(left.sum())
        slope = -2 * float(left @ (g * shrink))
        if q <= slack * (1 + 1e-14) or slope == 0:
            break
        step = (1 / math.sqrt(slack) - 1 / math.sqrt(q)) / (-0.5 * slope * q**-1.5)
        if not math.isfinite(step) or step <= 4 * UNIT * mu:
            break
        mu += step
    t[:p] = t0 * (1 - 1 / (1 + mu * g))
    return t
