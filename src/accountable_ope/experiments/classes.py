"""The classes of Q that the experiments bound over, chosen on a separate batch of data, as the paper does.

Random Fourier features at the paper's five bandwidths (their union), or two small networks trained on the kernel loss. The norm
bound of a class is twice the norm of its fit to that batch: an assertion, as every norm bound is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..classes.features import RandomFourier
from ..classes.linear_q import LinearQ
from ..classes.neural import NeuralFeatures
from ..environments.softmax import BEHAVIOR_TEMPERATURE, TARGET_TEMPERATURE, softmax_policy
from ..errors import InvalidInput
from ..fitting.least_loss import fit_q
from ..fitting.selection import pessimistic_union
from ..problem.policy import state_action_points
from ..problem.transitions import Transitions
from ..runner.run import trial_seed
from ..statistics.bellman import bellman_residuals
from ..statistics.statistic import u_statistic
from .setting import DISCOUNT, KERNEL, draw_rows

RIDGE = 1e-5
NORM_FACTOR = 2.0
PILOT_ROWS = 10_000
NETWORKS = 2
"""Networks per class, as in the paper: the union of both is bounded over."""

KINDS = ("fourier", "neural")


@dataclass(frozen=True, eq=False)
class QClass:
    """Features with a norm bound, and how far the class is from containing Q.

    held_out_loss: the U-statistic of the fitted Q on data that the fit did not see. It estimates the kernel loss for very many
                   data, 0 for the true Q; where it is small against the squared radius, the class nearly contains Q as far as
                   these data can tell.
    """

    features: RandomFourier | NeuralFeatures
    norm_bound: float
    held_out_loss: float
    fitted: LinearQ


@dataclass(frozen=True)
class Pilot:
    """The separate batch: how many rows, and how long networks are trained on it."""

    rows: int = PILOT_ROWS
    steps: int = 2000

    def draw(self, task: str, name: str) -> Transitions:
        return draw_rows(task, BEHAVIOR_TEMPERATURE, self.rows, trial_seed("pilot", name, task, self.rows))


def q_classes(task: str, kind: str, count: int, pilot: Pilot, folder: Path | None = None) -> tuple[QClass, ...]:
    """The union of classes of one kind with `count` features each. Trained networks are kept in the folder."""
    policy = softmax_policy(task, TARGET_TEMPERATURE)
    batch = pilot.draw(task, "fit")
    if kind == "fourier":
        maps: list[RandomFourier | NeuralFeatures] = list(pessimistic_union(dimension=count, seed=1))
    elif kind == "neural":
        maps = [_network(task, count, index, pilot, batch, folder) for index in range(NETWORKS)]
    else:
        raise InvalidInput(f"`kind` must be one of {', '.join(KINDS)}. Got {kind!r}.")
    check = pilot.draw(task, "check")
    points = state_action_points(check.states, check.actions, policy)
    found = []
    for features in maps:
        fitted = fit_q(batch, policy, kernel=KERNEL, features=features, discount=DISCOUNT, ridge=RIDGE)
        norm = float(np.linalg.norm(fitted.theta[: features.dimension]))
        held_out_loss = u_statistic(bellman_residuals(fitted, check, policy, DISCOUNT), points, KERNEL)
        found.append(QClass(features, NORM_FACTOR * norm, held_out_loss, fitted))
    return tuple(found)


def _network(task: str, count: int, index: int, pilot: Pilot, batch: Transitions, folder: Path | None) -> NeuralFeatures:
    path = None if folder is None else folder / f"network_{task}_{count}_{index}_{pilot.rows}_{pilot.steps}.npz"
    if path is not None and path.exists():
        return NeuralFeatures.load(path)
    from ..fitting.neural import train_neural_features  # torch, only where networks are trained

    trained = train_neural_features(
        batch,
        softmax_policy(task, TARGET_TEMPERATURE),
        discount=DISCOUNT,
        kernel=KERNEL,
        dimension=count,
        hidden=(32,),
        steps=pilot.steps,
        seed=index,
    )
    if path is not None:
        trained.features.save(path)
    return trained.features
