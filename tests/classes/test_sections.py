"""The whole RKHS: exact against the paper's program in CVXPY, and by landmarks always containing the exact interval."""

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes.ranges import ResidualRange
from accountable_ope.classes.sections import Sections, inner_products, pivoted_coordinates
from accountable_ope.environments import PlantedMDP, clinic
from accountable_ope.kernels.kernel import block
from accountable_ope.problem.assumptions import value_ranges
from accountable_ope.problem.problem import Experience
from accountable_ope.programs.constraint_set import ConstraintSet, Unseen
from accountable_ope.programs.envelope import ConstantEnvelope
from accountable_ope.programs.evidence import Evidence
from accountable_ope.programs.solver import solve

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
KERNEL = aope.Gaussian(1.0)
SPACE = aope.Gaussian(1.5)


def draw(rows, seed=0):
    return MDP.sample(np.random.default_rng(seed), trajectories=max(1, rows // 20), length=20)


def paper_program(data, norm, limit):
    """max and min of c'alpha, Q = sum_{i=0}^n alpha_i f_i: the (n+1)-variable program of the paper, errata 5 to 7 corrected.

    B_ij = <f_i, f_j>, ||Q||^2 = alpha'B alpha <= norm^2, value = (B alpha)_0, (B_1 alpha - r)'K(B_1 alpha - r) / n^2 <= limit.
    """
    points, weights = [], []
    n = len(data)
    probabilities = np.column_stack([b.weights for b in MDP.policy.branches(data.next_states)])
    start = np.column_stack([b.weights for b in MDP.policy.branches(MDP.starts.states)])
    vectors = MDP.policy.action_vectors
    x = np.concatenate([data.states, vectors[data.actions]], axis=1)
    points.append(np.concatenate([np.column_stack([MDP.starts.states, np.repeat(v[None], len(MDP.starts), 0)]) for v in vectors]))
    weights.append(np.concatenate([MDP.starts.weights * start[:, k] for k in range(3)]))
    for i in range(n):
        points.append(np.concatenate([x[i : i + 1], np.column_stack([np.repeat(data.next_states[i : i + 1], 3, 0), vectors])]))
        weights.append(np.concatenate([[1.0], -0.6 * probabilities[i]]))
    B = np.array(
        [[u @ block(SPACE, p, q) @ v for q, v in zip(points, weights, strict=True)] for p, u in zip(points, weights, strict=True)]
    )
    values, vectors_ = np.linalg.eigh(B)
    keep = values > 1e-13 * values[-1]
    root = vectors_[:, keep] * np.sqrt(values[keep])  # B = root root', so theta = root'alpha has ||theta|| = ||Q||
    K = block(KERNEL, x, x)
    kv, ku = np.linalg.eigh(K)
    half = (ku * np.sqrt(np.maximum(kv, 0))).T / n
    theta = cp.Variable(keep.sum())
    constraints = [cp.norm(theta) <= norm, cp.norm(half @ (root[1:] @ theta - data.rewards)) <= np.sqrt(limit)]
    ends = []
    for sense in (cp.Maximize, cp.Minimize):
        problem = cp.Problem(sense(root[0] @ theta), constraints)
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert problem.status in ("optimal", "optimal_inaccurate")
        ends.append(problem.value)
    return ends[1], ends[0]


def section_ends(data, norm, limit, landmarks):
    """Our ends without the value box, as the paper's program has none."""
    features = aope.KernelSections(SPACE, landmarks, intercept=False)
    system = aope.statistics.bellman_system(Experience(data, MDP.starts, MDP.policy, 0.6), features)
    statistic = aope.statistics.kernel_statistic(system, KERNEL)
    evidence = Evidence(
        name="kernel",
        squared=statistic.v_loss(),
        variance=statistic.variance(),
        count=statistic.count,
        reach=1.0,
        mass=(statistic.kappa_variance * statistic.count) ** 2,
        envelope=ConstantEnvelope(limit * statistic.count**2),
        missed=(statistic.missed, statistic.missed_variance),
    )
    unseen = Unseen(system.remainder.objective, system.remainder.box)
    facts = aope.Assumptions(discount=MDP.discount, reward_range=(0, 1))
    reach = ResidualRange(facts, value_ranges(facts, terminates=False), terminates=False, diameter=np.inf)
    found = solve(ConstraintSet((evidence,), system.penalized, norm, None, reach, False, unseen), system.objective)
    assert found.upper.check().valid and found.lower.check().valid
    return -found.lower.bound - found.missed, found.upper.bound + found.missed


@pytest.mark.parametrize("rows", [20, 40, 60])
@pytest.mark.parametrize("norm", [1.5, 4.0])
def test_all_landmarks_give_the_program_of_the_paper(rows, norm):
    data = draw(rows)
    for limit in (0.01, 0.05):
        expected = paper_program(data, norm, limit)
        assert section_ends(data, norm, limit, None) == pytest.approx(expected, rel=1e-6, abs=1e-6 * norm)


@pytest.mark.parametrize("seed", range(3))
def test_fewer_landmarks_contain_the_exact_interval_and_shrink_to_it(seed):
    data = draw(60, seed)
    exact = section_ends(data, 2.0, 0.02, None)
    ends = [section_ends(data, 2.0, 0.02, landmarks) for landmarks in (2, 5, 10, 20, 40, 61)]
    for lower, upper in ends:
        assert lower <= exact[0] + 1e-7
        assert exact[1] <= upper + 1e-7
    widths = [upper - lower for lower, upper in ends]
    assert widths[0] > widths[2] > widths[4]
    assert widths[-1] == pytest.approx(exact[1] - exact[0], rel=1e-5)


def test_coordinates_are_orthonormal_and_what_is_missed_is_measured():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, size=(2, 80, 2))
    rows = Sections(((x, np.ones(80)), (y, np.full(80, -0.9))))
    start = Sections(((rng.uniform(-1, 1, size=(5, 2)), np.ones(5)),))
    weights = np.full(5, 0.2)
    gram = inner_products(SPACE, rows, rows)
    for landmarks in (3, 15, None):
        found = pivoted_coordinates(SPACE, rows, start, weights, landmarks)
        coordinates, missed = found.basis.coordinates(rows)
        np.testing.assert_allclose(missed, found.missed, atol=1e-9)
        rest = gram - coordinates @ coordinates.T
        np.testing.assert_allclose(np.diag(rest), found.missed, atol=1e-9)
        assert np.linalg.eigvalsh(rest)[0] > -1e-9
        mine, mine_missed = found.basis.coordinates(start)
        f0 = weights @ mine
        assert f0 @ f0 == pytest.approx(weights @ inner_products(SPACE, start, start) @ weights, rel=1e-9)
        assert (mine_missed >= 0).all()
    assert found.missed.max() < 1e-9


def test_a_function_of_the_space_keeps_its_promises():
    """For h in H with known norm: residuals and value differ from those of its coordinates by no more than the remainder says."""
    data = draw(40)
    rng = np.random.default_rng(1)
    centers, coefficients = rng.uniform(-1, 1, size=(6, 3)), rng.normal(size=6)
    norm = np.sqrt(coefficients @ block(SPACE, centers, centers) @ coefficients)
    h = Sections(tuple((centers[k : k + 1], coefficients[k : k + 1]) for k in range(6)))
    features = aope.KernelSections(SPACE, 8, intercept=False)
    system = aope.statistics.bellman_system(Experience(data, MDP.starts, MDP.policy, 0.6), features)
    theta = system.features.basis.coordinates(h)[0][0]
    hidden = np.sqrt(norm**2 - theta @ theta)
    vectors = MDP.policy.action_vectors

    def q(states, actions):
        return block(SPACE, np.concatenate([states, vectors[actions]], axis=1), centers) @ coefficients

    exact = data.rewards - aope.statistics.bellman_residuals(q, data, MDP.policy, 0.6)
    assert (np.abs(exact - system.residuals @ theta) <= hidden * system.remainder.rows + 1e-9).all()
    assert (system.remainder.rows > 1e-3).any()  # the promise is not empty
    start = sum(
        MDP.starts.weights @ (b.weights * q(MDP.starts.states, np.full(len(MDP.starts), k)))
        for k, b in enumerate(MDP.policy.branches(MDP.starts.states))
    )
    assert start == pytest.approx(system.objective @ theta, abs=hidden * system.remainder.objective + 1e-9)


def test_bound_value_with_landmarks_is_valid_nested_and_says_what_it_needs():
    data = MDP.sample(np.random.default_rng(0), trajectories=8, length=40)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False)
    problem = aope.Problem(data, MDP.starts, MDP.policy, facts)
    few, many, all_of_them = (
        aope.bound_value(problem, features=aope.KernelSections(aope.Gaussian(2.0), m), kernel=KERNEL) for m in (50, 120, None)
    )
    assert few.lower <= many.lower + 1e-7 <= all_of_them.lower + 2e-7
    assert all_of_them.upper <= many.upper + 1e-7 <= few.upper + 2e-7
    for interval in (few, many, all_of_them):
        assert interval.check()
        assert interval.lower <= MDP.value <= interval.upper
    no_norm = dataclasses.replace(facts, norm_bound=None)
    with pytest.raises(aope.InvalidInput, match="`norm_bound` is needed with KernelSections"):
        aope.bound_value(aope.Problem(data, MDP.starts, MDP.policy, no_norm), kernel=KERNEL, features=aope.KernelSections(SPACE))
    with pytest.raises(aope.InvalidInput, match="hoeffding-u"):
        aope.bound_value(problem, features=aope.KernelSections(SPACE), kernel=KERNEL, radius="hoeffding-u")
    with pytest.raises(aope.InvalidInput, match="`landmarks` must be a whole number of at least 1"):
        aope.KernelSections(SPACE, 0)


