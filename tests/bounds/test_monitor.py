"""The monitor: the same numbers as from all rows at once, valid at all looks together, and never half changed."""

import dataclasses
import math
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import accountable_ope as aope
import accountable_ope.bounds.ends as ends_module
import accountable_ope.radii.registry as radius_module
import reference
from accountable_ope.bounds.evaluation import Evaluation
from accountable_ope.bounds.interval import Interval
from accountable_ope.bounds.looks import Look, first_decision
from accountable_ope.bounds.monitor import Monitor, read_history
from accountable_ope.environments import PlantedMDP, chain, clinic
from accountable_ope.environments.tabular import TabularMDP
from accountable_ope.kernels.products import TileOptions
from accountable_ope.laboratory.summary import believable
from accountable_ope.problem import Categories, Naming
from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.envelope import rate_mixture
from accountable_ope.radii.martingale import azuma, azuma_anytime
from accountable_ope.radii.registry import RULES
from accountable_ope.report.monitor_plot import monitor_figure
from accountable_ope.statistics.engines.growing import cross_sums, extend_sums
from accountable_ope.statistics.engines.tiles import pair_sums

MDP = PlantedMDP(seed=1, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=12, length=50)
FACTS = aope.Assumptions(
    discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False, symmetric_noise=True, terminates=False
)
KERNEL = aope.Gaussian(1.0)
FEATURES = MDP.features()
ANYTIME = [rule.name for rule in RULES if rule.anytime]


def new_monitor(radius="azuma-anytime", features=FEATURES, facts=FACTS, kernel=KERNEL, planned=600, starts=MDP.starts, delta=0.1):
    return Monitor(
        aope.Question(starts, MDP.policy, facts), kernel=kernel, features=features, radius=radius, planned=planned, delta=delta
    )


def load_monitor(path, **changes):
    given = {"assumptions": FACTS, "kernel": KERNEL, "features": FEATURES, "radius": "azuma-anytime", "planned": 600} | changes
    starts, policy = given.pop("starts", MDP.starts), given.pop("policy", MDP.policy)
    return Monitor.load(path, aope.Question(starts, policy, given.pop("assumptions")), **given)


def batches(data, *cuts):
    edges = [0, *cuts, len(data)]
    return [data.rows(slice(a, b)) for a, b in pairwise(edges)]


def feed(monitor, parts):
    return [monitor.update(part) for part in parts]


# Sums over pairs


