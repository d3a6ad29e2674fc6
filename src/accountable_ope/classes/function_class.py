"""A class of Q functions: one Protocol that answers for its own columns, its ranges, and what its coordinates miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..kernels.blocks import ROWS_AT_ONCE, blocks
from ..problem.gaussian_policy import NO_LIST, GaussianPolicy
from ..problem.policy import Policy, at_start
from ..problem.problem import Experience
from ..threads import fill_by_blocks
from ..validation import FloatArray, IntArray, float_array, refuse_memory
from .features import BoundedFeatures, FeatureMap, ListedFeatures, NormalMeans, SmoothFeatures, for_threads

GRID_NUMBERS = 1_000_000
"""Numbers (points times features) that a grid over the state box may hold."""

StateBox = tuple[tuple[float, ...], tuple[float, ...]]


@checked
@dataclass(frozen=True, eq=False)
class Remainder:
    """What finitely many coordinates of an RKHS miss: for g orthogonal to them, with norm s.

    Attributes
    ----------
    rows : array (n,)
        |eps_i(Q) - eps_i(Q - g)| <= s rows_i.
    objective : float
        |value(Q) - value(Q - g)| <= s objective.
    box : float
        |g(y)| <= s box in root mean square over the points of the value box.
    points : tuple of three arrays, or None
        |g(y)| <= s points at the data, at the next states (averaged over the policy) and at the start states, one by one; None
        where that is not known.
    """

    rows: FloatArray
    objective: float
    box: float
    points: tuple[FloatArray, FloatArray, FloatArray] | None = None


@checked
@dataclass(frozen=True)
class Rest:
    """The part g of Q that features miss, where a class has such a part: its norm is bounded apart from that of the others.

    Attributes
    ----------
    coordinates : int
        So many coordinates, the first ones, are those of g; the remainder is what they miss of it.
    diameter : float
        |g(x) - g(y)| <= ||g|| diameter for all points.
    """

    coordinates: int
    diameter: float


@checked
@dataclass(frozen=True, eq=False)
class Columns:
    """Coordinates of a class at the data, at the next states and at the start states.

    Attributes
    ----------
    here : array (n, m)
        At the data.
    after : array (n, m)
        At the next states, averaged over the policy; 0 where terminated.
    start : array (N, m)
        At the start states, averaged over the policy.
    features : FeatureMap or None
        Gives them at any point; None where they are known at the rows only.
    remainder : Remainder or None
        What they miss; None where the class is what they span.
    rest : Rest or None
        Which of them are of a part with a norm of its own; None: one norm counts all.
    """

    here: FloatArray
    after: FloatArray
    start: FloatArray
    features: FeatureMap | None = None
    remainder: Remainder | None = None
    rest: Rest | None = None


@checked
@dataclass(frozen=True, eq=False)
class Cover:
    """Features at points that stand for all state-action points.

    Attributes
    ----------
    rows : array (N, m)
        The features at these points.
    slack : float
        phi anywhere is within this distance of one of the rows.
    """

    rows: FloatArray
    slack: float


@runtime_checkable
class FunctionClass(Protocol):
    """A class of Q functions, linear in coordinates theta that are orthonormal in it, so that ||Q|| = ||theta||.

    Feature maps become one by `Span`; `KernelSections` and `Precomputed` are classes themselves.
    """

    @property
    def intercept(self) -> bool:
        """Whether an unpenalized constant is added."""
        ...

    @property
    def dimension(self) -> int | None:
        """How many coordinates, without the constant; None where the data decide."""
        ...

    @property
    def diameter(self) -> float:
        """sup ||phi(x) - phi(y)|| over all points, infinite where nothing is known."""
        ...

    @property
    def feature_map(self) -> FeatureMap | None:
        """phi as a function of points that is fixed before the data; None where there is none."""
        ...

    @property
    def at_rows_only(self) -> bool:
        """Whether the coordinates are known at the given rows only."""
        ...

    @property
    def has_remainder(self) -> bool:
        """Whether the coordinates miss a part of the class, which `columns` then bounds."""
        ...

    def columns(self, experience: Experience) -> Columns:
        """The coordinates at the rows."""
        ...

    def cover(self, policy: Policy, state_box: StateBox | None) -> Cover | None:
        """Points that stand for all others, None where there are none."""
        ...

    def norm_of_values(self, largest: float) -> float:
        """The largest norm of a function of the class with |Q| <= largest everywhere; infinite where nothing is known."""
        ...

    def relative(self) -> FunctionClass:
        """The same class for relative values: without its constant, and with nothing asked of start states."""
        ...


@checked
@dataclass(frozen=True, eq=False)
class Span:
    """The functions theta'phi (+ constant) of a feature map phi.

    Parameters
    ----------
    feature_map : FeatureMap
        phi.
    intercept : bool
        Whether an unpenalized constant is added.

    Examples
    --------
    >>> from accountable_ope import RandomFourier
    >>> from accountable_ope.classes import Span
    >>> Span(RandomFourier(10), intercept=True).dimension
    10
    """

    feature_map: FeatureMap
    intercept: bool

    def __repr__(self) -> str:
        same = self.intercept == self.feature_map.intercept
        return repr(self.feature_map) if same else f"Span({self.feature_map!r}, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return self.feature_map.dimension

    @property
    def diameter(self) -> float:
        return self.feature_map.diameter if isinstance(self.feature_map, BoundedFeatures) else np.inf

    @property
    def at_rows_only(self) -> bool:
        return False

    @property
    def has_remainder(self) -> bool:
        return False

    def columns(self, experience: Experience) -> Columns:
        phi, live = self.feature_map, experience.live
        refuse_large(phi, len(live))
        here = np.empty((len(live), phi.dimension))
        points, next_states = experience.points, experience.data.next_states

        def fill(rows: slice) -> None:
            here[rows] = _checked(phi, points[rows])

        fill_by_blocks(fill, len(live), ROWS_AT_ONCE, shared=for_threads(phi))
        if live.all():
            after = expected_features(phi, next_states, experience.policy)
        else:
            after = np.zeros_like(here)
            after[live] = expected_features(phi, next_states[live], experience.policy)
        return Columns(here, after, expected_features(phi, experience.starts.states, at_start(experience.policy)), phi)

    def cover(self, policy: Policy, state_box: StateBox | None) -> Cover | None:
        """The listed points of a table, or a grid over the state box with the largest change of phi between its points."""
        phi = self.feature_map
        if isinstance(phi, ListedFeatures):
            return Cover(phi(phi.one_hot_points), 0.0)
        if state_box is None or policy.action_vectors is None or not isinstance(phi, SmoothFeatures):
            return None
        low, high = (np.array(side) for side in state_box)
        actions = policy.action_vectors
        cells = int((GRID_NUMBERS / (phi.dimension * len(actions))) ** (1 / len(low)))
        if cells < 2:
            return None
        half = (high - low) / (2 * cells)
        axes = [np.linspace(a + h, b - h, cells) if h > 0 else np.array([a]) for a, b, h in zip(low, high, half, strict=True)]
        states = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
        rows = [phi(np.concatenate([states, np.broadcast_to(a, (len(states), len(a)))], axis=1)) for a in actions]
        return Cover(np.concatenate(rows), phi.spread(np.concatenate([half, np.zeros(actions.shape[1])])))

    def norm_of_values(self, largest: float) -> float:
        """One-hot features: theta is Q itself."""
        return float(np.sqrt(self.dimension)) * largest if isinstance(self.feature_map, ListedFeatures) else np.inf

    def relative(self) -> Span:
        return Span(self.feature_map, intercept=False)


Features = FeatureMap | FunctionClass
"""What the argument `features` takes: a feature map, or a class of its own."""


@checked
def as_classes(features: Features | Sequence[Features]) -> tuple[FunctionClass, ...]:
    """One class or several, as a tuple that is not empty.

    Parameters
    ----------
    features : feature map, FunctionClass, or a sequence of them

    Returns
    -------
    tuple of FunctionClass
        Feature maps become a `Span`.

    Raises
    ------
    InvalidInput
        Where the sequence is empty or something is neither a feature map nor a class.

    Examples
    --------
    >>> from accountable_ope import RandomFourier
    >>> from accountable_ope.classes import as_classes
    >>> [type(each).__name__ for each in as_classes([RandomFourier(10), RandomFourier(20)])]
    ['Span', 'Span']
    """
    given = tuple(features) if isinstance(features, Sequence) else (features,)
    if not given:
        raise InvalidInput("`features` must name at least one feature class. Got an empty list.")
    return tuple(as_class(each) for each in given)


def as_class(features: Features) -> FunctionClass:
    """A feature map as the class that it spans; a class as it is."""
    if isinstance(features, FunctionClass):
        return features
    if not isinstance(features, FeatureMap):
        raise InvalidInput(
            "`features` must be a feature map (such as RandomFourier), KernelSections, SemiParametric or Precomputed, or a list "
            f"of them. Got {type(features).__name__}."
        )
    return Span(features, features.intercept)


@checked
def expected_features(features: FeatureMap, states: FloatArray, policy: Policy) -> FloatArray:
    """E_{a ~ pi(s)} phi(s, a), one row per state.

    Parameters
    ----------
    features : FeatureMap
        phi.
    states : array (n, d)
    policy : Policy
        pi.

    Returns
    -------
    array (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import DiscretePolicy, TabularFeatures
    >>> from accountable_ope.classes import expected_features
    >>> policy = DiscretePolicy(lambda states: np.tile([0.25, 0.75], (len(states), 1)), actions=2)
    >>> expected_features(TabularFeatures.grid([[0.0]], np.eye(2)), np.array([[0.0]]), policy).tolist()
    [[0.75, 0.25]]
    """
    refuse_large(features, len(states))
    total = np.zeros((len(states), features.dimension))
    if len(states) == 0:
        return total
    if isinstance(policy, GaussianPolicy):
        return _normal_means(features, states, policy)
    for actions, weights, _ in policy.branches(states):
        taken = np.flatnonzero(weights)  # an action that is never taken may be unknown to the features
        add = partial(_add_branch, features, states, actions, weights, taken, total)
        fill_by_blocks(add, len(taken), ROWS_AT_ONCE, shared=for_threads(features))
    return total


def _add_branch(
    features: FeatureMap,
    states: FloatArray,
    actions: FloatArray,
    weights: FloatArray,
    taken: IntArray,
    total: FloatArray,
    some: slice,
) -> None:
    """What a part of the states where it is taken get by one branch."""
    rows = some if len(taken) == len(states) else taken[some]
    part = _checked(features, np.concatenate([states[rows], actions[rows]], axis=1))
    part *= weights[rows, None]
    total[rows] += part


def _normal_means(features: FeatureMap, states: FloatArray, policy: GaussianPolicy) -> FloatArray:
    """In closed form, where the features have one."""
    if not isinstance(features, NormalMeans):
        raise InvalidInput(f"{type(features).__name__}: {NO_LIST}")
    means, total = policy.means(states), np.empty((len(states), features.dimension))
    for rows in blocks(len(states)):
        points = np.concatenate([states[rows], means[rows]], axis=1)
        total[rows] = _shaped(features.normal_means(points, policy.covariance), features, len(points))
    return total


def refuse_large(features: FeatureMap, rows: int) -> None:
    """Raise before features at so many rows, and the square matrices that follow, are asked for in vain."""
    m = features.dimension
    refuse_memory(8.0 * m * (3 * rows + 4 * m), "features", f"{m} features at {rows} rows")


def _checked(features: FeatureMap, points: FloatArray) -> FloatArray:
    return _shaped(features(points), features, len(points))


def _shaped(found: FloatArray, features: FeatureMap, rows: int) -> FloatArray:
    values = float_array(found, "features", dimensions=(0, 1, 2, 3))
    if values.shape != (rows, features.dimension):
        raise InvalidInput(f"`features` must give shape {(rows, features.dimension)}. Got {values.shape}.")
    return values
