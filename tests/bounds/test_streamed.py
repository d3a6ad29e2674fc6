"""Intervals of logs that are read in parts, beside those of the same rows in memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.bounds.first_answer import first_answers
from accountable_ope.bounds.stream_pass import StreamPass
from accountable_ope.defaults import choose_recipe
from accountable_ope.problem.problem import Experience
from accountable_ope.radii.cut import CutQuestion, begin_cut
from accountable_ope.radii.no_cut import NoCut
from accountable_ope.statistics.bellman import bellman_system
from accountable_ope.statistics.streaming import batch_columns
from streamed_log import FACTS, KERNEL, MDP, asked, planted_rows, scanned


def in_memory(question, data, radius="certified", delta=0.1):
    problem = question.question.on(data)
    evaluation = aope.evaluate(problem, features=question.features, kernel=question.kernel, anchor=question.anchor)
    return evaluation.bound(radius, delta)


def assert_same(found, expected):
    """Ends to 1e-10 of the range of values, and all that is said beside them."""
    span = expected.ranges.span
    np.testing.assert_allclose([found.lower, found.upper], [expected.lower, expected.upper], rtol=0, atol=1e-10 * span)
    assert found.status is expected.status
    assert vars(found.setting) == vars(expected.setting)
    assert [each.text for each in found.premises] == [each.text for each in expected.premises]
    assert found.check(), found.verify().message


@pytest.mark.parametrize("batch_rows", [7, 1024, 2999, 65536])
def test_whatever_the_size_of_parts_the_interval_is_that_of_the_rows(tmp_path, batch_rows):
    """A part may end anywhere: within an episode, a block of the cut, a file."""
    found = aope.bound_stream(scanned(tmp_path, planted_rows(), batch_rows), asked())
    expected = in_memory(asked(), planted_rows())
    assert expected.certificates[0].cut is not None and 0 < expected.upper - expected.lower < 5
    if batch_rows >= 1024:
        assert_same(found, expected)
    else:  # so many parts count a few roundings more
        assert found.lower == pytest.approx(expected.lower, abs=1e-7) and found.upper == pytest.approx(expected.upper, abs=1e-7)


@pytest.mark.parametrize("radius", ["azuma", "certified", "empirical-bernstein", "hoeffding"])
def test_other_radii(tmp_path, radius):
    assert_same(aope.bound_stream(scanned(tmp_path, planted_rows()), asked(), radius), in_memory(asked(), planted_rows(), radius))


def test_rewards_far_from_zero_are_counted_from_their_middle(tmp_path):
    data = planted_rows().paying(planted_rows().rewards + 1e6)
    facts = replace(FACTS, reward_range=(1e6, 1e6 + 1), terminates=False)
    question = asked(facts)
    assert question.reference > 1e6
    assert_same(aope.bound_stream(scanned(tmp_path, data), question), in_memory(question, data))


def test_a_class_around_an_estimate(tmp_path):
    question = asked(anchor=lambda states, actions: 5.0 + 0.1 * states[:, 0] + 0.2 * actions)
    found = aope.bound_stream(scanned(tmp_path, planted_rows()), question)
    assert_same(found, in_memory(question, planted_rows()))
    assert found.setting.circumstances.anchored and found.certificates[0].cut is None


def test_start_states_from_the_log_leave_no_cut(tmp_path):
    data = planted_rows()
    starts = aope.StartStates(data.states[100:2900:100])
    assert_same(aope.bound_stream(scanned(tmp_path, data), asked(starts=starts)), in_memory(asked(starts=starts), data))


@pytest.mark.parametrize("rows", [0, 50, 700])
def test_little_memory_widens_a_little_and_proves_as_much(tmp_path, rows):
    """Of rows that were not kept the leverage is known: steps in the data are bounded by it, and that is checked by the rows."""
    scan = scanned(tmp_path, planted_rows())
    whole, little = (aope.bound_stream(scan, asked(), memory=m) for m in (2**27, 8 * 9 * rows))
    assert little.certificates[0].constraints.steps.others is not None
    assert little.lower <= whole.lower + 1e-9 and whole.upper <= little.upper + 1e-9
    assert little.upper - little.lower < 1.35 * (whole.upper - whole.lower)
    assert little.check(), little.verify().message
    checked = aope.verify(
        little, data=planted_rows(), starts=MDP.starts, policy=MDP.policy, features=MDP.features(), kernel=KERNEL
    )
    assert checked.valid, checked.message


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 400))
def test_no_residual_is_larger_than_its_leverage_allows(seed, keep):
    """|eps_i(theta)| <= h_i sqrt(q(theta)) at rows that were not kept, whatever theta and whatever the rows that made q."""
    rng, data, question = np.random.default_rng(seed), planted_rows(), asked()
    first = system_of(data.rows(slice(0, 150)))
    run = begin_cut(CutQuestion(first, KERNEL, 3.0, 0.05), len(data))
    passing = StreamPass(question, first, len(data), run, keep)
    for start in range(0, len(data), 900):
        passing.take(batch_columns(data.rows(slice(start, start + 900)), question))
    rows, system = passing.done().rows, system_of(data)
    theta = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=system.dimension)
    sizes = np.abs(system.residuals_at(theta))
    assert len(rows.target) <= keep and rows.others is not None
    assert sizes.max() <= rows.scale[-1] * np.sqrt(rows.others(theta)) * (1 + 1e-9)
    cut = begin_cut(CutQuestion(first, KERNEL, 3.0, 0.05), len(data))
    weights = np.abs(cut.take(system.points[150:], system.residuals[150:]))
    assert (weights * sizes[150:]).max() <= rows.weights[-1] * np.sqrt(rows.others(theta)) * (1 + 1e-9)


def system_of(data):
    return bellman_system(Experience(data, MDP.starts, MDP.policy, 0.9), MDP.features())


def test_what_needs_all_rows_is_refused_before_any_is_read(tmp_path):
    scan = scanned(tmp_path, planted_rows())
    for path in tmp_path.iterdir():
        path.unlink()  # nothing could be read
    with pytest.raises(aope.InvalidInput, match="`radius` wild needs all rows at once"):
        aope.bound_stream(scan, asked(), "wild")
    with pytest.raises(aope.InvalidInput, match="`horizon` needs all rows at once"):
        aope.bound_stream(scan, asked(replace(FACTS, horizon=50)))
    with pytest.raises(aope.InvalidInput, match="`misfit` needs all rows at once"):
        aope.bound_stream(scan, asked(replace(FACTS, misfit=0.1)))


def test_an_end_that_the_first_rows_do_not_show_is_named(tmp_path):
    data = planted_rows(500)
    ended = np.zeros(len(data), dtype=bool)
    ended[23_456] = True
    data = aope.Transitions(data.states, data.actions, data.rewards, data.next_states, ended)
    scan = scanned(tmp_path, data, batch_rows=4096, files=2)
    with pytest.raises(
        aope.InvalidInput, match=r"row 10956 of .*part-1.parquet \(row 23456 of the log\) is terminated, and none"
    ):
        aope.bound_stream(scan, asked())
    declared = asked(replace(FACTS, terminates=True))
    assert aope.bound_stream(scan, declared).check()


def test_a_bad_reward_is_named_with_its_file(tmp_path):
    data = planted_rows()
    rewards = data.rewards.copy()
    rewards[2345] = 7.0
    with pytest.raises(aope.InvalidInput, match=r"row 345 of .*part-2.parquet \(row 2345 of the log\)"):
        aope.bound_stream(scanned(tmp_path, data.paying(rewards)), asked())


def test_sums_of_nights_give_an_interval():
    """Wider than that of the rows, and never below: no cut, and nothing known of steps."""
    question, data = asked(), planted_rows(400)
    nights = [data.rows(slice(start, start + 5000)) for start in range(0, 20_000, 5000)]
    total = sum(aope.partial_statistic(night, question) for night in nights)
    found, expected = aope.bound_sums(total, question, nights[-1]), in_memory(question, data)
    assert MDP.value in found and found.count == 20_000 and found.check(), found.verify().message
    assert found.lower <= expected.lower and expected.upper <= found.upper < found.lower + 5
    assert found.certificates[0].basis.no_cut is NoCut.SUMS
    azuma = aope.bound_sums(total, question, nights[0], "azuma")
    np.testing.assert_allclose([azuma.lower, azuma.upper], ends(in_memory(question, data, "azuma")), atol=1e-9)
    with pytest.raises(aope.InvalidInput, match="Sums of different questions"):
        aope.bound_sums(total, asked(kernel=aope.RandomFeatureKernel(60, seed=1)), nights[0])


def ends(interval):
    return [interval.lower, interval.upper]


def test_a_first_answer_is_that_of_the_rows(tmp_path):
    """The earliest rows choose the same; with the same kernel the later ones bound the same."""
    data, question = planted_rows(120), aope.Question(MDP.starts, MDP.policy, replace(FACTS, norm_bound=None))
    scan = scanned(tmp_path, data)
    found = aope.stream_value(scan, question, neural=False)
    recipe = found.recipe
    expected = first_answers(question.on(data), recipe, ["certified"], 0.1)[0]
    assert repr(recipe.features) == repr(choose_recipe(question.on(data), neural=False).features)
    assert recipe.earlier_rows == 1200 and found.count == 4800 and isinstance(recipe.kernel, aope.RandomFeatureKernel)
    assert found.certificates[0].cut is not None and MDP.value in found and found.check()
    for mine, theirs in zip(found.certificates, expected.certificates, strict=True):
        size = np.abs(theirs.statistic.pair_gram).max()
        np.testing.assert_allclose(mine.statistic.pair_gram, theirs.statistic.pair_gram, rtol=0, atol=1e-10 * size)
    # The solver stops within a thousandth of the width: other roundings may lead it elsewhere there.
    np.testing.assert_allclose(ends(found), ends(expected), rtol=0, atol=1e-3 * (expected.upper - expected.lower))
    assert vars(found.setting) == vars(expected.setting)
    again = aope.stream_value(scan, question, recipe=recipe)
    assert (again.lower, again.upper) == (found.lower, found.upper)


def test_first_rows_that_show_nothing_are_named(tmp_path):
    data = planted_rows().paying(np.zeros(3000))
    with pytest.raises(aope.InvalidInput, match="the event that decides the value was never logged"):
        aope.stream_value(scanned(tmp_path, data), aope.Question(MDP.starts, MDP.policy, replace(FACTS, norm_bound=None)))


def test_sums_are_bounded_under_what_their_rows_were_checked_against():
    """A range that the rows were not held to would be a premise that nobody looked at."""
    data = planted_rows()
    sums = aope.partial_statistic(data, asked(replace(FACTS, reward_range=(0, 10))))
    with pytest.raises(aope.InvalidInput, match=r"rows of one were checked against reward_range=\(0.0, 1.0\).*\(0.0, 10.0\)"):
        aope.bound_sums(sums, asked(), data)
    with pytest.raises(aope.InvalidInput, match="rows of one were checked against"):
        _ = sums + aope.partial_statistic(data, asked())
    stronger = asked(replace(FACTS, reward_range=(0, 10), norm_bound=50.0))
    assert aope.bound_sums(sums, stronger, data).check()  # a norm is of no row


def test_rows_that_were_left_out_are_counted_once(tmp_path):
    """Whatever the number of parts that a file is read in: the premise has the number that the file says."""
    data = planted_rows().having_left_out(4)
    aope.save_transitions(data, tmp_path / "log.parquet")
    for rows in (500, 65536):
        scan = aope.scan_transitions(tmp_path, batch_rows=rows)
        assert aope.stream_statistic(scan, asked()).left_out == scan.left_out == 4
        found = aope.bound_stream(scan, asked(), "azuma")
        (said,) = [each for each in found.premises if each.name == "cut-off"]
        assert "(4)" in said.text and found.setting.circumstances.left_out == 4


def test_a_log_of_two_rows_has_an_interval_as_in_memory(tmp_path):
    data = planted_rows().rows(slice(0, 2))
    found = aope.bound_stream(scanned(tmp_path, data, files=1), asked())
    known = aope.bound_value(aope.Problem(data, MDP.starts, MDP.policy, FACTS), features=MDP.features(), kernel=KERNEL)
    assert (found.lower, found.upper, found.count) == (known.lower, known.upper, 2)
