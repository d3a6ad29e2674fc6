"""docs/guarantees.md lists the premises of every result; here they are compared with what is printed, in both directions.

Every result is asked for under every circumstance that it takes, one at a time. What it prints must be what the page says: the
premises that are always there, and those whose circumstance applies, each with a sentence of the page. And the page may not list
what is never printed.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.baselines import DoublyRobust, importance_sampling_interval
from accountable_ope.bounds import anderson_rubin_interval, bound_by_finite_features, sandwich_interval, sandwich_stream
from accountable_ope.environments import PlantedMDP
from accountable_ope.fitting import Candidates
from accountable_ope.problem import with_propensities
from accountable_ope.problem.step_knowledge import NOTHING_KNOWN
from accountable_ope.radii import cut as cut_module
from accountable_ope.radii.bounded_weights import bounded_weights
from accountable_ope.radii.choice import BEFORE_THE_DATA
from accountable_ope.radii.no_cut import NoCut
from accountable_ope.radii.premises import WEIGHTS, CutWords, cut_remarks

PAGE = (Path(__file__).parent.parent / "docs" / "guarantees.md").read_text()

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=4, length=10)
LOGGED = with_propensities(DATA, MDP.behavior)
UNPAID = aope.Transitions(DATA.states, DATA.actions, np.zeros(len(DATA)), DATA.next_states, episodes=DATA.episodes)
RICH = DATA.paying(1e3 + DATA.rewards)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False)
BOX = (np.full(2, -9.0), np.full(2, 9.0))
KERNEL, FEATURES = aope.Gaussian(1.0), MDP.features()


# The page


def table_after(heading: str) -> list[list[str]]:
    """The cells of the first table after a line that begins so, without its head; `\\|` is a bar."""
    lines = iter(PAGE[PAGE.index(heading) :].splitlines())
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip().replace("\0", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


@dataclass(frozen=True)
class Listed:
    always: set[str]
    where: set[str]


@cache
def listed() -> dict[str, Listed]:
    """The first table: of every result what it prints always, and where it applies."""
    found: dict[str, Listed] = {}
    for results, always, where in table_after("## What every result assumes"):
        for result in re.findall(r"`([^`]+)`", results):
            other = re.fullmatch(r"as `([^`]+)`(?:, but for `([^`]+)`)?(?:, and (`[^`]+`))?", where)
            same = (found[other[1]].where - {other[2]}) | names(other[3] or "") if other else names(where)
            found[result] = Listed(names(always), same)
    return found


@cache
def premises() -> dict[str, tuple[str, list[re.Pattern]]]:
    """The second table: of every premise where it applies, and its sentences."""
    rows = table_after("A sentence has its numbers")
    return {
        name.strip("`"): (where, [re.compile(".+".join(map(re.escape, each.split("...")))) for each in sentences.split(" / ")])
        for name, where, sentences in rows
    }


# Circumstances


def where(name: str) -> str:
    return premises()[name][0]


@dataclass(frozen=True)
class Case:
    """One way to ask; `applies` are the premises whose circumstance holds."""

    applies: frozenset[str]
    facts: tuple[tuple[str, object], ...] = ()
    data: aope.Transitions = DATA
    starts: aope.StartStates = MDP.starts
    policy: aope.problem.Policy = MDP.policy
    radius: str = "azuma"
    chosen: aope.Choice = BEFORE_THE_DATA
    planned: int | None = None
    knowledge: aope.StepKnowledge = NOTHING_KNOWN
    propensities: bool = False

    @property
    def problem(self) -> aope.Problem:
        facts = replace(FACTS, **dict(self.facts))
        return aope.Problem(self.data, self.starts, self.policy, facts, self.knowledge, self.propensities)

    @property
    def classes(self) -> dict[str, object]:
        return {"features": FEATURES, "kernel": KERNEL, "chosen": self.chosen}


def case(*applies: str, **changes: object) -> Case:
    fields = {"radius", "data", "starts", "policy", "chosen", "planned", "knowledge", "propensities"}
    facts = tuple((name, value) for name, value in changes.items() if name not in fields)
    usual = {"fixed-size"} - ({"fixed-size"} if "planned-size" in applies else set())
    ending = set() if "terminates" in applies else {"endless"}
    rest = {name: value for name, value in changes.items() if name in fields}
    return Case(frozenset({*applies, *usual, *ending}), facts, **rest)


def drawn(states, rng):
    return MDP.policy.action_vectors[rng.integers(len(MDP.policy.action_vectors), size=len(states))]


DRAWS = aope.SampledPolicy(drawn, draws=2)
VECTORS = aope.Transitions(
    DATA.states, MDP.policy.action_vectors[DATA.actions], DATA.rewards, DATA.next_states, episodes=DATA.episodes
)
SAMPLE = aope.StartStates(MDP.starts.states, exact=False)
LOOSE = aope.StartStates(MDP.starts.states, MDP.starts.weights, fixed=False)
FAR = aope.TerminalRegion.inside([50.0, 50.0], [60.0, 60.0])
CUT = ("cut", "fixed-starts")


def anywhere(states, actions):
    return states - 9.0, states + 9.0


def moved(states, actions):
    return np.full(len(states), 0.5)


CASES = {
    "plain": case(),
    "declared endless": case(terminates=False),
    "random rewards": case(reward_noise=True),
    "value range": case(value_range=(0.0, 2.0)),
    "terminal": case("terminates", terminates=True),
    "cut off": case("cut-off", data=DATA.rows(slice(0, None)).having_left_out(4)),
    "paid at the end": case("terminates", "terminal-reward", terminal_reward=True, data=UNPAID),
    "horizon": case("terminates", "horizon", horizon=11),
    "one step": case("one-step-range", one_step_range=0.1),
    "one step, another radius": case(one_step_range=0.1, radius="hoeffding"),
    "one step that is no news": case(one_step_range=100.0),
    "no norm bound": case("rounding", norm_bound=None),
    "no norm bound, far from 0": case("rounding", norm_bound=None, reward_range=(1e3, 1e3 + 1), data=RICH),
    "relative norm": case("rounding", norm_bound=aope.RelativeNorm(2.0)),
    "relative norm that counts": case("rounding", "asymptotic", norm_bound=aope.RelativeNorm(2.0), radius="wild"),
    "state box": case("state-box", *CUT, state_box=BOX, radius="certified"),
    "state box, another radius": case(state_box=BOX),
    "cut": case(*CUT, radius="certified"),
    "start states of the log": case(starts=LOOSE, radius="certified"),
    "propensities": case(*CUT, "propensities", data=LOGGED, propensities=True, radius="certified"),
    "propensities, another radius": case(data=LOGGED, propensities=True),
    "a region": case(
        "terminates", "terminal-region", *CUT, radius="certified", knowledge=aope.StepKnowledge(terminal_region=FAR)
    ),
    "a region, another radius": case("terminates", knowledge=aope.StepKnowledge(terminal_region=FAR)),
    "a reach": case("reach", *CUT, radius="certified", knowledge=aope.StepKnowledge(reach=anywhere)),
    "a reach into a region": case(
        "terminates",
        "terminal-region",
        "reach",
        radius="empirical-bernstein",
        knowledge=aope.StepKnowledge(terminal_region=FAR, reach=anywhere),
    ),
    "one step, a function": case(
        "one-step-range", radius="empirical-bernstein", knowledge=aope.StepKnowledge(one_step_range=moved)
    ),
    "one step, a function, another radius": case(knowledge=aope.StepKnowledge(one_step_range=moved)),
    "symmetric": case("symmetric-noise", symmetric_noise=True, radius="symmetric"),
    "symmetric, another radius": case(symmetric_noise=True),
    "wild": case("asymptotic", radius="wild"),
    "sample": case("sampled-starts", starts=SAMPLE),
    "drawn actions": case("drawn-actions", "sampled-starts", policy=DRAWS, data=VECTORS),
    "misfit": case(misfit=0.1),
    "earlier rows": case("later-rows", chosen=aope.Choice(20)),
    "planned": case("planned-size", radius="azuma-anytime", planned=100),
    "planned, without a cut": case("planned-size", radius="certified", planned=100),
    "planned for nothing": case(radius="azuma", planned=100),
}


# Results


def estimate(states, actions):
    return np.full(len(states), 1.0)


def monitored(asked: Case) -> object:
    facts = asked.problem.assumptions
    if facts.terminates is None and facts.horizon is None and not facts.terminal_reward:
        facts = replace(facts, terminates=False)
    radius = "azuma-anytime" if asked.radius == "azuma" else asked.radius
    question = aope.Question(asked.starts, asked.policy, facts, asked.knowledge)
    return aope.Monitor(question, features=FEATURES, kernel=KERNEL, radius=radius, planned=100).update(asked.data)


def monitored_by_sums(asked: Case) -> object:
    facts = asked.problem.assumptions
    if facts.terminates is None and not facts.terminal_reward:
        facts = replace(facts, terminates=False)
    radius = "azuma-anytime" if asked.radius == "azuma" else asked.radius
    question = aope.StreamQuestion(aope.Question(asked.starts, asked.policy, facts), FEATURES, aope.RandomFeatureKernel(20))
    return aope.StreamMonitor(question, radius=radius, planned=100).update(asked.data)


def selected(asked: Case) -> object:
    choice = Candidates(dimension=3, feature_bandwidths=(1.0,), keep=1)
    return aope.bound_selected(asked.problem, candidates=choice, earlier_share=0.5, radius=asked.radius)[0]


def in_rkhs(asked: Case) -> object:
    given = None if "later-rows" in asked.applies else 1.0
    return aope.bound_rkhs(asked.problem, landmarks=5, bandwidth=given, kernel_bandwidth=1.0, radius=asked.radius)


def stream_question(asked: Case) -> aope.StreamQuestion:
    return aope.StreamQuestion(asked.problem.question, FEATURES, aope.RandomFeatureKernel(20))


def streamed(asked: Case) -> object:
    with TemporaryDirectory() as folder:
        aope.save_transitions(asked.problem.data, Path(folder) / "log.parquet")
        return aope.bound_stream(aope.scan_transitions(folder), stream_question(asked), asked.radius)


def stream_diagnosed(asked: Case) -> object:
    with TemporaryDirectory() as folder:
        aope.save_transitions(asked.problem.data, Path(folder) / "log.parquet")
        return aope.diagnose_stream(estimate, aope.scan_transitions(folder), stream_question(asked), asked.radius)


def stream_sandwiched(asked: Case) -> object:
    with TemporaryDirectory() as folder:
        aope.save_transitions(asked.problem.data, Path(folder) / "log.parquet")
        return sandwich_stream(aope.scan_transitions(folder), stream_question(asked))


def summed(asked: Case) -> object:
    question = stream_question(asked)
    sums = aope.partial_statistic(asked.problem.data, question)
    return aope.bound_sums(sums, question, asked.problem.data, asked.radius)


def by_plans(asked: Case) -> aope.Interval:
    """With rates and weights that were fixed for other assumptions."""
    evaluation = aope.evaluate(asked.problem, **asked.classes)
    return evaluation.assuming(replace(FACTS, norm_bound=2.0)).bound("certified", plans=evaluation.plans("certified"))


def of_few_features(asked: Case) -> object:
    return bound_by_finite_features(
        asked.problem, features=aope.RandomFourier(5), kernel=KERNEL, coefficient_variance=1.0, radius=asked.radius
    )


def studied(asked: Case) -> aope.bounds.Study:
    return aope.study(asked.problem, radius=asked.radius, **asked.classes)


def average(name: str = "plain", radius: str = "certified", **facts: object) -> Callable[[Case], object]:
    declared, asked = aope.AverageReward(reward_range=(0, 1), **facts), CASES[name]
    return lambda _: aope.bound_average_reward(
        asked.data, asked.policy, declared, features=FEATURES, kernel=KERNEL, radius=radius
    )


def weighted(method: str, estimator: str | DoublyRobust = "per-decision") -> Callable[[Case], object]:
    data = with_propensities(MDP.sample(np.random.default_rng(0), trajectories=8, length=10), MDP.behavior)
    behavior = None if isinstance(estimator, DoublyRobust) and estimator.least_probability else MDP.behavior
    common = {"behavior": behavior, "discount": 0.6, "reward_range": (0, 1), "horizon": 10}
    return lambda asked: importance_sampling_interval(data, MDP.policy, **common, method=method, estimator=estimator)


OF_A_PROBLEM = tuple(name for name in CASES if not name.startswith("planned"))
FEW = ("plain", "random rewards", "terminal", "cut off", "sample", "earlier rows", "cut", "propensities")
STREAMED = ("plain", "random rewards", "terminal", "cut off", "paid at the end", "sample", "cut")
ASYMPTOTIC = tuple(
    name for name in OF_A_PROBLEM if CASES[name].radius == "azuma" and name not in ("misfit", "earlier rows", "relative norm")
)

ASKED: dict[str, tuple[Callable[[Case], object], tuple[str, ...]]] = {
    "bound_value": (lambda asked: aope.bound_value(asked.problem, radius=asked.radius, **asked.classes), OF_A_PROBLEM),
    "bound_ladder": (lambda asked: aope.bound_ladder(asked.problem, radii=[asked.radius], **asked.classes)[0], FEW),
    "diagnose": (lambda asked: aope.diagnose(estimate, asked.problem, radius=asked.radius, **asked.classes), OF_A_PROBLEM),
    "correct": (lambda asked: aope.correct(estimate, asked.problem, radius=asked.radius, **asked.classes), FEW),
    "study": (lambda asked: studied(asked).baseline, FEW),
    "Study.flip_point": (lambda asked: studied(asked).flip_point(0.0, "delta"), ("plain", "sample")),
    "Study.curve": (lambda asked: studied(asked).curve("delta", [0.1]), ("plain", "sample", "terminal")),
    "Study.least_norm": (lambda asked: studied(asked).least_norm(), ("plain", "sample", "terminal")),
    "Evaluation.bound": (
        lambda asked: aope.evaluate(asked.problem, **asked.classes).bound(asked.radius, planned=asked.planned),
        tuple(CASES),
    ),
    "Monitor.update": (
        monitored,
        tuple(
            name
            for name in OF_A_PROBLEM
            if name not in ("wild", "earlier rows", "one step, another radius") and "relative" not in name
        ),
    ),
    "bound_stream": (streamed, STREAMED),
    "StreamMonitor.update": (monitored_by_sums, tuple(name for name in STREAMED if name not in ("cut", "terminal"))),
    "diagnose_stream": (stream_diagnosed, tuple(name for name in STREAMED if name != "cut")),
    "bound_sums": (lambda asked: summed(asked), STREAMED),
    "bound_selected": (selected, tuple(name for name in OF_A_PROBLEM if name != "earlier rows")),
    "bound_rkhs": (
        in_rkhs,
        tuple(name for name in OF_A_PROBLEM if name != "wild" and "no norm" not in name and "relative" not in name),
    ),
    "bound_by_finite_features": (
        of_few_features,
        tuple(
            name
            for name in OF_A_PROBLEM
            if CASES[name].radius in ("azuma", "hoeffding") and "norm" not in name and name not in ("earlier rows", "misfit")
        ),
    ),
    "sandwich_interval": (lambda asked: sandwich_interval(asked.problem, features=FEATURES, kernel=KERNEL), ASYMPTOTIC),
    "sandwich_stream": (stream_sandwiched, tuple(name for name in STREAMED if name != "cut")),
    "anderson_rubin_interval": (
        lambda asked: anderson_rubin_interval(asked.problem, features=FEATURES, kernel=KERNEL),
        ASYMPTOTIC,
    ),
    "cross_fitted_interval": (lambda asked: aope.cross_fitted_interval(asked.problem, features=FEATURES), ASYMPTOTIC),
}

LONGER = MDP.sample(np.random.default_rng(0), trajectories=12, length=10)


def without_a_class(asked: Case) -> object:
    """Class and kernel are chosen on the first rows."""
    problem = aope.Problem(LONGER, MDP.starts, MDP.policy, replace(FACTS, norm_bound=None))
    return aope.bound_value(problem, radius="azuma")


def around_an_earlier_estimate(asked: Case) -> object:
    chosen = aope.Choice(estimate=True)
    return aope.evaluate(asked.problem, features=FEATURES, kernel=KERNEL, anchor=estimate, chosen=chosen).bound("azuma")


def with_what_features_miss(ask: Callable[[aope.Problem, dict[str, object]], object]) -> Callable[[Case], object]:
    facts = replace(FACTS, misfit_norm=0.5)
    classes = {"features": aope.SemiParametric(FEATURES, aope.Gaussian(2.0), 5), "kernel": KERNEL}
    return lambda _: ask(aope.Problem(DATA, MDP.starts, MDP.policy, facts), classes)


OTHERS = {
    ("bound_value", "what features miss"): (
        with_what_features_miss(lambda problem, classes: aope.bound_value(problem, radius="azuma", **classes)),
        {"endless", "misfit-norm"},
    ),
    ("diagnose", "what features miss"): (
        with_what_features_miss(lambda problem, classes: aope.diagnose(estimate, problem, radius="azuma", **classes)),
        {"endless", "misfit-norm"},
    ),
    ("Evaluation.bound", "what features miss"): (
        with_what_features_miss(lambda problem, classes: aope.evaluate(problem, **classes).bound("azuma")),
        {"endless", "fixed-size", "misfit-norm"},
    ),
    ("Study.least_misfit_norm", "what features miss"): (
        with_what_features_miss(lambda problem, classes: aope.study(problem, radius="azuma", **classes).least_misfit_norm(0.5)),
        {"endless", "misfit-norm"},
    ),
    ("cross_fitted_interval", "many episodes, a kernel"): (
        lambda _: aope.cross_fitted_interval(
            aope.Problem(MDP.sample(np.random.default_rng(0), trajectories=12, length=5), MDP.starts, MDP.policy, FACTS),
            kernel=KERNEL,
        ),
        {"endless", "fixed-starts"},
    ),
    ("logged_value", "cut off"): (lambda _: aope.logged_value(DATA, assumptions=FACTS), {"endless", "truncated"}),
    ("logged_value", "horizon"): (
        lambda _: aope.logged_value(DATA, assumptions=replace(FACTS, horizon=10)),
        {"horizon", "terminates"},
    ),
    ("logged_value", "the end pays"): (
        lambda _: aope.logged_value(UNPAID, assumptions=replace(FACTS, terminal_reward=True)),
        {"terminal-reward", "terminates", "truncated"},
    ),
    ("bound_value", "no class"): (without_a_class, {"endless", "later-rows", "estimate"}),
    ("Evaluation.bound", "plans"): (lambda _: by_plans(CASES["cut"]), {"endless", "fixed-size", *CUT, "plan"}),
    ("Evaluation.bound", "an earlier estimate"): (around_an_earlier_estimate, {"endless", "fixed-size", "estimate"}),
    ("bound_average_reward", "norm"): (average(norm_bound=1.0), {"norm", "cut"}),
    ("bound_average_reward", "span"): (average(value_span=1.0), {"value-span", "rounding", "norm", "cut"}),
    ("bound_average_reward", "span, one number"): (average(radius="azuma", value_span=1.0), {"value-span", "rounding"}),
    ("bound_average_reward", "cut off"): (average("cut off", "azuma", norm_bound=1.0), {"norm", "cut-off"}),
    ("bound_average_reward", "no cut"): (average(radius="empirical-bernstein", norm_bound=1.0), {"norm"}),
    ("bound_average_reward", "wild"): (average(radius="wild", norm_bound=1.0), {"norm", "asymptotic"}),
    ("bound_average_reward", "symmetric"): (
        average(radius="symmetric", norm_bound=1.0, symmetric_noise=True),
        {"norm", "symmetric-noise"},
    ),
    ("bound_average_reward", "state box"): (
        average(radius="azuma", norm_bound=1.0, state_box=((-9.0, -9.0), (9.0, 9.0))),
        {"norm", "state-box"},
    ),
    ("bound_average_reward", "random rewards"): (
        average(value_span=1.0, norm_bound=1.0, reward_noise=False),
        {"norm", "value-span", "cut"},
    ),
    ("bound_average_reward", "drawn actions"): (average("drawn actions", norm_bound=1.0), {"norm", "drawn-actions", "cut"}),
    ("importance_sampling_interval", "betting"): (weighted("betting"), set()),
    ("importance_sampling_interval", "hcope"): (weighted("hcope"), set()),
    ("importance_sampling_interval", "doubly robust"): (weighted("betting", "doubly-robust"), set()),
    ("importance_sampling_interval", "declared"): (
        weighted("betting", DoublyRobust(least_probability=0.001)),
        {"least-probability"},
    ),
    ("importance_sampling_interval", "given"): (
        weighted("betting", DoublyRobust(q=lambda states, actions: states[:, 0])),
        {"estimate"},
    ),
}


@contextmanager
def no_other_weights() -> Iterator[None]:
    """Which weights are best is a matter of few rows here: those of propensities are the only ones."""

    def offered(*given):
        return bounded_weights(*given) if len(given) == 4 else None

    with (
        mock.patch.object(cut_module, "bounded_weights", offered),
        mock.patch.object(cut_module, "fitted_weights", return_value=None),
    ):
        yield


PAIRS = [(result, name) for result, (_, cases) in ASKED.items() for name in cases] + list(OTHERS)


@cache
def printed(result: str, name: str) -> tuple[aope.Statement, ...]:
    ask, given = OTHERS[result, name][0] if (result, name) in OTHERS else ASKED[result][0], CASES.get(name, CASES["plain"])
    with no_other_weights() if given.propensities else nullcontext():
        found = ask(given).premises
    assert all(each.kind.value == "premise" for each in found)
    return tuple(found)


def plain(statement: aope.Statement) -> str:
    """Its sentence, said of Q where the class is anchored at an estimate."""
    return statement.text.replace("The norm of Q minus the given estimate", "||Q||").replace("Q minus the given estimate", "Q")


def applying(result: str, name: str) -> set[str]:
    """The premises whose circumstance holds."""
    if (result, name) in OTHERS:
        return OTHERS[result, name][1]
    found = set(CASES[name].applies)
    if result in ("sandwich_interval", "sandwich_stream", "cross_fitted_interval") and name != "sample":
        found.add("fixed-starts")  # the start distribution is given
    if CASES[name].radius == "certified":
        found.add("plan")  # of a study; other results have none
    return found


@pytest.mark.parametrize(("result", "name"), PAIRS)
def test_a_result_prints_what_the_page_lists(result, name):
    page = listed()[result]
    applies = applying(result, name)
    if result == "Evaluation.bound" and name != "plans":
        applies -= {"plan"}
    assert {each.name for each in printed(result, name)} == page.always | (page.where & applies)


@pytest.mark.parametrize(("result", "name"), PAIRS)
def test_sentences_are_those_of_the_page(result, name):
    for each in printed(result, name):
        _, sentences = premises()[each.name]
        assert any(sentence.fullmatch(plain(each)) for sentence in sentences), each


def test_the_page_lists_nothing_that_is_never_printed():
    """No premise of a result, no result and no sentence."""
    assert {result for result, _ in PAIRS} == set(listed())
    same = {
        "bound_ladder",
        "correct",
        "study",
        "Study.flip_point",
        "Study.curve",
        "Study.least_norm",
        "Study.least_misfit_norm",
    }  # by way of `bound_value`
    for result, page in listed().items():
        seen = {each.name for other, name in PAIRS if other == result for each in printed(other, name)}
        assert page.always <= seen
        assert result in same or page.where <= seen, page.where - seen
    texts = {each.name: set() for each in printed("bound_value", "plain")}
    for pair in PAIRS:
        for each in printed(*pair):
            texts.setdefault(each.name, set()).add(plain(each))
    assert set(texts) == set(premises())
    for name, (_, sentences) in premises().items():
        for sentence in sentences:
            assert any(sentence.fullmatch(text) for text in texts[name]), f"{name}: {sentence.pattern} is never printed"


def test_remarks_are_those_of_the_page():
    """Each with its reason, and none beside them."""
    found = [
        *cut_remarks([CutWords(kind, 10) for kind in WEIGHTS], [None] * len(WEIGHTS)),
        *(each.statement for each in NoCut),
    ]
    rows = [(name.strip("`"), reason.strip("`"), text) for name, reason, text in table_after("Beside its premises")]
    listed = {(name, reason, sentence) for name, reason, text in rows for sentence in text.split(" / ")}
    printed = {
        (each.name, dict(each.parameters).get("reason", ""), each.text.replace("first 10 rows", "first ... rows"))
        for each in found
    }
    assert printed == listed


def test_a_circumstance_is_named_where_it_is_needed():
    """Whatever is not always printed says where it applies."""
    for page in listed().values():
        assert all(where(name) for name in page.where)


def test_every_result_with_a_guarantee_is_on_the_page():
    """Public functions that return something with premises; those that only lead to one are named by it."""
    known = {name.split(".")[0] for name in listed()}
    public = {name for name in dir(aope) if name.startswith("bound_")} | {
        "diagnose",
        "diagnose_stream",
        "correct",
        "study",
        "Monitor",
        "StreamMonitor",
        "Evaluation",
        "logged_value",
    }
    public |= {name for name in dir(aope.bounds) if name.startswith("bound_") or name.endswith("_interval")}
    public |= {name for name in aope.baselines.__all__ if name.startswith("importance_")}
    assert public <= known | {"Study"}, public - known
