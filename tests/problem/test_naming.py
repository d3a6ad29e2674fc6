"""Names of columns of the states and of actions stay with the rows, and change no fingerprint."""

import pytest

import accountable_ope as aope
from accountable_ope.problem import Categories, Naming, first_rows

NAMES = Naming(("age", "ward=icu", "ward=surgery"), ("wait", "treat"), (Categories("ward", 1, ("icu", "surgery")),))


def log(**others):
    states = [[61, 1, 0], [62, 0, 1], [63, 0, 1], [40, 1, 0]]
    return aope.Transitions(states, [0, 1, 1, 0], [0.0, 0.5, 1.0, 0.0], states, episodes=[0, 0, 1, 1], **others)


def test_rows_that_were_taken_or_joined_keep_their_names():
    data = log().named(NAMES)
    earlier, later = data.split(0.5)
    assert earlier.naming == later.naming == NAMES
    assert data.rows(slice(1, 3)).naming == data.having_left_out(2).naming == first_rows([data, data], 5).naming == NAMES
    assert data.paying(data.rewards * 2).naming == log().knowing(data).naming == NAMES


def test_logs_with_different_names_have_none_together():
    other = log().named(Naming(("years", "ward=icu", "ward=surgery")))
    assert first_rows([log().named(NAMES), other], 5).naming == Naming()


def test_names_are_no_part_of_the_fingerprint():
    assert log().named(NAMES).sha256 == log().sha256


def test_what_is_asked_by_name():
    assert [NAMES.state(i) for i in (0, 3)] == ["age", "state_3"]
    assert NAMES.column("ward=surgery") == 2 and NAMES.column("ward") is None
    assert NAMES.words("ward").first == 1 and NAMES.words("age") is None
    assert NAMES.index("treat") == 1 and NAMES.index("none") is None and NAMES.action(7) == 7


def test_true_is_not_one():
    assert Naming((), (True, 0, 2.0)).index(1) is None
    assert Naming((), (True, 0, 2.0)).index(2) == 2


def test_a_file_keeps_the_names(tmp_path):
    aope.save_transitions(log().named(NAMES), tmp_path / "log.parquet")
    assert aope.load_transitions(tmp_path / "log.parquet").naming == NAMES


def test_named_columns_of_a_file_are_the_names(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("patient,age,dose,action,reward\n7,61,1,0,0.5\n7,62,2,1,0\n7,63,1,0,1\n")
    data = aope.load_transitions(path, columns={"state": ["age", "dose"], "episode": "patient"})
    assert data.naming == Naming(("age", "dose"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (Naming(("age",)), "name every column of the states .3.. Got 1"),
        (Naming((), ("wait",)), "name every action .index 1 is logged.. Got 1"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, message):
    with pytest.raises(aope.InvalidInput, match=message):
        log().named(names)


def test_action_vectors_have_no_names():
    data = aope.Transitions([0.0, 1.0], [[0.5], [0.7]], [0.0, 1.0], [1.0, 0.0])
    with pytest.raises(aope.InvalidInput, match="action vectors"):
        data.named(Naming((), ("wait", "treat")))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Naming(("age", "age")),
        lambda: Naming((), ("1", 1)),
        lambda: Naming(("age",), (), (Categories("ward", 0, ("icu",)),)),
        lambda: Categories("ward", 0, ("icu", "icu")),
        lambda: Categories("ward", -1, ("icu",)),
        lambda: Categories("ward", 0, ()),
    ],
)
def test_names_that_contradict_themselves_are_refused(wrong):
    with pytest.raises(aope.InvalidInput):
        wrong()


def test_damaged_names_in_a_file_are_refused(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "log.parquet"
    aope.save_transitions(log().named(NAMES), path)
    table = pq.read_table(path)
    for said in (b"{", b"[]", b'{"states": ["a"]}', b'{"categories": [{}]}', b'{"states": 3}', b'{"states": [1, 2, 3]}'):
        pq.write_table(table.replace_schema_metadata({b"accountable_ope.naming": said}), path)
        with pytest.raises(aope.InvalidFile, match="metadata"):
            aope.load_transitions(path)
