"""The options of the command line, each declared once; commands flatten these classes into their own options."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Group, Parameter

from ..bounds.value import bound_ladder
from ..classes.features import RandomFourier, TabularFeatures
from ..classes.function_class import Features
from ..classes.rkhs import KernelSections
from ..classes.semi_parametric import SemiParametric
from ..defaults.choosing import WITHIN
from ..errors import InvalidInput
from ..io.column_names import LOG, SHOWS_ORDER, STARTS
from ..io.columns import ColumnNames, did_you_mean
from ..kernels.kernel import Gaussian, Kernel, Laplace, Tabular
from ..kernels.products import TileOptions
from ..problem.assumptions import Assumptions, RelativeNorm
from ..problem.average_reward import AverageReward
from ..problem.problem import Experience
from ..radii.registry import DEFAULT_RADIUS, RULES
from ..validation import FloatArray

MEMORY_LIMIT = 16 * 2**30
"""Landmarks that would need more bytes than this are refused before any work."""
MOST_CELLS = 5000
"""The most pairs of state and action that --tabular takes."""
RANDOM = ("features", "seed")
"""Options of random features that no other class has."""

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
FEATURES = 50
"""Random Fourier features unless a number is given."""
MISFIT_LANDMARKS = 100
"""Coordinates of what features miss, unless a number is given: more of them hardly narrow an interval, and take long."""
_KERNEL_BANDWIDTHS = f"{Gaussian().bandwidth:g} (gaussian), {Laplace().bandwidth:g} (laplace)"


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
            state_box=None if self.state_box is None else _parse_box(self.state_box),
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
            state_box=None if self.state_box is None else _parse_box(self.state_box),
            symmetric_noise=self.symmetric_noise,
        )


@Parameter(name="*", group=CLASS)
@dataclass(frozen=True, kw_only=True)
class FourierOptions:
    """Random Fourier features and the test kernel."""

    features: Annotated[int | None, Parameter(show_default=str(FEATURES))] = None
    """Number of random Fourier features."""
    feature_bandwidth: Annotated[tuple[float, ...], Parameter(show_default=f"{RandomFourier.bandwidth:g}")] = ()
    """Bandwidth of the features, repeatable: the union of the classes."""
    no_intercept: bool = not RandomFourier.intercept
    """The paper's class: no unpenalized constant in Q."""
    seed: Annotated[int | None, Parameter(show_default=str(RandomFourier.seed))] = None
    """Seed of the random features."""
    kernel: Annotated[Literal["gaussian", "laplace", "tabular"] | None, Parameter(show_default="gaussian")] = None
    """Test kernel."""
    bandwidth: Annotated[str | None, Parameter(show_default=_KERNEL_BANDWIDTHS)] = None
    """Bandwidth of the test kernel: a number, or one per column of (state, action)."""

    @property
    def intercept(self) -> bool:
        """Whether Q has an unpenalized constant."""
        return not self.no_intercept

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return FEATURES if self.features is None else self.features

    @property
    def feature_seed(self) -> int:
        """What they are drawn with."""
        return RandomFourier.seed if self.seed is None else self.seed

    @property
    def widths(self) -> tuple[float, ...]:
        """Their bandwidths, a class for each."""
        return self.feature_bandwidth or (RandomFourier.bandwidth,)

    def refuse(self, *names: str, because: str) -> None:
        """Raise where one of these options was given, even with its default: it would have no effect."""
        for name in names:
            if getattr(self, name) not in (None, ()):
                raise InvalidInput(f"--{name.replace('_', '-')} has no effect {because}.")

    def check(self) -> None:
        """Refuse what would have no effect."""
        if self.kernel == "tabular":
            self.refuse("bandwidth", because="with --kernel tabular, which compares points only for equality")

    def classes(self) -> list[RandomFourier]:
        """A class per bandwidth."""
        return [RandomFourier(self.dimension, width, self.feature_seed, self.intercept) for width in self.widths]

    def test_kernel(self) -> Kernel:
        """The kernel that weighs Bellman residuals against each other."""
        widths = () if self.bandwidth is None else (_parse_bandwidth(self.bandwidth),)
        if self.kernel == "tabular":
            return Tabular()
        return Laplace(*widths) if self.kernel == "laplace" else Gaussian(*widths)


