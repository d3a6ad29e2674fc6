"""Intervals of others, to compare with: importance sampling of whole episodes, and the contestants that measure ours."""

from ..problem.propensities import taken_probabilities
from .bounds import (
    betting_interval,
    betting_lower,
    choose_threshold,
    corrected_interval,
    hcope_interval,
    hcope_lower,
    split_hcope_lower,
)
from .contestant import Contestant, Entry, Needs
from .doubly_robust import BoundedSamples, CorrectedReturns, DoublyRobust, corrected_returns
from .episodes import return_range, truncation_gap
from .fitted_returns import FittedReturns, fit_returns
from .importance_sampling import EpisodeReturns, Samples, episode_returns
from .interval import ESTIMATORS, METHODS, BaselineInterval, importance_sampling_interval
from .registry import CONTESTANTS, contestant_named

__all__ = [
    "CONTESTANTS",
    "ESTIMATORS",
    "METHODS",
    "BaselineInterval",
    "BoundedSamples",
    "Contestant",
    "CorrectedReturns",
    "DoublyRobust",
    "Entry",
    "EpisodeReturns",
    "FittedReturns",
    "Needs",
    "Samples",
    "betting_interval",
    "betting_lower",
    "choose_threshold",
    "contestant_named",
    "corrected_interval",
    "corrected_returns",
    "episode_returns",
    "fit_returns",
    "hcope_interval",
    "hcope_lower",
    "importance_sampling_interval",
    "return_range",
    "split_hcope_lower",
    "taken_probabilities",
    "truncation_gap",
]
