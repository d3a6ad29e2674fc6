"""Proving a result again, from its certificate alone: nothing here solves a program."""

from ..lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
