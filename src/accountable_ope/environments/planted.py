"""A continuous-state MDP with a planted Q: the class contains the truth, and every expectation is a finite sum."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arguments import checked
from ..classes.features import cosine_spread, scaled_cosines
from ..errors import InvalidInput
from ..problem.policy import DiscretePolicy, state_action_points
from ..problem.step_knowledge import StepKnowledge
from ..problem.transitions import StartStates, Transitions
from ..validation import FloatArray, IntArray, frozen, number, positive, whole
from .control_task import Step
from .draws import draw_indices

_ACTIONS: FloatArray = frozen(np.array([[-1.0], [0.0], [1.0]]))


@checked
@dataclass(frozen=True, eq=False)
class PlantedFeatures:
    """phi_k(x) = cos(w_k'x + b_k) / sqrt(m): the cosines that Q is planted in, x = (s, a).

    Parameters
    ----------
    frequencies : array (m, 3)
        w_k.
    phases : array (m,)
        b_k.
    intercept : bool
        Whether the class holds a constant too.

    Examples
    --------
    >>> from accountable_ope.environments import PlantedMDP
    >>> PlantedMDP().features()
    PlantedFeatures(dimension=10, intercept=True)
    """

    frequencies: FloatArray
    phases: FloatArray
    intercept: bool = True
    for_threads: ClassVar[bool] = True

    @property
    def dimension(self) -> int:
        return len(self.phases)

    @property
    def diameter(self) -> float:
        """Every cosine changes by at most 2."""
        return 2.0

    def spread(self, half_widths: FloatArray) -> float:
        return cosine_spread(self.frequencies, half_widths)

    def __repr__(self) -> str:
        return f"PlantedFeatures(dimension={self.dimension}, intercept={self.intercept})"

    def __call__(self, points: FloatArray) -> FloatArray:
        _refuse_other_points(points, self.frequencies)
        return scaled_cosines(points, self.frequencies, self.phases)


@checked
@dataclass(frozen=True, eq=False, init=False)
class PlantedMDP:
    """Q(x) = sum_k theta_k cos(w_k'x + b_k) + theta_{m+1} is chosen first, and the reward is what makes it true.

        E[r | s, a] = Q(s, a) - discount E_{s'} sum_a' pi(a' | s') Q(s', a').

    States are 2-d, actions are {-1, 0, 1}, s' = linear map of (s, a) + noise with 4 x 4 equally likely atoms. Q is scaled so
    that mean rewards lie in [0, 1] with a margin at 6000 random points of [-2.5, 2.5]^2; `sample` refuses to leave that range.

    Parameters
    ----------
    seed : int
        A seed names one MDP for good.
    features : int
        Number m of cosines, w_k ~ N(0, I / bandwidth^2), b_k ~ U[0, 2 pi].
    discount : float
        In [0, 1).
    noise : float
        The atoms of each coordinate are noise * (-1.5, -0.5, 0.5, 1.5).
    bandwidth : float
    bernoulli : bool
        Whether rewards are coins with these means, instead of the means themselves.
    behavior_temperature : float
        The higher, the more random is the behavior policy.

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1)
    >>> mdp
    PlantedMDP(seed=1, features=10, discount=0.95, value=9.216)
    >>> mdp.sample(np.random.default_rng(0), trajectories=3, length=5)
    Transitions(15 rows, 3 episodes, 2-d states, 0 terminated)
    """

    seed: int
    discount: float
    noise: float
    bandwidth: float
    bernoulli: bool
    behavior_temperature: float
    frequencies: FloatArray
    phases: FloatArray
    theta: FloatArray
    start_states: FloatArray
    value: float

    def __init__(
        self,
        seed: int = 1,
        features: int = 10,
        discount: float = 0.95,
        noise: float = 0.15,
        bandwidth: float = 1.0,
        bernoulli: bool = False,
        behavior_temperature: float = 1.0,
    ) -> None:
        whole(features, "features", least=1)
        if not 0 <= number(discount, "discount") < 1:
            raise InvalidInput(f"`discount` must be in [0, 1). Got {discount!r}.")
        if number(noise, "noise") < 0:
            raise InvalidInput(f"`noise` must not be negative. Got {noise!r}.")
        if not isinstance(bernoulli, (bool, np.bool_)):
            raise InvalidInput(f"`bernoulli` must be True or False. Got {bernoulli!r}.")
        object.__setattr__(self, "seed", whole(seed, "seed", least=0))
        object.__setattr__(self, "discount", float(discount))
        object.__setattr__(self, "noise", float(noise))
        object.__setattr__(self, "bandwidth", positive(bandwidth, "bandwidth"))
        object.__setattr__(self, "bernoulli", bool(bernoulli))
        object.__setattr__(self, "behavior_temperature", positive(behavior_temperature, "behavior_temperature"))

        # The order of the draws is part of the definition: a seed names one MDP for good.
        rng = np.random.default_rng(seed)
        object.__setattr__(self, "frequencies", frozen(rng.normal(size=(features, 3)) / bandwidth))
        object.__setattr__(self, "phases", frozen(rng.uniform(0, 2 * np.pi, features)))
        theta = rng.normal(size=features + 1)
        theta[-1] = 0.0
        object.__setattr__(self, "start_states", frozen(rng.uniform(-0.3, 0.3, size=(50, 2))))
        states, actions = rng.uniform(-2.5, 2.5, size=(6000, 2)), rng.integers(0, 3, 6000)

        # The mean reward is linear in Q, and a constant c in Q adds (1 - discount) c to it.
        object.__setattr__(self, "theta", frozen(theta))
        reward = self.mean_reward(states, actions)
        low, high = reward.min(), reward.max()
        margin = 0.05 * (high - low)
        low, high = low - margin, high + margin
        theta = theta / (high - low)
        theta[-1] = -low / (high - low) / (1 - discount)
        object.__setattr__(self, "theta", frozen(theta))
        object.__setattr__(self, "value", float(self.state_values(self.start_states).mean()))

    def __repr__(self) -> str:
        return f"PlantedMDP(seed={self.seed}, features={len(self.phases)}, discount={self.discount}, value={self.value:.4g})"

    @property
    def starts(self) -> StartStates:
        """The 50 start states of the target policy, as the exact start distribution."""
        return StartStates(self.start_states, exact=True)

    @property
    def policy(self) -> DiscretePolicy:
        """The target policy: pushes against the first coordinate."""
        return DiscretePolicy(_target_probabilities, _ACTIONS)

    @property
    def behavior(self) -> DiscretePolicy:
        """The policy that `sample` follows: the target, far less decided."""
        return DiscretePolicy(self._behavior_probabilities, _ACTIONS)

    @property
    def norm(self) -> float:
        """||Q||_H without the constant, in the coordinates of `features()`: sqrt(m) ||(theta_1, ..., theta_m)||."""
        return float(np.sqrt(len(self.phases)) * np.linalg.norm(self.theta[:-1]))

    def step_knowledge(self) -> StepKnowledge:
        """How far a step can go: the mean of the next state, and the outermost atoms of the noise around it."""
        return StepKnowledge(reach=self._reach)

    def features(self, intercept: bool = True) -> PlantedFeatures:
        """The class that holds Q (with the intercept)."""
        return PlantedFeatures(self.frequencies, self.phases, intercept)

    def q(self, states: FloatArray, actions: IntArray | FloatArray) -> FloatArray:
        """Q of the target policy; actions are indices (n,) or vectors (n, 1)."""
        q: FloatArray = self._basis(state_action_points(states, actions, self.policy)) @ self.theta
        return q

    def state_values(self, states: FloatArray) -> FloatArray:
        """V(s) = sum_a pi(a | s) Q(s, a)."""
        probabilities = _target_probabilities(states)
        basis = np.zeros((len(states), len(self.theta)))
        for k, action in enumerate(_ACTIONS):
            here = np.broadcast_to(action, (len(states), 1))
            basis += probabilities[:, [k]] * self._basis(np.concatenate([states, here], axis=1))
        values: FloatArray = basis @ self.theta
        return values

    def mean_reward(self, states: FloatArray, actions: IntArray) -> FloatArray:
        """E[r | s, a] = Q(s, a) - discount * mean of V over the noise atoms; actions are indices."""
        center = _mean_next(states, actions)
        atoms = self._atoms()
        onward = np.zeros(len(states))
        for atom in atoms:
            onward += self.state_values(center + atom)
        return self.q(states, actions) - self.discount * onward / len(atoms)

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        """One step from every state, with actions as indices; never terminated."""
        rewards, atoms = self.mean_reward(states, actions), self._atoms()
        self._refuse_reward(states, actions, rewards)
        if self.bernoulli:
            rewards = (rng.uniform(size=len(rewards)) < rewards).astype(np.float64)
        after = _mean_next(states, actions) + atoms[rng.integers(0, len(atoms), len(states))]
        return Step(after, rewards, np.zeros(len(states), dtype=bool))

    def sample(self, rng: np.random.Generator, trajectories: int = 20, length: int = 50) -> Transitions:
        """Trajectories of the behavior policy, one after the other, never terminated.

        They start uniformly on [-1, 1]^2, which is wider than `starts`: their first states are no sample of the start states.
        """
        whole(trajectories, "trajectories", least=1)
        whole(length, "length", least=1)
        atoms = self._atoms()
        states, next_states = np.empty((trajectories, length, 2)), np.empty((trajectories, length, 2))
        actions, coins = np.empty((trajectories, length), dtype=np.int64), np.zeros((trajectories, length))
        state: FloatArray = rng.uniform(-1, 1, size=(trajectories, 2))
        for t in range(length):
            action = draw_indices(self._behavior_probabilities(state), rng)
            if self.bernoulli:
                coins[:, t] = rng.uniform(size=trajectories)
            after = _mean_next(state, action) + atoms[rng.integers(0, len(atoms), trajectories)]
            states[:, t], actions[:, t], next_states[:, t] = state, action, after
            state = after
        flat_states, flat_actions = states.reshape(-1, 2), actions.reshape(-1)
        rewards = self.mean_reward(flat_states, flat_actions)
        self._refuse_reward(flat_states, flat_actions, rewards)
        if self.bernoulli:
            rewards = (coins.reshape(-1) < rewards).astype(np.float64)
        return Transitions(
            flat_states,
            flat_actions,
            rewards,
            next_states.reshape(-1, 2),
            episodes=np.repeat(np.arange(trajectories), length),
        )

    def _basis(self, points: FloatArray) -> FloatArray:
        """The cosines and the constant, as columns."""
        return np.concatenate([_cosines(points, self.frequencies, self.phases), np.ones((len(points), 1))], axis=1)

    def _reach(self, states: FloatArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        center = _mean_next(states, actions)
        return center - 1.5 * self.noise, center + 1.5 * self.noise

    def _atoms(self) -> FloatArray:
        atoms = np.array([-1.5, -0.5, 0.5, 1.5]) * self.noise
        return np.array(list(itertools.product(atoms, atoms)))

    def _behavior_probabilities(self, states: FloatArray) -> FloatArray:
        return _push_back(states, 0.4, self.behavior_temperature)

    def _refuse_reward(self, states: FloatArray, actions: IntArray, rewards: FloatArray) -> None:
        wrong = (rewards < 0) | (rewards > 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidInput(
                f"{self!r} pays a mean reward of {rewards[row]:.6g}, outside [0, 1], at state {states[row].tolist()} and action "
                f"index {int(actions[row])}: choose another seed, less noise or shorter trajectories."
            )


def _refuse_other_points(points: FloatArray, frequencies: FloatArray) -> None:
    if points.shape[1] != frequencies.shape[1]:
        raise InvalidInput(f"Points (s, a) of the planted problem have {frequencies.shape[1]} columns. Got {points.shape[1]}.")


def _cosines(points: FloatArray, frequencies: FloatArray, phases: FloatArray) -> FloatArray:
    """Those of the rewards: by the mathematics library, so that the numbers that a seed names do not depend on the processor."""
    _refuse_other_points(points, frequencies)
    waves: FloatArray = np.cos(points @ frequencies.T + phases)
    return waves


def _push_back(states: FloatArray, strength: float, temperature: float) -> FloatArray:
    """Softmax of (1.5 s_1, 0, -1.5 s_1) * strength / temperature over the actions -1, 0, 1."""
    from scipy.special import softmax

    first = 1.5 * states[:, 0]
    scores = np.stack([first, np.zeros(len(states)), -first], axis=1) * strength / temperature
    return np.asarray(softmax(scores, axis=1))


def _target_probabilities(states: FloatArray) -> FloatArray:
    return _push_back(states, 2.0, 1.0)


def _mean_next(states: FloatArray, actions: IntArray) -> FloatArray:
    """E[s' | s, a], a stable linear map."""
    push = _ACTIONS[actions, 0]
    first, second = states[:, 0], states[:, 1]
    return np.stack([0.9 * first + 0.3 * second, 0.8 * second + 0.35 * push - 0.1 * first], axis=1)
