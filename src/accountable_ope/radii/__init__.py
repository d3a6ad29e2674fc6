"""How large the loss of the true Q may be by chance: one module per theorem, and the registry of names."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
