"""Factors of rows: fixed before the row, no step beyond what was chosen, and the same while data grow."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.environments import chain
from accountable_ope.radii.row_scale import row_scale

positive = st.floats(1e-3, 1e3)


@given(st.lists(st.one_of(positive, st.just(np.inf), st.just(0.0)), min_size=2, max_size=200), st.integers(0, 2**32 - 1))
def test_no_step_is_larger_than_what_the_first_rows_chose(ranges, seed):
    ranges = np.array(ranges)
    found = row_scale(ranges)
    if found is None:
        return
    used = found.factors > 0
    assert found.largest > 0
    assert (found.factors[used] * ranges[used] <= found.largest * (1 + 1e-12)).all()
    assert not found.factors[: found.earlier].any() and found.factors.max() <= 1
    small = ranges[found.earlier :] <= found.largest
    assert (found.factors[found.earlier :][small] == 1).all()
    # Later ranges decide their own factors alone.
    others = ranges.copy()
    others[found.earlier :] = np.random.default_rng(seed).permutation(others[found.earlier :])
    again = row_scale(others)
    assert again is not None and (again.largest, again.earlier) == (found.largest, found.earlier)
    same = others == ranges
    np.testing.assert_array_equal(again.factors[same], found.factors[same])


def test_nothing_is_chosen_from_nothing():
    ranges = np.linspace(1.0, 2.0, 100)
    assert row_scale(ranges).earlier == 5
    assert row_scale(np.full(100, np.inf)) is None
    assert row_scale(np.ones(1)) is None


def test_factors_stay_while_data_grow():
    """A radius for all n at once is one martingale: another number of rows must not change factors of rows that are there."""
    mdp, table = chain(4, discount=0.9, slip=0.2), np.tile([0.2, 0.8], (4, 1))
    data, policy = mdp.sample_iid(600, np.random.default_rng(0)), mdp.policy(table)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False, terminates=False)
    scales = []
    for n in (200, 600):
        problem = aope.Problem(data.rows(slice(0, n)), mdp.starts(), policy, facts, mdp.step_knowledge(table))
        grid = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=False)
        prepared = aope.evaluate(problem, features=grid, kernel=aope.Tabular())
        scales.append(prepared.bound("certified", planned=600).certificates[0].constraints.evidence[0].scale[:200])
    np.testing.assert_array_equal(*scales)


def test_episodes_that_begin_later_decide_no_factor():
    """A logger that begins an episode, or does not, by what its rows brought would decide afterward whether they count."""
    mdp, table = chain(4, discount=0.9, slip=0.2), np.tile([0.2, 0.8], (4, 1))
    data, policy = mdp.sample_iid(200, np.random.default_rng(0)), mdp.policy(table)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors)
    columns, factors = (data.states, data.actions, data.rewards, data.next_states, data.terminated), []
    for begins in (200, 199, 100):
        labeled = aope.Transitions(*columns, (np.arange(200) >= begins).astype(int))
        problem = aope.Problem(labeled, mdp.starts(), policy, facts, mdp.step_knowledge(table))
        factors.append(aope.evaluate(problem, features=features, kernel=aope.Tabular()).member(0, rescaled=True).scale.factors)
    np.testing.assert_array_equal(factors[0], factors[1])
    np.testing.assert_array_equal(factors[0], factors[2])
