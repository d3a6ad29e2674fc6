"""Runs that are interrupted or killed end with all their workers, and are resumed from what they kept."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from command import heed_interrupts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

AOPE = [sys.executable, "-c", "from accountable_ope.cli import main; main()"]
COVERAGE = ["coverage", "--family", "fair-coin", "--radius", "azuma", "--radius", "certified", "--n", "60", "--json"]
EXPERIMENT = ["experiment", "figure3", "--quick"]
SOON = 2.0
"""Seconds within which nothing of a run may be left."""


def wait_until(true, seconds):
    """The seconds that it took, or failure."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, "too late"
        time.sleep(0.02)
    return time.monotonic() - began


def start(words, folder):
    return subprocess.Popen(
        [*AOPE, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )


def kept_parts(folder):
    """Whole files; those that are being written are hidden."""
    return [path for path in folder.glob("**/*.parquet") if not path.name.startswith(".")]


def end(run, how):
    """Interrupt a run as a terminal does ("Ctrl-C"), or kill its first process."""
    if how == "Ctrl-C":
        os.killpg(run.pid, signal.SIGINT)
    else:
        os.kill(run.pid, signal.SIGKILL)
    began = time.monotonic()
    out, err = run.communicate(timeout=30)  # ends when the last process that holds the output has ended
    taken = time.monotonic() - began
    return taken, out, err


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (COVERAGE, "Ctrl-C"),
        (COVERAGE, "killed"),
        (EXPERIMENT, "Ctrl-C"),
        (EXPERIMENT, "killed"),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_a_run_ends_with_its_workers(tmp_path, words, how):
    kept = tmp_path / "kept"
    many = ["--trials", "40"] if words is COVERAGE else ["--trials", "50"]
    run = start([*words, *many, "--workers", "2", "--out", str(kept)], tmp_path)
    try:
        wait_until(lambda: run.poll() is not None or kept_parts(kept), 120)
        assert run.poll() is None, run.stderr.read()
        taken, out, err = end(run, how)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert taken < SOON
    assert out == "" and (err == "" or how == "killed")  # of a process that was killed, Python itself says what it cleans up
    assert run.returncode == (-signal.SIGKILL if how == "killed" else 130)


@pytest.mark.parametrize("how", ["Ctrl-C"])
def test_what_was_interrupted_is_resumed_with_the_same_result(tmp_path, how):
    words = [*COVERAGE, "--trials", "12"]
    run = start([*words, "--workers", "2", "--out", "kept"], tmp_path)
    wait_until(lambda: run.poll() is not None or kept_parts(tmp_path / "kept"), 120)
    if run.poll() is None:
        end(run, how)
    before = len(kept_parts(tmp_path / "kept"))
    resumed = subprocess.run([*AOPE, *words, "--workers", "1", "--out", "kept"], cwd=tmp_path, capture_output=True, check=True)
    fresh = subprocess.run([*AOPE, *words, "--workers", "1"], cwd=tmp_path, capture_output=True, check=True)
    assert 0 < before <= len(kept_parts(tmp_path / "kept"))
    assert without_times(resumed.stdout) == without_times(fresh.stdout)


def without_times(text):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in json.loads(text)["rows"]]
