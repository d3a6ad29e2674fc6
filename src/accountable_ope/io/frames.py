"""Transitions and start states from data frames: pandas, Polars, Arrow, and whatever else Narwhals knows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..arguments import checked, shown
from ..errors import InvalidFile, InvalidInput
from ..problem.naming import Naming
from ..problem.row_columns import LOGGED
from ..problem.transitions import StartStates, Transitions
from .advice import in_python
from .coding import WordRules
from .columns import ColumnNames, did_you_mean, listed
from .index_levels import named_levels
from .reading import TransitionFile, read_log
from .starts import read_starts

if TYPE_CHECKING:  # both take a tenth of a second to import: only when a frame is touched
    import narwhals as nw
    import pyarrow as pa

NAME = "The data frame"

ARGUMENTS = ("state", "action", "reward", "next_state", "terminated", "episode", LOGGED)
"""Of `from_dataframe`, those that name columns."""


@checked
def from_dataframe(
    frame: Any,
    *,
    state: str | Sequence[str] | None = None,
    action: str | Sequence[str] | None = None,
    reward: str | None = None,
    next_state: str | Sequence[str] | None = None,
    terminated: str | None = None,
    episode: str | None = None,
    behavior_probability: str | None = None,
    actions: Sequence[Any] = (),
    ignore: str | Sequence[str] = (),
) -> Transitions:
    """The transitions of a data frame; rows must be in the order of generation.

    Whatever is checked in a file is checked here. A column that is not named is found by its name, as in a file: `state` (or
    `state_0`, `state_1`, ...), `action`, `reward`, `next_state`, `terminated`, `episode`, and the names of other tools for them.

    Parameters
    ----------
    frame : data frame
        Of pandas, Polars, PyArrow (a Table) or another library that Narwhals knows. Levels of the index that have a name are
        columns, behind the others, as in its Parquet file.
    state : str or sequence of str
        The columns of the state. Numbers and flags are taken as they are, numbers that are categories too. A column of words
        (text, or categories with text for names) becomes a column of zeros and ones for each word, called `ward=icu`.
    action : str or sequence of str
        One name: a column of labels of a finite set. Whole numbers from 0 are indices already; words are numbered in the order
        of the alphabet, or of the categories where these are ordered. A list of names: vectors.
    reward : str
    next_state : str or sequence of str
        As `state`. Where there is no such column, the next state is the state of the following row of the same episode, and the
        last rows of episodes that go on are dropped and counted (`Transitions.left_out`), which results then say.
    terminated : str
        True where the next state is terminal, and not where the episode was merely cut off.
    episode : str
        Labels of the episodes, whole numbers or text.
    behavior_probability : str
        The probability with which the logger chose the action of the row.
    actions : sequence
        All labels of the actions, of any type, that of index 0 first: needed for numbers that are no indices (-1, 0, 1), and
        where an action may be taken that no row has.
    ignore : sequence of str
        Columns that are treated as if they were not there, such as one that is refused since its name may mean another.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidInput
        Where columns are missing, stand twice, or hold what is no transition: dates, Python objects, missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> import accountable_ope as aope
    >>> frame = pd.DataFrame(
    ...     {
    ...         "patient": [7, 7, 7, 8, 8],
    ...         "age": [61, 61, 62, 40, 41],
    ...         "ward": ["icu", "icu", "surgery", "surgery", "icu"],
    ...         "drug": ["none", "high", "none", "low", "none"],
    ...         "outcome": [0.0, 0.5, 1.0, 0.0, 0.5],
    ...         "died": [False, False, True, False, False],
    ...     }
    ... )
    >>> data = aope.from_dataframe(
    ...     frame, state=["age", "ward"], action="drug", reward="outcome", terminated="died", episode="patient"
    ... )
    >>> data, data.left_out
    (Transitions(4 rows, 2 episodes, 3-d states, 1 terminated), 1)
    >>> data.naming.states, data.naming.actions
    (('age', 'ward=icu', 'ward=surgery'), ('high', 'low', 'none'))
    """
    given = (state, action, reward, next_state, terminated, episode, behavior_probability)
    columns = {base: names for base, names in zip(ARGUMENTS, given, strict=True) if names is not None}
    return read_frame(frame, ignore, columns, policy=False, estimate=False, actions=actions).data


def read_frame(
    frame: Any,
    ignore: str | Sequence[str] = (),
    columns: ColumnNames | None = None,
    *,
    policy: bool = True,
    estimate: bool = True,
    actions: Sequence[Any] = (),
) -> TransitionFile:
    """All that a data frame of transitions holds, and how its columns were read; as `read_transition_file`."""
    source, rules = _source(frame), WordRules(labels=tuple(actions))
    _refuse_missing(source.names, columns or {})
    try:
        return read_log(source, ignore, columns, policy=policy, estimate=estimate, words=rules)
    except InvalidFile as error:
        raise InvalidInput(in_python(str(error), ARGUMENTS)) from error


@checked
def starts_from_dataframe(
    frame: Any,
    *,
    naming: Naming,
    state: str | Sequence[str] | None = None,
    weight: str | None = None,
    exact: bool | None = None,
    ignore: str | Sequence[str] = (),
) -> StartStates:
    """The start states of a data frame, in the columns of a log.

    Parameters
    ----------
    frame : data frame
        As in `from_dataframe`.
    naming : Naming
        That of the log (`Transitions.naming`): words mean here what they mean there.
    state : str or sequence of str
        The columns of the state, in the order of the log. By default those of the same names as in the log.
    weight : str
        Probabilities up to a factor.
    exact : bool, optional
        False: the rows are an i.i.d. sample of the start distribution, such as the first rows of patients who came by chance,
        which `save_starts` writes into a file. Else they are the distribution itself.
    ignore : sequence of str
        Columns that are treated as if they were not there.

    Returns
    -------
    StartStates

    Raises
    ------
    InvalidInput
        As `from_dataframe`, and where a word is none of the log.

    Examples
    --------
    >>> import pandas as pd
    >>> import accountable_ope as aope
    >>> log = {"ward": ["icu", "surgery", "icu"], "action": [0, 1, 0], "reward": [0.0, 0.5, 1.0], "episode": [1, 1, 1]}
    >>> data = aope.from_dataframe(pd.DataFrame(log), state="ward")
    >>> aope.starts_from_dataframe(pd.DataFrame({"ward": ["surgery"]}), naming=data.naming).states
    array([[0., 1.]])
    """
    source = _source(frame)
    given = {"state": state, "weight": weight}
    columns = {base: each for base, each in given.items() if each is not None}
    _refuse_missing(source.names, columns)
    try:
        return read_starts(source, exact, ignore, columns, policy=False, estimate=False, naming=naming).starts
    except InvalidFile as error:
        raise InvalidInput(in_python(str(error), given)) from error


@dataclass(frozen=True, eq=False)
class FrameSource:
    """A data frame as a source of columns, of which those that are asked for become Arrow arrays."""

    frame: nw.DataFrame[Any]
    names: list[str]
    levels: Mapping[str, nw.Series[Any]] = field(default_factory=dict)
    name: str = NAME

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Some columns."""
        import pyarrow as pa

        wanted = list(columns) or self.names[:1]
        return pa.table([self._column(name) for name in wanted], names=wanted, metadata=self._about)

    @property
    def _about(self) -> Any:
        """What an Arrow table says of itself, such as names that were saved with it."""
        import pyarrow as pa

        native = self.frame.to_native()
        return native.schema.metadata if isinstance(native, pa.Table) else None

    def _series(self, name: str) -> nw.Series[Any]:
        level = self.levels.get(name)
        return self.frame.get_column(name) if level is None else level

    def _column(self, name: str) -> pa.ChunkedArray:
        import narwhals as nw
        import pyarrow as pa

        column = self._series(name)
        try:
            found = column.to_arrow()
            if isinstance(column.dtype, nw.Enum) and not found.type.ordered:  # some versions of Polars do not say that it is
                found = _ordered(found, column.dtype.categories)
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
            raise InvalidFile(f"{self.name}: column `{name}` must hold numbers, or words. {self._mixture(name)}") from error
        return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])

    def _mixture(self, name: str) -> str:
        """What a column holds that is neither numbers nor text."""
        kinds = [_kind(each) for each in self._series(name).to_list()]
        other = next((row for row, kind in enumerate(kinds) if kind != kinds[0]), None)
        if other is None:
            return f"It holds Python objects ({kinds[0]})."
        return f"It holds objects of several kinds ({kinds[0]} in {self.row(0)}, {kinds[other]} in {self.row(other)})."

    def row(self, index: int) -> str:
        """Its number, counted from 0 whatever the index of the frame says."""
        return f"row {index}"


