"""Who computes the sums: this machine, or a cluster."""

from ...lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
