"""What the command line says about columns, and what `aope check` refuses before a bound would."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.environments import clinic
from command import aope_command

TABLE = np.full((6, 3), 1 / 3)
FACTS = ("--discount", 0.5, "--reward-range", 0, 1, "--terminal-reward")
BOUND = ("bound", "data.parquet", "--starts", "starts.parquet", *FACTS, "--tabular", "--radius", "azuma")


@pytest.fixture
def folder(tmp_path):
    data = clinic(discount=0.5).sample_trajectories(TABLE, 40, 60, np.random.default_rng(0))
    policy = aope.TabulatedPolicy(np.arange(4.0), TABLE[:4], 3)
    aope.save_transitions(data, tmp_path / "data.parquet", policy)
    aope.save_starts(aope.StartStates(np.arange(4.0), [0.1, 0.3, 0.4, 0.2]), tmp_path / "starts.parquet", policy)
    return tmp_path


def change(path, **columns):
    """The file with columns added, replaced (a function of the old values) or, where None, removed."""
    table = pq.read_table(path)
    old = {name: table[name].to_pylist() for name in table.column_names}
    new = {name: values(old.get(name, [None] * len(table))) if callable(values) else values for name, values in columns.items()}
    pq.write_table(pa.table({name: values for name, values in (old | new).items() if values is not None}), path)


def rename(path, **names):
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([names.get(name, name) for name in table.column_names]), path)


def test_columns_that_are_not_used_are_listed_by_every_command(folder):
    change(folder / "data.parquet", hour=lambda rows: [7.0] * len(rows), ward=lambda rows: ["[red]a"] * len(rows))
    change(folder / "starts.parquet", **{"[bold]x": lambda rows: [1] * len(rows)})
    (folder / "estimates.py").write_text("def q(states, actions):\n    return 0 * states[:, 0] + 0.5\n")
    (folder / "policies.py").write_text("import numpy as np\ndef uniform(states):\n    return np.full((len(states), 3), 1 / 3)\n")
    common = ("data.parquet", "--starts", "starts.parquet", *FACTS, "--radius", "azuma", "--features", 3)
    for words in (
        ("check", "data.parquet", "--starts", "starts.parquet"),
        ("bound", *common),
        ("diagnose", *common, "--q", "estimates:q"),
        ("correct", *common, "--q", "estimates:q"),
        ("sensitivity", *common, "--over", "delta"),
    ):
        done = aope_command(*words, cwd=folder)
        assert done.returncode != 2, done.stderr
        assert "Columns not used: hour, ward (data.parquet).\nColumns not used: [bold]x (starts.parquet).\n" in done.stdout
        found = json.loads(aope_command(*words, "--json", cwd=folder).stdout)["columns"]
        assert [each["not_used"] for each in found] == [["hour", "ward"], ["[bold]x"]]
    report = aope_command("bound", *common, "--report", "report.html", cwd=folder)
    assert report.returncode != 2 and "Columns not used: hour, ward (data.parquet)." in (folder / "report.html").read_text()
    named = aope_command("bound", *common, "--policy", "policies:uniform", cwd=folder).stdout
    assert "Columns not used: target_probability, next_target_probability, hour, ward (data.parquet)." in named


def test_monitor_lists_them_too(folder):
    change(folder / "data.parquet", hour=lambda rows: [7.0] * len(rows))
    words = ("monitor", "state.npz", "data.parquet", "--starts", "starts.parquet", *FACTS, "--planned", 100)
    words = (*words, "--radius", "azuma-anytime", "--tabular-states", "0,1,2,3")
    assert "Columns not used: hour (data.parquet).\n" in aope_command(*words, cwd=folder).stdout
    quiet = aope_command(*words, "--ignore-column", "hour", "--json", cwd=folder)
    assert json.loads(quiet.stdout)["columns"][0] == {
        "file": "data.parquet",
        "read_as": {},
        "not_used": [],
        "ignored": ["hour"],
        "remarks": [],
    }


def test_a_done_column_is_not_left_out_in_silence(folder):
    """Without the ends of episodes the interval would be another one."""
    before = json.loads(aope_command(*BOUND, "--json", cwd=folder).stdout)["intervals"]
    rename(folder / "data.parquet", terminated="done")
    for words in (BOUND, ("check", "data.parquet")):
        done = aope_command(*words, cwd=folder)
        assert (done.returncode, done.stdout) == (2, "") and len(done.stderr.splitlines()) == 1
        assert "has a column `done`, which is not read: did you mean `terminated`" in done.stderr
        assert "merely cut off" in done.stderr and "--ignore-column done" in done.stderr
    rename(folder / "data.parquet", done="terminals")
    done = aope_command(*BOUND, cwd=folder)
    assert "Column terminals read as terminated (data.parquet).\n" in done.stdout, done.stderr
    found = json.loads(aope_command(*BOUND, "--json", cwd=folder).stdout)
    assert found["intervals"] == before and found["columns"][0]["read_as"] == {"terminals": "terminated"}


def test_recorded_probabilities_are_used_only_where_asked(folder):
    done = aope_command(*BOUND, "--propensities", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--propensities needs a column `behavior_probability`, and data.parquet has none." in done.stderr
    plain = json.loads(aope_command(*BOUND, "--json", cwd=folder).stdout)
    change(folder / "data.parquet", behavior_probability=every(1 / 3))
    found = json.loads(aope_command(*BOUND, "--json", cwd=folder).stdout)
    assert [each["lower"] for each in found["intervals"]] == [each["lower"] for each in plain["intervals"]]
    assert aope_command(*BOUND, "--propensities", cwd=folder).returncode in (0, 3)
    text = aope_command("check", "data.parquet", cwd=folder).stdout
    assert "probabilities recorded, 0.333 to 0.333" in text
    described = json.loads(aope_command("check", "data.parquet", "--json", cwd=folder).stdout)
    assert described["behavior_probability"] == [1 / 3, 1 / 3]
    average = ("bound", "data.parquet", "--average-reward", "--reward-range", 0, 1, "--value-span", 1, "--tabular")
    assert "--average-reward does not go with --propensities" in aope_command(*average, "--propensities", cwd=folder).stderr


def test_ignored_columns(folder):
    change(folder / "data.parquet", done=lambda rows: [False] * len(rows), hour=lambda rows: [7] * len(rows))
    done = aope_command(*BOUND, "--ignore-column", "done", "--ignore-column", "hour", cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    assert "not used" not in done.stdout
    for words in (BOUND, ("check", "data.parquet")):
        done = aope_command(*words, "--ignore-column", "done", "--ignore-column", "nowhere", cwd=folder)
        assert done.returncode == 2 and "--ignore-column nowhere has no effect: there is no such column in data" in done.stderr
    average = ("bound", "data.parquet", "--average-reward", "--reward-range", 0, 1, "--value-span", 1, "--tabular")
    done = aope_command(*average, "--ignore-column", "done", cwd=folder)
    assert "--average-reward does not go with" not in done.stderr


def with_first(value):
    return lambda rows: [value, *rows[1:]]


def every(value):
    return lambda rows: [value] * len(rows)


PROBABILITIES = ("target_probability", "next_target_probability")
NO_DISTRIBUTIONS = [
    (with_first([1.2, -0.2, 0.0]), "has a negative probability: [1.2, -0.2, 0.0], in row 0."),
    (with_first([float("nan"), 0.5, 0.5]), "has NaN or infinite entries, first in row 0."),
    (with_first([0.5, 0.49, 0.0]), "must hold probabilities that sum to one. These are [0.5, 0.49, 0.0], sum 0.99, in row 0."),
    (every([50.0, 25.0, 25.0]), "must hold probabilities that sum to one. These look like percent, sum 100, in row 0."),
    (every(0.5), "must hold the probabilities of all actions, a list or numbered columns. It holds one number, 0.5, in row 0."),
]
REFUSED = [
    *(({name: values}, f"column `{name}` {message}") for name in PROBABILITIES for values, message in NO_DISTRIBUTIONS),
    ({"target_probability": every([0.5, 0.5])}, "but `target_probability` has probabilities of 2 actions"),
    ({"action": with_first(10**6)}, "`actions` must be indices below 65,536. Got 1000000 in row 0."),
    ({"action": with_first(2**62)}, f"`actions` must be indices below 65,536. Got {2**62} in row 0."),
    ({"action": with_first(60_000)}, "`actions` has index 60000 in row 0, but `next_target_probability` has"),
    ({"state": None, "state_0": every(0.0), "state_2": every(0.0)}, "`state_2` but no `state_1`"),
    ({"state_0": every(0.0)}, "has both `state` and `state_0`"),
    ({"reward": every("0.0")}, "column `reward` must hold numbers. It holds text, first '0.0' in row 0."),
    (
        {"reward": with_first(2.0)},
        "column `reward` must lie in the declared --reward-range 0 1. 1 of its entries does not, first 2 in row 0.",
    ),
    ({"reward": with_first(0.5)}, "`terminal_reward=True` says that only the end of an episode pays, but row 0"),
    ({"target_probability": with_first([0.6, 0.2, 0.2])}, "`probabilities` differ between two rows of the same state"),
]


@pytest.mark.parametrize("command", ["check", "bound"])
@pytest.mark.parametrize(("columns", "message"), REFUSED)
def test_check_refuses_what_bound_refuses(folder, command, columns, message):
    change(folder / "data.parquet", **columns)
    words = ("data.parquet", "--starts", "starts.parquet", *FACTS)
    done = aope_command(command, *words, *(("--tabular",) if command == "bound" else ()), cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", ["check", "bound"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": with_first(-1.0)}, "`weights` must not be negative and must not all be zero. Row 0 has -1."),
        ({"weights": lambda rows: [1.0] * 4}, "did you mean `weight`"),
        ({"state": lambda rows: [[0.0, 1.0]] * 4}, "Start states have 2 columns, states have 1."),
        ({"target_probability": lambda rows: [[0.5, 0.5]] * 4}, "must have one column per action, all the same number"),
        ({"target_probability": None}, "The start states have no column `target_probability`"),
    ],
)
def test_check_reads_the_start_states_too(folder, command, columns, message):
    change(folder / "starts.parquet", **columns)
    words = ("data.parquet", "--starts", "starts.parquet", *FACTS)
    done = aope_command(command, *words, *(("--tabular",) if command == "bound" else ()), cwd=folder)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_check_asks_a_policy_by_name(folder):
    (folder / "policies.py").write_text(
        "import numpy as np\n"
        "def uniform(states):\n    return np.full((len(states), 3), 1 / 3)\n"
        "def wrong(states):\n    return np.where(states > 0, 0.5, 1 / 3) * np.ones(3)\n"
        "def two(states):\n    return np.full((len(states), 2), 1 / 2)\n"
    )
    assert aope_command("check", "data.parquet", "--policy", "policies:uniform", cwd=folder).returncode == 0
    for name, message in (
        ("wrong", "must sum to one in every row"),
        ("two", "but the policy has 2 actions"),
        ("none", "no attribute"),
    ):
        done = aope_command("check", "data.parquet", "--policy", f"policies:{name}", cwd=folder)
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_check_takes_declarations_together(folder):
    assert aope_command("check", "data.parquet", *FACTS, cwd=folder).returncode == 0
    done = aope_command("check", "data.parquet", "--horizon", 3, cwd=folder)
    assert done.returncode == 2 and "--reward-range is needed" in done.stderr
    done = aope_command("check", "data.parquet", *FACTS, "--state-box", "0:1", cwd=folder)
    assert done.returncode == 2 and "must lie in the declared state_box" in done.stderr


def test_check_of_a_file_without_policy_or_episodes(folder):
    change(folder / "data.parquet", **dict.fromkeys((*PROBABILITIES, "episode")))
    done = aope_command("check", "data.parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "unknown (give --starts to `aope bound`)" in done.stdout
    assert json.loads(aope_command("check", "data.parquet", "--json", cwd=folder).stdout)["start_states"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tabular", "--kernel", "gaussian"), "--kernel has no effect with --tabular."),
        (("--tabular", "--bandwidth", 1), "--bandwidth has no effect with --tabular."),
        (("--tabular", "--features", 50), "--features has no effect with --tabular."),
        (("--tabular", "--seed", 0), "--seed has no effect with --tabular."),
        (("--tabular", "--feature-bandwidth", 1), "--feature-bandwidth has no effect with --tabular."),
        (("--tabular", "--single-precision"), "--single-precision has no effect with a tabular kernel"),
        (("--kernel", "tabular", "--bandwidth", 1), "--bandwidth has no effect with --kernel tabular"),
        (("--landmarks", 5, "--features", 3), "--features has no effect with --landmarks"),
        (("--earlier-share", 0.5, "--bandwidth", 0.5), "--bandwidth has no effect with --earlier-share, which chooses"),
        (("--earlier-share", 0.5, "--feature-bandwidth", 1), "--feature-bandwidth has no effect with --earlier-share"),
        (("--ladder", "--radius", "azuma"), "--ladder has no effect with --radius"),
        (("--sampled-starts",), "--sampled-starts has no effect without --starts"),
        (
            ("--policy", "policies:uniform", "--action-values", "0,1,2"),
            "--action-values has no effect with --policy policies:uniform",
        ),
    ],
)
def test_options_without_effect_are_refused(folder, words, message):
    (folder / "policies.py").write_text(
        "import accountable_ope as aope, numpy as np\nuniform = aope.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)\n"
    )
    done = aope_command("bound", "data.parquet", *FACTS, *words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(f"Error: {message}"), done.stderr
