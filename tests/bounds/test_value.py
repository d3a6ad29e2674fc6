"""bound_value by behavior: invariants of the theory, statuses, unions, and errors before any work."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, clinic, random_tabular, scalar_regulator
from accountable_ope.problem.problem import Experience
from accountable_ope.problem.statements import texts
from accountable_ope.radii.registry import LADDER

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=8, length=40)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0.0, 1.0), norm_bound=1.5 * MDP.norm, reward_noise=False)
KERNEL = aope.Gaussian(1.0)
FEW = settings(max_examples=15, deadline=None)


TOLERANCE = {"hoeffding": 1e-7, "azuma": 1e-7, "certified": 1e-4}
"""How exactly ends are computed, as a share of the width: the program of a constant radius is solved to rounding; the rates of a
joint constraint are searched to within a few percent, which moves an end by up to 6e-5 (over 119 norm bounds and 119 deltas)."""


def inside(narrow, wide, radius):
    """Whether one interval lies within another, up to what the solver leaves open."""
    off = TOLERANCE[radius] * max(1.0, wide.unclipped[1] - wide.unclipped[0])
    return wide.unclipped[0] <= narrow.unclipped[0] + off and narrow.unclipped[1] <= wide.unclipped[1] + off


def bound(data=DATA, facts=FACTS, features=None, starts=MDP.starts, policy=MDP.policy, radius="azuma", **options):
    chosen = MDP.features() if features is None else features
    return aope.bound_value(
        aope.Problem(data, starts, policy, facts), kernel=options.pop("kernel", KERNEL), features=chosen, radius=radius, **options
    )


def changed(data, **fields):
    names = ("states", "actions", "rewards", "next_states", "terminated", "episodes")
    return aope.Transitions(**{name: getattr(data, name) for name in names} | fields)


def test_covers_the_truth_and_says_everything():
    interval = bound()
    assert interval.status is aope.Status.OK
    assert interval.lower <= MDP.value <= interval.upper
    assert interval.normalized == pytest.approx((0.4 * interval.lower, 0.4 * interval.upper))
    assert interval.guarantee is aope.Guarantee.FINITE_SAMPLE
    default = aope.bound_value(aope.Problem(DATA, MDP.starts, MDP.policy, FACTS), kernel=KERNEL, features=MDP.features())
    assert default.radius.name == "certified"
    assert interval.lower < default.lower <= MDP.value <= default.upper < interval.upper
    assert interval.assumptions is FACTS
    assert interval.check()
    text = " ".join(texts(interval.premises))
    for word in (
        "order of generation",
        "[0, 1]",
        "function of (s, a)",
        "[0, 2.5]",
        "No state is terminal",
        "||Q|| <=",
        "Gaussian",
    ):
        assert word in text


def test_default_equals_composition_of_the_public_steps():
    system = aope.statistics.bellman_system(Experience(DATA, MDP.starts, MDP.policy, 0.6), MDP.features())
    statistic = aope.statistics.kernel_statistic(system, KERNEL)
    level = (0.6 * 2.5) ** 2 * math.log(20) / (2 * len(DATA))
    feasible = aope.programs.FeasibleSet(aope.programs.decompose(statistic.v_loss(), system.penalized), level, FACTS.norm_bound)
    interval = bound()
    assert interval.radius.level == pytest.approx(level)
    assert (
        interval.certificates[0].upper.constraints[-1].quadratic(interval.certificates[0].upper.point) <= 1.25**2
    )  # box inactive
    assert interval.upper == pytest.approx(aope.programs.extreme_value(system.objective, feasible).bound, rel=1e-6)
    assert interval.lower == pytest.approx(-aope.programs.extreme_value(-system.objective, feasible).bound, rel=1e-6)


@FEW
@given(st.randoms(use_true_random=False))
def test_row_order_does_not_matter(random):
    order = list(range(len(DATA)))
    random.shuffle(order)
    shuffled = aope.Transitions(DATA.states[order], DATA.actions[order], DATA.rewards[order], DATA.next_states[order])
    one, other = bound(), bound(shuffled)
    assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-8)


@FEW
@given(st.floats(0.001, 0.9), st.floats(0.001, 0.9), st.sampled_from(LADDER))
def test_nested_in_delta(one, other, radius):
    small, large = sorted((one, other))
    wide, narrow = bound(delta=small, radius=radius), bound(delta=large, radius=radius)
    assert inside(narrow, wide, radius)


@FEW
@given(st.floats(1.0, 30.0), st.floats(1.0, 30.0), st.sampled_from(LADDER))
def test_nested_in_the_norm_bound(one, other, radius):
    small, large = (dataclasses.replace(FACTS, norm_bound=MDP.norm * x) for x in sorted((one, other)))
    assert inside(bound(facts=small, radius=radius), bound(facts=large, radius=radius), radius)


def test_nested_in_the_norm_bound_where_the_best_rate_is_at_a_kink():
    small, large = (dataclasses.replace(FACTS, norm_bound=MDP.norm * x) for x in (11.5, 12.0))
    assert inside(bound(facts=small, radius="certified"), bound(facts=large, radius="certified"), "certified")


def test_nested_in_the_radius_and_in_the_class():
    wide, narrow = bound(radius="hoeffding"), bound(radius="azuma")
    assert wide.lower <= narrow.lower and narrow.upper <= wide.upper
    unbounded = bound(facts=dataclasses.replace(FACTS, norm_bound=None))
    assert unbounded.lower <= narrow.lower + 1e-9 and narrow.upper <= unbounded.upper + 1e-9


@FEW
@given(st.sampled_from([1e-6, 1e-3, 7.0, 1e6]), st.sampled_from(LADDER))
def test_scaling_rewards_scales_the_interval(scale, radius):
    facts = dataclasses.replace(FACTS, reward_range=(0.0, scale), norm_bound=FACTS.norm_bound * scale)
    one, other = bound(radius=radius), bound(changed(DATA, rewards=scale * DATA.rewards), facts, radius=radius)
    assert (other.lower / scale, other.upper / scale) == pytest.approx((one.lower, one.upper), rel=10 * TOLERANCE[radius])
    assert other.check()


@FEW
@given(st.floats(-50, 50))
def test_shifting_the_reward_range_shifts_the_interval(shift):
    """The unpenalized constant takes the shift up, so the interval moves by shift / (1 - discount)."""
    facts = dataclasses.replace(FACTS, reward_range=(shift, 1 + shift))
    one, other = bound(), bound(changed(DATA, rewards=np.clip(DATA.rewards + shift, shift, 1 + shift)), facts)
    moved = shift / 0.4
    assert (other.lower - moved, other.upper - moved) == pytest.approx((one.lower, one.upper), abs=1e-5)


def test_weaker_assumptions_never_narrow():
    base = bound()
    for weaker in (
        dataclasses.replace(FACTS, reward_noise=True),
        dataclasses.replace(FACTS, reward_range=(-0.5, 1.5)),
        dataclasses.replace(FACTS, norm_bound=None),
    ):
        wide = bound(facts=weaker)
        assert wide.lower <= base.lower + 1e-9 and base.upper <= wide.upper + 1e-9


def test_union_of_classes_is_the_hull_and_drops_inconsistent_ones():
    classes = [MDP.features(), aope.RandomFourier(4, 0.5, seed=9)]
    facts = dataclasses.replace(FACTS, norm_bound=3.0)
    both = bound(facts=facts, features=classes)
    alone = [bound(facts=facts, features=one) for one in classes]
    assert both.unclipped[0] == pytest.approx(min(x.unclipped[0] for x in alone), abs=1e-7)
    assert both.unclipped[1] == pytest.approx(max(x.unclipped[1] for x in alone), abs=1e-7)
    zero = aope.Precomputed(np.zeros((len(DATA), 1)), np.zeros((len(DATA), 1)), np.zeros((len(MDP.starts), 1)), intercept=False)
    with_empty = bound(features=[MDP.features(), zero])
    assert not with_empty.certificates[1].consistent
    assert (with_empty.lower, with_empty.upper) == pytest.approx((bound().lower, bound().upper), rel=1e-6)
    assert with_empty.check()


def test_sampled_starts_cost_their_own_radius():
    sample = aope.StartStates(MDP.starts.states, exact=False)
    exact, sampled = bound(), bound(starts=sample)
    assert exact.start_error == 0
    assert sampled.start_error == pytest.approx(2.5 * math.sqrt(math.log(2 / 0.01) / (2 * len(sample))))
    assert sampled.split.kernel == pytest.approx(0.09)
    assert sampled.unclipped[0] < exact.unclipped[0] - sampled.start_error + 1e-9
    assert any("i.i.d. sample" in line.text for line in sampled.premises)


def test_paper_radius_is_vacuous_and_theorem_a_is_not():
    """The point of the ladder: same data, same class; the paper's radius says nothing even at this mild discount."""
    for name in ("hoeffding", "hoeffding-u", "hoeffding-printed"):
        assert bound(radius=name).status is aope.Status.VACUOUS
    assert bound(radius="azuma").status is aope.Status.OK


