"""Options that several commands share, each described once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..classes.features import FeatureMap, KernelSections
    from ..kernels.kernel import Kernel
    from ..problem.assumptions import Assumptions
    from .inputs import Problem

DataFile = Annotated[Path, typer.Argument(help="Parquet file of transitions: state, action, reward, next_state, ...")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Discount = Annotated[float, typer.Option(help="Discount factor.")]
RewardRange = Annotated[tuple[float, float], typer.Option(help="Declared range of every reward, logged or not.")]
Starts = Annotated[
    Path | None, typer.Option(help="Parquet file of start states (state, weight, target_probability). None: first states.")
]
SampledStarts = Annotated[
    bool, typer.Option("--sampled-starts", help="The start states are an i.i.d. sample, not the distribution itself.")
]
PolicyName = Annotated[
    str | None, typer.Option(help="module:function of the target policy (states -> probabilities). None: columns of the files.")
]
ActionValues = Annotated[
    str | None, typer.Option(help="A number per action, such as -1,0,1 (vectors: 0,1;1,0). None: one-hot vectors.")
]
ValueRange = Annotated[
    tuple[float, float] | None, typer.Option(help="Declared range of the value, where tighter than the rewards imply.")
]
NormBound = Annotated[float | None, typer.Option(help="Declared bound on the norm of Q, the constant left out.")]
RelativeNormBound = Annotated[
    float | None, typer.Option(help="Declared bound as a multiple of the least norm that is consistent with the data.")
]
Horizon = Annotated[int | None, typer.Option(help="Declared: every episode ends within this many steps.")]
TerminalReward = Annotated[bool, typer.Option("--terminal-reward", help="Declared: only the end of an episode pays.")]
DeterministicReward = Annotated[
    bool, typer.Option("--deterministic-reward", help="Declared: the reward is a function of state and action.")
]
StateBox = Annotated[
    str | None, typer.Option(help="Declared: every state lies in this box, such as -5:5,-3:3 (low:high per column).")
]
OneStepRange = Annotated[
    float | None,
    typer.Option(help="Declared: given state and action, chance moves reward plus discounted next value by at most this."),
]
Misfit = Annotated[float, typer.Option(help="Declared: some function of the class is this near to Q everywhere.")]
SymmetricNoise = Annotated[
    bool, typer.Option("--symmetric-noise", help="Declared: Bellman residuals are symmetric about 0 (for --radius symmetric).")
]
Delta = Annotated[float, typer.Option(help="Failure probability of the two-sided statement.")]
FeatureCount = Annotated[int, typer.Option(help="Number of random Fourier features.")]
FeatureBandwidth = Annotated[
    list[float] | None, typer.Option(help="Bandwidth of the features, repeatable: the union of the classes. [default: 1.0]")
]
Landmarks = Annotated[
    int | None, typer.Option(help="The whole Gaussian RKHS through this many landmarks, instead of random features (0: all).")
]
TabularClass = Annotated[bool, typer.Option("--tabular", help="One-hot features, for finitely many states.")]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="The paper's class: no unpenalized constant in Q.")]
KernelName = Annotated[str, typer.Option(help="Test kernel: gaussian, laplace or tabular.")]
Bandwidth = Annotated[str, typer.Option(help="Bandwidth of the kernel: a number, or one per column of (state, action).")]
Seed = Annotated[int, typer.Option(help="Seed of the random features.")]
SinglePrecision = Annotated[
    bool, typer.Option("--single-precision", help="Kernel tiles in float32: faster, with the rounding added to the radius.")
]


@dataclass(frozen=True)
class Declared:
    """What the analyst asserts on the command line."""

    discount: float
    reward_range: tuple[float, float]
    value_range: tuple[float, float] | None
    norm_bound: float | None
    relative_norm: float | None
    horizon: int | None
    terminal_reward: bool
    deterministic_reward: bool
    state_box: str | None = None
    misfit: float = 0.0
    symmetric_noise: bool = False
    one_step_range: float | None = None

    def assumptions(self) -> Assumptions:
        from ..problem.assumptions import Assumptions, RelativeNorm

        if self.norm_bound is not None and self.relative_norm is not None:
            raise InvalidInput("--norm-bound and --relative-norm exclude each other.")
        return Assumptions(
            discount=self.discount,
            reward_range=self.reward_range,
            value_range=self.value_range,
            norm_bound=self.norm_bound if self.relative_norm is None else RelativeNorm(self.relative_norm),
            reward_noise=not self.deterministic_reward,
            horizon=self.horizon,
            terminal_reward=self.terminal_reward,
            state_box=None if self.state_box is None else _parse_box(self.state_box),
            misfit=self.misfit,
            symmetric_noise=self.symmetric_noise,
            one_step_range=self.one_step_range,
        )


def _parse_box(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """-5:5,-3:3 -> ((-5, -3), (5, 3))."""
    try:
        sides = [tuple(float(end) for end in side.split(":")) for side in text.split(",")]
        lows, highs = zip(*((low, high) for low, high in sides), strict=True)
    except ValueError:
        raise InvalidInput(f"--state-box must look like -5:5,-3:3, one low:high per state column. Got {text!r}.") from None
    return lows, highs


@dataclass(frozen=True)
class ClassChoice:
    """The kernel and the class of Q functions, as chosen on the command line."""

    tabular: bool
    features: int
    feature_bandwidth: list[float] | None
    landmarks: int | None
    intercept: bool
    kernel: str
    bandwidth: str
    seed: int

    def test_kernel(self) -> Kernel:
        from .inputs import build_kernel, parse_bandwidth

        return build_kernel("tabular" if self.tabular else self.kernel, parse_bandwidth(self.bandwidth, "--bandwidth"))

    def classes(self, problem: Problem) -> list[FeatureMap | KernelSections]:
        from .inputs import build_features

        return build_features(
            problem,
            self.tabular,
            self.features,
            self.feature_bandwidth or [1.0],
            self.landmarks,
            self.seed,
            self.intercept,
        )
