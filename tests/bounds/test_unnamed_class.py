"""`compare`, `diagnose` and `correct` where nobody names a class: the earliest rows choose one, as for `bound_value`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.defaults import Recipe, choose_recipe
from accountable_ope.environments import PlantedMDP, bandit, random_tabular
from accountable_ope.problem import Experience
from accountable_ope.statistics import q_columns
from command import aope_command

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
WORLD = random_tabular(4, 2, seed=2, discount=0.8, bernoulli=True)
COIN, MOSTLY = np.full((4, 2), 0.5), np.tile([0.3, 0.7], (4, 1))


@cache
def planted() -> aope.Problem:
    data = MDP.sample(np.random.default_rng(0), trajectories=20)
    return aope.Problem(data, MDP.starts, MDP.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))


@cache
def chosen() -> Recipe:
    return choose_recipe(planted(), neural=False, candidates=["cosines"])


@cache
def table() -> aope.Problem:
    """Few states, so that the class is a table and nothing is trained."""
    log = WORLD.sample_trajectories(COIN, episodes=60, length=25, rng=np.random.default_rng(0))
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1))
    return aope.Problem(log, WORLD.starts(), WORLD.policy(MOSTLY), facts)


def too_high(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.full(len(states), 8.0)


def off_by(amount: float):
    estimate = chosen().estimate
    return lambda states, actions: estimate(states, actions) + amount


def exact_q(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Of the table's target policy."""
    values = WORLD.q_values(MOSTLY)
    index = np.argmax(actions, axis=1) if np.ndim(actions) == 2 else np.asarray(actions, dtype=int)
    return values[states[:, 0].astype(int), index]


def test_each_policy_has_a_choice_of_its_own_and_a_share_of_delta() -> None:
    problem, other = table(), WORLD.policy(COIN)
    named = [aope.NamedPolicy("mostly", problem.policy), aope.NamedPolicy("coin", other)]
    found = aope.compare(problem, named)
    assert len(found.recipes) == 2 and found.share == pytest.approx(0.1 / 3)
    assert "chosen" in {each.name for each in found.statements}
    for contender, policy, recipe in zip(found.contenders, (problem.policy, other), found.recipes, strict=False):
        alone = aope.bound_value(replace(problem, policy=policy), recipe=recipe, delta=found.share)
        assert (contender.lower, contender.upper) == (alone.lower, alone.upper)
        assert WORLD.value(MOSTLY if contender.name == "mostly" else COIN) in alone
    again = aope.compare(problem, named, recipes=found.recipes)
    assert [(each.lower, each.upper) for each in again.contenders] == [(each.lower, each.upper) for each in found.contenders]


def test_at_discount_0_one_class_serves_all_and_differences_are_paired() -> None:
    arms = bandit(3, 2, seed=0)
    log = arms.sample_trajectories(np.full((3, 2), 0.5), episodes=2000, length=1, rng=np.random.default_rng(0))
    old, new = arms.policy([[1, 0]] * 3), arms.policy([[1, 0], [1, 0], [0.9, 0.1]])
    problem = aope.Problem(log, arms.starts(), new, aope.Assumptions(discount=0.0, reward_range=(0, 1)))
    found = aope.compare(problem, [aope.NamedPolicy("old", old), aope.NamedPolicy("new", new)])
    pair = found.difference("old", "new")
    first, second = found.contenders[0], found.contenders[1]
    truth = arms.value(np.array([[1, 0]] * 3)) - arms.value(np.array([[1, 0], [1, 0], [0.9, 0.1]]))
    assert pair.paired and pair.lower <= truth <= pair.upper
    assert pair.upper - pair.lower < 0.2 * (first.upper - second.lower - (first.lower - second.upper))


