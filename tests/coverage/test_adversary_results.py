"""The logger of `adversary.py` against everything that is not a plain interval of one evaluation, at delta = .5 and .1.

Diagnosis, monitor, choice on earlier rows, average reward, finitely many features, the least norm and betting. As in
test_adversary.py, 200 logs each are judged by the event of the true Q, and programs that take long are solved at the logs
nearest to the boundary.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
import accountable_ope.radii.registry as radius_module
from accountable_ope.baselines import importance_sampling_interval
from accountable_ope.bounds import EstimateVerdict, bound_by_finite_features
from accountable_ope.environments.tabular import TabularMDP
from accountable_ope.fitting import Candidates
from accountable_ope.radii.registry import RULES, Approach, LossKind, radius_rule
from adversary import (
    DELTAS,
    FINITE_SAMPLE,
    POINTS,
    QUICK,
    ROWS,
    TRIALS,
    Game,
    Log,
    allowed_by,
    chase,
    failures,
    logs_of,
    margin,
    nearest,
    scaled,
    too_many,
    transitions,
)

COIN = Game()
KERNEL = aope.Tabular()
CONSTANT = [rule.name for rule in RULES if rule.approach is Approach.CONSTANT]
ANYTIME = [rule.name for rule in RULES if rule.anytime]

at_both_deltas = pytest.mark.parametrize("delta", DELTAS)


@cache
def filled(
    name: str, delta: float, opening: int = 0, game: Game = COIN, factor: float = 1.0, *, cut: bool = False
) -> tuple[Log, ...]:
    """Logs of a number of rows that is fixed: beyond the boundary as it will be at the end, the logger waits.

    cut: the radius has one, and half of delta is left for the kernel.
    """
    rule, rows = radius_rule(name), ROWS - opening
    boundary = allowed_by(game, rule, rows, delta, factor, cut=cut)
    return logs_of(
        lambda rng: chase(game, rng, ROWS, lambda j, variance: boundary(rows, variance), stops=False, opening=opening),
        TRIALS,
        order_counts=cut or opening > 0,
    )


@at_both_deltas
@pytest.mark.parametrize("name", FINITE_SAMPLE)
def test_the_true_q_is_rarely_rejected(name, delta):
    """And where it is not, nothing is corrected."""
    logs, rule, rejected = filled(name, delta), radius_rule(name), 0
    margins = [margin(COIN, COIN.problem(log.data), rule, delta, anchored=True) for log in logs]
    assert not too_many(failures(logs, margins), TRIALS, delta)
    for log, left in nearest(logs, margins, len(logs) if name in QUICK else 1):
        problem = COIN.problem(log.data, norm_bound=2.0)
        found = aope.diagnose(COIN.q, problem, features=POINTS, kernel=KERNEL, radius=name, delta=delta)
        rejected += log.times * (found.verdict is EstimateVerdict.REJECTED)
        assert found.verdict is EstimateVerdict.CONSISTENT or left < 0
        if name == "azuma":
            changed = aope.correct(COIN.q, problem, features=POINTS, kernel=KERNEL, radius=name, delta=delta)
            assert (changed.norm == 0) == (left >= 0)
    assert not too_many(rejected, TRIALS, delta)


@at_both_deltas
@pytest.mark.parametrize("name", ANYTIME)
def test_a_monitor_that_is_stopped_by_looking(name, delta):
    """Two looks: at ten rows, and when the logger likes to stop; the running interval is that of both."""
    rule = radius_rule(name)
    boundary = allowed_by(COIN, rule, ROWS, delta)
    # The first look depends on the order of the rows.
    logs = logs_of(lambda rng: chase(COIN, rng, ROWS, boundary, stops=True), TRIALS, order_counts=True)
    margins = [margin(COIN, COIN.problem(log.data), rule, delta, ROWS) for log in logs]
    assert not too_many(failures(logs, margins), TRIALS, delta)
    question, missed = aope.Question(COIN.mdp.starts(), COIN.policy, COIN.facts), 0
    for log, left in nearest(logs, margins, len(logs) if (name, delta) == ("azuma-anytime", 0.5) else 1):
        monitor = aope.Monitor(question, features=POINTS, kernel=KERNEL, radius=name, delta=delta, planned=ROWS)
        parts = [slice(0, 10), slice(10, None)] if len(log.data) > 12 else [slice(None)]
        report = [monitor.update(log.data.rows(part)) for part in parts][-1]
        # A look before the last one may miss as well, so the margin of the last alone does not decide.
        first = margin(COIN, COIN.problem(log.data.rows(parts[0])), rule, delta, ROWS)
        missed += log.times * (COIN.value() not in report)
        assert COIN.value() in report or min(left, first) < 0
    assert not too_many(missed, TRIALS, delta)


# Chosen on earlier rows


EARLIER = ROWS // 5
BANDWIDTHS = (1.0, 2.0)
CANDIDATES = Candidates(dimension=5, feature_bandwidths=BANDWIDTHS, keep=1)
NORM = 1.1 * max(COIN.norm_in(each) for each in CANDIDATES.classes())


@at_both_deltas
@pytest.mark.parametrize("name", FINITE_SAMPLE)
def test_a_class_that_was_chosen_on_earlier_rows(name, delta):
    """The logger knows the rows that choose, and plays against the others."""
    rule, missed = radius_rule(name), 0
    logs = filled(name, delta, opening=EARLIER, cut=rule.cut)
    margins = [margin(COIN, COIN.problem(log.data.split(0.2)[1]), rule, delta) for log in logs]
    assert not too_many(failures(logs, margins), TRIALS, delta)
    for log, left in nearest(logs, margins, len(logs) if (name, delta) == ("azuma", 0.5) else 1):
        problem = COIN.problem(log.data, norm_bound=NORM)
        interval, selection = aope.bound_selected(problem, candidates=CANDIDATES, radius=name, delta=delta)
        assert (interval.count, selection.earlier_rows) == (ROWS - EARLIER, EARLIER)
        missed += log.times * (COIN.value() not in interval)
        assert COIN.value() in interval or left < 0
    assert not too_many(missed, TRIALS, delta)


@at_both_deltas
def test_a_bandwidth_that_was_chosen_on_earlier_rows(delta):
    logs, rule = filled("azuma", delta, opening=EARLIER), radius_rule("azuma")
    margins = [margin(COIN, COIN.problem(log.data.split(0.2)[1]), rule, delta) for log in logs]
    for log, left in nearest(logs, margins, 10):
        problem = COIN.problem(
            log.data, norm_bound=3.0
        )  # the median distance is tiny: the four points are as good as orthonormal
        interval = aope.bound_rkhs(problem, landmarks=None, radius="azuma", delta=delta, intercept=False)
        assert COIN.value() in interval or left < 0


# Average reward


FOREVER = TabularMDP([[[1, 0], [0, 1]], [[1, 0], [1, 0]]], [[0.5, 0.5], [0.5, 0.5]], 0.9, [1, 0])
SPAN = 0.01
"""Declared; the relative value is the same everywhere."""


def endless_log(rng: np.random.Generator, boundary: Callable[[int, float], float]) -> aope.Transitions:
    """A coin that pays at table 0, until the sum is beyond the boundary as it will be at the end; then waits, which pay 1/2."""
    logged, state, total, tosses = [], 0, 0.0, 0
    while len(logged) < ROWS:
        waits = total**2 > 1.03 * boundary(ROWS, tosses / 4)  # the span adds to w
        tosses += not waits
        paid = 0.5 if waits else float(rng.integers(2))
        total += paid - 0.5
        after = 1 - state if waits else 0
        logged.append((state, int(waits), paid, after, False, 0))
        state = after
    return transitions(logged)


def average_misses(name: str, delta: float, factor: float = 1.0) -> int:
    rule = radius_rule(name)
    boundary = allowed_by(COIN, rule, ROWS, delta, factor, cut=rule.cut)
    truth = FOREVER.average_reward([[1, 0], [1, 0]])
    facts = aope.AverageReward(reward_range=(0, 1), value_span=SPAN, symmetric_noise=True)
    return sum(
        log.times
        * (
            truth
            not in aope.bound_average_reward(
                log.data, COIN.policy, facts, features=POINTS, kernel=KERNEL, radius=name, delta=delta
            )
        )
        for log in logs_of(lambda rng: endless_log(rng, boundary), average_trials(name), order_counts=rule.cut)
    )


def average_trials(name: str) -> int:
    """The order of the rows counts for a cut, so that hardly any two logs are the same to it."""
    return TRIALS // 5 if radius_rule(name).cut else TRIALS


@at_both_deltas
@pytest.mark.parametrize("name", FINITE_SAMPLE)
def test_the_average_reward(name, delta):
    assert not too_many(average_misses(name, delta), average_trials(name), delta)


@at_both_deltas
@pytest.mark.parametrize("name", ["azuma", "symmetric"])
def test_a_part_of_the_radius_is_caught_by_the_average_reward(name, delta, monkeypatch):
    part = 1 / 4 if name == "azuma" else 1 / 8
    rules = tuple(scaled(rule, part) if rule.name == name else rule for rule in RULES)
    monkeypatch.setattr(radius_module, "RULES", rules)
    assert too_many(average_misses(name, delta), average_trials(name), delta)


# Finitely many features


ALIKE = Game(discount=1.0)
"""Q is 1/2 everywhere, so hardly any norm is needed and the slack of the theorem is small."""


@at_both_deltas
@pytest.mark.parametrize("name", [name for name in CONSTANT if radius_rule(name).loss is LossKind.V])
def test_finitely_many_features(name, delta):
    """Every log has its own draw of the features, which is part of the guarantee; half of delta is theirs."""
    missed, wide = 0, 0
    for seed, log in enumerate(filled(name, delta / 2, game=ALIKE, factor=1.05)):
        interval = bound_by_finite_features(
            ALIKE.problem(log.data, norm_bound=0.001),
            features=aope.RandomFourier(20, 1.0, seed=seed),
            kernel=KERNEL,
            coefficient_variance=1e-9,
            radius=name,
            delta=delta,
        )
        missed += log.times * (ALIKE.value() not in interval)
        wide += log.times * (interval.status is aope.Status.VACUOUS)
    assert not too_many(missed, TRIALS, delta)
    assert wide == 0 or name.startswith("hoeffding")


# The least norm


@at_both_deltas
def test_the_least_norm_is_below_that_of_q(delta):
    logs, rule = filled("azuma", delta), radius_rule("azuma")
    margins = [margin(COIN, COIN.problem(log.data), rule, delta) for log in logs]
    for log, left in nearest(logs, margins, 3):
        found = aope.study(COIN.problem(log.data), features=POINTS, kernel=KERNEL, radius="azuma", delta=delta)
        assert found.least_norm().value < np.linalg.norm(COIN.table) or left < 0


# Draws of the target policy


@pytest.mark.parametrize("knows", [False, True], ids=["as assumed", "a logger that knows the draws"])
def test_draws_of_the_target_policy_must_not_be_known(knows):
    """Two places that lead to themselves and pay the action: residuals are those of the drawn actions alone.

    Who knows them logs at the first place where the next draw is high, at the second where it is low: a premise excludes that.
    """
    rows, trials, delta, missed = 200, 50, 0.5, 0
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False, terminates=False, norm_bound=4.0)
    starts = aope.StartStates(np.zeros(2000))
    for seed in range(trials):
        policy = aope.SampledPolicy(lambda states, rng: (rng.random((len(states), 1)) < 0.5).astype(float), draws=1, seed=seed)
        [branch] = policy.branches(np.zeros((rows, 1)))
        place = 1 - branch.actions[:, 0] if knows else np.random.default_rng(trials + seed).integers(2, size=rows)
        action = np.arange(rows)[:, None] % 2
        data = aope.Transitions(place, action.astype(float), action[:, 0], place)
        interval = aope.bound_value(
            aope.Problem(data, starts, policy, facts), features=POINTS, kernel=KERNEL, radius="azuma", delta=delta
        )
        missed += 1.0 not in interval
    assert too_many(missed, trials, delta) == knows, missed
    assert "drawn-actions" in [premise.name for premise in interval.premises]


# Importance sampling


@at_both_deltas
def test_betting_against_a_behavior_that_depends_on_the_past(delta):
    """Episodes of one step; the behavior tosses often while the weighted sum is too large, seldom while it is too small."""
    missed = 0
    for seed in range(TRIALS):
        rng, logged, chances, total = np.random.default_rng(seed), [], [], 0.0
        for episode in range(ROWS):
            often = 0.9 if total >= 0 else 0.2
            tosses = rng.random() < often
            paid = float(tosses and rng.random() < 0.5)
            logged.append((0, 0 if tosses else 1, paid, 2 if tosses else 1, tosses, episode))
            chances.append(often if tosses else 1 - often)
            total += paid / often - 0.5
        interval = importance_sampling_interval(
            transitions(logged), COIN.policy, behavior=chances, discount=0.9, reward_range=(0, 1), horizon=1, delta=delta
        )
        missed += 0.5 not in interval
    assert not too_many(missed, TRIALS, delta)
