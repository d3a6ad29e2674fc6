"""What a file says of itself, read from its bytes: nothing that names another file is missed, and nothing is guessed."""

import time

import numpy as np
import pytest

import onnx_files
from accountable_ope.adapters.onnx_graph import UNKNOWN, Maker, maker_of, names_files

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def outside(name="w"):
    tensor = numpy_helper.from_array(np.zeros(3, dtype=np.float32), name)
    onnx.external_data_helper.set_external_data(tensor, "secret.bin", length=12)
    tensor.ClearField("raw_data")
    return tensor


def graph_of(nodes, tensors=(), sparse=()):
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    return helper.make_graph(nodes, "g", [], [value], list(tensors), sparse_initializer=list(sparse))


def models():
    """A model for each place in which a tensor can be, inside and in another file."""
    for tensor in (outside(), numpy_helper.from_array(np.zeros(3, dtype=np.float32), "w")):
        constant = helper.make_node("Constant", [], ["y"], value=tensor)
        indices = numpy_helper.from_array(np.arange(3), "i")
        sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.ones(3, dtype=np.float32), "w"), indices, [5])
        sparse.values.CopyFrom(tensor)
        yield "initializer", tensor, helper.make_model(graph_of([helper.make_node("Identity", ["w"], ["y"])], [tensor]))
        yield "sparse initializer", tensor, helper.make_model(graph_of([], sparse=[sparse]))
        yield "constant", tensor, helper.make_model(graph_of([constant]))
        yield (
            "sparse constant",
            tensor,
            helper.make_model(graph_of([helper.make_node("Constant", [], ["y"], sparse_value=sparse)])),
        )
        branch = helper.make_node("If", ["c"], ["y"], then_branch=graph_of([constant]), else_branch=graph_of([], [tensor]))
        yield "branch", tensor, helper.make_model(graph_of([branch]))
        function = helper.make_function("local", "f", [], ["y"], [constant], [helper.make_opsetid("", 17)])
        yield "function", tensor, helper.make_model(graph_of([]), functions=[function])


def test_tensors_in_other_files_are_found_wherever_they_are():
    for place, tensor, model in models():
        assert names_files(model.SerializeToString()) == (len(tensor.external_data) > 0), place


def test_either_of_both_marks_is_enough():
    tensor = outside()
    tensor.ClearField("external_data")
    assert names_files(helper.make_model(graph_of([], [tensor])).SerializeToString())
    tensor = outside()
    tensor.ClearField("data_location")
    assert names_files(helper.make_model(graph_of([], [tensor])).SerializeToString())


@pytest.mark.parametrize("content", [b"\x3a", b"\x3a\xff", b"\x3a\x05ab", b"\x0b", b"\xff" * 12, b"garbage"])
def test_bytes_that_are_no_model_are_not_guessed(content):
    with pytest.raises(ValueError, match="field|number"):
        names_files(content)


def test_a_forest_is_read_in_no_time():
    floats = np.random.default_rng(0).normal(size=1_000_000).tolist()
    node = helper.make_node("Forest", [], ["y"], values=floats, places=list(range(-1000, 1000)))
    content = helper.make_model(graph_of([node])).SerializeToString()
    begin = time.process_time()
    assert not names_files(content)
    assert time.process_time() - begin < 2


def test_the_maker_of_an_output_names_its_classes(tmp_path):
    weights = np.eye(2)
    text = onnx_files.classifier(tmp_path / "t.onnx", weights, classlabels_strings=["wait", "treat"]).read_bytes()
    assert maker_of(text, "probabilities") == Maker("LinearClassifier", ("wait", "treat"))
    numbers = onnx_files.classifier(tmp_path / "n.onnx", weights, classlabels_ints=[7, -1]).read_bytes()
    assert maker_of(numbers, "probabilities").labels == (7, -1)
    assert maker_of(onnx_files.best(tmp_path / "b.onnx", weights).read_bytes(), "action") == Maker("ArgMax")
    plain = onnx_files.linear(tmp_path / "l.onnx", weights).read_bytes()
    assert maker_of(plain, "logits") == Maker("Gemm")
    assert maker_of(plain, "other") == UNKNOWN
