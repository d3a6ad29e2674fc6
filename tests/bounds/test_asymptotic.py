"""The asymptotic companions: against dense formulas, by their invariances, by measured coverage, and where they fail."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

import accountable_ope as aope
import accountable_ope.radii.wild as wild
import reference
from accountable_ope.bounds.anderson_rubin import anderson_rubin_interval
from accountable_ope.bounds.ends import value_box
from accountable_ope.bounds.sandwich import sandwich_interval
from accountable_ope.environments import PlantedMDP, chain, clinic, random_tabular, rare_jump, scalar_regulator
from accountable_ope.fitting.least_loss import minimize_loss
from accountable_ope.kernels.kernel import block
from accountable_ope.kernels.products import kernel_product
from accountable_ope.kernels.random_features import RandomFeatureKernel
from accountable_ope.problem import at_start
from accountable_ope.problem.problem import Experience
from accountable_ope.problem.statements import texts
from accountable_ope.programs.constraint import ball
from accountable_ope.radii.wild import wild_radius

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=4, length=20)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0.0, 1.0), norm_bound=1.5 * MDP.norm, reward_noise=False)
KERNEL = aope.Gaussian(1.0)
SYSTEM = aope.statistics.bellman_system(Experience(DATA, MDP.starts, MDP.policy, 0.6), MDP.features())
DENSE = reference.kernel_matrix(SYSTEM.points, reference.gaussian(1.0))
FEW = settings(max_examples=8, deadline=None)


def sandwich(data=DATA, facts=FACTS, starts=MDP.starts, policy=MDP.policy, features=None, kernel=KERNEL, **options):
    chosen = MDP.features() if features is None else features
    return sandwich_interval(aope.Problem(data, starts, policy, facts), kernel=kernel, features=chosen, **options)


def anderson_rubin(data=DATA, facts=FACTS, starts=MDP.starts, policy=MDP.policy, features=None, kernel=KERNEL, **options):
    chosen = MDP.features() if features is None else features
    return anderson_rubin_interval(aope.Problem(data, starts, policy, facts), kernel=kernel, features=chosen, **options)


def least_loss(system, kernel):
    return minimize_loss(aope.statistics.kernel_statistic(system, kernel).v_loss(), system.penalized, ridge=0.0)


def dense_sandwich(Z, v, c, K):
    """(estimate, standard error, residuals) by the formulas as they are written."""
    M = K / len(v) ** 2
    inverse = np.linalg.inv(Z.T @ M @ Z)
    theta = inverse @ Z.T @ M @ v
    g, e = M @ Z @ inverse @ c, v - Z @ theta
    return float(c @ theta), math.sqrt(np.sum(g**2 * e**2)), e


def chance_above(x, mu):
    """P(sum_j mu_j chi2_1 > x), by Imhof's integral."""
    mu = mu / x

    def integrand(u):
        angle = 0.5 * np.arctan(mu * u).sum() - 0.5 * u
        return math.sin(angle) / (u * math.exp(0.25 * np.log1p((mu * u) ** 2).sum()))

    return 0.5 + quad(integrand, 0, 2000, limit=20_000)[0] / math.pi


# Against dense formulas.


def test_sandwich_is_the_dense_formula():
    estimate, error, _ = dense_sandwich(SYSTEM.residuals, SYSTEM.target, SYSTEM.objective, DENSE)
    found = sandwich(delta=0.2)
    assert (found.estimate, found.standard_error) == pytest.approx((estimate, error), rel=1e-7)
    reach = norm.ppf(0.9) * error
    assert (found.lower, found.upper) == pytest.approx((estimate - reach, estimate + reach), rel=1e-7)
    assert found.normalized == pytest.approx((0.4 * found.lower, 0.4 * found.upper))
    assert found.start_error == 0 and found.unseen == 0 and found.count == len(DATA)


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.5])
def test_wild_radius_is_the_quantile_of_the_exact_law(delta):
    *_, e = dense_sandwich(SYSTEM.residuals, SYSTEM.target, SYSTEM.objective, DENSE)
    mu = np.linalg.eigvalsh(e[:, None] * DENSE * e) / len(e) ** 2
    level = wild_radius(SYSTEM, KERNEL, least_loss(SYSTEM, KERNEL), delta, draws=200_000)
    assert chance_above(level, mu) == pytest.approx(delta, abs=4 * math.sqrt(delta * (1 - delta) / 200_000))


