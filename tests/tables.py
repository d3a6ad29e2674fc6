"""Tables of the verifier, made once for many forgeries of one result."""

from __future__ import annotations

from dataclasses import fields
from unittest import mock

from accountable_ope.verification import theorems

MADE: dict[object, theorems.Squared] = {}
MAKE = theorems.Squared.of


def tabulated(envelope: theorems.Envelope, steps: theorems.Steps, largest: float) -> theorems.Squared:
    """`Squared.of`, a pure function of a few numbers, most of which are the same in every forgery."""
    numbers = tuple(getattr(envelope, field.name) for field in fields(envelope))
    key = (type(envelope), numbers, steps, largest)
    if key not in MADE:
        MADE[key] = MAKE(envelope, steps, largest)
    return MADE[key]


def tables_are_kept() -> mock._patch:
    return mock.patch.object(theorems.Squared, "of", tabulated)
