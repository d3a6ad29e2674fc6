"""Sentences that must not be printed where they are false: ties, copies, names of actions, and ends that no proof supports."""

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.comparison import Comparison, Difference
from accountable_ope.bounds.decision import Judgment, of_difference
from accountable_ope.cli.class_options import ClassOptions
from accountable_ope.io.display import confidence, from_to, page_ends

STARTS = aope.StartStates([[0.0], [1.0], [2.0]])
SECOND = aope.DiscretePolicy(lambda at: np.tile([0.0, 1.0], (len(at), 1)), actions=2)


@pytest.mark.parametrize("rewards", ["none", "all", "rare"])
@pytest.mark.parametrize("discount", [0.0, 0.9])
def test_single_steps_with_next_to_no_chance_are_proved_by_their_certificates(rewards: str, discount: float) -> None:
    """Sums in which hardly anything varies: whether a matrix is positive definite cannot be told from rounding."""
    rng = np.random.default_rng(0)
    for n in (300, 1000, 3000):
        states, after = (rng.integers(0, 3, n).astype(float)[:, None] for _ in range(2))
        paid = {"none": np.zeros(n), "all": np.ones(n), "rare": (rng.random(n) < 0.003).astype(float)}[rewards]
        log = aope.Transitions(states, rng.integers(0, 2, n), paid, after, np.ones(n, bool), np.arange(n))
        for starts in (STARTS, log.first_states()):
            problem = aope.Problem(log, starts, SECOND, aope.Assumptions(discount=discount, reward_range=(0, 1)))
            found = aope.bound_value(problem)
            assert found.verify().valid, found.verify().message