def test_wild_radius_with_repeated_points_is_that_of_their_sums():
    """One-hot kernel: the loss is the sum over points of the squared sum of residuals there, so mu_j = sum of e^2 there / n^2."""
    mdp = chain(3, discount=0.5)
    data = mdp.sample_trajectories(np.full((3, 2), 0.5), 10, 30, np.random.default_rng(0))
    policy = mdp.policy(np.array([[0.2, 0.8]] * 3))
    features = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=False)
    system = aope.statistics.bellman_system(Experience(data, mdp.starts(), policy, 0.5), features)
    theta = least_loss(system, aope.Tabular())
    e = system.target - system.residuals @ theta
    mu = [np.sum(e[(data.states[:, 0] == s) & (data.actions == a)] ** 2) / len(e) ** 2 for s in range(3) for a in range(2)]
    assert chance_above(wild_radius(system, aope.Tabular(), theta, 0.1, draws=200_000), np.array(mu)) == pytest.approx(
        0.1, abs=0.003
    )


def test_what_few_eigenvalues_leave_is_spread_to_the_safe_side(monkeypatch):
    """A narrow kernel has a slow spectrum: with 20 of 80 eigenvalues the radius is a little larger, never smaller."""
    kernel, theta = aope.Laplace(0.5), least_loss(SYSTEM, aope.Laplace(0.5))
    exact = wild_radius(SYSTEM, kernel, theta, 0.1, draws=100_000)
    monkeypatch.setattr(wild, "RANK", 20)
    fewer = wild_radius(SYSTEM, kernel, theta, 0.1, draws=100_000)
    assert 0.99 * exact <= fewer <= 1.02 * exact


@pytest.mark.parametrize("options", [aope.kernels.TileOptions(rows=7, columns=5), aope.kernels.TileOptions(threads=1), None])
def test_kernel_product_is_the_dense_product(options):
    points = np.concatenate([SYSTEM.points, SYSTEM.points[::2]])
    column = np.random.default_rng(0).normal(size=len(points))
    K = reference.kernel_matrix(points, reference.gaussian(1.0))
    told = []
    assert kernel_product(KERNEL, points, column, options, told.append) == pytest.approx(K @ column, rel=1e-10, abs=1e-12)
    assert told == sorted(told) and told[-1] == 1.0
    single = aope.kernels.TileOptions(single_precision=True)
    assert kernel_product(KERNEL, points, column, single) == pytest.approx(K @ column, abs=1e-4)


def test_a_kernel_with_few_features_is_used_through_them():
    """The same numbers as from its n x n matrix, also where there are more rows than are taken at once."""
    kernel = RandomFeatureKernel(6, bandwidth=1.0)
    K = block(kernel, SYSTEM.points, SYSTEM.points)
    column = np.random.default_rng(0).normal(size=len(K))
    assert kernel_product(kernel, SYSTEM.points, column) == pytest.approx(K @ column, rel=1e-9, abs=1e-12)
    many = np.tile(SYSTEM.points, (60, 1))
    assert kernel_product(kernel, many, np.tile(column, 60))[:80] == pytest.approx(60 * K @ column, rel=1e-9, abs=1e-9)
    estimate, error, e = dense_sandwich(SYSTEM.residuals, SYSTEM.target, SYSTEM.objective, K)
    found = sandwich(kernel=kernel)
    assert (found.estimate, found.standard_error) == pytest.approx((estimate, error), rel=1e-6)
    mu = np.linalg.eigvalsh(e[:, None] * K * e) / len(e) ** 2
    level = wild_radius(SYSTEM, kernel, least_loss(SYSTEM, kernel), 0.1, draws=200_000)
    assert chance_above(level, mu) == pytest.approx(0.1, abs=0.003)


