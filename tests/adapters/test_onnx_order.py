"""Which action each column of an ONNX file is for: as the file says, as somebody says, or sorted; never silently another one."""

import numpy as np
import pytest

import accountable_ope as aope
import onnx_files
from accountable_ope.adapters import onnx_policy, rule_policy, sklearn_policy
from accountable_ope.errors import InvalidInput

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

STATES = np.random.default_rng(0).normal(size=(20, 2))
WEIGHTS = np.array([[3.0, -3.0], [0.0, 0.0]])
"""Of treat and wait, in this order: treat where the first column is high."""
TREATED = 1 / (1 + np.exp(-6 * STATES[:, 0]))
ORDERED = aope.Naming(["x", "y"], ["wait", "treat"])
NUMBERS = aope.Naming(["x", "y"], [1, 2, 3])


def weights_of(policy):
    return np.column_stack([branch.weights for branch in policy.branches(STATES)])


@pytest.mark.parametrize("make", [onnx_files.linear, onnx_files.probabilities, onnx_files.best])
def test_an_order_that_nobody_named_is_refused(tmp_path, make):
    path = make(tmp_path / "m.onnx", WEIGHTS)
    with pytest.raises(InvalidInput, match=r"order of their own \(wait, treat\).*--policy-labels.*mostly treat, wait") as caught:
        onnx_policy(path, naming=ORDERED)
    assert "\n" not in str(caught.value)
    treated = weights_of(onnx_policy(path, naming=ORDERED, labels=["treat", "wait"]))[:, 1]
    assert np.allclose(treated, TREATED > 0.5 if make is onnx_files.best else TREATED, atol=1e-6)
    other = weights_of(onnx_policy(path, naming=ORDERED, labels=["wait", "treat"]))[:, 0]
    assert np.allclose(other, treated)


def test_it_is_the_policy_of_the_classifier(tmp_path):
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(STATES, np.where(STATES[:, 0] > 0, "treat", "wait"))
    assert fitted.classes_.tolist() == ["treat", "wait"]
    fitted.coef_, fitted.intercept_ = np.array([[-6.0, 0.0]]), np.array([0.0])
    path = onnx_files.classifier(tmp_path / "c.onnx", WEIGHTS, classlabels_strings=["treat", "wait"])
    wanted = weights_of(sklearn_policy(fitted, naming=ORDERED))
    assert np.allclose(weights_of(onnx_policy(path, naming=ORDERED)), wanted, atol=1e-6)
    assert np.allclose(weights_of(onnx_policy(path, naming=ORDERED, labels=["treat", "wait"])), wanted, atol=1e-6)
    assert np.array_equal(weights_of(onnx_policy(path, "actions", naming=ORDERED)), np.round(wanted))
    more = weights_of(onnx_policy(path, naming=aope.Naming(actions=["wait", "rest", "treat"])))
    assert np.allclose(more, np.insert(wanted, 1, 0.0, axis=1), atol=1e-6)
    with pytest.raises(InvalidInput, match="says that its columns are for treat, wait"):
        onnx_policy(path, naming=ORDERED, labels=["wait", "treat"])
    with pytest.raises(InvalidInput, match="'treat', which is none of the logged ones"):
        onnx_policy(path, naming=aope.Naming(actions=["rest", "wait"]))
    with pytest.raises(InvalidInput, match="by the labels 'treat', 'wait'"):
        onnx_policy(path)


def test_classes_that_are_numbers_are_names_where_actions_have_such(tmp_path):
    path = onnx_files.classifier(tmp_path / "c.onnx", WEIGHTS, classlabels_ints=[3, 1])
    named = weights_of(onnx_policy(path, naming=NUMBERS))
    assert np.allclose(named, np.column_stack([1 - TREATED, 0 * TREATED, TREATED]), atol=1e-6)
    unnamed = weights_of(onnx_policy(path))  # then they are indices
    assert np.allclose(unnamed, np.insert(named, 0, 0.0, axis=1))
    coded = onnx_files.classifier(tmp_path / "d.onnx", WEIGHTS, classlabels_ints=[0, 1])
    with pytest.raises(InvalidInput, match="order of their own"):
        onnx_policy(coded, naming=ORDERED)
    assert np.allclose(weights_of(onnx_policy(coded, naming=ORDERED, labels=["treat", "wait"]))[:, 1], TREATED, atol=1e-6)


