"""Minari in and out: what is written is read back to the last bit, by Minari too, and whatever cannot be is one sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import minari
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minari.data_collector import EpisodeBuffer

import accountable_ope as aope
from accountable_ope.environments.control_task import roll_out
from accountable_ope.environments.inverted_pendulum import InvertedPendulum
from accountable_ope.io.minari import load_minari, new_minari_folder, save_minari
from accountable_ope.problem.policy import DiscretePolicy

FIELDS = ("states", "actions", "rewards", "next_states", "terminated", "episodes")
LOGGED = "behavior_probability"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def episodes(lengths: list[int], ended: list[bool], actions: str = "index", seed: int = 0, columns: int = 2) -> aope.Transitions:
    """Random walks of these lengths, terminated where it says so."""
    rng = np.random.default_rng(seed)
    paths = [rng.standard_normal((length + 1, columns)) for length in lengths]
    rows = sum(lengths)
    last = np.cumsum(lengths) - 1
    terminated = np.zeros(rows, dtype=bool)
    terminated[last[np.array(ended)]] = True
    return aope.Transitions(
        np.concatenate([path[:-1] for path in paths]),
        rng.integers(3, size=rows) if actions == "index" else rng.standard_normal((rows, 2)),
        rng.standard_normal(rows),
        np.concatenate([path[1:] for path in paths]),
        terminated,
        np.repeat(np.arange(len(lengths)), lengths),
    )


DATA = episodes([3, 1, 5, 2], [True, False, False, True])


def assert_same(one: aope.Transitions, other: aope.Transitions) -> None:
    for name in FIELDS:
        first, second = getattr(one, name), getattr(other, name)
        assert first.dtype == second.dtype and first.shape == second.shape, name
        np.testing.assert_array_equal(first, second, err_msg=name)


@pytest.mark.parametrize("actions", ["index", "vector"])
@pytest.mark.parametrize("columns", [1, 4])
def test_round_trip(actions: str, columns: int, root: Path) -> None:
    data = episodes([3, 1, 5, 2], [True, False, False, True], actions, columns=columns)
    folder = save_minari(data, "group/walk-v0")
    assert folder == root / "group" / "walk-v0"
    for name in ("group/walk-v0", folder, str(folder), folder / "data"):
        assert_same(load_minari(name), data)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=2, max_size=12),
    seed=st.integers(0, 10**6),
    actions=st.sampled_from(["index", "vector"]),
)
def test_round_trip_of_any_episodes(tmp_path_factory: Any, shape: list[tuple[int, bool]], seed: int, actions: str) -> None:
    data = episodes([length for length, _ in shape], [ended for _, ended in shape], actions, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("datasets")))
        save_minari(data, "any-v0")
        assert_same(load_minari("any-v0"), data)


def test_round_trip_of_a_simulated_task() -> None:
    task = InvertedPendulum()
    policy = DiscretePolicy(lambda states: np.full((len(states), 7), 1 / 7), task.actions)
    data = roll_out(task, policy, np.random.default_rng(0), episodes=30, length=9)
    assert 0 < data.terminated.sum() < 30
    save_minari(data, "pendulum-v0", actions=7, state_box=task.state_box)
    assert_same(load_minari("pendulum-v0"), data)


def recorded(given: Any = None) -> aope.Transitions:
    chances = np.random.default_rng(0).uniform(0.1, 1, size=len(DATA)) if given is None else given
    return aope.Transitions(**{name: getattr(DATA, name) for name in FIELDS}, behavior_probability=chances)


def test_recorded_probabilities_are_infos_of_the_steps() -> None:
    data = recorded()
    save_minari(data, "logged-v0")
    found = load_minari("logged-v0")
    assert_same(found, data)
    np.testing.assert_array_equal(found.behavior_probability, data.behavior_probability)
    first = minari.load_dataset("logged-v0")[0]
    assert first.infos[LOGGED].tolist() == [1.0, *data.behavior_probability[:3]]
    save_minari(DATA, "plain-v0")
    assert load_minari("plain-v0").behavior_probability is None


@pytest.mark.parametrize(
    ("infos", "message"),
    [
        ([[1.0, 0.5, 0.5], None], "has `behavior_probability` in 1 of 2 episodes"),
        ([[0.5, 0.5], [0.5, 0.5]], "of episode 0 has shape \\(2,\\); one for the reset, which is not used, and one per step"),
        ([[1.0, 0.5, 0.0], [1.0, 0.5, 0.5]], "in \\(0, 1\\]. Got 0 in row 1"),
    ],
)
def test_infos_that_are_no_probabilities_are_one_sentence(infos: list[Any], message: str) -> None:
    buffers = [
        EpisodeBuffer(
            observations=np.zeros((3, 1)),
            actions=np.zeros(2, dtype=np.int64),
            rewards=np.zeros(2),
            terminations=np.zeros(2, dtype=bool),
            truncations=np.array([False, True]),
            infos=None if each is None else {LOGGED: np.array(each)},
        )
        for each in infos
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "odd-v0",
            buffers,
            observation_space=spaces.Box(-1, 1, (1,), np.float64),
            action_space=spaces.Discrete(2),
            data_format="hdf5",
        )
    with pytest.raises(aope.errors.InvalidFile, match=message):
        load_minari("odd-v0")


def test_a_long_episode_comes_back_whole() -> None:
    """Longer than the batches in which Minari's Arrow format loses rows."""
    data = episodes([40_000, 3], [False, True])
    save_minari(data, "long-v0")
    assert_same(load_minari("long-v0"), data)


