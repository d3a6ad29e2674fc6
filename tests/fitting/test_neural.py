"""Neural features: trained on the kernel loss, run in NumPy, and usable as a class for a bound."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import accountable_ope as aope
from accountable_ope import InvalidFile, InvalidInput, MissingExtra, RandomFourier, Transitions
from accountable_ope.classes.linear_q import LinearQ
from accountable_ope.environments import PlantedMDP
from accountable_ope.fitting.least_loss import fit_q
from accountable_ope.fitting.neural import (
    NeuralCandidate,
    NeuralFeatures,
    select_neural_features,
    train_neural_features,
)
from accountable_ope.fitting.training import NeuralTraining
from accountable_ope.problem.policy import state_action_points

KERNEL = aope.Gaussian(1.0)
MDP = PlantedMDP(seed=1, features=10)
HELD_OUT = 0.3


def points_of(data: Transitions) -> np.ndarray:
    return state_action_points(data.states, data.actions, MDP.policy)


def loss_of(q: LinearQ, data: Transitions) -> float:
    return aope.statistics.v_statistic(
        aope.statistics.bellman_residuals(q, data, MDP.policy, MDP.discount), points_of(data), KERNEL
    )


def short(data: Transitions, seed: int = 0, steps: int = 60, restarts: int = 1) -> NeuralTraining:
    return train_neural_features(
        data,
        MDP.policy,
        discount=MDP.discount,
        kernel=KERNEL,
        dimension=4,
        hidden=(8,),
        steps=steps,
        batch=64,
        restarts=restarts,
        seed=seed,
    )


@pytest.fixture(scope="module")
def data() -> Transitions:
    return MDP.sample(np.random.default_rng(0), trajectories=60, length=50)


@pytest.fixture(scope="module")
def few(data: Transitions) -> Transitions:
    part = data.rows(slice(0, 500))
    ended = np.arange(500) % 50 == 49
    return Transitions(part.states, part.actions, part.rewards, part.next_states, ended, part.episodes)


@pytest.fixture(scope="module")
def trained(data: Transitions) -> NeuralTraining:
    start = time.perf_counter()
    training = train_neural_features(data, MDP.policy, discount=MDP.discount, kernel=KERNEL, held_out=HELD_OUT)
    print(f"{time.perf_counter() - start:.1f} s, held-out loss {training.held_out_loss:.3g}")
    assert time.perf_counter() - start < 120
    return training


def test_trained_features_beat_as_many_random_ones(data: Transitions, trained: NeuralTraining) -> None:
    """The same rows, the same V-statistic, both fitted in closed form on the same earlier rows.

    Random features with the seed of the MDP would be the planted class itself, so their seeds are others. The held-out rows chose
    the step of the network, so they flatter it; fresh rows do not.
    """
    fitting, held_out = data.split(1 - HELD_OUT)
    fresh = MDP.sample(np.random.default_rng(1), trajectories=60, length=50)
    random = [
        fit_q(fitting, MDP.policy, kernel=KERNEL, features=RandomFourier(10, seed=s), discount=MDP.discount) for s in (0, 7, 8)
    ]
    assert loss_of(trained.q, held_out) == pytest.approx(trained.held_out_loss, rel=1e-9)
    for name, rows, factor in (("held out", held_out, 0.5), ("fresh", fresh, 0.7)):
        own, truth, others = loss_of(trained.q, rows), loss_of(MDP.q, rows), [loss_of(q, rows) for q in random]
        print(f"{name}: neural {own:.3g}, the truth {truth:.3g}, random Fourier", *(f"{loss:.3g}" for loss in others))
        assert own < factor * min(others)


def test_the_fitted_q_gives_the_value(trained: NeuralTraining) -> None:
    branches = MDP.policy.branches(MDP.start_states)
    value = float(np.mean(sum(b.weights * trained.q(MDP.start_states, b.actions) for b in branches)))
    assert value == pytest.approx(MDP.value, abs=0.1)


def test_history_ends_by_patience_or_steps_and_the_best_look_is_kept(trained: NeuralTraining) -> None:
    losses = [look.held_out_loss for look in trained.history]
    assert trained.history[0].step == 0 and trained.history[0].training_loss is None
    assert trained.held_out_loss == pytest.approx(min(losses), rel=1e-9)
    assert min(losses) < 0.5 * losses[0]
    assert all(look.training_loss is not None and look.training_loss > 0 for look in trained.history[1:])


def test_training_stops_when_the_held_out_loss_does_not_improve(few: Transitions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accountable_ope.fitting.training.EVALUATE_EVERY", 2)
    monkeypatch.setattr("accountable_ope.fitting.training.PATIENCE", 3)
    history = short(few, steps=2000).history
    least = int(np.argmin([look.held_out_loss for look in history]))
    assert history[-1].step < 2000
    assert len(history) - 1 - least == 3


def test_numpy_features_are_the_torch_forward_pass(data: Transitions, trained: NeuralTraining) -> None:
    features = trained.features
    layers: list[torch.nn.Module] = []
    for w, b in zip(features.weights, features.biases, strict=True):
        linear = torch.nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
        linear.load_state_dict({"weight": torch.tensor(w), "bias": torch.tensor(b)})
        layers += [linear, torch.nn.Tanh()]
    points = points_of(data)
    with torch.no_grad():
        forward = torch.nn.Sequential(*layers)(torch.tensor(points)).numpy()
    assert features(points) == pytest.approx(forward * features.scale, abs=1e-12)
    assert features.dimension == forward.shape[1] == 10
    assert features.intercept is True and isinstance(features, aope.classes.FeatureMap)


def test_the_loss_in_torch_is_the_v_statistic(few: Transitions) -> None:
    """One step over all rows, too small to change anything: its loss is that of the closed form on the starting network."""
    training = train_neural_features(
        few,
        MDP.policy,
        discount=MDP.discount,
        kernel=KERNEL,
        dimension=3,
        hidden=(5,),
        held_out=0.3,
        steps=1,
        batch=10_000,
        learning_rate=1e-12,
        ridge=1e-9,
    )
    fitting, _ = few.split(0.7)
    q = fit_q(fitting, MDP.policy, kernel=KERNEL, features=training.features, discount=MDP.discount, ridge=1e-9)
    assert training.history[1].training_loss == pytest.approx(loss_of(q, fitting), rel=1e-3)
    lasting = Transitions(fitting.states, fitting.actions, fitting.rewards, fitting.next_states)
    assert training.history[1].training_loss != pytest.approx(loss_of(q, lasting), rel=0.1)  # ends of episodes matter here


def test_typical_features_have_norm_one(data: Transitions, trained: NeuralTraining) -> None:
    fitting, held_out = data.split(1 - HELD_OUT)
    assert np.mean(np.sum(trained.features(points_of(fitting)) ** 2, axis=1)) == pytest.approx(1, abs=1e-6)
    assert np.mean(np.sum(trained.features(points_of(held_out)) ** 2, axis=1)) == pytest.approx(1, abs=0.2)


def test_training_depends_on_the_seed_only(few: Transitions) -> None:
    threads = torch.get_num_threads()
    first = short(few)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            second = short(few)
    finally:
        torch.set_num_threads(threads)
    assert first.features.digest == second.features.digest
    assert np.array_equal(first.q.theta, second.q.theta)
    assert first.history == second.history
    assert short(few, seed=1).features.digest != first.features.digest


def test_held_out_rows_choose_the_step_and_nothing_else(few: Transitions) -> None:
    """Other held-out rows, same training rows: the network goes through the same training losses."""
    _, later = few.split(0.7)
    cut = len(few) - len(later)
    rewards = few.rewards.copy()
    rewards[cut:] = rewards[cut:][::-1]
    other = Transitions(few.states, few.actions, rewards, few.next_states, few.terminated, few.episodes)
    first, second = short(few), short(other)
    assert [look.training_loss for look in first.history] == [look.training_loss for look in second.history]
    assert [look.held_out_loss for look in first.history] != [look.held_out_loss for look in second.history]


def test_torch_is_left_as_it_was(few: Transitions) -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    torch.set_num_threads(2)
    try:
        short(few)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()


def test_features_survive_a_file(tmp_path: Path, data: Transitions, trained: NeuralTraining) -> None:
    path = tmp_path / "features.npz"
    trained.features.save(path)
    loaded = NeuralFeatures.load(path)
    assert np.array_equal(loaded(points_of(data)), trained.features(points_of(data)))
    assert repr(loaded) == repr(trained.features)
    assert not list(tmp_path.glob("*.partial"))
    replace(trained.features, intercept=False).save(path)
    assert NeuralFeatures.load(path).intercept is False


def test_other_files_are_refused(tmp_path: Path) -> None:
    absent, text, array, other = (tmp_path / name for name in ("absent.npz", "text.npz", "array.npy", "other.npz"))
    text.write_text("not a file of arrays")
    np.save(array, np.zeros(3))
    np.savez(other, shapes=np.array([[2, 3]]), parameters=np.zeros(7), scale=np.ones(2), intercept=np.array(True))
    for path in (absent, text, array, other):
        with pytest.raises(InvalidFile, match=re.escape(f"{path} is not a file of saved NeuralFeatures")):
            NeuralFeatures.load(path)


def test_trained_features_run_without_torch(tmp_path: Path, trained: NeuralTraining) -> None:
    path = tmp_path / "features.npz"
    trained.features.save(path)
    code = (
        "import sys; sys.modules['torch'] = None; import numpy as np; from accountable_ope.fitting.neural import NeuralFeatures; "
        f"print(NeuralFeatures.load({str(path)!r})(np.zeros((1, 3))).sum())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(answer.stdout) == pytest.approx(float(trained.features(np.zeros((1, 3))).sum()), abs=1e-12)


def test_training_without_torch_names_the_extra(few: Transitions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=re.escape('pip install "accountable-ope[neural]"')):
        short(few)


def test_a_bound_over_trained_features(data: Transitions) -> None:
    """Trained on the earlier half, bounded on the later half."""
    mdp = PlantedMDP(seed=2, features=5, discount=0.6)
    rows = mdp.sample(np.random.default_rng(3), trajectories=40, length=50)
    earlier, later = rows.split(0.5)
    training = train_neural_features(earlier, mdp.policy, discount=mdp.discount, kernel=KERNEL, steps=300)
    facts = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1), norm_bound=10.0, reward_noise=False)
    interval = aope.bound_value(aope.Problem(later, mdp.starts, mdp.policy, facts), kernel=KERNEL, features=training.features)
    assert interval.outcome is aope.Status.OK
    assert interval.lower < mdp.value < interval.upper
    assert interval.check()
    assert any(training.features.digest in line.text for line in interval.premises)


def test_selection_keeps_the_best_networks(few: Transitions) -> None:
    candidates = (NeuralCandidate((4,), 2, 0), NeuralCandidate((8,), 5, 1), NeuralCandidate((), 3, 2))
    seen: list[float] = []
    chosen = select_neural_features(
        few,
        MDP.policy,
        discount=MDP.discount,
        kernel=KERNEL,
        candidates=candidates,
        steps=60,
        batch=64,
        progress=seen.append,
    )
    losses = [training.held_out_loss for training in chosen.trainings]
    assert losses == sorted(losses) and len(losses) == 3
    assert [training.features.dimension for training in chosen.trainings] == [one.dimension for one in chosen.candidates]
    assert chosen.features == tuple(training.features for training in chosen.trainings[:2])
    assert seen == sorted(seen) and seen[-1] == 1.0
    with pytest.raises(InvalidInput, match="`keep` must not exceed the number of candidates"):
        select_neural_features(few, MDP.policy, discount=0.9, kernel=KERNEL, candidates=candidates, keep=4)


def test_restarts_take_the_best(few: Transitions) -> None:
    several, one = short(few, restarts=3), short(few)
    assert several.held_out_loss < one.held_out_loss
    assert several.features.digest != one.features.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": 1.5}, "`discount` must be in [0, 1]. Got 1.5."),
        ({"held_out": 1.0}, "`held_out` must be in (0, 1). Got 1.0."),
        ({"held_out": 1e-6}, "`held_out` 1e-06 leaves fewer than two transitions"),
        ({"dimension": 0}, "`dimension` must be a whole number of at least 1."),
        ({"hidden": (0,)}, "`hidden` must be a whole number of at least 1."),
        ({"steps": 0}, "`steps` must be a whole number of at least 1."),
        ({"batch": 1}, "`batch` must be a whole number of at least 2."),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive."),
        ({"ridge": -1.0}, "`ridge` must not be negative."),
        ({"restarts": 0}, "`restarts` must be a whole number of at least 1."),
        ({"seed": -1}, "`seed` must be a whole number of at least 0."),
    ],
)
def test_refusals(few: Transitions, changes: dict[str, object], message: str) -> None:
    without_episodes = Transitions(few.states, few.actions, few.rewards, few.next_states)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        train_neural_features(without_episodes, MDP.policy, **({"discount": 0.9, "kernel": KERNEL} | changes))


def test_layers_must_fit_together(trained: NeuralTraining) -> None:
    with pytest.raises(InvalidInput, match="must fit together"):
        NeuralFeatures((np.zeros((4, 3)), np.zeros((2, 5))), (np.zeros(4), np.zeros(2)), np.ones(2))
    with pytest.raises(InvalidInput, match=re.escape("take 3-d points (s, a). Got 2-d ones.")):
        trained.features(np.zeros((1, 2)))
