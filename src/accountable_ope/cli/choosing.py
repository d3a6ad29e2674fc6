"""A class that nobody named: chosen on the earliest rows, or read back, and saved where that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..defaults.choosing import Stages, choose_recipe
from ..defaults.files import load_recipe, save_recipe
from ..defaults.recipe import Recipe
from ..problem.problem import Problem
from ..radii.registry import radius_rule
from .class_options import ClassOptions
from .options import Declarations, FirstAnswerOptions
from .output import note


def unnamed(choice: ClassOptions, declared: Declarations) -> bool:
    """Whether neither a class nor a norm, which would be one of a class, was named."""
    norms = (declared.norm_bound, declared.relative_norm, declared.misfit_norm)
    return not choice.given and all(each is None for each in norms)


def recipe_for(
    asked: Problem, first: FirstAnswerOptions, radii: Sequence[str], stages: Stages, number: int | None = None
) -> Recipe:
    """What the earliest rows choose, or what --choice holds; number: of the policy, where there are several."""
    for name in radii:
        radius_rule(name)  # refused before the work of choosing
    if first.choice is not None:
        return load_recipe(numbered(first.choice, number))
    facts = replace(asked.assumptions, norm_bound=None, misfit_norm=None)  # of the class that is chosen, which is not known yet
    recipe = choose_recipe(asked.assuming(facts), within=first.within, stages=stages)
    if first.save_choice is not None:
        place = numbered(first.save_choice, number)
        save_recipe(recipe, place)
        note(f"Choice: {place}")
    return recipe


def numbered(path: Path, number: int | None) -> Path:
    """choice.npz, or of several policies choice-1.npz, choice-2.npz."""
    return path if number is None else path.with_name(f"{path.stem}-{number}{path.suffix}")
