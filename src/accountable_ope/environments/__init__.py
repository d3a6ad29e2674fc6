"""MDPs with exact answers, for tests, examples and the coverage laboratory."""

from __future__ import annotations

from .linear_quadratic import LinearQuadratic, QuadraticFeatures, planar_regulator, scalar_regulator
from .planted import PlantedFeatures, PlantedMDP
from .tabular import TabularMDP, bandit, chain, clinic, mixture, random_tabular, rare_jump, softmax_table

__all__ = [
    "LinearQuadratic",
    "PlantedFeatures",
    "PlantedMDP",
    "QuadraticFeatures",
    "TabularMDP",
    "bandit",
    "chain",
    "clinic",
    "mixture",
    "planar_regulator",
    "random_tabular",
    "rare_jump",
    "scalar_regulator",
    "softmax_table",
]
