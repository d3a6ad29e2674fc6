"""What the columns of the state and the actions are called by whoever logged them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments import checked
from ..errors import InvalidInput

Label = str | int | float | bool
"""What an action, or a category of a column, may be called."""


@checked
@dataclass(frozen=True)
class Categories:
    """A column of words as columns of zeros and ones, one for each word.

    Parameters
    ----------
    name : str
        What the column is called.
    first : int
        Which column of the states is that of the first word; those of the others follow it.
    words : sequence of str
        Different ones.

    Examples
    --------
    >>> from accountable_ope.problem import Categories
    >>> Categories("ward", 1, ("icu", "surgery")).columns
    ('ward=icu', 'ward=surgery')
    """

    name: str
    first: int
    words: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        if self.first < 0 or not self.words or len(set(self.words)) < len(self.words):
            raise InvalidInput(f"`words` of `{self.name}` must be different ones, from a column of the states on. Got {self!r}.")

    @property
    def columns(self) -> tuple[str, ...]:
        """What its columns of zeros and ones are called."""
        return tuple(f"{self.name}={word}" for word in self.words)


@checked
@dataclass(frozen=True)
class Naming:
    """Names for columns of the state and for actions. No bound depends on them, and no certificate holds them.

    Parameters
    ----------
    states : sequence of str
        Of every column of the states; empty where nobody knows.
    actions : sequence of str, int, float or bool
        Of every action of a finite set, that of index 0 first; empty where nobody knows.
    categories : sequence of Categories
        Columns of words among the states, whose columns of zeros and ones are called `ward=icu`.

    Raises
    ------
    InvalidInput
        Where a name stands twice, or categories are not among the states.

    Examples
    --------
    >>> from accountable_ope.problem import Naming
    >>> names = Naming(("age", "lactate"), ("wait", "treat"))
    >>> names.state(1), names.state(2), names.column("lactate"), names.action(1), names.index("treat")
    ('lactate', 'state_2', 1, 'treat', 1)
    """

    states: Sequence[str] = ()
    actions: Sequence[str | int | float | bool] = ()
    categories: Sequence[Categories] = ()

    def __post_init__(self) -> None:
        for name in ("states", "actions", "categories"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for given, what in ((self.states, "states"), (tuple(map(str, self.actions)), "actions")):
            twice = [each for each in given if given.count(each) > 1] if len(set(given)) < len(given) else []
            if twice:
                raise InvalidInput(f"`{what}` must have a name of its own each. `{twice[0]}` stands there twice.")
        for each in self.categories:
            if tuple(self.states[each.first : each.first + len(each.words)]) != each.columns:
                raise InvalidInput(f"`categories` must be among the states. `{each.name}` is not, from column {each.first} on.")

    def state(self, index: int) -> str:
        """What a column of the states is called: `state_3` where nobody knows."""
        return self.states[index] if 0 <= index < len(self.states) else f"state_{index}"

    def action(self, index: int) -> Label:
        """What an action is called: its index where nobody knows."""
        return self.actions[index] if 0 <= index < len(self.actions) else index

    def column(self, name: str) -> int | None:
        """Which column of the states has this name; None where none has."""
        return self.states.index(name) if name in self.states else None

    def index(self, action: Label) -> int | None:
        """Which action has this name; None where none has. True and 1 are two names, 1 and 1.0 one."""
        kind = isinstance(action, bool)
        return next((i for i, each in enumerate(self.actions) if each == action and isinstance(each, bool) == kind), None)

    def words(self, name: str) -> Categories | None:
        """The column of words of this name; None where there is none."""
        return next((each for each in self.categories if each.name == name), None)


UNNAMED = Naming()
"""Where nobody knows what anything is called."""
