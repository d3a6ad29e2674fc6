"""Data, policy and a class of Q -> the linear system of Bellman residuals.

For Q = theta'phi the residual of row i is eps_i = r_i + discount E_{a'~pi} Q(s'_i, a') - Q(x_i) = v_i - Z_i theta, with
Z_i = phi(x_i) - discount E phi(s'_i, a') and v_i = r_i. A terminal next state is worth 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..classes.features import FeatureMap
from ..classes.function_class import Columns, Features, FunctionClass, Remainder, Rest, as_class
from ..classes.semi_parametric import SideBySide
from ..errors import InvalidInput
from ..problem.policy import Policy, state_action_points
from ..problem.problem import Experience
from ..problem.transitions import Transitions
from ..threads import BLOCK_ROWS, fill_by_blocks, side_by_side, sum_by_blocks
from ..validation import BoolArray, FloatArray, IntArray, vector
from .estimates import QColumns, QFunction, q_at, q_expected

BOX_ROWS = 2000
"""So many data, next and start points are kept for a value box at every point."""


@checked
@dataclass(frozen=True, eq=False)
class BellmanSystem:
    """Everything that the program needs to know of data, policy and class.

    Attributes
    ----------
    points : array (n, d)
        x_i = (s_i, a_i).
    residuals : array (n, m)
        Z; the column of the unpenalized constant, if any, is the last.
    target : array (n,)
        v: the rewards, or the residuals of the Q at which the class is anchored.
    rewards : array (n,)
        r, whatever the anchor: an estimate that was fitted to all rows may be one, so choices for later rows never look at v.
    objective : array (m,)
        c0, so that the value of Q is offset + c0'theta.
    penalized : array (m,) of bool
        Which coefficients the norm counts.
    box_moments : array
        The mean of u u' over data, next and start points (a third each), u = [phi, 1], or [phi, 1, anchor].
    box_rows : array
        Some of these points themselves, [phi, anchor] with an anchor of 0 where there is none: for a box at every point.
    box_missed : array or None
        What an unseen part of norm one can add to |Q| there; None where there is none, or it is not known point by point.
    discount : float
    offset : float
        The value of the anchor, 0 without one.
    remainder : Remainder or None
        What the coordinates miss, None where the class is what they span.
    features : FeatureMap or None
        phi as a function of points, None where it is known at the rows only.
    row_scale : array (n,) or None
        Factors u_i of the rows in the statistic: that of the kernel u(x) K(x, y) u(y). None: 1.
    rest : Rest or None
        Which coefficients are of a part with a norm of its own; None: one norm counts all.
    reference : float
        A constant c from which values are counted: v and r are less (1 - discount) c, and `box_moments` and `box_rows` hold the
        anchor less c. Without an anchor the class is c + theta'phi, which a free constant makes no other class.
    """

    points: FloatArray
    residuals: FloatArray
    target: FloatArray
    rewards: FloatArray
    objective: FloatArray
    penalized: BoolArray
    box_moments: FloatArray
    box_rows: FloatArray
    discount: float
    offset: float = 0.0
    remainder: Remainder | None = None
    features: FeatureMap | None = None
    row_scale: FloatArray | None = None
    rest: Rest | None = None
    reference: float = 0.0
    box_missed: FloatArray | None = None

    def __repr__(self) -> str:
        return f"BellmanSystem({len(self.target)} rows, {self.dimension} coefficients, discount {self.discount:g})"

    @property
    def fixed_before(self) -> BellmanSystem:
        """The columns that no row had a part in choosing: the features alone, where a part of an RKHS follows what they miss."""
        if self.rest is None:
            return self
        k, phi = self.rest.coordinates, self.features
        return replace(
            self,
            residuals=self.residuals[:, k:],
            objective=self.objective[k:],
            penalized=self.penalized[k:],
            box_moments=self.box_moments[k:, k:],
            box_rows=self.box_rows[:, k:],
            remainder=None,
            features=phi.parts[-1] if isinstance(phi, SideBySide) else None,
            rest=None,
            box_missed=None,
        )

    def first(self, rows: int) -> BellmanSystem:
        """That of the first rows alone, but for the value box."""
        kept = slice(0, rows)
        return replace(
            self,
            points=self.points[kept],
            residuals=self.residuals[kept],
            target=self.target[kept],
            rewards=self.rewards[kept],
            row_scale=None if self.row_scale is None else self.row_scale[kept],
        )

    @property
    def dimension(self) -> int:
        return int(self.residuals.shape[1])

    def columns(self) -> FloatArray:
        """C = [Z | v | 1], and what is missed where there is a remainder; the ones give kappa^2 = 1'K1 / n^2 of the misfit."""
        columns = [self.residuals, self.target, np.ones(len(self.target))]
        return side_by_side(columns if self.remainder is None else [*columns, self.remainder.rows], scale=self.row_scale)

    def residuals_at(self, theta: FloatArray) -> FloatArray:
        """eps(theta) = v - Z theta."""
        coefficients = vector(theta, "theta")
        if len(coefficients) != self.dimension:
            raise InvalidInput(f"`theta` must have {self.dimension} coefficients, as the class has. Got {len(coefficients)}.")
        return np.asarray(self.target - self.residuals @ coefficients)


