"""`aope bound --engine` and `--scheduler`."""

import contextlib
import json
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.cli import computing
from accountable_ope.environments import PlantedMDP
from accountable_ope.statistics.engines import dask as dask_engine
from accountable_ope.statistics.engines import engine
from command import aope_command as run
from command import aope_process

MDP = PlantedMDP(seed=1, features=5, discount=0.9)
POLICY = """
from accountable_ope.environments import PlantedMDP

known = PlantedMDP(seed=1, features=5, discount=0.9).policy


def policy(states):
    return known.probabilities(states)
"""
ASKED = ("--policy", "carried_policy:policy", "--action-values=-1,0,1", "--starts", "starts.parquet", "--discount", "0.9")
KNOWN = ("--reward-range", "0", "1", "--features", "3", "--norm-bound", "20", "--radius", "azuma")
LOG = ("bound", "logs/day-0.parquet", *ASKED, *KNOWN)
STREAM = ("bound", "logs", "--stream", *ASKED, *KNOWN)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of three files, start states, and a policy that is found nowhere else."""
    aope.save_transitions(MDP.sample(np.random.default_rng(0), trajectories=60), tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    (tmp_path / "logs").mkdir()
    for day in range(3):
        pq.write_table(table.slice(1000 * day, 1000), tmp_path / "logs" / f"day-{day}.parquet")
    starts = MDP.starts
    columns = {f"state_{j}": starts.states[:, j] for j in range(starts.states.shape[1])}
    pq.write_table(pa.table({**columns, "weight": starts.weights}), tmp_path / "starts.parquet")
    (tmp_path / "carried_policy.py").write_text(POLICY)
    monkeypatch.delitem(sys.modules, "carried_policy", raising=False)  # that of another test
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def scheduler():
    """The address of a cluster that was started elsewhere: its workers know nothing of the folder of a log."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "host": "127.0.0.1"}
    with distributed.LocalCluster(**options) as local:
        local.wait_for_workers(2, timeout=60)
        yield local.scheduler_address


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """The machine may be busy."""
    monkeypatch.setattr(dask_engine, "REACHED", 60.0)


def ends(found):
    document = json.loads(found.stdout)
    return [end for each in document["intervals"] for end in each["unclipped"]], document["engine"]


@pytest.mark.parametrize(
    ("words", "name"), [((), "tiles"), (("--engine", "tiles"), "tiles"), (("--kernel", "tabular", "--engine", "rows"), "rows")]
)
def test_the_result_says_which_engine_it_was_and_why(place, words, name):
    _, said = ends(run(*LOG, *words, "--json"))
    assert said["name"] == name and said["reason"].endswith(".")
    assert ("asked for" in said["reason"]) == ("--engine" in words)
    text = " ".join(run(*LOG, *words, "--report", "report.html").stdout.split())
    assert f"Engine {name}: {said['reason']}" in text
    assert f"Engine {name}:" in (place / "report.html").read_text()


def test_pairs_on_a_cluster(place, scheduler):
    alone, _ = ends(run(*LOG, "--json"))
    found, said = ends(run(*LOG, "--scheduler", scheduler, "--json"))
    assert found == pytest.approx(alone, rel=1e-9) and said["name"] == "dask" and scheduler in said["reason"]


def test_a_stream_on_a_cluster(place, scheduler):
    """The policy travels with the question; the log is given by a relative path."""
    alone, here = ends(run(*STREAM, "--json"))
    found, there = ends(run(*STREAM, "--scheduler", scheduler, "--json"))
    assert found == pytest.approx(alone, rel=1e-10) and len(found) == 2
    assert here["name"] == "rows" and there["name"] == "dask" and "this process read the rows, too" in there["reason"]


@pytest.mark.slow
def test_a_local_cluster(place):
    alone, _ = ends(run(*STREAM, "--json"))
    found = aope_process(*STREAM, "--scheduler", "local:2", "--json", cwd=place)
    there, said = ends(found)
    assert there == pytest.approx(alone, rel=1e-10) and "2 processes of this machine" in said["reason"]
    assert not found.stderr