KERNELS = {
    "gaussian": (aope.Gaussian(1.0), reference.gaussian(1.0)),
    "gaussian far spread": (aope.Gaussian(0.02), reference.gaussian(0.02)),
    "laplace": (aope.Laplace(1.3), reference.laplace(1.3)),
    "tabular": (aope.Tabular(), reference.tabular()),
    "product": (
        aope.Product(aope.Gaussian(0.7), aope.Tabular(), state_dimension=2),
        reference.product(reference.gaussian(0.7), reference.tabular(), 2),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("cuts", [(1, 2), (30,), (20, 21, 44)])
def test_sums_of_growing_data_are_those_of_all_pairs(name, cuts):
    kernel, scalar = KERNELS[name]
    rng = np.random.default_rng(3)
    points = np.column_stack([np.round(rng.uniform(-1, 1, (45, 2)), 1), rng.integers(-1, 2, 45)])
    columns = rng.normal(size=(45, 4))
    sums, before = None, 0
    for stop in (*cuts, 45):
        sums = extend_sums(kernel, sums, points[:stop], columns[:stop], stop - before, TileOptions(rows=7, columns=5))
        before = stop
    expected = reference.pair_gram(columns, points, scalar)
    # The certified error of the entries bounds that of the sums, and is nothing but rounding.
    allowed = sums.kernel_error * np.abs(columns).sum(axis=0)[:, None] * np.abs(columns).sum(axis=0)
    assert (np.abs(sums.pair_gram - expected) <= allowed).all()
    assert sums.kernel_error < 1e-11
    np.testing.assert_allclose(sums.diag_gram, reference.diag_gram(columns, points, scalar), rtol=1e-12, atol=1e-12)


def test_cross_sums_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    points, columns = rng.normal(size=(700, 3)), rng.normal(size=(700, 5))
    found = [
        cross_sums(KERNEL, points[:600], columns[:600], points[600:], columns[600:], TileOptions(64, 32, threads)).gram
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(*found)
    whole = pair_sums(KERNEL, points, columns).pair_gram
    parts = [pair_sums(KERNEL, points[part], columns[part]).pair_gram for part in (slice(600), slice(600, None))]
    np.testing.assert_allclose(found[0] + found[0].T + parts[0] + parts[1], whole, rtol=1e-12, atol=1e-10)


@dataclasses.dataclass(frozen=True, eq=False)
class Counted:
    """A kernel that counts the entries it computes."""

    inner: aope.kernels.Kernel
    entries: list

    supremum, nonnegative = 1.0, True

    def prepare(self, rows, columns, dtype):
        prepared, entries = self.inner.prepare(rows, columns, dtype), self.entries

        class Tiles:
            entry_error = prepared.entry_error

            def fill(self, rows, columns, out):
                entries.append(out.size)
                prepared.fill(rows, columns, out)

        return Tiles()

    def diagonal(self, points):
        return self.inner.diagonal(points)

    def paired(self, x, y):
        return self.inner.paired(x, y)


def test_old_pairs_are_not_computed_again(monkeypatch):
    monkeypatch.setattr(Interval, "doubted", False)  # the test of the class has pairs of its own, of a bounded number of rows
    entries = []
    monitor = new_monitor(kernel=Counted(KERNEL, entries))
    first, second = batches(DATA, 550)
    monitor.update(first)
    entries.clear()
    monitor.update(second)
    assert sum(entries) == 550 * 50 + 50 * 50


# The same as from all rows at once


@pytest.mark.parametrize("radius", ANYTIME)
def test_every_radius_for_all_times_is_that_of_all_rows(radius):
    report = feed(new_monitor(radius), batches(DATA, 200))[-1]
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, FACTS)
    expected = aope.evaluate(problem, kernel=KERNEL, features=FEATURES).bound(radius=radius, planned=600)
    assert (report.interval.lower, report.interval.upper) == pytest.approx((expected.lower, expected.upper), abs=1e-9)
    assert report.count == report.interval.count == 600
    assert report.interval.radius.level == pytest.approx(expected.radius.level, rel=1e-9)
    assert report.interval.premises == expected.premises
    assert report.interval.check()


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(2, 598), min_size=1, max_size=4).map(lambda cuts: sorted({2 * (cut // 2) for cut in cuts})))
def test_any_batches_give_the_same_interval(cuts):
    one = feed(new_monitor(), batches(DATA, *cuts))[-1].interval
    other = new_monitor().update(DATA).interval
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), abs=1e-10)


@pytest.mark.parametrize("shift", [-1e6, 1e6])
@pytest.mark.parametrize("radius", ["azuma-anytime", "certified"])
def test_a_constant_in_the_rewards_is_one_in_the_value(radius, shift, tmp_path):
    """Values are counted from the middle of their range, as `evaluate` does: far from 0 no width is lost."""

    def shown(constant):
        data = aope.Transitions(DATA.states, DATA.actions, constant + DATA.rewards, DATA.next_states)
        facts = dataclasses.replace(FACTS, reward_range=(constant, constant + 1))
        monitor = new_monitor(radius, facts=facts)
        first, second = batches(data, 300)
        monitor.update(first)
        monitor.save(tmp_path / "state.npz")
        loaded = load_monitor(tmp_path / "state.npz", radius=radius, assumptions=facts)
        return monitor.update(second), loaded.update(second), monitor

    (near, _, _), (far, again, monitor) = shown(0.0), shown(shift)
    assert near.upper - near.lower < 1.1  # of 2.5 that are declared
    assert [0.4 * (far.upper - far.lower)] == pytest.approx([0.4 * (near.upper - near.lower)], abs=1e-3)
    assert [far.lower - shift / 0.4, far.upper - shift / 0.4] == pytest.approx([near.lower, near.upper], abs=1e-3)
    assert (again.lower, again.upper) == (far.lower, far.upper) and far.interval.check()
    assert monitor.reference == shift / 0.4 + 1.25

    arrays = dict(np.load(tmp_path / "state.npz"))
    del arrays["reference"]  # as a file whose sums were counted from 0
    np.savez(tmp_path / "older.npz", **arrays)
    with pytest.raises(aope.InvalidInput, match="was made with values counted from 0. Got"):
        load_monitor(tmp_path / "older.npz", radius=radius, assumptions=monitor.question.assumptions)


def test_several_classes_and_ends_of_episodes_and_sampled_starts():
    """Rows that end an episode weigh differently in the value box; a batch may have none, or nothing else."""
    mdp = clinic(discount=0.9)
    table = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 40, 60, np.random.default_rng(0))
    policy = mdp.policy(table)
    starts = aope.StartStates(np.repeat(np.arange(4.0), 25), exact=False)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), terminal_reward=True)
    points = aope.TabularFeatures.grid(np.arange(4.0)[:, None], policy.action_vectors)
    classes = (points, aope.RandomFourier(6, 2.0))
    ended = np.flatnonzero(data.terminated)
    parts = [data.rows(ended[:2]), data.rows(np.setdiff1d(np.arange(60), ended)), data.rows(slice(60, None))]
    again = aope.Transitions(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("states", "actions", "rewards", "next_states", "terminated")
        )
    )
    monitor = Monitor(
        aope.Question(starts, policy, facts), kernel=aope.Tabular(), features=classes, radius="azuma-anytime", planned=500
    )
    reports = feed(monitor, parts)
    problem = aope.Problem(again, starts, policy, facts)
    expected = aope.evaluate(problem, kernel=aope.Tabular(), features=classes).bound(radius="azuma-anytime", planned=500)
    last = reports[-1].interval
    assert last.unclipped == pytest.approx(expected.unclipped, abs=1e-9)
    # The error of the start states is one event for all times, paid for once.
    assert {report.interval.start_error for report in reports} == {expected.start_error} and expected.start_error > 0
    assert {report.interval.delta for report in reports} == {expected.delta}
    assert expected.split.kernel + expected.split.start == pytest.approx(0.1)


