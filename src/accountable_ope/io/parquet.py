"""Transitions and start states written as Parquet files; what reads them, or CSV files, is in `reading` and `starts`."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..problem.naming import UNNAMED
from ..problem.policy import TabulatedPolicy
from ..problem.row_columns import LOGGED
from ..problem.transitions import StartStates, Transitions
from ..validation import FloatArray
from .column_names import AT_NEXT, AT_STATE, BEGUN, LEFT_OUT, SAMPLE
from .files import whole_file
from .names import NAMING, written_naming


@checked
def save_transitions(
    data: Transitions, path: str | os.PathLike[str], policy: TabulatedPolicy | None = None, *, episodes: bool = True
) -> None:
    """Write transitions as a Parquet file, atomically.

    Parameters
    ----------
    data : Transitions
    path : path
    policy : TabulatedPolicy, optional
        Its probabilities are written too, at the states and at the next states.
    episodes : bool
        Whether the labels of the episodes are written, where there are any.

    Raises
    ------
    InvalidFile
        Where the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from accountable_ope import Transitions, load_transitions, save_transitions
    >>> data = Transitions(states=[[0.0], [1.0]], actions=[0, 1], rewards=[0.5, 0.0], next_states=[[1.0], [0.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.parquet"
    ...     save_transitions(data, path)
    ...     load_transitions(path).rewards
    array([0.5, 0. ])
    """
    columns: list[tuple[str, ArrayLike]] = [
        ("state", data.states),
        ("action", data.actions),
        ("reward", data.rewards),
        ("next_state", data.next_states),
        ("terminated", data.terminated),
    ]
    if episodes and data.episodes is not None:
        columns.append(("episode", data.episode_numbers))  # those of the whole log, so that parts of it do not share labels
    if data.behavior_probability is not None:
        columns.append((LOGGED, data.behavior_probability))
    if policy is not None:
        after = np.full((len(data), len(policy.action_vectors)), 1 / len(policy.action_vectors))  # unused where terminated
        after[~data.terminated] = _probabilities(policy, data.next_states[~data.terminated])
        columns += [(AT_STATE, _probabilities(policy, data.states)), (AT_NEXT, after)]
    about = {LEFT_OUT: str(data.left_out)} if data.left_out else {}
    if episodes and data.episodes is not None and data.headless.any():
        about[BEGUN] = ",".join(str(each) for each in np.unique(data.episode_numbers[data.headless]))
    if data.naming != UNNAMED:
        about[NAMING] = written_naming(data.naming)
    _write(columns, path, about)


@checked
def save_starts(starts: StartStates, path: str | os.PathLike[str], policy: TabulatedPolicy | None = None) -> None:
    """Write start states as a Parquet file, atomically.

    Parameters
    ----------
    starts : StartStates
        Weights are written where they are an exact distribution; that they are a sample is written too, and read again.
    path : path
    policy : TabulatedPolicy, optional
        Its probabilities at the start states are written too.

    Raises
    ------
    InvalidFile
        Where the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from accountable_ope import StartStates, load_starts, save_starts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "starts.parquet"
    ...     save_starts(StartStates([[0.0], [1.0]], [0.25, 0.75]), path)
    ...     load_starts(path).weights
    array([0.25, 0.75])
    """
    columns: list[tuple[str, ArrayLike]] = [("state", starts.states)]
    if starts.exact:
        columns.append(("weight", starts.weights))
    if policy is not None:
        columns.append((AT_STATE, _probabilities(policy, starts.states)))
    _write(columns, path, {} if starts.exact else {SAMPLE: "true"})


def _probabilities(policy: TabulatedPolicy, states: FloatArray) -> FloatArray:
    return np.column_stack([branch.weights for branch in policy.branches(states)])


def _write(columns: list[tuple[str, ArrayLike]], path: str | os.PathLike[str], about: Mapping[str, str] | None = None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays, names = [], []
    for name, values in columns:
        array = np.asarray(values)
        names.append(name)
        if array.ndim == 2:
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1]))
        else:
            arrays.append(pa.array(array))
    with whole_file(path) as partial:
        pq.write_table(pa.table(arrays, names=names, metadata=about or None), partial, compression="zstd")
