"""What stands beside a proved interval: the value of the logging policy, and a large-sample interval that needs no class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arguments import checked
from ..classes.function_class import FunctionClass
from ..errors import InvalidInput
from ..problem.statements import Statement, remark
from .cross_fitted import CrossFittedInterval, cross_fitted_interval
from .logging_policy import LoggedValue, logged_value

if TYPE_CHECKING:
    from .evaluation import Evaluation


@checked
@dataclass(frozen=True, eq=False)
class Companions:
    """The logged policy's value and the cross-fitted interval, each None where there is none.

    Attributes
    ----------
    logged : LoggedValue or None
    crossed : CrossFittedInterval or None
    missing : tuple of Statement
        Why one is not there: remarks named `no-logged-value` and `no-large-sample`.

    Examples
    --------
    >>> from accountable_ope.bounds import Companions
    >>> Companions().logged is None
    True
    """

    logged: LoggedValue | None = None
    crossed: CrossFittedInterval | None = None
    missing: tuple[Statement, ...] = ()

    def why_missing(self, name: str) -> str:
        """The reason, as a clause without a full stop; empty where there is none."""
        return next((str(each.parameter("reason")) for each in self.missing if each.name == name), "")


def companions_of(evaluation: Evaluation, delta: float, *, growing: bool = False) -> Companions:
    """Both companions of an interval, from the rows and the class that it has.

    growing: rows may be looked at again and again, for which neither is made.
    """
    if growing:
        reason = "rows are looked at again while they grow, and it is a statement about one number of them"
        return Companions(missing=(_missing("no-logged-value", reason), _missing("no-large-sample", reason)))
    missing = []
    logged: LoggedValue | None = None
    crossed: CrossFittedInterval | None = None
    try:
        logged = logged_value(evaluation.whole, delta=delta)
    except InvalidInput as error:
        missing.append(_missing("no-logged-value", _clause(error)))
    try:
        crossed = crossed_of(evaluation, delta)
    except InvalidInput as error:
        missing.append(_missing("no-large-sample", _clause(error)))
    return Companions(logged, crossed, tuple(missing))


def crossed_of(evaluation: Evaluation, delta: float) -> CrossFittedInterval:
    """The large-sample interval beside one that has this evaluation; raises InvalidInput where there is none."""
    return cross_fitted_interval(evaluation.problem, features=_features(evaluation), delta=delta)


def _features(evaluation: Evaluation) -> FunctionClass | None:
    """Those of the one class, where it has few coefficients; without them the coordinates of a kernel are all there is."""
    if len(evaluation.classes) != 1:
        return None
    size = evaluation.classes[0].dimension
    return evaluation.classes[0] if size is not None and 2 * size < len(evaluation.problem.data) else None


def _missing(name: str, reason: str) -> Statement:
    what = "The value of the logged policy" if name == "no-logged-value" else "A large-sample interval"
    return remark(name, f"{what} is left out: {reason}.", ("reason", reason))


def _clause(error: InvalidInput) -> str:
    return str(error).rstrip(".")
