"""Episodes of a log that is read in parts: which number each has in the whole log, and which have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..problem.transitions import Transitions
from ..validation import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


class EpisodeLabels:
    """What the labels of the parts so far were, in the order of the log."""

    def __init__(self) -> None:
        self._numbers: dict[int | str, int] = {}
        self._ended: set[int] = set()

    def numbered(self, data: Transitions, labels: pa.ChunkedArray) -> Transitions:
        """The next part, with the numbers that its episodes have in the log."""
        assert data.episodes is not None
        known, numbers = len(self._numbers), self._numbers
        _, first_rows = np.unique(data.episodes, return_index=True)  # labels count episodes in the order in which they begin
        of_label: IntArray = np.array([numbers.setdefault(each, len(numbers)) for each in labels.take(first_rows).to_pylist()])
        in_log = of_label[data.episodes]
        return data.continuing(in_log, in_log < known)

    def goes_on(self, data: Transitions) -> int | None:
        """The first row of an episode that ended in an earlier part, None where there is none; this part's ends are known then.

        Within a part `Following` tells.
        """
        episodes = np.unique(data.episode_numbers)
        again = np.array([each for each in episodes.tolist() if each in self._ended], dtype=np.int64)
        self._ended.update(np.unique(data.episode_numbers[data.terminated]).tolist())
        return int(np.argmax(np.isin(data.episode_numbers, again))) if len(again) else None
