"""Pictures show what they are given, in colors that differ, and say what is missing."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PathCollection

import accountable_ope as aope
from accountable_ope.bounds.findings import Curve, Flip, FlipOutcome, Parameter
from accountable_ope.bounds.looks import Look
from accountable_ope.experiments.bounds import BoundRow
from accountable_ope.experiments.estimators import EstimateRow
from accountable_ope.experiments.importance import LowerRow
from accountable_ope.experiments.scale import QUICK
from accountable_ope.io.display import LONGEST, shortened
from accountable_ope.laboratory.summary import Coverage
from accountable_ope.problem.statements import Guarantee
from accountable_ope.report.coverage_plot import APART, STYLES, coverage_figure
from accountable_ope.report.experiment_plots import bounds_figure, estimates_figure, importance_figure
from accountable_ope.report.interval_bars import CROSSED, IntervalBar, draw_bars
from accountable_ope.report.monitor_plot import monitor_figure
from accountable_ope.report.plots import new_figure, save_figure
from accountable_ope.report.sensitivity_plot import sensitivity_figure

OK, VACUOUS, INCONSISTENT = aope.Status.OK, aope.Status.VACUOUS, aope.Status.INCONSISTENT
NAN = math.nan


def legend(figure):
    [one] = figure.legends
    return [text.get_text() for text in one.get_texts()]


def ticks(axes):
    return [text.get_text() for text in axes.get_xticklabels()]


# Bars of intervals


def test_long_names_are_shortened_in_their_middle_and_stay_apart():
    rules = [f"1 if age > 60 and dose < 2 and severity >= {level} and pulse > 90 else 0" for level in (3, 4)]
    assert shortened("logged policy") == "logged policy"
    assert (
        len(shortened(rules[0])) <= LONGEST
        and shortened(rules[0]).startswith("1 if age")
        and shortened(rules[0]).endswith("else 0")
    )
    axes = new_figure(4.0, 2.0).subplots()
    draw_bars(axes, [IntervalBar(rule, 0, 1) for rule in rules], "All intervals at once, 90% confidence")
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert len(set(names)) == 2, "these are told apart by their middle"
    title = axes.get_title(loc="left")
    assert " ".join(title.split()) == "All intervals at once, 90% confidence" and "\n" in title
    wide = new_figure(9.0, 2.0).subplots()
    draw_bars(wide, [IntervalBar("new", 0, 1)], "All intervals at once, 90% confidence")
    assert "\n" not in wide.get_title(loc="left")


def test_a_title_stays_on_a_narrow_picture():
    figure = new_figure(4.0, 3.0)
    axes = figure.subplots()
    draw_bars(axes, [IntervalBar("1 if age > 60 and dose < 2 else 0", 0.2, 0.4)], "All intervals at once, 90% confidence")
    figure.draw_without_rendering()
    [title] = [each for each in axes.get_children() if getattr(each, "get_text", str)() == axes.get_title(loc="left")]
    assert title.get_window_extent().x1 <= figure.bbox.x1
    assert axes.get_window_extent().width > 0.4 * figure.bbox.width, "names leave room for the bars"


def test_the_first_row_is_what_the_first_sentence_says_and_the_logged_policy_has_its_own():
    kinds = np.arange(300) % 3
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, 300)
    data = aope.Transitions(
        kinds[:, None], actions, rng.integers(0, 2, 300), kinds[:, None], np.ones(300, bool), np.arange(300),
        behavior_probability=np.full(300, 0.5),
    )  # fmt: skip
    policy = aope.DiscretePolicy(lambda states: np.tile([0.2, 0.8], (len(states), 1)), actions=2)
    interval = aope.bound_value(
        aope.Problem(data, data.first_states(), policy, aope.Assumptions(discount=0, reward_range=(0, 1)))
    )
    axes = new_figure(7.5, 3.0).subplots()
    interval.plot(axes=axes)
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names[:2] == ["recorded\nprobabilities", "certified,\nof the class"] and names[-1] == "logged policy"
    leading = interval.companions().leading
    assert list(axes.lines[0].get_xdata()) == [leading.lower, leading.upper]
    assert axes.lines[0].get_linewidth() > axes.lines[1].get_linewidth()


def test_ends_that_cross_are_said_in_words():
    axes = new_figure(7.5, 3.0).subplots()
    draw_bars(axes, [IntervalBar("crossed", 0.6, 0.5, INCONSISTENT, nothing=CROSSED)], "")
    assert [text.get_text() for text in axes.texts] == ["the ends cross: no value follows"]


# What all pictures share


def test_without_matplotlib_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(aope.MissingExtra, match=r'pip install "accountable-ope\[plots\]"'):
        new_figure(1, 1)


def test_a_picture_is_written_in_the_format_of_its_name(tmp_path):
    figure = new_figure(2, 2)
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")):
        save_figure(figure, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(aope.InvalidInput, match=r"must end in .png, .svg or .pdf. Got 'a.jpg'"):
        save_figure(figure, tmp_path / "a.jpg")
    with pytest.raises(aope.InvalidFile, match="cannot be written"):
        save_figure(figure, tmp_path / "no-such-folder" / "a.png")


@pytest.mark.parametrize("draw", [coverage_figure, sensitivity_figure, monitor_figure])
def test_nothing_to_draw_is_refused(draw):
    with pytest.raises(aope.InvalidInput, match="nothing to draw"):
        draw([])


# Coverage


def coverage(family, method, n, *, delta=0.1, covered=95, whole=0.0):
    low, high = covered / 100 - 0.03, min(1.0, covered / 100 + 0.03)
    return Coverage(family, "i.i.d.", method, "finite-sample", n, delta, 100, covered, low, high, 10 / n, whole, 0.0, 0.1)


def dots(axes):
    """(x, y) of all that is drawn as dots."""
    drawn = [dot for dot in axes.collections if isinstance(dot, PathCollection)]
    return sorted((round(float(x), 6), round(float(y), 6)) for dot in drawn for x, y in dot.get_offsets())


def test_coverage_has_a_panel_per_group_and_a_dot_per_family_size_and_method():
    rows = [coverage("chain", "azuma", 100), coverage("chain", "azuma", 1000), coverage("chain", "wild", 100, covered=96)]
    figure = coverage_figure(
        [*rows, coverage("bandit", "azuma", 100), coverage("mine", "azuma", 100), coverage("clinic", "azuma", 100)]
    )
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title("left") for axes in shown] == ["finite states", "rare events, endings", "bandits, coins", "others"]
    assert len(figure.axes) == 6
    assert dots(shown[0]) == [(0.01, 0.95), (0.1, 0.95), (0.1, 0.96)]
    assert legend(figure) == ["azuma", "wild", "claimed"]
    assert [line.get_ydata()[0] for line in shown[0].lines] == [0.9]


def test_several_deltas_have_a_line_of_panels_each():
    cells = [(family, delta) for delta in (0.5, 0.1) for family in ("chain", "bandit")]
    figure = coverage_figure([coverage(family, "azuma", 100, delta=delta) for family, delta in cells[:-1]])
    assert [axes.get_ylabel() for axes in figure.axes] == ["covered (0.9 claimed)", "", "covered (0.5 claimed)", ""]
    assert [axes.axison for axes in figure.axes] == [True, False, True, True]


def test_dots_that_would_hide_each_other_lie_apart_and_others_where_they_are():
    full = [coverage("chain", method, 100, covered=100) for method in ("azuma", "certified", "sandwich")]
    [axes] = coverage_figure([*full, coverage("chain", "azuma", 1000, covered=99)]).axes
    assert dots(axes) == [(0.01, 0.99), (0.1, 1.0), (0.1, 1.0 + APART), (0.1, 1.0 + 2 * APART)]


def test_whole_ranges_and_what_is_refuted_are_marked():
    figure = coverage_figure([coverage("chain", "azuma", 100, whole=0.8), coverage("fair-steps", "azuma", 300, covered=20)])
    assert legend(figure) == ["azuma", "claimed", "hollow: most intervals are the whole range", "refuted"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["fair-steps"]


def test_dots_differ_in_color_and_in_grey():
    assert len(STYLES) == len({style.color for style in STYLES}) == len({style.marker for style in STYLES})


# Monitor


def look(count, now, running, status=OK):
    return Look(count, now, status, *running, status, 0.0)


LOOKS = [look(100, (0.0, 5.0), (0.0, 5.0), VACUOUS), look(200, (1.0, 4.0), (1.0, 4.0)), look(300, (0.5, 2.5), (1.0, 2.5))]


def test_a_monitor_shows_the_running_interval_every_look_and_the_decision():
    figure = monitor_figure(LOOKS, threshold=4.5, truth=2.2)
    assert legend(figure) == [
        "running interval", "ends of each look alone", "threshold 4.5", "certainly below 4.5: 200 rows", "true value",
    ]  # fmt: skip
    lines = {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].lines}
    assert lines["ends of each look alone"] == [[100, 0], [100, 5], [200, 1], [200, 4], [300, 0.5], [300, 2.5]]
    assert lines["certainly below 4.5: 200 rows"] == [[200, 4]]


def test_a_monitor_of_a_refuted_class():
    refuted = look(400, (NAN, NAN), (NAN, NAN), INCONSISTENT)
    assert legend(monitor_figure([*LOOKS, refuted], threshold=4.5)) == [
        "running interval", "class refuted: 400 rows", "ends of each look alone", "threshold 4.5",
    ]  # fmt: skip
    assert legend(monitor_figure([refuted])) == ["class refuted: 400 rows"]


# Sensitivity


def curve(parameter, values, statuses=None, baseline=None):
    k = len(values)
    statuses = (OK,) * k if statuses is None else statuses
    ends = [[NAN if status is INCONSISTENT else end for status in statuses] for end in (0.2, 0.8)]
    return Curve(parameter, tuple(values), *map(tuple, ends), tuple(statuses), tuple((0.0, 1.0 + v) for v in values), baseline,
                 "certified", Guarantee.FINITE_SAMPLE, 0.1)  # fmt: skip


def flip(parameter, outcome, value=None, beyond=None):
    return Flip(parameter, 0.1, outcome, value, 0.1, beyond, None, True, "certified", Guarantee.FINITE_SAMPLE, 0.1)


def test_sensitivity_shows_bands_regions_and_decisions():
    curves = [
        curve(Parameter.NORM_BOUND, (0.1, 1.0, 10.0), (INCONSISTENT, OK, VACUOUS), baseline=1.0),
        curve(Parameter.DELTA, (0.05, 0.1)),
        curve(Parameter.REWARD_RANGE, (1.0, 2.0)),
    ]
    flips = [flip(Parameter.NORM_BOUND, FlipOutcome.FLIPS, 2.0, 2.1), flip(Parameter.DELTA, FlipOutcome.NEVER)]
    figure = sensitivity_figure(curves, flips)
    assert [axes.get_title("left") for axes in figure.axes if axes.axison] == ["norm bound", "delta", "reward range"]
    assert [axes.get_title("right") for axes in figure.axes] == ["value >= 0.1 up to 2", "value >= 0.1 at no value", "", ""]
    assert {"interval", "declared", "threshold", "last value that supports value >= threshold"} <= set(legend(figure))
    assert sum(name.startswith(("VACUOUS", "INCONSISTENT")) for name in legend(figure)) == 2
    assert figure.axes[1].xaxis_inverted() and not figure.axes[0].xaxis_inverted()


@pytest.mark.parametrize(
    ("parameter", "values", "expected"),
    [
        (Parameter.MISFIT, (0.0, 0.01, 0.1), ["0", "0.01", "0.02", "0.05", "0.1"]),  # nothing between 0 and the first value
        (Parameter.MISFIT, (0.0,), ["0"]),
        (Parameter.NORM_BOUND, (0.1, 50.0), ["0.1", "0.3", "1", "3", "10", "30"]),
        (Parameter.DELTA, (0.07,), ["0.07"]),
        (Parameter.DISCOUNT, (0.0, 0.5, 0.9), ["1", "2", "5", "10"]),  # effective horizons
    ],
)
def test_ticks_are_few_round_numbers(parameter, values, expected):
    assert ticks(sensitivity_figure([curve(parameter, values)]).axes[0]) == expected


def test_the_discount_is_drawn_per_step():
    axes = sensitivity_figure([curve(Parameter.DISCOUNT, (0.5, 0.9))], threshold=0.3).axes[0]
    assert axes.get_ylabel() == "value x (1 - discount)"
    lower = next(line for line in axes.lines if line.get_label() == "interval")
    assert lower.get_xydata().ravel() == pytest.approx([2, 0.1, 10, 0.02])
    assert all(line.get_label() != "threshold" for line in axes.lines)  # another discount is another question


# The paper's figures


def bound_row(**changes):
    row = BoundRow("task", "fourier", "certified", "finite-sample", 1000, 0.1, 1.0, 10, 0, 0, 0.2, 0.6, 0.4, True, "OK", 1, 1, 0,
                   0.0, 0.0, 0.0, 0.0)  # fmt: skip
    return replace(row, **changes)


def test_figure_1_draws_mean_ends_shares_and_crosses():
    empty = {"kind": "neural", "lower": NAN, "upper": NAN, "covered": False}
    rows = [bound_row(), bound_row(trial=1, lower=0.4, upper=1.0, covered=False), bound_row(n=300), bound_row(**empty)]
    figure = bounds_figure(rows, QUICK)
    assert len(figure.axes) == 4 and legend(figure) == ["truth", "random Fourier features", "neural features"]
    first = figure.axes[0]
    assert ticks(first) == ["300", "1000"] and [text.get_text() for text in first.texts] == ["1.00", "0.50"]
    band = first.containers[0].lines[2][0].get_segments()
    assert [segment[:, 1].tolist() for segment in band] == [pytest.approx([0.2, 0.6]), pytest.approx([0.3, 0.8])]
    assert [line.get_xydata().tolist() for line in first.lines if line.get_marker() == "x"] == [[[1, pytest.approx(0.13)]]]
    assert "over 2 trials" in figure.get_suptitle()


def test_figures_2_and_3_draw_means_over_what_exists():
    def row(**changes):
        base = dict.fromkeys(EstimateRow.__dataclass_fields__, 0)
        base |= {"task": "task", "radius": "certified", "n": 500, "delta": 0.1, "lower": 0.1, "upper": 0.9, "truth": 0.5}
        return EstimateRow(**base | {"before": 0.7, "after": 0.6, "accepted": True} | changes)

    first = [row(estimator="Q1", norm=2.0), row(estimator="Q1", norm=4.0, trial=1), row(estimator="Q1", norm=NAN, trial=2)]
    figure = estimates_figure([*first, row(estimator="Q2", after=NAN), row(estimator="Q2", radius="wild")], 500, "certified")
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[:3] == ["(a) Q1", "(b) Q2", "(c) norm of the correction"] and titles[5].startswith("(f)")
    assert legend(figure) == ["post-hoc interval", "estimate", "corrected", "truth", "change of Q1", "change of Q2"]
    assert figure.axes[2].lines[0].get_ydata().tolist() == [3.0]
    assert math.isnan(figure.axes[1].lines[1].get_ydata()[0])


def test_figure_4_draws_every_method_against_its_own_truth():
    def row(method, episodes, lower, threshold=NAN, delta=0.1):
        truth = 0.8 if "ours" in method else 0.9
        return LowerRow("task", method, "finite-sample", episodes, 100, delta, threshold, 0, 0, lower, truth, True, 0.0)

    rows = [
        row("betting", 20, 0.1),
        row("betting", 100, 0.3),
        row("ours, certified", 100, 0.2),
        row("ours, certified", 100, 0.1, delta=0.01),
    ]
    figure = importance_figure([*rows, *(row("hcope, fixed c", 100, -0.1, threshold) for threshold in (1e-5, 1.0))])
    labels = ["hcope, fixed c = 1e-05", "betting", "ours, certified", "truth, T steps", "truth, forever"]
    assert legend(figure) == labels
    assert [ticks(axes) for axes in figure.axes] == [["20", "100"], ["0.9", "0.99"], ["1e-05", "1"]]
    heights = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].lines}
    assert heights["betting"] == [0.1, 0.3] and heights["truth, forever"] == [0.8, 0.8]
