"""Models of scikit-learn, torch, Stable-Baselines3 and d3rlpy: the policy that each is when deployed."""

import enum
import sys

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.adapters import RegressorQ, d3rlpy_policy, sb3_policy, sklearn_policy, sklearn_q, torch_policy
from accountable_ope.errors import InvalidInput, MissingExtra

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(30, 4)).astype(np.float32).astype(float)


def weights_of(policy, states=STATES):
    return np.column_stack([branch.weights for branch in policy.branches(states)])


# scikit-learn


def classifier(labels):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(STATES, labels)


def test_a_classifier_has_its_probabilities():
    fitted = classifier((STATES[:, 0] > 0).astype(int))
    assert np.allclose(weights_of(sklearn_policy(fitted)), fitted.predict_proba(STATES))


def test_labels_find_their_indices_and_unknown_actions_are_never_taken():
    fitted = classifier(np.where(STATES[:, 0] > 0, "high", "low"))
    policy = sklearn_policy(fitted, naming=aope.Naming(actions=["low", "mid", "high"]))
    found, wanted = weights_of(policy), fitted.predict_proba(STATES)  # of high, low
    assert np.allclose(found, np.column_stack([wanted[:, 1], np.zeros(30), wanted[:, 0]]))
    with pytest.raises(InvalidInput, match="by the labels 'high', 'low'"):
        sklearn_policy(fitted)
    with pytest.raises(InvalidInput, match="'high', which is none of the logged ones"):
        sklearn_policy(fitted, naming=aope.Naming(actions=["low", "mid"]))
    numbers = classifier(np.where(STATES[:, 0] > 0, 2, 0))
    assert weights_of(sklearn_policy(numbers, actions=4)).shape == (30, 4)
    with pytest.raises(InvalidInput, match="index 2, but there are 2"):
        sklearn_policy(numbers, actions=2)


def test_columns_in_another_order_are_refused():
    fitted = classifier((STATES[:, 0] > 0).astype(int))
    fitted.feature_names_in_ = np.array(["a", "b", "c", "d"], dtype=object)
    assert weights_of(sklearn_policy(fitted, naming=aope.Naming(["a", "b", "c", "d"]))).shape == (30, 2)
    with pytest.raises(InvalidInput, match="fitted on the columns a, b, c, d, but the states have b, a, c, d"):
        sklearn_policy(fitted, naming=aope.Naming(["b", "a", "c", "d"]))
    with pytest.raises(InvalidInput, match="LogisticRegression raised ValueError"):
        weights_of(sklearn_policy(fitted), STATES[:, :2])


def test_what_is_no_classifier_is_refused():
    from sklearn.linear_model import LinearRegression, LogisticRegression

    for wrong, words in ((LinearRegression(), "predict_proba"), (LogisticRegression(), "fitted"), (LogisticRegression, "class")):
        with pytest.raises(InvalidInput, match=words):
            sklearn_policy(wrong)


def test_a_regressor_takes_vectors_or_the_index():
    from sklearn.linear_model import LinearRegression

    actions = np.arange(30) % 3
    target = STATES @ [1.0, 2.0, 0.0, -1.0] + np.array([0.0, 5.0, 10.0])[actions]
    vectors = LinearRegression().fit(np.column_stack([STATES, np.eye(3)[actions]]), target)
    index = LinearRegression().fit(np.column_stack([STATES, actions]), target)
    for fitted in (vectors, index):
        assert np.allclose(sklearn_q(fitted, actions=3)(STATES, actions), target)
        assert np.allclose(RegressorQ(fitted, np.eye(3)).predict_value(STATES, actions), target)
    with pytest.raises(InvalidInput, match="takes 3 columns beside those of the state"):
        sklearn_q(vectors)(STATES, np.zeros((30, 2)))
    with pytest.raises(InvalidInput, match="`predict`"):
        sklearn_q(3)


# torch


