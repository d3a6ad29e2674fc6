"""A self-contained HTML report of a ladder of intervals: no script, no network, no mathematics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..bounds.interval import Status, ValueInterval
from ..problem.transitions import Transitions
from ..programs.lagrangian import Role
from .comparison import comparison

COLOR = {Status.OK: "#1a7f5a", Status.VACUOUS: "#b7791f", Status.INCONSISTENT: "#b83232"}

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1d2430; max-width: 62rem; margin: 2.5rem auto; padding: 0 1.2rem; }}
h1 {{ font-size: 1.6rem; margin-bottom: .2rem; }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem; }}
.sub {{ color: #5a6577; margin-top: 0; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .4rem .7rem; border-bottom: 1px solid #e2e6ee; vertical-align: top; }}
td.n {{ white-space: nowrap; }}
th {{ color: #5a6577; font-weight: 600; font-size: .85rem; }}
.tag {{ font-weight: 700; font-size: .8rem; }}
svg {{ width: 100%; height: auto; }}
.note {{ background: #f5f7fa; border-left: 4px solid #8a97ab; padding: .6rem 1rem; margin: .6rem 0; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="sub">{subtitle}</p>
{figure}
<table>
<tr><th>radius</th><th>value</th>{normalized_head}<th>guarantee</th><th>status</th><th>theorem</th></tr>
{rows}
</table>
{truth}
<h2>What this says</h2>
{advice}
<h2>What was assumed</h2>
<ul>
{assumed}
</ul>
<h2>Certificates</h2>
<p>Each end is the value of a dual point: given the multipliers, anyone can compute the bound again with one factorization of a
small matrix. {checked}</p>
<table>
<tr><th>radius</th><th>class</th><th>end</th><th>bound</th><th>duality gap</th><th>multipliers (loss, ball, box)</th></tr>
{certificates}
</table>
{tightened}
</body>
</html>
"""


def report_html(
    intervals: Sequence[ValueInterval],
    data: Transitions,
    title: str,
    truth: float | None = None,
    to_beat: float | None = None,
) -> str:
    """The whole page; with the values of the target policy and of the behavior policy, where they are known."""
    first = intervals[0]
    scale = _scale(first)
    episodes = "" if data.number_of_episodes is None else f" in {data.number_of_episodes:,} episodes"
    subtitle = (
        f"{first.estimand} from {len(data):,} logged transitions{episodes}; discount {first.assumptions.discount:g}, "
        f"confidence {100 * (1 - first.delta.total):g}%, both ends together."
    )
    checked = all(interval.check() for interval in intervals)
    return PAGE.format(
        title=escape(title),
        subtitle=escape(subtitle),
        figure=_figure(intervals, truth, to_beat),
        normalized_head="<th>normalized</th>" if scale != 1 else "",
        rows="\n".join(_row(interval, scale) for interval in intervals),
        truth=_known(intervals[-1], truth, to_beat),
        advice="\n".join([*(_advice(status, intervals) for status in Status), *map(_doubt, intervals[-1].doubts())]),
        assumed="\n".join(f"<li>{escape(line)}</li>" for line in intervals[-1].assumed()),
        checked="All were computed again for this report and hold." if checked else "<b>A certificate does not hold.</b>",
        certificates="\n".join(_certificate_rows(interval) for interval in intervals),
        tightened="\n".join(_tightened(interval) for interval in intervals),
    )


def _known(interval: ValueInterval, truth: float | None, to_beat: float | None) -> str:
    """What the interval is compared with."""
    lines, scale = [], _scale(interval)
    for label, value in (("Truth, known for this dataset", truth), ("The behavior policy itself, to beat", to_beat)):
        if value is not None:
            lines.append(f"{label}: <b>{value:.4f}</b> (normalized {scale * value:.4f}).")
    if to_beat is not None:
        lines.append(escape(comparison(interval, to_beat)))
    return f"<p>{'<br>'.join(lines)}</p>" if lines else ""


def _scale(interval: ValueInterval) -> float:
    return 1.0 if interval.assumptions.discount == 1 else 1 - interval.assumptions.discount


def _ends(interval: ValueInterval, scale: float) -> str:
    if interval.status is Status.INCONSISTENT:
        return "&ndash;"
    return f"[{scale * interval.lower:.4f}, {scale * interval.upper:.4f}]"


def _row(interval: ValueInterval, scale: float) -> str:
    normalized = f"<td class=n>{_ends(interval, scale)}</td>" if scale != 1 else ""
    return (
        f"<tr><td class=n>{escape(interval.radius.name)}</td><td class=n>{_ends(interval, 1.0)}</td>{normalized}"
        f"<td class=n>{escape(interval.guarantee.value)}</td>"
        f'<td class="tag" style="color:{COLOR[interval.status]}">{interval.status.name}</td>'
        f"<td>{escape(interval.radius.theorem)}</td></tr>"
    )


