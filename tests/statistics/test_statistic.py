"""The statistic against double loops: every kernel, any tiles, any number of threads, and the invariants of the formula."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reference
from accountable_ope import (
    DiscretePolicy,
    Gaussian,
    InvalidFile,
    InvalidInput,
    Laplace,
    Product,
    RandomFourier,
    StartStates,
    Tabular,
    Transitions,
)
from accountable_ope.kernels import Kernel, TileOptions
from accountable_ope.kernels.kernel import block
from accountable_ope.problem.problem import Experience
from accountable_ope.statistics import (
    BellmanSystem,
    KernelStatistic,
    bellman_system,
    kernel_statistic,
    kernel_statistics,
    u_statistic,
    v_statistic,
)
from accountable_ope.statistics.engines.finite_rank import reduce_pairs
from accountable_ope.statistics.engines.tiles import pair_sums
from accountable_ope.validation import FloatArray

KERNELS: dict[str, tuple[Kernel, reference.ScalarKernel]] = {
    "gaussian": (Gaussian(1.0), reference.gaussian(1.0)),
    "gaussian per dimension": (Gaussian([0.5, 1.0, 2.0]), reference.gaussian([0.5, 1.0, 2.0])),
    "gaussian far spread": (Gaussian(0.02), reference.gaussian(0.02)),
    "laplace": (Laplace(1.3), reference.laplace(1.3)),
    "tabular": (Tabular(), reference.tabular()),
    "product": (
        Product(Gaussian(0.7), Tabular(), state_dimension=2),
        reference.product(reference.gaussian(0.7), reference.tabular(), 2),
    ),
}
TILES = [(1, 1), (1, 3), (2, 2), (3, 1), (3, 2), (5, 7), (16, 64), (37, 37), (64, 8), (256, 512)]


def points_for(name: str, n: int) -> FloatArray:
    """States in a square and an action in {-1, 0, 1}; near pairs for the narrow kernel, repetitions for the tabular one."""
    rng = np.random.default_rng(n)
    x = np.column_stack([rng.uniform(-1, 1, size=(n, 2)), rng.integers(-1, 2, size=n)])
    if name == "gaussian far spread":
        x[n // 2 :] = x[: n - n // 2] + rng.normal(scale=0.01, size=(n - n // 2, 3))
    return np.round(x) if name == "tabular" else x


def columns_for(n: int) -> FloatArray:
    rng = np.random.default_rng(n + 1)
    return np.column_stack([rng.normal(size=(n, 4)), rng.uniform(size=n), np.ones(n)])


@cache
def grams(name: str, n: int) -> tuple[FloatArray, FloatArray]:
    points, columns, scalar = points_for(name, n), columns_for(n), KERNELS[name][1]
    return reference.pair_gram(columns, points, scalar), reference.diag_gram(columns, points, scalar)


def relative_error(found: FloatArray, expected: FloatArray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_far_spread_points_take_differences_and_the_others_a_product() -> None:
    names = {name: type(KERNELS[name][0].prepare(x, x, np.float64)).__name__ for name in KERNELS for x in [points_for(name, 37)]}
    assert names["gaussian far spread"] == "DifferenceTiles"
    assert names["gaussian"] == names["gaussian per dimension"] == "ExponentTiles"


@pytest.mark.parametrize("tiles", TILES, ids=lambda tiles: "x".join(map(str, tiles)))
@pytest.mark.parametrize("name", KERNELS)
def test_grams_equal_double_loops_for_any_tiles(name: str, tiles: tuple[int, int]) -> None:
    pair, diag = grams(name, 37)
    sums = pair_sums(KERNELS[name][0], points_for(name, 37), columns_for(37), TileOptions(*tiles))
    assert relative_error(sums.pair_gram, pair) <= 1e-12
    assert relative_error(sums.diag_gram, diag) <= 1e-12
    assert np.array_equal(sums.pair_gram, sums.pair_gram.T)
    assert np.array_equal(sums.diag_gram, sums.diag_gram.T)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "gaussian far spread"])
def test_single_precision_is_seven_digits(name: str) -> None:
    """Far-spread points are left to the bound below: their squares cancel."""
    expected = grams(name, 150)
    sums = pair_sums(KERNELS[name][0], points_for(name, 150), columns_for(150), TileOptions(16, 32, single_precision=True))
    assert relative_error(sums.pair_gram, expected[0]) <= 1e-7
    assert relative_error(sums.diag_gram, expected[1]) <= 1e-12


@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_error_bounds_entries_and_sums(name: str, single: bool) -> None:
    kernel, scalar = KERNELS[name]
    x, columns = points_for(name, 150), columns_for(150)
    options = TileOptions(16, 32, single_precision=single)
    sums = pair_sums(kernel, x, columns, options)
    entries = np.empty((150, 150), dtype=options.dtype)
    kernel.prepare(x, x, options.dtype).fill(slice(0, 150), slice(0, 150), entries)
    assert np.abs(entries - reference.kernel_matrix(x, scalar)).max() <= sums.kernel_error
    mass = np.abs(columns).sum(axis=0)
    assert (np.abs(sums.pair_gram - grams(name, 150)[0]) <= sums.kernel_error * np.outer(mass, mass)).all()
    assert sums.kernel_error <= (1e-2 if single else 1e-11)


@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("name", KERNELS)
def test_result_does_not_depend_on_the_number_of_threads(name: str, single: bool) -> None:
    x, columns = points_for(name, 150), columns_for(150)
    one, two, five = (
        pair_sums(KERNELS[name][0], x, columns, TileOptions(16, 32, threads=threads, single_precision=single))
        for threads in (1, 2, 5)
    )
    for other in (two, five):
        assert np.array_equal(one.pair_gram, other.pair_gram)
        assert np.array_equal(one.diag_gram, other.diag_gram)
        assert one.kernel_error == other.kernel_error


@pytest.mark.parametrize("rows", [1, 5, 36, 37, 256])
def test_progress_grows_to_one(rows: int) -> None:
    seen: list[float] = []
    pair_sums(Gaussian(), points_for("gaussian", 37), columns_for(37), TileOptions(rows, 8), seen.append)
    assert len(seen) == -(-37 // rows)
    assert seen[-1] == 1.0
    assert all(0 < a < b for a, b in pairwise(seen))


def test_a_kernel_of_finite_rank_takes_one_pass_over_the_rows() -> None:
    seen: list[float] = []
    x, columns = points_for("tabular", 150), columns_for(150)
    found = reduce_pairs(Tabular(), x, columns, None, seen.append)
    by_tiles = pair_sums(Tabular(), x, columns)
    pair, diag = grams("tabular", 150)
    assert relative_error(found.pair_gram, pair) <= 1e-12
    assert relative_error(found.diag_gram, diag) <= 1e-12
    mass = np.abs(columns).sum(axis=0)
    assert (np.abs(found.pair_gram - by_tiles.pair_gram) <= found.kernel_error * np.outer(mass, mass)).all()
    assert seen == [1.0]


def test_other_kernels_take_the_pass_over_pairs() -> None:
    x, columns = points_for("product", 37), columns_for(37)
    for name in ("gaussian", "laplace", "product"):
        kernel = KERNELS[name][0]
        assert np.array_equal(reduce_pairs(kernel, x, columns).pair_gram, pair_sums(kernel, x, columns).pair_gram)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "`rows` must be a whole number of at least 1. Got 0."),
        ({"columns": 0}, "`columns` must be a whole number of at least 1. Got 0."),
        ({"threads": 0}, "`threads` must be a whole number of at least 1. Got 0."),
        ({"threads": -1}, "`threads` must be a whole number of at least 1. Got -1."),
        ({"rows": 2.5}, "`rows` must be a whole number. Got 2.5."),
    ],
    ids=["no rows", "no columns", "no threads", "negative threads", "half a row"],
)
def test_wrong_tile_options_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        TileOptions(**changes)


@pytest.mark.parametrize("name", KERNELS)
def test_statistics_equal_double_loops(name: str) -> None:
    kernel, scalar = KERNELS[name]
    x = points_for(name, 37)
    residuals = np.random.default_rng(5).normal(size=37)
    scale = float(np.abs(residuals).sum() ** 2) / 37**2
    assert v_statistic(residuals, x, kernel) == pytest.approx(reference.v_statistic(residuals, x, scalar), abs=1e-12 * scale)
    assert u_statistic(residuals, x, kernel) == pytest.approx(reference.u_statistic(residuals, x, scalar), abs=1e-12 * scale)


# The statistic of a system.


def system(seed: int = 0, n: int = 40, reward_scale: float = 1.0, features: int = 4) -> BellmanSystem:
    rng = np.random.default_rng(seed)
    data = Transitions(
        rng.uniform(-1, 1, size=(n, 2)),
        rng.integers(0, 2, size=n),
        reward_scale * rng.uniform(size=n),
        rng.uniform(-1, 1, size=(n, 2)),
        terminated=rng.uniform(size=n) < 0.1,
    )
    policy = DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), [[-1.0], [1.0]])
    return bellman_system(
        Experience(data, StartStates(rng.uniform(-1, 1, size=(3, 2))), policy, 0.9), RandomFourier(features, seed=seed)
    )


def test_losses_are_the_statistics_of_the_residuals() -> None:
    one = system()
    statistic = kernel_statistic(one, Gaussian(0.7))
    rng = np.random.default_rng(1)
    for _ in range(5):
        theta = rng.normal(size=one.dimension)
        residuals = one.target - one.residuals @ theta
        scalar = reference.gaussian(0.7)
        assert statistic.v_loss()(theta) == pytest.approx(reference.v_statistic(residuals, one.points, scalar), rel=1e-11)
        assert statistic.u_loss()(theta) == pytest.approx(reference.u_statistic(residuals, one.points, scalar), rel=1e-10)


def test_statistic_knows_its_count_scale_and_kappa() -> None:
    one = system()
    statistic = kernel_statistic(one, Gaussian(0.7))
    assert statistic.count == 40
    assert statistic.dimension == one.dimension == 5
    assert statistic.kernel_supremum == 1.0
    assert statistic.column_scale == pytest.approx([float(np.sqrt(np.mean(c**2))) for c in one.columns().T], rel=1e-14)
    K = reference.kernel_matrix(one.points, reference.gaussian(0.7))
    assert statistic.kappa == pytest.approx(np.sqrt(K.sum()) / 40, rel=1e-12)


def test_several_classes_share_one_pass() -> None:
    first, second = system(features=3), system(features=6)
    together = kernel_statistics([first, second], Gaussian(0.7))
    apart = [kernel_statistic(one, Gaussian(0.7)) for one in (first, second)]
    for a, b in zip(together, apart, strict=True):
        assert relative_error(a.pair_gram, b.pair_gram) <= 1e-13
        assert relative_error(a.diag_gram, b.diag_gram) <= 1e-13
        assert a.column_scale == pytest.approx(b.column_scale, rel=1e-14)
        assert (a.count, a.kernel_error) == (b.count, b.kernel_error)


def test_progress_and_options_reach_the_pass() -> None:
    seen: list[float] = []
    single = kernel_statistic(system(), Gaussian(0.7), TileOptions(8, 8, single_precision=True), seen.append)
    double = kernel_statistic(system(), Gaussian(0.7))
    assert seen[-1] == 1.0
    assert len(seen) == 5
    assert single.kernel_error > 1e6 * double.kernel_error
    assert 0 < relative_error(single.pair_gram, double.pair_gram) <= 1e-6


def test_statistic_survives_a_file(tmp_path: Path) -> None:
    statistic = kernel_statistic(system(), Gaussian(0.7))
    statistic.save(tmp_path / "one.npz")
    again = KernelStatistic.load(tmp_path / "one.npz")
    for name in ("pair_gram", "diag_gram", "column_scale"):
        assert np.array_equal(getattr(again, name), getattr(statistic, name))
    assert (again.count, again.kernel_supremum, again.kernel_error) == (
        statistic.count,
        statistic.kernel_supremum,
        statistic.kernel_error,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def saved(path: Path) -> bytes:
    kernel_statistic(system(), Gaussian(0.7)).save(path)
    return path.read_bytes()


def write_truncated(path: Path) -> None:
    path.write_bytes(saved(path)[:500])


def write_array(path: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))


def write_other_names(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez(file, something=np.zeros(3))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: None,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("hello"),
        write_other_names,
        write_truncated,
        write_array,
    ],
    ids=["missing", "empty", "text", "other names", "truncated", "plain array"],
)
def test_a_file_that_is_no_statistic_is_refused(write: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "statistic.npz"
    write(path)
    with pytest.raises(InvalidFile, match=re.escape(f"{path} is not a saved KernelStatistic")):
        KernelStatistic.load(path)


@pytest.mark.parametrize(
    ("residuals", "points", "message"),
    [
        (np.zeros(3), np.zeros((2, 1)), "`residuals` must have one entry per point, at least two. Got 3 and 2."),
        (np.zeros(1), np.zeros((1, 1)), "`residuals` must have one entry per point, at least two. Got 1 and 1."),
        (np.array([0.0, np.nan]), np.zeros((2, 1)), "`residuals` has 1 NaN or infinite entry, first in row 1."),
        (np.zeros(2), np.array([[0.0], [np.inf]]), "`points` has 1 NaN or infinite entry, first in row 1."),
    ],
    ids=["rows", "one point", "residuals nan", "points inf"],
)
def test_wrong_residuals_are_refused(residuals: FloatArray, points: FloatArray, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        v_statistic(residuals, points, Gaussian())
    with pytest.raises(InvalidInput, match=re.escape(message)):
        u_statistic(residuals, points, Gaussian())


# Invariants.

invariant = settings(max_examples=40, deadline=None, derandomize=True)
finite = st.floats(-10, 10, allow_subnormal=False)
any_kernel = st.sampled_from(
    [Gaussian(0.8), Gaussian([0.5, 2.0]), Laplace(1.0), Tabular(), Product(Laplace(0.5), Gaussian(1.0), 1)]
)


@st.composite
def residuals_and_points(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    n = draw(st.integers(2, 12))
    return draw(arrays(np.float64, n, elements=finite)), draw(arrays(np.float64, (n, 2), elements=finite))


def size(residuals: FloatArray) -> float:
    """What a sum of |eps_i eps_j| / n^2 over all pairs can reach."""
    return float(np.abs(residuals).sum() ** 2) / len(residuals) ** 2


@invariant
@given(case=residuals_and_points(), kernel=any_kernel, seed=st.integers(0, 1000))
def test_rows_may_come_in_any_order(case: tuple[FloatArray, FloatArray], kernel: Kernel, seed: int) -> None:
    residuals, points = case
    order = np.random.default_rng(seed).permutation(len(points))
    for statistic in (v_statistic, u_statistic):
        moved = statistic(residuals[order], points[order], kernel)
        assert moved == pytest.approx(statistic(residuals, points, kernel), abs=1e-12 * size(residuals))


@invariant
@given(case=residuals_and_points(), kernel=any_kernel, factor=st.floats(-1e6, 1e6, allow_subnormal=False))
def test_statistics_are_quadratic_in_the_residuals(case: tuple[FloatArray, FloatArray], kernel: Kernel, factor: float) -> None:
    residuals, points = case
    for statistic in (v_statistic, u_statistic):
        scaled = statistic(factor * residuals, points, kernel)
        expected = factor**2 * statistic(residuals, points, kernel)
        assert scaled == pytest.approx(expected, abs=1e-12 * factor**2 * size(residuals))


@invariant
@given(case=residuals_and_points(), kernel=any_kernel)
def test_v_statistic_is_not_negative(case: tuple[FloatArray, FloatArray], kernel: Kernel) -> None:
    residuals, points = case
    assert v_statistic(residuals, points, kernel) >= -1e-12 * size(residuals)


@invariant
@given(case=residuals_and_points(), kernel=any_kernel)
def test_v_is_u_with_the_diagonal(case: tuple[FloatArray, FloatArray], kernel: Kernel) -> None:
    residuals, points = case
    n = len(points)
    diagonal = float(residuals**2 @ kernel.diagonal(points)) / n**2
    expected = (n - 1) / n * u_statistic(residuals, points, kernel) + diagonal
    assert v_statistic(residuals, points, kernel) == pytest.approx(expected, abs=1e-12 * size(residuals))


@invariant
@given(case=residuals_and_points(), kernel=any_kernel, extra=st.integers(1, 5), seed=st.integers(0, 1000))
def test_more_columns_do_not_change_the_first_ones(
    case: tuple[FloatArray, FloatArray], kernel: Kernel, extra: int, seed: int
) -> None:
    residuals, points = case
    more = np.random.default_rng(seed).normal(size=(len(points), extra))
    narrow = pair_sums(kernel, points, residuals[:, None])
    wide = pair_sums(kernel, points, np.column_stack([residuals, more]))
    tolerance = 1e-12 * size(residuals) * len(points) ** 2
    assert wide.pair_gram[0, 0] == pytest.approx(narrow.pair_gram[0, 0], abs=tolerance)
    assert wide.diag_gram[0, 0] == pytest.approx(narrow.diag_gram[0, 0], abs=tolerance)
    assert wide.kernel_error == narrow.kernel_error


@invariant
@given(factor=st.floats(1e-6, 1e6), seed=st.integers(0, 20))
def test_rewards_in_another_unit_scale_the_target_column(factor: float, seed: int) -> None:
    one = kernel_statistic(system(seed, n=12), Gaussian(0.7))
    other = kernel_statistic(system(seed, n=12, reward_scale=factor), Gaussian(0.7))
    scale = np.array([1.0] * one.dimension + [factor, 1.0])
    largest = np.sqrt(np.diagonal(one.pair_gram)) * scale
    for name in ("pair_gram", "diag_gram"):
        error = np.abs(getattr(other, name) - scale[:, None] * getattr(one, name) * scale)
        assert (error <= 1e-12 * np.outer(largest, largest) * one.count).all(), name


def test_the_block_of_a_kernel_gives_the_same_statistic() -> None:
    rng = np.random.default_rng(0)
    x, residuals = rng.normal(size=(300, 3)), rng.normal(size=300)
    expected = float(residuals @ block(Gaussian(0.9), x, x) @ residuals) / 300**2
    assert v_statistic(residuals, x, Gaussian(0.9)) == pytest.approx(expected, rel=1e-12)
