"""Policies and estimates of Q that were trained elsewhere; every framework is imported when it is used."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