def test_anderson_rubin_is_the_ellipsoid_where_it_is_one():
    """eps'(K - qD) eps <= 0 with D the identity: center -+ sqrt(-least c'A^{-1}c), where ball and box do not bind."""
    data = MDP.sample(np.random.default_rng(1), trajectories=20, length=40)
    found = anderson_rubin(data, dataclasses.replace(FACTS, norm_bound=20 * MDP.norm))
    system = aope.statistics.bellman_system(Experience(data, MDP.starts, MDP.policy, 0.6), MDP.features())
    Z, v, c = system.residuals, system.target, system.objective
    e = v - Z @ least_loss(system, KERNEL)
    level = wild_radius(system, KERNEL, least_loss(system, KERNEL), 0.1)
    assert found.rate == pytest.approx(level * len(e) ** 2 / (e @ e), rel=1e-6)
    scaled = system.points  # a Gaussian of bandwidth 1
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    R = (np.exp(-squares) - found.rate * np.eye(len(e))) / len(e) ** 2
    A = Z.T @ R @ Z
    center = np.linalg.solve(A, Z.T @ R @ v)
    reach = math.sqrt(-((v - Z @ center) @ R @ (v - Z @ center)) * (c @ np.linalg.solve(A, c)))
    assert found.identified and found.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(A)[0], rel=1e-6)
    alike = Z / np.sqrt(np.mean(Z**2, axis=0))
    assert found.relative_eigenvalue == pytest.approx(np.linalg.eigvalsh(alike.T @ R @ alike)[0], rel=1e-6)
    assert (found.lower, found.upper) == pytest.approx((c @ center - reach, c @ center + reach), rel=1e-5)
    assert all(one.check().valid for one in found.certificates)


# Behavior.


@FEW
@given(st.randoms(use_true_random=False))
def test_row_order_does_not_matter(random):
    order = list(range(len(DATA)))
    random.shuffle(order)
    shuffled = aope.Transitions(DATA.states[order], DATA.actions[order], DATA.rewards[order], DATA.next_states[order])
    one, other = sandwich(), sandwich(shuffled)
    assert (other.estimate, other.standard_error) == pytest.approx((one.estimate, one.standard_error), rel=1e-7)
    one, other = anderson_rubin(), anderson_rubin(shuffled)
    assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-5)


def columns_of(features, data=DATA):
    """Features at the data, and averaged over the policy at next and start states, so that they can be recombined."""

    def expected(states):
        branches = MDP.policy.branches(states)
        return sum(weights[:, None] * features(np.concatenate([states, actions], axis=1)) for actions, weights, _ in branches)

    vectors = MDP.policy.action_vectors[data.actions]
    return features(np.concatenate([data.states, vectors], axis=1)), expected(data.next_states), expected(MDP.starts.states)


@FEW
@given(st.integers(0, 1000), st.floats(-6, 6))
def test_only_the_span_of_the_features_matters_to_the_sandwich(seed, power):
    """Recombined columns, one of them in other units, and one that repeats another: the same class, the same interval."""
    mix = np.random.default_rng(seed).normal(size=(4, 4))
    mix[:, 0] *= 10.0**power
    mix = np.column_stack([mix, mix[:, 1]])
    here, after, start = (part @ mix for part in columns_of(MDP.features()))
    one, other = sandwich(), sandwich(features=aope.Precomputed(here, after, start))
    assert (other.estimate, other.standard_error) == pytest.approx((one.estimate, one.standard_error), rel=1e-3)
    assert other.unseen == 1


@FEW
@given(st.floats(-50, 50), st.floats(0.01, 50))
def test_shifted_and_scaled_rewards_shift_and_scale_the_interval(shift, scale):
    rewards = np.clip(scale * DATA.rewards + shift, shift, shift + scale)
    data = aope.Transitions(DATA.states, DATA.actions, rewards, DATA.next_states)
    facts = dataclasses.replace(FACTS, reward_range=(shift, shift + scale), norm_bound=scale * FACTS.norm_bound)
    for one, other in ((sandwich(), sandwich(data, facts)), (anderson_rubin(), anderson_rubin(data, facts))):
        moved = scale * np.array([one.lower, one.upper]) + shift / 0.4
        assert (other.lower, other.upper) == pytest.approx(moved, rel=1e-5, abs=1e-5 * scale)


