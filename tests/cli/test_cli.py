"""The command line as a stranger uses it: text, JSON, reports, exit codes, and errors without tracebacks."""

import json
import subprocess
import sys
from importlib.resources import files
from inspect import signature

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.cli import describing
from accountable_ope.cli.application import COMMANDS, app
from accountable_ope.cli.class_options import ClassOptions, FourierOptions
from accountable_ope.cli.options import Declarations, RadiusOptions
from accountable_ope.demo import DEMO_COMMAND, demo_behavior_value, demo_truth, run_demo
from accountable_ope.environments import clinic, random_tabular
from command import aope_command, aope_process

FOLDER = files("accountable_ope") / "data"


@pytest.fixture
def demo_folder(tmp_path):
    for name in ("demo.parquet", "demo-starts.parquet"):
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    return tmp_path


@pytest.fixture
def tabular_folder(tmp_path):
    """A file whose policy stands in its columns, with episodes that end."""
    mdp = clinic(discount=0.5)
    table = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 150, 60, np.random.default_rng(0))
    policy = aope.TabulatedPolicy(np.arange(4.0), table[:4], 3)
    aope.save_transitions(data, tmp_path / "data.parquet", policy)
    aope.save_starts(aope.StartStates(np.arange(4.0), [0.1, 0.3, 0.4, 0.2]), tmp_path / "starts.parquet", policy)
    (tmp_path / "policies.py").write_text(
        "import numpy as np\n"
        "def uniform(states):\n    return np.full((len(states), 3), 1 / 3)\n"
        "def wrong(states):\n    return np.full((len(states), 3), 0.5)\n"
        "def broken(states):\n    raise KeyError('no such state')\n"
        "number = 3\n"
    )
    return tmp_path, mdp.value(table)


BOUND = (
    "bound",
    "data.parquet",
    "--starts",
    "starts.parquet",
    "--discount",
    0.5,
    "--reward-range",
    0,
    1,
    "--terminal-reward",
    "--tabular",
)


