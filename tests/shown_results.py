"""One of every kind of result, small: what is tried on its way out."""

from functools import cache

import numpy as np

import accountable_ope as aope
import every_result
from accountable_ope import baselines, bounds

HOSTILE = '<script>alert("x")</script>'
MDP = every_result.MDP
SETTING = {"features": MDP.features(), "kernel": every_result.KERNEL}


def question():
    facts = aope.Assumptions(0.6, (0, 1), norm_bound=9.0, reward_noise=False, terminates=False)
    return aope.Question(MDP.starts, MDP.policy, facts)


def watched(monitor):
    """A monitor that looked twice, and what it said at last."""
    for night in range(2):
        report = monitor.update(MDP.sample(np.random.default_rng(night), trajectories=4), f"night {night}")
    return monitor, report


def stream_monitor():
    asked = aope.StreamQuestion(question(), MDP.features(), aope.RandomFeatureKernel(20))
    return aope.StreamMonitor(asked, planned=400, keep=100)


def importance_sampling():
    log = MDP.sample(np.random.default_rng(0), trajectories=30, length=8)
    facts = {"discount": 0.6, "reward_range": (0, 1), "horizon": 8}
    return baselines.importance_sampling_interval(log, MDP.policy, behavior=np.full(len(log), 1 / 3), **facts)


def compared():
    names = [aope.NamedPolicy("new", MDP.policy), aope.NamedPolicy(HOSTILE, MDP.policy)]
    return aope.compare(every_result.problem(), names, **SETTING, radius="azuma")


MAKERS = {
    "Interval": lambda: every_result.result("azuma"),
    "LoggedValue": lambda: aope.logged_value(every_result.problem()),
    "CrossFittedInterval": lambda: aope.cross_fitted_interval(every_result.problem(), **SETTING, landmarks=10),
    "SandwichInterval": lambda: bounds.sandwich_interval(every_result.problem(), **SETTING),
    "AndersonRubinInterval": lambda: bounds.anderson_rubin_interval(every_result.problem(), **SETTING),
    "BaselineInterval": importance_sampling,
    "Diagnosis": lambda: aope.diagnose(every_result.estimate, every_result.problem(), **SETTING, radius="azuma"),
    "Correction": lambda: aope.correct(every_result.estimate, every_result.problem(), **SETTING, radius="azuma"),
    "Comparison": compared,
    "Curve": lambda: study().curve("norm_bound", [1e-3, 1.0, 2.0, 4.0]),
    "Flip": lambda: study().flip_point(0.5, "norm_bound", 0.5),
    "LeastNorm": lambda: study().least_norm(0.5),
    "RowsNeeded": lambda: study().rows_needed(0.1, 2),
    "MisfitNorms": lambda: every_result.result("features and what they miss, azuma").misfit_norms(0.5),
    "Breakdown": lambda: result("Interval").breakdown(False),
    "HalfClass": lambda: every_result.bound("azuma", every_result.MANY).half_class(),
    "Monitor": lambda: watched(aope.Monitor(question(), **SETTING, radius="azuma-anytime", planned=400))[0],
    "StreamMonitor": lambda: watched(stream_monitor())[0],
    "MonitorReport": lambda: watched(aope.Monitor(question(), **SETTING, radius="azuma-anytime", planned=400))[1],
    "Verification": lambda: result("Interval").verify(),
    "Verdict": lambda: result("Interval").verdict(),
    "Ruling": lambda: result("Interval").decide(0.5),
}
NAMES = tuple(MAKERS)
DRAWN = tuple(name for name in NAMES if name not in ("Verdict", "Ruling"))


def study():
    return aope.study(every_result.problem(), **SETTING, radius="azuma")


@cache
def result(name):
    return MAKERS[name]()
