"""Features and, for what they miss, a ball of an RKHS: what is bounded, proved, refused and studied."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from unittest import mock

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.classes import SemiParametric, function_class
from accountable_ope.environments import PlantedFeatures, PlantedMDP, random_tabular, softmax_table
from accountable_ope.kernels.kernel import block
from accountable_ope.problem.policy import state_action_points
from accountable_ope.programs.constraint import Role
from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.cut import CutQuestion, choose_cut
from accountable_ope.radii.no_cut import NoCut
from accountable_ope.report.sensitivity_plot import sensitivity_figure
from accountable_ope.statistics import bellman_residuals
from accountable_ope.verification import verify_record
from accountable_ope.verification.record import TermRecord

KERNEL, SPACE = aope.Gaussian(1.0), aope.Gaussian(2.0)
MDP = PlantedMDP(seed=1, features=6, discount=0.6)
SOME = PlantedFeatures(MDP.frequencies[:4], MDP.phases[:4])
R = 1.5 * 2.0 * float(np.linalg.norm(MDP.theta[:4]))
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=R, misfit_norm=1.0, reward_noise=False)


@cache
def data(rows: int = 200, seed: int = 0) -> aope.Transitions:
    return MDP.sample(np.random.default_rng(seed), trajectories=rows // 50)


@cache
def evaluation(landmarks: int | None = 25, rows: int = 200, seed: int = 0) -> aope.Evaluation:
    problem = aope.Problem(data(rows, seed), MDP.starts, MDP.policy, FACTS)
    return aope.evaluate(problem, features=SemiParametric(SOME, SPACE, landmarks), kernel=KERNEL)


def under(found: aope.Evaluation, **changes: object) -> aope.Evaluation:
    return found.assuming(replace(FACTS, **changes))


@cache
def certified(rho: float = 1.0) -> aope.Interval:
    return under(evaluation(), misfit_norm=rho).bound()


# A problem whose premises hold exactly: finitely many points, of which features see groups.


@dataclass(frozen=True)
class Coarse:
    """One-hot features of three groups of states."""

    dimension: int = 3
    intercept: bool = True
    diameter: float = math.sqrt(2.0)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return np.eye(3)[(points[:, 0] // 2).astype(int)]


@dataclass(frozen=True)
class Exact:
    """Q = constant + theta'phi + g with the norms of both parts known."""

    mdp: object
    table: np.ndarray
    value: float
    norm: float
    misfit_norm: float

    def facts(self, **changes: object) -> aope.Assumptions:
        usual = {"norm_bound": self.norm, "misfit_norm": self.misfit_norm, "reward_noise": False, **changes}
        return aope.Assumptions(discount=0.6, reward_range=(0, 1), **usual)

    def problem(self, rows: int, seed: int, **changes: object) -> aope.Problem:
        log = self.mdp.sample_iid(rows, np.random.default_rng(seed))
        return aope.Problem(log, self.mdp.starts(), self.mdp.policy(self.table), self.facts(**changes))


