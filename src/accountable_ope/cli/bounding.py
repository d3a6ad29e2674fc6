"""`aope bound`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from .application import app, exit_code, progress_bar, show
from .options import (
    ActionValues,
    AsJson,
    Bandwidth,
    ClassChoice,
    DataFile,
    Declared,
    Delta,
    DeterministicReward,
    FeatureBandwidth,
    FeatureCount,
    Horizon,
    KernelName,
    Landmarks,
    Misfit,
    NoIntercept,
    NormBound,
    OneStepRange,
    PolicyName,
    RelativeNormBound,
    RewardRange,
    SampledStarts,
    Seed,
    SinglePrecision,
    Starts,
    StateBox,
    SymmetricNoise,
    TabularClass,
    TerminalReward,
    ValueRange,
)

if TYPE_CHECKING:
    from ..bounds.interval import ValueInterval
    from ..kernels.kernel import Kernel
    from ..kernels.products import Progress, TileOptions
    from ..problem.transitions import Transitions
    from .inputs import Problem


@app.command()
def bound(
    data: DataFile,
    reward_range: RewardRange,
    discount: Annotated[float | None, typer.Option(help="Discount factor. Needed but for --average-reward.")] = None,
    starts: Starts = None,
    sampled_starts: SampledStarts = False,
    policy: PolicyName = None,
    action_values: ActionValues = None,
    value_range: ValueRange = None,
    norm_bound: NormBound = None,
    relative_norm: RelativeNormBound = None,
    horizon: Horizon = None,
    terminal_reward: TerminalReward = False,
    deterministic_reward: DeterministicReward = False,
    state_box: StateBox = None,
    misfit: Misfit = 0.0,
    symmetric_noise: SymmetricNoise = False,
    one_step_range: OneStepRange = None,
    average_reward: Annotated[
        bool, typer.Option("--average-reward", help="Bound the long-run average reward (no discount, no start states).")
    ] = False,
    value_span: Annotated[
        float | None, typer.Option(help="With --average-reward: declared span of the relative value function.")
    ] = None,
    pointwise: Annotated[
        bool, typer.Option("--pointwise", help="Hold the value range at every logged point, not only on average (slower).")
    ] = False,
    delta: Delta = 0.1,
    radius: Annotated[
        list[str] | None, typer.Option(help="Radius, repeatable (default: certified; azuma with --average-reward).")
    ] = None,
    ladder: Annotated[bool, typer.Option("--ladder", help="Show the paper's radius and Theorem A beside the default.")] = False,
    features: FeatureCount = 50,
    feature_bandwidth: FeatureBandwidth = None,
    landmarks: Landmarks = None,
    tabular: TabularClass = False,
    no_intercept: NoIntercept = False,
    kernel: KernelName = "gaussian",
    bandwidth: Bandwidth = "1.0",
    seed: Seed = 0,
    single_precision: SinglePrecision = False,
    earlier_share: Annotated[
        float | None,
        typer.Option(help="Choose the bandwidths on this share of the rows, the earliest, and bound on the rest."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bound the value of the target policy: one row per radius, with guarantee, status and assumptions."""
    from ..bounds.selection import state_choice
    from ..bounds.value import DEFAULT_RADIUS, bound_ladder
    from ..kernels.products import TileOptions
    from ..radii.registry import AVERAGE_LADDER, LADDER
    from .inputs import read_problem

    choice = ClassChoice(tabular, features, feature_bandwidth, landmarks, not no_intercept, kernel, bandwidth, seed)
    test_kernel = choice.test_kernel()
    options = TileOptions(single_precision=single_precision)
    if average_reward:
        names = [
            name
            for name, given in (
                ("--discount", discount), ("--starts", starts), ("--value-range", value_range), ("--horizon", horizon),
                ("--relative-norm", relative_norm), ("--landmarks", landmarks), ("--earlier-share", earlier_share),
                ("--terminal-reward", terminal_reward or None), ("--state-box", state_box), ("--misfit", misfit or None),
                ("--pointwise", pointwise or None),
                ("--symmetric-noise", symmetric_noise or None), ("--one-step-range", one_step_range),
            )
            if given is not None
        ]  # fmt: skip
        if names:
            raise InvalidInput(f"--average-reward does not go with {names[0]}.")
        problem = read_problem(data, None, False, policy, action_values, need_starts=False)
        with progress_bar(not as_json) as progress:
            intervals = _average_ladder(
                problem, choice, test_kernel, reward_range, norm_bound, value_span, not deterministic_reward,
                radius or (AVERAGE_LADDER if ladder else AVERAGE_LADDER[-1:]),
                delta, options, progress,
            )  # fmt: skip
    else:
        if discount is None:
            raise InvalidInput("--discount is needed (or --average-reward).")
        declared = Declared(
            discount, reward_range, value_range, norm_bound, relative_norm, horizon, terminal_reward, deterministic_reward,
            state_box, misfit, symmetric_noise, one_step_range,
        )  # fmt: skip
        facts = declared.assumptions()
        problem = read_problem(data, starts, sampled_starts, policy, action_values)
        shown = radius or (LADDER if ladder else [DEFAULT_RADIUS])
        if earlier_share is not None:
            choice, later, earlier_rows = _choose_earlier(choice, problem, facts.discount, earlier_share)
            problem = replace(problem, data=later)
            test_kernel = choice.test_kernel()
        classes = choice.classes(problem)
        with progress_bar(not as_json) as progress:
            intervals = bound_ladder(
                problem.data,
                problem.starts,
                problem.policy,
                assumptions=facts,
                kernel=test_kernel,
                features=classes,
                radii=shown,
                delta=delta,
                pointwise=pointwise,
                options=options,
                progress=progress,
            )
    if earlier_share is not None:
        intervals = tuple(state_choice(interval, earlier_rows) for interval in intervals)
    show(intervals, problem.data, as_json, report, title=str(data))
    raise typer.Exit(exit_code(intervals))


