"""A contestant: an interval estimator of others, what it has to know, and what it is handed.

All of them are asked the same: with probability 1 - delta, where does the value of the target policy lie? It is the discounted
value forever (until an episode ends, where episodes do) from the start states of the problem, in the units of the rewards, as
in every other result. What a method takes or does not take stands in `Needs`, and is compared with an `Entry` in one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..classes.features import FeatureMap, ListedFeatures
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.policy import Policy
from ..problem.problem import Problem
from ..problem.statements import Guarantee
from ..validation import probability_level, whole
from .interval import BaselineInterval


@checked
@dataclass(frozen=True)
class Needs:
    """What a method has to know beside transitions, start states, the target policy, the discount and the range of rewards.

    Attributes
    ----------
    propensities : bool
        The probabilities with which the logged actions were chosen.
    behavior : bool
        The policy that logged them: the probabilities of all actions.
    episodes : bool
        Which rows are of one episode, at least two episodes of them; and they begin where the target policy starts.
    horizon : bool
        How many steps an episode lasts.
    features : bool
        A class of Q.
    kernel : bool
    norm_bound : bool
        A bound of the norm of Q: as declared, or of a table what follows from the range of values.
    value_range : bool
        A range of values that is finite.
    finite_actions : bool
        Actions that are indices, and not vectors.
    exact_policy : bool
        A target policy whose expectations are sums, and not draws.
    table : bool
        All states and actions in a list: features that are one-hot.

    Examples
    --------
    >>> from accountable_ope.baselines import Needs
    >>> Needs(propensities=True, episodes=True).words
    ('propensities', 'episodes')
    """

    propensities: bool = False
    behavior: bool = False
    episodes: bool = False
    horizon: bool = False
    features: bool = False
    kernel: bool = False
    norm_bound: bool = False
    value_range: bool = False
    finite_actions: bool = False
    exact_policy: bool = False
    table: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What is needed, in words."""
        return tuple(words for name, words in _WORDS if getattr(self, name))


_WORDS = (
    ("propensities", "propensities"),
    ("behavior", "the logging policy"),
    ("episodes", "episodes"),
    ("horizon", "a horizon"),
    ("features", "features"),
    ("kernel", "a kernel"),
    ("norm_bound", "a norm bound"),
    ("value_range", "a finite value range"),
    ("finite_actions", "finitely many actions"),
    ("exact_policy", "exact expectations"),
    ("table", "a finite table"),
)


@checked
@dataclass(frozen=True, eq=False)
class Entry:
    """What a contestant is handed.

    Parameters
    ----------
    problem : Problem
        The question and its data.
    features : FeatureMap, optional
        A class of Q; where it is one-hot, the table of all states and actions.
    kernel : Kernel, optional
    horizon : int, optional
        Steps of the longest episode.
    behavior : Policy, optional
        The policy that logged the data.

    Raises
    ------
    InvalidInput
        Where the horizon is no number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import Entry
    >>> from accountable_ope.laboratory import family_named
    >>> family = family_named("tabular-50")
    >>> problem = family.problem(family.draw(np.random.default_rng(0), 500), seed=0)
    >>> Entry(problem, family.features, family.kernel, horizon=50).horizon
    50
    """

    problem: Problem
    features: FeatureMap | None = None
    kernel: Kernel | None = None
    horizon: int | None = None
    behavior: Policy | None = None

    def __post_init__(self) -> None:
        if self.horizon is not None:
            object.__setattr__(self, "horizon", whole(self.horizon, "horizon", least=1))

    @property
    def norm_bound(self) -> float | None:
        """What bounds ||Q||: as declared, or sqrt(m) times the largest value for m one-hot features; None where nothing does."""
        declared = self.problem.assumptions.norm_bound
        if isinstance(declared, float):
            return declared
        largest = max(map(abs, self.problem.ranges.value))
        if isinstance(self.features, ListedFeatures) and math.isfinite(largest) and not self.features.intercept:
            return math.sqrt(self.features.dimension) * largest
        return None


Interval = Callable[[Entry, float, np.random.Generator], BaselineInterval]


@checked
@dataclass(frozen=True)
class Contestant:
    """An interval estimator.

    Attributes
    ----------
    name : str
        Short, for tables.
    title : str
        In words.
    source : str
        The paper.
    guarantee : Guarantee
        What it claims, in the words of our own results.
    needs : Needs
    interval : callable
        (entry, delta, generator) -> BaselineInterval, for an entry that has what is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import Entry, contestant_named
    >>> from accountable_ope.laboratory import family_named
    >>> family = family_named("bandit-logged")
    >>> problem = family.problem(family.draw(np.random.default_rng(0), 500), seed=0)
    >>> contestant_named("per-decision betting").refusal(Entry(problem))
    'per-decision betting needs `episodes`: which rows are of one episode is not known.'
    """

    name: str
    title: str
    source: str
    guarantee: Guarantee
    needs: Needs
    interval: Interval

    @checked
    def refusal(self, entry: Entry) -> str | None:
        """Why it cannot be applied to this entry, in one sentence; None where it can."""
        lacking = next((why for name, why in _lacking(entry) if getattr(self.needs, name)), None)
        return None if lacking is None else f"{self.name} needs {lacking}."

    @checked
    def bound(self, entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
        """Its interval, after a look at what it needs.

        Parameters
        ----------
        entry : Entry
        delta : float
            In (0, 1).
        rng : numpy.random.Generator
            For those that resample.

        Returns
        -------
        BaselineInterval

        Raises
        ------
        InvalidInput
            Where the entry has not what is needed, in one sentence.
        """
        why = self.refusal(entry)
        if why is not None:
            raise InvalidInput(why)
        return self.interval(entry, probability_level(delta), rng)


def _lacking(entry: Entry) -> list[tuple[str, str]]:
    """(the field of `Needs`, what is missing and why) of all that this entry does not have."""
    problem = entry.problem
    data, policy = problem.data, problem.policy
    found = []
    if data.behavior_probability is None:
        found.append(("propensities", "`behavior_probability`: how likely the logged actions were is not recorded"))
    elif problem.taken_probabilities is None and not hasattr(policy, "density"):
        found.append(("propensities", "a target policy that knows the probabilities of its actions"))
    if entry.behavior is None:
        found.append(("behavior", "`behavior`: the policy that logged the data is not given"))
    if data.episodes is None:
        found.append(("episodes", "`episodes`: which rows are of one episode is not known"))
    elif np.count_nonzero(np.bincount(data.episodes)) < 2:
        found.append(("episodes", "at least two `episodes`: there is one"))
    if entry.horizon is None:
        found.append(("horizon", "`horizon`: how many steps an episode lasts is not known"))
    if entry.features is None:
        found.append(("features", "`features`: no class of Q is given"))
    if entry.kernel is None:
        found.append(("kernel", "`kernel`: none is given"))
    if entry.norm_bound is None:
        found.append(("norm_bound", "`norm_bound`: no number that bounds the norm of Q is declared"))
    if not all(map(math.isfinite, problem.ranges.value)):
        found.append(("value_range", "`value_range`: values without a finite range are not bounded"))
    if not data.finite_actions:
        found.append(("finite_actions", "finitely many `actions`: these are vectors"))
    if not policy.exact:
        found.append(("exact_policy", "a target policy whose expectations are sums: this one draws its actions"))
    if not isinstance(entry.features, ListedFeatures) or not data.finite_actions or policy.action_vectors is None:
        found.append(("table", "one-hot `features` that list all states and actions: a table is not given"))
    return found
