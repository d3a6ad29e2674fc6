"""Hypothesis draws the same examples every time, so that a failure is a change of the code; `explore` draws new ones."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("same")
