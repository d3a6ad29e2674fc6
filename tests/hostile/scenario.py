"""Every public function and constructor, called once on tiny data and recorded, to be called again with hostile arguments."""

import contextlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import accountable_ope as aope
from accountable_ope import (
    adapters,
    baselines,
    bounds,
    classes,
    defaults,
    environments,
    fitting,
    io,
    kernels,
    laboratory,
    problem,
    programs,
    radii,
    verification,
)
from accountable_ope import statistics as sums
from accountable_ope.statistics import engines

ROOMS = (
    aope,
    adapters,
    baselines,
    bounds,
    classes,
    defaults,
    engines,
    environments,
    fitting,
    io,
    kernels,
    laboratory,
    problem,
    programs,
    radii,
    sums,
    verification,
)

NOT_CALLED = {
    "accountable_ope.laboratory.trials.run_trials": "starts processes; its arguments are those of `aope coverage`",
    "accountable_ope.fitting.neural.train_neural_features": "needs torch, and seconds",
    "accountable_ope.fitting.neural.select_neural_features": "needs torch, and seconds",
    "accountable_ope.fitting.neural.NeuralSelection": "made by select_neural_features",
    "accountable_ope.fitting.training.NeuralTraining": "made by train_neural_features",
    "accountable_ope.adapters.stable_baselines.sb3_policy": "needs Stable-Baselines3, and seconds",
    "accountable_ope.adapters.torch_modules.torch_policy": "needs torch, and seconds",
    "accountable_ope.io.minari.load_minari": "needs Minari",
    "accountable_ope.io.minari.save_minari": "needs Minari",
    "accountable_ope.io.recording.record_episodes": "needs Gymnasium; see tests/io/test_recording.py",
    "accountable_ope.io.recording.recorder": "needs Gymnasium; see tests/io/test_recording.py",
    "accountable_ope.io.scanning.TransitionScan": "made by scan_transitions",
    "accountable_ope.programs.pointwise.PointwiseBound": "a result",
    "accountable_ope.statistics.engines.dask.Dask.kernel_statistics": "starts processes",
    "accountable_ope.statistics.engines.dask.Dask.stream_statistic": "starts processes",
    "accountable_ope.statistics.engines.dask.Dask.stream_sums": "starts processes",
    "accountable_ope.verification.record.Record": "made by Interval.record and load_record",
    "accountable_ope.verification.verify.Verification": "a result",
}
"""Public names that the scenario leaves out, with the reason."""


