"""Off-policy evaluation that can be held to account: confidence bounds from logged transitions, with certificates."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .bounds.interval import ClassCertificates, Status, ValueInterval

# bounds, and files
from .bounds.value import Prepared, bound_ladder, bound_prepared, bound_value, prepare

# the class of Q functions
from .classes.features import FeatureMap, KernelSections, Precomputed, RandomFourier, TabularFeatures

# errors
from .errors import AopeError, InvalidFile, InvalidInput, MissingExtra
from .io.parquet import load_starts, load_transitions, save_starts, save_transitions

# test kernels
from .kernels.kernel import Gaussian, Kernel, Laplace, Product, Tabular

# what the analyst asserts
from .problem.assumptions import Assumptions, RelativeNorm

# the target policy
from .problem.policy import DeterministicPolicy, DiscretePolicy, Policy, SampledPolicy, TabulatedPolicy

# data
from .problem.transitions import StartStates, Transitions

# the small program, and results
from .programs.certificate import Certificate, SolveStatus
from .programs.ellipsoid_ball import decompose
from .programs.extreme import FeasibleSet, extreme_value, least_correction
from .programs.quadratic import Quadratic
from .radii.registry import Guarantee, Radius

# the steps of bound_value
from .statistics.bellman import BellmanSystem, bellman_residuals, bellman_system
from .statistics.engines.tiles import TileOptions
from .statistics.statistic import KernelStatistic, kernel_statistic, kernel_statistics, u_statistic, v_statistic

if TYPE_CHECKING:
    # intervals of others, to compare with
    from .baselines import BaselineInterval, importance_sampling_interval
    from .bounds.asymptotic import AndersonRubinInterval, SandwichInterval, anderson_rubin_interval, sandwich_interval
    from .bounds.average_reward import bound_average_reward
    from .bounds.diagnosis import CorrectedQ, Correction, CorrectionStatus, Diagnosis, QColumns, Verdict, correct, diagnose
    from .bounds.findings import Curve, Flip, FlipOutcome, LeastNorm, RowsNeeded, RowsOutcome
    from .bounds.finite_features import bound_by_finite_features
    from .bounds.monitor import Decision, Look, Monitor, MonitorReport
    from .bounds.selection import (
        PAPER_BANDWIDTHS,
        Selection,
        bound_rkhs,
        bound_selected,
        median_bandwidth,
        pessimistic_union,
        select,
        state_choice,
    )
    from .bounds.sensitivity import Study, study
    from .classes.linear_q import LinearQ, load_linear_q, save_linear_q
    from .classes.neural import NeuralFeatures
    from .fitting.least_loss import fit_q
    from .fitting.neural import (
        NeuralCandidate,
        NeuralSelection,
        NeuralTraining,
        select_neural_features,
        train_neural_features,
    )
    from .io.minari import load_minari, save_minari
    from .kernels.random_features import RandomFeatureKernel
    from .radii.wild import wild_radius

__version__ = "0.1.0"

__all__ = [
    "AndersonRubinInterval",
    "AopeError",
    "Assumptions",
    "BaselineInterval",
    "BellmanSystem",
    "Certificate",
    "ClassCertificates",
    "CorrectedQ",
    "Correction",
    "CorrectionStatus",
    "Curve",
    "Decision",
    "DeterministicPolicy",
    "Diagnosis",
    "DiscretePolicy",
    "FeasibleSet",
    "FeatureMap",
    "Flip",
    "FlipOutcome",
    "Gaussian",
    "Guarantee",
    "InvalidFile",
    "InvalidInput",
    "Kernel",
    "KernelSections",
    "KernelStatistic",
    "Laplace",
    "LeastNorm",
    "LinearQ",
    "Look",
    "MissingExtra",
    "Monitor",
    "MonitorReport",
    "NeuralCandidate",
    "NeuralFeatures",
    "NeuralSelection",
    "NeuralTraining",
    "PAPER_BANDWIDTHS",
    "Policy",
    "Precomputed",
    "Prepared",
    "Product",
    "QColumns",
    "Quadratic",
    "Radius",
    "RandomFeatureKernel",
    "RandomFourier",
    "RelativeNorm",
    "RowsNeeded",
    "RowsOutcome",
    "SampledPolicy",
    "SandwichInterval",
    "Selection",
    "SolveStatus",
    "StartStates",
    "Status",
    "Study",
    "Tabular",
    "TabularFeatures",
    "TabulatedPolicy",
    "TileOptions",
    "Transitions",
    "ValueInterval",
    "Verdict",
    "anderson_rubin_interval",
    "bellman_residuals",
    "bellman_system",
    "bound_average_reward",
    "bound_by_finite_features",
    "bound_ladder",
    "bound_prepared",
    "bound_rkhs",
    "bound_selected",
    "bound_value",
    "correct",
    "decompose",
    "diagnose",
    "extreme_value",
    "fit_q",
    "importance_sampling_interval",
    "kernel_statistic",
    "kernel_statistics",
    "least_correction",
    "load_linear_q",
    "load_minari",
    "load_starts",
    "load_transitions",
    "median_bandwidth",
    "pessimistic_union",
    "prepare",
    "sandwich_interval",
    "save_linear_q",
    "save_minari",
    "save_starts",
    "save_transitions",
    "select",
    "select_neural_features",
    "state_choice",
    "study",
    "train_neural_features",
    "u_statistic",
    "v_statistic",
    "wild_radius",
]

# What not every program needs is imported when it is first asked for: it would add a third to the time of the import.
_LATER = (
    (
        "bounds.asymptotic",
        (
            "AndersonRubinInterval",
            "SandwichInterval",
            "anderson_rubin_interval",
            "sandwich_interval",
        ),
    ),
    ("bounds.average_reward", ("bound_average_reward",)),
    ("baselines", ("BaselineInterval", "importance_sampling_interval")),
    (
        "bounds.diagnosis",
        (
            "CorrectedQ",
            "Correction",
            "CorrectionStatus",
            "Diagnosis",
            "QColumns",
            "Verdict",
            "correct",
            "diagnose",
        ),
    ),
    ("kernels.random_features", ("RandomFeatureKernel",)),
    ("bounds.finite_features", ("bound_by_finite_features",)),
    ("fitting.least_loss", ("fit_q",)),
    ("io.minari", ("load_minari", "save_minari")),
    (
        "classes.linear_q",
        (
            "LinearQ",
            "load_linear_q",
            "save_linear_q",
        ),
    ),
    ("bounds.monitor", ("Decision", "Look", "Monitor", "MonitorReport")),
    (
        "fitting.neural",
        (
            "NeuralCandidate",
            "NeuralSelection",
            "NeuralTraining",
            "select_neural_features",
            "train_neural_features",
        ),
    ),
    ("classes.neural", ("NeuralFeatures",)),
    (
        "bounds.selection",
        (
            "PAPER_BANDWIDTHS",
            "Selection",
            "bound_rkhs",
            "bound_selected",
            "median_bandwidth",
            "pessimistic_union",
            "select",
            "state_choice",
        ),
    ),
    ("bounds.findings", ("Curve", "Flip", "FlipOutcome", "LeastNorm", "RowsNeeded", "RowsOutcome")),
    ("bounds.sensitivity", ("Study", "study")),
    ("radii.wild", ("wild_radius",)),
)


def __getattr__(name: str) -> Any:
    """Import a module of `_LATER`, or the module that holds the name."""
    for module, names in _LATER:
        if name == module:
            return import_module(f".{module}", __name__)
        if name in names:
            value = getattr(import_module(f".{module}", __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
