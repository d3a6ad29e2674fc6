"""Sections with many actions: fast inner products against sums over all pairs of branches, for every kernel and policy."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes import sections as sections_module
from accountable_ope.classes.bundles import factors
from accountable_ope.classes.sections import Sections, inner_products, products_with_mean
from accountable_ope.problem.problem import Experience

RNG = np.random.default_rng(0)
STATES, NEXT = RNG.normal(size=(2, 40, 2))
VECTORS = RNG.normal(size=(4, 2))
TILT = RNG.normal(size=(2, 4))


def probabilities(states: np.ndarray) -> np.ndarray:
    raised = np.exp(states @ TILT)
    return raised / raised.sum(axis=1, keepdims=True)


KERNELS = {
    "gaussian": aope.Gaussian(1.3),
    "gaussian, a bandwidth per column": aope.Gaussian([0.7, 1.1, 2.0, 3.0]),
    "laplace": aope.Laplace(1.2),
    "laplace, a bandwidth per column": aope.Laplace([0.7, 1.1, 2.0, 3.0]),
    "tabular": aope.Tabular(),
    "product": aope.Product(aope.Gaussian(1.0), aope.Laplace(2.0), 2),
    "product that splits elsewhere": aope.Product(aope.Gaussian(1.0), aope.Laplace(2.0), 3),
    "random features": aope.RandomFeatureKernel(30),
}


def onward(policy: aope.problem.Policy, states: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return tuple((np.concatenate([states, b.actions], axis=1), b.weights) for b in policy.branches(states))


def at_random(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(len(states), 2))


def sections(kind: str) -> Sections:
    taken = VECTORS[RNG.integers(4, size=40)]
    here = (np.concatenate([STATES, taken], axis=1), np.ones(40))
    match kind:
        case "finite":
            after = onward(aope.DiscretePolicy(probabilities, VECTORS), NEXT)
        case "drawn":
            after = onward(aope.SampledPolicy(at_random, draws=3), NEXT)
        case "one action":
            after = onward(aope.DeterministicPolicy(lambda states: 0.5 * states), NEXT)
        case _:  # branches with an action of their own between others, and one whose states are others
            finite = onward(aope.DiscretePolicy(probabilities, VECTORS), NEXT)
            drawn = onward(aope.SampledPolicy(at_random, draws=2), NEXT)
            after = (finite[0], drawn[0], finite[1], (np.concatenate([STATES, taken], axis=1), np.full(40, 0.3)), drawn[1])
    return Sections((here, *((points, -0.9 * weights) for points, weights in after)), 2)


KINDS = ("finite", "drawn", "one action", "mixed")


def slow(kernel: aope.Kernel, left: Sections, right: Sections) -> np.ndarray:
    """Every pair of rows and branches by itself."""
    out = np.zeros((len(left), len(right)))
    for x, u in left.branches:
        for y, v in right.branches:
            for j in range(len(right)):
                out[:, j] += u * v[j] * kernel.paired(x, np.broadcast_to(y[j], x.shape))
    return out


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_inner_products_are_sums_over_all_branches(name: str, kind: str) -> None:
    kernel, left = KERNELS[name], sections(kind)
    right = sections("finite").rows([3, 0, 17])
    expected = slow(kernel, left, right)
    np.testing.assert_allclose(inner_products(kernel, left, right), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(inner_products(kernel, right, left), expected.T, rtol=1e-12, atol=1e-13)
    norms = np.diagonal(slow(kernel, left, left))
    np.testing.assert_allclose(left.squared_norms(kernel), norms, rtol=1e-12, atol=1e-13)
    weights = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(products_with_mean(kernel, left, right, weights), expected @ weights, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["gaussian", "random features"])
def test_pieces_do_not_change_them(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, left = KERNELS[name], sections(kind)
    whole, mean = inner_products(kernel, left, left), products_with_mean(kernel, left, left, np.arange(40.0))
    monkeypatch.setattr(sections_module, "ENTRIES", 7 * len(left))
    monkeypatch.setattr(sections_module, "STARTS_AT_ONCE", 11)
    np.testing.assert_allclose(inner_products(kernel, left, left), whole, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(products_with_mean(kernel, left, left, np.arange(40.0)), mean, rtol=1e-12, atol=1e-11)


def test_without_a_number_of_states_they_are_the_same() -> None:
    known = sections("finite")
    unknown = Sections(known.branches)
    np.testing.assert_allclose(
        inner_products(KERNELS["gaussian"], known, known),
        inner_products(KERNELS["gaussian"], unknown, unknown),
        rtol=1e-12,
        atol=1e-13,
    )
    np.testing.assert_allclose(known.squared_norms(KERNELS["gaussian"]), unknown.squared_norms(KERNELS["gaussian"]), rtol=1e-12)


def test_no_pivots_are_no_products() -> None:
    """So wide a kernel that all sections are one: nothing is left to pick."""
    assert inner_products(KERNELS["gaussian"], sections("finite"), sections("finite").rows([])).shape == (40, 0)
    wide = aope.KernelSections(aope.Gaussian(1e9), 5).columns(
        Experience(
            aope.Transitions(STATES, RNG.integers(4, size=40), np.zeros(40), NEXT),
            aope.StartStates(STATES[:3]),
            aope.DiscretePolicy(probabilities, VECTORS),
            0.9,
        )
    )
    np.testing.assert_allclose(wide.here, 1.0)


def test_which_kernels_have_factors() -> None:
    without = {name for name, kernel in KERNELS.items() if factors(kernel, 2, 4) is None}
    assert without == {"product that splits elsewhere", "random features"}
    assert factors(aope.Gaussian(1.0), 0, 4) is None
    assert factors(aope.Gaussian([1.0, 2.0]), 2, 4) is None  # refused where it is used, in the words of the kernel


def test_a_wrong_number_of_bandwidths_is_refused_as_ever() -> None:
    with pytest.raises(aope.InvalidInput, match="`bandwidth` has 2 entries, but points"):
        inner_products(aope.Gaussian([1.0, 2.0]), sections("finite"), sections("finite"))


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def test_many_actions_cost_little() -> None:
    """Forty actions in place of two: pairs of branches would be 280 times as many."""
    rng = np.random.default_rng(0)
    states, after = rng.normal(size=(2, 1500, 3))

    def columns(actions: int) -> Callable[[], object]:
        tilt = rng.normal(size=(3, actions))
        policy = aope.DiscretePolicy(lambda s: np.exp(s @ tilt) / np.exp(s @ tilt).sum(axis=1, keepdims=True), actions)
        data = aope.Transitions(states, rng.integers(actions, size=1500), np.zeros(1500), after)
        experience = Experience(data, aope.StartStates(states[:20]), policy, 0.9)
        return lambda: aope.KernelSections(aope.Gaussian(2.0), 40).columns(experience)

    few, many = columns(2), columns(40)
    assert min(seconds(many) for _ in range(3)) < 25 * min(seconds(few) for _ in range(3))
