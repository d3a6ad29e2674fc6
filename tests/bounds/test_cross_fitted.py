"""The cross-fitted interval: against explicit formulas, where the answer is exact, by invariances and measured coverage."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, t

import accountable_ope as aope
from accountable_ope.bounds.cross_design import build
from accountable_ope.bounds.cross_fitting import QFit, cross_fit, fit_q_by_evidence, fit_weights
from accountable_ope.bounds.landmarks import Landmarks, default_kernel
from accountable_ope.classes.function_class import as_class
from accountable_ope.environments import PlantedMDP, bandit, chain, clinic, random_tabular
from accountable_ope.environments.planted import PlantedFeatures
from accountable_ope.report.companions import cross_fitted_document

FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), reward_noise=False)
MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=24, length=10)
PROBLEM = aope.Problem(DATA, MDP.starts, MDP.policy, FACTS)


def names(statements) -> set[str]:
    return {each.name for each in statements}


def asked(data=DATA, starts=MDP.starts, policy=MDP.policy, facts=FACTS, **options):
    return aope.cross_fitted_interval(aope.Problem(data, starts, policy, facts), **options)


# Against explicit formulas.


def design_of(problem=PROBLEM, features=None, most=8):
    basis = Landmarks.of(aope.Gaussian(1.5), problem.experience.points, most)
    return build(problem, None if features is None else as_class(features), basis)


def test_columns_are_those_of_the_definition():
    """One row at a time: coordinates have the kernel as their inner product at landmarks, and L = W - discount E W'."""
    built = design_of(features=MDP.features())
    design, kernel, u = built.design, built.basis.kernel, built.basis.points
    psi = built.basis(u)
    assert psi @ psi.T == pytest.approx(aope.kernels.block(kernel, u, u), abs=1e-4)
    phi, scale = MDP.features(), built.scale
    assert np.sqrt((design.here[:, :3] ** 2).mean(axis=0)) == pytest.approx(np.ones(3))

    def row(point):
        return np.concatenate([phi(point[None])[0] / scale, [1.0], built.basis(point[None])[0]])

    for i in (0, 17, 100):
        after = np.zeros(design.here.shape[1])
        for branch in MDP.policy.branches(DATA.next_states[i : i + 1]):
            after += branch.weights[0] * row(np.concatenate([DATA.next_states[i], branch.actions[0]]))
        assert design.here[i] == pytest.approx(row(PROBLEM.experience.points[i]))
        assert design.steps[i] == pytest.approx(design.here[i] - 0.6 * after)
    theta = np.arange(float(design.here.shape[1]))
    assert built.q(theta)(PROBLEM.experience.points) == pytest.approx(design.here @ theta)


def test_the_fits_minimize_what_they_say():
    """With P, the projection on the columns of W, written out; sizes are those at which MacKay's updates stand still."""
    design = design_of(features=MDP.features()).design
    rows = np.arange(len(DATA))
    W, L, v, n = design.here, design.steps, design.target, len(DATA)
    q = fit_q_by_evidence(design.sums(rows), design)
    ridge = np.zeros(W.shape[1])
    for block, size in zip(design.blocks, q.sizes, strict=True):
        ridge[block] = q.noise / size
    P = W @ np.linalg.pinv(W)
    assert q.theta == pytest.approx(np.linalg.solve(L.T @ P @ L + np.diag(ridge), L.T @ P @ v), rel=1e-2, abs=1e-3)
    assert q.noise == pytest.approx(np.mean((v - L @ q.theta) ** 2), rel=1e-6)

    fixed = QFit(q.theta, (0.3, 0.2), 0.1)
    omega = fit_weights(design.sums(rows), design, fixed)
    prior = np.full(W.shape[1], 0.2)
    prior[:3], prior[3] = 0.3, 1e3 * 0.3

    def loss(omega):
        missed = design.objective - L.T @ (W @ omega) / n
        return missed @ (prior * missed) + 0.1 / n * np.mean((W @ omega) ** 2)

    rng = np.random.default_rng(0)
    assert all(loss(omega) <= loss(omega + 1e-3 * rng.normal(size=len(omega))) for _ in range(50))


