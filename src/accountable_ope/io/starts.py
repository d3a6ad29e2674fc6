"""Start states and a tabulated policy at them from Parquet and CSV files, or from any other source of columns.

    state  [weight]  [target_probability]  [target_action]  [q]

Columns are named as in a file of transitions (`reading`); `q` is an existing estimate, averaged over the target policy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.naming import Naming
from ..problem.transitions import StartStates
from ..validation import FloatArray
from .coding import NO_WORDS, Coding, WordRules
from .column_names import ACTION_AT_STATE, AT_STATE, STARTS, wanted_columns
from .columns import ColumnNames, FileColumns
from .policy_columns import one_hot
from .sources import Source, open_source
from .table import Table
from .words import places


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
    by_action : bool
        Whether the policy was given as the action that it takes: then there may be more actions than its rows show.
    """

    starts: StartStates
    at_state: FloatArray | None
    q: FloatArray | None = None
    columns: FileColumns | None = None
    by_action: bool = False


@checked
def load_starts(
    path: str | os.PathLike[str],
    exact: bool | None = None,
    ignore: str | Sequence[str] = (),
    columns: ColumnNames | None = None,
    naming: Naming | None = None,
) -> StartStates:
    """The start states of a Parquet or CSV file.

    Parameters
    ----------
    path : path
        A file with the column `state` and, where they differ, `weight`.
    exact : bool, optional
        True: the rows are the start distribution itself. False: they are an i.i.d. sample of it. None: a sample where
        `save_starts` wrote that they are one, else the distribution itself.
    ignore : sequence of str
        Columns that are treated as if they were not there.
    columns : mapping, optional
        Which columns are which, where their names do not say.
    naming : Naming, optional
        That of the log, by which columns of words are read (`Transitions.naming`); None: they are refused.

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
    ...     load_starts(path)
    StartStates(2 rows, i.i.d. sample)
    """
    return read_start_file(path, exact, ignore, columns, policy=False, estimate=False, naming=naming).starts


@checked
def read_start_file(
    path: str | os.PathLike[str],
    exact: bool | None = None,
    ignore: str | Sequence[str] = (),
    columns: ColumnNames | None = None,
    *,
    policy: bool = True,
    estimate: bool = True,
    naming: Naming | None = None,
) -> StartFile:
    """All that a file of start states holds, and how its columns were read.

    Parameters
    ----------
    path : path
    exact : bool, optional
        True: the rows are the start distribution itself. False: they are an i.i.d. sample of it. None: a sample where
        `save_starts` wrote that they are one, else the distribution itself.
    ignore : sequence of str
        Columns that are treated as if they were not there.
    columns : mapping, optional
        Which columns are which, where their names do not say.
    policy : bool
        Whether to read the target policy's probabilities.
    estimate : bool
        Whether to read an existing estimate of Q.
    naming : Naming, optional
        That of the log, by which columns of words are read (`Transitions.naming`); None: they are refused.

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
    return read_starts(open_source(path), exact, ignore, columns, policy=policy, estimate=estimate, naming=naming)


def read_starts(
    source: Source,
    exact: bool | None,
    ignore: str | Sequence[str],
    columns: ColumnNames | None,
    *,
    policy: bool,
    estimate: bool,
    naming: Naming | None,
) -> StartFile:
    """As `read_start_file`, from any source of columns; those of the state may have the names that they have in the log."""
    named = [] if naming is None else [place.name for place in places(naming)]
    if named and "state" not in (columns or {}) and set(named) <= set(source.names):
        columns = {**(columns or {}), "state": named}
    table = Table(source, STARTS, wanted_columns(STARTS, policy, estimate), ignore, columns)
    coding = Coding(table, NO_WORDS if naming is None else WordRules(like=naming))
    weights = table.optional("weight")
    if exact is False and weights is not None and (weights != weights[:1]).any():
        raise InvalidFile(
            f"{table.name} weighs start states by its column {table.called('weight')}, and an i.i.d. sample weighs every row "
            "alike: they are the distribution itself, or the column is to be left out."
        )
    try:
        starts = StartStates(coding.states(), weights, not table.is_sample if exact is None else exact)
    except InvalidFile:
        raise  # names the file already
    except InvalidInput as error:
        raise InvalidFile(f"{table.name}: {error}") from error
    at_state, chosen = table.probabilities(AT_STATE), coding.indices(ACTION_AT_STATE)
    if at_state is not None and chosen is not None:
        raise InvalidFile(f"{table.name} has columns `{AT_STATE}` and `{ACTION_AT_STATE}`: give the policy in one of them.")
    if chosen is not None:
        at_state = one_hot(chosen, int(chosen.max()) + 1)
    return StartFile(starts, at_state, table.numbers("q"), coding.columns, chosen is not None)
