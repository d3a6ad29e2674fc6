"""Sums on a GPU: against float64, at sizes where a bias of the accumulators would show. Skipped where there is no device."""

from __future__ import annotations

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import Gaussian, Laplace, RandomFeatureKernel
from accountable_ope.environments import PlantedMDP
from accountable_ope.errors import AopeError
from accountable_ope.kernels import TileOptions
from accountable_ope.statistics.engines.cuda import COLUMNS, cuda_cross_sums, cuda_pair_sums, entry_error
from accountable_ope.statistics.engines.finite_rank import reduce_pairs
from accountable_ope.statistics.engines.growing import cross_sums
from accountable_ope.statistics.engines.tiles import pair_sums

try:
    import torch

    DEVICE = torch.cuda.is_available()
except ImportError:
    DEVICE = False

on_device = pytest.mark.skipif(not DEVICE, reason="needs a GPU")


def rows(n: int, k: int, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + k)
    columns = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-3, 3, size=k)
    columns[:, -1] = 1.0
    return rng.normal(size=(n, d)), columns


def off(found: np.ndarray, exact: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    """The largest error, as an error of every entry of K."""
    scale = np.abs(left).sum(axis=0)[:, None] * np.abs(right).sum(axis=0)
    return float((np.abs(found - exact) / scale).max())


@on_device
@pytest.mark.parametrize(
    ("n", "k", "d"), [(1, 1, 1), (1000, 5, 3), (5000, 17, 6), (4097, 128, 6), (3000, 200, 2), (2**14, 33, 12)]
)
def test_pairs_within_the_error_that_is_counted(n, k, d):
    x, columns = rows(n, k, d)
    kernel = Gaussian(1.3)
    found, exact = cuda_pair_sums(kernel, x, columns), pair_sums(kernel, x, columns)
    assert off(found.pair_gram, exact.pair_gram, columns, columns) <= found.kernel_error < 1e-4
    assert off(found.diag_gram, exact.diag_gram, columns, columns) < 1e-15
    assert np.linalg.norm(found.pair_gram - exact.pair_gram) <= 1e-6 * np.linalg.norm(exact.pair_gram)


@on_device
def test_no_bias_that_grows_with_the_number_of_rows():
    errors = []
    for n in (2**12, 2**14, 2**16):
        x, _ = rows(n, 2)
        ones = np.ones((n, 1))
        found, exact = cuda_pair_sums(Gaussian(1.0), x, ones), pair_sums(Gaussian(1.0), x, ones)
        errors.append(abs(float(found.pair_gram[0, 0] / exact.pair_gram[0, 0]) - 1))
    assert max(errors) < 1e-6


@on_device
def test_cross_sums():
    (x, a), (y, b) = rows(3001, 7), rows(1999, 4)
    found, exact = cuda_cross_sums(Gaussian(0.8), x, a, y, b), cross_sums(Gaussian(0.8), x, a, y, b)
    assert off(found.gram, exact.gram, a, b) <= found.kernel_error


@on_device
def test_far_points_and_padding():
    x, columns = rows(777, 3)
    found, exact = cuda_pair_sums(Gaussian(0.01), 100 + x, columns), pair_sums(Gaussian(0.01), 100 + x, columns)
    assert off(found.pair_gram, exact.pair_gram, columns, columns) <= found.kernel_error


@on_device
@pytest.mark.parametrize(("n", "k", "d"), [(2, 1, 1), (5000, 17, 6), (20_000, 33, 4)])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), RandomFeatureKernel(64, 0.7)], ids=repr)
def test_in_double_precision_it_is_off_by_as_little_as_it_says(kernel, n, k, d):
    x, columns = rows(n, k, d)
    found, exact = reduce_pairs(kernel, x, columns, TileOptions(device="cuda")), reduce_pairs(kernel, x, columns)
    assert off(found.pair_gram, exact.pair_gram, columns, columns) <= found.kernel_error + exact.kernel_error
    assert found.kernel_error < 1e-10
    assert off(found.diag_gram, exact.diag_gram, columns, columns) < 1e-15


@on_device
def test_an_interval_is_that_of_the_processor():
    mdp = PlantedMDP(seed=1, features=5, discount=0.9)
    data = mdp.sample(np.random.default_rng(0), trajectories=60)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=1.5 * mdp.norm)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    for kernel in (Gaussian(1.0), RandomFeatureKernel(64)):
        found, expected = (
            aope.evaluate(problem, features=mdp.features(), kernel=kernel, options=options).bound()
            for options in (TileOptions(device="cuda"), None)
        )
        assert found.check()
        np.testing.assert_allclose([found.lower, found.upper], [expected.lower, expected.upper], rtol=1e-6)


@on_device
def test_many_rows_go_to_the_device_unless_another_engine_is_asked_for():
    mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    data = mdp.sample(np.random.default_rng(0), trajectories=420)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm)
    setting = {"features": mdp.features(), "kernel": Gaussian(1.0), "radius": "azuma"}
    few, problem = (aope.Problem(each, mdp.starts, mdp.policy, facts) for each in (data.rows(slice(0, 500)), data))
    chosen, asked, tiles = (aope.bound_value(problem, **setting, engine=name) for name in ("auto", "cuda", "tiles"))
    assert [each.engine.name for each in (chosen, asked, tiles)] == ["cuda", "cuda", "tiles"]
    assert chosen.engine.reason == "There is a GPU, the kernel is Gaussian, and 21000 rows are many."
    assert aope.bound_value(few, **setting).engine.name == "tiles"
    for found in (chosen, asked):
        assert (found.lower, found.upper) == pytest.approx((tiles.lower, tiles.upper), rel=1e-9)


@on_device
def test_other_kernels_are_refused():
    x, columns = rows(10, 2)
    with pytest.raises(AopeError, match="Gaussian kernels and random features only"):
        cuda_pair_sums(Laplace(1.0), x, columns)


@pytest.mark.skipif(DEVICE, reason="there is a GPU")
def test_without_a_device_one_sentence():
    x, columns = rows(10, 2)
    with pytest.raises(AopeError, match='`device="cuda"` needs'):
        cuda_pair_sums(Gaussian(1.0), x, columns)


def test_the_error_that_is_counted_grows_with_what_it_counts():
    plain = entry_error(4, 5.0, (64,), 0.0)
    assert plain < entry_error(8, 5.0, (64,), 0.0) and plain < entry_error(4, 50.0, (64,), 0.0)
    assert plain < entry_error(4, 5.0, (64, 32), 0.0) and plain + 1e-6 == pytest.approx(entry_error(4, 5.0, (64,), 1e-6))
    assert plain > 2.0**-24 * COLUMNS / 64
    with pytest.raises(AopeError, match="`device` must be"):
        TileOptions(device="tpu")


@on_device
@pytest.mark.parametrize("k", [16, 32, 64, 128])
def test_a_column_of_one_large_and_many_tiny_values(k):
    x, columns = rows(2**13, k)
    columns[1:] *= 1e-7
    found, exact = cuda_pair_sums(Gaussian(1.0), x, columns), pair_sums(Gaussian(1.0), x, columns)
    assert off(found.pair_gram, exact.pair_gram, columns, columns) <= found.kernel_error
