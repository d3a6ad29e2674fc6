"""A logger that plays against the intervals, and the event on which they hold.

Two tables with a coin each, and a target policy that tosses. To toss pays the coin and ends the episode, to wait leads to the
other table and pays nothing: a wait is no risk to anybody. The logger knows the coins, the radius and delta. It tosses where the
sum of residuals is farther out, until that sum is beyond what the radius allows, and then it waits for the rest of the rows, or
ends the log where the radius allows that: actions, lengths of episodes and the number of rows depend on everything that was
logged. For one fair coin this is the worst case of `crossing.py`, where the probability that a radius fails is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.stats import binomtest

import accountable_ope as aope
from accountable_ope.environments.tabular import TabularMDP
from accountable_ope.problem.statements import Guarantee
from accountable_ope.radii.no_cut import why_no_cut
from accountable_ope.radii.registry import RULES, Approach, RadiusRule
from crossing import Boundary, boundary_of

TRIALS, ROWS, DELTAS = 200, 60, (0.5, 0.1)
FINITE_SAMPLE = [rule.name for rule in RULES if rule.guarantee is not Guarantee.ASYMPTOTIC]
QUICK = ("azuma", "azuma-anytime", "self-normalized")
"""Radii whose program takes milliseconds, and is solved at every log."""

TOSS, WAIT = 0, 1
POINTS = aope.TabularFeatures([[0, TOSS], [0, WAIT], [1, TOSS], [1, WAIT]], intercept=False)
TABULAR = aope.Tabular()
TOLERANCE = 1.01
"""A program bounds the square of an envelope by affine functions, a little from above: a logger that stops at the very boundary
would often stop just inside of what the program allows."""


@dataclass(frozen=True)
class Game:
    """The two coins and where an episode starts; all its assumptions are true, and w = 1 is the range of a toss."""

    coins: tuple[float, float] = (0.5, 0.5)
    start: tuple[float, float] = (1.0, 0.0)
    discount: float = 0.9

    @cached_property
    def mdp(self) -> TabularMDP:
        onward = [[[0, 0, 1], [0, 1, 0]], [[0, 0, 1], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]]
        paid = [[self.coins[0], 0], [self.coins[1], 0], [0, 0]]
        return TabularMDP(onward, paid, self.discount, [*self.start, 0], [False, False, True], bernoulli=True)

    @cached_property
    def policy(self) -> aope.DiscretePolicy:
        return self.mdp.policy([[1, 0]] * 3)

    @cached_property
    def table(self) -> np.ndarray:
        return self.mdp.q_values([[1, 0]] * 3)

    def q(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The true Q."""
        return self.table[states[:, 0].astype(int), np.ravel(actions).astype(int)]

    def value(self, starts: aope.StartStates | None = None) -> float:
        """That of the target policy from the start distribution, or from these states."""
        if starts is None:
            return self.mdp.value([[1, 0]] * 3)
        return float(starts.weights @ self.table[starts.states[:, 0].astype(int), TOSS])

    def norm_in(self, space: aope.kernels.Kernel | aope.RandomFourier) -> float:
        """The least norm of a function that is Q at the four points: in the RKHS of a kernel, or in features with a constant."""
        q, points = self.table[:2].ravel(), POINTS.points
        features = isinstance(space, aope.RandomFourier)
        inverse = np.linalg.inv(space(points) @ space(points).T if features else aope.kernels.block(space, points, points))
        rest = q - inverse.sum(axis=0) @ q / inverse.sum() if features else q
        return float(np.sqrt(rest @ inverse @ rest))

    @property
    def facts(self) -> aope.Assumptions:
        return aope.Assumptions(
            discount=self.discount,
            reward_range=(0, 1),
            terminal_reward=True,
            symmetric_noise=self.coins == (0.5, 0.5),
        )

    def problem(self, data: aope.Transitions, starts: aope.StartStates | None = None, **facts: object) -> aope.Problem:
        return aope.Problem(data, starts or self.mdp.starts(), self.policy, replace(self.facts, **facts))


def chase(
    game: Game, rng: np.random.Generator, rows: int, boundary: Boundary, *, stops: bool, opening: int = 0
) -> aope.Transitions:
    """A log of the logger above; the first `opening` rows do not count for it, since the bound will not use them."""
    sums, variance, logged, episode, beyond = [0.0, 0.0], 0.0, [], 0, False
    state = int(rng.random() >= game.start[0])
    while len(logged) < rows and not (beyond and stops and len(logged) >= 2):
        coin, action = game.coins[state], WAIT if beyond or abs(sums[1 - state]) > abs(sums[state]) else TOSS
        paid, after = float(action == TOSS and rng.random() < coin), 2 if action == TOSS else 1 - state
        logged.append((state, action, paid, after, after == 2, episode))
        if action == TOSS:
            if len(logged) > opening:
                sums[state] += paid - coin
                variance += (paid - coin) ** 2
            episode, after = episode + 1, int(rng.random() >= game.start[0])
        state, counted = after, len(logged) - opening
        if counted > 0 and not beyond:
            beyond = sums[0] ** 2 + sums[1] ** 2 > TOLERANCE * boundary(counted, variance)
    return transitions(logged)


def transitions(logged: list[tuple]) -> aope.Transitions:
    """(state, action, reward, next state, terminated, episode) per row."""
    state, action, paid, after, ended, episode = (np.array(column) for column in zip(*logged, strict=True))
    return aope.Transitions(state[:, None], action, paid, after[:, None], ended, episode)


