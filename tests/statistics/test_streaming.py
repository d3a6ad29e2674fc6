"""Sums over parts of the rows, added in any order, give the statistic of all rows; what needs all rows at once is refused."""

from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, clinic
from accountable_ope.kernels.waves import Waves, cosines
from accountable_ope.statistics import bellman_system, kernel_statistic

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=12, length=10)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1))
QUESTION = aope.Question(MDP.starts, MDP.policy, FACTS)
CLINIC = clinic()
TABLE = np.full((6, 3), 1 / 3)
VISITS = CLINIC.sample_trajectories(TABLE, 60, 6, np.random.default_rng(0)).rows(slice(0, 120))
CARE = aope.Question(CLINIC.starts(), CLINIC.policy(TABLE), aope.Assumptions(discount=0.9, reward_range=(-50, 50)))
ONE_HOT = aope.TabularFeatures.grid(np.arange(6.0)[:, None], CARE.policy.action_vectors)

CASES = {
    "random features": (DATA, aope.StreamQuestion(QUESTION, MDP.features(), aope.RandomFeatureKernel(20, 0.7, seed=2))),
    "without a constant": (
        DATA,
        aope.StreamQuestion(QUESTION, aope.RandomFourier(7, intercept=False), aope.RandomFeatureKernel(9)),
    ),
    "one-hot": (VISITS, aope.StreamQuestion(CARE, ONE_HOT, aope.Tabular())),
    "one-hot points of other features": (VISITS, aope.StreamQuestion(CARE, aope.RandomFourier(4), aope.Tabular())),
}


def in_memory(data, question):
    """The path that holds all rows: the system, and its statistic."""
    asked = question.question
    experience = aope.problem.Experience(data, asked.starts, asked.policy, asked.assumptions.discount)
    system = bellman_system(experience, question.features)
    return system, kernel_statistic(system, question.kernel)


def cut(data, edges):
    """Parts of at least two rows each."""
    inner = [edge for edge in sorted(edges) if 2 <= edge <= len(data) - 2]
    kept = [0]
    for edge in inner:
        if edge - kept[-1] >= 2:
            kept.append(edge)
    return [data.rows(slice(start, stop)) for start, stop in pairwise([*kept, len(data)])]


def assert_equal(found, wanted, error=1e-10):
    for name in ("pair_gram", "diag_gram", "column_scale"):
        one, other = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=error * np.abs(other).max())
    assert (found.count, found.kernel_supremum, found.has_remainder) == (wanted.count, wanted.kernel_supremum, False)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(2, 118), max_size=20), st.randoms(use_true_random=False))
def test_parts_in_any_order_are_the_whole(case, edges, random):
    data, question = CASES[case]
    system, wanted = in_memory(data, question)
    parts = [aope.partial_statistic(part, question) for part in cut(data, edges)]
    random.shuffle(parts)
    found = sum(parts)
    assert_equal(found.statistic(), wanted)
    np.testing.assert_allclose(found.subject.objective, system.objective, atol=1e-12)
    assert found.count == len(data) and found.ended == data.terminated.sum()
    # Added as a tree of any shape.
    while len(parts) > 1:
        one = parts.pop(random.randrange(len(parts)))
        other = parts.pop(random.randrange(len(parts)))
        parts.append(other + one)
    assert_equal(parts[0].statistic(), wanted)
    np.testing.assert_array_equal(parts[0].labels, found.labels)
    unit = np.finfo(float).eps
    assert (
        unit * len(question.kernel.labels(system.points)) / 2 <= found.kernel_error <= unit * (len(data) + 30 + found.roundings)
    )


@pytest.mark.parametrize("case", CASES)
def test_addition_is_commutative_to_the_last_bit_and_associative_nearly(case):
    data, question = CASES[case]
    one, two, three = (aope.partial_statistic(part, question) for part in cut(data, {30, 90}))
    for name in ("labels", "projected", "diag_gram", "column_squares", "data_moments", "next_moments"):
        np.testing.assert_array_equal(getattr(one + two, name), getattr(two + one, name))
        np.testing.assert_allclose(getattr((one + two) + three, name), getattr(one + (two + three), name), rtol=1e-13, atol=1e-13)
    assert (one + two).kernel_error == (two + one).kernel_error


def test_rounding_is_counted_along_the_longest_chain_of_additions():
    data, question = CASES["random features"]
    parts = [aope.partial_statistic(part, question) for part in cut(data, {30, 90})]  # 30, 60 and 30 rows
    assert [part.roundings for part in parts] == [31, 61, 31] and sum(parts).roundings == 63
    # As for 120 rows at once: 120 of a block and one more for the block.
    assert sum(parts).kernel_error == np.finfo(float).eps * (121 + 20 + 8)
    tiny = sum(aope.partial_statistic(part, question) for part in cut(data, set(range(2, 119, 2))))
    assert tiny.roundings == 3 + 59  # many parts count one by one
    many = replace(tiny, roundings=5000)
    assert many.kernel_error == np.finfo(float).eps * (5000 + 20 + 8)


