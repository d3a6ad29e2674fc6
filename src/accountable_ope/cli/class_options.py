"""The options of the command line that name a class of Q and a test kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from cyclopts import Parameter

from ..classes.features import RandomFourier, TabularFeatures
from ..classes.function_class import Features
from ..classes.rkhs import KernelSections
from ..classes.semi_parametric import SemiParametric
from ..errors import InvalidInput
from ..kernels.kernel import Gaussian, Kernel, Laplace, Tabular
from ..kernels.products import TileOptions
from ..problem.problem import Experience
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.earlier_rows import block_edges
from .options import CLASS
from .parsing import parse_bandwidth

MEMORY_LIMIT = 16 * 2**30
"""Landmarks that would need more bytes than this are refused before any work."""
MOST_CELLS = 5000
"""The most pairs of state and action that --tabular takes."""
RANDOM = ("features", "seed")
"""Options of random features that no other class has."""
FEATURES = 50
"""Random Fourier features unless a number is given."""
MISFIT_LANDMARKS = 100
"""Coordinates of what features miss, unless a number is given: more of them hardly narrow an interval, and take long."""
_KERNEL_BANDWIDTHS = f"{Gaussian().bandwidth:g} (gaussian), {Laplace().bandwidth:g} (laplace)"


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
        widths = () if self.bandwidth is None else (parse_bandwidth(self.bandwidth),)
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

    def chosen(self, experience: Experience, before: Choice = BEFORE_THE_DATA) -> Choice:
        """When the class was chosen: a table lists states of the log, which no weights may know before they were seen.

        It is as if it had been known where the first rows and the start states show all of them: so many rows as come before any
        weight whatever a table has in it, since how much it has is known only then.
        """
        if not self.tabular:
            return before
        [table] = self.classes(experience)
        assert isinstance(table, TabularFeatures)
        data, edges = experience.data, block_edges(len(experience.data), 0)
        first = data.rows(slice(0, max(edges[0], 2))) if edges else data
        fixed = [experience.starts.states] if experience.starts.fixed else []
        seen = np.concatenate([first.states, first.next_states[~first.terminated], *fixed]) + 0.0
        states = np.unique(table.points[:, : seen.shape[1]], axis=0)
        return replace(before, points=len(np.unique(np.concatenate([states, seen]), axis=0)) == len(np.unique(seen, axis=0)))

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
