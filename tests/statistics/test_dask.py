"""Sums on a cluster: those of one process, to the last bit from run to run, whatever happens to the workers."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.kernels import TileOptions
from accountable_ope.statistics import bellman_system, kernel_statistics
from accountable_ope.statistics.engines import cluster, engine, tasks
from accountable_ope.statistics.engines import dask as module
from accountable_ope.statistics.engines.finite_rank import reduce_pairs
from command import heed_interrupts

distributed = pytest.importorskip("distributed")

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=20)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False)
PROBLEM = aope.Problem(DATA.rows(slice(0, 400)), MDP.starts, MDP.policy, FACTS)
SYSTEM = bellman_system(PROBLEM.experience, MDP.features())


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1") as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def dask(client, monkeypatch):
    """Small blocks: 4 of them, so 10 pairs of blocks and two levels of sums."""
    monkeypatch.setattr(cluster, "BLOCK_ROWS", 120)
    return aope.engines.Dask(client)


@pytest.fixture
def log(tmp_path):
    """Three files, whose row groups end in the middle of parts."""
    for day, rows in enumerate((slice(0, 370), slice(370, 371), slice(371, 1000))):
        path = tmp_path / "log" / f"day-{day}.parquet"
        path.parent.mkdir(exist_ok=True)
        aope.save_transitions(DATA, path)
        pq.write_table(pq.read_table(path).slice(rows.start, rows.stop - rows.start), path, row_group_size=150)
    return path.parent


def question(kernel=None):
    """With a policy that only cloudpickle takes apart."""
    known = MDP.policy
    policy = aope.DiscretePolicy(lambda states: known.probabilities(states), known.action_vectors)
    asked = aope.Question(MDP.starts, policy, FACTS)
    return aope.StreamQuestion(asked, MDP.features(), kernel or aope.RandomFeatureKernel(20))


def bits(sums):
    if isinstance(sums, aope.PartialStatistic):
        return [sums.labels.tobytes(), sums.projected.tobytes(), sums.diag_gram.tobytes(), sums.data_moments.tobytes()]
    return [sums.pair_gram.tobytes(), sums.diag_gram.tobytes(), sums.kernel_error]


def assert_close(one, other):
    for name in ("pair_gram", "diag_gram", "column_scale"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())


# rows


@pytest.mark.parametrize("kernel", [aope.RandomFeatureKernel(20), aope.Tabular()], ids=["cosines", "tabular"])
def test_row_sums_are_those_of_one_process(dask, log, kernel):
    scan, asked, seen = aope.scan_transitions(log, batch_rows=64), question(kernel), []
    found, alone = dask.stream_statistic(scan, asked, seen.append), aope.stream_statistic(scan, asked)
    assert_close(found.statistic(), alone.statistic())
    np.testing.assert_array_equal(found.labels, alone.labels)
    np.testing.assert_allclose(found.next_moments, alone.next_moments, rtol=1e-10)
    assert (found.count, found.ended) == (alone.count, alone.ended)
    assert len(seen) == 16 and seen == sorted(seen) and seen[-1] == 1
    assert bits(found) == bits(dask.stream_statistic(scan, asked))


def test_parts_of_many_parts(dask, log, monkeypatch):
    """A task takes parts that follow each other, and the last one those that are left."""
    scan, asked = aope.scan_transitions(log, batch_rows=64), question()
    monkeypatch.setattr(cluster, "MOST_PARTS", 3)
    seen = []
    found = dask.stream_statistic(scan, asked, seen.append)
    assert len(seen) == 3 and found.count == 1000
    assert_close(found.statistic(), aope.stream_statistic(scan, asked).statistic())


def test_the_first_bad_row_is_named_as_by_one_process(dask, log):
    path = log / "day-2.parquet"
    table = pq.read_table(path)
    rewards = table["reward"].to_numpy().copy()
    rewards[[40, 600]] = 7.0
    pq.write_table(table.set_column(table.schema.get_field_index("reward"), "reward", [rewards]), path, row_group_size=150)
    scan, asked = aope.scan_transitions(log, batch_rows=64), question()
    said = []
    for way in (aope.stream_statistic, dask.stream_statistic):
        with pytest.raises(aope.InvalidInput, match=r"row 40 of .*day-2.parquet \(row 411 of the log\)") as error:
            way(scan, asked)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_a_log_by_a_relative_path_is_found(dask, log, monkeypatch):
    monkeypatch.chdir(log.parent)  # workers began elsewhere
    scan = aope.scan_transitions("log")
    assert dask.stream_statistic(scan, question()).count == 1000


def test_a_file_that_workers_do_not_find_is_named(dask, log):
    scan = aope.scan_transitions(log, batch_rows=64)
    (log / "day-1.parquet").unlink()
    with pytest.raises(aope.InvalidFile, match=r"day-1.parquet cannot be read.* must find them under the same path"):
        dask.stream_statistic(scan, question())


# pairs


@pytest.mark.parametrize(
    "kernel",
    [aope.Gaussian(0.7), aope.Laplace(1.0), aope.Product(aope.Gaussian(0.5), aope.Tabular(), 1), aope.RandomFeatureKernel(9)],
    ids=repr,
)
def test_pair_sums_are_those_of_one_process(dask, kernel):
    systems, seen = [SYSTEM, bellman_system(PROBLEM.experience, aope.RandomFourier(3))], []
    found = dask.kernel_statistics(systems, kernel, progress=seen.append)
    alone = kernel_statistics(systems, kernel)
    for one, other in zip(found, alone, strict=True):
        assert_close(one, other)
        assert one.count == other.count and 0 < one.kernel_error <= 2 * other.kernel_error
    assert seen == sorted(seen) and seen[-1] == pytest.approx(1)
    assert len(seen) == (1 if isinstance(kernel, aope.RandomFeatureKernel) else 10)
    assert [bits(each) for each in found] == [bits(each) for each in dask.kernel_statistics(systems, kernel)]


def test_single_precision_is_counted(dask):
    options = TileOptions(single_precision=True)
    [exact], [found] = (
        kernel_statistics([SYSTEM], aope.Gaussian(0.7)),
        dask.kernel_statistics([SYSTEM], aope.Gaussian(0.7), options),
    )
    absolute = np.abs(SYSTEM.columns()).sum(axis=0)
    off = np.abs(found.pair_gram - exact.pair_gram) / np.outer(absolute, absolute)
    assert exact.kernel_error < 1e-11 < off.max() <= found.kernel_error < 1e-3


def test_the_number_of_workers_moves_no_bit(dask, log):
    scan = aope.scan_transitions(log, batch_rows=64)
    threads = {"processes": False, "n_workers": 1, "threads_per_worker": 3, "dashboard_address": ":0"}
    with distributed.Client(**threads, set_as_default=False) as other:
        alone = aope.engines.Dask(other)
        assert bits(alone.stream_statistic(scan, question())) == bits(dask.stream_statistic(scan, question()))
        one, two = (each.kernel_statistics([SYSTEM], aope.Gaussian(0.7))[0] for each in (alone, dask))
        assert bits(one) == bits(two)


@pytest.mark.parametrize("what", ["rows", "pairs"])
def test_a_worker_that_is_killed_changes_nothing(dask, log, client, monkeypatch, what):
    scan = aope.scan_transitions(log, batch_rows=50)

    def run(progress):
        if what == "rows":
            return dask.stream_statistic(scan, question(), progress)
        return dask.kernel_statistics([SYSTEM], aope.Gaussian(0.7), progress=progress)[0]

    killed = []

    def kill(done):
        if not killed:  # the one that holds most of what was computed
            held = client.has_what()
            address = max(held, key=lambda each: len(held[each]))
            [pid] = client.run(os.getpid, workers=[address]).values()
            os.kill(pid, signal.SIGKILL)
            killed.append((done, pid))

    monkeypatch.setattr(cluster, "BLOCK_ROWS", 80)
    client.wait_for_workers(2, timeout=60)
    undisturbed, disturbed = run(None), run(kill)
    [(done, pid)] = killed
    assert done < 0.5
    assert bits(undisturbed) == bits(disturbed)
    client.wait_for_workers(2, timeout=60)
    assert pid not in client.run(os.getpid).values()


def test_device_of_another_kind_is_refused(dask):
    with pytest.raises(aope.InvalidInput, match='`options` of sums on a cluster must have `device="cpu"`'):
        dask.kernel_statistics([SYSTEM], aope.Gaussian(0.7), TileOptions(device="cuda"))


# evaluate


def test_evaluate_on_a_cluster(dask):
    setting = {"features": MDP.features(), "kernel": aope.Gaussian(0.7)}
    alone, found = aope.evaluate(PROBLEM, **setting), aope.evaluate(PROBLEM, **setting, engine=dask)
    assert alone.engine is None and found.engine is dask
    one, other = alone.bound("azuma"), found.bound("azuma")
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=1e-9)
    assert found.again(PROBLEM).engine is dask


def test_evaluate_chooses_and_says_why():
    for kernel, name in ((aope.Gaussian(0.7), "tiles"), (aope.RandomFeatureKernel(9), "rows")):
        setting = {"features": MDP.features(), "kernel": kernel}
        alone, found = aope.evaluate(PROBLEM, **setting), aope.evaluate(PROBLEM, **setting, engine="auto")
        assert found.engine.name == name and found.engine.reason.endswith(".")
        assert bits(alone.statistics[0]) == bits(found.statistics[0])
    with pytest.raises(aope.InvalidInput, match="`engine` must be an engine, such as .* or one of 'auto'"):
        aope.evaluate(PROBLEM, **setting, engine="gpu")


def test_an_engine_by_name_wins_or_fails_in_a_sentence(monkeypatch):
    setting = {"features": MDP.features(), "kernel": aope.RandomFeatureKernel(9), "radius": "azuma"}
    rows, tiles = (aope.bound_value(PROBLEM, **setting, engine=name) for name in ("rows", "tiles"))
    assert (rows.engine.name, tiles.engine.name) == ("rows", "tiles") and rows.engine.reason == "It was asked for."
    assert (rows.lower, rows.upper) == pytest.approx((tiles.lower, tiles.upper), rel=1e-9)
    assert bits(rows.certificates[0].statistic) != bits(tiles.certificates[0].statistic)  # it is another way indeed
    monkeypatch.setattr(engine, "free_gpu_memory", lambda *, half=False: "There is no GPU here.")
    for changed, words in (
        ({"engine": "rows", "kernel": aope.Gaussian(1.0)}, '^`engine` "rows" is for kernels of finite rank'),
        ({"engine": "cuda"}, '^`engine` "cuda" cannot be had: There is no GPU here.$'),
        ({"engine": "cuda", "kernel": aope.Tabular()}, '^`engine` "cuda" is for Gaussian kernels and random features'),
        ({"engine": "tiles", "options": TileOptions(device="cuda")}, '^`engine` "tiles" does not go with `options`'),
        ({"engine": "gpu"}, "^`engine` must be an engine, such as .* or one of 'auto', 'rows', 'tiles', 'cuda'"),
    ):
        with pytest.raises(aope.InvalidInput, match=words):
            aope.bound_value(PROBLEM, **{**setting, **changed})
        arguments = {**setting, **changed, "radii": ["azuma"]}
        del arguments["radius"]
        with pytest.raises(aope.InvalidInput, match=words):
            aope.bound_ladder(PROBLEM, **arguments)


def test_without_torch_the_command_is_named(monkeypatch):
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(aope.MissingExtra, match=r'^`engine` "cuda" cannot be had: torch .* pip install "accountable-ope\[gpu\]"'):
        aope.bound_value(PROBLEM, engine="cuda")


def test_results_say_which_engine_it_was(dask):
    setting = {"features": MDP.features(), "radius": "azuma"}
    alone = aope.bound_value(PROBLEM, **setting, kernel=aope.Gaussian(0.7))
    assert alone.engine.name == "tiles" and "as few as 400 rows" in alone.engine.reason
    found = aope.bound_value(PROBLEM, **setting, kernel=aope.Gaussian(0.7), engine=dask)
    assert found.engine.name == "dask" and dask.client_or_address.scheduler.address in found.engine.reason
    assert (found.lower, found.upper) == pytest.approx((alone.lower, alone.upper), rel=1e-9)
    here = aope.bound_value(PROBLEM, **setting, kernel=aope.RandomFeatureKernel(9), engine=dask)
    assert here.engine.name == "rows" and "in this process" in here.engine.reason  # nothing was sent
    assert aope.evaluate(PROBLEM, features=MDP.features(), kernel=aope.Gaussian(0.7)).bound("azuma").engine is None

    class Mine:
        def pair_sums(self, kernel, points, columns, options=None, progress=None):
            return reduce_pairs(kernel, points, columns, options, progress)

    mine = aope.bound_value(PROBLEM, **setting, kernel=aope.Gaussian(0.7), engine=Mine())
    assert str(mine.engine) == "Engine Mine: It was handed in."


def test_a_first_answer_takes_an_engine(monkeypatch):
    problem = replace(PROBLEM, assumptions=replace(FACTS, norm_bound=None))
    found = aope.bound_value(problem, engine="tiles")
    assert found.recipe is not None and str(found.engine) == "Engine tiles: It was asked for."


@pytest.mark.parametrize(
    ("changed", "name", "words"),
    [
        ({}, "cuda", "50000 rows are many."),
        ({"options": TileOptions(single_precision=True)}, "cuda", "bounds count its rounding"),
        ({"kernel": aope.Laplace(1.0)}, "tiles", "Gaussian kernels only"),
        ({"kernel": aope.Tabular()}, "rows", "one pass over the rows"),
        ({"rows": 5000}, "tiles", "as few as 5000 rows"),
        ({"dimension": 40}, "cuda", "50000 rows are many."),
        ({"dimension": 40, "options": TileOptions(single_precision=True)}, "tiles", "at most 32 coordinates"),
        (
            {"rows": 10**7, "options": TileOptions(single_precision=True)},
            "tiles",
            "need 24.2 GiB on the GPU, of which 8.0 are free",
        ),
        ({"rows": 10**8}, "tiles", "need 35.3 GiB on the GPU, of which 8.0 are free"),
        ({"kernel": aope.Laplace(1.0), "options": TileOptions(device="cuda")}, "cuda", "`options` say"),
        ({"kernel": aope.RandomFeatureKernel(9), "options": TileOptions(device="cuda")}, "cuda", "`options` say"),
        ({"kernel": aope.Tabular(), "options": TileOptions(device="cuda")}, "rows", "one pass over the rows"),
    ],
)
def test_the_choice_of_an_engine(monkeypatch, changed, name, words):
    monkeypatch.setattr(engine, "free_gpu_memory", lambda *, half: 2**33)
    asked = {"kernel": aope.Gaussian(1.0), "rows": 50_000, "dimension": 6, "columns": 30, **changed}
    found = aope.engines.choose(**asked)
    assert found.name == name and words in found.reason


def test_without_a_gpu_tiles_are_chosen(monkeypatch):
    asked = {"kernel": aope.Gaussian(1.0), "rows": 10**6, "dimension": 6, "columns": 30}
    monkeypatch.setattr(engine, "GPU_FILES", ())
    monkeypatch.setattr(engine, "find_spec", lambda name: name)
    monkeypatch.setattr(engine.sys, "platform", "linux")
    assert aope.engines.choose(**asked) == aope.engines.EngineChoice("tiles", "There is no GPU here.")
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    said = 'torch is not installed, which a GPU needs: pip install "accountable-ope[gpu]".'
    assert aope.engines.choose(**asked) == aope.engines.EngineChoice("tiles", said)


def test_a_choice_hands_its_device_to_the_sums(monkeypatch):
    given = []
    for way in ("reduce_pairs", "pair_sums"):
        said = lambda kernel, points, columns, options, progress, way=way: given.append((way, options))  # noqa: E731
        monkeypatch.setattr(engine, way, said)
    for name in engine.NAMES:
        aope.engines.EngineChoice(name, "").pair_sums(aope.RandomFeatureKernel(9), DATA.states, DATA.states, TileOptions(rows=7))
    assert [(way, each.rows, each.device) for way, each in given] == [
        ("reduce_pairs", 7, "cpu"),
        ("pair_sums", 7, "cpu"),
        ("reduce_pairs", 7, "cuda"),
    ]


# clusters and clients


def test_a_scheduler_that_does_not_answer_is_one_sentence(monkeypatch):
    monkeypatch.setattr(module, "REACHED", 0.5)
    for address in ("tcp://127.0.0.1:9", "nothing://here:1", "tcp://127.0.0.1:port"):
        with pytest.raises(aope.InvalidInput, match=f"^No scheduler of Dask answers at '{address}' within"):
            aope.engines.Dask(address).kernel_statistics([SYSTEM], aope.Gaussian(0.7))


def test_an_address_and_a_client_stay_open(client, monkeypatch):
    monkeypatch.setattr(module, "REACHED", 60.0)  # the machine may be busy
    address = client.scheduler.address  # what `scheduler_info` holds comes in its own time
    with aope.engines.Dask(address) as one:
        first = one.kernel_statistics([SYSTEM], aope.Gaussian(0.7))[0]
    second = one.kernel_statistics([SYSTEM], aope.Gaussian(0.7))[0]  # connects again
    with aope.engines.Dask(client) as two:
        third = two.kernel_statistics([SYSTEM], aope.Gaussian(0.7))[0]
    assert bits(first) == bits(second) == bits(third)
    assert client.status == "running" and repr(one) == f"Dask({address!r})"


def test_a_worker_is_no_scheduler(client, monkeypatch):
    monkeypatch.setattr(module, "REACHED", 60.0)
    client.wait_for_workers(1, timeout=60)
    [address, *_] = client.run(os.getpid)
    with pytest.raises(aope.InvalidInput, match=f"^At '{address}' a worker of Dask answers, and no scheduler"):
        aope.engines.Dask(address).kernel_statistics([SYSTEM], aope.Gaussian(0.7))


def test_another_server_is_no_scheduler(monkeypatch):
    """What it says is taken for the length of a message, far more than there is memory."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(module, "REACHED", 60.0)
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def answer():
            with server.accept()[0] as other:
                other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)
                other.recv(1)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(aope.InvalidInput, match=f"^No scheduler of Dask answers at '{address}'"):
            aope.engines.Dask(address).kernel_statistics([SYSTEM], aope.Gaussian(0.7))
        thread.join(timeout=60)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tcp://10.0.0.1:8786", 2), "`workers` are those of a cluster that is started here"),
        ((None, 0), "`workers` must be a whole number of at least 1"),
        (("", None), "`client_or_address` must be an address such as"),
        ((7, None), "`client_or_address` must be a distributed.Client or the address of one. Got 7"),
    ],
)
def test_what_is_no_cluster_is_refused(arguments, words):
    with pytest.raises(aope.InvalidInput, match=words):
        aope.engines.Dask(*arguments)


