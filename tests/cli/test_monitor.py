"""`aope monitor` as a nightly job uses it: one command, again and again."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.bounds.monitor import Monitor, read_history
from accountable_ope.environments import clinic
from command import aope_command
from planted_files import MDP, write_planted_files
from planted_files import OPTIONS as PLANTED

OPTIONS = (*PLANTED, "--planned", 2000, "--never-terminates", "--radius", "azuma-anytime")
NIGHTS = ("night-1.parquet", "night-2.parquet", "night-3.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("nights")
    write_planted_files(tmp_path)
    table = pq.read_table(tmp_path / "planted.parquet")
    for number, name in enumerate(NIGHTS):
        pq.write_table(table.slice(1000 * number, 1000), tmp_path / name)
    pq.write_table(table.slice(0, 100).drop_columns(["reward"]), tmp_path / "broken.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def known_state(folder):
    """The state after the first night."""
    done = aope_command("monitor", "known.npz", NIGHTS[0], *OPTIONS, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "known.npz"


def test_night_after_night(folder):
    first = aope_command("monitor", "state.npz", NIGHTS[0], *OPTIONS, cwd=folder)
    assert first.returncode == 0, first.stderr
    # The next night all files are named: what was taken in before is left out.
    second = aope_command("monitor", "state.npz", *NIGHTS, *OPTIONS, "--threshold", 1, "--plot", "running.png", cwd=folder)
    assert second.returncode == 0, second.stderr
    words = " ".join(second.stdout.split())
    for expected in ("90% confidence at all times together", "3,000", "night-3.parquet", "OK", "recomputed and valid"):
        assert expected in words
    assert "Taken in before, and left out: night-1.parquet." in words
    assert "value >= 1: certain since update 3, after 3,000 rows." in words
    assert (folder / "running.png").stat().st_size > 10_000
    # Nothing new: the same answer for machines, and the state is not touched.
    state = (folder / "state.npz").read_bytes()
    again = aope_command("monitor", "state.npz", *NIGHTS, *OPTIONS, "--threshold", 1, "--json", cwd=folder)
    assert again.returncode == 0 and (folder / "state.npz").read_bytes() == state
    found = json.loads(again.stdout)
    assert [look["rows"] for look in found["looks"]] == [1000, 2000, 3000] and found["rows"] == 3000
    assert found["decision"] == {"threshold": 1.0, "at_least": True, "update": 3, "rows": 3000}
    assert found["looks"][-1]["lower"] <= MDP.value <= found["looks"][-1]["upper"]
    # And the library says the same.
    file = aope.load_transitions(folder / "planted.parquet")
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1), reward_noise=False, norm_bound=1.3, terminates=False)
    monitor = Monitor(
        aope.Question(aope.load_starts(folder / "planted-starts.parquet"), MDP.policy, facts),
        kernel=aope.Gaussian(1.0),
        features=aope.RandomFourier(5, 1.0, 1),
        radius="azuma-anytime",
        planned=2000,
    )
    for number, look in enumerate(found["looks"]):
        report = monitor.update(file.rows(slice(1000 * number, 1000 * number + 1000)))
        assert (look["lower"], look["upper"]) == pytest.approx((report.lower, report.upper), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((NIGHTS[1], *OPTIONS, "--bandwidth", 2), "was made with kernel Gaussian(bandwidth=1). Got kernel Gaussian(bandwidth=2)"),
        (("broken.parquet", *OPTIONS), "has no column `reward`"),
        (("nowhere.parquet", *OPTIONS), "nowhere.parquet is not a file"),
        ((NIGHTS[1], *OPTIONS, "--plot", "picture.txt"), "must end in .png, .svg or .pdf"),
        ((NIGHTS[1], *OPTIONS[:-3]), "--terminates or --never-terminates is needed"),
        ((NIGHTS[1], *OPTIONS[:-2], "--radius", "azuma"), "azuma holds at one number of rows that is fixed in advance"),
        ((NIGHTS[1], *OPTIONS, "--tabular-states", "0,1"), "--features has no effect with --tabular-states"),
    ],
)
def test_what_is_refused_leaves_the_state_alone(folder, known_state, arguments, message):
    before = known_state.read_bytes()
    done = aope_command("monitor", known_state.name, *arguments, cwd=folder)
    assert done.returncode == 2 and message in " ".join(done.stderr.split()), done.stderr
    assert "Traceback" not in done.stderr
    assert known_state.read_bytes() == before


def test_a_refused_batch_keeps_those_before_it(folder):
    table = pq.read_table(folder / NIGHTS[1])
    data = aope.load_transitions(folder / NIGHTS[1])
    index = table.column_names.index("reward")
    pq.write_table(table.set_column(index, "reward", [data.rewards + 1]), folder / "wrong.parquet")
    done = aope_command("monitor", "half.npz", NIGHTS[0], "wrong.parquet", *OPTIONS, cwd=folder)
    assert done.returncode == 2
    assert "wrong.parquet was not taken in: `rewards` must lie in the declared reward_range" in " ".join(done.stderr.split())
    assert [look.count for look in read_history(folder / "half.npz")] == [1000]


def test_vacuous_and_refuted_and_declared_states(tmp_path):
    mdp = clinic(discount=0.5)
    table = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 300, 60, np.random.default_rng(0))
    policy = aope.TabulatedPolicy(np.arange(4.0), table[:4], 3)
    aope.save_transitions(data.rows(slice(0, 5)), tmp_path / "a.parquet", policy)
    aope.save_transitions(data.rows(slice(5, None)), tmp_path / "b.parquet", policy)
    aope.save_starts(aope.StartStates(np.arange(4.0)), tmp_path / "starts.parquet", policy)
    options = ("--starts", "starts.parquet", "--discount", 0.5, "--reward-range", 0, 1, "--terminal-reward", "--planned", 1000)
    tabular = (*options, "--radius", "azuma-anytime", "--tabular-states", "0,1,2,3")
    done = aope_command("monitor", "one.npz", "a.parquet", *tabular, cwd=tmp_path)
    assert done.returncode == 3 and "VACUOUS" in done.stdout, done.stderr
    done = aope_command("monitor", "one.npz", "b.parquet", *tabular, "--tabular-states", "0,x", cwd=tmp_path)
    assert done.returncode == 2 and "--tabular-states must be numbers" in done.stderr
    done = aope_command("monitor", "one.npz", "b.parquet", *tabular, "--threshold", 0.99, cwd=tmp_path)
    assert done.returncode == 3 and "value < 0.99: certain since update 2" in done.stdout  # refuted: it is not at least .99
    assert done.stdout.startswith("With 90% confidence, at all times together, the new policy's value lies between")
    again = aope_command("monitor", "one.npz", "b.parquet", *tabular, "--threshold", 0, "--json", cwd=tmp_path)
    assert (again.returncode, json.loads(again.stdout)["judgment"]) == (0, "SUPPORTED")
    middle = str(0.5 * (json.loads(again.stdout)["looks"][-1]["lower"] + json.loads(again.stdout)["looks"][-1]["upper"]))
    assert aope_command("monitor", "one.npz", "b.parquet", *tabular, "--threshold", middle, cwd=tmp_path).returncode == 4
    # A class whose functions are almost constant cannot say who recovers.
    poor = ("--radius", "azuma-anytime", "--features", 2, "--norm-bound", 1e-3, "--kernel", "tabular", "--threshold", 0.5)
    done = aope_command("monitor", "two.npz", "a.parquet", "b.parquet", *options, *poor, cwd=tmp_path)
    assert done.returncode == 5 and "INCONSISTENT" in done.stdout, done.stdout
    assert "nothing decided before stands" in " ".join(done.stdout.split())
    found = json.loads(aope_command("monitor", "two.npz", "b.parquet", *options, *poor, "--json", cwd=tmp_path).stdout)
    assert found["status"] == "INCONSISTENT" and found["looks"][-1]["lower"] is None and found["decision"] is None


def test_a_copy_under_another_name_is_refused(folder, known_state):
    before = known_state.read_bytes()
    (folder / "copy.parquet").write_bytes((folder / NIGHTS[0]).read_bytes())
    done = aope_command("monitor", "known.npz", "copy.parquet", *OPTIONS, cwd=folder)
    assert done.returncode == 2 and known_state.read_bytes() == before
    assert done.stderr == "Error: copy.parquet holds the same as night-1.parquet, and rows must not be taken in twice.\n"


def test_the_same_rows_in_another_file_are_refused(folder, known_state):
    before = known_state.read_bytes()
    pq.write_table(pq.read_table(folder / NIGHTS[0]), folder / "again.parquet", compression="gzip")
    assert (folder / "again.parquet").read_bytes() != (folder / NIGHTS[0]).read_bytes()
    done = aope_command("monitor", "known.npz", "again.parquet", *OPTIONS, cwd=folder)
    assert done.returncode == 2 and known_state.read_bytes() == before
    assert done.stderr == "Error: again.parquet holds the same rows as night-1.parquet, and rows must not be taken in twice.\n"
