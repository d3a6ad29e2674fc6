"""What came out: tables of coverage and width, and the claims of the paper beside the numbers that decide them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .bounds import BoundRow, panel_rows
from .estimators import EstimateRow, default_count
from .importance import PAPER_THRESHOLD, LowerRow
from .scale import Scale
from .setting import DELTA

ACCEPTED = {"inverted-pendulum": ("Q1",), "puck-mountain": ()}
"""The estimates that the paper shows as consistent with the data; the others need a correction."""

NEAR = 0.1
"""A class nearly contains Q, as far as a radius can tell, where its misfit is at most this share of the squared radius."""

STEADY = 0.02
"""Mean widths that differ by less than this share of the whole range count as equal."""


@dataclass(frozen=True)
class Finding:
    """A claim of the paper in words, whether it holds here, and the numbers that decide."""

    claim: str
    holds: bool
    evidence: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'DOES NOT HOLD'}: {self.claim} ({self.evidence})"


@dataclass(frozen=True)
class Group:
    """Trials of one point of a panel, for one kind of features and one radius."""

    kind: str
    radius: str
    axis: str
    value: float
    trials: int
    covered: int
    consistent: int
    vacuous: int
    wrong_without_doubt: int
    lower: float
    upper: float
    misfit: float
    level: float

    @property
    def width(self) -> float:
        """The mean width of the trials that gave an interval."""
        return self.upper - self.lower

    @property
    def near(self) -> bool:
        """Whether the class nearly contains Q at this radius."""
        return self.misfit <= NEAR * self.level

    @property
    def claimed(self) -> float:
        """The share of trials that intervals of this point claim to cover."""
        return 1 - (self.value if self.axis == "delta" else DELTA)

    @property
    def coverage(self) -> float:
        """Of the trials that gave an interval."""
        return self.covered / self.consistent if self.consistent else math.nan


def groups(rows: Sequence[BoundRow], scale: Scale) -> list[Group]:
    """Every point of every panel."""
    found = []
    for axis in ("n", "delta", "temperature", "features"):
        part = panel_rows(rows, axis, scale)
        keys = dict.fromkeys((row.kind, row.radius, getattr(row, axis)) for row in part)
        for kind, radius, value in sorted(keys):
            at_point = [row for row in part if (row.kind, row.radius, getattr(row, axis)) == (kind, radius, value)]
            consistent = [row for row in at_point if not math.isnan(row.lower)]
            found.append(
                Group(
                    kind=kind,
                    radius=radius,
                    axis=axis,
                    value=float(value),
                    trials=len(at_point),
                    covered=sum(row.covered for row in consistent),
                    consistent=len(consistent),
                    vacuous=sum(row.status == "VACUOUS" for row in at_point),
                    wrong_without_doubt=sum(not row.covered and row.doubted < row.consistent for row in consistent),
                    lower=mean_of(row.lower for row in consistent),
                    upper=mean_of(row.upper for row in consistent),
                    misfit=at_point[0].misfit,
                    level=mean_of(row.level for row in at_point),
                )
            )
    return found


def bound_findings(rows: Sequence[BoundRow], scale: Scale) -> list[Finding]:
    """The claims about figure 1, for every kind of features and every radius."""
    found = []
    points = groups(rows, scale)
    for radius in dict.fromkeys(row.radius for row in rows):
        for kind in dict.fromkeys(row.kind for row in rows):
            where = f"{radius}, {kind} features"
            chosen = [point for point in points if point.radius == radius and point.kind == kind]
            by = {axis: [point for point in chosen if point.axis == axis] for axis in ("n", "delta", "temperature", "features")}
            found += [
                _monotone(f"intervals tighten with n ({where})", by["n"], falling=True),
                _monotone(f"intervals tighten with larger delta ({where})", by["delta"], falling=True),
                _steady(f"the behavior's temperature changes little ({where})", by["temperature"]),
                _monotone(f"fewer features give tighter intervals ({where})", by["features"], falling=False),
                *_covers(where, chosen),
            ]
    return found


def estimate_findings(rows: Sequence[EstimateRow], scale: Scale) -> list[Finding]:
    """The claims about figures 2 and 3."""
    found = []
    middle = default_count(scale)
    for radius in dict.fromkeys(row.radius for row in rows):
        for name in dict.fromkeys(row.estimator for row in rows):
            chosen = [row for row in rows if row.radius == radius and row.estimator == name and row.delta == DELTA]
            last = [row for row in chosen if row.n == max(row.n for row in chosen)]
            rejected = sum(not row.accepted for row in last)
            before, true = mean_of(row.before for row in last), last[0].truth
            corrected = [row for row in last if row.correction == "CORRECTED"]
            good = name in ACCEPTED[last[0].task]
            found.append(
                Finding(
                    f"{name} is {'accepted' if good else 'rejected'} at n = {last[0].n} ({radius})",
                    (rejected > len(last) / 2) != good,
                    f"rejected in {rejected} of {len(last)} trials; it says {before:.3f}, the truth is {true:.3f}; "
                    f"norm of the correction {_number(mean_of(row.norm for row in last))}",
                )
            )
            if corrected:
                closer = sum(abs(row.after - row.truth) < abs(row.before - row.truth) for row in corrected)
                found.append(
                    Finding(
                        f"the correction of {name} brings its value nearer to the truth ({radius})",
                        closer > len(corrected) / 2,
                        f"{closer} of {len(corrected)} corrected trials; mean corrected value "
                        f"{mean_of(row.after for row in corrected):.3f}",
                    )
                )
            inside = [row for row in last if not math.isnan(row.lower)]
            found.append(
                Finding(
                    f"the post-hoc interval of {name} covers the truth ({radius})",
                    bool(inside) and sum(row.covered for row in inside) >= 0.9 * len(inside),
                    f"{sum(row.covered for row in inside)} of {len(inside)} trials with an interval, of {len(last)}",
                )
            )
        norms = {  # NaN where no trial had a correction
            n: mean_of(row.norm for row in rows if row.radius == radius and row.n == n and row.delta == DELTA)
            for n in sorted({row.n for row in rows})
        }
        values = [value for value in norms.values() if not math.isnan(value)]
        found.append(
            Finding(
                f"the norm of the correction grows with n ({radius})",
                all(a <= b + 1e-9 for a, b in pairwise(values)) and values[-1] > 0,
                ", ".join(f"n = {n}: {_number(value)}" for n, value in norms.items())
                + f"; means over both estimates; delta varies at n = {middle}",
            )
        )
    return found


def lower_findings(rows: Sequence[LowerRow]) -> list[Finding]:
    """The claims about figure 4."""
    largest = max(row.episodes for row in rows)
    at = [row for row in rows if row.delta == DELTA and row.episodes == largest]

    def mean(method: str) -> float:
        chosen = [row for row in at if row.method == method and (math.isnan(row.threshold) or row.threshold == PAPER_THRESHOLD)]
        return mean_of(row.lower for row in chosen)

    paper = mean("hcope, fixed c")
    fair = {name: mean(name) for name in ("hcope, chosen c", "betting", "betting, per decision")}
    ours = {name: mean(name) for name in ("ours, certified", "ours, wild")}
    best = max(fair, key=lambda name: fair[name])
    listed = ", ".join(
        f"{name} {'INCONSISTENT' if math.isnan(value) else format(value, '.3g')}" for name, value in (fair | ours).items()
    )
    sampled = [row for row in rows if row.delta == DELTA and not row.method.startswith("ours")]
    misses = sum(not row.covered for row in sampled)
    return [
        Finding(
            "importance sampling at c = 1e-5 is vacuous",
            paper <= PAPER_THRESHOLD,
            f"mean lower bound {paper:.2g} at N = {largest}",
        ),
        Finding(
            "that is what importance sampling can do here",
            fair[best] < 0.05,
            f"with a fair choice, N = {largest}: {listed}; truth {at[0].truth:.3f}",
        ),
        Finding(
            "our certified lower bound is higher than the best of importance sampling",
            ours["ours, certified"] > fair[best],
            listed,
        ),
        Finding(
            "importance-sampling bounds stay below the truth",
            misses <= DELTA * len(sampled),
            f"{misses} of {len(sampled)} above it at delta = {DELTA:g}",
        ),
    ]


def summary_lines(rows: Sequence[Any], scale: Scale) -> list[str]:
    """The findings of any figure, a line each."""
    if isinstance(rows[0], BoundRow):
        return [str(finding) for finding in bound_findings(rows, scale)]
    if isinstance(rows[0], EstimateRow):
        return [str(finding) for finding in estimate_findings(rows, scale)]
    return [str(finding) for finding in lower_findings(rows)]


def mean_of(values: Iterable[float]) -> float:
    """The mean of what is not NaN."""
    numbers = [value for value in values if not math.isnan(value)]
    return float(np.mean(numbers)) if numbers else math.nan


def _number(value: float) -> str:
    return "none, no change of the class is enough" if math.isnan(value) else f"{value:.3g}"


def _listed(points: Sequence[Group], of: Callable[[Group], float]) -> str:
    shown = [f"{_label(point)}: {'INCONSISTENT' if math.isnan(of(point)) else format(of(point), '.3f')}" for point in points]
    return "mean width at " + ", ".join(shown)


def _label(point: Group) -> str:
    return f"1 - delta = {1 - point.value:g}" if point.axis == "delta" else f"{point.axis} = {point.value:g}"


def _monotone(claim: str, points: Sequence[Group], *, falling: bool) -> Finding:
    """Whether mean widths move one way, and truly move."""
    widths = [point.width for point in points if not math.isnan(point.width)]
    steps = [(b - a) * (-1 if falling else 1) for a, b in pairwise(widths)]
    holds = bool(steps) and all(step >= -1e-3 for step in steps) and abs(widths[-1] - widths[0]) > 1e-3
    return Finding(claim, holds, _listed(points, lambda point: point.width))


def _steady(claim: str, points: Sequence[Group]) -> Finding:
    widths = [point.width for point in points if not math.isnan(point.width)]
    holds = bool(widths) and max(widths) - min(widths) <= max(STEADY, 0.5 * float(np.mean(widths)))
    return Finding(claim, holds, _listed(points, lambda point: point.width))


def _covers(where: str, points: Sequence[Group]) -> list[Finding]:
    """Coverage where the class nearly contains Q, and what happens where it does not."""
    distinct = list({(point.axis, point.value): point for point in points}.values())
    vacuous = sum(point.vacuous for point in distinct) / sum(point.trials for point in distinct)
    near, far = [point for point in distinct if point.near], [point for point in distinct if not point.near]
    found = []
    if near:
        worst = min(near, key=lambda point: point.covered / point.trials - point.claimed)
        found.append(
            Finding(
                f"intervals cover the truth where the class nearly contains Q ({where})",
                worst.covered >= worst.claimed * worst.trials,
                f"{len(near)} of {len(distinct)} points of panels; least at {_label(worst)}: {worst.covered} of {worst.trials} "
                f"trials; the interval is the whole range in {100 * vacuous:.0f}% of all trials",
            )
        )
    if far:
        trials, given = sum(point.trials for point in far), sum(point.consistent for point in far)
        wrong = sum(point.consistent - point.covered for point in far)
        found.append(
            Finding(
                f"where the class is too far from Q, no wrong interval is given ({where})",
                wrong <= 0.1 * trials,
                f"{len(far)} of {len(distinct)} points: INCONSISTENT in {trials - given} of {trials} trials, a wrong interval in "
                f"{wrong}, of which {sum(point.wrong_without_doubt for point in far)} carry no doubt about the class",
            )
        )
    return found
