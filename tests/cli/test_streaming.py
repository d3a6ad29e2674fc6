"""`aope bound --stream`."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from command import aope_command as run

MDP = PlantedMDP(seed=1, features=5, discount=0.9)
POLICY = """
from accountable_ope.environments import PlantedMDP

policy = PlantedMDP(seed=1, features=5, discount=0.9).policy


def high(states, actions):
    return 8.0 + 0.1 * states[:, 0] + 0.2 * actions
"""
ASKED = ("--stream", "--policy", "planted_policy:policy", "--starts", "starts.parquet", "--discount", "0.9")
KNOWN = ("--reward-range", "0", "1", "--features", "12", "--norm-bound", "20")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of three files, start states and a policy."""
    data = MDP.sample(np.random.default_rng(0), trajectories=60)
    aope.save_transitions(data, tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    (tmp_path / "logs").mkdir()
    for day in range(3):
        pq.write_table(table.slice(1000 * day, 1000), tmp_path / "logs" / f"day-{day}.parquet")
    starts = MDP.starts
    columns = {f"state_{j}": starts.states[:, j] for j in range(starts.states.shape[1])}
    pq.write_table(pa.table({**columns, "weight": starts.weights}), tmp_path / "starts.parquet")
    (tmp_path / "planted_policy.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_gives_what_its_rows_give(place):
    found = run("bound", "logs", *ASKED, *KNOWN, "--json", "--certificate", "c.json")
    document = json.loads(found.stdout)
    assert document["transitions"] == 3000 and document["episodes"] is None
    features, kernel = aope.RandomFourier(12), aope.RandomFeatureKernel(256, 0.5)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=20.0)
    problem = aope.Problem(aope.load_transitions(place / "whole.parquet"), MDP.starts, MDP.policy, facts)
    expected = aope.evaluate(problem, features=features, kernel=kernel).bound()
    (interval,) = document["intervals"]
    assert not any("tested" in each for each in document["columns"][0]["remarks"])  # all rows were
    assert [interval["lower"], interval["upper"]] == pytest.approx([expected.lower, expected.upper], abs=1e-9)
    asked = ("--policy", "planted_policy:policy", "--starts", "starts.parquet")
    proved = run("verify", "c.json", "--data", "whole.parquet", *asked)
    assert "Its sums are those of the data." in proved.stdout, proved.stdout + proved.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--stream", *KNOWN, "--discount", "0.9"), "--stream needs --policy module:function"),
        (("--stream", *KNOWN, "--discount", "0.9", "--policy", "planted_policy:policy"), "--stream needs --starts"),
        (
            (*ASKED, "--reward-range", "0", "1", "--landmarks", "10"),
            "--stream does not go with --landmarks, which needs",
        ),
        ((*ASKED, *KNOWN, "--explain"), "--stream does not go with --explain"),
        ((*ASKED, *KNOWN, "--horizon", "50"), "--stream does not go with --horizon"),
        ((*ASKED, *KNOWN, "--kernel", "laplace"), "--stream does not go with --kernel laplace"),
        ((*ASKED, *KNOWN, "--radius", "wild"), "`radius` wild needs all rows at once"),
        ((*ASKED, *KNOWN, "--ladder", "--resume", "state.npz"), "--resume keeps one pass"),
        ((*ASKED, *KNOWN, "--resume", "state.json"), "--resume must end in .npz"),
        ((*ASKED[1:], *KNOWN, "--resume", "state.npz"), "--resume goes with --stream only"),
    ],
    ids=lambda given: given[-1] if isinstance(given, tuple) else "",
)
def test_what_needs_all_rows_is_one_sentence(place, options, said):
    found = run("bound", "logs", *options)
    assert found.returncode == 2 and said in " ".join(found.stderr.split()), found.stderr


def test_a_file_that_is_cut_off_is_named(place):
    path = place / "logs" / "day-1.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    found = run("bound", "logs", *ASKED, *KNOWN)
    assert found.returncode == 2 and "day-1.parquet" in found.stderr


