"""bound_average_reward: against Clarabel, coverage of exact averages, the ranges it rests on, invariants and errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom
from threadpoolctl import threadpool_limits

import accountable_ope as aope
from accountable_ope.bounds.average_reward import bound_average_reward
from accountable_ope.classes.rkhs import KernelSections
from accountable_ope.environments import TabularMDP, chain, random_tabular
from accountable_ope.problem.statements import texts
from accountable_ope.programs.constraint import Role
from reference import Program, Sphere, clarabel_maximum, explicit_system, gaussian, kernel_matrix

DELTA = 0.1
TRIALS = 300


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Two threads cost more than they gain on small matrices, above all beside another worker."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@dataclass(frozen=True, eq=False)
class Truth:
    """The average reward and the relative values of a tabular problem, Q with mean zero."""

    eta: float
    q: np.ndarray
    v: np.ndarray

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.q))

    @property
    def span(self) -> float:
        return float(np.ptp(self.v))


def solve(mdp: TabularMDP, table: np.ndarray) -> Truth:
    """(I - P_pi) q = r - eta over pairs (s, a), and the normalization sum q = 0."""
    S, A = mdp.mean_reward.shape
    onward = np.einsum("sat,tb->satb", mdp.transition, table).reshape(S * A, S * A)
    eta = mdp.average_reward(table)
    q = np.linalg.lstsq(
        np.vstack([np.eye(S * A) - onward, np.ones(S * A)]), np.append(mdp.mean_reward.ravel() - eta, 0.0), rcond=None
    )[0].reshape(S, A)
    assert np.allclose(mdp.mean_reward - eta + (onward @ q.ravel()).reshape(S, A), q, atol=1e-9)
    return Truth(eta, q, (table * q).sum(axis=1))


def table(states: int, actions: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(actions), size=states)


def grid(mdp: TabularMDP) -> aope.TabularFeatures:
    S, A = mdp.mean_reward.shape
    return aope.TabularFeatures.grid(np.arange(float(S)), np.arange(float(A)))


@dataclass(frozen=True, eq=False)
class Family:
    """A problem whose average is known, what is declared of it, and a way to draw data."""

    truth: Truth
    policy: aope.problem.Policy
    features: aope.TabularFeatures | aope.RandomFourier
    draw: Callable[[np.random.Generator], aope.Transitions]
    reward_noise: bool
    norm_bound: float | None = None
    value_span: float | None = None

    def bound(self, data: aope.Transitions, radius: str = "azuma", delta: float = DELTA) -> aope.Interval:
        return bound_average_reward(
            data,
            self.policy,
            aope.AverageReward(
                reward_range=(0, 1), norm_bound=self.norm_bound, value_span=self.value_span, reward_noise=self.reward_noise
            ),
            kernel=aope.Tabular(),
            features=self.features,
            radius=radius,
            delta=delta,
        )


def random_family() -> Family:
    """Rewards are coins; episodes of fifty steps, cut off and not ended."""
    mdp, target = random_tabular(3, 2, seed=4, discount=0.5, bernoulli=True), table(3, 2, seed=1)
    truth, behavior = solve(mdp, target), np.full((3, 2), 0.5)
    draw = lambda rng: mdp.sample_trajectories(behavior, 30, 50, rng)  # noqa: E731
    return Family(truth, mdp.policy(target), grid(mdp), draw, reward_noise=True, value_span=truth.span)


def chain_family() -> Family:
    """Ten episodes that start at the left end."""
    mdp, target = chain(3, discount=0.5), np.array([[0.2, 0.8]] * 3)
    truth, behavior = solve(mdp, target), np.full((3, 2), 0.5)
    draw = lambda rng: mdp.sample_trajectories(behavior, 10, 150, rng)  # noqa: E731
    return Family(truth, mdp.policy(target), grid(mdp), draw, reward_noise=False, value_span=truth.span)


def periodic_family() -> Family:
    """Two states that alternate whatever is done: the average exists as a Cesaro limit only."""
    mdp = TabularMDP([[[0, 1]] * 2, [[1, 0]] * 2], [[0.9, 0.6], [0.1, 0.3]], 0.5, [1, 0], bernoulli=True)
    target = np.array([[0.7, 0.3], [0.4, 0.6]])
    truth, behavior = solve(mdp, target), np.full((2, 2), 0.5)
    draw = lambda rng: mdp.sample_trajectories(behavior, 10, 150, rng)  # noqa: E731
    return Family(truth, mdp.policy(target), grid(mdp), draw, reward_noise=True, value_span=truth.span)


def cosine_family() -> Family:
    """Cosines that contain Q plus a constant, and the norm of that as the only declaration."""
    mdp, target = random_tabular(3, 2, seed=4, discount=0.5), table(3, 2, seed=1)
    truth, behavior = solve(mdp, target), np.full((3, 2), 0.5)
    features = aope.RandomFourier(30, bandwidth=0.7, seed=3)
    inverse = np.linalg.pinv(features(grid(mdp).points))
    constant = np.linalg.lstsq(inverse @ np.ones((6, 1)), inverse @ truth.q.ravel(), rcond=None)[0][0]
    coefficients = inverse @ (truth.q.ravel() - constant)
    assert np.allclose(features(grid(mdp).points) @ coefficients + constant, truth.q.ravel())
    draw = lambda rng: mdp.sample_trajectories(behavior, 30, 50, rng)  # noqa: E731
    norm = float(np.linalg.norm(coefficients))
    return Family(truth, mdp.policy(target), features, draw, reward_noise=False, norm_bound=norm)


FAMILIES = {"random tabular": random_family, "chain": chain_family, "periodic": periodic_family, "cosines": cosine_family}


def run(family: Family, radius: str, trials: int) -> tuple[int, int]:
    """(covered, informative) over seeded trials."""
    covered = informative = 0
    for trial in range(trials):
        interval = family.bound(family.draw(np.random.default_rng([5, trial])), radius)
        covered += interval.lower <= family.truth.eta <= interval.upper
        informative += interval.status is aope.Status.OK
    return covered, informative


def claims_hold(covered: int, trials: int) -> bool:
    """Whether this many hits are believable for a method that covers with probability 1 - delta or more."""
    return binom.cdf(covered, trials, 1 - DELTA) > 1e-6


@pytest.mark.parametrize("name", FAMILIES)
def test_azuma_covers_and_says_something(name: str) -> None:
    covered, informative = run(FAMILIES[name](), "azuma", TRIALS)
    assert claims_hold(covered, TRIALS), f"{covered} of {TRIALS}"
    assert informative >= 0.9 * TRIALS, f"{informative} of {TRIALS} informative"


@pytest.mark.parametrize("name", ["random tabular", "chain"])
def test_the_papers_radius_covers_and_says_nothing_at_this_size(name: str) -> None:
    covered, informative = run(FAMILIES[name](), "hoeffding", 100)
    assert claims_hold(covered, 100)
    assert informative == 0


def test_the_papers_radius_says_something_of_enough_data() -> None:
    """Its level falls with 1 / sqrt(n): a quarter of a million rows and two states are what it takes."""
    mdp = TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.05], [-0.03]], 0.5, [1, 0])
    target = np.ones((2, 1))
    truth = solve(mdp, target)
    data = mdp.sample_iid(250_000, np.random.default_rng(0))
    interval = bound_average_reward(
        data,
        mdp.policy(target),
        aope.AverageReward(reward_range=(-0.05, 0.05), value_span=truth.span, reward_noise=False),
        kernel=aope.Tabular(),
        features=grid(mdp),
        radius="hoeffding",
    )
    assert interval.status is aope.Status.OK
    assert interval.lower <= truth.eta <= interval.upper


def test_a_radius_that_is_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of Theorem A's radius: the same check must fail."""
    import accountable_ope.radii.registry as radius_module

    honest = radius_module.azuma
    monkeypatch.setattr(radius_module, "azuma", lambda *arguments: honest(*arguments) / 100)
    covered, _ = run(periodic_family(), "azuma", TRIALS)
    assert not claims_hold(covered, TRIALS), f"{covered} of {TRIALS}"


