"""A declared one-step range: what it narrows, what it says about itself, and that a true one covers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.bounds.monitor import Monitor
from accountable_ope.environments import TabularMDP, chain, random_tabular
from accountable_ope.laboratory import fair_coin, methods_named, run_trials, summarize
from accountable_ope.problem.statements import texts
from accountable_ope.radii.registry import RULES, Rests
from accountable_ope.report.document import ladder_document

CHAIN = chain(4, discount=0.9, slip=0.2)
TARGET = np.tile([0.2, 0.8], (4, 1))
FACTS = aope.Assumptions(discount=0.9, reward_range=(0.0, 1.0), reward_noise=False, terminates=False)
SENTENCE = "Given (s, a), chance moves reward plus discounted next value by at most 3, as declared."


def exact_range(mdp: TabularMDP, table) -> float:
    """The largest spread of r + discount V(s') over what can follow a (s, a), from the exact V."""
    value = np.where(mdp.terminal, 0.0, (mdp.q_values(table) * table).sum(axis=1))
    widest = 0.0
    for s in np.flatnonzero(~mdp.terminal):
        for a in range(mdp.mean_reward.shape[1]):
            rewards = (0.0, 1.0) if mdp.bernoulli else (mdp.mean_reward[s, a],)
            totals = [r + mdp.discount * value[t] for t in np.flatnonzero(mdp.transition[s, a]) for r in rewards]
            widest = max(widest, max(totals) - min(totals))
    return widest


def bound(mdp, table, data, facts, radius="azuma", **options):
    vectors = np.arange(table.shape[1], dtype=float)[:, None]
    grid = aope.TabularFeatures.grid(np.arange(len(table), dtype=float)[:, None], vectors)
    return aope.bound_value(
        aope.Problem(data, mdp.starts(), mdp.policy(table), facts), kernel=aope.Tabular(), features=grid, radius=radius, **options
    )


@pytest.fixture(scope="module")
def data():
    return CHAIN.sample_iid(400, np.random.default_rng(0))


def test_the_chain_moves_little_in_one_step():
    """A check of the exact range: neighbors on the chain differ by far less than the value can."""
    width = exact_range(CHAIN, TARGET)
    value = (CHAIN.q_values(TARGET) * TARGET).sum(axis=1)
    assert width == pytest.approx(0.9 * np.abs(value[2:] - value[:-2]).max(), rel=1e-9)
    assert 0.1 < width < 0.3 * 9
    assert exact_range(random_tabular(3, 2, seed=0, discount=0.5, bernoulli=True), np.full((3, 2), 0.5)) > 1


def test_the_radius_of_theorem_a_is_proportional_to_its_square(data):
    wide, narrow = (bound(CHAIN, TARGET, data, replace(FACTS, one_step_range=w)) for w in (3.0, 1.5))
    assert wide.radius.level == pytest.approx(4 * narrow.radius.level)
    assert wide.radius.level == pytest.approx(9 * math.log(20) / (2 * 400))
    assert wide.radius.uses == "width 3" and wide.ranges.residual_width == 3
    loose, plain = bound(CHAIN, TARGET, data, replace(FACTS, one_step_range=50.0)), bound(CHAIN, TARGET, data, FACTS)
    assert (loose.lower, loose.upper, loose.radius) == (plain.lower, plain.upper, plain.radius)


def test_the_range_of_values_does_not_change(data):
    found, plain = bound(CHAIN, TARGET, data, replace(FACTS, one_step_range=0.5)), bound(CHAIN, TARGET, data, FACTS)
    assert found.ranges.value == plain.ranges.value and found.ranges.next_value == plain.ranges.next_value
    paper = bound(CHAIN, TARGET, data, replace(FACTS, one_step_range=0.5), radius="hoeffding")
    assert paper.radius.level == bound(CHAIN, TARGET, data, FACTS, radius="hoeffding").radius.level


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_is_listed_exactly_where_it_counts(data, rule):
    """Every radius whose interval changes with it lists it; a radius that does not use it does not."""
    facts = replace(FACTS, symmetric_noise=True)
    plain, found = (bound(CHAIN, TARGET, data, one, radius=rule.name) for one in (facts, replace(facts, one_step_range=3.0)))
    assert (SENTENCE in texts(found.premises)) == (rule.rests is Rests.WIDTH)
    assert not any("chance moves" in line.text for line in plain.premises)
    if rule.rests is not Rests.WIDTH:
        assert (found.lower, found.upper, found.radius.level) == (plain.lower, plain.upper, plain.radius.level)
        assert rule.name in ("hoeffding", "hoeffding-u", "hoeffding-printed", "wild")
    else:
        assert found.radius.level != plain.radius.level
    assert found.check()


def test_it_is_not_listed_where_other_ranges_are_tighter(data):
    facts = replace(FACTS, value_range=(0.0, 2.0), one_step_range=3.0)  # .9 * 2 < 3
    assert not any("chance moves" in line.text for line in bound(CHAIN, TARGET, data, facts).premises)


def test_it_is_in_the_document(data):
    found = bound(CHAIN, TARGET, data, replace(FACTS, one_step_range=3.0))
    document = ladder_document([found], data)
    assert document["assumptions"]["one_step_range"] == 3.0
    assert document["assumptions"]["residual_width_used"] == 3.0
    assert SENTENCE in document["intervals"][0]["assumed"]
    assert ladder_document([bound(CHAIN, TARGET, data, FACTS)], data)["assumptions"]["one_step_range"] is None


@pytest.mark.parametrize(("radius", "n", "trials"), [("azuma", 1000, 100), ("certified", 1000, 4)])
def test_a_true_range_covers_and_narrows(radius, n, trials):
    """The exact range of the chain, declared: the truth is missed no more often than allowed, and intervals are narrower."""
    facts, delta, rng = replace(FACTS, one_step_range=exact_range(CHAIN, TARGET)), 0.1, np.random.default_rng(1)
    truth, misses = CHAIN.value(TARGET), 0
    for trial in range(trials):
        data = CHAIN.sample_iid(n, rng)
        found = bound(CHAIN, TARGET, data, facts, radius=radius, delta=delta)
        misses += not found.lower <= truth <= found.upper
        if trial < 2:
            plain = bound(CHAIN, TARGET, data, FACTS, radius=radius, delta=delta)
            off = 1e-4 * (plain.upper - plain.lower)
            assert plain.lower <= found.lower + off and found.upper <= plain.upper + off
            assert found.upper - found.lower < (0.8 if radius == "azuma" else 1.0) * (plain.upper - plain.lower)
            assert found.status is aope.Status.OK
    assert binom.sf(misses - 1, trials, delta) > 1e-6, misses


@pytest.mark.parametrize("declared", [1.0, 0.5])
def test_a_range_of_half_the_truth_is_caught(declared, monkeypatch):
    """A coin moves the reward by 1. Declared 1, Theorem A covers; declared 1/2, it misses as a binomial tail says.

    Two rows that differ by 1 contradict a half, so the data are not looked at here.
    """
    n, delta, trials = 100, 0.003, 300
    family = fair_coin()
    family = replace(family, assumptions=replace(family.assumptions, one_step_range=declared))
    if declared < 1:
        with pytest.raises(aope.InvalidInput, match="`one_step_range` says"):
            run_trials([family], [n], chosen=methods_named(["azuma"]), trials=1, delta=delta, workers=1)
        monkeypatch.setattr("accountable_ope.problem.problem.check_data", lambda data, assumptions: None)
    [row] = summarize(run_trials([family], [n], chosen=methods_named(["azuma"]), trials=trials, delta=delta, workers=1))
    assert row.refuted == (declared < 1), f"{row.covered} of {row.trials}"
    half_width = declared * math.sqrt(math.log(2 / delta) / (2 * n))
    exact = 2 * binom.cdf(math.ceil(n * (0.5 - half_width)) - 1, n, 0.5)
    misses = row.trials - row.covered
    assert min(binom.cdf(misses, trials, exact), binom.sf(misses - 1, trials, exact)) > 1e-4


def test_a_sampled_policy_is_refused_everywhere(data):
    """Its residuals hold the Q of drawn actions, of which a range of r + discount V(s') says nothing."""
    policy = aope.SampledPolicy(lambda states, rng: (rng.random((len(states), 1)) < 0.8).astype(float))
    facts = replace(FACTS, one_step_range=3.0, norm_bound=5.0)
    vectors = aope.Transitions(data.states, data.actions[:, None].astype(float), data.rewards, data.next_states)
    message = "`one_step_range` is about reward plus discounted next"
    with pytest.raises(aope.InvalidInput, match=message):
        aope.Problem(vectors, CHAIN.starts(), policy, facts)
    with pytest.raises(aope.InvalidInput, match=message):
        aope.Question(CHAIN.starts(), policy, facts)
    plain = aope.Problem(vectors, CHAIN.starts(), policy, replace(facts, one_step_range=None))
    prepared = aope.evaluate(plain, kernel=aope.Gaussian(1.0), features=aope.RandomFourier(5))
    with pytest.raises(aope.InvalidInput, match=message):
        prepared.assuming(facts).bound(radius="azuma")
    assert prepared.assuming(replace(facts, one_step_range=None)).bound(radius="azuma").check()


def test_a_monitor_keeps_to_it(data, tmp_path):
    """It is fixed at first, saved with the state, and a changed one is refused by name."""
    grid = aope.TabularFeatures.grid(np.arange(4.0)[:, None], [[0.0], [1.0]])
    common = {"kernel": aope.Tabular(), "features": grid, "radius": "azuma-anytime", "planned": 400}
    declared = replace(FACTS, one_step_range=3.0)
    question = aope.Question(CHAIN.starts(), CHAIN.policy(TARGET), declared)
    own = Monitor(question, **common)
    report = own.update(data)
    assert SENTENCE in texts(report.interval.premises)
    own.save(tmp_path / "state.npz")
    again = Monitor.load(tmp_path / "state.npz", question, **common)
    assert again.history == own.history
    for other in (2.0, None):
        with pytest.raises(aope.InvalidInput, match=f"was made with one_step_range 3.0. Got one_step_range {other}"):
            Monitor.load(
                tmp_path / "state.npz",
                replace(question, assumptions=replace(FACTS, one_step_range=other)),
                **common,
            )