def test_draws_of_a_sampled_policy_are_new_in_every_batch():
    """Row for row the same states: were the draws repeated, the past would know them."""

    def act(states, rng):
        return rng.normal(size=(len(states), 1))

    policy = aope.SampledPolicy(act, draws=3, seed=5)
    rng = np.random.default_rng(0)
    states = rng.uniform(size=(40, 2))
    data = aope.Transitions(states, rng.normal(size=(40, 1)), rng.uniform(size=40), states)
    starts = aope.StartStates([[0.0, 0.0], [1.0, 1.0]])
    features = aope.RandomFourier(3, seed=1)
    facts = dataclasses.replace(FACTS, norm_bound=5.0)
    monitor = Monitor(aope.Question(starts, policy, facts), kernel=KERNEL, features=features, radius="azuma-anytime", planned=100)
    one, other = feed(monitor, [data, data])
    after = monitor._taken.after[0]
    assert np.abs(after[:40] - after[40:]).min() > 0
    assert one.interval.split.start > 0
    objectives = [-report.interval.certificates[0].lower.objective for report in (one, other)]
    np.testing.assert_array_equal(*objectives)


# All looks at once


COIN = TabularMDP([[[1.0]]], [[0.5]], 0.0, [1.0], bernoulli=True)
COIN_FACTS = aope.Assumptions(discount=0.0, reward_range=(0, 1), terminates=False)
DELTA, PLANNED = 0.3, 64
LOOKS = [2 * round(5 * 1.25**k) for k in range(21)]


