"""Sensitivity by behavior: nested curves, flip points checked from both sides, rows needed checked by drawing them, refusals."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.bounds.findings import FlipOutcome, Parameter, RowsOutcome
from accountable_ope.bounds.sensitivity import study
from accountable_ope.environments import PlantedMDP
from accountable_ope.report.plots import save_figure
from accountable_ope.report.sensitivity_plot import sensitivity_figure

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=40, length=40)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0.0, 1.0), norm_bound=1.5 * MDP.norm, reward_noise=False)
KERNEL = aope.Gaussian(1.0)
FEW = settings(max_examples=15, deadline=None)
OF_ANY_CLASS = [each for each in Parameter if each is not Parameter.MISFIT_NORM]  # that one: test_semi_parametric.py


def made(facts=FACTS, data=DATA, features=None, starts=MDP.starts, radius="azuma", delta=0.1):
    chosen = MDP.features() if features is None else features
    return study(aope.Problem(data, starts, MDP.policy, facts), kernel=KERNEL, features=chosen, radius=radius, delta=delta)


def direct(facts=FACTS, data=DATA, features=None, radius="azuma", delta=0.1):
    chosen = MDP.features() if features is None else features
    return aope.bound_value(
        aope.Problem(data, MDP.starts, MDP.policy, facts), kernel=KERNEL, features=chosen, radius=radius, delta=delta
    )


def changed(parameter, value, radius):
    """`bound_value` itself, with one thing changed."""
    if parameter is Parameter.DELTA:
        return direct(radius=radius, delta=value)
    if parameter is Parameter.REWARD_RANGE:
        return direct(dataclasses.replace(FACTS, reward_range=(0.5 - 0.5 * value, 0.5 + 0.5 * value)), radius=radius)
    return direct(dataclasses.replace(FACTS, **{parameter.value: value}), radius=radius)


AZUMA, CERTIFIED = made(), made(radius="certified")
VALUES = (
    (Parameter.NORM_BOUND, (0.8, 5.0)),
    (Parameter.MISFIT, (0.0, 0.01)),
    (Parameter.DELTA, (0.5, 0.001)),
    (Parameter.DISCOUNT, (0.6, 0.5)),
    (Parameter.REWARD_RANGE, (1.0, 2.0)),
)


@pytest.mark.parametrize("one", [AZUMA, CERTIFIED], ids=["azuma", "certified"])
@pytest.mark.parametrize(("parameter", "values"), VALUES, ids=lambda x: getattr(x, "value", ""))
def test_one_statistic_gives_the_intervals_of_bound_value_to_the_last_digit(one, parameter, values):
    chosen = values if one is AZUMA else values[-1:]
    curve = one.curve(parameter, chosen)
    assert curve.values == tuple(sorted(chosen))
    for row in curve.rows():
        if one is AZUMA or parameter is Parameter.DISCOUNT:
            interval = changed(parameter, row.value, one.radius)
        else:  # rates and weights are those that were fixed for what was declared
            interval = one.at(parameter, row.value)
            assert interval.check()
        assert (row.lower, row.upper, row.status) == (interval.lower, interval.upper, interval.status)


def assert_nested(curve, tolerance, descending=False):
    """No interval is narrower than the one before it, by more than this share of its width."""
    rows = [row for row in curve.rows() if row.status is not aope.Status.INCONSISTENT]
    for narrow, wide in zip(*((rows[::-1], rows[-2::-1]) if descending else (rows, rows[1:])), strict=False):
        slack = tolerance * (narrow.upper - narrow.lower)
        assert wide.lower <= narrow.lower + slack and narrow.upper <= wide.upper + slack


@FEW
@given(st.lists(st.floats(0.05, 50.0), min_size=2, max_size=5))
def test_nested_in_everything_at_a_constant_radius(values):
    assert_nested(AZUMA.curve("norm_bound", values), 1e-6)
    assert_nested(AZUMA.curve("misfit", [0.0, *(0.01 * x for x in values)]), 1e-6)
    assert_nested(AZUMA.curve("delta", [0.019 * x for x in values]), 1e-6, descending=True)
    assert_nested(AZUMA.curve("reward_range", [1 + x for x in values]), 1e-6)


@pytest.mark.parametrize(
    ("over", "values"),
    [
        ("norm_bound", (0.6, 0.9, 1.4, 3.0, 20.0)),
        ("misfit", (0.0, 0.001, 0.01, 0.05)),
        ("delta", (0.5, 0.1, 0.01, 1e-4)),
        ("reward_range", (1.0, 3.0, 30.0)),
    ],
)
def test_nested_when_the_radius_follows_the_variance(over, values):
    """Up to the tolerance of the solver: a thousandth of the width."""
    assert_nested(CERTIFIED.curve(over, values), 1e-3, descending=over == "delta")


def test_a_study_has_room_above_what_was_declared():
    """Rates at the very limit of the declared range would be lost at the next larger one, and the width would jump by two thirds.

    What the room costs at the declared norm is at most a sixth of the width, against the interval of `bound_value`.
    """
    alone = direct(radius="certified")
    assert alone.width <= CERTIFIED.baseline.width <= 1.16 * alone.width
    for factor, most in ((1.05, 1.4), (1.2, 1.4), (1.5, 2.3)):
        larger = CERTIFIED.at("norm_bound", factor * FACTS.norm_bound)
        assert larger.width <= most * alone.width, factor


def test_refuted_and_vacuous_values_stay_in_the_curve():
    curve = CERTIFIED.curve("norm_bound", (0.05, 0.7))
    assert curve.statuses == (aope.Status.INCONSISTENT, aope.Status.OK)
    assert math.isnan(curve.lower[0]) and math.isnan(curve.upper[0]) and not math.isnan(curve.lower[1])
    wide = AZUMA.curve("misfit", (0.0, 2.0))
    assert wide.statuses == (aope.Status.OK, aope.Status.VACUOUS)
    assert (wide.lower[1], wide.upper[1]) == wide.allowed[1] == (0.0, 2.5)


@pytest.mark.parametrize("parameter", OF_ANY_CLASS)
def test_what_was_declared_is_among_the_default_values(parameter):
    curve = AZUMA.curve(parameter)
    assert 5 <= len(curve.values) <= 15 and list(curve.values) == sorted(set(curve.values))
    (row,) = (row for row in curve.rows() if row.baseline)
    assert (row.lower, row.upper) == (AZUMA.baseline.lower, AZUMA.baseline.upper)
    assert curve.radius == "azuma" and curve.guarantee is aope.Guarantee.FINITE_SAMPLE and curve.delta == 0.1


def test_norm_bounds_that_were_not_declared_as_numbers():
    free = made(dataclasses.replace(FACTS, norm_bound=None)).curve("norm_bound")
    assert free.baseline is None and not any(row.baseline for row in free.rows())
    relative = made(dataclasses.replace(FACTS, norm_bound=aope.RelativeNorm(3.0)), radius="certified")
    assert relative.curve("norm_bound", [1.0]).baseline == relative.baseline.certificates[0].norm_bound


def test_undiscounted_episodes_have_a_default_grid():
    from accountable_ope.environments import clinic

    world = clinic(discount=1.0)
    table = np.full((6, 3), 1 / 3)
    data = world.sample_trajectories(table, 200, 60, np.random.default_rng(0))
    policy = aope.TabulatedPolicy(np.arange(4.0), table[:4], 3)
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    curve = aope.study(
        aope.Problem(data, aope.StartStates(np.arange(4.0)), policy, facts),
        kernel=aope.Tabular(),
        features=aope.TabularFeatures.grid(np.arange(4.0)[:, None], policy.action_vectors),
        radius="azuma",
    ).curve("discount")
    assert curve.baseline == curve.values[-1] == 1.0 and set(curve.allowed) == {(0.0, 1.0)}


def test_a_curve_tells_its_progress():
    done = []
    curve = AZUMA.curve("misfit", [0.0, 0.1], progress=done.append)
    assert curve == AZUMA.curve(Parameter.MISFIT, (0.1, 0.0))
    assert done == sorted(done) and done[0] >= 0 and done[-1] == 1.0


def test_the_least_norm_is_refuted_and_a_little_more_is_not():
    found = CERTIFIED.least_norm()
    assert 0 < found.value < MDP.norm
    assert found.value < found.consistent <= 1.0101 * found.value
    assert CERTIFIED.at("norm_bound", found.value).outcome is aope.Status.INCONSISTENT
    assert CERTIFIED.at("norm_bound", found.consistent).outcome is aope.Status.OK


def test_the_least_norm_at_a_constant_radius_is_that_of_the_program():
    """A level so small that a constant Q has too large a loss; the program without the box gives the same number."""
    one = made(data=MDP.sample(np.random.default_rng(1), trajectories=400, length=50), delta=0.9)
    found = one.least_norm(tolerance=1e-4)
    assert found.value == pytest.approx(one.baseline.certificates[0].least_norm, rel=2e-3)


def constant(data=DATA):
    """A class that the data refute whatever its norm."""
    one = np.zeros((len(data), 1))
    return aope.Precomputed(one, one, np.zeros((len(MDP.starts), 1)), intercept=True)


def test_the_least_norm_where_nothing_and_where_everything_is_refuted():
    few = made(data=MDP.sample(np.random.default_rng(0), trajectories=2, length=10)).least_norm()
    assert few.value == 0.0 and few.consistent is not None
    refuted = made(features=constant(), radius="certified").least_norm()
    assert refuted.consistent is None and refuted.value > 1e3


@pytest.mark.parametrize("over", ["norm_bound", "misfit", "delta", "reward-range"])
def test_flip_points_hold_on_one_side_and_not_on_the_other(over):
    threshold = AZUMA.baseline.lower - 0.05
    flip = AZUMA.flip_point(threshold, over)
    assert flip.outcome is FlipOutcome.FLIPS and flip.baseline_supports
    inside, outside = (changed(flip.parameter, value, "azuma") for value in (flip.value, flip.beyond))
    assert inside.lower == flip.lower >= threshold > outside.lower
    small, large = sorted((flip.value, flip.beyond))
    assert large <= small * 1.0101 + 1e-6 * 2.5
    assert (flip.beyond < flip.value < 0.1) if over == "delta" else (flip.baseline < flip.value < flip.beyond)


def test_a_flip_point_where_the_radius_follows_the_variance():
    flip = CERTIFIED.flip_point(CERTIFIED.baseline.lower - 0.01, "norm_bound", tolerance=0.05)
    assert flip.outcome is FlipOutcome.FLIPS
    inside, outside = (CERTIFIED.at(Parameter.NORM_BOUND, value) for value in (flip.value, flip.beyond))
    assert inside.lower >= flip.threshold > outside.lower


def test_decisions_that_hold_always_and_never():
    always = AZUMA.flip_point(0.5, "norm_bound")
    assert always.outcome is FlipOutcome.ALWAYS and always.value >= 1e4 and always.beyond is None
    assert direct(dataclasses.replace(FACTS, norm_bound=None)).lower == pytest.approx(always.lower, rel=1e-6)
    for over in ("misfit", "delta", "reward_range"):
        never = AZUMA.flip_point(2.0, over)
        assert never.outcome is FlipOutcome.NEVER and (never.value, never.lower, never.beyond) == (None, None, None)
        assert not never.baseline_supports
    assert AZUMA.flip_point(0.0, "misfit").outcome is FlipOutcome.ALWAYS  # the range of values says so


def test_a_decision_that_only_a_stronger_assumption_supports():
    """Not supported at what was declared, but at smaller norm bounds, down to where they are refuted."""
    low = CERTIFIED.least_norm(0.05)
    threshold = direct(dataclasses.replace(FACTS, norm_bound=1.2 * low.consistent), radius="certified").lower
    flip = CERTIFIED.flip_point(threshold, "norm_bound", tolerance=0.05)
    assert not flip.baseline_supports and flip.outcome is FlipOutcome.FLIPS
    assert low.value < flip.value < flip.beyond < FACTS.norm_bound
    assert CERTIFIED.flip_point(2.4, "norm_bound", tolerance=0.2).outcome is FlipOutcome.NEVER


def test_a_declared_norm_that_is_refuted_may_support_the_decision_when_it_grows():
    small = made(dataclasses.replace(FACTS, norm_bound=0.05), radius="certified")
    assert small.baseline.status is aope.Status.INCONSISTENT
    flip = small.flip_point(1.0, "norm_bound", tolerance=0.2)
    assert not flip.baseline_supports and flip.value is not None and flip.lower >= 1.0


def test_a_class_that_is_refuted_supports_nothing():
    flip = made(features=constant(), radius="certified").flip_point(0.1, "norm_bound")
    assert flip.outcome is FlipOutcome.REFUTED and flip.value is None and not flip.baseline_supports


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_the_rows_needed_are_right_within_a_factor_of_two(radius):
    one = AZUMA if radius == "azuma" else CERTIFIED
    alone = direct(radius=radius).width
    wanted = 0.5 * alone
    found = one.rows_needed(wanted)
    assert found.outcome is RowsOutcome.EXTRAPOLATED and "not guaranteed" in found.outcome.value
    assert [point.rows for point in found.points] == [200, 400, 800, 1600]
    assert found.points[-1].width == alone
    assert len(DATA) < found.rows <= found.slower == pytest.approx(4 * len(DATA), abs=1)
    widths = []
    for rows in (found.rows // 2, 2 * found.rows):
        fresh = MDP.sample(np.random.default_rng(7), trajectories=rows // 40, length=40)
        interval = direct(data=fresh, radius=radius)
        widths.append(interval.upper - interval.lower)
    assert widths[1] < wanted < widths[0]


def test_rows_needed_refuses_what_it_cannot_know():
    width = AZUMA.baseline.upper - AZUMA.baseline.lower
    enough = AZUMA.rows_needed(1.1 * width)
    assert enough.outcome is RowsOutcome.ENOUGH and enough.rows == len(DATA)
    vacuous = made(radius="hoeffding").rows_needed(0.1)
    assert vacuous.outcome is RowsOutcome.VACUOUS and vacuous.rows is None
    assert {point.status for point in vacuous.points} == {aope.Status.VACUOUS}
    sampled = made(starts=aope.StartStates(MDP.starts.states, exact=False)).rows_needed(0.3)
    assert sampled.outcome is RowsOutcome.FLOOR and sampled.floor > 0.3 and sampled.rows is None
    # What a misfit adds to every loss does not become less with more rows; the width falls slower than n^(-1/4).
    stuck = made(dataclasses.replace(FACTS, misfit=0.1)).rows_needed(0.22, parts=2)
    assert stuck.outcome is RowsOutcome.STUCK and stuck.rows is None and stuck.floor < 0.22
    few, all_rows = stuck.points
    assert all_rows.width - stuck.floor > (few.width - stuck.floor) * (few.rows / all_rows.rows) ** 0.25
    refuted = made(dataclasses.replace(FACTS, norm_bound=0.05), radius="certified").rows_needed(0.1, parts=2)
    assert refuted.outcome is RowsOutcome.REFUTED and refuted.rows is None


def test_bad_input_is_one_sentence():
    with pytest.raises(aope.InvalidInput, match="`over` must be one of norm_bound, misfit, delta, discount, reward_range"):
        AZUMA.curve("kernel")
    with pytest.raises(aope.InvalidInput, match="`values` must name at least one value"):
        AZUMA.curve("misfit", [])
    with pytest.raises(aope.InvalidInput, match="`norm_bound` must be positive"):
        AZUMA.curve("norm_bound", [-1.0])
    with pytest.raises(aope.InvalidInput, match="`delta` must be in"):
        AZUMA.curve("delta", [1.0])
    with pytest.raises(aope.InvalidInput, match="must lie in the declared reward_range"):
        AZUMA.curve("reward_range", [0.1])
    with pytest.raises(aope.InvalidInput, match="another discount is another question"):
        AZUMA.flip_point(1.0, "discount")
    with pytest.raises(aope.InvalidInput, match="intervals with a RelativeNorm are not nested"):
        made(dataclasses.replace(FACTS, norm_bound=aope.RelativeNorm(3.0))).flip_point(1.0, "delta")
    with pytest.raises(aope.InvalidInput, match="`threshold` must be a finite number"):
        AZUMA.flip_point(math.nan, "delta")
    with pytest.raises(aope.InvalidInput, match="`width` must be positive"):
        AZUMA.rows_needed(0.0)
    with pytest.raises(aope.InvalidInput, match="`parts` must be a whole number of at least 2"):
        AZUMA.rows_needed(0.1, parts=1)
    with pytest.raises(aope.InvalidInput, match="cannot be cut with them"):
        made(features=constant()).rows_needed(0.1)
    with pytest.raises(aope.InvalidInput, match="`radius` must be one of"):
        made(radius="magic")
    with pytest.raises(aope.InvalidInput, match="must lie in the declared reward_range"):
        made(dataclasses.replace(FACTS, reward_range=(0.0, 0.1)))


def test_the_picture_shows_everything(tmp_path):
    curves = [AZUMA.curve(one) for one in OF_ANY_CLASS]
    flips = [AZUMA.flip_point(0.7, one) for one in ("norm_bound", "misfit")]
    figure = sensitivity_figure(curves, flips)
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title("left") for axes in panels] == ["norm bound", "misfit", "delta", "discount", "reward range"]
    assert panels[0].get_title("right").startswith("value >= 0.7 up to") and not panels[2].get_title("right")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"interval", "declared", "threshold"} <= set(labels) and any("VACUOUS" in label for label in labels)
    save_figure(figure, tmp_path / "all.png")
    save_figure(sensitivity_figure(curves[:1]), tmp_path / "one.svg")
    assert (tmp_path / "all.png").stat().st_size > 10_000 and "<svg" in (tmp_path / "one.svg").read_text()


def test_the_picture_of_refuted_and_of_single_values(tmp_path):
    refuted = CERTIFIED.curve("norm_bound", (0.05, 0.1))
    figure = sensitivity_figure([refuted, AZUMA.curve("delta", [0.1])], [AZUMA.flip_point(0.0, "delta")])
    assert any("INCONSISTENT" in text.get_text() for text in figure.legends[0].get_texts())
    assert figure.axes[1].get_title("right") == "value >= 0 at every value"
    save_figure(figure, tmp_path / "some.png")
    with pytest.raises(aope.InvalidInput, match="nothing to draw"):
        sensitivity_figure([])
