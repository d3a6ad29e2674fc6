"""ONNX files: the answers of the model, and one sentence for every file that is none of them."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
import onnx_files
from accountable_ope.adapters import onnx_policy, onnx_q
from accountable_ope.adapters.onnx_models import OnnxModel
from accountable_ope.adapters.onnx_policies import output_of
from accountable_ope.errors import InvalidFile, InvalidInput, MissingExtra

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

WEIGHTS = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, 1.0]])
STATES = np.random.default_rng(0).normal(size=(20, 2))
LOGITS = (STATES.astype(np.float32) @ WEIGHTS.astype(np.float32)).astype(float)
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def weights_of(policy, states=STATES):
    return np.column_stack([branch.weights for branch in policy.branches(states)])


def test_probabilities_logits_and_actions_are_one_policy(tmp_path):
    soft = onnx_policy(onnx_files.probabilities(tmp_path / "p.onnx", WEIGHTS))
    logits = onnx_policy(onnx_files.linear(tmp_path / "l.onnx", WEIGHTS))
    assert np.allclose(weights_of(soft), SOFTMAX, atol=1e-6)
    assert np.allclose(weights_of(logits), SOFTMAX, atol=1e-6)
    best = onnx_policy(onnx_files.best(tmp_path / "b.onnx", WEIGHTS), actions=3)
    assert np.array_equal(weights_of(best), np.eye(3)[LOGITS.argmax(axis=1)])
    named = onnx_policy(tmp_path / "b.onnx", naming=aope.Naming(actions=["a", "b", "c"]))
    assert np.array_equal(weights_of(named), weights_of(best))


def test_vectors_are_one_action_per_state(tmp_path):
    policy = onnx_policy(onnx_files.linear(tmp_path / "a.onnx", WEIGHTS, output="action"))
    (branch,) = policy.branches(STATES)
    assert policy.action_vectors is None
    assert np.allclose(branch.actions, LOGITS, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 8, 64])
def test_a_model_for_so_many_rows_is_asked_for_that_many(tmp_path, rows):
    policy = onnx_policy(onnx_files.linear(tmp_path / "l.onnx", WEIGHTS, rows=rows))
    assert np.allclose(weights_of(policy), SOFTMAX, atol=1e-6)


def test_many_rows_are_asked_in_parts(tmp_path):
    policy = onnx_policy(onnx_files.linear(tmp_path / "l.onnx", WEIGHTS))
    many = np.tile(STATES, (1000, 1))
    assert np.allclose(weights_of(policy, many), np.tile(SOFTMAX, (1000, 1)), atol=1e-6)


def test_declared_action_vectors_are_used(tmp_path):
    path = onnx_files.linear(tmp_path / "l.onnx", WEIGHTS)
    assert onnx_policy(path, actions=[[-1.0], [0.0], [1.0]]).action_vectors.tolist() == [[-1.0], [0.0], [1.0]]
    with pytest.raises(InvalidInput, match="answers 3 logits per state, but there are 2 actions"):
        onnx_policy(path, actions=2)


def test_states_of_another_width_are_refused(tmp_path):
    policy = onnx_policy(onnx_files.linear(tmp_path / "l.onnx", WEIGHTS))
    with pytest.raises(InvalidInput, match="declared for 2 numbers per row, but states have 3"):
        weights_of(policy, np.zeros((4, 3)))


def test_an_answer_that_is_no_number_is_refused(tmp_path):
    policy = onnx_policy(onnx_files.roots(tmp_path / "r.onnx", 2))
    with pytest.raises(InvalidInput, match=r"NaN or infinity at 1 states, first at \[-0.5, 1\]"):
        weights_of(policy, np.array([[0.25, 0.25], [-0.5, 1.0]]))
    q = onnx_q(onnx_files.roots(tmp_path / "q.onnx", 2, output="q"))
    with pytest.raises(InvalidInput, match="NaN or infinity at 1 rows"):
        q(np.array([[-1.0, 1.0]]), np.array([1]))


def test_logits_are_not_taken_for_probabilities(tmp_path):
    path = onnx_files.linear(tmp_path / "l.onnx", WEIGHTS, output="out")
    with pytest.raises(InvalidInput, match="does not say what it is"):
        onnx_policy(path)
    with pytest.raises(InvalidInput, match="sum to one"):
        weights_of(onnx_policy(path, output="probabilities"))
    assert np.allclose(weights_of(onnx_policy(path, output="logits")), SOFTMAX, atol=1e-6)


def test_an_output_of_another_shape_than_declared_is_refused(tmp_path):
    # Without the checker: the file lies about its output.
    import onnx

    path = onnx_files.linear(tmp_path / "l.onnx", WEIGHTS)
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 5
    path.write_bytes(model.SerializeToString())
    with pytest.raises((InvalidFile, InvalidInput)) as caught:
        weights_of(onnx_policy(path, actions=5))
    assert "\n" not in str(caught.value)


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("name", ["model.pkl", "model.onnx", "model.pt", "model.joblib"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_is_refused_and_not_opened(tmp_path, name, protocol):
    trap = tmp_path / "sprung"
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Trap(trap), protocol=protocol))
    for read in (onnx_policy, onnx_q):
        with pytest.raises(InvalidFile, match="pickle"):
            read(path)
    assert not trap.exists()


def test_an_archive_of_pickles_is_refused(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.onnx"
    torch.save({"weights": torch.zeros(2)}, path)
    with pytest.raises(InvalidFile, match="pickle"):
        onnx_policy(path)


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256)) * 20, b"\x08\x08"])
def test_what_is_no_model_is_one_sentence(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    for read in (onnx_policy, onnx_q):
        with pytest.raises(InvalidFile) as caught:
            read(path)
        assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_a_missing_file_and_a_folder_are_one_sentence(tmp_path):
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(InvalidFile, match="There is no file"):
            onnx_policy(path)


def test_a_model_that_names_other_files_is_refused(tmp_path):
    import onnx

    path = onnx_files.linear(tmp_path / "l.onnx", WEIGHTS)
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 24)
    model = onnx.load(path)
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "secret.bin", length=24)
    model.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    with pytest.raises((InvalidFile, InvalidInput)) as caught:
        weights_of(onnx_policy(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [onnx_policy, onnx_q])
def test_no_file_of_the_working_directory_is_read(tmp_path, monkeypatch, read):
    import onnx

    model = onnx.load(onnx_files.linear(tmp_path / "l.onnx", np.zeros((400, 3))))
    onnx.save(model, tmp_path / "parted.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "w.bin").exists()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidFile, match="keeps numbers in other files"):
        read("parted.onnx")


def test_whole_numbers_are_not_cut_off(tmp_path):
    path = onnx_files.save_model(
        tmp_path / "whole.onnx",
        [("Cast", ["state"], ["f"], {"to": 1}), ("MatMul", ["f", "w"], ["logits"], {})],
        [("state", "INT32", ["n", 1])],
        [("logits", "FLOAT", ["n", 2])],
        [("w", np.array([[0, 1]], dtype=np.float32))],
    )
    policy = onnx_policy(path)
    assert np.allclose(weights_of(policy, np.array([[0.0], [-1.0]]))[:, 1], [0.5, 1 / (1 + np.e)])
    for wrong in (0.9, 1e20, -(2.0**31) - 1, 2.0**31):
        with pytest.raises(InvalidInput, match="`state` takes whole numbers from -2147483648 to 2147483647 only"):
            weights_of(policy, np.array([[0.0], [wrong]]))
    with pytest.raises(InvalidInput, match="too large for it"):
        weights_of(onnx_policy(onnx_files.linear(tmp_path / "l.onnx", WEIGHTS)), np.array([[0.0, 1e40]]))


@pytest.mark.parametrize(("name", "wanted"), [("action_probabilities", "probabilities"), ("action_logits", "logits")])
def test_the_name_of_an_output_may_be_of_actions_too(tmp_path, name, wanted):
    path = onnx_files.linear(tmp_path / "l.onnx", np.zeros((2, 2)), bias=[0.5, 0.5], output=name)
    assert output_of(OnnxModel.load(path), None)[1] == wanted
    assert np.allclose(weights_of(onnx_policy(path)), 0.5)


def test_two_inputs_are_no_policy(tmp_path):
    with pytest.raises(InvalidFile, match="one input"):
        onnx_policy(onnx_files.value(tmp_path / "q.onnx", [1.0], [1.0]))


def test_q_of_state_and_vector_of_index_and_of_all_actions(tmp_path):
    states, actions = STATES, np.arange(20) % 3
    vectors = np.array([[0.0], [2.0], [-1.0]])
    two = onnx_q(onnx_files.value(tmp_path / "two.onnx", [1.0, 2.0], [3.0], 0.5), vectors)
    wanted = states @ [1.0, 2.0] + 3.0 * vectors[actions, 0] + 0.5
    assert np.allclose(two(states, actions), wanted, atol=1e-5)
    assert np.allclose(two(states, vectors[actions]), wanted, atol=1e-5)
    every = onnx_q(onnx_files.linear(tmp_path / "all.onnx", WEIGHTS, output="values"))
    assert np.allclose(every(states, actions), LOGITS[np.arange(20), actions], atol=1e-5)
    indexed = onnx_q(onnx_files.indexed_value(tmp_path / "index.onnx", WEIGHTS))
    assert np.allclose(indexed(states, actions), LOGITS[np.arange(20), actions], atol=1e-5)
    rows = onnx_q(onnx_files.linear(tmp_path / "row.onnx", [[1.0], [2.0], [3.0]], output="q"), vectors)
    assert np.allclose(rows(states, actions), wanted - 0.5, atol=1e-5)


def test_q_of_other_shapes_is_refused(tmp_path):
    two = onnx_q(onnx_files.value(tmp_path / "two.onnx", [1.0, 2.0], [3.0, 1.0]))
    with pytest.raises(InvalidInput, match="takes 2 columns beside those of the state"):
        two(STATES, np.zeros((20, 3)))
    with pytest.raises(InvalidInput, match="declared for 2 numbers"):
        two(np.zeros((4, 5)), np.zeros((4, 2)))
    every = onnx_q(onnx_files.linear(tmp_path / "all.onnx", WEIGHTS, output="values"))
    with pytest.raises(InvalidInput, match="value for every action"):
        every(STATES, np.full(20, 3))
    with pytest.raises(InvalidInput, match="actions are vectors"):
        every(STATES, np.zeros((20, 1)))


def test_the_pip_command_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = Path(onnx_files.linear(tmp_path / "l.onnx", WEIGHTS))
    with pytest.raises(MissingExtra, match=r'pip install "accountable-ope\[onnx\]"'):
        onnx_policy(path)
