"""Transitions and tabulated policies from Parquet and CSV files, or from any other source of columns.

A vector column `state` is either one list column or numbered columns `state_0`, `state_1`, ...; the same for `action`,
`next_state` and the target policy's probabilities. A whole-number `action` column indexes a finite action set.

    state  action  reward  next_state  [terminated]  [episode]  [behavior_probability]
           [target_probability]  [next_target_probability]  [q]  [next_q]

Where no column is called `state`, those that begin with `state_` are the state, and `columns` may name any others. A target
policy without chance may stand in `target_action` and `next_target_action` instead of probabilities. Without a column of next
states those are the states of the following rows of the same episode (`following`).

An existing estimate of Q may stand in `q` (at the state and action) and `next_q` (at the next state, averaged over the target
policy). Files of start states are read in `starts`.

Other columns are listed as not used, names of other tools are read and reported, and names that may mean one of these are
refused: see `columns`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput, InvalidRow
from ..problem.row_columns import LOGGED
from ..problem.transitions import Transitions
from ..validation import BoolArray, FloatArray, IntArray, plural
from .coding import ANY_WORDS, Coding, WordRules
from .column_names import LOG, SHOWS_ORDER, STEP, TIMES, TRUNCATED, wanted_columns
from .columns import ColumnNames, FileColumns, has_column
from .following import Following, order_finding
from .policy_columns import logged_policy
from .sources import CsvSource, Source, open_source
from .table import Table
from .times import read_times


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
        Which columns were read under another name, which were not used, and which rows were dropped.
    by_action : bool
        Whether the policy was given as the action that it takes: then there may be more actions than its rows show.
    kept : array (n,) or None
        Which rows of the file these are, where some were dropped; None: all of them.
    lines : bool
        Whether rows are lines of a text below its header.
    """

    data: Transitions
    at_state: FloatArray | None
    at_next: FloatArray | None
    q: FloatArray | None
    next_q: FloatArray | None
    columns: FileColumns
    by_action: bool = False
    kept: IntArray | None = None
    lines: bool = False

    def row(self, index: int) -> str:
        """Where a row of the data is found in the file."""
        there = index if self.kept is None else int(self.kept[index])
        return f"row {there} (line {there + 2})" if self.lines else f"row {there}"


@checked
def load_transitions(
    path: str | os.PathLike[str], ignore: str | Sequence[str] = (), columns: ColumnNames | None = None
) -> Transitions:
    """The transitions of a Parquet or CSV file; rows must be in the order of generation.

    Parameters
    ----------
    path : path
        A file with the columns `state`, `action`, `reward`, `next_state` and, where known, `terminated`, `episode` and
        `behavior_probability`. Where there is no `next_state`, it is the state of the following row of the same episode, and the
        last rows of episodes that go on are dropped.
    ignore : sequence of str
        Columns that are treated as if they were not there, such as one whose name is refused since it may mean another.
    columns : mapping, optional
        Which columns are which, where their names do not say: `{"state": ["age", "dose"], "episode": "patient"}`.

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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("patient,age,action,reward,terminated\\n7,61,0,0.5,no\\n7,62,1,0,no\\n7,63,0,1,yes\\n")
    ...     load_transitions(path, columns={"state": "age", "episode": "patient"}).next_states.tolist()
    [[62.0], [63.0], [63.0]]
    """
    return read_transition_file(path, ignore, columns, policy=False, estimate=False).data