SOME_ROWS = transitions([(0, TOSS, 1.0, 2, True, 0), (0, TOSS, 0.0, 2, True, 1)])


def allowed_by(game: Game, rule: RadiusRule, rows: int, delta: float, factor: float = 1.0, *, cut: bool = False) -> Boundary:
    """What `factor` times the radius allows to ||S_j||^2, computed once for every number of rows and variance.

    cut: half of delta is that of a cut.
    """
    largest = game.problem(SOME_ROWS).ranges.residual_bound
    observed = max(max(p, 1 - p) for p in game.coins)
    boundary = boundary_of(scaled(rule, factor), rows, delta / 2 if cut else delta, largest, observed)
    known: dict[tuple[int, float], float] = {}

    def allowed(j: int, variance: float) -> float:
        key = (j, round(variance, 9))
        if key not in known:
            known[key] = float(np.ravel(boundary(j, np.array([variance])))[0])
            if rule.approach is Approach.SELF_NORMALIZED:
                known[key] *= factor
        return known[key]

    return allowed


@dataclass(frozen=True)
class Log:
    """Rows, and how many of the trials gave them, up to their order."""

    data: aope.Transitions
    times: int


def logs_of(
    draw: Callable[[np.random.Generator], aope.Transitions], trials: int, *, order_counts: bool = False
) -> tuple[Log, ...]:
    """Logs of seeds 0, 1, ...; equal ones once, since equal rows give equal intervals (in any order, unless that counts)."""
    found: dict[bytes, tuple[aope.Transitions, int]] = {}
    for seed in range(trials):
        data = draw(np.random.default_rng(seed))
        rows = np.column_stack([data.states[:, 0], data.actions, data.rewards, data.next_states[:, 0]])
        key = (rows if order_counts else rows[np.lexsort(rows.T)]).tobytes()
        found[key] = (data, 1 + (found[key][1] if key in found else 0))
    return tuple(Log(data, times) for data, times in found.values())


def margin(
    game: Game,
    problem: aope.Problem,
    rule: RadiusRule,
    delta: float,
    planned: int | None = None,
    *,
    anchored: bool = False,
) -> float:
    """The share of what the radius allows that the loss of the true Q leaves; negative where the event behind the interval fails.

    No class enters but for the weights of a cut, which aim at the value of functions of these four points: on the event the
    interval of every class that holds Q holds the value, whatever the program does. anchored: of a class around an estimate,
    which has no cut.
    """
    evaluation = aope.evaluate(problem, features=POINTS, kernel=TABULAR, anchor=game.q)
    against = why_no_cut(problem, evaluation.classes[0], anchored=anchored, growing=planned is not None)
    member = replace(evaluation.member(0), no_cut=against)
    split = aope.radii.split_delta(delta, start_is_exact=problem.start_is_exact)
    none = np.zeros(member.system.dimension)
    left = []
    for evidence in rule.evidence(member, split.kernel, planned or len(problem.data)).evidence:
        steps = evidence.steps(member.residuals.declared)
        if evidence.scale is not None:  # a bound of steps may come down to the largest in the data, and no further
            observed = float((evidence.scale * np.abs(member.system.target)).max())
            steps = replace(steps, observed=min(steps.largest, observed))
        allowed = evidence.bound(steps, evidence.variance(none)) + evidence.rounding
        left.append((allowed - evidence.squared(none)) / allowed)
    return min(left)


def nearest(logs: Sequence[Log], margins: Sequence[float], many: int) -> Iterator[tuple[Log, float]]:
    """The logs nearest to the boundary: those inside, then as many outside."""
    pairs = sorted(zip(margins, range(len(logs)), strict=True))
    inside = [pair for pair in pairs if pair[0] >= 0][:many]
    outside = [pair for pair in pairs if pair[0] < 0][-many:]
    return ((logs[index], left) for left, index in (*inside, *outside))


def failures(logs: Sequence[Log], margins: Sequence[float]) -> int:
    """In how many trials the event fails."""
    return sum(log.times for log, left in zip(logs, margins, strict=True) if left < 0)


def too_many(misses: int, trials: int, delta: float) -> bool:
    """Whether so many misses had a probability below 1e-4 if the claim were true."""
    return bool(binomtest(misses, trials, delta, alternative="greater").pvalue < 1e-4)


@dataclass(frozen=True)
class Scaled:
    """An envelope times a number, still non-decreasing and concave: everything after it works as before."""

    envelope: object
    factor: float
    delta: float | None = None
    follows_variance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.delta is None:
            object.__setattr__(self, "delta", self.envelope.delta)
        elif self.delta != self.envelope.delta:  # rates that were tuned to one delta may serve another
            object.__setattr__(self, "envelope", replace(self.envelope, delta=self.delta))

    def bound(self, steps, variance):
        bound, slope = self.envelope.bound(steps, variance)
        return self.factor * bound, self.factor * slope


def scaled(rule: RadiusRule, factor: float) -> RadiusRule:
    """The rule with `factor` times the radius; that of Theorem C has to be replaced where it is computed."""
    if rule.approach is Approach.SELF_NORMALIZED:
        return rule
    if rule.envelope is not None:
        return replace(rule, envelope=lambda *inputs: Scaled(rule.envelope(*inputs), factor**0.5))
    return replace(rule, level=lambda *inputs: factor * rule.level(*inputs))
