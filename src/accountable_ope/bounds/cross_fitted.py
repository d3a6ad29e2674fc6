"""A cross-fitted doubly robust interval without propensities, asymptotic: it needs no class that contains Q."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..arguments import checked
from ..classes.function_class import Features, FunctionClass, as_class
from ..errors import InvalidInput
from ..io.display import interval_html, one_line
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, Status, doubt, premise, range_text
from ..problem.transitions import Transitions
from ..radii.doubts import copy_doubts, statements
from ..radii.premises import (
    DRAWN_ACTIONS,
    FIXED_SIZE,
    ORDER,
    SAMPLED_STARTS,
    Asked,
    ending_premises,
    fixed_starts,
    kernel_premise,
    left_out_premises,
    reward_premise,
)
from ..validation import IntArray, plural, probability_level, whole
from .asymptotic import normalized_ends, start_error
from .cross_design import Built, build
from .cross_fitting import CrossFit, Design, cross_fit
from .interval import clip
from .landmarks import Landmarks, default_kernel

BLOCKS = 50
"""Blocks of rows that stand for episodes where these are unknown or few."""

FEW_EPISODES, LARGE_SHARE, UNLOGGED_SHARE = 20, 0.1, 0.001
"""Below, above and above which an interval is doubted."""

FEW_ROWS = 50
"""Effective rows below which nobody should bet. In 22 logs of 2,000 rows of a machine that seldom breaks, where 13 to 34 rows
showed what the target policy does, there were 2 to 28 of them; in logs of 10,000 rows of the tasks of `aope trust` hundreds or
thousands, but in one task."""

METHOD = "cross-fitted doubly robust"


@checked
@dataclass(frozen=True, eq=False)
class CrossFittedInterval(Shown, Drawn):
    """estimate +- its half-width, cut to the declared range of values. Coverage tends to 1 - delta with the number of episodes.

    Attributes
    ----------
    estimate, standard_error : float
        The half-width is the normal quantile times the standard error.
    lower, upper : float
    normalized : tuple of two floats
        (1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself.
    unclipped : tuple of two floats
        The ends before they were cut.
    status : Status
    delta : float
    start_error : float
        The standard error that sampled start states, or sampled actions there, add.
    episodes : int
        How many episodes the error is judged by, or blocks of rows in their place.
    blocks : bool
        Whether these are blocks of consecutive rows, since episodes are not known, or fewer than two for each fold.
    effective_sample_size : float
        (sum w)^2 / sum w^2 of the weights of the rows, or of weights in which rewards have no part, whichever is smaller.
    largest_share : float
        What one row has of sum (w e)^2; 0 where nothing is left to chance.
    coordinates : int
        Columns of W: features, the constant and landmark coordinates.
    count : int
        The number of rows.
    premises : tuple of Statement
    doubts : tuple of Statement
        What speaks against the limit: few episodes, one row that decides, pairs that were never logged.
    guarantee : Guarantee
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    normalized: tuple[float, float]
    unclipped: tuple[float, float]
    status: Status
    delta: float
    start_error: float
    episodes: int
    blocks: bool
    effective_sample_size: float
    largest_share: float
    coordinates: int
    count: int
    premises: tuple[Statement, ...]
    doubts: tuple[Statement, ...]
    guarantee: Guarantee = Guarantee.ASYMPTOTIC

    def __repr__(self) -> str:
        return one_line("CrossFittedInterval", self.lower, self.upper, self.delta, METHOD, self.status)

    def _repr_html_(self) -> str:
        return interval_html(self, "Value of the target policy", METHOD, self.doubts)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower


@checked
def cross_fitted_interval(
    problem: Problem,
    *,
    features: Features | None = None,
    kernel: Kernel | None = None,
    delta: float = 0.1,
    folds: int = 5,
    landmarks: int = 200,
) -> CrossFittedInterval:
    """A doubly robust interval for the value, from a fitted Q and fitted weights of the rows; no propensities are needed.

    With W = [features, 1, landmark coordinates], a Q = W theta and weights w = W omega are fitted on all folds of episodes but
    one, and used on that one (see `cross_fitting`):

        estimate = mean over rows of l0'theta + w e,    e = r + discount E Q(s', a') - Q(s, a),

    l0'theta being the value of the fitted Q. Its error is that of Q times that of w: it is small where either is right, so the
    features need not contain Q. The half-width is the larger of z sqrt(sum (w e)^2) / n and a t quantile times the standard
    error by episodes, since rows of an episode are correlated where Q is wrong. Sampled start states add their own error.

    `baselines.importance_sampling_interval` with the estimator "doubly-robust" is another interval: it needs the logger's
    probabilities, and holds at finite samples.

    Parameters
    ----------
    problem : Problem
        Rows in the order of generation. Where episodes are not known, or are fewer than two for each fold, blocks of rows take
        their place.
    features : feature map or Precomputed, optional
        What is thought to describe Q. None: landmark coordinates alone.
    kernel : Kernel, optional
        That of the landmark coordinates. None: equality where the log has few different pairs (s, a), else a Gaussian with
        a bandwidth from the distances between logged states.
    delta : float
        In (0, 1).
    folds : int
        At least 2, contiguous in the order of episodes.
    landmarks : int
        At most so many; also at most a tenth of the rows.

    Returns
    -------
    CrossFittedInterval

    Raises
    ------
    InvalidInput
        Where there are too few rows for the folds or the features, or features are no class of few coefficients.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.cross_fitted_interval(problem, features=mdp.features())
    >>> mdp.value in interval, interval.episodes, interval.guarantee.name
    (True, 20, 'ASYMPTOTIC')
    """
    level, parts = probability_level(delta), whole(folds, "folds", least=2)
    most, count = whole(landmarks, "landmarks", least=1), len(problem.data)
    if count < 4 * parts:
        raise InvalidInput(f"At least {4 * parts} transitions are needed for {parts} folds. Got {count}.")
    groups = _groups(problem.data, parts)
    classes = _class_of(features, count)
    chosen = default_kernel(problem.experience, most) if kernel is None else kernel
    basis = Landmarks.of(chosen, problem.experience.points, most)
    built = build(problem, classes, basis)
    design = built.design
    fit = cross_fit(design, groups.labels * parts // groups.many)
    error = _error(problem, built, fit, groups, parts)
    estimate = built.reference + float(design.objective @ fit.theta + fit.weighted.mean())
    reach = error.reach(level)
    unclipped = (estimate - reach, estimate + reach) if math.isfinite(estimate + reach) else (-math.inf, math.inf)
    lower, upper, status = clip(unclipped, problem.ranges.value)
    squares = fit.weighted**2
    share = float(squares.max() / squares.sum()) if squares.any() else 0.0
    size = fit.effective_sample_size
    return CrossFittedInterval(
        estimate=estimate,
        standard_error=reach / -NormalDist().inv_cdf(level / 2),
        lower=lower,
        upper=upper,
        normalized=normalized_ends(lower, upper, problem.assumptions.discount),
        unclipped=unclipped,
        status=status,
        delta=level,
        start_error=error.starts,
        episodes=groups.many,
        blocks=groups.blocks,
        effective_sample_size=size,
        largest_share=share,
        coordinates=design.here.shape[1],
        count=count,
        premises=_premises(problem, classes, chosen, groups, design, given=kernel is not None),
        doubts=_doubts(problem.data, groups, size, share, built.unlogged),
    )


class _Groups(NamedTuple):
    """Episodes, or what stands for them: labels of the rows, how many there are, whether they are blocks."""

    labels: IntArray
    many: int
    blocks: bool


class _Error(NamedTuple):
    """Standard errors: of the rows as martingale differences, by episodes with their degrees of freedom, of the start states."""

    rows: float
    episodes: float
    freedom: int
    starts: float

    def reach(self, delta: float) -> float:
        """The half-width: the larger one."""
        from scipy.special import stdtrit

        z, t = -NormalDist().inv_cdf(delta / 2), -float(stdtrit(self.freedom, delta / 2))
        return max(z * math.hypot(self.rows, self.starts), t * self.episodes)


def showing_rows(problem: Problem, rows: int | None = None) -> int:
    """Effective rows that show what the target policy does, where they are fewer than `FEW_ROWS`; else 0.

    A ball around a fit is asserted, and nobody can assert it where next to nothing was logged of what the policy does: in logs of
    a machine that seldom breaks, four of 22 intervals around a fit were wrong, three of which no test of residuals doubted.

    rows: among so many, like those of the problem.
    """
    try:
        found = cross_fitted_interval(problem)
    except InvalidInput:  # there are no such weights, of a policy without probabilities, say
        return 0
    size = found.effective_sample_size * (1.0 if rows is None else rows / len(problem.data))
    return max(1, math.ceil(size)) if size < FEW_ROWS else 0


def _groups(data: Transitions, folds: int) -> _Groups:
    found, count = data.number_of_episodes, len(data)
    if found is not None and found >= 2 * folds and data.episodes is not None:
        return _Groups(data.episodes, found, blocks=False)
    # Rows of an episode side by side, so that a block has few of them that are neighbors of another block.
    order = np.arange(count) if data.episodes is None else np.argsort(data.episodes, kind="stable")
    blocks = max(2 * folds, min(BLOCKS, count // 2))
    labels = np.empty(count, dtype=np.int64)
    labels[order] = np.arange(count) * blocks // count
    return _Groups(labels, blocks, blocks=True)


def _class_of(features: Features | None, count: int) -> FunctionClass | None:
    if features is None:
        return None
    found = as_class(features)
    if found.dimension is None:
        raise InvalidInput(
            f"`features` must be one feature map or Precomputed, a class of few coefficients. Got {type(found).__name__}; the "
            "coordinates of a kernel are added in any case."
        )
    if 2 * found.dimension >= count:
        raise InvalidInput(f"`features` has {found.dimension} coefficients, too many for {count} transitions.")
    return found


def _error(problem: Problem, built: Built, fit: CrossFit, groups: _Groups, folds: int) -> _Error:
    count, by_fold = len(fit.weighted), groups.labels * folds // groups.many
    means = np.bincount(by_fold, weights=fit.weighted) / np.bincount(by_fold)
    totals = np.bincount(groups.labels, weights=fit.weighted - means[by_fold]) / count
    values = built.design.start @ fit.theta
    starts = start_error(problem, built.q(fit.theta), values)
    freedom = groups.many - folds
    factor = math.sqrt(groups.many / freedom)
    by_episode = math.hypot(factor * float(np.linalg.norm(totals)), starts)
    if not problem.starts.exact and not problem.starts.fixed and len(values) == groups.many and not groups.blocks:
        # The start states are those of the episodes: what an episode has on both counts is added up before it is squared.
        together = totals + (values - values.mean()) / len(values)
        by_episode = max(by_episode, factor * float(np.linalg.norm(together)))
    return _Error(float(np.linalg.norm(fit.weighted)) / count, by_episode, freedom, starts)


def _premises(
    problem: Problem, classes: FunctionClass | None, kernel: Kernel, groups: _Groups, design: Design, *, given: bool
) -> tuple[Statement, ...]:
    low, high = problem.ranges.value
    coordinates = design.here.shape[1] - design.constant - 1
    what = f"{coordinates} landmark coordinates of the kernel"
    if classes is not None:
        what = f"{classes!r}, chosen without looking at these data, and {what}"
    either = (
        f"Q, or the weights that take logged pairs (s, a) to those of the target policy, lie near the span of {what}: the error "
        "of the one times that of the other is small against the width."
    )
    if groups.blocks:
        size = len(problem.data) / groups.many
        text = f"{groups.many} blocks of about {size:.0f} rows stand for episodes: the process forgets within a block."
    else:
        text = "Episodes are independent of each other, or what happens in one is no news for the errors in the next."
    looked = f"The kernel {kernel!r} was chosen by logged pairs (s, a) alone, without a reward or a next state."
    return (
        ORDER,
        reward_premise(problem.assumptions),
        premise("values", f"The value lies in {range_text(low, high)}, which cuts the ends; no norm bound is used."),
        *ending_premises(Asked.of(problem)),
        *left_out_premises(problem.data.left_out),
        premise("either", either, ("coordinates", coordinates)),
        premise("overlap", "The log visits, again and again, every kind of pair (s, a) that the target policy visits."),
        kernel_premise(repr(kernel)) if given else premise("kernel", looked, ("kernel", repr(kernel))),
        premise("episodes", text, ("count", groups.many), ("blocks", groups.blocks)),
        *((fixed_starts("the estimate's error is judged at them"),) if problem.starts.exact else ()),
        *(() if problem.policy.exact else (DRAWN_ACTIONS,)),
        *(() if problem.start_is_exact else (SAMPLED_STARTS,)),
        FIXED_SIZE,
        _limit(groups),
    )


def _limit(groups: _Groups) -> Statement:
    name = "blocks" if groups.blocks else "episodes"
    text = (
        f"Asymptotic: {groups.many} {name} are many, and no few of them, logged or missed by chance, decide the value. Nothing "
        f"is guaranteed at a given number of {name}."
    )
    return premise("limit", text, (name, groups.many))


def _doubts(data: Transitions, groups: _Groups, size: float, share: float, unlogged: float) -> tuple[Statement, ...]:
    found, known = [*statements(copy_doubts(data.copies.doubted, len(data)))], data.number_of_episodes
    if groups.blocks:
        why = "Episodes are not known" if known is None else f"Only {known} {plural(known, 'episode is', 'episodes are')} known"
        text = f"{why}, so {groups.many} blocks of rows stand for independent parts: what lasts longer than a block is not seen."
        found.append(doubt("blocks", text, ("blocks", groups.many)))
    if known is not None and known < FEW_EPISODES:
        text = f"{known} {plural(known, 'episode is', 'episodes are')} few for a limit of many episodes."
        found.append(doubt("few-episodes", text, ("episodes", known)))
    if size < FEW_ROWS:
        text = (
            f"What the target policy does is shown by few rows: {len(data)} weigh as much as {max(size, 1):.0f}. What they do "
            "not happen to show, the interval does not count."
        )
        found.append(doubt("few-rows", text, ("effective_sample_size", size)))
    if share > LARGE_SHARE:
        text = f"One row has {100 * share:.0f}% of the squared error: the interval hangs on it, and on what was missed by chance."
        found.append(doubt("one-row", text, ("share", share)))
    if unlogged > UNLOGGED_SHARE:
        text = (
            f"{100 * unlogged:.2g}% of the next and start pairs of the target policy were never logged: nothing is known of Q "
            "there, and the interval does not count it."
        )
        found.append(doubt("overlap", text, ("share", unlogged)))
    return tuple(found)
