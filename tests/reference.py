"""Slow, obvious twins of the fast routines: double loops, explicit sums and CVXPY with Clarabel. Never shipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np

from accountable_ope import StartStates, Transitions
from accountable_ope.programs import FeasibleSet, Quadratic, decompose
from accountable_ope.programs.constraint import Constraint, Role
from accountable_ope.validation import BoolArray, FloatArray

ScalarKernel = Callable[[FloatArray, FloatArray], float]


# Kernels as scalar functions of two points.


def gaussian(bandwidth: float | list[float]) -> ScalarKernel:
    return lambda x, y: math.exp(-sum(((a - b) / h) ** 2 for a, b, h in zip(x, y, _per_column(bandwidth, x), strict=True)))


def laplace(bandwidth: float | list[float]) -> ScalarKernel:
    return lambda x, y: math.exp(-sum(abs(a - b) / h for a, b, h in zip(x, y, _per_column(bandwidth, x), strict=True)))


def tabular() -> ScalarKernel:
    return lambda x, y: 1.0 if all(a == b for a, b in zip(x, y, strict=True)) else 0.0


def product(of_state: ScalarKernel, of_action: ScalarKernel, state_dimension: int) -> ScalarKernel:
    d = state_dimension
    return lambda x, y: of_state(x[:d], y[:d]) * of_action(x[d:], y[d:])


def _per_column(bandwidth: float | list[float], x: FloatArray) -> list[float]:
    return bandwidth if isinstance(bandwidth, list) else [bandwidth] * len(x)


# Statistics by double loops.


def v_statistic(residuals: FloatArray, points: FloatArray, kernel: ScalarKernel) -> float:
    n = len(points)
    return math.fsum(residuals[i] * kernel(points[i], points[j]) * residuals[j] for i in range(n) for j in range(n)) / n**2


def u_statistic(residuals: FloatArray, points: FloatArray, kernel: ScalarKernel) -> float:
    n = len(points)
    pairs = [residuals[i] * kernel(points[i], points[j]) * residuals[j] for i in range(n) for j in range(n) if i != j]
    return math.fsum(pairs) / (n * (n - 1))


def kernel_matrix(points: FloatArray, kernel: ScalarKernel) -> FloatArray:
    n = len(points)
    K = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            K[i, j] = kernel(points[i], points[j])
    return K


def pair_gram(columns: FloatArray, points: FloatArray, kernel: ScalarKernel) -> FloatArray:
    n, k = columns.shape
    total = np.zeros((k, k))
    for i in range(n):
        for j in range(n):
            total += kernel(points[i], points[j]) * np.outer(columns[i], columns[j])
    return total


def diag_gram(columns: FloatArray, points: FloatArray, kernel: ScalarKernel) -> FloatArray:
    k = columns.shape[1]
    total = np.zeros((k, k))
    for i in range(len(points)):
        total += kernel(points[i], points[i]) * np.outer(columns[i], columns[i])
    return total


# The linear system of Bellman residuals, row by row and action by action.


@dataclass(frozen=True, eq=False)
class ExplicitSystem:
    Z: FloatArray
    v: FloatArray
    c0: FloatArray


def explicit_system(
    data: Transitions,
    starts: StartStates,
    probabilities: Callable[[FloatArray], FloatArray],
    vectors: FloatArray,
    feature: Callable[[FloatArray], FloatArray],
    discount: float,
) -> ExplicitSystem:
    """Z, v, c0 of one policy over the action vectors; `probabilities` and `feature` take one state, one point (s, a)."""

    def expected(state: FloatArray) -> FloatArray:
        chances = probabilities(state)
        return sum(chances[a] * feature(np.concatenate([state, vectors[a]])) for a in range(len(vectors)))

    Z, v = [], []
    for i in range(len(data)):
        here = feature(np.concatenate([data.states[i], vectors[data.actions[i]]]))
        after = np.zeros(len(here)) if data.terminated[i] else expected(data.next_states[i])
        Z.append(here - discount * after)
        v.append(data.rewards[i])
    c0 = sum(weight * expected(state) for state, weight in zip(starts.states, starts.weights, strict=True))
    return ExplicitSystem(np.array(Z), np.array(v), c0)


# The small programs.


@dataclass(frozen=True, eq=False)
class Sphere:
    """||B theta - b||^2 + extra <= limit."""

    B: FloatArray
    b: FloatArray
    extra: float
    limit: float

    def value(self, theta: FloatArray) -> FloatArray:
        """One value per row of `theta`."""
        return ((np.atleast_2d(theta) @ self.B.T - self.b) ** 2).sum(axis=1) + self.extra

    def quadratic(self) -> Quadratic:
        return Quadratic(self.B.T @ self.B, self.B.T @ self.b, float(self.b @ self.b) + self.extra)

    def cone(self, theta: cp.Expression) -> cp.Constraint:
        """The same constraint with limit one."""
        radius = math.sqrt(self.limit - self.extra)
        return cp.norm((self.B / radius) @ theta - self.b / radius) <= 1


@dataclass(frozen=True, eq=False)
class Program:
    """max c'theta over {loss} and {||theta_penalized|| <= norm_bound} and {box}; the last two are optional.

    inside: a point of the set, where one is known.
    """

    c: FloatArray
    loss: Sphere
    penalized: BoolArray
    norm_bound: float | None
    box: Sphere | None = None
    inside: FloatArray | None = None

    @property
    def dimension(self) -> int:
        return len(self.c)

    @property
    def unit(self) -> float:
        """The length in which theta is measured."""
        if self.norm_bound is not None:
            return self.norm_bound
        center = np.linalg.lstsq(self.loss.B, self.loss.b)[0]
        return float(np.linalg.norm(center)) or 1.0

    @property
    def extent(self) -> float:
        """||c|| R, the size of an objective."""
        return float(np.linalg.norm(self.c)) * self.unit

    def excess(self, theta: FloatArray) -> FloatArray:
        """The largest constraint value over its limit, less one, for every row: not positive inside the set."""
        theta = np.atleast_2d(theta)
        found = [self.loss.value(theta) / self.loss.limit - 1]
        if self.norm_bound is not None:
            found.append((theta[:, self.penalized] ** 2).sum(axis=1) / self.norm_bound**2 - 1)
        if self.box is not None:
            found.append(self.box.value(theta) / self.box.limit - 1)
        return np.max(found, axis=0)

    def feasible_set(self) -> FeasibleSet:
        """The same set as the package has it."""
        box = None if self.box is None else Constraint(Role.BOX, self.box.quadratic(), self.box.limit)
        return FeasibleSet(decompose(self.loss.quadratic(), self.penalized), self.loss.limit, self.norm_bound, box)

    def turned(self) -> Program:
        return replace(self, c=-self.c)

    def points_inside(self, count: int, generator: np.random.Generator) -> FloatArray:
        """Random feasible points: from the known one along random directions, up to the border and anywhere before it."""
        start = self.inside
        directions = generator.normal(size=(count, self.dimension))
        directions[: count // 4] += 3 * self.c / np.linalg.norm(self.c)
        directions *= 3 * self.unit / np.linalg.norm(directions, axis=1, keepdims=True)
        low, high = np.zeros(count), np.ones(count)
        for _ in range(40):
            middle = 0.5 * (low + high)
            inside = self.excess(start + middle[:, None] * directions) <= 0
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        share = np.where(np.arange(count) % 2 == 0, low, low * generator.uniform(size=count))
        return start + share[:, None] * directions


TOLERANCES = (1e-11, 1e-10, 1e-9, 1e-8)
"""Clarabel stalls at the first of these on many programs; the answer is that of the first one it reaches."""


@dataclass(frozen=True, eq=False)
class ClarabelAnswer:
    status: str
    value: float
    theta: FloatArray | None

    @property
    def solved(self) -> bool:
        return self.status == cp.OPTIMAL


def clarabel_maximum(program: Program) -> ClarabelAnswer:
    """The largest c'theta by CVXPY and Clarabel, every limit scaled to one and theta measured in `unit`."""
    y = cp.Variable(program.dimension)
    length = float(np.linalg.norm(program.c))
    answer = _solve(cp.Maximize((program.c / length) @ y), _cones(program, y))
    return replace(answer, value=answer.value * length * program.unit, theta=_rescaled(answer.theta, program.unit))