@FEW
@given(st.floats(0.001, 0.3), st.floats(0.001, 0.3))
def test_nested_in_delta(one, other):
    small, large = sorted((one, other))
    theta = least_loss(SYSTEM, KERNEL)
    assert wild_radius(SYSTEM, KERNEL, theta, small) >= wild_radius(SYSTEM, KERNEL, theta, large)
    for method in (sandwich, anderson_rubin):
        wide, narrow = method(delta=small), method(delta=large)
        assert wide.unclipped[0] <= narrow.unclipped[0] + 1e-7 and narrow.unclipped[1] <= wide.unclipped[1] + 1e-7


def test_the_same_seed_gives_the_same_radius():
    theta = least_loss(SYSTEM, KERNEL)
    first, again, other = (wild_radius(SYSTEM, KERNEL, theta, 0.1, seed=seed) for seed in (4, 4, 5))
    assert first == again and other != first and other == pytest.approx(first, rel=0.05)


def test_residuals_of_zero_have_a_radius_of_zero():
    exact = dataclasses.replace(SYSTEM, target=SYSTEM.residuals @ np.ones(SYSTEM.dimension))
    assert wild_radius(exact, KERNEL, np.ones(SYSTEM.dimension), 0.1) == 0


def test_everything_is_labeled_asymptotic():
    for found in (sandwich(), anderson_rubin()):
        assert found.guarantee is aope.Guarantee.ASYMPTOTIC
        text = " ".join(texts(found.premises))
        for word in ("Asymptotic: 80 transitions", "5 coefficients", "Nothing is guaranteed", "order of generation", "Gaussian"):
            assert word in text
    assert anderson_rubin().radius.guarantee is aope.Guarantee.ASYMPTOTIC


def test_a_constant_that_the_features_contain_changes_nothing():
    """One-hot features and a constant are collinear: the pseudo-inverse leaves the extra direction out."""
    mdp = random_tabular(3, 2, seed=4, discount=0.5, bernoulli=True)
    data = mdp.sample_iid(300, np.random.default_rng(0))
    policy = mdp.policy(np.full((3, 2), 0.5))
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    plain, extra = (
        aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=intercept) for intercept in (False, True)
    )
    one, other = (sandwich(data, facts, mdp.starts(), policy, features, aope.Tabular()) for features in (plain, extra))
    assert one.unseen == 0 and other.unseen == 1
    assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-7)
    one, other = (anderson_rubin(data, facts, mdp.starts(), policy, features, aope.Tabular()) for features in (plain, extra))
    assert one.identified and other.identified
    assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-4)


def test_what_the_data_do_not_see_is_not_estimated():
    """Action 1 was never logged in state 0, and the policy takes it there: the whole range, and no number."""
    mdp = random_tabular(2, 2, seed=1, discount=0.5)
    data = mdp.sample_iid(200, np.random.default_rng(0), behavior_table=[[1.0, 0.0], [0.5, 0.5]])
    policy = mdp.policy(np.full((2, 2), 0.5))
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    features = aope.TabularFeatures.grid(np.arange(2.0), policy.action_vectors, intercept=False)
    found = sandwich(data, facts, mdp.starts(), policy, features, aope.Tabular())
    assert found.status is aope.Status.VACUOUS and (found.lower, found.upper) == (0.0, 2.0)
    assert math.isnan(found.estimate) and found.standard_error == math.inf and found.unseen == 1
    weak = anderson_rubin(data, facts, mdp.starts(), policy, features, aope.Tabular())
    assert not weak.identified
    assert weak.lower <= mdp.value(np.full((2, 2), 0.5)) <= weak.upper
    # A policy that stays with what was logged has a value that the data see.
    logged = mdp.policy([[1.0, 0.0], [0.5, 0.5]])
    assert sandwich(data, facts, mdp.starts(), logged, features, aope.Tabular()).status is aope.Status.OK