def test_out_of_fold_means_out_of_fold():
    """Rewards of one fold change neither theta nor weights of its own rows, and those of all others."""
    design, folds = design_of().design, np.repeat(np.arange(4), len(DATA) // 4)
    one = cross_fit(design, folds)
    changed = design.target + 5.0 * (folds == 2)
    other = cross_fit(type(design)(design.here, design.steps, changed, design.start, design.objective, design.constant), folds)
    inside = folds == 2
    assert other.weights[inside] == pytest.approx(one.weights[inside], rel=1e-9)
    assert (other.weighted - one.weighted)[inside] == pytest.approx(5.0 * one.weights[inside], rel=1e-9)
    assert not np.allclose(other.weighted[~inside], one.weighted[~inside])


def test_an_interval_is_its_parts():
    found = asked(features=MDP.features(), folds=4, landmarks=20)
    assert found.lower == pytest.approx(found.estimate - found.width / 2)
    assert found.normalized == pytest.approx((0.4 * found.lower, 0.4 * found.upper))
    assert found.episodes == 24 and not found.blocks and found.count == 240 and found.start_error == 0
    narrower = asked(features=MDP.features(), folds=4, landmarks=20, delta=0.5)
    assert found.lower < narrower.lower < narrower.upper < found.upper and narrower.estimate == found.estimate
    assert found.guarantee is aope.Guarantee.ASYMPTOTIC and found.estimate in found
    assert 0 < found.largest_share < 1 and 1 < found.effective_sample_size <= found.count


def test_as_a_document():
    document = json.loads(json.dumps(cross_fitted_document(asked(landmarks=10)), allow_nan=False))
    assert document["guarantee"] == "asymptotic" and document["episodes"] == 24 and document["assumed"]


# Where the answer is exact.


def every_step_of_a_chain(length, terminal=False):
    """A deterministic chain, every pair (s, a) logged equally often; nothing is left to chance."""
    states, actions = np.repeat(np.arange(length), 2), np.tile([0, 1], length)
    after = np.where(actions == 1, np.minimum(states + 1, length - 1), np.maximum(states - 1, 0))
    ended = terminal & (states == length - 1) & (actions == 1)
    rewards = (states == length - 1).astype(float)
    n = 20
    return aope.Transitions(
        np.tile(states, n).astype(float)[:, None],
        np.tile(actions, n),
        np.tile(rewards, n),
        np.tile(after, n).astype(float)[:, None],
        np.tile(ended, n),
        np.repeat(np.arange(n), 2 * length),
    )


@pytest.mark.parametrize(("terminal", "discount"), [(False, 0.8), (True, 0.8), (True, 1.0), (False, 0.0)])
def test_a_deterministic_process_is_known_exactly(terminal, discount):
    data, forward = every_step_of_a_chain(4, terminal), np.tile([0.3, 0.7], (4, 1))
    transition, rewards = np.zeros((4, 4)), np.array([0, 0, 0, 1.0])
    for s in range(4):
        transition[s, max(s - 1, 0)] += 0.3
        if not (terminal and s == 3):
            transition[s, min(s + 1, 3)] += 0.7
    exact = np.linalg.solve(np.eye(4) - discount * transition, rewards)
    facts = aope.Assumptions(discount=discount, reward_range=(0, 1), value_range=(0, 20) if discount == 1 else None)
    policy = aope.DiscretePolicy(lambda states: forward[states[:, 0].astype(int)], actions=2)
    for start in (0, 2):
        found = asked(data, aope.StartStates([[float(start)]]), policy, facts)
        assert found.estimate == pytest.approx(exact[start], rel=1e-4)
        assert found.width < 1e-3 * max(1.0, exact[start])


def test_without_any_reward_the_value_is_nothing():
    none = aope.Transitions(DATA.states, DATA.actions, 0 * DATA.rewards, DATA.next_states, episodes=DATA.episodes)
    found = asked(none, landmarks=10)
    assert (found.estimate, found.largest_share) == (0.0, 0.0) and 0.0 in found


# Invariances.


@settings(max_examples=6)
@given(st.floats(0.001, 1000))
def test_the_unit_of_rewards_does_not_matter(unit):
    scaled = aope.Transitions(DATA.states, DATA.actions, unit * DATA.rewards, DATA.next_states, episodes=DATA.episodes)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, unit))
    one, other = (asked(data, facts=f, features=MDP.features(), landmarks=20) for data, f in ((DATA, FACTS), (scaled, facts)))
    assert (other.lower, other.upper) == pytest.approx((unit * one.lower, unit * one.upper), rel=1e-5)
    assert other.largest_share == pytest.approx(one.largest_share, rel=1e-3)


