"""Decision rules on columns: `treat if lactate > 2 else wait`, read by a grammar of their own and never run as Python.

choice    = choice "if" condition "else" choice | action | "(" number, number, ... ")" | number
condition = number < number (<=, >, >=, ==, !=, chained) | word == 'text' | condition and, or condition | not condition
number    = literal | column | number + - * / number | number ** small literal | - number | number if condition else number
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.naming import UNNAMED, Label, Naming
from ..problem.policy import DeterministicPolicy, DiscretePolicy, action_vectors, shown_numbers
from ..validation import BoolArray, FloatArray, plural
from .answers import one_hot

LONGEST = 2000
"""Characters of a rule."""
DEEPEST = 60
"""How far its parts may be nested."""
LARGEST_POWER = 8
EXAMPLE = 'write it as "A if column > 2 else B"'

Number = Callable[[FloatArray], FloatArray]
Condition = Callable[[FloatArray], BoolArray]

COMPARISONS: dict[type, Callable[[FloatArray, FloatArray], BoolArray]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
ARITHMETIC: dict[type, Callable[[FloatArray, FloatArray], FloatArray]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
REFUSED: dict[type, str] = {
    ast.Attribute: "a dot after a name",
    ast.Call: "a call",
    ast.Subscript: "square brackets",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a formatted text",
    ast.Starred: "a star",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.List: "a list",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
}


@checked
def rule_policy(
    rule: str, naming: Naming = UNNAMED, actions: ArrayLike | int | None = None
) -> DiscretePolicy | DeterministicPolicy:
    """The policy that follows a rule on columns of the state, such as "treat if lactate > 2 else wait".

    Comparisons, `and`, `or`, `not`, arithmetic, numbers, columns, actions and `a if condition else b`; names that are no single
    word stand between backticks. Nothing else is read, and nothing is run as Python.

    Parameters
    ----------
    rule : str
    naming : Naming, optional
        What columns and actions are called, such as `data.naming`; columns without names are state_0, state_1, ...
    actions : int or array (A, k), optional
        The finite action set: vectors that enter x = (s, a), or their number for one-hot vectors. Where neither `actions` nor
        names of actions are given the rule gives action vectors: a number, or several in parentheses.

    Returns
    -------
    DiscretePolicy or DeterministicPolicy

    Raises
    ------
    InvalidInput
        Where the rule has anything else in it, or a name that is not known; when asked, where it divides by 0.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Naming
    >>> from accountable_ope.adapters import rule_policy
    >>> policy = rule_policy("treat if lactate > 2 and age < 80 else wait", Naming(["age", "lactate"], ["wait", "treat"]))
    >>> [branch.weights.tolist() for branch in policy.branches(np.array([[60.0, 3.0], [90.0, 3.0]]))]
    [[0.0, 1.0], [1.0, 0.0]]
    """
    given = actions if actions is not None else (len(naming.actions) or None)
    count = None if given is None else len(action_vectors(given))
    if count is not None and len(naming.actions) > count:
        raise InvalidInput(f"`naming` has {len(naming.actions)} actions, but there are {count}.")
    reader = _Reader(rule, naming, count)
    choice = reader.read()
    if given is None or count is None:
        return DeterministicPolicy(choice.at)
    return DiscretePolicy(lambda states: one_hot(choice.at(states)[:, 0], count, "The rule"), given)


def _written(node: ast.expr) -> float | None:
    """The number that stands in a rule; None where something is computed."""
    sign = -1.0 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1.0
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(inner, ast.Constant) or not isinstance(inner.value, int | float):
        return None
    return sign * float(inner.value) if abs(inner.value) < 1e38 else None


def _meant(values: FloatArray, written: float | None) -> FloatArray:
    """A column of single precision holds for 0.7 what that becomes there: such a number is the one that is written."""
    return values if written is None else np.where(values == float(np.float32(written)), written, values)


@dataclass(frozen=True)
class _Choice:
    """What a rule gives: an action index in one column, or an action vector."""

    at: Number
    columns: int


@dataclass(eq=False)
class _Reader:
    """A rule on its way from text to functions of the states."""

    rule: str
    naming: Naming
    actions: int | None
    quoted: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def read(self) -> _Choice:
        """The whole rule."""
        if len(self.rule) > LONGEST:
            raise InvalidInput(f"A rule must not be longer than {LONGEST} characters. This one has {len(self.rule)}.")
        self.text = re.sub(r"`([^`\n]+)`", self._quote, self.rule).strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            reason = error.msg
            if re.search(r"(?<![=!<>])=(?!=)", self.text):  # the parser complains of whatever stands around it
                reason = "a comparison is written ==, with two signs"
            raise InvalidInput(f"The rule {self.shown} cannot be read ({reason}): {EXAMPLE}.") from None
        except (ValueError, RecursionError, MemoryError, OverflowError):
            raise InvalidInput(f"The rule {self.shown} cannot be read: {EXAMPLE}.") from None
        return self.choice(tree.body, 0)

    @property
    def shown(self) -> str:
        """The rule in a sentence."""
        text = " ".join(self.rule.split())
        return repr(text if len(text) <= 80 else f"{text[:77]}...")

    def choice(self, node: ast.expr, depth: int) -> _Choice:
        """What is done: an action, or one of two choices."""
        self._deeper(depth)
        if isinstance(node, ast.IfExp):
            test = self.condition(node.test, depth + 1)
            one, other = self.choice(node.body, depth + 1), self.choice(node.orelse, depth + 1)
            if one.columns != other.columns:
                raise InvalidInput(f"The rule {self.shown} gives {one.columns} numbers in one case, {other.columns} in another.")
            return _Choice(_either(test, one.at, other.at, one.columns), one.columns)
        if self.actions is not None:
            index = self._action(node)
            return _Choice(lambda states: np.full((len(states), 1), float(index)), 1)
        parts = [self.number(each, depth + 1) for each in (node.elts if isinstance(node, ast.Tuple) else [node])]
        if not parts:
            raise InvalidInput(f"The rule {self.shown} gives no numbers.")
        return _Choice(lambda states: np.column_stack([self._finite(part(states), states) for part in parts]), len(parts))

    def condition(self, node: ast.expr, depth: int) -> Condition:
        """What is true or false of a state."""
        self._deeper(depth)
        if isinstance(node, ast.BoolOp):
            parts = [self.condition(each, depth + 1) for each in node.values]
            return _all(parts) if isinstance(node.op, ast.And) else _any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand, depth + 1)
            return lambda states: ~inner(states)
        if not isinstance(node, ast.Compare):
            raise self._refuse(node, "a comparison, such as lactate > 2, is expected")
        word = self._word(node)
        if word is not None:
            return word
        terms = (node.left, *node.comparators)
        sides, written = [self.number(each, depth + 1) for each in terms], [_written(each) for each in terms]
        signs = []
        for each in node.ops:
            if type(each) not in COMPARISONS:
                raise InvalidInput(f"The rule {self.shown} compares by `in` or `is`: use <, <=, >, >=, == or !=.")
            signs.append(COMPARISONS[type(each)])

        def compared(states: FloatArray) -> BoolArray:
            values = [self._finite(side(states), states) for side in sides]
            found = [
                sign(_meant(a, right), _meant(b, left))
                for sign, a, b, left, right in zip(signs, values[:-1], values[1:], written[:-1], written[1:], strict=True)
            ]
            return np.asarray(np.logical_and.reduce(found))

        return compared

    def number(self, node: ast.expr, depth: int) -> Number:
        """What is a number at every state."""
        self._deeper(depth)
        if isinstance(node, ast.Constant):
            value = self._literal(node)
            return lambda states: np.full(len(states), value)
        if isinstance(node, ast.Name):
            column = self._column(self._name(node))
            return lambda states: self._of(states, column)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner, sign = self.number(node.operand, depth + 1), -1.0 if isinstance(node.op, ast.USub) else 1.0
            return lambda states: sign * inner(states)
        if isinstance(node, ast.IfExp):
            test = self.condition(node.test, depth + 1)
            one, other = self.number(node.body, depth + 1), self.number(node.orelse, depth + 1)
            return _either(test, one, other, None)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = self.number(node.left, depth + 1), self._power(node.right)
            return lambda states: self._counted(operator.pow, base(states), np.float64(power))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)
            sign_of = ARITHMETIC[type(node.op)]
            return lambda states: self._counted(sign_of, left(states), right(states))
        raise self._refuse(node, "a number or a column is expected")

    def _quote(self, found: re.Match[str]) -> str:
        name = f"quoted_{len(self.quoted)}_"
        while name in self.rule:
            name += "_"
        self.quoted[name] = found.group(1)
        return f" {name} "

    def _name(self, node: ast.Name) -> str:
        written = ast.get_source_segment(self.text, node) or node.id  # the parser takes a micro sign for a Greek letter
        return self.quoted.get(written, written)

    def _column(self, name: str) -> int:
        found = self.naming.column(name)
        if found is None and not self.naming.states and re.fullmatch(r"state_\d{1,6}", name):
            found = int(name[6:])
        if found is None:
            known = ", ".join(self.naming.states[:12]) or "state_0, state_1, ..."
            raise InvalidInput(f"The rule {self.shown} names `{name}`, which is no column of the state ({known}).")
        return found

    def _of(self, states: FloatArray, column: int) -> FloatArray:
        if column >= states.shape[1]:
            raise InvalidInput(f"The rule {self.shown} asks for column {column} of the state, which has {states.shape[1]}.")
        return np.asarray(states[:, column])

    def _word(self, node: ast.Compare) -> Condition | None:
        """`ward == 'icu'`, for a column of words; None where it is a comparison of numbers."""
        if len(node.ops) != 1 or not isinstance(node.left, ast.Name):
            return None
        words, other = self.naming.words(self._name(node.left)), node.comparators[0]
        if words is None:
            return None
        if (
            not isinstance(node.ops[0], ast.Eq | ast.NotEq)
            or not isinstance(other, ast.Constant)
            or other.value not in words.words
        ):
            listed = ", ".join(repr(each) for each in words.words[:8])
            several = "; several of them: == 'A' or ... == 'B'" if isinstance(node.ops[0], ast.In | ast.NotIn) else ""
            raise InvalidInput(f"The rule {self.shown} must compare `{words.name}` by == or != with one of {listed}{several}.")
        column, equal = words.first + list(words.words).index(str(other.value)), isinstance(node.ops[0], ast.Eq)
        return lambda states: (self._of(states, column) > 0.5) == equal

    def _action(self, node: ast.expr) -> int:
        """The index of an action that is named."""
        label: Label
        if isinstance(node, ast.Name):
            label = self._name(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            label = node.value
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            label = -self._literal(node.operand)
        else:
            raise self._refuse(node, "an action is expected")
        count = self.actions or 0
        found = self.naming.index(label) if self.naming.actions else label
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < count:
            known = ", ".join(map(str, self.naming.actions[:12])) or f"{plural(count, '0', f'0 to {count - 1}')}"
            raise InvalidInput(f"The rule {self.shown} takes {label!r}, which is none of the actions ({known}).")
        return found

    def _literal(self, node: ast.Constant) -> float:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"The rule {self.shown} has {value!r} where a number is expected.")
        try:
            found = float(value)
        except OverflowError:
            found = np.inf
        if not np.isfinite(found):
            raise InvalidInput(f"The rule {self.shown} has a number in it that is too large.")
        return found

    def _power(self, node: ast.expr) -> int:
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_POWER:
            raise InvalidInput(f"The rule {self.shown} must have powers that are whole numbers from 0 to {LARGEST_POWER}.")
        return value

    def _finite(self, values: FloatArray, states: FloatArray) -> FloatArray:
        wrong = ~np.isfinite(values)
        if wrong.any():
            at = shown_numbers(states[int(np.argmax(wrong))])
            raise InvalidInput(f"The rule {self.shown} divides by 0, or overflows, at the state {at}.")
        return values

    @staticmethod
    def _counted(
        sign: Callable[[FloatArray, FloatArray], FloatArray], one: FloatArray, other: FloatArray | np.float64
    ) -> FloatArray:
        with np.errstate(all="ignore"):  # what is no number is refused where it is used
            return np.asarray(sign(one, np.asarray(other)))

    def _deeper(self, depth: int) -> None:
        if depth > DEEPEST:
            raise InvalidInput(f"The rule {self.shown} is nested too deeply (more than {DEEPEST} levels).")

    def _refuse(self, node: ast.expr, expected: str) -> InvalidInput:
        what = REFUSED.get(type(node))
        found = f" has {what} in it, which rules cannot have" if what else f" cannot be followed where {expected}"
        return InvalidInput(
            f"The rule {self.shown}{found}: comparisons, and, or, not, arithmetic, numbers, columns, actions and "
            '"A if condition else B" are all there is.'
        )


def _either(test: Condition, one: Number, other: Number, columns: int | None) -> Number:
    """Each side is asked only where it is taken, so that what guards a division guards it."""

    def chosen(states: FloatArray) -> FloatArray:
        out, yes = np.empty(len(states) if columns is None else (len(states), columns)), test(states)
        for rows, side in ((yes, one), (~yes, other)):
            if rows.any():
                out[rows] = side(states[rows])
        return out

    return chosen


def _all(parts: list[Condition]) -> Condition:
    """One after the other, and only where those before hold."""

    def holds(states: FloatArray) -> BoolArray:
        out = np.ones(len(states), dtype=bool)
        for part in parts:
            if out.any():
                out[out] = part(states[out])
        return out

    return holds


def _any(parts: list[Condition]) -> Condition:
    none = _all([_not(part) for part in parts])
    return lambda states: ~none(states)


def _not(part: Condition) -> Condition:
    return lambda states: ~part(states)
