"""The options of the command line, each declared once; commands flatten these classes into their own options."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from ..bounds.value import bound_ladder
from ..defaults.choosing import WITHIN
from ..errors import InvalidInput
from ..io.columns import ColumnNames
from ..problem.assumptions import Assumptions, RelativeNorm
from ..problem.average_reward import AverageReward
from ..radii.registry import DEFAULT_RADIUS, RULES
from .parsing import parse_box, parse_columns

PROBLEM = Group.create_ordered("Problem")
DECLARATIONS = Group.create_ordered("Declarations")
CLASS = Group.create_ordered("Class and kernel")
RADIUS = Group.create_ordered("Radius")
OUTPUT = Group.create_ordered("Output")

RADIUS_NAMES = ", ".join(rule.name for rule in RULES)


def default_of(function: Callable[..., Any], name: str) -> Any:
    """The default that a function of the library has for a parameter."""
    return signature(function).parameters[name].default


DataFile = Annotated[Path, Parameter(help="Parquet or CSV file: state, action, reward, next_state, ...; or minari:ID.")]
AsJson = Annotated[bool, Parameter(name="--json", group=OUTPUT, help="Print JSON instead of text.")]
Plot = Annotated[Path | None, Parameter(group=OUTPUT, help="Draw the result to this file: .png, .svg or .pdf.")]
Propensities = Annotated[
    bool,
    Parameter(group=PROBLEM, help="Use the column behavior_probability, the logger's probabilities, for the weights of a cut."),
]
Delta = Annotated[float, Parameter(group=RADIUS, help="Failure probability of the two-sided statement.")]
Workers = Annotated[int | None, Parameter(help="Processes. Default: one per core.")]
DELTA: float = default_of(bound_ladder, "delta")
NO_REWARD_RANGE = (
    "--reward-range is needed: the least and the largest reward that any row could have, such as --reward-range 0 1."
)
NO_DISCOUNT = (
    "--discount is needed: what a reward is worth one step later, such as --discount 0.9 (or --average-reward of aope bound)."
)


@Parameter(name="*", group=PROBLEM)
@dataclass(frozen=True, kw_only=True)
class ProblemOptions:
    """Start states and target policy."""

    starts: Path | None = None
    """File of start states (state, weight, target_probability). Default: first states of episodes; a monitor needs it."""
    sampled_starts: bool = False
    """The start states are an i.i.d. sample, not the distribution itself."""
    policy: str | None = None
    """Target policy: module:function (states -> probabilities), policy.onnx, or a rule. Default: columns of the files."""
    policy_output: Literal["probabilities", "logits", "actions"] | None = None
    """What a policy in an ONNX file answers. Default: what its output is called."""
    policy_labels: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """The actions that the columns of an ONNX file are for, in their order: wait,treat. Default: as the file says, or sorted."""
    action_values: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """A number per action, such as -1,0,1 (vectors: 0,1;1,0). Default: one-hot vectors."""
    column: tuple[str, ...] = ()
    """Which column is which, repeatable, where names do not say: state=age,dose or episode=patient."""
    ignore_column: tuple[str, ...] = ()
    """Column of the files to leave out, repeatable, such as one that is refused since its name may mean another."""

    def check(self) -> None:
        """Refuse what would have no effect."""
        if self.sampled_starts and self.starts is None:
            raise InvalidInput("--sampled-starts has no effect without --starts: first states of episodes are a sample anyway.")
        for name, value in (("--policy-output", self.policy_output), ("--policy-labels", self.policy_labels)):
            if value is not None and self.policy is None:
                raise InvalidInput(f"{name} is for a policy in an ONNX file, and has no effect here: name it by --policy.")
        _ = self.columns

    @property
    def columns(self) -> ColumnNames:
        """What --column says."""
        return parse_columns(self.column)

    def files(self, *others: Path | str | None) -> list[Path]:
        """All files that are read, which no output may replace; `module:function` stands for a module in this folder."""
        named = (module_file(one) if isinstance(one, str) else one for one in (self.starts, self.policy, *others))
        return [path for path in named if path is not None]


@Parameter(name="*", group=DECLARATIONS)
@dataclass(frozen=True, kw_only=True)
class Declarations:
    """What the analyst asserts."""

    discount: float | None = None
    """Discount factor. Needed for an interval (an average reward has none)."""
    reward_range: tuple[float, float] | None = None
    """Range of every reward, logged or not. Needed for an interval."""
    value_range: tuple[float, float] | None = None
    """Range of the value, where tighter than the rewards imply."""
    norm_bound: float | None = None
    """Bound on the norm of Q, the constant left out. Default: no bound."""
    relative_norm: float | None = None
    """Bound on the norm as a multiple of the least norm that is consistent with the data."""
    horizon: int | None = None
    """Every episode ends within this many steps."""
    terminal_reward: bool = Assumptions.terminal_reward
    """Only the end of an episode pays."""
    deterministic_reward: bool = not Assumptions.reward_noise
    """The reward is a function of state and action."""
    state_box: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """Every state lies in this box, such as -5:5,-3:3 (low:high per column)."""
    misfit: float = Assumptions.misfit
    """Some function of the class is this near to Q everywhere."""
    misfit_norm: float | None = None
    """What the features miss of Q has at most this norm in a Gaussian RKHS: features and this ball are the class."""
    symmetric_noise: bool = Assumptions.symmetric_noise
    """Bellman residuals are symmetric about 0 (for --radius symmetric)."""
    one_step_range: float | None = None
    """Given state and action, chance moves reward plus discounted next value by at most this."""

    def assumptions(self, terminates: bool | None = Assumptions.terminates) -> Assumptions:
        """The same for the library."""
        if self.reward_range is None:
            raise InvalidInput(NO_REWARD_RANGE)
        if self.discount is None:
            raise InvalidInput(NO_DISCOUNT)
        if self.norm_bound is not None and self.relative_norm is not None:
            raise InvalidInput("--norm-bound and --relative-norm exclude each other.")
        if self.misfit_norm is not None and self.norm_bound is None:
            raise InvalidInput("--misfit-norm needs --norm-bound: the features' part of Q has a norm of its own.")
        return Assumptions(
            discount=self.discount,
            reward_range=self.reward_range,
            value_range=self.value_range,
            norm_bound=self.norm_bound if self.relative_norm is None else RelativeNorm(self.relative_norm),
            state_box=None if self.state_box is None else parse_box(self.state_box),
            reward_noise=not self.deterministic_reward,
            symmetric_noise=self.symmetric_noise,
            horizon=self.horizon,
            terminal_reward=self.terminal_reward,
            terminates=terminates,
            misfit=self.misfit,
            misfit_norm=self.misfit_norm,
            one_step_range=self.one_step_range,
        )

    def average(self, value_span: float | None) -> AverageReward:
        """What is said of a process that goes on forever."""
        if self.reward_range is None:
            raise InvalidInput(NO_REWARD_RANGE)
        return AverageReward(
            reward_range=self.reward_range,
            norm_bound=self.norm_bound,
            value_span=value_span,
            reward_noise=not self.deterministic_reward,
            state_box=None if self.state_box is None else parse_box(self.state_box),
            symmetric_noise=self.symmetric_noise,
        )


@Parameter(name="*", group=CLASS)
@dataclass(frozen=True, kw_only=True)
class FirstAnswerOptions:
    """Where no class and no kernel is given: they are chosen on the earliest rows."""

    within: Annotated[float | None, Parameter(show_default=f"{WITHIN:g}")] = None
    """Without a class: Q is asserted to be within this share of the range of values of a fit to the earliest rows."""
    save_choice: Path | None = None
    """Write what was chosen on the earliest rows to this .npz file."""
    choice: Path | None = None
    """What --save-choice wrote: choose nothing anew."""

    def check(self, first: bool) -> None:
        """Refuse what would have no effect; first: whether class and kernel are to be chosen."""
        for name, value in (("--within", self.within), ("--save-choice", self.save_choice), ("--choice", self.choice)):
            if value is not None and not first:
                raise InvalidInput(f"{name} is for a class that is chosen on the earliest rows: leave out what names a class.")
            if isinstance(value, Path) and value.suffix != ".npz":
                raise InvalidInput(f"{name} must end in .npz. Got {value.name!r}.")
        if self.choice is not None and self.within is not None:
            raise InvalidInput("--within was chosen with --choice: leave it out.")
        if self.choice is not None and self.save_choice is not None:
            raise InvalidInput("--save-choice has no effect with --choice, which is saved already.")


@Parameter(name="*", group=RADIUS)
@dataclass(frozen=True, kw_only=True)
class RadiusOptions:
    """A radius and its failure probability."""

    radius: Annotated[str, Parameter(help=f"How much loss chance may explain: {RADIUS_NAMES}.")] = DEFAULT_RADIUS
    delta: Delta = DELTA


def given(options: ProblemOptions | Declarations) -> list[str]:
    """The names of the options that differ from their defaults."""
    return [f"--{field.name.replace('_', '-')}" for field in fields(options) if getattr(options, field.name) != field.default]


def spelled(options: object) -> list[str]:
    """The words of a command line that give these options, those left at their defaults left out."""
    words: list[str] = []
    assert is_dataclass(options)
    for field in fields(options):
        value, name = getattr(options, field.name), f"--{field.name.replace('_', '-')}"
        if value == field.default:
            continue
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, tuple) and all(isinstance(each, float) for each in value):
            words += [name, *(f"{each:.12g}" for each in value)]
        else:
            for each in value if isinstance(value, tuple) else (value,):
                text = f"{each:.12g}" if isinstance(each, float) else str(each)
                words += [f"{name}={text}"] if text.startswith("-") else [name, text]
    return words


def module_file(name: str) -> Path | None:
    """The file behind module:function, where it lies in this folder; an ONNX file is named itself."""
    if name.lower().endswith(".onnx"):
        return Path(name)
    path = Path(f"{name.partition(':')[0].replace('.', '/')}.py")
    return path if os.path.isfile(path) else None  # False too for a name that no file can have