def test_moments_are_those_of_the_value_box():
    for data, question in CASES.values():
        system, _ = in_memory(data, question)
        found = reduce(add, (aope.partial_statistic(part, question) for part in cut(data, {40, 41, 77})))
        asked = question.question
        start = aope.classes.expected_features(question.feature_map, asked.starts.states, asked.policy)
        ones = np.ones((len(start), 2 if question.function_class.intercept else 1))
        start = np.column_stack([start, ones])
        live = found.count - found.ended
        moments = (
            found.data_moments / found.count,
            start.T @ (start * asked.starts.weights[:, None]),
            found.next_moments / live,
        )
        np.testing.assert_allclose(np.mean(moments, axis=0), system.box_moments, atol=1e-12)


def test_a_part_in_which_all_episodes_end_has_no_next_states():
    data = VISITS.rows(slice(0, 4))
    ended = aope.Transitions(data.states, data.actions, data.rewards, data.next_states, terminated=np.ones(4, dtype=bool))
    found = aope.partial_statistic(ended, CASES["one-hot"][1])
    assert found.ended == 4 and not found.next_moments.any()


def test_no_part_decides_whether_episodes_end():
    """Without a declaration all rows together do: at a discount of 1 no row of a part need be terminated."""
    facts = aope.Assumptions(discount=1.0, reward_range=(-50, 50), horizon=60)
    question = aope.StreamQuestion(replace(CARE, assumptions=facts), ONE_HOT, aope.Tabular())
    assert aope.partial_statistic(VISITS.rows(~VISITS.terminated), question).ended == 0


def test_sums_are_saved_and_added_to_others(tmp_path):
    for name, (data, question) in CASES.items():
        one, two = (aope.partial_statistic(part, question) for part in cut(data, {50}))
        path = tmp_path / f"{name}.npz"
        one.save(path)
        loaded = aope.PartialStatistic.load(path)
        assert repr(loaded) == repr(one) and loaded.kernel_error == one.kernel_error
        assert_equal((loaded + two).statistic(), (one + two).statistic(), error=0)
    assert len(list(tmp_path.iterdir())) == len(CASES)


