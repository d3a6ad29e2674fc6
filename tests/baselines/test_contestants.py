"""Contestants: what they are asked, what they refuse, and extreme numbers."""

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.baselines import CONTESTANTS, Entry, Needs, contestant_named, neural_fitted_q
from accountable_ope.environments import TabularMDP
from accountable_ope.errors import InvalidInput
from accountable_ope.problem.statements import Guarantee, Status
from contest_entries import STEPS, drawn_entry, entry_of, policies, world

NAMES = [contestant.name for contestant in CONTESTANTS]


@pytest.fixture(autouse=True)
def small_networks(monkeypatch):
    """What is tested here does not depend on how long they are trained."""
    monkeypatch.setattr(neural_fitted_q, "REFITS", 3)
    monkeypatch.setattr(neural_fitted_q, "STEPS", 5)


def bounded(name: str, entry: Entry, delta: float = 0.1):
    return contestant_named(name).bound(entry, delta, np.random.default_rng(0))


def test_there_are_many_and_no_two_have_one_name():
    assert len(set(NAMES)) == len(NAMES) >= 20
    assert len({contestant.title for contestant in CONTESTANTS}) == len(NAMES)


def test_an_unknown_name():
    with pytest.raises(InvalidInput, match=r"`name` must be one of trajectory student, .*\. Got 'best'\."):
        contestant_named("best")


@pytest.mark.parametrize("name", NAMES)
def test_every_one_answers_the_same_question(name):
    entry, _ = drawn_entry(0)
    found = bounded(name, entry)
    low, high = entry.problem.ranges.value
    assert low <= found.lower < found.upper <= high
    assert found.guarantee is contestant_named(name).guarantee
    assert (found.method, found.delta, found.count) == (name, 0.1, len(entry.problem.data))
    assert found.estimand == "Value of the target policy"
    assert found.status is (Status.VACUOUS if (found.lower, found.upper) == (low, high) else Status.OK)
    limits = [statement for statement in found.premises if statement.name == "limit"]
    assert bool(limits) is (found.guarantee is Guarantee.ASYMPTOTIC)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_draws_give_the_same_interval(name):
    entry, _ = drawn_entry(1, episodes=20)
    assert bounded(name, entry) == bounded(name, entry)


@pytest.mark.parametrize("name", NAMES)
def test_a_smaller_delta_is_no_narrower(name):
    if name.endswith("bernstein"):
        pytest.skip("its threshold depends on delta")
    entry, _ = drawn_entry(2)
    narrow, wide = bounded(name, entry, 0.2), bounded(name, entry, 0.05)
    assert wide.lower <= narrow.lower + 1e-9
    assert narrow.upper <= wide.upper + 1e-9


LACKING = {
    "propensities": "`behavior_probability`",
    "behavior": "`behavior`",
    "episodes": "`episodes`",
    "horizon": "`horizon`",
    "features": "`features`",
    "kernel": "`kernel`",
    "norm_bound": "`norm_bound`",
    "finite_actions": "finitely many `actions`",
    "exact_policy": "its actions",
    "table": "one-hot `features`",
}


@dataclass(frozen=True)
class Drawn:
    """A policy that says of itself that it draws."""

    policy: aope.DiscretePolicy
    exact: bool = False

    @property
    def action_vectors(self):
        return self.policy.action_vectors

    def branches(self, states):
        return self.policy.branches(states)


class Halfway:
    """A policy over action vectors that knows its density."""

    exact, action_vectors = True, None

    def branches(self, states):
        return iter([aope.problem.policy.Branch(np.full((len(states), 1), 0.5), np.ones(len(states)))])

    def density(self, states, actions):
        return np.full(len(states), 0.5)


