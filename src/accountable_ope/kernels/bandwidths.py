"""Kernels narrowed by a factor, and points in units of the bandwidths of a kernel."""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray
from .kernel import Gaussian, Kernel, Laplace, Product
from .random_features import RandomFeatureKernel


def narrowed(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with `factor` times its bandwidths; of random features, the Gaussian that they stand for.

    Parts without a bandwidth, such as equality of actions, stay as they are.
    """
    match kernel:
        case Gaussian():
            return Gaussian(factor * kernel.bandwidth)
        case Laplace():
            return Laplace(factor * kernel.bandwidth)
        case RandomFeatureKernel():
            return Gaussian(factor * np.asarray(kernel.bandwidth))
        case Product():
            parts = narrowed(kernel.state_kernel, factor), narrowed(kernel.action_kernel, factor)
            return Product(*parts, kernel.state_dimension)
    return kernel


def in_bandwidths(kernel: Kernel, points: FloatArray) -> FloatArray | None:
    """The columns of the points that have a bandwidth, divided by it; None where none has."""
    match kernel:
        case Gaussian() | Laplace() | RandomFeatureKernel():
            return np.asarray(points / kernel.bandwidth)
        case Product():
            d = kernel.state_dimension
            parts = in_bandwidths(kernel.state_kernel, points[:, :d]), in_bandwidths(kernel.action_kernel, points[:, d:])
            known = [each for each in parts if each is not None]
            return np.concatenate(known, axis=1) if known else None
    return None