# The ranges, against exact problems.


@pytest.mark.parametrize("seed", range(20))
def test_residuals_of_the_truth_stay_within_the_declared_ranges(seed: int) -> None:
    """Rewards at both ends of a lopsided range: the width holds given x, the bound everywhere, the ball contains Q."""
    rng = np.random.default_rng(seed)
    mdp = random_tabular(4, 2, seed=seed, discount=0.5)
    low, high = -0.3, 1.7
    ends = rng.choice([low, high], size=(4, 2))
    mdp = TabularMDP(mdp.transition, ends, 0.5, mdp.start)
    target = table(4, 2, seed)
    truth = solve(mdp, target)
    span_only = {"value_span": truth.span}
    norm_only = {"norm_bound": truth.norm}
    data = mdp.sample_iid(300, rng)
    residuals = truth.v[None, None, :] + mdp.mean_reward[:, :, None] - truth.q[:, :, None] - truth.eta  # (s, a, s')
    for declared in (span_only, norm_only, span_only | norm_only):
        for noise in (True, False):
            interval = bound_average_reward(
                data,
                mdp.policy(target),
                aope.AverageReward(reward_range=(low, high), reward_noise=noise, **declared),
                kernel=aope.Tabular(),
                features=grid(mdp),
                radius="certified" if seed < 3 else "azuma",  # ranges and ball come before it
            )
            assert np.ptp(residuals, axis=2).max() <= interval.ranges.residual_width + 1e-9
            assert interval.ranges.residual_width - (high - low if noise else 0.0) >= truth.span - 1e-9
            assert np.abs(residuals).max() <= interval.ranges.residual_bound
            assert truth.norm <= interval.certificates[0].norm_bound + 1e-9
            assert 0.5 * np.ptp(truth.q) <= interval.ranges.next_value[1] + 1e-9
            assert interval.ranges.value == (low, high)


