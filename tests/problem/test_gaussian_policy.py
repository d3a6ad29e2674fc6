"""Normal actions: closed forms against Monte Carlo, an interval with a known truth, and no draws anywhere."""

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes import ActionFourier, expected_features
from accountable_ope.classes.sections import Sections, inner_products
from accountable_ope.errors import InvalidInput
from accountable_ope.kernels.kernel import block
from accountable_ope.problem import taken_probabilities

COVARIANCE = np.array([[0.30, 0.10], [0.10, 0.20]])
DRAWS = 50_000


def mean(states):
    return np.column_stack([0.5 * states[:, 0], states[:, 0] - states[:, 1]])


POLICY = aope.GaussianPolicy(mean, COVARIANCE)
STATES = np.array([[0.2, -0.4], [1.0, 0.7]])


def drawn(state, seed=0):
    """Many points (s, a) at one state."""
    noise = np.random.default_rng(seed).multivariate_normal(np.zeros(2), COVARIANCE, size=DRAWS)
    return np.concatenate([np.tile(state, (DRAWS, 1)), mean(state[None]) + noise], axis=1)


@pytest.mark.parametrize("features", [aope.RandomFourier(40, bandwidth=0.8), ActionFourier(40, [0.8, 1.0, 0.6, 1.5])])
def test_cosines_have_their_means_in_closed_form(features):
    exact = expected_features(features, STATES, POLICY)
    for row, state in enumerate(STATES):
        values = features(drawn(state))
        error = values.std(axis=0) / np.sqrt(DRAWS)
        assert (np.abs(exact[row] - values.mean(axis=0)) < 5 * error).all()
        assert error.max() < 1e-3  # so that the comparison says something
    at_the_mean = features(np.concatenate([STATES, mean(STATES)], axis=1))
    assert np.abs(exact - at_the_mean).max() > 0.02


@pytest.mark.parametrize(
    "kernel",
    [aope.Gaussian(0.9), aope.Gaussian([0.5, 1.0, 0.7, 1.4]), aope.Product(aope.Laplace(1.0), aope.Gaussian([0.7, 1.4]), 2)],
)
def test_gaussian_sections_have_their_products_in_closed_form(kernel):
    means = np.concatenate([STATES, mean(STATES)], axis=1)
    over = Sections(((means, np.ones(2)),), 2, (True,), COVARIANCE)
    known = Sections(((means[::-1].copy(), np.ones(2)),), 2)
    first, second = drawn(STATES[0], seed=1), drawn(STATES[1], seed=2)
    one = block(kernel, first, means)
    assert np.allclose(inner_products(kernel, over, known)[0], one.mean(axis=0)[::-1], atol=5 / np.sqrt(DRAWS))
    both = kernel.paired(first, second)
    assert inner_products(kernel, over, over)[0, 1] == pytest.approx(both.mean(), abs=5 * both.std() / np.sqrt(DRAWS))
    itself = kernel.paired(first, drawn(STATES[0], seed=3))
    assert over.squared_norms(kernel)[0] == pytest.approx(itself.mean(), abs=5 * itself.std() / np.sqrt(DRAWS))
    assert np.allclose(over.squared_norms(kernel), np.diag(inner_products(kernel, over, over)))
    assert abs(over.squared_norms(kernel)[0] - 1) > 0.05  # a point without chance has norm one


def planted(rows, seed, discount=0.5):
    """Rewards that make a known theta'phi the Q of the policy: r = Q(x) - discount E Q(s', a') + noise."""
    rng = np.random.default_rng(seed)
    features = aope.RandomFourier(6, bandwidth=1.0, seed=4)
    theta = np.append(0.4 * np.array([1.0, -1.0, 0.5, 0.8, -0.6, 0.3]), 0.5)
    states, actions = rng.uniform(-1, 1, (rows, 2)), rng.normal(size=(rows, 2))
    after = np.clip(0.5 * states + 0.2 * actions + rng.uniform(-0.5, 0.5, (rows, 2)), -1, 1)
    q = aope.LinearQ(features, theta)
    onward = expected_features(features, after, POLICY) @ theta[:-1] + theta[-1]
    rewards = q(states, actions) - discount * onward + rng.uniform(-0.05, 0.05, rows)
    starts = aope.StartStates(rng.uniform(-1, 1, (5, 2)))
    truth = float((expected_features(features, starts.states, POLICY) @ theta[:-1] + theta[-1]).mean())
    facts = aope.Assumptions(discount=discount, reward_range=(-2, 2), norm_bound=1.0, terminates=False)
    return aope.Transitions(states, actions, rewards, after), starts, facts, features, q, truth


def no_draws(*_, **__):
    raise AssertionError("something was drawn")