@cache
def exact() -> Exact:
    mdp = random_tabular(states=6, actions=2, seed=3, discount=0.6)
    table = softmax_table(np.random.default_rng(4).normal(size=(6, 2)), 1.0)
    q = mdp.q_values(table).ravel()
    groups = np.eye(3)[np.repeat(np.arange(6), 2) // 2]
    centered = q - q.mean()
    theta = np.linalg.lstsq(groups, centered, rcond=None)[0]
    g = centered - groups @ theta
    # In the RKHS of the tabular kernel the norm of a function is the length of the vector of its values.
    return Exact(mdp, table, mdp.value(table), float(np.linalg.norm(theta)), float(np.linalg.norm(g)))


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_covers_what_features_alone_miss(radius):
    """At delta = .5: the premises hold exactly, with no room in either norm."""
    known, trials = exact(), 40 if radius == "azuma" else 8
    features = SemiParametric(Coarse(), aope.Tabular(), None)
    covered = 0
    for seed in range(trials):
        found = aope.bound_value(known.problem(100, seed), features=features, kernel=aope.Tabular(), radius=radius, delta=0.5)
        covered += known.value in found
    assert binom.cdf(covered, trials, 0.5) > 1e-3


def test_features_alone_are_refuted_or_wrong_where_the_wider_class_covers():
    known = exact()
    outcomes = []
    for seed in range(2):
        problem = known.problem(6000, seed)
        plain = aope.Problem(problem.data, problem.starts, problem.policy, known.facts(misfit_norm=None))
        alone = aope.bound_value(plain, features=Coarse(), kernel=aope.Tabular(), delta=0.5)
        wider = aope.bound_value(problem, features=SemiParametric(Coarse(), aope.Tabular()), kernel=aope.Tabular(), delta=0.5)
        outcomes.append(alone.status is aope.Status.INCONSISTENT or known.value not in alone)
        assert known.value in wider and wider.status is aope.Status.OK and wider.check()
    assert all(outcomes)


def test_the_least_norm_of_what_is_missed_is_below_the_true_one_and_is_found():
    known = exact()
    study = aope.study(
        known.problem(6000, 1), features=SemiParametric(Coarse(), aope.Tabular()), kernel=aope.Tabular(), delta=0.5
    )
    least = study.least_misfit_norm(tolerance=0.1)
    assert 0 < least.value < known.misfit_norm
    assert least.consistent <= 1.2 * least.value
    assert "misfit-norm" not in {each.name for each in least.premises} and "misfit_norm" in repr(least)
    assert study.at("misfit_norm", least.value).outcome is aope.Status.INCONSISTENT
    assert study.at("misfit_norm", least.value).check()


# Slow twins


@pytest.mark.parametrize("landmarks", [3, 25, None])
def test_the_exact_program_of_a_constant_radius_lies_inside(landmarks):
    """CVXPY over all coordinates; with all of them the interval is that of the program, with fewer it holds it."""
    found = evaluation(landmarks, 100).bound("azuma")  # ends before they are cut to the range of values
    whole = evaluation(None, 100)
    system, part = whole.systems[0], whole.bound("azuma").certificates[0]
    loss, box, k = part.constraints.evidence[0].squared, part.constraints.box, system.rest.coordinates
    x = cp.Variable(system.dimension)

    def length(q):
        """sqrt(q - its least value), as a norm."""
        values, vectors = np.linalg.eigh(q.A)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        center = np.linalg.lstsq(q.A, q.a, rcond=1e-12)[0]
        return cp.norm(root @ (x - center)), max(q(center), 0.0)

    level = found.radius.total
    constraints = [cp.norm(x[:k]) <= 1.0, cp.norm(x[k:-1]) <= R]
    for q, limit in ((loss, level), (box.quadratic, box.limit)):
        term, least = length(q)
        constraints.append(term <= math.sqrt(max(limit - least, 0.0)))
    ends = [cp.Problem(sense(system.objective @ x), constraints).solve("CLARABEL") for sense in (cp.Minimize, cp.Maximize)]
    lower, upper = found.unclipped
    assert lower <= ends[0] + 1e-6 and ends[1] <= upper + 1e-6
    if landmarks is None:
        assert upper - lower <= (1 + 1e-2) * (ends[1] - ends[0])


@pytest.mark.parametrize(("landmarks", "rho"), [(3, 0.1), (25, 0.3)])
def test_no_member_of_the_class_that_the_event_allows_lies_outside(landmarks, rho):
    """Walks within both balls, the value boxes and the event itself, ||S_n|| <= U(b, V_n), in many coordinates of the RKHS."""
    found = under(evaluation(landmarks), misfit_norm=rho).bound()
    whole = under(evaluation(40), misfit_norm=rho)
    part = whole.bound().certificates[0]
    feasible, evidence, k = part.constraints, part.constraints.evidence[0], part.constraints.rest.coordinates
    b, points = feasible.range.over_ball(R), whole.systems[0].box_rows[:, :-1]
    steps = evidence.steps(b)

    def allowed(theta):
        inside = np.linalg.norm(theta[:k]) <= rho and np.linalg.norm(theta[k:-1]) <= R
        residuals = feasible.steps.at(theta)
        seen = Steps(steps.largest, float((evidence.scale * residuals).max()), steps.squares)
        return (
            inside
            and residuals.max() <= b
            and feasible.box.quadratic(theta) <= feasible.box.limit
            and (np.abs(points @ theta - 1.25) <= 1.25).all()
            and evidence.squared(theta) <= evidence.bound(seen, evidence.variance(theta))
        )

    center = feasible.inside[:-1]
    assert allowed(center)
    objective, rng = whole.systems[0].objective, np.random.default_rng(0)
    metric = evidence.squared.A + 1e-6 * np.eye(len(center))
    towards = np.linalg.solve(metric, objective)
    values = [float(objective @ center)]
    for _ in range(60):
        wild = objective + 0.3 * rng.normal(size=len(center))
        wild = np.linalg.solve(metric + rng.exponential() * 1e-2 * np.eye(len(center)), wild)
        along = wild / np.linalg.norm(wild) + rng.uniform() * towards / np.linalg.norm(towards)
        direction = rng.choice([-1.0, 1.0]) * along
        low, high = 0.0, 20.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if allowed(center + middle * direction) else (low, middle)
        values.append(float(objective @ (center + low * direction)))
    assert found.lower - 1e-9 <= min(values) and max(values) <= found.upper + 1e-9
    assert max(values) - min(values) > 0.05  # the walks go somewhere


# Shape


def test_nested_in_both_norms():
    study = evaluation().study()
    for over, values in (("misfit_norm", (0.03, 0.2, 0.6)), ("norm_bound", (R, 2 * R))):
        curve = study.curve(over, values)
        slack = 2e-3 * (curve.upper[-1] - curve.lower[-1])
        assert all(np.diff(curve.lower) <= slack) and all(np.diff(curve.upper) >= -slack)
        assert curve.upper[-1] - curve.lower[-1] > 1.01 * (curve.upper[0] - curve.lower[0])


@pytest.mark.parametrize("radius", ["azuma", "empirical-bernstein"])
def test_without_anything_missed_it_is_the_class_of_the_features(radius):
    wider = under(evaluation(), misfit_norm=1e-6).bound(radius, pointwise=False)
    problem = aope.Problem(data(), MDP.starts, MDP.policy, replace(FACTS, misfit_norm=None))
    plain = aope.evaluate(problem, features=SOME, kernel=KERNEL).bound(radius, pointwise=False)
    assert np.allclose((wider.lower, wider.upper), (plain.lower, plain.upper), atol=2e-3 * plain.width)


# Boxes at points


@pytest.mark.parametrize("radius", ["azuma", "certified"])
@pytest.mark.parametrize("landmarks", [3, 25])
def test_boxes_at_points_never_widen_and_narrow_where_data_are_few(radius, landmarks):
    for rho in (0.1, 1.0):
        found = under(evaluation(landmarks), misfit_norm=rho)
        plain, boxed = found.bound(radius, pointwise=False), found.bound(radius, pointwise=True)
        slack = 2e-3 * plain.width
        assert plain.lower - slack <= boxed.lower and boxed.upper <= plain.upper + slack
        assert boxed.check(), boxed.verify().message
    if landmarks == 25:
        assert boxed.width < 0.99 * plain.width


def test_what_is_missed_at_a_point_bounds_every_function_that_coordinates_miss():
    """g orthogonal to the coordinates: K1(y, .) less its part in them, at any y, is as large as such a function can be there."""
    found = evaluation(8)
    system, k = found.systems[0], found.systems[0].rest.coordinates
    rows, missed = system.box_rows, system.box_missed
    assert missed.shape == (len(rows),) and (missed >= 0).all() and missed.max() > 1e-3
    here = len(data())  # the first rows are at the data, where a section has the norm K1(x, x) = 1
    assert np.allclose(missed[:here] ** 2 + (rows[:here, :k] ** 2).sum(axis=1), 1.0, atol=1e-9)
    whole = evaluation(None)
    unseen = whole.systems[0].box_missed
    assert unseen[:here].max() < missed[:here].max()


def test_a_whole_rkhs_has_them_when_asked():
    problem = aope.Problem(data(), MDP.starts, MDP.policy, replace(FACTS, misfit_norm=None))
    found = aope.evaluate(problem, features=aope.KernelSections(SPACE, 20), kernel=KERNEL)
    plain, boxed = found.bound("azuma"), found.bound("azuma", pointwise=True)
    assert boxed.check() and boxed.width <= plain.width * (1 + 1e-3)
    given = {"data": data(), "starts": MDP.starts, "policy": MDP.policy, "features": aope.KernelSections(SPACE, 20)}
    assert aope.verify(boxed, **given).valid


def test_less_missed_at_points_is_refused():
    record = evaluation().bound("azuma", pointwise=True).record()
    part = record.classes[0]
    given = {"data": data(), "starts": MDP.starts, "policy": MDP.policy, "features": SemiParametric(SOME, SPACE, 25)}
    assert part.rows and not part.rows[0].residual and aope.verify(record, **given).valid
    for missed in (None, 0.5 * part.rows[0].missed, -part.rows[0].missed):
        rows = (replace(part.rows[0], missed=missed), *part.rows[1:])
        forged = with_part(record, rows=rows)
        assert not verify_record(forged).valid or not aope.verify(forged, **given).valid
    none = replace(part.rows[0], missed=None)
    assert "does not say what its coordinates miss" in verify_record(with_part(record, rows=(none, *part.rows[1:]))).message


# The cut


def cut_of(log: aope.Transitions):
    """Weights as the radius chooses them."""
    problem = aope.Problem(log, MDP.starts, MDP.policy, FACTS)
    system = aope.evaluate(problem, features=SemiParametric(SOME, SPACE, 10), kernel=KERNEL).systems[0]
    return choose_cut(CutQuestion(system.fixed_before, KERNEL, step_range=2.0, delta=0.05, norm_bound=R))


def test_weights_of_the_cut_do_not_depend_on_later_rows():
    """Rows from 300 on are others; coordinates of g change with them, and no weight before them does."""
    log = data(400)
    rewards, after = log.rewards.copy(), log.next_states.copy()
    rewards[299:] = 1 - rewards[299:]
    after[299:] += 0.3
    states = log.states.copy()
    states[300:] = 0.5 * states[300:]
    other = aope.Transitions(states, log.actions, rewards, after)
    first, second = cut_of(aope.Transitions(log.states, log.actions, log.rewards, log.next_states)), cut_of(other)
    assert first.earlier == second.earlier < 300 and (first.kind, first.rate) == (second.kind, second.rate)
    np.testing.assert_array_equal(first.weights[:300], second.weights[:300])
    assert np.abs(first.weights[300:] - second.weights[300:]).max() > 1e-3


def test_what_the_cut_misses_bounds_a_function_that_coordinates_do_not_hold():
    """g = K1(y, .): its part in the coordinates is known, and what is left moves the weighted sum by no more than is counted."""
    found = evaluation(8, 400)
    system, cut = found.systems[0], cut_of(data(400))
    sums, k = cut.sums(system), system.rest.coordinates
    n = sums.count
    for y in system.points[::37]:

        def g(states, actions, y=y):
            return block(SPACE, state_action_points(states, actions, MDP.policy), y[None])[:, 0]

        whole = data(400).rewards - bellman_residuals(g, data(400), MDP.policy, 0.6)
        inside = system.features.parts[0](y[None])[0]
        left = whole - system.residuals[:, :k] @ inside
        norm = math.sqrt(max(1 - float(inside @ inside), 0.0))
        assert abs(float(cut.weights @ left)) / n <= norm * sums.missed[0] * (1 + 1e-6)
        assert float(np.linalg.norm(cut.weights * left)) / n <= norm * sums.missed[1] * (1 + 1e-6)


def test_the_cut_narrows_and_is_proved_again():
    found = under(evaluation(25, 1000), misfit_norm=0.3)
    cut = found.bound()
    assert cut.certificates[0].cut is not None and "The cut has" in cut.remarks[0].text
    with mock.patch("accountable_ope.bounds.evaluation.why_no_cut", return_value=NoCut.COORDINATES):
        plain = found.bound()
    assert plain.certificates[0].cut is None and not plain.check()  # nothing stands against it: the reason is not true
    assert cut.width < 0.9 * plain.width and MDP.value in cut
    given = {"data": data(1000), "starts": MDP.starts, "policy": MDP.policy, "features": SemiParametric(SOME, SPACE, 25)}
    assert cut.check() and aope.verify(cut, **given).valid
    record = cut.record()
    sums = record.classes[0].sums
    for missed in ((0.0, 0.0), (0.5 * sums.cut.missed[0], sums.cut.missed[1]), (-1.0, 0.0), (math.inf, 0.0)):
        forged = with_part(record, sums=replace(sums, cut=replace(sums.cut, missed=missed)))
        assert not verify_record(forged).valid or not aope.verify(forged, **given).valid


def test_the_cut_of_features_alone_misses_nothing():
    problem = aope.Problem(data(400), MDP.starts, MDP.policy, replace(FACTS, misfit_norm=None))
    record = aope.bound_value(problem, features=SOME, kernel=KERNEL).record()
    sums = record.classes[0].sums
    assert sums.cut.missed == (0.0, 0.0)
    forged = with_part(record, sums=replace(sums, cut=replace(sums.cut, missed=(0.1, 0.1))))
    assert "what its cut misses" in verify_record(forged).message


def test_covers_with_a_cut():
    """At delta = .5, with no room in either norm, on rows that are enough for a cut."""
    known, trials, covered = exact(), 12, 0
    for seed in range(trials):
        found = aope.bound_value(
            known.problem(400, seed), features=SemiParametric(Coarse(), aope.Tabular()), kernel=aope.Tabular(), delta=0.5
        )
        assert found.certificates[0].cut is not None
        covered += known.value in found
    assert binom.cdf(covered, trials, 0.5) > 1e-3


def test_a_state_box_bounds_what_features_reach():
    """Points of a grid stand for the features; what they miss is added."""
    boxed = under(evaluation(8), state_box=((-3.0, -3.0), (3.0, 3.0)), misfit_norm=0.05)
    with mock.patch.object(function_class, "GRID_NUMBERS", 3000):
        member, found = boxed.member(0), boxed.bound()
    k = member.rest.coordinates
    assert member.residuals.points is not None and not member.residuals.points[:, :k].any()
    assert member.residuals.rest_span == pytest.approx(0.05 * math.sqrt(2.0))
    assert MDP.value in found and found.check(), found.verify().message


def test_around_an_estimate():
    found = evaluation().diagnose(lambda states, actions: np.full(len(states), 1.0))
    assert found.interval.check() and MDP.value in found.interval
    assert "Q minus the given estimate" in next(each.text for each in found.interval.premises if each.name == "misfit-norm")


# Certificates


@pytest.mark.parametrize("radius", ["hoeffding", "azuma", "azuma-anytime", "empirical-bernstein", "certified"])
@pytest.mark.parametrize("pointwise", [None, True, False])
def test_is_proved_again_alone_and_from_the_data(radius, pointwise):
    found = evaluation().bound(radius, pointwise=pointwise)
    assert found.check(), found.verify().message
    given = {"data": data(), "starts": MDP.starts, "policy": MDP.policy, "features": SemiParametric(SOME, SPACE, 25)}
    assert aope.verify(found, **given).valid
    assert not aope.verify(found, **{**given, "features": SemiParametric(SOME, SPACE, 24)}).valid
    assert not aope.verify(found, **{**given, "features": SemiParametric(SOME, aope.Gaussian(1.0), 25)}).valid


@pytest.mark.parametrize("rows", [100, 200, 400])
@pytest.mark.parametrize("rho", [0.1, 1.0, 10.0, 1000.0])
def test_a_radius_of_nothing_is_proved_again(rho, rows):
    """Discount 0 and a reward that is a function of (s, a): what is left of the radius is rounding, counted in two ways."""
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1), norm_bound=2.0, misfit_norm=rho, reward_noise=False)
    problem = aope.Problem(data(rows), MDP.starts, MDP.policy, facts)
    found = aope.bound_value(problem, features=SemiParametric(SOME, SPACE, None), kernel=KERNEL)
    assert found.check(), found.verify().message


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_a_radius_of_nothing_does_not_refute_what_is_true(radius):
    """Mean rewards of a table at discount 0, with no room in either norm: rounding alone must not empty the set."""
    mdp = random_tabular(states=6, actions=2, seed=3, discount=0.0)
    table = softmax_table(np.random.default_rng(4).normal(size=(6, 2)), 1.0)
    q = mdp.q_values(table).ravel()
    theta = np.linalg.lstsq(np.eye(3)[np.repeat(np.arange(6), 2) // 2], q - q.mean(), rcond=None)[0]
    g = q - q.mean() - np.eye(3)[np.repeat(np.arange(6), 2) // 2] @ theta
    facts = aope.Assumptions(
        discount=0.0, reward_range=(0, 1), norm_bound=float(np.linalg.norm(theta)), misfit_norm=float(np.linalg.norm(g)),
        reward_noise=False,
    )  # fmt: skip
    for seed in range(5):
        problem = aope.Problem(mdp.sample_iid(100, np.random.default_rng(seed)), mdp.starts(), mdp.policy(table), facts)
        found = aope.bound_value(
            problem, features=SemiParametric(Coarse(), aope.Tabular(), None), kernel=aope.Tabular(), radius=radius
        )
        assert found.outcome is aope.Status.OK and mdp.value(table) in found and found.check(), found.verify().message


def test_a_file_makes_the_class_again(tmp_path):
    features = SemiParametric(aope.RandomFourier(3), SPACE, 8)
    problem = aope.Problem(data(), MDP.starts, MDP.policy, FACTS)
    found = aope.bound_value(problem, features=features, kernel=KERNEL)
    found.save(tmp_path / "found.json")
    assert aope.verify(tmp_path / "found.json", data=data(), starts=MDP.starts, policy=MDP.policy).valid
    part = found.record().classes[0]
    less = replace(part, rest=replace(part.rest, coordinates=part.rest.coordinates - 1))
    assert "features of the class miss" in verify_record(replace(found.record(), classes=(less,))).message


def with_part(record, **changes):
    return replace(record, classes=(replace(record.classes[0], **changes),))


def with_norm(record, rho):
    """Another declared norm, wherever it is said."""
    old = f"at most {record.assumptions.misfit_norm:.4g} in the RKHS"
    premises = tuple(replace(each, text=each.text.replace(old, f"at most {rho:.4g} in the RKHS")) for each in record.premises)
    return replace(record, assumptions=replace(record.assumptions, misfit_norm=rho), premises=premises)


@pytest.mark.parametrize("radius", ["azuma", "certified"])
@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_another_norm_of_what_is_missed_is_refused(radius, factor):
    record = evaluation().bound(radius).record()
    assert verify_record(with_norm(record, 1.0)).valid
    assert not verify_record(with_norm(record, factor)).valid


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_other_masks_balls_and_bounds_are_refused(radius):
    record = evaluation().bound(radius).record()
    part = record.classes[0]
    assert verify_record(record).valid
    forged = {
        "fewer coordinates": with_part(record, rest=replace(part.rest, coordinates=part.rest.coordinates - 4)),
        "more coordinates": with_part(record, rest=replace(part.rest, coordinates=part.rest.coordinates + 1)),
        "no rest": with_part(record, rest=None),
        "no part of it is unseen": with_part(record, unseen=(0.0, 0.0)),
        "a nearer end": with_part(record, upper=replace(part.upper, bound=part.upper.bound - 0.1)),
        "no norm declared": replace(record, assumptions=replace(record.assumptions, misfit_norm=None)),
    }
    assert not [name for name, each in forged.items() if verify_record(each).valid]


def test_a_smaller_ball_of_what_is_missed_is_refused():
    record = certified().record()
    part = record.classes[0]
    assert any(term.role == Role.REST.value and term.multiplier > 0 for term in part.upper.terms)
    terms = tuple(replace(term, limit=0.25 * term.limit) if term.role == "rest" else term for term in part.upper.terms)
    assert not verify_record(with_part(record, upper=replace(part.upper, terms=terms))).valid
    other = with_part(record, rest=replace(part.rest, diameter=0.5 * part.rest.diameter))
    known = aope.verify(other, data=data(), starts=MDP.starts, policy=MDP.policy, features=SemiParametric(SOME, SPACE, 25))
    assert not known.valid


def test_a_class_of_features_has_no_ball_of_what_they_miss():
    problem = aope.Problem(data(), MDP.starts, MDP.policy, replace(FACTS, misfit_norm=None))
    record = aope.bound_value(problem, features=SOME, kernel=KERNEL, radius="azuma").record()
    upper = record.classes[0].upper
    forged = with_part(record, upper=replace(upper, terms=(*upper.terms, TermRecord("rest", 0.0, None))))
    assert "ball of what features miss" in verify_record(forged).message


# What is said


def test_premises_name_both_norms():
    said = {each.name: each for each in certified().premises}
    assert said["norm"].text.endswith("as declared (an unpenalized constant is left out, and what features miss).")
    assert "has a norm of at most 1 in the RKHS of Gaussian(bandwidth=2), as declared" in said["misfit-norm"].text
    assert said["misfit-norm"].parameter("misfit_norm") == 1.0


def test_fragility_is_that_of_the_norm_of_what_is_missed():
    found = certified(0.3).fragility()
    assert found.of_misfit and [each.norm_bound for each in found.larger] == [0.6, 1.5]
    twice = certified(0.6)
    assert (found.larger[0].lower, found.larger[0].upper) == (twice.lower, twice.upper)
    assert "norm of what features miss" in found.statement.text


def test_a_curve_without_values_lies_around_what_was_declared():
    study = evaluation().study("azuma")
    curve = study.curve("misfit_norm")
    assert 5 <= len(curve.values) <= 15
    (row,) = (row for row in curve.rows() if row.baseline)
    assert (row.value, row.lower, row.upper) == (1.0, study.baseline.lower, study.baseline.upper)
    assert sensitivity_figure([curve]).axes[0].get_xlabel() == "bound on the norm of what the features miss"


def test_a_breakdown_names_the_ball_of_what_features_miss():
    found = evaluation().bound("azuma").breakdown(rows=False)
    assert next(each for each in found.parts if each.name == "misfit-norm").saved > 0


def test_where_a_decision_flips():
    study = evaluation().study("azuma")
    ends = [study.at("misfit_norm", rho).lower for rho in (0.1, 0.6)]
    flip = study.flip_point(sum(ends) / 2, "misfit-norm", tolerance=0.1)
    assert flip.outcome.name == "FLIPS" and 0.1 < flip.value < flip.beyond < 0.7
    assert study.at("misfit_norm", flip.value).lower >= flip.threshold > study.at("misfit_norm", flip.beyond).lower


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"misfit_norm": None}, "`misfit_norm` is needed with SemiParametric"),
        ({"norm_bound": None}, "`norm_bound` is needed"),
        ({"norm_bound": aope.RelativeNorm(2.0)}, "`norm_bound` must be a number"),
    ],
)
def test_norms_must_be_declared(changes, message):
    problem = aope.Problem(data(), MDP.starts, MDP.policy, replace(FACTS, **changes))
    with pytest.raises(aope.InvalidInput, match=message):
        aope.bound_value(problem, features=SemiParametric(SOME, SPACE, 5), kernel=KERNEL)


