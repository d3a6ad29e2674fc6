"""Fitted Q evaluation with small networks, and a bootstrap over episodes (Le, Voloshin and Yue 2019; Hao et al. 2021).

Q_{k+1} is a network fitted by Adam to r_i + discount E_{a ~ pi} Q_k(s'_i, a), cut to the range of values, and begins at Q_k;
Q_0 is the mean reward forever. The value is the mean over the last quarter of the iterations, since minibatches move it. One
network is fitted to the log, `REFITS` others to logs of as many episodes drawn with replacement, all side by side from weights
of their own. With v the value of the first and s the standard deviation of v* of the others, the interval is v +- t s: training
is too dear for enough refits to see quantiles. It knows nothing of what networks miss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..problem.policy import at_start
from ..problem.problem import Problem
from ..problem.statements import Guarantee, premise
from ..validation import FloatArray, IntArray
from .answer import answered
from .contestant import Contestant, Entry, Needs
from .fitted_q import EPISODES
from .interval import BaselineInterval
from .lstdq import LIMIT

REFITS = 10
WIDTHS = (32, 32)
LEAST_LEFT, MOST_ITERATIONS = 0.02, 80
"""Iterations stop where discount^k is so small, or after so many."""

STEPS, BATCH, RATE = 40, 128, 3e-3
"""Steps of Adam in an iteration, rows of a step, and the learning rate, which falls to a tenth."""

CHUNK = 20_000

Branches = list[tuple[FloatArray, FloatArray]]
"""Points that the policy can come to, and their weights, action by action."""


def neural_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """v +- t_{REFITS - 1} s."""
    from scipy.special import stdtrit

    values = neural_values(entry.problem, rng)
    reach = -float(stdtrit(REFITS - 1, 0.5 * delta)) * float(values[1:].std(ddof=1))
    return answered(
        entry.problem,
        (float(values[0]) - reach, float(values[0]) + reach),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.ASYMPTOTIC,
        premises=(EPISODES, premise("class", "Networks of this size come near Q, and training finds them."), LIMIT),
    )


def neural_values(problem: Problem, rng: np.random.Generator) -> FloatArray:
    """The value by the network of the log, then by those of logs drawn again, (1 + REFITS,)."""
    data, facts = problem.data, problem.assumptions
    assert data.episodes is not None
    points = problem.experience.points
    center, deviation = points.mean(axis=0), points.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)

    def scaled(states: FloatArray, actions: FloatArray) -> FloatArray:
        return np.asarray(np.clip((np.concatenate([states, actions], axis=1) - center) / scale, -10, 10))

    live = np.flatnonzero(~data.terminated)
    after = [
        (scaled(data.next_states[live], each.actions), each.weights) for each in problem.policy.branches(data.next_states[live])
    ]
    low, high = problem.ranges.value
    unit = max(high - low, 1e-300)
    middle = float(np.clip(data.rewards.mean() / max(1 - facts.discount, 0.02), low, high))
    first = [
        (scaled(problem.starts.states, each.actions), each.weights)
        for each in at_start(problem.policy).branches(problem.starts.states)
    ]

    def value_at(networks: Networks, branches: Branches) -> FloatArray:
        parts = [weights * np.clip(middle + unit * networks.everywhere(inputs), low, high) for inputs, weights in branches]
        return np.asarray(np.sum(parts, axis=0))

    networks = Networks.drawn(1 + REFITS, points.shape[1], rng)
    adam, here = Adam(networks), (points - center) / scale
    drawn = [np.arange(len(data)), *(drawn_rows(data.episodes, rng) for _ in range(REFITS))]
    count, found = _iterations(facts.discount), []
    for k in range(count):
        onward = np.zeros((1 + REFITS, len(data)))
        onward[:, live] = value_at(networks, after)
        targets = (data.rewards + facts.discount * onward - middle) / unit
        for _ in range(STEPS):
            rows = np.stack([each[rng.integers(len(each), size=BATCH)] for each in drawn])
            adam.step(networks, here[rows], np.take_along_axis(targets, rows, axis=1), RATE * (1 - 0.9 * k / count))
        if 4 * (k + 1) > 3 * count:
            found.append(value_at(networks, first))
    starts = np.mean(found, axis=0)
    if problem.starts.exact:
        return np.asarray(starts @ problem.starts.weights)
    many = len(problem.starts)
    again = rng.multinomial(many, np.full(many, 1 / many), size=1 + REFITS) / many
    again[0] = 1 / many
    return np.asarray((starts * again).sum(axis=1))


def drawn_rows(episodes: IntArray, rng: np.random.Generator) -> IntArray:
    """The rows of as many episodes, drawn with replacement."""
    many = int(episodes.max()) + 1
    return np.repeat(np.arange(len(episodes)), rng.multinomial(many, np.full(many, 1 / many))[episodes])


@dataclass(frozen=True, eq=False)
class Networks:
    """B networks side by side: weights (B, in, out) and shifts (B, 1, out) of every layer; rectified linear between them."""

    weights: tuple[FloatArray, ...]
    shifts: tuple[FloatArray, ...]

    @classmethod
    def drawn(cls, many: int, inputs: int, rng: np.random.Generator) -> Networks:
        """Weights as He et al. (2015) draw them; the last ones 0, so that all begin with the same Q."""
        sizes = (inputs, *WIDTHS, 1)
        weights = [rng.normal(size=(many, a, b)) * math.sqrt(2 / a) for a, b in pairwise(sizes)]
        weights[-1][:] = 0.0
        return cls(tuple(weights), tuple(np.zeros((many, 1, b)) for b in sizes[1:]))

    @property
    def parameters(self) -> tuple[FloatArray, ...]:
        return (*self.weights, *self.shifts)

    def layers(self, inputs: FloatArray) -> list[FloatArray]:
        """What enters every layer, and the output, for inputs (B, n, d) or, the same for all, (n, d)."""
        found = [inputs]
        for depth, (weight, shift) in enumerate(zip(self.weights, self.shifts, strict=True)):
            linear = found[-1] @ weight + shift
            found.append(linear if depth == len(self.weights) - 1 else np.maximum(linear, 0.0))
        return found

    def everywhere(self, inputs: FloatArray) -> FloatArray:
        """(B, n) for points (n, d)."""
        parts = [self.layers(inputs[k : k + CHUNK])[-1][:, :, 0] for k in range(0, len(inputs), CHUNK)]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(self.weights[0]), 0))

    def gradients(self, inputs: FloatArray, targets: FloatArray) -> tuple[FloatArray, ...]:
        """Of half the mean squared error of each network, in the order of `parameters`."""
        found = self.layers(inputs)
        slope = (found[-1] - targets[:, :, None]) / targets.shape[1]
        of_weights, of_shifts = [], []
        for depth in range(len(self.weights) - 1, -1, -1):
            of_weights.append(found[depth].swapaxes(1, 2) @ slope)
            of_shifts.append(slope.sum(axis=1, keepdims=True))
            if depth:
                slope = (slope @ self.weights[depth].swapaxes(1, 2)) * (found[depth] > 0)
        return (*of_weights[::-1], *of_shifts[::-1])


class Adam:
    """Kingma and Ba (2015), of all parameters in place."""

    def __init__(self, networks: Networks) -> None:
        self.first = [np.zeros_like(each) for each in networks.parameters]
        self.second = [np.zeros_like(each) for each in networks.parameters]
        self.time = 0

    def step(self, networks: Networks, inputs: FloatArray, targets: FloatArray, size: float) -> None:
        self.time += 1
        rate = size * math.sqrt(1 - 0.999**self.time) / (1 - 0.9**self.time)
        slopes = networks.gradients(inputs, targets)
        for each, slope, m, v in zip(networks.parameters, slopes, self.first, self.second, strict=True):
            m += 0.1 * (slope - m)
            v += 0.001 * (slope**2 - v)
            each -= rate * m / (np.sqrt(v) + 1e-8)


def _iterations(discount: float) -> int:
    if discount == 0:
        return 8  # one target, and as many steps as a fit takes
    return (
        MOST_ITERATIONS if discount == 1 else min(MOST_ITERATIONS, max(8, math.ceil(math.log(LEAST_LEFT) / math.log(discount))))
    )


NAME = "neural fqe bootstrap"
NEURAL_FQE = Contestant(
    name=NAME,
    title="Neural fitted Q evaluation, with a bootstrap over episodes",
    source="Le, Voloshin and Yue (2019)",
    guarantee=Guarantee.ASYMPTOTIC,
    needs=Needs(episodes=True, value_range=True),
    interval=neural_interval,
)