def test_paper_radius_is_vacuous_at_the_paper_settings():
    """Discount .95, twenty episodes of fifty steps, ten features: vacuous for the paper's radius in either form."""
    mdp = PlantedMDP(seed=1, features=10)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    for trajectories in (20, 100):
        data = mdp.sample(np.random.default_rng(1), trajectories=trajectories)
        ladder = aope.bound_ladder(
            aope.Problem(data, mdp.starts, mdp.policy, facts),
            kernel=KERNEL,
            features=mdp.features(),
            radii=("hoeffding", "hoeffding-printed"),
        )
        assert [x.status for x in ladder] == [aope.Status.VACUOUS] * 2
        assert ladder[0].normalized == pytest.approx((0, 1))


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_inconsistent_class_is_a_finding(radius):
    """Rewards that no constant Q explains: the least loss, the radius and the implied misfit are reported."""
    mdp = random_tabular(3, 2, seed=0, discount=0.0)
    table = np.full((3, 2), 0.5)
    data = mdp.sample_iid(4000, np.random.default_rng(0))
    constant = aope.Precomputed(np.zeros((4000, 1)), np.zeros((4000, 1)), np.zeros((3, 1)))
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    interval = aope.bound_value(
        aope.Problem(data, mdp.starts(), mdp.policy(table), facts), kernel=aope.Tabular(), features=constant, radius=radius
    )
    part = interval.certificates[0]
    assert interval.status is aope.Status.INCONSISTENT
    assert math.isnan(interval.lower) and math.isnan(interval.upper)
    assert part.least_loss > interval.radius.total
    # The misfit is a lower bound of the distance from Q = r to every constant, which is half the spread of r.
    assert 0 < part.least_misfit <= 0.5 * np.ptp(mdp.mean_reward)
    assert part.upper.status is aope.programs.SolveStatus.EMPTY
    assert interval.check()


