"""The interval by recorded probabilities: when it answers first, what it rests on, and how often it holds the value."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import accountable_ope as aope
from accountable_ope.bounds.weighed import answer_of, leads, taken_too_often, weighed_value
from accountable_ope.problem.statements import Status
from accountable_ope.verification import load_record, verify_record
from command import aope_command

MEANS = np.array([[0.9, 0.1], [0.2, 0.7], [0.5, 0.5]])
TARGET = np.array([[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]])
LOGGER = np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]])
POLICY = aope.DiscretePolicy(lambda states: TARGET[states[:, 0].astype(int)], actions=2)
VALUE = float((MEANS * TARGET).sum(axis=1).mean())


def advertisements(seed: int = 0, rows: int = 400, **changes: object) -> aope.Transitions:
    """Three kinds of visitors, two advertisements, a coin of known bias for each kind."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, rows)
    actions = (rng.uniform(size=rows) > LOGGER[kinds, 0]).astype(np.int64)
    rewards = (rng.uniform(size=rows) < MEANS[kinds, actions]).astype(np.float64)
    states = kinds[:, None].astype(float)
    columns = {
        "terminated": np.ones(rows, bool),
        "episodes": np.arange(rows),
        "behavior_probability": LOGGER[kinds, actions],
    }
    return aope.Transitions(states, actions, rewards, states, **(columns | changes))


def asked(data: aope.Transitions, starts: aope.StartStates | None = None, discount: float = 0.0) -> aope.Problem:
    facts = aope.Assumptions(discount=discount, reward_range=(0, 1))
    return aope.Problem(data, data.first_states() if starts is None else starts, POLICY, facts)


@cache
def first_answer() -> aope.Interval:
    return aope.bound_value(asked(advertisements()))


def test_it_answers_first_and_says_what_it_rests_on() -> None:
    interval = first_answer()
    companions, verdict = interval.companions(), interval.verdict()
    found = companions.leading
    assert found is not None and answer_of(interval) is found and verdict.leading is found
    assert VALUE in found and found.width < 0.5 * interval.width and found.guarantee is aope.Guarantee.FINITE_SAMPLE
    assert "if actions were drawn with the recorded probabilities" in verdict.sentence
    assert "Without the probabilities, by the class that was chosen: " in verdict.second_line
    assert [each.name for each in found.premises] == ["behavior", "episodes", "rewards", "fixed-size"]
    assert found.count == 400, "the rows that chose the class count as well"


def test_decisions_rest_on_what_answers_first() -> None:
    interval = first_answer()
    found = answer_of(interval)
    threshold = found.lower - 1e-3
    assert interval.lower < threshold, "the class alone would not decide it"
    ruling = interval.decide(at_least=threshold)
    assert ruling.judgment.name == "SUPPORTED" and "by the recorded probabilities" in str(ruling)
    assert interval.verdict(at_least=threshold).decision.judgment is ruling.judgment
    both = interval.better_than_logged()
    half = weighed_value(asked(advertisements()), 0.05)
    assert dict(both.statement.parameters)["lower"] == half.lower, "at delta / 2, as the logged policy's"


def test_which_one_answers_is_decided_before_a_reward_is_seen() -> None:
    """Else the narrower of two intervals, of which each fails with probability delta, would fail with up to twice that."""
    data = advertisements()
    for rewards in (np.zeros(400), np.ones(400), np.random.default_rng(1).uniform(size=400)):
        assert leads(asked(data.paying(rewards)))
    nothing = aope.bound_value(asked(data.paying(np.zeros(400))))
    assert answer_of(nothing) is nothing.companions().leading, "also where the class gives no wider interval"


