"""Linear dynamics, quadratic reward, continuous actions: Q is a quadratic polynomial in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import DeterministicPolicy, SampledPolicy
from ..problem.step_knowledge import StepKnowledge
from ..problem.transitions import StartStates, Transitions
from ..validation import FloatArray, frozen, matrix, number, whole


@checked
@dataclass(frozen=True)
class QuadraticFeatures:
    """The monomials x_i and x_i x_j, i <= j; the constant is the intercept.

    Parameters
    ----------
    variables : int
        How many columns the points (s, a) have.
    intercept : bool
        Whether the class holds a constant too.

    Raises
    ------
    InvalidInput
        Where `variables` is not a whole number of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import QuadraticFeatures
    >>> QuadraticFeatures(2)(np.array([[2.0, 3.0]]))
    array([[2., 3., 4., 6., 9.]])
    """

    variables: int
    intercept: bool = True

    def __post_init__(self) -> None:
        whole(self.variables, "variables", least=1)

    @property
    def dimension(self) -> int:
        return self.variables + self.variables * (self.variables + 1) // 2

    def __call__(self, points: FloatArray) -> FloatArray:
        if points.shape[1] != self.variables:
            raise InvalidInput(f"QuadraticFeatures is for {self.variables}-d points (s, a). Got {points.shape[1]}-d ones.")
        first, second = np.triu_indices(self.variables)
        return np.concatenate([points, points[:, first] * points[:, second]], axis=1)


@checked
@dataclass(frozen=True, eq=False, init=False)
class LinearQuadratic:
    """s' = A s + B a + w, r = 1 - s'M s - a'R a, target policy a = K s + e, behavior a = K_b s + e_b.

    w, e and e_b are independent and uniform on cubes of half width `noise`, `action_noise` and `behavior_noise`.

    Parameters
    ----------
    dynamics : array (d, d)
        A.
    input_map : array (d, k)
        B.
    state_cost : array (d, d)
        M.
    action_cost : array (k, k)
        R.
    gain, behavior_gain : array (k, d)
        K and K_b.
    start_states : array (n, d)
        The start distribution of both policies is uniform on these rows, all in [-1, 1]^d.
    discount : float
        In [0, 1).
    noise, action_noise, behavior_noise : float
        Half widths of the cubes.

    Raises
    ------
    InvalidInput
        Where shapes disagree or one of the conditions below does not hold.

    Notes
    -----
    States stay in [-1, 1]^d, actions in [-1, 1]^k and rewards in [0, 1], so nothing is ever clipped and Q is exact. Proof: three
    conditions are checked at construction.
      (1) sum_j |K_ij| + action_noise <= 1 for every row i, and the same for K_b: if |s_j| <= 1 for all j, then |a_i| <= 1.
      (2) sum_j |A_ij| + sum_j |B_ij| + noise <= 1 for every row i: with (1), |s_j| <= 1 for all j gives |s'_i| <= 1. The start
          states satisfy it, so by induction every state does.
      (3) M and R are positive semidefinite with sum_ij |M_ij| + sum_ij |R_ij| <= 1: on the box
          0 <= s'M s + a'R a <= sum_ij |M_ij| + sum_ij |R_ij| <= 1, so r is in [0, 1].

    V(s) = s'P s + c. A cube of half width h has mean 0 and covariance (h^2 / 3) I, so no linear term appears, and
      Q(s, a) = 1 - s'M s - a'R a + discount ((A s + B a)'P (A s + B a) + noise^2 / 3 tr P + c),
      P = -M - K'R K + discount (A + B K)'P (A + B K),
      (1 - discount) c = 1 + discount noise^2 / 3 tr P + action_noise^2 / 3 tr(discount B'P B - R).

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import scalar_regulator
    >>> problem = scalar_regulator()
    >>> problem.q(np.array([[0.5]]), np.array([[0.1]])).round(3)
    array([19.479])
    """

    dynamics: FloatArray
    input_map: FloatArray
    state_cost: FloatArray
    action_cost: FloatArray
    gain: FloatArray
    behavior_gain: FloatArray
    start_states: FloatArray
    discount: float
    noise: float
    action_noise: float
    behavior_noise: float
    value_matrix: FloatArray
    value_constant: float

    def __init__(
        self,
        dynamics: ArrayLike,
        input_map: ArrayLike,
        state_cost: ArrayLike,
        action_cost: ArrayLike,
        gain: ArrayLike,
        behavior_gain: ArrayLike,
        start_states: ArrayLike,
        discount: float,
        noise: float,
        action_noise: float,
        behavior_noise: float,
    ) -> None:
        d, k = len(matrix(dynamics, "dynamics")), len(matrix(action_cost, "action_cost"))
        a, b = _shaped(dynamics, "dynamics", (d, d)), _shaped(input_map, "input_map", (d, k))
        m, r = _cost(state_cost, "state_cost", d), _cost(action_cost, "action_cost", k)
        target, behavior = _shaped(gain, "gain", (k, d)), _shaped(behavior_gain, "behavior_gain", (k, d))
        starts = matrix(start_states, "start_states")
        if len(starts) == 0 or starts.shape[1] != d or np.abs(starts).max() > 1:
            raise InvalidInput(f"`start_states` must be rows of [-1, 1]^{d}. Got shape {starts.shape}.")
        if not 0 <= number(discount, "discount") < 1:
            raise InvalidInput(f"`discount` must be in [0, 1). Got {discount!r}.")
        for half_width, name in ((noise, "noise"), (action_noise, "action_noise"), (behavior_noise, "behavior_noise")):
            if number(half_width, name) < 0:
                raise InvalidInput(f"`{name}` must not be negative. Got {half_width!r}.")
        _within_one(_row_sums(target) + action_noise, "Row sums of |gain| plus `action_noise`", "actions")
        _within_one(_row_sums(behavior) + behavior_noise, "Row sums of |behavior_gain| plus `behavior_noise`", "actions")
        _within_one(_row_sums(a) + _row_sums(b) + noise, "Row sums of |dynamics| and |input_map| plus `noise`", "states")
        _within_one(np.abs(m).sum(keepdims=True) + np.abs(r).sum(), "Sums of |state_cost| and |action_cost|", "costs")

        closed = a + b @ target
        # P - discount C'P C = -M - K'R K, written for the entries of P, row by row: vec(C'P C) = (C' kron C') vec(P).
        system = np.eye(d * d) - discount * np.kron(closed.T, closed.T)
        p = np.linalg.solve(system, (-m - target.T @ r @ target).reshape(-1)).reshape(d, d)
        from_noise = discount * noise**2 / 3 * np.trace(p) + action_noise**2 / 3 * np.trace(discount * b.T @ p @ b - r)
        object.__setattr__(self, "dynamics", frozen(a))
        object.__setattr__(self, "input_map", frozen(b))
        object.__setattr__(self, "state_cost", frozen(m))
        object.__setattr__(self, "action_cost", frozen(r))
        object.__setattr__(self, "gain", frozen(target))
        object.__setattr__(self, "behavior_gain", frozen(behavior))
        object.__setattr__(self, "start_states", frozen(starts))
        object.__setattr__(self, "discount", float(discount))
        object.__setattr__(self, "noise", float(noise))
        object.__setattr__(self, "action_noise", float(action_noise))
        object.__setattr__(self, "behavior_noise", float(behavior_noise))
        object.__setattr__(self, "value_matrix", frozen(p))
        object.__setattr__(self, "value_constant", float((1 + from_noise) / (1 - discount)))

    def __repr__(self) -> str:
        d, k = self.input_map.shape
        return f"LinearQuadratic({d}-d states, {k}-d actions, discount={self.discount}, value={self.value:.4g})"

    @property
    def value(self) -> float:
        """The mean of V over the start states."""
        return float(self.state_values(self.start_states).mean())

    @property
    def starts(self) -> StartStates:
        """The start distribution, exactly."""
        return StartStates(self.start_states, exact=True)

    @property
    def state_box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(lows, highs) of the box that no state leaves."""
        d = len(self.dynamics)
        return ((-1.0,) * d, (1.0,) * d)

    @property
    def policy(self) -> SampledPolicy | DeterministicPolicy:
        """The target policy: sampled, or deterministic when there is no action noise."""
        return DeterministicPolicy(self._mean_action) if self.action_noise == 0 else SampledPolicy(self._noisy_action)

    @property
    def norm(self) -> float:
        """||Q||_H without the constant, in the coordinates of `features()`."""
        _, curvature = self._polynomial()
        # x_i x_j, i < j, stands for two equal entries of the symmetric matrix; there are no linear terms.
        coefficients = np.triu(curvature) + np.triu(curvature, 1)
        return float(np.linalg.norm(coefficients))

    def step_knowledge(self) -> StepKnowledge:
        """How far a step can go: A s + B a, and the cube of the noise around it."""
        return StepKnowledge(reach=self._reach)

    def features(self, intercept: bool = True) -> QuadraticFeatures:
        """Monomials of (s, a) up to degree 2: the class that holds Q (with the intercept)."""
        return QuadraticFeatures(sum(self.input_map.shape), intercept)

    def q(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """Q of the target policy at states (n, d) and actions (n, k)."""
        constant, curvature = self._polynomial()
        return constant + _form(curvature, np.concatenate([states, actions], axis=1))

    def state_values(self, states: FloatArray) -> FloatArray:
        """V(s) = s'P s + c."""
        return self.value_constant + _form(self.value_matrix, states)

    def reward(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """r(s, a) = 1 - s'M s - a'R a."""
        return 1 - _form(self.state_cost, states) - _form(self.action_cost, actions)

    def sample(self, rng: np.random.Generator, trajectories: int = 20, length: int = 50) -> Transitions:
        """Trajectories of the behavior policy from random start states, one after the other, never terminated."""
        whole(trajectories, "trajectories", least=1)
        whole(length, "length", least=1)
        d, k = self.input_map.shape
        states, next_states = np.empty((trajectories, length, d)), np.empty((trajectories, length, d))
        actions = np.empty((trajectories, length, k))
        state: FloatArray = self.start_states[rng.integers(len(self.start_states), size=trajectories)]
        for t in range(length):
            action = state @ self.behavior_gain.T + rng.uniform(-self.behavior_noise, self.behavior_noise, size=(trajectories, k))
            drift = state @ self.dynamics.T + action @ self.input_map.T
            after = drift + rng.uniform(-self.noise, self.noise, size=(trajectories, d))
            states[:, t], actions[:, t], next_states[:, t] = state, action, after
            state = after
        s, a = states.reshape(-1, d), actions.reshape(-1, k)
        episodes = np.repeat(np.arange(trajectories), length)
        return Transitions(s, a, self.reward(s, a), next_states.reshape(-1, d), episodes=episodes)

    def _reach(self, states: FloatArray, actions: FloatArray) -> tuple[FloatArray, FloatArray]:
        drift = states @ self.dynamics.T + actions @ self.input_map.T
        farthest = self.noise + 1e-12  # products of matrices round differently for one row and for many
        return drift - farthest, drift + farthest

    def _polynomial(self) -> tuple[float, FloatArray]:
        """(c_Q, G) with Q(x) = c_Q + x'G x, x = (s, a)."""
        p, both = self.value_matrix, np.concatenate([self.dynamics, self.input_map], axis=1)
        curvature: FloatArray = self.discount * both.T @ p @ both
        d = len(self.dynamics)
        curvature[:d, :d] -= self.state_cost
        curvature[d:, d:] -= self.action_cost
        return 1 + self.discount * (self.noise**2 / 3 * float(np.trace(p)) + self.value_constant), curvature

    def _mean_action(self, states: FloatArray) -> FloatArray:
        action: FloatArray = states @ self.gain.T
        return action

    def _noisy_action(self, states: FloatArray, rng: np.random.Generator) -> FloatArray:
        spread = rng.uniform(-self.action_noise, self.action_noise, size=(len(states), len(self.gain)))
        return self._mean_action(states) + spread


@checked
def scalar_regulator(discount: float = 0.95, action_noise: float = 0.3) -> LinearQuadratic:
    """One state, one action: the target pushes toward 0, the behavior away from it.

    Parameters
    ----------
    discount : float
        In [0, 1).
    action_noise : float
        Half width of the noise of the target policy; 0 makes it deterministic.

    Returns
    -------
    LinearQuadratic

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import scalar_regulator
    >>> scalar_regulator()
    LinearQuadratic(1-d states, 1-d actions, discount=0.95, value=19.39)
    """
    return LinearQuadratic(
        dynamics=[[0.7]],
        input_map=[[0.2]],
        state_cost=[[0.6]],
        action_cost=[[0.3]],
        gain=[[-0.5]],
        behavior_gain=[[0.2]],
        start_states=np.linspace(-0.9, 0.9, 7)[:, None],
        discount=discount,
        noise=0.08,
        action_noise=action_noise,
        behavior_noise=0.75,
    )


@checked
def planar_regulator(discount: float = 0.95, action_noise: float = 0.2) -> LinearQuadratic:
    """Two states, one action that pushes the second state, which drives the first.

    Parameters
    ----------
    discount : float
        In [0, 1).
    action_noise : float
        Half width of the noise of the target policy; 0 makes it deterministic.

    Returns
    -------
    LinearQuadratic

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import planar_regulator
    >>> planar_regulator()
    LinearQuadratic(2-d states, 1-d actions, discount=0.95, value=19.62)
    """
    side = np.linspace(-0.8, 0.8, 5)
    return LinearQuadratic(
        dynamics=[[0.6, 0.25], [-0.2, 0.55]],
        input_map=[[0.0], [0.2]],
        state_cost=[[0.4, 0.05], [0.05, 0.2]],
        action_cost=[[0.2]],
        gain=[[-0.3, -0.4]],
        behavior_gain=[[0.1, -0.1]],
        start_states=np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2),
        discount=discount,
        noise=0.04,
        action_noise=action_noise,
        behavior_noise=0.7,
    )


def _form(weights: FloatArray, points: FloatArray) -> FloatArray:
    """x'W x for every row x."""
    values: FloatArray = np.einsum("ni,ij,nj->n", points, weights, points)
    return values


def _row_sums(array: FloatArray) -> FloatArray:
    sums: FloatArray = np.abs(array).sum(axis=1)
    return sums


def _shaped(values: ArrayLike, name: str, shape: tuple[int, int]) -> FloatArray:
    array = matrix(values, name)
    if array.shape != shape:
        raise InvalidInput(f"`{name}` must have shape {shape}. Got {array.shape}.")
    return array


def _cost(values: ArrayLike, name: str, size: int) -> FloatArray:
    array = _shaped(values, name, (size, size))
    if not np.array_equal(array, array.T) or np.linalg.eigvalsh(array).min() < -1e-12:
        raise InvalidInput(f"`{name}` must be symmetric and positive semidefinite.")
    return array


def _within_one(sums: FloatArray, what: str, kept: str) -> None:
    if sums.max() > 1:
        raise InvalidInput(f"{what} must be at most 1, so that {kept} stay bounded by 1. Got {sums.max():.6g}.")
