"""Comparisons of policies on a log of single steps with recorded probabilities: answered by these, as `bound_value` is."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.comparing import _difference
from accountable_ope.bounds.comparison import Comparison
from accountable_ope.bounds.decision import Judgment
from accountable_ope.bounds.weighed import weighed_value
from accountable_ope.problem.statements import Status, remark
from accountable_ope.report.contest import comparison_document
from command import aope_command

CHANCES = np.array([0.3, 0.7])
"""Of the logger, for the two advertisements."""
MEANS = np.array([[0.7, 0.3], [0.8, 0.2]])
"""Of two kinds of visitors."""


def visits(seed: int = 0, rows: int = 600, recorded: float = 1.0) -> aope.Transitions:
    rng = np.random.default_rng(seed)
    kinds, actions = rng.integers(0, 2, rows), (rng.uniform(size=rows) < CHANCES[1]).astype(np.int64)
    rewards = (rng.uniform(size=rows) < MEANS[kinds, actions]).astype(float)
    states = kinds[:, None].astype(float)
    over, each = np.ones(rows, bool), np.arange(rows)
    return aope.Transitions(states, actions, rewards, states, over, each, behavior_probability=recorded * CHANCES[actions])


def shown(first: float) -> aope.DiscretePolicy:
    """Shows the first advertisement with this probability."""
    return aope.DiscretePolicy(lambda states: np.tile([first, 1 - first], (len(states), 1)), actions=2)


POLICIES = [aope.NamedPolicy("first", shown(1.0)), aope.NamedPolicy("second", shown(0.0))]


def question(data: aope.Transitions, starts: aope.StartStates | None = None) -> aope.Problem:
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    return aope.Problem(data, data.first_states() if starts is None else starts, POLICIES[0].policy, facts)


@cache
def contest() -> Comparison:
    return aope.compare(question(visits()), POLICIES)


def test_each_policy_is_answered_by_the_probabilities_at_its_share() -> None:
    found = contest()
    assert [each.by_probabilities for each in found.contenders] == [True, True, False]
    for each, policy in zip(found.contenders, POLICIES, strict=False):
        asked = question(visits())
        alone = weighed_value(aope.Problem(asked.data, asked.starts, policy.policy, asked.assumptions), found.share)
        assert (each.lower, each.upper) == (alone.lower, alone.upper) and each.answer.delta == found.share
        assert each.answer.premises[0].name == "behavior" and each.found.lower < each.lower, "the class says less"
    assert "by the recorded probabilities of the logged actions" in " ".join(map(str, found.statements))
    assert found.verdict == (
        "With 90% confidence first is the best of these 3 policies, if actions were drawn with the recorded probabilities."
    )
    assert found.decide("first").judgment is Judgment.SUPPORTED


def test_it_says_what_a_bound_says_of_the_same_log() -> None:
    """Of one policy beside the logged one each has half of delta, here as there."""
    asked = question(visits())
    one, alone = aope.compare(asked, POLICIES[:1]), aope.bound_value(asked)
    ruling = alone.better_than_logged()
    assert one.decide("first").judgment is ruling.judgment is Judgment.SUPPORTED
    assert one.contenders[0].lower == dict(ruling.statement.parameters)["lower"]


def test_differences_are_those_of_the_intervals_that_answer() -> None:
    found = contest()
    pair = found.difference("first", "second")
    one, other = found.contenders[:2]
    assert not pair.paired and (pair.lower, pair.upper) == (one.lower - other.upper, one.upper - other.lower)


def test_with_given_starts_or_a_class_the_class_answers() -> None:
    table = aope.TabularFeatures.grid(np.arange(2.0), POLICIES[0].policy.action_vectors)
    named = aope.compare(question(visits()), POLICIES, features=table, kernel=aope.Tabular())
    given = aope.compare(question(visits(), aope.StartStates([[0.0], [1.0]])), POLICIES)
    for found in (named, given):
        assert not any(each.by_probabilities for each in found.contenders) and found.differences[0].paired
        assert "recorded probabilities" not in found.verdict


def test_probabilities_that_cannot_be_rank_nothing() -> None:
    found = aope.compare(question(visits(recorded=0.2)), POLICIES)
    assert "The interval of first, second decides nothing: no ranking should rest on it. Actions were taken" in found.verdict
    assert np.isnan(found.differences[0].lower) and found.differences[0].judgment is Judgment.INCONSISTENT
    ruling = found.decide("first")
    assert ruling.judgment is Judgment.INCONSISTENT and "class" not in str(ruling)


def test_the_logged_policy_with_ends_that_cross_ranks_nothing() -> None:
    found = contest()
    *others, logged = found.contenders
    crossed = replace(logged, found=replace(logged.found, lower=0.6, upper=0.5))
    pairs = [_difference(each, crossed, None) for each in others]
    assert all(np.isnan(each.lower) and each.judgment is Judgment.INCONSISTENT for each in pairs)
    ruling = replace(found, contenders=(*others, crossed), differences=(found.differences[0], *pairs)).decide("first")
    assert ruling.judgment is Judgment.INCONSISTENT and "class" not in str(ruling)
    assert "The interval of logged policy decides nothing" in str(
        ruling
    ) and "Its ends cross, which has a probability of at most 3." in str(ruling)


def test_documents_say_which_interval_it_is() -> None:
    first, _, logged = comparison_document(contest())["policies"]
    assert first["by_probabilities"] and first["of_class"]["lower"] < first["lower"]
    assert not logged["by_probabilities"] and logged["of_class"] is None
    rows = contest().to_frame("pyarrow").to_pylist()
    assert rows[0]["method"] == "betting, per-decision" and rows[0]["lower"] == first["lower"]


def test_stages_say_of_which_policy_they_are() -> None:
    seen: list[str] = []

    def stages(stage: str) -> None:
        seen.append(stage)

    aope.compare(question(visits(rows=200)), POLICIES, stages=stages)
    assert {"first: kernel statistic", "second: kernel statistic", "first: bounding", "second: bounding"} <= set(seen)
    assert len({each for each in seen if each.startswith("first: ")}) > 2, "what is chosen on earlier rows has stages, too"
    table = aope.TabularFeatures.grid(np.arange(2.0), POLICIES[0].policy.action_vectors)
    with pytest.raises(aope.InvalidInput, match="`stages` is for a class that is chosen"):
        aope.compare(question(visits()), POLICIES, features=table, kernel=aope.Tabular(), stages=stages)


def test_the_command_line_agrees_with_a_bound(tmp_path: Path) -> None:
    data = visits()
    rows = zip(range(len(data)), data.states[:, 0], data.actions, data.rewards, data.behavior_probability, strict=True)
    lines = [
        "episode,kind,action,reward,terminated,behavior_probability",
        *(f"{e},{s:g},{a},{r:g},1,{b:g}" for e, s, a, r, b in rows),
    ]
    (tmp_path / "ads.csv").write_text("\n".join(lines) + "\n")
    shared = ("ads.csv", "--column", "state=kind", "--discount", 0, "--reward-range", 0, 1, "--policy", "0", "--json")
    bound = aope_command("bound", *shared, "--better-than-logged", cwd=tmp_path)
    compared = aope_command("compare", *shared, "--best", "0", cwd=tmp_path)
    assert bound.returncode == compared.returncode == 0, compared.stderr
    text = aope_command("compare", *shared[:-1], cwd=tmp_path).stdout
    assert "Assumed by the intervals of all policies:" in text and "- The recorded probabilities are those with which" in text
    verdict, decision = (json.loads(each.stdout)["decision"]["judgment"] for each in (bound, compared))
    assert verdict == decision == "SUPPORTED"


def test_ends_that_cross_at_the_whole_delta_rank_nothing_at_a_share_of_it() -> None:
    """Probabilities that are wrong: the same ends lie apart at half of delta, and the gate says that nothing follows."""
    rare = shown(0.1)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        kinds, actions = rng.integers(0, 3, 400)[:, None].astype(float), (rng.random(400) < 0.08).astype(int)
        rewards = (rng.random(400) < 0.45 + 0.5 * actions).astype(float)
        recorded = np.where(actions == 1, 0.05, 0.95)
        log = aope.Transitions(kinds, actions, rewards, kinds, np.ones(400, bool), np.arange(400), recorded)
        asked = replace(question(log), policy=rare)
        whole, half = (weighed_value(asked, delta) for delta in (0.1, 0.05))
        if whole.status is Status.INCONSISTENT and half.lower < half.upper:
            break
    else:
        pytest.fail("no such log")
    interval = aope.bound_value(asked)
    assert interval.better_than_logged().judgment is Judgment.INCONSISTENT
    found = aope.compare(asked, [aope.NamedPolicy("first", rare)])
    assert found.share == 0.05 and found.decide("first").judgment is Judgment.INCONSISTENT
    assert found.unbeaten == ("first", "logged policy")


def test_what_speaks_against_probabilities_is_no_matter_of_a_class() -> None:
    found = contest()
    first = found.contenders[0]
    narrow = replace(first.answer, doubts=(remark("narrow", "The ends nearly cross."),))
    doubted = replace(found, contenders=(replace(first, weighed=narrow), *found.contenders[1:]))
    assert doubted.contenders[0].status is Status.DOUBTED and not doubted.of_class_alone