def coin_monitor(radius="azuma-anytime"):
    features = aope.TabularFeatures([[0.0, 0.0]], intercept=False)
    return Monitor(
        aope.Question(COIN.starts(), COIN.policy([[1.0]]), COIN_FACTS),
        kernel=aope.Tabular(),
        features=features,
        radius=radius,
        delta=DELTA,
        planned=PLANNED,
    )


def misses_at_some_look(seed):
    """Whether a running interval of a fair coin leaves out 1/2."""
    data = COIN.sample_iid(LOOKS[-1], np.random.default_rng(seed))
    monitor = coin_monitor()
    for part in batches(data, *LOOKS[:-1]):
        report = monitor.update(part)
        if not report.lower <= 0.5 <= report.upper:
            return True
    return False


def crossing_probability(bound, looks=LOOKS):
    """P(|S_n| > bound(n) at some look) for the sum S_n of n steps of 1/2 or -1/2, by summing over all paths."""
    n = looks[-1]
    alive, position, crossed = np.zeros(2 * n + 1), (np.arange(2 * n + 1) - n) / 2, 0.0
    alive[n] = 1.0
    for step in range(1, n + 1):
        after = np.zeros_like(alive)
        after[1:] += alive[:-1] / 2
        after[:-1] += alive[1:] / 2
        if step in looks:
            outside = np.abs(position) > bound(step)
            crossed += float(after[outside].sum())
            after[outside] = 0.0
        alive = after
    return crossed


def boundary(radius):
    """|S_n| beyond which mean +- sqrt(radius) leaves out 1/2."""
    return lambda n: n * math.sqrt(radius(n))


@pytest.mark.parametrize(("factor", "trials"), [(1.0, 120), (0.4, 120)])
def test_looking_after_every_batch(factor, trials, monkeypatch):
    """A fair coin, looked at 21 times between 10 and 868 tosses; three trials in ten may have a look that misses.

    The interval is mean +- sqrt(radius), so the probability that some look misses is that of a walk crossing a boundary: .141 for
    the radius for all n, .641 for 0.4 times it. The monitor must show these, and the second must be caught.
    """
    assert len(set(LOOKS)) >= 20
    monkeypatch.setattr(ends_module, "threadpool_limits", lambda **_: nullcontext())  # half of the time
    monkeypatch.setattr(radius_module, "azuma_anytime", lambda *arguments: factor * azuma_anytime(*arguments))
    exact = crossing_probability(boundary(lambda n: factor * azuma_anytime(n, 1.0, 1.0, DELTA, PLANNED)))
    misses = sum(misses_at_some_look(seed) for seed in range(trials))
    assert (exact <= DELTA) == (factor == 1.0)
    assert binomtest(misses, trials, exact).pvalue > 1e-4, f"{misses} of {trials}, {exact:.3f} expected"
    assert believable(trials - misses, trials, DELTA) == (factor == 1.0), f"{misses} of {trials}"


def test_a_radius_for_one_n_does_not_survive_looking_again():
    """Theorem A holds at one look (.053 at the last one), not at all 21 of them (.327), nor after every toss (.520)."""
    theorem_a = boundary(lambda n: azuma(n, 1.0, 1.0, DELTA))
    assert crossing_probability(theorem_a, LOOKS[-1:]) < 0.6 * DELTA
    assert crossing_probability(theorem_a) > 1.05 * DELTA
    assert crossing_probability(theorem_a, range(1, LOOKS[-1] + 1)) > 1.5 * DELTA


