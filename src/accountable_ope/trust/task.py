"""A task of the table of trust: a way to draw logs, and target policies whose values are known. No class is known to hold Q."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec

from ..errors import InvalidInput
from ..laboratory.draws import Draw
from ..problem.assumptions import Assumptions
from ..problem.policy import Policy, SampledPolicy
from ..problem.problem import Problem
from ..problem.transitions import StartStates, Transitions

EXACT = "exact"
ERRORS = 3.0
"""Standard errors of a simulated value within which a miss is not counted."""


@dataclass(frozen=True)
class Truth:
    """A value, how sure it is, and how it was made.

    Attributes
    ----------
    value : float
    standard_error : float
        0 where the value is exact.
    made : str
        How.
    cut_off : float
        The most that cutting off simulated returns can have moved it.
    """

    value: float
    standard_error: float = 0.0
    made: str = EXACT
    cut_off: float = 0.0

    @property
    def margin(self) -> float:
        """How far the value may be from the truth: an interval is not called wrong for a miss that may be the simulation's."""
        return ERRORS * self.standard_error + self.cut_off


@dataclass(frozen=True, eq=False)
class Target:
    """A policy that is asked about, and the truth about it."""

    name: str
    policy: Policy
    truth: Truth


@dataclass(frozen=True, eq=False)
class Task:
    """What a stranger has: a log, start states, a policy, discount and range of rewards. Nothing else is declared.

    Attributes
    ----------
    name, description : str
    assumptions : Assumptions
    starts : StartStates
    targets : tuple of Target
    draw : Draw
        (generator, n) -> n transitions.
    hidden : bool
        Whether the states that are logged hide something that the next step depends on. Then a premise of every method is broken,
        whatever the class, and the task is not what the default is judged by.
    """

    name: str
    description: str
    assumptions: Assumptions
    starts: StartStates
    targets: tuple[Target, ...]
    draw: Draw
    hidden: bool = False

    def target(self, name: str) -> Target:
        return next(target for target in self.targets if target.name == name)

    def problem(self, target: str, data: Transitions, seed: int) -> Problem:
        """The question. A policy that can only be sampled gets draws of its own for every log."""
        policy = self.target(target).policy
        if isinstance(policy, SampledPolicy):
            policy = replace(policy, seed=seed + 1)  # not the stream that drew the data
        return Problem(data, self.starts, policy, self.assumptions)


@cache
def _stored() -> tuple[tuple[str, str, Truth], ...]:
    text = (files("accountable_ope") / "data" / "trust" / "truth.json").read_text(encoding="utf-8")
    document = json.loads(text)
    return tuple(
        (
            row["task"],
            row["policy"],
            Truth(row["value"], row["standard_error"], f"{row['episodes']} simulated episodes", row["cut_off"]),
        )
        for row in document["values"]
    )


def simulated(task: str, policy: str) -> Truth:
    """A value that examples/measure_trust.py measured."""
    for name, target, truth in _stored():
        if (name, target) == (task, policy):
            return truth
    raise InvalidInput(f"No value was measured for {policy} in {task}: run examples/measure_trust.py.")


def lacks(*modules: str) -> str | None:
    """Why a task that needs these modules cannot be run here; None where it can."""
    missing = [module for module in modules if find_spec(module) is None]
    return f"{' and '.join(missing)} not installed" if missing else None