def test_widths_by_hand() -> None:
    family = random_family()
    data = family.draw(np.random.default_rng(0))

    def ranges(features, **declared) -> aope.Interval:
        return bound_average_reward(
            data,
            family.policy,
            aope.AverageReward(reward_range=(0, 2), **declared),
            kernel=aope.Tabular(),
            features=features,
            radius="azuma",
        )

    cosines = aope.RandomFourier(5)
    assert ranges(cosines, norm_bound=3.0).ranges.residual_width == pytest.approx(2 + 6)
    assert ranges(cosines, norm_bound=3.0).ranges.residual_bound == pytest.approx(2 * (3 + 2))  # the paper's 2 (Qmax + rmax)
    assert ranges(cosines, norm_bound=3.0, reward_noise=False).ranges.residual_width == pytest.approx(6)
    assert ranges(cosines, norm_bound=3.0, value_span=1.5).ranges.residual_width == pytest.approx(2 + 1.5)
    assert ranges(cosines, norm_bound=3.0, value_span=1.5).ranges.residual_bound == pytest.approx(3.5 + 2 * 2)
    tabular = ranges(family.features, norm_bound=3.0)
    assert tabular.ranges.residual_width == pytest.approx(2 + 3 * math.sqrt(2))
    assert tabular.radius.level == pytest.approx(tabular.ranges.residual_width**2 * math.log(20) / (2 * len(data)))
    assert ranges(family.features, value_span=1.0).certificates[0].norm_bound == pytest.approx(math.sqrt(6) * 3 / 2)
    assert (tabular.split.kernel, tabular.split.start, tabular.start_error) == (0.1, 0.0, 0.0)


