"""Extreme values over quadratic constraints, with certificates; mathematics that knows no data."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
