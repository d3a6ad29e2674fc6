"""How a network is trained on the kernel loss: Adam on minibatches, stopped early by the held-out rows. The only use of torch."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import checked
from ..classes.linear_q import LinearQ
from ..classes.neural import NeuralFeatures, hidden_layers
from ..errors import InvalidInput, MissingExtra
from ..kernels.kernel import Kernel, block
from ..kernels.products import Progress
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import Transitions
from ..programs.quadratic import Quadratic
from ..statistics.bellman import bellman_residuals
from ..statistics.statistic import v_statistic
from ..validation import FloatArray, IntArray, number
from .least_loss import fit_q, minimize_loss

EVALUATE_EVERY = 50
"""Steps between two looks at the held-out loss."""

PATIENCE = 8
"""Looks without improvement after which training stops."""

EVALUATION_ROWS = 4000
"""Transitions, evenly spaced, that a look uses of either part: it costs their square."""


@dataclass(frozen=True)
class TrainingLook:
    """One look: the mean loss of the minibatches since the last one (None before the first step), and the held-out loss."""

    step: int
    training_loss: float | None
    held_out_loss: float


@checked
@dataclass(frozen=True, eq=False)
class NeuralTraining:
    """What training gives.

    Attributes
    ----------
    features : NeuralFeatures
        The hidden layers at the step with the least held-out loss.
    q : LinearQ
        The Q of their span that minimizes the V-statistic of the training part.
    held_out_loss : float
        The V-statistic of q on the held-out part, which chose the step: it is a little too good.
    history : tuple of TrainingLook
        The looks of the best restart.
    """

    features: NeuralFeatures
    q: LinearQ
    held_out_loss: float
    history: tuple[TrainingLook, ...]


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """The two parts of the data, and the first as arrays: next points of every branch (n, B, d) with weights (n, B).

    A terminal next state has weights 0, so it is worth 0 whatever the network says.
    """

    training: Transitions
    held_out: Transitions
    policy: Policy
    kernel: Kernel
    discount: float
    ridge: float
    points: FloatArray
    next_points: FloatArray
    next_weights: FloatArray
    units: FloatArray

    @classmethod
    def of(
        cls, data: Transitions, policy: Policy, kernel: Kernel, discount: float, ridge: float, held_out: float
    ) -> TrainingProblem:
        """Everything checked, and the policy's branches at the next states of the first part."""
        if not 0 <= number(discount, "discount") <= 1:
            raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
        if number(ridge, "ridge") < 0:
            raise InvalidInput(f"`ridge` must not be negative. Got {ridge!r}.")
        if not 0 < number(held_out, "held_out") < 1:
            raise InvalidInput(f"`held_out` must be in (0, 1). Got {held_out!r}.")
        try:
            training, rest = data.split(1 - held_out)
        except InvalidInput as error:
            raise InvalidInput(f"`held_out` {held_out!r} leaves fewer than two transitions on one side of the split.") from error
        points = state_action_points(training.states, training.actions, policy)
        live = (~training.terminated).astype(np.float64)
        after = training.asked_next_states
        branches = list(policy.branches(after))
        width = branches[0].actions.shape[1]
        if points.shape[1] != training.states.shape[1] + width:
            given = points.shape[1] - training.states.shape[1]
            raise InvalidInput(f"The policy's actions have {width} columns, those of the data {given}.")
        next_points = np.stack([np.concatenate([after, branch.actions], axis=1) for branch in branches], axis=1)
        weights = np.stack([branch.weights * live for branch in branches], axis=1)
        return cls(training, rest, policy, kernel, discount, ridge, points, next_points, weights, np.ones(points.shape[1]))

    def fit(self, features: NeuralFeatures, rows: int | None) -> LinearQ:
        """The Q of the span that fits the training part, or evenly spaced rows of it."""
        part = self.training if rows is None else _spaced(self.training, rows)
        return fit_q(part, self.policy, kernel=self.kernel, features=features, discount=self.discount, ridge=self.ridge)

    def held_out_loss(self, q: LinearQ, rows: int | None) -> float:
        """The V-statistic of q on the held-out part, or on evenly spaced rows of it."""
        part = self.held_out if rows is None else _spaced(self.held_out, rows)
        points = state_action_points(part.states, part.actions, self.policy)
        return v_statistic(bellman_residuals(q, part, self.policy, self.discount), points, self.kernel)


@dataclass(frozen=True)
class TrainingPlan:
    """Widths of all hidden layers, and how they are trained."""

    widths: tuple[int, ...]
    steps: int
    batch: int
    learning_rate: float


