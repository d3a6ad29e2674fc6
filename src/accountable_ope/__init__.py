"""Off-policy evaluation that can be held to account: confidence bounds from logged transitions, with certificates."""

from .lazy import attach

__version__ = "0.1.0"

# The names are written once, in __init__.pyi, and imported when they are first asked for.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
