"""Contestants against slow and obvious twins: the formulas of their papers, written out."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import chi2, norm

import accountable_ope as aope
from accountable_ope.baselines import Entry, contestant_named
from accountable_ope.baselines.coin_dice import extreme_value, heaviest_weights, weighted_value
from accountable_ope.baselines.double_reinforcement import fold_of
from accountable_ope.baselines.fitted_q import fitted_q
from accountable_ope.baselines.linear_system import LinearSystem
from accountable_ope.baselines.model_bootstrap import StepModel, table_value
from accountable_ope.baselines.neural_fitted_q import Networks, neural_values
from accountable_ope.baselines.primal_dual import KernelLoss, primal_dual_interval
from accountable_ope.baselines.robust_table import Balls
from accountable_ope.baselines.table import Table
from accountable_ope.baselines.weighted_steps import WeightedSteps
from accountable_ope.environments import TabularMDP
from accountable_ope.laboratory import family_named
from contest_entries import drawn_entry, entry_of


def ends(name, entry, delta=0.1):
    found = contestant_named(name).bound(entry, delta, np.random.default_rng(0))
    return found.lower, found.upper


def episodes_of(entry):
    """(weights up to each step, rewards) of every episode, by products."""
    data, policy = entry.problem.data, entry.problem.policy
    found = []
    for label in range(data.number_of_episodes):
        rows = np.flatnonzero(data.episodes == label)
        weight, weights = 1.0, []
        for row in rows:
            pi = [branch.weights[0] for branch in policy.branches(data.states[row : row + 1])]
            weight *= pi[data.actions[row]] / data.behavior_probability[row]
            weights.append(weight)
        found.append((weights, data.rewards[rows].tolist()))
    return found


def test_the_four_estimators_by_loops():
    entry, _ = drawn_entry(0, episodes=15)
    episodes, discount = episodes_of(entry), entry.problem.assumptions.discount
    steps, count = entry.horizon, len(episodes)
    weighted = WeightedSteps.of(entry.problem.data, entry.problem.policy, discount, steps)
    trajectory = sum(w[-1] * sum(discount**t * r[t] for t in range(steps)) for w, r in episodes) / count
    decision = sum(discount**t * w[t] * r[t] for w, r in episodes for t in range(steps)) / count
    whole = sum(w[-1] for w, _ in episodes)
    steps_weighted = sum(
        discount**t * sum(w[t] * r[t] for w, r in episodes) / sum(w[t] for w, _ in episodes) for t in range(steps)
    )
    assert weighted.whole.samples().mean() == pytest.approx(trajectory)
    assert weighted.samples().mean() == pytest.approx(decision)
    assert weighted.whole.influences().mean() == pytest.approx(trajectory * count / whole)
    assert weighted.influences().mean() == pytest.approx(steps_weighted)


def test_influences_of_a_ratio_are_its_derivatives():
    entry, _ = drawn_entry(0, episodes=15)
    weighted = WeightedSteps.of(entry.problem.data, entry.problem.policy, 0.5, entry.horizon)
    counts, count, small = np.ones(15), 15, 1e-6
    plain, psi = weighted.ratios(counts[None])[0], weighted.influences()
    for i in range(count):
        more = weighted.ratios((counts + small * (np.arange(count) == i))[None])[0]
        assert (more - plain) / small * count == pytest.approx(psi[i] - plain, abs=1e-4)


def system_of(seed=0, episodes=40, discount=0.5):
    entry, truth = drawn_entry(seed, episodes, discount)
    return entry, LinearSystem.of(entry), truth


def test_the_table_model_the_regressions_and_lstd_agree_on_a_table():
    """Of one-hot features all of them are the value of the frequencies."""
    entry, system, _ = system_of()
    table = Table.of(entry)
    by_model = table_value(table, np.ones(len(system)), entry.problem, np.random.default_rng(0))
    by_regression = float(system.c0 @ fitted_q(system, None))
    by_equations = weighted_value(system, np.ones(len(system)))[0]
    assert by_regression == pytest.approx(by_model, abs=1e-6)
    assert by_equations == pytest.approx(by_model, abs=1e-6)


def test_the_sandwich_by_loops():
    entry, system, _ = system_of()
    a = sum(np.outer(phi, z) for phi, z in zip(system.phi, system.z, strict=True))
    theta = np.linalg.solve(a, sum(phi * r for phi, r in zip(system.phi, system.rewards, strict=True)))
    omega = sum(np.outer(phi, phi) * (r - z @ theta) ** 2 for phi, z, r in zip(system.phi, system.z, system.rewards, strict=True))
    inverse = np.linalg.inv(a)
    error = math.sqrt(system.c0 @ inverse @ omega @ inverse.T @ system.c0)
    value, reach = system.c0 @ theta, norm.ppf(0.95) * error
    assert ends("lstdq sandwich", entry) == pytest.approx((value - reach, value + reach), abs=1e-6)


def test_double_reinforcement_by_loops():
    entry, system, _ = system_of()
    folds, psi = fold_of(entry.problem.data), np.empty(len(system))
    labels = entry.problem.data.episodes
    for k in range(5):
        assert not set(labels[folds == k]) & set(labels[folds != k])
        a = system.phi[folds != k].T @ system.z[folds != k]
        theta = np.linalg.solve(a, system.phi[folds != k].T @ system.rewards[folds != k])
        omega = np.linalg.solve(a.T, system.c0) * (folds != k).sum()
        for i in np.flatnonzero(folds == k):
            psi[i] = system.c0 @ theta + (system.phi[i] @ omega) * (system.rewards[i] - system.z[i] @ theta)
    reach = norm.ppf(0.95) * psi.std(ddof=1) / math.sqrt(len(psi))
    assert ends("double reinforcement learning", entry) == pytest.approx((psi.mean() - reach, psi.mean() + reach), abs=1e-6)


def test_the_weights_of_coindice_are_the_best_of_the_ball():
    rng = np.random.default_rng(0)
    for quantile in (0.5, 5.0, 30.0):
        slopes = rng.exponential(size=8)
        found = heaviest_weights(slopes, quantile)
        assert found.min() >= 0 and found.mean() == pytest.approx(1)
        assert ((found - 1) ** 2).sum() <= quantile * (1 + 1e-6)
        best = minimize(
            lambda w, g=slopes: -w @ g,
            np.ones(8),
            method="SLSQP",
            bounds=[(0, None)] * 8,
            constraints=[
                {"type": "eq", "fun": lambda w: w.sum() - 8},
                {"type": "ineq", "fun": lambda w, q=quantile: q - ((w - 1) ** 2).sum()},
            ],
        )
        assert found @ slopes == pytest.approx(-best.fun, rel=1e-5)


def test_coindice_by_a_general_solver():
    _, system, _ = system_of(episodes=3)
    quantile = chi2.ppf(0.9, 1)
    for sign in (-1.0, 1.0):
        best = minimize(
            lambda w, s=sign: -s * weighted_value(system, w)[0],
            np.ones(len(system)),
            method="SLSQP",
            bounds=[(0, None)] * len(system),
            constraints=[
                {"type": "eq", "fun": lambda w: w.mean() - 1},
                {"type": "ineq", "fun": lambda w: quantile - ((w - 1) ** 2).sum()},
            ],
            options={"maxiter": 500},
        )
        assert extreme_value(system, quantile, sign) == pytest.approx(-sign * best.fun, abs=1e-4)


def test_the_kernel_loss_by_all_pairs():
    entry, system, _ = system_of(episodes=4)
    loss, points = KernelLoss.of(entry, system), entry.problem.experience.points
    theta = np.random.default_rng(0).normal(size=system.phi.shape[1])
    eps = system.residuals(theta)
    pairs = sum(eps[i] * eps[j] * (points[i] == points[j]).all() for i in range(len(system)) for j in range(len(system)))
    assert loss(theta) == pytest.approx(pairs / len(system) ** 2)


@pytest.mark.parametrize("kernel", [None, aope.Gaussian(1.0)])
@pytest.mark.parametrize("features", [None, aope.RandomFourier(4, seed=1)])
def test_the_dual_is_the_primal(features, kernel):
    """max c0'theta over ||S(theta)|| <= e and ||theta|| <= B, by Clarabel."""
    import cvxpy

    entry, _, _ = system_of(episodes=200)
    entry = aope.baselines.Entry(entry.problem, features or entry.features, kernel or entry.kernel)
    system = LinearSystem.of(entry)
    loss, bound = KernelLoss.of(entry, system), entry.problem.assumptions.norm_bound
    reach = entry.problem.ranges.residual_width * math.sqrt(2 * math.log(2 / 0.1) / len(system))
    values, vectors = np.linalg.eigh(np.block([[loss.zz, -loss.zv[:, None]], [-loss.zv[None], np.array([[loss.vv]])]]))
    root = vectors * np.sqrt(np.maximum(values, 0))
    theta = cvxpy.Variable(len(system.c0))
    free = int(entry.features.intercept)
    limits = [
        cvxpy.norm(root.T @ cvxpy.hstack([theta, 1.0])) <= reach,
        cvxpy.norm(theta[: len(system.c0) - free]) <= bound,
    ]
    low = cvxpy.Problem(cvxpy.Minimize(system.c0 @ theta), limits).solve(solver="CLARABEL")
    high = cvxpy.Problem(cvxpy.Maximize(system.c0 @ theta), limits).solve(solver="CLARABEL")
    least, most = entry.problem.ranges.value
    found = primal_dual_interval(entry, 0.1, np.random.default_rng(0))
    assert found.lower <= max(low, least) + 1e-6 and found.upper >= min(high, most) - 1e-6
    assert (found.lower, found.upper) == pytest.approx((max(low, least), min(high, most)), abs=0.02)


