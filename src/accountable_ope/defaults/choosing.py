"""`choose_recipe`: a table where states are few, else that of several classes which held-out rows find best, and a fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..arguments import checked
from ..classes.action_fourier import ActionFourier
from ..classes.features import FeatureMap, TabularFeatures
from ..classes.whitened import whiten
from ..errors import InvalidInput
from ..kernels.kernel import Tabular
from ..kernels.products import Progress
from ..problem.problem import Experience, Problem
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.estimates import QFunction
from ..validation import FloatArray, positive
from .candidates import Mixture, Part, Workshop, name_of, trains_networks
from .early import EarlyRows, early_rows
from .early_fit import Judge
from .judging import Judged, choose
from .made_for import MadeFor
from .overlap import largest_weight
from .recipe import Ball, ClassKind, Recipe, action_set
from .scaling import Scaling, scaling_of

WITHIN = 0.1
"""How near Q is asserted to be to the fit, as a share of the range of values."""

WIDER = 3.0
"""Where the class is doubted: so many norms of the fit may coefficients differ from it."""

POOR_OVERLAP = 5.0
"""(1 - discount) max |w| above which the ball is enlarged in proportion."""

ROWS_PER_CELL = 10
MOST_CELLS = 1000
"""A table has at most so many cells, each met by so many early rows on average."""

Stages = Callable[[str], Progress | None]
"""Called with the name of a stage; what it returns, if anything, is called with the fraction done of it."""


def unseen(stage: str) -> Progress | None:
    """Stages that nobody looks at."""
    return None


@checked
def choose_recipe(
    problem: Problem,
    *,
    within: float | None = None,
    neural: bool | None = None,
    candidates: Sequence[str] | None = None,
    given: QFunction | None = None,
    stages: Stages | None = None,
) -> Recipe:
    """Kernel, class, estimate and ball, from the earliest fifth of the rows. No later row has a part in it.

    Several classes are fitted to the first of these rows, and judged by the kernel loss of the others: of those within one
    standard deviation of the least, the one with fewest columns is the class. `Recipe.candidates` is the table.

    Parameters
    ----------
    problem : Problem
        The question, of all rows; no norm bound may be declared, which would be one of another class.
    within : float, optional
        How near Q is asserted to be to the fit, in root mean square over logged points, as a share of the range of values; 0.1 by
        default. A table needs no fit: there it is not used, and `Recipe.statements` says so.
    neural : bool, optional
        Whether to train features; by default where torch is installed and there are rows enough.
    candidates : sequence of str, optional
        Which classes to try, by the names of the table, such as "network" or "fewer cosines + trees"; by default all for which
        there are rows enough.
    given : callable, optional
        An estimate of Q, as q(states, actions), that was made without the later rows: one more feature to try.
    stages : callable, optional
        Called with the name of every stage.

    Returns
    -------
    Recipe

    Raises
    ------
    InvalidInput
        Where there are too few rows, the range of values is not finite, or a norm bound is declared.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.defaults import choose_recipe
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    >>> choose_recipe(problem, neural=False).norm_bound
    0.25
    """
    near = WITHIN if within is None else positive(within, "within")
    if problem.assumptions.norm_bound is not None:
        raise InvalidInput("`norm_bound` is of a class that was given: leave it out, or give `features` and `kernel`.")
    stage = stages or unseen
    stage("splitting")
    early = early_rows(problem)
    span = early.asked.ranges.span
    if not 0 < span < math.inf:
        raise InvalidInput(f"The range of values must be longer than 0 and finite to choose by. Its length is {span:g}.")
    if early.silent:
        return replace(_silent(early), unused_within=within)
    table = _table(early)
    if table is not None:
        return replace(_recipe(early, ClassKind.TABLE, table), unused_within=within)
    scaling = scaling_of(early.points, early.problem.policy)
    trains = trains_networks(early) if neural is None else neural
    workshop = Workshop(early, scaling, trains, given, stage("training features") if trains else None)
    tried = _named(workshop.mixtures(), candidates)
    workshop.train(tried)
    judge = Judge.of(scaling.kernel(), early.points, workshop.first)
    stage("comparing classes")
    judged = choose([_judged(workshop, judge, each) for each in tried])
    best = next(index for index, each in enumerate(judged) if each.chosen)
    stage("fitting")
    features = workshop.features(tried[best], judging=False)
    ridge = judge.ridge(_plain_system(early, workshop.features(tried[best], judging=True)))
    listed = tuple(each.times(early.units.size**2) for each in judged)
    found = replace(_recipe(early, _kind(tried[best]), features, scaling), candidates=listed, ridge=ridge)
    return _around_a_fit(early, found, judge, near, span)


def _named(mixtures: tuple[Mixture, ...], names: Sequence[str] | None) -> tuple[Mixture, ...]:
    """Those asked for, in the order of the table."""
    if names is None:
        return mixtures
    known = {name_of(each): each for each in mixtures}
    for name in names:
        if name not in known:
            listed = ", ".join(repr(each) for each in known)
            raise InvalidInput(f"`candidates` must be among {listed}. Got {name!r}.")
    if not names:
        raise InvalidInput("`candidates` must name at least one class. Got none.")
    return tuple(each for name, each in known.items() if name in names)


def _kind(mixture: Mixture) -> ClassKind:
    """By the part that has most of the columns."""
    kinds = {Part.NETWORK: ClassKind.NEURAL, Part.PRODUCTS: ClassKind.PRODUCTS, Part.TILES: ClassKind.TILES}
    return kinds.get(mixture[0], ClassKind.FOURIER)


def _judged(workshop: Workshop, judge: Judge, mixture: Mixture) -> Judged:
    features = workshop.features(mixture, judging=True)
    found = judge.held_out(_plain_system(workshop.early, features))
    return Judged.of(name_of(mixture), features.dimension, found, judge, workshop.early.problem.ranges.span)


def _around_a_fit(early: EarlyRows, found: Recipe, judge: Judge, within: float, span: float) -> Recipe:
    white = whiten(found.features, early.points)
    system, pointed = _system(early, white)
    theta = early.units.size * judge.fit(_plain_system(early, found.features), found.ridge)
    theta[-1] += early.units.reference  # the constant; every class that is tried has one
    overlap = largest_weight(system, found.kernel) if pointed else math.nan
    enlarged = max(1.0, overlap / POOR_OVERLAP) if pointed else 1.0
    return replace(
        found,
        estimate=action_set(found.features, theta, early.problem),
        whitened=white,
        ball=Ball(within, span, enlarged, overlap, WIDER),
        judged_by=len(early.data) - judge.first,
    )


def _recipe(early: EarlyRows, kind: ClassKind, features: FeatureMap, scaling: Scaling | None = None) -> Recipe:
    return Recipe(
        kind=kind,
        kernel=Tabular() if scaling is None else scaling.kernel(),
        features=features,
        earlier_rows=len(early.data),
        earlier_episodes=early.data.number_of_episodes,
        sha256=early.asked.data.sha256,
        made_for=MadeFor.of(early.asked, len(early.data)),
    )


def _plain_system(early: EarlyRows, features: FeatureMap) -> BellmanSystem:
    return bellman_system(early.problem.experience, features)


def _system(early: EarlyRows, features: FeatureMap) -> tuple[BellmanSystem, bool]:
    """With start states that no later row chose, where there are some: those given, or the first states of early episodes."""
    problem, data = early.problem, early.data
    if problem.starts.fixed:
        return bellman_system(problem.experience, features), True
    if data.episodes is None:
        return bellman_system(problem.experience, features), False
    own = Experience(data, data.first_states(), problem.policy, problem.assumptions.discount)
    return bellman_system(own, features), True


def _silent(early: EarlyRows) -> Recipe:
    """A class that says nothing, for rows that say nothing."""
    scaling = scaling_of(early.points, early.problem.policy)
    return _recipe(early, ClassKind.NONE, ActionFourier(1, scaling.widths(1.0), early.problem.policy.action_vectors), scaling)


def _table(early: EarlyRows) -> TabularFeatures | None:
    """One-hot features over the states of the early rows and the given start states, None where these are many."""
    problem, data = early.problem, early.data
    vectors = problem.policy.action_vectors
    if vectors is None:
        return None
    states = _distinct(data.states, data.next_states[~data.terminated])
    if len(states) * len(vectors) > min(MOST_CELLS, len(data) / ROWS_PER_CELL):
        return None
    if problem.starts.fixed:
        states = _distinct(states, problem.starts.states)
    return TabularFeatures.grid(states, vectors) if len(states) * len(vectors) <= MOST_CELLS else None


def _distinct(*states: FloatArray) -> FloatArray:
    return np.asarray(np.unique(np.concatenate(states) + 0.0, axis=0))
