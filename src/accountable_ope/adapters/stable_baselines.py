"""Models of Stable-Baselines3: exact probabilities where actions are finite, one action or draws elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked, shown
from ..errors import InvalidInput
from ..problem.policy import DeterministicPolicy, DiscretePolicy, SampledPolicy, action_vectors
from ..problem.softmax_policy import softmax
from ..validation import FloatArray
from .answers import asked, in_parts, one_hot, required, rows_of, whole_numbers
from .company import Company


@checked
def sb3_policy(
    model: Any, deterministic: bool = False, actions: ArrayLike | None = None, draws: int = 10, seed: int = 0
) -> DiscretePolicy | DeterministicPolicy | SampledPolicy:
    """The policy of a Stable-Baselines3 model, as it acts when deployed.

    DQN is greedy. PPO and A2C over finite actions have exactly their probabilities. Over action vectors TD3 and DDPG take one
    action; SAC, PPO and A2C draw theirs from a normal distribution, squashed or clipped to the action space as in use.

    Parameters
    ----------
    model : object of Stable-Baselines3
        DQN, PPO, A2C, SAC, TD3 or DDPG. Where it was trained with VecNormalize and knows that environment, states are scaled by
        it: the log holds states as the environment gives them.
    deterministic : bool
        As in `model.predict`: the most probable action, or the mean, in the place of chance.
    actions : array (A, k), optional
        Vectors of the finite actions that enter x = (s, a); by default one-hot.
    draws, seed : int
        Of a policy that can only be drawn: see `SampledPolicy`.

    Returns
    -------
    DiscretePolicy, DeterministicPolicy or SampledPolicy

    Raises
    ------
    MissingExtra
        Where torch is not installed.
    InvalidInput
        Where it is no such model, or its spaces are neither vectors nor finite sets.

    Examples
    --------
    >>> import numpy as np
    >>> from stable_baselines3 import PPO
    >>> from accountable_ope.adapters import sb3_policy
    >>> policy = sb3_policy(PPO("MlpPolicy", "CartPole-v1", seed=0))
    >>> float(sum(branch.weights[0] for branch in policy.branches(np.zeros((1, 4)))).round(6)), policy.exact
    (1.0, True)
    """
    network, space = getattr(model, "policy", None), getattr(model, "action_space", None)
    if isinstance(model, type) or not hasattr(network, "obs_to_tensor") or not hasattr(model, "observation_space"):
        raise InvalidInput(f"`model` must be a model of Stable-Baselines3, such as PPO. Got {shown(model)}.")
    asking = _Model(model, required("torch", "sb3_policy", "training"))
    kind = type(space).__name__
    if kind == "Discrete":
        count = int(space.n)  # type: ignore[union-attr]
        vectors = action_vectors(count if actions is None else actions)
        if len(vectors) != count:
            raise InvalidInput(f"`actions` must be {count} vectors, as many as the model has actions. Got {len(vectors)}.")
        return DiscretePolicy(asking.probabilities(count, deterministic), vectors)
    if kind != "Box" or actions is not None:
        why = "`actions` are for a finite action space" if kind == "Box" else "its action space must be Discrete or Box"
        raise InvalidInput(f"{type(model).__name__}: {why}. Got {kind}.")
    normal = None if deterministic else asking.normal()
    if normal is None:
        return DeterministicPolicy(asking.best_action)
    return SampledPolicy(normal, draws=draws, seed=seed)


@dataclass(frozen=True, eq=False)
class _Model:
    """A model that is asked without gradients, in evaluation mode."""

    model: Any
    torch: Any
    company: Company = field(default_factory=Company)

    @property
    def name(self) -> str:
        return type(self.model).__name__

    def observations(self, states: FloatArray) -> NDArray[Any]:
        """States as the model observes them."""
        space = self.model.observation_space
        if type(space).__name__ == "Discrete":
            if states.shape[1] != 1 or (states != np.floor(states)).any():
                raise InvalidInput(f"{self.name} observes whole numbers, but states have other values or more columns than one.")
            return np.asarray(states[:, 0], dtype=np.int64)
        if type(space).__name__ != "Box":
            raise InvalidInput(f"{self.name} must observe vectors or whole numbers. It observes {type(space).__name__}.")
        if int(np.prod(space.shape)) != states.shape[1]:
            raise InvalidInput(
                f"{self.name} observes {int(np.prod(space.shape))} numbers, but states have {states.shape[1]} columns."
            )
        found = states.reshape(len(states), *space.shape)
        scaling = self.model.get_vec_normalize_env() if hasattr(self.model, "get_vec_normalize_env") else None
        observed = np.asarray(found if scaling is None else scaling.normalize_obs(found))
        if space.dtype.kind in "iu":
            return whole_numbers(observed, space.dtype, self.name)
        return observed.astype(space.dtype)

    def run(self, states: FloatArray, ask: Callable[[Any], Any]) -> FloatArray:
        """What the network answers, in double precision."""

        def some(part: FloatArray) -> NDArray[Any]:
            self.model.policy.set_training_mode(False)
            with self.torch.no_grad():
                tensor, _ = self.model.policy.obs_to_tensor(self.observations(part))
                return np.asarray(ask(tensor).double().cpu().numpy())

        return self._by_itself(some, states)

    def _by_itself(self, some: Callable[[FloatArray], NDArray[Any]], states: FloatArray) -> FloatArray:
        def at(rows: FloatArray) -> FloatArray:
            return rows_of(in_parts(lambda part: asked(some, part, self.name), rows).reshape(len(rows), -1), rows, self.name)

        found = at(states)
        self.company.check(found, lambda rows: at(states[rows]), states, self.name)
        return found

    def probabilities(self, count: int, deterministic: bool) -> Callable[[FloatArray], FloatArray]:
        """Of finite actions: those of its distribution, or one for the largest value."""
        network = self.model.policy
        if hasattr(network, "get_distribution"):
            temperature = 0.0 if deterministic else 1.0
            return lambda states: softmax(
                self.run(states, lambda x: network.get_distribution(x).distribution.logits), temperature
            )
        if hasattr(network, "q_net"):
            return lambda states: softmax(self.run(states, network.q_net), 0.0)
        start = int(getattr(self.model.action_space, "start", 0))

        def best(states: FloatArray) -> FloatArray:
            return one_hot(self.best_action(states)[:, 0] - start, count, self.name)

        return best

    def best_action(self, states: FloatArray) -> FloatArray:
        """What `predict` answers without chance, in the units of the environment."""

        def some(part: FloatArray) -> NDArray[Any]:
            return np.asarray(self.model.predict(self.observations(part), deterministic=True)[0])

        return self._by_itself(some, states)

    def normal(self) -> Callable[[FloatArray, np.random.Generator], FloatArray] | None:
        """Draws of the stochastic actor; None where it has no chance."""
        network, space = self.model.policy, self.model.action_space
        actor = getattr(network, "actor", None)
        squashed = hasattr(actor, "get_action_dist_params")
        if not squashed and not hasattr(network, "get_distribution"):
            return None
        if getattr(self.model, "use_sde", False):
            raise InvalidInput(
                f"{self.name} explores by state-dependent noise, which cannot be drawn here: say deterministic=True."
            )
        if not squashed and getattr(network, "squash_output", False):
            raise InvalidInput(f"{self.name} squashes its output, which cannot be drawn here: say deterministic=True.")

        def moments(x: Any) -> Any:
            if squashed:
                mean, log_std, _ = actor.get_action_dist_params(x)  # type: ignore[union-attr]
                return self.torch.cat([mean, log_std.exp()], dim=1)
            normal = network.get_distribution(x).distribution
            return self.torch.cat([normal.mean, normal.stddev], dim=1)

        def sample(states: FloatArray, generator: np.random.Generator) -> FloatArray:
            mean, spread = np.split(self.run(states, moments), 2, axis=1)
            drawn = mean + spread * generator.normal(size=mean.shape)
            low, high = space.low.reshape(-1), space.high.reshape(-1)
            return np.asarray(low + 0.5 * (np.tanh(drawn) + 1) * (high - low) if squashed else np.clip(drawn, low, high))

        return sample