def test_a_direction_without_data_is_not_identified():
    """A feature that is 0 in every row and 1 at the start states: the loss is convex and flat along it."""
    data = MDP.sample(np.random.default_rng(1), trajectories=20, length=40)
    here, after, start = columns_of(MDP.features(), data)
    extra = [np.column_stack([part, np.full(len(part), value)]) for part, value in ((here, 0), (after, 0), (start, 1))]
    plain, unseen = (anderson_rubin(data, features=aope.Precomputed(*parts)) for parts in ((here, after, start), extra))
    assert plain.identified and not unseen.identified
    assert unseen.relative_eigenvalue == pytest.approx(0, abs=1e-12)
    assert np.ptp(unseen.unclipped) > 5 * np.ptp(plain.unclipped)


def test_weak_identification_is_said_and_bounded_by_ball_and_box_only():
    mdp = PlantedMDP(seed=1, features=10)
    data = mdp.sample(np.random.default_rng(0), trajectories=4)
    narrow, wide, free = (
        anderson_rubin_interval(
            aope.Problem(data, mdp.starts, mdp.policy, aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=bound)),
            kernel=KERNEL,
            features=mdp.features(),
        )
        for bound in (1.5 * mdp.norm, 15 * mdp.norm, None)
    )
    for found in (narrow, wide, free):
        assert not found.identified and found.smallest_eigenvalue < 0 and found.relative_eigenvalue < 0
        assert found.lower <= mdp.value <= found.upper
        assert all(one.check().valid for one in found.certificates)
    # A third of the value box are start states, so their mean square is at most three times its limit.
    reach = 10 * math.sqrt(3) + 1e-3
    assert 10 - reach <= free.unclipped[0] and free.unclipped[1] <= 10 + reach
    assert np.ptp(wide.unclipped) > 3 * np.ptp(narrow.unclipped)
    loss = narrow.certificates[0].constraints[0]
    alone = aope.programs.FeasibleSet(
        aope.programs.decompose(loss.quadratic, np.append(np.ones(10, dtype=bool), False)), loss.limit, None
    )
    assert aope.programs.extreme_value(narrow.certificates[0].objective, alone).status is aope.programs.SolveStatus.UNBOUNDED


def test_no_consistent_function_lies_beyond_an_indefinite_set():
    """Random members of a set that is not convex: none has a value outside the bounds."""
    mdp = PlantedMDP(seed=1, features=10)
    data = mdp.sample(np.random.default_rng(2), trajectories=4)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=2 * mdp.norm)
    args = (data, mdp.starts, mdp.policy)
    found = anderson_rubin_interval(aope.Problem(*args, facts), kernel=KERNEL, features=mdp.features())
    system = aope.statistics.bellman_system(Experience(*args, 0.95), mdp.features())
    box = value_box(system, aope.Problem(*args, facts).ranges)
    loss = found.certificates[0].constraints[0]
    limits = (loss, ball(system.penalized, 2 * mdp.norm), box)
    center, rng, values = least_loss(system, KERNEL), np.random.default_rng(0), []
    sizes, directions = np.linalg.eigh(loss.quadratic.A)
    for _ in range(3000):
        step = directions @ (rng.normal(size=11) * np.sqrt(loss.limit / np.abs(sizes)))
        theta = center + 10 ** rng.uniform(-1, 2) * step
        if all(one.quadratic(theta) <= one.limit for one in limits):
            values.append(float(system.objective @ theta))
    assert not found.identified and len(values) > 100
    assert found.unclipped[0] <= min(values) and max(values) <= found.unclipped[1]


def test_with_many_data_anderson_rubin_is_the_wild_interval():
    data = MDP.sample(np.random.default_rng(1), trajectories=40, length=50)
    found = anderson_rubin(data)
    wild = aope.bound_value(
        aope.Problem(data, MDP.starts, MDP.policy, FACTS), kernel=KERNEL, features=MDP.features(), radius="wild", delta=0.1
    )
    assert found.radius.level == pytest.approx(wild.radius.level, rel=1e-3)
    assert found.upper - found.lower == pytest.approx(wild.upper - wild.lower, rel=0.05)


