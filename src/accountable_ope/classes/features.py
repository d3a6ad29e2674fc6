"""Feature maps: the class of Q functions, Q(x) = theta' phi(x) + constant.

Columns are orthonormal coordinates of the class H, so that ||Q||_H = ||theta||: a norm bound on Q is a ball for theta. The
constant, when there is one, is not penalized: a value function is mostly a large constant (the average value), and a ball
around zero that holds it is far larger than one around the rest of Q. `intercept=False` is the paper's plain class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..kernels.waves import cosines
from ..validation import FloatArray, frozen, matrix, positive, row_keys, whole


@runtime_checkable
class FeatureMap(Protocol):
    """phi: points (n, d) -> (n, dimension); `intercept` adds an unpenalized constant."""

    @property
    def dimension(self) -> int:
        """How many features, without the constant."""
        ...

    @property
    def intercept(self) -> bool:
        """Whether an unpenalized constant is added."""
        ...

    def __call__(self, points: FloatArray) -> FloatArray:
        """phi at points (n, d), as (n, dimension)."""
        ...


@runtime_checkable
class BoundedFeatures(Protocol):
    """A feature map that knows how far apart phi(x) and phi(y) can be: without it only declared ranges bound a residual."""

    @property
    def diameter(self) -> float:
        """sup ||phi(x) - phi(y)|| over all points."""
        ...


@runtime_checkable
class SmoothFeatures(Protocol):
    """A feature map that knows how much phi can change nearby, so that a grid says something about the points between."""

    def spread(self, half_widths: FloatArray) -> float:
        """sup ||phi(x + d) - phi(x)|| over all x and all d with |d_j| <= half_widths_j."""
        ...


@runtime_checkable
class NormalMeans(Protocol):
    """A feature map that knows its means over normal actions."""

    def normal_means(self, points: FloatArray, covariance: FloatArray) -> FloatArray:
        """E phi(x + e), e ~ N(0, C) in the last columns of a point, as (n, dimension); C is (k, k)."""
        ...


@runtime_checkable
class ListedFeatures(Protocol):
    """One-hot features over a finite list of points."""

    @property
    def one_hot_points(self) -> FloatArray: ...

    def __call__(self, points: FloatArray) -> FloatArray: ...


@runtime_checkable
class SharedFeatures(Protocol):
    """A feature map that says whether threads may ask it at once, as they may where it keeps nothing between calls."""

    @property
    def for_threads(self) -> bool: ...


def for_threads(*maps: FeatureMap) -> bool:
    """Whether threads may ask all of them at once; one that does not say so is asked by one thread."""
    return all(isinstance(each, SharedFeatures) and each.for_threads for each in maps)


def damping(frequencies: FloatArray, covariance: FloatArray) -> FloatArray:
    """exp(-w_a'C w_a / 2), the factor by which normal actions damp cos(w'x + b); w_a are the last columns of w."""
    w = frequencies[:, frequencies.shape[1] - len(covariance) :]
    return np.asarray(np.exp(-0.5 * np.einsum("ki,ij,kj->k", w, covariance, w)))


def scaled_cosines(points: FloatArray, frequencies: FloatArray, phases: FloatArray) -> FloatArray:
    """cos(w_k'x + b_k) / sqrt(m)."""
    out: FloatArray = points @ frequencies.T
    out += phases
    cosines(out)
    out /= np.sqrt(len(phases))
    return out


def cosine_spread(frequencies: FloatArray, half_widths: FloatArray) -> float:
    """`spread` of cos(w_k'x + b_k) / sqrt(m): |cos a - cos b| <= |a - b|, so it is at most sup ||W d|| / sqrt(m)."""
    scaled = frequencies * half_widths
    moving = int(np.count_nonzero(half_widths))
    by_norm = float(np.linalg.norm(scaled, 2)) * np.sqrt(moving) if moving else 0.0
    by_column = float(np.linalg.norm(scaled, axis=0).sum())
    return float(min(by_norm, by_column) / np.sqrt(len(frequencies)))


@checked
@dataclass(frozen=True)
class RandomFourier:
    """phi_k(x) = cos(w_k'x + b_k) / sqrt(m), w_k ~ N(0, I / h^2), b_k ~ U[0, 2 pi], k = 1..m.

    With K0(x, y) = (1/m) sum_k cos(w_k'x + b_k) cos(w_k'y + b_k) this is the paper's class: ||Q||^2 = m ||coefficients of the
    cosines||^2 = ||theta||^2. As m grows, K0 tends to exp(-||x - y||^2 / (2 h^2)) / 2.

    Parameters
    ----------
    dimension : int
        m.
    bandwidth : float
        h.
    seed : int
        Seed of frequencies and phases.
    intercept : bool
        Whether an unpenalized constant is added.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import RandomFourier
    >>> RandomFourier(10, bandwidth=0.5)(np.zeros((3, 2))).shape
    (3, 10)
    """

    dimension: int
    bandwidth: float = 1.0
    seed: int = 0
    intercept: bool = True
    for_threads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.dimension, "dimension", least=1)
        positive(self.bandwidth, "bandwidth")
        whole(self.seed, "seed", least=0)
        object.__setattr__(self, "bandwidth", float(self.bandwidth))  # 1 and 1.0 are one class, with one name

    def frequencies(self, point_dimension: int) -> tuple[FloatArray, FloatArray]:
        """(w, b): the frequencies (m, d) and phases (m,), the same for every call with this seed."""
        generator = np.random.default_rng(self.seed)
        w = generator.normal(size=(self.dimension, point_dimension)) / self.bandwidth
        b = generator.uniform(0.0, 2 * np.pi, self.dimension)
        return w, b

    @property
    def diameter(self) -> float:
        """Every cosine changes by at most 2."""
        return 2.0

    def spread(self, half_widths: FloatArray) -> float:
        return cosine_spread(self.frequencies(len(half_widths))[0], half_widths)

    def __call__(self, points: FloatArray) -> FloatArray:
        return scaled_cosines(points, *self.frequencies(points.shape[1]))

    def normal_means(self, points: FloatArray, covariance: FloatArray) -> FloatArray:
        """E cos(w'x + b) is the cosine at the mean, damped by exp(-w_a'C w_a / 2)."""
        return self(points) * damping(self.frequencies(points.shape[1])[0], covariance)