def without(entry: Entry, what: str) -> Entry:
    problem = entry.problem
    data = problem.data
    if what in ("propensities", "episodes"):
        rows = aope.Transitions(
            data.states,
            data.actions,
            data.rewards,
            data.next_states,
            episodes=None if what == "episodes" else data.episodes,
            behavior_probability=None if what == "propensities" else data.behavior_probability,
        )
        return replace(entry, problem=replace(problem, data=rows))
    if what == "finite_actions":
        data = aope.Transitions(
            data.states,
            data.actions[:, None].astype(float),
            data.rewards,
            data.next_states,
            episodes=data.episodes,
            behavior_probability=data.behavior_probability,
        )
        return replace(entry, problem=replace(problem, data=data, policy=Halfway()))
    if what == "norm_bound":
        free = problem.assuming(replace(problem.assumptions, norm_bound=None))
        assert Entry(free, entry.features).norm_bound == pytest.approx(math.sqrt(6) * 2.0)  # of a table
        return replace(entry, problem=free, features=aope.RandomFourier(3))
    if what == "exact_policy":
        return replace(entry, problem=replace(problem, policy=Drawn(problem.policy)))
    if what == "table":
        return replace(entry, features=aope.RandomFourier(3))
    return replace(entry, **{what: None})


@pytest.mark.parametrize("what", LACKING)
def test_what_is_needed_and_lacks_is_said_in_one_sentence(what):
    entry, _ = drawn_entry(0)
    poor = without(entry, what)
    refused = 0
    for contestant in CONTESTANTS:
        assert contestant.refusal(entry) is None
        why = contestant.refusal(poor)
        if what == "norm_bound" and contestant.needs.table:
            continue
        if getattr(contestant.needs, what) or (what == "exact_policy" and contestant.needs.propensities):
            assert why is not None and why.startswith(f"{contestant.name} needs ")
            assert (LACKING[what] in why or what == "exact_policy") and why.count(". ") == 0 and why.endswith(".")
            with pytest.raises(InvalidInput) as refusal:
                contestant.bound(poor, 0.1, np.random.default_rng(0))
            assert str(refusal.value) == why
            refused += 1
    assert refused


def test_all_that_can_be_needed_has_words_and_somebody_needs_it():
    for field in fields(Needs):
        assert len(Needs(**{field.name: True}).words) == 1
        assert any(getattr(contestant.needs, field.name) for contestant in CONTESTANTS), field.name


def test_one_episode_is_no_sample():
    mdp = world()
    target, logged = policies(mdp)
    entry = entry_of(mdp, mdp.sample_trajectories(logged, 1, STEPS, np.random.default_rng(0)), target, logged)
    for contestant in CONTESTANTS:
        assert (contestant.refusal(entry) is not None) is contestant.needs.episodes
        if contestant.needs.episodes:
            assert "there is one" in contestant.refusal(entry)
        else:
            found = bounded(contestant.name, entry)
            assert math.isfinite(found.lower) and math.isfinite(found.upper)


def honest(found, truth: float) -> None:
    """Numbers, and they hold the truth, which a wide interval does and a narrow one must have seen."""
    assert math.isfinite(found.lower) and math.isfinite(found.upper)
    assert found.lower - 1e-6 <= truth <= found.upper + 1e-6, (found.method, found.lower, found.upper, truth)


@pytest.mark.parametrize("name", NAMES)
def test_a_target_that_the_log_never_follows(name):
    """The logger takes the first action always, the target the other one."""
    mdp = TabularMDP(np.full((2, 2, 2), 0.5), [[0.0, 1.0], [0.0, 1.0]], 0.5, [0.5, 0.5])
    target, logged = np.array([[0.0, 1.0]] * 2), np.array([[1.0, 0.0]] * 2)
    data = mdp.sample_trajectories(logged, 20, STEPS, np.random.default_rng(0))
    if name == "neural fqe bootstrap":
        pytest.skip("a network says something anywhere: that is what it does not know")
    honest(bounded(name, entry_of(mdp, data, target, logged)), mdp.value(target))


