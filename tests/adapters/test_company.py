"""A model answers for each state by itself, or is refused, whichever library it is of."""

import numpy as np
import pytest

import onnx_files
from accountable_ope.adapters import d3rlpy_policy, onnx_policy, onnx_q, sb3_policy, sklearn_policy, sklearn_q, torch_policy
from accountable_ope.adapters.company import ALONE, Company
from accountable_ope.errors import InvalidInput

STATES = np.random.default_rng(0).normal(size=(500, 2))
REFUSED = "must answer for each state by itself"


def asked(policy, states=STATES):
    return [branch.weights for branch in policy.branches(states)]


def of_the_batch(states):
    return 1 / (1 + np.exp(states[:, 0].mean() - states[:, 0]))


CHANCE = np.random.default_rng(0)


def drawn(states):
    return CHANCE.uniform(size=len(states))


def onnx_file(path, kind, name):
    nodes = {
        "batch": [
            ("BatchNormalization", ["state", "one", "zero", "zero", "one"], ["c", "m", "v"], {"training_mode": 1}),
            ("MatMul", ["c", "w"], [name], {}),
        ],
        "drawn": [("RandomNormalLike", ["state"], ["c"], {}), ("MatMul", ["c", "w"], [name], {})],
    }
    ones = [("one", np.ones(2, dtype=np.float32)), ("zero", np.zeros(2, dtype=np.float32)), ("w", np.eye(2, dtype=np.float32))]
    return onnx_files.save_model(path, nodes[kind], [("state", "FLOAT", ["n", 2])], [(name, "FLOAT", ["n", 2])], ones)


@pytest.mark.parametrize("kind", ["batch", "drawn"])
def test_onnx(tmp_path, kind):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    policy = onnx_policy(onnx_file(tmp_path / "p.onnx", kind, "logits"))
    with pytest.raises(InvalidInput, match=REFUSED):
        asked(policy)
    with pytest.raises(InvalidInput, match=REFUSED):
        asked(policy, STATES[:2])
    q = onnx_q(onnx_file(tmp_path / "q.onnx", kind, "q"))
    with pytest.raises(InvalidInput, match=REFUSED):
        q(STATES, np.zeros(500, dtype=np.int64))


class Fitted:
    classes_ = np.array([0, 1])

    def __init__(self, answer):
        self.answer, self.rows = answer, []

    def predict_proba(self, x):
        self.rows.append(len(x))
        share = self.answer(x)
        return np.column_stack([share, 1 - share])

    def predict(self, x):
        return self.answer(x)


@pytest.mark.parametrize("answer", [of_the_batch, drawn])
def test_estimators_and_algorithms(answer):
    with pytest.raises(InvalidInput, match=REFUSED):
        asked(sklearn_policy(Fitted(answer)))
    with pytest.raises(InvalidInput, match=REFUSED):
        sklearn_q(Fitted(answer))(STATES, STATES[:, :1])
    with pytest.raises(InvalidInput, match=REFUSED):
        asked(d3rlpy_policy(Fitted(answer)))
    with pytest.raises(InvalidInput, match=REFUSED):
        asked(d3rlpy_policy(Fitted(lambda x: (answer(x) > 0.5).astype(int)), actions=2))


def test_torch():
    torch = pytest.importorskip("torch")

    class Centered(torch.nn.Module):
        def forward(self, x):
            return x - x.mean(dim=0)

    for output in ("logits", "actions"):
        with pytest.raises(InvalidInput, match=REFUSED):
            asked(torch_policy(Centered(), output, actions=2 if output == "logits" else None))


def test_stable_baselines():
    sb3, torch = pytest.importorskip("stable_baselines3"), pytest.importorskip("torch")

    class Centered(torch.nn.Module):
        def forward(self, x):
            return x - x.mean(dim=0)

    states = np.random.default_rng(0).normal(size=(50, 4))
    for kind, task, of in (
        ("PPO", "CartPole-v1", "action_net"),
        ("TD3", "Pendulum-v1", "actor.mu"),
        ("PPO", "Pendulum-v1", "action_net"),
    ):
        model = getattr(sb3, kind)("MlpPolicy", task, seed=1, **({"buffer_size": 10} if kind == "TD3" else {}))
        rows = states[:, : model.observation_space.shape[0]]
        assert list(sb3_policy(model, draws=2).branches(rows)) if kind == "PPO" else list(sb3_policy(model).branches(rows))
        outer, _, inner = of.rpartition(".")
        owner = getattr(model.policy, outer) if outer else model.policy
        setattr(owner, inner, torch.nn.Sequential(Centered(), getattr(owner, inner)) if kind == "PPO" else Centered())
        with pytest.raises(InvalidInput, match=REFUSED):
            list(sb3_policy(model, draws=2).branches(rows))


def test_rounding_is_no_difference_and_questions_are_few():
    model = Fitted(lambda x: 1 / (1 + np.exp(-x[:, 0].astype(np.float32))) + 1e-6 * (len(x) > 100))
    policy = sklearn_policy(model)
    for _ in range(20):
        asked(policy)
    assert len(model.rows) == 20 + 1 + ALONE  # once for so many rows
    asked(policy, np.repeat(STATES, 2, axis=0))
    assert len(model.rows) == 20 + 1 + 2 * (1 + ALONE)


def test_a_single_row_has_no_company():
    Company().check(np.ones((1, 1)), lambda rows: np.zeros((1, 1)), np.ones((1, 1)), "A model")
