"""`aope diagnose`, `aope correct` and `aope bound --average-reward` as a stranger uses them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, chain
from accountable_ope.problem.problem import Experience
from accountable_ope.radii.registry import DEFAULT_RADIUS
from accountable_ope.statistics.estimates import q_columns
from command import aope_command

MDP = PlantedMDP(seed=1, features=5, discount=0.8)
COMMON = (
    "--starts", "starts.parquet", "--action-values=-1,0,1", "--discount", 0.8, "--reward-range", 0, 1, "--deterministic-reward",
    "--norm-bound", 3, "--features", 12, "--bandwidth", 1,
)  # fmt: skip
ESTIMATE = (*COMMON, "--radius", "azuma")
"""A radius that does not refute the class, which does not contain Q."""
Q_CODE = """
import numpy as np

def good(states, actions):
    return np.full(len(states), 2.4)

def bad(states, actions):
    return 2.4 + 2.0 * np.exp(-((states - 0.5) ** 2).sum(axis=1))

def broken(states, actions):
    raise KeyError("no such state")

number = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("estimates")
    data = MDP.sample(np.random.default_rng(0), trajectories=60, length=50)
    states = np.concatenate([data.states, data.next_states, MDP.starts.states])
    probabilities = np.column_stack([b.weights for b in MDP.policy.branches(states)])
    table = aope.TabulatedPolicy(states, probabilities, [[-1.0], [0.0], [1.0]])
    aope.save_transitions(data, here / "data.parquet", table)
    aope.save_starts(MDP.starts, here / "starts.parquet", table)
    (here / "estimates_of_q.py").write_text(Q_CODE)
    namespace: dict = {}
    exec(Q_CODE, namespace)
    anchor = q_columns(namespace["bad"], Experience(data, MDP.starts, MDP.policy, MDP.discount))
    with_q = pq.read_table(here / "data.parquet").append_column("q", pa.array(anchor.at_data))
    pq.write_table(with_q.append_column("next_q", pa.array(anchor.at_next)), here / "data-q.parquet")
    pq.write_table(
        pq.read_table(here / "starts.parquet").append_column("q", pa.array(anchor.at_start)), here / "starts-q.parquet"
    )
    return here


