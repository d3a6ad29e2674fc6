"""`aope diagnose` and `aope correct`: what to do with an estimate of Q that exists already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInput
from .application import EXIT_INCONSISTENT, app, console, print_json, progress_bar
from .options import (
    ActionValues,
    AsJson,
    Bandwidth,
    ClassChoice,
    DataFile,
    Declared,
    Delta,
    DeterministicReward,
    Discount,
    FeatureBandwidth,
    FeatureCount,
    Horizon,
    KernelName,
    Landmarks,
    NoIntercept,
    NormBound,
    OneStepRange,
    PolicyName,
    RelativeNormBound,
    RewardRange,
    SampledStarts,
    Seed,
    Starts,
    TabularClass,
    TerminalReward,
    ValueRange,
)

QName = Annotated[str | None, typer.Option(help="module:function of the estimate Q(states, actions). None: columns q, next_q.")]


@app.command()
def diagnose(
    data: DataFile,
    discount: Discount,
    reward_range: RewardRange,
    q: QName = None,
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
    one_step_range: OneStepRange = None,
    delta: Delta = 0.1,
    radius: Annotated[str, typer.Option(help="Radius.")] = "azuma",
    features: FeatureCount = 50,
    feature_bandwidth: FeatureBandwidth = None,
    landmarks: Landmarks = None,
    tabular: TabularClass = False,
    no_intercept: NoIntercept = False,
    kernel: KernelName = "gaussian",
    bandwidth: Bandwidth = "1.0",
    seed: Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw where the estimate is wrong, to .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Diagnose an existing Q estimate: is it consistent with the data, what does it imply, and where is it wrong?"""
    from ..bounds.diagnosis import diagnose as diagnose_q
    from ..report.document import diagnosis_document
    from ..report.plots import new_figure, save_figure, witness_figure
    from .inputs import read_problem, read_q
    from .text import print_diagnosis

    if plot is not None:
        new_figure(1, 1)  # before any work: is there something to draw with?
    choice = ClassChoice(tabular, features, feature_bandwidth, landmarks, not no_intercept, kernel, bandwidth, seed)
    declared = Declared(
        discount, reward_range, value_range, norm_bound, relative_norm, horizon, terminal_reward, deterministic_reward,
        one_step_range=one_step_range,
    )  # fmt: skip
    facts, test_kernel = declared.assumptions(), choice.test_kernel()
    problem = read_problem(data, starts, sampled_starts, policy, action_values)
    estimate = read_q(q, problem)
    with progress_bar(not as_json) as progress:
        found = diagnose_q(
            estimate,
            problem.data,
            problem.starts,
            problem.policy,
            assumptions=facts,
            kernel=test_kernel,
            features=choice.classes(problem),
            radius=radius,
            delta=delta,
            progress=progress,
        )
    if as_json:
        print_json(diagnosis_document(found))
    else:
        print_diagnosis(console(), found)
    if plot is not None:
        save_figure(witness_figure(found), plot)
        typer.echo(f"Plot: {plot}", err=True)


@app.command()
def correct(
    data: DataFile,
    discount: Discount,
    reward_range: RewardRange,
    q: QName = None,
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
    one_step_range: OneStepRange = None,
    delta: Delta = 0.1,
    radius: Annotated[str, typer.Option(help="Radius.")] = "azuma",
    features: FeatureCount = 50,
    feature_bandwidth: FeatureBandwidth = None,
    landmarks: Landmarks = None,
    tabular: TabularClass = False,
    no_intercept: NoIntercept = False,
    kernel: KernelName = "gaussian",
    bandwidth: Bandwidth = "1.0",
    seed: Seed = 0,
    output: Annotated[Path | None, typer.Option(help="Save the change as .npz.")] = None,
    as_json: AsJson = False,
) -> None:
    """Correct an existing Q estimate by the smallest change that makes it consistent with the data."""
    from ..bounds.diagnosis import CorrectionStatus
    from ..bounds.diagnosis import correct as correct_q
    from ..report.document import correction_document
    from .inputs import read_problem, read_q
    from .text import print_correction

    choice = ClassChoice(tabular, features, feature_bandwidth, landmarks, not no_intercept, kernel, bandwidth, seed)
    declared = Declared(
        discount, reward_range, value_range, norm_bound, relative_norm, horizon, terminal_reward, deterministic_reward,
        one_step_range=one_step_range,
    )  # fmt: skip
    facts, test_kernel = declared.assumptions(), choice.test_kernel()
    problem = read_problem(data, starts, sampled_starts, policy, action_values)
    estimate = read_q(q, problem)
    classes = choice.classes(problem)
    if len(classes) != 1:
        raise InvalidInput("A correction needs one class: give --feature-bandwidth once.")
    with progress_bar(not as_json) as progress:
        found = correct_q(
            estimate,
            problem.data,
            problem.starts,
            problem.policy,
            assumptions=facts,
            kernel=test_kernel,
            features=classes[0],
            radius=radius,
            delta=delta,
            progress=progress,
        )
    if output is not None:
        found.save(output)
    if as_json:
        print_json(correction_document(found))
    else:
        print_correction(console(), found)
    if output is not None:
        typer.echo(f"Change: {output}", err=True)
    raise typer.Exit(EXIT_INCONSISTENT if found.status is CorrectionStatus.INFEASIBLE else 0)
