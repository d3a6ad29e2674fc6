"""`aope bound`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..bounds.average_reward import bound_average_reward
from ..bounds.decision import Ruling
from ..bounds.first_answer import MisfitRKHS, first_answers, misfit_answers
from ..bounds.interval import Interval
from ..bounds.misfit_norms import MisfitNorms
from ..bounds.value import bound_ladder
from ..bounds.weighed import answer_of
from ..defaults.choosing import WITHIN
from ..errors import InvalidInput
from ..fitting.selection import Candidates, median_bandwidth, select
from ..problem.assumptions import Assumptions
from ..problem.policy import state_action_points
from ..problem.problem import Experience
from ..radii.choice import Choice
from ..radii.registry import DEFAULT_RADIUS, LADDER
from ..report.fragility import FRAGILITY_ROWS
from ..statistics.engines.engine import refuse_unusable
from .choosing import recipe_for
from .choosing import unnamed as nobody_named
from .class_options import ClassOptions
from .computing import EngineOptions
from .deciding import DecisionOptions, decision_code
from .exits import DOUBTED
from .inputs import Inputs, read_inputs
from .options import (
    CLASS,
    DECLARATIONS,
    DELTA,
    NO_DISCOUNT,
    NO_REWARD_RANGE,
    OUTPUT,
    PROBLEM,
    RADIUS,
    RADIUS_NAMES,
    AsJson,
    DataFile,
    Declarations,
    Delta,
    FirstAnswerOptions,
    ProblemOptions,
    Propensities,
    given,
    spelled,
)
from .output import Meter, check_places, exit_code, note, progress, show, within_stage
from .saying import Said
from .streaming import Resume, check_resumed, check_streamed, stream_log

WITH_AVERAGE_REWARD = {
    "--reward-range",
    "--norm-bound",
    "--deterministic-reward",
    "--state-box",
    "--symmetric-noise",
    "--policy",
    "--action-values",
    "--column",
    "--ignore-column",
}
"""Declarations and options of the problem that an average reward has a use for."""


@Parameter(name="*", group=RADIUS)
@dataclass(frozen=True, kw_only=True)
class LadderOptions:
    """Radii that are shown side by side."""

    radius: Annotated[
        tuple[str, ...],
        Parameter(help=f"One or more of {RADIUS_NAMES}. Default: {DEFAULT_RADIUS}."),
    ] = ()
    ladder: bool = False
    """Show the paper's radius and Theorem A beside the default."""
    delta: Delta = DELTA

    @property
    def names(self) -> tuple[str, ...]:
        """Those asked for."""
        return self.radius or (LADDER if self.ladder else (DEFAULT_RADIUS,))