def test_diagnose_text_json_and_plot(folder):
    done = aope_command("diagnose", "data.parquet", *ESTIMATE, "--q", "estimates_of_q:bad", "--plot", "witness.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    for word in ("REJECTED", "Estimate of the value", "Where it is wrong", "too high", "Q minus the given estimate"):
        assert word in " ".join(done.stdout.split())
    assert (folder / "witness.png").stat().st_size > 10_000
    found = json.loads(
        aope_command("diagnose", "data.parquet", *ESTIMATE, "--q", "estimates_of_q:bad", "--json", cwd=folder).stdout
    )
    assert found["verdict"] == "REJECTED" and found["loss"] > found["threshold"]
    assert found["interval"]["lower"] <= MDP.value <= found["interval"]["upper"]
    assert np.linalg.norm(np.array(found["witness"][0]["point"][:2]) - 0.5) < 0.7


def test_columns_are_the_function(folder):
    by_name = json.loads(
        aope_command("diagnose", "data.parquet", *ESTIMATE, "--q", "estimates_of_q:bad", "--json", cwd=folder).stdout
    )
    columns = ["starts-q.parquet" if word == "starts.parquet" else word for word in ESTIMATE]
    by_columns = json.loads(aope_command("diagnose", "data-q.parquet", *columns, "--json", cwd=folder).stdout)
    assert by_columns["loss"] == pytest.approx(by_name["loss"], rel=1e-12)
    assert by_columns["interval"]["upper"] == pytest.approx(by_name["interval"]["upper"], rel=1e-9)


def test_correct_saves_the_change(folder):
    words = ("correct", "data.parquet", *ESTIMATE, "--q", "estimates_of_q:bad")
    done = aope_command(*words, "--output", "change.npz", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == "CORRECTED" and found["loss_after"] <= found["threshold"] * (1 + 1e-9)
    np.testing.assert_allclose(aope.classes.load_linear_q(folder / "change.npz").theta, found["coefficients"])
    text = aope_command(*words, cwd=folder)
    assert "CORRECTED" in text.stdout and "norm of the change" in " ".join(text.stdout.split())
    unchanged = aope_command("correct", "data.parquet", *ESTIMATE, "--q", "estimates_of_q:good", "--json", cwd=folder)
    assert json.loads(unchanged.stdout)["norm"] == 0


def test_infeasible_correction_exits_with_4(folder):
    done = aope_command(
        "correct", "data.parquet", *ESTIMATE, "--features", 1, "--feature-bandwidth", 0.05, "--no-intercept", "--delta", 0.99,
        "--q", "estimates_of_q:bad", "--bandwidth", 0.7, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 4, done.stdout
    assert "INFEASIBLE" in done.stdout


@pytest.mark.parametrize("command", ["diagnose", "correct"])
def test_the_default_radius_is_that_of_the_library(folder, command):
    words = (command, "data.parquet", *COMMON, "--q", "estimates_of_q:good", "--json")
    found = json.loads(aope_command(*words, cwd=folder).stdout)
    assert found["interval"]["radius"] == DEFAULT_RADIUS == "certified"
    assert found == json.loads(aope_command(*words, "--radius", "certified", "--delta", 0.1, cwd=folder).stdout)


def test_landmarks_on_the_command_line(folder):
    words = [w for w in COMMON if w not in ("--features", 12)]
    done = aope_command("bound", "data.parquet", *words, "--landmarks", 60, "--feature-bandwidth", 2, "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert [x["radius"] for x in found["intervals"]] == ["certified"]
    assert "KernelSections" in found["intervals"][-1]["classes"][0]["features"]


@pytest.mark.parametrize("words", [("--features", 5), ("--landmarks", 40)])
def test_bandwidths_chosen_on_earlier_episodes(folder, words):
    common = [w for w in COMMON if w not in ("--features", 12)]
    at = common.index("--bandwidth")
    del common[at : at + 2]  # it would be chosen, not declared
    done = aope_command(
        "bound", "data.parquet", *common, *words, "--earlier-share", 0.2, "--radius", "azuma", "--json", cwd=folder
    )
    found = json.loads(done.stdout)
    assert found["transitions"] == 2400
    assert any("chosen on the first 600 rows" in line for line in found["intervals"][0]["assumed"])


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("diagnose", (), "There is no column `q` in the data"),
        ("correct", (), "There is no column `q` in the data"),
        ("diagnose", ("--q", "estimates_of_q:broken"), "--q estimates_of_q:broken raised KeyError"),
        ("diagnose", ("--q", "estimates_of_q:number"), "`q` must be callable"),
        ("diagnose", ("--q", "estimates_of_q"), "--q must be module:function"),
        ("diagnose", ("--q", "estimates_of_q:bad", "--plot", "picture.bmp"), "must end in .png, .svg or .pdf"),
        ("correct", ("--q", "estimates_of_q:bad", "--radius", "hoeffding-u"), "must bound the V-statistic"),
        ("correct", ("--q", "estimates_of_q:bad", "--feature-bandwidth", 1, "--feature-bandwidth", 2), "needs one class"),
        ("bound", ("--average-reward",), "--average-reward does not go with --discount"),
        ("bound", ("--tabular", "--landmarks", 5), "exclude each other"),
    ],
)
def test_bad_input_is_one_sentence(folder, command, words, message):
    done = aope_command(command, "data.parquet", *COMMON, *words, cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "picture.bmp").exists()


def test_average_reward_of_a_chain(tmp_path):
    mdp = chain(3, discount=0.9)
    table = np.array([[0.2, 0.8]] * 3)
    data = mdp.sample_trajectories(np.full((3, 2), 0.5), 200, 200, np.random.default_rng(0))
    aope.save_transitions(data, tmp_path / "data.parquet", aope.TabulatedPolicy(np.arange(3.0), table, 2), episodes=False)
    words = ("bound", "data.parquet", "--average-reward", "--reward-range", 0, 1, "--tabular", "--deterministic-reward")
    done = aope_command(*words, "--value-span", 6, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    interval = json.loads(done.stdout)["intervals"][-1]
    assert interval["status"] == "OK"
    assert interval["lower"] <= mdp.average_reward(table) <= interval["upper"]
    missing = aope_command(*words, cwd=tmp_path)
    assert missing.returncode == 2 and len(missing.stderr.strip().splitlines()) == 1
    text = aope_command(*words, "--value-span", 6, "--report", "report.html", cwd=tmp_path)
    assert text.returncode == 0 and "verage" in text.stdout
    assert "verage reward" in (tmp_path / "report.html").read_text()


def test_average_reward_at_other_radii_and_over_an_rkhs(tmp_path):
    mdp = chain(3, discount=0.9)
    table = np.array([[0.2, 0.8]] * 3)
    truth = mdp.average_reward(table)
    data = mdp.sample_trajectories(np.full((3, 2), 0.5), 60, 50, np.random.default_rng(0))
    aope.save_transitions(data, tmp_path / "data.parquet", aope.TabulatedPolicy(np.arange(3.0), table, 2))
    words = ("bound", "data.parquet", "--average-reward", "--reward-range", 0, 1, "--deterministic-reward", "--json")
    ladder = aope_command(*words, "--tabular", "--value-span", 4, "--state-box=0:2", "--ladder", cwd=tmp_path)
    assert ladder.returncode == 0, ladder.stderr
    intervals = json.loads(ladder.stdout)["intervals"]
    assert [each["radius"] for each in intervals] == ["hoeffding", "azuma", "certified"]
    assert all(each["lower"] <= truth <= each["upper"] for each in intervals)
    cut = ("--tabular", "--value-span", 4, "--certificate", "cut.json")
    done = aope_command(*words, *cut, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["intervals"][0]["remarks"][0].startswith("The cut has ")
    assert aope_command("verify", "cut.json", "--data", "data.parquet", cwd=tmp_path).returncode == 0
    sections = ("--landmarks", 0, "--norm-bound", 4, "--kernel", "tabular", "--radius", "symmetric", "--symmetric-noise")
    done = aope_command(*words, *sections, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refused = aope_command(*words, "--tabular", "--value-span", 4, "--radius", "symmetric", cwd=tmp_path)
    assert refused.returncode == 2 and "symmetric_noise" in refused.stderr
