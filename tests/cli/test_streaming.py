"""`aope bound --stream`."""

import json

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