@checked
@dataclass(frozen=True, eq=False, init=False)
class TabularFeatures:
    """One-hot features over a finite, declared list of points (s, a).

    Parameters
    ----------
    points : array (m, d)
        Different from each other.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where a point is listed twice or, when called, a point is not listed.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import TabularFeatures
    >>> features = TabularFeatures.grid(states=[[0.0], [1.0]], actions=np.eye(2))
    >>> features
    TabularFeatures(4 points, intercept=True)
    >>> features(np.array([[0.0, 0.0, 1.0]])).tolist()
    [[1.0, 0.0, 0.0, 0.0]]
    """

    points: FloatArray
    intercept: bool

    def __init__(self, points: ArrayLike, intercept: bool = True) -> None:
        listed = matrix(points, "points") + 0.0
        if len(np.unique(listed, axis=0)) != len(listed):
            raise InvalidInput("`points` of TabularFeatures must be different from each other.")
        object.__setattr__(self, "points", frozen(listed[np.lexsort(listed.T[::-1])]))
        object.__setattr__(self, "intercept", bool(intercept))

    @classmethod
    @checked
    def grid(cls, states: ArrayLike, actions: ArrayLike, intercept: bool = True) -> TabularFeatures:
        """All pairs of the listed states and action vectors; the policy's `action_vectors` serve."""
        s, a = matrix(states, "states"), matrix(actions, "actions")
        return cls(np.concatenate([np.repeat(s, len(a), axis=0), np.tile(a, (len(s), 1))], axis=1), intercept)

    def __repr__(self) -> str:
        return f"TabularFeatures({self.dimension} points, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return len(self.points)

    @property
    def one_hot_points(self) -> FloatArray:
        """The listed points: there are no others."""
        return self.points

    @property
    def diameter(self) -> float:
        """Two different unit vectors."""
        return float(np.sqrt(2.0))

    def __call__(self, points: FloatArray) -> FloatArray:
        if points.shape[1] != self.points.shape[1]:
            raise InvalidInput(f"TabularFeatures lists {self.points.shape[1]}-d points (s, a). Got {points.shape[1]}-d ones.")
        asked, inverse = np.unique(points + 0.0, axis=0, return_inverse=True)
        _, where, found = np.intersect1d(row_keys(self.points), row_keys(asked), return_indices=True)
        if len(found) != len(asked):
            unknown = np.setdiff1d(np.arange(len(asked)), found)
            raise InvalidInput(
                f"TabularFeatures does not list {len(unknown)} of the points, such as {asked[unknown[0]].tolist()}."
            )
        column = np.empty(len(asked), dtype=np.int64)
        column[found] = where
        out = np.zeros((len(points), self.dimension))
        out[np.arange(len(points)), column[inverse.reshape(-1)]] = 1.0
        return out
