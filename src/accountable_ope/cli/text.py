"""Results as text for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..bounds.correction import Correction, CorrectionStatus
from ..bounds.diagnosis import Diagnosis, EstimateVerdict
from ..bounds.interval import Interval, normalizer
from ..defaults.judging import RULE, UNITS
from ..defaults.recipe import Recipe
from ..io.columns import FileColumns
from ..io.display import confidence, ends_text
from ..io.reading import TransitionFile
from ..problem.statements import Status
from ..problem.transitions import StartStates
from ..radii.doubts import Doubt
from ..report.comparison import comparison
from ..report.doubts import doubt_paragraphs
from ..report.fragility import shown_fragility
from ..report.labels import premise_text
from ..verification.record import Record
from ..verification.verify import Verification

SHOWN = 20
"""Actions whose share is shown."""
STYLE = {Status.OK: "green", Status.DOUBTED: "yellow", Status.VACUOUS: "yellow", Status.INCONSISTENT: "red"}


def print_ladder(
    console: Console,
    intervals: Sequence[Interval],
    truth: float | None = None,
    to_beat: float | None = None,
    *,
    doubts: bool = True,
    names: Sequence[str] = (),
) -> None:
    """One row per radius, then what was assumed and what to do.

    truth:   the value of the target policy, where it is known.
    to_beat: that of the behavior policy, with which the last interval is compared.
    doubts:  whether to print them; not where a verdict has done so.
    names:   of the columns of the state, where they are known.
    """
    discount = intervals[0].assumptions.discount
    scale, table = normalizer(discount), _ladder_table(intervals)
    wanted = console.measure(table, options=console.options.update(width=10 * console.width)).maximum
    # Words of the head are not cut where the blanks between columns can be.
    console.print(table if wanted <= console.width else _ladder_table(intervals, gap=0))
    for label, value in (("Truth (known for this dataset)", truth), ("The behavior policy itself, to beat", to_beat)):
        if value is not None:
            normalized = "" if discount in (0, 1) else f", normalized {value * scale:.4f}"
            console.print(f"{label}: [bold]{value:.4f}[/]{normalized}")
    if to_beat is not None:
        console.print(comparison(intervals[-1], to_beat))
    print_details(console, intervals, doubts=doubts, names=names)


def _ladder_table(intervals: Sequence[Interval], gap: int = 1) -> Table:
    first = intervals[0]
    discount = first.assumptions.discount
    scale, normalized = normalizer(discount), discount not in (0, 1)
    table = titled_table(f"{first.estimand}, {confidence(first.delta)} confidence", gap)
    table.add_column("radius", no_wrap=True)
    table.add_column("value", no_wrap=True)
    if normalized:
        table.add_column(f"x {scale:.4g}", no_wrap=True)
    table.add_column("guarantee", min_width=13, max_width=20)
    table.add_column("status", no_wrap=True)
    table.add_column("residual", overflow="fold")
    for interval in intervals:
        ends = [_ends(interval, 1.0), *([_ends(interval, scale)] if normalized else [])]
        table.add_row(interval.radius.name, *ends, interval.guarantee.value, status_text(interval.status), interval.radius.uses)
    return table


def print_recipe(console: Console, recipe: Recipe | None, repeat: str | None) -> None:
    """What was chosen on the earliest rows, and how to ask for it again."""
    if recipe is None:
        return
    console.print()
    for statement in recipe.statements():
        if statement.name == "candidates":
            print_candidates(console, recipe)
        else:
            console.print(escape(str(statement)))
    if repeat is not None:
        console.print(f"To repeat it: {escape(repeat)}", soft_wrap=True)


def print_candidates(console: Console, recipe: Recipe) -> None:
    """The classes that were tried, the least misfit first."""
    table = titled_table(f"Classes that were tried, judged by the last {recipe.judged_by:,} of these rows", gap=2)
    table.add_column("class")
    for name in ("columns", "error", "chance alone"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for each in sorted(recipe.candidates, key=lambda one: one.loss):
        shares = (f"{100 * share:.2g}%" for share in (each.misfit, each.noise))
        table.add_row(escape(each.name), str(each.columns), *shares, "chosen" if each.chosen else "")
    console.print()
    console.print(table)
    console.print(f"{UNITS} {RULE}")


def print_columns(console: Console, columns: Sequence[FileColumns]) -> None:
    """Columns that were read under another name, and those that were not used."""
    sentences = [sentence for each in columns for sentence in each.sentences()]
    if sentences:
        console.print()
    for sentence in sentences:
        console.print(escape(sentence), soft_wrap=True)


def titled_table(title: str, gap: int = 1) -> Table:
    """An empty table with a line below its head and `gap` blanks between columns."""
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False)


def status_text(status: Status) -> str:
    """Its name, in its color."""
    return f"[{STYLE[status]}]{status.name}[/]"


def number_text(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def print_doubts(console: Console, doubts: Sequence[Doubt]) -> None:
    """What speaks against the premises, one paragraph each."""
    for heading, text in doubt_paragraphs(doubts):
        console.print(f"\n[yellow]{heading}[/]: {escape(text)}")


def print_details(console: Console, intervals: Sequence[Interval], *, doubts: bool = True, names: Sequence[str] = ()) -> None:
    """Assumptions, findings and advice; doubts: whether nobody has printed them yet."""
    best = intervals[-1]
    console.print(f"\nAssumed ({best.radius.name}; Bellman residuals bounded by: {best.radius.uses}):")
    for line in best.premises:
        console.print(f"  - {escape(premise_text(line, names))}")
    for interval in intervals:
        ends = [name for name, cut in zip(("lower", "upper"), interval.clipped, strict=True) if cut]
        if interval.outcome is Status.OK and ends:
            console.print(f"\n{interval.radius.name}: the {ends[0]} end is that of the declared ranges, not of the data.")
    for status in (s for s in Status if any(interval.status is s for interval in intervals)):
        if status is Status.DOUBTED and not doubts:
            continue
        names = ", ".join(interval.radius.name for interval in intervals if interval.status is status)
        console.print(f"\n{status_text(status)} ({names}): {status.value}")
    for part in best.certificates:
        if not part.consistent:
            console.print(f"  {escape(part.refutation(best.radius))}")
    if doubts:
        print_doubts(console, best.doubts)
    for sentence in shown_fragility(best):
        console.print(f"\n[yellow]Fragile[/]: {escape(sentence)}")
    for part in best.certificates:
        if part.tightening is not None:
            console.print(f"\n{escape(part.tightening.summary())}")
    for remark in best.remarks:
        console.print(escape(str(remark)))
    if best.engine is not None:
        console.print(escape(str(best.engine)))
    checked = all(interval.check() for interval in intervals)
    gaps = [c.gap for i in intervals for p in i.certificates for c in (p.lower, p.upper) if math.isfinite(c.gap)]
    largest = f", largest duality gap {max(gaps):.1e}" if gaps else ""
    console.print(f"\nCertificates: {'all recomputed and valid' if checked else '[red]NOT VALID[/]'}{largest}.")


def print_diagnosis(console: Console, diagnosis: Diagnosis, place: Callable[[int], str] = "row {}".format) -> None:
    """Verdict, interval and where the estimate is wrong; place: where a row of the data is found in its file."""
    style = "green" if diagnosis.verdict is EstimateVerdict.CONSISTENT else "red"
    compared = "at most" if diagnosis.loss <= diagnosis.radius.total else "above"
    console.print(f"[bold {style}]{diagnosis.verdict.name}[/]: {escape(diagnosis.sentence)}", highlight=False)
    console.print(
        f"\nEstimate of the value {number_text(diagnosis.estimate)}; kernel Bellman loss {diagnosis.loss:.3g}, {compared} the "
        f"radius {diagnosis.radius.total:.3g} ({diagnosis.radius.name}).",
        highlight=False,
    )
    for statement in (*diagnosis.remarks, *diagnosis.impossible):
        console.print(statement.text, markup=False)
    if diagnosis.interval.outcome is not Status.INCONSISTENT:
        where = "inside" if diagnosis.inside else "outside"
        console.print(f"The estimate lies {where} the interval for the value:\n")
    rejected = diagnosis.verdict is EstimateVerdict.REJECTED
    title, says = (
        ("Where it is wrong", "is") if rejected else ("Where rows and estimate differ most, which chance may do", "may be")
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in ("state and action", "mean residual", f"the estimate {says}", "share of the loss"):
        table.add_column(name)
    for region, where in zip(diagnosis.witness.regions, diagnosis.explanation.places, strict=True):
        direction = "too low" if region.witness > 0 else "too high"
        table.add_row(escape(where), f"{region.mean_residual:+.3g}", direction, f"{100 * region.share:.0f}%")
    print_ladder(console, [diagnosis.interval])
    console.print(table)
    if rejected:
        console.print("Rows to look at, those that contribute most to the loss:")
        for row in diagnosis.explanation.rows:
            console.print(f"  {row.sentence(place(row.row))}", markup=False, highlight=False)


def print_correction(console: Console, correction: Correction) -> None:
    """Before and after."""
    style = "red" if correction.status is CorrectionStatus.INFEASIBLE else "green"
    console.print(f"[bold {style}]{correction.status.name}[/]: {correction.status.value}")
    console.print(
        f"\nValue {number_text(correction.estimate_before)} -> {number_text(correction.estimate_after)}; loss "
        f"{correction.loss_before:.3g} -> {correction.loss_after:.3g}, radius {correction.radius.total:.3g}, least loss "
        f"{correction.least_loss:.3g}; norm of the change {number_text(correction.norm)}.",
        highlight=False,
    )
    if correction.note:
        console.print(escape(correction.note))
    for statement in (*correction.remarks, *correction.doubts):
        console.print(statement.text, markup=False)
    console.print()
    print_ladder(console, [correction.interval])


def _ends(interval: Interval, scale: float) -> str:
    if interval.outcome is Status.INCONSISTENT:
        return "-"
    return escape(ends_text(scale * interval.lower, scale * interval.upper))


def print_description(
    console: Console,
    file: TransitionFile,
    name: str,
    reward_range: tuple[float, float] | None,
    starts: StartStates | None = None,
    policy: str | None = None,
) -> None:
    """What a data file holds, before any statistics; policy: the target policy that was given beside the file."""
    data = file.data
    table = Table(title=escape(name), title_justify="left", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("found")
    table.add_row("transitions", f"{len(data):,}")
    if data.episodes is None:
        table.add_row("episodes", "unknown (no `episode` column)")
    else:
        lengths = np.bincount(data.episodes)
        table.add_row("episodes", f"{len(lengths):,}, of {lengths.min()} to {lengths.max()} transitions")
        table.add_row("rows that follow on", _continuity(file))
    table.add_row("terminated", f"{int(data.terminated.sum()):,} rows ({100 * data.terminated.mean():.2f}%)")
    observed = (float(data.rewards.min()), float(data.rewards.max()))
    declared = "" if reward_range is None else f"; declared [{reward_range[0]:g}, {reward_range[1]:g}]".replace("[", r"\[")
    table.add_row("rewards", f"{observed[0]:g} to {observed[1]:g}, mean {data.rewards.mean():.4g}{declared}")
    table.add_row("states", f"{data.states.shape[1]} columns")
    for j, column in enumerate(data.states.T):
        name = file.columns.states[j] if j < len(file.columns.states) else f"state {j}"
        table.add_row(f"  {escape(name)}", f"{column.min():.4g} to {column.max():.4g}, standard deviation {column.std():.4g}")
    if data.finite_actions:
        counts = np.bincount(data.actions.astype(np.int64))
        names = data.naming.actions
        called = [escape(str(names[index])) if index < len(names) else str(index) for index in range(len(counts))]
        shares = ", ".join(f"{called[index]}: {100 * count / len(data):.1f}%" for index, count in enumerate(counts[:SHOWN]))
        more = f", and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
        table.add_row("actions", f"{len(counts)} {'names' if names else 'indices'}; {shares}{more}")
    else:
        table.add_row("actions", f"vectors of {data.actions.shape[1]} columns")
    if data.behavior_probability is not None:
        low, high = data.behavior_probability.min(), data.behavior_probability.max()
        kind = "probabilities" if data.finite_actions else "densities"
        table.add_row("logger", f"{kind} recorded, {low:.3g} to {high:.3g}")
    table.add_row("start states", _start_summary(starts))
    table.add_row("target policy", _policy_summary(file) if policy is None else f"given: {escape(policy)}")
    console.print(table)


def _start_summary(starts: StartStates | None) -> str:
    if starts is None:
        return "unknown (give --starts to `aope bound`)"
    return f"{len(starts):,}, {'the distribution itself' if starts.exact else 'an i.i.d. sample'}"


def _continuity(file: TransitionFile) -> str:
    """How many next states are the state of the following row of the same episode: the order of generation, if logged whole."""
    data = file.data
    assert data.episodes is not None
    same = data.episodes[1:] == data.episodes[:-1]
    if not same.any() and len(np.unique(data.episodes)) < len(data):
        return "none: rows of one episode do not stand together"
    if not same.any():
        return "no episode has two rows"
    follows = (data.next_states[:-1] == data.states[1:]).all(axis=1)[same]
    return f"{100 * follows.mean():.1f}% of the rows within episodes start where the row before ended"


def _policy_summary(file: TransitionFile) -> str:
    if file.at_next is None:
        rule = '"treat if lactate > 2 else wait"'
        return f"not in this file (give a column target_action, or --policy: a rule such as {rule}, policy.onnx, module:function)"
    text = f"probabilities of {file.at_next.shape[1]} actions at the next states"
    if file.at_state is not None and file.data.finite_actions and file.data.actions.max() < file.at_state.shape[1]:
        chosen = file.at_state[np.arange(len(file.data)), file.data.actions.astype(np.int64)]
        text += f" and states; mean probability of the logged actions {chosen.mean():.3f}"
    return text


def print_verification(console: Console, record: Record, found: Verification) -> None:
    """What is proved, and under which premises."""
    console.print(found.message, style="green" if found.valid else "bold red", markup=False, highlight=False, soft_wrap=True)
    if found.valid:
        console.print("\nPremises:", highlight=False)
        for statement in found.premises:
            console.print(f"  - {statement.text}", markup=False, highlight=False, soft_wrap=True)
        for doubt in found.doubts:
            console.print(f"\nDoubt: {doubt.text}", markup=False, highlight=False, soft_wrap=True, style="yellow")
    rows, name = record.data.rows, record.data.sha256[:16]
    console.print(f"\nCertificate of version {record.version}, {rows} rows with SHA-256 {name}...", highlight=False)
