"""`--misfit-norm` on the command line: a ball for what random features miss, norms around it, and what it does not go with."""

import json
from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.first_answer import MisfitRKHS, misfit_answers
from accountable_ope.defaults import choose_recipe, save_recipe
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


def in_units(scale):
    """The same log with the second column of the state in other units."""
    units = np.array([1.0, scale])
    data = MDP.sample(np.random.default_rng(5), trajectories=12, length=50)
    columns = (data.actions, data.rewards, data.next_states * units, data.terminated, data.episodes)
    weights = lambda states: np.column_stack([each.weights for each in MDP.policy.branches(states / units)])  # noqa: E731
    policy = aope.DiscretePolicy(weights, MDP.policy.action_vectors)
    starts = aope.StartStates(MDP.starts.states * units, MDP.starts.weights)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), reward_noise=False)
    return aope.Problem(aope.Transitions(data.states * units, *columns), starts, policy, facts)


def chosen_answer(problem):
    recipe = choose_recipe(problem, neural=False, candidates=["cosines"])
    declared = problem.assuming(replace(problem.assumptions, norm_bound=0.3, misfit_norm=0.05))
    (found,) = misfit_answers(declared, recipe, MisfitRKHS(12), ["azuma"], 0.1)
    return found, recipe


def test_without_named_features_the_chosen_ones_are_taken_in_any_units(folder):
    (plain, recipe), (other, _) = chosen_answer(in_units(1.0)), chosen_answer(in_units(1000.0))
    assert (other.lower, other.upper) == pytest.approx((plain.lower, plain.upper), abs=1e-6)
    assert plain.check() and MDP.value in plain and plain.upper - plain.lower < 2.4 and plain.count == 450
    assert plain.recipe.norm_bound == pytest.approx(0.3) and "WhitenedFeatures" in plain.certificates[0].features
    save_recipe(recipe, folder / "choice.npz")
    words = ("--norm-bound", 0.3, "--misfit-norm", 0.05, "--landmarks", 12, "--radius", "azuma", "--choice", "choice.npz")
    named = (*OPTIONS[:8], "--deterministic-reward")
    done = run(folder, *words, "--json", options=named)
    result = json.loads(done.stdout)
    (interval,) = result["intervals"]
    assert (interval["lower"], interval["upper"]) == pytest.approx((plain.lower, plain.upper), abs=1e-9), done.stderr
    assert "chosen on the first 150 rows" in " ".join(interval["assumed"]) and result["misfit_norms"] is not None
    for more, message in (
        (("--within", 0.2), "--within has no effect with --norm-bound"),
        (("--features", 4), "--choice is for"),
    ):
        done = run(folder, *words, *more, options=named)
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_a_table_misses_nothing():
    problem = in_units(1.0)
    data = problem.data
    few = aope.Transitions(np.sign(data.states), data.actions, data.rewards, np.sign(data.next_states))
    random = replace(problem.assumptions, reward_noise=True)
    asked = aope.Problem(few, aope.StartStates([[1.0, 1.0]]), problem.policy, random)
    with pytest.raises(aope.InvalidInput, match="what was chosen is a table of all states"):
        chosen_answer(asked)


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