def train(
    torch: Any, problem: TrainingProblem, plan: TrainingPlan, rng: np.random.Generator, progress: Progress | None
) -> NeuralTraining:
    """Adam on minibatches from one start; the hidden layers of the look with the least held-out loss."""
    parameters = [torch.from_numpy(array).requires_grad_() for array in _start(problem.points / problem.units, plan.widths, rng)]
    optimizer = torch.optim.Adam(parameters, lr=plan.learning_rate)
    best, unit = _features(parameters, problem), 0.0
    history: list[TrainingLook] = []
    recent: list[float] = []
    for step in range(plan.steps + 1):
        if step % EVALUATE_EVERY == 0 or step == plan.steps:
            features = _features(parameters, problem)
            loss = problem.held_out_loss(problem.fit(features, EVALUATION_ROWS), EVALUATION_ROWS)
            history.append(TrainingLook(step, float(np.mean(recent)) if recent else None, loss))
            recent = []
            least = int(np.argmin([look.held_out_loss for look in history]))
            best = features if least == len(history) - 1 else best
            if progress is not None:
                progress(step / plan.steps)
            if step == plan.steps or len(history) - 1 - least >= PATIENCE:
                break
        rate = 0.5 * plan.learning_rate * (1 + math.cos(math.pi * step / plan.steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = np.sort(rng.choice(len(problem.points), plan.batch, replace=False))
        loss_here = _minibatch_loss(torch, parameters, problem, rows)
        recent.append(float(loss_here.detach()))
        # Adam divides by the size of the gradient plus 1e-8, so losses of 1e-6 need a unit of their own.
        unit = unit or recent[-1] or 1.0
        optimizer.zero_grad()
        (loss_here / unit).backward()
        optimizer.step()
    if progress is not None:
        progress(1.0)
    q = problem.fit(best, None)
    return NeuralTraining(best, q, problem.held_out_loss(q, None), tuple(history))


def _start(points: FloatArray, widths: tuple[int, ...], rng: np.random.Generator) -> list[FloatArray]:
    """[W_1, b_1, W_2, ...]: Glorot's normal weights for standardized inputs, the standardization put into the first layer."""
    parameters: list[FloatArray] = []
    before = points.shape[1]
    for width in widths:
        parameters += [rng.normal(size=(width, before)) * math.sqrt(2 / (width + before)), rng.normal(size=width) * 0.5]
        before = width
    spread = points.std(axis=0)
    spread = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(points).max(axis=0)), spread, 1.0)
    parameters[0] = parameters[0] / spread
    parameters[1] = parameters[1] - parameters[0] @ points.mean(axis=0)
    return parameters


def _minibatch_loss(torch: Any, parameters: list[Any], problem: TrainingProblem, rows: IntArray) -> Any:
    """The V-statistic of the rows, minimized over the output layer, as a tensor that knows its gradient."""
    count, branches = problem.next_weights[rows].shape
    here, after = problem.points[rows], problem.next_points[rows].reshape(count * branches, -1)
    weights = problem.next_weights[rows]
    layer = torch.from_numpy(np.concatenate([here, after]) / problem.units)
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        layer = torch.tanh(layer @ w.T + b)
    onward = layer[count:].reshape(count, branches, -1) * torch.from_numpy(weights)[:, :, None]
    constant = torch.from_numpy(1 - problem.discount * weights.sum(axis=1))
    residuals = torch.column_stack([layer[:count] - problem.discount * onward.sum(dim=1), constant])
    gram = block(problem.kernel, here, here) / count**2
    target = problem.training.rewards[rows]
    Z = residuals.detach().numpy()
    penalized = np.arange(Z.shape[1]) < Z.shape[1] - 1
    loss = Quadratic(Z.T @ gram @ Z, Z.T @ (gram @ target), float(target @ gram @ target))
    # The gradient of a minimum is the gradient at the minimizer, held fixed.
    theta = torch.from_numpy(minimize_loss(loss, penalized, problem.ridge))
    eps = torch.from_numpy(target.copy()) - residuals @ theta
    return eps @ torch.from_numpy(gram) @ eps


def _features(parameters: list[Any], problem: TrainingProblem) -> NeuralFeatures:
    """The network as it is now, in NumPy, columns scaled to root mean square 1 / sqrt(m) over the training points."""
    arrays = [parameter.detach().numpy().copy() for parameter in parameters]
    arrays[0] = arrays[0] / problem.units
    weights, biases = tuple(arrays[::2]), tuple(arrays[1::2])
    size = np.sqrt(np.mean(hidden_layers(weights, biases, problem.points) ** 2, axis=0))
    # A unit that is 0 almost everywhere must not become the loudest one where it is not.
    size = np.maximum(size, 1e-3 * max(float(size.max()), 1e-12))
    return NeuralFeatures(weights, biases, 1 / (size * math.sqrt(len(size))))


def _spaced(data: Transitions, limit: int) -> Transitions:
    """At most `limit` transitions, evenly spaced."""
    if len(data) <= limit:
        return data
    return data.rows(np.unique(np.linspace(0, len(data) - 1, limit).astype(np.int64)))


def imported_torch() -> Any:
    """torch, or the command that installs it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra('Training neural features needs torch: pip install "accountable-ope[neural]".') from error


@contextmanager
def quiet(torch: Any) -> Iterator[None]:
    """One thread, deterministic algorithms, gradients on; all put back, with the random state, when training ends."""
    threads, before = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("error")  # `use_deterministic_algorithms` does the same, and imports a compiler first
    try:
        # Nothing here draws from torch's generator; the fork keeps that true of whatever a version of torch does.
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(before)
