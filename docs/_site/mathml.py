"""Formulas as MathML, which browsers show by themselves: no script and no server of somebody else. Bad LaTeX fails the build."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def mathml(formula: str, *, block: bool) -> str:
    """LaTeX as MathML."""
    return tex2mathml(formula, as_block=block).replace("\n", " ")


def visit_inline(translator: Any, node: nodes.math) -> None:
    """A formula in a sentence."""
    _write(translator, node, block=False)


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    translator.body.append('<div class="formula">')
    _write(translator, node, block=True, after="</div>")


def _write(translator: Any, node: nodes.Element, *, block: bool, after: str = "") -> None:
    try:
        translator.body.append(mathml(node.astext(), block=block) + after)
    except MathError as error:
        LOGGER.warning("no formula: %s (%s)", node.astext(), error, location=node)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