def test_without_dask_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(aope.MissingExtra, match=r'need Dask: pip install "accountable-ope\[cluster\]"'):
        aope.engines.Dask(workers=2)


def test_what_cannot_be_sent_is_refused(dask, log):
    lock = threading.Lock()

    def action(states):
        with lock:
            return np.zeros((len(states), 1))

    asked = replace(question().question, policy=aope.DeterministicPolicy(action))
    with pytest.raises(aope.InvalidInput, match="`question` cannot be sent to other processes: .*lock"):
        dask.stream_statistic(aope.scan_transitions(log), aope.StreamQuestion(asked, aope.RandomFourier(3), aope.Tabular()))


def test_what_workers_cannot_import_is_named():
    wrapped = RuntimeError("Error during deserialization")
    wrapped.__cause__ = ModuleNotFoundError("No module named 'mine'", name="mine")

    class Failed:
        status = "error"

        def exception(self):
            return wrapped

    assert str(tasks._reason(Failed())).startswith("A worker of the cluster cannot import mine: workers need accountable-ope")


def test_a_cluster_without_workers_is_one_sentence(monkeypatch):
    monkeypatch.setattr(tasks, "PATIENCE", 0.2)
    nobody = {"processes": False, "n_workers": 0, "dashboard_address": ":0"}
    with (
        distributed.Client(**nobody, set_as_default=False) as client,
        pytest.raises(aope.AopeError, match="has no worker, and none came within"),
    ):
        aope.engines.Dask(client).kernel_statistics([SYSTEM], aope.Gaussian(0.7))


