"""A family: a problem whose value is known exactly, with one way to draw data from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..arguments import checked
from ..classes.features import FeatureMap
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions
from ..problem.policy import Policy, SampledPolicy
from ..problem.problem import Problem
from ..problem.step_knowledge import NOTHING_KNOWN, StepKnowledge
from ..problem.transitions import StartStates, Transitions
from .draws import Draw


class DataKind(Enum):
    """How the rows depend on each other."""

    IID = "i.i.d."
    TRAJECTORIES = "trajectories"
    ADAPTIVE = "adaptive"
    MIXTURE = "mixture"


@checked
@dataclass(frozen=True, eq=False)
class Family:
    """A problem with known truth, and data of any size from it. All its assumptions are true.

    Attributes
    ----------
    name, description : str
    data_kind : DataKind
    truth : float
        The value of the target policy, not normalized.
    starts : StartStates or None
        The exact start distribution; None: the first states of the logged episodes, a sample of it.
    policy : Policy
        The target policy.
    assumptions : Assumptions
    kernel : Kernel
    features : FeatureMap
        A class that holds Q within the declared norm bound.
    draw : Draw
        (generator, n) -> n transitions.
    knowledge : StepKnowledge
        What is known of single steps; nothing by default.
    propensities : bool
        Whether the data record the probabilities of the logged actions, and may be weighed by them.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.laboratory import family_named
    >>> family = family_named("chain")
    >>> len(family.draw(np.random.default_rng(0), 100))
    100
    """

    name: str
    description: str
    data_kind: DataKind
    truth: float
    starts: StartStates | None
    policy: Policy
    assumptions: Assumptions
    kernel: Kernel
    features: FeatureMap
    draw: Draw
    knowledge: StepKnowledge = NOTHING_KNOWN
    propensities: bool = False

    @property
    def symmetric(self) -> bool:
        """Whether Bellman residuals are symmetric about 0 given the past; true, and declared, or neither."""
        return self.assumptions.symmetric_noise

    @property
    def scale(self) -> float:
        """What turns a value into a normalized one: 1 - discount, or 1 where nothing is discounted."""
        return 1.0 if self.assumptions.discount == 1 else 1 - self.assumptions.discount

    def problem(self, data: Transitions, seed: int) -> Problem:
        """The problem on these data.

        seed: that of the data. A policy that can only be sampled gets its own draws for every data set: they are part of the
        data, and coverage is a statement about both.
        """
        starts = data.first_states() if self.starts is None else self.starts
        policy = self.policy
        if isinstance(policy, SampledPolicy):
            policy = replace(policy, seed=seed + 1)  # not the stream that drew the data
        return Problem(data, starts, policy, self.assumptions, self.knowledge, self.propensities)
