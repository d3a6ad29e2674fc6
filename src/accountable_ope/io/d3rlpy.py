"""Datasets of d3rlpy, read by the shape of their objects: d3rlpy itself is not imported, and no file of it is opened.

An episode there has T observations, actions and rewards, and one flag for its end. Its last next observation is not stored: where
the episode ended it is not needed, and where it was cut off the last row has none and is dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked, shown
from ..errors import InvalidInput
from ..problem.transitions import Transitions
from .following import Following

DISCRETE = "DISCRETE"
"""The name of the action space of d3rlpy whose actions are indices."""


@checked
def from_d3rlpy(dataset: Any) -> Transitions:
    """The transitions of a d3rlpy `MDPDataset` or `ReplayBuffer`, episode after episode.

    Its numbers have single precision where d3rlpy made them so. The last step of an episode that was cut off (a timeout) is
    dropped, as d3rlpy does, since its next observation is not stored; `Transitions.left_out` counts those.

    Parameters
    ----------
    dataset : MDPDataset or ReplayBuffer
        Any object with `episodes`, each of them with `observations` (T, ...), `actions` (T, ...), `rewards` (T, 1) and
        `terminated`. Observations are flattened. Whole-number actions of one column are indices of a finite set.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidInput
        Where the object has no such episodes, or rewards of a step that are several.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import accountable_ope as aope
    >>> seen, done = np.array([[0.0], [1.0], [2.0]]), np.array([[0], [1], [0]])
    >>> walk = SimpleNamespace(observations=seen, actions=done, rewards=np.ones((3, 1)), terminated=False)
    >>> data = aope.from_d3rlpy(SimpleNamespace(episodes=[walk, walk]))
    >>> data, data.left_out
    (Transitions(4 rows, 2 episodes, 1-d states, 0 terminated), 2)
    """
    episodes = getattr(dataset, "episodes", None)
    if episodes is None or isinstance(episodes, str | bytes) or not hasattr(episodes, "__len__"):
        raise InvalidInput(f"`dataset` must be an MDPDataset or a ReplayBuffer of d3rlpy, with `episodes`. Got {shown(dataset)}.")
    parts = [_episode(episode, number) for number, episode in enumerate(episodes)]
    if not parts:
        raise InvalidInput("`dataset` must have at least one episode. Got none.")
    shapes = {(part[0].shape[1], part[1].shape[1]) for part in parts}
    if len(shapes) > 1:
        raise InvalidInput(f"`dataset` must have observations and actions of one shape. Got columns {sorted(shapes)}.")
    states, actions, rewards = (np.concatenate([part[field] for part in parts]) for field in range(3))
    lengths = [len(part[2]) for part in parts]
    labels = np.repeat(np.arange(len(parts)), lengths)
    ended = np.zeros(len(states), dtype=bool)
    ended[np.cumsum(lengths) - 1] = [part[3] for part in parts]
    following = Following.of(labels)
    whole = Transitions(states, _indices(dataset, actions), rewards, states[following.next_row], ended, labels)
    kept = following.kept(ended)
    if kept.sum() < 2:
        raise InvalidInput("At most one row has a next state: every other one is the last of an episode that was cut off.")
    following.refuse_lost(kept, whole.episodes, lambda row: f"row {row}")
    return whole.rows(kept).having_left_out(int((~kept).sum()))


def _episode(episode: Any, number: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], bool]:
    """Observations, actions, rewards and whether it ended."""
    missing = [name for name in ("observations", "actions", "rewards", "terminated") if not hasattr(episode, name)]
    if missing:
        raise InvalidInput(f"`dataset` must have episodes of d3rlpy. Episode {number} has no `{missing[0]}`.")
    fields = {name: getattr(episode, name) for name in ("observations", "actions", "rewards")}
    if isinstance(fields["observations"], list | tuple) and any(isinstance(each, np.ndarray) for each in fields["observations"]):
        raise InvalidInput(f"`dataset` must have one array of observations. Episode {number} has several, a tuple of them.")
    found = []
    for name, values in fields.items():
        array = np.asarray(values)
        if array.dtype.kind not in "biuf" or array.ndim == 0 or len(array) == 0:
            raise InvalidInput(
                f"`dataset` must have {name} that are numbers, a row per step. Episode {number} has {shown(values)}."
            )
        found.append(array.reshape(len(array), -1))
    if len({len(each) for each in found}) > 1 or found[2].shape[1] != 1:
        shapes = ", ".join(f"{name} {np.shape(values)}" for name, values in fields.items())
        raise InvalidInput(f"`dataset` must have an observation, an action and one reward per step. Episode {number}: {shapes}.")
    if not isinstance(episode.terminated, bool | np.bool_):
        raise InvalidInput(
            f"`dataset` must say of every episode whether it is terminated. Episode {number}: {shown(episode.terminated)}."
        )
    return found[0].astype(np.float64), found[1], found[2][:, 0].astype(np.float64), bool(episode.terminated)


def _indices(dataset: Any, actions: NDArray[Any]) -> NDArray[Any]:
    """Indices of a finite set where d3rlpy says so, or the numbers are whole; vectors otherwise."""
    space = getattr(getattr(getattr(dataset, "dataset_info", None), "action_space", None), "name", None)
    discrete = actions.shape[1] == 1 and (space == DISCRETE or (space is None and actions.dtype.kind in "iub"))
    if not discrete:
        return actions.astype(np.float64)
    wrong = actions[:, 0] != np.round(actions[:, 0])
    if wrong.any():
        raise InvalidInput(f"`dataset` must have whole numbers for discrete actions. Got {actions[int(np.argmax(wrong)), 0]:g}.")
    return actions[:, 0].astype(np.int64)
