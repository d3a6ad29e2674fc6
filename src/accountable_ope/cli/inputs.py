"""From the words of a command line to data, start states, policy and features."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..bounds.diagnosis import AnyQ, QColumns
from ..classes.features import FeatureMap, KernelSections, RandomFourier, TabularFeatures
from ..errors import InvalidFile, InvalidInput
from ..io.parquet import AT_NEXT, AT_STATE, StartFile, TransitionFile, read_start_file, read_transition_file
from ..kernels.kernel import Gaussian, Kernel, Laplace, Tabular
from ..problem.policy import DeterministicPolicy, DiscretePolicy, Policy, TabulatedPolicy, action_vectors
from ..problem.transitions import StartStates, Transitions
from ..statistics.bellman import QFunction
from ..validation import FloatArray

MEMORY_LIMIT = 16 * 2**30
"""Landmarks that would need more bytes than this are refused before any work."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What a command works on."""

    data: Transitions
    starts: StartStates
    policy: Policy
    file: TransitionFile
    start_file: StartFile | None


def read_problem(
    data_path: Path,
    starts_path: Path | None,
    sampled_starts: bool,
    policy_name: str | None,
    action_values: str | None,
    need_starts: bool = True,
) -> Problem:
    """Data, start states and the target policy: from the files' columns, or from `module:function`."""
    file = read_transition_file(data_path)
    start_file = _read_starts(file, starts_path, sampled_starts) if need_starts else None
    if policy_name is None:
        policy: Policy = policy_from_columns(file, start_file, action_values, str(data_path))
    else:
        policy = policy_from_name(policy_name, file.data, action_values)
    starts = StartStates(file.data.states[:1]) if start_file is None else start_file.starts
    return Problem(file.data, starts, policy, file, start_file)


def read_q(name: str | None, problem: Problem) -> AnyQ:
    """The estimate to diagnose: `module:function`, or the columns q and next_q, and q of the start file."""
    if name is not None:
        found = _named(name, "--q")
        return _guarded_q(found, name) if callable(found) else found
    starts = problem.start_file
    columns = (problem.file.q, problem.file.next_q, None if starts is None else starts.q)
    for values, what in zip(columns, ("`q` in the data", "`next_q` in the data", "`q` in the --starts file"), strict=True):
        if values is None:
            raise InvalidFile(f"There is no column {what}: give the estimate as columns, or --q module:function.")
    return QColumns(*columns)


def _named(name: str, option: str) -> Any:
    """module:attribute, looked up from the current folder."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InvalidInput(f"{option} must be module:function. Got {name!r}.")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"{option} {name}: {error}.") from error


def _guarded_q(function: QFunction, name: str) -> QFunction:
    """The user's Q, whose own errors become one sentence that names it."""

    def call(states: Any, actions: Any) -> ArrayLike:
        try:
            return function(states, actions)
        except Exception as error:
            raise InvalidInput(f"--q {name} raised {type(error).__name__}: {error}.") from error

    return call


def _read_starts(file: TransitionFile, path: Path | None, sampled: bool) -> StartFile:
    if path is not None:
        return read_start_file(path, exact=not sampled)
    if file.data.episodes is None:
        raise InvalidInput("--starts is needed: the data have no `episode` column, so nobody knows where episodes start.")
    _, first_rows = np.unique(file.data.episodes, return_index=True)
    return StartFile(file.data.first_states(), None if file.at_state is None else file.at_state[np.sort(first_rows)])


def policy_from_columns(file: TransitionFile, starts: StartFile | None, action_values: str | None, name: str) -> TabulatedPolicy:
    """The policy as it stands in the columns; at terminated rows it is not needed."""
    if file.at_next is None:
        raise InvalidFile(
            f"{name} has no column `{AT_NEXT}` (nor `{AT_NEXT}_0`): give the target policy's probabilities at the next "
            "states, or --policy module:function."
        )
    if starts is not None and starts.at_state is None:
        raise InvalidFile(
            f"The start states have no column `{AT_STATE}`: give the target policy's probabilities at the start states "
            f"(in the --starts file, or, for first states of episodes, in {name})."
        )
    if not file.data.finite_actions:
        raise InvalidInput("`action` must be a column of whole numbers when the policy is given as columns of probabilities.")
    live = ~file.data.terminated
    tables = [(file.data.next_states[live], file.at_next[live], AT_NEXT)]
    if starts is not None and starts.at_state is not None:
        tables.append((starts.starts.states, starts.at_state, AT_STATE))
    if file.at_state is not None:
        tables.append((file.data.states, file.at_state, AT_STATE))
    widths = {probabilities.shape[1] for _, probabilities, _ in tables}
    if len(widths) != 1:
        raise InvalidInput(f"`{AT_STATE}` and `{AT_NEXT}` must have one column per action, all the same number. Got {widths}.")
    for states, probabilities, column in tables:
        if states.shape[1] != file.data.states.shape[1]:
            raise InvalidInput(f"Start states have {states.shape[1]} columns, states have {file.data.states.shape[1]}.")
        _check_probabilities(probabilities, column)
    vectors = parse_action_values(action_values, widths.pop())
    return TabulatedPolicy(np.concatenate([t[0] for t in tables]), np.concatenate([t[1] for t in tables]), vectors)


