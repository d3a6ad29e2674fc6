"""When class and kernel were chosen, which every guarantee rests on."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.statements import Statement, premise
from ..validation import whole


@checked
@dataclass(frozen=True)
class Choice:
    """When class and kernel were chosen: before any of these data, or on earlier rows that the bound does not use.

    Parameters
    ----------
    earlier_rows : int
        How many earlier rows the choice was made on; 0: none, the choice was made without looking at these data.
    kernel : bool
        Whether the kernel was chosen on them too, and not only the class.
    estimate : bool
        Whether an estimate around which the class lies was made then, too: before any row of the bound. By default nothing is
        known of when it was made, and it may have been fitted to these very rows.
    points : bool
        Whether the points that a class lists were known then, too; False: later rows added some.

    Examples
    --------
    >>> from accountable_ope.radii.choice import Choice
    >>> Choice(earlier_rows=200).words(for_kernel=True)
    'chosen on the first 200 rows, which the bound does not use'
    """

    earlier_rows: int = 0
    kernel: bool = True
    estimate: bool = False
    points: bool = True

    def __post_init__(self) -> None:
        whole(self.earlier_rows, "earlier_rows", least=0)
        for name, value in (("kernel", self.kernel), ("estimate", self.estimate), ("points", self.points)):
            if not isinstance(value, bool):
                raise InvalidInput(f"`{name}` must be True or False. Got {value!r}.")

    @property
    def around_a_fit(self) -> bool:
        """Whether the class lies around an estimate that earlier rows of the log gave."""
        return self.estimate and self.earlier_rows > 0

    def words(self, *, for_kernel: bool) -> str:
        """How a premise says it."""
        if self.earlier_rows == 0 or (for_kernel and not self.kernel):
            shown = "" if self.points or for_kernel else ", but for the states that it lists, which are those of the data"
            return f"chosen without looking at these data{shown}"
        return f"chosen on the first {self.earlier_rows} rows, which the bound does not use"

    def premises(self, count: int) -> list[Statement]:
        """That the rows of the bound came later."""
        if self.earlier_rows == 0:
            return []
        text = f"The bound uses the remaining {count} rows, which came later."
        return [premise("later-rows", text, ("earlier_rows", self.earlier_rows), ("rows", count))]

    def of_estimate(self) -> list[Statement]:
        """That the estimate around which a class lies was made before the rows of the bound, where that was said."""
        if not self.estimate:
            return []
        how = "made without looking at these data"
        if self.earlier_rows:
            how = f"made from the first {self.earlier_rows} rows, which the bound does not use"
        return [premise("estimate", f"The given estimate was {how}.", ("earlier_rows", self.earlier_rows))]


BEFORE_THE_DATA = Choice()
