"""Diagnosis and correction: against CVXPY, on planted errors, and by what they promise."""

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, clinic
from accountable_ope.kernels.kernel import block
from accountable_ope.problem.problem import Experience
from accountable_ope.problem.statements import texts
from accountable_ope.statistics.witness import witness_of

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=40, length=50)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False)
KERNEL = aope.Gaussian(1.0)
FEATURES = aope.RandomFourier(12, bandwidth=1.0, seed=4)
OPTIONS = {"assumptions": FACTS, "kernel": KERNEL, "features": FEATURES, "radius": "azuma"}
CERTIFIED = {"radius": "certified", "features": MDP.features()}
BUMP = np.array([0.6, -0.4])


def bump(states):
    return np.exp(-((states - BUMP) ** 2).sum(axis=1) / 0.3)


def wrong(states, actions):
    """Too high around BUMP, right elsewhere."""
    return MDP.q(states, actions) + 2.0 * bump(states)


def nothing(states, actions):
    return np.zeros(len(states))


def run(what, q, **changes):
    options = OPTIONS | {"data": DATA, "starts": MDP.starts} | changes
    problem = aope.Problem(options.pop("data"), options.pop("starts"), MDP.policy, options.pop("assumptions"))
    return what(q, problem, **options)


def small_problem(seed):
    """Everything explicit, for CVXPY: half'half = K/n^2, Z, zeta, c0 and the value of the estimate."""
    data = MDP.sample(np.random.default_rng(seed), trajectories=2, length=30)
    scale = np.random.default_rng(seed).uniform(0.2, 3)
    q = lambda states, actions: scale * np.sin(3 * states[:, 0] + actions)  # noqa: E731
    x = np.concatenate([data.states, MDP.policy.action_vectors[data.actions]], axis=1)
    values, vectors = np.linalg.eigh(block(KERNEL, x, x))
    half = (vectors * np.sqrt(np.maximum(values, 0))).T / len(data)
    zeta = aope.statistics.bellman_residuals(q, data, MDP.policy, 0.6)
    system = aope.statistics.bellman_system(Experience(data, MDP.starts, MDP.policy, 0.6), FEATURES)
    estimate = sum(
        MDP.starts.weights @ (b.weights * q(MDP.starts.states, np.full(len(MDP.starts), b.action)))
        for b in MDP.policy.branches(MDP.starts.states)
    )
    return data, q, half, zeta, system, estimate


@pytest.mark.parametrize("seed", range(12))
def test_posthoc_interval_agrees_with_cvxpy(seed):
    data, q, half, zeta, system, estimate = small_problem(seed)
    diagnosis = run(aope.diagnose, q, data=data, assumptions=dataclasses.replace(FACTS, norm_bound=6.0))
    assert diagnosis.estimate == pytest.approx(estimate, rel=1e-12)
    assert diagnosis.loss == pytest.approx(float((half @ zeta) @ (half @ zeta)), rel=1e-10)
    theta = cp.Variable(system.dimension)
    constraints = [
        cp.norm(half @ (system.residuals @ theta - zeta)) <= np.sqrt(diagnosis.radius.total),
        cp.norm(theta[:-1]) <= 6.0,
    ]
    # The value box: mean over data, next and start points, a third each, of (Q - middle)^2.
    experience = Experience(data, MDP.starts, MDP.policy, 0.6)
    moments = aope.statistics.bellman_system(experience, FEATURES, aope.statistics.q_columns(q, experience)).box_moments
    w = cp.hstack([theta, -1.25, 1.0])
    root = np.linalg.cholesky(moments + 1e-13 * np.eye(len(moments)))
    constraints.append(cp.norm(root.T @ w) <= 1.25)
    for sense, end in ((cp.Maximize, 1), (cp.Minimize, 0)):
        problem = cp.Problem(sense(estimate + system.objective @ theta), constraints)
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        assert diagnosis.interval.unclipped[end] == pytest.approx(problem.value, abs=1e-6 * 6)


