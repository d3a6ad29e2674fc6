"""Names that are imported when they are first asked for, written once, in the stub of a package."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of a package, from the relative imports of its `__init__.pyi` (PEP 562)."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    sources = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }

    def getattr_(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = sources[name]
        if module is None:  # from . import room
            return import_module(f"{package}.{attribute}")
        found = import_module(f"{package}.{module}")
        if find_spec(f"{package}.{module}.{attribute}") if hasattr(found, "__path__") else None:  # a room within a room
            return import_module(f"{package}.{module}.{attribute}")
        return getattr(found, attribute)

    return getattr_, lambda: sorted(sources), sorted(sources)