def test_a_sampled_policy_has_the_range_of_q() -> None:
    mdp, target = random_tabular(3, 2, seed=4, discount=0.5), table(3, 2, seed=1)
    truth = solve(mdp, target)
    drawn = mdp.sample_trajectories(np.full((3, 2), 0.5), 60, 50, np.random.default_rng(2))
    data = aope.Transitions(drawn.states, drawn.actions[:, None].astype(float), drawn.rewards, drawn.next_states)

    def act(states, rng):
        return (rng.random(len(states)) > target[states[:, 0].astype(int), 0]).astype(float)[:, None]

    interval = bound_average_reward(
        data,
        aope.SampledPolicy(act, draws=3),
        aope.AverageReward(reward_range=(0, 1), value_span=truth.span, reward_noise=False),
        kernel=aope.Tabular(),
        features=grid(mdp),
    )
    assert interval.ranges.residual_width == pytest.approx(truth.span + 1)
    assert np.ptp(truth.q) <= truth.span + 1
    assert interval.status is aope.Status.OK
    assert interval.lower <= truth.eta <= interval.upper
    assert any("Q has a span" in line.text for line in interval.premises)


# The program, against Clarabel.


@dataclass(frozen=True, eq=False)
class Instance:
    """A small continuous problem in which everything can be written out."""

    data: aope.Transitions
    policy: aope.DiscretePolicy
    features: aope.RandomFourier
    norm_bound: float | None
    value_span: float | None
    reward_range: tuple[float, float]


def instance(seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(60, 120)), int(rng.integers(2, 7))
    tilt = rng.normal(size=2)

    def probabilities(states):
        first = 1 / (1 + np.exp(-states @ tilt))
        return np.column_stack([first, 1 - first])

    states = rng.uniform(-1, 1, size=(n, 2))
    actions = rng.integers(2, size=n)
    after = np.clip(0.5 * states + 0.4 * (actions[:, None] - 0.5) + 0.3 * rng.normal(size=(n, 2)), -1, 1)
    low = float(rng.normal())
    rewards = low + 0.5 + 0.4 * np.tanh(states[:, 0] + actions - 0.5) + rng.uniform(-0.1, 0.1, n)
    return Instance(
        aope.Transitions(states, actions, rewards, after),
        aope.DiscretePolicy(probabilities, [[-0.5], [0.5]]),
        aope.RandomFourier(m, bandwidth=1.0, seed=seed, intercept=bool(seed % 2)),
        norm_bound=None if seed % 3 == 0 else float(rng.uniform(0.5, 3)),
        value_span=float(rng.uniform(1.5, 4) if seed % 4 == 0 else rng.uniform(0.2, 0.8)),
        reward_range=(low, low + 1),
    )


def written_out(one: Instance, limit: float) -> Program:
    """max eta over (theta, eta), with Z and K by loops."""
    starts = aope.StartStates(one.data.states[:1])
    system = explicit_system(
        one.data,
        starts,
        lambda s: one.policy.probabilities(s[None])[0],
        one.policy.action_vectors,
        lambda x: one.features(x[None])[0],
        1.0,
    )
    n, m = system.Z.shape
    points = np.column_stack([one.data.states, one.policy.action_vectors[one.data.actions]])
    values, vectors = np.linalg.eigh(kernel_matrix(points, gaussian(1.0)))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T / n
    eta = np.append(np.zeros(m), 1.0)
    loss = Sphere(root @ np.column_stack([system.Z, np.ones(n)]), root @ system.v, 0.0, limit)
    low, high = one.reward_range
    box = Sphere(eta[None], np.array([0.5 * (low + high)]), 0.0, (0.5 * (high - low)) ** 2)
    return Program(eta, loss, np.arange(m + 1) < m, one.norm_bound, box)


def bound_instance(one: Instance) -> aope.Interval:
    return bound_average_reward(
        one.data,
        one.policy,
        aope.AverageReward(
            reward_range=one.reward_range, norm_bound=one.norm_bound, value_span=one.value_span, reward_noise=False
        ),
        kernel=aope.Gaussian(1.0),
        features=one.features,
        radius="azuma",
    )


@pytest.mark.parametrize("seed", range(24))
def test_both_ends_agree_with_clarabel(seed: int) -> None:
    one = instance(seed)
    interval = bound_instance(one)
    program = written_out(one, interval.radius.total)
    upper, lower = clarabel_maximum(program), clarabel_maximum(program.turned())
    assert interval.check()
    if interval.status is aope.Status.INCONSISTENT:
        assert upper.status == lower.status == "infeasible"
        return
    assert upper.solved and lower.solved
    assert interval.unclipped[1] == pytest.approx(upper.value, abs=1e-6)
    assert interval.unclipped[0] == pytest.approx(-lower.value, abs=1e-6)


