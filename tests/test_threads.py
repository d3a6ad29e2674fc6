"""What threads make together is what one of them makes."""

import os
import threading
from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import threads
from accountable_ope.classes import JoinedFeatures, ScaledFeatures, Span, expected_features
from accountable_ope.classes.features import for_threads
from accountable_ope.environments import PlantedMDP
from accountable_ope.kernels import Gaussian
from accountable_ope.problem import Experience
from accountable_ope.programs import PointwiseRows
from accountable_ope.programs.ellipsoid import Ellipsoid
from accountable_ope.radii.fitted_weights import KernelFit
from accountable_ope.statistics import bellman_system
from accountable_ope.statistics.bellman import second_moments

ROWS = threads.MANY_ROWS + 1000


def with_threads(monkeypatch, count, make):
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    return make()


@pytest.fixture(scope="module")
def log():
    mdp = PlantedMDP(seed=1, features=4)
    small = mdp.sample(np.random.default_rng(0), trajectories=20)
    rows = np.resize(np.arange(len(small)), ROWS)
    states, after = small.states[rows] + 1e-6 * np.arange(ROWS)[:, None], small.next_states[rows]
    ends = np.arange(ROWS) % 7 == 0
    return mdp, aope.Transitions(states, small.actions[rows], small.rewards[rows], after, terminated=ends)


def test_blocks_come_in_order_and_the_first_error_is_raised(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    found = list(threads.by_blocks(lambda rows: (rows.start, rows.stop), ROWS, 1000))
    assert found[0] == (0, 1000) and found[-1][1] == ROWS and found == sorted(found)
    assert list(threads.by_blocks(lambda rows: rows, 0, 10)) == []

    def fail(rows):
        raise ValueError(str(rows.start))

    with pytest.raises(ValueError, match=r"^0$"):
        list(threads.by_blocks(fail, ROWS, 1000))


def test_a_map_that_does_not_say_so_is_asked_by_one_thread(monkeypatch, log):
    mdp, data = log
    asked = set()

    class Own:
        dimension, intercept = 1, True

        def __call__(self, points):
            asked.add(threading.get_ident())
            return points[:, :1]

    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    Span(Own(), True).columns(Experience(data, mdp.starts, mdp.policy, 0.9))
    assert asked == {threading.get_ident()}
    phi = aope.RandomFourier(2)
    assert for_threads(phi, mdp.features(), JoinedFeatures((phi, ScaledFeatures(phi, 2.0))))
    assert not for_threads(JoinedFeatures((phi, Own()))) and not for_threads(phi, Own())


@pytest.mark.parametrize("features", [lambda mdp: mdp.features(), lambda mdp: aope.RandomFourier(3)])
def test_a_system_is_the_same_by_any_number_of_threads(monkeypatch, log, features):
    mdp, data = log
    experience = Experience(data, mdp.starts, mdp.policy, discount=0.9)
    one, four = (with_threads(monkeypatch, k, lambda: bellman_system(experience, features(mdp))) for k in (1, 4))
    for name in ("residuals", "box_moments", "box_rows", "objective"):
        np.testing.assert_array_equal(getattr(one, name), getattr(four, name))
    scaled = replace(four, row_scale=np.linspace(0, 1, ROWS))
    plain = np.column_stack([four.residuals, four.target, np.ones(ROWS)])
    np.testing.assert_array_equal(four.columns(), plain)
    np.testing.assert_array_equal(scaled.columns(), plain * scaled.row_scale[:, None])
    phi, live = features(mdp), experience.live
    here = np.column_stack([phi(experience.points), np.ones(ROWS)])
    after = np.column_stack([expected_features(phi, data.next_states, mdp.policy), np.ones(ROWS)]) * live[:, None]
    np.testing.assert_allclose(four.residuals, here - 0.9 * after, rtol=0, atol=1e-14)


def test_second_moments_are_those_of_the_rows_that_count():
    rng = np.random.default_rng(0)
    values, anchor, of = rng.normal(size=(9000, 3)), rng.normal(size=9000), rng.uniform(size=9000) < 0.3
    u = np.column_stack([values, np.ones(9000), anchor])
    np.testing.assert_allclose(second_moments(values, anchor, None), u.T @ u / 9000, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(second_moments(values, anchor, None, of), u[of].T @ u[of] / of.sum(), rtol=1e-12, atol=1e-14)
    weights = rng.uniform(size=9000)
    np.testing.assert_allclose(second_moments(values, None, weights), (u[:, :4].T * weights) @ u[:, :4], rtol=1e-12)


def test_rows_are_the_same_by_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    features, theta = rng.normal(size=(ROWS, 8)), rng.normal(size=8)
    root = rng.normal(size=(8, 8)) * np.geomspace(1, 0.01, 8)
    spread, ellipsoid = root @ root.T, Ellipsoid(theta, np.linalg.cholesky(root @ root.T + np.eye(8)), 1.0)
    rows = PointwiseRows.within(features, -6.0, 6.0)
    exact = np.hypot(features @ theta, np.sqrt(np.einsum("ij,jk,ik->i", features, spread, features))) / 12 - 0.5
    strains = [with_threads(monkeypatch, k, lambda: rows.strain(theta, spread, above=0.1)) for k in (1, 4)]
    np.testing.assert_array_equal(*strains)
    beyond = exact > 0.1
    assert 100 < beyond.sum() < ROWS / 2 and np.array_equal(strains[0] > 0.1, beyond)
    np.testing.assert_allclose(strains[0][beyond], exact[beyond], rtol=1e-9)
    reaches = [with_threads(monkeypatch, k, lambda: ellipsoid.reach(features, np.ones(8))) for k in (1, 4)]
    np.testing.assert_array_equal(*reaches)


def test_weights_are_the_same_by_any_number_of_threads(monkeypatch, log):
    mdp, data = log
    system = bellman_system(Experience(data, mdp.starts, mdp.policy, discount=0.9), mdp.features())
    coefficients = None
    found = []
    for count in (1, 4):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        fit = KernelFit(system, Gaussian(1.0), 500)
        coefficients = np.linspace(-1, 1, fit.first.shape[1])
        weights = fit.take(system.points[500:20_000], system.residuals[500:20_000], coefficients)
        found.append((weights, fit.coefficients(system.objective)))
    for one, four in zip(*found, strict=True):
        np.testing.assert_array_equal(one, four)
    np.testing.assert_allclose(found[0][0], fit.psi(system.points[500:20_000]) @ coefficients, rtol=0, atol=1e-9)
