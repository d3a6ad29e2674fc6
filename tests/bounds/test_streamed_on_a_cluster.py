"""Intervals of logs whose rows are summed on a cluster, beside those of one process."""

import os
import signal
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.statistics.engines import cluster

distributed = pytest.importorskip("distributed")

MDP = PlantedMDP(seed=1, features=5, discount=0.9)
FACTS = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=1.5 * MDP.norm)
QUESTION = aope.StreamQuestion(aope.Question(MDP.starts, MDP.policy, FACTS), MDP.features(), aope.RandomFeatureKernel(60))


@pytest.fixture(scope="module")
def client():
    """Two processes: one of them can be killed."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1") as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def dask(client):
    return aope.engines.Dask(client)


@cache
def planted_rows():
    return MDP.sample(np.random.default_rng(3), trajectories=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """10,000 rows in three files of different sizes."""
    place = tmp_path_factory.mktemp("log")
    aope.save_transitions(planted_rows(), place / "whole")
    table = pq.read_table(place / "whole")
    (place / "whole").unlink()
    for index, (start, end) in enumerate(pairwise((0, 1111, 7000, 10_000))):
        pq.write_table(table.slice(start, end - start), place / f"part-{index}.parquet", row_group_size=700)
    return place


def assert_same(found, alone):
    """To 1e-10 relative, with all that is said and proved."""
    np.testing.assert_allclose([found.lower, found.upper], [alone.lower, alone.upper], rtol=1e-10)
    assert found.status is alone.status and found.setting.data == alone.setting.data
    assert [each.text for each in found.premises] == [each.text for each in alone.premises]
    assert len(found.certificates) == len(alone.certificates)
    for one, other in zip(found.certificates, alone.certificates, strict=True):
        gram = other.statistic.pair_gram
        np.testing.assert_allclose(one.statistic.pair_gram, gram, rtol=1e-10, atol=1e-10 * np.abs(gram).max())
        assert one.cut == other.cut
    assert found.check(), found.verify().message


@pytest.mark.parametrize("parts", [1, 3, 1024])
@pytest.mark.parametrize("batch_rows", [50, 3001, 65536])
def test_whatever_the_parts_the_interval_is_that_of_one_process(dask, folder, monkeypatch, batch_rows, parts):
    monkeypatch.setattr(cluster, "MOST_PARTS", parts)
    alone = aope.bound_stream(aope.scan_transitions(folder), QUESTION)
    seen = []
    scan = aope.scan_transitions(folder, batch_rows=batch_rows)
    found = aope.bound_stream(scan, QUESTION, engine=dask, progress=seen.append)
    assert alone.certificates[0].cut is not None and 0 < alone.width < 5
    assert_same(found, alone)
    assert seen == sorted(seen) and seen[0] > 0 and seen[-1] == pytest.approx(1)


@pytest.mark.parametrize("radius", ["azuma", "hoeffding"])
def test_radii_without_a_cut(dask, folder, radius):
    scan = aope.scan_transitions(folder, batch_rows=2000)
    assert_same(aope.bound_stream(scan, QUESTION, radius, engine=dask), aope.bound_stream(scan, QUESTION, radius))


@pytest.mark.slow
def test_a_first_answer(dask, folder):
    scan = aope.scan_transitions(folder, batch_rows=2000)
    question = aope.Question(MDP.starts, MDP.policy, aope.Assumptions(discount=0.9, reward_range=(0, 1)))
    alone = aope.stream_value(scan, question, neural=False)
    found = aope.stream_value(scan, question, recipe=alone.recipe, engine=dask)
    assert_same(found, alone)
    assert found.engine.name == "dask" and alone.engine.name == "rows"


def test_results_say_which_part_ran_where(dask, folder, client):
    scan = aope.scan_transitions(folder)
    found = {name: aope.bound_stream(scan, QUESTION, "azuma", engine=name).engine for name in ("auto", "rows")}
    assert {each.name for each in found.values()} == {"rows"}
    assert found["auto"].reason != found["rows"].reason == "It was asked for."
    said = str(aope.bound_stream(scan, QUESTION, "azuma", engine=dask).engine)
    assert said.startswith(f"Engine dask: Sums over rows were made on the cluster at {client.scheduler.address}")
    assert "this process read the rows, too" in said and "weights of the cut" in said


def test_engines_that_need_all_rows_are_refused_before_any_is_read(folder):
    scan = aope.scan_transitions(folder)
    question = aope.Question(MDP.starts, MDP.policy, FACTS)
    for path in folder.iterdir():
        path.rename(path.with_suffix(".gone"))
    try:
        for engine, words in (
            ("tiles", '`engine` "tiles" needs all rows at once: .* aope.engines.Dask'),
            ("cuda", '`engine` "cuda" needs all rows at once'),
            (
                aope.engines.EngineChoice("rows", "Mine."),
                "`engine` must read logs in parts, .* EngineChoice has no `stream_sums`",
            ),
        ):
            with pytest.raises(aope.InvalidInput, match=words):
                aope.bound_stream(scan, QUESTION, engine=engine)
            with pytest.raises(aope.InvalidInput, match=words):
                aope.stream_value(scan, question, engine=engine)
    finally:
        for path in folder.iterdir():
            path.rename(path.with_suffix(".parquet"))


def test_files_that_workers_do_not_find_are_named_before_any_work(dask, folder, monkeypatch):
    scan = aope.scan_transitions(folder)
    nowhere = str(folder / "nowhere" / "part-0.parquet")  # as if this machine alone had that folder
    monkeypatch.setattr(type(scan), "local_paths", lambda scan: (nowhere,))
    monkeypatch.setattr(type(scan), "__iter__", lambda scan: pytest.fail("a row was read"))
    with pytest.raises(aope.InvalidFile, match="part-0.parquet is not found by the worker .* under the same path: on a"):
        aope.bound_stream(scan, QUESTION, engine=dask)


def test_the_first_bad_row_is_named_as_by_one_process(dask, folder, tmp_path):
    table = pq.read_table(folder)
    rewards = table["reward"].to_numpy().copy()
    rewards[[8040, 9600]] = 7.0
    pq.write_table(table.set_column(table.schema.get_field_index("reward"), "reward", [rewards]), tmp_path / "log.parquet")
    scan, said = aope.scan_transitions(tmp_path, batch_rows=1000), []
    for engine in ("auto", dask):
        with pytest.raises(aope.InvalidInput, match="row 8040") as error:
            aope.bound_stream(scan, QUESTION, engine=engine)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(dask, folder, client, monkeypatch):
    scan = aope.scan_transitions(folder, batch_rows=100)  # 100 tasks
    client.wait_for_workers(2, timeout=60)
    undisturbed, killed = aope.bound_stream(scan, QUESTION, engine=dask), []

    def kill(done):
        if not killed:
            held = client.has_what()
            address = max(held, key=lambda each: len(held[each]))  # the one that holds most of what was computed
            [pid] = client.run(os.getpid, workers=[address]).values()
            os.kill(pid, signal.SIGKILL)
            killed.append((done, pid))

    disturbed = aope.bound_stream(scan, QUESTION, engine=dask, progress=kill)
    [(done, pid)] = killed
    assert done < 0.9
    one, other = undisturbed.certificates[0].statistic, disturbed.certificates[0].statistic
    assert one.pair_gram.tobytes() == other.pair_gram.tobytes() and one.kernel_error == other.kernel_error
    assert (undisturbed.lower, undisturbed.upper) == (disturbed.lower, disturbed.upper)
    client.wait_for_workers(2, timeout=60)
    assert pid not in client.run(os.getpid).values()
