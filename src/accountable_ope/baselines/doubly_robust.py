"""Returns that an estimate of Q corrects: what is weighted is only what the estimate has not foretold.

With Q_t an estimate of the return over the T - t steps that are left, V_t(s) = sum_a pi(a | s) Q_t(s, a), V_T = 0, and w_t the
product of the ratios pi / b up to step t,

    X = V_0(s_0) + sum_{t<T} discount^t w_t (r_t + discount V_{t+1}(s_{t+1}) - Q_t(s_t, a_t))

has the mean J whatever the estimate is, and a small variance where it is good (Jiang and Li 2016; Thomas and Brunskill 2016). At
T = 1 it is X = V(s) + w (r - Q(s, a)). But it has no lower limit, so nothing follows from it at a finite number of episodes.

A limit. Let the return over the steps left be at least L_t, as declared, q = Q_t - L_t clipped to be at least 0, and
u = r + discount L_{t+1} - L_t (r - L_t at the end), which is at least 0. Weights are clipped, w_t = min(w_{t-1} pi / b, c_t), and

    X = L_0 + sum_t discount^t ( sum_a k_a q(s_t, a) + w_t (u_t - q(s_t, a_t)) ),
    k_a = min(w_{t-1} pi(a | s_t), c_t b(a | s_t)).

Without clipping that is the X above. With it the mass w_{t-1} pi - k of an action is left out, and is taken to be worth L_t. So
the mean is at most J, for every c_t that is fixed before a_t is drawn. By induction, backwards: given the past, k_a is b_a times
the weight that a gets, so the terms with q cancel in the mean, and steps from t on add sum_a k_a E[u + discount v' | s_t, a],
where v' is what those from t + 1 on add per unit of weight. If v' <= V* - L_{t+1}, that is at most sum_a k_a (Q*_a - L_t), and so
at most w_{t-1} (V* - L_t), Q* and V* being the true ones of the steps left.

Only the term - w_t q(s_t, a_t) is negative. So with X_t the sum before step t and

    c_t = (X_t - L_0 + B) / (discount^t max_a q(s_t, a)),

X >= L_0 - B for certain. Small B clips much, and leaves out much; large B lets one episode say much. And a share of the estimate,
q times 0 <= f <= 1, needs less clipping: f = 0 is importance sampling per decision, without any. Both are chosen on earlier
episodes.

Where only b of the action taken is known, b >= p of all actions is declared: with p in the place of b, k_a is smaller, and the
mean too. An action that the logger never takes has k_a = 0: no overlap is assumed, and without it an interval is wide.

An upper bound is the same for rewards, estimate and range with the other sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import Policy
from ..problem.transitions import Transitions
from ..validation import FloatArray, IntArray, frozen, positive, same_rows, vector
from .episodes import Episodes, Range, read_episodes
from .fitted_returns import ReturnEstimate, fit_returns
from .importance_sampling import LARGEST

CHUNK = 10_000
"""Rows whose features are held at once."""

EARLIER_SHARE, FIT_SHARE = 0.05, 0.2
"""The shares of the episodes, the first ones, that correct no return: where the fit is made again, and where it is made once."""

SHARES, REACHES = (0.5, 1.0), tuple(2.0**k for k in range(-2, 6))
"""f and B that are tried beside f = 0, B in units of f times the largest q of the first states."""

MOST_TRIED = 2000
"""Episodes on which f and B are tried."""

DESIGN_LEVEL = 0.05
"""f and B are chosen for this level whatever delta is."""


@checked
@dataclass(frozen=True, eq=False)
class DoublyRobust:
    """An estimator that subtracts what an estimate of Q foretells, which the earlier episodes fit unless it is given.

    Parameters
    ----------
    q : callable, optional
        An estimate of Q that was fixed before the data: (states (n, d), action vectors (n, k)) -> (n,). None to fit the returns
        over the steps left, by regressions on the episodes before (`fit_returns`).
    features : callable, optional
        Points (s, a), (n, d) -> (n, m), for the fit; any feature map serves. None for one-hot features of the pairs that the
        earlier rows have, or, where these are many, coordinates with their squares and products.
    least_probability : float, optional
        The logger gave this probability at least to every action at every step, in (0, 1]. Needed where only the probabilities of
        the logged actions are known, and not the policy that acted.

    Raises
    ------
    InvalidInput
        Where the probability is none, or both an estimate and features are given.

    Examples
    --------
    >>> from accountable_ope.baselines import DoublyRobust
    >>> DoublyRobust(least_probability=0.2).least_probability
    0.2
    """

    q: Callable[[FloatArray, FloatArray], ArrayLike] | None = None
    features: Callable[[FloatArray], ArrayLike] | None = None
    least_probability: float | None = None

    def __post_init__(self) -> None:
        if self.q is not None and self.features is not None:
            raise InvalidInput("`features` have no effect beside `q`: a given estimate is not fitted.")
        least = self.least_probability
        if least is not None and positive(least, "least_probability") > 1:
            raise InvalidInput(f"`least_probability` must be in (0, 1]. Got {least!r}.")


@checked
class BoundedSamples(NamedTuple):
    """Numbers with a lower limit each.

    Attributes
    ----------
    x : array (N,)
    lowest : array (N,)
        No x can be below it; known before x.
    guess : tuple of two floats
        (mean, standard deviation) that the episodes before lead one to expect.
    """

    x: FloatArray
    lowest: FloatArray
    guess: Range


@checked
class CorrectedReturns(NamedTuple):
    """What is known of J from every episode that was not used up by a choice, in order.

    Attributes
    ----------
    low : BoundedSamples
        With means of at most J.
    mirrored : BoundedSamples
        With means of at most -J.
    """

    low: BoundedSamples
    mirrored: BoundedSamples


class Side(NamedTuple):
    """One side of the returns: q = Q - L and u of every row, or their mirror images H - Q and so on; and L_0, or -H_0."""

    q: FloatArray
    paid: FloatArray
    begin: float


class Setting(NamedTuple):
    """f and B."""

    share: float
    reach: float


@checked
def corrected_returns(
    data: Transitions,
    policy: Policy,
    behavior: ArrayLike | Policy | None = None,
    *,
    estimator: DoublyRobust | None = None,
    discount: float,
    reward_range: Range,
    horizon: int,
    terminal_reward: bool = False,
    refit: bool = True,
) -> CorrectedReturns:
    """Numbers with lower limits whose means are at most J, and others at most -J, one of each per episode.

    The first twentieth of the episodes fits the returns and chooses f and B; the next ones are corrected by that fit, and
    whenever their number has doubled it is made again, and so is the choice, on all episodes before. Without refits the first
    fifth does it once.

    Parameters
    ----------
    data : Transitions
        Whole episodes in the order of generation, at least 8; each row begins where the one before it in its episode ended.
    policy : Policy
        The target policy, over a finite action set.
    behavior : array, Policy or None
        As in `episode_returns`.
    estimator : DoublyRobust, optional
    discount, reward_range, horizon, terminal_reward
        As in `episode_returns`.
    refit : bool
        Whether the fit is made again. Then samples depend on those before, though their means do not.

    Returns
    -------
    CorrectedReturns

    Raises
    ------
    InvalidInput
        Where data, policies and what is declared contradict each other or do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import corrected_returns
    >>> from accountable_ope.environments import chain
    >>> mdp, uniform = chain(3, discount=0.9), np.full((3, 2), 0.5)
    >>> data = mdp.sample_trajectories(uniform, episodes=200, length=4, rng=np.random.default_rng(0))
    >>> found = corrected_returns(
    ...     data, mdp.policy([[0.4, 0.6]] * 3), behavior=mdp.policy(uniform), discount=0.9, reward_range=(0, 1), horizon=4
    ... )
    >>> len(found.low.x), bool((found.low.x >= found.low.lowest).all())
    (190, True)
    """
    chosen = DoublyRobust() if estimator is None else estimator
    least = chosen.least_probability
    episodes = read_episodes(data, policy, behavior, least, discount, reward_range, horizon, terminal_reward)
    cuts = _cuts(len(episodes), refit)

    def knowledge(until: int) -> ReturnEstimate:
        """What is known before this episode."""
        if chosen.q is not None:
            return _Given(chosen.q)
        return fit_returns(episodes.part(0, until).data, policy, chosen.features, episodes.ranges, discount)

    found: tuple[list[BoundedSamples], list[BoundedSamples]] = ([], [])
    for begin, end in pairwise(cuts):
        # f and B are tried on episodes that the fit has not seen; what corrects is then fitted on all of them.
        half = begin // 2
        tried = episodes.part(max(half, begin - MOST_TRIED), begin)
        here = episodes.part(begin, end)
        sides = zip(two_sides(tried, policy, knowledge(half)), two_sides(here, policy, knowledge(begin)), found, strict=True)
        for before, side, samples in sides:
            setting, guess = _choose(tried, before, len(episodes) - begin)
            slack = 1e-9 * (abs(side.begin) + setting.reach)  # more than the rounding of a sum
            lowest = side.begin - setting.reach - slack
            x, _ = corrected(here, side, setting)
            samples.append(BoundedSamples(x, np.full(len(x), lowest), guess))
    return CorrectedReturns(*map(_joined, found))


def _joined(parts: Sequence[BoundedSamples]) -> BoundedSamples:
    """All samples; what was expected before the first of them."""
    x, lowest = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return BoundedSamples(frozen(x), frozen(lowest), parts[0].guess)


def corrected(episodes: Episodes, side: Side, setting: Setting) -> tuple[FloatArray, FloatArray]:
    """X of every episode, at least `side.begin` - B, and what clipping has left out, as far as the estimate knows."""
    e, (share, reach) = episodes, setting
    taken = np.asarray(e.data.actions, dtype=np.int64)[:, None]
    q, ratio = share * side.q, np.take_along_axis(e.target, taken, axis=1)[:, 0] / e.logged
    surprise, largest = side.paid - np.take_along_axis(q, taken, axis=1)[:, 0], q.max(axis=1)
    weight, total, lost = np.ones(len(e)), np.zeros(len(e)), np.zeros(len(e))
    for time in range(int(e.lengths.max())):
        alive = np.flatnonzero(e.lengths > time)
        at, discounted = e.first[alive] + time, e.discount**time
        stake = discounted * largest[at]  # 0 where nothing is foretold: then there is nothing to clip
        room = np.maximum(total[alive] + reach, 0.0)  # negative by rounding only
        cap = np.minimum(np.divide(room, stake, out=np.full(len(at), LARGEST), where=stake > room / LARGEST), LARGEST)
        wanted = weight[alive, None] * e.target[at]
        kept = np.minimum(wanted, cap[:, None] * e.least[at])
        lost[alive] += discounted * ((wanted - kept) * side.q[at]).sum(axis=1)
        weight[alive] = np.minimum(weight[alive] * ratio[at], cap)
        total[alive] += discounted * ((kept * q[at]).sum(axis=1) + weight[alive] * surprise[at])
    return side.begin + np.minimum(total, LARGEST), lost


def two_sides(episodes: Episodes, policy: Policy, estimate: ReturnEstimate) -> tuple[Side, Side]:
    """What a lower bound needs of the rows, and what an upper one does."""
    states, left = episodes.data.states, episodes.left
    found = np.empty_like(episodes.target)
    for begin in range(0, len(states), CHUNK):
        rows = slice(begin, begin + CHUNK)
        for index, branch in enumerate(policy.branches(states[rows])):
            found[rows, index] = estimate(states[rows], branch.actions, left[rows])
    low, high = episodes.ranges[left].T
    after_low, after_high = np.where(episodes.data.terminated[:, None], 0.0, episodes.ranges[left - 1]).T
    values = np.clip(found, low[:, None], high[:, None])
    rewards, (least, most) = episodes.data.rewards, episodes.ranges[-1]
    paid = (rewards + episodes.discount * after_low - low, high - episodes.discount * after_high - rewards)
    return (
        Side(values - low[:, None], np.maximum(paid[0], 0.0), float(least)),  # negative by rounding only
        Side(high[:, None] - values, np.maximum(paid[1], 0.0), float(-most)),
    )


@dataclass(frozen=True, eq=False)
class _Given:
    """An estimate that does not ask how many steps are left."""

    q: Callable[[FloatArray, FloatArray], ArrayLike]

    def __call__(self, states: FloatArray, actions: FloatArray, left: IntArray) -> FloatArray:
        found = vector(self.q(states, np.array(actions)), "q")
        same_rows(len(states), found, "q", "states")
        return found


def _cuts(count: int, refit: bool) -> list[int]:
    """The first episode that is corrected, those from which on another fit corrects, and their number."""
    begin = max(4, math.ceil(count * (EARLIER_SHARE if refit else FIT_SHARE)))
    if count - begin < 4:
        raise InvalidInput(f"At least 8 episodes are needed, some to fit and some to correct. Got {count}.")
    found = [begin]
    while refit and 2 * found[-1] + 2 <= count:
        found.append(2 * found[-1])
    return [*found, count]


def _choose(tried: Episodes, side: Side, later: int) -> tuple[Setting, Range]:
    """The f and B of the highest lower bound that these episodes predict for `later` others, and what to expect of them."""
    log, best, chosen = math.log(1 / DESIGN_LEVEL), -math.inf, (Setting(0.0, 0.0), (0.0, 0.0))
    unit, (least, most) = float(side.q[tried.first].max()), tried.ranges[-1]
    for setting in [Setting(0.0, 0.0), *(Setting(f, f * unit * reach) for f in SHARES if unit > 0 for reach in REACHES)]:
        x, lost = corrected(tried, side, setting)
        mean = float(x.mean())
        # As if one more episode were half the range away: few that are all alike do not show that there are no others.
        deviation = math.sqrt((0.25 * float(most - least) ** 2 + float(((x - mean) ** 2).sum())) / (len(x) + 1))
        # A bet of l loses log / (n l) + l s^2 / 2, and must not be larger than the distance to the lower limit allows.
        bet = math.sqrt(2 * log / later) / deviation
        bet = min(bet, 0.75 / (mean - side.begin + setting.reach)) if mean - side.begin + setting.reach > 0 else bet
        # What is lost is compared, and not the means of X: whatever they differ by besides is chance.
        predicted = -float(lost.mean()) - log / (later * bet) - 0.5 * bet * deviation**2
        if predicted > best:  # of equals the first, whose limit is the nearest
            best, chosen = predicted, (setting, (mean, deviation))
    return chosen
