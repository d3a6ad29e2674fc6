"""Results that a change of design must not change: every radius, class and statistic, and every question that can be asked.

A case is a name and a function that returns numbers. `golden.json` holds them to 12 digits, written before the first change of
design; tests/golden/test_golden.py computes them again.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np

import accountable_ope as aope
from accountable_ope.bounds.anderson_rubin import anderson_rubin_interval
from accountable_ope.bounds.diagnosis import EstimateVerdict
from accountable_ope.bounds.finite_features import bound_by_finite_features
from accountable_ope.bounds.sandwich import sandwich_interval
from accountable_ope.laboratory import FAMILY_NAMES, family_named
from accountable_ope.problem.problem import Experience
from accountable_ope.radii.registry import RULES
from accountable_ope.statistics.bellman import bellman_residuals
from accountable_ope.statistics.statistic import u_statistic, v_statistic

CASES = {}
UNION = [aope.RandomFourier(8, h, 3) for h in (0.5, 1.0, 2.0)]


OUTCOMES = [status for status in aope.Status if status is not aope.Status.DOUBTED]
"""Without doubts, which are another test's matter."""


def case(name):
    def register(function):
        assert name not in CASES
        CASES[name] = function
        return function

    return register


def drawn(name, n, seed=7):
    family = family_named(name)
    return family, family.draw(np.random.default_rng(seed), n)


def starts_of(family, data):
    return data.first_states() if family.starts is None else family.starts


def problem_of(name, n, change=None):
    family, data = drawn(name, n)
    facts = family.assumptions if change is None else replace(family.assumptions, **change)
    return family, aope.Problem(data, starts_of(family, data), family.policy, facts)


def bound(name, n, radius, *, delta=0.1, features=None, kernel=None, pointwise=False, change=None):
    family, problem = problem_of(name, n, change)
    features, kernel = features or family.features, kernel or family.kernel
    return aope.bound_value(problem, features=features, kernel=kernel, radius=radius, delta=delta, pointwise=pointwise)


def numbers(interval):
    """The ends, what led to them, and what is said about each class."""
    found = [
        interval.lower,
        interval.upper,
        *interval.unclipped,
        interval.start_error,
        interval.radius.level,
        interval.radius.rounding,
        float(OUTCOMES.index(interval.outcome)),
    ]
    for part in interval.certificates:
        nothing = math.nan
        found += [
            nothing if part.norm_bound is None else part.norm_bound,
            nothing if part.least_norm is None else part.least_norm,
            part.least_loss,
            part.least_misfit,
        ]
    assert interval.check()
    return found


for _family in FAMILY_NAMES:
    for _radius in ("hoeffding", "azuma", "certified"):
        case(f"bound {_family} {_radius}")(lambda f=_family, r=_radius: numbers(bound(f, 300, r)))

for _rule in RULES:
    for _family in ("tabular-50", "adaptive-90", "planted-60", "clinic", "first-states", "fair-steps"):
        if _rule.name in ("hoeffding", "azuma", "certified") or (_rule.name == "symmetric" and _family != "fair-steps"):
            continue
        case(f"bound {_family} {_rule.name}")(lambda f=_family, r=_rule.name: numbers(bound(f, 250, r)))

for _radius in ("azuma", "certified", "wild"):
    case(f"large planted-10 {_radius} at .5")(lambda r=_radius: numbers(bound("planted-10", 1500, r, delta=0.5)))
    case(f"large tabular-90 {_radius} at .05")(lambda r=_radius: numbers(bound("tabular-90", 2000, r, delta=0.05)))

for _radius in ("azuma", "certified", "empirical-bernstein"):
    for _landmarks in (20, None):
        case(f"sections {_landmarks} {_radius}")(
            lambda k=_landmarks, r=_radius: numbers(
                bound("planted-60", 150, r, features=aope.KernelSections(aope.Gaussian(1.5), k), change={"norm_bound": 3.0})
            )
        )

