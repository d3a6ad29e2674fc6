"""Propensities that are wrong make weights that point elsewhere, and never an interval that misses more often: at delta = .5.

200 logs each, judged by the event of the true Q (of the kernel's martingale and of the cut), and a few intervals. The loggers
record what they like, as long as it was fixed before the reward: anything at all, a function of the rewards so far, or what would
carry a sum that is far out further out. One that waits for the reward is outside of the premises, and is caught.
"""

from collections.abc import Callable

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.radii.registry import radius_rule
from adversary import TRIALS, too_many
from bandit_log import FEATURES, MEANS, ROWS, VALUE, evaluated, logged, recorded

DELTA, RULE = 0.5, radius_rule("certified")
TRUTH = MEANS[FEATURES.points[:, 0].astype(int), np.argmax(FEATURES.points[:, 1:], axis=1)]
"""Coefficients of the true Q."""


def anything(rng: np.random.Generator, data: aope.Transitions) -> np.ndarray:
    return rng.uniform(0.01, 1.0, len(data))


def by_rewards_so_far(rng: np.random.Generator, data: aope.Transitions) -> np.ndarray:
    """Heavy while rewards are low."""
    before = np.concatenate([[0.0], np.cumsum(data.rewards)[:-1]]) / np.arange(1, len(data) + 1)
    return np.where(before < 0.4, 0.02, 0.9)


def farther_out(rng: np.random.Generator, data: aope.Transitions) -> np.ndarray:
    """Full weight until the sum is a standard deviation out, then hardly any."""
    errors = data.rewards - MEANS[data.states[:, 0].astype(int), data.actions]
    before = np.concatenate([[0.0], np.cumsum(errors)[:-1]])
    spread = np.sqrt(np.maximum(np.concatenate([[0.0], np.cumsum(errors**2)[:-1]]), 1.0))
    return np.where(np.maximum.accumulate(np.abs(before) / spread) > 1.0, 1.0, 0.01)


def knowing_the_reward(rng: np.random.Generator, data: aope.Transitions) -> np.ndarray:
    return np.where(data.rewards > 0, 0.01, 1.0)


def fails(data: aope.Transitions) -> bool:
    """Whether a martingale of the true Q is beyond what the radius allows."""
    evaluation = evaluated(data)
    member = evaluation.member_for(RULE, 0)
    grounds = RULE.evidence(member, DELTA, len(data))
    assert len(grounds.evidence) == 2
    for evidence in grounds.evidence:
        steps = evidence.steps(member.residuals.declared)
        if evidence.squared(TRUTH) > evidence.bound(steps, evidence.variance(TRUTH)) + evidence.rounding:
            return True
    return False


def again(
    probability: Callable[[np.random.Generator, aope.Transitions], np.ndarray], seed: int, rows: int = ROWS
) -> aope.Transitions:
    """The same rows with other records."""
    data = logged(seed, rows)
    taken = probability(np.random.default_rng([1, seed]), data)
    return recorded(data.states[:, 0], data.actions, data.rewards, taken)


@pytest.mark.parametrize("probability", [anything, by_rewards_so_far, farther_out], ids=lambda each: each.__name__)
def test_wrong_propensities_do_not_break_the_event(probability):
    failed = sum(fails(again(probability, seed)) for seed in range(TRIALS))
    assert not too_many(failed, TRIALS, DELTA), f"{failed} of {TRIALS}"
    for seed in range(3):
        interval = evaluated(again(probability, seed)).bound(delta=DELTA)
        assert VALUE in interval or fails(again(probability, seed))


def uses_propensities(data: aope.Transitions) -> bool:
    """Whether the first rows choose the weights of recorded propensities."""
    sums = RULE.evidence(evaluated(data).member_for(RULE, 0), DELTA, len(data)).sums
    return sums.cut is not None and sums.cut.kind == "propensities"


def test_propensities_that_know_the_reward_are_outside_of_the_premises():
    """They are caught where they are used: the judgment has power."""
    logs = [again(knowing_the_reward, seed, 800) for seed in range(90)]
    used = [data for data in logs if uses_propensities(data)]
    failed = sum(map(fails, used))
    assert len(used) > 20 and too_many(failed, len(used), DELTA), f"{failed} of {len(used)}"
