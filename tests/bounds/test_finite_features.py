"""The corrected theorem on finitely many random features: its formulas, its four events, and that it says nothing with ten."""

import math

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.finite_features import enlargement
from accountable_ope.environments import PlantedMDP
from accountable_ope.kernels.kernel import block

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=20, length=50)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=0.5, reward_noise=False)


def test_formulas():
    larger = enlargement(features=100, norm_bound=2.0, coefficient_variance=9.0, kappa=0.3, discount=0.9, delta=0.05)
    assert larger.norm_bound**2 == pytest.approx(4 + math.sqrt(9 / 5))
    assert larger.slack == pytest.approx(math.sqrt(4 / 5))
    assert larger.root_radius == pytest.approx(1.9 * 0.3 * math.sqrt(4 / 5))


def test_with_ten_features_the_theorem_says_nothing():
    """rho = 400, delta = .1: the slack alone is the whole range of values, 20."""
    assert enlargement(10, 20.0, 0.0, 0.3, 0.95, 0.1).slack == pytest.approx(20.0)
    interval = bound(10)
    assert interval.status is aope.Status.VACUOUS
    assert interval.check()


def bound(features, **changes):
    options = {"assumptions": FACTS, "kernel": aope.Gaussian(1.0), "coefficient_variance": 0.1} | changes
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, options.pop("assumptions"))
    return aope.bounds.bound_by_finite_features(problem, features=aope.RandomFourier(features, 1.0, seed=7), **options)


def test_more_features_have_less_slack_and_it_is_part_of_the_interval():
    few, many = bound(500, delta=0.5), bound(1500, delta=0.5)
    assert many.certificates[0].missed < few.certificates[0].missed
    features = aope.RandomFourier(500, 1.0, seed=7)
    options = {"kernel": aope.Gaussian(1.0), "features": features, "delta": 0.5, "radius": "azuma"}
    plain = aope.bound_value(aope.Problem(DATA, MDP.starts, MDP.policy, FACTS), **options)
    assert few.unclipped[0] < plain.unclipped[0] - few.certificates[0].missed + 1e-9
    assert few.unclipped[1] > plain.unclipped[1] + few.certificates[0].missed - 1e-9
    assert any("variance of the squared coefficients" in line.text for line in few.premises)
    assert few.split.kernel == pytest.approx(0.25)


def test_the_three_events_fail_no_more_often_than_claimed():
    """A function of the RKHS given by its coefficients alpha(w): all three bounds, over many draws of the features."""
    x = np.concatenate([DATA.states, MDP.policy.action_vectors[DATA.actions]], axis=1)[:150]
    y = np.roll(x, 1, axis=0)
    K = block(aope.Gaussian(1.0), x, x)
    kappa = math.sqrt(K.sum()) / len(x)
    rng = np.random.default_rng(0)

    def alpha(w, b):
        return np.cos(w[:, 0]) + 0.5 * np.sin(b)

    w, b = rng.normal(size=(200_000, 3)), rng.uniform(0, 2 * np.pi, 200_000)
    a = alpha(w, b)
    rho, variance = float(np.mean(a**2)), float(np.var(a**2))
    m, delta, discount = 40, 0.2, 0.6
    truth = {name: np.cos(p @ w[:50_000].T + b[:50_000]) @ a[:50_000] / 50_000 for name, p in (("x", x), ("y", y))}
    larger = enlargement(m, math.sqrt(rho), variance, kappa, discount, delta)
    failures = np.zeros(3)
    for _ in range(300):
        wk, bk = rng.normal(size=(m, 3)), rng.uniform(0, 2 * np.pi, m)
        ak = alpha(wk, bk)
        approx = {name: np.cos(p @ wk.T + bk) @ ak / m for name, p in (("x", x), ("y", y))}
        error = (approx["x"] - truth["x"]) - discount * (approx["y"] - truth["y"])
        failures += [
            float(np.mean(ak**2)) > larger.norm_bound**2,
            abs(float(np.mean(approx["x"] - truth["x"]))) > larger.slack,
            math.sqrt(error @ K @ error) / len(x) > larger.root_radius,
        ]
    assert (failures <= 300 * delta).all(), failures


def test_the_approximation_may_leave_the_value_range_and_the_box_allows_for_it():
    """Q(x) = K0(x, 0), at the top of its range at the one point that is logged: half of all draws of features end above it."""
    x, facts = np.zeros((20, 1)), aope.Assumptions(0.0, (0, 1), (0, 0.5), norm_bound=math.sqrt(0.5), reward_noise=False)
    policy = aope.DeterministicPolicy(lambda states: np.zeros((len(states), 1)))
    problem = aope.Problem(aope.Transitions(x, x, np.full(20, 0.5), x), aope.StartStates([[0.0]]), policy, facts)
    outside, above, draws, delta = 0, 0, 200, 0.4
    for seed in range(draws):
        features = aope.RandomFourier(40, seed=seed, intercept=False)
        interval = aope.bounds.bound_by_finite_features(
            problem, features=features, kernel=aope.Gaussian(1.0), coefficient_variance=1 / 8, delta=delta
        )
        theta = np.cos(features.frequencies(2)[1]) / math.sqrt(40)  # alpha(w, b) = cos(b), so that E phi alpha = K0(., 0)
        constraints = interval.certificates[0].constraints
        above += float(features(np.zeros((1, 2)))[0] @ theta) > 0.5
        outside += constraints.box.quadratic(theta) > constraints.box.limit
        assert np.linalg.norm(theta) <= constraints.norm_bound and 0.5 in interval
    assert above > 0.35 * draws  # there is something to find
    assert outside <= draws * interval.split.features / 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assumptions": aope.Assumptions(discount=0.6, reward_range=(0, 1))}, "`norm_bound` must be a number here"),
        ({"coefficient_variance": -1.0}, "`coefficient_variance` must not be negative"),
        ({"radius": "hoeffding-u"}, "needs a constant radius for the V-statistic"),
        ({"delta": 2.0}, r"`delta` must be in \(0, 1\)"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(aope.InvalidInput, match=message):
        bound(10, **changes)
