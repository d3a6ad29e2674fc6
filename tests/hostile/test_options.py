"""Every option of every command with hostile values; options are found by asking the commands for them."""

from pathlib import Path

import pytest

from accountable_ope.cli import experiments
from accountable_ope.cli.application import COMMANDS, app
from hostile.commands import GOOD, complaint, write_files

LONG = 300 * "a"
TEXTS = ("", " ", "x", "nan", "inf", "none", "1,2", "\N{PILE OF POO}", "1e999", LONG)
"""No value of an option that takes a number."""
NUMBERS = ("1e308", "-1e308", "-1", "0", "1e-300", "1e60", "0.5", "99999999999999999999")
PLACES = (
    "",
    ".",
    "..",
    "log.parquet/x.png",
    "log.parquet",
    "starts.parquet",
    f"{LONG}.png",
    "nowhere/x.png",
    "/dev/null/x.png",
    "\0.png",
)
WORDS = ("module:", ":function", "os:getcwd", "sys:exit", "math:pi", "no.such.module:x", "..:x", "1:2:3", "-5:5", ";", ",")
LONG_RUNS = {"--episodes", "--features", "--length", "--landmarks", "--n", "--trials", "--workers"}
"""Where a large whole number is work that was asked for, or too much memory."""


def options(command):
    """Option -> what it takes, as text."""
    found = app[command].assemble_argument_collection()
    return {each.name: str(each.hint) for each in found if each.parse and each.name != "*"}


def hostile_words(name, hint):
    """(words, whether they cannot be meant) to add to a good command."""
    if not name.startswith("-"):
        return
    if "Path" in hint:
        yield from (((f"{name}={place}",), False) for place in PLACES)
    elif "float" in hint or "int" in hint:
        pair = "tuple[float, float]" in hint
        for text in TEXTS:
            yield ((name, text, text) if pair else (f"{name}={text}",)), True
        for text in NUMBERS:
            whole = "int" in hint and ("." in text or "e" in text)
            if not (name in LONG_RUNS and text == "99999999999999999999"):
                yield ((name, text, text) if pair else (f"{name}={text}",)), whole
    elif "bool" in hint:
        yield from (((f"{name}={text}",), True) for text in ("maybe", "2"))
    else:
        yield from (((f"{name}={text}",), False) for text in (*TEXTS, *WORDS))


def cases(command):
    """Every option with a share of the values, another one for another command; all values for what `bound` has not."""
    found, known = [], options("bound")
    for at, (name, hint) in enumerate(options(command).items()):
        words = list(hostile_words(name, hint))
        share = 1 if name not in known else 2 if command == "bound" else 6
        found += words[(at + list(COMMANDS).index(command)) % share :: share]
    return found


def number_of_cases():
    return sum(len(cases(command)) for command in COMMANDS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "_document", lambda *_: {})
    (tmp_path / "place").mkdir()
    return write_files(tmp_path / "place")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_good_command_works(folder, command):
    assert complaint(folder, (command, *GOOD[command], "--json"), must_work=True) is None


@pytest.mark.parametrize(("command", "part"), [(command, part) for command in COMMANDS for part in range(3)])
def test_hostile_options(folder, command, part):
    wrong = []
    for words, must_fail in cases(command)[part::3]:
        if command == "simulate" and words[0].endswith(("=log.parquet", "=starts.parquet")):
            continue  # nothing is read, and what is named may be written over
        found = complaint(folder, (command, *GOOD[command], "--json", *words), must_fail=must_fail)
        if found:
            wrong.append(f"{' '.join(words)[:60]!r}: {found}")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


PLACES_FIRST = {"bound": 1, "check": 1, "compare": 1, "correct": 1, "diagnose": 1, "monitor": 2, "sensitivity": 1, "verify": 1}
"""How many words of a command are places."""


def test_places_that_are_arguments(folder):
    """The file of transitions, the state of a monitor and the like."""
    wrong = []
    for command, words in GOOD.items():
        for at in range(PLACES_FIRST.get(command, 0)):
            for place in PLACES:
                found = complaint(folder, (command, *words[:at], place, *words[at + 1 :], "--json"))
                if found:
                    wrong.append(f"{command} {place[:40]!r}: {found}")
    assert not wrong, "\n".join(wrong)


BROKEN_MODULES = {
    "syntax": "def policy(states:\n",
    "raises": "raise ValueError('not today')\n",
    "exits": "import sys\nsys.exit(0)\n",
    "exits_with_words": "raise SystemExit('good bye')\n",
    "imports": "import a_module_that_is_not_there\n",
    "recursion": "def f():\n    return f()\nf()\n",
    "empty": "",
    "nothing": "policy = None\n",
    "a_class": "class policy:\n    pass\n",
    "calls_exit": "import sys\ndef policy(*states):\n    sys.exit(0)\n",
    "raises_later": "def policy(*states):\n    raise KeyError('x')\n",
    "gives_none": "def policy(*states):\n    return None\n",
    "gives_text": "def policy(*states):\n    return 'x'\n",
    "gives_nan": "import numpy as np\ndef policy(states, *_):\n    return np.full((len(states), 3), np.nan)\n",
    "gives_too_many": "import numpy as np\ndef policy(states, *_):\n    return np.full((len(states) + 1, 3), 1 / 3)\n",
    "gives_objects": "import numpy as np\ndef policy(states, *_):\n    return np.array([None] * len(states))\n",
    "gives_complex": "import numpy as np\ndef policy(states, *_):\n    return np.full((len(states), 3), 1j)\n",
    "bytes": None,
}


@pytest.mark.parametrize("name", BROKEN_MODULES)
@pytest.mark.parametrize(
    ("command", "option"), [("bound", "--policy"), ("diagnose", "--q"), ("correct", "--q"), ("monitor", "--policy")]
)
def test_modules_that_fail(folder, name, command, option):
    text = BROKEN_MODULES[name]
    Path(folder / f"broken_{name}.py").write_bytes(b"\xff\xfe\x00def" if text is None else text.encode())
    assert complaint(folder, (command, *GOOD[command], "--json", option, f"broken_{name}:policy"), must_fail=True) is None