for _radius in ("azuma", "certified"):
    case(f"misfit {_radius}")(lambda r=_radius: numbers(bound("planted-60", 300, r, change={"misfit": 0.05})))
    case(f"relative norm {_radius}")(
        lambda r=_radius: numbers(bound("planted-60", 300, r, change={"norm_bound": aope.RelativeNorm(2.0)}))
    )
    case(f"no norm {_radius}")(lambda r=_radius: numbers(bound("tabular-50", 300, r, change={"norm_bound": None})))
    case(f"pointwise {_radius}")(lambda r=_radius: numbers(bound("planted-60", 300, r, pointwise=True)))
    case(f"one step {_radius}")(lambda r=_radius: numbers(bound("planted-60", 300, r, change={"one_step_range": 0.4})))
    case(f"union {_radius}")(lambda r=_radius: numbers(bound("planted-60", 300, r, features=UNION, change={"norm_bound": 5.0})))
    case(f"refuted {_radius}")(
        lambda r=_radius: numbers(
            bound("planted-60", 2000, r, features=aope.RandomFourier(3, 3.0, 1, intercept=False), change={"norm_bound": 0.2})
        )
    )
    case(f"random-feature kernel {_radius}")(
        lambda r=_radius: numbers(bound("planted-60", 400, r, kernel=aope.RandomFeatureKernel(64, 1.0, 5)))
    )
    case(f"laplace {_radius}")(lambda r=_radius: numbers(bound("planted-60", 300, r, kernel=aope.Laplace(1.0))))
    case(f"product {_radius}")(
        lambda r=_radius: numbers(bound("planted-60", 300, r, kernel=aope.Product(aope.Gaussian(0.8), aope.Tabular(), 2)))
    )


@case("precomputed certified")
def precomputed():
    family, _ = drawn("planted-60", 300)
    rng = np.random.default_rng(3)
    columns = aope.Precomputed(rng.normal(size=(300, 4)), rng.normal(size=(300, 4)), rng.normal(size=(len(family.starts), 4)))
    return numbers(bound("planted-60", 300, "certified", features=columns, change={"norm_bound": 0.5}))


for _name, _average in (
    ("fourier hoeffding", ("hoeffding", {"norm_bound": 2.0})),
    ("fourier azuma", ("azuma", {"norm_bound": 2.0})),
    ("fourier azuma span", ("azuma", {"value_span": 0.7})),
):

    @case(f"average {_name}")
    def average(radius=_average[0], given=_average[1]):
        family, data = drawn("planted-60", 400)
        return numbers(
            aope.bound_average_reward(
                data,
                family.policy,
                aope.AverageReward(reward_range=(0.0, 1.0), **given),
                kernel=aope.Gaussian(1.0),
                features=aope.RandomFourier(6, 1.0, 2),
                radius=radius,
            )
        )


@case("average tabular azuma")
def average_tabular():
    family, data = drawn("tabular-50", 500)
    return numbers(
        aope.bound_average_reward(
            data,
            family.policy,
            aope.AverageReward(reward_range=(0.0, 1.0), value_span=1.5),
            kernel=aope.Tabular(),
            features=family.features,
            radius="azuma",
            delta=0.3,
        )
    )


@case("finite features azuma")
def finite_features():
    _, problem = problem_of("planted-60", 400, {"norm_bound": 0.05})
    return numbers(
        bound_by_finite_features(
            problem,
            kernel=aope.Gaussian(1.0),
            features=aope.RandomFourier(200, 1.0, 2),
            coefficient_variance=0.01,
            radius="azuma",
        )
    )


@case("selected certified")
def selected():
    interval, chosen = aope.bound_selected(problem_of("planted-60", 600, {"norm_bound": 5.0})[1])
    return [*numbers(interval), float(chosen.kernel.bandwidth), *(one.held_out_loss for one in chosen.table)]


@case("rkhs certified")
def rkhs():
    return numbers(aope.bound_rkhs(problem_of("planted-60", 400, {"norm_bound": 4.0})[1], landmarks=40))


def estimate(scale):
    def q(states, actions):
        return scale + 0.1 * states[:, 0] - 0.05 * np.asarray(actions, dtype=float)

    return q