class GoodCall(NamedTuple):
    """A call that works."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


def public_callables() -> dict[str, Callable[..., Any]]:
    """Whatever can be called by a public name, and the checked methods of public classes."""
    found: dict[str, Callable[..., Any]] = {}
    for room in ROOMS:
        lazily = vars(room).get("__getattr__")
        for name in room.__all__:
            value = lazily(name) if lazily else getattr(room, name)
            if inspect.ismodule(value) or not callable(value) or getattr(value, "_is_protocol", False):
                continue
            if isinstance(value, type) and issubclass(value, Enum | BaseException):
                continue
            if not any(each.kind is not each.VAR_POSITIONAL for each in inspect.signature(value).parameters.values()):
                continue
            found[f"{value.__module__}.{value.__name__}"] = value
            for owner in value.__mro__ if isinstance(value, type) else ():
                if owner.__module__.split(".")[0] != aope.__name__:
                    continue
                for method, body in vars(owner).items():
                    body = getattr(body, "__func__", body)
                    if not method.startswith("_") and hasattr(body, "__wrapped__") and inspect.isfunction(body):
                        found[f"{owner.__module__}.{owner.__name__}.{method}"] = body
    return found


def record(play: Callable[[Path], None], folder: Path) -> dict[str, GoodCall]:
    """The arguments of the first call of every public callable while `play` runs."""
    wanted, found = {}, {}
    for name, value in public_callables().items():
        maker = (value.__new__ if issubclass(value, tuple) else value.__init__) if isinstance(value, type) else value
        maker = inspect.unwrap(maker)
        wanted[id(maker.__code__)] = (name, value, tuple(inspect.signature(value).parameters))

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and id(frame.f_code) in wanted:  # two constructors with the same fields have equal code
            name, value, parameters = wanted[id(frame.f_code)]
            if name not in found:
                found[name] = GoodCall(value, {each: frame.f_locals[each] for each in parameters if each in frame.f_locals})

    sys.setprofile(watch)
    try:
        play(folder)
    finally:
        sys.setprofile(None)
    return found


def play(folder: Path) -> None:
    """Tiny data through every door."""
    rng = np.random.default_rng(0)
    mdp = environments.PlantedMDP(seed=1, features=3, discount=0.6)
    data = mdp.sample(rng, trajectories=6, length=5)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False, terminates=False)
    asked = aope.Problem(data, mdp.starts, mdp.policy, facts)
    kernel, tiles = aope.Gaussian(1.0), kernels.TileOptions(threads=1)
    phi = mdp.features()
    common = {"features": phi, "kernel": kernel, "delta": 0.1, "options": tiles, "progress": silent}
    _problem(data, mdp, facts, asked)
    _classes(folder, data, mdp, facts, asked, phi)
    _kernels(data, mdp, kernel, tiles)
    _defaults(folder, mdp, facts)
    _bounds(folder, data, mdp, asked, common)
    _statistics(asked, phi, kernel, tiles)
    _programs(asked, phi, kernel)
    _files(folder, data, mdp)
    _adapters(folder)
    _environments(rng)
    _fitting(data, mdp, kernel)
    _baselines(data, mdp)
    _laboratory(folder)


def silent(done: float) -> None:
    """Progress that nobody looks at."""


def estimate(states: Any, actions: Any) -> Any:
    """An existing Q."""
    return np.zeros(len(states))


def _problem(data: Any, mdp: Any, facts: Any, asked: Any) -> None:
    aope.RelativeNorm(1.5)
    aope.Question(mdp.starts, mdp.policy, facts).on(data)
    asked.assuming(facts)
    asked.split(0.5)
    data.split(0.5)
    data.named(aope.Naming(("x", "y=up", "y=down")[: data.states.shape[1]], (), ()))
    problem.Categories("y", 1, ("up", "down"))
    uniform = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    aope.TabulatedPolicy([[0.0], [1.0]], [[0.2, 0.8], [1.0, 0.0]], actions=2)
    aope.DeterministicPolicy(lambda states: -0.5 * states)
    aope.SampledPolicy(lambda states, generator: generator.normal(size=(len(states), 1)), draws=2)
    aope.GaussianPolicy(lambda states: -0.5 * states, covariance=0.1).sampled(draws=2)
    aope.EpsilonGreedy(uniform, 0.1)
    aope.MixturePolicy([uniform, uniform], [0.5, 0.5])
    aope.SoftmaxPolicy(lambda states, actions: states[:, 0] * actions, actions=2, temperature=1.0)
    next(iter(uniform.branches(np.zeros((1, 1)))))
    problem.Branch(np.zeros((1, 1)), np.ones(1), 0)
    problem.check_data(data, facts)
    problem.check_rewards(data, (0.0, 1.0))
    region = aope.TerminalRegion.outside([-9.0, -9.0], [9.0, 9.0])
    aope.TerminalRegion.inside([8.0, 8.0], [9.0, 9.0])
    aope.TerminalRegion.where(lambda states: states[:, 0] > 9, name="far")
    known = aope.StepKnowledge(region, mdp.step_knowledge().reach)
    rows = problem.RowRanges.of(data, facts, known, terminates=True)
    rows.bounds(problem.NextValues(0.0, 1.0))
    problem.check_steps(data, mdp.starts, rows)
    problem.first_rows([data, data], len(data) + 2)
    problem.state_action_points(data.states, data.actions, mdp.policy)
    problem.value_ranges(facts, terminates=False)
    problem.Experience(data, mdp.starts, mdp.policy, 0.6)
    problem.Statement(problem.Kind.ADVICE, "name", "Text.")


def _classes(folder: Path, data: Any, mdp: Any, facts: Any, asked: Any, phi: Any) -> None:
    fourier = aope.RandomFourier(3, bandwidth=0.5)
    q = aope.LinearQ(fourier, np.zeros(4), np.eye(2))
    classes.save_linear_q(q, folder / "q.npz")
    classes.load_linear_q(folder / "q.npz")
    aope.TabularFeatures.grid([[0.0]], [[1.0]])
    aope.NeuralFeatures((np.zeros((3, 2)),), (np.zeros(3),), np.ones(3))
    aope.Precomputed(np.zeros((4, 2)), np.zeros((4, 2)), np.zeros((1, 2)))
    classes.ActionFourier(2, [1.0, 0.5], np.eye(2))
    classes.ScaledFeatures(fourier, 2.0)
    classes.JoinedFeatures((fourier, fourier))
    classes.ActionProducts(np.zeros(1), np.ones(1), 2, np.eye(2))
    classes.ActionTiles(np.zeros(1), np.ones(1), 2, 1, np.eye(2))
    classes.TreeValues(np.zeros((1, 3), int), np.array([[1, 0, 0]]), np.zeros((1, 3)), np.zeros((1, 3)))
    classes.GivenValues(lambda states, actions: states[:, 0], 1, np.eye(2))
    classes.whiten(fourier, np.arange(20.0).reshape(10, 2))
    classes.Cover(np.zeros((2, 2)), 0.0)
    classes.as_classes([fourier])
    classes.expected_features(phi, data.states, mdp.policy)
    span = classes.Span(phi, True)
    classes.residual_range(span, mdp.policy, facts, asked.ranges, terminates=False)
    aope.KernelSections(aope.Gaussian(0.5), landmarks=5).columns(asked.experience)
    aope.SemiParametric(phi, aope.Gaussian(0.5), landmarks=5).columns(asked.experience)


def _kernels(data: Any, mdp: Any, kernel: Any, tiles: Any) -> None:
    points = problem.state_action_points(data.states, data.actions, mdp.policy)
    aope.Product(kernel, aope.Laplace(1.0), 1)
    aope.RandomFeatureKernel(4)
    kernels.block(kernel, points, points)
    kernels.kernel_product(kernel, points, points, tiles)


def _defaults(folder: Path, mdp: Any, facts: Any) -> None:
    longer = mdp.sample(np.random.default_rng(1), trajectories=24, length=5)
    asked = aope.Problem(longer, mdp.starts, mdp.policy, replace(facts, norm_bound=None))
    recipe = defaults.choose_recipe(asked, within=0.1, neural=False, candidates=["cosines"])
    defaults.Judged("cosines", 10, 0.001, 0.001, 1e-6, 1e-6, 1e-6, 1e-3)
    recipe.later(asked)
    defaults.save_recipe(recipe, folder / "choice.npz")
    defaults.load_recipe(folder / "choice.npz")


def _bounds(folder: Path, data: Any, mdp: Any, asked: Any, common: dict[str, Any]) -> None:
    azuma = {**common, "radius": "azuma"}
    aope.bound_value(asked, **azuma, pointwise=False, chosen=aope.Choice(), engine="tiles")
    aope.bound_ladder(asked, **common, radii=["azuma"], anchor=None, engine="auto")
    aope.bound_rkhs(asked, landmarks=4, radius="azuma", delta=0.1, earlier_share=0.5)
    aope.bound_selected(asked, candidates=fitting.Candidates(2, (0.5,), keep=1), earlier_share=0.5, radius="azuma")
    aope.bound_average_reward(data, mdp.policy, aope.AverageReward((0, 1), value_span=2.0), **azuma)
    interval = aope.bound_value(asked, **azuma)
    aope.verify(interval, data=data, starts=mdp.starts, policy=mdp.policy, features=common["features"])
    interval.to_frame("pandas")
    interval.plot(None)
    ruling = interval.decide(0.5)
    interval.verdict(0.5)
    interval.breakdown(False)
    interval.half_class()
    bounds.HalfClass(2, 4, (0.0, 1.0), 0.1, 0.9, aope.Status.OK)
    bounds.Ruling(ruling.judgment, ruling.claim, 0.1, ruling.if_true, ruling.statement)
    bounds.Verdict("A sentence.", "", None, (), interval.advice, None, None)
    bounds.Companions(None, None, (), None, False)
    bounds.Altered("norm", "half", 0.0, 1.0, aope.Status.OK, 0.5)
    bounds.Breakdown(0.0, 1.0, (), (), 0.0, None)
    named = aope.NamedPolicy("new", mdp.policy)
    compared = aope.compare(asked, [named], **azuma, logged=True, chosen=aope.Choice(), within=None, recipes=None)
    compared.difference("new", "logged policy")
    compared.decide("new")
    verification.save_record(folder / "certificate.json", interval.record())
    verification.load_record(folder / "certificate.json")
    verification.verify_record(interval.record())
    problem.at_start(mdp.policy)
    aope.diagnose(estimate, asked, **azuma, within=None, recipe=None)
    aope.correct(estimate, asked, **azuma, within=None, recipe=None)
    bounds.CorrectedQ(estimate, aope.LinearQ(aope.RandomFourier(2), np.zeros(3)))
    evaluation = aope.evaluate(asked, **{name: value for name, value in common.items() if name != "delta"})
    evaluation.bound("azuma", 0.1, planned=30)
    evaluation.ladder(["azuma"], 0.1)
    evaluation.assuming(asked.assumptions)
    evaluation.of_class(0)
    evaluation.member(0)
    evaluation.again(asked)
    evaluation.anchored(estimate)
    evaluation.diagnose(estimate, "azuma")
    evaluation.correct(estimate, "azuma")
    study = evaluation.study("azuma", 0.1)
    aope.study(asked, **azuma)
    study.at("delta", 0.2)
    study.curve("delta", [0.1, 0.2])
    study.least_norm(0.5)
    study.flip_point(0.1, "norm_bound", 0.5)
    study.rows_needed(0.1, 2)
    missed = aope.SemiParametric(common["features"], aope.Gaussian(2.0), landmarks=5)
    wider = asked.assuming(replace(asked.assumptions, norm_bound=2.0, misfit_norm=1.0))
    missing = aope.study(wider, **{**azuma, "features": missed})
    missing.least_misfit_norm(0.5)
    tried = missing.baseline.misfit_norms(0.5)
    bounds.MisfitNorms(tried.curve, tried.least, tried.flip)
    question = aope.Question(mdp.starts, mdp.policy, asked.assumptions)
    setting = {"features": common["features"], "kernel": common["kernel"], "radius": "azuma-anytime", "planned": 100}
    monitor = aope.Monitor(question, **setting)
    monitor.update(data)
    monitor.look_with(data)
    monitor.decided(-1.0)
    monitor.save(folder / "monitor.npz")
    aope.Monitor.load(folder / "monitor.npz", question, **setting)
    plain = {name: value for name, value in common.items() if name in ("kernel", "delta", "options", "progress")}
    bounds.bound_by_finite_features(asked, features=aope.RandomFourier(3), coefficient_variance=1.0, **plain)
    bounds.sandwich_interval(asked, **common)
    bounds.anderson_rubin_interval(asked, **common, draws=50)
    aope.cross_fitted_interval(asked, features=common["features"], kernel=common["kernel"], delta=0.1, folds=2, landmarks=3)
    aope.logged_value(data, discount=0.6, reward_range=(0.0, 1.0), delta=0.1)


def _statistics(asked: Any, phi: Any, kernel: Any, tiles: Any) -> None:
    system = sums.bellman_system(asked.experience, phi)
    sums.q_columns(estimate, asked.experience)
    sums.bellman_residuals(estimate, asked.data, asked.policy, 0.6)
    sums.kernel_statistic(system, kernel, tiles, None, "auto")
    sums.kernel_statistics([system], kernel, tiles, None, "auto")
    engines.EngineChoice("tiles", "Asked for.")
    engines.EngineUsed("tiles", "Asked for.")
    engines.choose(kernel, rows=10, dimension=2, columns=3, options=tiles)
    engines.Dask(None, workers=2)
    sums.u_statistic(system.target, system.points, kernel)
    sums.v_statistic(system.target, system.points, kernel)
    sums.witness_of(system.target, system.points, kernel)
    sums.specification_test(kernel, system.points, system.residuals, system.target)
    sums.SpecificationTest()
    sums.weighted_chi_square_tail(1.0, np.array([1.0, 0.5]))
    radii.Doubt(radii.DoubtKind.CLASS, 0.001, problem.Statement(problem.Kind.DOUBT, "class", "Q is not in it."), False)
    radii.split_delta(0.1, start_is_exact=True)
    radii.radius_rule("azuma")
    radii.wild_radius(system, kernel, np.zeros(len(system.objective)), 0.1, draws=20)
    radii.RadiusRule("mine", "none", radii.RULES[0].rests)


def _programs(asked: Any, phi: Any, kernel: Any) -> None:
    evaluation = aope.evaluate(asked, features=phi, kernel=kernel)
    [part] = evaluation.bound("azuma").certificates
    objective = evaluation.systems[0].objective
    programs.solve(part.constraints, objective)
    programs.least_norm(part.constraints)
    penalized = evaluation.systems[0].penalized
    loss = programs.Quadratic(np.eye(len(objective)), np.zeros(len(objective)), 0.0)
    decomposition = programs.decompose(loss, penalized)
    programs.least_correction(decomposition, 1.0)
    programs.extreme_value(objective, programs.FeasibleSet(decomposition, 1.0, 2.0))
    ball = programs.ball(penalized, 1.0)
    programs.Constraint(ball.role, ball.quadratic, 1.0)
    programs.maximize_dual(programs.Quadratic(-np.eye(len(objective)), objective, 0.0), (ball,), np.ones(1))
    rows = programs.PointwiseRows(np.eye(len(objective)), -np.ones(len(objective)), np.ones(len(objective)))
    programs.pointwise_bound(objective, part.upper.constraints, rows, rounds=1)


def _files(folder: Path, data: Any, mdp: Any) -> None:
    aope.save_transitions(data, folder / "log.parquet")
    aope.load_transitions(folder / "log.parquet")
    scan = aope.scan_transitions(folder / "log.parquet", batch_rows=20)
    scan.where(3)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1))
    asked = aope.Question(mdp.starts, mdp.policy, facts)
    question = aope.StreamQuestion(asked, mdp.features(), aope.RandomFeatureKernel(4))
    aope.stream_statistic(scan, question, silent).statistic()
    total = aope.partial_statistic(data, question)
    aope.bound_stream(scan, question, "azuma", 0.1, memory=1000, progress=silent, engine="rows")
    aope.bound_stream(scan, question, "azuma", 0.1, memory=1000, progress=silent, resume=folder / "state.npz")
    aope.bound_sums(total, question, data, "azuma", 0.1)
    watched = aope.StreamQuestion(replace(asked, assumptions=replace(facts, terminates=False)), mdp.features(), question.kernel)
    monitor = aope.StreamMonitor(watched, radius="certified", delta=0.1, planned=100, keep=10)
    monitor.update(data, "monday")
    monitor.decided(0.5)
    monitor.save(folder / "monitor.npz")
    aope.StreamMonitor.load(folder / "monitor.npz", watched, radius="certified", delta=0.1, planned=100, keep=10)
    bounds.sandwich_stream(scan, question, 0.1, progress=silent)
    aope.diagnose_stream(mdp.q, scan, question, "azuma", 0.1, memory=1000, progress=silent, resume=folder / "state.npz")
    scan.after(3)
    with contextlib.suppress(aope.InvalidInput):  # so few rows choose nothing
        aope.stream_value(scan, asked, "azuma", 0.1, within=0.2, neural=False, engine="auto")
    aope.save_starts(mdp.starts, folder / "starts.parquet")
    aope.load_starts(folder / "starts.parquet")
    rows = pa.table({"x": [0.5, 0.0, 1.0], "did": ["a", "b", "a"], "pay": [0.0, 1.0, 0.5], "who": [1, 1, 1]})
    read = aope.from_dataframe(rows, state="x", action="did", reward="pay", episode="who", actions=["a", "b"])
    aope.starts_from_dataframe(rows, naming=read.naming, state="x", weight="pay")
    seen = SimpleNamespace(
        observations=np.zeros((3, 1)), actions=np.zeros((3, 1), int), rewards=np.zeros((3, 1)), terminated=True
    )
    aope.from_d3rlpy(SimpleNamespace(episodes=[seen]))


class Fitted:
    """A model in the manner of other libraries."""

    classes_ = np.arange(2)

    def predict_proba(self, rows: Any) -> Any:
        return np.full((len(rows), 2), 0.5)

    def predict(self, rows: Any) -> Any:
        return np.zeros(len(rows))


def _adapters(folder: Path) -> None:
    model = adapters.sklearn_q(Fitted(), actions=2).model
    adapters.RegressorQ(model, np.eye(2))
    adapters.sklearn_policy(Fitted(), actions=2, naming=aope.Naming())
    adapters.d3rlpy_policy(Fitted(), actions=2)
    adapters.rule_policy("1 if state_0 > 2 else 0", aope.Naming(), actions=2)
    with contextlib.suppress(ImportError):
        import onnx_files

        adapters.onnx_policy(onnx_files.linear(folder / "policy.onnx", np.eye(2)), "logits", 2, aope.Naming(), [0, 1])
        q = adapters.onnx_q(onnx_files.linear(folder / "q.onnx", np.eye(2), output="q"), 2)
        adapters.OnnxQ(q.model, np.eye(2))
    bounds.Explanation((), (), ())
    bounds.SeenRow(0, (0.0,), 1, 0.5, (1.0,), 2.0, 1.0, -0.5, "state_0 0, action 1")


def _environments(rng: np.random.Generator) -> None:
    chain = environments.chain(3, 0.5)
    environments.mixture(np.full((3, 2), 0.5), np.full((3, 2), 0.5), 0.5)
    environments.softmax_table(np.zeros((3, 2)), 1.0)
    environments.bandit(2, 2, 0)
    environments.clinic()
    environments.random_tabular(2, 2, 0, 0.5)
    environments.rare_jump(0.1, 0.5)
    environments.scalar_regulator()
    environments.planar_regulator()
    environments.QuadraticFeatures(2)
    task, policy = environments.control_task("puck-mountain"), environments.softmax_policy("puck-mountain", 0.1)
    environments.InvertedPendulum()
    environments.measured_value("puck-mountain", 0.1)
    environments.roll_out(task, policy, rng, episodes=2, length=2)
    environments.monte_carlo_value(task, policy, rng, discount=0.5, episodes=2, length=2)
    chain.sample_iid(2, rng)


def _fitting(data: Any, mdp: Any, kernel: Any) -> None:
    aope.fit_q(data, mdp.policy, kernel=kernel, features=mdp.features(), discount=0.6)
    fitting.NeuralCandidate()
    fitting.median_bandwidth(data.states)
    fitting.pessimistic_union(2)
    fitting.select(data, mdp.policy, discount=0.6, candidates=fitting.Candidates(2, (0.5,), keep=1), earlier_share=0.5)


def _baselines(data: Any, mdp: Any) -> None:
    x = np.linspace(0.1, 0.9, 20)
    samples = baselines.Samples(x, 1 - x)
    baselines.betting_interval(samples, 0.1)
    baselines.hcope_interval(samples, 0.1)
    baselines.betting_lower(x, 0.1)
    baselines.choose_threshold(x, 20, 0.1)
    baselines.hcope_lower(x, 1.0, 0.1)
    baselines.split_hcope_lower(x, 0.1)
    baselines.return_range(0.6, (0.0, 1.0), 5)
    baselines.truncation_gap(0.6, (0.0, 1.0), 5)
    baselines.taken_probabilities(mdp.policy, data)
    common = {"discount": 0.6, "reward_range": (0.0, 1.0), "horizon": 5}
    baselines.episode_returns(data, mdp.policy, mdp.policy, **common)
    baselines.importance_sampling_interval(data, mdp.policy, behavior=mdp.policy, **common)
    baselines.DoublyRobust(least_probability=0.5)
    below = baselines.BoundedSamples(x, np.zeros(20), (0.5, 0.3))
    above = baselines.BoundedSamples(-x, -np.ones(20), (-0.5, 0.3))
    baselines.corrected_interval(baselines.CorrectedReturns(below, above), 0.1)
    many = problem.with_propensities(mdp.sample(np.random.default_rng(0), trajectories=8, length=5), mdp.behavior)
    problem.propensity_weights(many, mdp.policy, 0.6, rows_per_episode=5.0)
    baselines.corrected_returns(many, mdp.policy, mdp.policy, **common)
    baselines.fit_returns(data, mdp.policy, None, np.array([[0.0, 0.0], [0.0, 1.0]]), 0.6)
    baselines.Needs(episodes=True)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=5.0)
    entry = baselines.Entry(
        aope.Problem(many, mdp.starts, mdp.policy, facts), mdp.features(), aope.Gaussian(1.0), 5, mdp.behavior
    )
    contestant = baselines.contestant_named("lstdq sandwich")
    contestant.refusal(entry)
    contestant.bound(entry, 0.1, np.random.default_rng(0))
    baselines.Contestant("mine", "Mine", "Me (2026)", contestant.guarantee, baselines.Needs(features=True), contestant.interval)


def _laboratory(folder: Path) -> None:
    family = laboratory.fair_coin()
    inspect.unwrap(laboratory.family_named, stop=lambda each: hasattr(each, "cache_clear")).cache_clear()
    laboratory.family_named(laboratory.FAMILY_NAMES[0])
    laboratory.families_named([laboratory.FAMILY_NAMES[0]])
    laboratory.early_stopper()
    chosen = laboratory.methods_named(["azuma"])
    laboratory.IntervalMethod("mine", aope.Guarantee.FINITE_SAMPLE)
    laboratory.believable(9, 10, 0.1)
    laboratory.clopper_pearson(9, 10)
    rows = laboratory.run_trials([family], [20], chosen=chosen, trials=1, workers=1, folder=folder / "trials")
    laboratory.read_trials(folder / "trials")
    laboratory.stored_trials(folder / "trials", [family])
    laboratory.refuted(laboratory.summarize(rows))
    laboratory.outcomes(family, family.draw(np.random.default_rng(0), 20), chosen, 0.1, 0)