def _advice(status: Status, intervals: Sequence[ValueInterval]) -> str:
    """One note for all radii that ended alike."""
    alike = [interval for interval in intervals if interval.status is status]
    if not alike:
        return ""
    text = f"<b>{escape(', '.join(interval.radius.name for interval in alike))}</b>: {escape(status.value)}"
    for part in alike[-1].certificates:
        if not part.consistent:
            text += (
                f" {escape(part.features)}: least loss {part.least_loss:.3g}, radius {alike[-1].radius.total:.3g}; every "
                f"function of the class misses Q somewhere by at least {part.misfit:.3g}."
            )
    return f'<div class="note" style="border-color:{COLOR[status]}">{text}</div>'


def _doubt(text: str) -> str:
    return f'<div class="note" style="border-color:{COLOR[Status.VACUOUS]}"><b>Doubt</b>: {escape(text)}</div>'


def _certificate_rows(interval: ValueInterval) -> str:
    rows = []
    for part in interval.certificates:
        for end, sign, certificate in (("lower", -1.0, part.lower), ("upper", 1.0, part.upper)):
            multipliers = ", ".join(f"{certificate.multiplier(role):.3g}" for role in (Role.LOSS, Role.BALL, Role.BOX))
            bound = f"{sign * certificate.bound:.6g}" if part.consistent else f"least loss {certificate.bound:.3g}"
            gap = f"{certificate.gap:.1e}" if math.isfinite(certificate.gap) else "&ndash;"
            rows.append(
                f"<tr><td>{escape(interval.radius.name)}</td><td>{escape(part.features)}</td><td>{end}</td><td>{bound}</td>"
                f"<td>{gap}</td><td>{multipliers}</td></tr>"
            )
    return "\n".join(rows)


def _tightened(interval: ValueInterval) -> str:
    """How far the iteration of a radius that follows the variance came, class by class."""
    found = [part.tightening.summary() for part in interval.certificates if part.tightening is not None]
    return "".join(f"<p>{escape(interval.radius.name)}: {escape(text)}</p>" for text in found)


def _figure(intervals: Sequence[ValueInterval], truth: float | None, to_beat: float | None) -> str:
    """Intervals as bars on the range of possible values, as inline SVG."""
    low, high = intervals[0].ranges.value
    if not high > low:
        return ""
    left, right, top, step = 150, 860, 36, 34
    bottom = top + step * len(intervals)

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    parts = [
        f'<svg viewBox="0 0 900 {bottom + 44}" role="img" aria-label="Intervals by radius" '
        'font-family="system-ui" font-size="14">'
    ]
    for k in range(6):
        tick = low + (high - low) * k / 5
        parts.append(f'<line x1="{x(tick):.1f}" y1="{top - 10}" x2="{x(tick):.1f}" y2="{bottom}" stroke="#e2e6ee"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#5a6577">{tick:.4g}</text>')
    axis = escape(intervals[0].estimand.lower())
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 38}" text-anchor="middle" fill="#5a6577">{axis}</text>')
    for index, interval in enumerate(intervals):
        y = top + step * index + step / 2
        parts.append(f'<text x="{left - 14}" y="{y + 5:.1f}" text-anchor="end">{escape(interval.radius.name)}</text>')
        color = COLOR[interval.status]
        if interval.status is Status.INCONSISTENT:
            parts.append(f'<text x="{left + 8}" y="{y + 5:.1f}" fill="{color}">no function of the class fits the data</text>')
            continue
        parts.append(
            f'<rect x="{x(interval.lower):.1f}" y="{y - 7:.1f}" width="{max(x(interval.upper) - x(interval.lower), 1.5):.1f}" '
            f'height="14" rx="3" fill="{color}" fill-opacity="0.75"/>'
        )
    known = sorted((value, name) for value, name in ((truth, "truth"), (to_beat, "behavior")) if value is not None)
    # Two names may stand close to each other: each goes to its own side.
    anchors = ("end", "start") if len(known) == 2 else ("middle",)
    for (value, name), anchor in zip(known, anchors, strict=False):
        at = f"{x(value):.1f}"
        parts.append(f'<line x1="{at}" y1="{top - 10}" x2="{at}" y2="{bottom}" stroke="#1d2430" stroke-dasharray="5 4"/>')
        parts.append(f'<text x="{at}" y="{top - 16}" text-anchor="{anchor}">{name}</text>')
    return "\n".join([*parts, "</svg>"])