def test_undiscounted_episodes_that_end():
    mdp = clinic()
    behavior = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(behavior, 300, 100, np.random.default_rng(0))
    policy, facts = mdp.policy(behavior), aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=False)
    for method in (sandwich, anderson_rubin):
        found = method(data, facts, mdp.starts(), policy, features, aope.Tabular())
        assert found.lower <= mdp.value(behavior) <= found.upper < found.lower + 0.5
        assert found.normalized == (found.lower, found.upper)


# Start states and actions that are sampled.


def test_sampled_starts_add_the_variance_of_their_values():
    sample = aope.StartStates(MDP.starts.states, exact=False)
    exact, found = sandwich(), sandwich(starts=sample)
    theta = least_loss(SYSTEM, KERNEL)
    _, _, start = columns_of(MDP.features())
    error = np.std(start @ theta[:4], ddof=1) / math.sqrt(len(sample))
    assert found.start_error == pytest.approx(error, rel=1e-6)
    assert found.standard_error == pytest.approx(math.hypot(exact.standard_error, error), rel=1e-6)
    assert found.estimate == exact.estimate
    assert any("i.i.d. sample" in line.text for line in found.premises)
    columns = sandwich(starts=sample, features=aope.Precomputed(*columns_of(MDP.features())))
    assert columns.start_error == pytest.approx(error, rel=1e-6)


def test_sampled_starts_have_their_own_share_in_the_anderson_rubin_interval():
    found = anderson_rubin(starts=aope.StartStates(MDP.starts.states, exact=False))
    assert found.start_error == pytest.approx(2.5 * math.sqrt(math.log(2 / 0.01) / (2 * len(MDP.starts))))
    assert found.radius.level == pytest.approx(wild_radius(SYSTEM, KERNEL, least_loss(SYSTEM, KERNEL), 0.09), rel=1e-6)
    upper, lower = found.certificates
    assert found.unclipped == pytest.approx((-lower.bound - found.start_error, upper.bound + found.start_error))


def test_sampled_actions_at_known_starts_add_theirs():
    mdp = scalar_regulator(discount=0.5, action_noise=0.1)
    data = mdp.sample(np.random.default_rng(0), 20, 20)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    found = sandwich(data, facts, mdp.starts, mdp.policy, mdp.features())
    system = aope.statistics.bellman_system(Experience(data, mdp.starts, mdp.policy, 0.5), mdp.features())
    theta = least_loss(system, KERNEL)
    drawn = [
        mdp.features()(np.concatenate([mdp.starts.states, branch.actions], axis=1)) @ theta[: mdp.features().dimension]
        for branch in at_start(mdp.policy).branches(mdp.starts.states)
    ]
    error = math.sqrt(np.sum(mdp.starts.weights**2 * np.var(drawn, axis=0, ddof=1)) / len(drawn))
    assert found.start_error == pytest.approx(error, rel=1e-3) and error > 0
    _, own, _ = dense_sandwich(
        system.residuals, system.target, system.objective, reference.kernel_matrix(system.points, reference.gaussian(1.0))
    )
    assert found.standard_error == pytest.approx(math.hypot(own, error), rel=1e-3)  # streams of their own: no covariance
    with pytest.raises(aope.InvalidInput, match="At least two sampled"):
        sandwich(data, facts, mdp.starts, dataclasses.replace(mdp.policy, draws=1), mdp.features())


# Coverage, measured.


@dataclass(frozen=True)
class Problem:
    """A problem with known value and Q (as coefficients), and a way to draw data from it."""

    truth: float
    theta: np.ndarray
    starts: aope.StartStates
    policy: aope.problem.Policy
    facts: aope.Assumptions
    kernel: aope.kernels.Kernel
    features: aope.classes.FeatureMap
    draw: Callable[[np.random.Generator], aope.Transitions]