def bound(
    data: DataFile,
    /,
    *,
    problem: ProblemOptions = ProblemOptions(),
    declared: Declarations = Declarations(),
    average_reward: Annotated[
        bool, Parameter(group=DECLARATIONS, help="Bound the long-run average reward (no discount, no start states).")
    ] = False,
    value_span: Annotated[
        float | None, Parameter(group=DECLARATIONS, help="With --average-reward: span of the relative value function.")
    ] = None,
    choice: ClassOptions = ClassOptions(),
    earlier_share: Annotated[
        float | None,
        Parameter(group=CLASS, help="Choose the bandwidths on this share of the rows, the earliest, and bound on the rest."),
    ] = None,
    propensities: Propensities = False,
    stream: Annotated[
        bool,
        Parameter(group=PROBLEM, help="Read the log in parts: a Parquet file, a folder of them or a pattern, of any size."),
    ] = False,
    resume: Resume = None,
    pointwise: Annotated[
        bool | None,
        Parameter(
            group=CLASS, help="Hold the value range at every logged point, not only on average; without it, where that is quick."
        ),
    ] = None,
    first: FirstAnswerOptions = FirstAnswerOptions(),
    radii: LadderOptions = LadderOptions(),
    decision: DecisionOptions = DecisionOptions(),
    computing: EngineOptions = EngineOptions(),
    explain: Annotated[
        bool, Parameter(group=OUTPUT, help="Say what the width is made of and what would narrow it; takes a few times as long.")
    ] = False,
    report: Annotated[Path | None, Parameter(group=OUTPUT, help="Write an HTML report to this file.")] = None,
    certificate: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Write the certificate to this .json file; `aope verify` proves it again.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """One row per radius, with guarantee, status and assumptions."""
    places = {"--report": report, "--certificate": certificate, "--save-choice": first.save_choice, "--resume": resume}
    check_places(places, problem.files(data, first.choice))
    if certificate is not None:
        if certificate.suffix != ".json":
            raise InvalidInput(f"--certificate must end in .json. Got {certificate.name!r}.")
        if radii.ladder or len(radii.radius) > 1:
            raise InvalidInput("--certificate is of one interval: leave out --ladder, and name at most one --radius.")
    choice.check(declared.misfit_norm)
    decision.check()
    if average_reward and (decision.better_than_logged or explain):
        raise InvalidInput(f"--average-reward does not go with {'--explain' if explain else '--better-than-logged'}.")
    if declared.reward_range is None:
        raise InvalidInput(NO_REWARD_RANGE)
    if radii.ladder and radii.radius:
        raise InvalidInput("--ladder has no effect with --radius: name all radii, or none.")
    named = choice.given or average_reward or earlier_share is not None
    unnamed = not named and nobody_named(choice, declared)
    around = (  # features are chosen, and what they miss has a ball of its own
        declared.misfit_norm is not None and earlier_share is None and not average_reward and not choice.names_features
    )
    if around and first.within is not None:
        raise InvalidInput("--within has no effect with --norm-bound, which says how far from the fit Q may be.")
    first.check(unnamed or around)
    if earlier_share is not None:
        why = "with --earlier-share, which chooses the bandwidths"
        choice.fourier.refuse("bandwidth", "feature_bandwidth", because=why)
    wrong = [name for name in (*given(declared), *given(problem)) if name not in WITH_AVERAGE_REWARD]
    others = (("--earlier-share", earlier_share), ("--pointwise", pointwise), ("--propensities", propensities or None))
    wrong += [name for name, value in others if value is not None]
    if average_reward and wrong:
        raise InvalidInput(f"--average-reward does not go with {wrong[0]}.")
    if average_reward and computing.given:
        raise InvalidInput(f"--average-reward does not go with {computing.given[0]}.")
    computing.check(stream=stream, single_precision=choice.single_precision)
    if value_span is not None and not average_reward:
        raise InvalidInput("--value-span goes with --average-reward only.")
    if resume is not None:
        check_resumed(resume, stream, radii.names)
        if computing.scheduler is not None:
            raise InvalidInput("--resume does not go with --scheduler: a cluster survives its workers, without a file.")
    if stream:
        asked_for = (
            ("--average-reward", average_reward),
            ("--earlier-share", earlier_share is not None),
            ("--propensities", propensities),
            ("--pointwise", pointwise is not None),
            ("--explain", explain),
            ("--better-than-logged", decision.better_than_logged),
        )
        check_streamed(problem, declared, choice, [name for name, was_given in asked_for if was_given])
        with progress(as_json) as phase, computing.opened(phase) as engine:
            stages = within_stage(phase, "reading in parts")
            streamed = stream_log(data, (problem, declared, choice), radii, first if unnamed else None, stages, engine, resume)
            phase("checking")
            ruling = decision.decide(streamed.intervals[-1])
            said = Said.of(streamed.intervals[-1], ruling, names=streamed.scan.columns.states)
        show(streamed.intervals, streamed.scan, as_json, report, title=str(data), columns=streamed.columns, said=said)
        return _finish(streamed.intervals, ruling, certificate, first.save_choice or first.choice)
    repeat = None
    if not average_reward and declared.discount is None:
        raise InvalidInput(NO_DISCOUNT)
    if not average_reward:
        kernel = choice.test_kernel()  # a wrong bandwidth is refused before the file is read
        refuse_unusable(computing.engine, None if unnamed or around else kernel)
    with progress(as_json) as phase, computing.opened(phase) as engine:
        phase("reading")
        if average_reward:
            inputs = read_inputs(data, problem, need_starts=False)
            intervals = _average_ladder(inputs, declared, value_span, choice, radii, phase("bounding"))
        else:
            assumptions = declared.assumptions()
            inputs = read_inputs(data, problem).looked_at(
                assumptions, one_bandwidth=choice.one_bandwidth and not (unnamed or around)
            )
            chosen = Choice()
            if earlier_share is not None:
                phase("choosing on earlier rows")
                choice, inputs, chosen = _choose_earlier(choice, inputs, assumptions, earlier_share)
            asked = inputs.problem(assumptions, propensities)
            if unnamed or around:
                stages = within_stage(phase, "choosing on earlier rows")
                recipe = recipe_for(asked, first, radii.names, stages)
                stages = within_stage(phase, "bounding")
                if around:
                    choice.refuse_misfit_memory(len(inputs.data))
                    intervals = misfit_answers(
                        asked,
                        recipe,
                        MisfitRKHS(choice.misfit_landmarks, choice.misfit_bandwidth),
                        radii.names,
                        radii.delta,
                        pointwise=pointwise,
                        options=choice.tiles(),
                        stages=stages,
                        engine=engine,
                    )
                else:
                    intervals = first_answers(
                        asked,
                        recipe,
                        radii.names,
                        radii.delta,
                        pointwise=pointwise,
                        options=choice.tiles(),
                        stages=stages,
                        engine=engine,
                    )
                flags = [
                    *(["--propensities"] if propensities else []),
                    *([] if pointwise is None else ["--pointwise" if pointwise else "--pointwise=false"]),
                    *(["--single-precision"] if choice.single_precision else []),
                    *(["--explain"] if explain else []),
                    *([] if choice.landmarks is None else ["--landmarks", str(choice.landmarks)]),
                    *([] if choice.misfit_bandwidth is None else ["--misfit-bandwidth", f"{choice.misfit_bandwidth:.12g}"]),
                ]
                saved = first.save_choice is not None or first.choice is not None
                if (recipe.ball is not None or first.within is not None) and not (saved or around):
                    flags += ["--within", f"{WITHIN if first.within is None else first.within:.12g}"]
                repeat = _repeat(data, (problem, declared, decision, computing), first, radii, flags)
            else:
                intervals = bound_ladder(
                    asked,
                    features=choice.classes(asked.experience, declared.misfit_norm),
                    kernel=choice.test_kernel(),
                    radii=radii.names,
                    delta=radii.delta,
                    pointwise=pointwise,
                    chosen=choice.chosen(asked.experience, chosen),
                    options=choice.tiles(),
                    progress=phase("bounding"),
                    engine=engine,
                )
        phase("checking, and what the width is made of" if explain else "checking")
        ruling = decision.decide(intervals[-1])
        said = Said.of(intervals[-1], ruling, explain=explain, names=inputs.file.columns.states)
        if declared.misfit_norm is not None:
            phase("other norms of what features miss")
            said = replace(said, misfit_norms=_misfit_norms(intervals[-1], decision.threshold))
    show(intervals, inputs.data, as_json, report, title=str(data), columns=inputs.columns, said=said, repeat=repeat)
    if declared.misfit_norm is not None and said.misfit_norms is None:
        note("With so many rows other norms of what features miss are not tried: aope sensitivity --over misfit-norm tries them.")
    return _finish(intervals, ruling, certificate, first.save_choice or first.choice)


def _finish(intervals: Sequence[Interval], ruling: Ruling | None, certificate: Path | None, choice: Path | None) -> int:
    """Writes the certificate; the exit code. choice: where the choice of the class is kept."""
    if certificate is not None:
        intervals[0].save(certificate)
        of = "" if answer_of(intervals[0]) is intervals[0] else " (of the class; the first line's interval is no part of it)"
        note(f"Certificate: {certificate}{of}")
        recipe = intervals[0].recipe
        if choice is None and recipe is not None and recipe.estimate is not None:
            note("To compare it with the data, `aope verify --data` needs the choice, too: write it with --save-choice FILE.npz.")
    proved = all(interval.check() for interval in intervals)
    if ruling is not None:
        return decision_code(ruling, proved)
    return exit_code(intervals) if proved else DOUBTED


def _misfit_norms(interval: Interval, threshold: float | None) -> MisfitNorms | None:
    """About fifteen more bounds, which take long where there are many rows."""
    if len(interval.certificates) * interval.count > FRAGILITY_ROWS:
        return None
    return interval.misfit_norms(threshold)


def _repeat(data: Path, options: Sequence[object], first: FirstAnswerOptions, radii: LadderOptions, flags: Sequence[str]) -> str:
    """The whole command that gives the same answer; where it is written to is not part of it.

    options: records that are spelled as they are. flags: words of the others.
    """
    words = ["aope", "bound", str(data), *(word for each in options for word in spelled(each))]
    saved = first.save_choice or first.choice
    words += [] if saved is None else ["--choice", str(saved)]
    words += flags
    for name in radii.names:
        words += ["--radius", name]
    return shlex.join([*words, "--delta", f"{radii.delta:.12g}"])


def _choose_earlier(
    choice: ClassOptions, inputs: Inputs, facts: Assumptions, share: float
) -> tuple[ClassOptions, Inputs, Choice]:
    """Bandwidths by the median rule (kernel, RKHS) or by held-out loss (random features), on the earliest rows."""
    if choice.tabular:
        raise InvalidInput("--earlier-share chooses bandwidths, and --tabular has none.")
    fourier = choice.fourier
    if choice.landmarks is not None and facts.misfit_norm is None:
        earlier, later = inputs.data.split(share)
        median = median_bandwidth(state_action_points(earlier.states, earlier.actions, inputs.policy))
        rows, kernel_width, widths = len(earlier), median, [median]
    else:
        candidates = Candidates(fourier.dimension, seed=fourier.feature_seed, intercept=fourier.intercept)
        selection = select(inputs.data, inputs.policy, discount=facts.discount, candidates=candidates, earlier_share=share)
        rows, later, kernel_width = selection.earlier_rows, selection.later, float(selection.kernel.bandwidth)
        widths = [features.bandwidth for features in selection.features]
    chosen = replace(fourier, bandwidth=str(kernel_width), feature_bandwidth=tuple(widths))
    return replace(choice, fourier=chosen), replace(inputs, data=later), Choice(rows)


def _average_ladder(
    inputs: Inputs,
    declared: Declarations,
    value_span: float | None,
    choice: ClassOptions,
    radii: LadderOptions,
    meter: Meter | None,
) -> tuple[Interval, ...]:
    facts = declared.average(value_span)
    classes = choice.classes(Experience(inputs.data, inputs.starts, inputs.policy, 1.0))
    return tuple(
        bound_average_reward(
            inputs.data,
            inputs.policy,
            facts,
            features=classes,
            kernel=choice.test_kernel(),
            radius=name,
            delta=radii.delta,
            options=choice.tiles(),
            progress=meter,
        )
        for name in radii.names
    )
