"""Choices made on earlier rows: point estimates, bandwidths, trained features."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
