"""Candidates for the class: judged by rows they were not fitted to, chosen by a plain rule, and recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes import JoinedFeatures, TreeValues
from accountable_ope.defaults import ClassKind, Judged, Recipe, candidates, choose_recipe, load_recipe, save_recipe
from accountable_ope.defaults.candidates import Part, name_of
from accountable_ope.defaults.early_fit import RIDGES, Judge, first_part
from accountable_ope.defaults.forest import fitted_trees
from accountable_ope.defaults.judging import choose, table_words
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.kernels import block
from accountable_ope.problem import Experience
from accountable_ope.statistics import bellman_residuals, bellman_system

MDP = PlantedMDP(seed=1, features=8, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=40)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1))
PROBLEM = aope.Problem(DATA, MDP.starts, MDP.policy, FACTS)
EXPERIENCE = Experience(DATA, MDP.starts, MDP.policy, 0.6)
KERNEL = aope.Gaussian(1.0)


def row(name: str, columns: int, loss: float, deviation: float = 1.0) -> Judged:
    return Judged(name, columns, 0.0, 0.0, loss, deviation, chance=deviation, ridge=1e-3)


def chosen(table: tuple[Judged, ...]) -> str:
    assert sum(each.chosen for each in table) == 1
    return next(each.name for each in table if each.chosen)


def test_of_those_within_one_deviation_of_the_least_loss_the_fewest_columns_are_chosen() -> None:
    table = [row("large", 120, 1.0, 0.5), row("medium", 80, 1.4, 9.0), row("small", 50, 1.6, 9.0)]
    assert chosen(choose(table)) == "medium"  # the deviation is that of the least loss
    assert chosen(choose(table[::-1])) == "medium"
    assert chosen(choose([*table, row("best", 200, 0.0, 0.1)])) == "best"
    assert chosen(choose([row("one", 60, 2.0), row("other", 61, 1.5)])) == "other"  # a column more is no reason
    assert chosen(choose([row("one", 60, 2.0), row("same", 60, 2.0)])) == "one"


def test_a_class_is_not_preferred_for_having_hardly_any_columns() -> None:
    """Rows held out are few, and see less than the rows of the bound will."""
    assert chosen(choose([row("network", 40, 1.0), row("tiny", 5, 0.1), row("large", 120, 0.9)])) == "network"
    assert chosen(choose([row("tiny", 5, 0.1), row("small", 18, 0.9)])) == "small"


class Withheld:
    """Some of the features that Q is made of, not all."""

    intercept = True

    def __init__(self, kept: int) -> None:
        self.dimension = kept

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return MDP.features()(points)[:, : self.dimension]


@pytest.mark.parametrize("seed", range(5))
def test_the_class_that_holds_q_is_preferred_to_one_with_features_withheld(seed: int) -> None:
    data = MDP.sample(np.random.default_rng(seed), trajectories=40)
    experience = Experience(data, MDP.starts, MDP.policy, 0.6)
    judge = Judge.of(KERNEL, experience.points, first_part(data))
    listed = [("some", JoinedFeatures((Withheld(3), aope.RandomFourier(5, seed=9)))), ("all", MDP.features())]
    table = choose(
        [Judged.of(name, phi.dimension, judge.held_out(bellman_system(experience, phi)), judge, 2.5) for name, phi in listed]
    )
    assert chosen(table) == "all" and table[0].misfit > 3 * table[1].misfit


def test_the_loss_is_the_u_statistic_of_rows_that_were_not_fitted() -> None:
    """Against its double sum, with the coefficients of a fit to the first rows alone."""
    rows = slice(0, 120)
    experience = Experience(DATA.rows(rows), MDP.starts, MDP.policy, 0.6)
    system, first = bellman_system(experience, MDP.features()), 80
    judge = Judge.of(KERNEL, experience.points, first)
    found = judge.held_out(system)
    other = replace(system, target=np.append(system.target[:first], np.zeros(40)))
    psi, m = judge.psi[:first], system.dimension
    M, y = psi.T @ system.residuals[:first] / first, psi.T @ system.target[:first] / first
    size = np.trace(M.T @ M) / m
    theta = np.linalg.solve(M.T @ M + size * (found.ridge * np.diag(system.penalized) + 1e-11 * np.eye(m)), M.T @ y)
    e, K = (system.target - system.residuals @ theta)[first:], block(KERNEL, experience.points[first:], experience.points[first:])
    pairs = sum(e[i] * K[i, j] * e[j] for i in range(40) for j in range(40) if i != j) / (40 * 39)
    assert found.loss == pytest.approx(pairs, rel=1e-4) and found.ridge in RIDGES
    assert judge.held_out(other).loss != found.loss  # those rows judge


def test_at_q_itself_the_loss_is_chance_alone() -> None:
    """Over many logs it averages to nothing, and varies as its standard deviation says."""
    losses, chances = [], []
    for seed in range(80):
        data = MDP.sample(np.random.default_rng(100 + seed), trajectories=4)
        experience = Experience(data, MDP.starts, MDP.policy, 0.6)
        system = bellman_system(experience, aope.RandomFourier(1))
        residuals = bellman_residuals(MDP.q, data, MDP.policy, 0.6)
        found = Judge.of(KERNEL, experience.points, 100).held_out(replace(system, target=residuals, residuals=np.zeros((200, 2))))
        losses.append(found.loss)
        chances.append(found.chance)
    assert abs(np.mean(losses)) < 4 * np.std(losses) / np.sqrt(80)
    assert 0.6 < np.std(losses) / np.sqrt(np.mean(np.square(chances))) < 1.5


def test_the_table_is_reproducible_and_part_of_what_is_said() -> None:
    one, other = (choose_recipe(PROBLEM, neural=False) for _ in range(2))
    assert one.candidates == other.candidates and len(one.candidates) >= 5
    said = next(each for each in one.statements() if each.name == "candidates")
    assert all(each.name in said.text for each in one.candidates) and chosen(one.candidates) == said.parameter("chosen")
    assert said.text.count("(chance alone") == len(one.candidates)
    assert 0 < one.judged_by < one.earlier_rows
    assert str(said) == str(table_words(one.candidates, one.judged_by))


def test_a_table_of_states_needs_no_rivals() -> None:
    mdp = random_tabular(4, 2, seed=3, discount=0.6)
    data = mdp.sample_trajectories(np.full((4, 2), 0.5), 30, 25, np.random.default_rng(0))
    recipe = choose_recipe(aope.Problem(data, mdp.starts(), mdp.policy(np.full((4, 2), 0.5)), FACTS))
    assert recipe.kind is ClassKind.TABLE and recipe.candidates == ()


def test_candidates_by_name() -> None:
    recipe = choose_recipe(PROBLEM, neural=False, candidates=["wide cosines", "tiles"])
    assert [each.name for each in recipe.candidates] == ["wide cosines", "tiles"]
    with pytest.raises(aope.InvalidInput, match="`candidates` must be among 'cosines', .* Got 'wishes'"):
        choose_recipe(PROBLEM, neural=False, candidates=["wishes"])
    with pytest.raises(aope.InvalidInput, match="at least one"):
        choose_recipe(PROBLEM, neural=False, candidates=[])


def interval_ends(recipe: Recipe, problem: aope.Problem = PROBLEM) -> tuple[float, float]:
    found = aope.bound_value(problem, recipe=recipe, radius="azuma", pointwise=False)
    return found.lower, found.upper


@pytest.mark.parametrize("name", ["fewer cosines + trees", "products", "tiles", "narrow cosines"])
def test_every_kind_is_saved_and_gives_the_same_interval(name: str, tmp_path: Path) -> None:
    recipe = choose_recipe(PROBLEM, neural=False, candidates=[name])
    save_recipe(recipe, tmp_path / "choice.npz")
    loaded = load_recipe(tmp_path / "choice.npz")
    assert loaded.candidates == recipe.candidates and loaded.judged_by == recipe.judged_by
    assert repr(loaded.features) == repr(recipe.features) and interval_ends(loaded) == interval_ends(recipe)
    assert [str(each) for each in loaded.statements()] == [str(each) for each in recipe.statements()]


def rough(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """What no smooth function is near."""
    return np.where(np.sin(15 * states[:, 0] + actions) > 0, 0.9, 0.1)


def test_a_given_estimate_is_a_candidate_and_is_chosen_where_it_is_right(tmp_path: Path) -> None:
    """Rewards that are a rough function of (s, a), at discount 0: Q is known, and no other class is near it."""
    data = MDP.sample(np.random.default_rng(0), trajectories=60)
    rewards = rough(data.states, data.actions)
    logged = aope.Transitions(data.states, data.actions, rewards, data.next_states, episodes=data.episodes)
    problem = aope.Problem(logged, MDP.starts, MDP.policy, replace(FACTS, discount=0.0))
    names = ["cosines", "narrow cosines", "fewer cosines + given estimate"]
    recipe = choose_recipe(problem, neural=False, given=rough, candidates=names)
    assert chosen(recipe.candidates) == "fewer cosines + given estimate"
    assert recipe.candidates[2].misfit < 0.1 * recipe.candidates[0].misfit
    wrong = choose_recipe(problem, neural=False, given=lambda s, a: rough(s + 9, a), candidates=names)
    assert wrong.candidates[2].noise > 5 * recipe.candidates[2].noise  # what it leaves is as large as with cosines alone
    assert "made without the later rows" in " ".join(str(each) for each in recipe.statements())
    save_recipe(recipe, tmp_path / "choice.npz")
    with pytest.raises(aope.InvalidFile, match="hand it in as `given`"):
        load_recipe(tmp_path / "choice.npz")
    again = load_recipe(tmp_path / "choice.npz", given=rough)
    assert interval_ends(again, problem) == interval_ends(recipe, problem)
    with pytest.raises(aope.InvalidInput, match="not the one that was given"):
        interval_ends(load_recipe(tmp_path / "choice.npz", given=lambda s, a: -rough(s, a)), problem)


def test_trees_that_are_judged_have_not_seen_the_rows_that_judge() -> None:
    """Other rewards in the last of the early rows change the loss, not the trees that are judged."""
    early = DATA.rows(slice(0, 400))
    moved = early.rewards.copy()
    moved[300:] = 1 - moved[300:]
    shops = []
    for rewards in (early.rewards, moved):
        data = aope.Transitions(early.states, early.actions, rewards, early.next_states, episodes=early.episodes)
        found = candidates.EarlyRows.of(aope.Problem(data, MDP.starts, MDP.policy, FACTS), DATA)
        shops.append(candidates.Workshop(found, candidates.Scaling(np.ones(2), np.ones(3), 1.0), network=False))
    assert shops[0].first <= 300
    judged, final = ([shop.features((Part.TREES,), judging=judging) for shop in shops] for judging in (True, False))
    assert judged[0].digest == judged[1].digest and final[0].digest != final[1].digest


def test_trees_are_near_q_and_never_beyond_the_range_of_values() -> None:
    """On a noisy log of a planted problem: better than its constant, with leaves that average rewards."""
    trees = fitted_trees(EXPERIENCE, 0)
    q = MDP.q(DATA.states, DATA.actions)
    found = trees(EXPERIENCE.points)[:, 0] * trees.scale + trees.center
    assert np.corrcoef(found, q)[0, 1] > 0.8 and np.sqrt(np.mean((found - q) ** 2)) < 0.6 * q.std()
    leaves = trees.child == 0
    assert trees.value[leaves].min() >= 0 and trees.value[leaves].max() <= 2.5 + 1e-9
    assert (
        isinstance(trees, TreeValues) and fitted_trees(EXPERIENCE, 0).digest == trees.digest != fitted_trees(EXPERIENCE, 1).digest
    )


def test_names_of_mixtures_are_different() -> None:
    listed = [*candidates.WITH_A_NETWORK, *candidates.WITHOUT]
    assert len({name_of(each) for each in listed}) == len(listed)


@pytest.mark.parametrize("name", ["network", "fewer cosines + trees"])
def test_a_policy_is_not_asked_where_an_episode_has_ended(name: str) -> None:
    """Its probabilities in columns of a log do not say what it does there."""
    if name == "network":
        pytest.importorskip("torch")
    ended = np.arange(len(DATA)) % 10 == 9
    after = np.where(ended[:, None], 1e3 + DATA.states, DATA.next_states)
    data = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, after, ended, np.arange(len(DATA)) // 10)
    known = np.concatenate([DATA.states, DATA.next_states, MDP.starts.states])
    policy = aope.TabulatedPolicy(known, np.tile([0.3, 0.3, 0.4], (len(known), 1)), 3)
    problem = aope.Problem(data, MDP.starts, policy, FACTS)
    assert [each.name for each in choose_recipe(problem, candidates=[name]).candidates] == [name]
