"""Neural features as plain arrays: the hidden layers of a trained network, run in NumPy, saved as .npz."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..validation import FloatArray, frozen, matrix, vector


@checked
@dataclass(frozen=True, eq=False)
class NeuralFeatures:
    """phi(x) = scale * h_L(x), h_l = tanh(W_l h_{l-1} + b_l), h_0 = x.

    Parameters
    ----------
    weights : tuple of arrays (width, width before)
        W_l of every hidden layer; the scaling of the inputs is part of them.
    biases : tuple of arrays (width,)
        b_l of every hidden layer.
    scale : array (m,)
        Fixed by the training data so that the mean of ||phi||^2 over them is one.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where the layers do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import NeuralFeatures
    >>> features = NeuralFeatures((np.array([[1.0, 0.0], [0.0, 2.0]]),), (np.zeros(2),), np.array([1.0, 0.5]))
    >>> features(np.array([[0.5, 0.25]])).round(4)
    array([[0.4621, 0.2311]])
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    scale: FloatArray
    intercept: bool = True
    for_threads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        weights = tuple(frozen(matrix(layer, "weights")) for layer in self.weights)
        biases = tuple(frozen(vector(layer, "biases")) for layer in self.biases)
        scale = frozen(vector(self.scale, "scale"))
        chained = all(before.shape[0] == after.shape[1] for before, after in pairwise(weights))
        widths = [len(layer) for layer in weights]
        if not weights or not chained or [len(layer) for layer in biases] != widths or len(scale) != widths[-1]:
            raise InvalidInput("`weights`, `biases` and `scale` of NeuralFeatures must fit together, layer after layer.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "intercept", bool(self.intercept))

    @property
    def dimension(self) -> int:
        return len(self.scale)

    @property
    def diameter(self) -> float:
        """Every hyperbolic tangent lies in (-1, 1)."""
        return 2 * float(np.linalg.norm(self.scale))

    def spread(self, half_widths: FloatArray) -> float:
        """The hyperbolic tangent has slope at most 1: the product of the layers' norms, a coarse bound."""
        growth = float(np.prod([np.linalg.norm(layer, 2) for layer in self.weights]))
        return float(np.abs(self.scale).max()) * growth * float(np.linalg.norm(half_widths))

    @property
    def digest(self) -> str:
        """Eight letters that name these weights: a certificate says which network it is about."""
        contents = b"".join(array.tobytes() for array in (*self.weights, *self.biases, self.scale))
        return hashlib.sha256(contents).hexdigest()[:8]

    def __repr__(self) -> str:
        widths = [self.weights[0].shape[1], *(len(layer) for layer in self.weights)]
        return f"NeuralFeatures({' -> '.join(map(str, widths))}, intercept={self.intercept}, digest={self.digest})"

    def __call__(self, points: FloatArray) -> FloatArray:
        if points.shape[1] != self.weights[0].shape[1]:
            raise InvalidInput(f"NeuralFeatures take {self.weights[0].shape[1]}-d points (s, a). Got {points.shape[1]}-d ones.")
        return np.asarray(self.scale * hidden_layers(self.weights, self.biases, points))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as .npz, atomically."""
        shapes = np.array([layer.shape for layer in self.weights], dtype=np.int64)
        flat = np.concatenate([array.ravel() for array in (*self.weights, *self.biases)])
        save_arrays(path, {"shapes": shapes, "parameters": flat, "scale": self.scale, "intercept": np.array(self.intercept)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NeuralFeatures:
        """Read what `save` wrote; nothing in the file is executed."""
        arrays = load_arrays(path, "a file of saved NeuralFeatures", ("shapes", "parameters", "scale", "intercept"))
        try:
            shapes = [(int(rows), int(columns)) for rows, columns in arrays["shapes"]]
            sizes = [rows * columns for rows, columns in shapes] + [rows for rows, _ in shapes]
            parts = np.split(arrays["parameters"], np.cumsum(sizes))
            if len(parts[-1]):
                raise ValueError("it holds more parameters than layers")
            weights = tuple(part.reshape(shape) for part, shape in zip(parts[: len(shapes)], shapes, strict=True))
            return cls(weights, tuple(parts[len(shapes) : -1]), arrays["scale"], bool(arrays["intercept"]))
        except (ValueError, TypeError) as error:
            raise InvalidFile(f"{os.fspath(path)} is not a file of saved NeuralFeatures ({error}).") from error


def hidden_layers(weights: Sequence[FloatArray], biases: Sequence[FloatArray], points: FloatArray) -> FloatArray:
    """h_L at rows of points."""
    layer = points
    for w, b in zip(weights, biases, strict=True):
        layer = np.tanh(layer @ w.T + b)
    return layer
