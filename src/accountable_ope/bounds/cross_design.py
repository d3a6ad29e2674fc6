"""The columns of a cross-fitted estimate: features, a constant and landmark coordinates at rows, next states and start states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..classes.function_class import Columns, FunctionClass
from ..problem.problem import Problem
from ..validation import FloatArray, refuse_memory
from .cross_fitting import Design
from .landmarks import Landmarks


@dataclass(frozen=True, eq=False)
class Built:
    """A design, and where it came from."""

    design: Design
    classes: FunctionClass | None
    basis: Landmarks
    scale: FloatArray
    """The units of the features."""
    unlogged: float
    """The share of next and start pairs that were never logged, as far as that is known."""
    reference: float
    """From where values are counted: far from 0 a fit of the values themselves would have no digits left."""

    def q(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
        """Q = W theta as a function of points, None where features are known at the rows only."""
        constant, phi = self.design.constant, None if self.classes is None else self.classes.feature_map
        if self.classes is not None and phi is None:
            return None

        def values(points: FloatArray) -> FloatArray:
            found = theta[constant] + self.basis(points) @ theta[constant + 1 :]
            return np.asarray(found if phi is None else found + phi(points) @ (theta[:constant] / self.scale))

        return values


def build(problem: Problem, classes: FunctionClass | None, basis: Landmarks) -> Built:
    """W, L and l0, with features in units of their root mean square, so that their own units do not matter."""
    experience, count = problem.experience, len(problem.data)
    width = len(basis.points) + 1 + (0 if classes is None else classes.dimension or 0)
    refuse_memory(8.0 * width * (6 * count + 20 * width), "landmarks", f"{width} coordinates at {count} rows")
    coordinates, unlogged = basis.columns(experience)
    ones = Columns(np.ones((count, 1)), experience.live.astype(float)[:, None], np.ones((len(problem.starts), 1)))
    parts, scale = [ones, coordinates], np.ones(0)
    if classes is not None:
        given = classes.columns(experience)
        size = np.sqrt((given.here**2).mean(axis=0))
        scale = np.where(size > 0, size, 1.0)
        parts.insert(0, Columns(given.here / scale, given.after / scale, given.start / scale))
    here = np.concatenate([each.here for each in parts], axis=1)
    after = np.concatenate([each.after for each in parts], axis=1)
    start = np.concatenate([each.start for each in parts], axis=1)
    after *= -experience.discount
    after += here
    reference = problem.ranges.reference(terminates=problem.terminates)
    rewards = problem.data.rewards - (1 - experience.discount) * reference
    design = Design(here, after, rewards, start, problem.starts.weights @ start, len(scale))
    return Built(design, classes, basis, scale, unlogged, reference)
