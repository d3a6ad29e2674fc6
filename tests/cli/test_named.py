"""Policies and estimates that the command line names: ONNX files and rules, in the names of the log."""

import json
import pickle

import numpy as np
import pytest

import accountable_ope as aope
import onnx_files
from accountable_ope.cli.comparing import _named
from command import aope_command

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

NAMES = aope.Naming(["lactate", "age"], ["wait", "treat"])
COMMON = (
    "--discount", 0.5, "--reward-range", 0, 1, "--norm-bound", 5, "--features", 8, "--bandwidth", 1, "--radius", "azuma",
)  # fmt: skip
LABELS = ("--policy-labels", "wait,treat")
RULE = "treat if lactate > 0.5 else wait"
CODE = """
import numpy as np

def rule(states):
    return np.eye(2)[(states[:, 0] > 0.5).astype(int)]

def far_too_high(states, actions):
    return 0.9 + 1.0 * (actions == 1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("named")
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(size=(400, 2)), rng.integers(0, 2, 400)
    rewards = 0.5 * states[:, 0] * (actions == 1)
    data = aope.Transitions(states, actions, rewards, rng.uniform(size=(400, 2)), episodes=np.arange(400) // 4)
    aope.save_transitions(data.named(NAMES), here / "log.parquet")
    (here / "policies.py").write_text(CODE)
    # logits that follow the rule: 1000 (lactate - 0.5)
    onnx_files.linear(here / "policy.onnx", [[0.0, 1000.0], [0.0, 0.0]], bias=[0.0, -500.0])
    onnx_files.linear(here / "swapped.onnx", [[1000.0, 0.0], [0.0, 0.0]], bias=[-500.0, 0.0])
    onnx_files.linear(here / "out.onnx", [[0.0, 1000.0], [0.0, 0.0]], bias=[0.0, -500.0], output="out")
    onnx_files.linear(here / "q.onnx", [[0.0, 0.0], [0.0, 0.0]], bias=[0.9, 1.9], output="values")
    onnx_files.linear(here / "wide.onnx", np.zeros((3, 2)))
    onnx_files.linear(here / "nan.onnx", np.zeros((2, 2)), bias=[np.nan, 0.0])
    (here / "model.pkl").write_bytes(pickle.dumps(print))
    (here / "pickle.onnx").write_bytes(pickle.dumps(print))
    (here / "garbage.onnx").write_bytes(b"garbage")
    return here


def bounds_of(folder, *policy):
    done = aope_command("bound", "log.parquet", *COMMON, "--policy", *policy, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["intervals"][0]
    return found["lower"], found["upper"]


def test_a_rule_a_model_and_a_function_are_one_policy(folder):
    by_function = bounds_of(folder, "policies:rule")
    assert bounds_of(folder, RULE) == by_function
    assert bounds_of(folder, "treat if lactate > 0.5 and age > -1 else 'wait'") == by_function
    by_model = bounds_of(folder, "policy.onnx", *LABELS)
    assert by_model == pytest.approx(by_function, abs=0.02)  # a softmax, not a step
    assert bounds_of(folder, "out.onnx", "--policy-output", "logits", *LABELS) == by_model
    swapped = bounds_of(folder, "swapped.onnx", "--policy-labels", "treat, wait")
    assert swapped == pytest.approx(by_model, abs=1e-6)


def test_a_comparison_knows_the_order_of_its_models(folder):
    command = ("compare", "log.parquet", *COMMON, "--policy", RULE, "--policy", "policy.onnx")
    found = aope_command(*command, *LABELS, "--json", cwd=folder)
    assert found.returncode == 0, found.stderr
    one, two = json.loads(found.stdout)["policies"][:2]
    assert one["lower"] == pytest.approx(two["lower"], abs=0.02)
    refused = aope_command(*command, cwd=folder)
    assert refused.returncode == 2 and "--policy-labels" in refused.stderr
    alone = aope_command("compare", "log.parquet", *COMMON, "--policy", RULE, *LABELS, cwd=folder)
    assert alone.returncode == 2 and "no effect" in " ".join(alone.stderr.split())


def test_policies_of_a_comparison_have_names_where_somebody_gives_them(folder):
    command = ("compare", "log.parquet", *COMMON, "--no-logged-policy", "--json")
    done = aope_command(*command, "--policy", f"by hand={RULE}", "--policy", "never=wait", "--best", "never", cwd=folder)
    assert done.returncode == 2 and "no column" not in done.stderr  # a name is one word
    named = ("--policy", f"by-hand={RULE}", "--policy", "never=wait", "--policy", "model=policy.onnx", *LABELS)
    found = json.loads(aope_command(*command, *named, cwd=folder).stdout)
    assert [each["name"] for each in found["policies"]] == ["by-hand", "never", "model"]
    unnamed = ("--policy", RULE, "--policy", "wait", "--policy", "policy.onnx", *LABELS)
    plain = json.loads(aope_command(*command, *unnamed, cwd=folder).stdout)
    assert [each["lower"] for each in found["policies"]] == [each["lower"] for each in plain["policies"]]
    twice = aope_command(*command, "--policy", "new=wait", "--policy", "new=treat", cwd=folder)
    assert twice.returncode == 2 and "different policies" in twice.stderr


@pytest.mark.parametrize(
    ("text", "name", "where"),
    [
        ("new=policy.onnx", "new", "policy.onnx"),
        ("careful = no", "careful = no", "careful = no"),
        (f"careful={RULE}", "careful", RULE),
        ("treat if lactate>=1 else wait", "treat if lactate>=1 else wait", "treat if lactate>=1 else wait"),
        ("lactate==1", "lactate==1", "lactate==1"),
        ("a=treat if kind == 'x=y' else wait", "a", "treat if kind == 'x=y' else wait"),
    ],
)
def test_what_is_a_name_and_what_a_rule(text, name, where):
    assert _named(text) == (name, where)


def test_it_is_said_which_column_is_taken_for_which_action(folder):
    log = aope.load_transitions(folder / "log.parquet")
    aope.save_transitions(log.named(aope.Naming(NAMES.states, ["a", "b"])), folder / "sorted.parquet")
    done = aope_command("bound", "sorted.parquet", *COMMON, "--policy", "policy.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "policy.onnx: its columns are taken for a, b, in this order." in done.stderr


def test_an_estimate_in_a_file_is_diagnosed_in_the_names_of_the_log(folder):
    command = ("diagnose", "log.parquet", *COMMON, "--policy", RULE, "--q")
    shown = aope_command(*command, "q.onnx", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "REJECTED" in shown.stdout
    assert "lactate" in shown.stdout and "action treat" in shown.stdout and "too high" in shown.stdout
    assert "Rows to look at" in shown.stdout and "the estimate says 1.9" in shown.stdout
    by_file = json.loads(aope_command(*command, "q.onnx", "--json", cwd=folder).stdout)
    by_function = json.loads(aope_command(*command, "policies:far_too_high", "--json", cwd=folder).stdout)
    assert by_file["verdict"] == by_function["verdict"] == "REJECTED"
    assert by_file["loss"] == pytest.approx(by_function["loss"], rel=1e-5)
    data = aope.load_transitions(folder / "log.parquet")
    for row in by_file["rows"]:
        assert row["state"] == data.states[row["row"]].tolist()
        assert row["reward"] == data.rewards[row["row"]]
        assert row["residual"] == pytest.approx(row["reward"] + row["onward"] - row["q"])
        assert row["action"] in NAMES.actions
        assert row["place"] == f"row {row['row']}"
    corrected = aope_command("correct", "log.parquet", *COMMON, "--policy", RULE, "--q", "q.onnx", "--json", cwd=folder)
    assert corrected.returncode in (0, 3), corrected.stderr
    assert json.loads(corrected.stdout)["estimate_before"] == pytest.approx(by_file["estimate"])


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (["__import__('os').system('touch sprung')"], "The rule"),
        (["treat if lactate.real > 2 else wait"], "a dot after a name"),
        (["treat if open('sprung') > 2 else wait"], "a call"),
        (["treat if weight > 2 else wait"], "`weight`, which is no column of the state (lactate, age)"),
        (["poison if lactate > 2 else wait"], "'poison', which is none of the actions (wait, treat)"),
        (["if lactate == 1: treat"], "The rule 'if lactate == 1: treat' cannot be read"),
        (["lactate > 2: treat"], '"A if column > 2 else B"'),
        (["my folder/policies.py:rule"], "module:function"),
        (["nonsense"], "module:function"),
        (["policies.py"], "module:function"),
        (["model.pkl"], "pickle"),
        (["pickle.onnx"], "pickle"),
        (["garbage.onnx"], "cannot be read as an ONNX model"),
        (["none.onnx"], "There is no file"),
        (["policy.onnx"], "the actions of the log are in an order of their own (wait, treat)"),
        (["policy.onnx", "--policy-labels", "wait,poison"], "'poison', which is none of the actions of the log (wait, treat)"),
        (["policy.onnx", "--policy-labels", "wait,wait"], "a different action for each column"),
        (["policy.onnx", "--policy-labels", "wait"], "answers 2 logits per state, but labels are given for 1"),
        (["wide.onnx", *LABELS], "declared for 3 numbers per row, but states have 2"),
        (["nan.onnx", *LABELS], "NaN or infinity at"),
        (["out.onnx"], "--policy-output"),
        (["out.onnx", "--policy-output", "probabilities", *LABELS], "sum to one"),
        ([RULE, "--policy-output", "logits"], "has no effect"),
        ([RULE, *LABELS], "has no effect"),
    ],
)
def test_what_is_no_policy_is_one_sentence(folder, policy, words):
    before = sorted(folder.iterdir())
    done = aope_command("bound", "log.parquet", *COMMON, "--policy", *policy, cwd=folder)
    told = " ".join(done.stderr.split())
    assert done.returncode == 2, done.stdout
    assert words in told
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_what_is_for_a_model_is_refused_without_one(folder):
    for words in (LABELS, ("--policy-output", "logits")):
        done = aope_command("bound", "log.parquet", *COMMON, *words, cwd=folder)
        assert done.returncode == 2 and f"{words[0]} is for a policy in an ONNX file" in " ".join(done.stderr.split())


def test_no_result_replaces_a_model(folder):
    content = (folder / "q.onnx").read_bytes()
    done = aope_command("correct", "log.parquet", *COMMON, "--policy", RULE, "--q", "q.onnx", "--output", "q.onnx", cwd=folder)
    assert done.returncode == 2
    assert (folder / "q.onnx").read_bytes() == content


def test_normal_actions_are_bounded_and_checked(tmp_path):
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-1, 1, (300, 1)), rng.normal(size=(300, 1))
    rewards = 0.5 + 0.4 * np.tanh(states[:, 0] * actions[:, 0])
    log = aope.Transitions(states, actions, rewards, rng.uniform(-1, 1, (300, 1)), episodes=np.arange(300))
    aope.save_transitions(log, tmp_path / "log.parquet")
    code = "import accountable_ope as aope\n\npolicy = aope.GaussianPolicy(lambda states: -0.5 * states, 0.1)\n"
    (tmp_path / "normal_policies.py").write_text(code)
    common = ("log.parquet", "--policy", "normal_policies:policy", "--discount", 0.5, "--reward-range", 0, 1)
    assert aope_command("check", *common, cwd=tmp_path).returncode == 0
    done = aope_command("bound", *common, "--norm-bound", 5, "--features", 20, "--bandwidth", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refused = aope_command("bound", *common, cwd=tmp_path)
    assert refused.returncode == 2 and "policy.sampled" in refused.stderr