def tabular(mdp, target, draw) -> Problem:
    policy = mdp.policy(target)
    features = aope.TabularFeatures.grid(np.arange(float(len(target))), policy.action_vectors, intercept=False)
    facts = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1))
    return Problem(mdp.value(target), mdp.q_values(target).ravel(), mdp.starts(), policy, facts, aope.Tabular(), features, draw)


def planted(trajectories: int) -> Problem:
    mdp = PlantedMDP(seed=2, features=5, discount=0.6)
    theta = np.append(math.sqrt(5) * mdp.theta[:-1], mdp.theta[-1])
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1))
    draw = lambda rng: mdp.sample(rng, trajectories=trajectories, length=50)  # noqa: E731
    return Problem(mdp.value, theta, mdp.starts, mdp.policy, facts, KERNEL, mdp.features(), draw)


RANDOM = random_tabular(3, 2, seed=4, discount=0.5, bernoulli=True)
TABLE = np.array([[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]])
RANDOM_PROBLEM = tabular(RANDOM, TABLE, lambda rng: RANDOM.sample_trajectories(np.full((3, 2), 0.5), 10, 30, rng))


def rare_problem(expected_jumps: float) -> Problem:
    """400 steps of the target policy itself, which jumps with probability expected_jumps / 400 a step."""
    mdp, target = rare_jump(expected_jumps / 400, discount=0.9), np.array([[0.0, 1.0]] * 2)
    return tabular(mdp, target, lambda rng: mdp.sample_trajectories(target, 8, 50, rng))


def believable(hits: int, trials: int, chance: float) -> bool:
    """Whether so many hits of that chance are within the middle 99.9%."""
    low, high = binom.ppf([0.0005, 0.9995], trials, chance)
    return low <= hits <= high


def standardized_errors(problem: Problem, trials: int, starts=None) -> np.ndarray:
    found = []
    for trial in range(trials):
        rng = np.random.default_rng([17, trial])
        interval = sandwich_interval(
            aope.Problem(problem.draw(rng), problem.starts if starts is None else starts(rng), problem.policy, problem.facts),
            kernel=problem.kernel,
            features=problem.features,
        )
        found.append((interval.estimate - problem.truth) / interval.standard_error)
    return np.array(found)


def violations(problem: Problem, trials: int) -> int:
    """How often the loss of the true Q exceeds its wild radius."""
    count = 0
    for trial in range(trials):
        data = problem.draw(np.random.default_rng([19, trial]))
        system = aope.statistics.bellman_system(
            Experience(data, problem.starts, problem.policy, problem.facts.discount), problem.features
        )
        loss = aope.statistics.kernel_statistic(system, problem.kernel).v_loss()
        theta = minimize_loss(loss, system.penalized, ridge=0.0)
        count += loss(problem.theta) > wild_radius(system, problem.kernel, theta, 0.1, draws=1000, seed=trial)
    return count


@pytest.mark.parametrize(("problem", "trials"), [(RANDOM_PROBLEM, 400), (planted(12), 250)], ids=["tabular", "planted"])
def test_sandwich_covers_as_often_as_it_says(problem, trials):
    """And a variance wrong by a factor of two, either way, or a one-sided quantile, would be caught."""
    errors = np.abs(standardized_errors(problem, trials))
    covered = [int((errors <= factor * norm.ppf(0.95)).sum()) for factor in (1.0, math.sqrt(2), math.sqrt(0.5))]
    assert [believable(hits, trials, 0.9) for hits in covered] == [True, False, False], covered
    assert not believable(int((errors <= norm.ppf(0.9)).sum()), trials, 0.9)


def test_sandwich_covers_with_sampled_starts():
    """Twenty start states: without their variance it would cover far too rarely."""
    mdp = chain(3, discount=0.5)
    problem = dataclasses.replace(
        tabular(mdp, np.array([[0.2, 0.8]] * 3), lambda rng: mdp.sample_iid(2000, rng)),
        truth=float(np.mean((np.array([[0.2, 0.8]] * 3) * mdp.q_values([[0.2, 0.8]] * 3)).sum(axis=1))),
    )
    draw = lambda rng: aope.StartStates(rng.integers(3, size=(20, 1)).astype(float), exact=False)  # noqa: E731
    errors = np.abs(standardized_errors(problem, 300, draw))
    assert believable(int((errors <= norm.ppf(0.95)).sum()), 300, 0.9)