@pytest.mark.parametrize(
    ("data", "starts", "discount", "first"),
    [
        (advertisements(), None, 0.9, True),
        (advertisements(terminated=None), None, 0.0, True),
        (advertisements(terminated=None), None, 0.9, False),
        (advertisements(behavior_probability=None), None, 0.0, False),
        (advertisements(), aope.StartStates([[0.0], [1.0], [2.0]]), 0.0, False),
        (advertisements(terminated=None, episodes=np.arange(400) // 4), None, 0.0, False),
    ],
    ids=["one step", "discount 0", "more steps", "not recorded", "given starts", "users with several rows"],
)
def test_facts_that_decide(data: aope.Transitions, starts: aope.StartStates | None, discount: float, first: bool) -> None:
    assert leads(asked(data, starts, discount)) is first


def test_one_step_is_a_premise_where_later_ones_would_count() -> None:
    names = [each.name for each in weighed_value(asked(advertisements(), discount=0.9), 0.1).premises]
    assert "one-step" in names


def test_of_users_with_several_rows_the_first_one_counts() -> None:
    data = advertisements(terminated=None, episodes=np.arange(400) // 4)
    found, firsts = weighed_value(asked(data), 0.1), advertisements().rows(slice(0, None, 4))
    alone = weighed_value(asked(firsts), 0.1)
    assert (found.lower, found.upper, found.episodes) == (alone.lower, alone.upper, 100)
    assert any("each row that begins an episode" in each.text for each in found.premises)


def test_where_a_class_is_named_it_stands_beside() -> None:
    table = aope.TabularFeatures.grid(np.arange(3.0), POLICY.action_vectors)
    interval = aope.bound_value(asked(advertisements()), features=table, kernel=aope.Tabular())
    companions = interval.companions()
    assert companions.weighed is not None and not companions.leads and answer_of(interval) is interval
    assert "steps begin in draws of the start states: with 90% confidence" in interval.verdict().second_line


def test_starts_that_the_log_does_not_have_are_refused() -> None:
    with pytest.raises(aope.InvalidInput, match="steps begin in states that the start distribution does not have"):
        weighed_value(asked(advertisements(), aope.StartStates([[0.0]])), 0.1)
    interval = aope.bound_value(asked(advertisements(), aope.StartStates([[0.0]])))
    missing = {each.name for each in interval.companions().missing}
    assert "no-weighed" in missing and interval.companions().weighed is None


def test_probabilities_that_cannot_be_are_said_and_decide_nothing() -> None:
    """Recorded as a tenth of what they were: weighted rewards then add up to ten times what they can."""
    data = advertisements()
    wrong = aope.Transitions(
        data.states, data.actions, data.rewards, data.next_states, data.terminated, data.episodes, data.behavior_probability / 10
    )
    interval = aope.bound_value(asked(wrong))
    found = answer_of(interval)
    assert found.status is Status.INCONSISTENT
    text = "Actions were taken more often than the recorded probabilities allow, which has a probability of at most 0.1%"
    assert interval.verdict().sentence.startswith(text) and [each.name for each in found.doubts] == ["taken-too-often"]
    assert interval.decide(at_least=0.5).judgment.name == "INCONSISTENT"


def test_the_command_line_answers_with_it(tmp_path: Path) -> None:
    written(tmp_path, advertisements())
    words = ("bound", "ads.csv", "--discount", 0, "--reward-range", 0, 1)
    done = aope_command(*words, "--certificate", "proof.json", "--report", "page.html", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    found = document["by_probabilities"]
    assert done.returncode == 0 and found["leads"] and found["lower"] <= VALUE <= found["upper"]
    assert found["lower"] == answer_of(first_answer()).lower and found["assumed"][0].startswith("The recorded probabilities are")
    assert "the first line's interval is no part of it" in done.stderr
    page = (tmp_path / "page.html").read_text()
    picture = page[page.index("<svg") : page.index("</svg>")]
    rows = [picture.index(name) for name in (">by recorded probabilities<", ">certified<", ">logged policy<")]
    assert picture.count("<rect") == 3 and rows == sorted(rows)
    assert f"[{found['lower']:.4f}, {found['upper']:.4f}]" in picture
    # The certificate proves what it says, which is of the class alone.
    proved, of_class = verify_record(load_record(tmp_path / "proof.json")), document["intervals"][0]
    assert proved.valid and (proved.lower, proved.upper) == pytest.approx((of_class["lower"], of_class["upper"]))
    assert not any("probabilit" in each.text for each in proved.premises)
    assert "What the first sentence rests on" in (tmp_path / "page.html").read_text()
    text = aope_command(*words, "--threshold", found["lower"] - 1e-3, cwd=tmp_path)
    assert text.returncode == 0 and "Assumed by the first line (betting, per-decision; finite-sample):" in text.stdout


def written(folder: Path, data: aope.Transitions) -> None:
    """ads.csv, with the probabilities of the target policy."""
    kinds = data.states[:, 0].astype(int)
    header = "episode,state,action,reward,terminated,behavior_probability,target_probability_0,target_probability_1"
    rows = zip(range(len(data)), kinds, data.actions, data.rewards, data.behavior_probability, TARGET[kinds], strict=True)
    lines = [f"{e},{s},{a},{r:g},1,{b:g},{p[0]:g},{p[1]:g}" for e, s, a, r, b, p in rows]
    (folder / "ads.csv").write_text("\n".join([header, *lines]) + "\n")


@cache
def of_right_probabilities(seed: int) -> aope.Interval:
    """Of 200 rows at delta = .5: ends cross at seed 43 and nearly so at seed 7, and at delta / 2 the target policy is better."""
    return aope.bound_value(asked(advertisements(seed, 200)), delta=0.5)


@pytest.mark.parametrize(("seed", "judgment"), [(43, "INCONSISTENT"), (7, "DOUBTED")])
def test_what_decides_nothing_decides_nothing_at_half_of_delta(seed: int, judgment: str) -> None:
    interval = of_right_probabilities(seed)
    half, logged = (make(asked(advertisements(seed, 200)), delta=0.25) for make in (weighed_value, aope.logged_value))
    assert half.status is Status.OK and half.lower > logged.upper, "these alone would support the claim"
    answer, verdict = answer_of(interval), interval.verdict()
    assert answer.status.name == judgment
    for ruling in (interval.better_than_logged(), interval.decide(at_least=0.3), verdict.decision):
        assert ruling.judgment.name == judgment and answer.doubts[0].text in str(ruling)
        assert "class" not in str(ruling), "no class is what is doubted"
    assert "it is better" not in verdict.sentence and "cannot be" not in verdict.sentence
    assert answer.doubts[0] in verdict.parts and verdict.advice.text == answer.advice.text
    if judgment == "INCONSISTENT":
        assert "at most 50% if they are right: either they are wrong or this is such a log" in verdict.sentence


def test_a_gate_stays_shut_where_ends_cross(tmp_path: Path) -> None:
    written(tmp_path, advertisements(43, 200))
    words = ("bound", "ads.csv", "--discount", 0, "--reward-range", 0, 1, "--delta", 0.5, "--better-than-logged")
    text = aope_command(*words, "--report", "page.html", cwd=tmp_path)
    assert text.returncode == 5 and "Decision: INCONSISTENT: value > value of the logged policy. The ends cross" in text.stdout
    page = (tmp_path / "page.html").read_text()
    assert "the ends cross: no value follows" in page and "Decision: INCONSISTENT" in page and "it is better" not in page
    document = aope_command(*words, "--json", cwd=tmp_path)
    found = json.loads(document.stdout)
    assert document.returncode == 5 and found["decision"]["judgment"] == "INCONSISTENT"
    assert found["by_probabilities"]["doubts"][0].startswith("The ends cross, which has a probability of at most 50%")


def test_a_refuted_class_decides_nothing_at_half_of_delta_either() -> None:
    table = aope.TabularFeatures.grid(np.arange(3.0), POLICY.action_vectors)
    interval = aope.bound_value(asked(advertisements()), features=table, kernel=aope.Tabular())
    refuted = replace(interval, outcome=Status.INCONSISTENT, lower=np.nan, upper=np.nan)
    assert interval.better_than_logged().judgment.name != "INCONSISTENT"
    assert refuted.better_than_logged().judgment.name == "INCONSISTENT"


def test_an_estimate_outside_of_its_interval_is_not_printed() -> None:
    """Of right returns, whose mean .445 the bets on the first of them ruled out."""
    logged = aope.logged_value(asked(advertisements(3, 200)), delta=0.5)
    assert logged.status is Status.OK and logged.estimate > logged.upper and logged.shown_estimate is None
    sentence = of_right_probabilities(3).verdict().sentence
    assert "the logged policy's lies between 0.382 and 0.428" in sentence and "0.445" not in sentence
    inside = aope.logged_value(asked(advertisements()), delta=0.1)
    assert inside.shown_estimate == inside.estimate


@pytest.mark.slow
@pytest.mark.parametrize("rows", [50, 400])
def test_it_covers_and_half_of_its_width_would_not(rows: int) -> None:
    """At delta = .5 over 300 logs: so tight that an interval of half the width about the same middle is refuted."""
    found = [weighed_value(asked(advertisements(seed, rows), discount=0.9), 0.5) for seed in range(300)]
    covered = sum(VALUE in each for each in found)
    middle = sum(abs(VALUE - 0.5 * (each.lower + each.upper)) <= 0.25 * each.width for each in found)
    assert binomtest(covered, 300, 0.5, alternative="less").pvalue > 1e-3
    assert binomtest(middle, 300, 0.5, alternative="less").pvalue < 1e-3


def test_it_leads_only_where_the_starts_are_those_of_the_log() -> None:
    """First states of another log, and a part of one's own, are no fixed states either, and other values are asked for."""
    data, other = advertisements(), advertisements(seed=1)
    part = aope.StartStates(data.states[data.states[:, 0] == 1], exact=False, fixed=False)
    assert leads(asked(data))
    for starts in (other.first_states(), part, aope.StartStates(data.states, fixed=False)):
        assert not leads(asked(data, starts))


def test_other_frequencies_of_the_same_starts_are_refused() -> None:
    data = advertisements()
    for starts in (
        aope.StartStates([[0.0], [1.0], [2.0]], weights=[8, 1, 1]),
        aope.StartStates(np.repeat([[0.0], [1.0], [2.0]], [320, 40, 40], axis=0), exact=False),
    ):
        with pytest.raises(aope.InvalidInput, match="at other frequencies than the start states"):
            weighed_value(asked(data, starts), 0.1)
    assert weighed_value(asked(data, aope.StartStates([[0.0], [1.0], [2.0]])), 0.1) is not None


def test_probabilities_that_the_actions_refute_decide_nothing() -> None:
    """A coin is recorded, which the target policy tosses too: all weights are 1, but the logger prefers one action."""
    data, coin = advertisements(), aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    rng = np.random.default_rng(0)
    actions = (rng.uniform(size=400) < 0.8).astype(np.int64)
    wrong = aope.Transitions(
        data.states,
        actions,
        actions.astype(float),
        data.next_states,
        data.terminated,
        data.episodes,
        behavior_probability=np.full(400, 0.5),
    )
    problem = aope.Problem(wrong, wrong.first_states(), coin, aope.Assumptions(discount=0.0, reward_range=(0, 1)))
    interval = aope.bound_value(problem)
    assert answer_of(interval).status is Status.INCONSISTENT, "the value is 1/2, and the mean of the weighted rewards .8"
    assert interval.verdict().sentence.startswith("Actions were taken more often than the recorded probabilities allow, which")
    ruling = interval.decide(at_least=0.6)
    assert (ruling.judgment.name, ruling.if_true) == ("INCONSISTENT", None)  # no class would help
    assert "at most 0.1% if they are right" in str(ruling) and "class" not in str(ruling)
    assert interval.better_than_logged().judgment.name == "INCONSISTENT"


def test_true_probabilities_are_hardly_ever_refuted() -> None:
    """At level .001, of an adaptive logger whose favorite changes with what it has seen."""

    def logged(seed: int) -> aope.Transitions:
        rng, paid, shown = np.random.default_rng(seed), np.ones(2), np.full(2, 2.0)
        actions, chances, rewards = np.zeros(200, np.int64), np.zeros(200), np.zeros(200)
        for row in range(200):
            likely = 0.95 if paid[1] / shown[1] > paid[0] / shown[0] else 0.05
            actions[row] = rng.uniform() < likely
            chances[row] = likely if actions[row] else 1 - likely
            rewards[row] = rng.uniform() < (0.5, 0.6)[actions[row]]
            paid[actions[row]] += rewards[row]
            shown[actions[row]] += 1
        states = np.zeros((200, 1))
        return aope.Transitions(states, actions, rewards, states, episodes=np.arange(200), behavior_probability=chances)

    refuted = sum(taken_too_often(logged(seed)) for seed in range(300))
    assert refuted <= 3, "binomial(300, .001) exceeds 3 with a probability of .0003"


@pytest.mark.parametrize("one_by_one", [True, False], ids=["each row twice", "the log twice"])
def test_rows_that_stand_there_twice_decide_nothing(one_by_one: bool) -> None:
    """As after a join that matched two rows each: the interval would be too narrow, and no single weight is wrong."""
    rng = np.random.default_rng(0)
    kept, whole = np.repeat(np.arange(200), 2) if one_by_one else np.tile(np.arange(200), 2), rng.normal(size=(200, 1))
    actions = rng.integers(0, 2, 200)
    rewards = (rng.uniform(size=200) < np.where(actions == 1, 0.7, 0.3)).astype(float)

    def log(rows: np.ndarray) -> aope.Transitions:
        states, half = whole[rows], np.full(len(rows), 0.5)
        return aope.Transitions(
            states, actions[rows], rewards[rows], states, episodes=np.arange(len(rows)), behavior_probability=half
        )

    assert taken_too_often(log(kept)) and not taken_too_often(log(np.arange(200)))
