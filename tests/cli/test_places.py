"""Where results go: no output replaces an input or what is no file, and an output that fails is one sentence."""

import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.cli import describing
from accountable_ope.environments import clinic
from accountable_ope.laboratory.page import BEGIN, END
from command import aope_command

FACTS = ("--discount", 0.5, "--reward-range", 0, 1, "--terminal-reward", "--radius", "azuma")
COMMON = ("data.parquet", "--starts", "starts.parquet", *FACTS, "--tabular")
MONITORED = ("data.parquet", "--starts", "starts.parquet", *FACTS, "--tabular-states", "0,1,2,3", "--planned", 100)
ESTIMATE = ("--q", "estimates:q")


@pytest.fixture
def folder(tmp_path):
    table = np.full((6, 3), 1 / 3)
    data = clinic(discount=0.5).sample_trajectories(table, 20, 60, np.random.default_rng(0))
    policy = aope.TabulatedPolicy(np.arange(4.0), table[:4], 3)
    aope.save_transitions(data, tmp_path / "data.parquet", policy)
    aope.save_starts(aope.StartStates(np.arange(4.0)), tmp_path / "starts.parquet", policy)
    (tmp_path / "estimates.py").write_text("def q(states, actions):\n    return 0 * states[:, 0] + 0.5\n")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir() if path.name != "__pycache__"}


def refused(folder, *words):
    """The sentence of a command that is refused before any work, and changes nothing."""
    before = contents(folder)
    done = aope_command(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1
    assert contents(folder) == before
    return done.stderr.removeprefix("Error: ").strip()


OUTPUTS = [
    ("--report", ("bound", *COMMON)),
    ("--output", ("correct", *COMMON, *ESTIMATE)),
    ("STATE", ("monitor", None, *MONITORED)),
]


def command(option, words, path):
    """The words of a command that writes to this path."""
    return [path if word is None else word for word in words] + ([option, path] if option.startswith("--") else [])


@pytest.mark.parametrize(("option", "words"), OUTPUTS)
def test_no_output_replaces_an_input(folder, option, words):
    (folder / "soft").symlink_to("data.parquet")
    (folder / "hard").hardlink_to(folder / "starts.parquet")
    spelled = f"../{folder.name}/data.parquet"
    inputs = {"data.parquet": "data.parquet", "soft": "data.parquet", "hard": "starts.parquet", spelled: "data.parquet"}
    for path, replaced in inputs.items():
        assert refused(folder, *command(option, words, path)) == f"{option} {path} would replace an input, {replaced}."


def test_the_file_of_a_policy_or_an_estimate_is_an_input(folder):
    assert "would replace an input, estimates.py" in refused(folder, "correct", *COMMON, *ESTIMATE, "--output", "estimates.py")
    assert "would replace an input" in refused(folder, "bound", *COMMON, "--policy", "estimates:q", "--report", "estimates.py")


@pytest.mark.parametrize(("option", "words"), OUTPUTS)
def test_no_output_goes_to_what_is_no_file(folder, option, words):
    os.mkfifo(folder / "pipe")
    (folder / "dir").mkdir()
    (folder / "link").symlink_to("/dev/null")
    kinds = {"pipe": "it is a pipe", "dir": "it is a folder", "/dev/full": "it is a device", "link": "it is a device"}
    for path, why in (kinds | {"none/file": "there is no folder none"}).items():
        assert refused(folder, *command(option, words, path)) == f"{path} cannot be written: {why}."


@pytest.mark.parametrize(
    "words", [("diagnose", *COMMON, *ESTIMATE), ("sensitivity", *COMMON), ("monitor", "state.npz", *MONITORED)]
)
def test_pictures_too(folder, words):
    (folder / "data.png").hardlink_to(folder / "data.parquet")
    (folder / "dir.svg").mkdir()
    assert "data.png would replace an input" in refused(folder, *words, "--plot", "data.png")
    assert "dir.svg cannot be written: it is a folder." in refused(folder, *words, "--plot", "dir.svg")
    assert "must end in .png, .svg or .pdf" in refused(folder, *words, "--plot", "picture.jpg")


def test_outputs_do_not_replace_each_other(folder):
    (folder / "page.png").write_text(f"{BEGIN}\n{END}\n")
    words = ("coverage", "--family", "fair-coin", "--n", 20, "--trials", 1, "--markdown", "page.png", "--plot", "./page.png")
    assert refused(folder, *words) == "--markdown and --plot must be different files. Both are page.png."
    words = ("monitor", "state.png", *MONITORED, "--plot", "state.png")
    assert refused(folder, *words) == "STATE and --plot must be different files. Both are state.png."
    (folder / "same.parquet").symlink_to("new.parquet")
    simulated = ("simulate", "puck-mountain", "--out", "new.parquet", "--starts", "same.parquet")
    assert "--out and --starts must be different files" in refused(folder, *simulated)


def test_folders_are_checked_before_any_work(folder, monkeypatch):
    monkeypatch.setattr(describing, "run_demo", lambda *_: pytest.fail("work was done"))
    (folder / "taken").write_text("a file")
    (folder / "demo" / "report.html").mkdir(parents=True)
    assert "--output taken cannot be used as a folder" in refused(folder, "demo", "--output", "taken")
    assert "report.html cannot be written: it is a folder" in refused(folder, "demo", "--output", "demo")
    coverage = ("coverage", "--family", "fair-coin", "--n", 20, "--trials", 1, "--out", "taken")
    assert "--out taken cannot be used as a folder" in refused(folder, *coverage)
    assert "--out taken cannot be used as a folder" in refused(folder, "experiment", "figure1", "--quick", "--out", "taken")
    (folder / "figures" / "figure1-puck-mountain.svg").mkdir(parents=True)
    words = ("experiment", "figure1", "--env", "puck-mountain", "--quick", "--out", "figures")
    assert "figure1-puck-mountain.svg cannot be written: it is a folder" in refused(folder, *words)


def test_a_full_disk_keeps_the_file_that_was_there(folder, monkeypatch):
    def full(self, path, **_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(path))

    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", full)
    (folder / "picture.png").write_bytes(b"before")
    done = aope_command("diagnose", *COMMON, *ESTIMATE, "--plot", "picture.png", cwd=folder)
    assert done.returncode == 2 and done.stderr == "Error: picture.png cannot be written: No space left on device.\n"
    assert (folder / "picture.png").read_bytes() == b"before" and not list(folder.glob(".*partial*"))


def start(folder, shell):
    """A process with the output that the shell gives it."""
    code = "from accountable_ope.cli import main; main()"
    words = ["sh", "-c", shell.replace("aope", f"{sys.executable} -c '{code}'")]
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=120, check=False)