def test_differences_of_classes_that_differ_are_not_paired() -> None:
    """Given back in a way that no choice made them: coefficients of two classes have no difference."""
    arms = bandit(3, 2, seed=0)
    log = arms.sample_trajectories(np.full((3, 2), 0.5), episodes=400, length=1, rng=np.random.default_rng(0))
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    policies = [arms.policy([[1, 0]] * 3), arms.policy([[0.5, 0.5]] * 3)]
    one, other = (aope.Problem(log, arms.starts(), each, facts) for each in policies)
    narrow = aope.TabularFeatures.grid(np.arange(3.0), policies[0].action_vectors)
    wide = aope.TabularFeatures.grid(np.arange(4.0), policies[0].action_vectors)
    from accountable_ope.bounds.comparing import _paired

    found = [aope.evaluate(each, features=columns, kernel=aope.Tabular()) for each, columns in ((one, narrow), (other, wide))]
    intervals = [each.bound() for each in found]
    assert _paired(*found, *intervals, "certified") is None


@pytest.mark.parametrize("amount", [0.0, 0.3])
def test_an_estimate_is_judged_by_later_rows_alone(amount: float) -> None:
    problem, recipe = planted(), chosen()
    found = aope.diagnose(off_by(amount), problem, recipe=recipe)
    assert found.verdict.name == ("REJECTED" if amount else "CONSISTENT")
    assert found.interval.count == 800 and found.interval.recipe.judging and MDP.value in found.interval
    assert found.witness.rows.min() >= 200 and min(each.row for each in found.explanation.rows) >= 200
    row = found.explanation.rows[0]
    assert row.reward == problem.data.rewards[row.row], "rows are those of the whole log"
    words = found.interval.recipe.statements()[1].text
    assert "around the estimate that is judged" in words and "not for the verdict on it" in words
    assert found.interval.check()


def test_columns_of_an_estimate_are_of_the_whole_log() -> None:
    columns = q_columns(off_by(0.3), Experience(planted().data, MDP.starts, MDP.policy, 0.6))
    by_function = aope.diagnose(off_by(0.3), planted(), recipe=chosen())
    by_columns = aope.diagnose(columns, planted(), recipe=chosen())
    assert by_columns.loss == pytest.approx(by_function.loss) and by_columns.verdict is by_function.verdict


def test_the_true_q_is_not_rejected_and_a_wrong_one_is() -> None:
    found = aope.diagnose(exact_q, table())
    assert found.verdict.name == "CONSISTENT" and WORLD.value(MOSTLY) in found.interval
    assert aope.diagnose(too_high, table()).verdict.name == "REJECTED"


def test_a_correction_is_within_the_chosen_class() -> None:
    found = aope.correct(off_by(0.3), planted(), recipe=chosen())
    assert found.status.name == "CORRECTED" and found.interval.recipe.judging
    assert abs(found.estimate_after - MDP.value) < abs(found.estimate_before - MDP.value)
    assert found(MDP.starts.states, np.zeros(len(MDP.starts.states), dtype=int)).shape == (len(MDP.starts.states),)
    with pytest.raises(aope.InvalidInput, match="cannot be saved"):
        found.save("change.npz")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"kernel": aope.Gaussian(1.0)}, "`features` and `kernel` go together"),
        ({"features": MDP.features()}, "`features` and `kernel` go together"),
        ({"features": MDP.features(), "kernel": aope.Gaussian(1.0), "within": 0.2}, "`within` is for a class that is chosen"),
        ({"chosen": aope.Choice(10)}, "`chosen` is of a class that was given"),
    ],
    ids=["kernel alone", "features alone", "within", "chosen"],
)
def test_what_has_no_effect_is_refused(words: dict, sentence: str) -> None:
    named = [aope.NamedPolicy("new", MDP.policy)]
    for ask in (
        lambda: aope.diagnose(too_high, planted(), **words),
        lambda: aope.correct(too_high, planted(), **words),
        lambda: aope.compare(planted(), named, **words),
    ):
        with pytest.raises(aope.InvalidInput, match=sentence):
            ask()