def test_a_module_is_asked_in_batches_without_gradients():
    torch = pytest.importorskip("torch")
    asked = []

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.drop = torch.nn.Linear(4, 3), torch.nn.Dropout(0.5)

        def forward(self, x):
            asked.append((len(x), torch.is_grad_enabled(), self.training))
            return self.layer(self.drop(x))

    net = Net().train()
    found = weights_of(torch_policy(net, "logits", actions=3, batch=8))
    assert net.training and asked[:4] == [(8, False, False)] * 3 + [(6, False, False)]
    assert not any(trained or gradients for _, gradients, trained in asked)
    with torch.no_grad():
        wanted = torch.softmax(net.layer(torch.as_tensor(STATES, dtype=torch.float32)).double(), dim=1).numpy()
    assert np.allclose(found, wanted)
    (branch,) = torch_policy(net, "actions").branches(STATES)
    assert branch.actions.shape == (30, 3)
    with pytest.raises(InvalidInput, match="sum to one"):
        weights_of(torch_policy(net, "probabilities", actions=3))
    with pytest.raises(InvalidInput, match="`actions` are needed"):
        torch_policy(net, "logits")
    with pytest.raises(InvalidInput, match="one row for each|sum to one|columns"):
        weights_of(torch_policy(net, "actions", actions=3))
    with pytest.raises(InvalidInput, match="raised RuntimeError"):
        weights_of(torch_policy(net, "logits", actions=3), STATES[:, :2])
    with pytest.raises(InvalidInput, match=r"torch\.nn\.Module"):
        torch_policy(lambda x: x, "logits", actions=3)
    broken = torch.nn.Linear(4, 3)
    broken.bias.data.fill_(float("nan"))
    with pytest.raises(InvalidInput, match="NaN or infinity at 30 states"):
        weights_of(torch_policy(broken, "logits", actions=3))


def test_the_pip_command_of_torch_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'pip install "accountable-ope\[neural\]"'):
        torch_policy(None, "logits", actions=2)


# Stable-Baselines3


@pytest.fixture(scope="module")
def sb3():
    return pytest.importorskip("stable_baselines3")


def test_ppo_and_a2c_have_exact_probabilities(sb3):
    import torch

    for kind in (sb3.PPO, sb3.A2C):
        model = kind("MlpPolicy", "CartPole-v1", seed=1)
        policy = sb3_policy(model)
        with torch.no_grad():
            distribution = model.policy.get_distribution(model.policy.obs_to_tensor(STATES.astype(np.float32))[0])
            wanted = distribution.distribution.probs.numpy()  # the network has one distribution, which it changes in place
        assert policy.exact
        assert np.allclose(weights_of(policy), wanted, atol=1e-6)
        best = weights_of(sb3_policy(model, deterministic=True)).argmax(axis=1)
        assert np.array_equal(best, model.predict(STATES.astype(np.float32), deterministic=True)[0])


def test_dqn_is_greedy(sb3):
    model = sb3.DQN("MlpPolicy", "CartPole-v1", seed=1, buffer_size=10)
    policy = sb3_policy(model)
    assert np.array_equal(weights_of(policy).argmax(axis=1), model.predict(STATES.astype(np.float32), deterministic=True)[0])
    assert weights_of(aope.EpsilonGreedy(policy, 0.1)).min() == pytest.approx(0.05)


def test_observations_of_whole_numbers_are_not_cut_off(sb3):
    import gymnasium

    class Counted(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, **_):
            return np.zeros(2, np.uint8), {}

    policy = sb3_policy(sb3.PPO("MlpPolicy", Counted(), seed=1))
    assert weights_of(policy, np.array([[0.0, 255.0], [3.0, 4.0]])).shape == (2, 2)
    for wrong in (0.9, -1.0, 256.0):
        with pytest.raises(
            InvalidInput, match=f"PPO takes whole numbers from 0 to 255 only, and is given others, first {wrong:g}"
        ):
            weights_of(policy, np.array([[0.0, wrong], [3.0, 4.0]]))


def test_td3_takes_one_action(sb3):
    model = sb3.TD3("MlpPolicy", "Pendulum-v1", seed=1, buffer_size=10)
    (branch,) = sb3_policy(model).branches(STATES[:, :3])
    assert np.allclose(branch.actions, model.predict(STATES[:, :3].astype(np.float32), deterministic=True)[0])


