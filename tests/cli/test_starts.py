"""Start states from a data frame, a CSV file or a saved sample, beside a log that has words in it."""

import json

import numpy as np
import pandas as pd
import pytest

import accountable_ope as aope
from command import aope_command

QUESTION = ("--policy", "b if ward == 'icu' else a", "--discount", 0.5, "--reward-range", 0, 1, "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("starts"), np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "patient": np.repeat(np.arange(100), 4),
            "ward": rng.choice(["icu", "surgery"], 400),
            "age": rng.uniform(20, 90, 400),
            "drug": rng.choice(["a", "b"], 400),
            "recovered": rng.random(400).round(2),
            "over": np.tile([False, False, False, True], 100),
        }
    )
    log = aope.from_dataframe(
        frame, state=["ward", "age"], action="drug", reward="recovered", terminated="over", episode="patient"
    )
    first = frame[["ward", "age"]].iloc[::4]
    aope.save_transitions(log, place / "log.parquet")
    aope.save_starts(aope.starts_from_dataframe(first, naming=log.naming), place / "starts.parquet")
    aope.save_starts(aope.starts_from_dataframe(first, naming=log.naming, exact=False), place / "sample.parquet")
    first.to_csv(place / "starts.csv", index=False)
    first.assign(weight=np.arange(1, 101)).to_csv(place / "weighed.csv", index=False)
    return place


def sampled(folder, *words):
    """Whether the start states counted as a sample, and the interval."""
    done = aope_command("bound", "log.parquet", *QUESTION, *words, cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)["intervals"][0]
    return "an i.i.d. sample of their distribution" in " ".join(found["assumed"]), (found["lower"], found["upper"])


def test_a_saved_frame_may_be_a_sample_after_all(folder):
    """Rows of a frame count as the distribution itself, and are written with their weights, which are equal."""
    exact, _ = sampled(folder, "--starts", "starts.parquet")
    said, ends = sampled(folder, "--starts", "starts.parquet", "--sampled-starts")
    assert said and not exact
    assert sampled(folder, "--starts", "starts.csv", "--sampled-starts") == (said, ends), "by the names of the log"


def test_a_saved_sample_stays_one(folder):
    assert sampled(folder, "--starts", "sample.parquet") == sampled(folder, "--starts", "starts.parquet", "--sampled-starts")


def test_weights_that_differ_are_no_sample(folder):
    done = aope_command("bound", "log.parquet", *QUESTION, "--starts", "weighed.csv", "--sampled-starts", cwd=folder)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "weighed.csv weighs start states by its column `weight`" in done.stderr