@pytest.fixture
def refused_draws(monkeypatch):
    """Whatever draws an action fails."""
    monkeypatch.setattr(aope.SampledPolicy, "branches", no_draws)
    monkeypatch.setattr(aope.GaussianPolicy, "sampled", no_draws)
    monkeypatch.setattr(aope.GaussianPolicy, "branches", no_draws)


@pytest.mark.parametrize("seed", range(3))
def test_an_interval_holds_the_truth_and_nothing_is_drawn(seed, refused_draws):
    data, starts, facts, features, q, truth = planted(400, seed)
    problem = aope.Problem(data, starts, POLICY, facts)
    interval = aope.bound_value(problem, features=features, kernel=aope.Gaussian(1.0))
    assert truth in interval
    assert interval.check()
    assert interval.start_error == 0.0
    assert interval.width < 4.0  # of the 8 that the rewards allow
    assert aope.diagnose(q, problem, features=features, kernel=aope.Gaussian(1.0)).verdict.name == "CONSISTENT"
    wrong = aope.LinearQ(features, np.append(q.theta[:-1], 2.0))
    assert aope.diagnose(wrong, problem, features=features, kernel=aope.Gaussian(1.0)).verdict.name == "REJECTED"


def test_a_whole_rkhs_and_draws_agree(refused_draws, monkeypatch):
    data, starts, facts, _, _, _ = planted(60, 0)
    sections = aope.KernelSections(aope.Gaussian(1.5), landmarks=None)
    problem = aope.Problem(data, starts, POLICY, facts)
    assert aope.bound_value(problem, features=sections, kernel=aope.Gaussian(1.0), radius="azuma").check()
    exact = sections.columns(problem.experience)
    monkeypatch.undo()
    drawn = sections.columns(aope.Problem(data, starts, POLICY.sampled(draws=200), facts).experience)
    # Coordinates are those of another basis: what they say are the products of what they stand for.
    for one, other in ((exact.after, drawn.after), (exact.here, drawn.here)):
        assert np.allclose(one @ one.T, other @ other.T, atol=0.1)
    assert np.allclose(exact.after @ exact.here.T, drawn.after @ drawn.here.T, atol=0.1)
    assert np.allclose(exact.start @ exact.here.T, drawn.start @ drawn.here.T, atol=0.1)


def test_a_covariance_of_zero_is_the_deterministic_policy():
    data, starts, facts, features, _, _ = planted(150, 1)
    kernel = aope.Gaussian(1.0)
    for space in (features, aope.KernelSections(aope.Gaussian(1.5), landmarks=40)):
        ends = [
            aope.bound_value(aope.Problem(data, starts, policy, facts), features=space, kernel=kernel, radius="azuma")
            for policy in (aope.GaussianPolicy(mean, np.zeros((2, 2))), aope.DeterministicPolicy(mean))
        ]
        assert ends[0].lower == pytest.approx(ends[1].lower, abs=1e-6)
        assert ends[0].upper == pytest.approx(ends[1].upper, abs=1e-6)


def test_the_density_is_that_of_a_normal():
    from scipy.stats import multivariate_normal

    data, *_ = planted(5, 0)
    wanted = [multivariate_normal(mean(s[None])[0], COVARIANCE).pdf(a) for s, a in zip(data.states, data.actions, strict=True)]
    assert np.allclose(taken_probabilities(POLICY, data), wanted)


def test_what_has_no_closed_form_is_told_to_draw():
    data, starts, facts, _, _, _ = planted(150, 0)
    problem = aope.Problem(data, starts, POLICY, facts)
    neural = aope.NeuralFeatures((np.ones((3, 4)),), (np.zeros(3),), np.ones(3))
    for space in (neural, aope.KernelSections(aope.Laplace(1.0), landmarks=20)):
        with pytest.raises(InvalidInput, match=r"policy\.sampled"):
            aope.bound_value(problem, features=space, kernel=aope.Gaussian(1.0))
    with pytest.raises(InvalidInput, match=r"policy\.sampled"):
        aope.diagnose(lambda s, a: np.zeros(len(s)), problem, features=aope.RandomFourier(5), kernel=aope.Gaussian(1.0))
    with pytest.raises(InvalidInput, match=r"policy\.sampled"):
        aope.bound_value(problem.assuming(replace(facts, norm_bound=None)))


@pytest.mark.parametrize(
    ("covariance", "words"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "negative in any direction"),
        ([[1.0, 2.0]], "square"),
        (-1.0, "negative in any direction"),
        (float("nan"), "NaN"),
    ],
)
def test_what_is_no_covariance_is_refused(covariance, words):
    with pytest.raises(InvalidInput, match=words):
        aope.GaussianPolicy(mean, covariance)


def test_means_of_another_width_are_refused():
    with pytest.raises(InvalidInput, match="1-d actions, but the policy's means have 2"):
        aope.GaussianPolicy(mean, 0.1).means(STATES)
