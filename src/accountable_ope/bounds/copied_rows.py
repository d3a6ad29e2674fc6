"""What looks for copies while a log is read in parts."""

from __future__ import annotations

from ..io.scanning import TransitionScan
from ..problem.copies import CopyFinder


def copy_finder(scan: TransitionScan) -> CopyFinder:
    """One that knows the rows that are left out at the beginning, since those that chose a class must not come again."""
    found = CopyFinder(since=scan.skipped)
    for batch in scan.before():
        found.take(batch)
    return found
