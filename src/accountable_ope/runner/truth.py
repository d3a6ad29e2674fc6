"""Whether a stored row was made for the problem of that name as it is now."""

from __future__ import annotations

import math


def same_truth(stored: float, here: float) -> bool:
    """Up to the last digits of exact values, which are linear solves and depend on the machine."""
    return math.isclose(stored, here, rel_tol=1e-9, abs_tol=1e-12)