@Parameter(name="*", group=CLASS)
@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """Any class of Q functions that the command line knows, and the test kernel."""

    fourier: FourierOptions = FourierOptions()
    landmarks: int | None = None
    """The whole Gaussian RKHS through this many landmarks (0: all), not random features; with --misfit-norm, what they miss."""
    misfit_bandwidth: float | None = None
    """With --misfit-norm: bandwidth of the Gaussian RKHS of what features miss. Default: that of features or chosen kernel."""
    tabular: bool = False
    """One-hot features and the tabular kernel, for finitely many states."""
    single_precision: bool = TileOptions.single_precision
    """Kernel tiles in float32: faster, with the rounding added to the radius."""

    def check(self, misfit_norm: float | None = None) -> None:
        """Refuse what excludes each other, and what would have no effect.

        misfit_norm: the declared norm of what features miss, where they are to miss something.
        """
        if misfit_norm is None and self.misfit_bandwidth is not None:
            raise InvalidInput("--misfit-bandwidth has no effect without --misfit-norm.")
        if misfit_norm is not None and self.tabular:
            raise InvalidInput("--misfit-norm has no effect with --tabular, whose features miss nothing.")
        if self.misfit_bandwidth is not None and not (math.isfinite(self.misfit_bandwidth) and self.misfit_bandwidth > 0):
            raise InvalidInput(f"--misfit-bandwidth must be positive. Got {self.misfit_bandwidth!r}.")
        if self.tabular and self.landmarks is not None:
            raise InvalidInput("--tabular and --landmarks exclude each other.")
        self.fourier.check()
        if self.tabular:
            self.fourier.refuse(*RANDOM, "feature_bandwidth", "kernel", "bandwidth", because="with --tabular")
        if self.landmarks is not None and misfit_norm is None:
            self.fourier.refuse(*RANDOM, because="with --landmarks, which take the place of random features")
        if self.single_precision and (self.tabular or self.fourier.kernel == "tabular"):
            raise InvalidInput("--single-precision has no effect with a tabular kernel, which has no tiles.")

    def test_kernel(self) -> Kernel:
        """The chosen kernel; one-hot features go with the kernel that compares points only for equality."""
        chosen = self.fourier.test_kernel()
        return Tabular() if self.tabular else chosen

    @property
    def given(self) -> bool:
        """Whether any option names a class or a kernel."""
        return self.tabular or self.landmarks is not None or self.fourier != FourierOptions()

    @property
    def one_bandwidth(self) -> bool:
        """Whether all columns of the state share a bandwidth."""
        return not self.tabular and self.fourier.kernel != "tabular"

    def tiles(self) -> TileOptions:
        """How the pass over the rows is made."""
        return TileOptions(single_precision=self.single_precision)

    def classes(self, experience: Experience, misfit_norm: float | None = None) -> list[Features]:
        """One-hot features over the states that occur, an RKHS by landmarks, or random Fourier features; one per bandwidth.

        misfit_norm: where it is declared, an RKHS is put around the random features.
        """
        data, starts, policy = experience.data, experience.starts, experience.policy
        if misfit_norm is not None:
            return [*self._semi_parametric(len(data))]
        if self.landmarks is not None:
            return [*self._sections(self.landmarks, len(data))]
        if not self.tabular:
            return [*self.fourier.classes()]
        vectors = policy.action_vectors
        if vectors is None:
            raise InvalidInput("--tabular needs a finite action set.")
        states = np.concatenate([data.states, data.next_states[~data.terminated], starts.states])
        distinct = np.unique(states, axis=0)
        if len(distinct) * len(vectors) > MOST_CELLS:
            raise InvalidInput(
                f"--tabular is for few states: there are {len(distinct)} different ones and {len(vectors)} actions."
            )
        return [TabularFeatures.grid(distinct, vectors, self.fourier.intercept)]

    @property
    def misfit_landmarks(self) -> int | None:
        """Coordinates of what features miss; None: as many as it takes."""
        return MISFIT_LANDMARKS if self.landmarks is None else self.landmarks or None

    @property
    def names_features(self) -> bool:
        """Whether any option names features or a kernel; what features miss has options of its own."""
        return self.tabular or self.fourier != FourierOptions()

    def refuse_misfit_memory(self, rows: int) -> None:
        """Raise where the landmarks of what features miss would fill the memory."""
        _refuse_memory([KernelSections(Gaussian(1.0), self.misfit_landmarks, intercept=False)], rows)

    def _semi_parametric(self, rows: int) -> list[SemiParametric]:
        classes = [
            SemiParametric(features, Gaussian(self.misfit_bandwidth or features.bandwidth), self.misfit_landmarks)
            for features in self.fourier.classes()
        ]
        _refuse_memory([each.missed for each in classes], rows)
        return classes

    def _sections(self, landmarks: int, rows: int) -> list[KernelSections]:
        classes = [KernelSections(Gaussian(width), landmarks or None, self.fourier.intercept) for width in self.fourier.widths]
        _refuse_memory(classes, rows)
        return classes


