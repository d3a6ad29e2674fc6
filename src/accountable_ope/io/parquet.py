"""Transitions, start states and tabulated policies as Parquet files.

A vector column `state` is either one list column or numbered columns `state_0`, `state_1`, ...; the same for `action`,
`next_state` and the target policy's probabilities. A whole-number `action` column indexes a finite action set.

    state  action  reward  next_state  [terminated]  [episode]  [behavior_probability]
           [target_probability]  [next_target_probability]  [q]  [next_q]
    state  [weight]  [target_probability]  [q]                                                                (start states)

An existing estimate of Q may stand in `q` (at the state and action) and `next_q` (at the next state, averaged over the target
policy); in a file of start states, `q` is averaged over the target policy.

Other columns are listed as not used, names of other tools are read and reported, and names that may mean one of these are
refused: see `columns`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.policy import TabulatedPolicy
from ..problem.transitions import LOGGED, StartStates, Transitions
from ..validation import FloatArray
from .columns import AT_NEXT, AT_STATE, ESTIMATE, LOG, POLICY, STARTS, FileColumns
from .files import whole_file
from .table import Table


@checked
@dataclass(frozen=True, eq=False)
class TransitionFile:
    """A file of transitions, with the target policy's probabilities and an estimate of Q where it has those columns.

    Attributes
    ----------
    data : Transitions
    at_state, at_next : array (n, actions) or None
        The target policy's probabilities at the states and at the next states.
    q, next_q : array (n, 1) or None
        An existing estimate at the rows, and at the next states averaged over the target policy.
    columns : FileColumns
        Which columns were read under another name, and which were not used.
    """

    data: Transitions
    at_state: FloatArray | None
    at_next: FloatArray | None
    q: FloatArray | None
    next_q: FloatArray | None
    columns: FileColumns


@checked
@dataclass(frozen=True, eq=False)
class StartFile:
    """A file of start states, with the target policy's probabilities and an estimate of Q where it has those columns.

    Attributes
    ----------
    starts : StartStates
    at_state : array (n, actions) or None
        The target policy's probabilities.
    q : array (n, 1) or None
        An existing estimate, averaged over the target policy.
    columns : FileColumns or None
        Which columns were read under another name, and which were not used; None where the states come from elsewhere.
    """

    starts: StartStates
    at_state: FloatArray | None
    q: FloatArray | None = None
    columns: FileColumns | None = None


@checked
def load_transitions(path: str | os.PathLike[str], ignore: str | Sequence[str] = ()) -> Transitions:
    """The transitions of a Parquet file; rows must be in the order of generation.

    Parameters
    ----------
    path : path
        A file with the columns `state`, `action`, `reward`, `next_state` and, where known, `terminated`, `episode` and
        `behavior_probability`.
    ignore : sequence of str
        Columns that are treated as if they were not there, such as one whose name is refused since it may mean another.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidFile
        Where there is no such file, its columns are no transitions, or a name may mean one of these.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from accountable_ope import Transitions, load_transitions, save_transitions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.parquet"
    ...     save_transitions(Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]], episodes=[0, 1]), path)
    ...     load_transitions(path)
    Transitions(2 rows, 2 episodes, 1-d states, 0 terminated)
    """
    return read_transition_file(path, ignore, policy=False, estimate=False).data


@checked
def read_transition_file(
    path: str | os.PathLike[str], ignore: str | Sequence[str] = (), *, policy: bool = True, estimate: bool = True
) -> TransitionFile:
    """All that a file of transitions holds, and how its columns were read.

    Parameters
    ----------
    path : path
    ignore : sequence of str
        Columns that are treated as if they were not there.
    policy : bool
        Whether to read the target policy's probabilities.
    estimate : bool
        Whether to read an existing estimate of Q.

    Returns
    -------
    TransitionFile

    Raises
    ------
    InvalidFile
        As `load_transitions`, and where probabilities are none or do not fit the actions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from accountable_ope.io import read_transition_file
    >>> rows = {"obs": [0.0, 1.0], "action": [0, 1], "reward": [0.5, 0.0], "next_state": [1.0, 0.0], "hour": [7, 8]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.parquet"
    ...     pq.write_table(pa.table(rows), path)
    ...     columns = read_transition_file(path).columns
    >>> columns.aliases, columns.unused
    ((('obs', 'state'),), ('hour',))
    """
    table = Table(path, LOG, _wanted(LOG, policy, estimate), ignore)
    try:
        data = Transitions(
            table.required("state"),
            table.required("action"),
            table.required("reward"),
            table.required("next_state"),
            table.optional("terminated"),
            table.optional("episode", text=True),
            table.optional(LOGGED),
        )
    except InvalidFile:
        raise  # names the file already
    except InvalidInput as error:
        raise InvalidFile(f"{table.name}: {error}") from error
    live = ~data.terminated  # what stands at the next state of other rows is not used
    at_state, at_next = table.probabilities(AT_STATE), table.probabilities(AT_NEXT, live)
    for values, column in ((at_next, AT_NEXT), (at_state, AT_STATE)):
        _check_actions(data, values, f"{table.name}: ", column)
    if at_state is not None and at_next is not None and at_state.shape[1] != at_next.shape[1]:
        raise InvalidFile(
            f"{table.name}: columns `{AT_STATE}` and `{AT_NEXT}` must have a probability for every action. They have "
            f"{at_state.shape[1]} and {at_next.shape[1]}."
        )
    return TransitionFile(data, at_state, at_next, table.numbers("q"), table.numbers("next_q"), table.columns)


@checked
def load_starts(path: str | os.PathLike[str], exact: bool = True, ignore: str | Sequence[str] = ()) -> StartStates:
    """The start states of a Parquet file.

    Parameters
    ----------
    path : path
        A file with the column `state` and, where they differ, `weight`.
    exact : bool
        True: the rows are the start distribution itself. False: they are an i.i.d. sample of it.
    ignore : sequence of str
        Columns that are treated as if they were not there.

    Returns
    -------
    StartStates

    Raises
    ------
    InvalidFile
        Where there is no such file, its columns are no start states, or a name may mean one of these.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from accountable_ope import StartStates, load_starts, save_starts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "starts.parquet"
    ...     save_starts(StartStates([[0.0], [1.0]], exact=False), path)
    ...     load_starts(path, exact=False)
    StartStates(2 rows, i.i.d. sample)
    """
    return read_start_file(path, exact, ignore, policy=False, estimate=False).starts


@checked
def read_start_file(
    path: str | os.PathLike[str],
    exact: bool = True,
    ignore: str | Sequence[str] = (),
    *,
    policy: bool = True,
    estimate: bool = True,
) -> StartFile:
    """All that a file of start states holds, and how its columns were read.

    Parameters
    ----------
    path : path
    exact : bool
        True: the rows are the start distribution itself. False: they are an i.i.d. sample of it.
    ignore : sequence of str
        Columns that are treated as if they were not there.
    policy : bool
        Whether to read the target policy's probabilities.
    estimate : bool
        Whether to read an existing estimate of Q.

    Returns
    -------
    StartFile

    Raises
    ------
    InvalidFile
        As `load_starts`, and where probabilities are none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from accountable_ope.io import read_start_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "starts.parquet"
    ...     pq.write_table(pa.table({"state": [0.0, 1.0], "weight": [1, 3], "ward": ["a", "b"]}), path)
    ...     read_start_file(path).columns.unused
    ('ward',)
    """
    table = Table(path, STARTS, _wanted(STARTS, policy, estimate), ignore)
    try:
        starts = StartStates(table.required("state"), table.optional("weight"), exact)
    except InvalidFile:
        raise  # names the file already
    except InvalidInput as error:
        raise InvalidFile(f"{table.name}: {error}") from error
    return StartFile(starts, table.probabilities(AT_STATE), table.numbers("q"), table.columns)


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
        columns.append(("episode", data.episodes))
    if data.behavior_probability is not None:
        columns.append((LOGGED, data.behavior_probability))
    if policy is not None:
        after = np.full((len(data), len(policy.action_vectors)), 1 / len(policy.action_vectors))  # unused where terminated
        after[~data.terminated] = _probabilities(policy, data.next_states[~data.terminated])
        columns += [(AT_STATE, _probabilities(policy, data.states)), (AT_NEXT, after)]
    _write(columns, path)


@checked
def save_starts(starts: StartStates, path: str | os.PathLike[str], policy: TabulatedPolicy | None = None) -> None:
    """Write start states as a Parquet file, atomically.

    Parameters
    ----------
    starts : StartStates
        Weights are written only where they are an exact distribution.
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
    _write(columns, path)


def _wanted(known: Sequence[str], policy: bool, estimate: bool) -> list[str]:
    return [name for name in known if (policy or name not in POLICY) and (estimate or name not in ESTIMATE)]


def _check_actions(data: Transitions, probabilities: FloatArray | None, where: str, column: str) -> None:
    """Every logged action has a probability."""
    if probabilities is None or not data.finite_actions:
        return
    actions = probabilities.shape[1]
    beyond = data.actions >= actions
    if beyond.any():
        row = int(np.argmax(beyond))
        raise InvalidFile(
            f"{where}`actions` has index {int(data.actions[row])} in row {row}, but `{column}` has probabilities of {actions} "
            f"actions (0 to {actions - 1})."
        )


def _probabilities(policy: TabulatedPolicy, states: FloatArray) -> FloatArray:
    return np.column_stack([branch.weights for branch in policy.branches(states)])


def _write(columns: list[tuple[str, ArrayLike]], path: str | os.PathLike[str]) -> None:
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
        pq.write_table(pa.table(arrays, names=names), partial, compression="zstd")
