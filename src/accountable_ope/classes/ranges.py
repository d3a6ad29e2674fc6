"""How large a Bellman residual of Q can be, for all coefficients of a set: the range b of the variance-adaptive radii.

Given (s, a), r + discount V(s') - Q(s, a) has mean 0 and lies in an interval as long as its first part can vary, so its absolute
value is at most that length:
    discount * span(V) + (range of a random reward)         where no state is terminal,
    with 0 among the values of V                            where states may be terminal.
V(s) is a mean of Q(s, a), so the span of Q over state-action points bounds that of V whatever the policy. For Q = theta'phi and
theta in a set, span(Q) = sup_{x,y} theta'(phi(x) - phi(y)): bounded through the norm of theta, or through ellipsoids around the
set at all points of a grid (with the largest change of phi between grid points added) or of a finite list of points.

A relative value, of a process that goes on forever, is known up to a constant: the same holds at discount 1, with a column of
coefficients, that of the average reward, which moves no difference of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ..arguments import checked
from ..kernels.blocks import blocks
from ..problem.assumptions import Assumptions, ValueRanges, value_ranges
from ..problem.policy import Policy
from ..programs.ellipsoid import Ellipsoid
from ..validation import FloatArray
from .function_class import FunctionClass, Rest, StateBox

ROOM = 4.0
"""A declared one-step range moves the rates of a theorem once it is so many times below what else is known."""

SOME_POINTS = 4000
"""Points looked at where any choice is valid."""

ALL_PAIRS = 1200
"""Up to this many points the farthest pair is found by looking at all of them."""


@checked
@dataclass(frozen=True, eq=False)
class ResidualRange:
    """What bounds the residuals of one class of Q.

    Attributes
    ----------
    assumptions : Assumptions
    ranges : ValueRanges
    terminates : bool
        Whether states may be terminal.
    diameter : float
        sup ||phi(x) - phi(y)||, infinite where nothing is known.
    points : array (N, m) or None
        Features (with the constant) at points that stand for all state-action points, None where there are none.
    slack : float
        phi at any point is within this distance of one of `points`.
    center : array (m,) or None
        A point in the middle of `points`, from which spans are measured.
    rest_diameter : float
        What the features miss differs by at most misfit_norm times this between two points, and from 0; 0: they miss nothing.
        `points`, `slack` and `diameter` are then those of the features alone.
    reference : float
        The constant from which values are counted.
    """

    assumptions: Assumptions
    ranges: ValueRanges
    terminates: bool
    diameter: float
    points: FloatArray | None = None
    slack: float = 0.0
    center: FloatArray | None = None
    rest_diameter: float = 0.0
    reference: float = 0.0

    @property
    def largest_value(self) -> float:
        """The largest |value| that the assumptions allow, counted from the reference."""
        return self.ranges.largest_from(self.reference)

    @property
    def declared(self) -> float:
        """The width of the range that the assumptions allow to any Q."""
        return self.ranges.residual_width

    @property
    def before_data(self) -> float:
        """The range that is known before any data: a norm bound relative to the data may not enter it."""
        bound = self.assumptions.norm_bound
        return self.over_ball(bound) if isinstance(bound, float) else self.declared

    @property
    def unit(self) -> float:
        """In units of this, rates are fixed: the range without a declared one-step range, at most ROOM times that with it.

        The rates that serve hang on the size of residuals, about which a moderate declaration says nothing new; it is the range
        in the theorem that it makes smaller, and with rates that stay where they are a smaller range never widens an interval.
        """
        if self.assumptions.one_step_range is None:
            return self.before_data
        undeclared = replace(self.assumptions, one_step_range=None)
        ranges = value_ranges(undeclared, terminates=self.terminates)
        return min(replace(self, assumptions=undeclared, ranges=ranges).before_data, ROOM * self.before_data)

    def over_ball(self, norm_bound: float) -> float:
        """The range over all theta whose penalized part has at most this norm."""
        if self._needs_level or not np.isfinite(self.diameter):
            return self.declared
        return self._width(span=norm_bound * self.diameter + self.rest_span)

    @property
    def rest_span(self) -> float:
        """How far apart values can be by what the features miss."""
        return self.rest_diameter * (self.assumptions.misfit_norm or 0.0)

    def over(self, ellipsoids: Sequence[Ellipsoid], norm_bound: float) -> float:
        """The range over all theta that lie in every one of the ellipsoids and have at most this norm."""
        if self.points is None or self.center is None:
            return self.over_ball(norm_bound)
        parts = [self._reaches(ellipsoids, self.points[rows]) for rows in blocks(len(self.points))]
        above, below = np.max([[side.max() for side in part] for part in parts], axis=0)
        pad = self.slack * norm_bound
        if self._needs_level:
            low, high = self.ranges.value
            pad += self.rest_span
            return self._width(low=max(low, -float(below) - pad), high=min(high, float(above) + pad))
        span = float(above) + float(below) + self.rest_span
        return min(self._width(span=span + 2 * pad), self.over_ball(norm_bound))

    def extremes(self, ellipsoids: Sequence[Ellipsoid]) -> tuple[FloatArray, ...]:
        """Directions in which the ellipsoids reach far: where another ellipsoid would help."""
        if self.points is None or self.center is None:
            return ()
        subset = self.points[:: 1 + len(self.points) // SOME_POINTS]
        up, down = self._reaches(ellipsoids, subset)
        middle = self._middle()
        return (subset[int(np.argmax(up))] - middle, middle - subset[int(np.argmax(down))])

    def _reaches(self, ellipsoids: Sequence[Ellipsoid], points: FloatArray) -> tuple[FloatArray, FloatArray]:
        reaches = [ellipsoid.reach(points, self._middle()) for ellipsoid in ellipsoids]
        up, down = zip(*reaches, strict=True)
        return reduce(np.minimum, up), reduce(np.minimum, down)

    def _middle(self) -> FloatArray:
        """From where spans are measured: 0 where the values themselves count."""
        assert self.center is not None
        return np.zeros_like(self.center) if self._needs_level else self.center

    @property
    def _needs_level(self) -> bool:
        """Whether the values themselves count, and not only their differences."""
        return self.terminates or self.assumptions.terminal_reward

    def _width(self, *, span: float = 0.0, low: float = 0.0, high: float = 0.0) -> float:
        reward, discount, misfit = self.assumptions.reward_range, self.assumptions.discount, self.assumptions.misfit
        span, low, high = span + 2 * misfit, low - misfit, high + misfit
        if self.assumptions.terminal_reward:
            width = max(reward[1], discount * high, 0.0) - min(reward[0], discount * low, 0.0)
        else:
            noise = reward[1] - reward[0] if self.assumptions.reward_noise else 0.0
            if self.terminates:
                span = max(high, 0.0) - min(low, 0.0)
            width = noise + discount * span
        return min(width, self.declared)


@checked
def residual_range(
    function_class: FunctionClass,
    policy: Policy,
    assumptions: Assumptions,
    ranges: ValueRanges,
    *,
    terminates: bool,
    anchored: bool = False,
    rest: Rest | None = None,
    reference: float = 0.0,
) -> ResidualRange:
    """What bounds the residuals of this class: declared ranges, the norm, and points that stand for all others.

    Parameters
    ----------
    function_class : FunctionClass
    policy : Policy
    assumptions : Assumptions
    ranges : ValueRanges
        What follows from the assumptions.
    terminates : bool
        Whether states may be terminal.
    anchored : bool
        Whether the class lies around a Q of which nothing is known.
    rest : Rest, optional
        Which coordinates are of a part with a norm of its own, where there is one.
    reference : float
        The constant from which values are counted.

    Returns
    -------
    ResidualRange

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> from accountable_ope.classes import Span, residual_range
    >>> found = residual_range(Span(mdp.features(), True), mdp.policy, facts, problem.ranges, terminates=False)
    >>> found.before_data <= found.declared
    True
    """
    reach = 0.0 if rest is None else rest.diameter
    if anchored:  # nothing is known of the Q at which the class is anchored
        return ResidualRange(assumptions, ranges, terminates, np.inf, rest_diameter=reach, reference=reference)
    found = spread_of(function_class, policy, assumptions.state_box)
    if function_class.intercept:
        found = found.beside(1.0)
    if rest is not None:
        found = found.after(rest.coordinates)
    spread = (found.diameter, found.points, found.slack, found.center)
    return ResidualRange(assumptions, ranges, terminates, *spread, reach, reference)


@dataclass(frozen=True, eq=False)
class Spread:
    """How far apart the features of a class can be; points, slack and center as in `ResidualRange`."""

    diameter: float
    points: FloatArray | None = None
    slack: float = 0.0
    center: FloatArray | None = None

    def beside(self, value: float) -> Spread:
        """With one more coefficient, which has this factor at every point: 1 for a constant, 0 for an average reward."""
        if self.points is None or self.center is None:
            return self
        column = np.full(len(self.points), value)
        return replace(self, points=np.column_stack([self.points, column]), center=np.append(self.center, value))

    def after(self, coordinates: int) -> Spread:
        """With so many coordinates in front of them, which have no part in these points."""
        if self.points is None or self.center is None:
            return self
        nothing = np.zeros((len(self.points), coordinates))
        center = np.append(nothing[0], self.center)
        return replace(self, points=np.column_stack([nothing, self.points]), center=center)


def spread_of(function_class: FunctionClass, policy: Policy, state_box: StateBox | None) -> Spread:
    """From the class itself, and from points that stand for all others where there are some; the constant is left out."""
    diameter = function_class.diameter
    if not np.isfinite(diameter):  # nothing is known of columns that were given
        return Spread(np.inf)
    cover = function_class.cover(policy, state_box)
    if cover is None:
        return Spread(diameter)
    widest, center = _farthest(cover.rows)
    return Spread(min(diameter, widest + 2 * cover.slack), cover.rows, cover.slack, center)


def _farthest(rows: FloatArray) -> tuple[float, FloatArray]:
    """(a bound of the largest distance between two rows, the center of a small ball that holds all of them)."""
    subset = rows[:: 1 + len(rows) // SOME_POINTS]  # any center is valid, so a part of the rows may choose it
    center = subset.mean(axis=0)
    for step in range(2, 202):  # toward the farthest row, by shrinking steps: the smallest enclosing ball in the limit
        center = center + (subset[int(np.argmax(_squared_distances(subset, center)))] - center) / step
    widest = 2 * float(np.sqrt(_squared_distances(rows, center).max()))
    if len(rows) <= ALL_PAIRS:
        widest = min(widest, float(np.sqrt(max(_squared_distances(rows, row).max() for row in rows))))
    return widest * (1 + 1e-9), center


def _squared_distances(rows: FloatArray, point: FloatArray) -> FloatArray:
    away = rows - point
    return np.asarray(np.einsum("ij,ij->i", away, away))
