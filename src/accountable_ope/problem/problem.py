"""The question: which data, start states and target policy, and what is asserted about them. Validated once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray
from .assumptions import Assumptions, ValueRanges, value_ranges
from .contradictions import check_data, check_digits, check_ends, check_starts, check_steps, may_end
from .gaussian_policy import GaussianPolicy
from .logged_starts import read_off_the_log
from .policy import Policy, SampledPolicy, state_action_points
from .propensities import propensity_weights, taken_probabilities
from .row_ranges import RowRanges
from .step_knowledge import NOTHING_KNOWN, StepKnowledge
from .transitions import StartStates, Transitions

ALONE = 1e-4
"""Answers at a state alone and among others are the same up to this: models in single precision round otherwise in a batch."""


@checked
@dataclass(frozen=True, eq=False)
class Experience:
    """What a class of Q is evaluated on.

    Parameters
    ----------
    data : Transitions
    starts : StartStates
    policy : Policy
    discount : float
        In [0, 1].

    Raises
    ------
    InvalidInput
        Where the shapes of data, start states and policy do not fit together.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.problem import Experience
    >>> data = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]], terminated=[False, True])
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> experience = Experience(data, aope.StartStates([[0.0]]), policy, discount=0.9)
    >>> experience.points.tolist(), experience.live.tolist()
    ([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]], [True, False])
    """

    data: Transitions
    starts: StartStates
    policy: Policy
    discount: float

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise InvalidInput(f"`discount` must be in [0, 1]. Got {self.discount!r}.")
        width, given = self.data.states.shape[1], self.starts.states.shape[1]
        if given != width:
            raise InvalidInput(f"`start states` must have as many columns as `states` ({width}). Got {given}.")
        in_data = self.points.shape[1] - width
        in_policy = self._asked()[0][0].shape[1]
        if in_policy != in_data:
            raise InvalidInput(f"The policy's actions have {in_policy} columns, those of the data {in_data}.")
        self._refuse_moods()

    def _refuse_moods(self) -> None:
        """A policy that answers differently when asked again, or in other company, is no function of the state."""
        alone = self._asked()
        for first, again in zip(alone, self._asked(), strict=True):
            if not all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)):
                raise InvalidInput(
                    "`policy` must be a function of the states: asked twice at the same state, it answered differently. Where it "
                    "draws its actions, use SampledPolicy."
                )
        if not self.policy.exact:  # draws are one stream over all states
            return
        # Of earlier rows of a log that grows, a policy that is a table may know no more.
        last = self.data.next_states[-1:][~self.data.terminated[-1:]]
        together = np.concatenate([self.starts.states[:1], self.starts.states[-1:], last])
        for one, among in zip(alone, self._asked(together), strict=False):
            for a, b in zip(one, among, strict=True):
                size = max(1.0, float(np.abs(a[0]).max()))
                if len(b) == len(together) and np.abs(a[0] - b[0]).max() > ALONE * size:
                    raise InvalidInput(
                        "`policy` must be a function of the state: asked for the first start state alone and for several states "
                        "at once, it answered differently. A model must not be in training mode, nor normalize over its rows."
                    )

    def _asked(self, states: FloatArray | None = None) -> list[tuple[FloatArray, FloatArray]]:
        """What the policy answers, by default at the first start state: actions and weights, or the mean of normal ones."""
        if states is None:
            states = self.starts.states[:1]
        if isinstance(self.policy, GaussianPolicy):
            return [(self.policy.means(states), np.ones(len(states)))]
        return [(branch.actions, branch.weights) for branch in self.policy.branches(states)]

    @cached_property
    def points(self) -> FloatArray:
        """x_i = (s_i, a_i), (n, d)."""
        return state_action_points(self.data.states, self.data.actions, self.policy)

    @cached_property
    def live(self) -> BoolArray:
        """Where the next state is not terminal."""
        return np.asarray(~self.data.terminated)


@checked
@dataclass(frozen=True, eq=False)
class Question:
    """A problem before it has data: what a `Monitor` is created with.

    Parameters
    ----------
    starts : StartStates
        Where the target policy starts.
    policy : Policy
        The target policy.
    assumptions : Assumptions
        What the analyst asserts.
    knowledge : StepKnowledge, optional
        What the analyst knows of single steps.

    Raises
    ------
    InvalidInput
        Where something has the wrong type, or a one-step range is declared for a policy that can only be sampled.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> question = aope.Question(aope.StartStates([[0.0]]), policy, aope.Assumptions(discount=0.9, reward_range=(0, 1)))
    >>> problem = question.on(aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]]))
    >>> len(problem.data)
    2
    """

    starts: StartStates
    policy: Policy
    assumptions: Assumptions
    knowledge: StepKnowledge = NOTHING_KNOWN

    def __post_init__(self) -> None:
        for name, value, wanted in (
            ("starts", self.starts, StartStates),
            ("policy", self.policy, Policy),
            ("assumptions", self.assumptions, Assumptions),
        ):
            if not isinstance(value, wanted):
                hint = "; wrap a function: aope.DiscretePolicy(function, actions=...)" if callable(value) else ""
                raise InvalidInput(f"`{name}` must be of type {wanted.__name__}{hint}. Got {type(value).__name__}.")
        object.__setattr__(self, "assumptions", self.knowledge.complete(self.assumptions))
        declared = self.assumptions.one_step_range is not None or self.knowledge.one_step_range is not None
        if declared and not self.policy.exact:
            # Drawn actions move the residuals beyond r + discount V(s').
            raise InvalidInput(
                "`one_step_range` is about reward plus discounted next *value*, and a sampled policy puts the Q of drawn "
                "actions in place of that value: use a policy with exact expectations, or leave it out."
            )

    @checked
    def on(self, data: Transitions) -> Problem:
        """The same question, asked of these data."""
        return Problem(data, self.starts, self.policy, self.assumptions, self.knowledge)


@checked
@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked, of which data, under which assumptions.

    Parameters
    ----------
    data : Transitions
        Logged transitions, in the order of generation.
    starts : StartStates
        Where the target policy starts.
    policy : Policy
        The target policy, whose value is asked for.
    assumptions : Assumptions
        What the analyst asserts: discount, ranges, norm bound.
    knowledge : StepKnowledge, optional
        What the analyst knows of single steps: where they end, where they can lead, how far chance moves the prospects.
    propensities : bool
        Whether the `behavior_probability` of the data is asserted too: then it may weigh rows (`propensity_weights`). By default
        it is not used, even where the data have it.

    Raises
    ------
    InvalidInput
        Where something has the wrong type or shape, or the data contradict the assumptions.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> data = aope.Transitions([[0.0], [1.0], [0.0]], [0, 1, 1], [0.0, 1.0, 0.5], [[1.0], [0.0], [1.0]])
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))
    >>> problem = aope.Problem(data, aope.StartStates([[0.0]]), policy, facts)
    >>> problem.ranges.value
    (0.0, 10.000000000000002)
    """

    data: Transitions
    starts: StartStates
    policy: Policy
    assumptions: Assumptions
    knowledge: StepKnowledge = NOTHING_KNOWN
    propensities: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.data, Transitions):
            raise InvalidInput(
                "`data` must be of type Transitions; make them from arrays, or by aope.from_dataframe(frame) or "
                "aope.load_transitions(file). "
                f"Got {type(self.data).__name__}."
            )
        question = Question(self.starts, self.policy, self.assumptions, self.knowledge)
        object.__setattr__(self, "assumptions", question.assumptions)
        check_data(self.data, self.assumptions)
        _ = self.experience  # shapes that do not fit are found before any work
        check_starts(self.starts, self.assumptions)
        check_digits(self.assumptions, self.ranges, terminates=self.terminates)
        if self.assumptions.horizon is not None:
            check_ends(self.data, self.assumptions.horizon)
        if self.knowledge.given:
            check_steps(self.data, self.starts, self.row_ranges)
        _ = self.propensity_weights  # and so is what is missing for weights

    def __repr__(self) -> str:
        return f"Problem({self.data!r}, {self.starts!r}, {type(self.policy).__name__}, {self.assumptions!r})"

    @cached_property
    def propensity_weights(self) -> FloatArray | None:
        """Weights of the rows that point at the value, where propensities are asserted; see `propensity_weights`."""
        return propensity_weights(self.data, self.policy, self.assumptions.discount) if self.propensities else None

    @cached_property
    def taken_probabilities(self) -> FloatArray | None:
        """The probability with which the target policy takes each logged action; None where that is not known."""
        if not self.data.finite_actions or self.policy.action_vectors is None or not self.policy.exact:
            return None
        try:
            return taken_probabilities(self.policy, self.data)
        except InvalidInput:  # a table of probabilities at next states need not hold the states themselves
            return None

    @cached_property
    def experience(self) -> Experience:
        """What a class of Q is evaluated on."""
        return Experience(self.data, self.starts, self.policy, self.assumptions.discount)

    @property
    def question(self) -> Question:
        """The same without the data."""
        return Question(self.starts, self.policy, self.assumptions, self.knowledge)

    @cached_property
    def terminates(self) -> bool:
        """Whether states may be terminal: as declared, or as the data show."""
        return may_end(self.data, self.assumptions)

    @cached_property
    def ranges(self) -> ValueRanges:
        """The ranges of values and residuals that follow from the assumptions."""
        return value_ranges(self.assumptions, terminates=self.terminates)

    @cached_property
    def row_ranges(self) -> RowRanges:
        """What is known of every logged step from its state and action alone."""
        return RowRanges.of(self.data, self.assumptions, self.knowledge, terminates=self.terminates)

    @cached_property
    def starts_are_fixed(self) -> bool:
        """Whether the start states were fixed before the data: as asserted, and as the log does not contradict."""
        return self.starts.fixed and not read_off_the_log(self.data, self.starts.states)

    @property
    def start_is_exact(self) -> bool:
        """Whether the value at the start is known exactly for every Q: no sample of states, no drawn actions."""
        return self.starts.exact and self.policy.exact

    @property
    def effective_starts(self) -> float:
        """N of the Monte Carlo radius: independent start states, or independent draws at a known distribution of them."""
        draws = self.policy.draws if isinstance(self.policy, SampledPolicy) and self.starts.exact else 1
        return draws / float(self.starts.weights @ self.starts.weights)

    @checked
    def assuming(self, assumptions: Assumptions) -> Problem:
        """The same data and policy under other assumptions."""
        return self if assumptions is self.assumptions else replace(self, assumptions=assumptions)

    @checked
    def split(self, earlier_share: float) -> tuple[Problem, Problem]:
        """(earlier, later): choose on the first, bound on the second; see `Transitions.split`."""
        earlier, later = self.data.split(earlier_share)
        return self.part(earlier), self.part(later)

    def part(self, data: Transitions) -> Problem:
        """The same question of some of the rows. That states may be terminal is known from all of them."""
        if data is self.data:
            return self
        facts = self.assumptions
        if self.terminates and facts.terminates is None:
            facts = replace(facts, terminates=True)
        return replace(self, data=data, assumptions=facts)