def test_units_of_states_and_features_do_not_matter():
    class Scaled:
        dimension, intercept = 3, True

        def __call__(self, points):
            return MDP.features()(points) * np.array([1.0, 100.0, 0.01])

    plain, scaled = asked(features=MDP.features()), asked(features=Scaled())
    assert (scaled.lower, scaled.upper) == pytest.approx((plain.lower, plain.upper), rel=1e-5)

    policy = aope.DiscretePolicy(lambda states: MDP.policy.probabilities(states / 10), MDP.policy.action_vectors)
    tens = aope.Transitions(10 * DATA.states, DATA.actions, DATA.rewards, 10 * DATA.next_states, episodes=DATA.episodes)
    starts = aope.StartStates(10 * MDP.starts.states, MDP.starts.weights)
    alone, larger = asked(), asked(tens, starts, policy)
    assert (larger.lower, larger.upper) == pytest.approx((alone.lower, alone.upper), rel=1e-5)


def test_rows_of_episodes_may_be_interleaved_and_episodes_swapped():
    plain = asked(features=MDP.features())
    time = np.arange(len(DATA)) % 10
    mixed = asked(DATA.rows(np.lexsort((np.arange(len(DATA)), time))), features=MDP.features())
    assert (mixed.lower, mixed.upper) == pytest.approx((plain.lower, plain.upper), rel=1e-6)
    # Other folds: another estimate, by less than chance.
    back = asked(DATA.rows(np.argsort(-np.asarray(DATA.episodes), kind="stable")), features=MDP.features())
    assert abs(back.estimate - plain.estimate) < 0.5 * plain.standard_error
    assert back.width == pytest.approx(plain.width, rel=0.3)


def test_precomputed_features_are_the_feature_map():
    columns = as_class(MDP.features()).columns(PROBLEM.experience)
    given = aope.Precomputed(columns.here, columns.after, columns.start)
    one, other = asked(features=MDP.features()), asked(features=given)
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=1e-9)


# Kinds of problems.


def test_kernels_that_are_not_given():
    assert repr(default_kernel(PROBLEM.experience, 200)).startswith("Gaussian(bandwidth=[")
    mdp = chain(3, discount=0.5)
    data = mdp.sample_trajectories(np.full((3, 2), 0.5), 10, 30, np.random.default_rng(0))
    problem = aope.Problem(data, mdp.starts(), mdp.policy(np.full((3, 2), 0.5)), aope.Assumptions(0.5, (0, 1)))
    assert default_kernel(problem.experience, 200) == aope.Tabular()
    assert isinstance(default_kernel(problem.experience, 5), aope.Gaussian)