@pytest.mark.slow
def test_a_command_that_is_repeated_has_its_engine(place):
    asked = (*ASKED, "--reward-range", "0", "1", "--radius", "azuma", "--engine", "tiles", "--json")
    found = run("bound", "logs/day-0.parquet", *asked)
    assert "--engine tiles" in json.loads(found.stdout)["repeat"]


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (LOG, ("--engine", "gpu"), 'Invalid value "gpu" for --engine'),
        (LOG, ("--engine", "rows"), '`engine` "rows" is for kernels of finite rank'),
        (LOG, ("--engine", "cuda"), '`engine` "cuda" cannot be had: There is no GPU here.'),
        (LOG, ("--engine", "tiles", "--scheduler", "local:2"), "--engine has no effect with --scheduler"),
        (LOG, ("--average-reward", "--engine", "tiles"), "--average-reward does not go with"),
        (STREAM, ("--engine", "tiles"), "--stream does not go with --engine tiles, which needs all rows at once"),
        (STREAM, ("--engine", "cuda"), "--stream does not go with --engine cuda, which needs all rows at once"),
        *((STREAM, ("--scheduler", word), "--scheduler must be the address") for word in ("", "x", "local", "local:", "host:1")),
        *((LOG, ("--scheduler", word), "--scheduler must be the address") for word in ("local:-1", "tcp://h", "http://h:1")),
        *((LOG, ("--scheduler", word), "--scheduler local:N takes from 1 to") for word in ("local:0", "local:9999")),
    ],
    ids=lambda given: "-".join(given[-2:]) if isinstance(given, tuple) and len(given) < 5 else "",
)
def test_what_cannot_be_had_is_one_sentence_before_any_work(place, monkeypatch, command, words, said):
    monkeypatch.setattr(engine, "free_gpu_memory", lambda *, half=False: "There is no GPU here.")
    for path in (place / "logs").iterdir():
        path.unlink()  # nothing is read
    found = run(*command, *words)
    assert found.returncode == 2 and said in " ".join(found.stderr.split()), found.stderr
    assert len(found.stderr.strip().splitlines()) <= 4 and not found.stdout


@pytest.mark.parametrize("command", [LOG, STREAM], ids=["log", "stream"])
def test_a_scheduler_that_does_not_answer_is_one_sentence(place, monkeypatch, command):
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_engine, "REACHED", 0.5)
    for path in (place / "logs").iterdir():
        path.unlink()
    begun = time.monotonic()
    found = run(*command, "--scheduler", "tcp://127.0.0.1:9")
    assert time.monotonic() - begun < 30
    assert found.returncode == 2 and found.stderr.startswith("Error: No scheduler of Dask answers at 'tcp://127.0.0.1:9'")


def test_without_dask_the_command_is_named(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for words in ("local:2", "tcp://10.0.0.1:8786"):
        found = run(*STREAM, "--scheduler", words)
        assert found.returncode == 2
        assert found.stderr == 'Error: Sums on a cluster need Dask: pip install "accountable-ope[cluster]".\n'


def test_files_that_workers_do_not_find_are_named(place, scheduler, monkeypatch):
    scan = aope.scan_transitions(place / "logs")
    monkeypatch.setattr(type(scan), "local_paths", lambda scan: (str(place / "elsewhere.parquet"),))
    found = run(*STREAM, "--scheduler", scheduler)
    said = " ".join(found.stderr.split())
    assert found.returncode == 2 and "elsewhere.parquet is not found by the worker" in said and "under the same path" in said


def test_only_modules_that_are_not_installed_are_carried(place, monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")
    here = aope.engines.Dask(workers=1)
    names = ("json:dumps", "numpy.linalg:norm", "accountable_ope.demo:run", "sys:exit", "nowhere:x", None)
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(computing.carried(name, here))
        assert not cloudpickle.list_registry_pickle_by_value()
    monkeypatch.syspath_prepend(place)
    __import__("carried_policy")
    with computing.carried("carried_policy:policy", here):
        assert cloudpickle.list_registry_pickle_by_value() == {"carried_policy"}
    with computing.carried("carried_policy:policy", "auto"):
        assert not cloudpickle.list_registry_pickle_by_value()
