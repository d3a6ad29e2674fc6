"""The average reward at every radius: coverage, ranges that tighten with the set, premises, certificates and refusals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom
from threadpoolctl import threadpool_limits

import accountable_ope as aope
import accountable_ope.radii.registry as registry
from accountable_ope.classes.ranges import spread_of
from accountable_ope.environments import PlantedMDP, TabularMDP, chain
from accountable_ope.programs.ellipsoid import Ellipsoid
from accountable_ope.verification import load_record, verify_record
from accountable_ope.verification.ranges import Ellipsoid as DerivedEllipsoid
from accountable_ope.verification.ranges import Widths
from adversary import TOLERANCE, scaled
from crossing import boundary_of, crossing_probability

MDP, TARGET = chain(3, discount=0.5), np.array([[0.2, 0.8]] * 3)
POLICY = MDP.policy(TARGET)
GRID = aope.TabularFeatures.grid(np.arange(3.0), np.arange(2.0))
TRUTH = MDP.average_reward(TARGET)
NEW = ("certified", "empirical-bernstein", "self-normalized", "symmetric", "wild")
KERNEL = aope.Tabular()


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Two threads cost more than they gain on small matrices, above all beside another worker."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@cache
def relative_q() -> np.ndarray:
    """(I - P_pi) q = r - eta over pairs (s, a), in the middle of its range."""
    onward = np.einsum("sat,tb->satb", MDP.transition, TARGET).reshape(6, 6)
    q = np.linalg.lstsq(np.eye(6) - onward, MDP.mean_reward.ravel() - TRUTH, rcond=None)[0]
    assert np.allclose(q, MDP.mean_reward.ravel() - TRUTH + onward @ q)
    return q - 0.5 * (q.max() + q.min())


def draw(seed: int, episodes: int = 20, length: int = 50) -> aope.Transitions:
    return MDP.sample_trajectories(np.full((3, 2), 0.5), episodes, length, np.random.default_rng([7, seed]))


DATA = draw(0)


def bound(radius: str, data: aope.Transitions = DATA, delta: float = 0.1, features: object = GRID, **changes) -> aope.Interval:
    facts = {"reward_range": (0, 1), "value_span": 3.5, "reward_noise": False, "symmetric_noise": True, **changes}
    kernel = facts.pop("kernel", KERNEL)
    return aope.bound_average_reward(
        data, POLICY, aope.AverageReward(**facts), features=features, kernel=kernel, radius=radius, delta=delta
    )


@cache
def result(radius: str) -> aope.Interval:
    return bound(radius)


def test_certified_is_the_default() -> None:
    facts = aope.AverageReward(reward_range=(0, 1), value_span=3.5, reward_noise=False)
    assert aope.bound_average_reward(DATA, POLICY, facts, features=GRID, kernel=KERNEL).radius.name == "certified"


@pytest.mark.parametrize("radius", ["certified", "self-normalized"])
def test_half_of_the_intervals_may_miss_and_no_more(radius: str) -> None:
    trials = 200 if radius == "self-normalized" else 50
    covered = sum(TRUTH in bound(radius, draw(seed), delta=0.5) for seed in range(trials))
    assert binom.cdf(covered, trials, 0.5) > 1e-6, f"{covered} of {trials}"


TOSSES, EVEN = 200, 0.5
"""Rows of a fair coin, and a delta of one half."""

WITHOUT_CUT = dataclasses.replace(registry.radius_rule("certified"), cut=False)


def beyond(factor: float):
    """What the sum of tosses must exceed to be beyond so many times the radius, whatever the logger does afterwards."""
    honest = boundary_of(WITHOUT_CUT, TOSSES, EVEN)
    return lambda j, variance: factor * TOLERANCE * honest(TOSSES, variance)


def tossed(seed: int, factor: float) -> aope.Transitions | None:
    """A fair coin until the sum is beyond it, then an arm that pays 1/2 for sure; None where it never is."""
    coins, j = np.random.default_rng([5, seed]).integers(2, size=TOSSES).astype(float), np.arange(1, TOSSES + 1)
    crossed = np.cumsum(coins - 0.5) ** 2 > beyond(factor)(TOSSES, j / 4)
    if not crossed.any():
        return None
    sure = j > np.argmax(crossed) + 1
    at = np.zeros((TOSSES, 1))
    return aope.Transitions(at, sure.astype(int), np.where(sure, 0.5, coins), at)


def misses(logs: list[aope.Transitions]) -> int:
    """How often the interval of `certified` leaves out the average, 1/2."""
    policy = aope.DiscretePolicy(lambda states: np.tile([1.0, 0.0], (len(states), 1)), 2)
    features = aope.TabularFeatures.grid([[0.0]], policy.action_vectors)
    facts = aope.AverageReward(reward_range=(0, 1), value_span=1e-6)
    found = [aope.bound_average_reward(log, policy, facts, features=features, kernel=KERNEL, delta=EVEN) for log in logs]
    assert all(each.radius.name == "certified" for each in found)
    return sum(0.5 not in each for each in found)


def test_half_of_the_radius_is_caught(monkeypatch) -> None:
    """A logger that stops where half of the radius ends: an interval of half the radius misses, one of the whole never does.

    How often it gets there is known exactly. The cut, which has half of delta and a martingale of its own, is left out: its
    weights are made from earlier rows and would play against the logger. With four logs that got there, each a miss at half of
    the radius, the frequency of misses that belongs to the whole, 0, is refuted by a single one.
    """
    assert crossing_probability(beyond(0.5), TOSSES, 0.5, counted=beyond(1.0)) == 0
    assert crossing_probability(beyond(0.5), TOSSES, 0.5) > 0.3
    logs = [log for log in (tossed(seed, 0.5) for seed in range(20)) if log is not None][:4]
    assert len(logs) == 4
    rules = registry.RULES
    for factor, expected in ((1.0, 0), (0.5, 4)):
        mine = scaled(WITHOUT_CUT, factor)
        monkeypatch.setattr(registry, "RULES", tuple(mine if rule.name == "certified" else rule for rule in rules))
        assert misses(logs) == expected, factor


@pytest.mark.parametrize("radius", NEW)
def test_every_radius_says_something_is_checked_and_is_read_again(radius: str, tmp_path) -> None:
    interval = result(radius)
    assert interval.status is aope.Status.OK and TRUTH in interval
    assert interval.check()
    interval.save(tmp_path / "certificate.json")
    assert aope.verify(tmp_path / "certificate.json", data=DATA, policy=POLICY).valid
    other = aope.verify(tmp_path / "certificate.json", data=draw(1), policy=POLICY)
    assert other.message == "Not proved: the data are others than those of the certificate."


def test_following_the_variance_pays() -> None:
    """And so does the cut: `empirical-bernstein` has none."""
    assert result("certified").certificates[0].cut is not None
    widths = [result(name).width for name in ("certified", "empirical-bernstein")]
    assert widths[0] < 0.8 * widths[1] < 0.5 * bound("azuma").width


def test_a_span_that_is_far_too_large_is_tightened() -> None:
    """Theorem A is vacuous with it; the rounds bring the range of the residuals down to near the truth."""
    assert bound("azuma", value_span=20.0).status is aope.Status.VACUOUS
    interval = bound("certified", draw(2, episodes=60), value_span=20.0)
    rounds = interval.certificates[0].tightening.rounds
    assert rounds[0].residual_bound == 20.0 and rounds[-1].residual_bound < 5.0
    assert TRUTH in interval and interval.width < 0.5
    q = relative_q()
    assert np.ptp((TARGET * q.reshape(3, 2)).sum(axis=1)) <= rounds[-1].residual_bound


@pytest.mark.parametrize("radius", ["certified", "empirical-bernstein", "symmetric"])
def test_the_true_q_meets_every_constraint_and_range(radius: str) -> None:
    part = result(radius).certificates[0]
    truth = np.append(relative_q(), TRUTH - 0.5)
    for end in (part.upper, part.lower):
        for constraint in end.constraints:
            assert constraint.quadratic(truth) <= constraint.limit * (1 + 1e-9)
    states = np.arange(3)
    onward = (TARGET * relative_q().reshape(3, 2)).sum(axis=1)
    eps = MDP.mean_reward[:, :, None] + onward[None, None, states] - relative_q().reshape(3, 2)[:, :, None] - TRUTH
    seen = MDP.transition > 0
    assert np.abs(eps[seen]).max() <= part.tightening.rounds[-1].residual_bound + 1e-9


def test_a_range_over_an_ellipsoid_is_that_of_its_functions_and_no_average_moves_it() -> None:
    rng = np.random.default_rng(0)
    reach = result("certified").certificates[0].basis.residuals
    assert reach.points is not None and not reach.points[:, -1].any() and reach.center[-1] == 0
    factor = np.linalg.cholesky(np.cov(rng.normal(size=(7, 30))) + 0.5 * np.eye(7))
    found = Ellipsoid(0.1 * rng.normal(size=7), factor, 0.7)
    largest = 0.0
    for _ in range(4000):
        direction = rng.normal(size=7)
        theta = found.center + found.radius * np.linalg.solve(factor.T, direction / np.linalg.norm(direction))
        assert np.linalg.norm(factor.T @ (theta - found.center)) <= found.radius * (1 + 1e-9)
        largest = max(largest, float(np.ptp(theta[:6])))
    width = reach.over([found], 5.0)
    assert largest <= width <= 1.6 * largest
    far = dataclasses.replace(found, center=found.center + np.append(np.zeros(6), 100.0))
    assert reach.over([far], 5.0) == pytest.approx(width)
    record = result("certified").record()
    derived = Widths(record.assumptions, reach.ranges, False, record.classes[0].cover)
    assert derived.over([DerivedEllipsoid(found.center, factor, 0.7)], 5.0) == pytest.approx(width)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
@pytest.mark.parametrize("radius", ["certified", "empirical-bernstein"])
def test_shift_and_scale(radius: str, scale: float) -> None:
    one = result(radius)
    moved = aope.Transitions(DATA.states, DATA.actions, scale * (DATA.rewards + 3), DATA.next_states, episodes=DATA.episodes)
    other = bound(radius, moved, reward_range=(3 * scale, 4 * scale), value_span=3.5 * scale)
    assert (other.lower / scale - 3, other.upper / scale - 3) == pytest.approx((one.lower, one.upper), abs=1e-5)
    assert other.check()


# A planted problem: Q is chosen first, and the reward is what makes it true with a known average.


PLANTED = PlantedMDP(seed=1, features=5, discount=0.9)


@cache
def planted() -> tuple[aope.Transitions, float, float]:
    """(data, average, norm of Q): r = Q - E V + average, from a discounted problem that has the same Q."""

    def undiscounted(states: np.ndarray, actions: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        q = PLANTED.q(states, actions)
        return q - (q - rewards) / PLANTED.discount

    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-2.5, 2.5, size=(6000, 2)), rng.integers(3, size=6000)
    paid = undiscounted(states, actions, PLANTED.mean_reward(states, actions))
    low, high = 1.1 * paid.min(), 1.1 * paid.max()
    drawn = PLANTED.sample(np.random.default_rng(3), trajectories=20)
    rewards = (undiscounted(drawn.states, drawn.actions, drawn.rewards) - low) / (high - low)
    data = aope.Transitions(drawn.states, drawn.actions, rewards, drawn.next_states, episodes=drawn.episodes)
    return data, -low / (high - low), PLANTED.norm / (high - low)


def planted_bound(radius: str, features: object = None, **changes) -> aope.Interval:
    data, _, norm = planted()
    facts = {"reward_range": (0, 1), "norm_bound": 1.5 * norm, "reward_noise": False, **changes}
    chosen = PLANTED.features() if features is None else features
    return aope.bound_average_reward(
        data, PLANTED.policy, aope.AverageReward(**facts), features=chosen, kernel=aope.Gaussian(1.0), radius=radius
    )


def test_cosines_a_state_box_and_a_span_alone() -> None:
    _, truth, _ = planted()
    azuma, plain = planted_bound("azuma"), planted_bound("certified")
    boxed = planted_bound("certified", state_box=((-3.0, -3.0), (3.0, 3.0)))
    span = planted_bound("certified", norm_bound=None, value_span=1.5)
    for interval in (azuma, plain, boxed, span):
        assert interval.check() and truth in interval
    assert boxed.width < plain.width < 0.4 * azuma.width
    assert boxed.ranges.residual_width < plain.ranges.residual_width
    assert span.certificates[0].norm_bound == pytest.approx(1e4 * 0.5 * 2.5)
    assert {"norm", "rounding", "value-span"} <= {each.name for each in span.premises}


def test_the_whole_rkhs() -> None:
    """Fewer coordinates give an interval around that of more; what they miss is counted, and is nothing of the average itself."""
    _, truth, _ = planted()
    space = aope.Gaussian(2.0)
    ends = [planted_bound("azuma", aope.KernelSections(space, m), norm_bound=2.0) for m in (20, 60, 150)]
    for few, many in pairwise(ends):
        assert few.unclipped[0] <= many.unclipped[0] + 1e-6 and many.unclipped[1] <= few.unclipped[1] + 1e-6
    assert all(each.check() and truth in each for each in ends)
    certified = planted_bound("certified", aope.KernelSections(space, 60), norm_bound=2.0)
    assert certified.check() and truth in certified
    assert certified.certificates[0].constraints.unseen == dataclasses.replace(
        certified.certificates[0].constraints.unseen, objective=0.0, box=0.0
    )


def test_a_finite_process_in_an_rkhs_is_covered() -> None:
    """Q at the six points is all that counts: the least norm of a function with these values, plus a constant, is the bound."""
    space = aope.Gaussian(1.0)
    inverse = np.linalg.inv(aope.kernels.block(space, GRID.points, GRID.points))
    ones, q = np.ones(6), relative_q()
    constant = (ones @ inverse @ q) / (ones @ inverse @ ones)
    norm = float(np.sqrt((q - constant) @ inverse @ (q - constant)))
    for seed in range(10):
        interval = bound("certified", draw(seed), 0.5, aope.KernelSections(space, None), norm_bound=norm, value_span=None)
        assert TRUTH in interval and interval.check()


# What is printed.


def names(interval: aope.Interval) -> set[str]:
    return {each.name for each in interval.premises}


def test_premises_are_those_of_the_radius() -> None:
    plain = names(result("empirical-bernstein"))
    assert plain == {"order", "rewards", "average", "value-span", "class", "span", "kernel", "fixed-size"}
    assert names(result("certified")) - plain == {"cut"}  # the objective is fixed, no start states were
    assert names(result("symmetric")) - plain == {"symmetric-noise"}
    assert names(result("wild")) - plain == {"asymptotic"}
    for radius in ("azuma", "certified"):
        assert "state-box" in names(bound(radius, state_box=((0.0,), (2.0,))))


# Forgeries.


def forged(interval: aope.Interval, **changes: object) -> str:
    record = interval.record()
    part = dataclasses.replace(record.classes[0], **changes)
    found = verify_record(dataclasses.replace(record, classes=(part,)))
    assert not found.valid
    return found.message


def test_forged_covers_objectives_and_declarations_are_refused(tmp_path) -> None:
    interval = result("certified")
    record = interval.record()
    cover = record.classes[0].cover
    moved = cover.points.copy()
    moved[:, -1] = 1.0
    assert "a part of its values" in forged(interval, cover=dataclasses.replace(cover, points=moved))
    short = dataclasses.replace(cover, points=0.1 * cover.points)
    assert "not those of the list" in forged(interval, cover=short)
    assert "not the average reward" in forged(interval, objective=np.eye(7)[0])
    assert not verify_record(dataclasses.replace(record, average=dataclasses.replace(record.average, value_span=0.5))).valid
    loud = result("symmetric").record()
    silent = dataclasses.replace(loud.average, symmetric_noise=False)
    assert not verify_record(dataclasses.replace(loud, average=silent)).valid
    facts = dataclasses.replace(loud.assumptions, symmetric_noise=False)
    assert "symmetric noise" in verify_record(dataclasses.replace(loud, average=silent, assumptions=facts)).message
    interval.save(tmp_path / "certificate.json")
    assert verify_record(load_record(tmp_path / "certificate.json")).valid


@pytest.mark.parametrize(
    ("radius", "changes", "message"),
    [
        ("symmetric", {"symmetric_noise": False}, "`radius` symmetric needs `symmetric_noise=True`"),
        (
            "wild",
            {"features": aope.KernelSections(KERNEL), "norm_bound": 1.0},
            "says nothing about what KernelSections",
        ),
        ("self-normalized", {"features": aope.KernelSections(KERNEL), "norm_bound": 1.0}, "says nothing about what"),
        ("hoeffding-u", {"features": aope.KernelSections(KERNEL), "norm_bound": 1.0}, "says nothing about what"),
        ("certified", {"features": aope.KernelSections(KERNEL)}, "`norm_bound` is needed with KernelSections"),
        (
            "certified",
            {"features": aope.KernelSections(KERNEL), "norm_bound": 1.0, "kernel": aope.RandomFeatureKernel(5)},
            "must have no negative values",
        ),
        ("certified", {"state_box": ((0.0,), (1.0,))}, "must lie in the declared state_box"),
        ("certified", {"state_box": ((0.0, 0.0), (1.0, 1.0))}, "`state_box` has 2 dimensions, states have 1"),
        ("certified", {"symmetric_noise": 1}, "`symmetric_noise` must be True or False"),
    ],
)
def test_what_a_radius_lacks_is_one_sentence(radius: str, changes: dict, message: str) -> None:
    with pytest.raises(aope.InvalidInput, match=message):
        bound(radius, **changes)


def test_wild_needs_more_rows_than_features() -> None:
    with pytest.raises(aope.InvalidInput, match="wild needs more rows than features"):
        bound("wild", DATA.rows(slice(0, 6)))


@pytest.mark.parametrize("radius", ["certified", "empirical-bernstein"])
@pytest.mark.parametrize("low", [0.1, -3.7, 1e5])
def test_too_few_rows_are_vacuous_and_checked(radius: str, low: float) -> None:
    few = DATA.rows(slice(0, 8))
    data = aope.Transitions(few.states, few.actions, low + 0.2 * few.rewards, few.next_states)
    interval = bound(radius, data, reward_range=(low, low + 0.2), value_span=1.0)
    assert interval.status is aope.Status.VACUOUS and interval.check()


def test_one_point_and_one_reward() -> None:
    """A class of one point, and rewards that are all the same: nothing to find, and nothing breaks."""
    alone = TabularMDP([[[1.0]]], [[0.4]], 0.5, [1])
    data = alone.sample_iid(20, np.random.default_rng(0))
    policy = alone.policy(np.ones((1, 1)))
    for facts in (aope.AverageReward((0, 1), value_span=1.0), aope.AverageReward((0.4, 0.4), norm_bound=1.0)):
        interval = aope.bound_average_reward(data, policy, facts, features=aope.TabularFeatures([[0.0, 0.0]]), kernel=KERNEL)
        assert 0.4 in interval and interval.check()


def test_the_spread_of_a_class_is_padded_where_it_has_points() -> None:
    found = spread_of(aope.classes.Span(GRID, intercept=False), POLICY, None)
    assert found.beside(0.0).points.shape == (6, 7) and found.beside(1.0).points[:, -1].tolist() == [1.0] * 6
    nothing = spread_of(aope.classes.Span(aope.RandomFourier(3), intercept=False), POLICY, None)
    assert nothing.points is None and nothing.beside(0.0) is nothing