def test_the_event_of_the_certified_radius_holds_at_all_looks():
    """At Q of a fair coin V_n = n/4, so the boundary is known, and so is the probability to cross it."""
    envelope = rate_mixture(1.0, PLANNED, DELTA)

    def boundary(n: int) -> float:
        """Residuals are a half at every row, in an interval of length 1."""
        return float(envelope.bound(Steps(1.0, 0.5, float(n)), np.array([n / 4]))[0][0])

    crossing = crossing_probability(boundary)
    assert 0.02 < crossing <= DELTA
    # On that event the interval of every look holds the truth, whatever the iteration made of it.
    data = COIN.sample_iid(100, np.random.default_rng(2))
    monitor = coin_monitor("certified")
    for part in batches(data, 10, 40):
        report = monitor.update(part)
        inside = abs(monitor._taken.data.rewards.sum() - 0.5 * report.count) <= boundary(report.count)
        assert not inside or report.interval.lower <= 0.5 <= report.interval.upper


def test_the_running_interval_never_widens_and_holds_the_truth():
    mdp = chain(3, discount=0.5)
    table, logged = np.array([[0.2, 0.8]] * 3), np.full((3, 2), 0.5)
    data = mdp.sample_trajectories(logged, 40, 50, np.random.default_rng(0))
    policy = mdp.policy(table)
    monitor = Monitor(
        aope.Question(
            mdp.starts(),
            policy,
            aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False, terminates=False, norm_bound=3.0),
        ),
        kernel=aope.Tabular(),
        features=aope.TabularFeatures.grid(np.arange(3.0)[:, None], policy.action_vectors),
        planned=2000,
    )
    reports = feed(monitor, batches(data, *range(20, 2000, 330)))
    running = [(0.0, 2.0), *((report.lower, report.upper) for report in reports)]
    for (low, high), (next_low, next_high), report in zip(running, running[1:], reports, strict=False):
        assert low <= next_low <= mdp.value(table) <= next_high <= high
        assert next_low == max(low, report.interval.lower) and next_high == min(high, report.interval.upper)
    assert reports[0].status is aope.Status.VACUOUS and reports[-1].status is aope.Status.OK
    assert reports[-1].upper - reports[-1].lower < 1.0
    assert [look.count for look in monitor.history] == [report.count for report in reports]


# Refuted classes and decisions