def copies(times: int) -> aope.Transitions:
    rng = np.random.default_rng(1)
    states, n = rng.integers(0, 3, 400), 400
    actions = rng.integers(0, 2, n)
    paid = (rng.random(n) < np.where(actions == states % 2, 0.8, 0.2)).astype(float)
    after = np.where(rng.random(n) < 0.5, rng.integers(0, 3, n), states)
    columns = (np.tile(each, times) for each in (states.astype(float), actions, paid, after.astype(float)))
    return aope.Transitions(*columns, episodes=np.arange(n * times) // 10)


def test_an_estimate_is_not_rejected_with_confidence_by_copies() -> None:
    problem = aope.Problem(copies(30), STARTS, SECOND, aope.Assumptions(discount=0.9, reward_range=(0, 1)))
    table = aope.TabularFeatures.grid(np.arange(3.0), SECOND.action_vectors)
    found = aope.diagnose(lambda states, actions: np.full(len(states), 3.0), problem, features=table, kernel=aope.Tabular())
    assert found.verdict.name == "REJECTED"
    assert found.sentence.startswith("Only if no rows were copies of others, which some are: with the stated confidence")


def test_who_is_as_good_is_not_better() -> None:
    problem = aope.Problem(copies(1), STARTS, SECOND, aope.Assumptions(discount=0.0, reward_range=(0, 1)))
    one, two = (aope.NamedPolicy(name, SECOND) for name in "ab")
    table = aope.TabularFeatures.grid(np.arange(3.0), SECOND.action_vectors)
    made = aope.compare(problem, [one, two], features=table, kernel=aope.Tabular(), logged=False)
    tie = Difference("a", "b", 0.0, 0.0, True, of_difference(0.0, 0.0))
    found = replace(made, differences=(tie,))
    assert isinstance(found, Comparison) and found.unbeaten == ("a", "b")
    for first, second in (("a", "b"), ("b", "a")):
        assert found.difference(first, second).judgment is Judgment.REFUTED  # neither is better than the other
        assert found.decide(first).judgment is Judgment.REFUTED
    lead = replace(made, differences=(Difference("a", "b", -0.3, -0.1, True, of_difference(-0.3, -0.1)),))
    assert lead.unbeaten == ("b",) and lead.decide("b").judgment is Judgment.SUPPORTED


def test_actions_that_nobody_logged_are_called_by_their_names() -> None:
    rng = np.random.default_rng(2)
    states = rng.integers(0, 3, 600).astype(float)
    log = aope.Transitions(states, np.zeros(600, int), rng.random(600), states, episodes=np.arange(600) // 10)
    named = log.named(aope.Naming(["x"], [10, 20]))
    problem = aope.Problem(named, named.first_states(), SECOND, aope.Assumptions(discount=0.5, reward_range=(0, 1)))
    wanted = aope.bound_value(problem).verdict().wanted
    assert wanted is not None and "action 20 (taken" in wanted.text


def test_a_notebook_says_what_answers_first_however_many_rows_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(5), 2000
    states, actions = rng.integers(0, 3, n).astype(float), rng.integers(0, 2, n)
    paid = (rng.random(n) < 0.3 + 0.4 * actions).astype(float)
    wrong = np.full(n, 0.4)  # half and half in truth
    log = aope.Transitions(states, actions, paid, states, np.ones(n, bool), np.arange(n), wrong)
    problem = aope.Problem(log, log.first_states(), SECOND, aope.Assumptions(discount=0.9, reward_range=(0, 1)))
    found = aope.bound_value(problem)
    sentence = found.verdict().sentence
    assert "more often than the recorded probabilities allow" in sentence
    for most in (20_000, 100):
        monkeypatch.setattr("accountable_ope.bounds.interval.SHOWN_ROWS", most)
        page = found._repr_html_()
        assert "more often than the recorded probabilities allow" in page and "INCONSISTENT" in page
        assert "Bellman residuals" not in page, "no premise of a class that does not answer"


@pytest.mark.parametrize(("late", "known"), [(False, True), (True, False)])
def test_a_table_of_the_whole_log_was_not_known_before_its_last_states_were_seen(late: bool, known: bool) -> None:
    rng, n = np.random.default_rng(3), 2000
    states = rng.integers(0, 3, n).astype(float)
    if late:
        states[-40:] = 3.0
    log = aope.Transitions(states, rng.integers(0, 2, n), rng.random(n), states, episodes=np.arange(n) // 10)
    problem = aope.Problem(log, aope.StartStates([[0.0]]), SECOND, aope.Assumptions(discount=0.5, reward_range=(0, 1)))
    options = ClassOptions(tabular=True)
    chosen = options.chosen(problem.experience)
    assert chosen.points is known and ClassOptions().chosen(problem.experience).points
    found = aope.bound_value(problem, features=options.classes(problem.experience), kernel=aope.Tabular(), chosen=chosen)
    said = " ".join(each.text for each in found.premises)
    assert ("but for the states that it lists" in said) is late
    assert found.check()


def test_digits_say_what_they_stand_for() -> None:
    assert (confidence(0.1), confidence(0.05), confidence(1e-7)) == ("90%", "95%", "99.99999%")
    assert from_to(5.0, 5.000001) == "5 to 5.000001" and from_to(0.0, 20.0) == "0 to 20"
    assert page_ends(0.25, 0.75) == "[0.2500, 0.7500]" and page_ends(0.0, 2e-7) == "[0, 2e-07]"


def test_more_rows_bring_more_start_states() -> None:
    """Those of the log are a sample that grows with it; those of a file are not."""
    rng, n = np.random.default_rng(4), 4000
    states, actions = rng.integers(0, 3, n), rng.integers(0, 2, n)
    paid = (rng.random(n) < np.where(actions == states % 2, 0.8, 0.2)).astype(float)
    after = np.where(rng.random(n) < 0.5, rng.integers(0, 3, n), states)
    log = aope.Transitions(states.astype(float), actions, paid, after.astype(float), episodes=np.arange(n) // 10)
    table = aope.TabularFeatures.grid(np.arange(3.0), SECOND.action_vectors)
    facts, outcomes = aope.Assumptions(discount=0.5, reward_range=(0, 1)), []
    for starts in (log.first_states(), aope.StartStates(log.first_states().states, exact=False)):
        made = aope.study(aope.Problem(log, starts, SECOND, facts), features=table, kernel=aope.Tabular())
        found = made.rows_needed(1.5 * made.baseline.start_error)
        outcomes.append(found.outcome.name)
        assert made.baseline.width > 2 * made.baseline.start_error
    assert found.rows is None and outcomes == ["EXTRAPOLATED", "FLOOR"]
