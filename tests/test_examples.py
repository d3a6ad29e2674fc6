"""What lies in examples/ for other people's pipelines runs: the workflow's own command lines, the gate as a test, MLflow."""

import importlib.util
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import accountable_ope as aope
from accountable_ope.environments import bandit

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
GOOD, BAD, OPEN = "1 if severity >= 2 else 0", "0 if severity >= 2 else 1", "1"


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A folder with the log of docs/gate.md, and a shell that knows `aope`."""
    folder = tmp_path_factory.mktemp("ward")
    code = re.search(r"^```python\n(.*?)^```", (ROOT / "docs" / "gate.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    shim = folder / "bin" / "aope"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m accountable_ope "$@"\n')
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    return folder


def steps():
    workflow = yaml.safe_load((EXAMPLES / "github-action.yml").read_text())
    assert {"name", "jobs", "permissions"} <= workflow.keys() and True in workflow, "`on` is what YAML reads as True"
    return workflow["jobs"]["gate"]["steps"]


def run_step(step, folder):
    """As a runner does: bash that stops at the first failure."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def test_the_workflow_uses_actions_with_versions_and_keeps_what_the_gate_writes():
    used = [step["uses"] for step in steps() if "uses" in step]
    assert len(used) == 3 and all(re.fullmatch(r"actions/[\w-]+@v\d+", each) for each in used)
    (gate,) = (step["run"] for step in steps() if "--better-than-logged" in step.get("run", ""))
    kept = next(step for step in steps() if "upload" in step.get("uses", ""))
    assert kept["if"] == "always()" and all(name in gate for name in kept["with"]["path"].split())


@pytest.mark.slow
def test_the_workflow_lets_a_better_policy_through(ward):
    (ward / "policy.rule").write_text(f"{GOOD}\n")
    ran = [step for step in steps() if "aope" in step.get("run", "") and not step["run"].startswith("pip install")]
    assert [run_step(step, ward).returncode for step in ran] == [0, 0, 0]
    assert (ward / "gate.html").stat().st_size and (ward / "gate.json").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "code", "word"), [(BAD, 3, "REFUTED"), (OPEN, 4, "UNDECIDED"), ("import os", 2, "")])
def test_the_workflow_stops_any_other(ward, rule, code, word):
    (ward / "policy.rule").write_text(f"{rule}\n")
    (gate,) = (step for step in steps() if "--better-than-logged" in step.get("run", ""))
    done = run_step(gate, ward)
    assert done.returncode == code and word in done.stdout, done.stderr


def run_gate(folder, rule):
    (folder / "policy.rule").write_text(f"{rule}\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", EXAMPLES / "test_policy_gate.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_gate_as_a_test(ward):
    passed = run_gate(ward, GOOD)
    assert passed.returncode == 0 and "3 passed" in passed.stdout, passed.stdout
    failed = run_gate(ward, OPEN)
    assert failed.returncode == 1 and "2 failed, 1 passed" in failed.stdout and "UNDECIDED: value > value" in failed.stdout


def test_an_interval_in_mlflow(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow")
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions ask for a database, and need no server for a folder
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    spec = importlib.util.spec_from_file_location("log_to_mlflow", EXAMPLES / "log_to_mlflow.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    world = bandit(3, 2, seed=0)
    policy = world.policy(np.eye(2)[[0] * 3])
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    problem = aope.Problem(world.sample_iid(300, np.random.default_rng(0)), world.starts(), policy, facts)
    table = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors)
    interval = aope.bound_value(problem, features=table, kernel=aope.Tabular())
    with mlflow.start_run() as run:
        example.log_interval(interval)
    found = mlflow.get_run(run.info.run_id).data
    assert (found.metrics["value_lower"], found.metrics["value_upper"]) == (interval.lower, interval.upper)
    assert found.tags["aope.status"] == "OK" and len(list(tmp_path.glob("runs/**/interval.*"))) == 2
