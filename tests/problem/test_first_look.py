"""What could be declared beside what is: said where the rows suggest it, and nowhere else."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.problem.first_look import paid_at_ends


def stays(rewards=(0.0, 1.0, 0.0, 0.0), terminated=(False, True, False, True)):
    states = np.arange(4.0)[:, None]
    return aope.Transitions(states, [0, 1, 0, 1], rewards, states + 1, terminated=terminated, episodes=[0, 0, 1, 1])


def test_rewards_at_ends_alone_could_be_declared():
    (sentence,) = paid_at_ends(stays(), aope.Assumptions(discount=0.9, reward_range=(0, 1)))
    assert "--terminal-reward" in sentence and sentence.endswith("values then lie in [0, 1], not in [0, 10]")


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (stays(), {"terminal_reward": True}),
        (stays(rewards=(0.5, 1.0, 0.0, 0.0)), {}),
        (stays(rewards=(0.0,) * 4), {}),
        (stays(terminated=(False,) * 4), {}),
        (stays(rewards=(1.0, 1.0, 0.0, 1.0), terminated=(True,) * 4), {}),
        (stays(), {"discount": 0.0}),
        (stays(), {"value_range": (0, 1)}),
    ],
    ids=["declared", "paid before", "never paid", "no end", "single steps", "no future", "nothing to gain"],
)
def test_nothing_is_said_where_it_would_not_help(data, declared):
    assert paid_at_ends(data, aope.Assumptions(**{"discount": 0.9, "reward_range": (0, 1), **declared})) == ()