@checked
def read_transition_file(
    path: str | os.PathLike[str],
    ignore: str | Sequence[str] = (),
    columns: ColumnNames | None = None,
    *,
    policy: bool = True,
    estimate: bool = True,
) -> TransitionFile:
    """All that a file of transitions holds, and how its columns were read.

    Parameters
    ----------
    path : path
        A file in Parquet, or in CSV where its name ends in .csv or .csv.gz.
    ignore : sequence of str
        Columns that are treated as if they were not there.
    columns : mapping, optional
        Which columns are which, where their names do not say.
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
    return read_log(open_source(path), ignore, columns, policy=policy, estimate=estimate)


def read_log(
    source: Source,
    ignore: str | Sequence[str] = (),
    columns: ColumnNames | None = None,
    *,
    policy: bool = True,
    estimate: bool = True,
    words: WordRules = ANY_WORDS,
) -> TransitionFile:
    """As `read_transition_file`, from any source of columns, such as a data frame as an Arrow table.

    words: how columns of words are read.
    """
    left = [name for name in source.names if name not in ((ignore,) if isinstance(ignore, str) else ignore)]
    known = LOG if has_column(left, "next_state", columns) else (*LOG, *SHOWS_ORDER)
    table = Table(source, known, wanted_columns(known, policy, estimate), ignore, columns)
    try:
        return replace(_log(Coding(table, words)), lines=isinstance(source, CsvSource))
    except InvalidFile:
        raise  # names the file already
    except InvalidRow as error:
        raise InvalidFile(f"{table.name}: {error.placed(table.row)}{_own_names(table, str(error))}") from error
    except InvalidInput as error:
        raise InvalidFile(f"{table.name}: {error}{_own_names(table, str(error))}") from error


def _own_names(table: Table, sentence: str) -> str:
    """Which columns of the file a sentence speaks of, where it calls them otherwise."""
    meant = [base for base in ("state", "action", "reward", "next_state", "terminated", "episode") if table.has(base)]
    names = [table.called(base) for base in meant if f"`{base}s`" in sentence or f"`{base}`" in sentence]
    read = [name for name in names if "(read as " in name]
    return f" In the file: {', '.join(read)}." if read else ""


def _log(coding: Coding) -> TransitionFile:
    table = coding.table
    states, ended = coding.states(), table.flags("terminated")
    actions, rewards = coding.actions("action"), table.required("reward")
    if actions is None:
        raise table.missing("action")
    labels = table.optional("episode", text=True)
    following = None if table.has("next_state") else _following(table, ended, labels)
    if following is None:
        next_states = coding.next_states(np.full(len(table), True) if ended is None else _is_false(ended, len(table)))
    else:
        next_states = states[following.next_row]
    # All rows first: messages then name rows of the file.
    data = Transitions(states, actions, rewards, next_states, ended, labels, table.optional(LOGGED))
    data = data.named(coding.naming(data.states.shape[1]))
    if labels is not None and table.begun_before:
        data = data.continuing(data.episode_numbers, np.isin(np.asarray(labels).astype(str), table.begun_before))
    live = ~data.terminated  # what stands at the next state of other rows is not used
    given = logged_policy(coding, data, live)
    at_state, at_next = given.at_state, given.at_next
    q, next_q = table.numbers("q"), table.numbers("next_q", live)
    if following is None:
        _check_order(table, data)
        if labels is not None:
            Following.of(labels).refuse_after_the_end(data.terminated, "terminated", table.row)
        data = data.having_left_out(table.left_out)
        return TransitionFile(data, at_state, at_next, q, next_q, _columns(coding, data), given.by_action)
    if at_next is None and at_state is not None:
        at_next = at_state[following.next_row]
    kept = following.kept(data.terminated)
    if kept.sum() < 2:
        raise InvalidInput("At most one row has a next state: every other one is the last of an episode that goes on.")
    following.refuse_lost(kept, data.episodes, table.row)
    _say_formed(table, data, kept)
    at_state, at_next, q, next_q = (None if each is None else each[kept] for each in (at_state, at_next, q, next_q))
    used = data.rows(kept).having_left_out(int((~kept).sum()))
    return TransitionFile(used, at_state, at_next, q, next_q, _columns(coding, used), given.by_action, np.flatnonzero(kept))


def _columns(coding: Coding, data: Transitions) -> FileColumns:
    """How the columns were read, with a name for every column of the states, or none."""
    found = coding.columns
    names = tuple(data.naming.states) or found.states
    return replace(found, states=names if len(names) == data.states.shape[1] else ())


def _is_false(flags: NDArray[Any], rows: int) -> BoolArray:
    """Where an episode goes on; flags that are none are refused later, so that they count as such here."""
    return np.asarray(flags != 1) if flags.shape == (rows,) else np.full(rows, True)


def _following(table: Table, ended: NDArray[Any] | None, labels: NDArray[Any] | None) -> Following:
    """Of every row the following one, which holds its next state."""
    if labels is None:
        raise InvalidFile(
            f"{table.name} has no column `next_state` (nor `next_state_0`), and no `episode` by which the next state could be "
            "taken from the following row. Give one of them (--column episode=NAME). Where every row is a decision by itself, as "
            "in a bandit, add a column `episode` that numbers the rows and a column `terminated` that says yes in all of them."
        )
    following = Following.of(labels)
    for flags, name in ((ended, "terminated"), (table.flags(TRUNCATED), TRUNCATED)):
        if flags is not None:
            following.refuse_after_the_end(~_is_false(flags, len(table)), name, table.row)
    steps = table.numbers(STEP)
    if steps is not None:
        following.refuse_steps(steps[:, 0], labels, table.row)
    for name in TIMES:
        times = read_times(table, name)
        if times is not None:
            following.refuse_backward(times, table.row)
            if steps is None:
                _say(table, following.skipped(times, table.row))
    if steps is None:
        _say(table, following.apart(table.row))
    return following


def _say(table: Table, sentence: str) -> None:
    if sentence:
        table.remark(sentence)


def _say_formed(table: Table, data: Transitions, kept: BoolArray) -> None:
    dropped = int((~kept).sum())
    table.remark("Next states are the states of the following rows of each episode")
    if dropped:
        all_of_them = ": no row is terminated" if not data.terminated.any() else ""
        rows, episodes = (plural(dropped, "row", "rows"), plural(dropped, "an episode that goes", "episodes that go"))
        table.remark(
            f"{dropped:,} {rows} dropped, the last of {episodes} on when the log ends{all_of_them}. It is a premise that where "
            "the log ends does not depend on what would have come next"
        )


def _check_order(table: Table, data: Transitions) -> None:
    if data.episodes is None:
        return
    finding = order_finding(data.states, data.next_states, data.terminated, data.episodes)
    if finding is None:
        return
    shuffled, sentence = finding
    if shuffled:
        raise InvalidInput(f"{sentence}.")
    table.remark(sentence)
