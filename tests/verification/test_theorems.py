"""The verifier's radii are written apart from those that made the certificate: the two agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountable_ope.programs.envelope import SquaredEnvelope, Steps
from accountable_ope.radii import martingale, paper
from accountable_ope.radii.envelope import SymmetricEnvelope, cut_mixture, rate_mixture
from accountable_ope.verification import theorems

COUNTS = st.integers(4, 10**6)
SIZES = st.floats(1e-3, 1e3)
DELTAS = st.floats(1e-6, 0.9)


@given(COUNTS, SIZES, SIZES, DELTAS)
def test_constant_radii(n, width, supremum, delta):
    close = pytest.approx
    assert theorems.azuma(n, width, supremum, delta) == close(martingale.azuma(n, width, supremum, delta))
    planned = n // 2 + 1
    found = theorems.azuma_anytime(n, width, supremum, delta, planned)
    assert found == close(martingale.azuma_anytime(n, width, supremum, delta, planned))
    for printed in (False, True):
        of_v, of_u = (theorems.hoeffding(n, width, delta, of_u=of_u, printed=printed) for of_u in (False, True))
        assert of_v == close(paper.hoeffding_v(n, width, delta, printed=printed))
        assert of_u == close(paper.hoeffding_u(n, width, delta, printed=printed))


@given(st.integers(4, 10**5), SIZES, DELTAS, st.floats(0.01, 1.0), st.floats(0, 1), st.floats(0, 1), st.floats(1e-3, 1.0))
def test_envelopes(planned, prior, delta, share, variance, seen, mass):
    b, tuned = share * prior, (0.05 + 0.9 * seen) / prior
    v = np.array([0.0, variance * planned * b**2, planned * b**2])
    steps = (b, seen * b, mass * planned * b**2)
    of_mine, of_theirs = theorems.Steps(*steps), Steps(*steps)
    pairs = (
        (theorems.Mixture(prior, planned, delta), rate_mixture(prior, planned, delta)),
        (theorems.Mixture(prior, planned, delta, tuned), cut_mixture(prior, tuned, planned, delta)),
        (theorems.Mixture(prior, planned, delta, tuned, delta), cut_mixture(prior, tuned, planned, delta, room=True)),
        (theorems.Symmetric(prior, delta), SymmetricEnvelope(prior, delta)),
    )
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine.at(of_mine, v)[0], theirs.bound(of_theirs, v)[0], rtol=1e-9)
        table, other = theorems.Squared.of(mine, of_mine, float(v[-1])), SquaredEnvelope(theirs, of_theirs, float(v[-1]))
        for rate in (0.0, 0.1, 5.0):
            assert table.level(rate) == pytest.approx(other.at(rate).level, rel=1e-8)


def test_the_mixture_is_at_its_limit():
    """At s = U(b, a, V) the supermartingale is at 1/delta, from above: the bound is what the theorem says, and no larger."""
    mixture, b, a, squares, v = theorems.Mixture(1.2, 500, 0.1), 1.5, 0.4, 700.0, np.array([0.0, 3.0, 400.0])
    s, _ = mixture.at(theorems.Steps(b, a, squares), v)
    usable = mixture.rates * b < 1
    assert 0 < usable.sum() < len(usable)
    rates, weights = mixture.rates[usable], mixture.weights[usable]
    cost = (-np.log1p(-rates * a) - rates * a) / a**2
    value = (weights * np.cosh(np.outer(s, rates)) * np.exp(-np.outer(v, cost))).sum(axis=1)
    rates, weights = mixture.azuma
    value += (weights * np.cosh(np.outer(s, rates)) * np.exp(-(rates**2) * squares / 8)).sum(axis=1)
    np.testing.assert_allclose(value, 10.0, rtol=1e-6)
    assert (value >= 10.0).all()