def test_many_episodes_stay_in_order() -> None:
    data = episodes([1 + k % 3 for k in range(120)], [k % 2 == 0 for k in range(120)])
    save_minari(data, "many-v0")
    assert_same(load_minari("many-v0"), data)


def test_minari_reads_what_was_meant() -> None:
    save_minari(DATA, "walk-v0", actions=5, state_box=([-9, -9], [9, 9]), description="A walk.")
    stored = minari.load_dataset("walk-v0")
    assert (stored.total_episodes, stored.total_steps) == (4, 11)
    assert stored.observation_space == spaces.Box(np.full(2, -9.0), np.full(2, 9.0), dtype=np.float64)
    assert stored.action_space == spaces.Discrete(5)
    assert stored.storage.metadata["description"] == "A walk." and stored.env_spec is None
    found = list(stored.iterate_episodes())
    assert [len(one) for one in found] == [3, 1, 5, 2]
    assert [one.observations.shape for one in found] == [(4, 2), (2, 2), (6, 2), (3, 2)]
    assert [one.terminations.tolist() for one in found] == [[False, False, True], [False], [False] * 5, [False, True]]
    assert [one.truncations.tolist() for one in found] == [[False] * 3, [True], [False] * 4 + [True], [False] * 2]
    np.testing.assert_array_equal(found[2].observations[:-1], DATA.states[4:9])
    np.testing.assert_array_equal(found[2].observations[-1], DATA.next_states[8])


def test_nothing_about_ranges_is_read_off_the_data() -> None:
    save_minari(DATA, "index-v0")
    save_minari(episodes([3, 2], [True, False], "vector"), "vector-v0")
    index, vector = minari.load_dataset("index-v0"), minari.load_dataset("vector-v0")
    assert index.observation_space == spaces.Box(-np.inf, np.inf, (2,), np.float64)
    assert index.action_space == spaces.Discrete(int(DATA.actions.max()) + 1)
    assert vector.action_space == spaces.Box(-np.inf, np.inf, (2,), np.float64)


def test_writing_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_minari(DATA, "walk-v0")
    assert capsys.readouterr() == ("", "")


# What cannot be written


def test_an_existing_dataset_is_left_alone(root: Path) -> None:
    folder = save_minari(DATA, "walk-v0")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(aope.InvalidInput, match=r"`dataset_id` walk-v0 exists already, in .*walk-v0: choose another"):
        save_minari(episodes([4], [True]), "walk-v0")
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    save_minari(episodes([4], [True]), "walk-v1")
    assert_same(load_minari("walk-v0"), DATA)


@pytest.mark.parametrize(
    "name",
    [
        "walk", "walk-v", "walk-vx", "", "../walk-v0", "a/walk-v0", "/tmp/walk-v0", "gr//ab/walk-v0", "wa lk-v0", "wälk-v0",
        "walk-v0\n",
    ],
)  # fmt: skip
def test_bad_ids_are_refused(name: Any, root: Path) -> None:
    with pytest.raises(aope.InvalidInput, match="`dataset_id` must look like name-v0 or group/name-v0"):
        save_minari(DATA, name)
    assert not root.exists() or not list(root.iterdir())