@pytest.mark.parametrize("seed", range(12))
def test_correction_agrees_with_cvxpy(seed):
    data, q, half, zeta, system, estimate = small_problem(seed)
    correction = run(aope.correct, q, data=data)
    theta = cp.Variable(system.dimension)
    limit = np.sqrt(correction.radius.total)
    problem = cp.Problem(cp.Minimize(cp.norm(theta)), [cp.norm(half @ (system.residuals @ theta - zeta)) <= limit])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert correction.norm == pytest.approx(problem.value, abs=1e-6 * max(1, problem.value))
    if correction.status is aope.bounds.CorrectionStatus.CORRECTED:
        assert correction.theta == pytest.approx(theta.value, abs=1e-5 * max(1, problem.value))
    assert correction.estimate_after == pytest.approx(estimate + system.objective @ correction.theta)
    assert correction.loss_after <= correction.radius.total * (1 + 1e-9)


def test_the_truth_is_consistent_and_not_changed():
    diagnosis, correction = run(aope.diagnose, MDP.q), run(aope.correct, MDP.q)
    assert diagnosis.verdict is aope.bounds.EstimateVerdict.CONSISTENT
    assert diagnosis.inside and diagnosis.estimate == pytest.approx(MDP.value)
    assert correction.status is aope.bounds.CorrectionStatus.UNCHANGED
    assert correction.norm == 0.0 and not correction.theta.any()
    assert correction.estimate_after == correction.estimate_before


def test_a_planted_error_is_rejected_and_found():
    diagnosis = run(aope.diagnose, wrong)
    assert diagnosis.verdict is aope.bounds.EstimateVerdict.REJECTED
    top = diagnosis.witness.regions[0]
    assert np.linalg.norm(top.center[:2] - BUMP) < 0.6
    assert top.mean_residual < -0.1 and top.witness < 0  # the estimate is too high there
    assert diagnosis.witness.regions[0].share > 0
    far = np.linalg.norm(diagnosis.witness.points[:, :2] - BUMP, axis=1) > 1.5
    assert np.abs(diagnosis.witness.values[far]).max() < 0.5 * np.abs(diagnosis.witness.values).max()
    assert diagnosis.interval.lower <= MDP.value <= diagnosis.interval.upper


def test_correction_makes_it_consistent_and_moves_it_into_the_interval():
    for q in (nothing, wrong):
        correction = run(aope.correct, q)
        assert correction.status is aope.bounds.CorrectionStatus.CORRECTED
        assert correction.loss_before > correction.radius.total
        assert correction.loss_after <= correction.radius.total * (1 + 1e-9)
        residuals = aope.statistics.bellman_residuals(correction, DATA, MDP.policy, 0.6)
        points = np.concatenate([DATA.states, MDP.policy.action_vectors[DATA.actions]], axis=1)
        assert aope.statistics.v_statistic(residuals, points, KERNEL) <= correction.radius.total * (1 + 1e-9)
        assert correction.interval.lower <= correction.estimate_after <= correction.interval.upper
        assert correction.note == ""
        again = run(aope.correct, correction)  # a corrected Q is a Q; at the border of the set, up to rounding
        assert again.norm <= 1e-6 * correction.norm


def test_a_corrected_value_outside_the_interval_is_explained():
    interval = run(aope.diagnose, MDP.q).interval
    corrected, infeasible = aope.bounds.CorrectionStatus.CORRECTED, aope.bounds.CorrectionStatus.INFEASIBLE
    note = aope.bounds.correction.outside_note
    outside = interval.upper + 0.1
    assert "norm 1, more than the declared bound 0.4" in note(interval, outside, 1.0, 0.4, corrected)
    assert "which uses more than the loss" in note(interval, outside, 0.1, 0.4, corrected)
    cut = dataclasses.replace(interval, unclipped=(interval.lower, outside + 1))
    assert "which the declared value range cuts" in note(cut, outside, 0.1, 0.4, corrected)
    assert note(interval, outside, 1.0, 0.4, infeasible) == ""
    assert note(interval, interval.upper, 1.0, 0.4, corrected) == ""


