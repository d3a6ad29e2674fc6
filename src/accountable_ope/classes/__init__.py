"""Classes of Q functions: their columns, ranges and remainders."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
