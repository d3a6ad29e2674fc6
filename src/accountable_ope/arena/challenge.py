"""A challenge: a problem whose value is known, a way to draw logs of it, and what a contestant is told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..classes.features import FeatureMap
from ..kernels.kernel import Kernel
from ..laboratory.draws import Draw
from ..laboratory.family import DataKind
from ..problem.assumptions import Assumptions
from ..problem.policy import DiscretePolicy, Policy, SampledPolicy
from ..problem.problem import Problem
from ..problem.transitions import StartStates, Transitions
from ..trust.task import Truth


class Told(Enum):
    """What is said about the class of Q."""

    RIGHT = "right"
    WRONG = "wrong"
    NOTHING = "none"


@dataclass(frozen=True, eq=False)
class GivenClass:
    """Features, the test kernel that goes with them, and whether they hold Q."""

    features: FeatureMap
    kernel: Kernel
    right: bool


@dataclass(frozen=True, eq=False)
class Challenge:
    """What contestants meet.

    Attributes
    ----------
    name, description : str
    data_kind : DataKind
    truth : Truth
        The value of the target policy, with its margin where it was simulated.
    starts : StartStates
        The exact start distribution.
    policy : Policy
        The target policy.
    assumptions : Assumptions
        All true, but for a norm bound that goes with a wrong class.
    draw : Draw
        (generator, n) -> n transitions.
    horizon : int or None
        Steps after which episodes of the log are cut off; None: the log has no episodes.
    given : GivenClass or None
        The class that contestants are told.
    logger : DiscretePolicy or None
        The behavior policy, where contestants may know it.
    recorded : bool
        Whether the log records the probabilities of its actions.
    """

    name: str
    description: str
    data_kind: DataKind
    truth: Truth
    starts: StartStates
    policy: Policy
    assumptions: Assumptions
    draw: Draw
    horizon: int | None = None
    given: GivenClass | None = None
    logger: DiscretePolicy | None = None
    recorded: bool = False

    @property
    def told(self) -> Told:
        """What is said about the class."""
        return Told.NOTHING if self.given is None else Told.RIGHT if self.given.right else Told.WRONG

    def problem(self, data: Transitions, seed: int) -> Problem:
        """The question on this log, as it is put to everybody. A policy that can only be sampled gets draws of its own."""
        policy = self.policy
        if isinstance(policy, SampledPolicy):
            policy = replace(policy, seed=seed + 1)  # not the stream that drew the data
        return Problem(data, self.starts, policy, self.assumptions)
