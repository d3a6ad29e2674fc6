"""Transitions, start states and tabulated policies as Parquet files.

A vector column `state` is either one list column or numbered columns `state_0`, `state_1`, ...; the same for `action`,
`next_state` and the target policy's probabilities. A whole-number `action` column indexes a finite action set.

    state  action  reward  next_state  [terminated]  [episode]  [target_probability]  [next_target_probability]  [q]  [next_q]
    state  [weight]  [target_probability]  [q]                                                                (start states)

An existing estimate of Q may stand in `q` (at the state and action) and `next_q` (at the next state, averaged over the target
policy); in a file of start states, `q` is averaged over the target policy.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.policy import TabulatedPolicy
from ..problem.transitions import StartStates, Transitions
from ..validation import FloatArray, plural
from .files import whole_file

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

AT_STATE = "target_probability"
AT_NEXT = "next_target_probability"


@dataclass(frozen=True, eq=False)
class TransitionFile:
    """A file of transitions, with the target policy's probabilities where it has those columns."""

    data: Transitions
    at_state: FloatArray | None
    at_next: FloatArray | None
    q: FloatArray | None = None
    next_q: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class StartFile:
    """A file of start states, with the target policy's probabilities where it has those columns."""

    starts: StartStates
    at_state: FloatArray | None
    q: FloatArray | None = None


@checked
def load_transitions(path: str | os.PathLike[str]) -> Transitions:
    """The transitions of a Parquet file; rows must be in the order of generation.

    Parameters
    ----------
    path : path
        A file with the columns `state`, `action`, `reward`, `next_state` and, where known, `terminated` and `episode`.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidFile
        Where there is no such file, or its columns are no transitions.

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
    return read_transition_file(path).data


def read_transition_file(path: str | os.PathLike[str]) -> TransitionFile:
    """Transitions and, where present, the policy's probabilities at the states and at the next states."""
    table = _Table(path)
    try:
        data = Transitions(
            table.required("state"),
            table.required("action"),
            table.required("reward"),
            table.required("next_state"),
            table.optional("terminated"),
            table.optional("episode"),
        )
    except InvalidFile:
        raise  # names the file already
    except InvalidInput as error:
        raise InvalidFile(f"{table.name}: {error}") from error
    return TransitionFile(data, table.matrix(AT_STATE), table.matrix(AT_NEXT), table.matrix("q"), table.matrix("next_q"))


@checked
def load_starts(path: str | os.PathLike[str], exact: bool = True) -> StartStates:
    """The start states of a Parquet file.

    Parameters
    ----------
    path : path
        A file with the column `state` and, where they differ, `weight`.
    exact : bool
        True: the rows are the start distribution itself. False: they are an i.i.d. sample of it.

    Returns
    -------
    StartStates

    Raises
    ------
    InvalidFile
        Where there is no such file, or its columns are no start states.

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
    return read_start_file(path, exact).starts


def read_start_file(path: str | os.PathLike[str], exact: bool = True) -> StartFile:
    """Start states and, where present, the policy's probabilities there."""
    table = _Table(path)
    try:
        starts = StartStates(table.required("state"), table.optional("weight"), exact)
    except InvalidFile:
        raise  # names the file already
    except InvalidInput as error:
        raise InvalidFile(f"{table.name}: {error}") from error
    return StartFile(starts, table.matrix(AT_STATE), table.matrix("q"))


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


class _Table:
    """Columns of a Parquet file by base name, as NumPy arrays without nulls."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.name = os.fspath(path)
        if not Path(path).is_file():
            raise InvalidFile(f"{self.name} is not a file.")
        try:
            self._table: pa.Table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidFile(f"{self.name} cannot be read as Parquet: {reason}") from error
        if self._table.num_rows == 0:
            raise InvalidFile(f"{self.name} has no rows.")

    def required(self, base: str) -> NDArray[Any]:
        found = self.optional(base)
        if found is None:
            names = ", ".join(self._table.column_names) or "none"
            raise InvalidFile(f"{self.name} has no column `{base}` (nor `{base}_0`). Its columns: {names}.")
        return found

    def matrix(self, base: str) -> FloatArray | None:
        found = self.optional(base)
        if found is None:
            return None
        if found.dtype.kind not in "iuf":
            raise InvalidFile(f"{self.name}: column `{base}` must hold numbers. It holds {found.dtype}.")
        return np.asarray(found.astype(np.float64).reshape(len(found), -1))

    def optional(self, base: str) -> NDArray[Any] | None:
        names = self._table.column_names
        if names.count(base) > 1:
            raise InvalidFile(f"{self.name} has several columns called `{base}`.")
        if base in names:
            return self._column(base)
        numbered: list[NDArray[Any]] = []
        while f"{base}_{len(numbered)}" in names:
            numbered.append(self._column(f"{base}_{len(numbered)}"))
        if not numbered:
            return None
        for index, part in enumerate(numbered):
            if part.ndim != 1 or part.dtype.kind not in "iufb":
                raise InvalidFile(f"{self.name}: column `{base}_{index}` must hold one number per row.")
        return np.column_stack([part.astype(np.float64) for part in numbered])

    def _column(self, name: str) -> NDArray[Any]:
        import pyarrow as pa

        column: pa.ChunkedArray = self._table[name]
        if column.null_count:
            missing = plural(column.null_count, "missing value", "missing values")
            raise InvalidFile(f"{self.name}: column `{name}` has {column.null_count} {missing} (nulls).")
        kind = column.type
        if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._list_column(name, column)
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return np.asarray(column.to_pylist(), dtype=np.str_)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InvalidFile(f"{self.name}: column `{name}` must hold numbers. It holds {kind}.")
        return np.asarray(column.to_numpy())

    def _list_column(self, name: str, column: pa.ChunkedArray) -> NDArray[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        lengths = np.unique(pc.list_value_length(column).to_numpy())
        if len(lengths) != 1 or lengths[0] == 0:
            raise InvalidFile(f"{self.name}: lists in column `{name}` must all have the same positive length.")
        flat = pc.list_flatten(column)
        if flat.null_count:
            missing = plural(flat.null_count, "missing value", "missing values")
            raise InvalidFile(f"{self.name}: column `{name}` has {flat.null_count} {missing} (nulls) inside its lists.")
        if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
            raise InvalidFile(f"{self.name}: column `{name}` must hold lists of numbers. It holds {column.type}.")
        return np.asarray(flat.to_numpy().astype(np.float64).reshape(-1, int(lengths[0])))


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
