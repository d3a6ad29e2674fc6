"""Every public name explains itself, and every example in a docstring runs and prints what it says.

Public is what `__all__` of the package and of its rooms names. Functions have `Parameters` (those of the signature, in its
order), `Returns` and `Examples`; classes have `Examples` or `Attributes`; members of protocols are documented; constants have a
string below their assignment.
"""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from enum import Enum
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import accountable_ope
from test_docs import SAME

ROOMS = [getattr(accountable_ope, name) for name in accountable_ope.__all__ if inspect.ismodule(getattr(accountable_ope, name))]
NEEDS_TRITON = "accountable_ope.statistics.engines.cuda_tiles"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(accountable_ope.__path__, "accountable_ope.")
    if module.name != NEEDS_TRITON or find_spec("triton") is not None
)
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def public_value(package: ModuleType, name: str) -> object:
    """What the stub names, also where a module of the same name hides it."""
    lazily = vars(package).get("__getattr__")
    return getattr(package, name) if lazily is None else lazily(name)


def public_objects() -> dict[str, object]:
    """All that is public, once: by the module that defines it, and constants by the room that names them."""
    found = {}
    for package in [*ROOMS, accountable_ope]:
        for name in package.__all__:
            value = public_value(package, name)
            home = value.__module__ if callable(value) else package.__name__
            if not inspect.ismodule(value):
                found[f"{home}.{name}"] = value
    return found


PUBLIC = public_objects()
DOCUMENTED = {name: value for name, value in PUBLIC.items() if callable(value)}
CONSTANTS = sorted(PUBLIC.keys() - DOCUMENTED.keys())


