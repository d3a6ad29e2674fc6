"""Parts that classes are made of, and the classes that are tried: all of them made from early rows alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from ..classes.action_fourier import ActionFourier
from ..classes.action_states import ActionProducts, ActionTiles
from ..classes.features import FeatureMap
from ..classes.given_values import GivenValues
from ..classes.joined import JoinedFeatures
from ..fitting.neural import train_neural_features
from ..kernels.products import Progress
from ..problem.problem import Experience
from ..statistics.estimates import QFunction
from .early import EarlyRows
from .early_fit import FITTED_SHARE, first_part
from .forest import fitted_trees
from .scaling import Scaling

DIMENSION, HIDDEN, STEPS, SEED = 40, 64, 1500, 0
ROWS_PER_FEATURE = 10
FEWEST_TO_TRAIN = 200
FEWEST_FOR_TREES = 200
COSINES = 120
"""Random cosines over all actions."""

FEWER_COSINES = 60
MOST_TILES = 400

FEATURE_WIDTH, NARROW, WIDE = 1.0, 0.5, 2.0
"""Bandwidths of random cosines in units of the median distance of scaled points."""

SQUASHED = 2.0
"""Products are of states squashed beyond so many standard deviations."""


class Part(Enum):
    """What features are made of; the value is its name in tables."""

    NETWORK = "network"
    TREES = "trees"
    COSINES = "cosines"
    FEWER = "fewer cosines"
    NARROW = "narrow cosines"
    WIDE = "wide cosines"
    PRODUCTS = "products"
    TILES = "tiles"
    GIVEN = "given estimate"


Mixture = tuple[Part, ...]
"""Features side by side."""

WITH_A_NETWORK: tuple[Mixture, ...] = (
    (Part.NETWORK,),
    (Part.NETWORK, Part.TREES),
    (Part.NETWORK, Part.FEWER),
)
WITHOUT: tuple[Mixture, ...] = (
    (Part.COSINES,),
    (Part.NARROW,),
    (Part.WIDE,),
    (Part.FEWER, Part.TREES),
    (Part.PRODUCTS,),
    (Part.PRODUCTS, Part.TREES),
    (Part.TILES,),
)


def name_of(mixture: Mixture) -> str:
    """As tables say it."""
    return " + ".join(part.value for part in mixture)


@dataclass(frozen=True, eq=False)
class Workshop:
    """Makes parts from the early rows: trees from the first of them while candidates are judged, and from all of them after that.

    A network learns from the first rows in either case; the others, which judge, stop its training, no more.

    Attributes
    ----------
    early : EarlyRows
    scaling : Scaling
    network : bool
        Whether networks are trained.
    given : callable or None
        An estimate of Q that was made without the later rows.
    progress : callable or None
        Called with the fraction done of a training.
    """

    early: EarlyRows
    scaling: Scaling
    network: bool
    given: QFunction | None = None
    progress: Progress | None = None

    @cached_property
    def first(self) -> int:
        """How many of the early rows candidates are fitted to."""
        return first_part(self.early.data)

    def mixtures(self) -> tuple[Mixture, ...]:
        """What is tried, those left out for which there are too few rows."""
        listed = [*(WITH_A_NETWORK if self.network else ()), *WITHOUT]
        if self.given is not None:
            listed += [(Part.NETWORK, Part.GIVEN)] if self.network else []
            listed += [(Part.FEWER, Part.GIVEN)]
        return tuple(each for each in listed if all(self._possible(part) for part in each))

    def train(self, mixtures: Sequence[Mixture]) -> None:
        """The network that some of them need: it takes seconds, and whoever waits is told what for."""
        if any(Part.NETWORK in each for each in mixtures):
            _ = self._trained

    def features(self, mixture: Mixture, *, judging: bool) -> FeatureMap:
        """A mixture as one feature map."""
        parts = tuple(self._made(part, judging=judging) for part in mixture)
        return parts[0] if len(parts) == 1 else JoinedFeatures(parts)

    def _possible(self, part: Part) -> bool:
        rows, dimension = len(self.early.data), self.early.data.states.shape[1]
        if part is Part.TREES:
            return rows >= FEWEST_FOR_TREES
        if part is Part.PRODUCTS:
            return self._products.dimension <= min(COSINES, rows // ROWS_PER_FEATURE)
        if part is Part.TILES:
            return dimension <= 2 and self._cells >= 2
        return True

    def _made(self, part: Part, *, judging: bool) -> FeatureMap:
        match part:
            case Part.NETWORK:
                return self._trained
            case Part.TREES:
                return self._first_trees if judging else self._all_trees
            case Part.COSINES:
                return self._cosines(COSINES, FEATURE_WIDTH)
            case Part.FEWER:
                return self._cosines(FEWER_COSINES, FEATURE_WIDTH)
            case Part.NARROW:
                return self._cosines(COSINES, NARROW)
            case Part.WIDE:
                return self._cosines(COSINES, WIDE)
            case Part.PRODUCTS:
                return self._products
            case Part.TILES:
                low, high = self._box
                return ActionTiles(low, high, self._cells, 2, self._vectors)
            case Part.GIVEN:
                return self._given

    @property
    def _vectors(self) -> np.ndarray | None:
        return self.early.problem.policy.action_vectors

    @property
    def _columns(self) -> int:
        """Of what stands for the state: the whole point where actions are no finite set."""
        return len(self.scaling.states)

    @property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        varying = self.early.points[:, : self._columns]
        low, high = varying.min(axis=0), varying.max(axis=0)
        flat = high - low <= 1e-9 * self.scaling.states
        return np.where(flat, low - self.scaling.states, low), np.where(flat, high + self.scaling.states, high)

    @property
    def _cells(self) -> int:
        actions = 1 if self._vectors is None else len(self._vectors)
        most = min(MOST_TILES, len(self.early.data) // ROWS_PER_FEATURE)
        return int((most / (2 * actions)) ** (1 / self._columns) + 1e-9)

    def _cosines(self, most: int, width: float) -> ActionFourier:
        actions = 1 if self._vectors is None else len(self._vectors)
        many = min(most, len(self.early.data) // ROWS_PER_FEATURE) // actions
        return ActionFourier(max(1, many), self.scaling.widths(width), self._vectors, SEED)

    @cached_property
    def _products(self) -> ActionProducts:
        center = self.early.points[:, : self._columns].mean(axis=0)
        return ActionProducts(center, SQUASHED * self.scaling.states, 2, self._vectors)

    @cached_property
    def _trained(self) -> FeatureMap:
        early = self.early
        found = train_neural_features(
            early.data,
            early.problem.policy,
            discount=early.problem.assumptions.discount,
            kernel=self.scaling.kernel(),
            dimension=max(2, min(DIMENSION, len(early.data) // ROWS_PER_FEATURE)),
            hidden=(HIDDEN,),
            steps=STEPS,
            held_out=1 - FITTED_SHARE,
            seed=SEED,
            units=self.scaling.units,
            progress=self.progress,
        )
        return found.features

    @cached_property
    def _first_trees(self) -> FeatureMap:
        problem = self.early.problem
        rows = problem.data.rows(slice(0, self.first))
        return fitted_trees(Experience(rows, problem.starts, problem.policy, problem.assumptions.discount), SEED)

    @cached_property
    def _all_trees(self) -> FeatureMap:
        return fitted_trees(self.early.problem.experience, SEED)

    @cached_property
    def _given(self) -> GivenValues:
        assert self.given is not None
        raw = GivenValues(self.given, self.early.data.states.shape[1], self._vectors)
        values = raw(self.early.points)
        scale = float(values.std())
        return GivenValues(self.given, raw.state_columns, self._vectors, float(values.mean()), scale if scale > 0 else 1.0)


def trains_networks(early: EarlyRows) -> bool:
    """Whether torch is installed and there are rows enough."""
    return importlib.util.find_spec("torch") is not None and len(early.data) >= FEWEST_TO_TRAIN