def clarabel_least_loss(program: Program) -> float:
    """min ||B theta - b||^2 + extra over ball and box."""
    y = cp.Variable(program.dimension)
    size = float(np.linalg.norm(program.loss.b))
    root = cp.norm((program.loss.B * program.unit / size) @ y - program.loss.b / size)
    answer = _solve(cp.Minimize(root), _cones(program, y)[1:])
    return (answer.value * size) ** 2 + program.loss.extra


def clarabel_least_norm(program: Program) -> ClarabelAnswer:
    """The least norm over the penalized coordinates with loss <= limit."""
    y = cp.Variable(program.dimension)
    mask = program.penalized.astype(float)
    answer = _solve(cp.Minimize(cp.norm(cp.multiply(mask, y))), _cones(program, y)[:1])
    return replace(answer, value=answer.value * program.unit, theta=_rescaled(answer.theta, program.unit))


def _cones(program: Program, y: cp.Variable) -> list[cp.Constraint]:
    found = [program.loss.cone(program.unit * y)]
    if program.norm_bound is not None:
        found.append(cp.norm(y[np.flatnonzero(program.penalized)]) <= 1)
    if program.box is not None:
        found.append(program.box.cone(program.unit * y))
    return found


def _solve(objective: cp.Maximize | cp.Minimize, constraints: list[cp.Constraint]) -> ClarabelAnswer:
    problem = cp.Problem(objective, constraints)
    for tolerance in TOLERANCES:
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        settings = {prefix + name: tolerance for prefix in ("", "reduced_") for name in names}
        try:
            problem.solve(solver=cp.CLARABEL, max_iter=200, **settings)
        except cp.SolverError:
            continue
        if problem.status in (cp.OPTIMAL, cp.INFEASIBLE, cp.UNBOUNDED):
            return ClarabelAnswer(problem.status, float(problem.value), problem.variables()[0].value)
    return ClarabelAnswer("failed", math.nan, None)


