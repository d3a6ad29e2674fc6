"""The table of trust as Markdown, between two marks of a page, so that the page is written again by the run that it reports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..io.pages import around, fill, table
from .goals import goals
from .summary import Trust, verdict
from .task import Truth
from .tasks import Skipped, task_named

BEGIN, END = "<!-- trust table: begin -->", "<!-- trust table: end -->"
HEADER = (
    "task", "policy", "n", "method", "logs", "covered", "median width", "vacuous", "no interval", "wrong, doubted",
    "**wrong without a doubt**", "farthest", "s",
)  # fmt: skip


def markdown_table(rows: Sequence[Trust], skipped: Sequence[Skipped] = (), made_by: str = "") -> str:
    """Verdict, goals, what was skipped, the table, and the truths behind it; made_by: which recipes the answers are of."""
    parts = [verdict(rows), *map(str, goals(rows)), "", *[f"{each.name} was skipped: {each.reason}." for each in skipped]]
    parts += ["", *table(HEADER, list(_lines(rows))), ""]
    parts += [
        "Width: as a share of the range of values, the median over logs with an interval; farthest: the most by which the truth "
        "was missed, doubted or not, as such a share; s: mean seconds of processor time of one answer. All other columns count "
        "logs.",
        *(["", made_by] if made_by else []),
        "",
        "### The truths",
        "",
        *table(("task", "policy", "value", "standard error", "range of values", "how"), list(_truths(rows))),
    ]
    return "\n".join(parts)


def write_page(path: str | os.PathLike[str], rows: Sequence[Trust], skipped: Sequence[Skipped] = (), made_by: str = "") -> None:
    """Put the table between the marks of a page that exists, in place of what stands there."""
    fill(Path(path), BEGIN, END, markdown_table(rows, skipped, made_by))


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a page that has no place for the table, before any work."""
    around(Path(path), BEGIN, END)


def _lines(rows: Sequence[Trust]) -> Iterator[list[str]]:
    before = ("", "", -1)
    for row in rows:
        task, policy, n = row.task, row.policy, row.n
        same = (task == before[0], (task, policy) == before[:2], (task, policy, n) == before)
        names = ["" if known else text for known, text in zip(same, (f"`{task}`", policy, str(n)), strict=True)]
        wrong = f"**{row.wrong}**" if row.wrong else "0"
        yield [
            *names,
            row.method,
            str(row.logs),
            str(row.covered),
            "-" if row.width is None else f"{row.width:.3f}",
            *(str(count) for count in (row.vacuous, row.inconsistent, row.wrong_with_doubt)),
            wrong,
            _share(row.farthest),
            f"{row.seconds:.1f}",
        ]
        before = (task, policy, n)


def _share(miss: float) -> str:
    return "" if miss == 0 else f"{miss:.4f}" if miss < 0.001 else f"{miss:.3f}"


def _truths(rows: Sequence[Trust]) -> Iterator[list[str]]:
    for name, policy in dict.fromkeys((row.task, row.policy) for row in rows):
        task = task_named(name)
        truth: Truth = task.target(policy).truth
        low, high = (reward / (1 - task.assumptions.discount) for reward in task.assumptions.reward_range)
        error = f"{truth.standard_error:.2g}" if truth.standard_error else "0"
        yield [f"`{name}`", policy, f"{truth.value:.5g}", error, f"[{low:.4g}, {high:.4g}]", truth.made]
