"""Neural features: the hidden layers of a small network that was trained on the kernel loss.

Q(x) = constant + w'h(x), h the last hidden layer. What is trained is h: for every minibatch (w, constant) is the minimizer of the
kernel loss given h, so that the network is judged by the class it spans, which is what a bound optimizes over. Features must be
trained on data that the bound does not use, such as the earlier part of a split.

torch is needed to train, and imported by nothing else: trained features run in NumPy.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..classes.linear_q import LinearQ
from ..classes.neural import NeuralFeatures, hidden_layers
from ..errors import InvalidInput, MissingExtra
from ..kernels.kernel import Kernel, block
from ..kernels.products import Progress, part_of
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import Transitions
from ..programs.quadratic import Quadratic
from ..statistics.bellman import bellman_residuals
from ..statistics.statistic import v_statistic
from ..validation import FloatArray, IntArray, number, positive, vector, whole
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


@checked
@dataclass(frozen=True)
class NeuralCandidate:
    """One network to train.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers before the last.
    dimension : int
        Width of the last.
    seed : int

    Examples
    --------
    >>> from accountable_ope.fitting import NeuralCandidate
    >>> NeuralCandidate(hidden=(16, 16), dimension=5)
    NeuralCandidate(hidden=(16, 16), dimension=5, seed=0)
    """

    hidden: tuple[int, ...] = (32,)
    dimension: int = 10
    seed: int = 0


DEFAULT_CANDIDATES = (
    NeuralCandidate(seed=0),
    NeuralCandidate(seed=1),
    NeuralCandidate(hidden=(64,), seed=2),
    NeuralCandidate(hidden=(64,), seed=3),
)


@checked
@dataclass(frozen=True, eq=False)
class NeuralSelection:
    """Trained candidates, best first by held-out loss, and those to keep: the union of `features` is the class of a bound.

    Attributes
    ----------
    candidates : tuple of NeuralCandidate
        Best first.
    trainings : tuple of NeuralTraining
        In the same order.
    keep : int
        How many are kept.
    """

    candidates: tuple[NeuralCandidate, ...]
    trainings: tuple[NeuralTraining, ...]
    keep: int

    @property
    def features(self) -> tuple[NeuralFeatures, ...]:
        return tuple(training.features for training in self.trainings[: self.keep])


@checked
def train_neural_features(
    data: Transitions,
    policy: Policy,
    *,
    discount: float,
    kernel: Kernel,
    dimension: int = 10,
    hidden: Sequence[int] = (32,),
    steps: int = 1000,
    batch: int = 256,
    learning_rate: float = 5e-3,
    ridge: float = 1e-6,
    held_out: float = 0.3,
    restarts: int = 1,
    seed: int = 0,
    units: ArrayLike | None = None,
    progress: Progress | None = None,
) -> NeuralTraining:
    """Hidden layers trained by Adam on the kernel loss of minibatches, stopped early by the loss of the held-out (last) rows.

    A minibatch B counts min over (w, constant) of (1/|B|^2) sum_ij eps_i K(x_i, x_j) eps_j, with
    eps_i = r_i + discount E_{a' ~ pi} Q(s'_i, a') - Q(x_i), the expectation a sum over the policy's branches. Its gradient in the
    hidden layers is the one at the minimizing (w, constant). The answer depends on the data and the seed only; the random
    state, threads and modes of torch are left as they were.

    Parameters
    ----------
    data : Transitions
        Rows that the bound does not use.
    policy : Policy
        The target policy.
    discount : float
    kernel : Kernel
        The test kernel.
    dimension : int
        Width of the last hidden layer: the number of features.
    hidden : sequence of int
        Widths of the layers before it.
    steps, batch : int
        Steps of Adam, and rows per minibatch.
    learning_rate : float
    ridge : float
        Penalty on the coefficients, without units.
    held_out : float
        The share of the rows, the last ones, on which training is stopped.
    restarts : int
        Trainings from different weights, of which the best is kept.
    seed : int
    units : array (d,), optional
        What the columns of (s, a) are divided by while training, so that steps do not depend on the units that they are in; by
        default 1. The features that are found take points as they are.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    NeuralTraining

    Raises
    ------
    MissingExtra
        Where torch is not installed.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.fitting import train_neural_features
    >>> kernel = aope.Gaussian(1.0)
    >>> found = train_neural_features(data, mdp.policy, discount=0.6, kernel=kernel, dimension=4, hidden=(8,), steps=5)
    >>> found.features.dimension, found.held_out_loss > 0
    (4, True)
    """
    torch = _torch()
    problem = _Problem.of(data, policy, kernel, discount, ridge, held_out)
    if units is not None:
        sizes = vector(units, "units")
        if len(sizes) != problem.points.shape[1] or not (sizes > 0).all():
            raise InvalidInput(f"`units` must be {problem.points.shape[1]} positive numbers, one per column. Got {units!r}.")
        problem = replace(problem, units=sizes)
    widths = tuple(whole(width, "hidden", least=1) for width in hidden)
    network = _Plan(
        widths=(*widths, whole(dimension, "dimension", least=1)),
        steps=whole(steps, "steps", least=1),
        batch=min(whole(batch, "batch", least=2), len(problem.training)),
        learning_rate=positive(learning_rate, "learning_rate"),
    )
    whole(seed, "seed", least=0)
    trainings = []
    for restart in range(whole(restarts, "restarts", least=1)):
        report = part_of(progress, restart / restarts, (restart + 1) / restarts)
        with _quiet(torch):
            trainings.append(_train(torch, problem, network, np.random.default_rng([seed, restart]), report))
    return min(trainings, key=lambda training: training.held_out_loss)


@checked
def select_neural_features(
    data: Transitions,
    policy: Policy,
    *,
    discount: float,
    kernel: Kernel,
    candidates: Sequence[NeuralCandidate] = DEFAULT_CANDIDATES,
    keep: int = 2,
    steps: int = 1000,
    batch: int = 256,
    learning_rate: float = 5e-3,
    ridge: float = 1e-6,
    held_out: float = 0.3,
    restarts: int = 1,
    progress: Progress | None = None,
) -> NeuralSelection:
    """Trains every candidate and keeps the best two by held-out loss, whose union the paper bounds over (its appendix).

    Parameters
    ----------
    data, policy, discount, kernel
        As in `train_neural_features`.
    candidates : sequence of NeuralCandidate
    keep : int
        How many are kept.
    steps, batch, learning_rate, ridge, held_out, restarts, progress
        As in `train_neural_features`.

    Returns
    -------
    NeuralSelection

    Raises
    ------
    InvalidInput
        Where more are to be kept than there are.
    MissingExtra
        Where torch is not installed.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.fitting import NeuralCandidate, select_neural_features
    >>> networks = [NeuralCandidate((8,), 4, seed) for seed in (0, 1)]
    >>> found = select_neural_features(
    ...     data, mdp.policy, discount=0.6, kernel=aope.Gaussian(1.0), candidates=networks, keep=1, steps=5
    ... )
    >>> len(found.trainings), len(found.features)
    (2, 1)
    """
    listed = tuple(candidates)
    if not 1 <= whole(keep, "keep", least=1) <= len(listed):
        raise InvalidInput(f"`keep` must not exceed the number of candidates ({len(listed)}). Got {keep}.")
    trainings = [
        train_neural_features(
            data,
            policy,
            discount=discount,
            kernel=kernel,
            dimension=candidate.dimension,
            hidden=candidate.hidden,
            steps=steps,
            batch=batch,
            learning_rate=learning_rate,
            ridge=ridge,
            held_out=held_out,
            restarts=restarts,
            seed=candidate.seed,
            progress=part_of(progress, index / len(listed), (index + 1) / len(listed)),
        )
        for index, candidate in enumerate(listed)
    ]
    order = sorted(range(len(listed)), key=lambda index: trainings[index].held_out_loss)
    return NeuralSelection(tuple(listed[i] for i in order), tuple(trainings[i] for i in order), keep)


@dataclass(frozen=True, eq=False)
class _Problem:
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
    def of(cls, data: Transitions, policy: Policy, kernel: Kernel, discount: float, ridge: float, held_out: float) -> _Problem:
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
        branches = list(policy.branches(training.next_states))
        width = branches[0].actions.shape[1]
        if points.shape[1] != training.states.shape[1] + width:
            given = points.shape[1] - training.states.shape[1]
            raise InvalidInput(f"The policy's actions have {width} columns, those of the data {given}.")
        next_points = np.stack([np.concatenate([training.next_states, branch.actions], axis=1) for branch in branches], axis=1)
        weights = np.stack([branch.weights * live for branch in branches], axis=1)
        units = np.ones(points.shape[1])
        return cls(training, rest, policy, kernel, discount, ridge, points, next_points, weights, units)

    def fit(self, features: NeuralFeatures, rows: int | None) -> LinearQ:
        """The Q of the span that fits the training part, or evenly spaced rows of it."""
        part = self.training if rows is None else _spaced(self.training, rows)
        return fit_q(part, self.policy, kernel=self.kernel, features=features, discount=self.discount, ridge=self.ridge)

    def held_out_loss(self, q: LinearQ, rows: int | None) -> float:
        part = self.held_out if rows is None else _spaced(self.held_out, rows)
        points = state_action_points(part.states, part.actions, self.policy)
        return v_statistic(bellman_residuals(q, part, self.policy, self.discount), points, self.kernel)


@dataclass(frozen=True)
class _Plan:
    """Widths of all hidden layers, and how they are trained."""

    widths: tuple[int, ...]
    steps: int
    batch: int
    learning_rate: float


def _train(torch: Any, problem: _Problem, plan: _Plan, rng: np.random.Generator, progress: Progress | None) -> NeuralTraining:
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


def _minibatch_loss(torch: Any, parameters: list[Any], problem: _Problem, rows: IntArray) -> Any:
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


def _features(parameters: list[Any], problem: _Problem) -> NeuralFeatures:
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


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra('Training neural features needs torch: pip install "accountable-ope[neural]".') from error


@contextmanager
def _quiet(torch: Any) -> Iterator[None]:
    """One thread, deterministic algorithms, gradients on; all put back, with the random state, when training ends."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        # Nothing here draws from torch's generator; the fork keeps that true of whatever a version of torch does.
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)