def test_one_thread_until_the_last_one_leaves():
    def limits():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = limits()
    one, two = cluster.one_blas_thread(), cluster.one_blas_thread()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert set(limits()) == {1}
    two.__exit__(None, None, None)
    assert limits() == before


SCRIPT = """
import os, time
import numpy as np, accountable_ope as aope

def slow(done):
    print(*engine._open[0].run(os.getpid).values(), flush=True)
    time.sleep(60)

if __name__ == "__main__":
    x = np.random.default_rng(0).normal(size=(3000, 2))
    with aope.engines.Dask(workers=1) as engine:
        engine.pair_sums(aope.Gaussian(1.0), x, x)
        engine.pair_sums(aope.Gaussian(1.0), x, x, None, slow)
"""


def test_an_interrupt_leaves_no_process_behind(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command, pipe = [sys.executable, "script.py"], subprocess.PIPE
    options = {"cwd": tmp_path, "stdout": pipe, "stderr": pipe, "text": True, "start_new_session": True}
    with subprocess.Popen(command, preexec_fn=heed_interrupts, **options) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert pids and process.returncode and "KeyboardInterrupt" in said
    ends = time.monotonic() + 10
    while any(is_alive(pid) for pid in pids) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not any(is_alive(pid) for pid in pids)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
