"""One class of Q with all that a radius or a program may ask of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import checked
from ..classes.ranges import ResidualRange
from ..kernels.kernel import Kernel
from ..problem.assumptions import RelativeNorm, ValueRanges
from ..problem.description import Description
from ..programs.constraint import Constraint
from ..programs.rest_ball import RestBall
from ..statistics.bellman import BellmanSystem
from ..statistics.examiner import ClassTests, Examiner
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray, IntArray
from .no_cut import NoCut
from .passed_rows import PassedRows
from .plan import Plan
from .row_scale import RowScale


@checked
@dataclass(frozen=True, eq=False)
class Member:
    """A class, its system and statistic, and what the assumptions say about it.

    Attributes
    ----------
    name : str
        How the class is called in a result.
    system : BellmanSystem
    statistic : KernelStatistic
    kernel : Kernel
    ranges : ValueRanges
        Of values and residuals, if the class contains Q.
    residuals : ResidualRange
        How large residuals can be over a set of coefficients.
    box : Constraint or None
        The value box, None where values are known.
    norm : float, RelativeNorm or None
        The declared bound of the norm, if any.
    largest_norm : float or None
        The ball where none is declared: so large that it only keeps the numbers finite; None: no ball.
    misfit : float
        The declared distance between Q and the class.
    rounding : float
        How far rounding can move the loss of the true Q.
    description : Description
        What the class is.
    listed : bool
        Whether the class is one-hot over a list of points.
    episodes : array of int or None
        Labels of the episodes, None where unknown.
    note : str
        Why the ball is what it is.
    no_cut : NoCut or None
        What stands against a cut; None: nothing.
    offered : array (n,) or None
        Weights that a cut may use, each known before its row was drawn, such as those of recorded propensities.
    declared_width : float or None
        How far residuals of Q can lie apart whether or not the class contains it, infinite where nothing says so; None: as in
        `ranges`.
    plan : Plan or None
        Rates and weights that were fixed for other assumptions on the same data; None: those of these assumptions.
    row_ranges : array (n,) or None
        |eps_i| of the true Q is at most this, as declared row by row; None where nothing was.
    examiner : Examiner or None
        Tests the class when asked; None where its rows say nothing of whether it contains Q.
    scale : RowScale or None
        The factors u_i of the rows of the statistic, as earlier rows chose them; None: no factors.
    rest : RestBall or None
        The ball of what features miss, where the class has such a part.
    passed : PassedRows or None
        Where the rows went by in a stream: what was kept of them, while `system` has none; None: the rows are those of `system`.
    """

    name: str
    system: BellmanSystem
    statistic: KernelStatistic
    kernel: Kernel
    ranges: ValueRanges
    residuals: ResidualRange
    box: Constraint | None
    norm: float | RelativeNorm | None
    largest_norm: float | None
    misfit: float
    rounding: float
    description: Description
    listed: bool = False
    episodes: IntArray | None = None
    note: str = ""
    no_cut: NoCut | None = None
    offered: FloatArray | None = None
    declared_width: float | None = None
    plan: Plan | None = None
    row_ranges: FloatArray | None = None
    examiner: Examiner | None = None
    scale: RowScale | None = None
    rest: RestBall | None = None
    passed: PassedRows | None = None

    def __repr__(self) -> str:
        return f"Member({self.name}, {self.statistic!r})"

    @property
    def prior(self) -> float:
        """The range of residuals in units of which rates are fixed."""
        return self.residuals.unit if self.plan is None else self.plan.step_range

    @property
    def largest_scaled(self) -> float | None:
        """No u_i |eps_i| was possible beyond this when the factors were chosen; None: no factors."""
        return None if self.scale is None else self.scale.largest

    @property
    def tests(self) -> ClassTests:
        """Of the class and of the norm bound, where one was declared rather than followed from something else."""
        return ClassTests(self.examiner, self.norm if isinstance(self.norm, float) and not self.note else None)

    @property
    def residual_gap(self) -> float:
        """How far a residual of the nearest function of the class can be from that of Q."""
        return (1 + self.system.discount) * self.misfit