@pytest.mark.parametrize("words", ["check data.parquet", "check data.parquet --json", "--help", "--version"])
def test_an_output_that_is_full_or_closed(folder, words):
    full = start(folder, f"aope {words} > /dev/full")
    assert (full.returncode, full.stderr) == (1, "Error: The output cannot be used: No space left on device.\n")
    closed = start(folder, f"aope {words} >&-")
    assert (closed.returncode, closed.stderr) == (1, "Error: The output is closed.\n")
    left = start(folder, f"aope {words} | true; exit 0")
    assert left.stderr == ""


def test_an_error_stream_that_is_full_or_closed(folder):
    report = "bound data.parquet --discount .5 --reward-range 0 1 --tabular --json --report report.html"
    for stream in ("2>&-", "2> /dev/full"):
        done = start(folder, f"aope {report} {stream}")
        assert done.stdout.startswith("{") and done.stdout.endswith("}\n") and "Traceback" not in done.stdout
        assert start(folder, f"aope check nowhere.parquet {stream}").returncode != 0


def test_the_file_that_the_text_goes_to_is_not_replaced(folder):
    for report in ("text.txt", "/dev/stdout"):
        done = start(folder, f"aope bound data.parquet --discount .5 --reward-range 0 1 --tabular --report {report} > text.txt")
        assert done.returncode == 2 and "is the file that the printed result goes to" in done.stderr


def test_letters_that_the_terminal_does_not_have(folder):
    name = "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n.parquet"
    (folder / "data.parquet").rename(folder / name)
    done = start(folder, f"PYTHONIOENCODING=ascii aope check {name}")
    assert (done.returncode, done.stderr) == (0, "") and "gr\\xfcn.parquet" in done.stdout


def test_names_are_no_markup(folder):
    """[red] and :warning: in the name of a file are printed as they are."""
    table = pq.read_table(folder / "data.parquet")
    names = ["[red]one[/].parquet", "[/nowhere].parquet", ":warning:.parquet"]
    for number, name in enumerate(names):
        pq.write_table(table.slice(30 * number, 30), folder / name.replace("/", "_"))
    batches = [name.replace("/", "_") for name in names]
    (folder / "[link=x]y.parquet").symlink_to("data.parquet")
    words = (
        "--starts",
        "starts.parquet",
        *FACTS[:-2],
        "--radius",
        "azuma-anytime",
        "--tabular-states",
        "0,1,2,3",
        "--planned",
        100,
    )
    done = aope_command("monitor", "state.npz", *batches, *words, cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    for name in batches:
        assert name in done.stdout
    again = aope_command("monitor", "state.npz", *batches, *words, cwd=folder)
    assert f"left out: {', '.join(batches)}." in " ".join(again.stdout.split())
    assert "[link=x]y.parquet" in aope_command("check", "[link=x]y.parquet", cwd=folder).stdout
