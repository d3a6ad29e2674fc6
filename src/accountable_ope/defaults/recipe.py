"""What was chosen on the earliest rows, as one record: printed, saved, and given back as explicit options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from ..arguments import checked
from ..classes.features import FeatureMap
from ..classes.given_values import GivenValues
from ..classes.joined import JoinedFeatures
from ..classes.linear_q import LinearQ
from ..classes.whitened import ScaledFeatures, WhitenedFeatures
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.problem import Problem
from ..problem.statements import Statement, remark
from ..problem.transitions import Transitions
from ..radii.choice import Choice
from ..validation import FloatArray
from .judging import Judged, table_words
from .made_for import MadeFor

SAME = 1e-6
"""Mean and standard deviation of a column are the same up to this."""


class ClassKind(Enum):
    """Which class was chosen; the value says why."""

    TABLE = "the states are few, so every state and action has a coefficient of its own"
    NEURAL = "the hidden layers of a network, trained on the kernel loss"
    FOURIER = "random cosines for every action"
    PRODUCTS = "products of the columns of the state for every action"
    TILES = "tiles of the states for every action"
    NONE = "nothing that could decide a value was logged"


@checked
@dataclass(frozen=True, eq=False)
class Ball:
    """How near Q is asserted to be to the estimate.

    Attributes
    ----------
    within : float
        As a share of the range of values, before it was enlarged.
    span : float
        Of the values, as far as it was known before the later rows.
    enlarged : float
        The factor by which poor overlap enlarges it, 1 or more.
    overlap : float
        (1 - discount) max |w| over the early rows; NaN where the start states are not known before the later rows.
    wider : float
        Where the class is doubted: the multiple of the norm of the fit by which coefficients may differ from it.
    """

    within: float
    span: float
    enlarged: float
    overlap: float
    wider: float

    @property
    def norm_bound(self) -> float:
        """In units of values."""
        return self.within * self.span * self.enlarged


@checked
@dataclass(frozen=True, eq=False)
class Recipe:
    """Kernel, class, estimate and ball, chosen on the first rows of a log.

    Attributes
    ----------
    kind : ClassKind
    kernel : Kernel
    features : FeatureMap
        phi.
    earlier_rows : int
        How many first rows chose.
    earlier_episodes : int or None
        How many episodes they are; None where that is unknown.
    sha256 : str
        Of those rows.
    made_for : MadeFor
        The discount, the range of rewards and the policy that it was made for.
    estimate : LinearQ or None
        The fit to those rows, around which the class lies; None for a table, which needs none.
    whitened : WhitenedFeatures or None
        phi in units of values.
    ball : Ball or None
        How near Q is asserted to be to the estimate.
    ridge : float
        Of the fit.
    candidates : tuple of Judged
        The classes that were tried, and which one was chosen; empty for a table, which needs no rival.
    judged_by : int
        How many of the earlier rows, the last ones, judged the candidates.
    unused_within : float or None
        What was asserted of a fit, where the class lies around none and nothing rests on it.
    judging : bool
        Whether the class lies around an estimate that is to be judged, in the place of the fit.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.defaults import choose_recipe
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    >>> recipe = choose_recipe(problem, neural=False)
    >>> recipe.kind.name, recipe.earlier_rows, recipe.earlier_episodes
    ('FOURIER', 100, 2)
    """

    kind: ClassKind
    kernel: Kernel
    features: FeatureMap
    earlier_rows: int
    earlier_episodes: int | None
    sha256: str
    made_for: MadeFor
    estimate: LinearQ | None = None
    whitened: WhitenedFeatures | None = None
    ball: Ball | None = None
    ridge: float = float("nan")
    candidates: tuple[Judged, ...] = ()
    judged_by: int = 0
    unused_within: float | None = None
    judging: bool = False

    def __repr__(self) -> str:
        return f"Recipe({self.kind.name}, {self.features!r}, {self.kernel!r}, on {self.earlier_rows} earlier rows)"

    @property
    def held_out(self) -> float:
        """The held-out loss of the class in units of what chance alone gives; NaN where there is none."""
        return next((each.in_deviations for each in self.candidates if each.chosen), float("nan"))

    @property
    def norm_bound(self) -> float | None:
        """What is declared of the class around the estimate."""
        return None if self.ball is None else self.ball.norm_bound

    @property
    def classes(self) -> tuple[FeatureMap, ...]:
        """The class around the estimate and the wider one that stands beside it where the first is doubted; or the table."""
        if self.whitened is None or self.ball is None or self.estimate is None:
            return (self.features,)
        norm = float(np.linalg.norm(self.estimate.theta[: self.features.dimension]))
        factor = self.ball.wider * norm / self.ball.norm_bound
        return (self.whitened, ScaledFeatures(self.features, factor)) if factor > 0 else (self.whitened,)

    @property
    def choice(self) -> Choice:
        """When all this was chosen, as premises say it."""
        return Choice(self.earlier_rows, estimate=self.estimate is not None)

    def made_on(self, data: Transitions) -> bool:
        """Whether the first of these rows are those that chose."""
        return len(data) >= self.earlier_rows and fingerprint_of(data, self.earlier_rows) == self.sha256

    @checked
    def later(self, problem: Problem) -> Problem:
        """The question asked of the rows that did not choose, with the ball declared.

        Raises
        ------
        InvalidInput
            Where the first rows are not those that the choice was made on, or discount, range of rewards or of values, policy or
            start states are not those that it was made for.
        """
        data = problem.data
        if len(data) <= self.earlier_rows + 1 or not self.made_on(data):
            raise InvalidInput(
                f"The choice was made on {self.earlier_rows} rows that are not the first ones of these data. Choose anew."
            )
        self.made_for.refuse_other(problem, self.earlier_rows)
        self._refuse_another_estimate(problem)
        part = problem.part(data.after(self.earlier_rows))
        facts = part.assumptions
        if self.kind is ClassKind.NONE:  # nothing was logged that tells values apart: any function is as good as any other
            facts = replace(facts, misfit=max(part.ranges.span, facts.misfit), norm_bound=part.ranges.span or 1.0)
        elif self.norm_bound is not None:
            facts = replace(facts, norm_bound=self.norm_bound)
        return part.assuming(facts)

    def _refuse_another_estimate(self, problem: Problem) -> None:
        """A given estimate is in no file: that it is the same shows at the rows that chose, where its column is standardized."""
        points = problem.experience.points[: self.earlier_rows]
        for part in self._given:
            values = part(points)
            if abs(float(values.mean())) > SAME or abs(float(values.std()) - 1) > SAME:
                raise InvalidInput("`given` is not the one that was given when the choice was made. Choose anew.")

    @property
    def _given(self) -> tuple[GivenValues, ...]:
        parts = self.features.parts if isinstance(self.features, JoinedFeatures) else ()
        return tuple(part for part in parts if isinstance(part, GivenValues))

    def statements(self) -> tuple[Statement, ...]:
        """What was chosen and on which rows, in words."""
        episodes = "" if self.earlier_episodes is None else f" ({self.earlier_episodes:,} episodes)"
        text = f"Chosen on the first {self.earlier_rows:,} rows{episodes}: {self.features!r}, {self.kind.value}; {self.kernel!r}."
        found = [remark("chosen", text, ("rows", self.earlier_rows), ("kind", self.kind.name.lower()))]
        if self.kind is ClassKind.NONE:
            text = (
                "All rewards of these rows are the same and no episode ended: the event that decides the value was never logged, "
                "and no class of functions can say how near it is."
            )
            return (remark("never-logged", text), *self._unused())
        if self.ball is not None and self.judging:
            found.append(_judged_words(self.ball))
        elif self.ball is not None and self.estimate is not None:
            found.append(_estimate_words(self, self.ball))
        if self._given:
            text = "A given estimate is one of the features: it is asserted to have been made without the later rows."
            found.append(remark("given", text))
        if self.candidates:
            found.append(table_words(self.candidates, self.judged_by))
        return (*found, *self._unused())

    def _unused(self) -> tuple[Statement, ...]:
        """That an assertion has no part in the result."""
        if self.unused_within is None:
            return ()
        why = "every function of its states and actions is in a table" if self.kind is ClassKind.TABLE else "there is none"
        text = f"That Q is within {100 * self.unused_within:.3g}% of the range of values of a fit is not used: {why}."
        return (remark("unused-within", text, ("within", self.unused_within)),)


def _estimate_words(recipe: Recipe, ball: Ball) -> Statement:
    text = (
        f"The class lies around a fit to these rows (ridge {recipe.ridge:.0e}; held-out loss {recipe.held_out:.2g} standard "
        f"deviations), which is asserted to be within {100 * ball.within:.3g}% of the range of values of Q"
    )
    if ball.enlarged > 1:
        text += (
            f", times {ball.enlarged:.3g} since overlap is poor, as few rows show what the new policy does: single rows would "
            f"have to count up to {ball.overlap:.3g} times, where about 1 is what a log of the new policy itself needs"
        )
    return remark("estimate", f"{text}.", ("within", ball.within), ("enlarged", ball.enlarged), ("overlap", ball.overlap))


def _judged_words(ball: Ball) -> Statement:
    text = (
        "The class lies around the estimate that is judged, which for the interval, not for the verdict on it, is asserted to be "
        f"within {100 * ball.within * ball.enlarged:.3g}% of the range of values of Q"
    )
    return remark("estimate", f"{text}.", ("within", ball.within), ("enlarged", ball.enlarged), ("overlap", ball.overlap))


def fingerprint_of(data: Transitions, rows: int) -> str:
    """SHA-256 of the first rows."""
    return data.rows(slice(0, rows)).sha256


def action_set(features: FeatureMap, theta: FloatArray, problem: Problem) -> LinearQ:
    """The estimate as a function of states and actions."""
    return LinearQ(features, theta, problem.policy.action_vectors)
