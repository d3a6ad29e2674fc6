"""The application: its commands, each imported when it is called, and how a run ends."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn, get_args

from cyclopts import App, CycloptsError, Parameter, convert
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

from ..errors import AopeError
from .exits import BAD_INPUT, INTERRUPTED, NO_OUTPUT
from .typed import typed

COMMANDS = {
    "arena": (
        "competing",
        "Compare interval estimators, ours and those of others, on problems whose value is known: coverage first, then width.\n\n"
        "Exit code 1 when a finite-sample claim of ours misses so often that it is not believable.",
    ),
    "bound": (
        "bounding",
        "Bound the value of the target policy: the verdict, then one row per radius, with guarantee, status and assumptions.\n\n"
        "Exit codes: 0 an interval that says something; 2 bad input; 3 vacuous; 4 no function of the class fits; 5 the class, or "
        "its norm bound, is doubted. With --threshold or --better-than-logged: 0 supported; 3 refuted; 4 undecided; 5 not "
        "decided, since the class is doubted or refuted, rows are copies, or few.",
    ),
    "check": (
        "describing",
        "Validate a file of transitions and describe it, before any statistics.\n\n"
        "Start states, target policy and declarations are checked too, where they are given: whatever passes is not refused by a "
        "bound.",
    ),
    "compare": (
        "comparing",
        "Compare several policies on one log: all intervals and differences at one confidence, the logged policy among them.\n\n"
        "Exit codes: as of bound, for the worst of the intervals. With --best: 0 supported; 3 refuted; 4 undecided; 5 not "
        "decided, since a class is doubted or refuted, rows are copies, or few.",
    ),
    "correct": ("estimates", "Correct an existing Q estimate by the smallest change that makes it consistent with the data."),
    "coverage": (
        "coverage",
        "Measure coverage: run every radius on many data sets of problems whose value is known.\n\n"
        "Exit code 1 when a finite-sample radius misses so often that its claim is not believable.",
    ),
    "demo": ("describing", "Run on a small embedded dataset of a control task, whose true value is known."),
    "diagnose": (
        "estimates",
        "Diagnose an existing Q estimate: is it consistent with the data, what does it imply, and where is it wrong?",
    ),
    "experiment": ("experiments", "Run an experiment of the paper: every trial as Parquet, the figure as PNG and SVG."),
    "monitor": (
        "monitoring",
        "Bound the value while data grow: look after every batch, stop when sure.\n\n"
        "Run the same command again with new batches. A batch that was taken in before, by name and content, is left out; a "
        "batch that is refused changes nothing.",
    ),
    "sensitivity": (
        "sensitivity",
        "Show how the interval depends on each assumption, and where a decision made with it would flip.",
    ),
    "simulate": (
        "simulating",
        "Roll out a control task with the softmax policy of its network, and write transitions and start states.",
    ),
    "trust": (
        "trusting",
        "Measure trust: how often a first answer is wrong and nothing says so, on tasks whose Q is in no class at hand.\n\n"
        "Exit code 1 when the default is wrong without a doubt so often that a rate of delta is not believable.",
    ),
    "verify": (
        "verifying",
        "Prove a certificate again: the interval follows from its sums, its assumptions and delta.\n\n"
        "With --data the sums are made again from the log. Exit code 0: proved; 5: not proved; 2: no certificate.",
    ),
}
"""Command -> its module here, imported when it is called, and its help, whose first paragraph stands in `aope --help`."""


LONGEST_NAME, LONGEST_PATH = 200, 2000
"""What every file system takes, with room for what is added while a file is written."""


def _shown_default(value: object) -> str | None:
    """Nothing for an option that was not given, such as a flag; several values as they are typed."""
    if value is None or value is False or value == ():
        return None
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _strictly(kind: Any, tokens: Any) -> Any:
    """As typed: 4.4 is no whole number, and `none` no value."""
    allowed = {*get_args(kind), kind}
    for token in tokens if isinstance(tokens, Sequence) else ():
        if int in allowed and not re.fullmatch(r"[+-]?\d+", token.value):
            raise ValueError(f"it must be a whole number. Got {token.value!r}.")
        if NoneType in allowed and not allowed & {str, Path} and token.value.lower() in ("none", "null"):
            raise ValueError(f"it must be a value. Got {token.value!r}.")
        if Path in allowed | {each for kind in allowed for each in get_args(kind)}:
            _refuse_place(token.value)
    return convert(kind, tokens)


def _refuse_place(text: str) -> None:
    """A name that no file has, on any system that this runs on."""
    if not text.strip() or "\0" in text:
        raise ValueError(f"it must name a file or folder. Got {text!r}.")
    longest = max((len(os.fsencode(part)) for part in Path(text).parts), default=0)
    if longest > LONGEST_NAME or len(text) > LONGEST_PATH:
        raise ValueError(f"it must be shorter: a name has at most {LONGEST_NAME} letters. Got {len(text)}.")


app = App(
    name="aope",
    help="Confidence bounds on a policy's value from logged data, without the behavior policy, with certificates.",
    version=partial(version, "accountable-ope"),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    # A later option replaces an earlier one of the same name, so that a command can be repeated with a change at its end.
    default_parameter=Parameter(
        negative=(), allow_repeating=True, show_default=_shown_default, converter=_strictly, json_list=False, json_dict=False
    ),
)
for _name, (_module, _help) in COMMANDS.items():
    app.command(f"{__package__}.{_module}:{_name}", name=_name, help=_help)
app.register_install_completion_command(help="Install completion for your shell.")


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; a problem with the input or the output is one sentence on the error stream."""
    try:
        try:
            with typed(arguments):
                code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
        except (AopeError, CycloptsError) as error:
            _complain(_sentence(error))
            code = BAD_INPUT
        except MemoryError as error:
            _complain(f"There is not enough memory for this ({error}): ask for less.")
            code = BAD_INPUT
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        _discard_output()
        return NO_OUTPUT
    except OSError as error:
        _discard_output()
        what = "The output" if error.filename is None else error.filename
        _complain(f"{what} cannot be used: {error.strerror or error}.")
        return NO_OUTPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    return int(code)


def main() -> NoReturn:
    """Run the command line of this process."""
    if sys.stderr is None:  # closed by whoever started this; remarks must not end up among the results
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        _complain("The output is closed.")
        sys.exit(NO_OUTPUT)
    for stream in (sys.stdout, sys.stderr):  # a name in letters that the terminal does not have must not end a run
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(run(sys.argv[1:]))


def _complain(sentence: str) -> None:
    with suppress(OSError):
        print(f"Error: {sentence}", file=sys.stderr)


def _discard_output() -> None:
    """What is left of the output must not fail again at shutdown."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: Exception) -> str:
    """What is wrong, in one line."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"Unexpected argument {error.unused_tokens[0]!r}."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        count = error.argument.token_count()[0]
        if not error.argument.tokens and error.keyword is None:
            return f"{error.argument.name} is needed."
        return f"{error.keyword or error.argument.name} needs {'a value' if count == 1 else f'{count} values'}."
    return " ".join(str(error).split())
