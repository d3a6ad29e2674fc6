"""A recipe as a file of plain arrays (.npz): nothing in it is executed when it is read."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..classes.action_fourier import ActionFourier
from ..classes.action_states import ActionProducts, ActionTiles
from ..classes.features import FeatureMap, TabularFeatures
from ..classes.given_values import GivenValues
from ..classes.joined import JoinedFeatures
from ..classes.linear_q import LinearQ
from ..classes.neural import NeuralFeatures
from ..classes.tree_values import TreeValues
from ..classes.whitened import WhitenedFeatures
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..kernels.kernel import Gaussian, Kernel, Tabular
from ..statistics.estimates import QFunction
from .judging import Judged
from .made_for import MadeFor
from .recipe import Ball, ClassKind, Recipe

Arrays = dict[str, NDArray[Any]]
NUMBERS = ("misfit", "noise", "loss", "deviation", "chance", "ridge")
"""What is kept of every candidate, in the order of `Judged`."""

NEEDED = ("recipe", "kind", "features", "rows", "sha256", "bandwidth", "asked", "starts", "policy")


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
        "asked": np.array([recipe.made_for.discount, *recipe.made_for.reward_range, *recipe.made_for.value_range]),
        "starts": np.array(recipe.made_for.starts),
        "policy": recipe.made_for.policy,
        "bandwidth": _bandwidth(recipe.kernel),
        **_feature_arrays(recipe.features),
    }
    if recipe.unused_within is not None:
        arrays["unused_within"] = np.array(recipe.unused_within)
    if recipe.estimate is not None and recipe.whitened is not None and recipe.ball is not None:
        ball, vectors = recipe.ball, recipe.estimate.action_vectors
        arrays |= {
            "theta": recipe.estimate.theta,
            "center": recipe.whitened.center,
            "directions": recipe.whitened.directions,
            "ball": np.array([ball.within, ball.span, ball.enlarged, ball.overlap, ball.wider]),
            "ridge": np.array(recipe.ridge),
            **_table_arrays(recipe),
        }
        if vectors is not None:
            arrays["action_vectors"] = vectors
    save_arrays(path, arrays)


@checked
def load_recipe(path: str | os.PathLike[str], given: QFunction | None = None) -> Recipe:
    """Read what `save_recipe` wrote.

    Parameters
    ----------
    path : path
    given : callable, optional
        The estimate that was given when the choice was made, which no file holds; needed where it is part of the class.

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
        return _recipe(arrays, given)
    except (KeyError, ValueError, IndexError, TypeError, InvalidInput) as error:
        raise InvalidFile(f"{os.fspath(path)} is not a saved choice ({error}).") from error


def _recipe(arrays: Arrays, given: QFunction | None) -> Recipe:
    rows, episodes = (int(each) for each in arrays["rows"])
    features = _features(arrays, given)
    widths = arrays["bandwidth"]
    kernel: Kernel = Gaussian(widths) if widths.size else Tabular()
    discount, low, high, least, largest = (float(each) for each in arrays["asked"])
    policy = np.asarray(arrays["policy"], dtype=np.float64)
    if policy.ndim != 2 or not np.isfinite([discount, low, high, least, largest, *policy.flat]).all():
        raise ValueError("it does not say what it was made for")
    found = Recipe(
        kind=ClassKind[str(arrays["kind"])],
        kernel=kernel,
        features=features,
        earlier_rows=rows,
        earlier_episodes=None if episodes < 0 else episodes,
        sha256=str(arrays["sha256"]),
        made_for=MadeFor(discount, (low, high), (least, largest), str(arrays["starts"]), policy),
        unused_within=float(arrays["unused_within"]) if "unused_within" in arrays else None,
    )
    if "theta" not in arrays:
        return found
    white = WhitenedFeatures(features, arrays["center"], arrays["directions"], features.intercept)
    within, span, enlarged, overlap, wider = (float(each) for each in arrays["ball"])
    if not (within > 0 and span > 0 and enlarged >= 1 and wider > 0 and np.isfinite([within, span, enlarged, wider]).all()):
        raise ValueError("its ball is none")
    theta = np.asarray(arrays["theta"], dtype=np.float64)
    if theta.shape != (features.dimension + features.intercept,) or not np.isfinite(theta).all():
        raise ValueError("its coefficients do not fit its features")
    estimate = LinearQ(features, theta, arrays.get("action_vectors"))
    ball = Ball(within, span, enlarged, overlap, wider)
    return replace(
        found,
        estimate=estimate,
        whitened=white,
        ball=ball,
        ridge=float(arrays["ridge"]),
        candidates=_table(arrays),
        judged_by=int(arrays["judged_by"]),
    )


