"""In words, everything that must be true for a guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..problem.assumptions import Assumptions, RelativeNorm, ValueRanges, value_ranges
from ..radii.registry import Guarantee, Method, RadiusRule
from .interval import ClassCertificates

ORDER = "Rows are in the order of generation; given the past, (r, s') follows the same law at (s, a), whoever chose a."
FIXED_SIZE = "The number of rows was not chosen by looking at the rows."
SAMPLED_STARTS = "Start states (or actions there) are an i.i.d. sample of their distribution."


def value_premises(
    facts: Assumptions,
    ranges: ValueRanges,
    parts: Sequence[ClassCertificates],
    *,
    kernel: str,
    terminates: bool,
    sampled_starts: bool,
    anchored: bool,
    radius: RadiusRule,
    growing: bool = False,
) -> tuple[str, ...]:
    """What an interval for the value of a policy rests on; growing: one of many looks at data that grow, valid at all of them."""
    low, high = ranges.value
    lines = [
        ORDER,
        reward_premise(facts),
        f"Q and V of the target policy lie in [{low:g}, {high:g}]"
        + (", as declared." if facts.value_range is not None else ", which follows from the rewards and the discount."),
    ]
    if facts.terminal_reward:
        lines.append("Only the transition that ends an episode pays.")
    if facts.horizon is not None:
        lines.append(f"Every episode ends within {facts.horizon} steps.")
    if terminates:
        lines.append("Terminal states are worth 0.")
    else:
        lines.append("No state is terminal" + (" (no row is terminated)." if facts.terminates is None else ", as declared."))
    if radius.rests_on_width and one_step_counts(facts, ranges, terminates=terminates):
        lines.append(
            f"Given (s, a), chance moves reward plus discounted next value by at most {facts.one_step_range:g}, as declared."
        )
    lines += class_premises(facts, parts, "Q minus the given estimate" if anchored else "Q")
    lines += rounding_premises(facts, ranges, parts)
    lines.append(kernel_premise(kernel))
    lines += radius_premises(facts, radius)
    if not growing:
        lines.append(FIXED_SIZE)
    if sampled_starts:
        lines.append(SAMPLED_STARTS)
    return tuple(lines)


def radius_premises(facts: Assumptions, radius: RadiusRule) -> list[str]:
    """What one radius needs beyond the others."""
    lines = []
    if facts.state_box is not None and radius.method in (Method.FOLLOWING, Method.JOINT, Method.SELF_NORMALIZED):
        sides = ", ".join(f"[{low:g}, {high:g}]" for low, high in zip(*facts.state_box, strict=True))
        lines.append(f"Every state lies in {sides}, as declared.")
    if radius.cut:
        lines.append("Rows are in the order of generation, episode after episode: weights for later rows come from earlier ones.")
    if radius.guarantee is Guarantee.FINITE_SAMPLE_DECLARED_NOISE:
        lines.append("Given the past, Bellman residuals of Q are symmetric about 0, as declared.")
    if radius.guarantee is Guarantee.ASYMPTOTIC:
        lines.append("There are enough rows for the asymptotic law of the loss; nothing says how many that is.")
    return lines


def one_step_counts(facts: Assumptions, ranges: ValueRanges, *, terminates: bool) -> bool:
    """Whether a one-step range was declared and is smaller than what the other ranges allow."""
    if facts.one_step_range is None:
        return False
    return ranges.residual_width < value_ranges(replace(facts, one_step_range=None), terminates=terminates).residual_width


def reward_premise(facts: Assumptions) -> str:
    """The declared range of the rewards."""
    low, high = facts.reward_range
    noise = "it may be random given (s, a)." if facts.reward_noise else "it is a function of (s, a)."
    return f"Every reward lies in [{low:g}, {high:g}]; {noise}"


def counted_norm(dimension: int, ranges: ValueRanges) -> float:
    """Coefficients up to this norm enter the rounding slack: sqrt(m) times the largest value, enough for one-hot features."""
    return math.sqrt(dimension) * max(map(abs, ranges.value))


def rounding_premises(facts: Assumptions, ranges: ValueRanges, parts: Sequence[ClassCertificates]) -> list[str]:
    """Where the norm bound allows larger coefficients than rounding is counted for, that they are not that large."""
    counted = max(counted_norm(part.statistic.dimension, ranges) for part in parts)
    if isinstance(facts.norm_bound, float) and facts.norm_bound <= counted:
        return []
    return [f"Rounding is counted for coefficients of Q of norm up to {counted:.3g}, sqrt(m) times the largest value."]


def kernel_premise(kernel: str) -> str:
    """That the kernel is no choice of these data."""
    return f"The kernel {kernel} was chosen without looking at these data."


def class_premises(facts: Assumptions, parts: Sequence[ClassCertificates], what: str) -> list[str]:
    """That the class contains Q, and its norm."""
    classes = " or ".join(part.features for part in parts)
    near = f"is within {facts.misfit:g} of" if facts.misfit > 0 else "lies in"
    lines = [f"{what} {near} the class of {classes}, chosen without looking at these data."]
    norm = "||Q||" if what == "Q" else f"The norm of {what}"
    for part in parts:
        if part.note:
            lines.append(f"{norm} <= {part.norm_bound:.3g}, far above the values themselves ({part.note}).")
        elif isinstance(facts.norm_bound, RelativeNorm):
            multiple = f"{facts.norm_bound.multiple:g} times the least norm consistent with the data"
            lines.append(f"{norm} <= {part.norm_bound:.4g}, {multiple}.")
        else:
            lines.append(f"{norm} <= {part.norm_bound:.4g}, as declared (an unpenalized constant is left out).")
        if not isinstance(facts.norm_bound, RelativeNorm):
            break
    return lines