def test_the_instances_are_of_every_kind() -> None:
    """Some ends are decided by the ball, some by the box, most by the loss; few sets are empty."""
    intervals = [bound_instance(instance(seed)) for seed in range(24)]
    sets = [x.certificates[0] for x in intervals if x.status is not aope.Status.INCONSISTENT]
    ends = [end for part in sets for end in (part.upper, part.lower)]
    deciding = {role: sum(end.multiplier(role) > 1e-9 for end in ends) for role in (Role.LOSS, Role.BALL, Role.BOX)}
    assert min(deciding.values()) >= 3, deciding
    assert 16 <= len(sets) < 24, len(sets)


# Invariants.

MDP = random_tabular(3, 2, seed=4, discount=0.5)
TARGET = table(3, 2, seed=1)
TRUTH = solve(MDP, TARGET)
DATA = MDP.sample_trajectories(np.full((3, 2), 0.5), 30, 50, np.random.default_rng(0))
POLICY = MDP.policy(TARGET)


def bound(data=DATA, policy=POLICY, **changes) -> aope.Interval:
    facts = {"reward_range": (0, 1), "norm_bound": 1.2 * TRUTH.norm, "value_span": None, "reward_noise": False}
    declared = aope.AverageReward(**{name: changes.pop(name, value) for name, value in facts.items()})
    return bound_average_reward(
        data, policy, declared, **{"kernel": aope.Tabular(), "features": grid(MDP), "radius": "azuma"} | changes
    )


def with_rewards(rewards: np.ndarray) -> aope.Transitions:
    return aope.Transitions(DATA.states, DATA.actions, rewards, DATA.next_states)


@pytest.mark.parametrize("shift", [-40.0, 0.37, 5.0, 1e4])
def test_shifting_rewards_and_range_shifts_the_interval(shift: float) -> None:
    one = bound()
    other = bound(with_rewards(np.clip(DATA.rewards + shift, shift, 1 + shift)), reward_range=(shift, 1 + shift))
    assert one.status is other.status is aope.Status.OK
    assert other.check()
    assert (other.lower - shift, other.upper - shift) == pytest.approx((one.lower, one.upper), abs=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 30.0, 1e6])
@pytest.mark.parametrize("span", [None, TRUTH.span])
def test_scaling_rewards_scales_the_interval(scale: float, span: float | None) -> None:
    declared = {"norm_bound": None if span else 1.2 * TRUTH.norm, "value_span": span}
    scaled = {name: None if x is None else scale * x for name, x in declared.items()}
    one, other = bound(**declared), bound(with_rewards(scale * DATA.rewards), reward_range=(0, scale), **scaled)
    assert (other.lower / scale, other.upper / scale) == pytest.approx((one.lower, one.upper), rel=1e-6)
    assert other.check()


def assert_within(narrow: aope.Interval, wide: aope.Interval) -> None:
    assert wide.unclipped[0] <= narrow.unclipped[0] + 1e-8 and narrow.unclipped[1] <= wide.unclipped[1] + 1e-8
    assert wide.upper - wide.lower > narrow.upper - narrow.lower


def test_nested_in_delta_norm_span_and_noise() -> None:
    deltas = [bound(delta=delta) for delta in (0.5, 0.1, 0.01, 0.001)]
    norms = [bound(norm_bound=k * TRUTH.norm) for k in (1.0, 1.5, 2.0, 3.0)]
    spans = [bound(norm_bound=None, value_span=k * TRUTH.span) for k in (1.0, 1.5, 2.0, 3.0)]
    for family in (deltas, norms, spans):
        for narrow, wide in pairwise(family):
            assert_within(narrow, wide)
    assert_within(bound(), bound(reward_noise=True))
    assert_within(bound(value_span=TRUTH.span), bound())


