"""The command line: `aope bound`, `diagnose`, `correct`, `sensitivity`, `simulate`, `experiment`, ... No mathematics.

Exit codes: 0 a result that says something; 2 bad input; 3 every interval is vacuous; 4 no class is consistent with the data; 5
the class is doubted. Where a decision is asked for: 0 supported; 3 refuted; 4 undecided; 5 doubted or inconsistent.
"""

from .application import app, main

__all__ = ["app", "main"]
