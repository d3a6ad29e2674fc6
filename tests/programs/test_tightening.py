"""The joint constraint and its iteration: against points of the exact set, against tampering, and against weaker assumptions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.problem.problem import Experience
from accountable_ope.problem.statements import texts
from accountable_ope.programs.certificate import SolveStatus
from accountable_ope.programs.tightening import tighten
from accountable_ope.statistics.bellman import bellman_system

BOX = ((-5.6, -3.5), (5.6, 3.5))


def planted(features: int = 4, discount: float = 0.9, trajectories: int = 12, seed: int = 1, bernoulli: bool = False):
    mdp = PlantedMDP(seed=seed, features=features, discount=discount, bernoulli=bernoulli)
    data = mdp.sample(np.random.default_rng(seed), trajectories=trajectories)
    facts = aope.Assumptions(
        discount=discount, reward_range=(0, 1), reward_noise=bernoulli, norm_bound=1.5 * mdp.norm, state_box=BOX
    )
    return mdp, data, facts


def prepared(mdp: PlantedMDP, data: aope.Transitions, bandwidth: float = 1.0):
    plain = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1))
    problem = aope.Problem(data, mdp.starts, mdp.policy, plain)
    return aope.evaluate(problem, kernel=aope.Gaussian(bandwidth), features=mdp.features())


def own_range(theta: np.ndarray, mdp: PlantedMDP, facts: aope.Assumptions, grid: np.ndarray) -> float:
    """b(Q): discount * span of Q over many state-action points, and the range of a random reward."""
    values = grid @ theta
    noise = 1.0 if facts.reward_noise else 0.0
    return min(mdp.discount * float(np.ptp(values)) + noise, mdp.discount / (1 - mdp.discount) + noise)


def grid_of(mdp: PlantedMDP) -> np.ndarray:
    axes = np.meshgrid(np.linspace(-5.6, 5.6, 41), np.linspace(-3.5, 3.5, 31), [-1.0, 0.0, 1.0], indexing="ij")
    phi = mdp.features()(np.stack(axes, axis=-1).reshape(-1, 3))
    return np.column_stack([phi, np.ones(len(phi))])


@pytest.mark.parametrize("radius", ["certified", "empirical-bernstein", "symmetric"])
@pytest.mark.parametrize("bernoulli", [False, True])
def test_no_point_of_the_exact_set_lies_beyond_the_ends(radius, bernoulli):
    """{theta: ||S_n|| <= U(b(theta), a(theta), V_n(theta)), ball, box} is what the event says; a local search finds its ends."""
    mdp, data, facts = planted(bernoulli=bernoulli)
    facts = replace(facts, symmetric_noise=True)
    interval = prepared(mdp, data).assuming(facts).bound(radius=radius)
    part = interval.certificates[0]
    feasible, grid = part.tightening.constraints, grid_of(mdp)

    def room(theta: np.ndarray) -> float:
        """Positive inside the exact set."""
        b = own_range(theta, mdp, facts, grid)
        if feasible.steps.at(theta).max() > b:
            return -1.0  # were it the true Q, no residual could be so large
        slack = [c.limit - c.quadratic(theta) for c in feasible.others]
        for one in feasible.evidence:
            steps = one.steps(b)
            if one.scale is not None:
                steps = replace(steps, observed=min(steps.largest, float((one.scale * feasible.steps.at(theta)).max())))
            slack.append(one.bound(steps, one.variance(theta)) - one.squared(theta))
        return min(s / max(abs(c), 1e-12) for s, c in zip(slack, [*(c.limit for c in feasible.others), 1e-6, 1e-6], strict=False))

    center = part.upper.point if part.upper.point is not None else np.append(mdp.theta[:-1] * 2.0, mdp.theta[-1])
    truth = np.append(mdp.theta[:-1] * np.sqrt(len(mdp.phases)), mdp.theta[-1])
    assert room(truth) > 0  # on this seed the event holds
    rng = np.random.default_rng(0)
    objective = bellman_system(Experience(data, mdp.starts, mdp.policy, mdp.discount), mdp.features()).objective
    reached = {1: -np.inf, -1: -np.inf}
    for start in (truth, center):
        for sign in reached:
            found = minimize(
                lambda t, sign=sign: -sign * float(objective @ t) + 1e3 * max(0.0, -room(t)),
                start,
                method="Nelder-Mead",
                options={"maxiter": 600, "xatol": 1e-6, "fatol": 1e-9},
            ).x
            for point in (found, *(truth + s * (found - truth) for s in rng.uniform(0, 1, 5))):
                if room(point) >= 0:
                    reached[sign] = max(reached[sign], sign * float(objective @ point))
    assert reached[1] <= part.upper.bound * (1 + 1e-9)
    assert reached[-1] <= part.lower.bound * (1 + 1e-9) + 1e-9
    assert reached[1] > objective @ truth  # the search did go somewhere
    assert interval.lower <= mdp.value <= interval.upper


@pytest.mark.parametrize("radius", ["certified", "symmetric", "empirical-bernstein"])
def test_more_rounds_never_widen(radius):
    mdp, data, facts = planted(trajectories=40)
    interval = prepared(mdp, data).assuming(replace(facts, symmetric_noise=True)).bound(radius=radius)
    part = interval.certificates[0]
    feasible, objective = part.tightening.constraints, part.upper.objective
    inside = part.upper.point
    widths = []
    for rounds in range(1, 5):
        upper, lower, found = tighten(feasible, objective, -objective, inside, rounds)
        assert len(found.rounds) <= rounds
        assert upper.check().valid and lower.check().valid
        widths.append(upper.bound + lower.bound)
    assert all(b <= a + 1e-12 for a, b in pairwise(widths))
    bounds = [one.residual_bound for one in part.tightening.rounds]
    variances = [one.variance for one in part.tightening.rounds]
    assert bounds == sorted(bounds, reverse=True)
    assert variances == sorted(variances, reverse=True)
    assert len(bounds) > 1


def test_weaker_assumptions_never_narrow():
    mdp, data, facts = planted(features=5, trajectories=40)
    ready = prepared(mdp, data)
    base = ready.assuming(facts).bound()
    weaker = {
        "norm bound": replace(facts, norm_bound=1.2 * facts.norm_bound),
        "twice the norm bound": replace(facts, norm_bound=2 * facts.norm_bound),
        "ten times the norm bound": replace(facts, norm_bound=10 * facts.norm_bound),
        "no norm bound": replace(facts, norm_bound=None),
        "no box": replace(facts, state_box=None),
        "a larger box": replace(facts, state_box=((-12.0, -9.0), (12.0, 9.0))),
        "random rewards": replace(facts, reward_noise=True),
        "misfit": replace(facts, misfit=1e-3),
        "a wider reward range": replace(facts, reward_range=(-0.5, 1.5)),
        "terminal states": replace(facts, terminates=True),
    }
    width = base.upper - base.lower
    for name, assumptions in weaker.items():
        other = ready.assuming(assumptions).bound()
        assert other.lower <= base.lower + 1e-3 * width and other.upper >= base.upper - 1e-3 * width, name
        assert other.check(), name
    for delta in (0.09, 0.05, 0.001):
        other = ready.assuming(facts).bound(delta=delta)
        assert other.lower <= base.lower + 1e-4 * width and other.upper >= base.upper - 1e-4 * width, delta


def test_the_event_decides_the_iteration_and_not_the_other_way_round():
    """The rates of the envelope do not change from round to round, nor with a norm bound relative to the data."""
    mdp, data, facts = planted(trajectories=100)
    ready = prepared(mdp, data)
    relative = ready.assuming(replace(facts, norm_bound=aope.RelativeNorm(2.0))).bound()
    part = relative.certificates[0]
    rates = part.tightening.constraints.evidence[0].envelope.rates
    declared = relative.ranges.residual_width
    assert rates.max() == pytest.approx(12 / declared)
    assert part.norm_bound == pytest.approx(2.0 * part.least_norm)
    assert part.least_norm <= mdp.norm
    assert relative.check()


def tampered(part: aope.bounds.ClassCertificates):
    tightening = part.tightening
    last = tightening.rounds[-1]
    yield (
        "range",
        replace(part, tightening=replace(tightening, rounds=(*tightening.rounds[:-1], replace(last, residual_bound=1e-3)))),
    )
    yield (
        "variance",
        replace(
            part,
            tightening=replace(
                tightening, rounds=(*tightening.rounds[:-1], replace(last, variances=(1e-9, *last.variances[1:])))
            ),
        ),
    )
    loss = part.upper.constraints[0]
    constraints = (replace(loss, limit=0.5 * loss.limit), *part.upper.constraints[1:])
    yield "limit", replace(part, upper=replace(part.upper, constraints=constraints))
    yield "bound", replace(part, upper=replace(part.upper, bound=part.upper.bound - 0.1 * abs(part.upper.bound)))


def test_a_changed_proof_is_caught():
    mdp, data, facts = planted(trajectories=40)
    interval = prepared(mdp, data).assuming(facts).bound()
    part = interval.certificates[0]
    assert len(part.tightening.rounds) > 1 and interval.check()
    for name, changed in tampered(part):
        assert not replace(interval, certificates=(changed,)).check(), name


def test_a_class_without_q_is_refuted_with_a_proof():
    mdp, data, facts = planted(trajectories=60)
    interval = aope.bound_value(
        aope.Problem(data, mdp.starts, mdp.policy, facts), kernel=aope.Gaussian(1.0), features=aope.RandomFourier(2, 3.0)
    )
    assert interval.status is aope.Status.INCONSISTENT
    assert interval.certificates[0].upper.status is SolveStatus.EMPTY
    assert interval.check()
    wide = replace(facts, misfit=3.0, norm_bound=50.0)
    again = aope.bound_value(
        aope.Problem(data, mdp.starts, mdp.policy, wide), kernel=aope.Gaussian(1.0), features=aope.RandomFourier(2, 3.0)
    )
    assert again.status is not aope.Status.INCONSISTENT
    assert again.lower <= mdp.value <= again.upper


@pytest.mark.parametrize("landmarks", [60, 150, None])
def test_an_rkhs_in_coordinates_contains_the_exact_interval(landmarks):
    """Fewer coordinates, a wider interval; none of them misses the truth."""
    mdp, data, facts = planted(trajectories=16)
    facts = replace(facts, norm_bound=10.0)
    exact, found = (
        aope.bound_value(
            aope.Problem(data, mdp.starts, mdp.policy, facts),
            kernel=aope.Gaussian(1.0),
            features=aope.KernelSections(aope.Gaussian(1.5), size),
        )
        for size in (None, landmarks)
    )
    assert found.check()
    assert found.lower <= exact.lower + 1e-4 and found.upper >= exact.upper - 1e-4
    assert found.lower <= mdp.value <= found.upper


def test_symmetric_noise_must_be_declared():
    mdp, data, facts = planted()
    with pytest.raises(aope.InvalidInput, match="symmetric_noise"):
        prepared(mdp, data).assuming(facts).bound(radius="symmetric")
    interval = prepared(mdp, data).assuming(replace(facts, symmetric_noise=True)).bound(radius="symmetric")
    assert interval.guarantee is aope.Guarantee.FINITE_SAMPLE_DECLARED_NOISE
    assert any("symmetric" in line.text for line in interval.premises)


def test_identification_is_reported():
    """Few rows leave a direction open, many close all of them."""
    few, many = (
        prepared(mdp, data).assuming(facts).bound().certificates[0].tightening.identification
        for mdp, data, facts in (planted(features=8, trajectories=4), planted(features=4, trajectories=200))
    )
    assert few < 0 < many


def test_a_tabular_problem_needs_no_norm_bound():
    """The points of the class are all there are, so ranges are tightened without any box."""
    mdp = random_tabular(3, 2, seed=4, discount=0.8, bernoulli=True)
    target = np.random.default_rng(1).dirichlet(np.ones(2), size=3)
    policy = mdp.policy(target)
    features = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=False)
    data = mdp.sample_trajectories(np.full((3, 2), 0.5), 200, 50, np.random.default_rng(0))
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1))
    azuma, certified = aope.bound_ladder(
        aope.Problem(data, mdp.starts(), policy, facts), kernel=aope.Tabular(), features=features, radii=("azuma", "certified")
    )
    rounds = certified.certificates[0].tightening.rounds
    assert rounds[-1].residual_bound < 0.6 * rounds[0].residual_bound
    assert certified.upper - certified.lower < 0.5 * (azuma.upper - azuma.lower)
    assert certified.lower <= mdp.value(target) <= certified.upper


@pytest.mark.parametrize("radius", ["certified", "symmetric", "empirical-bernstein", "self-normalized"])
def test_without_any_noise_the_value_is_known(radius):
    """Discount 0 and rewards that are a function of (s, a): residuals of the true Q are 0, and so is every range."""
    mdp = random_tabular(3, 2, seed=0, discount=0.0)
    table = np.full((3, 2), 0.5)
    policy = mdp.policy(table)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1), reward_noise=False, symmetric_noise=True)
    interval = aope.bound_value(
        aope.Problem(mdp.sample_iid(200, np.random.default_rng(0)), mdp.starts(), policy, facts),
        kernel=aope.Tabular(),
        features=aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=False),
        radius=radius,
    )
    assert interval.lower <= mdp.value(table) <= interval.upper
    assert interval.upper - interval.lower < 1e-4 and interval.check()


@pytest.mark.parametrize("radius", ["certified", "empirical-bernstein"])
def test_two_rows_say_nothing(radius):
    mdp, data, facts = planted()
    two = prepared(mdp, data.rows(slice(0, 2))).assuming(replace(facts, norm_bound=None)).bound(radius=radius)
    assert two.status is aope.Status.VACUOUS and two.check()


def test_everything_that_bounds_a_residual_is_listed():
    """A radius that uses the box lists it; one that does not need it does not. The size of the data is an assumption too."""
    mdp, data, facts = planted()
    ready = prepared(mdp, data)
    for radius in ("certified", "empirical-bernstein", "self-normalized"):
        assert "Every state lies in [-5.6, 5.6], [-3.5, 3.5], as declared." in texts(
            ready.assuming(facts).bound(radius=radius).premises
        )
    plain = texts(ready.assuming(facts).bound(radius="azuma").premises)
    assert not any("Every state lies" in line for line in plain)
    assert "The number of rows was not chosen by looking at the rows." in plain
    looked = texts(ready.assuming(facts).bound(radius="azuma-anytime", planned=500).premises)
    assert not any("number of rows" in line for line in looked)