def test_the_worst_table_of_a_ball_by_linear_programs():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=(2, 3))
    balls = Balls(p, rng.uniform(0, 1.5, (2, 3)), np.zeros((2, 3)), np.ones((2, 3)))
    v = rng.normal(size=4)
    found = balls._least_mean(v)
    for s in range(2):
        for a in range(3):
            # q in the simplex, |q - p| <= t, sum t <= radius
            costs = np.concatenate([v, np.zeros(4)])
            eye = np.eye(4)
            above = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, 4)), np.ones((1, 4))]])
            limits = np.concatenate([p[s, a], -p[s, a], [balls.radius[s, a]]])
            best = linprog(costs, above, limits, np.concatenate([np.ones(4), np.zeros(4)])[None], [1.0])
            assert found[s, a] == pytest.approx(best.fun, abs=1e-9)


def test_radii_of_a_table():
    entry, _, _ = system_of(episodes=20)
    table = Table.of(entry)
    balls = Balls.of(table, (0.0, 1.0), 0.1, random=True, ends=False)
    visits = table.counts().sum(axis=2)
    for s in range(3):
        for a in range(2):
            n = visits[s, a]
            share = 0.1 / (2 * 6 * n * (n + 1))
            assert balls.radius[s, a] == pytest.approx(min(2, math.sqrt(2 * math.log((2**3 - 2) / share) / n)))
            rows = (table.state == s) & (table.action == a)
            mean, reach = entry.problem.data.rewards[rows].mean(), math.sqrt(math.log(2 / share) / (2 * n))
            assert balls.low[s, a] == pytest.approx(max(mean - reach, 0))
            assert balls.high[s, a] == pytest.approx(min(mean + reach, 1))


