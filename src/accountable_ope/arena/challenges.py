"""The challenges by name, in groups, and why one cannot be met here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ..classes.features import RandomFourier
from ..environments.planted import PlantedMDP
from ..errors import InvalidInput
from ..kernels.kernel import Gaussian
from ..laboratory.continuous import planted, regulator
from ..laboratory.draws import Episodes, Greedy, Recorded
from ..laboratory.family import DataKind, Family
from ..laboratory.finite import (
    adaptive,
    chain_walk,
    greedy_bandit,
    jumps,
    logged_bandit,
    patients,
    plain_bandit,
    pooled,
    random_mdp,
)
from ..problem.policy import DiscretePolicy
from ..trust.control import Rollouts, cartpole, inverted_pendulum, puck
from ..trust.exact import planted as planted_task
from ..trust.exact import sine_bandit, tabular
from ..trust.task import Task, Truth, lacks
from ..trust.tasks import Skipped
from .challenge import Challenge, GivenClass
from .logs import GreedyRecorded, RowsAsEpisodes, ThroughMinari, WholeEpisodes

SHORT = 10
"""Steps of a short episode."""

GRID = 4e-4
"""How far the mean over the grid of start contexts of the sine bandit may be from that over the interval."""


def _of_family(family: Family, name: str | None = None, description: str | None = None) -> Challenge:
    """A family of the laboratory: its class is told, and is right."""
    assert family.starts is not None
    length: int | None = getattr(family.draw, "length", None)
    return Challenge(
        name=name or family.name,
        description=description or family.description,
        data_kind=family.data_kind,
        truth=Truth(family.truth),
        starts=family.starts,
        policy=family.policy,
        assumptions=family.assumptions,
        draw=family.draw if length is None else WholeEpisodes(family.draw, length),
        horizon=length,
        given=GivenClass(family.features, family.kernel, right=True),
    )


def _recorded_family(family: Family, name: str, description: str, length: int | None = None) -> Challenge:
    """The same with the probabilities of a behavior table; length: of episodes, where they are to be shorter."""
    draw = family.draw
    assert isinstance(draw, Episodes)
    if length is not None:
        draw = replace(draw, length=length)
    logger = draw.mdp.policy(draw.behavior)
    plain = _of_family(replace(family, draw=draw), name, description)
    return _recorded(plain, logger)


def _of_task(task: Task, target: str, name: str, description: str, horizon: int | None, kind: DataKind) -> Challenge:
    """A task of the table of trust with one of its policies: nobody is told a class."""
    asked = task.target(target)
    draw = task.draw if horizon is None else WholeEpisodes(task.draw, horizon)
    return Challenge(name, description, kind, asked.truth, task.starts, asked.policy, task.assumptions, draw, horizon)


def _rolled_out(task: Task, target: str, name: str, description: str) -> Challenge:
    draw = task.draw
    assert isinstance(draw, Rollouts)
    return _of_task(task, target, name, description, draw.task.horizon, DataKind.TRAJECTORIES)


def _recorded(challenge: Challenge, logger: DiscretePolicy) -> Challenge:
    return replace(challenge, draw=Recorded(challenge.draw, logger), logger=logger, recorded=True)


def _bandit(challenge: Challenge) -> Challenge:
    """Every row is an episode of one step."""
    return replace(challenge, draw=RowsAsEpisodes(challenge.draw), horizon=1)


def _tabular_logged() -> Challenge:
    text = "Random MDP, 3 states, 2 actions, discount 0.9; episodes of 50 steps with their probabilities."
    return _recorded_family(random_mdp(0.9), "tabular-90-logged", text)


def _chain_logged() -> Challenge:
    text = "Three states in a row, discount 0.5; short episodes of 10 steps with their probabilities."
    return _recorded_family(chain_walk(), "chain-logged", text, SHORT)


def _ten_states() -> Challenge:
    text = "Random MDP, ten states, two actions, discount 0.9; nobody says that a table holds Q."
    return _of_task(tabular(), "first", "tabular-untold", text, 50, DataKind.TRAJECTORIES)


def _clinic_logged() -> Challenge:
    return _recorded_family(patients(1.0), "clinic-logged", "clinic, undiscounted, with the probabilities of its actions.")


def _bandit_logged() -> Challenge:
    family = logged_bandit()
    draw = family.draw
    assert isinstance(draw, Recorded)
    return _bandit(replace(_of_family(family), logger=draw.behavior, recorded=True))


def _greedy_logged() -> Challenge:
    family = greedy_bandit()
    assert isinstance(family.draw, Greedy)
    text = "The bandit, logged by a learner that explores in one of ten rows, with the probabilities of its actions."
    return _bandit(replace(_of_family(family, "greedy-bandit-logged", text), draw=GreedyRecorded(family.draw), recorded=True))


def _sine_logged() -> Challenge:
    text = "Contexts on a line, two arms pulled at random, probabilities recorded; mean rewards 0.5 + 0.4 sin(25 x + 2 arm)."
    logger = DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    found = _of_task(sine_bandit(), "best", "sine-bandit-logged", text, None, DataKind.IID)
    return _bandit(_recorded(replace(found, truth=replace(found.truth, cut_off=GRID)), logger))


def _wrong_planted() -> Challenge:
    """Q in ten cosines, told are ten others."""
    right = _of_family(planted("planted-10", 10, 0.95), "planted-wrong", "Planted Q of ten cosines; told are ten others.")
    return replace(right, given=GivenClass(PlantedMDP(seed=2, features=10, discount=0.95).features(), Gaussian(1.0), right=False))


def _planted_untold() -> Challenge:
    text = "Planted Q of ten cosines that nobody is told, discount 0.9."
    return _of_task(planted_task(), "planted", "planted-untold", text, 50, DataKind.TRAJECTORIES)


def _cartpole() -> Challenge:
    return _rolled_out(cartpole(), "leaning", "cartpole", "CartPole, logged by a policy that is right half of the time.")


def _cartpole_logged() -> Challenge:
    task = cartpole()
    assert isinstance(task.draw, Rollouts)
    text = "CartPole, with the probabilities of its actions."
    return _recorded(_rolled_out(task, "leaning", "cartpole-logged", text), task.draw.logger)


def _puck_wrong() -> Challenge:
    """The class of the demonstration, which does not hold Q."""
    found = _rolled_out(puck(), "softmax-0.1", "puck-wrong", "Puck-Mountain; told are sixteen cosines that do not hold Q.")
    features = RandomFourier(16, bandwidth=1.0, seed=31)
    given = GivenClass(features, Gaussian(0.5), right=False)
    return replace(found, given=given, assumptions=replace(found.assumptions, norm_bound=160.0))


def _inverted_pendulum() -> Challenge:
    text = "MuJoCo's Inverted-Pendulum with noise, logged by a policy that is softer than the target."
    return _rolled_out(inverted_pendulum(), "softmax-0.1", "inverted-pendulum", text)


def _minari() -> Challenge:
    task = puck()
    assert isinstance(task.draw, Rollouts)
    text = "Puck-Mountain, recorded on the spot as a Minari dataset with probabilities and read back."
    found = _recorded(_rolled_out(task, "softmax-0.3", "minari-puck", text), task.draw.logger)
    return replace(found, draw=ThroughMinari(found.draw))


@dataclass(frozen=True)
class Making:
    """How a challenge is made, and which modules it needs."""

    name: str
    make: Callable[[], Challenge]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Challenges that share a table."""

    name: str
    title: str
    makings: tuple[Making, ...]

    @property
    def challenges(self) -> tuple[str, ...]:
        return tuple(making.name for making in self.makings)


