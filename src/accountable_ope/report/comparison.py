"""An interval beside the value of the policy that made the data, in one sentence."""

from __future__ import annotations

from ..bounds.interval import Interval
from ..io.display import confidence
from ..problem.statements import Status


def comparison(interval: Interval, to_beat: float) -> str:
    """Whether the target policy is certified to be better than a policy of known value, or worse, or neither."""
    how_sure = f"with {confidence(interval.delta)} confidence"
    name = f"`{interval.radius.name}`"
    if interval.outcome is Status.INCONSISTENT:
        return f"No function of the class fits the data, so {name} does not tell whether the target policy is better."
    doubted = " An assumption is doubted, so that this decides nothing." if interval.status is Status.DOUBTED else ""
    if interval.lower > to_beat:
        return f"The lower end of {name} is above it: under what is assumed the target policy is better, {how_sure}.{doubted}"
    if interval.upper < to_beat:
        return f"The upper end of {name} is below it: under what is assumed the target policy is worse, {how_sure}.{doubted}"
    return f"The lower end of {name} is not above it: these data do not certify, {how_sure}, that the target policy is better."
