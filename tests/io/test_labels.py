"""Labels of episodes that were used again, gaps in a count of steps, and episodes of which the first rows are missing."""

import numpy as np
import pandas as pd
import pytest

import accountable_ope as aope
from accountable_ope.errors import AopeError, InvalidFile, InvalidInput
from accountable_ope.io import save_minari
from accountable_ope.io.reading import read_transition_file

NAMES = {"state": ["place"], "action": "action", "reward": "reward", "terminated": "ended", "episode": "visit"}


def days(count, labels_again=True, next_states=True):
    """Episodes of two steps, numbered from 0 on every day; on the first day they begin elsewhere and pay more."""
    rows = []
    for day in range(count):
        for visit in range(40):
            label = visit if labels_again else f"{day}-{visit}"
            pays = 0.9 if day == 0 else 0.1
            for step in range(2):
                place = 10.0 * day + step
                rows.append((place, 0, pays, place + 1, step == 1, label))
    frame = pd.DataFrame(rows, columns=["place", "action", "reward", "after", "ended", "visit"])
    return frame if next_states else frame.drop(columns="after")


@pytest.mark.parametrize("next_states", [True, False])
def test_a_label_that_is_used_again_behind_an_end_is_refused(next_states):
    """Else the starts of the first day would stand for all, and the interval would be false."""
    names = NAMES | ({"next_state": ["after"]} if next_states else {})
    with pytest.raises(AopeError, match="An episode must end where it is terminated.*a label of its own"):
        aope.from_dataframe(days(2, next_states=next_states), **names)
    assert len(aope.from_dataframe(days(2, False, next_states), **names).first_states().states) == 80


def test_files_that_each_count_from_0_are_refused_in_one_file_and_in_several(tmp_path):
    frame = days(3).rename(columns={"place": "state", "after": "next_state", "ended": "terminated", "visit": "episode"})
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InvalidFile, match="a label of its own"):
        read_transition_file(tmp_path / "log.csv")
    folder = tmp_path / "days"
    folder.mkdir()
    for day in range(3):
        frame.iloc[80 * day : 80 * (day + 1)].to_parquet(folder / f"day-{day}.parquet")
    for batch_rows in (64, 80, 1000):
        with pytest.raises(InvalidFile, match=r"row .*log.*a label of its own"):
            list(aope.scan_transitions(folder, batch_rows=batch_rows))


def test_first_states_of_arrays_are_refused_where_labels_are_used_again():
    states, ended = np.arange(6.0), np.array([False, True] * 3)
    log = aope.Transitions(states, [0] * 6, [0.5] * 6, states + 1, ended, [0, 0, 1, 1, 0, 0])
    with pytest.raises(InvalidInput, match="`terminated` is True in row 1, but its episode goes on"):
        log.first_states()


def test_what_may_be_a_label_that_was_used_again_is_said(tmp_path):
    frame = pd.DataFrame(
        {"state": np.arange(12.0), "action": 0, "reward": 0.5, "episode": [0, 0, 0, 1, 1, 1] * 2},
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    said = " ".join(read_transition_file(tmp_path / "log.csv").columns.remarks)
    assert "In 2 of 10 places rows of other episodes stand between two rows of one" in said
    side_by_side = frame.assign(episode=[0, 1] * 6)
    side_by_side.to_csv(tmp_path / "beside.csv", index=False)
    assert "stand between" not in " ".join(read_transition_file(tmp_path / "beside.csv").columns.remarks)


def test_a_count_of_steps_that_jumps_is_said(tmp_path):
    frame = pd.DataFrame(
        {"t": [0, 1, 3, 4, 5, 6, 0, 1], "state": np.arange(8.0), "action": 0, "reward": 0.5, "episode": [0] * 6 + [1] * 2}
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    said = " ".join(read_transition_file(tmp_path / "log.csv").columns.remarks)
    assert "jumps in 1 of 6 places" in said and "a state several steps later is no next state" in said
    frame.assign(t=np.arange(8)).to_csv(tmp_path / "even.csv", index=False)
    assert "jumps" not in " ".join(read_transition_file(tmp_path / "even.csv").columns.remarks)


def test_an_episode_that_began_before_is_one_after_saving_too(tmp_path):
    full = aope.Transitions(np.arange(60.0), [0] * 60, [0.5] * 60, np.arange(60.0) + 1, episodes=np.arange(60) // 20)
    later = full.rows(slice(15, None))
    aope.save_transitions(later, tmp_path / "later.parquet")
    again = aope.load_transitions(tmp_path / "later.parquet")
    assert again.headless.tolist() == later.headless.tolist() and again.headless.sum() == 5
    assert again.first_states().states.ravel().tolist() == later.first_states().states.ravel().tolist() == [20.0, 40.0]
    pytest.importorskip("minari")
    with pytest.raises(InvalidInput, match="began before these rows"):
        save_minari(later, "later-v0")
