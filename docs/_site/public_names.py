"""What is public, by room: the names of the stubs, of which the pages of the reference are made."""

from __future__ import annotations

import ast
import importlib
import inspect
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType

PACKAGE = "accountable_ope"


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes
    ----------
    path : str
        How it is imported: from the package where that has it, else from its room.
    room : str
        The room that shows it, "" for the package itself.
    value : object
    """

    path: str
    room: str
    value: object

    @property
    def short(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


def rooms() -> list[str]:
    """The public rooms, as the package names them."""
    package = importlib.import_module(PACKAGE)
    there = [getattr(package, name) for name in package.__all__]
    return [each.__name__.removeprefix(f"{PACKAGE}.") for each in there if inspect.ismodule(each)]


def named(module: ModuleType, name: str) -> object:
    """What a stub names, also where a module of the same name hides it."""
    lazily = vars(module).get("__getattr__")
    return getattr(module, name) if lazily is None else lazily(name)


def public_names() -> list[Name]:
    """Every public name once: in the room that defines it, else in the first one that names it."""
    top, *inner = [("", PACKAGE), *((room, f"{PACKAGE}.{room}") for room in rooms())]
    at_top = names_in(top[1])
    found: dict[object, Name] = {}
    for room, module in [*inner, top]:
        for name, value in names_in(module).items():
            path = f"{PACKAGE}.{name}" if at_top.get(name) is value else f"{module}.{name}"
            known, at_home = found.get(key(module, name, value)), f"{home(value)}.".startswith(f"{module}.")
            if known is None or (at_home and room):
                within = (each for each, _ in inner if not room and f"{home(value)}.".startswith(f"{PACKAGE}.{each}."))
                found[key(module, name, value)] = Name(path, room or next(within, ""), value)
    return sorted(found.values(), key=lambda each: (each.room, each.short.lower()))


def names_in(module: str) -> dict[str, object]:
    """What a stub names, but for rooms."""
    there = importlib.import_module(module)
    values = {name: named(there, name) for name in there.__all__}
    return {name: value for name, value in values.items() if not inspect.ismodule(value)}


def key(module: str, name: str, value: object) -> object:
    """What tells public names apart: a function or class is the same wherever it is named, a constant is not."""
    return id(value) if callable(value) else (module, name)


def home(value: object) -> str:
    """The module that defines a function or a class."""
    return str(getattr(value, "__module__", "")) if callable(value) else ""


def names_of(room: str) -> list[Name]:
    """What the page of a room shows."""
    return [each for each in public_names() if each.room == room]


def explanation(name: Name) -> str:
    """The string below the assignment of a constant, in one of the modules of its room."""
    folder = importlib.import_module(f"{PACKAGE}.{name.room}" if name.room else PACKAGE).__path__[0]
    for file in sorted(Path(folder).glob("*.py")):
        for node, after in pairwise(ast.parse(file.read_text(encoding="utf-8")).body):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            is_it = isinstance(node, ast.Assign | ast.AnnAssign) and any(
                getattr(each, "id", "") == name.short for each in targets
            )
            if is_it and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return str(after.value.value)
    return ""