def diagnosed(q, radius):
    family, problem = problem_of("planted-60", 500)
    found = aope.diagnose(q, problem, kernel=family.kernel, features=family.features, radius=radius)
    regions = [x for region in found.witness.regions for x in (region.witness, region.mean_residual, region.share)]
    rejected = float(found.verdict is EstimateVerdict.REJECTED)
    return [found.estimate, found.loss, found.radius.total, rejected, *numbers(found.interval), *regions]


def corrected(q, radius):
    family, problem = problem_of("planted-60", 500)
    found = aope.correct(q, problem, kernel=family.kernel, features=family.features, radius=radius)
    scalars = [found.norm, found.estimate_before, found.estimate_after, found.loss_before, found.loss_after, found.least_loss]
    return [*scalars, found.radius.total, *found.theta.tolist(), *numbers(found.interval)]


for _radius in ("azuma", "certified", "wild"):
    for _scale in (1.2, 8.0):
        case(f"diagnose {_scale} {_radius}")(lambda s=_scale, r=_radius: diagnosed(estimate(s), r))
        case(f"correct {_scale} {_radius}")(lambda s=_scale, r=_radius: corrected(estimate(s), r))


for _radius in ("certified", "azuma-anytime"):
    for _family in ("planted-60", "tabular-50"):

        @case(f"monitor {_family} {_radius}")
        def monitored(name=_family, radius=_radius):
            family, data = drawn(name, 450)
            facts = replace(family.assumptions, terminates=False)
            monitor = aope.Monitor(
                aope.Question(family.starts, family.policy, facts),
                kernel=family.kernel,
                features=family.features,
                radius=radius,
                planned=450,
            )
            found = []
            for start in (0, 150, 300):
                report = monitor.update(data.rows(slice(start, start + 150)))
                found += [report.lower, report.upper, *numbers(report.interval)]
            return found


@cache
def studied(radius="certified"):
    family, problem = problem_of("planted-60", 400)
    return aope.study(problem, kernel=family.kernel, features=family.features, radius=radius)


for _over in ("norm_bound", "misfit", "delta", "discount", "reward_range"):

    @case(f"curve {_over}")
    def curve(over=_over):
        found = studied("azuma" if over == "discount" else "certified").curve(over)
        return [*found.values, *found.lower, *found.upper]


@case("least norm")
def least_norm():
    found = studied().least_norm()
    return [found.value, found.consistent]


@case("flip points")
def flips():
    study = studied()
    middle = 0.5 * (study.baseline.lower + study.baseline.upper)
    found = []
    for over in ("norm_bound", "delta", "misfit"):
        flip = study.flip_point(min(middle, study.baseline.lower + 1e-3), over)
        found += [math.nan if x is None else x for x in (flip.value, flip.lower, flip.beyond)]
    return found


@case("rows needed")
def rows_needed():
    found = studied("certified").rows_needed(0.05)
    return [*(p.width for p in found.points), math.nan if found.rows is None else float(found.rows), found.floor]


for _name in ("planted-60", "tabular-50", "first-states"):

    @case(f"sandwich {_name}")
    def sandwich(name=_name):
        family, problem = problem_of(name, 400)
        found = sandwich_interval(problem, kernel=family.kernel, features=family.features)
        return [found.estimate, found.standard_error, found.lower, found.upper, found.start_error]

    @case(f"anderson-rubin {_name}")
    def anderson_rubin(name=_name):
        family, problem = problem_of(name, 400)
        found = anderson_rubin_interval(problem, kernel=family.kernel, features=family.features)
        return [found.lower, found.upper, *found.unclipped, found.rate, found.smallest_eigenvalue, float(found.identified)]


@case("fit_q")
def fitted():
    family, data = drawn("planted-60", 400)
    q = aope.fit_q(data, family.policy, kernel=family.kernel, features=family.features, discount=0.6, ridge=1e-3)
    few = aope.fit_q(data, family.policy, kernel=family.kernel, features=family.features, discount=0.6, steps=7)
    return [*q.theta.tolist(), *few.theta.tolist()]


@case("statistics")
def statistics():
    family, data = drawn("planted-60", 400)
    residuals = bellman_residuals(estimate(1.0), data, family.policy, 0.6)
    points = Experience(data, family.starts, family.policy, 0.6).points
    return [v_statistic(residuals, points, family.kernel), u_statistic(residuals, points, family.kernel)]
