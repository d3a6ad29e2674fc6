"""Files are written whole or not at all, and never to a place that is no place for a file."""

import os
import socket
import stat

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.io.files import place, same_file, save_arrays, whole_file

DATA = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_error_keeps_what_was_there(tmp_path, monkeypatch):
    target = tmp_path / "data.parquet"
    target.write_bytes(b"before")

    def full(table, partial, **_):
        partial.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(partial))

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(aope.InvalidFile, match=r"data.parquet cannot be written: No space left on device.$"):
        aope.save_transitions(DATA, target)
    assert target.read_bytes() == b"before" and names(tmp_path) == ["data.parquet"]


def test_any_other_error_leaves_nothing_behind(tmp_path):
    def interrupted():
        with whole_file(tmp_path / "a.txt") as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == []


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "a.partial.npz").write_bytes(b"mine")
    save_arrays(tmp_path / "a.npz", {"x": np.zeros(1)})
    assert (tmp_path / "a.partial.npz").read_bytes() == b"mine" and names(tmp_path) == ["a.npz", "a.partial.npz"]


def test_a_link_stays_a_link_and_rights_stay(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "real.txt").chmod(0o640)
    (tmp_path / "link.txt").symlink_to("real.txt")
    with whole_file(tmp_path / "link.txt") as partial:
        partial.write_text("new")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real.txt").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real.txt").stat().st_mode) == 0o640


def test_long_names(tmp_path):
    with whole_file(tmp_path / ("x" * 250 + ".txt")) as partial:
        partial.write_text("text")
    with pytest.raises(aope.InvalidFile, match="cannot be written: File name too long"):
        place(tmp_path / ("x" * 300))


def test_what_is_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        os.symlink("/dev/null", "link")
        for path, kind in (
            (".", "a folder"),
            ("pipe", "a pipe"),
            ("socket", "a socket"),
            ("/dev/full", "a device"),
            ("link", "a device"),
        ):
            with pytest.raises(aope.InvalidFile, match=f"{path} cannot be written: it is {kind}"):
                aope.save_transitions(DATA, path)
    for path, why in (
        ("none/a.txt", "there is no folder none"),
        ("pipe/a.txt", "Not a directory"),
        ("a\0b", "embedded null byte"),
    ):
        with pytest.raises(aope.InvalidFile, match=f"cannot be written: {why}"):
            place(path)
    assert names(tmp_path) == ["link", "pipe", "socket"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_may_not_be_changed_is_not_replaced(tmp_path):
    (tmp_path / "a.txt").write_text("kept")
    (tmp_path / "a.txt").chmod(0o400)
    with pytest.raises(aope.InvalidFile, match="permission denied"):
        place(tmp_path / "a.txt")


def test_one_file_under_many_names(tmp_path):
    one = tmp_path / "one.txt"
    one.write_text("text")
    (tmp_path / "soft.txt").symlink_to(one)
    (tmp_path / "hard.txt").hardlink_to(one)
    (tmp_path / "other.txt").write_text("text")
    for name in ("one.txt", "soft.txt", "hard.txt", "../" + tmp_path.name + "/one.txt"):
        assert same_file(one, tmp_path / name)
    assert not same_file(one, tmp_path / "other.txt") and not same_file(one, tmp_path / "new.txt")
    assert same_file(tmp_path / "new.txt", tmp_path / "." / "new.txt")