def test_relative_norm_multiplies_the_least_norm():
    data = MDP.sample(np.random.default_rng(5), trajectories=400, length=50)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), reward_noise=False, norm_bound=aope.RelativeNorm(4.0))
    interval = bound(data, facts)
    part = interval.certificates[0]
    assert part.least_norm is not None and 0 < part.least_norm <= MDP.norm
    assert part.norm_bound == pytest.approx(4 * part.least_norm)
    absolute = bound(data, dataclasses.replace(facts, norm_bound=part.norm_bound))
    assert (interval.lower, interval.upper) == pytest.approx((absolute.lower, absolute.upper), rel=1e-6)


def test_relative_norm_of_zero_bounds_nothing():
    """With few data a constant Q is consistent; a multiple of its norm, zero, must not shrink the class to constants."""
    facts = dataclasses.replace(FACTS, norm_bound=aope.RelativeNorm(3.0), reward_noise=True)
    small = MDP.sample(np.random.default_rng(5), trajectories=2, length=20)
    interval = bound(small, facts)
    part = interval.certificates[0]
    assert part.least_norm == 0 and part.norm_bound > 1e3
    free = bound(small, dataclasses.replace(facts, norm_bound=None))
    assert (interval.lower, interval.upper) == (free.lower, free.upper)
    assert any("bounds nothing" in line.text for line in interval.premises)
    assert any("Rounding is counted" in line.text for line in interval.premises)
    assert not any("Rounding is counted" in line.text for line in bound().premises)  # a small declared norm covers it


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_the_box_at_every_point_is_never_wider(radius):
    """Without a norm bound the values between the data run wild on average; at every point they cannot."""
    mdp = PlantedMDP(seed=1, features=10, discount=0.8)
    data = mdp.sample(np.random.default_rng(0), trajectories=40)
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1), reward_noise=False)
    averaged, pointwise = (
        bound(data, facts, mdp.features(), mdp.starts, mdp.policy, radius=radius, pointwise=wanted) for wanted in (False, True)
    )
    assert averaged.lower <= pointwise.lower <= mdp.value <= pointwise.upper <= averaged.upper
    assert pointwise.upper - pointwise.lower < (0.99 if radius == "azuma" else 0.7) * (averaged.upper - averaged.lower)
    assert pointwise.check()