def test_the_features_own_constant_does_not_matter() -> None:
    with_constant = bound(features=aope.RandomFourier(30, bandwidth=0.7, seed=3))
    without = bound(features=aope.RandomFourier(30, bandwidth=0.7, seed=3, intercept=False))
    assert without.outcome is aope.Status.OK
    assert with_constant.unclipped == without.unclipped
    assert len(with_constant.certificates[0].upper.objective) == 31


def test_precomputed_columns_are_the_same_class() -> None:
    features = grid(MDP)
    after = np.einsum("na,nak->nk", TARGET[DATA.next_states[:, 0].astype(int)], expanded(features, DATA.next_states))
    here = features(np.column_stack([DATA.states, DATA.actions]))
    given = aope.Precomputed(here, after, np.zeros((7, 6)))
    declared = {"norm_bound": 1.2 * TRUTH.norm, "value_span": TRUTH.span}
    one, other = bound(**declared), bound(features=given, **declared)
    assert other.unclipped == pytest.approx(one.unclipped, abs=1e-7)


def expanded(features: aope.TabularFeatures, states: np.ndarray) -> np.ndarray:
    """(n, A, k): the features of every action at every state."""
    return np.stack([features(np.column_stack([states, np.full(len(states), float(a))])) for a in range(2)], axis=1)


def test_union_is_the_hull_and_drops_inconsistent_classes() -> None:
    classes = [grid(MDP), aope.RandomFourier(30, bandwidth=0.7, seed=3)]
    both, alone = bound(features=classes), [bound(features=one) for one in classes]
    assert both.unclipped[0] == pytest.approx(min(x.unclipped[0] for x in alone), abs=1e-7)
    assert both.unclipped[1] == pytest.approx(max(x.unclipped[1] for x in alone), abs=1e-7)
    assert both.radius.total == max(x.radius.total for x in alone)
    zero = aope.Precomputed(np.zeros((len(DATA), 1)), np.zeros((len(DATA), 1)), np.zeros((1, 1)))
    with_zero = bound(features=[grid(MDP), zero], value_span=TRUTH.span)
    assert not with_zero.certificates[1].consistent
    assert with_zero.certificates[1].least_misfit > 0
    assert with_zero.unclipped == bound(value_span=TRUTH.span).unclipped
    assert with_zero.check()
    alone_zero = bound(features=zero, value_span=TRUTH.span)
    assert alone_zero.status is aope.Status.INCONSISTENT and math.isnan(alone_zero.lower)


def test_misfit_is_a_lower_bound_of_the_distance_to_q() -> None:
    """Constants are the class: Q is at half its span from the nearest."""
    zero = aope.Precomputed(np.zeros((len(DATA), 1)), np.zeros((len(DATA), 1)), np.zeros((1, 1)))
    misfit = bound(features=zero, value_span=TRUTH.span).certificates[0].least_misfit
    assert 0.02 < misfit <= 0.5 * np.ptp(TRUTH.q)


@pytest.mark.parametrize("radius", ["certified", "azuma"])
def test_a_norm_bound_says_nothing_of_a_q_outside_of_its_ball(radius: str) -> None:
    """A ball that does not hold Q bounds no residual of Q: without a declared span nothing does, and no misfit follows.

    With one, a radius that follows the variance is asked at the range of the span; one that was a number for the ball stays mute.
    """
    near_constant = {"features": aope.RandomFourier(5, seed=2), "norm_bound": 1e-3, "radius": radius}
    for declared in ({}, {"value_span": TRUTH.span}):
        interval = bound(**near_constant, **declared)
        part = interval.certificates[0]
        assert interval.status is aope.Status.INCONSISTENT and interval.check(), interval.verify().message
        assert part.least_misfit == 0
        assert not replace(interval, certificates=(replace(part, least_misfit=0.01),)).check()