@pytest.mark.parametrize("episodes", [None, "three"])
def test_blocks_of_rows_where_episodes_are_unknown_or_few(episodes):
    labels = None if episodes is None else np.arange(len(DATA)) // 80
    data = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, DATA.next_states, episodes=labels)
    found = asked(data, features=MDP.features())
    assert found.blocks and found.episodes == 50
    assert names(found.doubts) >= {"blocks"} and ("few-episodes" in names(found.doubts)) == (episodes is not None)
    assert "blocks of about 5 rows" in next(str(each) for each in found.premises if each.name == "episodes")
    plain = asked(features=MDP.features())
    assert abs(found.estimate - plain.estimate) < plain.width


def test_start_states_that_are_a_sample_add_their_error():
    own = asked(starts=DATA.first_states(), features=MDP.features())
    exact = asked(starts=aope.StartStates(DATA.first_states().states), features=MDP.features())
    assert own.start_error > 0 == exact.start_error
    assert own.estimate == pytest.approx(exact.estimate) and own.standard_error > exact.standard_error
    assert {"sampled-starts"} == names(own.premises) - names(exact.premises)
    other = asked(starts=aope.StartStates(DATA.first_states().states, exact=False), features=MDP.features())
    assert other.start_error == pytest.approx(own.start_error)


def test_policies_that_draw_or_do_one_thing():
    vectors = MDP.policy.action_vectors[DATA.actions]
    data = aope.Transitions(DATA.states, vectors, DATA.rewards, DATA.next_states, episodes=DATA.episodes)

    def drawn(states, rng):
        chances = MDP.policy.probabilities(states)
        picks = (rng.uniform(size=(len(states), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
        return MDP.policy.action_vectors[picks]

    found = asked(data, policy=aope.SampledPolicy(drawn, draws=40), features=MDP.features())
    exact = asked(features=MDP.features())
    assert abs(found.estimate - exact.estimate) < exact.width and found.start_error > 0
    assert "drawn-actions" in names(found.premises)
    always = aope.DeterministicPolicy(lambda states: np.tile(MDP.policy.action_vectors[0], (len(states), 1)))
    assert np.isfinite(asked(data, policy=always).estimate)


def test_pairs_that_were_never_logged_are_doubted():
    data = every_step_of_a_chain(4)
    policy = aope.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), actions=2)
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1))
    assert "overlap" not in names(asked(data, aope.StartStates([[0.0]]), policy, facts).doubts)
    part = data.rows(np.flatnonzero(~((data.states[:, 0] == 2) & (data.actions == 1))))
    [found] = [each for each in asked(part, aope.StartStates([[0.0]]), policy, facts).doubts if each.name == "overlap"]
    assert 0.05 < found.parameter("share") < 0.5


def test_one_row_that_decides_is_doubted():
    rewards = np.zeros(len(DATA))
    rewards[100] = 1.0
    data = aope.Transitions(DATA.states, DATA.actions, rewards, DATA.next_states, episodes=DATA.episodes)
    found = asked(data, features=MDP.features())
    assert found.largest_share > 0.1 and "one-row" in names(found.doubts)


def test_few_episodes_are_doubted():
    few = DATA.rows(np.asarray(DATA.episodes) < 12)
    assert "few-episodes" in names(asked(few).doubts) and "few-episodes" not in names(asked().doubts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "`folds` must be a whole number of at least 2"),
        ({"folds": 100}, "At least 400 transitions are needed for 100 folds. Got 240."),
        ({"landmarks": 0}, "`landmarks` must be a whole number of at least 1"),
        ({"delta": 1.5}, r"`delta` must be in \(0, 1\)"),
        ({"kernel": "gaussian"}, "`kernel` must be a kernel"),
        ({"features": aope.KernelSections(aope.Gaussian(1.0), 5)}, "few coefficients. Got KernelSections"),
        ({"features": aope.RandomFourier(130)}, "`features` has 130 coefficients, too many for 240 transitions"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options, message):
    with pytest.raises(aope.InvalidInput, match=message):
        asked(**options)


# Coverage.


@dataclass(frozen=True)
class Family:
    """Draws of (problem, features), and the truth."""

    draw: object
    truth: float