def test_a_table_of_no_radius_is_evaluated_as_it_is():
    entry, system, _ = system_of()
    table = Table.of(entry)
    counts = table.counts()[:, :, :-1]
    visits = counts.sum(axis=2)
    mean = table.paid() / visits
    balls = Balls(counts / visits[:, :, None], np.zeros((3, 2)), mean, mean)
    value = table.start @ balls.worst(table.policy, 0.5, (0.0, 2.0))
    assert value == pytest.approx(weighted_value(system, np.ones(len(system)))[0], abs=1e-5)


def test_gradients_of_networks_by_differences():
    rng = np.random.default_rng(0)
    networks = Networks.drawn(2, 3, rng)
    networks.weights[-1][:] = rng.normal(size=networks.weights[-1].shape)
    inputs, targets = rng.normal(size=(2, 7, 3)), rng.normal(size=(2, 7))

    def losses() -> float:
        return 0.5 * float(((networks.layers(inputs)[-1][:, :, 0] - targets) ** 2).mean(axis=1).sum())

    slopes = networks.gradients(inputs, targets)
    for each, slope in zip(networks.parameters, slopes, strict=True):
        at = tuple(rng.integers(size) for size in each.shape)
        each[at] += 1e-6
        more = losses()
        each[at] -= 2e-6
        less = losses()
        each[at] += 1e-6
        assert (more - less) / 2e-6 == pytest.approx(slope[at], abs=1e-6)


