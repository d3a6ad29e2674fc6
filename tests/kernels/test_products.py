"""Products with a kernel matrix against the matrix itself, and few features against tiles."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from accountable_ope import Gaussian, Laplace, Product, RandomFeatureKernel, Tabular
from accountable_ope.kernels import Kernel, TileOptions
from accountable_ope.kernels.kernel import FiniteRank, block
from accountable_ope.kernels.products import kernel_product, part_of
from accountable_ope.validation import FloatArray


def grid_points(n: int, seed: int) -> FloatArray:
    """Points that repeat."""
    return np.random.default_rng(seed).integers(0, 4, size=(n, 3)).astype(np.float64)


def some_columns(n: int, k: int = 3) -> FloatArray:
    return np.random.default_rng(9).normal(size=(n, k))


KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(1.3),
    "laplace": Laplace([1.0, 2.0, 0.7]),
    "tabular": Tabular(),
    "product": Product(Gaussian(1.0), Tabular(), 2),
    "random features": RandomFeatureKernel(5, 1.0, 3),
}


@pytest.mark.parametrize("options", [None, TileOptions(7, 5), TileOptions(5, 7, threads=1)])
@pytest.mark.parametrize("name", KERNELS)
def test_the_product_is_that_of_the_matrix(name: str, options: TileOptions | None) -> None:
    x, at, columns = grid_points(43, 0), grid_points(16, 1), some_columns(43)
    kernel = KERNELS[name]
    np.testing.assert_allclose(kernel_product(kernel, x, columns, options), block(kernel, x, x) @ columns, atol=1e-12)
    np.testing.assert_allclose(kernel_product(kernel, x, columns, options, at=at), block(kernel, at, x) @ columns, atol=1e-12)
    single = kernel_product(kernel, x, columns[:, 0], options, at=at)
    assert single.shape == (16,)
    np.testing.assert_allclose(single, block(kernel, at, x) @ columns[:, 0], atol=1e-12)


def test_the_product_is_the_double_loop() -> None:
    x, columns = grid_points(20, 2), some_columns(20, 2)
    K = reference.kernel_matrix(x, reference.gaussian(0.8))
    np.testing.assert_allclose(kernel_product(Gaussian(0.8), x, columns), K @ columns, atol=1e-13)


def test_single_precision_is_close_and_not_double() -> None:
    x, columns = np.random.default_rng(4).normal(size=(60, 3)), some_columns(60)
    exact = kernel_product(Gaussian(1.0), x, columns)
    rough = kernel_product(Gaussian(1.0), x, columns, TileOptions(single_precision=True))
    assert 0 < np.abs(rough - exact).max() < 1e-4


@pytest.mark.parametrize("single", [False, True])
def test_the_product_does_not_depend_on_the_number_of_threads(single: bool) -> None:
    x, columns = np.random.default_rng(5).normal(size=(400, 3)), some_columns(400)
    found = [kernel_product(Gaussian(1.0), x, columns, TileOptions(32, 16, threads, single)) for threads in (1, 2, 5)]
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


@pytest.mark.parametrize("name", ["tabular", "random features"])
def test_few_features_are_those_of_the_matrix(name: str) -> None:
    kernel, x, columns = KERNELS[name], grid_points(50, 6), some_columns(50)
    assert isinstance(kernel, FiniteRank)
    weights = np.random.default_rng(7).uniform(size=50)
    psi = kernel.expand(x, np.eye(kernel.rank(x)))
    np.testing.assert_allclose(psi @ psi.T, block(kernel, x, x), atol=1e-12)
    np.testing.assert_allclose(kernel.project(x, columns), psi.T @ columns, atol=1e-12)
    np.testing.assert_allclose(kernel.gram(x), psi.T @ psi, atol=1e-12)
    np.testing.assert_allclose(kernel.gram(x, weights), psi.T @ (psi * weights[:, None]), atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_progress_reaches_one(name: str) -> None:
    told: list[float] = []
    kernel_product(KERNELS[name], grid_points(40, 8), some_columns(40), TileOptions(7, 5), part_of(told.append, 0.5, 1.0))
    assert told == sorted(told) and told[-1] == 1.0 and told[0] > 0.5