def _rescaled(theta: FloatArray | None, unit: float) -> FloatArray | None:
    return None if theta is None else theta * unit


# Random programs by kind.

KINDS = (
    "generic",
    "rank-deficient",
    "singular",
    "inactive ball",
    "inactive ellipsoid",
    "one coordinate",
    "small rewards",
    "large rewards",
    "unpenalized constant",
    "no ball",
    "active box",
    "inactive box",
    "box without ball",
    "kernel",
)


def random_program(kind: str, seed: int) -> Program:
    """A program whose set has interior points; the kind says what is special about it."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    if kind == "kernel":
        return _kernel_program(rng)
    m = 1 if kind == "one coordinate" else int(rng.integers(2, 25))
    n = int(rng.integers(1, m)) if kind == "rank-deficient" else m + int(rng.integers(0, 2 * m + 1))
    B = with_spectrum(rng, n, m, spread=float(rng.uniform(0, 3)))
    if kind == "singular":
        B[:, : m // 2] = B[:, m // 2 : 2 * (m // 2)] * rng.normal(size=m // 2)
        B[:, -1] = 0.0
    free = kind in ("unpenalized constant", "active box", "inactive box", "box without ball") and m > 1
    penalized = np.ones(m, dtype=bool)
    if free:
        penalized[-1] = False
        B[:, -1] = 0.1 * rng.uniform(0.5, 1) / math.sqrt(n)
    true = rng.normal(size=m) / math.sqrt(m)
    true[~penalized] *= 5
    b = B @ true + 0.1 * float(np.linalg.norm(B @ true)) * rng.normal(size=n) / math.sqrt(n)
    size = float(np.linalg.norm(true[penalized]))
    R = size * float(rng.uniform(0.5, 3))
    inside = true * np.where(penalized, min(1.0, 0.9 * R / size), 1.0)
    loss = Sphere(B, b, extra=0.01 * float(b @ b) * float(rng.uniform()), limit=math.inf)
    reached = float(loss.value(inside)[0])
    loss = replace(loss, limit=reached * (1 + math.exp(rng.normal(-1, 1.5))))
    norm_bound: float | None = R
    if kind == "inactive ball":
        norm_bound = 1e4 * size
    if kind == "inactive ellipsoid":
        loss = replace(loss, limit=loss.limit + 1e3 * float((np.linalg.norm(B, 2) * R + np.linalg.norm(b)) ** 2))
    if kind in ("no ball", "box without ball"):
        norm_bound = None
    box = None
    if "box" in kind:
        D = np.column_stack([rng.normal(size=(3 * m, m - free)), np.ones((3 * m, int(free)))]) / math.sqrt(3 * m)
        middle = float(rng.normal()) + (float(true[-1]) if free else 0.0)
        box = Sphere(D, np.full(3 * m, middle / math.sqrt(3 * m)), 0.0, math.inf)
        room = 1e3 if kind == "inactive box" else float(rng.uniform(1.02, 1.5))
        box = replace(box, limit=float(box.value(inside)[0]) * room + (1e3 * R**2 if kind == "inactive box" else 0.0))
    program = Program(rng.normal(size=m), loss, penalized, norm_bound, box, inside)
    scale = {"small rewards": 1e-6, "large rewards": 1e6}.get(kind, 1.0)
    return program if scale == 1 else with_rewards_times(program, scale)


def with_rewards_times(program: Program, scale: float) -> Program:
    """The same problem in another currency: targets and norm bound times `scale`, limits times its square."""

    def scaled(sphere: Sphere) -> Sphere:
        return Sphere(sphere.B, sphere.b * scale, sphere.extra * scale**2, sphere.limit * scale**2)

    return replace(
        program,
        loss=scaled(program.loss),
        norm_bound=None if program.norm_bound is None else program.norm_bound * scale,
        box=None if program.box is None else scaled(program.box),
        inside=None if program.inside is None else program.inside * scale,
    )


def with_spectrum(rng: np.random.Generator, n: int, m: int, spread: float) -> FloatArray:
    """(n, m) with singular values from 1 down to 10^-spread."""
    r = min(n, m)
    left, right = np.linalg.qr(rng.normal(size=(n, r)))[0], np.linalg.qr(rng.normal(size=(m, r)))[0]
    return (left * 10 ** (-spread * np.sort(rng.uniform(size=r)))) @ right.T


def _kernel_program(rng: np.random.Generator) -> Program:
    """A real one: cosine features of a smooth Q, a Gaussian kernel and an unpenalized constant, from n = 40..120 transitions."""
    n, m = int(rng.integers(40, 120)), int(rng.integers(3, 12))
    x, after = rng.uniform(-1, 1, size=(n, 2)), rng.uniform(-1, 1, size=(n, 2))
    w, phase = rng.normal(size=(m, 2)), rng.uniform(0, 2 * np.pi, m)
    Z = np.column_stack(
        [np.cos(x @ w.T + phase) - 0.9 * np.cos(after @ w.T + phase), np.full(n, 0.1 * math.sqrt(m))]
    ) / math.sqrt(m)
    true = rng.normal(size=m + 1)
    v = Z @ true + 0.1 * rng.normal(size=n)
    K = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 0.5**2)
    root = np.linalg.cholesky(K + 1e-12 * np.eye(n)).T
    loss = Sphere(root @ Z / n, root @ v / n, 0.0, math.inf)
    reached = float(loss.value(true)[0])
    penalized = np.arange(m + 1) < m
    c = np.append(np.cos(rng.uniform(-1, 1, size=(5, 2)) @ w.T + phase).mean(axis=0) / math.sqrt(m), 1.0)
    norm_bound = float(np.linalg.norm(true[:m])) * float(rng.uniform(1.1, 3))
    loss = replace(loss, limit=reached * float(rng.uniform(1.1, 3)))
    return Program(c, loss, penalized, norm_bound, inside=true)
