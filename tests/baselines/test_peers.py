"""Estimators of others as their own packages compute them.

The log is that of a seeded generator: 40 episodes of 5 steps, two actions, probabilities of both policies drawn at every row. The
numbers were printed by scope-rl 0.2.1 (`scope_rl.ope.discrete.basic_estimators`, `estimate_policy_value(step_per_trajectory=5,
action, reward, pscore, evaluation_policy_action_dist, gamma=0.9)`, and `scope_rl.utils.estimate_confidence_interval_by_t_test(x,
alpha=0.1)` of its per-decision values) and by vw-estimators 0.2.2 (`estimators.bandits.ips`, `snips` and `gaussian`, every row a
bandit's).
"""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.baselines.doubly_robust import corrected, two_sides
from accountable_ope.baselines.episodes import read_episodes
from accountable_ope.baselines.foretold import UNCLIPPED
from accountable_ope.baselines.means import student_ends
from accountable_ope.baselines.weighted_steps import WeightedSteps

EPISODES, STEPS, DISCOUNT = 40, 5, 0.9
ROWS = EPISODES * STEPS


def logged(steps: int):
    """The rows, cut into episodes of so many steps; a state is the number of its row."""
    rng = np.random.default_rng(12)
    b, pi = rng.uniform(0.2, 0.8, ROWS), rng.uniform(0.1, 0.9, ROWS)
    actions = (rng.random(ROWS) < b).astype(np.int64)
    rewards = rng.uniform(size=ROWS)
    rows = np.arange(ROWS, dtype=float)
    data = aope.Transitions(
        rows,
        actions,
        rewards,
        np.minimum(rows + 1, ROWS - 1),
        episodes=np.arange(ROWS) // steps,
        behavior_probability=np.where(actions == 1, b, 1 - b),
    )
    table = np.column_stack([1 - pi, pi])
    return data, aope.DiscretePolicy(lambda states: table[states[:, 0].astype(int)], actions=2)


def steps_of(steps: int) -> WeightedSteps:
    return WeightedSteps.of(*logged(steps), DISCOUNT, steps)


@pytest.mark.parametrize(
    ("whole", "weighted", "printed"),
    [
        (True, False, 1.9937831158388044),
        (False, False, 2.1242606093517313),
        (True, True, 2.332079025144572),
        (False, True, 2.217671582574424),
    ],
)
def test_importance_sampling_of_scope_rl(whole, weighted, printed):
    found = steps_of(STEPS)
    found = found.whole if whole else found
    value = found.influences().mean() if weighted else found.samples().mean()
    # It adds 1e-10 to what it divides by.
    assert value == pytest.approx(printed, rel=1e-9 if weighted else 1e-12)
    if weighted:
        assert found.ratios(np.ones((1, EPISODES)))[0] == pytest.approx(printed, rel=1e-9)


def test_students_interval_of_scope_rl():
    """What it calls 90% has alpha on either side: it is the two-sided interval of 80%."""
    ends = student_ends(steps_of(STEPS).samples(), 0.2)
    assert ends == pytest.approx((1.5761829238434886, 2.672338294859974), rel=1e-12)


def test_doubly_robust_of_scope_rl():
    """With Q(row, 0) from 0 to 2 and Q(row, 1) from 1 to 3, evenly."""
    data, policy = logged(STEPS)
    episodes = read_episodes(data, policy, None, 0.2, DISCOUNT, (-1.0, 4.0), STEPS, False)

    def q(states, actions, left):
        return 2 * states[:, 0] / (ROWS - 1) + actions[:, 1]

    x, _ = corrected(episodes, two_sides(episodes, policy, q)[0], UNCLIPPED)
    assert x.mean() == pytest.approx(2.3377866698485676, rel=1e-12)


def test_bandits_of_vowpal_wabbit():
    found = steps_of(1)
    assert found.samples().mean() == pytest.approx(0.5098351428453769, rel=1e-12)
    assert found.influences().mean() == pytest.approx(0.5298350624563672, rel=1e-12)
    low, high = student_ends(found.samples(), 0.1)
    # Its interval has the normal quantile: 1.644854 for Student's 1.652547 at 199 degrees of freedom.
    assert (high - low) == pytest.approx((0.5680507382793779 - 0.45161954741137583) * 1.652547 / 1.644854, rel=1e-5)