def test_a_norm_without_such_a_class_is_refused():
    problem = aope.Problem(data(), MDP.starts, MDP.policy, FACTS)
    with pytest.raises(aope.InvalidInput, match="There is no such class"):
        aope.bound_value(problem, features=SOME, kernel=KERNEL)
    plain = aope.Problem(data(), MDP.starts, MDP.policy, replace(FACTS, misfit_norm=None))
    with pytest.raises(aope.InvalidInput, match="`misfit_norm` must be declared"):
        aope.study(plain, features=SOME, kernel=KERNEL).least_misfit_norm()
    with pytest.raises(aope.InvalidInput, match="`misfit_norm` must be positive"):
        replace(FACTS, misfit_norm=0.0)


def test_what_it_is_not_for():
    features = SemiParametric(SOME, SPACE, 5)
    question = aope.Question(MDP.starts, MDP.policy, replace(FACTS, terminates=False))
    with pytest.raises(aope.InvalidInput, match="SemiParametric classes are for values"):
        aope.bound_average_reward(
            data(), MDP.policy, aope.AverageReward(reward_range=(0, 1), norm_bound=2.0), features=features, kernel=KERNEL
        )
    with pytest.raises(aope.InvalidInput, match="SemiParametric depends on the rows"):
        aope.Monitor(question, features=features, kernel=KERNEL, radius="azuma-anytime", planned=100)
    with pytest.raises(aope.InvalidInput, match="`landmarks` must be"):
        SemiParametric(SOME, SPACE, 0)