def test_a_refuted_class_stays_refuted():
    """A constant Q cannot explain rewards that depend on the state; later rewards that do not make no difference."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, 3000).astype(float)
    rewards = np.where(np.arange(3000) < 2000, states, 0.5)
    data = aope.Transitions(states, np.zeros(3000, dtype=int), rewards, states)
    monitor = Monitor(
        aope.Question(
            aope.StartStates([[0.0]]),
            aope.DiscretePolicy(lambda s: np.ones((len(s), 1)), [[0.0]]),
            aope.Assumptions(discount=0.0, reward_range=(0, 1), terminates=False, norm_bound=1e-6),
        ),
        kernel=aope.Tabular(),
        features=aope.RandomFourier(2),
        radius="azuma-anytime",
        planned=1000,
    )
    reports = feed(monitor, batches(data, 20, 1000, 2000))
    assert [report.status for report in reports[1:]] == [aope.Status.INCONSISTENT] * 3
    assert math.isnan(reports[-1].lower) and math.isnan(reports[-1].upper)
    assert monitor.decided(-1.0) is None and first_decision(monitor.history[:1], -1.0).update == 1
    figure = monitor_figure(monitor.history, threshold=0.2)
    assert any("refuted" in text for text in figure.axes[0].get_legend_handles_labels()[1])


def look(count, lower, upper, status=aope.Status.OK):
    return Look(count, (lower, upper), status, lower, upper, status, 0.0)


def test_intervals_with_nothing_in_common_refute_the_class():
    from accountable_ope.bounds.looks import running_ends

    interval = new_monitor().update(DATA).interval
    before = look(100, interval.upper + 0.1, 5.0)
    lower, upper, status = running_ends(before, interval)
    assert math.isnan(lower) and math.isnan(upper) and status is aope.Status.INCONSISTENT
    vacuous = look(100, 0.0, 2.5, aope.Status.VACUOUS)
    assert running_ends(vacuous, interval) == (interval.lower, interval.upper, aope.Status.OK)


def test_when_a_decision_became_certain():
    looks = [look(100, 0.0, 5.0), look(200, 1.0, 4.0), look(300, 2.0, 2.5)]
    assert first_decision(looks, 0.0).update == 1
    assert first_decision(looks, 1.0).look.count == 200 and first_decision(looks, 1.0).at_least
    below = first_decision(looks, 4.5)
    assert (below.update, below.at_least) == (2, False)
    assert first_decision(looks, 2.2) is None and first_decision([], 1.0) is None
    axes = monitor_figure(looks, threshold=4.5, truth=2.2).axes[0]
    assert "certainly below 4.5: 200 rows" in axes.get_legend_handles_labels()[1]


# Refusals


@pytest.mark.parametrize("rule", [rule.name for rule in RULES if not rule.anytime])
def test_radii_for_one_n_are_refused(rule):
    with pytest.raises(aope.InvalidInput, match=f"must hold at all times at once: azuma-anytime, .* {rule} (holds|is fitted)"):
        new_monitor(rule)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"facts": dataclasses.replace(FACTS, norm_bound=aope.RelativeNorm(2.0))}, "the least norm changes"),
        ({"facts": dataclasses.replace(FACTS, terminates=None)}, "`terminates` must be True or False"),
        ({"features": aope.KernelSections(aope.Gaussian(1.0))}, "KernelSections depends on the rows"),
        ({"features": aope.Precomputed(np.ones((3, 1)), np.ones((3, 1)), np.ones((1, 1)))}, "Precomputed depends on the rows"),
        ({"features": ()}, "at least one feature class"),
        ({"planned": 0}, "`planned` must be a whole number"),
        ({"delta": 0.0}, "`delta` must be in"),
        ({"radius": "azumo"}, "`radius` must be one of"),
    ],
)
def test_what_would_depend_on_the_data_is_refused(changes, message):
    with pytest.raises(aope.InvalidInput, match=message):
        new_monitor(**changes)


def bad_batches():
    good = DATA.rows(slice(300, 400))
    fields = {name: getattr(good, name) for name in ("states", "actions", "rewards", "next_states", "terminated")}
    wide = np.column_stack([good.states, good.states[:, 0]])
    return {
        "outside the declared reward_range": fields | {"rewards": good.rewards + 2},
        "`terminates=False`, but row 99 is terminated": fields | {"terminated": np.arange(100) == 99},
        "`states` must have 2 columns, as before. Got 3": fields | {"states": wide, "next_states": wide},
        "must be indices of a finite set, as before. Got vectors": fields | {"actions": np.zeros((100, 1))},
        "but the policy has 3 actions": fields | {"actions": np.full(100, 7)},
    }


@pytest.mark.parametrize("message", ["declared reward_range", *list(bad_batches())[1:]])
def test_a_refused_batch_changes_nothing(message):
    given = next(fields for text, fields in bad_batches().items() if message in text)
    monitor = new_monitor()
    monitor.update(DATA.rows(slice(0, 300)))
    before = monitor.history
    with pytest.raises(aope.InvalidInput, match=message.replace(".", r"\.")):
        monitor.update(aope.Transitions(**given))
    assert monitor.history == before and len(monitor) == 300
    report = monitor.update(DATA.rows(slice(300, None)))
    undisturbed = feed(new_monitor(), batches(DATA, 300))[-1]
    assert (report.lower, report.upper) == (undisturbed.lower, undisturbed.upper)


def test_a_failure_while_bounding_changes_nothing(monkeypatch):
    monitor = new_monitor()
    monitor.update(DATA.rows(slice(0, 300)))

    def fail(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Evaluation, "bound", fail)
        with pytest.raises(aope.InvalidInput, match="not enough memory"):
            monitor.update(DATA.rows(slice(300, None)))
    assert len(monitor) == 300 and len(monitor.history) == 1
    assert monitor.update(DATA.rows(slice(300, None))).count == 600


def test_at_discount_one_not_every_batch_must_end_an_episode():
    states = np.zeros((4, 1))
    data = aope.Transitions(states, np.zeros(4, dtype=int), [0, 1, 0, 0], states, [False, True, False, False])
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    monitor = Monitor(
        aope.Question(aope.StartStates([[0.0]]), aope.DiscretePolicy(lambda s: np.ones((len(s), 1)), [[0.0]]), facts),
        kernel=aope.Tabular(),
        features=aope.TabularFeatures([[0.0, 0.0]], intercept=False),
        radius="azuma-anytime",
        planned=100,
    )
    with pytest.raises(aope.InvalidInput, match="no row is terminated"):
        monitor.update(data.rows(slice(2, 4)))
    assert [report.count for report in feed(monitor, batches(data, 2))] == [2, 4]


# Files


def test_saved_and_loaded_it_goes_on_as_if_nothing_had_happened(tmp_path):
    parts = batches(DATA, 100, 350)
    whole = new_monitor()
    monitor = new_monitor()
    for number, part in enumerate(parts):
        expected = whole.update(part, f"night {number}")
        report = monitor.update(part, f"night {number}")
        assert (report.lower, report.upper, report.status) == (expected.lower, expected.upper, expected.status)
        assert (report.interval.lower, report.interval.upper) == (expected.interval.lower, expected.interval.upper)
        monitor.save(tmp_path / "state.npz")
        monitor = load_monitor(tmp_path / "state.npz")
    assert read_history(tmp_path / "state.npz") == monitor.history
    assert [look.label for look in monitor.history] == ["night 0", "night 1", "night 2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.npz"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assumptions": dataclasses.replace(FACTS, norm_bound=9.0)}, r"norm_bound 9\.0: what was fixed"),
        ({"assumptions": dataclasses.replace(FACTS, reward_noise=True)}, "made with reward_noise False. Got reward_noise True"),
        ({"kernel": aope.Gaussian(1.1)}, r"made with kernel Gaussian\(bandwidth=1\). Got kernel Gaussian\(bandwidth=1\.1\)"),
        ({"kernel": aope.Gaussian(1.0 + 1e-6)}, "other values of the kernel"),
        ({"features": dataclasses.replace(FEATURES, intercept=False)}, "intercept=False"),
        ({"features": (FEATURES, FEATURES)}, "Got features"),
        ({"radius": "certified"}, "made with radius azuma-anytime. Got radius certified"),
        ({"delta": 0.2}, r"made with delta 0\.1. Got delta 0\.2"),
        ({"planned": 700}, "made with planned 600. Got planned 700"),
        ({"starts": aope.StartStates([[0.0, 0.0]])}, "made with StartStates"),
        ({"policy": aope.DiscretePolicy(lambda s: np.eye(3)[np.zeros(len(s), int)], [[-1.0], [0.0], [1.0]])}, "other values"),
        ({"policy": aope.DiscretePolicy(MDP.policy.probabilities, [[-1.0], [0.0], [2.0]])}, "other values"),
    ],
)
def test_what_was_fixed_at_first_cannot_be_changed(changes, message, tmp_path):
    monitor = new_monitor()
    monitor.update(DATA)
    monitor.save(tmp_path / "state.npz")
    with pytest.raises(aope.InvalidInput, match=message):
        load_monitor(tmp_path / "state.npz", **changes)


def test_policy_and_knowledge_cannot_be_changed_where_only_rows_tell(tmp_path):
    """A policy that is the same at the start states, and functions of single steps, which have no name."""
    rng = np.random.default_rng(0)
    states, actions, rewards, onward = (rng.integers(0, 2, shape) for shape in ((60, 1), 60, 60, (60, 1)))
    rows = aope.Transitions(states, actions, rewards, onward)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), terminates=False)
    given = {"features": aope.TabularFeatures.grid([[0.0], [1.0]], np.eye(2)), "kernel": aope.Tabular(), "planned": 100}

    def question(probability=0.5, step_range=1.5):
        policy = aope.DiscretePolicy(lambda s: np.where(s == 0, [[0.5, 0.5]], [[probability, 1 - probability]]), 2)
        knowledge = aope.StepKnowledge()
        if step_range is not None:
            knowledge = aope.StepKnowledge(one_step_range=lambda states, actions: np.full(len(states), step_range))
        return aope.Question(aope.StartStates([[0.0]]), policy, facts, knowledge)

    monitor = aope.Monitor(question(), **given)
    monitor.update(rows)
    monitor.save(tmp_path / "state.npz")
    assert len(aope.Monitor.load(tmp_path / "state.npz", question(), **given)) == 60
    for other in (question(probability=0.9), question(step_range=1.2), question(step_range=None)):
        with pytest.raises(aope.InvalidInput, match="was made with other values of the kernel"):
            aope.Monitor.load(tmp_path / "state.npz", other, **given)


def test_files_that_are_no_states(tmp_path):
    monitor = new_monitor()
    with pytest.raises(aope.InvalidInput, match="nothing to save"):
        monitor.save(tmp_path / "state.npz")
    monitor.update(DATA)
    path = tmp_path / "state.npz"
    monitor.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for name, wrong in (("here_0", arrays["here_0"][:-1]), ("looks", arrays["looks"][:0]), ("words", arrays["words"][:, :2])):
        np.savez(tmp_path / "broken.npz", **(arrays | {name: wrong}))
        with pytest.raises(aope.InvalidFile, match="broken.npz is not the state of a monitor"):
            load_monitor(tmp_path / "broken.npz")
    path.write_bytes(path.read_bytes()[:1000])
    for reader in (load_monitor, read_history):
        with pytest.raises(aope.InvalidFile, match="state.npz is not the state of a monitor"):
            reader(path)
    with pytest.raises(aope.InvalidFile, match="cannot be written"):
        monitor.save(tmp_path / "no such folder" / "state.npz")


def test_a_kernel_without_a_name_is_known_by_its_values(tmp_path):
    class Plain:
        supremum, nonnegative = 1.0, True

        def __init__(self, width):
            self.inner = aope.Gaussian(width)

        def __getattr__(self, name):
            return getattr(self.inner, name)

    monitor = new_monitor(kernel=Plain(1.0))
    monitor.update(DATA)
    monitor.save(tmp_path / "state.npz")
    assert len(load_monitor(tmp_path / "state.npz", kernel=Plain(1.0))) == 600
    with pytest.raises(aope.InvalidInput, match="other values of the kernel"):
        load_monitor(tmp_path / "state.npz", kernel=Plain(2.0))


def test_batches_in_which_words_mean_different_columns_are_refused(tmp_path):
    letters = "abcdefgh"[: DATA.states.shape[1]]
    words = Categories("ward", 0, tuple(letters))
    names = [Naming(tuple(letters)), Naming(words.columns, (), (words,))]
    first, second = batches(DATA, 300)
    monitor = new_monitor()
    monitor.update(first.named(names[1]))
    monitor.save(tmp_path / "state.npz")
    for each in (monitor, load_monitor(tmp_path / "state.npz")):
        with pytest.raises(aope.InvalidInput, match="States must have the same columns in all rows. They are ward=a, .* and a, "):
            each.update(second.named(names[0]))
    again = load_monitor(tmp_path / "state.npz")
    again.update(second.named(names[1]))
    plain = new_monitor()
    feed(plain, (first, second))
    assert again.history[-1].lower == plain.history[-1].lower and again.history[-1].upper == plain.history[-1].upper