def _table_arrays(recipe: Recipe) -> Arrays:
    """The candidates, a row for each."""
    listed = recipe.candidates
    numbers = [[each.columns, *(getattr(each, name) for name in NUMBERS)] for each in listed]
    return {
        "candidate_names": np.array([each.name for each in listed]),
        "candidate_numbers": np.array(numbers, dtype=float),
        "candidate_chosen": np.array([each.chosen for each in listed]),
        "judged_by": np.array(recipe.judged_by),
    }


def _table(arrays: Arrays) -> tuple[Judged, ...]:
    names, numbers, chosen = (arrays[f"candidate_{name}"] for name in ("names", "numbers", "chosen"))
    if not len(names) == len(numbers) == len(chosen) or chosen.sum() != 1:
        raise ValueError("its table of candidates has no row that was chosen")
    found = []
    for name, row, mark in zip(names.tolist(), numbers.tolist(), chosen.tolist(), strict=True):
        columns, misfit, noise, loss, deviation, chance, ridge = row
        found.append(Judged(str(name), int(columns), misfit, noise, loss, deviation, chance, ridge, bool(mark)))
    return tuple(found)


def _bandwidth(kernel: Kernel) -> NDArray[Any]:
    if isinstance(kernel, Gaussian):
        return np.atleast_1d(np.asarray(kernel.bandwidth, dtype=np.float64))
    if isinstance(kernel, Tabular):
        return np.zeros(0)
    raise InvalidInput(f"A recipe with the kernel {kernel!r} cannot be saved; Gaussian and Tabular can.")


def _feature_arrays(features: FeatureMap) -> Arrays:
    if isinstance(features, JoinedFeatures):
        sizes = np.array([len(features.parts), features.intercept], dtype=float)
        arrays: Arrays = {"features": np.array("joined"), "numbers": sizes}
        for index, part in enumerate(features.parts):
            arrays |= {f"part_{index}_{name}": array for name, array in _feature_arrays(part).items()}
        return arrays
    if isinstance(features, TreeValues):
        numbers = np.array([features.center, features.scale, features.intercept], dtype=float)
        trees = {name: getattr(features, name) for name in ("column", "child", "threshold", "value")}
        return {"features": np.array("trees"), "numbers": numbers, **trees}
    if isinstance(features, ActionProducts):
        numbers = np.array([features.degree, features.intercept], dtype=float)
        arrays = {
            "features": np.array("products"),
            "middle": features.center,
            "scale": features.scale,
            "numbers": numbers,
        }
        return arrays if features.actions is None else arrays | {"actions": features.actions}
    if isinstance(features, ActionTiles):
        numbers = np.array([features.cells, features.grids, features.intercept], dtype=float)
        arrays = {"features": np.array("tiles"), "low": features.low, "high": features.high, "numbers": numbers}
        return arrays if features.actions is None else arrays | {"actions": features.actions}
    if isinstance(features, GivenValues):
        numbers = np.array([features.state_columns, features.center, features.scale, features.intercept], dtype=float)
        arrays = {"features": np.array("given"), "numbers": numbers}
        return arrays if features.action_vectors is None else arrays | {"given_actions": features.action_vectors}
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


def _features(arrays: Arrays, given: QFunction | None) -> FeatureMap:
    numbers = [float(each) for each in arrays["numbers"]]
    match str(arrays["features"]):
        case "joined":
            return JoinedFeatures(tuple(_features(_part(arrays, k), given) for k in range(int(numbers[0]))), bool(numbers[1]))
        case "trees":
            center, scale, intercept = numbers
            column, child, threshold, value = (arrays[name] for name in ("column", "child", "threshold", "value"))
            return TreeValues(column, child, threshold, value, center, scale, bool(intercept))
        case "products":
            middle, actions = arrays["middle"], arrays.get("actions")
            return ActionProducts(middle, arrays["scale"], int(numbers[0]), actions, bool(numbers[1]))
        case "tiles":
            cells, grids = int(numbers[0]), int(numbers[1])
            return ActionTiles(arrays["low"], arrays["high"], cells, grids, arrays.get("actions"), bool(numbers[2]))
        case "given":
            if given is None:
                raise ValueError("its class has a given estimate: hand it in as `given`")
            columns, center, scale, intercept = numbers
            return GivenValues(given, int(columns), arrays.get("given_actions"), center, scale, bool(intercept))
        case "table":
            return TabularFeatures(arrays["points"], bool(numbers[0]))
        case "cosines":
            return ActionFourier(int(numbers[0]), arrays["widths"], arrays.get("actions"), int(numbers[1]), bool(numbers[2]))
        case "network":
            layers = range(int(numbers[0]))
            weights, biases = (tuple(arrays[f"{name}_{k}"] for k in layers) for name in ("weights", "biases"))
            return NeuralFeatures(weights, biases, arrays["scale"], bool(numbers[1]))
    raise ValueError(f"unknown features {arrays['features']!s}")


def _part(arrays: Arrays, index: int) -> Arrays:
    """The arrays of one of several features side by side."""
    prefix = f"part_{index}_"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
