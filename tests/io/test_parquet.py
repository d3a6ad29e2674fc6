"""Parquet in and out: what is written is read back, and every bad file is one sentence that names the column."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.environments import clinic
from accountable_ope.io.reading import read_transition_file
from accountable_ope.io.starts import read_start_file
from accountable_ope.problem import with_propensities
from accountable_ope.problem.problem import Experience

TABLE = np.full((6, 3), 1 / 3)
MDP = clinic()
DATA = MDP.sample_trajectories(TABLE, 20, 30, np.random.default_rng(0))


def columns(**changes):
    good = {
        "state": pa.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]),
        "action": pa.array([0, 1, 0]),
        "reward": pa.array([0.0, 0.5, 1.0]),
        "next_state": pa.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]),
        "terminated": pa.array([False, False, True]),
        "episode": pa.array(["a", "a", "a"]),
    }
    return {name: column for name, column in (good | changes).items() if column is not None}


def write(path, table):
    pq.write_table(pa.table(table), path)
    return path


def assert_same(one, other):
    for name in ("states", "actions", "rewards", "next_states", "terminated", "episodes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_round_trip(tmp_path):
    aope.save_transitions(DATA, tmp_path / "data.parquet")
    assert_same(aope.load_transitions(tmp_path / "data.parquet"), DATA)
    assert [p.name for p in tmp_path.iterdir()] == ["data.parquet"]


def test_round_trip_with_action_vectors_and_without_episodes(tmp_path):
    data = aope.Transitions(np.ones((3, 2)), np.arange(6.0).reshape(3, 2), np.zeros(3), np.ones((3, 2)))
    aope.save_transitions(data, tmp_path / "data.parquet")
    loaded = aope.load_transitions(tmp_path / "data.parquet")
    assert loaded.episodes is None
    np.testing.assert_array_equal(loaded.actions, data.actions)


def test_recorded_probabilities_round_trip(tmp_path):
    data = with_propensities(DATA, MDP.policy(TABLE))
    aope.save_transitions(data, tmp_path / "data.parquet")
    loaded = aope.load_transitions(tmp_path / "data.parquet")
    assert_same(loaded, data)
    assert loaded.behavior_probability.tolist() == data.behavior_probability.tolist() and loaded.sha256 == data.sha256
    without = aope.load_transitions(tmp_path / "data.parquet", ignore="behavior_probability")
    assert without.behavior_probability is None and without.sha256 == DATA.sha256


@pytest.mark.parametrize("name", ["behavior_probability", "behaviour_probability", "pscore", "action_prob"])
def test_recorded_probabilities_by_other_names(tmp_path, name):
    file = read_transition_file(write(tmp_path / "data.parquet", columns(**{name: pa.array([0.5, 0.25, 1.0])})))
    assert file.data.behavior_probability.tolist() == [0.5, 0.25, 1.0]
    assert file.columns.aliases == (() if name == "behavior_probability" else ((name, "behavior_probability"),))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"propensity": pa.array([0.5] * 3)},
            "did you mean `behavior_probability`.* Only if it is the probability",
        ),
        ({"behavior_probabilty": pa.array([0.5] * 3)}, "did you mean `behavior_probability`"),
        ({"behavior_probability": pa.array([0.5, 0.0, 1.0])}, r"data.parquet: `behavior_probability` must be .*Got 0 in row 1"),
        ({"behavior_probability": pa.array([[0.5, 0.5]] * 3)}, "`behavior_probability` must be one number per row"),
        ({"behavior_probability": pa.array([0.5, None, 1.0])}, "`behavior_probability` has 1 missing value"),
        ({"behavior_probability": pa.array(["0.5"] * 3)}, "`behavior_probability` must hold numbers"),
    ],
)
def test_columns_that_are_no_recorded_probabilities(tmp_path, changes, message):
    with pytest.raises(aope.errors.InvalidFile, match=message):
        aope.load_transitions(write(tmp_path / "data.parquet", columns(**changes)))


def test_policy_columns_round_trip_and_terminal_states_need_none(tmp_path):
    live = np.arange(4.0)[:, None]
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    policy = aope.TabulatedPolicy(live, probabilities, [[0.0], [1.0], [2.0]])  # terminal states are not listed
    aope.save_transitions(DATA, tmp_path / "data.parquet", policy)
    file = read_transition_file(tmp_path / "data.parquet")
    alive = ~DATA.terminated
    np.testing.assert_allclose(file.at_state, probabilities[DATA.states[:, 0].astype(int)])
    np.testing.assert_allclose(file.at_next[alive], probabilities[DATA.next_states[alive, 0].astype(int)])


def test_starts_round_trip(tmp_path):
    aope.save_starts(MDP.starts(), tmp_path / "starts.parquet")
    loaded = aope.load_starts(tmp_path / "starts.parquet")
    np.testing.assert_array_equal(loaded.weights, MDP.starts().weights)
    sample = aope.StartStates([[0.0], [1.0]], exact=False)
    aope.save_starts(sample, tmp_path / "sample.parquet")
    assert not aope.load_starts(tmp_path / "sample.parquet").exact, "it is written in the file"
    assert aope.load_starts(tmp_path / "sample.parquet", exact=True).exact
    assert read_start_file(tmp_path / "sample.parquet").at_state is None


def test_equal_weights_may_be_those_of_a_sample(tmp_path):
    """Start states of a data frame count as exact, and are written with weights; that they are a sample can be said later."""
    alike, other = aope.StartStates([[0.0], [1.0]]), aope.StartStates([[0.0], [1.0]], weights=[0.25, 0.75])
    for starts in (alike, other):
        aope.save_starts(starts, tmp_path / "starts.parquet")
        assert aope.load_starts(tmp_path / "starts.parquet").exact
        if starts is alike:
            assert not aope.load_starts(tmp_path / "starts.parquet", exact=False).exact
    with pytest.raises(
        aope.InvalidFile, match="weighs start states by its column `weight`, and an i.i.d. sample weighs every row"
    ):
        aope.load_starts(tmp_path / "starts.parquet", exact=False)


def test_numbered_columns_and_list_columns_are_the_same(tmp_path):
    numbered = columns(state=None, next_state=None) | {
        "state_0": pa.array([0, 1, 2]),
        "state_1": pa.array([1.0, 2.0, 3.0]),
        "next_state_0": pa.array([1.0, 2.0, 3.0]),
        "next_state_1": pa.array([2.0, 3.0, 4.0]),
    }
    one = aope.load_transitions(write(tmp_path / "one.parquet", columns()))
    other = aope.load_transitions(write(tmp_path / "other.parquet", numbered))
    assert_same(one, other)


def test_scalar_states_and_dictionary_episodes(tmp_path):
    table = columns(state=pa.array([0.0, 1.0, 2.0]), next_state=pa.array([1.0, 2.0, 3.0]))
    table["episode"] = pa.array(["x", "y", "x"]).dictionary_encode()
    data = aope.load_transitions(write(tmp_path / "data.parquet", table))
    assert data.states.shape == (3, 1)
    np.testing.assert_array_equal(data.episodes, [0, 1, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": None}, "has no column `reward`"),
        ({"state": None}, r"has no column `state` \(nor `state_0`\). Its columns: action, reward"),
        ({"reward": pa.array([0.0, None, 1.0])}, r"column `reward` has 1 missing value \(nulls\), first in row 1"),
        (
            {"state": pa.array([[0.0, None], [1.0, 2.0], [2.0, 3.0]])},
            "column `state` has 1 missing value .* inside its lists, first in row 0",
        ),
        ({"state": pa.array([[0.0], [1.0, 2.0], [2.0, 3.0]])}, "lists in column `state` .* it is 2 in row 1, 1 in row 0"),
        ({"reward": pa.array(["1", "2", "3"])}, "column `reward` must hold numbers. It holds text, first '1' in row 0"),
        ({"reward": pa.array(["1", "2", "3"]).dictionary_encode()}, "column `reward` must hold numbers. It holds text"),
        ({"action": pa.array(["0", "1", "0"])}, "column `action` must hold numbers. It holds text, first '0' in row 0"),
        ({"action": pa.array([0, 1, 10**6])}, "`actions` must be indices below 65,536. Got 1000000 in row 2"),
        ({"action": pa.array([0, 2**62, 1])}, f"`actions` must be indices below 65,536. Got {2**62} in row 1"),
        ({"action": pa.array([0, 2**63 + 5, 1], pa.uint64())}, f"Got {2**63 + 5} in row 1"),
        ({"reward": pa.array([0.0, float("nan"), 1.0])}, "`rewards` has 1 NaN or infinite entry, first in row 1"),
        ({"state": pa.array([[0.0, 1.0], [float("inf"), 2.0], [2.0, 3.0]])}, "`states` has 1 NaN or infinite entry"),
        ({"action": pa.array([0.5, 1.0, 2.0])}, "`actions` must be"),
        ({"action": pa.array([0, -1, 2])}, "`actions` must be indices from 0. Got -1 in row 1"),
        ({"terminated": pa.array([0, 2, 1])}, "`terminated` must be one True or False per row. Got 2 in row 1"),
        ({"episode": pa.array([0.5, 1.0, 2.0])}, "`episodes` must be one whole number or text per row"),
        ({"reward": pa.array([[1.0, 2.0]] * 3)}, "`rewards` must be one number per row"),
        ({"state": pa.array([{"x": 1}] * 3)}, "column `state` must hold numbers"),
        ({"next_state": pa.array([[1.0]] * 3)}, r"`next_states` must have as many columns as `states` \(2\). Got 1"),
    ],
)
def test_bad_files(tmp_path, changes, message):
    path = write(tmp_path / "bad.parquet", columns(**changes))
    with pytest.raises(aope.InvalidFile, match=message) as caught:
        aope.load_transitions(path)
    assert "bad.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_row_is_not_enough(tmp_path):
    table = {name: column[:1] for name, column in columns().items()}
    with pytest.raises(aope.InvalidFile, match="At least two transitions are needed. Got 1"):
        aope.load_transitions(write(tmp_path / "one.parquet", table))


def test_empty_corrupt_and_missing_files(tmp_path):
    empty = {name: column[:0] for name, column in columns().items()}
    with pytest.raises(aope.InvalidFile, match="has no rows"):
        aope.load_transitions(write(tmp_path / "empty.parquet", empty))
    (tmp_path / "corrupt.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(aope.InvalidFile, match="cannot be read as Parquet"):
        aope.load_transitions(tmp_path / "corrupt.parquet")
    (tmp_path / "zero.parquet").write_bytes(b"")
    with pytest.raises(aope.InvalidFile, match="cannot be read as Parquet"):
        aope.load_transitions(tmp_path / "zero.parquet")
    with pytest.raises(aope.InvalidFile, match="is not a file"):
        aope.load_transitions(tmp_path / "nowhere.parquet")


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(aope.InvalidFile, match="cannot be written"):
        aope.save_transitions(DATA, tmp_path / "no-such-folder" / "data.parquet")
    assert list(tmp_path.iterdir()) == []


def test_statistic_round_trip(tmp_path):
    policy = MDP.policy(TABLE)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors)
    system = aope.statistics.bellman_system(Experience(DATA, MDP.starts(), policy, 1.0), features)
    statistic = aope.statistics.kernel_statistic(system, aope.Tabular())
    statistic.save(tmp_path / "statistic.npz")
    loaded = aope.statistics.KernelStatistic.load(tmp_path / "statistic.npz")
    np.testing.assert_array_equal(loaded.pair_gram, statistic.pair_gram)
    assert (loaded.count, loaded.kernel_error) == (statistic.count, statistic.kernel_error)
    (tmp_path / "broken.npz").write_bytes(b"zip?")
    with pytest.raises(aope.InvalidFile, match="is not a saved KernelStatistic"):
        aope.statistics.KernelStatistic.load(tmp_path / "broken.npz")


def test_rows_that_were_left_out_are_kept_in_mind(tmp_path):
    """A premise of the log does not get lost on the way through a file."""
    data = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]])
    part = data.having_left_out(3)
    assert (data.left_out, part.left_out) == (0, 3)
    aope.save_transitions(part, tmp_path / "log.parquet")
    assert aope.load_transitions(tmp_path / "log.parquet").left_out == 3
    aope.save_transitions(data, tmp_path / "whole.parquet")
    assert aope.load_transitions(tmp_path / "whole.parquet").left_out == 0
