"""Bounds with neither class nor kernel: what they rest on, where they cover, what they say where they know nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes import ScaledFeatures, WhitenedFeatures
from accountable_ope.defaults import ClassKind, Recipe, candidates, choose_recipe, load_recipe, save_recipe
from accountable_ope.environments import PlantedMDP, PuckMountain, measured_value, random_tabular, softmax_policy
from accountable_ope.radii import radius_rule
from accountable_ope.verification import verify_record

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=30)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), reward_noise=False)


def asked(data: aope.Transitions = DATA, starts: aope.StartStates = MDP.starts, **changes: object) -> aope.Problem:
    return aope.Problem(data, starts, MDP.policy, replace(FACTS, **changes))


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return choose_recipe(asked(), neural=False)


@pytest.fixture(scope="module")
def first(recipe: Recipe) -> aope.Interval:
    return aope.bound_value(asked(), recipe=recipe, pointwise=False)


def named(interval: aope.Interval, name: str) -> str:
    return next(str(each) for each in interval.premises if each.name == name)


def test_it_covers_and_says_what_it_rests_on(first: aope.Interval) -> None:
    assert MDP.value in first and first.width < 1.5 and first.count == 1200
    assert first.recipe is not None and first.recipe.kind is ClassKind.FOURIER
    assert "10% of the range of values" in named(first, "norm") and "asserted" in named(first, "norm")
    assert named(first, "estimate") == "The given estimate was made from the first 300 rows, which the bound does not use."
    assert "chosen on the first 300 rows" in named(first, "class") and "chosen on the first 300 rows" in named(first, "kernel")
    assert first.certificates[0].cut is not None and first.check(), first.verify().message


def test_it_is_what_explicit_options_give(first: aope.Interval, recipe: Recipe) -> None:
    later = recipe.later(asked())
    assert later.assumptions.norm_bound == pytest.approx(0.25) and len(later.data) == 1200
    (explicit,) = aope.bound_ladder(
        later,
        features=recipe.classes[: len(first.certificates)],
        kernel=recipe.kernel,
        anchor=recipe.estimate,
        chosen=recipe.choice,
        radii=["certified"],
        pointwise=False,
    )
    assert (explicit.lower, explicit.upper) == (first.lower, first.upper) and explicit.premises == first.premises


def test_the_same_data_give_the_same_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "STEPS", 30)
    small = asked(DATA.rows(slice(0, 1000)))
    one, other = (aope.bound_value(small, radius="azuma") for _ in range(2))
    assert one.recipe.kind is ClassKind.NEURAL and (one.lower, one.upper) == (other.lower, other.upper)


def test_a_certificate_is_proved_with_the_data_and_the_estimate(first: aope.Interval, recipe: Recipe) -> None:
    record = first.record()
    given = {"data": DATA, "starts": MDP.starts, "policy": MDP.policy}
    assert aope.verify(record, **given, estimate=recipe.estimate).valid
    without = aope.verify(record, **given)
    assert not without.valid and "an estimate, which must be given" in without.message
    other = replace(recipe.estimate, theta=1.01 * recipe.estimate.theta)
    assert not aope.verify(record, **given, estimate=other).valid


def test_an_estimate_that_may_know_the_rows_has_no_cut(first: aope.Interval, recipe: Recipe) -> None:
    """Nor does a certificate become true by saying when the estimate was made."""
    record = first.record()
    unsaid = replace(record, setting=replace(record.setting, estimate_before=False))
    assert not verify_record(unsaid).valid
    later = recipe.later(asked())
    common = {"features": recipe.classes[0], "kernel": recipe.kernel}
    plain = aope.evaluate(later, **common, anchor=recipe.estimate).bound(pointwise=False)
    assert [each.parameter("reason") for each in plain.remarks] == ["anchored"] and plain.width > first.width
    said = replace(plain.record(), setting=replace(plain.record().setting, estimate_before=True))
    assert not verify_record(said).valid
    evaluation = aope.evaluate(later, **common, anchor=recipe.estimate, chosen=recipe.choice)
    again = evaluation.diagnose(lambda states, actions: np.zeros(len(states)))  # of this one nothing was said
    assert [each.parameter("reason") for each in again.interval.remarks] == ["anchored"]


def test_weights_around_an_earlier_estimate_know_no_later_row(recipe: Recipe) -> None:
    """Residuals of the estimate enter the weights of a cut: those of earlier rows."""
    later = recipe.later(asked())
    options = {"features": recipe.classes[0], "kernel": recipe.kernel, "anchor": recipe.estimate, "chosen": recipe.choice}
    data, cuts = later.data, []
    moved = data.rewards.copy()
    moved[900:] = 1 - moved[900:]
    for rewards in (data.rewards, moved):
        log = aope.Transitions(data.states, data.actions, rewards, data.next_states, episodes=data.episodes)
        cuts.append(aope.evaluate(replace(later, data=log), **options).plans()[0].cut)
    np.testing.assert_array_equal(cuts[0].weights, cuts[1].weights)
    assert cuts[0].rate == cuts[1].rate and cuts[0].weights[899] != 0


def test_the_event_behind_a_cut_around_an_earlier_estimate_fails_as_seldom_as_promised() -> None:
    """Both martingales at the true Q, a quarter each of a delta of one half."""
    mdp, kernel, rule, trials = PlantedMDP(seed=1, features=2, discount=0.6), aope.Gaussian(1.0), radius_rule("certified"), 80
    facts, failed = replace(FACTS, norm_bound=2 * mdp.norm), np.zeros(2)
    for trial in range(trials):
        data = mdp.sample(np.random.default_rng(trial), trajectories=6, length=20)
        earlier, later = aope.Problem(data, mdp.starts, mdp.policy, facts).split(0.5)
        phi = mdp.features()
        q = aope.fit_q(earlier.data, mdp.policy, kernel=kernel, features=phi, discount=0.6, ridge=1e-2)
        chosen = aope.Choice(len(earlier.data), estimate=True)
        member = aope.evaluate(later, features=phi, kernel=kernel, anchor=q, chosen=chosen).member_for(rule, 0)
        evidence = rule.evidence(member, 0.5, len(later.data)).evidence
        truth = np.append(np.sqrt(2) * mdp.theta[:-1], mdp.theta[-1]) - q.theta
        width = member.residuals.before_data
        assert [each.name for each in evidence] == ["kernel", "cut"]
        assert np.abs(member.system.residuals_at(truth)).max() <= width
        failed += [float(each.squared(truth) > each.allowed(width, truth)) for each in evidence]
    assert (failed <= 0.25 * trials).all()


def test_the_hull_with_a_wider_class_where_the_class_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "COSINES", 6)
    problem = asked(DATA.rows(slice(0, 600)))
    poor = choose_recipe(problem, neural=False, candidates=["cosines"])
    interval = aope.bound_value(problem, recipe=poor)
    assert interval.status is aope.Status.DOUBTED and len(interval.certificates) == 2
    assert [type(each) for each in poor.classes] == [WhitenedFeatures, ScaledFeatures]
    alone = aope.evaluate(
        poor.later(problem), features=poor.classes[0], kernel=poor.kernel, anchor=poor.estimate, chosen=poor.choice
    ).bound()
    assert interval.lower <= alone.lower and interval.upper >= alone.upper and interval.check()
    assert "or its norm in the class of ScaledFeatures" in named(interval, "norm")


def test_a_table_needs_no_ball() -> None:
    mdp, target = random_tabular(5, 2, seed=3, discount=0.6), np.tile([0.8, 0.2], (5, 1))
    data = mdp.sample_trajectories(np.full((5, 2), 0.5), 60, 25, np.random.default_rng(0))
    interval = aope.bound_value(aope.Problem(data, mdp.starts(), mdp.policy(target), FACTS))
    assert interval.recipe.kind is ClassKind.TABLE and interval.status is aope.Status.OK
    assert mdp.value(target) in interval and interval.width < 0.5 and interval.check()
    assert "follows from the range of values" in named(interval, "norm") and interval.certificates[0].cut is not None
    assert "estimate" not in {each.name for each in interval.premises}


def test_an_assertion_that_a_table_does_not_use_is_named(tmp_path: Path) -> None:
    mdp, target = random_tabular(5, 2, seed=3, discount=0.6), np.tile([0.8, 0.2], (5, 1))
    data = mdp.sample_trajectories(np.full((5, 2), 0.5), 24, 25, np.random.default_rng(0))
    problem = aope.Problem(data, mdp.starts(), mdp.policy(target), FACTS)
    plain, near = (aope.bound_value(problem, radius="azuma", within=within) for within in (None, 0.01))
    assert (plain.lower, plain.upper) == (near.lower, near.upper)
    save_recipe(near.recipe, tmp_path / "choice.npz")
    for recipe in (near.recipe, load_recipe(tmp_path / "choice.npz")):
        said = {each.name: str(each) for each in recipe.statements()}
        assert "within 1% of the range of values of a fit is not used" in said["unused-within"]
    assert "unused-within" not in {each.name for each in plain.recipe.statements()}


def test_states_that_later_rows_show_first() -> None:
    """They are listed, and cost the cut with its share of delta: how many there are, weights must not know."""
    mdp = random_tabular(5, 2, seed=3, discount=0.6)
    data = mdp.sample_trajectories(np.full((5, 2), 0.5), 60, 25, np.random.default_rng(0))
    states, after = data.states.copy(), data.next_states.copy()
    after[1400], states[1401] = 7.0, 7.0
    problem = aope.Problem(
        aope.Transitions(states, data.actions, data.rewards, after, episodes=data.episodes),
        mdp.starts(),
        aope.DiscretePolicy(lambda s: np.tile([0.8, 0.2], (len(s), 1)), 2),
        FACTS,
    )
    interval = aope.bound_value(problem)
    assert interval.recipe.features.dimension == 10 and interval.certificates[0].statistic.dimension == 13
    assert [each.parameter("reason") for each in interval.remarks] == ["points"] and interval.check()
    assert [each.envelope.delta for each in interval.certificates[0].constraints.evidence] == [0.05]
    record = interval.record()
    assert aope.verify(record, data=problem.data, starts=problem.starts, policy=problem.policy).valid
    assert not verify_record(replace(record, setting=replace(record.setting, points_before=True))).valid


def test_where_the_event_that_decides_was_never_logged() -> None:
    """All rewards are -1 and no episode ends: a fit would say that it never does."""
    silent = aope.Transitions(DATA.states, DATA.actions, -np.ones(len(DATA)), DATA.next_states, episodes=DATA.episodes)
    interval = aope.bound_value(asked(silent, reward_range=(-1, 0)))
    assert interval.status is aope.Status.VACUOUS and (interval.lower, interval.upper) == interval.ranges.value
    assert [each.name for each in interval.recipe.statements()] == ["never-logged"] and interval.check()
    rewarded = -np.ones(len(DATA))
    rewarded[20] = 0.0
    spoken = aope.Transitions(DATA.states, DATA.actions, rewarded, DATA.next_states, episodes=DATA.episodes)
    assert choose_recipe(asked(spoken, reward_range=(-1, 0)), neural=False).kind is ClassKind.FOURIER


def test_puck_mountain() -> None:
    """A control task with a small log: nothing is promised but that it covers and says what it knows."""
    task, target, logger = PuckMountain(), softmax_policy("puck-mountain", 0.1), softmax_policy("puck-mountain", 1.0)
    rng, parts = np.random.default_rng(0), []
    states = task.starts.states[rng.integers(0, len(task.starts.states), 40)]
    for time in range(40):
        chances = np.asarray(logger.probabilities(states))
        actions = (rng.random((40, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=2)
        moved = task.step(states, actions, rng)
        parts.append((states, actions, moved.rewards, moved.next_states, np.arange(40), np.full(40, time)))
        states = moved.next_states
    s, a, r, n, episode, when = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((when, episode))
    data = aope.Transitions(s[order], a[order], r[order], n[order], episodes=episode[order])
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), terminates=False)
    problem = aope.Problem(data, task.starts, aope.DiscretePolicy(target.probabilities, 3), facts)
    interval = aope.bound_value(problem, recipe=choose_recipe(problem, neural=False), pointwise=False)
    assert measured_value("puck-mountain").value in interval and interval.check()


def test_start_states_of_the_log_serve() -> None:
    interval = aope.bound_value(asked(DATA.rows(slice(0, 500)), DATA.first_states()), radius="azuma", within=0.2)
    assert interval.recipe.ball.within == 0.2 and interval.start_error > 0 and interval.check()


def test_what_goes_together_and_what_does_not() -> None:
    features, kernel = MDP.features(), aope.Gaussian(1.0)
    for given in ({"features": features}, {"kernel": kernel}):
        with pytest.raises(aope.InvalidInput, match="go together"):
            aope.bound_value(asked(), **given)
    with pytest.raises(aope.InvalidInput, match="`within` is for a class that is chosen"):
        aope.bound_value(asked(), features=features, kernel=kernel, within=0.1)
    with pytest.raises(aope.InvalidInput, match="`chosen` is of a class that was given"):
        aope.bound_value(asked(), chosen=aope.Choice(5))
    with pytest.raises(aope.InvalidInput, match="`radius` must be one of"):
        aope.bound_value(asked(), radius="guess")
    with pytest.raises(aope.InvalidInput, match="`estimate` must be"):
        aope.Choice(5, estimate="yes")


def test_columns_that_are_rounding_alone_leave_the_certificate_valid() -> None:
    # Words are columns that add up to 1, so that some of their products are zero but for rounding. Coefficients of any size for
    # those would explain some of the loss; the ball does not allow them, and the proof of the least loss must say so.
    random = np.random.default_rng(1001)
    rows = 3000
    interest, age, mobile = random.normal(size=rows), random.uniform(18, 70, rows), random.random(rows) < 0.7
    shown = random.integers(0, 3, rows)
    score = np.column_stack([0.6 * interest - 2.5, 0.03 * age + 0.5 * mobile - 4, -0.8 * interest - 0.4 * mobile - 2.2])
    clicks = (random.random(rows) < 1 / (1 + np.exp(-score[np.arange(rows), shown]))).astype(float)
    states = np.column_stack([interest, age, mobile, ~mobile])
    log = aope.Transitions(states, shown, clicks, states, terminated=np.ones(rows, dtype=bool), episodes=np.arange(rows))
    policy = aope.DiscretePolicy(
        lambda seen: np.eye(3)[np.where(seen[:, 0] < -0.5, 2, np.where(seen[:, 1] > 45, 1, 0))], actions=3
    )
    problem = aope.Problem(log, log.first_states(), policy, aope.Assumptions(discount=0.0, reward_range=(0, 1)))
    chosen = choose_recipe(problem, neural=False, candidates=["products"])
    found = aope.bound_value(problem, recipe=chosen).verify()
    assert found.valid, found
