"""Rows that stand in a log again make every answer DOUBTED, since its interval is too narrow."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.problem import Status
from accountable_ope.radii.doubts import DoubtKind
from accountable_ope.report.verdict import ruling_document
from accountable_ope.report.watching import monitor_sentence
from streamed_log import FACTS, KERNEL, MDP, asked, planted_rows

ENDLESS = replace(FACTS, terminates=False)
ONCE = planted_rows().rows(slice(0, 600))
TWICE = planted_rows().rows(np.r_[0:600, 0:600])


def bounded(data):
    return aope.bound_value(asked(ENDLESS).question.on(data), features=MDP.features(), kernel=KERNEL)


@pytest.fixture(scope="module")
def interval():
    return bounded(TWICE)


def test_copies_in_memory_are_doubted_and_decide_nothing(interval):
    honest = bounded(ONCE)
    assert honest.status is Status.OK and honest.doubts == ()
    doubt = interval.doubts[0]  # the test of the class is fooled by copies, too
    assert (interval.status, interval.outcome, doubt.kind, doubt.p_value) == (Status.DOUBTED, Status.OK, DoubtKind.COPIES, None)
    assert doubt.text.startswith("Some 600 of 1,200 rows are copies")
    ruling = interval.decide(interval.lower - 0.01)
    assert ruling.judgment.name == "DOUBTED" and ruling.if_true is None and "600 of 1,200 rows are copies" in str(ruling)
    assert ruling_document(ruling)["if_the_class_holds"] is None and "SUPPORTED" not in str(ruling)
    verdict = interval.verdict()
    assert verdict.sentence.startswith("Some 600 of 1,200 rows are copies of earlier ones") and "class" not in str(verdict)


def test_the_certificate_says_so_and_one_that_does_not_is_refused(interval, tmp_path):
    interval.save(tmp_path / "certificate.json")
    found = aope.verify(tmp_path / "certificate.json")
    assert found.valid and found.doubts[0].kind is DoubtKind.COPIES
    question = asked(ENDLESS).question
    given = {"data": TWICE, "starts": question.starts, "policy": question.policy, "features": MDP.features(), "kernel": KERNEL}
    assert aope.verify(interval, **given).valid
    circumstances = replace(interval.setting.circumstances, copied_rows=0)
    silent = replace(interval, setting=replace(interval.setting, circumstances=circumstances))
    assert silent.check() and not any(each.kind is DoubtKind.COPIES for each in silent.doubts)
    assert "rows stand in the log again, and the certificate does not say so" in aope.verify(silent, **given).message


def test_what_stands_beside_it_says_so_too():
    problem = asked(ENDLESS).question.on(TWICE)
    logged = aope.logged_value(
        aope.Transitions(
            *(getattr(TWICE, name) for name in ("states", "actions", "rewards", "next_states")), None, np.arange(1200)
        ),
        discount=0.6,
        reward_range=(0, 1),
    )
    assert logged.status is Status.DOUBTED and logged.doubts[0].name == "copies"
    crossed = aope.cross_fitted_interval(problem, features=MDP.features())
    assert crossed.doubts[0].name == "copies"
    for one in (aope.bounds.sandwich_interval, aope.bounds.anderson_rubin_interval):
        found = one(problem, features=MDP.features(), kernel=KERNEL)
        assert found.status is Status.DOUBTED and found.doubts[0].kind is DoubtKind.COPIES
    diagnosis = aope.diagnose(MDP.q, problem, features=MDP.features(), kernel=KERNEL)
    assert diagnosis.interval.status is Status.DOUBTED and "copies" in diagnosis.sentence


def test_a_comparison_of_copies_ranks_nothing():
    problem, policies = asked(ENDLESS).question.on(TWICE), [aope.NamedPolicy(name, MDP.policy) for name in "ab"]
    found = aope.compare(problem, policies, features=MDP.features(), kernel=KERNEL)
    assert found.verdict == "Rows of the log are copies of earlier ones: no ranking should rest on them."
    ruling = found.decide("a")
    assert (ruling.judgment.name, ruling.if_true) == ("DOUBTED", None) and "By the ends" not in str(ruling)


def written(folder, *parts, **how):
    """Files with these rows, the bytes of each others."""
    for number, data in enumerate(parts):
        path = folder / f"part-{number}.parquet"
        aope.save_transitions(data, path)
        compression = ("snappy", "gzip", "zstd", "none")[number] if how.get("anew") else "snappy"
        pq.write_table(pq.read_table(path), path, compression=compression)
    return aope.scan_transitions(folder, batch_rows=how.get("batch_rows", 65536))


@pytest.mark.parametrize("anew", [False, True], ids=["the same bytes", "written anew"])
@pytest.mark.parametrize("batch_rows", [100, 65536])
def test_copies_of_files_are_doubted(tmp_path, anew, batch_rows):
    scan = written(tmp_path, ONCE, ONCE, ONCE, anew=anew, batch_rows=batch_rows)
    assert (scan.copies.rows == 0) is anew
    for found in (aope.bound_stream(scan, asked(ENDLESS)), aope.diagnose_stream(MDP.q, scan, asked(ENDLESS)).interval):
        assert found.status is Status.DOUBTED and "1,200 of 1,800 rows are copies" in found.doubts[0].text
        assert found.check(), found.verify().message
    assert aope.bounds.sandwich_stream(scan, asked(ENDLESS)).doubts[0].kind is DoubtKind.COPIES


def test_small_files_of_the_same_bytes_are_doubted_where_they_matter(tmp_path):
    """No stretch of them is long enough to be told from chance by itself."""
    parts = [planted_rows().rows(slice(start, start + 20)) for start in range(0, 1200, 20)]
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir(), many.mkdir()
    assert aope.bound_stream(written(few, *parts, parts[0]), asked(ENDLESS)).status is Status.OK
    assert aope.bound_stream(written(many, *parts, *parts[:10]), asked(ENDLESS)).status is Status.DOUBTED


def test_one_large_file_that_is_there_twice_is_doubted_whatever_its_share(tmp_path):
    parts = [planted_rows().rows(slice(start, start + 100)) for start in range(0, 3000, 100)]
    assert aope.bound_stream(written(tmp_path, *parts, parts[0]), asked(ENDLESS)).status is Status.DOUBTED


def test_a_first_answer_of_a_log_in_parts_is_doubted(tmp_path):
    found = aope.stream_value(
        written(tmp_path, ONCE, ONCE, ONCE, anew=True), asked(replace(ENDLESS, norm_bound=None)).question, neural=False
    )
    assert found.doubted and found.doubts[0].kind is DoubtKind.COPIES


@pytest.mark.parametrize("keeps", [True, False], ids=["rows", "sums"])
def test_a_batch_that_overlaps_earlier_ones_is_doubted_also_by_a_monitor_that_was_loaded(keeps, tmp_path):
    question = asked(ENDLESS)
    options = {"planned": 2000}
    if keeps:
        options |= {"features": MDP.features(), "kernel": KERNEL}
    kind = aope.Monitor if keeps else aope.StreamMonitor
    subject = question.question if keeps else question
    monitor = kind(subject, **options)
    rows = planted_rows()
    assert not monitor.update(rows.rows(slice(0, 600))).interval.doubted
    monitor.save(tmp_path / "state.npz")
    monitor = kind.load(tmp_path / "state.npz", subject, **options)
    report = monitor.update(rows.rows(slice(300, 900)))
    assert report.interval.status is Status.DOUBTED and "300 of 1,200 rows are copies" in report.interval.doubts[0].text
    monitor.save(tmp_path / "state.npz")
    monitor = kind.load(tmp_path / "state.npz", subject, **options)
    assert monitor_sentence(monitor).startswith("Rows are copies of others, and what they say is left out. Before them: with 90%")
    looks = monitor.history
    assert [(each.doubted, each.copied) for each in looks] == [(False, False), (True, True)]
    assert (looks[1].lower, looks[1].upper) == looks[0].now, "a look at copies has no part in what all looks have in common"


def test_nothing_is_decided_by_copies_that_later_rows_outnumber():
    question, rows = asked(ENDLESS), planted_rows()
    monitor = aope.StreamMonitor(question, planned=2000)
    first = monitor.update(rows.rows(np.tile(np.arange(80), 6)))
    assert first.interval.copied and first.status is Status.VACUOUS and first.lower == first.interval.ranges.value[0]
    threshold = first.interval.lower - 0.01
    monitor.update(rows.rows(slice(80, 3000)))
    assert monitor.history[-1].copied, "480 of 3,400 rows, which stand there six times"
    assert monitor.decided(threshold) is None


def test_rows_that_chose_the_class_must_not_come_again(tmp_path):
    """Of a first answer the earliest rows choose, and later ones that repeat them were seen by who chose."""
    rows = planted_rows().rows(np.r_[0:400, 0:400, 400:1600])
    columns = (getattr(rows, name) for name in ("states", "actions", "rewards", "next_states"))
    again = aope.Transitions(*columns, episodes=np.arange(2000) // 50)
    problem = asked(replace(ENDLESS, norm_bound=None)).question.on(again)
    recipe = aope.defaults.choose_recipe(problem, neural=False)
    later = recipe.later(problem)
    assert recipe.earlier_rows >= 390 and later.data.rows(slice(None)).copies.rows == 0, "among themselves they are all new"
    found = aope.bound_value(problem, recipe=recipe)
    assert found.status is Status.DOUBTED and found.doubts[0].kind is DoubtKind.COPIES and 300 < found.copied <= 400
    given = {"data": again, "starts": problem.starts, "policy": problem.policy, "estimate": recipe.estimate}
    assert aope.verify(found, **given).valid
    fewer = replace(found.setting, circumstances=replace(found.setting.circumstances, copied_rows=1))
    assert "of as many" in aope.verify(replace(found, setting=fewer), **given).message
    scan = written(tmp_path, again)
    streamed = aope.stream_value(scan, asked(replace(ENDLESS, norm_bound=None)).question, neural=False)
    assert streamed.doubts[0].kind is DoubtKind.COPIES and streamed.check()


def test_files_that_were_all_there_when_the_class_was_chosen(tmp_path):
    """More rows are not copies than there are."""
    found = aope.stream_value(
        written(tmp_path, *[planted_rows().rows(slice(0, 200))] * 4),
        asked(replace(ENDLESS, norm_bound=None)).question,
        neural=False,
    )
    assert found.doubts[0].kind is DoubtKind.COPIES and found.copied <= found.count and found.check()


def test_sums_know_copies_of_the_part_that_is_given():
    total = aope.partial_statistic(TWICE, asked(ENDLESS))
    assert aope.bound_sums(total, asked(ENDLESS), TWICE).doubts[0].kind is DoubtKind.COPIES


def test_recorded_probabilities_decide_nothing_over_copies():
    rng, n = np.random.default_rng(0), 400
    states, actions = rng.normal(size=(n, 1)), rng.integers(0, 2, n)
    rewards = (rng.uniform(size=n) < np.where(actions == 1, 0.7, 0.3)).astype(float)
    rows = np.r_[0:n, 0:100]  # too few for the test of the actions by themselves
    data = aope.Transitions(
        states[rows],
        actions[rows],
        rewards[rows],
        states[rows],
        episodes=np.arange(len(rows)),
        behavior_probability=np.full(500, 0.5),
    )
    always = aope.DiscretePolicy(lambda at: np.tile([0.0, 1.0], (len(at), 1)), actions=2)
    problem = aope.Problem(data, data.first_states(), always, aope.Assumptions(discount=0.0, reward_range=(0, 1)))
    interval = aope.bound_value(problem)
    ruling, verdict = interval.decide(0.5), interval.verdict()
    assert (ruling.judgment.name, ruling.if_true) == ("DOUBTED", None) and "100 of 500 rows are copies" in str(ruling)
    assert "rows are copies" in verdict.sentence and "cross" not in str(verdict) and "Take copies out" in str(verdict.advice)
