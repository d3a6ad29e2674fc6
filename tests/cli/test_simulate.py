"""`aope simulate` as a stranger uses it: files that the other commands take, seeds, a Minari dataset, errors before any work."""

import json
import shlex

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments.control_task import roll_out
from accountable_ope.environments.softmax import control_task, softmax_policy
from accountable_ope.io.minari import load_minari
from accountable_ope.io.reading import read_transition_file
from accountable_ope.io.starts import read_start_file
from command import aope_command

FIELDS = ("states", "actions", "rewards", "next_states", "terminated", "episodes")


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def run(folder, *arguments):
    return aope_command("simulate", *arguments, cwd=folder)


def assert_same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("task", ["puck-mountain", "inverted-pendulum"])
def test_files_hold_the_roll_out_and_the_target_policy(tmp_path, task):
    done = run(
        tmp_path, task, "--temperature", 0.5, "--target-temperature", 0.2, "--episodes", 7, "--length", 12, "--seed", 3,
        "--out", "data.parquet", "--starts", "starts.parquet",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    problem, target = control_task(task), softmax_policy(task, 0.2)
    data = roll_out(problem, softmax_policy(task, 0.5), np.random.default_rng(3), episodes=7, length=12)
    file, starts = read_transition_file(tmp_path / "data.parquet"), read_start_file(tmp_path / "starts.parquet")
    assert_same(file.data, data)
    logged = softmax_policy(task, 0.5).probabilities(data.states)[np.arange(len(data)), data.actions]
    np.testing.assert_allclose(file.data.behavior_probability, logged, rtol=0, atol=1e-12)
    alive = ~data.terminated
    np.testing.assert_allclose(file.at_state, target.probabilities(data.states), rtol=0, atol=1e-12)
    np.testing.assert_allclose(file.at_next[alive], target.probabilities(data.next_states)[alive], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(starts.starts.states, problem.starts.states)
    np.testing.assert_allclose(starts.at_state, target.probabilities(problem.starts.states), rtol=0, atol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "starts.parquet"]


def test_text_says_what_was_written_and_what_to_run(tmp_path):
    done = run(
        tmp_path, "puck-mountain", "--episodes", 3, "--out", "data.parquet", "--starts", "starts.parquet", "--minari", "puck-v0"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "puck-mountain, softmax policy at temperature 1, seed 0: 300 transitions in 3 episodes, 0 terminated",
        "Transitions: data.parquet (target policy at temperature 0.1)",
        "Start states: starts.parquet (100, the distribution itself)",
        "Minari dataset: puck-v0",
        "Next, with a norm bound of your own:",
        "  aope bound data.parquet --starts starts.parquet --action-values=-1,0,1 --discount 0.95 --reward-range 0 1 "
        "--deterministic-reward --state-box=-1:1,-1:1 --norm-bound 10",
    ]


@pytest.mark.parametrize(("task", "starts"), [("puck-mountain", ()), ("inverted-pendulum", ("--starts", "its starts.parquet"))])
def test_the_next_command_runs(tmp_path, task, starts):
    done = run(tmp_path, task, "--episodes", 6, "--length", 20, "--out", "its data.parquet", *starts, "--json")
    assert done.returncode == 0, done.stderr
    words = shlex.split(json.loads(done.stdout)["next"])
    assert words[:3] == ["aope", "bound", "its data.parquet"]
    bounded = aope_command(*words[1:], "--json", cwd=tmp_path)
    assert bounded.returncode in (0, 3), bounded.stderr
    (interval,) = json.loads(bounded.stdout)["intervals"]
    assert 0 <= interval["lower"] <= interval["upper"] <= 20
    assert ("--deterministic-reward" in words) == (task == "puck-mountain")
    assert next(word for word in words if word.startswith("--action-values=")).count(",") + 1 == len(control_task(task).actions)


def test_json_counts_what_is_in_the_file(tmp_path):
    done = run(tmp_path, "inverted-pendulum", "--episodes", 15, "--out", "data.parquet", "--json")
    assert done.returncode == 0, done.stderr
    found, data = json.loads(done.stdout), aope.load_transitions(tmp_path / "data.parquet")
    assert (found["rows"], found["episodes"], found["terminated"]) == (len(data), 15, int(data.terminated.sum()))
    assert found["terminated"] > 0 and data.number_of_episodes == 15
    assert (found["task"], found["temperature"], found["target_temperature"], found["seed"]) == ("inverted-pendulum", 1, 0.1, 0)
    assert (found["transitions"], found["starts"], found["minari"]) == ("data.parquet", None, None)


def test_the_seed_decides(tmp_path):
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        assert run(tmp_path, "puck-mountain", "--episodes", 2, "--seed", seed, "--out", f"{name}.parquet").returncode == 0
    one, same, other = (aope.load_transitions(tmp_path / f"{name}.parquet") for name in ("one", "same", "other"))
    assert_same(one, same)
    assert not np.array_equal(one.next_states, other.next_states)


def test_a_lower_temperature_is_greedier(tmp_path):
    """Share of rows in which the network's best action was taken."""
    shares = []
    for temperature in (0.05, 5):
        arguments = ("--temperature", temperature, "--episodes", 4, "--out", "data.parquet")
        assert run(tmp_path, "puck-mountain", *arguments).returncode == 0
        data = aope.load_transitions(tmp_path / "data.parquet")
        best = softmax_policy("puck-mountain", 0.1).probabilities(data.states).argmax(axis=1)
        shares.append(np.mean(best == data.actions))
    assert shares[0] > shares[1] + 0.2


def test_a_minari_dataset_alone(tmp_path, datasets):
    done = run(tmp_path, "inverted-pendulum", "--episodes", 5, "--minari", "group/pole-v1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["minari"], found["transitions"], found["next"]) == ("group/pole-v1", None, None)
    data = roll_out(
        control_task("inverted-pendulum"), softmax_policy("inverted-pendulum", 1.0), np.random.default_rng(0), episodes=5
    )
    assert_same(load_minari("group/pole-v1"), data)
    assert [path.name for path in tmp_path.iterdir()] == ["datasets"]
    about = json.loads((datasets / "group/pole-v1/data/metadata.json").read_text())
    assert about["description"] == "inverted-pendulum, softmax policy at temperature 1, 5 episodes, seed 0."
    assert json.loads(about["action_space"])["n"] == 7 and json.loads(about["observation_space"])["high"] == [1.0] * 4
    text = run(tmp_path, "inverted-pendulum", "--episodes", 1, "--minari", "group/pole-v2").stdout
    assert "transitions in 1 episode, " in text and text.endswith("Minari dataset: group/pole-v2\n")


def test_an_existing_dataset_stops_everything(tmp_path):
    assert run(tmp_path, "puck-mountain", "--episodes", 2, "--minari", "puck-v0").returncode == 0
    done = run(tmp_path, "puck-mountain", "--episodes", 2, "--minari", "puck-v0", "--out", "data.parquet")
    assert done.returncode == 2 and "`dataset_id` puck-v0 exists already" in done.stderr
    assert not (tmp_path / "data.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mountain-car",), "`task` must be one of inverted-pendulum, puck-mountain. Got 'mountain-car'"),
        (("puck-mountain", "--temperature", 0), "`temperature` must be positive. Got 0.0"),
        (("puck-mountain", "--temperature", "nan"), "`temperature` must be a finite number"),
        (("puck-mountain", "--target-temperature", -1), "`target_temperature` must be positive. Got -1.0"),
        (("puck-mountain", "--episodes", 0), "`episodes` must be a whole number of at least 1. Got 0"),
        (("puck-mountain", "--length", 0), "`length` must be a whole number of at least 1. Got 0"),
        (("puck-mountain", "--seed", -1), "`seed` must be a whole number of at least 0. Got -1"),
        (("puck-mountain", "--episodes", 1, "--length", 1), "At least two transitions are needed. Got 1"),
        (("puck-mountain", "--starts", "data.parquet"), "--out and --starts must be different files. Both are data.parquet"),
        (("puck-mountain", "--starts", "none/starts.parquet"), "none/starts.parquet cannot be written: there is no folder none"),
        (("puck-mountain", "--starts", "."), ". cannot be written: it is a folder"),
        (("puck-mountain", "--minari", "puck"), "`dataset_id` must look like name-v0 or group/name-v0"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path, arguments, message):
    done = run(tmp_path, *arguments, "--out", "data.parquet")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data.parquet").exists()


def test_nothing_to_write_is_refused(tmp_path):
    for arguments in ((), ("--starts", "starts.parquet")):
        done = run(tmp_path, "puck-mountain", *arguments)
        assert done.returncode == 2 and "--out or --minari is needed" in done.stderr
    assert list(tmp_path.iterdir()) == []
