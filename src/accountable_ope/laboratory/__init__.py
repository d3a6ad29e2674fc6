"""The coverage laboratory: how often intervals hold the truth, on problems whose truth is known."""

from __future__ import annotations

from ..runner.run import trial_seed
from .draws import Draw
from .families import FAMILY_NAMES, families_named, family_named
from .family import DataKind, Family
from .finite import early_stopper, fair_coin
from .methods import IntervalFunction, IntervalMethod, known_methods, methods_named, outcomes
from .summary import Coverage, believable, clopper_pearson, refuted, summarize
from .trial import Trial
from .trials import read_trials, run_trials, stored_trials

__all__ = [
    "FAMILY_NAMES",
    "Coverage",
    "DataKind",
    "Draw",
    "Family",
    "IntervalFunction",
    "IntervalMethod",
    "Trial",
    "believable",
    "clopper_pearson",
    "early_stopper",
    "outcomes",
    "fair_coin",
    "families_named",
    "family_named",
    "known_methods",
    "methods_named",
    "read_trials",
    "refuted",
    "run_trials",
    "stored_trials",
    "summarize",
    "trial_seed",
]
