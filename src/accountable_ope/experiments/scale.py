"""How large a run is: the paper's 50 trials, or a quick look."""

from __future__ import annotations

from dataclasses import dataclass, field

from .classes import Pilot


@dataclass(frozen=True)
class Scale:
    """Trials, and the values on the axes of the figures."""

    trials: int = 50
    kinds: tuple[str, ...] = ("fourier", "neural")
    default_n: int = 5000
    counts: tuple[int, ...] = (1000, 2000, 5000, 10_000)
    confidences: tuple[float, ...] = (0.5, 0.9, 0.99)
    temperatures: tuple[float, ...] = (0.5, 1.0, 2.0)
    features: tuple[int, ...] = (5, 10, 20, 40)
    diagnosis_counts: tuple[int, ...] = (500, 1000, 2000, 5000)
    episodes: tuple[int, ...] = (20, 100, 500, 1000, 2000)
    pilot: Pilot = field(default_factory=Pilot)


QUICK = Scale(
    trials=4,
    default_n=1000,
    counts=(300, 1000),
    confidences=(0.8, 0.9, 0.99),
    temperatures=(1.0, 2.0),
    features=(5, 10),
    diagnosis_counts=(500, 2000),
    episodes=(20, 200),
    pilot=Pilot(rows=3000, steps=200),
)