GROUPS = (
    Group(
        "tabular",
        "finite states",
        (
            Making("tabular-50", lambda: _of_family(random_mdp(0.5))),
            Making("tabular-90-logged", _tabular_logged),
            Making("mixture-90", lambda: _of_family(pooled(0.9))),
            Making("adaptive-90", lambda: _of_family(adaptive(0.9))),
            Making("chain-logged", _chain_logged),
            Making("tabular-untold", _ten_states),
        ),
    ),
    Group(
        "endings",
        "rare events, endings",
        (
            Making("rare-jump-90", lambda: _of_family(jumps(0.9))),
            Making("clinic", lambda: _of_family(patients(1.0))),
            Making("clinic-logged", _clinic_logged),
        ),
    ),
    Group(
        "bandits",
        "bandits",
        (
            Making("bandit", lambda: _bandit(_of_family(plain_bandit()))),
            Making("bandit-logged", _bandit_logged),
            Making("greedy-bandit-logged", _greedy_logged),
            Making("sine-bandit-logged", _sine_logged),
        ),
    ),
    Group(
        "continuous",
        "continuous states",
        (
            Making("planted-60", lambda: _of_family(planted("planted-60", 5, 0.6))),
            Making("planted-10", lambda: _of_family(planted("planted-10", 10, 0.95))),
            Making("planted-wrong", _wrong_planted),
            Making("planted-untold", _planted_untold),
            Making("regulator", lambda: _of_family(regulator("regulator", 0.0, 0.9))),
        ),
    ),
    Group(
        "control",
        "control tasks",
        (
            Making("cartpole", _cartpole),
            Making("cartpole-logged", _cartpole_logged),
            Making("puck-wrong", _puck_wrong),
            Making("inverted-pendulum", _inverted_pendulum, ("mujoco", "gymnasium")),
            Making("minari-puck", _minari, ("minari", "gymnasium", "h5py")),
        ),
    ),
)
"""Every challenge, in the order in which they are shown."""

_MAKINGS = {making.name: making for group in GROUPS for making in group.makings}
CHALLENGE_NAMES = tuple(_MAKINGS)


def group_of(challenge: str) -> Group:
    """The group that a challenge belongs to."""
    return next(group for group in GROUPS if challenge in group.challenges)


@cache
def challenge_named(name: str) -> Challenge:
    """The challenge of this name; InvalidInput where there is none."""
    if name not in _MAKINGS:
        raise InvalidInput(f"`problem` must be one of {', '.join(CHALLENGE_NAMES)}. Got {name!r}.")
    return _MAKINGS[name].make()


def challenges_named(names: Sequence[str] | None = None) -> tuple[tuple[Challenge, ...], tuple[Skipped, ...]]:
    """The challenges of these names (or groups), each once, all by default; and those of them that cannot be met here."""
    groups = {group.name: group.challenges for group in GROUPS}
    wanted = dict.fromkeys(CHALLENGE_NAMES if names is None else [each for name in names for each in groups.get(name, (name,))])
    met, skipped = [], []
    for name in wanted:
        reason = lacks(*_MAKINGS[name].needs) if name in _MAKINGS else None
        if reason is None:
            met.append(challenge_named(name))
        else:
            skipped.append(Skipped(name, reason))
    return tuple(met), tuple(skipped)
