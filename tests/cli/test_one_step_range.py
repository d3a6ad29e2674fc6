"""--one-step-range, wherever assumptions are declared on the command line."""

import json

import pytest

from command import aope_command
from planted_files import OPTIONS, write_planted_files

SENTENCE = "Given (s, a), chance moves reward plus discounted next value by at most 0.5, as declared."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("one-step")
    write_planted_files(here)
    (here / "estimates_of_one_step.py").write_text(
        "import numpy as np\ndef q(states, actions):\n    return np.full(len(states), 1.0)\n"
    )
    return here


COMMANDS = {
    "bound": ("bound", "planted.parquet", "--radius", "azuma"),
    "diagnose": ("diagnose", "planted.parquet", "--q", "estimates_of_one_step:q"),
    "correct": ("correct", "planted.parquet", "--q", "estimates_of_one_step:q"),
    "sensitivity": ("sensitivity", "planted.parquet", "--over", "delta", "--radius", "azuma"),
    "monitor": ("monitor", "{state}", "planted.parquet", "--planned", 4000, "--never-terminates", "--radius", "azuma-anytime"),
}


def interval_of(command, result):
    return result["intervals"][0] if command in ("bound", "sensitivity") else result["interval"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_option_narrows_and_is_listed(folder, command):
    found = {}
    for name, extra in (("plain", ()), ("declared", ("--one-step-range", 0.5))):
        words = [str(word).format(state=f"{name}.npz") for word in COMMANDS[command]]
        done = aope_command(*words, *OPTIONS, *extra, "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        found[name] = interval_of(command, json.loads(done.stdout))
    assert SENTENCE in found["declared"]["assumed"]
    assert not any("chance moves" in line for line in found["plain"]["assumed"])
    assert found["declared"]["radius_level"] < 0.2 * found["plain"]["radius_level"]


def test_text_and_document_say_what_was_declared(folder):
    done = aope_command("bound", "planted.parquet", *OPTIONS, "--one-step-range", 0.5, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert SENTENCE in " ".join(done.stdout.split())
    done = aope_command("bound", "planted.parquet", *OPTIONS, "--one-step-range", 0.5, "--json", "--report", "r.html", cwd=folder)
    assert json.loads(done.stdout)["assumptions"]["one_step_range"] == 0.5
    assert "chance moves reward plus discounted next value by at most 0.5" in (folder / "r.html").read_text()


@pytest.mark.parametrize("value", [0, -1, "nan"])
def test_a_range_that_is_none_is_one_sentence(folder, value):
    done = aope_command("bound", "planted.parquet", *OPTIONS, f"--one-step-range={value}", cwd=folder)
    assert done.returncode == 2
    assert "`one_step_range` must be" in done.stderr and "Traceback" not in done.stderr


def test_an_average_reward_has_none(folder):
    done = aope_command(
        "bound", "planted.parquet", "--average-reward", "--action-values=-1,0,1", "--reward-range", 0, 1, "--norm-bound", 1.3,
        "--one-step-range", 0.5, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--average-reward does not go with --one-step-range." in done.stderr
