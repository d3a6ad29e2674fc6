"""Rules on columns: what they say, and one sentence for everything else, none of which is run."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.adapters import rule_policy
from accountable_ope.errors import InvalidInput
from accountable_ope.problem import Categories

NAMES = aope.Naming(["age", "lactate", "blood pressure"], ["dose_0", "dose_1", "dose 2"])
STATES = np.array([[60.0, 1.0, 120.0], [60.0, 3.0, 120.0], [90.0, 3.0, 80.0], [50.0, 2.0, 80.0]])


def taken(rule, naming=NAMES, actions=None, states=STATES):
    weights = np.column_stack([branch.weights for branch in rule_policy(rule, naming, actions).branches(states)])
    assert np.array_equal(np.sort(weights, axis=1)[:, :-1], np.zeros((len(states), weights.shape[1] - 1)))
    return weights.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("dose_1 if lactate > 2 else dose_0", [0, 1, 1, 0]),
        ("dose_1 if lactate >= 2 else dose_0", [0, 1, 1, 1]),
        ("dose_0", [0, 0, 0, 0]),
        ("'dose 2' if 55 < age < 80 else dose_0", [2, 2, 0, 0]),
        ("`dose 2` if `blood pressure` < 100 else dose_0", [0, 0, 2, 2]),
        ("dose_1 if lactate > 2 and not age > 80 else dose_0", [0, 1, 0, 0]),
        ("dose_1 if age > 80 or lactate == 2 else dose_0", [0, 0, 1, 1]),
        ("dose_1 if lactate > 2 else `dose 2` if age < 55 else dose_0", [0, 1, 1, 2]),
        ("dose_1 if lactate ** 2 + age / 60 - 2 * 1 > 8 else dose_0", [0, 0, 1, 0]),
        ("dose_1 if -lactate != -1 else dose_0", [0, 1, 1, 1]),
        ("dose_1 if (lactate if age > 55 else 10) > 2 else dose_0", [0, 1, 1, 1]),
        ("dose_1 if age > 80 and 1 / (age - 60) > 0 else dose_0", [0, 0, 1, 0]),  # guarded where it would divide by 0
    ],
)
def test_a_rule_says_what_it_says(rule, wanted):
    assert taken(rule) == wanted


def test_actions_without_names_are_their_indices():
    assert taken("1 if state_1 > 2 else 0", aope.Naming(), actions=2) == [0, 1, 1, 0]
    assert taken("10 if state_1 > 2 else -5", aope.Naming(actions=[-5, 10])) == [0, 1, 1, 0]


def test_words_are_compared_by_name():
    ward = aope.Naming(["age", "ward=icu", "ward=home"], ["wait", "treat"], [Categories("ward", 1, ("icu", "home"))])
    states = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    assert taken("treat if ward == 'icu' else wait", ward, states=states) == [1, 0]
    assert taken("treat if ward != 'icu' else wait", ward, states=states) == [0, 1]
    for rule in ("treat if ward == 'attic' else wait", "treat if ward > 'icu' else wait", "treat if ward == age else wait"):
        with pytest.raises(InvalidInput, match="must compare `ward`"):
            rule_policy(rule, ward)
    with pytest.raises(InvalidInput, match="several of them: == 'A' or"):
        rule_policy("treat if ward in ('icu', 'home') else wait", ward)


def test_vectors_are_numbers_in_parentheses():
    (branch,) = rule_policy("(-0.5 * age, 1) if lactate > 2 else (0, lactate)", aope.Naming(NAMES.states)).branches(STATES)
    assert branch.actions.tolist() == [[0, 1], [-30, 1], [-45, 1], [0, 2]]
    (branch,) = rule_policy("0.5 * state_0").branches(STATES)
    assert branch.actions.tolist() == [[30], [30], [45], [25]]


def test_a_rule_answers_a_question():
    data = aope.Transitions(STATES[[0, 1] * 20], [0, 1] * 20, [0.0, 1.0] * 20, STATES[[1, 0] * 20])
    policy = rule_policy("1 if state_1 > 2 else 0", actions=2)
    problem = aope.Problem(data, aope.StartStates(STATES[:1]), policy, aope.Assumptions(discount=0.5, reward_range=(0, 1)))
    table = aope.TabularFeatures.grid(STATES[:2], np.eye(2))
    assert aope.bound_value(problem, features=table, kernel=aope.Tabular()).check()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("__import__('os').system('touch sprung')", "a call|an action is expected"),
        ("dose_1 if open('sprung', 'w') else dose_0", "comparison"),
        ("dose_1 if abs(lactate) > 2 else dose_0", "a call"),
        ("dose_1 if lactate.__class__ > 2 else dose_0", "a dot after a name"),
        ("().__class__.__bases__[0]", "a dot|brackets"),
        ("dose_1 if lactate[0] > 2 else dose_0", "square brackets"),
        ("dose_1 if (lambda: 1) > 2 else dose_0", "a lambda"),
        ("dose_1 if (x := 3) > 2 else dose_0", "an assignment"),
        ("dose_1 if [age for age in (1,)] > 2 else dose_0", "number or a column"),
        ("dose_1 if f'{age}' > 2 else dose_0", "a formatted text"),
        ("dose_1 if 9 ** 9 ** 9 > 2 else dose_0", "powers"),
        ("dose_1 if age ** 99 > 2 else dose_0", "powers"),
        ("dose_1 if age ** lactate > 2 else dose_0", "powers"),
        ("dose_1 if age // 2 > 2 else dose_0", "number or a column"),
        ("dose_1 if age << 1000000000 > 2 else dose_0", "number or a column"),
        ("dose_1 if age in (1, 2) else dose_0", "`in`|number or a column"),
        ("dose_1 if age is 2 else dose_0", "`in` or `is`"),
        ("dose_1 if age else dose_0", "comparison"),
        ("dose_1 if True > 2 else dose_0", "True"),
        ("dose_1 if 'a' > 2 else dose_0", "'a'"),
        ("dose_1 if 1j > 2 else dose_0", "1j"),
        ("dose_1 if weight > 2 else dose_0", "`weight`, which is no column"),
        ("dose_7 if age > 2 else dose_0", "'dose_7', which is none of the actions"),
        ("1 if age > 2 else 0", "none of the actions"),
        ("dose_1 if age > 2", "cannot be read"),
        ("dose_1 if age = 2 else dose_0", "a comparison is written ==, with two signs"),
        ("dose_1 if age >= 2 else", "cannot be read (?!.*two signs)"),
        ("dose_1; dose_0", "cannot be read"),
        ("import os", "cannot be read"),
        ("", "cannot be read"),
        ("dose_1 if age > 1" + "0" * 400 + " else dose_0", "too large"),
        ("(" * 500 + "age" + ")" * 500, "cannot be read"),
        ("dose_1 if " + "-" * 1500 + "age > 2 else dose_0", "cannot be read|nested too deeply"),
        ("dose_1 if " + "not " * 300 + "age > 2 else dose_0", "cannot be read|nested too deeply"),
        ("dose_1 if age > 2 else " * 80 + "dose_0", "nested too deeply|cannot be read"),
        ("age + " * 1000 + "age", "longer than"),
        ("dose_1 if age \0 > 2 else dose_0", "cannot be read"),
    ],
)
def test_everything_else_is_one_sentence(rule, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=words) as caught:
        rule_policy(rule, NAMES)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert not list(tmp_path.iterdir())


def test_a_division_by_zero_names_the_state():
    with pytest.raises(InvalidInput, match=r"divides by 0, or overflows, at the state \[60, 1, 120\]"):
        taken("dose_1 if 1 / (age - 60) > 0 else dose_0")
    with pytest.raises(InvalidInput, match="divides by 0"):
        list(rule_policy("1 / (state_1 - 2)").branches(STATES))


def test_vectors_of_two_widths_and_missing_columns_are_refused():
    with pytest.raises(InvalidInput, match="2 numbers in one case, 1 in another"):
        rule_policy("(1, 2) if state_0 > 1 else 3")
    with pytest.raises(InvalidInput, match="asks for column 7"):
        list(rule_policy("state_7").branches(STATES))


def test_a_column_is_the_one_that_is_written_and_not_a_look_alike():
    """Python takes a micro sign for the Greek letter: of two such columns the wrong one would decide."""
    naming = aope.Naming(["dose_\u00b5g", "dose_\u03bcg"], ["wait", "treat"])
    states = np.array([[1.0, 0.0], [0.0, 1.0]])
    for name, treated in (("dose_\u00b5g", [1.0, 0.0]), ("dose_\u03bcg", [0.0, 1.0])):
        _, treat = rule_policy(f"treat if {name} > 0.5 else wait", naming).branches(states)
        assert treat.weights.tolist() == treated


def test_a_number_of_single_precision_is_the_one_that_was_written():
    """The same log as CSV and as a file of floats of 32 bits follows the same rule."""
    doses = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    naming = aope.Naming(["dose"], ["no", "yes"])
    for rule in (
        "yes if dose >= 0.7 else no",
        "yes if dose == 0.7 else no",
        "yes if 0.3 < dose else no",
        "yes if -0.1 <= -dose else no",
    ):
        double = taken(rule, naming, states=doses[:, None])
        single = taken(rule, naming, states=doses.astype(np.float32).astype(float)[:, None])
        assert double == single
    assert taken("yes if dose >= 0.7 else no", naming, states=np.array([[0.6999999]])) == [0]
