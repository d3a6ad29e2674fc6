"""Start states that the log shows to be its own, and others that only look like it."""

from __future__ import annotations

import numpy as np
import pytest

from accountable_ope import Transitions
from accountable_ope.problem.logged_starts import read_off_the_log

RNG = np.random.default_rng(0)


def log(first: np.ndarray, length: int = 10) -> Transitions:
    """Episodes of continuous states that begin at these."""
    count = len(first)
    states = RNG.normal(size=(count, length + 1, 2))
    states[:, 0] = first
    episodes = np.repeat(np.arange(count), length)
    rows = states[:, :-1].reshape(-1, 2), states[:, 1:].reshape(-1, 2)
    return Transitions(rows[0], np.zeros(count * length, dtype=int), np.zeros(count * length), rows[1], episodes=episodes)


FRESH = log(RNG.normal(size=(12, 2)))
ATOMS = RNG.normal(size=(4, 2))
REPEATED = log(ATOMS[np.arange(12) % 4])


@pytest.mark.parametrize(
    ("data", "starts", "own"),
    [
        (FRESH, FRESH.first_states().states, True),
        (FRESH, FRESH.states[[5, 40]], True),
        (FRESH, FRESH.next_states[[9, 19]], True),  # ends of episodes, which begin no row
        (FRESH, -0.0 + FRESH.states[::7], True),
        (FRESH, np.vstack([FRESH.states[[5, 40]], [[0.1, 0.2]]]), False),  # one that is not logged: a list from elsewhere
        (FRESH, FRESH.states[:1], False),  # the state of the first row is known before all that follows
        (FRESH, RNG.normal(size=(5, 2)), False),
        (REPEATED, ATOMS, False),  # where episodes begin, again and again
        (REPEATED, np.vstack([ATOMS, REPEATED.states[5:7]]), False),
        (REPEATED, REPEATED.states[[5, 6, 7]], True),
    ],
)
def test_continuous_states(data, starts, own):
    assert read_off_the_log(data, starts) is own


def test_a_few_states_come_up_again_and_again():
    """Finite tasks: whole numbers, and points of a grid, of which every start state is logged."""
    rng, n = np.random.default_rng(1), 60
    for states in (rng.permutation(n).astype(float), 0.5 * rng.integers(0, 20, n)):
        data = Transitions(states, np.zeros(n, dtype=int), np.zeros(n), np.roll(states, -1))
        for starts in (states[:, None], states[[5], None], np.unique(states)[:, None]):
            assert not read_off_the_log(data, starts)
