"""Features for what is known of Q, and a ball of an RKHS for what they miss: a class that is allowed to be wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.policy import Policy
from ..problem.problem import Experience
from ..validation import FloatArray, whole
from .features import FeatureMap
from .function_class import Columns, Cover, Rest, Span, StateBox
from .rkhs import KernelSections


@checked
@dataclass(frozen=True)
class SemiParametric:
    """Q = theta_0 + theta'phi + g: features phi for what is known, g in the RKHS of a kernel K1 for what they miss.

    Each part has a norm of its own, ||theta|| <= R and ||g|| <= rho: R is the `norm_bound` and rho the `misfit_norm` of the
    `Assumptions`. g is followed through `landmarks` coordinates that suit the data, and what these miss of it is bounded row by
    row, as in `KernelSections`. Data can show that rho is too small (`Study.least_misfit_norm`), never that it is large enough.

    Parameters
    ----------
    features : FeatureMap
        phi; its `intercept` says whether an unpenalized constant is added.
    kernel : Kernel
        K1.
    landmarks : int or None
        How many coordinates g has; None: as many as it takes.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedFeatures, PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> some = PlantedFeatures(mdp.frequencies[:4], mdp.phases[:4])  # the fifth cosine is withheld
    >>> facts = aope.Assumptions(
    ...     discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, misfit_norm=1.0, reward_noise=False
    ... )
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> around = aope.SemiParametric(some, aope.Gaussian(2.0), landmarks=40)
    >>> interval = aope.bound_value(problem, features=around, kernel=aope.Gaussian(1.0))
    >>> mdp.value in interval, interval.check()
    (True, True)
    """

    features: FeatureMap
    kernel: Kernel
    landmarks: int | None = 300

    def __post_init__(self) -> None:
        if self.landmarks is not None:
            whole(self.landmarks, "landmarks", least=1)

    @property
    def intercept(self) -> bool:
        return self.features.intercept

    @property
    def dimension(self) -> None:
        return None

    @property
    def diameter(self) -> float:
        """That of the features; how far g can reach, `Columns.rest` says."""
        return self._known.diameter

    @property
    def feature_map(self) -> None:
        return None

    @property
    def at_rows_only(self) -> bool:
        return False

    @property
    def has_remainder(self) -> bool:
        return True

    @property
    def missed(self) -> KernelSections:
        """The RKHS of g."""
        return KernelSections(self.kernel, self.landmarks, intercept=False)

    @property
    def _known(self) -> Span:
        return Span(self.features, self.features.intercept)

    def columns(self, experience: Experience) -> Columns:
        """The coordinates of g first, then the features."""
        g, phi = self.missed.columns(experience), self._known.columns(experience)
        assert g.features is not None
        return Columns(
            here=np.column_stack([g.here, phi.here]),
            after=np.column_stack([g.after, phi.after]),
            start=np.column_stack([g.start, phi.start]),
            features=SideBySide((g.features, self.features)),
            remainder=g.remainder,
            rest=Rest(g.here.shape[1], self.missed.diameter),
        )

    def cover(self, policy: Policy, state_box: StateBox | None) -> Cover | None:
        """That of the features; the constant and the coordinates of g are left out."""
        return self._known.cover(policy, state_box)

    def norm_of_values(self, largest: float) -> float:
        return np.inf

    def relative(self) -> SemiParametric:
        raise InvalidInput("SemiParametric classes are for values: a `misfit_norm` is not declared for an average reward.")


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Several feature maps as one; the last says whether there is a constant."""

    parts: tuple[FeatureMap, ...]

    @property
    def dimension(self) -> int:
        return sum(each.dimension for each in self.parts)

    @property
    def intercept(self) -> bool:
        return self.parts[-1].intercept

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.column_stack([each(points) for each in self.parts])
