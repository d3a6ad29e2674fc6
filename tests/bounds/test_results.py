"""What all results have in common: one line in a terminal, a table in a notebook, the same member names."""

from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=20)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=20, reward_noise=False, terminates=False)
PROBLEM = aope.Problem(DATA, MDP.starts, MDP.policy, FACTS)
CHOICES = {"features": MDP.features(), "kernel": aope.Gaussian(1.0)}
EVALUATION = aope.evaluate(PROBLEM, **CHOICES)


def too_high(states, actions):
    return np.full(len(states), 8.0)


# Numbers stand for results, which are made where they are looked at: whoever only collects tests does not wait for them.
INTERVALS, THINGS = 7, 27


@cache
def intervals():
    monitor = aope.Monitor(PROBLEM.question, planned=1000, **CHOICES)
    return [
        EVALUATION.bound(),
        monitor.update(DATA),
        aope.bounds.sandwich_interval(PROBLEM, **CHOICES),
        aope.bounds.anderson_rubin_interval(PROBLEM, **CHOICES),
        aope.cross_fitted_interval(PROBLEM, **CHOICES),
        aope.logged_value(PROBLEM),
        aope.baselines.importance_sampling_interval(
            DATA, MDP.policy, behavior=np.full(len(DATA), 1 / 3), discount=0.6, reward_range=(0, 1), horizon=50
        ),
    ]


@pytest.mark.parametrize("number", range(INTERVALS))
def test_intervals_have_the_same_members(number):
    interval = intervals()[number]
    assert interval.width == interval.upper - interval.lower
    assert 0.5 * (interval.lower + interval.upper) in interval and interval.upper + 1 not in interval
    assert isinstance(interval.status, aope.Status) and isinstance(interval.guarantee, aope.Guarantee)
    assert interval.delta == 0.1 and interval.count == len(DATA)
    assert interval.premises and all(isinstance(each, aope.Statement) for each in interval.premises)
    assert repr(interval).startswith(f"{type(interval).__name__}([{interval.lower:.4g}, {interval.upper:.4g}], 90%, ")
    html = interval._repr_html_()
    assert interval.status.name in html and f"[{interval.lower:.4g}, {interval.upper:.4g}]" in html
    assert "Rows are in the order" in html or "episodes" in html


@cache
def everything():
    interval, study = EVALUATION.bound(), EVALUATION.study("azuma")
    part = interval.certificates[0]
    diagnosis, correction = EVALUATION.diagnose(too_high), EVALUATION.correct(too_high)
    monitor = aope.Monitor(PROBLEM.question, planned=1000, **CHOICES)
    monitor.update(DATA)
    return [
        *intervals(), PROBLEM, EVALUATION, part, part.upper, part.tightening, part.constraints, diagnosis, diagnosis.witness,
        correction, study, study.curve("delta", [0.1, 0.2]), study.flip_point(0.5, "delta"), study.least_norm(),
        study.rows_needed(0.1), monitor, monitor.history[0], EVALUATION.statistics[0], EVALUATION.systems[0],
        EVALUATION.member(0),
        aope.fit_q(DATA, MDP.policy, discount=0.6, **CHOICES),
    ]  # fmt: skip


def test_all_of_them_are_looked_at():
    assert (len(intervals()), len(everything())) == (INTERVALS, THINGS)


@pytest.mark.parametrize("number", range(THINGS))
def test_repr_is_one_line(number):
    text = repr(everything()[number])
    assert "\n" not in text and len(text) < 400 and "array(" not in text


@pytest.mark.parametrize("kind", [aope.bounds.Diagnosis, aope.bounds.Correction])
def test_answers_about_an_estimate_have_a_table(kind):
    [result] = [each for each in everything() if isinstance(each, kind)]
    html = result._repr_html_()
    assert "radius" in html and "<table" in html


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: aope.bound_value(DATA, **CHOICES), r"`problem` must be a Problem: aope.Problem\(.*Got Transitions"),
        (lambda: aope.evaluate(DATA, **CHOICES), "`problem` must be a Problem"),
        (lambda: aope.study(DATA, **CHOICES), "`problem` must be a Problem"),
        (lambda: aope.diagnose(PROBLEM, too_high, **CHOICES), "`q` must be callable.*Got Problem"),
        (lambda: aope.correct(too_high, DATA, **CHOICES), "`problem` must be a Problem"),
        (lambda: aope.bound_value(PROBLEM, features=MDP.features(), kernel="gaussian"), "`kernel` must be a kernel.*'gaussian'"),
        (lambda: aope.bound_value(PROBLEM, features=MDP.features(), kernel=aope.Gaussian), "`kernel` must be a kernel"),
        (lambda: aope.evaluate(PROBLEM, features=MDP.features(), kernel=0.5), r"`kernel` must be a kernel.*Got 0\.5"),
        (lambda: aope.Monitor(PROBLEM, planned=10, **CHOICES), "`question` must be a Question.*Got Problem"),
        (lambda: aope.Problem(DATA, MDP.starts, MDP.policy.probabilities, FACTS), "wrap a function: aope.DiscretePolicy"),
        (lambda: aope.Problem(DATA.states, MDP.starts, MDP.policy, FACTS), "aope.load_transitions.*Got an array"),
    ],
)
def test_what_is_no_problem_or_no_kernel_is_refused_in_one_sentence(ask, message):
    with pytest.raises(aope.InvalidInput, match=message):
        ask()
