"""Off-policy evaluation that can be held to account: confidence bounds from logged transitions, with certificates."""

from __future__ import annotations

# what the analyst asserts
from .assumptions import Assumptions, RelativeNorm

# the steps of bound_value
from .bellman import BellmanSystem, bellman_residuals, bellman_system

# errors
from .errors import AopeError, InvalidFile, InvalidInput, MissingExtra

# the class of Q functions
from .features import FeatureMap, Precomputed, RandomFourier, TabularFeatures

# results
from .interval import bound_ladder, bound_value
from .io.parquet import load_starts, load_transitions, save_starts, save_transitions

# test kernels
from .kernels import Gaussian, Kernel, Laplace, Product, Tabular

# the target policy
from .policy import DeterministicPolicy, DiscretePolicy, Policy, SampledPolicy, TabulatedPolicy
from .programs.certificate import Certificate, SolveStatus
from .programs.ellipsoid_ball import decompose
from .programs.extreme import FeasibleSet, extreme_value, least_correction
from .quadratic import Quadratic
from .radius import Guarantee, Radius
from .reductions.numpy_tiles import TileOptions
from .result import ClassCertificates, Status, ValueInterval
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
    "DeterministicPolicy",
    "DiscretePolicy",
    "FeasibleSet",
    "FeatureMap",
    "Gaussian",
    "Guarantee",
    "InvalidFile",
    "InvalidInput",
    "Kernel",
    "KernelStatistic",
    "Laplace",
    "MissingExtra",
    "Policy",
    "Precomputed",
    "Product",
    "Quadratic",
    "Radius",
    "RandomFourier",
    "RelativeNorm",
    "SampledPolicy",
    "SolveStatus",
    "StartStates",
    "Status",
    "Tabular",
    "TabularFeatures",
    "TabulatedPolicy",
    "TileOptions",
    "Transitions",
    "ValueInterval",
    "bellman_residuals",
    "bellman_system",
    "bound_ladder",
    "bound_value",
    "decompose",
    "extreme_value",
    "kernel_statistic",
    "kernel_statistics",
    "least_correction",
    "load_starts",
    "load_transitions",
    "save_starts",
    "save_transitions",
    "u_statistic",
    "v_statistic",
]
