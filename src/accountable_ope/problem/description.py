"""Kernels and classes of functions as data: what a certificate names, and what they can be made again from."""

from __future__ import annotations

from dataclasses import dataclass

Value = bool | int | float | str | tuple[float, ...] | tuple[tuple[float, ...], ...] | None


@dataclass(frozen=True)
class Parameter:
    """One argument: a number, a text, or an array of up to two axes."""

    name: str
    value: Value


@dataclass(frozen=True)
class Description:
    """A kernel or a class of functions.

    Attributes
    ----------
    text : str
        As a result prints it.
    kind : str
        Which one, where it can be made again from its parameters; empty where it cannot.
    parameters : tuple of Parameter
    parts : tuple of Description
        What it is made of: the factors of a product, the kernel of an RKHS.
    """

    text: str
    kind: str = ""
    parameters: tuple[Parameter, ...] = ()
    parts: tuple[Description, ...] = ()

    def __getitem__(self, name: str) -> Value:
        return next(each.value for each in self.parameters if each.name == name)


def described(text: str, kind: str, /, *parts: Description, **values: Value) -> Description:
    """A description from named values."""
    return Description(text, kind, tuple(Parameter(name, value) for name, value in values.items()), parts)
