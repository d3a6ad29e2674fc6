"""The target policy: exact sums over finitely many actions, one action, or draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput, InvalidRow
from ..validation import FloatArray, IntArray, float_array, frozen, matrix, probability_rows, row_keys, whole

MOST_ONE_HOT = 10_000
"""More actions than this need vectors of their own: one-hot ones would fill the memory."""

MOST_SHOWN = 8
"""Numbers of a vector that a message repeats."""

START = 0
"""The key of the draws at the start states; those of batches of rows are counted from 1."""


@checked
class Branch(NamedTuple):
    """One action per state, with its weight.

    Attributes
    ----------
    actions : array (n, k)
        Action vectors.
    weights : array (n,)
        Their probabilities.
    action : int or None
        The index of the action where the set is finite.
    """

    actions: FloatArray
    weights: FloatArray
    action: int | None = None


@runtime_checkable
class Policy(Protocol):
    """A policy is a distribution of action vectors at each state, given as weighted branches.

    E_{a ~ pi(s)} f(s, a) = sum over branches of weight * f(s, action vector).
    """

    @property
    def exact(self) -> bool:
        """Whether the branches give the expectation exactly, rather than by random draws."""
        ...

    @property
    def action_vectors(self) -> FloatArray | None:
        """(A, k) vectors of a finite action set, None for continuous actions."""
        ...

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        """The branches at states (n, d); their weights sum to one at every state."""
        ...


@dataclass(frozen=True, eq=False, init=False)
class DiscretePolicy:
    """pi(a | s) over a finite action set, so that expectations are exact sums.

    Parameters
    ----------
    probabilities : callable
        States (n, d) -> (n, A).
    actions : int or array (A, k)
        Vectors that enter x = (s, a); or the number A, for one-hot vectors.

    Raises
    ------
    InvalidInput
        Where `probabilities` is not callable, or, when asked for, gives rows that are no distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import DiscretePolicy
    >>> policy = DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> [branch.weights.tolist() for branch in policy.branches(np.zeros((1, 3)))]
    [[0.5], [0.5]]
    """

    probabilities: Callable[[FloatArray], ArrayLike]
    action_vectors: FloatArray
    exact: bool = True

    def __init__(self, probabilities: Callable[[FloatArray], ArrayLike], actions: ArrayLike | int) -> None:
        if isinstance(probabilities, type) or not callable(probabilities):
            raise InvalidInput("`probabilities` must be callable: states (n, d) -> (n, A). For a table use TabulatedPolicy.")
        object.__setattr__(self, "probabilities", probabilities)
        object.__setattr__(self, "action_vectors", frozen(action_vectors(actions)))
        object.__setattr__(self, "exact", True)

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        shape = (len(states), len(self.action_vectors))
        weights = _answer(self.probabilities(states), "policy probabilities", shape)
        _refuse_no_distribution(weights, states)
        return finite_branches(probability_rows(weights, "policy probabilities"), self.action_vectors)


@checked
@dataclass(frozen=True, eq=False, init=False)
class TabulatedPolicy:
    """pi(a | s) known at listed states only, such as columns of a file; asking elsewhere is an error.

    Parameters
    ----------
    states : array (n, d)
        The listed states; a state may be listed more than once.
    probabilities : array (n, A)
        A row per state, a column per action.
    actions : int or array (A, k)
        Vectors that enter x = (s, a); or the number A, for one-hot vectors.

    Raises
    ------
    InvalidInput
        Where a row is no distribution, or the same state has two of them.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import TabulatedPolicy
    >>> policy = TabulatedPolicy([[0.0], [1.0]], [[0.2, 0.8], [1.0, 0.0]], actions=2)
    >>> [branch.weights.tolist() for branch in policy.branches(np.array([[0.0]]))]
    [[0.2], [0.8]]
    """

    states: FloatArray
    probabilities: FloatArray
    action_vectors: FloatArray
    exact: bool = True

    def __init__(self, states: ArrayLike, probabilities: ArrayLike, actions: ArrayLike | int) -> None:
        s = matrix(states, "states")
        vectors = action_vectors(actions)
        p = matrix(probabilities, "probabilities")
        if len(s) == 0:
            raise InvalidInput("`states` of TabulatedPolicy must have at least one row. Got none.")
        if p.shape != (len(s), len(vectors)):
            raise InvalidInput(
                f"`probabilities` must have shape ({len(s)}, {len(vectors)}): a row per state, a column per action. "
                f"Got {p.shape}."
            )
        p = probability_rows(p, "probabilities")
        _, first, inverse = np.unique(row_keys(s), return_index=True, return_inverse=True)
        differs = np.abs(p - p[first][inverse.reshape(-1)]).max(axis=1) > 1e-6
        if differs.any():
            row = int(np.argmax(differs))
            raise InvalidInput(
                f"`probabilities` differ between two rows of the same state, {s[row].tolist()}: a policy is a function of the "
                "state, so put into the state whatever else it depends on."
            )
        object.__setattr__(self, "states", frozen(s[first]))
        object.__setattr__(self, "probabilities", frozen(p[first]))
        object.__setattr__(self, "action_vectors", frozen(vectors))
        object.__setattr__(self, "exact", True)

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        known, asked = row_keys(self.states), row_keys(states)
        if self.states.shape[1] != states.shape[1]:
            raise InvalidInput(f"The policy table has {self.states.shape[1]}-d states. Got {states.shape[1]}-d ones.")
        rows = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        missing = known[rows] != asked
        if missing.any():
            where = states[int(np.argmax(missing))].tolist()
            raise InvalidInput(f"The policy's probabilities are not given at {int(missing.sum())} states, such as {where}.")
        return finite_branches(self.probabilities[rows], self.action_vectors)


@checked
@dataclass(frozen=True, eq=False)
class DeterministicPolicy:
    """One action per state.

    Parameters
    ----------
    act : callable
        States (n, d) -> (n, k) action vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import DeterministicPolicy
    >>> policy = DeterministicPolicy(lambda states: -0.5 * states)
    >>> next(policy.branches(np.array([[2.0]]))).actions.tolist()
    [[-1.0]]
    """

    act: Callable[[FloatArray], ArrayLike]
    exact: bool = True
    action_vectors: None = None

    def __post_init__(self) -> None:
        if not callable(self.act):
            raise InvalidInput("`act` must be callable: states (n, d) -> actions (n, k).")

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        chosen = action_rows(self.act(states), len(states), "actions of the policy")
        yield Branch(matrix(chosen, "actions of the policy"), np.ones(len(states)))


@checked
@dataclass(frozen=True, eq=False)
class SampledPolicy:
    """A policy that can only be sampled: the mean over `draws` actions stands for the expectation.

    The draws are part of the observed transition, so residuals keep mean zero and range; the start states pay for them in the
    Monte Carlo radius. Start states have a stream of draws of their own (`at_start`): from the stream of the next states, draws
    at the start would know those at rows to come, and so would weights that aim at the value.

    Parameters
    ----------
    sample : callable
        (states (n, d), numpy Generator) -> (n, k).
    draws : int
        How many actions are drawn at each state.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import SampledPolicy
    >>> policy = SampledPolicy(lambda states, generator: generator.normal(size=(len(states), 1)), draws=4)
    >>> sum(float(branch.weights[0]) for branch in policy.branches(np.zeros((1, 2)))), policy.exact
    (1.0, False)
    """

    sample: Callable[[FloatArray, np.random.Generator], ArrayLike]
    draws: int = 10
    seed: int = 0
    exact: bool = False
    action_vectors: None = None

    def __post_init__(self) -> None:
        if not callable(self.sample):
            raise InvalidInput("`sample` must be callable: (states (n, d), generator) -> actions (n, k).")
        whole(self.draws, "draws", least=1)
        whole(self.seed, "seed", least=0)

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        # One stream over all rows: calling block by block would repeat it and make later draws depend on earlier ones.
        generator = np.random.default_rng(self.seed)
        weights = np.full(len(states), 1 / self.draws)
        for _ in range(self.draws):
            drawn = action_rows(self.sample(states, generator), len(states), "actions of the policy")
            yield Branch(matrix(drawn, "actions of the policy"), weights)

    def renewed(self, key: int) -> SampledPolicy:
        """The same policy with another stream of draws, one for every key."""
        return replace(self, seed=int(np.random.SeedSequence([self.seed, key]).generate_state(1, np.uint64)[0]))


@checked
def at_start(policy: Policy) -> Policy:
    """The policy as it is asked at the start states: one that draws has a stream of its own there.

    Parameters
    ----------
    policy : Policy

    Returns
    -------
    Policy

    Examples
    --------
    >>> from accountable_ope import SampledPolicy
    >>> from accountable_ope.problem import at_start
    >>> policy = SampledPolicy(lambda states, generator: generator.normal(size=(len(states), 1)))
    >>> at_start(policy).seed == policy.seed
    False
    """
    return policy.renewed(START) if isinstance(policy, SampledPolicy) else policy


def action_vectors(actions: ArrayLike | int) -> FloatArray:
    """(A, k) action vectors; a number A means one-hot vectors."""
    if isinstance(actions, (int, np.integer)) and not isinstance(actions, bool):
        count = whole(actions, "actions", least=1)
        if count > MOST_ONE_HOT:
            raise InvalidInput(f"`actions` must be at most {MOST_ONE_HOT}, or vectors of their own. Got {count}.")
        return np.eye(count)
    vectors = matrix(actions, "actions")
    if len(np.unique(vectors, axis=0)) != len(vectors):
        raise InvalidInput("`actions` must be different vectors: two actions with the same vector cannot be told apart.")
    return vectors


@checked
def state_action_points(states: FloatArray, actions: IntArray | FloatArray, policy: Policy) -> FloatArray:
    """x = (s, a): states beside action vectors, looked up when actions are indices.

    Parameters
    ----------
    states : array (n, d)
    actions : array (n,) of int, or (n, k)
        Indices into the policy's action set, or action vectors.
    policy : Policy

    Returns
    -------
    array (n, d + k)

    Raises
    ------
    InvalidInput
        Where an index or a width does not fit the policy.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import DiscretePolicy
    >>> from accountable_ope.problem import state_action_points
    >>> policy = DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=[[-1.0], [1.0]])
    >>> state_action_points(np.array([[0.5], [2.0]]), np.array([1, 0]), policy).tolist()
    [[0.5, 1.0], [2.0, -1.0]]
    """
    vectors = policy.action_vectors
    if actions.ndim not in (1, 2) or len(actions) != len(states) or (actions.ndim == 1 and actions.dtype.kind not in "iu"):
        raise InvalidInput(f"`actions` must be an index or a vector per state. Got {actions.dtype} of shape {actions.shape}.")
    if actions.ndim == 1:
        if vectors is None:
            raise InvalidInput("`actions` are indices, but the policy has no finite action set: use DiscretePolicy.")
        if actions.max() >= len(vectors):
            row = int(np.argmax(actions >= len(vectors)))
            raise InvalidRow(
                f"`actions` has index {int(actions[row])} in ",
                row,
                f", but the policy has {len(vectors)} actions (0 to {len(vectors) - 1}).",
            )
        actions = vectors[actions]
    elif vectors is not None and actions.shape[1] != vectors.shape[1]:
        raise InvalidInput(
            f"`actions` must have {vectors.shape[1]} columns, as the policy's do. Got {actions.shape[1]}. The log holds action "
            f"vectors, and the policy chooses one of {len(vectors)} actions, whose vectors are those of the log if both belong "
            "to the same task: say which (actions=[[-1.0], [1.0]])."
        )
    return np.concatenate([states, actions], axis=1)


def finite_branches(weights: FloatArray, vectors: FloatArray) -> Iterator[Branch]:
    """One branch per action, from probabilities (n, A)."""
    for index, vector in enumerate(vectors):
        yield Branch(np.broadcast_to(vector, (len(weights), len(vector))), weights[:, index], index)


def _answer(values: ArrayLike, name: str, shape: tuple[int, int]) -> FloatArray:
    array = float_array(values, name, dimensions=(0, 1, 2, 3))
    if array.shape != shape:
        raise InvalidInput(
            f"`{name}` must have shape {shape}: a row for each of the {shape[0]} states that were asked for, a column per "
            f"action. Got {array.shape}."
        )
    return array


def _refuse_no_distribution(weights: FloatArray, states: FloatArray) -> None:
    """Raise at the first state at which probabilities do not sum to one, named, since rows asked for are not rows of a log."""
    sums = weights.sum(axis=1)
    wrong = np.abs(sums - 1) > 1e-6
    if wrong.any() and not (weights < -1e-9).any():
        row = int(np.argmax(wrong))
        raise InvalidInput(
            f"`policy probabilities` must sum to one in every row. Row {row} sums to {sums[row]:.6g}: at the state "
            f"{shown_numbers(states[row])} the policy answered {shown_numbers(weights[row])}."
        )


def shown_numbers(values: FloatArray) -> str:
    """A few numbers in a sentence."""
    more = ", ..." if len(values) > MOST_SHOWN else ""
    return f"[{', '.join(f'{each:.4g}' for each in values[:MOST_SHOWN])}{more}]"


def action_rows(values: ArrayLike, rows: int, name: str) -> FloatArray:
    """What a policy answered, refused where it is not one action per state."""
    array = float_array(values, name, dimensions=(0, 1, 2, 3))
    if array.ndim not in (1, 2) or len(array) != rows:
        raise InvalidInput(f"`{name}` must have one row per state ({rows}). Got shape {array.shape}.")
    return array
