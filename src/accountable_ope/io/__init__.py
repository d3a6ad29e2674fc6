"""Files: Parquet, Minari, templates, atomic writing."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