def _refuse_memory(classes: Sequence[KernelSections], rows: int) -> None:
    """Raise where landmarks would fill the memory."""
    needed = sum(sections.memory(rows) for sections in classes)
    if needed > MEMORY_LIMIT:
        landmarks = classes[0].landmarks or 0
        raise InvalidInput(f"--landmarks {landmarks} on {rows} rows needs about {needed / 2**30:.1f} GiB. Use fewer landmarks.")


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


def parse_vectors(text: str, option: str) -> list[list[float]]:
    """'-1,0,1' -> one number each; 'a1,a2;b1,b2' -> vectors of one length."""
    try:
        rows = [[float(x) for x in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise InvalidInput(f"{option} must be numbers separated by commas. Got {text!r}.") from None
    if len({len(row) for row in rows}) != 1:
        raise InvalidInput(f"{option} must be vectors of one length. Got {text!r}.")
    return [[x] for x in rows[0]] if len(rows) == 1 else rows


def parse_columns(words: Sequence[str]) -> ColumnNames:
    """'state=age,dose', 'episode=patient' -> the columns of each."""
    found: dict[str, str | Sequence[str]] = {}
    for word in words:
        meaning, equals, listed = word.partition("=")
        meaning, names = meaning.strip(), tuple(name.strip() for name in listed.split(","))
        if not equals or not meaning or not all(names):
            raise InvalidInput(f"--column must say which column is which, such as state=age,dose. Got {word!r}.")
        if meaning not in (*LOG, *STARTS, *SHOWS_ORDER):
            known = tuple(dict.fromkeys((*LOG, *STARTS)))
            raise InvalidInput(f"--column must name one of {', '.join(known)}. Got {meaning!r}.{did_you_mean(meaning, known)}")
        if meaning in found:
            raise InvalidInput(f"--column {meaning}=... is given twice: name all of its columns at once, as in state=age,dose.")
        found[meaning] = names if len(names) > 1 else names[0]
    return found


def _parse_bandwidth(text: str) -> FloatArray:
    """One number, or one per column of (state, action) separated by commas."""
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--bandwidth must be a number, or numbers separated by commas. Got {text!r}.") from None
    if not all(math.isfinite(x) and x > 0 for x in numbers):
        raise InvalidInput(f"--bandwidth must be positive. Got {text!r}.")
    return np.array(numbers[0] if len(numbers) == 1 else numbers)


def _parse_box(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """-5:5,-3:3 -> ((-5, -3), (5, 3))."""
    try:
        sides = [tuple(float(end) for end in side.split(":")) for side in text.split(",")]
        lows, highs = zip(*((low, high) for low, high in sides), strict=True)
    except ValueError:
        raise InvalidInput(f"--state-box must look like -5:5,-3:3, one low:high per state column. Got {text!r}.") from None
    return lows, highs