def test_demo_prints_the_ladder_and_writes_the_report(tmp_path):
    done = aope_command("demo", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    for word in (
        "hoeffding",
        "azuma",
        "certified",
        "Tightened in",
        "VACUOUS",
        "DOUBTED",
        "finite-sample",
        "Truth (known for this dataset): 1.37",
        "The behavior policy itself, to beat: 0.46",
        "The lower end of `certified` is above it",
        "Assumed",
        "all recomputed and valid",
    ):
        assert word in done.stdout
    assert done.stdout.startswith("The class is doubted (p < 1e-12); without it, for many rows, the new policy's")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "demo-starts.parquet",
        "demo.parquet",
        "report.html",
        "result.json",
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page and "azuma" in page and "http" not in page
    assert "Truth, known for this dataset: <b>1.37" in page and ">truth</text>" in page
    assert "The behavior policy itself, to beat: <b>0.46" in page and ">behavior</text>" in page
    assert "The lower end of `certified` is above it" in page
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    azuma, certified = result["intervals"][-2:]
    assert azuma["radius"] == "azuma" and azuma["lower"] <= demo_truth() <= azuma["upper"]
    assert azuma["certificates_check"] is True and certified["certificates_check"] is True
    assert azuma["lower"] < demo_behavior_value() < certified["lower"] < demo_truth() < certified["upper"] < azuma["upper"]
    rounds = certified["classes"][0]["tightening"]["rounds"]
    assert rounds[0]["variance"] > rounds[-1]["variance"]


def test_demo_is_the_command_that_it_names(demo_folder):
    done = aope_command(*DEMO_COMMAND.split()[1:], "--json", cwd=demo_folder)
    assert done.returncode == 5, done.stderr  # its class is doubted
    _, intervals = run_demo()
    printed = json.loads(done.stdout)["intervals"]
    for one, other in zip(printed, intervals, strict=True):
        assert (one["lower"], one["upper"]) == pytest.approx((other.lower, other.upper), rel=1e-7)


def test_bound_from_columns_covers(tabular_folder):
    folder, truth = tabular_folder
    done = aope_command(*BOUND, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [x["radius"] for x in result["intervals"]] == ["certified"]
    certified = result["intervals"][-1]
    assert certified["status"] == "OK"
    assert certified["lower"] <= truth <= certified["upper"]
    assert certified["guarantee"] == "finite-sample"
    assert {c["role"] for c in certified["classes"][0]["upper"]["constraints"]} >= {"loss"}
    ladder = json.loads(aope_command(*BOUND, "--ladder", "--json", cwd=folder).stdout)["intervals"]
    assert [x["radius"] for x in ladder] == ["hoeffding", "azuma", "certified"]


def test_policy_by_name_is_the_policy_in_the_columns(tabular_folder):
    folder, _ = tabular_folder
    columns = json.loads(aope_command(*BOUND, "--json", cwd=folder).stdout)
    function = json.loads(aope_command(*BOUND, "--policy", "policies:uniform", "--json", cwd=folder).stdout)
    unused = function.pop("columns")[0]["not_used"]
    assert unused == ["target_probability", "next_target_probability"] and columns.pop("columns")[0]["not_used"] == []
    assert columns == function


def test_first_states_are_the_default_start(tabular_folder):
    folder, _ = tabular_folder
    arguments = [x for x in BOUND if x not in ("--starts", "starts.parquet")]
    result = json.loads(aope_command(*arguments, "--json", cwd=folder).stdout)
    assert result["start_error"] > 0
    assert result["delta"]["start"] > 0


def test_random_features_and_union(demo_folder):
    arguments = DEMO_COMMAND.split()[1:-1]  # without --ladder
    done = aope_command(*arguments, "--feature-bandwidth", 2.0, "--radius", "azuma", "--json", cwd=demo_folder)
    result = json.loads(done.stdout)
    assert [part["features"] for part in result["intervals"][0]["classes"]] == [
        "RandomFourier(dimension=16, bandwidth=1.0, seed=31, intercept=True)",
        "RandomFourier(dimension=16, bandwidth=2.0, seed=31, intercept=True)",
    ]


def test_report_and_text(tabular_folder):
    folder, _ = tabular_folder
    done = aope_command(*BOUND, "--report", "report.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Value of the target policy, 90% confidence" in done.stdout
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_exit_code_3_when_everything_is_vacuous(tabular_folder):
    folder, _ = tabular_folder
    done = aope_command(*BOUND, "--radius", "hoeffding", cwd=folder)
    assert done.returncode == 3
    assert "VACUOUS" in done.stdout


def test_exit_code_4_when_no_class_is_consistent(tmp_path):
    """Rewards that depend on the state, a class that is nearly constant (one wide cosine with a tiny norm)."""
    mdp = random_tabular(3, 2, seed=0, discount=0.0)
    policy = aope.TabulatedPolicy(np.arange(3.0), np.full((3, 2), 0.5), 2)
    aope.save_transitions(mdp.sample_iid(4000, np.random.default_rng(0)), tmp_path / "data.parquet", policy, episodes=False)
    aope.save_starts(aope.StartStates(np.arange(3.0)), tmp_path / "starts.parquet", policy)
    done = aope_command(
        "bound", "data.parquet", "--starts", "starts.parquet", "--discount", 0, "--reward-range", 0, 1, "--features", 1,
        "--norm-bound", 0.01, "--bandwidth", 0.5, "--radius", "azuma", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 4, done.stdout + done.stderr
    assert "INCONSISTENT" in done.stdout
    assert "misses Q somewhere by at least" in done.stdout.replace("\n", " ").replace("  ", " ")


def test_check_describes_a_file(tabular_folder):
    folder, _ = tabular_folder
    done = aope_command("check", "data.parquet", "--reward-range", 0, 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    for word in ("transitions", "150, of", "terminated", "declared [0, 1]", "3 indices", "probabilities of 3 actions"):
        assert word in done.stdout
    described = json.loads(aope_command("check", "data.parquet", "--json", cwd=folder).stdout)
    assert described["episodes"] == 150
    assert sum(described["action_counts"]) == described["transitions"]


def test_check_refuses_rewards_outside_the_declared_range(tabular_folder):
    folder, _ = tabular_folder
    done = aope_command("check", "data.parquet", "--reward-range", 0, 0.5, cwd=folder)
    assert done.returncode == 2
    assert "column `reward` must lie in the declared --reward-range 0 0.5." in done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("--discount", 1.2), "`discount` must be in [0, 1). Got 1.2."),
        (("--delta", 0), "`delta` must be in (0, 1). Got 0.0."),
        (("--delta", 2), "`delta` must be in (0, 1)."),
        (("--reward-range", 0, 0.2), "column `reward` must lie in the declared --reward-range"),
        (("--reward-range", 1, 0), "`reward_range` must have low <= high"),
        (("--radius", "magic"), "`radius` must be one of"),
        (("--norm-bound", -1), "`norm_bound` must be positive"),
        (("--norm-bound", 1, "--relative-norm", 2), "exclude each other"),
        (("--kernel", "cubic"), 'Invalid value "cubic" for --kernel. Choose from: "gaussian", "laplace", "tabular".'),
        (("--bandwidth", "wide"), "--bandwidth must be a number"),
        (("--action-values", "1,2"), "--action-values must name 3 actions"),
        (("--action-values", "a,b,c"), "--action-values must be numbers"),
        (("--policy", "policies"), "--policy must be module:function"),
        (("--policy", "policies:missing"), "has no attribute 'missing'"),
        (("--policy", "nowhere:x"), "No module named 'nowhere'"),
        (("--policy", "policies:number"), "must be a function of the states or a policy object"),
        (("--policy", "policies:broken"), "--policy policies:broken raised KeyError"),
        (("--policy", "policies:wrong"), "must sum to one in every row"),
        (("--starts", "nowhere.parquet"), "nowhere.parquet is not a file"),
        (("--features", 0), "dimension"),
    ],
)
def test_bad_options_are_one_sentence_and_exit_code_2(tabular_folder, changes, message):
    folder, _ = tabular_folder
    arguments = [*BOUND, *changes]
    if {"--kernel", "--features", "--bandwidth"} & {*changes}:
        arguments.remove("--tabular")
    before = sorted(folder.iterdir())
    done = aope_command(*arguments, "--report", "report.html", cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert [p for p in sorted(folder.iterdir()) if p.name != "__pycache__"] == before


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("reward", None, "has no column `reward`"),
        ("next_target_probability", None, "has no column `next_target_probability`"),
        ("reward", lambda r: pa.array([None, *r[1:]]), "column `reward` has 1 missing value (nulls)"),
        ("reward", lambda r: pa.array([float("nan"), *r[1:]]), "`rewards` has 1 NaN or infinite entry"),
        ("action", lambda a: pa.array([7, *a[1:]]), "`actions` has index 7 in row 0"),
        (
            "next_target_probability",
            lambda p: pa.array([[0.5, 0.5, 0.5], *p[1:]]),
            "`next_target_probability` must hold probabilities that sum to one",
        ),
    ],
)
def test_bad_columns_are_one_sentence_and_exit_code_2(tabular_folder, column, values, message):
    folder, _ = tabular_folder
    table = pq.read_table(folder / "data.parquet")
    index = table.column_names.index(column)
    old = table[column].to_pylist()
    table = table.remove_column(index)
    if values is not None:
        table = table.append_column(column, values(old))
    pq.write_table(table, folder / "data.parquet")
    done = aope_command(*BOUND, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


OPTIONS = (*BOUND[2:], "--report", "report.html")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bound", "data.parquet", *OPTIONS, "--bogus", 1), "Unknown option: --bogus."),
        (("bound", "data.parquet", *OPTIONS, "--no-json"), "Unknown option: --no-json. Did you mean --json?"),
        (("bound", "data.parquet", "more.parquet", *OPTIONS), "Unexpected argument 'more.parquet'."),
        (("bound", *OPTIONS), "DATA is needed."),
        (("bound", "data.parquet", "--discount", 0.5), "--reward-range is needed: the least and the largest reward"),
        (("bound", "data.parquet", "--reward-range", 0, 1), "--discount is needed: what a reward is worth one step later"),
        (("bound", "data.parquet", "--reward-range", 0), "--reward-range needs 2 values."),
        (("bound", "data.parquet", "--starts", "--discount", 0.5), "--starts needs a value."),
        (("bound", "data.parquet", *OPTIONS, "--delta", "low"), 'Invalid value for --delta: unable to convert "low" into float.'),
        (("bound", "data.parquet", *OPTIONS, "--value-span", 1), "--value-span goes with --average-reward only."),
        (("bind",), 'Unknown command "bind". Did you mean "bound"?'),
        (("simulate",), "TASK is needed."),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_exit_code_2(tabular_folder, arguments, sentence):
    folder, _ = tabular_folder
    done = aope_command(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {sentence}") and len(done.stderr.splitlines()) == 1
    assert not (folder / "report.html").exists()


def test_values_may_start_with_a_hyphen(tabular_folder):
    folder, _ = tabular_folder
    words = (*BOUND, "--reward-range", -1, 1, "--state-box", "-1:9", "--radius", "azuma", "--json")
    apart = aope_command(*words, "--action-values", "-1,0,1", cwd=folder)
    joined = aope_command(*words, "--action-values=-1,0,1", cwd=folder)
    assert apart.returncode == 0, apart.stderr
    assert apart.stdout == joined.stdout
    declared = json.loads(apart.stdout)["assumptions"]
    assert declared["reward_range"] == [-1, 1] and declared["state_box"] == [[-1], [9]]


@pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
def test_help_lists_the_commands(words):
    done = aope_command(*words)
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("│ ") and line[2] != " "]
    assert listed == [*COMMANDS, "--help", "--install-completion", "--version"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_in_panels(name):
    done = aope_command(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: aope {name} ") and "─ Output ─" in done.stdout and "--json" in done.stdout
    if name in ("bound", "correct", "diagnose", "monitor", "sensitivity"):
        for panel in ("Problem", "Declarations", "Class and kernel", "Radius"):
            assert f"─ {panel} ─" in done.stdout
    assert "None" not in done.stdout and "[default: False]" not in done.stdout


def test_version_is_that_of_the_package():
    for words in (("--version",), ("bound", "--version")):
        assert aope_command(*words).stdout == f"{aope.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell):
    script = app.generate_completion(shell=shell)
    for word in (*COMMANDS, "reward-range", "never-terminates", "laplace"):
        assert word in script


def test_defaults_are_those_of_the_library():
    fourier, declared = FourierOptions(), Declarations(discount=0.5, reward_range=(0, 1))
    assert declared.assumptions() == aope.Assumptions(discount=0.5, reward_range=(0, 1))
    assert fourier.classes() == [aope.RandomFourier(50)] and ClassOptions().tiles() == aope.kernels.TileOptions()
    assert repr(fourier.test_kernel()) == repr(aope.Gaussian())
    assert repr(FourierOptions(kernel="laplace").test_kernel()) == repr(aope.Laplace())
    assert (RadiusOptions().radius, RadiusOptions().delta) == (
        "certified",
        signature(aope.bound_value).parameters["delta"].default,
    )


def test_ctrl_c_gives_no_traceback(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(describing, "run_demo", interrupted)
    done = aope_command("demo")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_process(demo_folder):
    """What is different when the command is not called but started."""
    shown = aope_process("--help")
    assert shown.returncode == 0 and "sensitivity" in shown.stdout
    assert aope_process("--version").stdout == f"{aope.__version__}\n"
    words = [*DEMO_COMMAND.split()[1:], "--json"]
    bounded, here = aope_process(*words, cwd=demo_folder), aope_command(*words, cwd=demo_folder)
    assert (bounded.returncode, bounded.stderr) == (5, "") and bounded.stdout == here.stdout
    wrong = aope_process("bound", "demo.parquet", "--reward-range", 0, "one", cwd=demo_folder)
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1


def test_a_reader_who_leaves_gives_no_traceback(demo_folder):
    code = "from accountable_ope.cli import main; main()"
    for words in (["check", "demo.parquet"], ["check", "demo.parquet", "--json"], ["--help"]):
        started = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=demo_folder
        )
        started.stdout.close()
        assert started.stderr.read() == b"" and started.wait() == 1


def test_help_imports_no_command():
    code = "import sys; from accountable_ope.cli.application import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "accountable_ope.cli.application" in loaded
    assert not loaded & {f"accountable_ope.cli.{module}" for module, _ in COMMANDS.values()}
    assert not loaded & {"pyarrow", "scipy.linalg", "scipy.optimize", "docutils", "matplotlib", "torch"}


@pytest.mark.parametrize(
    "wrong", [("--horizon", "4.4"), ("--features", "6.5"), ("--seed", "1.0"), ("--norm-bound", "none"), ("--horizon", "NULL")]
)
def test_numbers_are_taken_as_they_were_typed(wrong, demo_folder):
    arguments = ("bound", demo_folder / "demo.parquet", "--discount", "0.9", "--reward-range", "0", "1", *wrong)
    done = aope_command(*arguments)
    assert done.returncode == 2 and f"Invalid value for {wrong[0]}" in done.stderr and done.stdout == ""


def test_an_average_reward_needs_the_policy_at_next_states_only(tmp_path, demo_folder):
    table = pq.read_table(demo_folder / "demo.parquet")
    kept = [name for name in table.column_names if not name.startswith("target_probability")]
    pq.write_table(table.select(kept), tmp_path / "next.parquet")
    given = ("--average-reward", "--reward-range", "0", "1", "--value-span", "1", "--features", "6", "--action-values=-1,0,1")
    done = aope_command("bound", tmp_path / "next.parquet", *given)
    assert done.returncode == 4 and "Average reward" in done.stdout  # six cosines do not fit, which is an answer