def sections(docstring: str) -> dict[str, str]:
    """The sections of a NumPy-style docstring: heading to body."""
    pieces = SECTION.split(inspect.cleandoc(docstring))[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def names_in(body: str) -> list[str]:
    """The names that a section documents: those before the colon of lines that are not indented, `a, b : int` being two."""
    heads = [line.split(":")[0] for line in body.splitlines() if line and not line[0].isspace()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def complaints(value: object) -> list[str]:
    """What is wrong with the docstring of a public function or class, in words."""
    doc = value.__doc__
    if not doc or doc.startswith(f"{value.__name__}("):  # what @dataclass writes where nobody did
        return ["has no docstring of its own"]
    found = sections(doc)
    problems = class_complaints(value, found) if inspect.isclass(value) else function_complaints(value, found)
    if "Examples" in found and ">>> " not in found["Examples"]:
        problems.append("has an `Examples` section without an example")
    return problems


def function_complaints(value: object, found: dict[str, str]) -> list[str]:
    signature, told = inspect.signature(value), names_in(found.get("Parameters", ""))
    problems = []
    if told != list(signature.parameters):
        problems.append(f"documents parameters {told}, and has {list(signature.parameters)}")
    if signature.return_annotation not in (None, "None") and "Returns" not in found:
        problems.append("has no `Returns`")
    if "Examples" not in found:
        problems.append("has no `Examples`")
    return problems


def class_complaints(value: type, found: dict[str, str]) -> list[str]:
    if issubclass(value, Enum | BaseException):
        return []
    parameters, attributes = (names_in(found.get(title, "")) for title in ("Parameters", "Attributes"))
    problems = []
    if getattr(value, "_is_protocol", False):
        members = {name: each for name, each in vars(value).items() if name == "__call__" or not name.startswith("_")}
        bare = [name for name, each in members.items() if not each.__doc__ and name not in attributes]
        return [f"has members without a docstring: {bare}"] if bare else []
    if not found.keys() & {"Examples", "Attributes"}:
        problems.append("has neither `Examples` nor `Attributes`")
    if "Parameters" in found:
        wanted = inspect.signature(value).parameters
        needed = [name for name, each in wanted.items() if each.default is each.empty]
        if parameters != [name for name in wanted if name in parameters or name in needed]:
            problems.append(f"documents parameters {parameters}, and has {list(wanted)}")
    there = {*dir(value), *inspect.get_annotations(value)}
    if missing := [name for name in attributes if name not in there]:
        problems.append(f"documents {missing}, which it does not have")
    return problems


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_documented(name):
    problems = complaints(DOCUMENTED[name])
    assert not problems, f"{name} " + "; ".join(problems)


@pytest.mark.parametrize("name", CONSTANTS)
def test_every_public_constant_is_explained(name):
    """A string stands below the assignment, in one of the modules of the room."""
    room, _, constant = name.rpartition(".")
    files = Path(importlib.import_module(room).__file__).parent.glob("*.py")
    assert any(constant in explained_constants(path.read_text()) for path in files), f"{name} has no string below its assignment"


def explained_constants(source: str) -> set[str]:
    """The names that are assigned at the top of a module with a string right below."""
    body = ast.parse(source).body
    return {
        target.id
        for node, after in pairwise(body)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # should an example write a file
    module = importlib.import_module(name)
    source = Path(module.__file__).read_text()
    assert module.__doc__ or not source.strip(), f"{name} says nothing about itself"
    assert "doctest: +SKIP" not in source
    run_examples(module)


def run_examples(module: ModuleType) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=SAME, verbose=False)
    for example in doctest.DocTestFinder().find(module, module.__name__):
        runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_what_is_public_is_found():
    rooms = "adapters baselines bounds classes defaults statistics.engines environments fitting io kernels laboratory problem"
    rooms += " programs radii statistics verification"
    assert [room.__name__.removeprefix("accountable_ope.") for room in ROOMS] == rooms.split()
    wanted = {"bounds.value.bound_value", "errors.InvalidInput", "laboratory.families.family_named", "radii.LADDER"}
    assert {f"accountable_ope.{name}" for name in wanted} <= PUBLIC.keys()


def test_no_module_hides_a_public_name():
    hidden = [f"{room.__name__}.{name}" for room in ROOMS for name in room.__all__ if inspect.ismodule(getattr(room, name))]
    assert not hidden


GOOD = """Half of a number.

Parameters
----------
number : float
    What is halved.

Returns
-------
float

Examples
--------
>>> 3.0 / 2
1.5
"""


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (GOOD, "", "no docstring"),
        ("number :", "value :", "documents parameters"),
        ("number : float\n", "number, other : float\n", "documents parameters"),
        ("Parameters\n----------\nnumber : float\n    What is halved.\n", "", "documents parameters"),
        ("Returns\n-------\nfloat\n", "", "no `Returns`"),
        ("Examples\n--------\n>>> 3.0 / 2\n1.5\n", "", "no `Examples`"),
        (">>> 3.0 / 2\n1.5\n", "None.\n", "without an example"),
    ],
)
def test_a_function_that_is_badly_documented_fails(old, new, complaint):
    def half(number: float) -> float:
        return number / 2

    half.__doc__ = GOOD
    assert complaints(half) == []
    half.__doc__ = GOOD.replace(old, new)
    assert any(complaint in problem for problem in complaints(half))


def test_a_class_that_is_badly_documented_fails():
    class Sized:
        """A class.

        Attributes
        ----------
        size : int
        """

        size: int

    class Bare:
        """A class."""

    class Wrong(Sized):
        """A class.

        Parameters
        ----------
        width : int

        Attributes
        ----------
        length : int
        """

        def __init__(self, height: int) -> None: ...

    class Inherits(Sized):
        pass

    assert complaints(Sized) == []
    assert complaints(Bare) == ["has neither `Examples` nor `Attributes`"]
    assert complaints(Inherits) == ["has no docstring of its own"]
    assert complaints(Wrong) == [
        "documents parameters ['width'], and has ['height']",
        "documents ['length'], which it does not have",
    ]


def test_a_constant_without_a_string_fails():
    assert explained_constants('ONE = 1\n"""The first."""\n\nTWO: int = 2\n') == {"ONE"}


def test_a_wrong_example_fails():
    module = ModuleType("wrong", ">>> 1 + 1\n2\n")
    run_examples(module)
    module.__doc__ = ">>> 1 + 1\n3\n"
    with pytest.raises(AssertionError, match="Expected"):
        run_examples(module)
