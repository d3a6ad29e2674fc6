"""What the analyst asserts about a process that goes on forever."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import ordered_pair, positive
from .assumptions import Assumptions, Range, checked_box


@checked
@dataclass(frozen=True)
class AverageReward:
    """What the analyst asserts about a process that goes on forever.

    Parameters
    ----------
    reward_range : (low, high)
        Every reward lies in it, and so does the average.
    norm_bound : float, optional
        ||theta|| <= norm_bound for Q plus *some* constant.
    value_span : float, optional
        The largest less the smallest value of V, the relative value of the target policy, over all states. At least one of the
        two is needed. Both: the tighter consequence of either is used.
    reward_noise : bool
        True: the reward may be random given (s, a). False: it is a function of (s, a).
    state_box : tuple of two sequences, optional
        (low, high) arrays that contain every state.
    symmetric_noise : bool
        Bellman residuals are symmetric about 0 given the past (needed by the radius "symmetric" only).

    Examples
    --------
    >>> import accountable_ope as aope
    >>> facts = aope.AverageReward(reward_range=(0, 1), value_span=2)
    >>> facts.value_span, facts.middle
    (2.0, 0.5)
    """

    reward_range: Range
    norm_bound: float | None = None
    value_span: float | None = None
    reward_noise: bool = True
    state_box: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    symmetric_noise: bool = False

    def __post_init__(self) -> None:
        if self.norm_bound is None and self.value_span is None:
            raise InvalidInput("`norm_bound` or `value_span` is needed: nothing else bounds the relative value.")
        for name in ("reward_noise", "symmetric_noise"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"`{name}` must be True or False. Got {getattr(self, name)!r}.")
        object.__setattr__(self, "reward_range", ordered_pair(self.reward_range, "reward_range"))
        for name in ("norm_bound", "value_span"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))
        if self.state_box is not None:
            object.__setattr__(self, "state_box", checked_box(self.state_box))

    @property
    def reward_width(self) -> float:
        return self.reward_range[1] - self.reward_range[0]

    @property
    def middle(self) -> float:
        return self.reward_range[0] + 0.5 * self.reward_width


def as_value(declared: AverageReward, relative_range: Range) -> Assumptions:
    """The same as the assumptions of a value at discount 1, where relative values lie in this range."""
    return Assumptions(
        discount=1.0,
        reward_range=declared.reward_range,
        value_range=relative_range,
        norm_bound=declared.norm_bound,
        state_box=declared.state_box,
        reward_noise=declared.reward_noise,
        symmetric_noise=declared.symmetric_noise,
        terminates=False,
    )
