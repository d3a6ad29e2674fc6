"""Intervals of others, to compare with: importance sampling of whole episodes, with the behavior policy known."""

from .bounds import betting_interval, betting_lower, choose_threshold, hcope_interval, hcope_lower, split_hcope_lower
from .importance_sampling import EpisodeReturns, Samples, episode_returns, return_range, taken_probabilities, truncation_gap
from .interval import ESTIMATORS, METHODS, BaselineInterval, importance_sampling_interval

__all__ = [
    "ESTIMATORS",
    "METHODS",
    "BaselineInterval",
    "EpisodeReturns",
    "Samples",
    "betting_interval",
    "betting_lower",
    "choose_threshold",
    "episode_returns",
    "hcope_interval",
    "hcope_lower",
    "importance_sampling_interval",
    "return_range",
    "split_hcope_lower",
    "taken_probabilities",
    "truncation_gap",
]