@pytest.mark.parametrize("name", ["SAC", "PPO"])
def test_continuous_actors_are_drawn_as_in_use(sb3, name):
    import torch

    more = {"buffer_size": 10} if name == "SAC" else {}
    model = getattr(sb3, name)("MlpPolicy", "Pendulum-v1", seed=1, **more)
    policy = sb3_policy(model, draws=500, seed=3)
    one = STATES[:1, :3]
    drawn = np.array([branch.actions[0, 0] for branch in policy.branches(one)])
    assert not policy.exact and np.abs(drawn).max() <= 2.0
    torch.manual_seed(0)
    own = np.array([model.predict(one.astype(np.float32), deterministic=False)[0][0, 0] for _ in range(500)])
    from scipy.stats import ks_2samp

    assert ks_2samp(drawn, own).pvalue > 1e-3
    again = np.array([branch.actions[0, 0] for branch in policy.branches(one)])
    assert np.array_equal(drawn, again)
    best = next(iter(sb3_policy(model, deterministic=True).branches(one))).actions
    assert np.allclose(best, model.predict(one.astype(np.float32), deterministic=True)[0])


def test_states_are_scaled_as_in_training(sb3):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    env = VecNormalize(make_vec_env("CartPole-v1"))
    env.obs_rms.mean, env.obs_rms.var = np.full(4, 5.0), np.full(4, 4.0)
    model = sb3.PPO("MlpPolicy", env, seed=1)
    plain = sb3.PPO("MlpPolicy", "CartPole-v1", seed=1)
    scaled = np.clip((STATES - 5.0) / np.sqrt(4.0 + env.epsilon), -env.clip_obs, env.clip_obs)
    assert np.allclose(weights_of(sb3_policy(model)), weights_of(sb3_policy(plain), scaled), atol=1e-6)


def test_what_is_no_model_of_sb3_is_refused(sb3):
    model = sb3.PPO("MlpPolicy", "CartPole-v1", seed=1)
    with pytest.raises(InvalidInput, match="observes 4 numbers, but states have 2"):
        weights_of(sb3_policy(model), STATES[:, :2])
    with pytest.raises(InvalidInput, match="2 vectors, as many as the model has actions"):
        sb3_policy(model, actions=[[0.0], [1.0], [2.0]])
    for wrong in (sb3.PPO, 3, object()):
        with pytest.raises(InvalidInput, match="model of Stable-Baselines3"):
            sb3_policy(wrong)


# d3rlpy, by what it looks like


class Kind(enum.Enum):
    CONTINUOUS = 1
    DISCRETE = 2


class Algorithm:
    def __init__(self, kind, answer, size=2):
        self.kind, self.answer, self.action_size = kind, answer, size

    def get_action_type(self):
        return self.kind

    def predict(self, x):
        assert x.ndim == 2
        return self.answer(x)


def test_d3rlpy_is_greedy():
    discrete = Algorithm(Kind.DISCRETE, lambda x: (x[:, 0] > 0).astype(np.int64))
    assert np.array_equal(weights_of(d3rlpy_policy(discrete)).argmax(axis=1), STATES[:, 0] > 0)
    continuous = Algorithm(Kind.CONTINUOUS, lambda x: -x[:, :2].astype(np.float32))
    (branch,) = d3rlpy_policy(continuous).branches(STATES)
    assert np.allclose(branch.actions, -STATES[:, :2])


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (Algorithm(Kind.DISCRETE, lambda x: np.full(len(x), 2)), "indices of 2 actions"),
        (Algorithm(Kind.DISCRETE, lambda x: x), "one action per state"),
        (Algorithm(Kind.DISCRETE, lambda x: x[:3, 0]), "one row for each of 30"),
        (Algorithm(Kind.CONTINUOUS, lambda x: x * np.nan), "NaN or infinity"),
        (Algorithm(Kind.CONTINUOUS, lambda x: 1 / 0), "raised ZeroDivisionError"),
    ],
)
def test_wrong_answers_are_one_sentence(algorithm, words):
    with pytest.raises(InvalidInput, match=words):
        list(d3rlpy_policy(algorithm).branches(STATES))


def test_what_is_no_algorithm_is_refused():
    with pytest.raises(InvalidInput, match="`predict`"):
        d3rlpy_policy(3)
    with pytest.raises(InvalidInput, match="not built yet"):
        d3rlpy_policy(Algorithm(Kind.DISCRETE, None, size=None))