def test_whole_numbers_are_labels_where_actions_are_called_by_numbers(tmp_path):
    path = onnx_files.labels(tmp_path / "l.onnx", WEIGHTS, [2, 1])
    wanted = weights_of(rule_policy("2 if x > 0 else 1", NUMBERS))
    assert np.array_equal(weights_of(onnx_policy(path, naming=NUMBERS)), wanted)
    assert np.array_equal(weights_of(onnx_policy(path, actions=3)), np.roll(wanted, 1, axis=1))  # indices, without names
    with pytest.raises(InvalidInput, match="knows an action 0, which is none of the logged ones: 1, 2, 3"):
        weights_of(onnx_policy(onnx_files.labels(tmp_path / "z.onnx", WEIGHTS, [0, 1]), naming=NUMBERS))
    text = onnx_files.labels(tmp_path / "t.onnx", WEIGHTS, ["treat", "wait"])
    assert np.array_equal(weights_of(onnx_policy(text, naming=ORDERED))[:, 1], TREATED > 0.5)


def test_the_place_of_the_largest_is_no_label(tmp_path):
    path = onnx_files.best(tmp_path / "b.onnx", [[3.0, -3.0, 0.0], [0.0, 0.0, 0.0]])
    found = weights_of(onnx_policy(path, naming=NUMBERS))
    assert np.array_equal(found.argmax(axis=1), np.where(STATES[:, 0] > 0, 0, 1))
    with pytest.raises(InvalidInput, match="whole numbers are"):
        onnx_policy(path, naming=aope.Naming(actions=[3, 2, 1]))


def test_sorted_names_are_columns_in_their_order(tmp_path):
    path = onnx_files.linear(tmp_path / "l.onnx", WEIGHTS)
    for names in (["high", "low"], [1, 2], [False, True], [-1.5, 10]):
        assert np.allclose(weights_of(onnx_policy(path, naming=aope.Naming(actions=names)))[:, 0], TREATED, atol=1e-6)
    for names in ([2, 1], ["2", "10"], [True, False], [1, "a"]):
        with pytest.raises(InvalidInput, match="order of their own"):
            onnx_policy(path, naming=aope.Naming(actions=names))
    with pytest.raises(InvalidInput, match=r"answers 2 logits per state, but the log knows 3 actions \(1, 2, 3\)"):
        onnx_policy(path, naming=NUMBERS)
    some = weights_of(onnx_policy(path, naming=NUMBERS, labels=[3, 1]))
    assert np.allclose(some, np.column_stack([1 - TREATED, 0 * TREATED, TREATED]), atol=1e-6)


def test_labels_that_fit_nothing_are_one_sentence(tmp_path):
    path = onnx_files.linear(tmp_path / "l.onnx", WEIGHTS)
    for labels, words in (
        (["treat", "treat"], "a different action for each column"),
        ([], "a different action for each column"),
        (["treat"], "answers 2 logits per state, but labels are given for 1"),
        (["treat", "poison"], "'poison', which is none of the logged ones"),
    ):
        with pytest.raises(InvalidInput, match=words):
            onnx_policy(path, naming=ORDERED, labels=labels)
    assert np.allclose(weights_of(onnx_policy(path, labels=[1, 0]))[:, 1], TREATED, atol=1e-6)
    with pytest.raises(InvalidInput, match="index 2, but there are 2 actions"):
        onnx_policy(path, actions=2, labels=[2, 0])


def test_columns_are_for_whom_somebody_says_where_the_numbers_of_a_file_are_no_actions(tmp_path):
    """Actions called by numbers, and a classifier that was trained on their places."""
    path = onnx_files.classifier(tmp_path / "c.onnx", WEIGHTS, classlabels_ints=[0, 1])
    tens = aope.Naming(["x", "y"], [10, 20])
    with pytest.raises(InvalidInput, match="an action 0, which is none of the logged ones"):
        onnx_policy(path, naming=tens)
    assert np.allclose(weights_of(onnx_policy(path, naming=tens, labels=[20, 10]))[:, 1], TREATED, atol=1e-6)
