"""What a first answer chooses: on the earliest rows alone, the same in other units, and saved as plain arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.defaults import ClassKind, Recipe, candidates, choose_recipe, choosing, load_recipe, save_recipe
from accountable_ope.defaults.early_fit import Judge, first_part
from accountable_ope.defaults.overlap import largest_weight
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.problem import Experience
from accountable_ope.statistics import bellman_system

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=20)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1))


def asked(data: aope.Transitions = DATA, **changes: object) -> aope.Problem:
    return aope.Problem(data, MDP.starts, MDP.policy, replace(FACTS, **changes))


def table_problem(seed: int = 0, states: int = 5, rows: int = 30) -> tuple[aope.Problem, float]:
    mdp = random_tabular(states, 2, seed=3, discount=0.6)
    target = np.tile([0.8, 0.2], (states, 1))
    data = mdp.sample_trajectories(np.full((states, 2), 0.5), rows, 25, np.random.default_rng(seed))
    return aope.Problem(data, mdp.starts(), mdp.policy(target), FACTS), mdp.value(target)


def quickly(monkeypatch: pytest.MonkeyPatch, steps: int = 60) -> None:
    monkeypatch.setattr(candidates, "STEPS", steps)
    monkeypatch.setattr(candidates, "DIMENSION", 6)
    monkeypatch.setattr(candidates, "HIDDEN", 8)


def arrays(recipe: Recipe, folder: Path) -> dict[str, np.ndarray]:
    """All that a recipe holds."""
    save_recipe(recipe, folder / "choice.npz")
    with np.load(folder / "choice.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def same(one: Recipe, other: Recipe, folder: Path) -> bool:
    mine, theirs = arrays(one, folder), arrays(other, folder)
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def disturbed(data: aope.Transitions, rows: int, seed: int) -> aope.Transitions:
    """The same first rows, and others after them that have nothing in common with what was there."""
    rng, later = np.random.default_rng(seed), len(data) - rows
    columns = (data.states, data.actions, data.rewards, data.next_states, data.terminated, data.episodes)
    s, a, r, n, t, e = (np.array(each) for each in columns)
    s[rows:], n[rows:] = rng.normal(size=(2, later, 2)) * 50
    a[rows:], r[rows:], t[rows:] = rng.integers(0, 3, later), rng.uniform(size=later), rng.random(later) < 0.1
    e[rows:] = e[rows] + np.cumsum(np.append(0, rng.random(later - 1) < 0.3))  # it begins an episode, as it did
    t[:-1] &= e[:-1] != e[1:]  # an episode that ended does not go on
    return aope.Transitions(s, a, r, n, t, e)


@pytest.mark.parametrize("neural", [False, True])
def test_no_later_row_has_a_part_in_the_choice(neural: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quickly(monkeypatch)
    chosen = choose_recipe(asked(), neural=neural)
    assert any("network" in each.name for each in chosen.candidates) is neural
    for seed in range(1 if neural else 3):
        again = choose_recipe(asked(disturbed(DATA, chosen.earlier_rows, seed)), neural=neural)
        assert same(chosen, again, tmp_path)
    moved = DATA.rewards.copy()
    moved[10] = 1 - moved[10]
    other = aope.Transitions(DATA.states, DATA.actions, moved, DATA.next_states, DATA.terminated, DATA.episodes)
    assert not same(chosen, choose_recipe(asked(other), neural=neural), tmp_path)  # an early row has


def test_the_start_states_of_later_episodes_have_no_part_in_it(tmp_path: Path) -> None:
    """Start states from the log: those of early episodes alone say how good the overlap is."""
    found = []
    for data in (DATA, disturbed(DATA, 200, 5)):
        problem = aope.Problem(data, data.first_states(), MDP.policy, FACTS)
        found.append(choose_recipe(problem, neural=False))
    assert same(*found, tmp_path) and np.isfinite(found[0].ball.overlap)
    unknown = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, DATA.next_states)
    loose = aope.StartStates(MDP.starts.states, fixed=False)
    assert np.isnan(choose_recipe(aope.Problem(unknown, loose, MDP.policy, FACTS), neural=False).ball.overlap)


def test_that_a_later_episode_ends_does_not_move_the_ball() -> None:
    """The range of values is longer where states may be terminal; the ball is of the range that was known."""
    facts = replace(FACTS, reward_range=(0.5, 1.0))
    data = aope.Transitions(DATA.states, DATA.actions, 0.5 + 0.5 * DATA.rewards, DATA.next_states, episodes=DATA.episodes)
    terminated = np.zeros(len(DATA), dtype=bool)
    terminated[-1] = True
    ends = aope.Transitions(data.states, data.actions, data.rewards, data.next_states, terminated, data.episodes)
    plain, ending = (aope.Problem(each, MDP.starts, MDP.policy, facts) for each in (data, ends))
    assert ending.ranges.span > plain.ranges.span
    one, other = (choose_recipe(each, neural=False) for each in (plain, ending))
    assert one.norm_bound == other.norm_bound == pytest.approx(0.1 * plain.ranges.span)
    assert other.later(ending).terminates and not one.later(plain).terminates


@pytest.mark.parametrize(("neural", "close"), [(False, 1e-7), (True, 1e-3)])
def test_units_of_a_state_do_not_matter(neural: bool, close: float, monkeypatch: pytest.MonkeyPatch) -> None:
    quickly(monkeypatch)
    units = np.array([1000.0, 1.0])
    policy = aope.DiscretePolicy(lambda s: MDP.policy.probabilities(s / units), MDP.policy.action_vectors)
    data = aope.Transitions(DATA.states * units, DATA.actions, DATA.rewards, DATA.next_states * units, episodes=DATA.episodes)
    scaled = aope.Problem(data, aope.StartStates(MDP.starts.states * units, MDP.starts.weights), policy, FACTS)
    ends = []
    for problem in (asked(), scaled):
        interval = aope.bound_value(problem, recipe=choose_recipe(problem, neural=neural), pointwise=False)
        ends.append((interval.lower, interval.upper))
    np.testing.assert_allclose(*ends, rtol=0, atol=close * (ends[0][1] - ends[0][0]))


def test_a_table_where_states_are_few() -> None:
    problem, _ = table_problem()
    recipe = choose_recipe(problem)
    assert recipe.kind is ClassKind.TABLE and isinstance(recipe.kernel, aope.Tabular) and recipe.ball is None
    assert recipe.features.dimension == 10 and recipe.norm_bound is None
    few, _ = table_problem(states=12, rows=20)  # 24 cells and 100 early rows
    assert choose_recipe(few, neural=False).kind is ClassKind.FOURIER


def test_the_fit_is_the_minimizer_and_its_ridge_was_judged_on_rows_held_out() -> None:
    """A class that holds Q: the fit is near it, and with noise that rows hold out sees, the ridge is larger."""
    features, kernel = MDP.features(), aope.Gaussian(1.0)
    experience = Experience(DATA, MDP.starts, MDP.policy, 0.6)
    system = bellman_system(experience, features)
    judge = Judge.of(kernel, system.points, first_part(DATA))
    found = judge.held_out(system)
    assert abs(system.objective @ judge.fit(system, found.ridge) - MDP.value) < 0.1
    noisy = replace(system, target=system.target + np.random.default_rng(0).normal(size=len(DATA)) * 3)
    assert judge.held_out(noisy).ridge >= found.ridge


def test_the_largest_weight_is_about_one_where_the_policy_does_what_was_logged_and_grows_with_the_distance() -> None:
    mdp = random_tabular(4, 2, seed=1, discount=0.8)
    data = mdp.sample_iid(4000, np.random.default_rng(0))
    sizes = []
    for share in (0.5, 0.99):
        policy = mdp.policy(np.tile([share, 1 - share], (4, 1)))
        features = aope.TabularFeatures.grid(np.arange(4.0)[:, None], policy.action_vectors)
        system = bellman_system(Experience(data, mdp.starts(), policy, 0.8), features)
        sizes.append(largest_weight(system, aope.Tabular()))
    assert 0.5 < sizes[0] < 1.7 < sizes[1]


def test_the_ball_is_enlarged_where_overlap_is_poor(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = choose_recipe(asked(), neural=False)
    assert plain.ball.enlarged == 1 and plain.norm_bound == pytest.approx(0.25)
    monkeypatch.setattr(choosing, "POOR_OVERLAP", plain.ball.overlap / 2)
    wider = choose_recipe(asked(), neural=False)
    assert wider.ball.enlarged == pytest.approx(2) and wider.norm_bound == pytest.approx(0.5)
    assert "overlap is poor" in str(wider.statements()[1]) and "overlap" not in str(plain.statements()[1])


@pytest.mark.parametrize("kind", ["table", "cosines", "network"])
def test_a_saved_choice_gives_the_same_interval(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quickly(monkeypatch, steps=20)
    problem = table_problem()[0] if kind == "table" else asked()
    recipe = choose_recipe(problem, neural=kind == "network", candidates=None if kind == "table" else [kind])
    save_recipe(recipe, tmp_path / "choice.npz")
    loaded = load_recipe(tmp_path / "choice.npz")
    assert same(recipe, loaded, tmp_path) and [str(each) for each in loaded.statements()] == [str(e) for e in recipe.statements()]
    one, other = (aope.bound_value(problem, recipe=each, radius="azuma") for each in (recipe, loaded))
    assert (one.lower, one.upper) == (other.lower, other.upper)


def test_a_file_that_is_no_choice_is_one_sentence(tmp_path: Path) -> None:
    save_recipe(choose_recipe(asked(), neural=False), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as archive:
        good = {name: archive[name] for name in archive.files}
    changes: dict[str, dict[str, np.ndarray]] = {
        "coefficients": {"theta": good["theta"][1:]},
        "kind": {"kind": np.array("GUESS")},
        "features": {"features": np.array("wishes")},
        "bandwidth": {"bandwidth": -good["bandwidth"]},
        "directions": {"directions": good["directions"][:3]},
        "ball": {"ball": good["ball"][:2]},
        "what it was made for": {"asked": good["asked"][:2]},
        "policy": {"policy": good["policy"][0]},
    }
    for change in changes.values():
        np.savez(tmp_path / "bad.npz", **(good | change))
        with pytest.raises(aope.InvalidFile, match="is not a saved choice"):
            load_recipe(tmp_path / "bad.npz")
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(aope.InvalidFile, match="is not a saved choice"):
        load_recipe(tmp_path / "text.npz")


def inverted(states: np.ndarray) -> np.ndarray:
    return np.column_stack([each.weights for each in MDP.policy.branches(states)])[:, ::-1]


def test_a_choice_is_refused_where_something_else_is_asked(tmp_path: Path) -> None:
    save_recipe(choose_recipe(asked(), neural=False, candidates=["cosines"]), tmp_path / "choice.npz")
    recipe = load_recipe(tmp_path / "choice.npz")
    assert len(recipe.later(asked()).data) == len(DATA) - recipe.earlier_rows
    for change, sentence in (
        ({"discount": 0.9}, r"made for discount 0.6, not 0.9: a choice is of one question"),
        ({"reward_range": (0, 2)}, r"made for rewards in \[0, 1\], not in \[0, 2\]"),
        ({"value_range": (0.0, 2.0)}, r"made for values in \[0, 2.5\], not in \[0, 2\]"),
    ):
        with pytest.raises(aope.InvalidInput, match=sentence):
            aope.bound_value(asked(**change), recipe=recipe)
    other = aope.DiscretePolicy(inverted, MDP.policy.action_vectors)
    with pytest.raises(aope.InvalidInput, match="made for another target policy"):
        aope.bound_value(aope.Problem(DATA, MDP.starts, other, FACTS), recipe=recipe)
    same_one = aope.DiscretePolicy(lambda states: inverted(states)[:, ::-1], MDP.policy.action_vectors)
    assert recipe.later(aope.Problem(DATA, MDP.starts, same_one, FACTS)) is not None


def test_a_choice_of_single_steps_is_of_its_policy_too() -> None:
    """They have no next states at which policies could be compared; but how far from its fit Q may be follows what they do."""
    rng, n = np.random.default_rng(0), 400
    states, actions = rng.normal(size=(n, 1)), (rng.uniform(size=n) < 0.1).astype(np.int64)
    rewards = 0.5 + 0.2 * np.tanh(states[:, 0]) * (actions == 0)
    data = aope.Transitions(states, actions, rewards, states, np.ones(n, bool), np.arange(n))

    def always(action: int) -> aope.Problem:
        policy = aope.DiscretePolicy(lambda at: np.tile(np.eye(2)[action], (len(at), 1)), actions=2)
        return aope.Problem(data, data.first_states(), policy, aope.Assumptions(discount=0.0, reward_range=(0, 1)))

    recipe = choose_recipe(always(0), neural=False, candidates=["cosines"])
    assert recipe.later(always(0)) is not None
    with pytest.raises(aope.InvalidInput, match="made for another target policy"):
        aope.bound_value(always(1), recipe=recipe)


def test_a_choice_is_of_its_start_states_where_these_were_fixed_before_the_data(tmp_path: Path) -> None:
    """A ball is enlarged where rows say little of the start states, and a table lists them."""

    def starting(states: np.ndarray, *, fixed: bool = True) -> aope.Problem:
        return aope.Problem(DATA, aope.StartStates(states, fixed=fixed), MDP.policy, FACTS)

    near, far = MDP.starts.states, MDP.starts.states + 4.0
    found = {}
    for name, states in (("near", near), ("far", far)):
        save_recipe(choose_recipe(starting(states), neural=False, candidates=["cosines"]), tmp_path / f"{name}.npz")
        found[name] = load_recipe(tmp_path / f"{name}.npz")
    assert found["far"].ball.overlap > 2 * found["near"].ball.overlap  # what the choice has of them
    assert found["near"].later(starting(near.copy())) is not None
    for recipe, problem in ((found["near"], starting(far)), (found["far"], starting(near))):
        with pytest.raises(aope.InvalidInput, match="made for other start states"):
            aope.bound_value(problem, recipe=recipe)
    logged = choose_recipe(starting(near, fixed=False), neural=False, candidates=["cosines"])
    assert logged.made_for.starts == "" and logged.later(starting(far, fixed=False)) is not None
    other = choose_recipe(starting(far, fixed=False), neural=False, candidates=["cosines"])
    assert same(logged, other, tmp_path)  # states that later rows may have shown have no part in it
    with pytest.raises(aope.InvalidInput, match="made for other start states"):
        logged.later(starting(near))


def test_what_cannot_be_chosen_is_said() -> None:
    with pytest.raises(aope.InvalidInput, match="`norm_bound` is of a class that was given"):
        choose_recipe(asked(norm_bound=1.0))
    with pytest.raises(aope.InvalidInput, match="too few to choose a class on"):
        choose_recipe(asked(DATA.rows(slice(0, 90))))
    with pytest.raises(aope.InvalidInput, match="`within` must be"):
        choose_recipe(asked(), within=-0.1)
    constant = aope.Transitions(DATA.states, DATA.actions, np.ones(len(DATA)), DATA.next_states)
    with pytest.raises(aope.InvalidInput, match="range of values must be longer than 0"):
        choose_recipe(aope.Problem(constant, MDP.starts, MDP.policy, replace(FACTS, reward_range=(1, 1))))
    recipe = choose_recipe(asked(), neural=False)
    with pytest.raises(aope.InvalidInput, match="not the first ones of these data"):
        recipe.later(asked(DATA.rows(slice(50, None))))


def test_stages_are_named_in_their_order() -> None:
    seen: list[str] = []

    def stage(name: str) -> None:
        seen.append(name)

    aope.bound_value(asked(), recipe=choose_recipe(asked(), neural=False, stages=stage), radius="azuma", stages=stage)
    assert seen == ["splitting", "comparing classes", "fitting", "kernel statistic", "bounding"]
