"""The answers: intervals, diagnosis, correction, sensitivity, monitoring."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
