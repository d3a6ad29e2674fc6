"""MDPs with exact answers, for tests, examples and the coverage laboratory; control tasks that are known by simulation."""

from __future__ import annotations

from .control_task import ControlTask, MonteCarlo, monte_carlo_value, roll_out
from .inverted_pendulum import InvertedPendulum
from .linear_quadratic import LinearQuadratic, QuadraticFeatures, planar_regulator, scalar_regulator
from .planted import PlantedFeatures, PlantedMDP
from .puck_mountain import PuckMountain

# The function hides the module of the same name as an attribute of this package; imports from that module work as ever.
from .softmax import control_task, measured_value, softmax_policy
from .tabular import bandit, chain, clinic, mixture, random_tabular, rare_jump, softmax_table
from .tabular_mdp import TabularMDP

__all__ = [
    "ControlTask",
    "InvertedPendulum",
    "LinearQuadratic",
    "MonteCarlo",
    "PlantedFeatures",
    "PlantedMDP",
    "PuckMountain",
    "QuadraticFeatures",
    "TabularMDP",
    "bandit",
    "chain",
    "clinic",
    "control_task",
    "measured_value",
    "mixture",
    "monte_carlo_value",
    "planar_regulator",
    "random_tabular",
    "rare_jump",
    "roll_out",
    "scalar_regulator",
    "softmax_policy",
    "softmax_table",
]