def test_a_run_that_stopped_at_a_damaged_file_goes_on(place):
    """More than one part, the last of them unreadable at first: all that comes before is kept."""
    data = MDP.sample(np.random.default_rng(1), trajectories=2800)
    aope.save_transitions(data, place / "whole.parquet")
    table, edges = pq.read_table(place / "whole.parquet"), [0, 65536, 131072, len(data)]
    for day, (start, end) in enumerate(pairwise(edges)):
        pq.write_table(table.slice(start, end - start), place / "logs" / f"day-{day}.parquet")
    whole = run("bound", "logs", *ASKED, *KNOWN, "--json", "--certificate", "whole.json")
    path = place / "logs" / "day-2.parquet"
    right = path.read_bytes()
    path.write_bytes(b"PAR1" + bytes(2000) + right[2004:])
    resumed = ("--resume", "state.npz", "--json", "--certificate", "resumed.json")
    stopped = run("bound", "logs", *ASKED, *KNOWN, *resumed)
    assert stopped.returncode == 2 and "day-2.parquet" in stopped.stderr, stopped.stderr
    assert (place / "state.npz").exists() and not (place / "resumed.json").exists()
    other = run("bound", "logs", *ASKED, *KNOWN, *resumed, "--delta", "0.05")
    assert other.returncode == 2 and "is the state of another question" in other.stderr, other.stderr
    path.write_bytes(right)
    found = run("bound", "logs", *ASKED, *KNOWN, *resumed)
    assert "Going on from state.npz" in found.stderr and not (place / "state.npz").exists(), found.stderr
    assert "The class was tested on the first 20,000 of 140,000 rows" in " ".join(
        json.loads(found.stdout)["columns"][0]["remarks"]
    )
    assert (place / "resumed.json").read_bytes() == (place / "whole.json").read_bytes()
    assert json.loads(found.stdout)["intervals"] == json.loads(whole.stdout)["intervals"]


def high(states, actions):
    return 8.0 + 0.1 * states[:, 0] + 0.2 * actions


def test_an_estimate_is_diagnosed_as_in_memory(place):
    found = run("diagnose", "logs", "--q", "planted_policy:high", *ASKED, *KNOWN, "--json", "--plot", "where.png")
    document = json.loads(found.stdout)
    features, kernel = aope.RandomFourier(12), aope.RandomFeatureKernel(256, 0.5)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=20.0)
    problem = aope.Problem(aope.load_transitions(place / "whole.parquet"), MDP.starts, MDP.policy, facts)
    expected = aope.diagnose(high, problem, features=features, kernel=kernel)
    assert document["verdict"] == expected.verdict.name == "REJECTED"
    assert [document["loss"], document["threshold"]] == pytest.approx([expected.loss, expected.radius.total], rel=1e-10)
    assert [each["row"] for each in document["witness"]] == [each.row for each in expected.witness.regions]
    assert (place / "where.png").exists()
    text = run("diagnose", "logs", "--q", "planted_policy:high", *ASKED, *KNOWN)
    assert "REJECTED" in text.stdout and "Where it is wrong" in text.stdout, text.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*ASKED, *KNOWN), "--stream needs --q module:function"),
        (("--q", "planted_policy:high", "--stream", *KNOWN, "--discount", "0.9"), "--stream needs --policy module:function"),
        (("--q", "planted_policy:high", *ASKED, *KNOWN, "--kernel", "laplace"), "--stream does not go with --kernel laplace"),
        (("--q", "planted_policy:high", *ASKED, *KNOWN, "--radius", "wild"), "`radius` wild needs all rows at once"),
        (("--q", "planted_policy:high", *ASKED[1:], *KNOWN, "--resume", "a.npz"), "--resume goes with --stream only"),
    ],
    ids=lambda given: given[-1] if isinstance(given, tuple) else "",
)
def test_a_diagnosis_that_needs_all_rows_is_one_sentence(place, options, said):
    found = run("diagnose", "logs", *options)
    assert found.returncode == 2 and said in " ".join(found.stderr.split()), found.stderr
