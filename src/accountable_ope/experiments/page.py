"""Tables and findings of an experiment as Markdown, put between the marks of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..io.pages import around, fill, table
from .bounds import BoundRow
from .estimators import EstimateRow
from .importance import PAPER_THRESHOLD, LowerRow
from .scale import Scale
from .setting import DELTA
from .summary import Finding, Group, bound_findings, estimate_findings, groups, lower_findings, mean_of

AXIS_NAMES = {"n": "n", "delta": "1 - delta", "temperature": "temperature", "features": "features"}


def check_page(path: Path, name: str) -> None:
    """Before any work: does the page exist, and has it the marks?"""
    around(path, *_marks(name))


def write_page(path: Path, name: str, rows: Sequence[Any], scale: Scale) -> None:
    """Replace what stands between the marks of this experiment."""
    fill(path, *_marks(name), markdown(rows, scale))


def markdown(rows: Sequence[Any], scale: Scale) -> str:
    """Everything that a page says in numbers about an experiment."""
    if isinstance(rows[0], BoundRow):
        return _bounds(rows, scale)
    if isinstance(rows[0], EstimateRow):
        return _estimates(rows, scale)
    return _lowers(rows)


def _bounds(rows: Sequence[BoundRow], scale: Scale) -> str:
    points = groups(rows, scale)
    lines = []
    for axis, name in AXIS_NAMES.items():
        panel = [point for point in points if point.axis == axis]
        values = sorted({point.value for point in panel}, reverse=axis == "delta")
        shown = [f"{1 - value:g}" if axis == "delta" else f"{value:g}" for value in values]
        lines += _table(
            [f"radius, features; {name} =", *shown],
            [
                [
                    f"{radius}, {kind}",
                    *(
                        _cell(point)
                        for value in values
                        for point in panel
                        if (point.radius, point.kind, point.value) == (radius, kind, value)
                    ),
                ]
                for radius in dict.fromkeys(row.radius for row in rows)
                for kind in dict.fromkeys(row.kind for row in rows)
            ],
        )
    by_features = [point for point in points if point.axis == "features" and point.radius == "certified"]
    lines += [
        "How far the best class of each union is from Q (kernel loss on other data), against the squared radius of `certified`:",
        "",
    ]
    lines += _table(
        ["features", *(f"{point.kind}, {point.value:g}" for point in by_features)],
        [
            ["misfit", *(f"{point.misfit:.1e}" for point in by_features)],
            ["squared radius", *(f"{point.level:.1e}" for point in by_features)],
        ],
    )
    return "\n".join([*lines, *_verdicts(bound_findings(rows, scale))])


def _verdicts(findings: Sequence[Finding]) -> list[str]:
    """A row per claim, a column per radius and kind of features; what decides is in the tables, or follows."""
    parts = [(finding, *_claim_and_place(finding)) for finding in findings]
    columns = list(dict.fromkeys(where for _, _, where in parts))
    claims = list(dict.fromkeys(claim for _, claim, _ in parts))
    held = {(claim, where): finding for finding, claim, where in parts}
    cells = [
        [claim, *("" if (claim, where) not in held else "yes" if held[claim, where].holds else "**no**" for where in columns)]
        for claim in claims
    ]
    lines = _table(["holds?", *(where.replace(" features", "") for where in columns)], cells)
    return lines + [
        f"- {where}: {claim}: {finding.evidence}."
        for finding, claim, where in parts
        if claim.startswith(("intervals cover", "where the class"))
    ]


def _claim_and_place(finding: Finding) -> tuple[str, str]:
    claim, place = finding.claim.rstrip(")").rsplit(" (", 1)
    return claim, place


def _cell(point: Group) -> str:
    """The mean width, and how many of the trials that gave an interval covered."""
    if point.consistent == 0:
        return "INCONSISTENT"
    empty = point.trials - point.consistent
    return f"{point.width:.3f} ({point.covered}/{point.consistent}" + (f", {empty} INC.)" if empty else ")")


def _estimates(rows: Sequence[EstimateRow], scale: Scale) -> str:
    counts = sorted({row.n for row in rows})
    table = []
    for radius in dict.fromkeys(row.radius for row in rows):
        for name in dict.fromkeys(row.estimator for row in rows):
            line = [f"{radius}, {name}"]
            for n in counts:
                chosen = [row for row in rows if (row.radius, row.estimator, row.n, row.delta) == (radius, name, n, DELTA)]
                accepted = sum(row.accepted for row in chosen)
                after, norm = mean_of(row.after for row in chosen), mean_of(row.norm for row in chosen)
                shown = "no correction" if math.isnan(after) else f"{after:.3f}, norm {norm:.3g}"
                line.append(f"{accepted}/{len(chosen)}; {shown}")
            table.append(line)
    before = {row.estimator: row.before for row in rows}
    said = ", ".join(f"{name} says {value:.3f}" for name, value in before.items())
    lines = [
        f"Truth {rows[0].truth:.3f}; {said}. Trials that accepted the estimate; mean corrected value and norm of the correction:",
        "",
    ]
    lines += _table(["radius, estimate; n =", *(str(n) for n in counts)], table)
    return "\n".join([*lines, *_list(estimate_findings(rows, scale))])


def _lowers(rows: Sequence[LowerRow]) -> str:
    episodes = sorted({row.episodes for row in rows})
    methods = list(dict.fromkeys(row.method for row in rows))
    table = []
    for method in methods:
        line = [method + (" = 1e-5" if method.endswith("fixed c") else "")]
        for count in episodes:
            chosen = [
                row
                for row in rows
                if (row.method, row.episodes, row.delta) == (method, count, DELTA)
                and (math.isnan(row.threshold) or row.threshold == PAPER_THRESHOLD)
            ]
            given = [row for row in chosen if not math.isnan(row.lower)]
            below = sum(row.covered for row in given)
            mean = mean_of(row.lower for row in given)
            line.append("INCONSISTENT" if not given else f"{mean:.3g} ({below}/{len(given)})")
        table.append(line)
    lines = ["Mean lower bounds, and how many of them are below the truth:", ""]
    lines += _table(["method; episodes =", *(str(count) for count in episodes)], table)
    return "\n".join([*lines, *_list(lower_findings(rows))])


def _list(findings: Sequence[Finding]) -> list[str]:
    return [
        f"- {'Holds' if finding.holds else '**Does not hold**'}: {finding.claim} ({finding.evidence})." for finding in findings
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [*table(header, rows), ""]


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
