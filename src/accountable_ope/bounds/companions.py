"""What stands beside a proved interval: the value of the logging policy, and intervals that need no class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arguments import checked
from ..baselines.interval import BaselineInterval
from ..classes.function_class import FunctionClass
from ..errors import InvalidInput
from ..problem.statements import Statement, remark
from .cross_fitted import CrossFittedInterval, cross_fitted_interval
from .logging_policy import LoggedValue, logged_value
from .weighed import weighed_value

if TYPE_CHECKING:
    from .evaluation import Evaluation

LEFT_OUT = {
    "no-logged-value": "The value of the logged policy",
    "no-large-sample": "A large-sample interval",
    "no-weighed": "An interval by the recorded probabilities",
}


@checked
@dataclass(frozen=True, eq=False)
class Companions:
    """The logged policy's value, the cross-fitted interval, and that by recorded probabilities, each None where there is none.

    Attributes
    ----------
    logged : LoggedValue or None
    crossed : CrossFittedInterval or None
    missing : tuple of Statement
        Why one is not there: remarks named `no-logged-value`, `no-large-sample` and `no-weighed`.
    weighed : BaselineInterval or None
        By the recorded probabilities of the logged actions, where one step decides (discount 0, or episodes of one row).
    leads : bool
        Whether that one answers first: nobody named a class, and each row of the log is a step by itself.

    Examples
    --------
    >>> from accountable_ope.bounds import Companions
    >>> Companions().logged is None
    True
    """

    logged: LoggedValue | None = None
    crossed: CrossFittedInterval | None = None
    missing: tuple[Statement, ...] = ()
    weighed: BaselineInterval | None = None
    leads: bool = False

    @property
    def leading(self) -> BaselineInterval | None:
        """What answers in the place of the interval beside which all this stands; None where that does."""
        return self.weighed if self.leads else None

    def why_missing(self, name: str) -> str:
        """The reason, as a clause without a full stop; empty where there is none."""
        return next((str(each.parameter("reason")) for each in self.missing if each.name == name), "")


def companions_of(
    evaluation: Evaluation, delta: float, *, leading: BaselineInterval | None = None, growing: bool = False
) -> Companions:
    """All companions of an interval, from the rows and the class that it has.

    leading: the one that answers first, where that is known already.
    growing: rows may be looked at again and again, for which none is made.
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
    weighed = leading
    try:
        weighed = weighed_value(evaluation.whole, delta) if leading is None else leading
    except InvalidInput as error:
        missing.append(_missing("no-weighed", _clause(error)))
    return Companions(logged, crossed, tuple(missing), weighed, leading is not None)


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
    return remark(name, f"{LEFT_OUT[name]} is left out: {reason}.", ("reason", reason))


def _clause(error: InvalidInput) -> str:
    return str(error).rstrip(".")
