"""The embedded demonstration: made as its script says, compared in words that are true, and light."""

import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.demo import DEMO_ASSUMPTIONS, copy_demo_data, demo_behavior_value, demo_truth, run_demo
from accountable_ope.environments import PuckMountain, monte_carlo_value, roll_out, softmax_policy
from accountable_ope.io.reading import read_transition_file
from accountable_ope.io.starts import read_start_file
from accountable_ope.report.comparison import comparison
from accountable_ope.report.html import report_html


def test_the_data_are_a_log_of_puck_mountain(tmp_path):
    copy_demo_data(tmp_path)
    file, starts = read_transition_file(tmp_path / "demo.parquet"), read_start_file(tmp_path / "demo-starts.parquet")
    task, target = PuckMountain(), softmax_policy("puck-mountain", 0.1)
    again = roll_out(task, softmax_policy("puck-mountain", 1.0), np.random.default_rng(2020), episodes=50)
    np.testing.assert_array_equal(file.data.actions, again.actions)
    np.testing.assert_array_equal(file.data.episodes, again.episodes)
    for name in ("states", "rewards", "next_states"):
        np.testing.assert_allclose(getattr(file.data, name), getattr(again, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(file.at_next, target.probabilities(file.data.next_states), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(starts.starts.states, task.starts.states)
    np.testing.assert_allclose(starts.at_state, target.probabilities(task.starts.states), rtol=0, atol=1e-9)
    assert sum(path.stat().st_size for path in Path(str(files("accountable_ope") / "data")).glob("demo*")) < 1_000_000


@pytest.mark.parametrize(("temperature", "stored"), [(0.1, demo_truth()), (1.0, demo_behavior_value())])
def test_stored_values_are_those_of_the_policies(temperature, stored):
    found = monte_carlo_value(
        PuckMountain(), softmax_policy("puck-mountain", temperature), np.random.default_rng(0),
        discount=DEMO_ASSUMPTIONS.discount, episodes=4000,
    )  # fmt: skip
    assert abs(found.value - stored) < 5 * found.standard_error


def test_the_comparison_says_what_the_interval_says():
    data, intervals = run_demo()
    certified = intervals[-1]
    assert certified.lower <= demo_truth() <= certified.upper
    below, inside, above = certified.lower - 0.1, (certified.lower + certified.upper) / 2, certified.upper + 0.1
    assert "better, with 90% confidence" in comparison(certified, below)
    assert certified.doubted and comparison(certified, below).endswith("decides nothing.")
    assert "do not certify, with 90% confidence" in comparison(certified, inside)
    assert "worse, with 90% confidence" in comparison(certified, above)
    assert "do not certify" in comparison(certified, certified.lower)
    for value in (below, inside, above):
        assert comparison(certified, value) in report_html(intervals, data, "t", to_beat=value)
    refuted = replace(certified, outcome=aope.Status.INCONSISTENT, lower=np.nan, upper=np.nan)
    assert comparison(refuted, 1.0).startswith("No function of the class fits")
    page = report_html(intervals, data, "t")
    assert "behavior" not in page and "truth" not in page


def test_it_needs_the_core_only():
    code = "import sys; from accountable_ope.demo import run_demo; run_demo(); print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & {"torch", "gymnasium", "mujoco", "minari", "matplotlib"}
