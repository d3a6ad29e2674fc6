"""Robust evaluation of a table: the worst and the best of all tables in L1 balls around the one that was seen.

With n visits of (s, a), P the frequencies of what followed among m outcomes (the states, and the end where there is one), and a
share d of delta, with probability at least 1 - d (Weissman et al. 2003; Hoeffding 1963)

    ||P - P*||_1 <= sqrt(2 log((2^m - 2) / d) / n),    |rbar - r*| <= (rmax - rmin) sqrt(log(2 / d) / (2 n)).

The lower end is the fixed point of V(s) = sum_a pi(a | s) (r_low + discount min_P P'V), the upper one its mirror image (Iyengar
2005; Nilim and El Ghaoui 2005): mass of half the radius moves from the best next states to the worst one. Iteration begins at
the end of the declared range, so that every step of it is a bound, and an unfinished one is wider.

Rows may be adaptive. What follows the n-th visit of a pair does not depend on why it was visited, so that for each fixed n the
bounds hold; the share of n is d_n = d / (n (n + 1)), whose sum over all n is d. With visits fixed in advance that is not
needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..problem.statements import Guarantee, premise
from ..validation import FloatArray
from .answer import answered
from .contestant import Contestant, Entry, Needs
from .episodes import Range
from .interval import BaselineInterval
from .primal_dual import START_SHARE
from .table import Table

MOST_STEPS, CLOSE = 5000, 1e-6
"""Steps of the iteration, and the change, relative to the range of values, after which it stops."""

ORDER = premise("order", "What follows (s, a) has one law, the same at every visit, whoever chose a and why.")
STATES = premise("table", "The table lists all states that there are.")


def robust_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """[worst, best] over all balls at once, and what sampled start states cost by Hoeffding's inequality."""
    problem, table = entry.problem, Table.of(entry)
    facts, starts = problem.assumptions, problem.starts
    least, most = problem.ranges.value
    share = 0.0 if starts.exact else START_SHARE
    balls = Balls.of(table, facts.reward_range, (1 - share) * delta, random=facts.reward_noise, ends=problem.terminates)
    low = table.start @ balls.worst(table.policy, facts.discount, (least, most))
    high = -(table.start @ balls.mirrored().worst(table.policy, facts.discount, (-most, -least)))
    reach = 0.0 if share == 0 else (most - least) * math.sqrt(math.log(2 / (share * delta)) / (2 * len(starts)))
    return answered(
        problem,
        (float(low) - reach, float(high) + reach),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.FINITE_SAMPLE,
        premises=(ORDER, STATES),
    )


@dataclass(frozen=True, eq=False)
class Balls:
    """p (S, A, m): frequencies of m outcomes, the last of which is the end where m = S + 1; radius, low and high: (S, A)."""

    p: FloatArray
    radius: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, table: Table, rewards: Range, delta: float, *, random: bool, ends: bool) -> Balls:
        """Balls that hold the true table with probability 1 - delta, at the pairs that the policy can choose."""
        counts = table.counts()
        counts = counts if ends else counts[:, :, :-1]
        visits, outcomes = counts.sum(axis=2), counts.shape[2]
        chosen = max(1, int((table.policy > 0).sum()))
        seen = np.maximum(visits, 1.0)
        shares = (0.5 if random else 1.0) * delta / (chosen * seen * (seen + 1))
        log = outcomes * math.log(2) + (math.log1p(-(2.0 ** (1 - outcomes))) if outcomes > 1 else -math.inf)
        radius = np.sqrt(2 * np.maximum(log - np.log(shares), 0.0) / seen) if outcomes > 1 else np.zeros_like(seen)
        mean = table.paid() / seen
        reach = (rewards[1] - rewards[0]) * np.sqrt(np.log(2 / shares) / (2 * seen)) if random else np.zeros_like(seen)
        never = visits == 0
        return cls(
            counts / seen[:, :, None],
            np.where(never, 2.0, np.minimum(radius, 2.0)),
            np.where(never, rewards[0], np.maximum(mean - reach, rewards[0])),
            np.where(never, rewards[1], np.minimum(mean + reach, rewards[1])),
        )

    def mirrored(self) -> Balls:
        """The same for rewards of the other sign."""
        return Balls(self.p, self.radius, -self.high, -self.low)

    def worst(self, policy: FloatArray, discount: float, values: Range) -> FloatArray:
        """The least V, (S,), from below."""
        states = len(policy)
        v = np.full(states, values[0])
        scale = max(values[1] - values[0], 1e-300)
        for _ in range(MOST_STEPS):
            onward = np.append(v, 0.0)[: self.p.shape[2]]
            after = (policy * (self.low + discount * self._least_mean(onward))).sum(axis=1)
            after = np.clip(after, values[0], values[1])
            if np.abs(after - v).max() <= CLOSE * scale * (1 - discount if discount < 1 else 1e-3):
                break
            v = after
        return np.asarray(v)

    def _least_mean(self, v: FloatArray) -> FloatArray:
        """min of P'v over the balls: mass goes from the best outcomes to the worst one."""
        order = np.argsort(v, kind="stable")
        p, sorted_v = self.p[:, :, order], v[order]
        moved = np.minimum(0.5 * self.radius, 1 - p[:, :, 0])
        above = np.cumsum(p[:, :, ::-1], axis=2)[:, :, ::-1] - p  # the mass of better outcomes
        kept = p - np.clip(moved[:, :, None] - above, 0.0, p)
        kept[:, :, 0] = p[:, :, 0] + moved
        return np.asarray(kept @ sorted_v)


NAME = "robust table"
ROBUST_TABLE = Contestant(
    name=NAME,
    title="Robust evaluation of a table, L1 balls",
    source="Nilim and El Ghaoui (2005); Weissman et al. (2003)",
    guarantee=Guarantee.FINITE_SAMPLE,
    needs=Needs(table=True, value_range=True, exact_policy=True),
    interval=robust_interval,
)
