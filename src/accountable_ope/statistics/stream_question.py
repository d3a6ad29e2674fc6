"""What the rows of a log are summed for, before any of them is read."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..classes.description import describe_class
from ..classes.features import FeatureMap
from ..classes.function_class import Features, FunctionClass, as_class, expected_features
from ..errors import InvalidInput
from ..kernels.description import describe_kernel
from ..kernels.kernel import Kernel, LabeledRank
from ..problem.assumptions import Assumptions, value_ranges
from ..problem.policy import at_start
from ..problem.problem import Question
from ..validation import FloatArray
from .bellman import second_moments
from .estimates import AnyQ, QColumns, as_function, q_expected
from .partial import Subject


@checked
@dataclass(frozen=True, eq=False)
class StreamQuestion:
    """What the rows of a log are summed for, before any of them is read.

    Parameters
    ----------
    question : Question
        Start states, target policy and assumptions. The policy must know its expectations exactly.
    features : feature map or FunctionClass
        The class of Q functions: features that are fixed before the data.
    kernel : Kernel
        The test kernel, of finite rank: `RandomFeatureKernel` or `Tabular`.
    anchor : callable or object with `predict_value`, optional
        An existing Q: the class is anchor + features.

    Raises
    ------
    InvalidInput
        Where one of them needs all rows at once, or start states, policy and features do not fit together.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))
    >>> question = aope.Question(aope.StartStates([[0.0]]), policy, facts)
    >>> aope.StreamQuestion(question, aope.RandomFourier(8), aope.RandomFeatureKernel(100)).subject.objective.shape
    (9,)
    >>> aope.StreamQuestion(question, aope.RandomFourier(8), aope.Gaussian(1.0))
    Traceback (most recent call last):
    accountable_ope.errors.InvalidInput: `kernel` must be of finite rank to be summed in parts, as RandomFeatureKernel(256, ...
    """

    question: Question
    features: Features
    kernel: Kernel
    anchor: AnyQ | None = None

    def __post_init__(self) -> None:
        if isinstance(self.anchor, QColumns):
            raise InvalidInput("`anchor` must be a function to be summed in parts: columns are of all rows at once.")
        if not isinstance(self.kernel, LabeledRank):
            raise InvalidInput(
                "`kernel` must be of finite rank to be summed in parts, as RandomFeatureKernel(256, width) and Tabular() are, "
                "with names of its features (`labels`): sums over pairs of rows with any other kernel need all rows at once. "
                f"Got {self.kernel!r}."
            )
        if self.function_class.feature_map is None or self.function_class.has_remainder:
            raise InvalidInput(
                "`features` must be fixed before the data to be summed in parts, as those of a feature map are: a class that "
                f"takes its columns from the rows needs all of them at once. Got {self.function_class!r}."
            )
        if not self.question.policy.exact:
            raise InvalidInput(
                "`policy` must know its expectations exactly for sums in parts: the draws of a SampledPolicy come in one stream "
                "over all rows."
            )
        _ = self.subject  # what does not fit together is found before any row is read

    @cached_property
    def function_class(self) -> FunctionClass:
        """The class of Q functions."""
        return as_class(self.features)

    @property
    def feature_map(self) -> FeatureMap:
        """phi."""
        found = self.function_class.feature_map
        assert found is not None
        return found

    @cached_property
    def part_question(self) -> Question:
        """The question as it is asked of a part of the rows.

        Where nobody declared whether episodes end, they may: another part may show it, so this one contradicts nothing.
        """
        facts = self.question.assumptions
        return (
            self.question if facts.terminates is not None else replace(self.question, assumptions=replace(facts, terminates=True))
        )

    @cached_property
    def subject(self) -> Subject:
        """What names the question in its sums, c0 among it, which depends on the start states only."""
        question = self.question
        described = (describe_kernel(self.kernel), describe_class(self.function_class))
        digest = hashlib.sha256("\n".join(_name(each) for each in described).encode())
        return Subject(
            kernel=_name(self.kernel),
            features=_name(self.function_class),
            discount=float(question.assumptions.discount),
            fingerprint=digest.hexdigest(),
            kernel_supremum=float(self.kernel.supremum),
            objective=question.starts.weights @ self._features_at_start,
            reference=self.reference,
            anchor=None if self._anchor_at_start is None else float(question.starts.weights @ self._anchor_at_start),
            declared=_declared(question.assumptions),
        )

    @cached_property
    def _features_at_start(self) -> FloatArray:
        found = expected_features(self.feature_map, self.question.starts.states, self.question.policy)
        return np.column_stack([found, np.ones(len(found))]) if self.function_class.intercept else found

    @cached_property
    def _anchor_at_start(self) -> FloatArray | None:
        """The estimate at the start states, not counted from the reference."""
        if self.anchor is None:
            return None
        starts, policy = self.question.starts, self.question.policy
        return q_expected(as_function(self.anchor), starts.states, at_start(policy), finite=policy.action_vectors is not None)

    @property
    def start_moments(self) -> FloatArray:
        """The mean of u u' over the start states, u = [phi, 1], or [phi, 1, anchor], the anchor counted from the reference."""
        anchor = None if self._anchor_at_start is None else self._anchor_at_start - self.reference
        return second_moments(self._features_at_start, anchor, self.question.starts.weights)

    @property
    def reference(self) -> float:
        """The constant from which values are counted: only where it is declared that no state is terminal."""
        facts = self.question.assumptions
        if facts.terminates is not False or not (self.function_class.intercept or self.anchor is not None):
            return 0.0
        return value_ranges(facts, terminates=False).reference(terminates=False)


def _declared(facts: Assumptions) -> str:
    """What rows are checked against."""
    names = ("reward_range", "reward_noise", "terminal_reward", "terminates", "state_box", "value_range", "one_step_range")
    return ", ".join(f"{name}={getattr(facts, name)!r}" for name in names)


def _name(thing: object) -> str:
    """What it prints as, without its place in memory, which is another one in every process."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(thing))
