"""Whether a model answers for each row by itself: asked again in other company, it must answer the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..problem.policy import shown_numbers
from ..validation import FloatArray

TOGETHER, ALONE = 64, 8
"""So many rows are asked for again in another order, and so many of them alone."""

ROUNDING = 1e-4
"""Answers are the same up to this, relative to the largest of a row: single precision rounds otherwise in a batch."""


@dataclass(eq=False)
class Company:
    """Asks again whenever twice as many rows come as ever before: a handful of questions for a whole log.

    A model in training mode, one that normalizes over its rows, and one that draws its answers are no functions of the state.
    """

    most: int = 1

    def check(self, found: FloatArray, ask: Callable[[NDArray[np.intp]], FloatArray], rows: FloatArray, name: str) -> None:
        """Raise where rows (n, d) get other answers than those that were found (n, k); ask: answers at some of them."""
        if len(found) < 2 * self.most:
            return
        some = np.unique(np.linspace(0, len(found) - 1, TOGETHER).astype(np.intp))[::-1]
        alone = np.unique(np.linspace(0, len(some) - 1, ALONE).astype(np.intp))
        for each in (some, *(some[[place]] for place in alone)):
            size = np.maximum(1.0, np.abs(found[each]).max(axis=1, initial=0.0))
            differs = (np.abs(found[each] - ask(each)) > ROUNDING * size[:, None]).any(axis=1)
            if differs.any():
                at = shown_numbers(rows[each[int(np.argmax(differs))]])
                raise InvalidInput(
                    f"{name} must answer for each state by itself: asked again at {at}, alone or in another order, it answered "
                    "differently. Put it into evaluation mode before it is exported or handed in; it must neither normalize over "
                    "its rows nor draw its answers."
                )
        self.most = len(found)  # at last: whoever was refused is asked again
