"""What is measured: the default without a knob, and what the same class gives where a norm bound is guessed.

- `default`: `bound_value(problem)`.
- `certified`, `azuma`: these radii with the class that the default chose, in units of values and without an estimate, and a norm
  bound that is a guess: the length of the range of values.
- `sandwich`: the asymptotic interval of that class, which needs no norm bound.

Where the default chose a table, there is no norm bound, and `certified` is the default.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from time import process_time
from typing import Protocol

from ..bounds.evaluation import Evaluation
from ..bounds.first_answer import recipe_evaluation
from ..bounds.sandwich import sandwich_of
from ..bounds.value import bound_value
from ..defaults.choosing import choose_recipe
from ..defaults.recipe import Ball, ClassKind, Recipe
from ..errors import InvalidInput
from ..kernels.products import TileOptions
from ..problem.problem import Problem
from ..problem.statements import Status

ONE_THREAD = TileOptions(threads=1)


class Method(Enum):
    """A way to an interval; the value is its name."""

    DEFAULT = "default"
    CERTIFIED = "certified"
    AZUMA = "azuma"
    SANDWICH = "sandwich"


METHOD_NAMES = tuple(method.value for method in Method)


def methods_named(names: Sequence[str] | None = None) -> tuple[Method, ...]:
    """The methods of these names, in their order; all by default."""
    wanted = METHOD_NAMES if names is None else names
    for name in wanted:
        if name not in METHOD_NAMES:
            raise InvalidInput(f"`method` must be one of {', '.join(METHOD_NAMES)}. Got {name!r}.")
    return tuple(method for method in Method if method.value in wanted)


class Ends(Protocol):
    """What any of the intervals has."""

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def status(self) -> Status: ...


@dataclass(frozen=True)
class Found:
    """What a method said. seconds: of processor time, all that the method alone would take; kind: of the class."""

    method: Method
    kind: str
    lower: float
    upper: float
    status: Status
    seconds: float


def ask(problem: Problem, methods: Sequence[Method], delta: float) -> Iterator[Found]:
    """Every method on one question; those with a class of their own share the recipe and the pass over the rows."""
    begin = process_time()
    if Method.DEFAULT in methods:
        interval = bound_value(problem, delta=delta, options=ONE_THREAD)
        recipe = interval.recipe
        assert recipe is not None
        yield _found(Method.DEFAULT, recipe, interval, begin)
        begin = process_time()
    else:
        recipe = choose_recipe(problem)
    if set(methods) <= {Method.DEFAULT}:
        return
    evaluation = recipe_evaluation(problem, guessed(recipe, problem), ONE_THREAD)
    shared = process_time() - begin
    for method in methods:
        if method is not Method.DEFAULT:
            begin = process_time() - shared
            yield _found(method, recipe, _explicit(evaluation, method, delta), begin)


def guessed(recipe: Recipe, problem: Problem) -> Recipe:
    """The same class without the estimate, in a ball whose radius is the length of the range of values."""
    if recipe.kind is ClassKind.TABLE:
        return recipe
    ball = Ball(within=1.0, span=problem.ranges.span, enlarged=1.0, overlap=math.nan, wider=1.0)
    kind = ClassKind.FOURIER if recipe.kind is ClassKind.NONE else recipe.kind  # whoever gives a class has said that Q is in it
    return replace(recipe, kind=kind, features=recipe.whitened or recipe.features, estimate=None, whitened=None, ball=ball)


def _explicit(evaluation: Evaluation, method: Method, delta: float) -> Ends:
    if method is Method.SANDWICH:
        return sandwich_of(evaluation, delta)
    return evaluation.bound(method.value, delta)


def _found(method: Method, recipe: Recipe, interval: Ends, begin: float) -> Found:
    status = interval.status  # with the tests behind a doubt, which are part of the answer and of its time
    return Found(method, recipe.kind.name, float(interval.lower), float(interval.upper), status, process_time() - begin)
