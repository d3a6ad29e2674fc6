"""Pieces of work: in parallel as alone, resumed where a run was cut off."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import pytest

from accountable_ope.errors import AopeError, InvalidFile, InvalidInput
from accountable_ope.runner.run import run_pieces
from accountable_ope.runner.store import Store
from command import heed_interrupts


@dataclass(frozen=True)
class Row:
    name: str
    number: int
    share: float
    right: bool


@dataclass(frozen=True)
class Square:
    number: int
    fails: bool = False
    size: int = 1

    @property
    def name(self):
        return f"square {self.number}"

    def run(self):
        if self.fails:
            raise RuntimeError("run again")
        return [Row(self.name, k, self.number**2 / 3, k % 2 == 0) for k in range(2)]


@dataclass(frozen=True)
class Killed:
    """A piece that the operating system ends, as it does when memory runs out."""

    name: str
    size: ClassVar[int] = 1

    def run(self):
        os.kill(os.getpid(), signal.SIGKILL)


SQUARES = [Square(k) for k in range(5)]


def test_rows_come_in_the_order_of_the_pieces_whatever_the_workers(tmp_path):
    alone = run_pieces(SQUARES, workers=1)
    assert [row.name for row in alone] == [f"square {k // 2}" for k in range(10)]
    assert run_pieces(SQUARES, Store(tmp_path, Row), workers=2) == alone
    assert run_pieces(SQUARES[::-1], Store(tmp_path, Row), workers=1)[:2] == alone[-2:]


def test_what_a_folder_holds_is_not_run_again(tmp_path):
    looks = []
    store = Store(tmp_path, Row)
    first = run_pieces(SQUARES[:3], store, workers=1)
    pieces = [Square(k, fails=k < 3, size=k) for k in range(5)]
    again = run_pieces(pieces, store, workers=1, report=lambda *state: looks.append(state))
    assert again[:6] == first and len(again) == 10
    assert looks == [(3, 10), (6, 10), (10, 10)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_keeps_what_was_done(tmp_path, workers):
    store = Store(tmp_path, Row)
    with pytest.raises(RuntimeError, match="run again"):
        run_pieces([Square(0), Square(1, fails=True)], store, workers=workers)
    assert store.read("square 1") is None
    if workers == 1:
        assert store.read("square 0") is not None
    assert run_pieces(SQUARES[:2], store, workers=1) == run_pieces(SQUARES[:2], workers=1)


def test_a_killed_worker_is_an_error_with_advice():
    with pytest.raises(AopeError, match="use fewer `workers`"):
        run_pieces([Killed("a"), Killed("b")], workers=2)


def test_bad_input(tmp_path):
    with pytest.raises(InvalidInput, match="workers"):
        run_pieces(SQUARES, workers=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be used as a folder"):
        Store(tmp_path / "file", Row)


SLOW_RUN = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from accountable_ope.runner.run import run_pieces
from accountable_ope.runner.store import Store

@dataclass(frozen=True)
class Row:
    number: int

@dataclass(frozen=True)
class Nap:
    number: int
    folder: Path
    ballast: bytes = bytes(1_000_000)
    size: int = 1

    @property
    def name(self):
        return f"nap {self.number}"

    def run(self):
        if self.number:
            (self.folder / f"started {self.number}").touch()
            time.sleep(120)
        return [Row(self.number)]

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run_pieces([Nap(k, folder) for k in range(6)], Store(folder, Row), workers=2)
"""


@dataclass(frozen=True)
class Number:
    number: int


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("ending", ["Ctrl-C", "killed"])
def test_an_interrupted_run_ends_with_its_workers_and_can_be_resumed(tmp_path, ending):
    """Output ends when the last process that holds it has ended, so nothing is left of a run that would take minutes."""
    script = tmp_path / "slow_run.py"
    script.write_text(SLOW_RUN)
    store = Store(tmp_path / "kept", Number)
    command = [sys.executable, str(script), str(store.folder)]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=heed_interrupts
    )
    try:
        deadline = time.monotonic() + 60
        while len(list(store.folder.glob("started *"))) < 2 or store.read("nap 0") is None:
            assert run.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        if ending == "Ctrl-C":
            os.killpg(run.pid, signal.SIGINT)  # a terminal sends it to the workers too
        else:
            run.kill()
        said, _ = run.communicate(timeout=30)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    if ending == "Ctrl-C":
        assert run.returncode == -signal.SIGINT
        assert said.count("Traceback") == 1 and said.rstrip().endswith("KeyboardInterrupt")
    assert list(store.read_all()) == [Number(0)]
