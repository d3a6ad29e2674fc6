"""The families by name: what coverage is measured on.

Together they hold finite and continuous states, finite and continuous actions, random and deterministic rewards, episodes that
end, discounts from 0 to 1, rare events, symmetric residuals and others, and data that are independent, trajectories, adaptive, or
pooled from several behavior policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ..arguments import checked
from ..errors import InvalidInput
from .continuous import planted, regulator
from .family import Family
from .finite import (
    adaptive,
    chain_walk,
    early_stopper,
    fair_coin,
    fair_steps,
    first_states,
    greedy_bandit,
    jumps,
    patients,
    plain_bandit,
    pooled,
    random_mdp,
)

_MAKERS: tuple[tuple[str, Callable[[], Family]], ...] = (
    ("tabular-50", lambda: random_mdp(0.5)),
    ("tabular-90", lambda: random_mdp(0.9)),
    ("first-states", first_states),
    ("adaptive-50", lambda: adaptive(0.5)),
    ("adaptive-90", lambda: adaptive(0.9)),
    ("mixture-50", lambda: pooled(0.5)),
    ("chain", chain_walk),
    ("fair-steps", fair_steps),
    ("rare-jump-50", lambda: jumps(0.5)),
    ("rare-jump-90", lambda: jumps(0.9)),
    ("clinic-50", lambda: patients(0.5)),
    ("clinic", lambda: patients(1.0)),
    ("bandit", plain_bandit),
    ("greedy-bandit", greedy_bandit),
    ("fair-coin", fair_coin),
    ("early-stopper", early_stopper),
    ("planted-60", lambda: planted("planted-60", 5, 0.6)),
    ("planted-5", lambda: planted("planted-5", 5, 0.95)),
    ("planted-10", lambda: planted("planted-10", 10, 0.95)),
    ("planted-30", lambda: planted("planted-30", 30, 0.95)),
    ("planted-bernoulli", lambda: planted("planted-bernoulli", 10, 0.95, bernoulli=True)),
    ("regulator", lambda: regulator("regulator", 0.0, 0.9)),
    ("regulator-sampled", lambda: regulator("regulator-sampled", 0.3, 0.5)),
)

FAMILY_NAMES: tuple[str, ...] = tuple(name for name, _ in _MAKERS)
"""Every family, in the order in which they are shown."""


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
    makers = dict(_MAKERS)
    if name in makers:
        return makers[name]()
    raise InvalidInput(f"`family` must be one of {', '.join(FAMILY_NAMES)}. Got {name!r}.")


@checked
def families_named(names: Sequence[str] | None = None) -> tuple[Family, ...]:
    """The families of these names, each once; all of them by default.

    Parameters
    ----------
    names : sequence of str, optional

    Returns
    -------
    tuple of Family

    Examples
    --------
    >>> from accountable_ope.laboratory import families_named
    >>> [family.name for family in families_named(["chain", "fair-coin", "chain"])]
    ['chain', 'fair-coin']
    """
    return tuple(family_named(name) for name in dict.fromkeys(FAMILY_NAMES if names is None else names))