def test_networks_come_near_the_value_of_a_table():
    """Where linear FQE is exact; refits differ from it by chance."""
    entry, system, _ = system_of(episodes=60)
    exact = float(system.c0 @ fitted_q(system, None))
    found = neural_values(entry.problem, np.random.default_rng(0))
    assert found[0] == pytest.approx(exact, abs=0.08)
    assert found[1:].mean() == pytest.approx(exact, abs=0.08)
    assert 0.001 < found[1:].std() < 0.15


def test_a_model_of_continuous_states_comes_near_the_value():
    """Of the linear regulator, whose moves are linear: in a model of the log, run from the start states."""
    family = family_named("regulator")
    data = family.draw(np.random.default_rng(0), 2000)
    problem = family.problem(data, 0)
    many = data.number_of_episodes
    found = StepModel.of(problem).values(problem, np.ones((8, many)), np.random.default_rng(1))
    low, high = problem.ranges.value
    assert found.mean() == pytest.approx(family.truth, abs=0.02 * (high - low))


def coins(count: int, seed: int):
    """One state, one action, a fair coin as the reward, discount 0; every episode one toss."""
    mdp = TabularMDP([[[1.0]]], [[0.5]], 0.0, [1.0], bernoulli=True)
    sure = np.ones((1, 1))
    return entry_of(mdp, mdp.sample_trajectories(sure, count, 1, np.random.default_rng(seed)), sure, sure, steps=1)


def test_widths_for_a_coin_are_those_of_the_inequalities():
    entry = coins(400, 0)
    mean = entry.problem.data.rewards.mean()
    hilbert = math.sqrt(2 * math.log(2 / 0.1) / 400)
    assert ends("kernel primal-dual", entry) == pytest.approx((mean - hilbert, mean + hilbert), rel=1e-3)
    hoeffding = math.sqrt(math.log(2 * 2 * 400 * 401 / 0.1) / (2 * 400))
    assert ends("robust table", entry) == pytest.approx((mean - hoeffding, mean + hoeffding), abs=1e-6)
    assert ends("lstdq sandwich", entry) == pytest.approx(
        tuple(mean + sign * norm.ppf(0.95) * math.sqrt(mean * (1 - mean) / 400) for sign in (-1, 1)), abs=1e-6
    )


@pytest.mark.parametrize(
    "name",
    ["trajectory bernstein", "per-decision betting", "doubly-robust betting", "kernel primal-dual", "robust table"],
)
def test_what_is_proved_for_a_coin_covers_and_an_eighth_of_it_does_not(name):
    """The error of a mean of 400 tosses has the deviation .025: intervals as narrow as that must be found out."""
    misses = narrow = 0
    for seed in range(60):
        low, high = ends(name, coins(400, seed))
        misses += not low <= 0.5 <= high
        narrow += abs(0.5 - 0.5 * (low + high)) > (high - low) / 16
    assert misses <= 16 and narrow > 16  # of 60 at .1, beyond 16 with probability 2e-5


@dataclass(frozen=True)
class TwoColumns:
    """A square that plays no part, in any unit, and what pays."""

    scale: float
    dimension: int = 2
    intercept: bool = True

    def __call__(self, points):
        return np.column_stack([self.scale * points[:, 0] ** 2, points[:, 1]])


@pytest.mark.parametrize("name", ["lstdq sandwich", "double reinforcement learning", "coindice", "linear fqe bootstrap"])
def test_units_of_features_have_no_part_in_an_interval(name):
    """A column that is a million times larger than the others hides none of them."""
    rng = np.random.default_rng(0)
    states = rng.random((2000, 2))
    rewards = np.clip(0.1 + 0.8 * states[:, 1] + 0.05 * rng.normal(size=2000), 0, 1)
    data = aope.Transitions(states, np.zeros(2000, int), rewards, states, np.ones(2000, bool), np.arange(2000))
    policy = aope.DiscretePolicy(lambda at: np.ones((len(at), 1)), actions=1)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    problem = aope.Problem(data, aope.StartStates([[0.5, 1.0]]), policy, facts)
    found = [ends(name, Entry(problem, TwoColumns(scale), horizon=1)) for scale in (1.0, 1e6)]
    assert found[0] == pytest.approx(found[1], rel=1e-6) and found[0][0] < 0.9 < found[0][1] < 0.92
