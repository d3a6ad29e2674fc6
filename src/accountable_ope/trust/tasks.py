"""The tasks by name, and why one cannot be run here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from ..errors import InvalidInput
from .control import (
    acrobot,
    cartpole,
    cartpole_random,
    inverted_pendulum,
    mountaincar,
    mountaincar_valley,
    pendulum,
    puck,
    puck_random,
)
from .exact import coarse, planted, regulator, rough, sine_bandit, tabular
from .task import Task, lacks


@dataclass(frozen=True)
class Entry:
    """How a task is made, and which modules it needs."""

    name: str
    make: Callable[[], Task]
    needs: tuple[str, ...] = ()


ENTRIES = (
    Entry("cartpole", cartpole),
    Entry("cartpole-random", cartpole_random),
    Entry("mountaincar", mountaincar),
    Entry("mountaincar-valley", mountaincar_valley),
    Entry("acrobot", acrobot),
    Entry("pendulum", pendulum),
    Entry("puck", puck),
    Entry("puck-random", puck_random),
    Entry("inverted-pendulum", inverted_pendulum, ("mujoco", "gymnasium")),
    Entry("planted", planted),
    Entry("regulator", regulator),
    Entry("sine-bandit", sine_bandit),
    Entry("rough", rough),
    Entry("coarse", coarse),
    Entry("tabular", tabular),
)
"""Every task, in the order in which they are shown."""

TASK_NAMES = tuple(entry.name for entry in ENTRIES)


@dataclass(frozen=True)
class Skipped:
    """A task that cannot be run here, and why."""

    name: str
    reason: str


def _entry(name: str) -> Entry:
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise InvalidInput(f"`task` must be one of {', '.join(TASK_NAMES)}. Got {name!r}.")


@cache
def task_named(name: str) -> Task:
    """The task of this name; InvalidInput where there is none."""
    return _entry(name).make()


def tasks_named(names: Sequence[str] | None = None) -> tuple[tuple[Task, ...], tuple[Skipped, ...]]:
    """The tasks of these names, each once, all by default; and those of them that cannot be run here."""
    entries = [_entry(name) for name in dict.fromkeys(TASK_NAMES if names is None else names)]
    reasons = [(entry, lacks(*entry.needs)) for entry in entries]
    return (
        tuple(task_named(entry.name) for entry, reason in reasons if reason is None),
        tuple(Skipped(entry.name, reason) for entry, reason in reasons if reason is not None),
    )
