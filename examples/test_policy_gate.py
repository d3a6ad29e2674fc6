"""A gate before deployment as tests, for pytest: where it runs lie the log (ward.csv) and the proposal (policy.rule, a rule).

Only a decision that is SUPPORTED passes. Undecided, doubted and inconsistent are not "better": each fails with its sentence.
"""

from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.adapters import rule_policy
from accountable_ope.bounds import Judgment

COLUMNS = {"state": "severity", "action": "drug", "reward": "comfort", "episode": "patient"}


@pytest.fixture(scope="module")
def interval():
    log = aope.load_transitions("ward.csv", columns=COLUMNS)
    policy = rule_policy(Path("policy.rule").read_text().strip(), log.naming, actions=2)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    problem = aope.Problem(log, aope.StartStates(np.arange(4.0)), policy, facts)
    table = aope.TabularFeatures.grid(np.arange(4.0), np.eye(2))
    return aope.bound_value(problem, features=table, kernel=aope.Tabular(), delta=0.05)


def test_the_proposal_is_better_than_what_runs_today(interval):
    ruling = interval.better_than_logged()
    assert ruling.judgment is Judgment.SUPPORTED, str(ruling)


def test_its_value_is_at_least_what_was_promised(interval):
    ruling = interval.decide(at_least=1.3)
    assert ruling.judgment is Judgment.SUPPORTED, str(ruling)


def test_whoever_doubts_it_can_prove_it_again(interval):
    assert interval.check()