def test_infeasible_is_a_status_with_the_least_loss():
    """One narrow cosine cannot mend an estimate that is wrong everywhere."""
    big = MDP.sample(np.random.default_rng(3), trajectories=200, length=50)
    correction = run(
        aope.correct, lambda s, a: 1.25 + np.sin(4 * s[:, 0]), data=big, features=aope.RandomFourier(1, 0.05, intercept=False)
    )
    assert correction.status is aope.bounds.CorrectionStatus.INFEASIBLE
    assert correction.least_loss > correction.radius.total
    assert not correction.theta.any() and correction.estimate_after == correction.estimate_before
    assert correction.interval.status is aope.Status.INCONSISTENT


@pytest.mark.parametrize(
    "features",
    [FEATURES, aope.KernelSections(aope.Gaussian(1.5), 40), aope.KernelSections(aope.Laplace(2.0), 25, intercept=False)],
    ids=["random fourier", "gaussian sections", "laplace sections"],
)
def test_a_saved_correction_is_the_same_function(tmp_path, features):
    correction = run(aope.correct, nothing, features=features)
    assert correction.status is aope.bounds.CorrectionStatus.CORRECTED
    correction.save(tmp_path / "change.npz")
    loaded = aope.bounds.CorrectedQ(nothing, aope.classes.load_linear_q(tmp_path / "change.npz"))
    states, actions = DATA.next_states[:50], DATA.actions[:50]
    np.testing.assert_array_equal(loaded(states, actions), correction(states, actions))
    np.testing.assert_array_equal(loaded.predict_value(states, actions), correction.predict_value(states, actions))
    assert [p.name for p in tmp_path.iterdir()] == ["change.npz"]
    (tmp_path / "change.npz").write_bytes(b"nonsense")
    with pytest.raises(aope.InvalidFile, match="is not a saved Q function"):
        aope.classes.load_linear_q(tmp_path / "change.npz")


def test_tabular_correction_saved(tmp_path):
    mdp = clinic(discount=0.5)
    table = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 2000, 60, np.random.default_rng(0))
    policy = mdp.policy(table)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=False)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), terminal_reward=True)
    correction = aope.correct(
        lambda s, a: np.full(len(s), 0.9),
        aope.Problem(data, mdp.starts(), policy, facts),
        kernel=aope.Tabular(),
        features=features,
    )
    assert correction.status is aope.bounds.CorrectionStatus.CORRECTED
    correction.save(tmp_path / "change.npz")
    change = aope.classes.load_linear_q(tmp_path / "change.npz")
    np.testing.assert_array_equal(change.theta, correction.theta)


def test_three_ways_to_give_the_same_estimate():
    class Predictor:
        def predict_value(self, states, actions):
            return wrong(states, actions)

    columns = aope.statistics.q_columns(wrong, Experience(DATA, MDP.starts, MDP.policy, 0.6))
    by_function, by_object, by_columns = (run(aope.diagnose, q) for q in (wrong, Predictor(), columns))
    for other in (by_object, by_columns):
        assert other.loss == by_function.loss
        assert (other.interval.lower, other.interval.upper) == (by_function.interval.lower, by_function.interval.upper)
    correction = run(aope.correct, columns)
    assert correction.norm == run(aope.correct, wrong).norm
    with pytest.raises(aope.InvalidInput, match="known at the rows only"):
        correction(DATA.states, DATA.actions)


def test_premises_name_the_estimate():
    text = " ".join(texts(run(aope.diagnose, wrong).interval.premises))
    assert "Q minus the given estimate lies in the class" in text


def test_rejection_is_rare_for_the_truth():
    """The verdict is a test at level delta: over 200 data sets the true Q must not be rejected more often than that allows."""
    rejected = 0
    for trial in range(200):
        data = MDP.sample(np.random.default_rng([9, trial]), trajectories=4, length=25)
        rejected += run(aope.diagnose, MDP.q, data=data).verdict is aope.bounds.EstimateVerdict.REJECTED
    assert rejected <= 35  # binomial(200, .1) exceeds this with probability 4e-4