def test_the_folder_of_a_new_dataset_is_named_but_not_made(root: Path) -> None:
    assert new_minari_folder("gr/oup/walk-v3") == root / "gr" / "oup" / "walk-v3"
    assert not (root / "gr").exists()


def changed(**fields: Any) -> aope.Transitions:
    return aope.Transitions(**({name: getattr(DATA, name) for name in FIELDS} | fields))


LEFT = int(np.argmax(DATA.states[:, 0] < -0.5))


def moved(row: int) -> np.ndarray:
    states = DATA.states.copy()
    states[row, 1] += 1e-9
    return states


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (changed(episodes=None), {}, "`episodes` are needed"),
        (changed(episodes=[0, 0, 0, 1, 2, 2, 1, 2, 2, 3, 3]), {}, "`episodes` must not be interleaved .* Row 6 goes back"),
        (changed(states=moved(6)), {}, r"`states` must be the `next_states` of the row before, .* Row 6 is \[.*\], after \["),
        (changed(states=moved(10)), {}, "Row 10 is"),
        (changed(terminated=np.arange(11) == 5), {}, "`terminated` must end an episode of a Minari dataset. Row 6 comes after"),
        (DATA, {"actions": 2}, "`actions` must be at least 3: the data have index 2. Got 2"),
        (DATA, {"actions": 3.5}, "`actions` must be a whole number"),
        (episodes([2, 2], [True, True], "vector"), {"actions": 3}, "but the data have action vectors"),
        (DATA, {"state_box": ([0, 0, 0], [1, 1, 1])}, r"`state_box` must be \(lows, highs\) with a number for each of 2"),
        (DATA, {"state_box": ([1, 1], [0, 0])}, "`state_box` must be"),
        (DATA, {"state_box": ([-0.5, -9], [9, 9])}, rf"`states` must lie in `state_box`. Row {LEFT} is \["),
    ],
)
def test_data_that_are_no_episodes_are_refused(data: aope.Transitions, options: dict[str, Any], message: str, root: Path) -> None:
    with pytest.raises(aope.InvalidInput, match=message) as caught:
        save_minari(data, "walk-v0", **options)
    assert "\n" not in str(caught.value)
    assert not root.exists()


def test_a_last_state_outside_the_box_is_found() -> None:
    high = DATA.states.max(axis=0)
    assert (DATA.next_states > high).any()
    with pytest.raises(aope.InvalidInput, match="`next_states` must lie in `state_box`"):
        save_minari(DATA, "walk-v0", state_box=([-9, -9], high))


def test_first_rows_of_episodes_may_start_anywhere() -> None:
    save_minari(changed(states=moved(3)), "walk-v0")
    assert_same(load_minari("walk-v0"), changed(states=moved(3)))


def test_a_failed_write_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from minari.dataset._storages.hdf5_storage import HDF5Storage

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(HDF5Storage, "update_episodes", full)
        with pytest.raises(aope.InvalidFile, match="dataset walk-v0 cannot be written: No space left on device"):
            save_minari(DATA, "walk-v0")
    assert list(root.iterdir()) == []
    save_minari(DATA, "walk-v0")


def test_a_root_that_is_a_file_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file"))
    with pytest.raises(aope.InvalidFile, match="dataset walk-v0 cannot be looked up: "):
        save_minari(DATA, "walk-v0")


# Datasets of others


def create(
    name: str,
    observations: list[Any],
    actions: list[Any],
    observation_space: spaces.Space,
    action_space: spaces.Space,
    flags: tuple[list[list[bool]], list[list[bool]]] | None = None,
    data_format: str = "hdf5",
) -> None:
    lengths = [len(one) for one in actions]
    terminations, truncations = flags or ([[False] * n for n in lengths], [[False] * n for n in lengths])
    buffers = [
        EpisodeBuffer(observations=o, actions=a, rewards=[0.5] * len(a), terminations=t, truncations=u)
        for o, a, t, u in zip(observations, actions, terminations, truncations, strict=True)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            name, buffers, observation_space=observation_space, action_space=action_space, data_format=data_format
        )


