"""What `aope bound` says of the cut: which weights it has, or why there is none, in text, JSON, report and certificate."""

import json
import re
from html import unescape

import numpy as np
import pytest

import accountable_ope as aope
from bandit_log import CELLS, STARTS, TARGET, logged
from command import aope_command

FACTS = ("--discount", 0, "--reward-range", 0, 1, "--tabular", "--delta", 0.5)
WITH_STARTS = ("bound", "data.parquet", "--starts", "starts.parquet", *FACTS)
OF_THE_LOG = ("bound", "data.parquet", *FACTS)
PREMISE = "The recorded probability of every logged action was fixed"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, data = tmp_path_factory.mktemp("remarks"), logged(0)
    episodes = list(range(len(data)))
    rows = aope.Transitions(
        data.states,
        data.actions,
        data.rewards,
        data.next_states,
        episodes=episodes,
        behavior_probability=data.behavior_probability,
    )
    policy = aope.TabulatedPolicy(np.arange(float(CELLS)), np.tile(TARGET, (CELLS, 1)), 2)
    aope.save_transitions(rows, path / "data.parquet", policy)
    aope.save_starts(STARTS, path / "starts.parquet", policy)
    return path


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "remark"),
    [
        (WITH_STARTS, r"The cut has (fitted|bounded) weights, chosen on the first \d+ rows"),
        ((*WITH_STARTS, "--propensities"), r"The cut has (.*) weights( of the recorded propensities)?, chosen on the first"),
        (
            OF_THE_LOG,
            "There is no cut, a second bound by weighted rows that makes an interval narrower: the start states come from",
        ),
        ((*OF_THE_LOG, "--propensities"), "the start states come from the log itself"),
    ],
    ids=["weights", "propensities", "no cut", "no cut for propensities"],
)
def test_the_remark_is_printed_everywhere(folder, words, remark):
    text = aope_command(*words, "--report", "report.html", "--certificate", "certificate.json", cwd=folder)
    assert text.returncode in (0, 3), text.stderr
    as_json = json.loads(aope_command(*words, "--json", cwd=folder).stdout)["intervals"][0]
    report = one_line(unescape((folder / "report.html").read_text()))
    certificate = json.loads((folder / "certificate.json").read_text())
    assert len(as_json["remarks"]) == len(certificate["remarks"]) == 1
    for found in (one_line(text.stdout), as_json["remarks"][0], report, certificate["remarks"][0]["text"]):
        assert re.search(remark, found), found
    used = "weights of the recorded propensities" in as_json["remarks"][0]  # what is not used is no premise
    for found in (one_line(text.stdout), " ".join(as_json["assumed"]), report):
        assert (PREMISE in found) == used
    starts = ("--starts", "starts.parquet") if "--starts" in words else ()
    verified = aope_command("verify", "certificate.json", "--data", "data.parquet", *starts, cwd=folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_radius_without_a_cut_has_no_remark(folder):
    done = aope_command(*WITH_STARTS, "--radius", "azuma", "--json", cwd=folder)
    assert json.loads(done.stdout)["intervals"][0]["remarks"] == []
    assert "cut" not in aope_command(*WITH_STARTS, "--radius", "azuma", cwd=folder).stdout
