"""The default radius with its cut, against loggers that know both martingales; the number of rows is fixed, and delta .5 or .1.

Half of delta is the kernel's and half the cut's. One logger of `adversary.py` plays against the first, one against the second: it
lets the first rows pass, which choose the weights, reads weights and rate as the analyst will make them, and tosses until the
weighted sum is beyond what the cut allows. As in test_adversary.py, 200 logs each are judged by the event of the true Q, and
intervals are solved at the logs nearest to the boundary. Half of the cut's width, weights that know their own row, and a share of
delta that is spent twice are caught by the same judgment.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
import accountable_ope.radii.registry as radius_module
from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.cut import Cut, CutQuestion, choose_cut
from accountable_ope.radii.envelope import cut_mixture
from accountable_ope.radii.registry import radius_rule
from adversary import (
    DELTAS,
    POINTS,
    ROWS,
    TRIALS,
    Game,
    Log,
    Scaled,
    allowed_by,
    chase,
    failures,
    logs_of,
    margin,
    nearest,
    too_many,
)

RULE = radius_rule("certified")
GAMES = {"one coin": Game(), "two coins": Game(start=(0.5, 0.5)), "unequal coins": Game(coins=(0.5, 0.2), start=(0.5, 0.5))}
ONE_COIN = GAMES["one coin"]
BEYOND = 1.02
"""Solvers and rounding allow a little more than the theorem."""


def against_the_kernel(game: Game, delta: float) -> Callable[[np.random.Generator], aope.Transitions]:
    """Beyond the kernel's boundary as it will be at the last row, the logger waits."""
    boundary = allowed_by(game, RULE, ROWS, delta, cut=True)
    return lambda rng: chase(game, rng, ROWS, lambda j, variance: boundary(ROWS, variance), stops=False)


def against_the_cut(delta: float, factor: float = 1.0) -> Callable[[np.random.Generator], aope.Transitions]:
    """Beyond `factor` times the boundary of the cut the logger waits; first rows have no weight, and later tosses have 1."""

    def draw(rng: np.random.Generator) -> aope.Transitions:
        tosses = chase(ONE_COIN, rng, ROWS, lambda j, variance: np.inf, stops=False)
        found = cut_of(tosses, delta)
        assert found.weights[found.earlier :] == pytest.approx(1.0)  # all rows are alike
        envelope = cut_mixture(1.0, found.rate, found.count, delta / 2)
        steps = tosses.rewards[found.earlier :] - 0.5
        sums, variance = np.abs(np.cumsum(steps)), np.cumsum(steps**2)
        allowed = factor * envelope.bound(Steps(1.0, 0.5, float(found.count)), variance)[0]
        beyond = sums > BEYOND * allowed
        kept = found.earlier + int(np.argmax(beyond)) + 1 if beyond.any() else ROWS
        return first_tosses(tosses, kept)

    return draw


def first_tosses(tosses: aope.Transitions, kept: int) -> aope.Transitions:
    """So many tosses, then waits."""
    waits = np.arange(ROWS) >= kept
    places = np.where(waits, (np.arange(ROWS) - kept) % 2, 0)
    return aope.Transitions(
        places[:, None],
        waits.astype(np.int64),
        np.where(waits, 0.0, tosses.rewards),
        np.where(waits, 1 - places, 2)[:, None],
        ~waits,
        np.minimum(np.arange(ROWS), kept),
    )


def cut_of(data: aope.Transitions, delta: float) -> Cut:
    """As the analyst will make it."""
    member = aope.evaluate(ONE_COIN.problem(data), features=POINTS, kernel=aope.Tabular()).member(0)
    found = choose_cut(CutQuestion(member.system, member.kernel, member.residuals.before_data, delta / 2))
    assert found is not None
    return found


def margins_of(game: Game, logs: tuple[Log, ...], delta: float) -> list[float]:
    return [margin(game, game.problem(log.data), RULE, delta) for log in logs]


@cache
def played(delta: float, factor: float = 1.0) -> tuple[Log, ...]:
    return logs_of(against_the_cut(delta, factor), TRIALS, order_counts=True)


@pytest.mark.parametrize(("game", "delta"), [("one coin", 0.5), ("one coin", 0.1), ("unequal coins", 0.5)])
def test_the_event_fails_as_rarely_as_claimed(game, delta):
    logs = logs_of(against_the_kernel(GAMES[game], delta), TRIALS, order_counts=True)
    failed = failures(logs, margins_of(GAMES[game], logs, delta))
    assert not too_many(failed, TRIALS, delta), f"{failed} of {TRIALS}"


@pytest.mark.parametrize("delta", DELTAS)
def test_the_second_martingale(delta):
    """The logger does reach what it aims at, and not too often."""
    logs = played(delta)
    margins = margins_of(ONE_COIN, logs, delta)
    failed = failures(logs, margins)
    assert not too_many(failed, TRIALS, delta), f"{failed} of {TRIALS}"
    for log, left in nearest(logs, margins, 1):
        interval = aope.bound_value(
            ONE_COIN.problem(log.data, norm_bound=2.0), features=POINTS, kernel=aope.Tabular(), delta=delta
        )
        assert interval.certificates[0].cut is not None
        assert ONE_COIN.value() in interval or left < 0


@pytest.mark.parametrize("delta", DELTAS)
def test_a_part_of_the_cut_is_caught(delta, monkeypatch):
    part = 0.4
    logs = played(delta, part)
    monkeypatch.setattr(radius_module, "cut_mixture", lambda *given: Scaled(cut_mixture(*given), part))
    failed = failures(logs, margins_of(ONE_COIN, logs, delta))
    assert too_many(failed, TRIALS, delta), f"{failed} of {TRIALS}"


def test_weights_that_know_their_own_row_are_caught(monkeypatch):
    """Half of the rows weigh as their reward says: the sum is that of sizes, and no martingale."""
    delta, logs = 0.5, played(0.5)[:40]

    def peeking(question: CutQuestion) -> Cut | None:
        found = choose_cut(question)
        signs = np.where(question.system.rewards > 0, 1.0, -1.0) if found is not None else None
        return None if found is None else replace(found, weights=found.weights * signs)

    monkeypatch.setattr(radius_module, "choose_cut", peeking)
    failed = sum(left < 0 for left in margins_of(ONE_COIN, logs, delta))
    assert too_many(failed, len(logs), delta), f"{failed} of {len(logs)}"
