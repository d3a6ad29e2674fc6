"""All work over rows: Bellman systems and kernel statistics."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
