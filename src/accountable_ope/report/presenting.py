"""Results on their way out: what `io.shown.Shown` asks for, by these names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ..errors import InvalidInput, MissingExtra
from .plots import new_axes
from .result_documents import document_of as document_of
from .result_html import html_of as html_of
from .result_plots import WIDTH, picture_of
from .result_rows import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIBRARIES = ("pandas", "polars", "pyarrow")


def frame_of(result: object, library: str, /) -> Any:
    """The rows of a result as a data frame, made by narwhals."""
    import narwhals as nw

    if library not in LIBRARIES:
        raise InvalidInput(f"`library` must be one of {', '.join(LIBRARIES)}. Got {library!r}.")
    try:
        import_module(library)
    except ImportError as error:
        raise MissingExtra(f"A data frame of {library} needs it: pip install {library}.") from error
    rows = rows_of(result)
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return nw.from_dict(columns, backend=cast("Any", library)).to_native()


def axes_of(result: object, axes: Any, /) -> Axes:
    """The picture of a result, on axes of its own where none are given."""
    if axes is not None and not callable(getattr(axes, "set_title", None)):
        raise InvalidInput(f"`axes` must be axes of matplotlib, or left out. Got {type(axes).__name__}.")
    picture = picture_of(result)
    drawn = new_axes(WIDTH, picture.height) if axes is None else axes
    picture.draw(drawn)
    found: Axes = drawn
    return found
