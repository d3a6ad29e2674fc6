"""The families by name: what coverage is measured on.

Together they hold finite and continuous states, finite and continuous actions, random and deterministic rewards, episodes that
end, discounts from 0 to 1, rare events, symmetric residuals and others, and data that are independent, trajectories, adaptive, or
pooled from several behavior policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from ..arguments import checked
from ..errors import InvalidInput
from .continuous import planted, regulator
from .family import Family
from .finite import (
    adaptive,
    adversary,
    chain_walk,
    early_stopper,
    fair_coin,
    fair_steps,
    first_states,
    greedy_bandit,
    jumps,
    known_steps,
    logged_bandit,
    patients,
    plain_bandit,
    pooled,
    random_mdp,
)


@dataclass(frozen=True)
class Group:
    """Families that are shown together.

    Attributes
    ----------
    name : str
        Where one may name a family, it names all of them.
    title : str
    makers : tuple
        (name, function without arguments) of every family.
    """

    name: str
    title: str
    makers: tuple[tuple[str, Callable[[], Family]], ...]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.makers)


GROUPS: tuple[Group, ...] = (
    Group(
        "finite",
        "finite states",
        (
            ("tabular-50", lambda: random_mdp(0.5)),
            ("tabular-90", lambda: random_mdp(0.9)),
            ("first-states", first_states),
            ("mixture-50", lambda: pooled(0.5)),
            ("chain", chain_walk),
            ("fair-steps", fair_steps),
        ),
    ),
    Group(
        "adaptive",
        "adaptive logging",
        (
            ("adaptive-50", lambda: adaptive(0.5)),
            ("adaptive-90", lambda: adaptive(0.9)),
            ("greedy-bandit", greedy_bandit),
            ("early-stopper", early_stopper),
            ("adversary", adversary),
        ),
    ),
    Group(
        "endings",
        "rare events, endings",
        (
            ("rare-jump-50", lambda: jumps(0.5)),
            ("rare-jump-90", lambda: jumps(0.9)),
            ("clinic-50", lambda: patients(0.5)),
            ("clinic", lambda: patients(1.0)),
            ("clinic-known", known_steps),
        ),
    ),
    Group(
        "bandits",
        "bandits, coins",
        (
            ("bandit", plain_bandit),
            ("bandit-logged", logged_bandit),
            ("fair-coin", fair_coin),
        ),
    ),
    Group(
        "continuous",
        "continuous states",
        (
            ("planted-60", lambda: planted("planted-60", 5, 0.6)),
            ("planted-5", lambda: planted("planted-5", 5, 0.95)),
            ("planted-10", lambda: planted("planted-10", 10, 0.95)),
            ("planted-30", lambda: planted("planted-30", 30, 0.95)),
            ("planted-bernoulli", lambda: planted("planted-bernoulli", 10, 0.95, bernoulli=True)),
            ("regulator", lambda: regulator("regulator", 0.0, 0.9)),
            ("regulator-sampled", lambda: regulator("regulator-sampled", 0.3, 0.5)),
        ),
    ),
)
"""Every family, in the order in which they are shown."""

_MAKERS = {name: make for group in GROUPS for name, make in group.makers}

FAMILY_NAMES: tuple[str, ...] = tuple(_MAKERS)
"""Every family, in the order in which they are shown."""

OTHERS = "others"
"""The title of families that are not the laboratory's own."""


def group_title(family: str) -> str:
    """The title of the group of a family, by its name."""
    return next((group.title for group in GROUPS if family in group.families), OTHERS)


@checked
@cache
def family_named(name: str) -> Family:
    """The family of this name.

    Parameters
    ----------
    name : str
        One of `FAMILY_NAMES`.

    Returns
    -------
    Family

    Raises
    ------
    InvalidInput
        Where there is none; names those that there are.

    Examples
    --------
    >>> from accountable_ope.laboratory import family_named
    >>> family_named("fair-coin").truth
    0.5
    """
    if name in _MAKERS:
        return _MAKERS[name]()
    raise InvalidInput(f"`family` must be one of {', '.join(FAMILY_NAMES)}. Got {name!r}.")


@checked
def families_named(names: Sequence[str] | None = None) -> tuple[Family, ...]:
    """The families of these names, each once; all of them by default.

    Parameters
    ----------
    names : sequence of str, optional
        Of families, or of groups of them: "finite", "adaptive", "endings", "bandits", "continuous".

    Returns
    -------
    tuple of Family

    Examples
    --------
    >>> from accountable_ope.laboratory import families_named
    >>> [family.name for family in families_named(["chain", "fair-coin", "chain"])]
    ['chain', 'fair-coin']
    >>> [family.name for family in families_named(["bandits"])]
    ['bandit', 'bandit-logged', 'fair-coin']
    """
    groups = {group.name: group.families for group in GROUPS}
    wanted = FAMILY_NAMES if names is None else [each for name in names for each in groups.get(name, (name,))]
    return tuple(family_named(name) for name in dict.fromkeys(wanted))
