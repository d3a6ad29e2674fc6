"""What the analyst asserts about a process that goes on forever."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import ordered_pair, positive
from .assumptions import Range


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

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.AverageReward(reward_range=(0, 1), value_span=2)
    AverageReward(reward_range=(0.0, 1.0), norm_bound=None, value_span=2.0, reward_noise=True)
    """

    reward_range: Range
    norm_bound: float | None = None
    value_span: float | None = None
    reward_noise: bool = True

    def __post_init__(self) -> None:
        if self.norm_bound is None and self.value_span is None:
            raise InvalidInput("`norm_bound` or `value_span` is needed: nothing else bounds the relative value.")
        if not isinstance(self.reward_noise, bool):
            raise InvalidInput(f"`reward_noise` must be True or False. Got {self.reward_noise!r}.")
        object.__setattr__(self, "reward_range", ordered_pair(self.reward_range, "reward_range"))
        for name in ("norm_bound", "value_span"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))

    @property
    def reward_width(self) -> float:
        return self.reward_range[1] - self.reward_range[0]

    @property
    def middle(self) -> float:
        return self.reward_range[0] + 0.5 * self.reward_width
