"""The leverage of rows that are gone bounds their residuals, whatever rounding does to its factor."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from accountable_ope.bounds.stream_pass import Leverage


def exact_square(metric, z):
    """z'G^{-1}z in fractions, by elimination."""
    rows = [[Fraction(float(x)) for x in row] + [Fraction(float(b))] for row, b in zip(metric, z, strict=True)]
    for k in range(len(rows)):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return sum(Fraction(float(b)) * row[-1] for b, row in zip(z, rows, strict=True))


@pytest.mark.parametrize("rank", [1, 3, 15])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_it_is_never_below_the_exact_one_also_where_columns_depend_on_each_other(rank, scale):
    rng = np.random.default_rng(rank)
    residuals = rng.normal(size=(500, rank)) @ rng.normal(size=(rank, 15))
    found = Leverage.of(SimpleNamespace(residuals=residuals, target=scale * rng.normal(size=500)))
    later = np.column_stack([rng.normal(size=(3, 15)), np.full(3, scale)])
    for z, h in zip(later, found.at(later), strict=True):
        assert exact_square(found.metric, z) <= Fraction(float(h)) ** 2


def test_it_does_not_depend_on_the_unit_of_rewards():
    rng = np.random.default_rng(0)
    residuals, target = rng.normal(size=(500, 4)), rng.normal(size=500)
    one, other = (
        Leverage.of(SimpleNamespace(residuals=residuals, target=unit * target)).at(np.column_stack([residuals, unit * target]))
        for unit in (1.0, 1e8)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
