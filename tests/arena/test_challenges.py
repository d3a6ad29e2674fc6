"""The challenges: their logs, what is told of them, and probabilities that are the logger's."""

import numpy as np
import pytest

from accountable_ope.arena.challenge import Told
from accountable_ope.arena.challenges import CHALLENGE_NAMES, GROUPS, challenge_named, challenges_named, group_of
from accountable_ope.arena.entrants import entry
from accountable_ope.arena.logs import DATASETS, GreedyRecorded
from accountable_ope.errors import InvalidInput
from accountable_ope.laboratory.draws import Greedy
from accountable_ope.laboratory.family import DataKind
from accountable_ope.laboratory.finite import greedy_bandit


@pytest.mark.parametrize("name", CHALLENGE_NAMES)
def test_a_log_keeps_what_is_told_of_it(name):
    challenges, skipped = challenges_named([name])
    if skipped:
        pytest.skip(skipped[0].reason)
    [challenge] = challenges
    data, again = (challenge.draw(np.random.default_rng(1), 600) for _ in range(2))
    assert data.sha256 == again.sha256 and 350 <= len(data) <= 600
    handed = entry(challenge, data, seed=1)  # refuses what contradicts the declarations
    low, high = handed.problem.ranges.value
    assert low <= challenge.truth.value <= high and challenge.truth.margin < 0.005 * (high - low)
    assert (data.behavior_probability is not None) is challenge.recorded
    assert (handed.features is None) is (challenge.told is Told.NOTHING)
    assert challenge.description.endswith(".") and name in group_of(name).challenges
    if challenge.horizon is not None:
        lengths = np.bincount(data.episodes)
        ended = np.zeros(len(lengths), dtype=bool)
        ended[data.episodes[data.terminated]] = True
        assert (ended | (lengths == challenge.horizon)).all()  # whole episodes


def test_there_are_problems_of_every_kind():
    challenges = [challenge_named(name) for name in CHALLENGE_NAMES if name not in ("inverted-pendulum", "minari-puck")]
    assert len(CHALLENGE_NAMES) >= 12 and len(set(CHALLENGE_NAMES)) == len(CHALLENGE_NAMES)
    assert {each.data_kind for each in challenges} == set(DataKind)
    assert {(each.recorded, each.told) for each in challenges} >= {
        (known, told) for known in (False, True) for told in (Told.RIGHT, Told.NOTHING)
    } | {(False, Told.WRONG)}
    with pytest.raises(InvalidInput, match=r"`problem` must be one of tabular-50, .* Got 'chess'"):
        challenges_named(["chess"])
    assert [each.name for each in challenges_named(["bandits", "bandit"])[0]] == list(GROUPS[2].challenges)


def test_a_learner_records_the_probabilities_with_which_it_acted():
    draw = greedy_bandit().draw
    assert isinstance(draw, Greedy)
    data = GreedyRecorded(draw)(np.random.default_rng(0), 40_000)
    # In the mean over rows 1 / b of an action is 1 where b is right: sum_a b 1{a} / b.
    for action in (0, 1):
        ratio = (data.actions == action) / data.behavior_probability
        assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(data))
    assert set(np.round(data.behavior_probability, 6)) == {0.05, 0.95}


def test_minari_gives_back_what_was_rolled_out(monkeypatch, tmp_path):
    pytest.importorskip("minari")
    monkeypatch.setenv(DATASETS, str(tmp_path))
    challenge = challenge_named("minari-puck")
    through, before = (draw(np.random.default_rng(0), 400) for draw in (challenge.draw, challenge.draw.draw))
    assert through.sha256 == before.sha256
    assert list(tmp_path.iterdir()) == []  # nothing is left where the user's datasets are
