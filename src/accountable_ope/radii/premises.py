"""Everything that must be true for a guarantee, as statements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..problem.assumptions import Assumptions, RelativeNorm, ValueRanges, value_ranges
from ..problem.average_reward import AverageReward
from ..problem.description import Description
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, premise, range_text, remark
from .choice import BEFORE_THE_DATA, Choice
from .no_cut import NoCut
from .registry import Approach, RadiusRule, Rests

ORDER = premise(
    "order",
    "Rows are in the order of generation; state and action hold all that matters for what comes next: given the past, (r, s') "
    "follows the same law at (s, a), whoever chose a.",
)
FIXED_SIZE = premise("fixed-size", "The number of rows was not chosen by looking at the rows.")
SAMPLED_STARTS = premise(
    "sampled-starts",
    "Start states (or actions there) are an i.i.d. sample of their distribution, and their number was not chosen by looking.",
)

DRAWN_ACTIONS = premise(
    "drawn-actions", "Actions of the target policy were drawn independently of the data: who logged them did not know the draws."
)

PLANNED = premise(
    "plan", "Rates and weights were fixed for one set of assumptions, without looking at the intervals that others would give."
)


@dataclass(frozen=True)
class Asked:
    """What premises say of a problem: its assumptions, what follows from them, and how exactly policy and start are known.

    steps: what was declared of single steps. left_out: last rows of episodes whose next states were not logged.
    """

    assumptions: Assumptions
    ranges: ValueRanges
    terminates: bool
    exact_policy: bool
    start_is_exact: bool
    rows: int
    steps: tuple[Statement, ...] = ()
    left_out: int = 0

    @classmethod
    def of(cls, problem: Problem) -> Asked:
        """What a problem asks."""
        exact, start = problem.policy.exact, problem.start_is_exact
        known = problem.row_ranges.premises() if problem.knowledge.given else ()
        steps = tuple(premise(each.name, each.text) for each in known)
        rows, left_out = len(problem.data), problem.data.left_out
        return cls(problem.assumptions, problem.ranges, problem.terminates, exact, start, rows, steps, left_out)


@dataclass(frozen=True)
class CutWords:
    """Where the weights of a cut come from, and how many first rows chose them."""

    kind: str
    earlier: int


@dataclass(frozen=True)
class ClassWords:
    """What premises say of a class: its name, its ball and why it is that, how many coefficients it has, its cut, its kind.

    rest: the kernel of the RKHS in which what its features miss has a norm of its own; empty: there is no such part.
    planned: whether rates and weights were fixed for other assumptions, or for several.
    reference: the constant from which values are counted, where all of them are far from 0.
    """

    features: str
    norm_bound: float | None
    note: str
    dimension: int
    cut: CutWords | None = None
    kind: str = ""
    rest: str = ""
    planned: bool = False
    reference: float = 0.0


def value_premises(
    problem: Asked,
    parts: Sequence[ClassWords],
    rule: RadiusRule,
    *,
    kernel: str,
    anchored: bool,
    chosen: Choice,
    planned: int | None = None,
) -> tuple[Statement, ...]:
    """What an interval for the value of a policy rests on.

    planned: the size that was planned for data which may grow and be looked at again; None where their number is fixed.
    """
    facts, ranges = problem.assumptions, problem.ranges
    low, high = ranges.value
    why = "as declared" if facts.value_range is not None else f"which follows from {_followed(facts)}"
    premises = [
        ORDER,
        reward_premise(facts),
        premise("values", f"Q and V of the target policy lie in {range_text(low, high)}, {why}.", ("low", low), ("high", high)),
    ]
    premises += ending_premises(problem)
    premises += left_out_premises(problem.left_out)
    if rule.rests is Rests.WIDTH and one_step_counts(facts, ranges, terminates=problem.terminates):
        text = f"Given (s, a), chance moves reward plus discounted next value by at most {facts.one_step_range:g}, as declared."
        premises.append(premise("one-step-range", text, ("range", facts.one_step_range)))
    if rule.follows_variance:
        premises += problem.steps
    premises += class_premises(facts, parts, "Q minus the given estimate" if anchored else "Q", chosen, span=ranges.span)
    if anchored:
        premises += chosen.of_estimate()
    premises += rounding_premises(facts, ranges, parts)
    premises.append(kernel_premise(kernel, chosen))
    premises += radius_premises(facts, rule)
    premises += cut_premises([part.cut for part in parts if part.cut is not None])
    if any(part.planned for part in parts):
        premises.append(PLANNED)
    premises.append(FIXED_SIZE if planned is None else planned_size(planned))
    if not problem.exact_policy:
        premises.append(DRAWN_ACTIONS)
    if not problem.start_is_exact:
        premises.append(SAMPLED_STARTS)
    return (*premises, *chosen.premises(problem.rows))


def _followed(facts: Assumptions) -> str:
    """What a range of values that was not declared follows from."""
    once = facts.terminal_reward and facts.discount == 1  # no discount counts, and no sum of rewards
    return "the rewards, of which an episode pays one" if once else "the rewards and the discount"


def ending_premises(problem: Asked) -> list[Statement]:
    """How episodes end, which the range of values and the residuals of terminated rows rest on."""
    facts, premises = problem.assumptions, []
    if facts.terminal_reward:
        text = "Only the transition that ends an episode pays"
        if facts.discount == 1:
            text += ": at discount 1 the value is the mean of that last reward, whenever it comes, and 0 for episodes without end"
        premises.append(premise("terminal-reward", f"{text}."))
    if facts.horizon is not None:
        premises.append(premise("horizon", f"Every episode ends within {facts.horizon} steps.", ("steps", facts.horizon)))
    if problem.terminates:
        return [*premises, premise("terminates", "Terminal states are worth 0.")]
    how = " (no row is terminated)." if facts.terminates is None else ", as declared."
    return [*premises, premise("endless", "No state is terminal" + how)]


def left_out_premises(rows: int) -> list[Statement]:
    """That rows without a next state, which were left out, are missing for no reason that their next states have a part in."""
    if not rows:
        return []
    text = (
        f"Last rows of episodes that went on ({rows}), whose next states the log does not hold, could be left out: where an "
        "episode was cut off does not depend on the reward and the next state there."
    )
    return [premise("cut-off", text, ("rows", rows))]


def cut_premises(cuts: Sequence[CutWords]) -> list[Statement]:
    """What one more martingale needs, whose weights were made from earlier rows."""
    if not cuts:
        return []
    text = "Rows are in the order of generation, episode after episode: weights for later rows come from earlier ones."
    premises = [premise("cut", text), fixed_starts("weights for early rows depend on them")]
    if any(cut.kind == "propensities" for cut in cuts):
        # They need not be right: other weights point elsewhere, and make the interval wider.
        text = "The recorded probability of every logged action was fixed before its reward and next state were drawn."
        premises.append(premise("propensities", text))
    return premises


def radius_premises(facts: Assumptions | AverageReward, rule: RadiusRule) -> list[Statement]:
    """What one radius needs beyond the others."""
    premises = []
    if facts.state_box is not None and rule.approach in (Approach.FOLLOWING, Approach.JOINT, Approach.SELF_NORMALIZED):
        premises.append(state_box_premise(facts.state_box))
    if rule.guarantee is Guarantee.FINITE_SAMPLE_DECLARED_NOISE:
        text = "Given the past, Bellman residuals of Q are symmetric about 0, as declared."
        premises.append(premise("symmetric-noise", text))
    if rule.guarantee is Guarantee.ASYMPTOTIC:
        text = "There are enough rows for the asymptotic law of the loss; nothing says how many that is."
        premises.append(premise("asymptotic", text))
    return premises


def cut_remarks(cuts: Sequence[CutWords | None], reasons: Sequence[NoCut | None]) -> tuple[Statement, ...]:
    """Which weights the cuts have, or why there are none, each said once."""
    found = []
    for cut, reason in zip(cuts, reasons, strict=True):
        if cut is not None:
            text = f"The cut has {WEIGHTS[cut.kind]}, chosen on the first {cut.earlier} rows, which have no weight in it."
            found.append(remark("cut", text, ("weights", cut.kind), ("earlier_rows", cut.earlier)))
        elif reason is not None:
            found.append(reason.statement)
    return tuple(dict.fromkeys(found))


WEIGHTS = {
    "fitted": "fitted weights",
    "bounded": "bounded weights",
    "propensities": "the weights of the recorded propensities",
}
"""How the weights of a cut are called."""


def state_box_premise(box: tuple[tuple[float, ...], tuple[float, ...]]) -> Statement:
    """That all states lie in the declared box, which bounds how far apart values can be."""
    sides = ", ".join(f"[{low:g}, {high:g}]" for low, high in zip(*box, strict=True))
    return premise("state-box", f"Every state lies in {sides}, as declared.", ("box", box))


def planned_size(rows: int) -> Statement:
    """In the place of a fixed number of rows, for a radius that holds at all of them at once."""
    text = f"The radius was made for {rows} rows, a number that was fixed before the data; it holds at all numbers of rows."
    return premise("planned-size", text, ("rows", rows))


def fixed_starts(why: str) -> Statement:
    """That no row had a part in the choice of the start states.

    The event behind a radius without a cut is about the true Q alone, wherever it is asked for: such a result does not need this.
    """
    return premise("fixed-starts", f"Start states were fixed before the data: {why}.")


def one_step_counts(facts: Assumptions, ranges: ValueRanges, *, terminates: bool) -> bool:
    """Whether a one-step range was declared and is smaller than what the other ranges allow."""
    if facts.one_step_range is None:
        return False
    return ranges.residual_width < value_ranges(replace(facts, one_step_range=None), terminates=terminates).residual_width


def reward_premise(facts: Assumptions) -> Statement:
    """The declared range of the rewards."""
    return _rewards(facts.reward_range, noise=facts.reward_noise)


def _rewards(reward_range: tuple[float, float], *, noise: bool) -> Statement:
    low, high = reward_range
    how = "it may be random given (s, a)." if noise else "it is a function of (s, a)."
    return premise("rewards", f"Every reward lies in {range_text(low, high)}; {how}", ("low", low), ("high", high))


def counted_norm(dimension: int, ranges: ValueRanges, reference: float = 0.0) -> float:
    """Coefficients up to this norm enter the rounding slack: sqrt(m) times the largest value, enough for one-hot features.

    reference: from where values are counted.
    """
    return math.sqrt(dimension) * ranges.largest_from(reference)


def rounding_premises(facts: Assumptions, ranges: ValueRanges, parts: Sequence[ClassWords]) -> list[Statement]:
    """Where the norm bound allows larger coefficients than rounding is counted for, that they are not that large."""
    counted, reference = max((counted_norm(part.dimension, ranges, part.reference), part.reference) for part in parts)
    if isinstance(facts.norm_bound, float) and facts.norm_bound <= counted:
        return []
    size = f"distance of a value from {reference:.9g}" if reference else "value"
    text = f"Rounding is counted for coefficients of Q of norm up to {counted:.3g}, sqrt(m) times the largest {size}."
    return [premise("rounding", text, ("norm", counted))]


def kernel_premise(kernel: str, chosen: Choice = BEFORE_THE_DATA) -> Statement:
    """That the kernel is no choice of the rows that it is used on."""
    how = chosen.words(for_kernel=True)
    return premise("kernel", f"The kernel {kernel} was {how}.", ("kernel", kernel))


def class_premises(
    facts: Assumptions, parts: Sequence[ClassWords], what: str, chosen: Choice = BEFORE_THE_DATA, span: float = math.inf
) -> list[Statement]:
    """That the class contains Q, and its norm; span: that of values."""
    classes = " or ".join(part.features for part in parts)
    near = f"is within {facts.misfit:g} of" if facts.misfit > 0 else "lies in"
    text = f"{what} {near} the class of {classes}, {chosen.words(for_kernel=False)}."
    columns = sum(part.dimension for part in parts)
    premises = [premise("class", text, ("class", classes), ("misfit", facts.misfit), ("columns", columns))]
    norm = "||Q||" if what == "Q" else f"The norm of {what}"
    for part in parts:
        if part.note == VALUE_NORM:
            text = f"{norm} <= {part.norm_bound:.4g}, which follows from the range of values at the listed points."
        elif part.note:
            text = f"{norm} <= {part.norm_bound:.3g}, far above the values themselves ({part.note})."
        elif isinstance(facts.norm_bound, RelativeNorm):
            multiple = f"{facts.norm_bound.multiple:g} times what the least norm consistent with the data is proved to be"
            text = f"{norm} <= {part.norm_bound:.4g}, {multiple}."
        elif part.kind == "WhitenedFeatures" and part.norm_bound is not None:
            text = _in_values(what, part.norm_bound, span, [other.features for other in parts if other.kind != part.kind])
        else:
            left_out = "an unpenalized constant is left out"
            if any(each.rest for each in parts):
                left_out += ", and what features miss"
            text = f"{norm} <= {part.norm_bound:.4g}, as declared ({left_out})."
        premises.append(premise("norm", text, ("norm_bound", part.norm_bound)))
        if not isinstance(facts.norm_bound, RelativeNorm):
            break
    return premises + _rest_premises(facts, parts, what)


def rest_kernel(description: Description) -> str:
    """The kernel in whose RKHS what features miss has a norm, by the description of their class."""
    return description.parts[0].text if description.parts else "the class"


def _rest_premises(facts: Assumptions, parts: Sequence[ClassWords], what: str) -> list[Statement]:
    """The norm of what features miss, where a class has such a part."""
    found = []
    for kernel in dict.fromkeys(part.rest for part in parts if part.rest):
        text = (
            f"What the features miss of {what} has a norm of at most {facts.misfit_norm:.4g} in the RKHS of {kernel}, as "
            "declared. This is asserted: data can speak against it and never prove it."
        )
        found.append(premise("misfit-norm", text, ("misfit_norm", facts.misfit_norm), ("kernel", kernel)))
    return found


def _in_values(what: str, norm_bound: float, span: float, others: Sequence[str]) -> str:
    """A ball in units of values, in plain words; others: classes beside it, of which it is a ball of coefficients."""
    share = f" ({100 * norm_bound / span:.3g}% of the range of values)" if 0 < span < math.inf else ""
    text = (
        f"{what} differs from a constant by at most {norm_bound:.4g}{share} in root mean square over the points that the class "
        "was whitened on"
    )
    for other in others:
        text += f"; or its norm in the class of {other} is at most {norm_bound:.4g}"
    return f"{text}. This is asserted: data can speak against it and never prove it."


def why_so_large(declared: float | RelativeNorm | None, least_norm: float | None) -> str:
    """Why the ball is the one that only keeps the numbers finite; nothing where a bound was declared, or follows."""
    if isinstance(declared, float) or (declared is not None and least_norm):
        return ""
    if declared is None:
        return "none was declared"
    why = "a constant Q may be consistent with the data" if least_norm == 0.0 else "no Q of the class is consistent with the data"
    return f"a multiple of the least norm bounds nothing here, since {why}"


VALUE_NORM = "The norm bound follows from the range of values at the listed points."
SPAN_NORM = "The norm bound follows from the span of Q over the listed points."


def average_premises(
    declared: AverageReward,
    parts: Sequence[ClassWords],
    spans: Sequence[float],
    rule: RadiusRule,
    *,
    kernel: str,
    exact_policy: bool,
    left_out: int = 0,
) -> tuple[Statement, ...]:
    """What an interval for an average reward rests on; spans: of the relative values, one per class."""
    found = [
        ORDER,
        _rewards(declared.reward_range, noise=declared.reward_noise),
        premise(
            "average",
            "The process goes on forever, and under the target policy its long-run average reward is the same from every state.",
        ),
        *left_out_premises(left_out),
    ]
    if declared.value_span is not None:
        text = f"The relative value V of the target policy differs by at most {declared.value_span:g} between states."
        found.append(premise("value-span", text, ("span", declared.value_span)))
    names = " or ".join(part.features for part in parts)
    text = f"Q plus some constant lies in the class of {names}, chosen without looking at these data."
    found.append(premise("class", text, ("class", names), ("columns", sum(part.dimension for part in parts))))
    if declared.norm_bound is not None:
        text = f"||Q|| <= {declared.norm_bound:.4g} for Q plus some constant, as declared."
        found.append(premise("norm", text, ("norm_bound", declared.norm_bound)))
    elif any(part.note != SPAN_NORM for part in parts):
        text = "No bound on the norm of Q; rounding is counted for coefficients up to sqrt(m) times half its span."
        found.append(premise("rounding", text))
        if rule.follows_variance:
            found += [_large_norm(part) for part in parts if part.note != SPAN_NORM]
    what = "V" if exact_policy else "Q"
    shown = " or ".join(dict.fromkeys(f"{span:.4g}" for span in spans))
    text = f"From these follows: {what} has a span of at most {shown}; a constant of Q cancels and is left out."
    found += [premise("span", text), kernel_premise(kernel)]
    # The objective, the average itself, is fixed: no start state has a part in it, nor in the weights of a cut.
    cuts = cut_premises([part.cut for part in parts if part.cut is not None])
    of_radius = [*radius_premises(declared, rule), *cuts]
    of_radius = [each for each in of_radius if each.name not in ("fixed-starts", "state-box")]
    if declared.state_box is not None:
        of_radius.insert(0, state_box_premise(declared.state_box))  # the span of Q follows from it, whatever the radius
    drawn = () if exact_policy else (DRAWN_ACTIONS,)
    return (*found, *of_radius, *drawn, FIXED_SIZE)


def _large_norm(part: ClassWords) -> Statement:
    """A ball that only keeps numbers finite."""
    text = f"||Q|| <= {part.norm_bound:.3g}, far above the values themselves ({part.note})."
    return premise("norm", text, ("norm_bound", part.norm_bound))


def features_premise(coefficient_variance: float) -> Statement:
    """What random features that stand for an RKHS need."""
    text = (
        f"The variance of the squared coefficients of Q is at most {coefficient_variance:g}, as declared; the features were "
        "drawn at random, independently of the data and of the start states."
    )
    return premise("random-features", text, ("coefficient_variance", coefficient_variance))