def _ordered(column: pa.Array, words: Sequence[str]) -> pa.Array:
    """The same categories in their declared order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    indices = pc.index_in(column.cast(column.type.value_type), pa.array(words, column.type.value_type))
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, column.type.value_type), ordered=True)


def _kind(entry: object) -> str:
    """What an entry is, whole numbers and others alike."""
    return "numbers" if isinstance(entry, Real) else "text" if isinstance(entry, str) else type(entry).__name__


def _source(frame: Any) -> FrameSource:
    """A frame of any library, or one sentence."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        found = nw.from_native(frame, eager_only=True)
    except DuplicateError as error:
        twice = re.search(r"'(.*?)' \d+ times", str(error))
        raise InvalidInput(f"{NAME} has several columns called `{twice[1] if twice else '?'}`: rename one of them.") from None
    except TypeError:
        lazy = hasattr(frame, "collect") and hasattr(frame, "collect_schema")
        hint = "Collect it first: frame.collect()." if lazy else f"Got {shown(frame)}."
        raise InvalidInput(f"`frame` must be a data frame of pandas or Polars, or an Arrow table. {hint}") from None
    names: list[Any] = list(found.columns)
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise InvalidInput(
            f"{NAME} has a column called {other[0]!r}, which is no text: frame.columns = frame.columns.map(str) makes it one."
        )
    levels = named_levels(found, NAME)
    names += levels
    if not names or len(found) == 0:
        raise InvalidInput(f"{NAME} has no {'rows' if names else 'columns'}.")
    return FrameSource(found, names, levels)


def _refuse_missing(names: Sequence[str], columns: ColumnNames) -> None:
    """Raise where a named column is not there."""
    for base, given in columns.items():
        for name in (given,) if isinstance(given, str) else given:
            if name not in names:
                raise InvalidInput(
                    f"`{base}` must name columns of the data frame. It has none called {name!r}."
                    f"{did_you_mean(name, names)} Its columns: {listed(names)}."
                )