LINE = spaces.Box(-np.inf, np.inf, (1,), np.float32)
WALK = [np.arange(4, dtype=np.float32)[:, None], np.arange(10, 13, dtype=np.float32)[:, None]]


@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
def test_flags_are_kept_apart_and_termination_wins(data_format: str) -> None:
    terminations = [[False, False, False], [False, True]]
    truncations = [[False, False, True], [False, True]]
    create("flags-v0", WALK, [[1, 0, 1], [0, 1]], LINE, spaces.Discrete(2), (terminations, truncations), data_format)
    data = load_minari("flags-v0")
    assert data.terminated.tolist() == [False, False, False, False, True]
    assert data.states[:, 0].tolist() == [0, 1, 2, 10, 11] and data.next_states[:, 0].tolist() == [1, 2, 3, 11, 12]
    assert data.actions.tolist() == [1, 0, 1, 0, 1] and data.finite_actions
    assert data.episodes is not None and data.episodes.tolist() == [0, 0, 0, 1, 1]
    assert data.states.dtype == np.float64


def test_no_row_is_dropped_where_an_episode_goes_on_after_a_flag() -> None:
    terminations = [[True, False, False], [False, False]]
    create("odd-v0", WALK, [[1, 0, 1], [0, 1]], LINE, spaces.Discrete(2), (terminations, [[False] * 3, [False] * 2]))
    assert load_minari("odd-v0").terminated.tolist() == [True, False, False, False, False]


def test_discrete_actions_are_counted_from_zero() -> None:
    create("from-v0", WALK, [[5, 6, 7], [7, 5]], LINE, spaces.Discrete(3, start=5))
    assert load_minari("from-v0").actions.tolist() == [0, 1, 2, 2, 0]


def test_other_spaces_of_numbers() -> None:
    grids = [np.arange(24.0).reshape(4, 2, 3), np.arange(18.0).reshape(3, 2, 3)]
    pushes = [np.array([[0, 1], [1, 2], [1, 0]]), np.array([[1, 1], [0, 0]])]
    create("grid-v0", grids, pushes, spaces.Box(-99, 99, (2, 3), np.float64), spaces.MultiDiscrete([2, 3]))
    data = load_minari("grid-v0")
    assert data.states.shape == (5, 6) and data.states[1].tolist() == list(range(6, 12))
    assert data.actions.tolist() == [[0, 1], [1, 2], [1, 0], [1, 1], [0, 0]] and data.actions.dtype == np.float64
    create("cell-v0", [[3, 1, 2], [0, 1]], [[0, 1], [1]], spaces.Discrete(4), spaces.Discrete(2))
    assert load_minari("cell-v0").states.tolist() == [[3], [1], [0]]
    bits = [np.array([[0, 1], [1, 0], [1, 1]], dtype=np.int8)]
    create("bits-v0", bits, [[0, 1]], spaces.MultiBinary(2), spaces.Discrete(2))
    assert load_minari("bits-v0").next_states.tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("data_format", ["arrow", "parquet"])
def test_rows_that_minari_loses_are_noticed(data_format: str) -> None:
    """Minari 0.5.4 gives back a part of such an episode; one that gives all of it is as good as the error."""
    path = np.zeros((40_001, 1), dtype=np.float32)
    create("lost-v0", [path], [np.zeros(40_000, dtype=int)], LINE, spaces.Discrete(2), None, data_format)
    try:
        assert len(load_minari("lost-v0")) == 40_000
    except aope.InvalidFile as error:
        assert re.match("lost-v0 gives [0-9]+ steps in 1 episodes, but should have 40000 in 1: ", str(error))  # noqa: PT017


def test_spaces_that_are_no_numbers_are_named() -> None:
    path = np.arange(3.0)[:, None]
    box = spaces.Box(-9, 9, (1,), np.float64)
    create("dict-v0", [{"a": path, "b": path}], [[0, 1]], spaces.Dict(a=box, b=box), spaces.Discrete(2))
    with pytest.raises(aope.InvalidFile, match="dict-v0 has observations of kind Dict; only Box, Discrete"):
        load_minari("dict-v0")
    create("pair-v0", [path], [([0, 1], [1, 1])], box, spaces.Tuple([spaces.Discrete(2)] * 2))
    with pytest.raises(aope.InvalidFile, match="pair-v0 has actions of kind Tuple"):
        load_minari("pair-v0")


