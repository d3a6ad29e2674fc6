"""Names of columns: those that are read, those that other tools have for them, and those that may mean one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..problem.row_columns import LOGGED

LEFT_OUT = "rows_left_out"
"""In the metadata of a file: how many rows had no next state and are not in it."""
BEGUN = "accountable_ope.begun_before"
"""In the metadata of a file: labels of episodes whose first rows are not in it."""
SAMPLE = "accountable_ope.start_sample"
"""In the metadata of a file: that its start states are an i.i.d. sample, and not the distribution itself."""

AT_STATE = "target_probability"
AT_NEXT = "next_target_probability"
ACTION_AT_STATE, ACTION_AT_NEXT = "target_action", "next_target_action"
POLICY = (AT_STATE, AT_NEXT, ACTION_AT_STATE, ACTION_AT_NEXT)
ESTIMATE = ("q", "next_q")
STEP, TRUNCATED = "step", "truncated"
TIMES = ("t", "time", "timestamp")
SHOWS_ORDER = (STEP, TRUNCATED, *TIMES)
"""Read only where next states are those of the following rows, whose order they show."""
LOG = ("state", "action", "reward", "next_state", "terminated", "episode", LOGGED, *POLICY, *ESTIMATE)
STARTS = ("state", "weight", AT_STATE, ACTION_AT_STATE, "q")
ALIASES = {
    "state": ("observation", "observations", "obs"),
    "action": ("actions",),
    "reward": ("rewards",),
    "next_state": ("next_observation", "next_observations", "next_obs", "obs_next", "new_obs"),
    "terminated": ("terminations", "terminals", "terminateds"),
    "episode": ("episode_id", "eps_id"),
    TRUNCATED: ("truncations", "truncateds"),
    LOGGED: ("behaviour_probability", "pscore", "action_prob"),
}
"""Names in D4RL, Minari, Gymnasium, Tianshou, RLlib and the Open Bandit Pipeline that mean exactly what ours do."""

_CUT_OFF = " Only if it is False where an episode was merely cut off, which is no end."
_WHOSE = " It may also be a probability of the policy."
_OF_WHAT = " Only if it is the probability with which the logger chose the action of the row, whichever that was."
DOUBTFUL = {
    "terminated": (
        ("done", "dones", "is_done", "terminal", "is_terminal", "is_last", "episode_end", "end", "ended", "absorbing"),
        _CUT_OFF,
    ),
    "episode": (("trajectory", "trajectory_id", "traj", "traj_id", "ep"), ""),
    LOGGED: (
        (
            "propensity",
            "propensities",
            "propensity_score",
            "behavior_prob",
            "behaviour_prob",
            "logging_prob",
            "logging_probability",
        ),
        _OF_WHAT,
    ),
    "weight": (("probability", "probabilities", "prob", "probs", "frequency"), _WHOSE),
    AT_STATE: (("target_prob", "target_probs"), ""),
    AT_NEXT: (("next_target_prob", "next_target_probs"), ""),
}
"""Names that may mean one that is read, or something else, and why."""


def wanted_columns(known: Sequence[str], policy: bool, estimate: bool) -> list[str]:
    """Those that are read, with or without a target policy and an estimate of Q."""
    return [name for name in known if (policy or name not in POLICY) and (estimate or name not in ESTIMATE)]


def near_miss(name: str, known: Sequence[str]) -> tuple[str | None, str]:
    """The known name that this one may mean, and why that is not certain."""
    core = _plain(name)
    best: tuple[float, str | None] = (float("inf"), None)
    for base in known:
        doubtful, why = DOUBTFUL.get(base, ((), ""))
        if core in map(_plain, doubtful):
            return base, why
        for spelling in (base, *ALIASES.get(base, ())):
            plain, allowed = _plain(spelling), _allowed(spelling)
            if abs(len(core) - len(plain)) <= allowed and (away := _distance(core, plain)) <= allowed and away < best[0]:
                best = (away, base)
    return best[1], ""


def _plain(name: str) -> str:
    """Small letters alone: neither case nor separators nor a number at the end tell names apart."""
    return re.sub(r"[\W_]", "", name.lower()).rstrip("0123456789")


def _allowed(name: str) -> int:
    """How many letters may be wrong: none where one letter is all that makes a name, since then others are near by accident."""
    if len(name) < 5 or name in ESTIMATE:
        return 0
    return 1 if len(name) < 8 else 2 if len(name) < 16 else 3


def _distance(one: str, other: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        two_before, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, two_before[j - 2] + 1)
            row.append(best)
    return row[-1]
