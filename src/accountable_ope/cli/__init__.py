"""The command line: `aope bound`, `diagnose`, `correct`, `sensitivity`, `simulate`, `experiment`, ... No mathematics.

Exit codes: 0 a result that says something; 2 bad input; 3 every interval is vacuous; 4 no class is consistent with the data.
"""

from .application import app, main

__all__ = ["app", "main"]