def test_undiscounted_episodes_with_reward_at_the_end():
    mdp = clinic()
    behavior = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(behavior, 3000, 200, np.random.default_rng(0))
    policy = mdp.policy(behavior)
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=False)
    interval = aope.bound_value(aope.Problem(data, mdp.starts(), policy, facts), kernel=aope.Tabular(), features=features)
    assert interval.status is aope.Status.OK
    assert interval.lower <= mdp.value(behavior) <= interval.upper
    assert interval.normalized == (interval.lower, interval.upper)
    said = {each.name: each.text for each in interval.premises}
    assert "at discount 1 the value is the mean of that last reward, whenever it comes" in said["terminal-reward"]
    assert said["values"].endswith("lie in [0, 1], which follows from the rewards, of which an episode pays one.")
    assert interval.check()  # the verifier derives the same sentences
    before = aope.Problem(data, mdp.starts(), policy, dataclasses.replace(facts, discount=0.9))
    said = {each.name: each.text for each in aope.bound_value(before, kernel=aope.Tabular(), features=features).premises}
    assert said["terminal-reward"] == "Only the transition that ends an episode pays."
    assert said["values"].endswith("which follows from the rewards and the discount.")


def test_continuous_actions_with_a_sampled_policy():
    mdp = scalar_regulator(discount=0.5, action_noise=0.1)
    data = mdp.sample(np.random.default_rng(0), 40, 50)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), norm_bound=2 * mdp.norm)
    interval = aope.bound_value(aope.Problem(data, mdp.starts, mdp.policy, facts), kernel=KERNEL, features=mdp.features())
    assert interval.start_error > 0  # actions at the start states are drawn
    assert interval.status is aope.Status.OK
    assert interval.lower <= mdp.value <= interval.upper


def test_single_precision_pays_for_its_rounding():
    exact, single = bound(), bound(options=aope.kernels.TileOptions(single_precision=True))
    assert single.radius.rounding > 1e3 * exact.radius.rounding
    assert single.radius.level == exact.radius.level
    assert single.unclipped[0] < exact.unclipped[0] and exact.unclipped[1] < single.unclipped[1]
    assert single.upper == pytest.approx(exact.upper, rel=1e-2)


def test_a_tampered_result_does_not_check():
    interval = bound()
    assert not dataclasses.replace(interval, unclipped=(interval.unclipped[0] + 0.01, interval.unclipped[1])).check()
    part = interval.certificates[0]
    better = dataclasses.replace(part.upper, bound=0.99 * part.upper.bound)
    assert not dataclasses.replace(interval, certificates=(dataclasses.replace(part, upper=better),)).check()
    other = aope.statistics.kernel_statistic(
        aope.statistics.bellman_system(Experience(DATA, MDP.starts, MDP.policy, 0.6), MDP.features()), aope.Gaussian(2.0)
    )
    forged = dataclasses.replace(part, statistic=other)
    assert not dataclasses.replace(interval, certificates=(forged,)).check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1.5}, r"`delta` must be in \(0, 1\). Got 1.5"),
        ({"delta": 0.0}, r"`delta` must be in \(0, 1\). Got 0.0"),
        ({"radius": "magic"}, "`radius` must be one of"),
        ({"features": []}, "at least one feature class"),
        ({"starts": aope.StartStates([[0.0, 0.0, 0.0]])}, r"`start states` must have as many columns as `states` \(2\). Got 3"),
        ({"kernel": aope.Gaussian([1.0, 2.0])}, "`bandwidth` has 2 entries, but points .* have 3 columns"),
        ({"policy": aope.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)}, "`actions` has index 2"),
        (
            {"policy": aope.DiscretePolicy(lambda s: np.full((len(s), 3), 0.5), [[-1.0], [0.0], [1.0]])},
            "must sum to one in every row",
        ),
        ({"data": changed(DATA, rewards=DATA.rewards + 1)}, "`rewards` must lie in the declared reward_range"),
        ({"features": aope.Precomputed(np.ones((3, 1)), np.ones((3, 1)), np.ones((1, 1)))}, "Precomputed features must have 320"),
    ],
)
def test_bad_input_is_one_sentence(options, message):
    with pytest.raises(aope.InvalidInput, match=message):
        bound(**options)