def test_as_many_choices_as_policies() -> None:
    with pytest.raises(aope.InvalidInput, match="one choice for each of the 1 policies. Got 2"):
        aope.compare(planted(), [aope.NamedPolicy("new", MDP.policy)], recipes=[chosen(), chosen()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here, problem = tmp_path_factory.mktemp("unnamed"), table()
    states = np.arange(4.0)[:, None]
    both = aope.TabulatedPolicy(states, MOSTLY, problem.policy.action_vectors)
    aope.save_transitions(problem.data, here / "log.parquet", both)
    aope.save_starts(problem.starts, here / "starts.parquet", both)
    code = "import numpy as np\n\ndef {0}(states):\n    return np.tile({1}, (len(states), 1))\n"
    (here / "wards.py").write_text(
        code.format("mostly", [0.3, 0.7]) + code.format("coin", [0.5, 0.5]).replace("import numpy as np\n", "")
    )
    (here / "estimate.py").write_text("import numpy as np\n\ndef q(states, actions):\n    return np.full(len(states), 4.9)\n")
    return here


FACTS = ("log.parquet", "--starts", "starts.parquet", "--discount", 0.8, "--reward-range", 0, 1)


def test_the_commands_choose_and_say_so(folder: Path) -> None:
    two = ("--policy", "wards:mostly", "--policy", "wards:coin", "--action-values", "1,0;0,1")
    words = ("compare", *FACTS, *two)
    done = aope_command(*words, "--save-choice", "choice.npz", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (folder / "choice-1.npz").exists() and (folder / "choice-2.npz").exists()
    assert [each["recipe"] is not None for each in document["policies"]] == [True, True, False]
    again = aope_command(*words, "--choice", "choice.npz", cwd=folder)
    assert again.returncode == 0 and "Chosen on the first" in again.stdout and "For wards:coin:" in again.stdout
    swapped = ("--policy", "wards:coin", "--policy", "wards:mostly", "--action-values", "1,0;0,1")
    other = aope_command("compare", *FACTS, *swapped, "--choice", "choice.npz", cwd=folder)
    assert other.returncode == 2 and "The choice was made for another target policy" in other.stderr

    words = ("diagnose", *FACTS, "--q", "estimate:q")
    done = aope_command(*words, "--save-choice", "one.npz", cwd=folder)
    assert done.returncode == 0 and done.stdout.startswith("REJECTED") and "Chosen on the first" in done.stdout
    document = json.loads(aope_command(*words, "--choice", "one.npz", "--json", cwd=folder).stdout)
    assert document["interval"]["recipe"]["earlier_rows"] > 0
    assert min(each["row"] for each in document["rows"]) >= document["interval"]["recipe"]["earlier_rows"]

    done = aope_command("correct", *FACTS, "--q", "estimate:q", "--choice", "one.npz", cwd=folder)
    assert done.returncode == 0 and done.stdout.startswith("CORRECTED") and "Chosen on the first" in done.stdout
    refused = aope_command("correct", *FACTS, "--q", "estimate:q", "--output", "change.npz", cwd=folder)
    assert refused.returncode == 2 and "--output saves a change within a class that was named" in refused.stderr


def test_an_accepted_estimate_says_how_wrong_it_may_be() -> None:
    found = aope.diagnose(off_by(0.0), planted(), recipe=chosen())
    assert abs(found.estimate - MDP.value) <= found.unnoticed <= found.interval.width
    assert found.unnoticed == max(found.interval.upper - found.estimate, found.estimate - found.interval.lower)
    assert "does not make it right" in found.sentence and "They may miss an error in value of up to 0." in found.sentence
    assert (
        found.to_dict()["unnoticed"] == found.unnoticed and "They may miss an error in value of up to 0." in found._repr_html_()
    )


def test_where_the_interval_says_nothing_so_does_the_sentence() -> None:
    accepted = aope.diagnose(off_by(0.0), planted(), recipe=chosen())
    vacuous = replace(accepted, interval=replace(accepted.interval, lower=0.0, upper=2.5, outcome=aope.Status.VACUOUS))
    assert "They would miss an error of any size" in vacuous.sentence
    nothing = replace(accepted, interval=replace(accepted.interval, outcome=aope.Status.INCONSISTENT))
    assert np.isnan(nothing.unnoticed) and "is not known: no function of the class around it fits" in nothing.sentence
    assert nothing.to_dict()["unnoticed"] is None
    rejected = aope.diagnose(too_high, planted(), recipe=chosen())
    assert rejected.sentence == rejected.verdict.value