def test_witness_adds_up_to_the_loss():
    """With every point evaluated, (1/n) sum eps_i f(x_i) is the V-statistic, and f(x) = (1/n) sum eps_i K(x_i, x)."""
    rng = np.random.default_rng(0)
    points, residuals = rng.normal(size=(60, 2)), rng.normal(size=60)
    found = witness_of(residuals, points, KERNEL)
    assert residuals @ found.values / 60 == pytest.approx(aope.statistics.v_statistic(residuals, points, KERNEL), rel=1e-12)
    by_hand = [sum(residuals[i] * np.exp(-((points[i] - x) ** 2).sum()) for i in range(60)) / 60 for x in points]
    np.testing.assert_allclose(found.values, by_hand, rtol=1e-10, atol=1e-14)
    assert len(found.regions) == 3 and len(set(found.top_rows)) == 10


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (3.0, "`q` must be callable"),
        (lambda s, a: np.zeros((len(s), 2)), "`q` must give one value per row"),
        (lambda s, a: np.full(len(s), np.nan), "`values of q` has"),
        (aope.QColumns(np.zeros(3), np.zeros(3), np.zeros(3)), "Columns of q must have 2000, 2000 and 50 rows"),
    ],
)
def test_bad_estimates_are_one_sentence(q, message):
    with pytest.raises(aope.InvalidInput, match=message):
        run(aope.diagnose, q)
    with pytest.raises(aope.InvalidInput, match=message):
        run(aope.correct, q)


def test_corrections_need_a_convex_loss():
    with pytest.raises(aope.InvalidInput, match="`radius` of a correction must bound the V-statistic"):
        run(aope.correct, wrong, radius="hoeffding-u")


def test_the_radius_that_follows_the_variance_sees_far_smaller_errors():
    """The truth passes; an error that Theorem A cannot tell from chance does not."""
    small = lambda states, actions: MDP.q(states, actions) + 0.3 * np.sin(states[:, 0])  # noqa: E731
    assert run(aope.diagnose, MDP.q, **CERTIFIED).verdict is aope.bounds.EstimateVerdict.CONSISTENT
    assert run(aope.correct, MDP.q, **CERTIFIED).status is aope.bounds.CorrectionStatus.UNCHANGED
    assert run(aope.diagnose, small).verdict is aope.bounds.EstimateVerdict.CONSISTENT
    rejected = run(aope.diagnose, small, **CERTIFIED)
    assert rejected.verdict is aope.bounds.EstimateVerdict.REJECTED
    assert rejected.loss > rejected.radius.total


def test_no_smaller_change_is_consistent_at_its_own_variance():
    """The fixed point of the correction, against a search along the border of the set."""
    from scipy.optimize import minimize

    from accountable_ope.bounds.correction import allowed_loss

    correction = run(aope.correct, nothing, **CERTIFIED)
    assert correction.status is aope.bounds.CorrectionStatus.CORRECTED
    loss = correction.interval.certificates[0].statistic.v_loss()

    def excess(theta):
        return (loss(theta) - allowed_loss(correction.interval, theta)) / correction.radius.total

    assert excess(correction.theta) <= 1e-6
    assert correction.loss_after == pytest.approx(loss(correction.theta))
    best = np.inf
    for scale in (1.0, 1.05, 1.3):
        found = minimize(
            lambda t: t @ t, scale * correction.theta, constraints={"type": "ineq", "fun": lambda t: -excess(t)}, method="SLSQP"
        )
        if excess(found.x) <= 1e-6:
            best = min(best, float(np.linalg.norm(found.x)))
    assert correction.norm <= best * (1 + 5e-3)  # where U^2 bends upward, no affine bound touches it at every variance
    assert run(aope.correct, correction, **CERTIFIED).norm <= 1e-3 * correction.norm


def test_the_verdict_rejects_the_truth_no_more_often_than_delta():
    rejected = 0
    for seed in range(60):
        data = MDP.sample(np.random.default_rng([9, seed]), trajectories=6)
        rejected += run(aope.diagnose, MDP.q, data=data, **CERTIFIED).verdict is aope.bounds.EstimateVerdict.REJECTED
    assert rejected <= 15  # above 15 of 60 has a chance below 1e-3 at delta = 0.1
