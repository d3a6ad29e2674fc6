"""The same question asked through every door gives the same interval to the last digit."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.io import load_minari, save_minari

from .frame_logs import NAMES, STATE, columns, d3rlpy_dataset, with_words

FACTS = aope.Assumptions(discount=0.5, reward_range=(0, 1), norm_bound=3.0, terminates=True)
LOG, WORDS = columns(), with_words(columns(episodes=30))
WORD_NAMES = {**NAMES, "state": ["age", "ward"]}


def probabilities(states):
    often = np.where(states[:, 1] > 0, 0.75, 0.25)
    return np.column_stack([1 - often, often])


def interval(data):
    policy = aope.DiscretePolicy(probabilities, actions=2)
    asked = aope.Problem(data, aope.StartStates([[0.0, 0.5]]), policy, FACTS)
    return aope.bound_value(asked, features=aope.RandomFourier(8, bandwidth=1.0, seed=3), kernel=aope.Gaussian(1.0))


def of_csv(found, names, folder):
    pd.DataFrame(found).to_csv(folder / "log.csv", index=False)
    return aope.load_transitions(folder / "log.csv", columns=names)


def of_parquet(found, names, folder):
    pd.DataFrame(found).to_parquet(folder / "log.parquet")
    return aope.load_transitions(folder / "log.parquet", columns=names)


def of_polars_parquet(found, names, folder):
    pl.DataFrame(found).write_parquet(folder / "log.parquet")
    return aope.load_transitions(folder / "log.parquet", columns=names)


def of_own_parquet(found, names, folder):
    aope.save_transitions(aope.from_dataframe(pa.table(found), **names), folder / "own.parquet")
    return aope.load_transitions(folder / "own.parquet")


DOORS = {
    "pandas": lambda found, names, folder: aope.from_dataframe(pd.DataFrame(found), **names),
    "pandas with another index": lambda found, names, folder: aope.from_dataframe(
        pd.DataFrame(found, index=np.arange(len(found["age"]))[::-1] % 7), **names
    ),
    "pandas with nullable types": lambda found, names, folder: aope.from_dataframe(pd.DataFrame(found).convert_dtypes(), **names),
    "pandas on Arrow": lambda found, names, folder: aope.from_dataframe(
        pd.DataFrame(found).convert_dtypes(dtype_backend="pyarrow"), **names
    ),
    "Polars": lambda found, names, folder: aope.from_dataframe(pl.DataFrame(found), **names),
    "Arrow": lambda found, names, folder: aope.from_dataframe(pa.table(found), **names),
    "CSV": of_csv,
    "Parquet by pandas": of_parquet,
    "Parquet by Polars": of_polars_parquet,
    "our Parquet": of_own_parquet,
}


@pytest.fixture(scope="module")
def wanted():
    return interval(aope.from_dataframe(pd.DataFrame(LOG), **NAMES))


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_frames_and_files(door, wanted, tmp_path):
    data = DOORS[door](LOG, NAMES, tmp_path)
    found = interval(data)
    assert (found.lower, found.upper) == (wanted.lower, wanted.upper) and wanted.upper - wanted.lower < 1.5
    assert data.left_out == 40 and data.naming.states == tuple(STATE)


@pytest.mark.slow
def test_minari(wanted, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    save_minari(aope.from_dataframe(pd.DataFrame(LOG), **NAMES), "clinic-v0")
    found = interval(load_minari("clinic-v0"))
    assert (found.lower, found.upper) == (wanted.lower, wanted.upper)


@pytest.mark.slow
def test_d3rlpy(wanted):
    data = aope.from_d3rlpy(d3rlpy_dataset(LOG))
    found = interval(data)
    assert (found.lower, found.upper) == (wanted.lower, wanted.upper) and data.left_out == 40


@pytest.mark.slow
def test_rllib(wanted, tmp_path):
    data = aope.from_dataframe(pd.DataFrame(LOG), **NAMES)
    rows = {
        "eps_id": [f"e{each}" for each in data.episodes],
        "agent_id": [None] * len(data),
        "module_id": ["default_policy"] * len(data),
        "obs": data.states.tolist(),
        "actions": data.actions,
        "rewards": data.rewards,
        "new_obs": data.next_states.tolist(),
        "terminateds": data.terminated,
        "truncateds": np.zeros(len(data), dtype=bool),
        "action_logp": np.full(len(data), -0.7),
    }
    pq.write_table(pa.table(rows), tmp_path / "run.parquet")
    found = interval(aope.load_transitions(tmp_path / "run.parquet"))
    assert (found.lower, found.upper) == (wanted.lower, wanted.upper)


@pytest.mark.slow
def test_the_question_matters(wanted):
    """What is compared above does depend on the rows."""
    other = interval(aope.from_dataframe(pd.DataFrame(columns(seed=1)), **NAMES))
    assert (other.lower, other.upper) != (wanted.lower, wanted.upper)


WORD_DOORS = {
    **DOORS,
    "pandas categories": lambda found, names, folder: aope.from_dataframe(
        pd.DataFrame(found).astype({"ward": "category", "drug": "category"}), **names
    ),
    "Polars categories": lambda found, names, folder: aope.from_dataframe(
        pl.DataFrame(found).with_columns(pl.col("ward", "drug").cast(pl.Categorical)), **names
    ),
    "Arrow dictionaries": lambda found, names, folder: aope.from_dataframe(
        pa.table({name: pa.array(each).dictionary_encode() if name == "ward" else each for name, each in found.items()}), **names
    ),
}


@pytest.mark.parametrize("door", WORD_DOORS)
def test_words_mean_the_same_everywhere(door, tmp_path):
    data = WORD_DOORS[door](WORDS, WORD_NAMES, tmp_path)
    wanted = aope.from_dataframe(pd.DataFrame(WORDS), **WORD_NAMES)
    assert data.sha256 == wanted.sha256 and data.naming == wanted.naming
    assert data.naming.states == ("age", "ward=icu", "ward=recovery", "ward=surgery") and data.naming.actions == ("high", "none")