def _choose_earlier(
    choice: ClassChoice, problem: Problem, discount: float, earlier_share: float
) -> tuple[ClassChoice, Transitions, int]:
    """Bandwidths by the median rule (kernel, RKHS) or by held-out loss (random features), on the earliest rows."""
    from ..bounds.selection import median_bandwidth, select
    from ..problem.policy import state_action_points

    if choice.tabular:
        raise InvalidInput("--earlier-share chooses bandwidths, and --tabular has none.")
    if choice.landmarks is not None:
        earlier, later = problem.data.split(earlier_share)
        median = median_bandwidth(state_action_points(earlier.states, earlier.actions, problem.policy))
        return replace(choice, bandwidth=str(median), feature_bandwidth=[median]), later, len(earlier)
    found = select(
        problem.data, problem.policy, discount=discount, dimension=choice.features, earlier_share=earlier_share, seed=choice.seed,
        intercept=choice.intercept,
    )  # fmt: skip
    chosen = [one.bandwidth for one in found.features]
    return (
        replace(choice, bandwidth=str(float(found.kernel.bandwidth)), feature_bandwidth=chosen),
        found.later,
        found.earlier_rows,
    )


def _average_ladder(
    problem: Problem,
    choice: ClassChoice,
    kernel: Kernel,
    reward_range: tuple[float, float],
    norm_bound: float | None,
    value_span: float | None,
    reward_noise: bool,
    radii: Sequence[str],
    delta: float,
    options: TileOptions,
    progress: Progress | None,
) -> tuple[ValueInterval, ...]:
    from ..bounds.average_reward import bound_average_reward
    from ..classes.features import RandomFourier, TabularFeatures

    classes = [one for one in choice.classes(problem) if isinstance(one, (RandomFourier, TabularFeatures))]
    return tuple(
        bound_average_reward(
            problem.data,
            problem.policy,
            reward_range=reward_range,
            kernel=kernel,
            features=classes,
            norm_bound=norm_bound,
            value_span=value_span,
            reward_noise=reward_noise,
            radius=name,
            delta=delta,
            options=options,
            progress=progress,
        )
        for name in radii
    )