def test_everything_assumed_is_listed_and_tampering_shows() -> None:
    interval = bound(value_span=TRUTH.span)
    text = " ".join(texts(interval.premises))
    for words in (
        "order of generation",
        "[0, 1]; it is a function of (s, a)",
        "goes on forever",
        "the same from every state",
        f"differs by at most {TRUTH.span:g}",
        "Q plus some constant lies in the class of TabularFeatures(6 points",
        f"||Q|| <= {1.2 * TRUTH.norm:.4g}",
        "The kernel Tabular() was chosen without looking",
    ):
        assert words in text
    assert "differs by" not in " ".join(texts(bound().premises))
    assert "No bound on the norm" in " ".join(
        texts(bound(norm_bound=None, value_span=1.0, features=aope.RandomFourier(5)).premises)
    )
    assert interval.check()
    assert interval.normalized == (interval.lower, interval.upper)
    assert interval.assumptions.discount == 1 and interval.assumptions.terminates is False
    assert not interval.terminates and interval.count == len(DATA)
    part = interval.certificates[0]
    better = replace(part.upper, bound=part.upper.bound - 0.01)
    assert not replace(interval, certificates=(replace(part, upper=better),)).check()
    assert not replace(interval, unclipped=(interval.unclipped[0] + 0.01, interval.unclipped[1])).check()


@pytest.mark.parametrize("low", [0.1, -3.7, 0.0, 1e5])
@pytest.mark.parametrize("radius", ["azuma", "hoeffding", "hoeffding-u", "hoeffding-printed"])
def test_too_few_data_are_vacuous(low: float, radius: str) -> None:
    few = MDP.sample_iid(8, np.random.default_rng(0))
    data = aope.Transitions(few.states, few.actions, low + 0.2 * few.rewards, few.next_states)
    interval = bound(data, reward_range=(low, low + 0.2), radius=radius, norm_bound=1.0)
    assert interval.status is aope.Status.VACUOUS
    assert (interval.lower, interval.upper) == (low, low + 0.2)
    assert interval.check()


def test_a_single_reward_is_its_own_average() -> None:
    interval = bound(with_rewards(np.full(len(DATA), 0.4)), reward_range=(0.4, 0.4))
    assert (interval.lower, interval.upper) == (0.4, 0.4)
    assert interval.check()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm_bound": None}, "`norm_bound` or `value_span` is needed"),
        ({"norm_bound": -1.0}, "`norm_bound` must be positive. Got -1.0"),
        ({"norm_bound": aope.RelativeNorm(2.0)}, "`norm_bound` must be a finite number. Got RelativeNorm"),
        ({"value_span": 0.0}, "`value_span` must be positive. Got 0.0"),
        ({"reward_range": (0, 0.5)}, r"`rewards` must lie in the declared reward_range \[0, 0.5\]"),
        ({"reward_range": (1, 0)}, "`reward_range` must have low <= high"),
        ({"reward_noise": "no"}, "`reward_noise` must be True or False. Got 'no'"),
        ({"delta": 1.0}, r"`delta` must be in \(0, 1\). Got 1.0"),
        ({"radius": "magic"}, "`radius` must be one of"),
        ({"features": []}, "at least one feature class"),
        ({"features": KernelSections(aope.Gaussian(1.0)), "norm_bound": None, "value_span": 1.0}, "`norm_bound` is needed with"),
        ({"features": [grid(MDP), "tabular"]}, "must be a feature map .* Got .*'tabular'"),
        ({"features": aope.Precomputed([[1.0]] * 3, [[1.0]] * 3, [[1.0]])}, "`value_span` is needed with Precomputed"),
        ({"features": aope.Precomputed([[1.0]] * 3, [[1.0]] * 3, [[1.0]]), "value_span": 1.0}, "must have 1500 data rows"),
    ],
)
def test_bad_input_is_one_sentence(changes: dict, message: str) -> None:
    with pytest.raises(aope.InvalidInput, match=message):
        bound(**changes)


def test_terminated_rows_are_refused() -> None:
    ended = np.zeros(len(DATA), dtype=bool)
    ended[[17, 40]] = True
    data = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, DATA.next_states, ended)
    with pytest.raises(aope.InvalidInput, match="`terminated` must be False in every row.* Got True in 2, first row 17"):
        bound(data)