@pytest.mark.parametrize("name", NAMES)
def test_huge_weights(name):
    """Probabilities of 1e-12 over ten steps: weights of 1e119."""
    mdp = world()
    target, logged = np.array([[1.0, 0.0]] * 3), np.array([[0.5, 0.5]] * 3)
    data = mdp.sample_trajectories(logged, 12, STEPS, np.random.default_rng(0))
    entry = entry_of(mdp, data, target, logged)
    rows = aope.Transitions(
        data.states,
        data.actions,
        data.rewards,
        data.next_states,
        episodes=data.episodes,
        behavior_probability=np.full(len(data), 1e-12),
    )
    behavior = aope.DiscretePolicy(
        lambda states: np.tile([1e-12, 1 - 1e-12], (len(states), 1)), mdp.policy(target).action_vectors
    )
    entry = replace(entry, problem=replace(entry.problem, data=rows), behavior=behavior)
    found = bounded(name, entry)
    assert not math.isnan(found.lower) and not math.isnan(found.upper)


@pytest.mark.parametrize("name", NAMES)
def test_constant_rewards(name):
    mdp = TabularMDP(np.full((2, 2, 2), 0.5), np.ones((2, 2)), 0.5, [0.5, 0.5])
    target, logged = np.array([[0.7, 0.3]] * 2), np.array([[0.5, 0.5]] * 2)
    data = mdp.sample_trajectories(logged, 40, STEPS, np.random.default_rng(0))
    found = bounded(name, entry_of(mdp, data, target, logged))
    if name == "neural fqe bootstrap":
        assert not math.isnan(found.lower) and found.upper <= 2.0
    else:
        honest(found, 2.0)


def test_the_last_episode_of_a_log_that_was_cut_is_left_out():
    mdp = world()
    target, logged = policies(mdp)
    data = mdp.sample_trajectories(logged, 30, STEPS, np.random.default_rng(0))
    cut = entry_of(mdp, data.rows(slice(0, len(data) - 3)), target, logged)
    whole = entry_of(mdp, data.rows(slice(0, len(data) - STEPS)), target, logged)
    found, same = bounded("per-decision student", cut), bounded("per-decision student", whole)
    assert (found.lower, found.upper, found.episodes) == (same.lower, same.upper, 29)


def test_what_is_left_after_the_horizon_is_counted():
    """Rewards are 1 for ever: after ten steps at discount .9 a third of the value is still to come."""
    mdp = TabularMDP(np.full((2, 2, 2), 0.5), np.ones((2, 2)), 0.9, [0.5, 0.5])
    same = np.array([[0.5, 0.5]] * 2)
    data = mdp.sample_trajectories(same, 40, STEPS, np.random.default_rng(0))
    for name in ("trajectory student", "weighted per-decision bootstrap", "doubly-robust student"):
        found = bounded(name, entry_of(mdp, data, same, same))
        assert found.upper == pytest.approx(10.0)
        assert found.lower == pytest.approx((1 - 0.9**STEPS) / 0.1)


def test_the_page_lists_all_of_them():
    page = (Path(__file__).parents[2] / "docs" / "contestants.md").read_text(encoding="utf-8")
    table = page.split("<!-- contestants: begin -->\n")[1].split("<!-- contestants: end -->")[0]
    rows = ["| name | what | source | needs | guarantee |", "|---|---|---|---|---|"]
    rows += [
        f"| `{each.name}` | {each.title} | {each.source} | {', '.join(each.needs.words)} | {each.guarantee.value} |"
        for each in CONTESTANTS
    ]
    assert table.splitlines() == rows


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [1e-290, 1 - 1e-12])
def test_extreme_levels(name, delta):
    entry, _ = drawn_entry(0, episodes=12)
    found = bounded(name, entry, delta)
    assert not math.isnan(found.lower) and not math.isnan(found.upper)


@pytest.mark.parametrize("name", NAMES)
def test_two_short_episodes(name):
    """Either an interval or one sentence."""
    entry, _ = drawn_entry(0, episodes=2, steps=1)
    said = ""
    try:
        found = bounded(name, entry)
    except InvalidInput as refusal:
        said = str(refusal)
    if said:
        assert said.startswith("At least")
    else:
        assert not math.isnan(found.lower) and not math.isnan(found.upper)
