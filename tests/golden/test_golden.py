"""Golden results agree with those that were written before: a change of any number is meant, or a mistake."""

import json
from pathlib import Path

import numpy as np
import pytest

from golden.cases import CASES

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())

WRITTEN_ANEW = (
    "radii that follow the variance: the largest step in the data, Theorem A in the mixture, the variance as a constraint, boxes "
    "at every row and, for `certified`, a cut",
    "one-hot classes without a declared norm bound: the ball that their values imply",
    "bound regulator-sampled: actions at start states are drawn apart from those at next states",
    "selected: the earlier rows end at the first beginning of an episode from the wanted row on, not at the nearest",
    "finite features azuma: a fourth event has its share of delta, and the value box is wider",
    "programs of convex quadratics alone: multipliers by another method, which moves their last digits",
)
"""Which results were written anew since the first time, and why."""

FOLLOWING = ("certified", "bernstein", "symmetric", "curve", "flip points", "least norm", "rows needed")
"""Parts of names of results that an iteration finds: another order of sums, or processor, moves their last digits."""

BY_ROUNDS = ("curve", "selected certified")
"""Those whose last bits decide which rows and how many rounds there are: ends are found up to a thousandth of their distance."""

LAST_BITS = ("sections None",)
"""Results that depend on the last bits of the kernel: coordinates down to 1e-12 of the largest."""


def test_there_are_enough_of_them():
    assert len(GOLDEN) >= 80 and set(GOLDEN) == set(CASES)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    kinds = ((BY_ROUNDS, 3e-3), (FOLLOWING, 1e-4), (LAST_BITS, 1e-7), (("",), 1e-9))
    tolerance = next(size for parts, size in kinds if any(part in name for part in parts))
    np.testing.assert_allclose(np.array(CASES[name]()), np.array(GOLDEN[name]), rtol=tolerance, atol=1e-3 * tolerance)
