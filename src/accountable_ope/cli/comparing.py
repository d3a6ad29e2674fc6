"""`aope compare`: several policies on one log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from ..bounds.comparing import compare as compare_policies
from ..bounds.comparison import Comparison, Contender, NamedPolicy
from ..bounds.decision import Ruling
from ..bounds.logging_policy import LoggedValue
from ..bounds.verdict import BET
from ..errors import InvalidInput
from ..io.columns import FileColumns
from ..io.display import confidence, ends_text, shortened
from ..problem.statements import Statement, Status
from ..radii.choice import BEFORE_THE_DATA
from ..report.comparison_plot import comparison_figure
from ..report.contest import comparison_document
from ..report.document import columns_document
from ..validation import number
from .choosing import numbered, recipe_for, unnamed
from .class_options import ClassOptions
from .deciding import DECISION, decision_code
from .exits import INCONSISTENT, NOT_PROVED, VACUOUS
from .inputs import Inputs, columns_of, read_inputs
from .named import is_file
from .options import PROBLEM, DataFile, Declarations, FirstAnswerOptions, ProblemOptions, RadiusOptions, module_file
from .output import EXIT_CODES, PlotOptions, console, print_json, progress, within_stage
from .saying import print_ruling
from .text import print_columns, print_recipe, status_text, titled_table

STAGE = 46
"""Letters of what is being done, beside a bar that shows how far it is."""
COLUMNS = "the columns"
"""What the policy is called that the files hold."""


@Parameter(name="*", group=PROBLEM)
@dataclass(frozen=True, kw_only=True)
class ContestOptions:
    """Start states and target policies."""

    policy: tuple[str, ...] = ()
    """A target policy: module:function, policy.onnx, or a rule on columns, with a name if you like (new=policy.onnx); repeatable.
    Default: the columns of the files."""
    starts: Path | None = None
    """File of start states (state, weight, target_probability). Default: first states of episodes."""
    sampled_starts: bool = False
    """The start states are an i.i.d. sample, not the distribution itself."""
    policy_labels: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """The actions that the columns of ONNX files are for, in their order: wait,treat. Default: as the file says, or sorted."""
    action_values: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """A number per action, such as -1,0,1 (vectors: 0,1;1,0). Default: one-hot vectors."""
    column: tuple[str, ...] = ()
    """Which column is which, repeatable, where names do not say: state=age,dose or episode=patient."""
    ignore_column: tuple[str, ...] = ()
    """Column of the files to leave out, repeatable."""
    no_logged_policy: bool = False
    """Leave out the policy that logged the data; the others share its part of delta."""
    best: Annotated[str | None, Parameter(group=DECISION)] = None
    """Decide whether this --policy is better than each other. Exit code 0: supported; 3: refuted; 4: undecided; 5: neither."""

    @property
    def named(self) -> dict[str, str]:
        """What each policy is called, and where it is."""
        return dict(_named(each) for each in self.policy)

    def check(self) -> None:
        """Refuse what names no policies, or compares one with nothing."""
        if len(self.named) < len(self.policy):
            raise InvalidInput(f"--policy must name different policies. Got {' '.join(self.policy)}.")
        if self.best is not None and self.best not in (self.named or (COLUMNS,)):
            known = ", ".join(map(repr, self.named or (COLUMNS,)))
            raise InvalidInput(f"--best must name one of the policies of --policy: {known}. Got {self.best!r}.")
        if self.best is not None and self.no_logged_policy and len(self.policy) < 2:
            raise InvalidInput("--best with --no-logged-policy needs more than one --policy: there is nothing to compare with.")
        if self.policy_labels is not None and not any(map(is_file, self.named.values())):
            raise InvalidInput("--policy-labels is for a policy in an ONNX file, and has no effect here.")

    def each(self) -> list[ProblemOptions]:
        """The problem of every policy."""
        shared = ProblemOptions(
            starts=self.starts,
            sampled_starts=self.sampled_starts,
            action_values=self.action_values,
            column=self.column,
            ignore_column=self.ignore_column,
        )
        return [
            replace(shared, policy=where, policy_labels=self.policy_labels if is_file(where) else None)
            for where in self.named.values()
        ] or [shared]

    def files(self, data: Path) -> list[Path]:
        """All files that are read."""
        modules = (module_file(where) for where in self.named.values())
        return [path for path in (data, self.starts, *modules) if path is not None]


def _named(policy: str) -> tuple[str, str]:
    """Name and place of a policy; where nobody named it, its place is its name.

    A rule compares by ==, <= and >=, before which stands more than one word or no word at all.
    """
    found = None if Path(policy).exists() else re.fullmatch(r"([^\W\d][\w.-]*)=(?!=)(.+)", policy.strip(), re.DOTALL)
    return (policy, policy) if found is None else (found[1], found[2].strip())


def compare(
    data: DataFile,
    /,
    *,
    contest: ContestOptions = ContestOptions(),
    declared: Declarations = Declarations(),
    choice: ClassOptions = ClassOptions(),
    first: FirstAnswerOptions = FirstAnswerOptions(),
    radius: RadiusOptions = RadiusOptions(),
    output: PlotOptions = PlotOptions(),
) -> int:
    """A row per policy, the logged one last, and the difference of every two."""
    contest.check()
    numbers: list[int | None] = (
        list(range(1, len(contest.policy) + 1)) if len(contest.policy) > 1 else [None]
    )  # of the files of choices
    read_back = [] if first.choice is None else [numbered(first.choice, each) for each in numbers]
    saved = [] if first.save_choice is None else [numbered(first.save_choice, each) for each in numbers]
    output.check([*contest.files(data), *read_back], {f"--save-choice ({each.name})": each for each in saved})
    choice.check(declared.misfit_norm)
    nobody_named = unnamed(choice, declared)
    first.check(nobody_named)
    number(radius.delta, "delta")
    assumptions, kernel = declared.assumptions(), choice.test_kernel()
    one_bandwidth = choice.one_bandwidth and not nobody_named
    with progress(output.as_json) as phase:
        phase("reading")
        read: list[Inputs] = [read_inputs(data, each).looked_at(one_bandwidth=one_bandwidth) for each in contest.each()]
        policies = [NamedPolicy(name, inputs.policy) for name, inputs in zip(contest.named or (COLUMNS,), read, strict=True)]
        asked = read[0].problem(assumptions)
        recipes = None
        if nobody_named:
            questions = [replace(asked, policy=each.policy) for each in policies]
            stages = [within_stage(phase, f"choosing on earlier rows, for {shortened(each.name)}") for each in policies]
            recipes = [
                recipe_for(each, first, [radius.radius], shown, number)
                for each, shown, number in zip(questions, stages, numbers, strict=True)
            ]
        found = compare_policies(
            asked,
            policies,
            features=choice.classes(asked.experience, declared.misfit_norm) if recipes is None else None,
            kernel=kernel if recipes is None else None,
            chosen=choice.chosen(asked.experience) if recipes is None else BEFORE_THE_DATA,
            recipes=recipes,
            radius=radius.radius,
            delta=radius.delta,
            logged=not contest.no_logged_policy,
            options=choice.tiles(),
            progress=phase("kernel statistics") if recipes is None else None,
            stages=None if recipes is None else lambda stage: phase(shortened(stage, STAGE)),
        )
        for each in found.contenders:
            phase(f"what one would bet on, {shortened(each.name)}")
            _ = each.bet  # made when first asked for
        bets = found.bets
        phase("checking")
        valid = proved(found)
        ruling = None if contest.best is None else found.decide(contest.best)
    columns = _columns(read, policies)
    if output.as_json:
        print_json("compare", comparison_document(found, ruling) | columns_document(columns))
    else:
        print_comparison(console(), found, bets, ruling)
        if not valid:
            console().print("\nCertificates: [red]NOT VALID[/].")
        for name, recipe in zip((each.name for each in policies), found.recipes, strict=False):
            console().print(f"\nFor {name}:", markup=False, highlight=False)
            print_recipe(console(), recipe, None)
        print_columns(console(), columns)
    output.draw(lambda: comparison_figure(found))
    if ruling is not None:
        return decision_code(ruling, valid)
    return comparison_code(found) if valid else NOT_PROVED


def _columns(read: Sequence[Inputs], policies: Sequence[NamedPolicy]) -> list[FileColumns]:
    """How the files were read, with what a first look showed of every policy; what holds of one names it."""
    log, *others = columns_of(read[0].file, read[0].start_file)
    shared = [each for each in read[0].remarks if all(each in inputs.remarks for inputs in read)]
    own = [
        f"{policy.name}: {each}."
        for policy, inputs in zip(policies, read, strict=True)
        for each in inputs.remarks
        if each not in shared
    ]
    return [replace(log, remarks=(*log.remarks, *(f"{each}." for each in shared), *own)), *others]


def comparison_code(found: Comparison) -> int:
    """That of the worst interval: refuted, doubted, OK, all of them vacuous."""
    statuses = {each.status for each in found.contenders if not isinstance(each.found, LoggedValue)}
    if Status.INCONSISTENT in statuses:
        return INCONSISTENT
    if Status.DOUBTED in statuses:
        return EXIT_CODES[Status.DOUBTED]
    return VACUOUS if statuses == {Status.VACUOUS} else 0


def proved(found: Comparison) -> bool:
    """Whether every interval can be proved again."""
    return all(isinstance(each.found, LoggedValue) or each.found.check() for each in found.contenders)


def print_comparison(terminal: Console, found: Comparison, bets: Sequence[Statement] = (), ruling: Ruling | None = None) -> None:
    """The verdict, the decision, a row per policy, what one would bet on, a row per difference, and what holds at once."""
    terminal.print(found.verdict, style="bold", markup=False, highlight=False)
    print_ruling(terminal, ruling)
    terminal.print()
    table = titled_table(f"Values, {confidence(found.delta)} confidence together", gap=2)
    for name in ("policy", "value", "guarantee", "status"):
        table.add_column(name, no_wrap=name != "policy")
    for each in found.contenders:
        table.add_row(escape(each.name), _ends(each.lower, each.upper), each.answer.guarantee.value, status_text(each.status))
    terminal.print(table)
    if bets:
        terminal.print(f"{BET} (nothing of it is proved):", highlight=False)
        for bet in bets:
            terminal.print(f"  {bet.text}", markup=False, highlight=False)
        terminal.print()
    if found.differences:
        table = titled_table("Differences, at the same time", gap=2)
        for name in ("first less second", "difference", "first is better", "by"):
            table.add_column(name, no_wrap=name != "first less second")
        for pair in found.differences:
            by = "one program" if pair.paired else "intervals"
            name = f"{escape(pair.first)} - {escape(pair.second)}"
            table.add_row(name, _ends(pair.lower, pair.upper), pair.judgment.name, by)
        terminal.print(table)
    for statement in found.statements:
        terminal.print(statement.text, markup=False, highlight=False)
    for who, assumed in _assumed(found.contenders):
        terminal.print(f"Assumed by {who}:", markup=False, highlight=False)
        for premise in assumed:
            terminal.print(f"  - {premise.text}", markup=False, highlight=False)
    for each in found.contenders:
        for doubt in each.answer.doubts:
            terminal.print(f"\n[yellow]Doubt[/] ({escape(each.name)}): {escape(str(doubt))}")


def _assumed(contenders: Sequence[Contender]) -> list[tuple[str, tuple[Statement, ...]]]:
    """What all intervals rest on, then what those of single policies do beside that."""
    policies = [each.answer.premises for each in contenders if not isinstance(each.found, LoggedValue)]
    common = {each.text for each in policies[0]}.intersection(*({each.text for each in premises} for premises in policies[1:]))
    found = [("the intervals of all policies", tuple(each for each in policies[0] if each.text in common))]
    found += [
        (f"that of {one.name}", tuple(each for each in one.answer.premises if each.text not in common)) for one in contenders
    ]
    return [(who, premises) for who, premises in found if premises]


def _ends(lower: float, upper: float) -> str:
    return "-" if not lower <= upper else escape(ends_text(lower, upper))
