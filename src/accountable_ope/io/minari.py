"""Transitions as Minari datasets, the format of the Farama Foundation for logged episodes.

A row of Transitions is a step of an episode there: T steps have T + 1 observations, and a step may be terminated or truncated.
Only `terminated` makes the next state worthless, so it alone is read; where both are set the episode did end.

The probabilities of the logged actions are `infos["behavior_probability"]`. Infos are those of the reset and of every step,
T + 1 in all: the first, before anybody acted, is 1 and not read.

Datasets lie in the folder MINARI_DATASETS_PATH, ~/.minari/datasets unless it is set.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..errors import AopeError, InvalidFile, InvalidInput, MissingExtra
from ..problem.row_columns import LOGGED
from ..problem.transitions import Transitions
from ..validation import FloatArray, IntArray, vector, whole

# Minari's other formats, Arrow and Parquet, give back only the first rows of an episode of more than 32,767 steps.
_FORMAT = "hdf5"
_IDENTIFIER = re.compile(r"(?!.*//)(?:[-\w][-\w/]*[-\w]/)?[-\w]+-v\d+", re.ASCII)


@checked
def save_minari(
    data: Transitions,
    dataset_id: str,
    *,
    actions: int | None = None,
    state_box: tuple[Sequence[float], Sequence[float]] | None = None,
    description: str | None = None,
) -> Path:
    """Write episodes as a new Minari dataset, without an environment.

    An episode's last step is truncated unless it is terminated. Rows of an episode must follow each other, the next state of one
    the state of the next: Minari holds one observation for both.

    Parameters
    ----------
    data : Transitions
    dataset_id : str
        Such as puck-v0 or group/puck-v0. A dataset of that name must not exist.
    actions : int, optional
        Size of the finite action set; None for one more than the largest index, which may be too few.
    state_box : tuple of two sequences, optional
        Lowest and highest value of every coordinate of the states; None for no bounds, since the data do not tell.
    description : str, optional
        Goes into the metadata of the dataset.

    Returns
    -------
    Path
        The folder that holds the dataset.

    Raises
    ------
    InvalidInput
        Where the id is none or taken, or the rows are no episodes that Minari can hold.
    InvalidFile
        Where Minari cannot write the dataset.
    MissingExtra
        Where Minari is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> from accountable_ope import Transitions
    >>> from accountable_ope.io import load_minari, save_minari
    >>> data = Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]], episodes=[0, 0])
    >>> before = os.environ.get("MINARI_DATASETS_PATH")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["MINARI_DATASETS_PATH"] = folder
    ...     rewards = load_minari(save_minari(data, "example-v0")).rewards
    >>> _ = os.environ.pop("MINARI_DATASETS_PATH") if before is None else os.environ.update(MINARI_DATASETS_PATH=before)
    >>> rewards
    array([0.5, 0. ])
    """
    if data.headless.any():
        raise InvalidInput(
            "Some episodes began before these rows, which a Minari dataset cannot say: save them as Parquet, or only "
            "`data.whole_episodes()`."
        )
    episodes = _episodes(data)
    count = _action_count(data, actions)
    low, high = _box(data, state_box)
    folder = new_minari_folder(dataset_id)
    with _telling(dataset_id, "written"):
        import minari
        from gymnasium import spaces
        from minari.data_collector import EpisodeBuffer

        buffers = [
            EpisodeBuffer(
                observations=np.concatenate([data.states[rows], data.next_states[rows][-1:]]),
                actions=data.actions[rows],
                rewards=data.rewards[rows],
                terminations=data.terminated[rows],
                truncations=_last_unless(data.terminated[rows]),
                infos=None if data.behavior_probability is None else {LOGGED: np.append(1.0, data.behavior_probability[rows])},
            )
            for rows in episodes
        ]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about authors and links, which are not asked for
                minari.create_dataset_from_buffers(
                    dataset_id,
                    buffers,
                    observation_space=spaces.Box(low, high, dtype=np.float64),
                    action_space=(
                        spaces.Box(-np.inf, np.inf, data.actions.shape[1:], np.float64)
                        if count is None
                        else spaces.Discrete(count)
                    ),
                    description=description,
                    data_format=_FORMAT,
                )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # nothing half written stays; there was nothing here before
            raise
    return folder


@checked
def load_minari(dataset: str | os.PathLike[str]) -> Transitions:
    """All rows of a Minari dataset on this machine. Nothing is downloaded, and no environment is made: that could run any code.

    Parameters
    ----------
    dataset : str or path
        Its id, or its folder (a path, or text that is no id). Observations and actions may be numbers or arrays of them (Box,
        Discrete, MultiDiscrete, MultiBinary); arrays are flattened, and discrete actions become indices from 0.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidFile
        Where there is no such dataset, or it cannot be read as transitions.
    MissingExtra
        Where Minari is not installed.

    Examples
    --------
    See `save_minari` for a dataset that is written and read again.

    >>> from accountable_ope.io import load_minari
    >>> load_minari("no/such/folder")
    Traceback (most recent call last):
    accountable_ope.errors.InvalidFile: ...
    """
    name = os.fspath(dataset)
    folder = _existing(dataset)
    with _telling(name, "read"):
        import minari

        about = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        for key in ("observation_space", "action_space"):
            if key not in about:
                raise InvalidFile(f"{name} has no `{key}` in its metadata, and no environment is made to find out.")
        stored = minari.MinariDataset(folder)
        parts = [_read(episode, stored.observation_space, stored.action_space, name) for episode in stored.iterate_episodes()]
        steps = sum(len(part[2]) for part in parts)
        if steps != stored.total_steps or len(parts) != stored.total_episodes:
            raise InvalidFile(
                f"{name} gives {steps} steps in {len(parts)} episodes, but should have {stored.total_steps} in "
                f"{stored.total_episodes}: Minari's Arrow and Parquet formats cut long episodes; store it as HDF5."
            )
        if steps == 0:
            raise InvalidFile(f"{name} has no steps.")
    observations, actions, rewards, terminated, logged = (list(field) for field in zip(*parts, strict=True))
    recorded = [each for each in logged if each is not None]
    if len(recorded) not in (0, len(parts)):
        raise InvalidFile(f"{name} has `{LOGGED}` in {len(recorded)} of {len(parts)} episodes: it is needed in all, or in none.")
    try:
        return Transitions(
            states=np.concatenate([seen[:-1] for seen in observations]),
            actions=np.concatenate(actions),
            rewards=np.concatenate(rewards),
            next_states=np.concatenate([seen[1:] for seen in observations]),
            terminated=np.concatenate(terminated),
            episodes=np.repeat(np.arange(len(parts)), [len(part) for part in rewards]),
            behavior_probability=np.concatenate(recorded) if recorded else None,
        )
    except InvalidInput as error:
        raise InvalidFile(f"{name}: {error}") from error


def new_minari_folder(dataset_id: str) -> Path:
    """Where a new dataset will lie; an error when the id is none, or taken. Nothing is written."""
    if not isinstance(dataset_id, str) or not _IDENTIFIER.fullmatch(dataset_id):
        raise InvalidInput(
            f"`dataset_id` must look like name-v0 or group/name-v0: letters, digits, - and _, a group of two or more. "
            f"Got {dataset_id!r}."
        )
    folder = _root_path(dataset_id)
    if folder.exists():
        raise InvalidInput(f"`dataset_id` {dataset_id} exists already, in {folder}: choose another name or version.")
    return folder


def _root_path(dataset_id: str) -> Path:
    with _telling(dataset_id, "looked up"):
        from minari.storage.datasets_root_dir import get_dataset_path

        return Path(get_dataset_path(dataset_id))


def _existing(dataset: str | os.PathLike[str]) -> Path:
    name = os.fspath(dataset)
    by_id = isinstance(dataset, str) and _IDENTIFIER.fullmatch(dataset) is not None
    folder = _root_path(name) if by_id else Path(dataset)
    for candidate in (folder / "data", folder):
        if (candidate / "metadata.json").is_file():
            return candidate
    if by_id:
        raise InvalidFile(f"There is no Minari dataset {name} in {folder.parent}: `minari download {name}` fetches public ones.")
    raise InvalidFile(f"{name} is not the folder of a Minari dataset.")


def _episodes(data: Transitions) -> list[slice]:
    """The rows of every episode, in order; an error when they are not one unbroken run."""
    if data.episodes is None:
        raise InvalidInput("`episodes` are needed: a Minari dataset consists of episodes.")
    change = np.flatnonzero(np.diff(data.episodes)) + 1
    if len(change) + 1 != data.number_of_episodes:
        again = int(change[np.argmax(np.diff(data.episodes)[change - 1] < 0)])
        raise InvalidInput(f"`episodes` must not be interleaved in a Minari dataset. Row {again} goes back to an earlier one.")
    inside = np.setdiff1d(np.arange(1, len(data)), change)
    broken = inside[(data.next_states[inside - 1] != data.states[inside]).any(axis=1)]
    if len(broken):
        raise InvalidInput(
            f"`states` must be the `next_states` of the row before, inside an episode of a Minari dataset. "
            f"Row {broken[0]} is {data.states[broken[0]].tolist()}, after {data.next_states[broken[0] - 1].tolist()}."
        )
    beyond = inside[data.terminated[inside - 1]]
    if len(beyond):
        raise InvalidInput(f"`terminated` must end an episode of a Minari dataset. Row {beyond[0]} comes after its end.")
    ends = [0, *change.tolist(), len(data)]
    return [slice(first, last) for first, last in pairwise(ends)]


def _action_count(data: Transitions, actions: int | None) -> int | None:
    """The size of the action set; None for vectors."""
    if not data.finite_actions:
        if actions is not None:
            raise InvalidInput("`actions` is the size of a finite action set, but the data have action vectors.")
        return None
    needed = int(data.actions.max()) + 1
    if actions is None:
        return needed
    if whole(actions, "actions", least=1) < needed:
        raise InvalidInput(f"`actions` must be at least {needed}: the data have index {needed - 1}. Got {actions!r}.")
    return actions


def _box(data: Transitions, state_box: tuple[Sequence[float], Sequence[float]] | None) -> tuple[FloatArray, FloatArray]:
    columns = data.states.shape[1]
    if state_box is None:
        return np.full(columns, -np.inf), np.full(columns, np.inf)
    low, high = (vector(side, "state_box") for side in state_box)
    if low.shape != (columns,) or high.shape != (columns,) or (low > high).any():
        raise InvalidInput(f"`state_box` must be (lows, highs) with a number for each of {columns} columns. Got {state_box!r}.")
    for states, name in ((data.states, "states"), (data.next_states, "next_states")):
        outside = ((states < low) | (states > high)).any(axis=1)
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidInput(f"`{name}` must lie in `state_box`. Row {row} is {states[row].tolist()}.")
    return low, high


def _last_unless(terminated: NDArray[np.bool_]) -> NDArray[np.bool_]:
    truncated = np.zeros(len(terminated), dtype=bool)
    truncated[-1] = not terminated[-1]
    return truncated


def _read(
    episode: Any, observation_space: Any, action_space: Any, name: str
) -> tuple[FloatArray, IntArray | FloatArray, FloatArray, NDArray[np.bool_], FloatArray | None]:
    """Observations (T + 1, d), actions, rewards, terminations and recorded probabilities of one episode."""
    steps = len(episode.rewards)
    observations = _columns(episode.observations, observation_space, "observations", name)
    actions: IntArray | FloatArray = _columns(episode.actions, action_space, "actions", name)
    if type(action_space).__name__ == "Discrete":
        actions = np.asarray(actions[:, 0], dtype=np.int64) - int(action_space.start)
    terminated = np.asarray(episode.terminations, dtype=bool)
    if (len(observations), len(actions), len(terminated)) != (steps + 1, steps, steps):
        raise InvalidFile(
            f"{name}: episode {episode.id} has {steps} rewards, {len(observations)} observations, {len(actions)} actions and "
            f"{len(terminated)} terminations; an observation more than the others is needed."
        )
    logged = (episode.infos or {}).get(LOGGED)
    if logged is not None:
        logged = np.asarray(logged, dtype=np.float64)
        if logged.shape != (steps + 1,):
            raise InvalidFile(
                f"{name}: `{LOGGED}` in the infos of episode {episode.id} has shape {logged.shape}; one for the reset, which is "
                f"not used, and one per step are needed, {steps + 1} in all."
            )
        logged = logged[1:]
    return observations, actions, np.asarray(episode.rewards, dtype=np.float64), terminated, logged


def _columns(values: Any, space: Any, what: str, name: str) -> FloatArray:
    kind = type(space).__name__
    if kind not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        raise InvalidFile(f"{name} has {what} of kind {kind}; only Box, Discrete, MultiDiscrete and MultiBinary are read.")
    array = np.asarray(values, dtype=np.float64)
    return array.reshape(len(array), -1)


@contextmanager
def _telling(name: str, what: str) -> Iterator[None]:
    """Minari's own errors, which may be of any kind, as one sentence."""
    try:
        yield
    except AopeError:
        raise
    except ImportError as error:
        raise MissingExtra('Minari datasets need Minari: pip install "accountable-ope[experiments]".') from error
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InvalidFile(f"The Minari dataset {name} cannot be {what}: {reason}") from error