@pytest.mark.parametrize(("problem", "trials"), [(RANDOM_PROBLEM, 500), (planted(8), 120)], ids=["tabular", "planted"])
def test_wild_radius_is_exceeded_as_often_as_it_says(problem, trials):
    count = violations(problem, trials)
    assert believable(count, trials, 0.1), count / trials


def test_rare_jumps_break_both():
    """One jump expected in all of the data: a third of the data sets show none, and nothing in them says what is missing."""
    problem, trials = rare_problem(1.0), 200
    covered = broken = certified = 0
    for trial in range(trials):
        data = problem.draw(np.random.default_rng([23, trial]))
        asked = aope.Problem(data, problem.starts, problem.policy, problem.facts)
        rest = {"kernel": problem.kernel, "features": problem.features}
        found = sandwich_interval(asked, **rest)
        covered += found.lower <= problem.truth <= found.upper
        if trial < 50:
            ratio = anderson_rubin_interval(asked, **rest, draws=500)
            broken += not ratio.lower <= problem.truth <= ratio.upper
            bound = aope.bound_value(asked, **rest, radius="azuma")
            certified += bound.lower <= problem.truth <= bound.upper
    assert covered < 0.7 * trials, covered / trials
    assert violations(problem, trials) > 0.3 * trials
    assert broken > 0.3 * 50
    assert certified == 50  # a guarantee of finite samples does not mind


def test_widths_at_the_settings_of_the_paper_with_ten_thousand_transitions():
    mdp = PlantedMDP(seed=1, features=10)
    data = mdp.sample(np.random.default_rng(1), trajectories=200, length=50)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    asked, rest = aope.Problem(data, mdp.starts, mdp.policy, facts), {"kernel": KERNEL, "features": mdp.features()}
    assert np.ptp(sandwich_interval(asked, **rest).normalized) <= 0.0025
    assert np.ptp(aope.bound_value(asked, **rest, radius="wild").normalized) <= 0.006
    ratio = anderson_rubin_interval(asked, **rest)
    assert ratio.identified and np.ptp(ratio.normalized) <= 0.006


# Errors.


@pytest.mark.parametrize("method", [sandwich, anderson_rubin])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1.5}, r"`delta` must be in \(0, 1\). Got 1.5"),
        ({"features": aope.KernelSections(KERNEL)}, "must be one feature map or Precomputed.*Got KernelSections"),
        ({"features": [MDP.features()] * 2}, "`features` must be a feature map .*Got list"),
        ({"features": aope.RandomFourier(79)}, "has 80 coefficients, which leave nothing of 80 transitions"),
        ({"facts": dataclasses.replace(FACTS, misfit=0.1)}, "`misfit` must be 0"),
        ({"facts": dataclasses.replace(FACTS, reward_range=(0.9, 1.0))}, "`rewards` must lie in the declared reward_range"),
        ({"starts": aope.StartStates([[0.0, 0.0, 0.0]])}, "`start states` must have as many columns"),
    ],
)
def test_bad_input_is_one_sentence(method, options, message):
    with pytest.raises(aope.InvalidInput, match=message):
        method(**options)


@pytest.mark.parametrize(
    ("theta", "options", "message"),
    [
        (np.zeros(3), {}, "`theta` must have 5 coefficients, as the class has. Got 3"),
        (np.zeros(5), {"draws": 0}, "`draws` must be a whole number of at least 1"),
        (np.zeros(5), {"seed": -1}, "`seed` must be a whole number of at least 0"),
    ],
)
def test_bad_input_of_the_radius_is_one_sentence(theta, options, message):
    with pytest.raises(aope.InvalidInput, match=message):
        wild_radius(SYSTEM, KERNEL, theta, 0.1, **options)


def test_one_sampled_start_is_too_few():
    with pytest.raises(aope.InvalidInput, match="At least two sampled start states"):
        sandwich(starts=aope.StartStates(MDP.starts.states[:1], exact=False))
