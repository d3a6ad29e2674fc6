"""Classes of functions to descriptions and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import InvalidFile
from ..kernels.description import describe_kernel, described_kernel
from ..problem.description import Description, described
from .action_fourier import ActionFourier
from .action_states import ActionProducts, ActionTiles
from .features import FeatureMap, RandomFourier, TabularFeatures
from .function_class import Features, FunctionClass, Span
from .joined import JoinedFeatures
from .neural import NeuralFeatures
from .rkhs import KernelSections
from .semi_parametric import SemiParametric
from .tree_values import TreeValues
from .whitened import ScaledFeatures, WhitenedFeatures


def describe_class(function_class: FunctionClass) -> Description:
    """What a class of functions is, as data; of one that is not ours, its text alone."""
    text = repr(function_class)
    phi = function_class.feature_map
    match function_class, phi:
        case Span(), RandomFourier():
            size, width = phi.dimension, float(phi.bandwidth)
            return described(
                text, "RandomFourier", dimension=size, bandwidth=width, seed=phi.seed, intercept=function_class.intercept
            )
        case Span(), TabularFeatures():
            return described(text, "TabularFeatures", points=_rows(phi.points), intercept=function_class.intercept)
        case Span(), NeuralFeatures():
            layers = {f"weights_{k}": _rows(layer) for k, layer in enumerate(phi.weights)}
            biases = {f"biases_{k}": tuple(layer.tolist()) for k, layer in enumerate(phi.biases)}
            scale = tuple(phi.scale.tolist())
            return described(text, "NeuralFeatures", **layers, **biases, scale=scale, intercept=function_class.intercept)
        case Span(), ActionFourier():
            actions = None if phi.actions is None else _rows(phi.actions)
            widths, intercept = tuple(phi.bandwidths.tolist()), function_class.intercept
            return described(
                text,
                "ActionFourier",
                cosines=phi.cosines,
                bandwidths=widths,
                actions=actions,
                seed=phi.seed,
                intercept=intercept,
            )
        case Span(), JoinedFeatures():
            parts = [_base(part) for part in phi.parts]
            kind = "JoinedFeatures" if all(part.kind for part in parts) else ""
            return described(text, kind, *parts, intercept=function_class.intercept)
        case Span(), ActionProducts() | ActionTiles() | TreeValues():
            names = [field.name for field in fields(phi) if field.name != "intercept"]
            plain = {name: _plain(getattr(phi, name)) for name in names}
            return described(text, type(phi).__name__, **plain, intercept=function_class.intercept)
        case Span(), WhitenedFeatures():
            base, center = _base(phi.base), tuple(phi.center.tolist())
            kind, directions = "WhitenedFeatures" if base.kind else "", _rows(phi.directions)
            return described(text, kind, base, center=center, directions=directions, intercept=function_class.intercept)
        case Span(), ScaledFeatures():
            base = _base(phi.base)
            return described(text, "ScaledFeatures" if base.kind else "", base, factor=float(phi.factor))
        case KernelSections(), _:
            kernel = describe_kernel(function_class.kernel)
            kind = "KernelSections" if kernel.kind else ""
            return described(text, kind, kernel, landmarks=function_class.landmarks, intercept=function_class.intercept)
        case SemiParametric(), _:
            kernel, base = describe_kernel(function_class.kernel), _base(function_class.features)
            kind = "SemiParametric" if kernel.kind and base.kind else ""
            return described(text, kind, kernel, base, landmarks=function_class.landmarks)
    return Description(text)


def described_class(description: Description) -> Features:
    """The class that was described.

    Raises
    ------
    InvalidFile
        Where it is not one of ours.
    """
    values: Any = {each.name: each.value for each in description.parameters}
    try:
        match description.kind:
            case "RandomFourier":
                return RandomFourier(**values)
            case "TabularFeatures":
                return TabularFeatures(**values)
            case "NeuralFeatures":
                weights = tuple(np.array(v) for name, v in values.items() if name.startswith("weights_"))
                biases = tuple(np.array(v) for name, v in values.items() if name.startswith("biases_"))
                return NeuralFeatures(weights, biases, np.array(values["scale"]), values["intercept"])
            case "ActionFourier":
                return ActionFourier(**values)
            case "JoinedFeatures":
                return JoinedFeatures(tuple(_described_map(part) for part in description.parts), **values)
            case "ActionProducts":
                return ActionProducts(**_with_arrays(values))
            case "ActionTiles":
                return ActionTiles(**_with_arrays(values))
            case "TreeValues":
                return TreeValues(**_with_arrays(values))
            case "WhitenedFeatures":
                base, center, directions = _described_map(description.parts[0]), values["center"], values["directions"]
                return WhitenedFeatures(base, np.array(center), np.array(directions), values["intercept"])
            case "ScaledFeatures":
                return ScaledFeatures(_described_map(description.parts[0]), **values)
            case "KernelSections":
                return KernelSections(described_kernel(description.parts[0]), **values)
            case "SemiParametric":
                kernel, base = described_kernel(description.parts[0]), _described_map(description.parts[1])
                return SemiParametric(base, kernel, **values)
    except (TypeError, KeyError, IndexError) as error:
        raise InvalidFile(f"A class {description.kind} cannot be made from its parameters: {error}.") from error
    raise InvalidFile(f"The class {description.text} cannot be made again from a file: give it as `features`.")


def _base(features: FeatureMap) -> Description:
    """The features that others are made from."""
    return describe_class(Span(features, features.intercept))


def _described_map(description: Description) -> FeatureMap:
    found = described_class(description)
    if not isinstance(found, FeatureMap):
        raise InvalidFile(f"{description.text} are no features.")
    return found


def _plain(value: Any) -> Any:
    """An array as tuples of numbers; what is no array as it is."""
    if not isinstance(value, np.ndarray):
        return value
    return _rows(value) if value.ndim == 2 else tuple(map(float, value))


def _with_arrays(values: dict[str, Any]) -> dict[str, Any]:
    """The other way round. Integers of trees were written as the numbers that they are."""
    found = {name: np.array(value) if isinstance(value, tuple | list) else value for name, value in values.items()}
    return {name: value.astype(np.int64) if name in ("column", "child") else value for name, value in found.items()}


def _rows(array: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in array)
