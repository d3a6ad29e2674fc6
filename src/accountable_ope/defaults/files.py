"""A recipe as a file of plain arrays (.npz): nothing in it is executed when it is read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..classes.action_fourier import ActionFourier
from ..classes.features import FeatureMap, TabularFeatures
from ..classes.linear_q import LinearQ
from ..classes.neural import NeuralFeatures
from ..classes.whitened import WhitenedFeatures
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..kernels.kernel import Gaussian, Kernel, Tabular
from .recipe import Ball, ClassKind, Recipe

Arrays = dict[str, NDArray[Any]]
NEEDED = ("recipe", "kind", "features", "rows", "sha256", "bandwidth")


@checked
def save_recipe(recipe: Recipe, path: str | os.PathLike[str]) -> None:
    """Write a recipe as .npz, atomically.

    Parameters
    ----------
    recipe : Recipe
    path : path

    Raises
    ------
    InvalidInput
        Where features or kernel are not such as `choose_recipe` chooses.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, accountable_ope as aope
    >>> from pathlib import Path
    >>> from accountable_ope.defaults import choose_recipe, load_recipe, save_recipe
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_recipe(choose_recipe(problem, neural=False), Path(folder) / "choice.npz")
    ...     load_recipe(Path(folder) / "choice.npz").earlier_rows
    100
    """
    episodes = -1 if recipe.earlier_episodes is None else recipe.earlier_episodes
    arrays: Arrays = {
        "recipe": np.array(1),
        "kind": np.array(recipe.kind.name),
        "rows": np.array([recipe.earlier_rows, episodes]),
        "sha256": np.array(recipe.sha256),
        "bandwidth": _bandwidth(recipe.kernel),
        **_feature_arrays(recipe.features),
    }
    if recipe.estimate is not None and recipe.whitened is not None and recipe.ball is not None:
        ball, vectors = recipe.ball, recipe.estimate.action_vectors
        arrays |= {
            "theta": recipe.estimate.theta,
            "center": recipe.whitened.center,
            "directions": recipe.whitened.directions,
            "ball": np.array([ball.within, ball.span, ball.enlarged, ball.overlap, ball.wider]),
            "fit": np.array([recipe.ridge, recipe.held_out]),
        }
        if vectors is not None:
            arrays["action_vectors"] = vectors
    save_arrays(path, arrays)


@checked
def load_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Read what `save_recipe` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    Recipe

    Raises
    ------
    InvalidFile
        Where the file is not there or holds no recipe.

    Examples
    --------
    >>> from accountable_ope import InvalidFile
    >>> from accountable_ope.defaults import load_recipe
    >>> try:
    ...     load_recipe("nowhere.npz")
    ... except InvalidFile as error:
    ...     print(str(error)[:33])
    nowhere.npz is not a saved choice
    """
    arrays = load_arrays(path, "a saved choice", NEEDED)
    try:
        return _recipe(arrays)
    except (KeyError, ValueError, IndexError, TypeError, InvalidInput) as error:
        raise InvalidFile(f"{os.fspath(path)} is not a saved choice ({error}).") from error


def _recipe(arrays: Arrays) -> Recipe:
    rows, episodes = (int(each) for each in arrays["rows"])
    features = _features(arrays)
    widths = arrays["bandwidth"]
    kernel: Kernel = Gaussian(widths) if widths.size else Tabular()
    found = Recipe(
        ClassKind[str(arrays["kind"])], kernel, features, rows, None if episodes < 0 else episodes, str(arrays["sha256"])
    )
    if "theta" not in arrays:
        return found
    white = WhitenedFeatures(features, arrays["center"], arrays["directions"], features.intercept)
    within, span, enlarged, overlap, wider = (float(each) for each in arrays["ball"])
    ridge, held_out = (float(each) for each in arrays["fit"])
    theta = np.asarray(arrays["theta"], dtype=np.float64)
    if theta.shape != (features.dimension + features.intercept,) or not np.isfinite(theta).all():
        raise ValueError("its coefficients do not fit its features")
    estimate = LinearQ(features, theta, arrays.get("action_vectors"))
    ball = Ball(within, span, enlarged, overlap, wider)
    return Recipe(
        found.kind, kernel, features, rows, found.earlier_episodes, found.sha256, estimate, white, ball, ridge, held_out
    )


def _bandwidth(kernel: Kernel) -> NDArray[Any]:
    if isinstance(kernel, Gaussian):
        return np.atleast_1d(np.asarray(kernel.bandwidth, dtype=np.float64))
    if isinstance(kernel, Tabular):
        return np.zeros(0)
    raise InvalidInput(f"A recipe with the kernel {kernel!r} cannot be saved; Gaussian and Tabular can.")


def _feature_arrays(features: FeatureMap) -> Arrays:
    if isinstance(features, TabularFeatures):
        return {"features": np.array("table"), "points": features.points, "numbers": np.array([features.intercept], dtype=float)}
    if isinstance(features, ActionFourier):
        numbers = np.array([features.cosines, features.seed, features.intercept], dtype=float)
        arrays = {"features": np.array("cosines"), "widths": features.bandwidths, "numbers": numbers}
        return arrays if features.actions is None else arrays | {"actions": features.actions}
    if isinstance(features, NeuralFeatures):
        layers = {f"weights_{k}": layer for k, layer in enumerate(features.weights)}
        layers |= {f"biases_{k}": layer for k, layer in enumerate(features.biases)}
        numbers = np.array([len(features.weights), features.intercept], dtype=float)
        return {"features": np.array("network"), "scale": features.scale, "numbers": numbers, **layers}
    raise InvalidInput(f"A recipe with features of type {type(features).__name__} cannot be saved.")


def _features(arrays: Arrays) -> FeatureMap:
    numbers = [float(each) for each in arrays["numbers"]]
    match str(arrays["features"]):
        case "table":
            return TabularFeatures(arrays["points"], bool(numbers[0]))
        case "cosines":
            return ActionFourier(int(numbers[0]), arrays["widths"], arrays.get("actions"), int(numbers[1]), bool(numbers[2]))
        case "network":
            layers = range(int(numbers[0]))
            weights, biases = (tuple(arrays[f"{name}_{k}"] for k in layers) for name in ("weights", "biases"))
            return NeuralFeatures(weights, biases, arrays["scale"], bool(numbers[1]))
    raise ValueError(f"unknown features {arrays['features']!s}")
