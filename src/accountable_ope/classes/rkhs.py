"""The whole RKHS of a kernel as a class of Q."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..kernels.kernel import Kernel
from ..problem.gaussian_policy import GaussianPolicy
from ..problem.policy import Policy, at_start
from ..problem.problem import Experience
from ..validation import BoolArray, FloatArray, refuse_memory, whole
from .function_class import Columns, Remainder, StateBox
from .sections import SectionFeatures, Sections, pivoted_coordinates


@checked
@dataclass(frozen=True)
class KernelSections:
    """The whole RKHS of a kernel K0, through `landmarks` coordinates that suit the data, and what they miss.

    The norm bound is that of the RKHS (the constant, if there is one, left out). With landmarks=None as many coordinates are
    taken as it needs to miss nothing but rounding: the paper's exact program, in O(n^3). With fewer, the interval contains the
    exact one, and its slack is computed rather than assumed.

    Parameters
    ----------
    kernel : Kernel
        K0.
    landmarks : int or None
        How many coordinates; None: as many as it takes.
    intercept : bool
        Whether an unpenalized constant is added.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.KernelSections(aope.Gaussian(0.5), landmarks=100)
    KernelSections(kernel=Gaussian(bandwidth=0.5), landmarks=100, intercept=True)
    """

    kernel: Kernel
    landmarks: int | None = 300
    intercept: bool = True

    def __post_init__(self) -> None:
        if self.landmarks is not None:
            whole(self.landmarks, "landmarks", least=1)

    @property
    def dimension(self) -> None:
        return None

    @property
    def diameter(self) -> float:
        """||K0(x, .) - K0(y, .)||^2 = K0(x, x) + K0(y, y) - 2 K0(x, y) <= 2 sup K0 where K0 has no negative values."""
        return float(np.sqrt((2.0 if self.kernel.nonnegative else 4.0) * self.kernel.supremum))

    @property
    def feature_map(self) -> None:
        return None

    @property
    def at_rows_only(self) -> bool:
        return False

    @property
    def has_remainder(self) -> bool:
        return True

    def memory(self, count: int) -> int:
        """About how many bytes the coordinates of `count` transitions and the program take."""
        m = count + 2 if self.landmarks is None else min(self.landmarks, count + 2)
        return 8 * (4 * count * m + 8 * m * m)

    def columns(self, experience: Experience) -> Columns:
        """Coordinates in which the sections f_0 (the start) and f_i (the residuals) have their largest parts."""
        refuse_memory(self.memory(len(experience.data)), "landmarks", f"their coordinates at {len(experience.data)} rows")
        data, starts, live, points = experience.data, experience.starts, experience.live, experience.points
        d, policy = data.states.shape[1], experience.policy
        # Normal actions are one branch, at their mean, and blur the kernel.
        blur = policy.covariance if isinstance(policy, GaussianPolicy) else None
        onward = [
            (
                _put_back(np.concatenate([data.next_states[live], actions], axis=1), live, points),
                _put_back(weights, live, np.zeros(len(data))),
            )
            for actions, weights in (_weighted(policy, data.next_states[live]) if live.any() else ())
        ]
        onward = onward or [(points, np.zeros(len(data)))]
        at_data = Sections(((points, np.ones(len(data))),), d)
        at_next = Sections(tuple(onward), d, *_normal(0, len(onward), blur))
        weighted = _weighted(at_start(policy), starts.states)
        starting = tuple((np.concatenate([starts.states, actions], axis=1), weights) for actions, weights in weighted)
        first = Sections(starting, d, *_normal(0, len(starting), blur))
        both = (*at_data.branches, *((y, -experience.discount * w) for y, w in at_next.branches))
        residuals = Sections(both, d, *_normal(1, len(onward), blur))
        found = pivoted_coordinates(self.kernel, residuals, first, starts.weights, self.landmarks)
        here, missed_here = found.basis.coordinates(at_data)
        after, missed_after = found.basis.coordinates(at_next)
        start, missed_start = found.basis.coordinates(first)
        shares = [missed_here.mean(), float(starts.weights @ missed_start)]
        if live.any():
            shares.append(missed_after[live].mean())
        one_by_one = (np.sqrt(missed_here), np.sqrt(missed_after), np.sqrt(missed_start))
        box = float(np.sqrt(np.mean(shares)))
        remainder = Remainder(np.sqrt(found.missed), float(np.sqrt(found.start_missed)), box, one_by_one)
        return Columns(here, after, start, SectionFeatures(found.basis, self.intercept), remainder)

    def cover(self, policy: Policy, state_box: StateBox | None) -> None:
        return None

    def norm_of_values(self, largest: float) -> float:
        return np.inf

    def relative(self) -> KernelSections:
        return replace(self, intercept=False)


def _weighted(policy: Policy, states: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Actions and their weights; of normal ones the mean."""
    if isinstance(policy, GaussianPolicy):
        return [(policy.means(states), np.ones(len(states)))]
    return [(branch.actions, branch.weights) for branch in policy.branches(states)]


def _normal(known: int, over: int, covariance: FloatArray | None) -> tuple[tuple[bool, ...], FloatArray | None]:
    """What `Sections` are told of so many branches at known actions, followed by so many over the policy."""
    return ((), None) if covariance is None else ((False,) * known + (True,) * over, covariance)


def _put_back(values: FloatArray, live: BoolArray, fill: FloatArray) -> FloatArray:
    """Rows of the live transitions put back in place, the others filled (with a weight of 0 their points do not matter)."""
    out = fill.copy()
    out[live] = values
    return out
