"""What every result can be: a document, a table, a cell of a notebook, and most of them a picture."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..arguments import checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Presenter(Protocol):
    """Whoever knows what results look like."""

    def document_of(self, result: object, /) -> dict[str, Any]: ...

    def frame_of(self, result: object, library: str, /) -> Any: ...

    def axes_of(self, result: object, axes: Any, /) -> Axes: ...

    def html_of(self, result: object, /) -> str: ...


class Shown:
    """The ways out of a result, the same for all.

    What it looks like is told in `report`, which comes after all results and is imported by its name, when it is asked.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints, for machines; `schema` names the JSON Schema that it meets.

        What belongs to files, such as how columns were read, is in that of a command only.
        """
        return _presenter().document_of(self)

    @checked
    def to_frame(self, library: str = "pandas") -> Any:
        """A table, with one row per interval, policy, value or look.

        Parameters
        ----------
        library : str
            "pandas", "polars" or "pyarrow": whose data frame to make.

        Returns
        -------
        data frame
        """
        return _presenter().frame_of(self, library)

    def _repr_html_(self) -> str:
        return _presenter().html_of(self)


class Drawn:
    """The picture of a result that has one."""

    __slots__ = ()

    @checked
    def plot(self, axes: Any = None) -> Axes:
        """A picture by matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return _presenter().axes_of(self, axes)


def _presenter() -> Presenter:
    return cast("Presenter", import_module("accountable_ope.report.presenting"))
