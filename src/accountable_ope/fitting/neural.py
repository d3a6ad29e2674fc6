"""Neural features: the hidden layers of a small network that was trained on the kernel loss.

Q(x) = constant + w'h(x), h the last hidden layer. What is trained is h: for every minibatch (w, constant) is the minimizer of the
kernel loss given h, so that the network is judged by the class it spans, which is what a bound optimizes over. Features must be
trained on data that the bound does not use, such as the earlier part of a split.

torch is needed to train, and imported by nothing else: trained features run in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..classes.neural import NeuralFeatures
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, part_of
from ..problem.policy import Policy
from ..problem.transitions import Transitions
from ..validation import positive, vector, whole
from .training import NeuralTraining, TrainingPlan, TrainingProblem, imported_torch, quiet, train


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
    torch = imported_torch()
    problem = TrainingProblem.of(data, policy, kernel, discount, ridge, held_out)
    if units is not None:
        sizes = vector(units, "units")
        if len(sizes) != problem.points.shape[1] or not (sizes > 0).all():
            raise InvalidInput(f"`units` must be {problem.points.shape[1]} positive numbers, one per column. Got {units!r}.")
        problem = replace(problem, units=sizes)
    widths = tuple(whole(width, "hidden", least=1) for width in hidden)
    plan = TrainingPlan(
        widths=(*widths, whole(dimension, "dimension", least=1)),
        steps=whole(steps, "steps", least=1),
        batch=min(whole(batch, "batch", least=2), len(problem.training)),
        learning_rate=positive(learning_rate, "learning_rate"),
    )
    whole(seed, "seed", least=0)
    trainings = []
    for restart in range(whole(restarts, "restarts", least=1)):
        report = part_of(progress, restart / restarts, (restart + 1) / restarts)
        with quiet(torch):
            trainings.append(train(torch, problem, plan, np.random.default_rng([seed, restart]), report))
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
