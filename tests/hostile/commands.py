"""Good commands on tiny files, and what every command owes whoever gives it bad ones."""

import hashlib
import json
import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from command import aope_command
from hostile.values import Hang, no_longer_than, warnings_are_errors

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
LIMIT = 20.0
"""Seconds that a case may take; most take milliseconds."""
EXITS = {0, 2, 3, 4, 5}

PROBLEM = ("--starts", "starts.parquet", "--action-values=-1,0,1")
FACTS = ("--discount", 0.6, "--reward-range", 0, 1, "--norm-bound", 3, "--deterministic-reward")
CHOICE = ("--features", 3, "--seed", 1, "--bandwidth", 1)
QUESTION = (*PROBLEM, *FACTS, *CHOICE, "--radius", "azuma")
GOOD = {
    "bound": ("log.parquet", *QUESTION),
    "check": ("log.parquet",),
    "compare": ("log.parquet", *QUESTION),
    "correct": ("log.parquet", *QUESTION, "--q", "estimates:zero"),
    "coverage": ("--family", "fair-coin", "--n", 20, "--trials", 1, "--workers", 1, "--radius", "azuma"),
    "demo": (),
    "diagnose": ("log.parquet", *QUESTION, "--q", "estimates:zero"),
    "experiment": ("figure1", "--quick", "--workers", 1),
    "monitor": (
        "new.npz",
        "log.parquet",
        *PROBLEM,
        *FACTS,
        *CHOICE,
        "--never-terminates",
        "--planned",
        100,
        "--radius",
        "azuma-anytime",
    ),
    "sensitivity": ("log.parquet", *QUESTION, "--over", "delta"),
    "arena": ("--problem", "bandit", "--contestant", "aope sandwich", "--n", 300, "--trials", 1, "--workers", 1),
    "trust": ("--task", "coarse", "--n", 500, "--logs", 1, "--method", "sandwich", "--workers", 1),
    "verify": ("certificate.json",),
    "simulate": ("puck-mountain", "--episodes", 2, "--length", 3, "--out", "simulated.parquet"),
}
"""A command that works, and is quick, for every command; `experiment` runs nothing here, as the tests put a stub in its place."""


def write_files(folder):
    """A log with its policy in columns, start states, a module, and a certificate."""
    for name, content in good_files().items():
        (folder / name).write_bytes(content)
    return folder


@cache
def good_files():
    """Name -> content of these files, made once."""
    with TemporaryDirectory() as place:
        make_files(Path(place))
        return {path.name: path.read_bytes() for path in Path(place).iterdir()}


def make_files(folder):
    data = MDP.sample(np.random.default_rng(0), trajectories=4, length=5)
    states = np.concatenate([data.states, data.next_states, MDP.starts.states])
    probabilities = np.column_stack([branch.weights for branch in MDP.policy.branches(states)])
    table = aope.TabulatedPolicy(states, probabilities, MDP.policy.action_vectors)
    aope.save_transitions(data, folder / "log.parquet", table)
    aope.save_starts(MDP.starts, folder / "starts.parquet", table)
    (folder / "estimates.py").write_text("import numpy as np\ndef zero(states, actions):\n    return np.zeros(len(states))\n")
    (folder / "policies.py").write_text("import numpy as np\ndef uniform(states):\n    return np.full((len(states), 3), 1 / 3)\n")
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False)
    asked = aope.Problem(data, MDP.starts, table, facts)
    aope.bound_value(asked, features=aope.RandomFourier(3, seed=1), kernel=aope.Gaussian(1.0)).save(folder / "certificate.json")


def bytes_of(folder):
    """Every file and what it holds."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def complaint(folder, words, *, must_fail=False, must_work=False, keep=()):
    """What is wrong with how a command ends; None where all is well. Files that it wrote are taken away, but for `keep`."""
    before = bytes_of(folder)
    try:
        with no_longer_than(LIMIT), warnings_are_errors():
            done = aope_command(*words, cwd=folder)
    except Hang:
        return "takes too long"
    except SystemExit as error:
        return f"leaves by sys.exit({error.code})"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        after = bytes_of(folder)
        for name in set(after) - set(before) - set(keep):
            (folder / name).unlink()
    if must_work and done.returncode == 2:
        return done.stderr
    return (
        _lost(before, after) or _wrong_exit(words, done, must_fail=must_fail) or ("--json" in words and _wrong_json(done)) or None
    )


def _lost(before, after):
    changed = [name for name, digest in before.items() if after.get(name) != digest]
    left = [name for name in set(after) - set(before) if ".partial" in name]
    return (changed and f"changed {changed}") or (left and f"left {left}")


def _wrong_exit(words, done, *, must_fail):
    if done.returncode not in EXITS:
        return f"exit code {done.returncode}"
    if "Traceback" in done.stderr + done.stdout:
        return "a traceback"
    if done.returncode == 2:
        if not done.stderr.startswith("Error: ") or len(done.stderr.strip().splitlines()) != 1 or len(done.stderr) > 1500:
            return f"more than a sentence: {done.stderr[-300:]!r}"
        # `aope check` describes a file before it says what contradicts the declaration.
        return f"prints {done.stdout[:80]!r}" if done.stdout and words[0] != "check" else None
    return f"accepted with exit code {done.returncode}: {done.stdout[:150]!r}" if must_fail else None


def _wrong_json(done):
    if done.returncode == 2:
        return None
    try:
        document = json.loads(done.stdout, parse_constant=_refuse)
    except ValueError as error:
        return f"no JSON: {error}"
    return next((f"prints {number}" for number in _numbers(document) if not math.isfinite(number)), None)


def _refuse(name):
    raise ValueError(name)


def _numbers(document):
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        for each in document:
            yield from _numbers(each)
    elif isinstance(document, float):
        yield document
