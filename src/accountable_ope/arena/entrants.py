"""All who enter: ours, then the contestants of others."""

from __future__ import annotations

from collections.abc import Sequence

from ..baselines.contestant import Contestant, Entry
from ..baselines.registry import CONTESTANTS
from ..errors import InvalidInput
from ..problem.transitions import Transitions
from .challenge import Challenge, Told
from .own import OWN

ENTRANTS: tuple[Contestant, ...] = (*OWN, *CONTESTANTS)
"""Everybody, in the order in which they are shown."""

ENTRANT_NAMES = tuple(contestant.name for contestant in ENTRANTS)


def entrants_named(names: Sequence[str] | None = None) -> tuple[Contestant, ...]:
    """The contestants of these names, in their order; everybody by default."""
    wanted = ENTRANT_NAMES if names is None else names
    for name in wanted:
        if name not in ENTRANT_NAMES:
            raise InvalidInput(f"`contestant` must be one of {', '.join(ENTRANT_NAMES)}. Got {name!r}.")
    return tuple(contestant for contestant in ENTRANTS if contestant.name in wanted)


def entrant(name: str) -> Contestant:
    """The contestant of this name."""
    return entrants_named([name])[0]


def entry(challenge: Challenge, data: Transitions, seed: int) -> Entry:
    """What everybody is handed."""
    given = challenge.given
    return Entry(
        challenge.problem(data, seed),
        None if given is None else given.features,
        None if given is None else given.kernel,
        challenge.horizon,
        challenge.logger,
    )


def rests_on_a_wrong_class(contestant: Contestant, challenge: Challenge) -> bool:
    """Whether it uses the class that is told, and that class does not hold Q: then its claim has a false premise."""
    return contestant.needs.features and challenge.told is Told.WRONG
