"""Off-policy evaluation that can be held to account: confidence bounds from logged transitions, with certificates."""

from __future__ import annotations

# what the analyst asserts
from .assumptions import Assumptions, RelativeNorm
from .average_reward import bound_average_reward

# the steps of bound_value
from .bellman import BellmanSystem, bellman_residuals, bellman_system

# results
from .diagnosis import CorrectedQ, Correction, CorrectionStatus, Diagnosis, QColumns, Verdict, correct, diagnose

# errors
from .errors import AopeError, InvalidFile, InvalidInput, MissingExtra

# the class of Q functions
from .features import FeatureMap, KernelSections, Precomputed, RandomFourier, TabularFeatures
from .finite_features import bound_by_finite_features
from .fitting import fit_q
from .interval import bound_ladder, bound_value
from .io.parquet import load_starts, load_transitions, save_starts, save_transitions

# test kernels
from .kernels import Gaussian, Kernel, Laplace, Product, Tabular
from .linear_q import LinearQ, load_linear_q, save_linear_q

# the target policy
from .neural import (
    NeuralCandidate,
    NeuralSelection,
    NeuralTraining,
    select_neural_features,
    train_neural_features,
)
from .neural_features import NeuralFeatures
from .policy import DeterministicPolicy, DiscretePolicy, Policy, SampledPolicy, TabulatedPolicy
from .programs.certificate import Certificate, SolveStatus
from .programs.ellipsoid_ball import decompose
from .programs.extreme import FeasibleSet, extreme_value, least_correction
from .quadratic import Quadratic
from .radius import Guarantee, Radius
from .reductions.numpy_tiles import TileOptions
from .result import ClassCertificates, Status, ValueInterval

# choices made on earlier episodes
from .selection import (
    PAPER_BANDWIDTHS,
    Selection,
    bound_rkhs,
    bound_selected,
    median_bandwidth,
    pessimistic_union,
    select,
    state_choice,
)
from .statistic import KernelStatistic, kernel_statistic, kernel_statistics, u_statistic, v_statistic

# data
from .transitions import StartStates, Transitions

__version__ = "0.1.0"

__all__ = [
    "AopeError",
    "Assumptions",
    "BellmanSystem",
    "Certificate",
    "ClassCertificates",
    "CorrectedQ",
    "Correction",
    "CorrectionStatus",
    "DeterministicPolicy",
    "Diagnosis",
    "DiscretePolicy",
    "FeasibleSet",
    "FeatureMap",
    "Gaussian",
    "Guarantee",
    "InvalidFile",
    "InvalidInput",
    "Kernel",
    "KernelSections",
    "KernelStatistic",
    "Laplace",
    "LinearQ",
    "MissingExtra",
    "NeuralCandidate",
    "NeuralFeatures",
    "NeuralSelection",
    "NeuralTraining",
    "PAPER_BANDWIDTHS",
    "Policy",
    "Precomputed",
    "Product",
    "QColumns",
    "Quadratic",
    "Radius",
    "RandomFourier",
    "RelativeNorm",
    "SampledPolicy",
    "Selection",
    "SolveStatus",
    "StartStates",
    "Status",
    "Tabular",
    "TabularFeatures",
    "TabulatedPolicy",
    "TileOptions",
    "Transitions",
    "ValueInterval",
    "Verdict",
    "bellman_residuals",
    "bellman_system",
    "bound_average_reward",
    "bound_by_finite_features",
    "bound_ladder",
    "bound_rkhs",
    "bound_selected",
    "bound_value",
    "correct",
    "decompose",
    "diagnose",
    "extreme_value",
    "fit_q",
    "kernel_statistic",
    "kernel_statistics",
    "least_correction",
    "load_linear_q",
    "load_starts",
    "load_transitions",
    "median_bandwidth",
    "pessimistic_union",
    "save_linear_q",
    "save_starts",
    "save_transitions",
    "select",
    "select_neural_features",
    "state_choice",
    "train_neural_features",
    "u_statistic",
    "v_statistic",
]