@checked
def bellman_system(
    experience: Experience, features: Features, anchor: QColumns | None = None, reference: float = 0.0
) -> BellmanSystem:
    """Z, v and c0 of Algorithm 1, with expectations over the policy's actions taken as exactly as the policy allows.

    With an anchor the class is anchor + features, and v are the anchor's residuals (Algorithm 2).

    Parameters
    ----------
    experience : Experience
        Data, start states, policy and discount.
    features : feature map or FunctionClass
        The class of Q functions.
    anchor : QColumns, optional
        An existing Q around which the class lies, counted from the reference.
    reference : float
        A constant from which values are counted (`ValueRanges.reference`); it needs rows that all go on, and is not used where
        neither an anchor nor a constant of the class can hold it.

    Returns
    -------
    BellmanSystem

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.statistics import bellman_system, kernel_statistic
    >>> system = bellman_system(Experience(data, mdp.starts, mdp.policy, discount=0.6), mdp.features())
    >>> system.residuals.shape, system.penalized.tolist()
    ((500, 6), [True, True, True, True, True, False])
    """
    data, starts, live, discount = experience.data, experience.starts, experience.live, experience.discount
    function_class = as_class(features)
    columns = with_constant(function_class, experience)
    here, after, start = columns.here, columns.after, columns.start
    penalized = np.ones(here.shape[1], dtype=bool)
    if function_class.intercept:
        penalized[-1] = False
    reference = reference if anchor is not None or function_class.intercept else 0.0
    if reference and not live.all():
        raise InvalidInput("`reference` is for processes that go on: a constant in every reward is none in values that end.")
    rewards = data.rewards - (1 - discount) * reference if reference else data.rewards
    target, offset = rewards, reference
    values: tuple[FloatArray | None, FloatArray | None, FloatArray | None] = (None, None, None)
    if anchor is not None:
        target = rewards + discount * np.where(live, anchor.at_next, 0.0) - anchor.at_data
        offset = reference + float(starts.weights @ anchor.at_start)
        values = (anchor.at_data, anchor.at_next, anchor.at_start)
    moments = [second_moments(here, values[0], None), second_moments(start, values[2], starts.weights)]
    if live.any():
        moments.append(second_moments(after, values[1], None, live))
    places = box_places(live, len(start))
    at = (None, None, None) if anchor is None else (anchor.at_data, anchor.at_next, anchor.at_start)
    return BellmanSystem(
        points=experience.points,
        residuals=_less(here, discount, after),
        target=target,
        rewards=rewards,
        objective=starts.weights @ start,
        penalized=penalized,
        box_moments=np.mean(moments, axis=0),
        box_rows=np.concatenate([box_rows(*each) for each in zip((here, after, start), at, places, strict=True)]),
        discount=discount,
        offset=offset,
        remainder=columns.remainder,
        features=columns.features,
        rest=columns.rest,
        reference=reference,
        box_missed=None if columns.remainder is None else _missed_at(columns.remainder, live),
    )