def test_bad_numbers_name_the_dataset() -> None:
    create("nan-v0", [np.array([[0.0], [np.nan], [2.0]])], [[0, 1]], LINE, spaces.Discrete(2))
    with pytest.raises(aope.InvalidFile, match="nan-v0: `states` has 1 NaN or infinite entry, first in row 1"):
        load_minari("nan-v0")
    create("short-v0", [np.zeros((2, 1))], [[0]], LINE, spaces.Discrete(2))
    with pytest.raises(aope.InvalidFile, match="short-v0: At least two transitions are needed. Got 1"):
        load_minari("short-v0")
    create("missing-v0", [np.zeros((2, 1))], [[0, 1]], LINE, spaces.Discrete(2))
    with pytest.raises(aope.InvalidFile, match="missing-v0: episode 0 has 2 rewards, 2 observations, 2 actions"):
        load_minari("missing-v0")


def test_what_is_not_there_is_said(root: Path, tmp_path: Path) -> None:
    with pytest.raises(aope.InvalidFile, match="There is no Minari dataset gr/no-v0 in .*: `minari download gr/no-v0` fetches"):
        load_minari("gr/no-v0")
    for folder in (tmp_path, tmp_path / "nowhere", "nowhere"):
        with pytest.raises(aope.InvalidFile, match="is not the folder of a Minari dataset"):
            load_minari(folder)


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "data" / "metadata.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in (about | changes).items() if value is not None}))


def test_broken_datasets_are_one_sentence() -> None:
    folder = save_minari(DATA, "walk-v0")
    good = (folder / "data" / "metadata.json").read_text()
    for changes, message in (
        ({"minari_version": "99.0"}, "cannot be read: The installed Minari version .* does not support"),
        ({"data_format": "tape"}, "cannot be read: 'tape'"),
        ({"total_steps": 12}, "gives 11 steps in 4 episodes, but should have 12 in 4"),
    ):
        edit(folder, **changes)
        with pytest.raises(aope.InvalidFile, match=message) as caught:
            load_minari("walk-v0")
        assert "walk-v0" in str(caught.value) and "\n" not in str(caught.value)
        (folder / "data" / "metadata.json").write_text(good)
    (folder / "data" / "metadata.json").write_text("{")
    with pytest.raises(aope.InvalidFile, match="cannot be read: "):
        load_minari("walk-v0")
    (folder / "data" / "metadata.json").write_text(good)
    (folder / "data" / "main_data.hdf5").write_bytes(b"no HDF5")
    with pytest.raises(aope.InvalidFile, match="cannot be read: "):
        load_minari("walk-v0")


@pytest.mark.parametrize("key", ["observation_space", "action_space"])
def test_no_environment_is_made_to_read_a_dataset(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset without spaces names an environment instead, and making it would run whatever code it names."""
    (tmp_path / "trap.py").write_text("raise SystemExit('this code must not run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = save_minari(DATA, "walk-v0")
    trap = {"id": "Trap-v0", "entry_point": "trap:make", "additional_wrappers": [], "kwargs": {}}
    edit(folder, **{key: None}, env_spec=json.dumps(trap))
    with pytest.raises(aope.InvalidFile, match=f"has no `{key}` in its metadata, and no environment is made"):
        load_minari("walk-v0")
    assert "trap" not in sys.modules


@pytest.mark.parametrize("missing", ["minari", "gymnasium", "h5py", "PIL"])
def test_without_a_package_the_error_holds_the_pip_command(missing: str, root: Path) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import numpy as np, accountable_ope as aope; from accountable_ope.io.minari import save_minari\n"
        "try: save_minari(aope.Transitions([0., 1.], [0, 1], [0., 0.], [1., 2.], None, [0, 0]), 'walk-v0')\n"
        "except aope.MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == 'Minari datasets need Minari: pip install "accountable-ope[experiments]".', done.stderr
    assert not root.exists() or not list(root.iterdir())
