"""The result of comparing policies on one log: an interval for each, a difference for every pair, and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ..arguments import checked
from ..baselines.interval import BaselineInterval
from ..defaults.recipe import Recipe
from ..errors import InvalidInput
from ..io.display import confidence, ends_text
from ..io.shown import Drawn, Shown
from ..problem.policy import Policy
from ..problem.statements import Statement, Status, premise, remark
from .companions import crossed_of
from .cross_fitted import CrossFittedInterval
from .decision import Judgment, Ruling, of_difference
from .interval import Interval
from .logging_policy import LoggedValue, crossing_clause
from .verdict import bet_text, number_near, outward
from .weighed import answer_of

LOGGED = "logged policy"
BY_PROBABILITIES = (
    "The intervals are by the recorded probabilities of the logged actions, as those of `aope bound` on such a log."
)
IF_RECORDED = ", if actions were drawn with the recorded probabilities"


@checked
@dataclass(frozen=True, eq=False)
class NamedPolicy:
    """A policy and what it is called.

    Parameters
    ----------
    name : str
        Shown in tables; not empty.
    policy : Policy

    Raises
    ------
    InvalidInput
        Where the name is empty, or that of the logged policy.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> aope.NamedPolicy("coin", aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)).name
    'coin'
    """

    name: str
    policy: Policy

    def __post_init__(self) -> None:
        if not self.name.strip() or self.name == LOGGED:
            raise InvalidInput(f"`name` must be a name of its own, not empty and not {LOGGED!r}. Got {self.name!r}.")

    def __repr__(self) -> str:
        return f"NamedPolicy({self.name!r}, {type(self.policy).__name__})"


@checked
@dataclass(frozen=True, eq=False)
class Contender:
    """One policy of a comparison: the target of an interval, or the logged one.

    Attributes
    ----------
    name : str
    found : Interval or LoggedValue
        At its share of delta.
    answer : Interval, BaselineInterval or LoggedValue
        What is compared: where recorded probabilities answer first, as in `bound_value`, the interval by them, else `found`.
    weighed : BaselineInterval, optional
        The interval by recorded probabilities, where more speaks against it than `found` knows.
    """

    name: str
    found: Interval | LoggedValue
    weighed: BaselineInterval | None = None

    @property
    def answer(self) -> Interval | BaselineInterval | LoggedValue:
        if self.weighed is not None:
            return self.weighed
        return self.found if isinstance(self.found, LoggedValue) else answer_of(self.found)

    @property
    def by_probabilities(self) -> bool:
        """Whether recorded probabilities answer, and no class of Q functions."""
        return isinstance(self.answer, BaselineInterval)

    @property
    def lower(self) -> float:
        return self.answer.lower

    @property
    def upper(self) -> float:
        return self.answer.upper

    @property
    def status(self) -> Status:
        return self.answer.status

    @cached_property
    def crossed(self) -> CrossFittedInterval | None:
        """The large-sample interval at the same share of delta, made when asked for by one more fit; None where there is none."""
        if isinstance(self.found, LoggedValue) or self.found.rebound is None:
            return None
        try:
            return crossed_of(self.found.rebound.evaluation, self.found.delta)
        except InvalidInput:
            return None

    @property
    def bet(self) -> Statement | None:
        """What a practitioner would bet on, for many rows; nothing of it is proved. None where there is nothing."""
        if isinstance(self.found, LoggedValue):
            low, high = self.found.large_sample
            if not math.isfinite(high - low) or self.found.status in (Status.DOUBTED, Status.INCONSISTENT):
                return None
            text = f"{number_near(self.found.estimate, high - low)} ({' to '.join(outward(low, high))})"
            return remark("bet", f"{self.name}: {text}", ("policy", self.name), ("estimate", self.found.estimate))
        if self.crossed is None:
            return None
        text = f"{self.name}: {bet_text(self.crossed)}"
        return remark("bet", text, ("policy", self.name), ("estimate", self.crossed.estimate))


@checked
@dataclass(frozen=True)
class Difference:
    """lower <= value of the first less value of the second <= upper, at the same time as all intervals.

    Attributes
    ----------
    first, second : str
        Which policies.
    lower, upper : float
        NaN where one of them has no interval.
    paired : bool
        Whether one program bounded the difference itself; else it is that of two intervals.
    judgment : Judgment
        Of the claim that the first is better.
    """

    first: str
    second: str
    lower: float
    upper: float
    paired: bool
    judgment: Judgment

    def __repr__(self) -> str:
        return f"Difference({self.first} - {self.second}, {ends_text(self.lower, self.upper)}, {self.judgment.name})"


@checked
@dataclass(frozen=True, eq=False)
class Comparison(Shown, Drawn):
    """Several policies on one log, all statements at once with probability 1 - delta; made by `compare`.

    Attributes
    ----------
    contenders : tuple of Contender
        In the order given, the logged policy last where its value can be known.
    differences : tuple of Difference
        Every pair, each once.
    delta : float
        Of all statements together.
    share : float
        Of each interval.
    missing : tuple of Statement
        Why the logged policy is not among them, if so.
    """

    contenders: tuple[Contender, ...]
    differences: tuple[Difference, ...]
    delta: float
    share: float
    missing: tuple[Statement, ...] = ()

    def __repr__(self) -> str:
        return f"Comparison({', '.join(each.name for each in self.contenders)}, {confidence(self.delta)} together)"

    def difference(self, first: str, second: str) -> Difference:
        """That of two policies by name, in either order."""
        for each in self.differences:
            if (each.first, each.second) == (first, second):
                return each
            if (each.first, each.second) == (second, first):
                lower, upper = -each.upper + 0.0, -each.lower + 0.0
                decided = each.judgment in (Judgment.SUPPORTED, Judgment.REFUTED, Judgment.UNDECIDED)
                judgment = of_difference(lower, upper) if decided else each.judgment
                return Difference(first, second, lower, upper, each.paired, judgment)
        raise InvalidInput(f"`first` and `second` must be two of {[each.name for each in self.contenders]}.")

    def decide(self, best: str) -> Ruling:
        """Whether this policy is better than each of the others: SUPPORTED, REFUTED, UNDECIDED, or why nothing is decided.

        Parameters
        ----------
        best : str
            The name of the policy of the claim.

        Returns
        -------
        Ruling
        """
        from .best import better_than_each

        return better_than_each(self, best)

    @property
    def of_class_alone(self) -> bool:
        """Whether nothing is doubted but classes: no start states of the logged policy, no rows and no recorded probabilities."""
        if any(each.by_probabilities and each.status is Status.DOUBTED for each in self.contenders):
            return False
        elsewhere = any(isinstance(each.found, LoggedValue) and starts_elsewhere(each.found) for each in self.contenders)
        return not elsewhere and not any(_copied(each) for each in self.contenders)

    @property
    def unbeaten(self) -> tuple[str, ...]:
        """Policies that no other is proved to be better than."""
        beaten = {each.second for each in self.differences if each.judgment is Judgment.SUPPORTED}
        beaten |= {each.first for each in self.differences if each.judgment is Judgment.REFUTED and each.upper < 0}
        return tuple(each.name for each in self.contenders if each.name not in beaten)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """What the earliest rows chose for every policy, in the order given; empty where a class was named."""
        found = (each.found.recipe for each in self.contenders if isinstance(each.found, Interval))
        return tuple(each for each in found if each is not None)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What holds at once, what was chosen, and how differences were found."""
        count = len(self.contenders)
        together = premise(
            "together",
            f"All {count} intervals hold at once with {confidence(self.delta)} confidence, each with "
            f"{100 * (1 - self.share):.4g}% (delta / {count} each), and so do their differences.",
            ("delta", self.delta),
            ("share", self.share),
        )
        paired = sum(each.paired for each in self.differences)
        text = (
            f"{paired} of {len(self.differences)} differences are paired: at discount 0 Q is the same for all policies, and one "
            "program bounds the difference itself."
            if paired
            else "Differences are those of intervals: each policy has a Q of its own, and no program is made for two at once."
        )
        weighed = any(each.by_probabilities for each in self.contenders)
        if weighed:
            text = "Differences are those of intervals."
        by = remark("by-probabilities", f"{BY_PROBABILITIES} What the classes say is no part of them.")
        differences = remark("differences", text, ("paired", paired))
        return (together, *([by] if weighed else []), *self._chosen, differences, *self.missing)

    @property
    def _chosen(self) -> tuple[Statement, ...]:
        """That classes were chosen, on rows before those of the bounds."""
        if not self.recipes:
            return ()
        rows = self.recipes[0].earlier_rows
        one = len({id(each.features) for each in self.recipes}) == 1 < len(self.recipes)
        what = "One class for all policies was chosen" if one else "For every policy a class of its own was chosen"
        text = f"{what} on the first {rows:,} rows, which the bounds do not use; several choices on them cost no confidence."
        return (remark("chosen", text, ("rows", rows)),)

    @property
    def bets(self) -> tuple[Statement, ...]:
        """What a practitioner would bet on, policy by policy, for many rows: one more fit for each, made when first asked for."""
        return tuple(each.bet for each in self.contenders if each.bet is not None)

    @property
    def verdict(self) -> str:
        """Which policy is proved to be the best, in one sentence."""
        sure = f"With {confidence(self.delta)} confidence"
        best = self.unbeaten
        unclear = {Judgment.DOUBTED, Judgment.INCONSISTENT}
        if any(each.judgment in unclear for each in self.differences):
            if any(_copied(each) for each in self.contenders):
                return "Rows of the log are copies of earlier ones: no ranking should rest on them."
            worst = [each for each in self.contenders if each.status in (Status.DOUBTED, Status.INCONSISTENT)]
            doubted = [each.name for each in worst]
            if worst and not any(isinstance(each.answer, Interval) for each in worst):
                return (
                    f"The interval of {', '.join(doubted)} decides nothing: no ranking should rest on it. {_why(worst[0].answer)}"
                )
            if not doubted and any(
                isinstance(each.found, LoggedValue) and starts_elsewhere(each.found) for each in self.contenders
            ):
                return f"The {LOGGED} is known from other starts: no ranking with it should rest on that."
            return f"The class is doubted or refuted for {', '.join(doubted) or 'a policy'}: no ranking should rest on it."
        given = IF_RECORDED if any(each.by_probabilities for each in self.contenders) else ""
        if len(best) == 1:
            return f"{sure} {best[0]} is the best of these {len(self.contenders)} policies{given}."
        return f"{sure} one of {', '.join(best)} is the best{given}; the data do not say which."


def _why(found: Interval | BaselineInterval | LoggedValue) -> str:
    """What speaks against an interval that rests on no class."""
    if isinstance(found, BaselineInterval):
        return " ".join(each.text for each in found.doubts)
    return f"Its ends cross, {crossing_clause(found.delta)}."


def _copied(contender: Contender) -> bool:
    """Whether rows of the log stand in it again."""
    if isinstance(contender.found, LoggedValue):
        return contender.status is Status.DOUBTED
    return contender.found.copied > 0


def starts_elsewhere(logged: LoggedValue) -> bool:
    """Whether the logged episodes begin in other states than those of the question."""
    return any(each.name == "starts" for each in logged.doubts)