@checked
def bellman_residuals(q: QFunction, data: Transitions, policy: Policy, discount: float) -> FloatArray:
    """eps_i(Q) = r_i + discount E_{a' ~ pi} Q(s'_i, a') - Q(s_i, a_i) for any Q, terminal next states worth 0.

    Parameters
    ----------
    q : callable
        (states, actions) -> values.
    data : Transitions
    policy : Policy
    discount : float

    Returns
    -------
    array (n,)

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.statistics import bellman_residuals
    >>> data = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]], terminated=[False, True])
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> bellman_residuals(lambda states, actions: np.ones(len(states)), data, policy, discount=0.5).tolist()
    [0.0, -1.0]
    """
    state_action_points(data.states, data.actions, policy)  # refuses actions outside the policy's set
    live = ~data.terminated
    after = np.zeros(len(data))
    after[live] = q_expected(q, data.next_states[live], policy, finite=data.finite_actions)
    return np.asarray(data.rewards + discount * after - q_at(q, data.states, data.actions))


def box_rows(values: FloatArray, anchor: FloatArray | None, chosen: IntArray) -> FloatArray:
    """[phi, anchor] at some points: Q lies in the value range at all of them, so any will do."""
    return np.column_stack([values[chosen], np.zeros(len(chosen)) if anchor is None else anchor[chosen]])


def with_constant(function_class: FunctionClass, experience: Experience) -> Columns:
    """The coordinates of a class at the rows, the unpenalized constant last where it has one; it is worth 0 where terminated."""
    columns = function_class.columns(experience)
    if not function_class.intercept:
        return columns
    return replace(
        columns,
        here=side_by_side([columns.here, np.ones(len(columns.here))]),
        after=side_by_side([columns.after, experience.live.astype(float)]),
        start=side_by_side([columns.start, np.ones(len(columns.start))]),
    )


def _missed_at(remainder: Remainder, live: BoolArray) -> FloatArray | None:
    """What is missed at the points of `box_places`."""
    if remainder.points is None:
        return None
    places = box_places(live, len(remainder.points[2]))
    return np.concatenate([each[chosen] for each, chosen in zip(remainder.points, places, strict=True)])


def box_places(live: BoolArray, starts: int) -> tuple[IntArray, IntArray, IntArray]:
    """Rows at which Q is held in its range: of the data, of next states that are not terminal, and of start states."""
    chosen = evenly_spread(len(live))
    return chosen, chosen[live[chosen]], evenly_spread(starts)


def evenly_spread(count: int) -> IntArray:
    """Up to BOX_ROWS of so many rows."""
    return np.unique(np.linspace(0, count - 1, min(BOX_ROWS, count)).astype(np.int64)) if count else np.zeros(0, dtype=np.int64)


def _less(here: FloatArray, discount: float, after: FloatArray) -> FloatArray:
    """here - discount after."""
    found = np.empty_like(here)

    def fill(rows: slice) -> None:
        np.multiply(after[rows], -discount, out=found[rows])
        found[rows] += here[rows]

    fill_by_blocks(fill, len(found), BLOCK_ROWS)
    return found


def second_moments(
    values: FloatArray, anchor: FloatArray | None, weights: FloatArray | None, of: BoolArray | None = None
) -> FloatArray:
    """mean of u u', u = [phi, 1] or [phi, 1, anchor]; of: the rows that count, where not all of them do."""
    ones = np.ones(len(values)) if of is None else of.astype(np.float64)
    parts = [values, ones] if anchor is None else [values, ones, anchor]

    def moments(rows: slice) -> FloatArray:
        u = side_by_side([part[rows] for part in parts])
        if of is not None:
            u = u[of[rows]]
        return np.asarray(u.T @ (u if weights is None else u * weights[rows, None]))

    total = np.asarray(sum_by_blocks(moments, len(values), BLOCK_ROWS))
    return total if weights is not None else total / ones.sum()
