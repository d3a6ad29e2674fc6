"""All contestants, by name."""

from __future__ import annotations

from ..arguments import checked
from ..errors import InvalidInput
from .coin_dice import COIN_DICE
from .contestant import Contestant
from .double_reinforcement import DOUBLE_REINFORCEMENT
from .fitted_q import LINEAR_FQE
from .importance_contestants import IMPORTANCE
from .lstdq import LSTDQ
from .model_bootstrap import MODEL_BOOTSTRAP
from .neural_fitted_q import NEURAL_FQE
from .primal_dual import PRIMAL_DUAL
from .robust_table import ROBUST_TABLE

CONTESTANTS: tuple[Contestant, ...] = (
    *IMPORTANCE,
    LINEAR_FQE,
    NEURAL_FQE,
    LSTDQ,
    DOUBLE_REINFORCEMENT,
    COIN_DICE,
    MODEL_BOOTSTRAP,
    PRIMAL_DUAL,
    ROBUST_TABLE,
)
"""Every interval estimator of others, in the order in which they are shown."""


@checked
def contestant_named(name: str) -> Contestant:
    """The contestant of this name.

    Parameters
    ----------
    name : str
        One of those of `CONTESTANTS`.

    Returns
    -------
    Contestant

    Raises
    ------
    InvalidInput
        Where there is none; names those that there are.

    Examples
    --------
    >>> from accountable_ope.baselines import contestant_named
    >>> contestant_named("per-decision betting").guarantee.value
    'finite-sample'
    """
    found = next((contestant for contestant in CONTESTANTS if contestant.name == name), None)
    if found is None:
        known = ", ".join(contestant.name for contestant in CONTESTANTS)
        raise InvalidInput(f"`name` must be one of {known}. Got {name!r}.")
    return found
