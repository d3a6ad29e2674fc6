"""Q functions that are linear in features: callable, and saved as .npz (plain arrays, nothing that is executed on loading)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..kernels.kernel import Gaussian, Kernel, Laplace
from ..validation import FloatArray
from .features import FeatureMap, RandomFourier, TabularFeatures
from .sections import SectionBasis, SectionFeatures, Sections


@checked
@dataclass(frozen=True, eq=False)
class LinearQ:
    """Q(s, a) = theta'phi(s, a) (+ constant, the last coefficient, when the features have an intercept).

    Callable on states and actions, indices of a finite set or vectors.

    Parameters
    ----------
    features : FeatureMap
        phi.
    theta : array (m,)
        The coefficients.
    action_vectors : array (A, k), optional
        The vectors that action indices stand for.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import LinearQ, TabularFeatures
    >>> q = LinearQ(TabularFeatures([[0.0, 1.0], [1.0, 1.0]], intercept=False), np.array([2.0, 5.0]))
    >>> q(np.array([[1.0]]), np.array([[1.0]])).tolist()
    [5.0]
    """

    features: FeatureMap
    theta: FloatArray
    action_vectors: FloatArray | None = None

    def __repr__(self) -> str:
        return f"LinearQ({self.features!r}, {len(self.theta)} coefficients)"

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        return self.at_points(np.concatenate([states, self._vectors(np.asarray(actions))], axis=1))

    predict_value = __call__

    def at_points(self, points: FloatArray) -> FloatArray:
        """Q at rows x = (s, a)."""
        values = self.features(points) @ self.theta[: self.features.dimension]
        return np.asarray(values + self.theta[-1] if self.features.intercept else values)

    def minus(self, constant: float) -> LinearQ:
        """Q less a constant; the features must have an intercept."""
        if not self.features.intercept:
            raise InvalidInput("`constant` needs features with an intercept: this Q has no coefficient to subtract it from.")
        return replace(self, theta=np.append(self.theta[:-1], self.theta[-1] - constant))

    def _vectors(self, actions: Any) -> FloatArray:
        if actions.ndim == 2:
            return np.asarray(actions, dtype=np.float64)
        if self.action_vectors is None:
            raise InvalidInput("`actions` are indices, but this Q knows no finite action set: give action vectors.")
        return np.asarray(self.action_vectors[actions])


@checked
def save_linear_q(q: LinearQ, path: str | os.PathLike[str]) -> None:
    """Write coefficients and features as .npz, atomically.

    Parameters
    ----------
    q : LinearQ
    path : path

    Raises
    ------
    InvalidInput
        Where the features are of a kind that has no file format.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from accountable_ope import LinearQ, RandomFourier
    >>> from accountable_ope.classes import load_linear_q, save_linear_q
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_linear_q(LinearQ(RandomFourier(2), np.array([1.0, 2.0, 3.0])), Path(folder) / "q.npz")
    ...     load_linear_q(Path(folder) / "q.npz").theta.tolist()
    [1.0, 2.0, 3.0]
    """
    arrays = _feature_arrays(q.features)
    arrays["theta"] = np.asarray(q.theta)
    if q.action_vectors is not None:
        arrays["action_vectors"] = np.asarray(q.action_vectors)
    save_arrays(path, arrays)


@checked
def load_linear_q(path: str | os.PathLike[str]) -> LinearQ:
    """Read what `save_linear_q` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    LinearQ

    Raises
    ------
    InvalidFile
        Where the file is not there or is not a saved Q function.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from accountable_ope import LinearQ, RandomFourier
    >>> from accountable_ope.classes import load_linear_q, save_linear_q
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_linear_q(LinearQ(RandomFourier(2, bandwidth=0.5), np.zeros(3)), Path(folder) / "q.npz")
    ...     load_linear_q(Path(folder) / "q.npz").features
    RandomFourier(dimension=2, bandwidth=0.5, seed=0, intercept=True)
    """
    arrays = load_arrays(path, "a saved Q function", ("kind", "numbers", "theta"))
    try:
        return LinearQ(_features(arrays), arrays["theta"], arrays.get("action_vectors"))
    except (KeyError, ValueError, IndexError) as error:
        raise InvalidFile(f"{os.fspath(path)} is not a saved Q function ({error}).") from error


def _feature_arrays(features: FeatureMap) -> dict[str, np.ndarray[Any, Any]]:
    if isinstance(features, RandomFourier):
        numbers = [features.dimension, features.bandwidth, features.seed, features.intercept]
        return {"kind": np.array("random fourier"), "numbers": np.array(numbers, dtype=np.float64)}
    if isinstance(features, TabularFeatures):
        return {"kind": np.array("tabular"), "points": features.points, "numbers": np.array([features.intercept], dtype=float)}
    if isinstance(features, SectionFeatures):
        basis = features.basis
        if basis.pivots.covariance is not None:
            raise InvalidInput("Coordinates of a kernel averaged over normal actions cannot be saved.")
        sizes = [len(basis.starts.branches), len(basis.pivots.branches), basis.pivots.states]
        arrays = {
            "kind": np.array("sections"),
            "kernel": np.array(_kernel_name(basis.kernel)),
            "bandwidth": basis.kernel.bandwidth,  # type: ignore[attr-defined]
            "factor": basis.factor,
            "start_weights": basis.start_weights,
            "numbers": np.array([features.intercept, basis.start_square, *sizes]),
        }
        for name, sections in (("start", basis.starts), ("pivot", basis.pivots)):
            for index, (points, weights) in enumerate(sections.branches):
                arrays[f"{name}_points_{index}"], arrays[f"{name}_weights_{index}"] = points, weights
        return arrays
    raise InvalidInput(f"Features of type {type(features).__name__} cannot be saved.")


def _features(arrays: dict[str, np.ndarray[Any, Any]]) -> FeatureMap:
    kind, numbers = str(arrays["kind"]), arrays["numbers"].tolist()
    if kind == "random fourier":
        return RandomFourier(int(numbers[0]), numbers[1], int(numbers[2]), bool(numbers[3]))
    if kind == "tabular":
        return TabularFeatures(arrays["points"], bool(numbers[0]))
    if kind == "sections":
        states = int(numbers[4]) if len(numbers) > 4 else 0
        starts, pivots = (
            Sections(tuple((arrays[f"{name}_points_{k}"], arrays[f"{name}_weights_{k}"]) for k in range(int(count))), states)
            for name, count in (("start", numbers[2]), ("pivot", numbers[3]))
        )
        kernel: Kernel = (Gaussian if str(arrays["kernel"]) == "gaussian" else Laplace)(arrays["bandwidth"])
        basis = SectionBasis(kernel, starts, arrays["start_weights"], numbers[1], pivots, arrays["factor"])
        return SectionFeatures(basis, bool(numbers[0]))
    raise ValueError(f"unknown kind {kind!r}")


def _kernel_name(kernel: Kernel) -> str:
    if isinstance(kernel, Gaussian):
        return "gaussian"
    if isinstance(kernel, Laplace):
        return "laplace"
    raise InvalidInput(f"Coordinates of the kernel {kernel!r} cannot be saved; Gaussian and Laplace can.")
