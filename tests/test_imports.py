"""Imports go one way along the flow, and importing the package stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import accountable_ope

ROOT = Path(accountable_ope.__file__).parent

ROOMS: tuple[tuple[str, ...], ...] = (
    ("errors", "lazy"),
    ("validation",),
    ("threads",),
    ("arguments",),
    ("programs",),
    ("problem",),
    ("io",),
    ("kernels", "runner", "adapters"),
    ("classes",),
    ("statistics", "environments", "baselines"),
    ("radii",),
    ("fitting", "verification"),
    ("defaults",),
    ("bounds",),
    ("laboratory", "experiments"),
    ("trust",),
    ("arena",),
    ("demo", "report"),
    ("cli",),
    ("__init__", "__main__"),
)
"""The way of the flow, lowest first. A room may import rooms before it and its own modules, nothing beside or after it."""

ONLY: dict[str, set[str]] = {
    "programs": {"errors", "lazy", "threads", "validation", "arguments"},
    "kernels": {"errors", "lazy", "threads", "validation", "arguments", "programs", "problem"},
    "io": {"errors", "lazy", "validation", "arguments", "problem"},
    "adapters": {"errors", "lazy", "validation", "arguments", "problem"},
    "runner": {"errors", "lazy", "validation", "arguments", "io"},
    "environments": {"errors", "lazy", "validation", "arguments", "problem", "classes"},
    "baselines": {"errors", "lazy", "validation", "arguments", "problem", "io", "kernels", "classes"},
}
"""Rooms that may use less than their place allows: mathematics that knows no data, data that know no mathematics."""

HEAVY = (
    "torch",
    "gymnasium",
    "mujoco",
    "minari",
    "stable_baselines3",
    "h5py",
    "matplotlib",
    "cvxpy",
    "clarabel",
    "sklearn",
    "onnxruntime",
    "d3rlpy",
    "pandas",
    "polars",
    "narwhals",
    "pyarrow",
    "cyclopts",
    "rich",
    "scipy.linalg",
    "scipy.optimize",
)


def modules() -> dict[str, Path]:
    """Dotted name below the package -> file; a package is named by its folder."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imported(name: str, path: Path, *, when_imported: bool = False) -> set[str]:
    """The modules of this package that a module imports, anywhere in its text, as dotted names below the package.

    when_imported: only what is imported along with it, not inside a function and not for type checkers.
    """
    package = ["accountable_ope", *path.relative_to(ROOT).parts[:-1]]
    targets: set[tuple[str, ...]] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if when_imported else ast.walk(tree):
        if isinstance(node, ast.Import):
            targets |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = (*start, *(node.module or "").split(".")) if node.module else tuple(start)
            targets |= {(*base, alias.name) for alias in node.names} | {base}
    known = modules()
    inside = {".".join(target[1:]) for target in targets if target[:1] == ("accountable_ope",)}
    if any(target == ("accountable_ope",) for target in targets):
        inside.add("__init__")
    return {target for target in inside if target in known} - {name}


def part(module: str) -> str:
    return module.split(".")[0]


def layer(name: str) -> int:
    return next(i for i, names in enumerate(ROOMS) if name in names)


def test_every_room_has_its_place() -> None:
    listed = [name for names in ROOMS for name in names]
    assert len(listed) == len(set(listed))
    unknown = {part(module) for module in modules()} - set(listed)
    assert not unknown, f"put {unknown} into ROOMS"


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_go_one_way(module: str) -> None:
    own = part(module)
    others = {part(target) for target in imported(module, modules()[module])} - {own}
    wrong = {other for other in others if layer(other) >= layer(own)}
    assert not wrong, f"{module} imports {wrong}, which is not below it"
    beyond = others - ONLY.get(own, others)
    assert not beyond, f"{module} imports {beyond}, which {own} should not know"


def test_imports_make_no_circle() -> None:
    graph = {module: imported(module, path, when_imported=True) for module, path in modules().items()}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("errors") < order.index("validation") < order.index("statistics.bellman") < order.index("bounds.value")


def test_the_reader_of_imports_sees_them() -> None:
    known = modules()
    seen = imported("statistics.statistic", known["statistics.statistic"])
    assert {"statistics.bellman", "kernels.kernel", "programs.quadratic", "validation"} <= seen
    assert "programs.lagrangian" in imported("programs.extreme", known["programs.extreme"])
    assert "io.starts" in imported("demo", known["demo"])
    assert imported("errors", known["errors"]) == set()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import accountable_ope; "
        "print(time.perf_counter() - start); print(*sorted(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, names = answer.stdout.splitlines()
    print(f"import accountable_ope: {float(seconds):.2f} s")
    loaded = set(names.split())
    assert "accountable_ope.lazy" in loaded
    assert not loaded & set(HEAVY)