def policy_from_name(name: str, data: Transitions, action_values: str | None) -> Policy:
    """`module:function`, looked up from the current folder: a policy object, or a function of the states."""
    found = _named(name, "--policy")
    if isinstance(found, Policy):
        return found
    if not callable(found):
        raise InvalidInput(f"--policy {name} must be a function of the states or a policy object. It is {type(found).__name__}.")
    function = _guarded(found, name)
    if not data.finite_actions:
        return DeterministicPolicy(function)
    probabilities = np.asarray(function(data.states[:1]))
    if probabilities.ndim != 2 or len(probabilities) != 1:
        raise InvalidInput(
            f"--policy {name} must map states (n, d) to probabilities (n, actions). Got shape {probabilities.shape}."
        )
    return DiscretePolicy(function, parse_action_values(action_values, probabilities.shape[1]))


def _guarded(function: Callable[[FloatArray], ArrayLike], name: str) -> Callable[[FloatArray], ArrayLike]:
    """The user's function, whose own errors become one sentence that names it."""

    def call(states: FloatArray) -> ArrayLike:
        try:
            return function(states)
        except Exception as error:
            raise InvalidInput(f"--policy {name} raised {type(error).__name__}: {error}.") from error

    return call


def parse_action_values(text: str | None, count: int) -> FloatArray:
    """'-1,0,1' -> one number per action; 'a1,a2;b1,b2' -> vectors; nothing -> one-hot vectors."""
    if text is None:
        return action_vectors(count)
    try:
        rows = [[float(x) for x in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise InvalidInput(f"--action-values must be numbers separated by commas. Got {text!r}.") from None
    if len(rows) == 1:
        rows = [[x] for x in rows[0]]
    if len({len(row) for row in rows}) != 1 or len(rows) != count:
        raise InvalidInput(f"--action-values must name {count} actions, all vectors of one length. Got {text!r}.")
    return action_vectors(rows)


def parse_bandwidth(text: str, option: str) -> FloatArray:
    """One number, or one per column of (state, action) separated by commas."""
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} must be a number, or numbers separated by commas. Got {text!r}.") from None
    if not all(math.isfinite(x) and x > 0 for x in numbers):
        raise InvalidInput(f"{option} must be positive. Got {text!r}.")
    return np.array(numbers[0] if len(numbers) == 1 else numbers)


def build_kernel(name: str, bandwidth: FloatArray) -> Kernel:
    """The test kernel by name."""
    if name == "gaussian":
        return Gaussian(bandwidth)
    if name == "laplace":
        return Laplace(bandwidth)
    if name == "tabular":
        return Tabular()
    raise InvalidInput(f"--kernel must be gaussian, laplace or tabular. Got {name!r}.")


def build_features(
    problem: Problem,
    tabular: bool,
    dimension: int,
    bandwidths: list[float],
    landmarks: int | None,
    seed: int,
    intercept: bool,
) -> list[FeatureMap | KernelSections]:
    """One-hot features over the states that occur, an RKHS by landmarks, or random Fourier features; a class per bandwidth."""
    if tabular and landmarks is not None:
        raise InvalidInput("--tabular and --landmarks exclude each other.")
    if landmarks is not None:
        classes = [KernelSections(Gaussian(bandwidth), landmarks or None, intercept) for bandwidth in bandwidths]
        needed = sum(one.memory(len(problem.data)) for one in classes)
        if needed > MEMORY_LIMIT:
            raise InvalidInput(
                f"--landmarks {landmarks} on {len(problem.data)} rows needs about {needed / 2**30:.1f} GiB. Use fewer landmarks."
            )
        return list(classes)
    if not tabular:
        return [RandomFourier(dimension, bandwidth, seed, intercept) for bandwidth in bandwidths]
    vectors = problem.policy.action_vectors
    if vectors is None:
        raise InvalidInput("--tabular needs a finite action set.")
    live = ~problem.data.terminated
    states = np.concatenate([problem.data.states, problem.data.next_states[live], problem.starts.states])
    distinct = np.unique(states, axis=0)
    if len(distinct) * len(vectors) > 5000:
        raise InvalidInput(f"--tabular is for few states: there are {len(distinct)} different ones and {len(vectors)} actions.")
    return [TabularFeatures.grid(distinct, vectors, intercept)]


def _check_probabilities(values: FloatArray, column: str) -> None:
    """Name the column in the message, which the policy table itself cannot."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"`{column}` has NaN or infinite entries, first in row {int(np.argwhere(~np.isfinite(values))[0][0])}."
        )
    sums = values.sum(axis=1)
    wrong = (np.abs(sums - 1) > 1e-6) | (values < -1e-9).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(
            f"`{column}` must hold probabilities that sum to one. Row {row} is {values[row].tolist()}, sum {sums[row]:.6g}."
        )
