"""What happens in a Gymnasium environment as a log of this package: a wrapper that writes down every step."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import checked, shown
from ..errors import InvalidInput, MissingExtra
from ..problem.policy import Policy
from ..problem.transitions import Transitions
from ..validation import whole
from .parquet import save_transitions

if TYPE_CHECKING:
    import gymnasium

SPACES = ("Box", "Discrete", "MultiDiscrete", "MultiBinary")
"""What observations and actions may be."""


@dataclass(eq=False)
class StepLog:
    """Steps in the order in which they were taken.

    Attributes
    ----------
    states, actions, rewards, next_states, terminated, episodes : list
        An entry per step.
    probabilities : list
        With which the actions were chosen; None where that is not known.
    """

    states: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    next_states: list[Any] = field(default_factory=list)
    terminated: list[bool] = field(default_factory=list)
    episodes: list[int] = field(default_factory=list)
    probabilities: list[float | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rewards)

    def transitions(self) -> Transitions:
        """All steps so far."""
        known = [each for each in self.probabilities if each is not None]
        return Transitions(
            np.array(self.states),
            np.array(self.actions),
            self.rewards,
            np.array(self.next_states),
            self.terminated,
            self.episodes,
            known if len(known) == len(self) and known else None,
        )


def recorder(environment: gymnasium.Env[Any, Any]) -> Any:
    """A Gymnasium wrapper around an environment that writes down what happens in it.

    Whoever acts in it, an agent that learns or a function in a loop, acts as in the environment itself. `transitions()` are all
    steps so far, and `save(path)` writes them as a Parquet file. An episode that was cut off loses no step: the state after it is
    known.

    Parameters
    ----------
    environment : gymnasium.Env
        One environment, not a vector of several. Observations and actions are numbers or arrays of them, which are flattened.

    Returns
    -------
    gymnasium.Wrapper
        With `transitions()`, `save(path)`, and `chosen_with(probability)` to say before a step with which probability its action
        was chosen.

    Raises
    ------
    InvalidInput
        Where it is no such environment.
    MissingExtra
        Where Gymnasium is not installed.

    Examples
    --------
    >>> import gymnasium
    >>> from accountable_ope.io import recorder
    >>> environment = recorder(gymnasium.make("CartPole-v1"))
    >>> _ = environment.reset(seed=0)
    >>> for action in (0, 1, 1):
    ...     _ = environment.step(action)
    >>> environment.transitions()
    Transitions(3 rows, 1 episodes, 4-d states, 0 terminated)
    """
    gymnasium = _gymnasium()
    if isinstance(environment, gymnasium.vector.VectorEnv):
        raise InvalidInput("`environment` must be one environment. Got a vector of several: record each of them by itself.")
    if not isinstance(environment, gymnasium.Env):
        raise InvalidInput(f"`environment` must be a Gymnasium environment. Got {shown(environment)}.")
    for space, name in ((environment.observation_space, "observations"), (environment.action_space, "actions")):
        if type(space).__name__ not in SPACES:
            raise InvalidInput(f"`environment` must have {name} of kind {', '.join(SPACES)}. Got {type(space).__name__}.")

    class Recorder(gymnasium.Wrapper):  # type: ignore[misc, name-defined]
        """Writes down every step."""

        def __init__(self) -> None:
            super().__init__(environment)
            self._log, self._state, self._episode = StepLog(), None, -1
            self._probability: float | None = None
            self._start = int(getattr(environment.action_space, "start", 0))
            self._discrete = type(environment.action_space).__name__ == "Discrete"

        def reset(self, **arguments: Any) -> Any:
            observation, info = super().reset(**arguments)
            self._state, self._episode = _flat(observation), self._episode + 1
            return observation, info

        def step(self, action: Any) -> Any:
            if self._state is None:
                raise InvalidInput("An environment must be reset before its first step, and after the end of an episode.")
            taken = int(np.asarray(action).item()) - self._start if self._discrete else _flat(action)
            observation, reward, terminated, truncated, info = super().step(action)
            log, after = self._log, _flat(observation)
            log.states.append(self._state)
            log.actions.append(taken)
            log.rewards.append(float(reward))
            log.next_states.append(after)
            log.terminated.append(bool(terminated))
            log.episodes.append(self._episode)
            log.probabilities.append(self._probability)
            self._state, self._probability = None if terminated or truncated else after, None
            return observation, reward, terminated, truncated, info

        def chosen_with(self, probability: float) -> None:
            """Say with which probability the action of the next step was chosen."""
            self._probability = float(probability)

        def transitions(self) -> Transitions:
            """All steps so far."""
            return self._log.transitions()

        def save(self, path: str | os.PathLike[str]) -> None:
            """Write all steps so far as a Parquet file."""
            save_transitions(self.transitions(), path)

    return Recorder()


@checked
def record_episodes(
    environment: Any,
    policy: Policy | Callable[[Any], Any],
    path: str | os.PathLike[str] | None = None,
    *,
    episodes: int,
    seed: int = 0,
    longest: int = 10_000,
) -> Transitions:
    """Let a policy act in a Gymnasium environment, and log what happens.

    Parameters
    ----------
    environment : gymnasium.Env
        One environment, with observations and actions as `recorder` takes them.
    policy : Policy or callable
        A policy with a finite set of actions, whose probabilities are then logged as `behavior_probability`; or a function of an
        observation as the environment gives it that returns an action as the environment takes it.
    path : path, optional
        Where a Parquet file is written; None: nowhere.
    episodes : int
        How many.
    seed : int
        Of the environment, and of what is drawn from the probabilities.
    longest : int
        Steps after which an episode is cut off that neither ended nor was cut off by the environment.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidInput
        As `recorder`, and where the policy does not fit the environment.
    MissingExtra
        Where Gymnasium is not installed.

    Examples
    --------
    >>> import gymnasium
    >>> from accountable_ope.io import record_episodes
    >>> data = record_episodes(gymnasium.make("CartPole-v1"), lambda seen: int(seen[2] > 0), episodes=2, seed=1)
    >>> data.number_of_episodes, int(data.terminated.sum())
    (2, 2)
    """
    whole(episodes, "episodes", least=1)
    whole(longest, "longest", least=1)
    whole(seed, "seed", least=0)
    recording, generator = recorder(environment), np.random.default_rng(seed)
    start = int(getattr(environment.action_space, "start", 0))
    if isinstance(policy, Policy):
        actions = getattr(environment.action_space, "n", None)
        if actions is None:
            raise InvalidInput(
                "`policy` must be a function of an observation that returns an action, as the environment has action vectors, of "
                f"which no probabilities are logged. Got {policy!r}."
            )
        if policy.action_vectors is None or not policy.exact or actions != len(policy.action_vectors):
            raise InvalidInput(f"`policy` must have probabilities of the actions of the environment ({actions}). Got {policy!r}.")
    for episode in range(episodes):
        observation, _ = recording.reset(seed=seed if episode == 0 else None)
        for _ in range(longest):
            if isinstance(policy, Policy):
                branches = list(policy.branches(_flat(observation)[None]))
                weights = np.array([float(branch.weights[0]) for branch in branches])
                chosen = int(generator.choice(len(weights), p=weights / weights.sum()))
                recording.chosen_with(weights[chosen])
                index = branches[chosen].action
                action: Any = (chosen if index is None else index) + start
            else:
                action = policy(observation)
            observation, _, terminated, truncated, _ = recording.step(action)
            if terminated or truncated:
                break
    found: Transitions = recording.transitions()
    if path is not None:
        save_transitions(found, path)
    return found


def _flat(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64).reshape(-1).copy()


def _gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise MissingExtra('Recording an environment needs gymnasium: pip install "accountable-ope[experiments]".') from error
    return gymnasium
