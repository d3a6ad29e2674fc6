"""`--misfit-norm` on the command line: a ball for what random features miss, norms around it, and what it does not go with."""

import json

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from command import aope_command

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
OPTIONS = (
    "--starts", "starts.parquet", "--action-values=-1,0,1", "--discount", 0.6, "--reward-range", 0, 1,
    "--deterministic-reward", "--norm-bound", 1.5, "--features", 4, "--seed", 3, "--bandwidth", 1,
)  # fmt: skip
AROUND = ("--misfit-norm", 0.5, "--misfit-bandwidth", 2, "--landmarks", 12, "--radius", "azuma")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("misfit")
    data = MDP.sample(np.random.default_rng(5), trajectories=12, length=50)
    states = np.concatenate([data.states, data.next_states, MDP.starts.states])
    probabilities = np.column_stack([branch.weights for branch in MDP.policy.branches(states)])
    table = aope.TabulatedPolicy(states, probabilities, MDP.policy.action_vectors)
    aope.save_transitions(data, path / "data.parquet", table)
    aope.save_starts(MDP.starts, path / "starts.parquet", table)
    return path


def run(folder, *arguments, command="bound", options=OPTIONS):
    return aope_command(command, "data.parquet", *options, *arguments, cwd=folder)


def test_the_interval_is_that_of_the_library_and_other_norms_stand_beside_it(folder):
    done = run(folder, *AROUND, "--threshold", 0.5, "--json", "--certificate", "found.json")
    result = json.loads(done.stdout)
    (interval,) = result["intervals"]
    data = aope.load_transitions(folder / "data.parquet")
    starts = aope.load_starts(folder / "starts.parquet")
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5, misfit_norm=0.5, reward_noise=False)
    problem = aope.Problem(data, starts, MDP.policy, facts)
    features = aope.SemiParametric(aope.RandomFourier(4, 1.0, 3), aope.Gaussian(2.0), 12)
    wanted = aope.bound_value(problem, features=features, kernel=aope.Gaussian(1.0), radius="azuma")
    assert np.allclose((interval["lower"], interval["upper"]), (wanted.lower, wanted.upper), atol=1e-9)
    found = result["misfit_norms"]
    assert [row["value"] for row in found["curve"]["rows"]] == [0.125, 0.25, 0.5, 1.0, 2.0]
    widths = [row["upper"] - row["lower"] for row in found["curve"]["rows"] if row["lower"] is not None]
    assert len(widths) >= 3 and widths == sorted(widths)
    assert found["least"]["value"] >= 0 and found["flip"]["threshold"] == 0.5
    if found["flip"]["outcome"] == "FLIPS":
        assert found["flip"]["lower"] >= 0.5
    assert done.returncode in (0, 4)
    again = aope_command(
        "verify", "found.json", "--data", "data.parquet", "--starts", "starts.parquet", "--action-values=-1,0,1", cwd=folder
    )
    assert again.returncode == 0, again.stdout + again.stderr


def test_the_text_has_widths_the_least_norm_and_the_flip(folder):
    done = run(folder, *AROUND, "--threshold", 0.5, "--report", "report.html")
    for words in ("misfit_norm varied (* declared)", "0.5 *", "norm of at most 0.5 in the RKHS of Gaussian(bandwidth=2)"):
        assert words in " ".join(done.stdout.split()), done.stdout
    said = " ".join(done.stdout.split())
    assert '"value >= 0.5"' in said and "features miss" in said
    assert "&#34;value &gt;= 0.5&#34;" in (folder / "report.html").read_text()


def test_a_norm_that_is_too_small_is_refuted_and_the_least_one_is_said(folder):
    done = run(
        folder, "--misfit-norm", 1e-4, "--misfit-bandwidth", 2, "--landmarks", 12, "--features", 1, "--json", "--delta", 0.5
    )
    result = json.loads(done.stdout)
    least = result["misfit_norms"]["least"]
    assert done.returncode == 4 and least["value"] > 1e-4
    assert result["misfit_norms"]["curve"]["rows"][0]["status"] == "INCONSISTENT"


def test_the_bandwidth_of_what_is_missed_is_that_of_the_features(folder):
    done = run(folder, "--misfit-norm", 0.5, "--feature-bandwidth", 2.5, "--landmarks", 5, "--radius", "azuma", "--json")
    assert "in the RKHS of Gaussian(bandwidth=2.5)" in " ".join(json.loads(done.stdout)["intervals"][0]["assumed"])


def test_sensitivity_varies_it_by_itself(folder):
    done = run(folder, *AROUND, "--json", "--over", "misfit-norm", "--threshold", 0.5, command="sensitivity")
    result = json.loads(done.stdout)
    assert [curve["over"] for curve in result["curves"]] == ["misfit_norm"]
    assert result["least_norm"] is None and result["least_misfit_norm"]["value"] >= 0
    usual = run(folder, *AROUND, "--json", "--over", "norm-bound", command="sensitivity")
    assert json.loads(usual.stdout)["least_misfit_norm"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--misfit-bandwidth", 2), "--misfit-bandwidth has no effect without --misfit-norm"),
        (("--misfit-norm", -1), "`misfit_norm` must be positive"),
        (("--misfit-norm", 1, "--misfit-bandwidth", 0), "--misfit-bandwidth must be positive"),
        (("--misfit-norm", 1, "--average-reward"), "--average-reward does not go with"),
        (("--misfit-norm", 1, "--radius", "symmetric"), "`radius` symmetric needs"),
        (("--misfit-norm", 1, "--radius", "hoeffding-u"), "says nothing about what"),
    ],
)
def test_bad_options_are_one_sentence(folder, arguments, message):
    done = run(folder, *arguments)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_what_it_does_not_go_with(folder):
    plain = ("--starts", "starts.parquet", "--action-values=-1,0,1", "--discount", 0.6, "--reward-range", 0, 1)
    for command, arguments, message in (
        ("bound", ("--misfit-norm", 1), "--misfit-norm needs --norm-bound"),
        ("bound", ("--misfit-norm", 1, "--norm-bound", 1, "--tabular"), "--misfit-norm has no effect with --tabular"),
        ("sensitivity", ("--norm-bound", 1, "--over", "misfit-norm"), "--over misfit-norm needs --misfit-norm"),
    ):
        done = run(folder, *arguments, command=command, options=plain)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    words = ("state.npz", "data.parquet", *plain, "--norm-bound", 1, "--misfit-norm", 1, "--never-terminates")
    done = aope_command("monitor", *words, "--planned", 100, cwd=folder)
    assert done.returncode == 2 and "--misfit-norm is not for aope monitor" in done.stderr, done.stderr