def test_files_that_are_none(tmp_path):
    data, question = CASES["random features"]
    found = aope.partial_statistic(data, question)
    found.save(tmp_path / "good.npz")
    good = dict(np.load(tmp_path / "good.npz"))
    text = np.array(["a", "b", "c"])
    wrong = (
        {"projected": good["projected"][1:]},
        {"labels": text},
        {"labels": good["labels"][:, 0]},
        {"counts": np.array([1, 0, 0, 3])},
        {"counts": np.array([10, 11, 0, 3])},
        {"counts": good["counts"].astype(float)},
        {"names": np.zeros(3)},
        {"numbers": np.zeros(3)},
        {"objective": good["objective"][:-1]},
        {"diag_gram": good["diag_gram"].astype(np.float32)},
    )
    for changes in wrong:
        np.savez(tmp_path / "bad.npz", **{**good, **changes})
        with pytest.raises(aope.InvalidFile, match="bad.npz is not a saved PartialStatistic"):
            aope.PartialStatistic.load(tmp_path / "bad.npz")
    (tmp_path / "bad.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:-40])
    with pytest.raises(aope.InvalidFile, match="is not a saved PartialStatistic"):
        aope.PartialStatistic.load(tmp_path / "bad.npz")
    with pytest.raises(aope.InvalidFile, match="is not a saved PartialStatistic"):
        aope.PartialStatistic.load(tmp_path / "nowhere.npz")


@dataclass(frozen=True)
class Halves:
    """Features with a name that does not say what they are."""

    power: int
    dimension: int = 1
    intercept: bool = True

    def __call__(self, points):
        return (points[:, :1] + 0.25) ** self.power

    def __repr__(self):
        return "Halves()"


class Nameless(Halves):
    __repr__ = object.__repr__


def test_sums_of_different_questions_are_not_added():
    kernel, phi = aope.RandomFeatureKernel(9), aope.RandomFourier(7)
    other_policy = replace(QUESTION, starts=aope.StartStates(MDP.starts.states + 0.1))
    one = aope.partial_statistic(DATA, aope.StreamQuestion(QUESTION, phi, kernel))
    others = {
        "`kernel` is RandomFeatureKernel": aope.StreamQuestion(QUESTION, phi, aope.RandomFeatureKernel(9, seed=1)),
        "`features` is RandomFourier": aope.StreamQuestion(QUESTION, aope.RandomFourier(7, seed=1), kernel),
        "`discount` is 0.6 in one and 0.7": aope.StreamQuestion(
            replace(QUESTION, assumptions=replace(FACTS, discount=0.7)), phi, kernel
        ),
        "at the start states differs": aope.StreamQuestion(other_policy, phi, kernel),
    }
    for message, question in others.items():
        two = aope.partial_statistic(DATA, question)
        with pytest.raises(aope.InvalidInput, match=f"Sums of different questions cannot be added: .*{message}"):
            one + two
    called_alike = [aope.partial_statistic(DATA, aope.StreamQuestion(QUESTION, Halves(power), kernel)) for power in (1, 2)]
    with pytest.raises(aope.InvalidInput, match="at the start states differs"):
        sum(called_alike)
    with pytest.raises(TypeError):
        one + 3
    with pytest.raises(TypeError):
        3 + one


def test_numbers_behind_one_name_are_compared():
    anywhere = replace(CARE, policy=aope.DiscretePolicy(lambda states: np.full((len(states), 3), 1 / 3), actions=3))
    grids = (aope.TabularFeatures.grid(np.array([[0.0], [1.0], [2.0], [3.0], [last]]), np.eye(3)) for last in (4.0, 5.0))
    one, two = (aope.StreamQuestion(replace(anywhere, starts=aope.StartStates([[0.0]])), grid, aope.Tabular()) for grid in grids)
    assert one.subject.features == two.subject.features and one.subject.fingerprint != two.subject.fingerprint
    with pytest.raises(aope.InvalidInput, match="are called alike in both, and differ in their numbers"):
        one.subject.refuse_other(two.subject)


def test_features_without_a_name_of_their_own_are_known_again():
    kernel = aope.RandomFeatureKernel(9)
    one, two = (aope.StreamQuestion(QUESTION, Nameless(1), kernel).subject for _ in range(2))
    one.refuse_other(two)
    assert "0x" not in one.features


def test_what_needs_all_rows_is_refused():
    kernel, phi = aope.RandomFeatureKernel(9), aope.RandomFourier(7)
    for exact in (aope.Gaussian(1.0), aope.Product(aope.Tabular(), aope.Tabular(), 1)):
        with pytest.raises(aope.InvalidInput, match="`kernel` must be of finite rank .* any other kernel need all rows at once"):
            aope.StreamQuestion(QUESTION, phi, exact)
    rows_only = aope.Precomputed(np.zeros((4, 2)), np.zeros((4, 2)), np.zeros((1, 2)))
    for features in (aope.KernelSections(aope.Gaussian(1.0)), aope.SemiParametric(phi, aope.Gaussian(1.0)), rows_only):
        with pytest.raises(aope.InvalidInput, match="`features` must be fixed before the data to be summed in parts"):
            aope.StreamQuestion(QUESTION, features, kernel)
    sampled = aope.SampledPolicy(lambda states, generator: generator.normal(size=(len(states), 1)))
    with pytest.raises(aope.InvalidInput, match="`policy` must know its expectations exactly"):
        aope.StreamQuestion(replace(QUESTION, policy=sampled), phi, kernel)


def write(folder, data, edges):
    for number, part in enumerate(cut(data, edges)):
        aope.save_transitions(part, folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("batch_rows", [2, 7, 64, 1000])
def test_a_log_is_summed_from_its_files(tmp_path, batch_rows):
    data, question = CASES["random features"]
    done = []
    scan = aope.scan_transitions(write(tmp_path, data, {33, 70, 80}), batch_rows=batch_rows)
    found = aope.stream_statistic(scan, question, done.append)
    assert_equal(found.statistic(), in_memory(data, question)[1])
    assert done == sorted(done) and done[-1] == 1.0 and len(done) == len(scan.sizes)


def altered(data, **changes):
    names = ("states", "actions", "rewards", "next_states", "terminated", "episodes")
    return aope.Transitions(**{**{name: getattr(data, name) for name in names}, **changes})


def test_a_row_that_contradicts_is_named_with_its_file(tmp_path):
    data, question = CASES["one-hot"]
    rewards, actions = data.rewards.copy(), data.actions.copy()
    rewards[75], actions[75] = 99.0, 3
    for name, values, message in (
        ("rewards", rewards, "`rewards` must lie in the declared reward_range .* first 99 in "),
        ("actions", actions, "`actions` has index 3 in "),
    ):
        folder = tmp_path / name
        folder.mkdir()
        scan = aope.scan_transitions(write(folder, altered(data, **{name: values}), {33, 70, 90}), batch_rows=16)
        with pytest.raises(aope.InvalidInput, match=rf"{message}row 5 of {folder}/2.parquet \(row 75 of the log\)"):
            aope.stream_statistic(scan, question)


def test_what_is_wrong_with_a_part_names_its_rows(tmp_path):
    data, question = CASES["one-hot"]
    known = aope.StepKnowledge(reach=lambda states, actions: (states * 0, states * 0 + 4))
    strict = replace(question, question=replace(CARE, knowledge=known))
    first = int(np.argmax(data.next_states[:, 0] == 5)) // 10 * 10
    scan = aope.scan_transitions(write(tmp_path, data, {33}), batch_rows=10)
    with pytest.raises(aope.InvalidInput, match=f"in the part of rows {first} to {first + 9}: `reach` says"):
        aope.stream_statistic(scan, strict)


@pytest.mark.parametrize("wide", [True, False], ids=["tangents", "table"])
def test_waves_are_cosines_and_sines(wide):
    rng = np.random.default_rng(1)
    for scale in (1e-9, 1.0, 1e3, 1e9):
        frequencies, points = rng.normal(size=(33, 3)) * scale, rng.normal(size=(40, 3))
        waves, angles = Waves(frequencies, wide=wide), points @ frequencies.T
        found = waves.at(points)
        assert found.shape == (40, 66)
        error = 1e-15 + 16 * np.finfo(float).eps * np.abs(angles).max()
        assert np.abs(found - np.hstack([np.cos(angles), np.sin(angles)])).max() < error
        waves.write(points[:7], other := np.empty((7, 66)))
        np.testing.assert_allclose(other, found[:7], atol=error)
        alone = angles.copy()
        cosines(alone)
        assert np.abs(alone - np.cos(angles)).max() < error
    huge = Waves(np.full((2, 1), 1e40), wide=wide).at(np.ones((3, 1)))
    np.testing.assert_allclose(huge[:, :2] ** 2 + huge[:, 2:] ** 2, 1.0)


@pytest.mark.parametrize("wide", [True, False], ids=["tangents", "table"])
def test_no_part_of_the_circle_is_rounded_worse(wide):
    turns = np.concatenate([np.linspace(-1, 1, 40_001), [0.5, -0.5, 0.25, 0.75, np.nextafter(0.5, 0), 0.5 - 1e-12]])[:, None]
    frequencies = np.full((1, 1), 2 * np.pi)
    waves = Waves(frequencies, wide=wide)
    parts = [waves.at(turns[start : start + waves.rows]).copy() for start in range(0, len(turns), waves.rows)]
    exact = 2 * np.pi * turns.astype(np.longdouble)
    error = 4 * np.finfo(float).eps
    assert np.abs(np.concatenate(parts) - np.hstack([np.cos(exact), np.sin(exact)])).max() < error * (1 + 2 * np.pi)


def test_projections_of_many_rows_do_not_depend_on_blocks_or_threads():
    rng = np.random.default_rng(1)
    points, columns = rng.normal(size=(20_000, 3)), rng.normal(size=(20_000, 4))
    kernel = aope.RandomFeatureKernel(6)
    wanted = kernel.features(points).T @ columns
    np.testing.assert_allclose(kernel.project(points, columns), wanted, atol=1e-10)
    np.testing.assert_array_equal(kernel.project(points, columns), kernel.project(points, columns))


@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        ("counts", 0, 10**6, "is said to be of 1000000 rows"),
        ("counts", 1, 100, "of which 100 are terminated, and its sums are not"),
        ("numbers", 1, -1.0, "negative"),
        ("diag_gram", (0, 0), np.nan, "not all finite"),
        ("data_moments", (0, 0), np.nan, "not all finite"),
    ],
)
def test_sums_that_contradict_themselves_are_refused(tmp_path, name, at, value, words):
    aope.partial_statistic(*CASES["random features"]).save(tmp_path / "sums.npz")
    arrays = dict(np.load(tmp_path / "sums.npz"))
    arrays[name][at] = value
    np.savez(tmp_path / "sums.npz", **arrays)
    with pytest.raises(aope.InvalidFile, match=words):
        aope.PartialStatistic.load(tmp_path / "sums.npz")


def test_sums_with_another_supremum_of_the_kernel_are_of_another_question():
    data, question = CASES["random features"]
    sums = aope.partial_statistic(data, question)
    other = replace(sums, subject=replace(sums.subject, kernel_supremum=1e-6))
    with pytest.raises(aope.InvalidInput, match="`kernel_supremum`"):
        aope.bound_sums(other, question, data)
