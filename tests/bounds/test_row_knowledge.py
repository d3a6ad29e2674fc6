"""What is known of single steps, in the interval: it never hurts, it covers, and certificates hold it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.environments import TabularMDP, chain, clinic, random_tabular
from accountable_ope.radii.registry import radius_rule
from accountable_ope.verification import Record, verify_record

NOTHING = aope.StepKnowledge()
CHAIN_TABLE = np.tile([0.2, 0.8], (4, 1))
TOLERANCE = 1e-3
"""Of the width, for what two solutions of one program may differ by."""


class Case:
    """A finite MDP with a target policy and true assumptions."""

    def __init__(self, mdp: TabularMDP, table: np.ndarray, facts: aope.Assumptions, rows: int) -> None:
        self.mdp, self.table, self.facts, self.rows = mdp, table, facts, rows
        self.policy, self.value = mdp.policy(table), mdp.value(table)
        live = np.flatnonzero(~mdp.terminal).astype(float)
        self.features = aope.TabularFeatures.grid(live, self.policy.action_vectors, intercept=False)
        self.full = mdp.step_knowledge(table)
        self.q = mdp.q_values(table)

    @cache  # noqa: B019  (as many cases as there are tests)
    def data(self, seed: int = 0, rows: int | None = None) -> aope.Transitions:
        return self.mdp.sample_iid(rows or self.rows, np.random.default_rng(seed))

    def problem(self, knowledge: aope.StepKnowledge, data: aope.Transitions | None = None) -> aope.Problem:
        return aope.Problem(self.data() if data is None else data, self.mdp.starts(), self.policy, self.facts, knowledge)

    def bound(self, knowledge: aope.StepKnowledge, radius: str = "certified", **options: object) -> aope.Interval:
        return aope.bound_value(self.problem(knowledge), features=self.features, kernel=aope.Tabular(), radius=radius, **options)

    def verify(self, certificate: object, knowledge: aope.StepKnowledge) -> aope.Verification:
        return aope.verify(certificate, data=self.data(), starts=self.mdp.starts(), policy=self.policy, knowledge=knowledge)

    def failed(self, data: aope.Transitions, delta: float, factor: float = 1.0) -> bool:
        """Whether the event behind the interval fails, for `factor` times the radius: it is about the true Q alone."""
        estimate = lambda states, actions: self.q[states[:, 0].astype(int), np.ravel(actions).astype(int)]  # noqa: E731
        problem = self.problem(self.full, data)
        anchored = aope.evaluate(problem, features=self.features, kernel=aope.Tabular(), anchor=estimate)
        rule = radius_rule("certified")
        member = anchored.member_for(rule, 0)  # around an estimate there is no cut
        [evidence] = rule.evidence(member, delta, len(data)).evidence
        none, lengths = (
            np.zeros(member.system.dimension),
            evidence.scale * np.minimum(member.row_ranges, member.residuals.declared),
        )
        observed = float((evidence.scale * np.abs(member.system.target)).max())
        assert observed <= lengths.max() * (1 + 1e-9)  # what was declared is true
        steps = aope.programs.envelope.Steps(float(lengths.max()), observed, float(lengths @ lengths))
        return bool(evidence.squared(none) > factor * evidence.bound(steps, evidence.variance(none)))


def facts(discount: float, **others: object) -> aope.Assumptions:
    return aope.Assumptions(discount=discount, reward_range=(0, 1), **others)


CASES = {
    "chain": Case(chain(4, 0.9, 0.2), CHAIN_TABLE, facts(0.9, reward_noise=False, terminates=False), 700),
    "random": Case(
        random_tabular(3, 2, seed=4, discount=0.7, bernoulli=True),
        np.random.default_rng(1).dirichlet(np.ones(2), size=3),
        facts(0.7, terminates=False),
        400,
    ),
    "clinic": Case(
        clinic(discount=0.95), np.random.default_rng(0).dirichlet(np.ones(3), size=6), facts(0.95, value_range=(0.0, 1.0)), 1000
    ),
}


@cache
def found(name: str, known: str, radius: str = "certified") -> aope.Interval:
    case = CASES[name]
    without_range = case.mdp.step_knowledge()
    given = {
        "nothing": NOTHING,
        "reach": without_range,
        "range": aope.StepKnowledge(one_step_range=case.full.one_step_range),
        "all": case.full,
    }
    return case.bound(given[known], radius)


def within(inner: aope.Interval, outer: aope.Interval, tolerance: float = TOLERANCE) -> bool:
    off = tolerance * outer.width
    return inner.lower >= outer.lower - off and inner.upper <= outer.upper + off


@pytest.mark.parametrize("name", CASES)
def test_true_knowledge_never_widens(name):
    plain, case = found(name, "nothing"), CASES[name]
    for known in ("reach", "range", "all"):
        interval = found(name, known)
        assert within(interval, plain), known
        assert interval.lower <= case.value <= interval.upper
        assert interval.check(), interval.verify().message
    assert found(name, "range").width < (0.98 if name == "random" else 0.97) * plain.width
    assert within(found(name, "all"), found(name, "range"))


def arms(share: float, small: float, probability: float, rows: int) -> Case:
    """A coin, drawn in this share of the rows, and one that moves less; the target plays the first with this probability."""
    mdp = TabularMDP(np.ones((1, 2, 1)), [[0.5, 0.5]], 0.0, [1.0])
    case = Case(mdp, np.array([[probability, 1 - probability]]), facts(0.0), rows)
    case.full = aope.StepKnowledge(one_step_range=lambda states, actions: np.array([1.0, small])[actions])
    rng = np.random.default_rng(rows)
    actions, coins = (rng.random(rows) >= share).astype(int), rng.integers(2, size=rows) - 0.5
    rewards = 0.5 + np.array([1.0, small])[actions] * coins
    data = aope.Transitions(np.zeros((rows, 1)), actions, rewards, np.zeros((rows, 1)))
    case.data = lambda *_: data
    return case


@pytest.mark.parametrize("radius", ["certified", "empirical-bernstein"])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(
    share=st.floats(0.1, 0.9), small=st.sampled_from([1e-3, 0.02, 0.2, 0.7]), probability=st.sampled_from([0.0, 0.2, 0.8, 1.0])
)
@example(share=0.1, small=0.01, probability=1.0)
@example(share=0.9, small=0.01, probability=0.0)
def test_true_ranges_never_widen_whatever_they_are_declared_for(radius, share, small, probability):
    """A kernel that is rescaled to the many small ranges would see little of the rows that matter.

    The first twentieth of the rows chooses the scale and does not count: a fortieth of the width, and as much for chance.
    """
    case = arms(share, small, probability, 400)
    plain, known = case.bound(NOTHING, radius), case.bound(case.full, radius)
    assert within(known, plain, 0.05), (plain, known)


def test_it_serves_the_cut_too():
    plain, known = found("chain", "nothing"), found("chain", "all")
    assert plain.certificates[0].cut is not None and known.certificates[0].cut is not None
    case = CASES["chain"]
    ready = aope.evaluate(case.problem(case.full), features=case.features, kernel=aope.Tabular())
    growing = ready.bound(planned=700)
    assert growing.certificates[0].cut is None and known.width < growing.width


def certain_ends() -> Case:
    """Tables 0 and 1: waiting leads on, tossing ends the episode for certain and pays a sure reward."""
    onward = [[[0, 0, 1], [0.5, 0.5, 0]], [[0, 0, 1], [0.5, 0.5, 0]], [[0, 0, 1], [0, 0, 1]]]
    mdp = TabularMDP(onward, [[0.3, 0.1], [0.9, 0.2], [0, 0]], 0.9, [0.5, 0.5, 0], [False, False, True])
    return Case(mdp, np.array([[0.5, 0.5]] * 3), facts(0.9, reward_noise=False, value_range=(0.0, 5.0)), 200)


def test_rows_that_end_for_certain_say_what_q_is():
    """Q is the reward where a step must be the last one; a single such row decides it, without spending any probability."""
    case = certain_ends()
    reach = case.mdp.step_knowledge()
    rows = case.problem(reach).row_ranges
    toss = case.data().actions == 0
    assert (rows.certain == toss).all() and (rows.bounds()[toss] == 0).all() and (rows.bounds()[~toss] > 0).all()
    # A policy that tosses is worth the mean of the sure rewards.
    sure = Case(case.mdp, np.array([[1.0, 0.0]] * 3), case.facts, case.rows)
    plain, known = sure.bound(NOTHING), sure.bound(reach)
    assert known.width < 1e-3 < 0.1 < plain.width
    assert known.lower <= sure.value <= known.upper
    mixed_plain, mixed = case.bound(NOTHING), case.bound(reach)
    assert within(mixed, mixed_plain) and mixed.width < 0.8 * mixed_plain.width
    assert mixed.lower <= case.value <= mixed.upper


def test_rows_that_end_for_certain_are_proved():
    case = certain_ends()
    reach = case.mdp.step_knowledge()
    interval = case.bound(reach)
    assert interval.check(), interval.verify().message
    assert case.verify(interval, reach).valid


def test_a_wrong_class_is_refuted_by_rows_that_end():
    """A class of constants cannot be both rewards, and no radius is needed to see it."""
    case = certain_ends()
    constant = aope.RandomFourier(1, 1e3)
    interval = aope.bound_value(case.problem(case.mdp.step_knowledge()), features=constant, kernel=aope.Tabular(), delta=1e-9)
    assert interval.status is aope.Status.INCONSISTENT and interval.check()
    # With a cosine that is a constant but for rounding nobody can prove it, so that nothing is said.
    flat = aope.RandomFourier(1, 1e5)
    unsaid = aope.bound_value(case.problem(case.mdp.step_knowledge()), features=flat, kernel=aope.Tabular(), delta=1e-9)
    assert unsaid.status is aope.Status.VACUOUS and unsaid.check()


class Constants:
    """No function but constants: one feature, which is zero, and the intercept."""

    dimension, intercept, diameter = 1, True, 0.0

    def __call__(self, points):
        return np.zeros((len(points), 1))


def test_that_refutation_is_proved():
    case = certain_ends()
    interval = aope.bound_value(case.problem(case.mdp.step_knowledge()), features=Constants(), kernel=aope.Tabular())
    assert interval.status is aope.Status.INCONSISTENT
    assert interval.check(), interval.verify().message


@pytest.mark.parametrize("name", CASES)
def test_the_event_fails_as_rarely_as_claimed(name):
    """With rows rescaled by their ranges, at delta = .5, for logs of 120 rows."""
    case, delta, trials = CASES[name], 0.5, 200
    failed = sum(case.failed(case.data(seed, 120), delta) for seed in range(trials))
    assert binom.sf(failed - 1, trials, delta) > 1e-6, failed


def test_intervals_with_all_knowledge_cover():
    case, delta, trials, missed = CASES["random"], 0.5, 12, 0
    for seed in range(trials):
        problem = case.problem(case.full, case.data(seed, 100))
        interval = aope.bound_value(problem, features=case.features, kernel=aope.Tabular(), delta=delta)
        missed += not interval.lower <= case.value <= interval.upper
        assert case.failed(problem.data, delta) or interval.lower <= case.value <= interval.upper
    assert binom.sf(missed - 1, trials, delta) > 1e-4, missed


class Bandit(Case):
    """An arm with a fair coin, one with a coin that moves a tenth as much, and one that pays for sure."""

    def __init__(self, rows: int) -> None:
        mdp = TabularMDP(np.ones((1, 3, 1)), [[0.5, 0.5, 0.5]], 0.0, [1.0])
        super().__init__(mdp, np.array([[0.5, 0.5, 0.0]]), facts(0.0), rows)
        self.full = aope.StepKnowledge(one_step_range=lambda states, actions: np.array([1.0, 0.1, 1e-6])[actions])

    def play(self, seed: int, factor: float, delta: float) -> aope.Transitions:
        """Tosses the coin whose sum is farther out, in units of its range, until the event fails; then takes what is sure."""
        rng, rows = np.random.default_rng(seed), self.rows
        actions, rewards = np.zeros(rows, dtype=int), np.zeros(rows)
        actions[:10] = np.arange(10) % 2
        coins = rng.integers(2, size=rows) - 0.5
        sums, over = np.zeros(2), False
        factors = np.array([0.1, 1.0])
        rates = aope.radii.envelope.rate_mixture(0.1, rows, delta)
        variance = 0.0
        for i in range(rows):
            if i >= 10:
                actions[i] = 2 if over else int(np.argmax(np.abs(sums)))
            size = (1.0, 0.1, 0.0)[actions[i]]
            rewards[i] = 0.5 + size * coins[i]
            if i >= rows // 20 and actions[i] < 2:
                sums[actions[i]] += factors[actions[i]] * size * coins[i]
                variance += 0.05**2
                steps = aope.programs.envelope.Steps(0.1, 0.05, rows * 0.01)  # at least what it will be at the end
                over = float(sums @ sums) > factor * float(rates.bound(steps, np.array([variance]))[0][0]) ** 2
        return aope.Transitions(np.zeros((rows, 1)), actions, rewards, np.zeros((rows, 1)))


@pytest.mark.parametrize(("factor", "refuted"), [(1.0, False), (0.25, True)])
def test_rescaled_rows_against_a_logger_that_stops(factor, refuted):
    """Both coins make steps of one size once they are rescaled, and a quarter of the radius is caught."""
    bandit, delta, trials = Bandit(200), 0.5, 100
    failed = sum(bandit.failed(bandit.play(seed, factor, delta), delta, factor) for seed in range(trials))
    assert (binom.sf(failed - 1, trials, delta) < 1e-4) == refuted, failed


# Certificates


def test_a_certificate_holds_what_was_declared(tmp_path):
    case, interval = CASES["chain"], found("chain", "all")
    interval.save(tmp_path / "certificate.json")
    assert verify_record(interval.record()).valid
    assert case.verify(tmp_path / "certificate.json", case.full).valid
    wider = aope.StepKnowledge(
        case.full.terminal_region, case.full.reach, lambda s, a: 1.5 * np.asarray(case.full.one_step_range(s, a))
    )
    for other in (NOTHING, wider, case.mdp.step_knowledge()):
        refused = case.verify(tmp_path / "certificate.json", other)
        assert not refused.valid and "declared of single steps" in refused.message
    plain = found("chain", "nothing")
    assert case.verify(plain, NOTHING).valid and not case.verify(plain, case.full).valid


@pytest.mark.parametrize("text", [None, "Given (s, a), chance moves reward plus discounted next value by at most 100."])
def test_what_a_certificate_says_of_steps_is_what_was_declared(text):
    """With premises that say the same: only who has the functions can tell, and with them it must be told."""
    case, record = CASES["chain"], found("chain", "range").record()
    [said] = record.steps
    assert case.verify(record, aope.StepKnowledge(one_step_range=case.full.one_step_range)).valid
    told = () if text is None else (replace(said, text=text),)
    premises = [each for one in record.premises for each in (told if one == said else (one,))]
    forged = replace(record, steps=told, premises=tuple(premises))
    refused = case.verify(forged, aope.StepKnowledge(one_step_range=case.full.one_step_range))
    assert not refused.valid and "single steps" in refused.message


def with_steps(record: Record, **changes: float) -> Record:
    """All that is claimed of steps, in every round, times a number."""
    part = record.classes[0]
    rounds = tuple(
        replace(one, steps=tuple(replace(s, **{k: c * getattr(s, k) for k, c in changes.items()}) for s in one.steps))
        for one in part.rounds
    )
    return replace(record, classes=(replace(part, rounds=rounds), *record.classes[1:]))


@pytest.mark.parametrize("claim", ["largest", "squares", "observed"])
@pytest.mark.parametrize("known", ["nothing", "all"])
def test_a_claim_about_steps_that_is_lowered_is_refused(claim, known):
    """With the data at the latest; ends that the smaller claim would prove are not given, so most fail without the data too."""
    case, record = CASES["chain"], found("chain", known).record()
    assert len(record.classes[0].rounds) > 1
    given = case.full if known == "all" else NOTHING
    assert case.verify(record, given).valid
    for factor in (0.999, 0.7, 0.0):
        forged = with_steps(record, **{claim: factor})
        assert not case.verify(forged, given).valid, factor


def test_a_scale_that_is_lowered_is_refused():
    case, record = CASES["chain"], found("chain", "all").record()
    part = record.classes[0]
    assert part.sums.largest_scaled is not None
    for factor in (0.5, 0.99, 2.0):
        sums = replace(part.sums, largest_scaled=factor * part.sums.largest_scaled)
        forged = replace(record, classes=(replace(part, sums=sums), *record.classes[1:]))
        assert not case.verify(forged, case.full).valid
