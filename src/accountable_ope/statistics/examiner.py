"""Tests of a class, made when they are first asked for and once for all radii and assumptions."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import final

from ..kernels.kernel import Kernel
from .bellman import BellmanSystem
from .norm_test import NormTest, norm_test
from .specification import Examination, SpecificationTest, examine

THROUGH_COORDINATES = "The class is a whole RKHS, of which the coordinates see a part: what they miss is no sign against it."


@final
class Examiner:
    """Holds the rows of a class until somebody asks whether it contains Q.

    The test is of the class alone, whatever the radius; rows keep the kernel's own weights where a radius rescales them.
    first_rows: only these are tested; None: all.
    """

    def __init__(self, kernel: Kernel, system: BellmanSystem, first_rows: int | None = None) -> None:
        self._kernel, self._first_rows = kernel, first_rows
        self._system = system if first_rows is None else system.first(first_rows)

    @cached_property
    def examination(self) -> Examination:
        """The test and the fit behind it."""
        system = self._system
        if system.remainder is not None:
            return Examination(SpecificationTest(reason=THROUGH_COORDINATES), None)
        found = examine(self._kernel, system.points, system.residuals, system.target)
        return replace(found, test=replace(found.test, first_rows=self._first_rows))

    def norm_test(self, norm_bound: float) -> NormTest | None:
        """The test of a norm ball; None where it cannot be tested."""
        fit = self.examination.fit
        return None if fit is None else norm_test(fit, self._system.penalized, norm_bound)


@final
class ClassTests:
    """What tests say of one class and of the norm bound that was declared for it, if any.

    examiner : Examiner or None
        None where a test of these rows says nothing of the class; then `reason` says why.
    """

    def __init__(self, examiner: Examiner | None, norm_bound: float | None = None, reason: str = THROUGH_COORDINATES) -> None:
        self._examiner, self._norm_bound, self._reason = examiner, norm_bound, reason

    @property
    def specification(self) -> SpecificationTest:
        """Whether the class contains Q."""
        return SpecificationTest(reason=self._reason) if self._examiner is None else self._examiner.examination.test

    @cached_property
    def norm(self) -> NormTest | None:
        """Whether the ball does, if the class does; None where no norm was declared or it cannot be tested."""
        return None if self._examiner is None or self._norm_bound is None else self._examiner.norm_test(self._norm_bound)