class Coarse:
    """Five random columns over 12 x 3 pairs, which do not contain Q."""

    dimension, intercept = 5, True
    columns = np.random.default_rng(2).normal(size=(36, 5))

    def __call__(self, points):
        return self.columns[points[:, 0].astype(int) * 3 + np.argmax(points[:, 1:], axis=1)]


def planted(total, given):
    mdp = PlantedMDP(seed=1, features=total)
    features = PlantedFeatures(mdp.frequencies[:given], mdp.phases[:given], True)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), reward_noise=False)

    def draw(rng):
        return aope.Problem(mdp.sample(rng, trajectories=12, length=50), mdp.starts, mdp.policy, facts), features

    return Family(draw, mdp.value)


def tabular(own_starts=False):
    mdp = random_tabular(12, 3, seed=4, discount=0.9, bernoulli=True)
    target = np.random.default_rng(1).dirichlet(np.ones(3), size=12)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))

    def draw(rng):
        data = mdp.sample_trajectories(np.full((12, 3), 1 / 3), 60, 10, rng)
        starts = data.first_states() if own_starts else mdp.starts()
        return aope.Problem(data, starts, mdp.policy(target), facts), Coarse()

    return Family(draw, mdp.value(target))


def ending():
    """A small clinic at discount 1, where episodes end and only the end pays; no features at all."""
    mdp = clinic()
    target = np.random.default_rng(1).dirichlet(np.ones(3), size=6)
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)

    def draw(rng):
        data = mdp.sample_trajectories(np.full((6, 3), 1 / 3), 80, 200, rng)
        return aope.Problem(data, mdp.starts(), mdp.policy(target), facts), None

    return Family(draw, mdp.value(target))


def contextual():
    mdp = bandit(6, 3, 0)
    target = np.random.default_rng(1).dirichlet(np.ones(3), size=6)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))

    def draw(rng):
        return aope.Problem(mdp.sample_iid(400, rng), mdp.starts(), mdp.policy(target), facts), None

    return Family(draw, mdp.value(target))


FAMILIES = {
    "planted": lambda: planted(10, 10),
    "10 of 14": lambda: planted(14, 10),
    "coarse": tabular,
    "coarse, own starts": lambda: tabular(own_starts=True),
    "ending": ending,
    "contextual bandit": contextual,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_coverage_is_what_it_says(name):
    """At 90% and, so that an interval that is far too wide fails too, at 50%; in 200 small logs. Nominal up to 3%, and chance."""
    family, logs, covered, half = FAMILIES[name](), 200, 0, 0
    for seed in range(logs):
        problem, features = family.draw(np.random.default_rng([3, seed]))
        found = aope.cross_fitted_interval(problem, features=features, landmarks=40)
        covered += family.truth in found
        # As at delta = .5 where the error by episodes is the larger one, and narrower elsewhere.
        shorter = t.ppf(0.75, found.episodes - 5) / t.ppf(0.95, found.episodes - 5)
        half += abs(found.estimate - family.truth) <= shorter * (found.unclipped[1] - found.estimate)
    assert binom.cdf(covered, logs, 0.87) > 1e-3, covered / logs
    assert binom.cdf(half, logs, 0.44) > 1e-3 and binom.sf(half, logs, 0.64) > 1e-3, half / logs


@pytest.mark.slow
def test_the_sandwich_misses_where_features_are_too_few():
    family = FAMILIES["10 of 14"]()
    hits = [0, 0]
    for seed in range(30):
        problem, features = family.draw(np.random.default_rng([4, seed]))
        hits[0] += family.truth in aope.bounds.sandwich_interval(problem, features=features, kernel=aope.Gaussian(1.0))
        hits[1] += family.truth in aope.cross_fitted_interval(problem, features=features, landmarks=40)
    assert hits[0] <= 3 and hits[1] >= 22, hits
