"""Small ONNX files, made on the spot."""

from pathlib import Path

import numpy as np


def save_model(path: Path, nodes, inputs, outputs, weights=()):
    """inputs, outputs: (name, kind, shape); weights: (name, array)."""
    from onnx import TensorProto, checker, helper, numpy_helper

    def declared(values):
        return [helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape) for name, kind, shape in values]

    tensors = [numpy_helper.from_array(array, name) for name, array in weights]
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **node[3]) for node in nodes], "g", declared(inputs), declared(outputs), tensors
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def linear(path, weights, *, output="logits", rows="n", bias=None, kind="FLOAT", columns=None):
    """states @ weights + bias, under any name."""
    w = np.asarray(weights, dtype=np.float32)
    b = np.zeros(w.shape[1], dtype=np.float32) if bias is None else np.asarray(bias, dtype=np.float32)
    return save_model(
        path,
        [("Gemm", ["state", "w", "b"], [output], {})],
        [("state", kind, [rows, w.shape[0]])],
        [(output, "FLOAT", [rows, w.shape[1] if columns is None else columns])],
        [("w", w), ("b", b)],
    )


def probabilities(path, weights):
    """Their softmax."""
    w = np.asarray(weights, dtype=np.float32)
    return save_model(
        path,
        [("MatMul", ["state", "w"], ["z"], {}), ("Softmax", ["z"], ["probabilities"], {"axis": 1})],
        [("state", "FLOAT", ["n", w.shape[0]])],
        [("probabilities", "FLOAT", ["n", w.shape[1]])],
        [("w", w)],
    )


def classifier(path, weights, **classes):
    """Probabilities of ai.onnx.ml, as a converter writes them; classes: classlabels_strings or classlabels_ints."""
    w = np.asarray(weights, dtype=np.float32)
    given = {"coefficients": w.T.reshape(-1).tolist(), "intercepts": [0.0] * w.shape[1], "post_transform": "SOFTMAX"}
    return save_model(
        path,
        [
            ("LinearClassifier", ["state"], ["label", "raw"], {"domain": "ai.onnx.ml", **given, **classes}),
            ("Normalizer", ["raw"], ["probabilities"], {"domain": "ai.onnx.ml", "norm": "L1"}),
        ],
        [("state", "FLOAT", ["n", w.shape[0]])],
        [
            ("label", "STRING" if "classlabels_strings" in classes else "INT64", ["n"]),
            ("probabilities", "FLOAT", ["n", w.shape[1]]),
        ],
    )


def labels(path, weights, values):
    """The name of the largest, whole numbers or text."""
    w = np.asarray(weights, dtype=np.float32)
    text = isinstance(values[0], str)
    return save_model(
        path,
        [
            ("MatMul", ["state", "w"], ["z"], {}),
            ("ArgMax", ["z"], ["i"], {"axis": 1, "keepdims": 0}),
            ("Gather", ["names", "i"], ["label"], {}),
        ],
        [("state", "FLOAT", ["n", w.shape[0]])],
        [("label", "STRING" if text else "INT64", ["n"])],
        [("w", w), ("names", np.array(values, dtype=object if text else np.int64))],
    )


def best(path, weights):
    """The index of the largest."""
    w = np.asarray(weights, dtype=np.float32)
    return save_model(
        path,
        [("MatMul", ["state", "w"], ["z"], {}), ("ArgMax", ["z"], ["action"], {"axis": 1, "keepdims": 0})],
        [("state", "FLOAT", ["n", w.shape[0]])],
        [("action", "INT64", ["n"])],
        [("w", w)],
    )


def roots(path, columns, output="probabilities"):
    """Square roots of the state, which are NaN below 0."""
    return save_model(
        path,
        [("Sqrt", ["state"], [output], {})],
        [("state", "FLOAT", ["n", columns])],
        [(output, "FLOAT", ["n", columns])],
    )


def value(path, state_weights, action_weights, constant=0.0):
    """Q(s, a) = s'u + a'v + constant, of two inputs."""
    u, v = (np.asarray(each, dtype=np.float32).reshape(-1, 1) for each in (state_weights, action_weights))
    return save_model(
        path,
        [
            ("MatMul", ["observation", "u"], ["x"], {}),
            ("MatMul", ["action", "v"], ["y"], {}),
            ("Add", ["x", "y"], ["z"], {}),
            ("Add", ["z", "c"], ["value"], {}),
        ],
        [("observation", "FLOAT", ["n", len(u)]), ("action", "FLOAT", ["n", len(v)])],
        [("value", "FLOAT", ["n", 1])],
        [("u", u), ("v", v), ("c", np.array([constant], dtype=np.float32))],
    )


def indexed_value(path, table):
    """Q(s, a) = s'table[:, a], of a state and the index of an action."""
    t = np.asarray(table, dtype=np.float32).T.copy()
    return save_model(
        path,
        [
            ("Gather", ["t", "action"], ["rows"], {"axis": 0}),
            ("Mul", ["rows", "state"], ["product"], {}),
            ("ReduceSum", ["product", "axes"], ["q"], {"keepdims": 0}),
        ],
        [("state", "FLOAT", ["n", t.shape[1]]), ("action", "INT64", ["n"])],
        [("q", "FLOAT", ["n"])],
        [("t", t), ("axes", np.array([1], dtype=np.int64))],
    )
