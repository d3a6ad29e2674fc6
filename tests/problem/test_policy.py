"""Target policies: branches, points (s, a) and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import DeterministicPolicy, DiscretePolicy, InvalidInput, SampledPolicy, TabulatedPolicy
from accountable_ope.problem import Policy
from accountable_ope.problem.policy import action_vectors, state_action_points
from accountable_ope.validation import FloatArray

NAN, INF = float("nan"), float("inf")
STATES = np.array([[0.0], [1.0], [2.0]])


def softmax(states: FloatArray) -> FloatArray:
    weights = np.exp(np.outer(states[:, 0], [1.0, 0.0, -0.5]))
    return weights / weights.sum(axis=1, keepdims=True)


def uniform(states: FloatArray) -> FloatArray:
    return np.full((len(states), 2), 0.5)


def always(row: list[float]) -> Callable[[FloatArray], FloatArray]:
    return lambda states: np.tile(row, (len(states), 1))


def test_discrete_branches_are_all_actions_with_their_probabilities() -> None:
    policy = DiscretePolicy(softmax, [[-1.0], [0.0], [1.0]])
    branches = list(policy.branches(STATES))
    assert [branch.action for branch in branches] == [0, 1, 2]
    assert [branch.actions.tolist() for branch in branches] == [[[-1.0]] * 3, [[0.0]] * 3, [[1.0]] * 3]
    assert np.column_stack([branch.weights for branch in branches]) == pytest.approx(softmax(STATES), abs=1e-15)
    assert policy.exact is True


def test_a_number_of_actions_means_one_hot_vectors() -> None:
    assert DiscretePolicy(softmax, 3).action_vectors.tolist() == np.eye(3).tolist()
    assert action_vectors(np.int64(2)).tolist() == np.eye(2).tolist()


def test_probabilities_are_renormalized_exactly() -> None:
    policy = DiscretePolicy(always([0.3, 0.7 + 4e-7]), 2)
    assert sum(branch.weights for branch in policy.branches(STATES)) == pytest.approx(np.ones(3), abs=1e-15)


def test_rounding_below_zero_is_cut() -> None:
    first, second = DiscretePolicy(always([1.0, -1e-12]), 2).branches(STATES)
    assert second.weights.tolist() == [0.0] * 3
    assert first.weights.tolist() == [1.0] * 3


def test_action_vectors_are_a_read_only_copy() -> None:
    vectors = np.array([[0.0], [1.0]])
    policies = (DiscretePolicy(uniform, vectors), TabulatedPolicy(STATES, uniform(STATES), vectors))
    vectors[:] = 5.0
    for policy in policies:
        assert policy.action_vectors.tolist() == [[0.0], [1.0]]
        with pytest.raises(ValueError, match="read-only"):
            policy.action_vectors[0] = 3.0


def test_tabulated_policy_answers_in_any_order_and_with_repetitions() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(50, 2))
    table = rng.dirichlet([1.0, 1.0, 1.0], size=50)
    policy = TabulatedPolicy(states, table, 3)
    rows = rng.integers(0, 50, size=200)
    weights = np.column_stack([branch.weights for branch in policy.branches(states[rows])])
    assert weights == pytest.approx(table[rows], abs=1e-15)
    assert policy.exact is True


def test_tabulated_policy_takes_equal_rows_and_minus_zero() -> None:
    policy = TabulatedPolicy([[0.0], [-0.0], [1.0]], [[0.2, 0.8], [0.2, 0.8], [1.0, 0.0]], 2)
    assert len(policy.states) == 2
    first, _ = policy.branches(np.array([[-0.0], [0.0], [1.0]]))
    assert first.weights.tolist() == [0.2, 0.2, 1.0]


def test_tabulated_arrays_are_read_only_copies() -> None:
    states, table = STATES.copy(), uniform(STATES)
    policy = TabulatedPolicy(states, table, 2)
    states[:], table[:] = 9.0, 9.0
    assert sorted(policy.states[:, 0].tolist()) == [0.0, 1.0, 2.0]
    assert (policy.probabilities == 0.5).all()
    for array in (policy.states, policy.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0.0


def test_deterministic_policy_has_one_branch() -> None:
    (branch,) = DeterministicPolicy(lambda states: 2 * states[:, 0]).branches(STATES)
    assert branch.actions.tolist() == [[0.0], [2.0], [4.0]]
    assert branch.weights.tolist() == [1.0] * 3
    assert branch.action is None


def test_sampled_policy_repeats_with_its_seed_and_differs_between_rows_and_draws() -> None:
    def normal(states: FloatArray, generator: np.random.Generator) -> FloatArray:
        return generator.normal(size=(len(states), 1))

    same_state = np.zeros((40, 1))
    branches = list(SampledPolicy(normal, draws=5, seed=1).branches(same_state))
    drawn = np.column_stack([branch.actions[:, 0] for branch in branches])
    assert len(np.unique(drawn)) == 200
    again = np.column_stack([branch.actions[:, 0] for branch in SampledPolicy(normal, draws=5, seed=1).branches(same_state)])
    other = np.column_stack([branch.actions[:, 0] for branch in SampledPolicy(normal, draws=5, seed=2).branches(same_state)])
    assert np.array_equal(drawn, again)
    assert not np.intersect1d(drawn, other).size
    assert sum(branch.weights for branch in branches) == pytest.approx(np.ones(40), abs=1e-15)
    assert SampledPolicy(normal).exact is False


@pytest.mark.parametrize(
    "policy",
    [
        DiscretePolicy(uniform, 2),
        TabulatedPolicy(STATES, uniform(STATES), 2),
        DeterministicPolicy(lambda states: states),
        SampledPolicy(lambda states, generator: states),
    ],
    ids=["discrete", "tabulated", "deterministic", "sampled"],
)
def test_policies_meet_the_protocol(policy: object) -> None:
    assert isinstance(policy, Policy)


def test_points_are_states_beside_action_vectors() -> None:
    policy = DiscretePolicy(uniform, [[5.0, 6.0], [7.0, 8.0]])
    points = state_action_points(STATES, np.array([1, 0, 1]), policy)
    assert points.tolist() == [[0, 7, 8], [1, 5, 6], [2, 7, 8]]
    assert state_action_points(STATES, np.array([[7.0, 8.0]] * 3), policy).tolist() == [[0, 7, 8], [1, 7, 8], [2, 7, 8]]


def branches_of(policy: Policy, states: FloatArray = STATES) -> Callable[[], object]:
    return lambda: list(policy.branches(states))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a table for a function": (
        lambda: DiscretePolicy(np.ones((3, 2)) / 2, 2),  # type: ignore[arg-type]
        "`probabilities` must be callable: states (n, d) -> (n, A). For a table use TabulatedPolicy.",
    ),
    "no action": (lambda: DiscretePolicy(uniform, 0), "`actions` must be a whole number of at least 1. Got 0."),
    "equal action vectors": (
        lambda: DiscretePolicy(uniform, [[0.0], [-0.0]]),
        "`actions` must be different vectors: two actions with the same vector cannot be told apart.",
    ),
    "action vectors nan": (
        lambda: DiscretePolicy(uniform, [[0.0], [NAN]]),
        "`actions` has 1 NaN or infinite entry, first in row 1.",
    ),
    "sum below one": (
        branches_of(DiscretePolicy(always([0.4, 0.4]), 2)),
        "must sum to one in every row. Row 0 sums to 0.8: at the state [0] the policy answered [0.4, 0.4].",
    ),
    "negative probability": (
        branches_of(DiscretePolicy(always([1.5, -0.5]), 2)),
        "`policy probabilities` has a negative probability in row 0: [1.5, -0.5].",
    ),
    "probability nan": (
        branches_of(DiscretePolicy(always([NAN, 1.0]), 2)),
        "`policy probabilities` has 3 NaN or infinite entries, first in row 0.",
    ),
    "probability for too many actions": (
        branches_of(DiscretePolicy(always([0.5, 0.5, 0.0]), 2)),
        "must have shape (3, 2): a row for each of the 3 states that were asked for, a column per action. Got (3, 3).",
    ),
    "probability for too few states": (
        branches_of(DiscretePolicy(lambda states: [[0.5, 0.5]], 2)),
        "`policy probabilities` must have shape (3, 2): a row for each of the 3 states that were asked for, a column per action.",
    ),
    "table of another shape": (
        lambda: TabulatedPolicy(STATES, np.full((3, 3), 1 / 3), 2),
        "`probabilities` must have shape (3, 2): a row per state, a column per action. Got (3, 3).",
    ),
    "table that does not sum to one": (
        lambda: TabulatedPolicy(STATES, [[0.5, 0.5], [0.5, 0.6], [1, 0]], 2),
        "`probabilities` must sum to one in every row. Row 1 sums to 1.1.",
    ),
    "negative table": (
        lambda: TabulatedPolicy(STATES, [[0.5, 0.5], [1, 0], [1.25, -0.25]], 2),
        "`probabilities` has a negative probability in row 2: [1.25, -0.25].",
    ),
    "table nan": (
        lambda: TabulatedPolicy(STATES, [[0.5, NAN], [1, 0], [1, 0]], 2),
        "`probabilities` has 1 NaN or infinite entry, first in row 0.",
    ),
    "table with two answers": (
        lambda: TabulatedPolicy([[3.0], [3.0]], [[0.5, 0.5], [0.4, 0.6]], 2),
        "`probabilities` differ between two rows of the same state, [3.0]",
    ),
    "table of nothing": (lambda: TabulatedPolicy(np.zeros((0, 1)), np.zeros((0, 2)), 2), "`states`"),
    "states outside the table": (
        branches_of(TabulatedPolicy(STATES, uniform(STATES), 2), np.array([[5.0], [1.0], [6.0]])),
        "The policy's probabilities are not given at 2 states, such as [5.0].",
    ),
    "states wider than the table": (
        branches_of(TabulatedPolicy(STATES, uniform(STATES), 2), np.zeros((1, 2))),
        "The policy table has 1-d states. Got 2-d ones.",
    ),
    "deterministic without function": (lambda: DeterministicPolicy(3), "`act` must be callable"),  # type: ignore[arg-type]
    "deterministic for too few states": (
        branches_of(DeterministicPolicy(lambda states: np.zeros((2, 1)))),
        "`actions of the policy` must have one row per state (3). Got shape (2, 1).",
    ),
    "deterministic nan": (
        branches_of(DeterministicPolicy(lambda states: np.full((3, 1), INF))),
        "`actions of the policy` has 3 NaN or infinite entries, first in row 0.",
    ),
    "sampled without function": (lambda: SampledPolicy(3), "`sample` must be callable"),  # type: ignore[arg-type]
    "sampled for too few states": (
        branches_of(SampledPolicy(lambda states, generator: np.zeros((1, 1)))),
        "`actions of the policy` must have one row per state (3). Got shape (1, 1).",
    ),
    "no draws": (lambda: SampledPolicy(lambda s, g: s, draws=0), "`draws` must be a whole number of at least 1. Got 0."),
    "negative seed": (lambda: SampledPolicy(lambda s, g: s, seed=-1), "`seed` must be a whole number of at least 0. Got -1."),
    "index beyond the set": (
        lambda: state_action_points(STATES, np.array([0, 1, 2]), DiscretePolicy(uniform, 2)),
        "`actions` has index 2 in row 2, but the policy has 2 actions (0 to 1).",
    ),
    "indices without a set": (
        lambda: state_action_points(STATES, np.array([0, 1, 2]), DeterministicPolicy(lambda states: states)),
        "`actions` are indices, but the policy has no finite action set: use DiscretePolicy.",
    ),
    "action vectors of another width": (
        lambda: state_action_points(STATES, np.zeros((3, 3)), DiscretePolicy(uniform, 2)),
        "`actions` must have 2 columns, as the policy's do. Got 3. The log holds action vectors",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_policies_are_refused(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        make()


def test_a_policy_with_moods_is_refused():
    """Probabilities that are drawn anew at every call are no policy."""
    rng = np.random.default_rng(0)
    data = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]])
    moody = aope.DiscretePolicy(lambda states: rng.dirichlet(np.ones(2), len(states)), actions=2)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))
    with pytest.raises(aope.InvalidInput, match="`policy` must be a function of the states"):
        aope.Problem(data, aope.StartStates([[0.0]]), moody, facts)


def test_a_policy_must_answer_for_each_state_by_itself() -> None:
    """As of a model in training mode, whose answers follow the batch: nothing such a policy does is a value of anything."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(50, 1))
    data = aope.Transitions(states, rng.integers(0, 2, 50), rng.uniform(size=50), states + 0.1)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))

    def of_the_batch(at: np.ndarray) -> np.ndarray:
        share = 1 / (1 + np.exp(-(at[:, 0] - at[:, 0].mean())))
        return np.column_stack([share, 1 - share])

    def by_itself(at: np.ndarray) -> np.ndarray:
        share = 1 / (1 + np.exp(-at[:, 0].astype(np.float32)))
        return np.column_stack([share, 1 - share])

    start = aope.StartStates(states[:1])
    with pytest.raises(aope.InvalidInput, match="alone and for several states at once, it answered differently"):
        aope.Problem(data, start, aope.DiscretePolicy(of_the_batch, actions=2), facts)
    assert aope.Problem(data, start, aope.DiscretePolicy(by_itself, actions=2), facts).policy.exact