def test_terminated_rows_have_no_onward_section():
    mdp = clinic(discount=0.9)
    table = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 10, 40, np.random.default_rng(0))
    system = aope.statistics.bellman_system(
        Experience(data, mdp.starts(), mdp.policy(table), 0.9), aope.KernelSections(aope.Gaussian(2.0), None)
    )
    at_end = data.terminated
    assert at_end.any()
    phi = system.features(system.points[at_end])
    np.testing.assert_allclose(system.residuals[at_end, :-1], phi, atol=1e-8)
    np.testing.assert_allclose(system.residuals[at_end, -1], 1.0)
    np.testing.assert_allclose(system.residuals[~at_end, -1], 0.1)


def test_bandwidths_come_from_earlier_episodes_when_none_is_given():
    data = MDP.sample(np.random.default_rng(0), trajectories=20, length=40)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False)
    interval = aope.bound_rkhs(aope.Problem(data, MDP.starts, MDP.policy, facts), landmarks=60)
    earlier, later = data.split(0.2)
    points = np.concatenate([earlier.states, MDP.policy.action_vectors[earlier.actions]], axis=1)
    h = aope.fitting.median_bandwidth(points)
    features = aope.KernelSections(aope.Gaussian(h), 60)
    same = aope.bound_value(aope.Problem(later, MDP.starts, MDP.policy, facts), kernel=aope.Gaussian(h), features=features)
    assert (interval.lower, interval.upper) == (same.lower, same.upper)
    assert interval.count == 640
    assert sum("chosen on the first 160 rows" in line.text for line in interval.premises) == 2
    given = aope.bound_rkhs(aope.Problem(data, MDP.starts, MDP.policy, facts), landmarks=60, bandwidth=1.5, kernel_bandwidth=1.0)
    assert given.count == 800 and not any("first" in line.text for line in given.premises)


def test_memory_is_known_before_it_is_used():
    assert aope.KernelSections(SPACE, None).memory(5000) > 5000**2 * 8
    assert aope.KernelSections(SPACE, 100).memory(100_000) < 2**30
