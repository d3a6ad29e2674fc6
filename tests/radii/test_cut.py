"""The cut: predictable weights, chosen on the first rows, and evidence that says what it says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.problem.problem import Experience
from accountable_ope.radii.bounded_weights import ENOUGH, EVERY, HuberDual, Regression, bounded_weights
from accountable_ope.radii.cut import CutKind, CutQuestion, CutRun, begin_cut, choose_cut, cut_evidence
from accountable_ope.radii.earlier_rows import block_edges, earlier_rows, kernel_columns
from accountable_ope.radii.envelope import rate_mixture
from accountable_ope.radii.fitted_weights import KernelFit, fitted_weights
from accountable_ope.statistics.bellman import bellman_system

MDP = PlantedMDP(seed=1, features=5, discount=0.9, bernoulli=True)
DATA = MDP.sample(np.random.default_rng(0), trajectories=40)
KERNEL = aope.Gaussian(1.0)
OFFERED = np.random.default_rng(8).uniform(0, 3, len(DATA))


def system_of(data):
    return bellman_system(Experience(data, MDP.starts, MDP.policy, 0.9), MDP.features())


SYSTEM = system_of(DATA)
QUESTION = CutQuestion(SYSTEM, KERNEL, 3.0, 0.05, 1.5 * MDP.norm, OFFERED)


def candidates(question):
    """(width, weights) of all three, and what was chosen."""
    system, edges = question.system, block_edges(len(question.system.target), question.system.dimension)
    known = (question.step_range, question.delta, question.norm_bound)
    found = []
    for kind in CutKind:
        fit, regression = (make(system, question.kernel, edges[0]) for make in (KernelFit, Regression))
        earlier = earlier_rows(system, regression.means(regression.first), fit.first, edges, known)
        if kind is CutKind.FITTED:
            weigher = fitted_weights(system, earlier, fit)
        else:
            weigher = bounded_weights(system, earlier, regression, *([question.offered] * (kind is CutKind.OFFERED)))
        weights = CutRun(kind, weigher, system.objective, edges).take(*(each[edges[0] :] for each in rows_of(question)))
        found.append((weigher.width, np.concatenate([np.zeros(edges[0]), weights])))
    chosen = choose_cut(question)
    return [*found, ((chosen.kind, chosen.rate, chosen.predicted), chosen.weights)]


def rows_of(question):
    return question.system.points, question.system.residuals, question.offered


BEFORE = candidates(QUESTION)


@pytest.mark.parametrize("row", [101, 500, 1001, 1999])
def test_no_row_decides_its_own_weight_or_an_earlier_one(row):
    """Rewards and next states from a row on, and points, columns and offers after it, change nothing up to it, bit for bit.

    Far points are among the changes: a kernel that rounds in another way because of them would be a leak.
    """
    rng, later = np.random.default_rng(row), len(DATA) - row - 1
    points, residuals, rewards, offered = SYSTEM.points.copy(), SYSTEM.residuals.copy(), SYSTEM.rewards.copy(), OFFERED.copy()
    points[row + 1 :] = 200 * rng.normal(size=(later, points.shape[1]))
    residuals[row:] += rng.normal(size=(later + 1, residuals.shape[1]))
    rewards[row:] = rng.uniform(size=later + 1)
    offered[row + 1 :] = rng.uniform(size=later)
    changed = replace(SYSTEM, points=points, residuals=residuals, rewards=rewards, target=rewards)
    after = candidates(replace(QUESTION, system=changed, offered=offered))
    for (width, weights), (other_width, other_weights) in zip(BEFORE, after, strict=True):
        assert width == other_width  # bound, rate, prediction and choice
        np.testing.assert_array_equal(other_weights[: row + 1], weights[: row + 1])
        if row < 1999:
            assert not np.array_equal(other_weights, weights)  # and later weights do learn


def test_the_first_rows_do_decide():
    """The test above can fail: what happens in the first rows changes bounds and weights."""
    rewards = SYSTEM.rewards.copy()
    rewards[:100] = 0.5
    other = candidates(replace(QUESTION, system=replace(SYSTEM, rewards=rewards)))
    assert all(ours[0] != theirs[0] for ours, theirs in zip(BEFORE, other, strict=True))


@pytest.mark.parametrize(
    "kernel",
    [KERNEL, aope.Laplace(1.0), aope.Tabular(), aope.RandomFeatureKernel(20), aope.Product(KERNEL, aope.Tabular(), 2)],
    ids=repr,
)
def test_columns_of_a_kernel_are_its_values_whatever_the_other_points(kernel):
    points = SYSTEM.points[:50]
    expected = [[kernel.paired(x[None], c[None])[0] for c in points[:7]] for x in points]
    found = kernel_columns(kernel, points, points[:7])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    far = np.vstack([points[:30], 1e6 * points[30:]])
    np.testing.assert_array_equal(kernel_columns(kernel, far, points[:7])[:30], found[:30])


@pytest.mark.parametrize("kind", range(4))
def test_weights_are_bounded_and_the_first_rows_have_none(kind):
    weights, first = BEFORE[kind][1], block_edges(len(DATA), SYSTEM.dimension)[0]
    assert np.abs(weights).max() <= 1.0
    assert first == 100 and not weights[:first].any() and weights[first:].all()


@pytest.mark.parametrize("kind", range(4))
def test_the_weights_point_at_the_value(kind):
    """sum_i w_i Z_i is nearly along c0, so the sum of weighted residuals is nearly a multiple of an error of the value."""
    along = BEFORE[kind][1] @ SYSTEM.residuals
    cosine = along @ SYSTEM.objective / (np.linalg.norm(along) * np.linalg.norm(SYSTEM.objective))
    assert cosine > 0.99


def test_what_is_chosen_is_what_is_predicted_to_be_narrowest():
    best = int(np.argmin([width.predicted for width, _ in BEFORE[:3]]))
    (kind, rate, predicted), weights = BEFORE[3]
    assert kind is list(CutKind)[best] and predicted == BEFORE[best][0].predicted
    assert 0 < rate <= 0.97 / QUESTION.step_range and rate == BEFORE[best][0].rate
    np.testing.assert_array_equal(weights, BEFORE[best][1])


@pytest.mark.parametrize("sizes", [(1,), (7, 300), (2000,)], ids=str)
def test_rows_may_come_in_pieces_of_any_size(sizes):
    """The first rows alone begin; the weights are the same up to rounding."""
    first = slice(0, 100)
    known = replace(SYSTEM, **{name: getattr(SYSTEM, name)[first] for name in ("points", "residuals", "target", "rewards")})
    run = begin_cut(replace(QUESTION, system=known, offered=OFFERED[first]), len(DATA))
    found, start, turn = [], 100, 0
    while start < len(DATA):
        rows = slice(start, start + sizes[turn % len(sizes)])
        found.append(run.take(*(each[rows] for each in rows_of(QUESTION))))
        start, turn = rows.stop, turn + 1
    np.testing.assert_allclose(np.concatenate(found), choose_cut(QUESTION).weights[100:], rtol=1e-9, atol=1e-12)


def test_the_evidence_is_the_weighted_sum_of_residuals():
    cut = choose_cut(QUESTION)
    evidence = cut_evidence(cut.sums(SYSTEM), np.abs(cut.weights), rate_mixture(1.0, cut.count, 0.05), gap=0.2)
    theta = np.random.default_rng(2).normal(size=SYSTEM.dimension)
    residuals = SYSTEM.target - SYSTEM.residuals @ theta
    assert cut.count + cut.earlier == len(DATA)
    assert evidence.squared(theta) == pytest.approx((cut.weights @ residuals) ** 2 / cut.count**2)
    assert evidence.variance(theta) == pytest.approx((cut.weights**2 @ residuals**2) / cut.count**2)
    assert evidence.mass == pytest.approx(float(cut.weights @ cut.weights))
    np.testing.assert_array_equal(evidence.scale, np.abs(cut.weights))
    off = residuals + 0.2 * np.sign(cut.weights)
    assert abs(cut.weights @ off) / cut.count <= np.sqrt(evidence.squared(theta)) + evidence.gap[0] + 1e-12
    assert np.linalg.norm(cut.weights * off) / cut.count <= np.sqrt(evidence.variance(theta)) + evidence.gap[1] + 1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.3, 5.0), st.booleans())
def test_the_dual_of_huber_is_solved(seed, m, bound, with_offset):
    """Its gradient vanishes, also where no weights within the bound reach the aim; and no other weights do better."""
    rng = np.random.default_rng(seed)
    means, aim = rng.normal(size=(60, m)) + 0.5, 2 * rng.normal(size=m)
    offset, ridge = rng.uniform(size=60) * with_offset, 0.01 * np.eye(m)
    dual = HuberDual(means, offset, aim, bound, ridge)
    y = dual.solve()
    weights = dual.weights(y)
    np.testing.assert_allclose(aim - means.T @ weights / 60, ridge @ y, atol=1e-3 * np.linalg.norm(aim))

    def primal(w):
        missed = aim - means.T @ w / 60
        return np.mean((w - offset) ** 2) + missed @ np.linalg.solve(ridge, missed)

    for _ in range(20):
        other = np.clip(weights + rng.normal(size=60) * rng.choice([0.01, 0.3]), -bound, bound)
        assert primal(weights) <= primal(other) + 1e-3 * (1 + primal(other))


def test_without_a_bound_the_dual_is_least_squares():
    rng = np.random.default_rng(0)
    means, aim = rng.normal(size=(50, 3)), rng.normal(size=3)
    dual = HuberDual(means, np.zeros(50), aim, np.inf, np.zeros((3, 3)))
    np.testing.assert_allclose(dual.weights(dual.solve()), means @ np.linalg.solve(means.T @ means / 50, aim), rtol=1e-4)


@pytest.mark.parametrize("n", [1, 10, 19, 20, 50, 137, 5000])
@pytest.mark.parametrize("m", [1, 11, 300])
def test_blocks_cover_the_later_rows(n, m):
    edges = block_edges(n, m)
    if n < 20:
        assert edges == ()
    else:
        assert edges[-1] == n and 10 <= edges[0] <= max(10, n // 8) and (np.diff(edges) > 0).all()
        assert edges[-1] - edges[-2] <= 9  # what the last block adds by chance, none makes up for


def test_bounded_weights_are_smaller_than_fitted_ones():
    """Of the same aim: the ratio of largest to typical weight is what they are for."""
    (_, fitted), (_, bounded) = BEFORE[:2]
    assert np.abs(bounded).sum() > 1.1 * np.abs(fitted).sum()


def test_offered_weights_are_taken_where_they_know_more():
    """A bandit with many cells, two coins, few rows per cell: the ratios of probabilities are known, and fits are poor."""
    rng, cells, n = np.random.default_rng(3), 30, 750
    probabilities = np.where(np.arange(2) == 0, 0.15, 0.85) * np.ones((cells, 2))
    states, actions = rng.integers(0, cells, n), (rng.uniform(size=n) < 0.85).astype(int)
    policy = aope.DiscretePolicy(lambda s: np.tile([0.8, 0.2], (len(s), 1)), actions=2)
    features = aope.TabularFeatures.grid(np.arange(float(cells)), policy.action_vectors, intercept=False)
    data = aope.Transitions(states[:, None].astype(float), actions, rng.uniform(size=n), states[:, None].astype(float))
    starts = aope.StartStates(np.arange(float(cells))[:, None], exact=True)
    system = bellman_system(Experience(data, starts, policy, 0.0), features)
    ratios = np.array([0.8, 0.2])[actions] / probabilities[states, actions]
    without, offered = (choose_cut(CutQuestion(system, aope.Tabular(), 1.0, 0.05, None, each)) for each in (None, ratios))
    assert offered.kind is CutKind.OFFERED and offered.predicted < without.predicted

    def left_out(cut):
        reached = cut.weights @ system.residuals
        return np.linalg.norm(system.objective - reached * (reached @ system.objective) / (reached @ reached))

    assert left_out(offered) < left_out(without)
    useless = choose_cut(CutQuestion(system, aope.Tabular(), 1.0, 0.05, None, np.zeros(n)))
    np.testing.assert_array_equal(useless.weights, without.weights)


def test_small_and_odd_systems():
    """Few rows, more coefficients than first rows, equal points, columns known at the rows only, a unit vector as objective."""
    rng = np.random.default_rng(4)
    few = system_of(DATA.rows(slice(0, 50)))
    cases = [
        few,
        replace(few, points=np.ones_like(few.points)),
        replace(few, features=None),
        replace(few, features=None, objective=np.eye(few.dimension)[-1]),
        replace(few, rewards=np.zeros(50)),
    ]
    wide = rng.normal(size=(50, 40))
    cases.append(replace(few, residuals=wide, objective=wide[0], penalized=np.ones(40, dtype=bool), features=None))
    for system in cases:
        cut = choose_cut(CutQuestion(system, KERNEL, 2.0, 0.05))
        assert (
            np.isfinite(cut.weights).all() and 0 < np.abs(cut.weights).max() <= 1 and np.isfinite([cut.rate, cut.predicted]).all()
        )
    assert (
        choose_cut(CutQuestion(replace(few, objective=np.zeros(few.dimension)), KERNEL, 2.0, 0.05)) is None
    )  # nothing to aim at
    assert choose_cut(CutQuestion(replace(few, residuals=np.zeros_like(few.residuals)), KERNEL, 2.0, 0.05)) is None
    assert choose_cut(CutQuestion(system_of(DATA.rows(slice(0, 19))), KERNEL, 2.0, 0.05)) is None


def test_bad_questions_are_refused():
    for changes, words in (({"step_range": 0.0}, "step_range"), ({"delta": 1.0}, "delta"), ({"offered": np.ones(3)}, "offered")):
        with pytest.raises(aope.InvalidInput, match=words):
            replace(QUESTION, **changes)


def test_it_pays_with_noisy_rewards():
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=1.5 * MDP.norm)
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, facts)
    options = {"kernel": KERNEL, "features": MDP.features()}
    ready = aope.evaluate(problem, **options)
    plain, cut = ready.bound(planned=len(DATA)), ready.bound()
    assert cut.lower <= MDP.value <= cut.upper
    assert cut.upper - cut.lower < 0.8 * (plain.upper - plain.lower)
    assert plain.certificates[0].cut is None and cut.certificates[0].cut is not None
    assert cut.check()
    assert [one.name for one in cut.certificates[0].tightening.constraints.evidence] == ["kernel", "cut"]
    assert any("weights for later rows come from earlier ones" in line.text for line in cut.premises)


def test_a_tabular_kernel_and_unknown_episodes():
    mdp = random_tabular(3, 2, seed=4, discount=0.5, bernoulli=True)
    target = np.random.default_rng(1).dirichlet(np.ones(2), size=3)
    policy = mdp.policy(target)
    features = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=False)
    data = mdp.sample_iid(2000, np.random.default_rng(0))
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    problem = aope.Problem(data, mdp.starts(), policy, facts)
    options = {"kernel": aope.Tabular(), "features": features}
    ready = aope.evaluate(problem, **options)
    plain, cut = ready.bound(planned=len(data)), ready.bound()
    assert cut.lower <= mdp.value(target) <= cut.upper
    assert cut.upper - cut.lower < plain.upper - plain.lower


@pytest.mark.parametrize("spread", [1.0, 1e7], ids=["near", "far"])
def test_columns_of_a_gaussian_are_those_of_pairs(spread):
    rng = np.random.default_rng(3)
    points = spread * rng.normal(size=(2500, 2))
    centers = points[:30]
    for kernel in (aope.Gaussian(0.7), aope.Gaussian([0.5, 3.0])):
        found = kernel_columns(kernel, points, centers)
        wanted = np.column_stack([kernel.paired(points, np.broadcast_to(center, points.shape)) for center in centers])
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert found[3, 3] == pytest.approx(1.0)


def test_many_rows_teach_the_regression_all_at_first_and_then_one_in_eight():
    regression = Regression(SYSTEM, aope.Gaussian(1.0), 20)
    columns, Z = regression.first[np.arange(ENOUGH + 1000) % 20], np.ones((ENOUGH + 1000, SYSTEM.dimension))
    other = Regression(SYSTEM, aope.Gaussian(1.0), 20)
    regression.learn(columns, Z)
    for start in range(0, len(columns), 37_777):  # the same rows, whatever the pieces
        other.learn(columns[start : start + 37_777], Z[start : start + 37_777])
    kept = np.flatnonzero((np.arange(20, 20 + len(columns)) < ENOUGH) | (np.arange(20, 20 + len(columns)) % EVERY == 0))
    wanted = regression.first.T @ regression.first + columns[kept].T @ columns[kept]
    np.testing.assert_allclose(regression._gram, wanted, rtol=1e-9)
    np.testing.assert_allclose(other._gram, wanted, rtol=1e-9)
