"""What the analyst asserts about the problem; checked once, copied into every result.

Every constant of every guarantee (the range of rewards, of the value function, of a Bellman residual) comes from here and
never from the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import LARGEST, number, ordered_pair, positive, whole

Range = tuple[float, float]

LEAST_DISCOUNT = 1 / LARGEST
LEAST_LEFT = 1e-12
LARGEST_MISFIT = 1e45
"""The least discount, the least that a discount below 1 leaves of 1, and a misfit whose squares keep their digits."""


FAR = 10.0
"""Values are far from 0 where their middle is so many times their span away from it."""


@checked
@dataclass(frozen=True)
class RelativeNorm:
    """A norm bound given as a multiple of the least norm that is consistent with the data.

    The least norm is a lower confidence bound of ||Q|| (theory: the correction program at Q = 0). That the truth lies within
    a multiple of it is an assertion of the analyst, like an absolute bound.

    Parameters
    ----------
    multiple : float
        At least 1.

    Raises
    ------
    InvalidInput
        Where the multiple is below 1.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=aope.RelativeNorm(1.5)).norm_bound
    RelativeNorm(multiple=1.5)
    """

    multiple: float

    def __post_init__(self) -> None:
        if number(self.multiple, "multiple") < 1:
            raise InvalidInput(f"`multiple` of RelativeNorm must be at least 1. Got {self.multiple!r}.")


@checked
@dataclass(frozen=True)
class Assumptions:
    """What the analyst asserts.

    Parameters
    ----------
    discount : float
        gamma in [0, 1); 1 is allowed when `value_range`, `horizon` or `terminal_reward` bounds the value.
    reward_range : tuple of two floats
        Every reward, logged or not, lies in it.
    value_range : tuple of two floats, optional
        Q and V of the target policy lie in it, where that is tighter than reward_range / (1 - discount).
    norm_bound : float or RelativeNorm, optional
        ||Q||_H <= norm_bound, the unpenalized constant left out. None: no bound.
    state_box : tuple of two sequences, optional
        (low, high) arrays that contain every state.
    reward_noise : bool
        True: the reward may be random given (s, a). False: it is a function of (s, a).
    symmetric_noise : bool
        Bellman residuals are symmetric about 0 given the past (needed by the radius "symmetric" only).
    horizon : int, optional
        Every episode ends within this many steps, after which nothing is paid.
    terminal_reward : bool
        Only the transition that ends an episode pays (survival, conversion): all other rewards are exactly 0.
    terminates : bool, optional
        The process has terminal states, worth 0. None: exactly when a logged row is terminated.
    misfit : float
        Some function of the class is within this distance of Q everywhere. 0: the class contains Q.
    one_step_range : float, optional
        Given (s, a), chance moves r + discount V(s') by at most this much; None: as far as the ranges allow. Small where one step
        cannot change the prospects much: a robot moves a little, a patient's day passes.
    misfit_norm : float, optional
        What the features of a `SemiParametric` class miss of Q has at most this norm, in the RKHS of the class. None: there is no
        such class.

    Raises
    ------
    InvalidInput
        Where a number is out of range, or two assertions contradict each other.

    Examples
    --------
    >>> from accountable_ope import Assumptions
    >>> facts = Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=5)
    >>> facts.norm_bound, facts.reward_noise
    (5.0, True)
    >>> Assumptions(discount=1.5, reward_range=(0, 1))
    Traceback (most recent call last):
    accountable_ope.errors.InvalidInput: `discount` must be in [0, 1). Got 1.5.
    """

    discount: float
    reward_range: Range
    value_range: Range | None = None
    norm_bound: float | RelativeNorm | None = None
    state_box: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    reward_noise: bool = True
    symmetric_noise: bool = False
    horizon: int | None = None
    terminal_reward: bool = False
    terminates: bool | None = None
    misfit: float = 0.0
    one_step_range: float | None = None
    misfit_norm: float | None = None

    def __post_init__(self) -> None:
        discount = number(self.discount, "discount")
        if not 0 <= discount <= 1:
            raise InvalidInput(f"`discount` must be in [0, 1). Got {self.discount!r}.")
        if 0 < discount < LEAST_DISCOUNT or 0 < 1 - discount < LEAST_LEFT:
            raise InvalidInput(
                f"`discount` must be 0, 1, or between {LEAST_DISCOUNT:g} and 1 - {LEAST_LEFT:g}: nearer to them a value has no "
                f"digits left. Got {self.discount!r}."
            )
        object.__setattr__(self, "discount", discount)
        object.__setattr__(self, "reward_range", ordered_pair(self.reward_range, "reward_range"))
        if self.value_range is not None:
            object.__setattr__(self, "value_range", ordered_pair(self.value_range, "value_range"))
        if self.norm_bound is not None and not isinstance(self.norm_bound, RelativeNorm):
            object.__setattr__(self, "norm_bound", positive(self.norm_bound, "norm_bound"))
        if number(self.misfit, "misfit") < 0:
            raise InvalidInput(f"`misfit` must not be negative. Got {self.misfit!r}.")
        if self.misfit > LARGEST_MISFIT:
            raise InvalidInput(f"`misfit` must be at most {LARGEST_MISFIT:g}. Got {self.misfit!r}.")
        object.__setattr__(self, "misfit", float(self.misfit))
        if self.one_step_range is not None:
            object.__setattr__(self, "one_step_range", positive(self.one_step_range, "one_step_range"))
        if self.misfit_norm is not None:
            object.__setattr__(self, "misfit_norm", positive(self.misfit_norm, "misfit_norm"))
        if self.horizon is not None:
            object.__setattr__(self, "horizon", whole(self.horizon, "horizon", least=1))
        for name in ("reward_noise", "symmetric_noise", "terminal_reward"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"`{name}` must be True or False. Got {getattr(self, name)!r}.")
        if self.terminates not in (None, True, False):
            raise InvalidInput(f"`terminates` must be True, False or None. Got {self.terminates!r}.")
        if self.terminates is False and (self.horizon is not None or self.terminal_reward):
            raise InvalidInput("`terminates=False` contradicts `horizon` and `terminal_reward`, which mean that episodes end.")
        if self.terminal_reward and not self.reward_range[0] <= 0 <= self.reward_range[1]:
            raise InvalidInput(
                "`terminal_reward=True` means that most rewards are 0, so `reward_range` must contain 0. "
                f"Got {self.reward_range}."
            )
        if self.state_box is not None:
            object.__setattr__(self, "state_box", checked_box(self.state_box))
        if discount == 1 and self.value_range is None and self.horizon is None and not self.terminal_reward:
            raise InvalidInput(
                "`discount` must be in [0, 1). Got 1, which is allowed only for episodes that end and with a declared "
                "`value_range`, `horizon` or `terminal_reward=True`."
            )
        low, high = _value_interval(self, terminates=self.terminates is not False)
        if low > high:
            raise InvalidInput(
                f"`value_range` {self.value_range} has no value in common with the values that `reward_range` "
                f"{self.reward_range} allows."
            )


@checked
@dataclass(frozen=True)
class ValueRanges:
    """The ranges that follow from the assumptions (theory: section 4).

    Attributes
    ----------
    value : tuple of two floats
        Contains Q and V of the target policy at every state that is not terminal.
    next_value : tuple of two floats
        Contains V at a next state: 0 is added where states may be terminal.
    residual_width : float
        w, the length of an interval that contains r + discount V(s') given (s, a).
    residual_bound : float
        sup |r + discount V(s') - Q(s, a)| with signs ignored, as the paper bounds it.
    """

    value: Range
    next_value: Range
    residual_width: float
    residual_bound: float

    @property
    def span(self) -> float:
        return self.value[1] - self.value[0]

    def reference(self, *, terminates: bool) -> float:
        """The value from which others are counted where they all are far from 0 and no state is terminal: their middle, else 0.

        A constant c in every reward is c / (1 - discount) in every value, unless an episode ends. Counted from there, numbers are
        as small as their differences; from 0, squares of them lose the digits that tell them apart.
        """
        middle = 0.5 * (self.value[0] + self.value[1])
        far = not terminates and 0 < self.span < math.inf and abs(middle) > FAR * self.span
        return middle if far else 0.0

    def largest_from(self, reference: float) -> float:
        """The largest distance of a value from a reference."""
        return max(abs(end - reference) for end in self.value)


@checked
def value_ranges(assumptions: Assumptions, *, terminates: bool) -> ValueRanges:
    """Ranges of V, of V at next states and of the Bellman residual.

    Random reward: w = (rmax - rmin) + discount * span(V'); reward a function of (s, a): w = discount * span(V'), V' including 0
    where states may be terminal. When only the end of an episode pays, r + discount V' is either a final reward or
    discount V', so w is the length of the hull of both. A declared one-step range replaces w where it is smaller.

    Parameters
    ----------
    assumptions : Assumptions
    terminates : bool
        Whether states may be terminal.

    Returns
    -------
    ValueRanges

    Examples
    --------
    >>> from accountable_ope import Assumptions
    >>> from accountable_ope.problem import value_ranges
    >>> ranges = value_ranges(Assumptions(discount=0.5, reward_range=(0, 1)), terminates=False)
    >>> ranges.value, ranges.residual_width
    ((0.0, 2.0), 2.0)
    """
    discount = assumptions.discount
    reward = assumptions.reward_range
    value = _value_interval(assumptions, terminates=terminates)
    next_value = _next_value_interval(assumptions, value, terminates=terminates)
    if assumptions.terminal_reward:
        low = min(reward[0], discount * value[0], 0.0)
        high = max(reward[1], discount * value[1], 0.0)
        width = high - low
    else:
        noise = reward[1] - reward[0] if assumptions.reward_noise else 0.0
        width = noise + discount * (next_value[1] - next_value[0])
    if assumptions.one_step_range is not None:
        width = min(width, assumptions.one_step_range)
    largest_value = max(map(abs, value))
    return ValueRanges(
        value=value,
        next_value=next_value,
        residual_width=width,
        residual_bound=largest_value + max(map(abs, reward)) + discount * largest_value,
    )


def _value_interval(assumptions: Assumptions, *, terminates: bool) -> Range:
    """The range of the value that the rewards allow, cut to the declared one."""
    reward = assumptions.reward_range
    if assumptions.terminal_reward:
        low, high = _hull_with_zero(reward)
    elif assumptions.discount == 1 and assumptions.horizon is None:
        low, high = -math.inf, math.inf
    else:
        low, high = _total_interval(
            reward, _largest_total(assumptions.discount, assumptions.horizon), least_total_is_one=terminates
        )
    if assumptions.value_range is not None:
        low, high = max(low, assumptions.value_range[0]), min(high, assumptions.value_range[1])
    return (low, high)


def _next_value_interval(assumptions: Assumptions, value: Range, *, terminates: bool) -> Range:
    """The range of V at a next state: one step fewer where the horizon is finite, and 0 where it may be terminal."""
    if assumptions.horizon is not None and not assumptions.terminal_reward:
        steps_left = assumptions.horizon - 1
        low, high = (0.0, 0.0)
        if steps_left:
            low, high = _total_interval(
                assumptions.reward_range, _largest_total(assumptions.discount, steps_left), least_total_is_one=True
            )
        value = (max(value[0], low), min(value[1], high))
    return _hull_with_zero(value) if terminates else value


def _largest_total(discount: float, steps: int | None) -> float:
    """1 + discount + discount^2 + ... over the number of steps, or forever."""
    if steps is None:
        return 1 / (1 - discount)
    return float(steps) if discount == 1 else (1 - discount**steps) / (1 - discount)


def _total_interval(reward: Range, total: float, *, least_total_is_one: bool) -> Range:
    """The range of sum_t discount^t r_t; an episode that may end at once pays at least one reward."""
    low, high = reward[0] * total, reward[1] * total
    return (min(reward[0], low), max(reward[1], high)) if least_total_is_one else (low, high)


def _hull_with_zero(interval: Range) -> Range:
    return (min(interval[0], 0.0), max(interval[1], 0.0))


def checked_box(box: object) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(lows, highs) of a declared box of states."""
    sides = [np.ravel(side).tolist() for side in box] if isinstance(box, (tuple, list, np.ndarray)) else []
    if len(sides) != 2:
        raise InvalidInput("`state_box` must be a pair (lows, highs) of equally long sequences of numbers.")
    lows, highs = (tuple(number(x, "state_box") for x in side) for side in sides)
    if len(lows) != len(highs) or any(a > b for a, b in zip(lows, highs, strict=True)):
        raise InvalidInput("`state_box` must be a pair (lows, highs) of equal length with low <= high everywhere.")
    return (lows, highs)
