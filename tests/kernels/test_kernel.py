"""Kernels against scalar functions of two points, and the rounding errors that they promise."""

from __future__ import annotations

import re

import numpy as np
import pytest

import reference
from accountable_ope import Gaussian, InvalidInput, Laplace, Product, Tabular
from accountable_ope.kernels import Kernel
from accountable_ope.kernels.kernel import block
from accountable_ope.validation import FloatArray


def points(seed: int, n: int, spread: float = 1.0) -> FloatArray:
    """States in a square and an action in {-1, 0, 1}; with a wide spread, half of the points are near another one."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.uniform(-1, 1, size=(n, 2)), rng.integers(-1, 2, size=n)])
    if spread > 1:
        x *= spread
        x[n // 2 :] = x[: n - n // 2] + rng.normal(scale=0.4, size=(n - n // 2, 3))
    return x


CASES: dict[str, tuple[Kernel, reference.ScalarKernel, FloatArray]] = {
    "gaussian": (Gaussian(0.7), reference.gaussian(0.7), points(0, 23)),
    "gaussian per dimension": (Gaussian([0.5, 1.0, 2.0]), reference.gaussian([0.5, 1.0, 2.0]), points(1, 23)),
    "gaussian far spread": (Gaussian(1.0), reference.gaussian(1.0), points(2, 23, spread=60)),
    "laplace": (Laplace(1.3), reference.laplace(1.3), points(3, 23)),
    "laplace per dimension": (Laplace([0.5, 1.0, 2.0]), reference.laplace([0.5, 1.0, 2.0]), points(4, 23)),
    "tabular": (Tabular(), reference.tabular(), np.round(points(5, 23))),
    "product": (
        Product(Gaussian(0.7), Tabular(), state_dimension=2),
        reference.product(reference.gaussian(0.7), reference.tabular(), 2),
        points(6, 23),
    ),
    "product of three": (
        Product(Product(Laplace(0.5), Gaussian(2.0), 1), Laplace(1.0), state_dimension=2),
        reference.product(reference.product(reference.laplace(0.5), reference.gaussian(2.0), 1), reference.laplace(1.0), 2),
        points(7, 23),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_block_equals_the_scalar_kernel(name: str) -> None:
    kernel, scalar, x = CASES[name]
    expected = reference.kernel_matrix(x, scalar)
    assert np.abs(block(kernel, x, x) - expected).max() <= 1e-13
    assert np.abs(block(kernel, x[:5], x[3:17]) - expected[:5, 3:17]).max() <= 1e-13


@pytest.mark.parametrize("name", CASES)
def test_diagonal_and_supremum(name: str) -> None:
    kernel, scalar, x = CASES[name]
    assert kernel.diagonal(x) == pytest.approx([scalar(one, one) for one in x], abs=1e-15)
    assert kernel.diagonal(x).max() == kernel.supremum


@pytest.mark.parametrize("name", CASES)
def test_pairs_are_entries_of_the_matrix(name: str) -> None:
    kernel, scalar, x = CASES[name]
    y = np.concatenate([x[:3], x[4:], x[:1]])
    assert kernel.paired(x, y) == pytest.approx([scalar(a, b) for a, b in zip(x, y, strict=True)], abs=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_matrix_is_symmetric_and_positive_semidefinite(name: str) -> None:
    kernel, _, x = CASES[name]
    K = block(kernel, x, x)
    assert np.abs(K - K.T).max() <= 1e-14
    assert np.linalg.eigvalsh(K)[0] >= -1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.0), Gaussian([0.5, 1.0, 2.0]), Laplace(1.0), Tabular(), Product(Gaussian(1.0), Laplace(0.5), 2)],
    ids=["gaussian", "gaussian per dimension", "laplace", "tabular", "product"],
)
def test_entry_error_bounds_the_error_of_every_entry(kernel: Kernel, spread: float, dtype: type) -> None:
    x = points(8, 120, spread) + 7.0
    expected = exact_block(kernel, x)
    prepared = kernel.prepare(x, x, dtype)
    found = np.empty((120, 120), dtype=dtype)
    prepared.fill(slice(0, 120), slice(0, 120), found)
    assert np.abs(found.astype(np.float64) - expected).max() <= prepared.entry_error


def test_entry_error_bounds_single_precision_when_points_are_a_thousand_bandwidths_apart() -> None:
    x = points(9, 120, spread=3000)
    prepared = Gaussian(1.0).prepare(x, x, np.float32)
    found = np.empty((120, 120), dtype=np.float32)
    with np.errstate(all="raise", under="ignore"):
        prepared.fill(slice(0, 120), slice(0, 120), found)
    assert np.abs(found.astype(np.float64) - exact_block(Gaussian(1.0), x)).max() <= prepared.entry_error
    assert found.max() <= 1 + prepared.entry_error


def test_entry_error_of_double_precision_is_small_for_far_spread_points() -> None:
    x = points(10, 60, spread=1e3)
    assert Gaussian(1.0).prepare(x, x, np.float64).entry_error <= 1e-11


def test_tabular_kernel_takes_minus_zero_for_zero() -> None:
    assert block(Tabular(), np.array([[0.0, 1.0]]), np.array([[-0.0, 1.0], [0.0, 2.0]])).tolist() == [[1.0, 0.0]]


def test_kernels_show_their_bandwidth() -> None:
    assert repr(Gaussian(0.5)) == "Gaussian(bandwidth=0.5)"
    assert repr(Laplace([1.0, 2.0])) == "Laplace(bandwidth=[1.0, 2.0])"


def test_bandwidth_is_a_read_only_copy() -> None:
    given = np.array([1.0, 2.0])
    kernel = Gaussian(given)
    given[0] = 5.0
    assert kernel.bandwidth.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        kernel.bandwidth[0] = 3.0


@pytest.mark.parametrize("make", [Gaussian, Laplace])
@pytest.mark.parametrize(
    ("bandwidth", "message"),
    [
        (0, "`bandwidth` must be positive. Got 0.0."),
        (-1.5, "`bandwidth` must be positive. Got -1.5."),
        ([1.0, 0.0], "`bandwidth` must be positive. Got [1.0, 0.0]."),
        ([], "`bandwidth` must be positive. Got []."),
        (float("nan"), "`bandwidth` has 1 NaN or infinite entry"),
        ([1.0, float("inf")], "`bandwidth` has 1 NaN or infinite entry, first in row 1."),
        ("wide", "`bandwidth` must be numbers of one shape. Got 'wide'."),
        ([[1.0]], "`bandwidth` must be 0-dimensional or 1-dimensional. Got an array of shape (1, 1)."),
    ],
    ids=["zero", "negative", "one zero", "none", "nan", "inf", "text", "matrix"],
)
def test_wrong_bandwidth_is_refused(make: type, bandwidth: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        make(bandwidth)


def test_bandwidth_of_another_dimension_is_refused() -> None:
    with pytest.raises(InvalidInput, match=re.escape("`bandwidth` has 2 entries, but points (s, a) have 3 columns")):
        block(Gaussian([1.0, 2.0]), np.zeros((2, 3)), np.zeros((2, 3)))


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True])
def test_wrong_state_dimension_is_refused(dimension: object) -> None:
    least = " of at least 1" if type(dimension) is int else ""
    message = f"`state_dimension` must be a whole number{least}. Got {dimension!r}."
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Product(Gaussian(), Gaussian(), dimension)  # type: ignore[arg-type]


def test_product_needs_columns_for_the_action() -> None:
    with pytest.raises(InvalidInput, match=re.escape("`state_dimension` of Product is 2, but points have only 2 columns.")):
        block(Product(Gaussian(), Gaussian(), 2), np.zeros((2, 2)), np.zeros((2, 2)))


def exact_block(kernel: Kernel, x: FloatArray) -> FloatArray:
    """By differences in double precision, without the tiles."""
    if isinstance(kernel, Product):
        d = kernel.state_dimension
        return exact_block(kernel.state_kernel, x[:, :d]) * exact_block(kernel.action_kernel, x[:, d:])
    if isinstance(kernel, Tabular):
        return (x[:, None] == x[None]).all(axis=2).astype(float)
    difference = (x[:, None] - x[None]) / kernel.bandwidth
    power = difference**2 if isinstance(kernel, Gaussian) else np.abs(difference)
    return np.exp(-power.sum(axis=2))
