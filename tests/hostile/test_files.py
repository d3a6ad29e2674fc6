"""Logs and start files that are wrong in every way: refused in one sentence, or read as what they are."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hostile.commands import GOOD, complaint, write_files

COLUMNS = ("state", "action", "reward", "next_state", "terminated", "episode", "target_probability", "next_target_probability")
NEEDED = ("state", "action", "reward", "next_target_probability")
START_COLUMNS = ("state", "weight", "target_probability")


def repeat(value, kind=None):
    return lambda column: pa.array([value] * len(column), kind)


def first(value):
    """The first entry, or the first number of the first list, replaced."""

    def change(column):
        values = column.to_pylist()
        values[0] = [value, *values[0][1:]] if isinstance(values[0], list) else value
        return pa.array(values)

    return change


def each(change):
    """Every number changed."""

    def apply(column):
        values = np.array(column.to_pylist(), dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            values = change(values)
        return pa.array(values.tolist())

    return apply


NEVER_RIGHT = {
    "nulls": repeat(None, pa.float64()),
    "one null": first(None),
    "NaN": first(float("nan")),
    "infinite": first(float("inf")),
    "minus infinite": first(float("-inf")),
    "text": repeat("x"),
    "empty text": repeat(""),
    "bytes": repeat(b"x"),
    "dates": lambda column: pa.array(np.arange(len(column)), pa.timestamp("s")),
    "structs": repeat({"a": 1.0}),
    "maps": lambda column: pa.array([[("a", 1.0)]] * len(column), pa.map_(pa.string(), pa.float64())),
    "empty lists": repeat([], pa.list_(pa.float64())),
    "lists of unequal length": lambda column: pa.array([[1.0] * (1 + k % 2) for k in range(len(column))]),
    "lists of lists": repeat([[1.0]]),
    "lists of nulls": repeat([None], pa.list_(pa.float64())),
    "lists of text": repeat(["x"]),
    "huge": first(1e308),
    "nothing at all": lambda column: pa.nulls(len(column)),
}
"""Changes after which no column of numbers can be used; `episode` may hold text."""

PERHAPS_RIGHT = {
    "negative": each(np.negative),
    "large": each(lambda values: values * 1e30),
    "tiny": each(lambda values: values * 1e-300),
    "zeros": each(lambda values: values * 0),
    "shifted": each(lambda values: values + 1),
    "reversed": lambda column: pa.array(column.to_pylist()[::-1]),
    "constant": lambda column: pa.array([column.to_pylist()[0]] * len(column)),
    "float16": lambda column: pa.array(np.arange(len(column)).astype(np.float16)),
    "int8": lambda column: pa.array(np.arange(len(column)) % 2, pa.int8()),
    "large integers": repeat(2**62),
    "unsigned": repeat(2**64 - 1, pa.uint64()),
    "booleans": repeat(True),
    "a dictionary": lambda column: pa.array(["a"] * len(column)).dictionary_encode(),
    "decimals": lambda column: pa.array([1] * len(column), pa.decimal128(5, 2)),
    "wider": repeat([0.5] * 7),
    "missing": None,
}

TEXT_IS_FINE = {"text", "empty text", "huge"}
FLAGS = {"huge", "negative"}

BYTES = {
    "no bytes": lambda good: b"",
    "one byte": lambda good: good[:1],
    "half": lambda good: good[: len(good) // 2],
    "without its end": lambda good: good[:-1],
    "without its start": lambda good: good[4:],
    "only the mark": lambda good: b"PAR1",
    "both marks": lambda good: b"PAR1PAR1",
    "zeros": lambda good: bytes(len(good)),
    "text": lambda good: b"state,action,reward\n0,0,0\n",
    "a zip": lambda good: b"PK\x03\x04" + good,
    "twice": lambda good: good + good[: len(good) // 3],
    "a length that lies": lambda good: good[:-8] + b"\xff\xff\xff\x7fPAR1",
    "a negative length": lambda good: good[:-8] + b"\xff\xff\xff\xffPAR1",
}
FLIPS = 40
COMMANDS = ("bound", "check", "diagnose", "monitor")


def column_cases():
    for file, columns in (("log.parquet", COLUMNS), ("starts.parquet", START_COLUMNS)):
        for column in columns:
            for label in (*NEVER_RIGHT, *PERHAPS_RIGHT):
                yield file, column, label


def is_wrong(file, column, label):
    """Whether the file cannot be used after this change, whoever reads it."""
    if label == "missing":
        return file == "log.parquet" and column in NEEDED
    if label not in NEVER_RIGHT:
        return False
    return not (column == "episode" and label in TEXT_IS_FINE)


def number_of_cases():
    return len(list(column_cases())) + 2 * (len(BYTES) + FLIPS) + len(SHAPES)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "place").mkdir()
    return write_files(tmp_path / "place")


def change_column(path, column, label):
    table = pq.read_table(path)
    change = {**NEVER_RIGHT, **PERHAPS_RIGHT}[label]
    index = table.column_names.index(column)
    if change is None:
        return pq.write_table(table.remove_column(index), path)
    return pq.write_table(table.set_column(index, column, change(table[column])), path)


@pytest.mark.parametrize(
    ("file", "column"), [("log.parquet", name) for name in COLUMNS] + [("starts.parquet", name) for name in START_COLUMNS]
)
def test_hostile_columns(folder, file, column):
    good, wrong = (folder / file).read_bytes(), []
    labels = [label for one, other, label in column_cases() if (one, other) == (file, column)]
    for k, label in enumerate(labels):
        change_column(folder / file, column, label)
        command = COMMANDS[k % len(COMMANDS)] if file == "log.parquet" else "bound"
        must_fail = is_wrong(file, column, label) and (command, label) != ("check", "missing")  # a check needs no policy
        found = complaint(folder, (command, *GOOD[command], "--json"), must_fail=must_fail)
        if found:
            wrong.append(f"{command} {label}: {found}")
        (folder / file).write_bytes(good)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("file", ["log.parquet", "starts.parquet"])
def test_hostile_bytes(folder, file):
    good, wrong = (folder / file).read_bytes(), []
    for label, change in BYTES.items():
        (folder / file).write_bytes(change(good))
        found = complaint(folder, ("bound", *GOOD["bound"], "--json"), must_fail=label != "twice")
        wrong += [f"{label}: {found}"] if found else []
    rng = np.random.default_rng(0)
    for _ in range(FLIPS):
        damaged = bytearray(good)
        damaged[int(rng.integers(len(good)))] ^= 1 << int(rng.integers(8))
        (folder / file).write_bytes(bytes(damaged))
        found = complaint(
            folder,
            ("check" if file == "log.parquet" else "bound", *GOOD["bound"][: 1 if file == "log.parquet" else None], "--json"),
        )
        wrong += [f"a flipped bit: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


def with_columns(table, names):
    for name in names:
        table = table.append_column(name, table["reward"])
    return table


SHAPES = {
    "no rows": lambda table: table.slice(0, 0),
    "one row": lambda table: table.slice(0, 1),
    "two rows": lambda table: table.slice(0, 2),
    "no columns": lambda table: table.select([]),
    "twice the same column": lambda table: table.append_column("reward", table["reward"]),
    "other names": lambda table: table.rename_columns([f"x{k}" for k in range(table.num_columns)]),
    "names in capitals": lambda table: table.rename_columns([name.upper() for name in table.column_names]),
    "reversed rows": lambda table: table.take(list(range(table.num_rows))[::-1]),
    "many columns": lambda table: pa.table(
        {**{name: table[name] for name in table.column_names}, **{f"z{k}": table["reward"] for k in range(500)}}
    ),
    "columns in another order": lambda table: table.select(table.column_names[::-1]),
}
WRONG_SHAPES = ("no rows", "one row", "no columns", "twice the same column", "other names")


@pytest.mark.parametrize("label", SHAPES)
def test_hostile_tables(folder, label):
    path = folder / "log.parquet"
    pq.write_table(SHAPES[label](pq.read_table(path)), path)
    for command in COMMANDS:
        assert complaint(folder, (command, *GOOD[command], "--json"), must_fail=label in WRONG_SHAPES) is None


def test_a_state_of_a_monitor_that_is_none(folder):
    """A file in the place of the state is refused, and stays what it is."""
    state, wrong = folder / "new.npz", []
    assert complaint(folder, ("monitor", *GOOD["monitor"], "--json"), keep=["new.npz"]) is None
    good = state.read_bytes()
    for label, change in BYTES.items():
        state.write_bytes(change(good))
        if label not in ("a zip", "twice", "a length that lies", "a negative length", "without its end"):
            found = complaint(folder, ("monitor", *GOOD["monitor"], "--json"), must_fail=True)
        else:
            found = complaint(folder, ("monitor", *GOOD["monitor"], "--json"))
        wrong += [f"{label}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


HOSTILE_ENTRIES = ("NaN", None, 1e308, -1, "x", [], {}, True, "Infinity", [None], 0, 10**30)


def leaves(document, path=()):
    """The places of all numbers, texts and truths of a JSON document, and of its empty lists."""
    inner = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    found = [leaf for key, value in inner for leaf in leaves(value, (*path, key))]
    return found or [path]


def with_entry(document, path, value):
    """The same document with one entry changed."""
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = with_entry(document[path[0]], path[1:], value)
    return copy


@pytest.mark.usefixtures("tables_once")
@pytest.mark.parametrize("part", range(4))
def test_hostile_certificates(folder, part):
    """Every entry of a certificate file, replaced by what it cannot be: refused or not proved, never a traceback."""
    document, wrong = json.loads((folder / "certificate.json").read_text()), []
    places = leaves(document)
    assert len(places) > 300
    for at, path in enumerate(places[part::4]):
        value = HOSTILE_ENTRIES[at % len(HOSTILE_ENTRIES)]
        (folder / "hostile.json").write_text(json.dumps(with_entry(document, path, value)))
        found = complaint(folder, ("verify", "hostile.json", "--json"))
        if found:
            wrong.append(f"{path} = {value!r}: {found}")
    assert not wrong, "\n".join(wrong)
