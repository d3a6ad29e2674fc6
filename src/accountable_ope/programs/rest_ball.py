"""The ball of what the features of a class miss of Q."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RestBall:
    """The part of Q that features miss: its coordinates come first, and with what is unseen of it its norm is at most radius."""

    coordinates: int
    radius: float
