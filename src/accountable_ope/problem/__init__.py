"""The question: data, start states, policy, assumptions; what they imply and contradict; statements."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
