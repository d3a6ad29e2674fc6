"""A family: a problem whose value is known exactly, with one way to draw data from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..classes.features import FeatureMap
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions
from ..problem.policy import Policy
from ..problem.transitions import StartStates
from .draws import Draw


class DataKind(Enum):
    """How the rows depend on each other."""

    IID = "i.i.d."
    TRAJECTORIES = "trajectories"
    ADAPTIVE = "adaptive"
    MIXTURE = "mixture"


@dataclass(frozen=True, eq=False)
class Family:
    """A problem with known truth, and data of any size from it. All its assumptions are true.

    truth:    the value of the target policy, not normalized.
    starts:   the exact start distribution; None: the first states of the logged episodes, a sample of it.
    features: a class that holds Q within the declared norm bound.
    draw:     (generator, n) -> n transitions.
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

    @property
    def symmetric(self) -> bool:
        """Whether Bellman residuals are symmetric about 0 given the past; true, and declared, or neither."""
        return self.assumptions.symmetric_noise

    @property
    def scale(self) -> float:
        """What turns a value into a normalized one: 1 - discount, or 1 where nothing is discounted."""
        return 1.0 if self.assumptions.discount == 1 else 1 - self.assumptions.discount
