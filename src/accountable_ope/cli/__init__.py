"""The command line: `aope bound`, `diagnose`, `correct`, `sensitivity`, `simulate`, `experiment`, ... No mathematics.

Exit codes: 0 a result that says something; 2 bad input; 3 every interval is vacuous; 4 no class is consistent with the data.
"""

from __future__ import annotations

import sys

import typer

from ..errors import AopeError
from . import bounding, coverage, describing, estimates, experiments, monitoring, sensitivity, simulating
from .application import EXIT_BAD_INPUT, app

__all__ = [
    "app",
    "bounding",
    "coverage",
    "describing",
    "estimates",
    "experiments",
    "main",
    "monitoring",
    "sensitivity",
    "simulating",
]


def main() -> None:
    """Run the command line; a problem with the input is one sentence and exit code 2."""
    try:
        app()
    except AopeError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)
