"""Kernels to descriptions and back."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidFile
from ..problem.description import Description, described
from .kernel import Gaussian, Kernel, Laplace, Product, Tabular
from .random_features import RandomFeatureKernel


def describe_kernel(kernel: Kernel) -> Description:
    """What a kernel is, as data; of one that is not ours, its text alone."""
    text = repr(kernel)
    match kernel:
        case Gaussian() | Laplace():
            widths: Any = kernel.bandwidth.tolist()
            return described(text, type(kernel).__name__, bandwidth=tuple(widths) if isinstance(widths, list) else float(widths))
        case Tabular():
            return described(text, "Tabular")
        case Product():
            parts = (describe_kernel(kernel.state_kernel), describe_kernel(kernel.action_kernel))
            kind = "Product" if all(part.kind for part in parts) else ""
            return described(text, kind, *parts, state_dimension=kernel.state_dimension)
        case RandomFeatureKernel():
            size, width = kernel.dimension, kernel.bandwidth
            return described(text, "RandomFeatureKernel", dimension=size, bandwidth=width, seed=kernel.seed)
    return Description(text)


def described_kernel(description: Description) -> Kernel:
    """The kernel that was described.

    Raises
    ------
    InvalidFile
        Where it is not one of ours.
    """
    values: Any = {each.name: each.value for each in description.parameters}
    try:
        match description.kind:
            case "Gaussian":
                return Gaussian(**values)
            case "Laplace":
                return Laplace(**values)
            case "Tabular":
                return Tabular()
            case "Product":
                first, second = map(described_kernel, description.parts)
                return Product(first, second, **values)
            case "RandomFeatureKernel":
                return RandomFeatureKernel(**values)
    except (TypeError, ValueError) as error:
        raise InvalidFile(f"A kernel {description.kind} cannot be made from its parameters: {error}.") from error
    raise InvalidFile(f"The kernel {description.text} cannot be made again from a file: give it as `kernel`.")
