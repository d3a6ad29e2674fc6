"""Every public name explains itself, and every example in a docstring runs and prints what it says.

Public is what `__all__` of the package and of its rooms names. Functions have `Parameters` (those of the signature, in its order),
`Returns` and `Examples`; classes have `Examples` or `Attributes`; names that are values are explained by a comment or a string beside
them, which Python does not keep.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
from enum import Enum

import pytest

import accountable_ope
from test_docs import SAME

ROOMS = sorted(name for name in accountable_ope.__all__ if inspect.ismodule(getattr(accountable_ope, name)))
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(accountable_ope.__path__, "accountable_ope.")
    if not module.name.endswith("__main__")
)
SECTION = re.compile(r"^(\w[\w ]*)\n(-{3,})$", re.MULTILINE)
OPTIONAL_EXAMPLES = (Enum, BaseException)


def public_objects() -> dict[str, object]:
    """Functions and classes that are public, by the name under which they are found first; values are left out."""
    found: dict[int, tuple[str, object]] = {}
    for package in [accountable_ope, *(getattr(accountable_ope, room) for room in ROOMS)]:
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                found.setdefault(id(value), (f"{value.__module__}.{name}", value))
    return dict(sorted(found.values()))


PUBLIC = public_objects()


def sections(docstring: str) -> dict[str, str]:
    """The sections of a NumPy-style docstring: heading to body."""
    pieces = SECTION.split(docstring)[1:]
    return {title: body.strip("\n") for title, body in zip(pieces[::3], pieces[2::3], strict=True)}


def documented_names(body: str) -> list[str]:
    """The names before the colon on the lines of a section that are not indented; `a, b : int` documents two."""
    heads = [line.split(":")[0] for line in body.splitlines() if line and not line[0].isspace()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def complaints(value: object) -> list[str]:
    """What is missing from the docstring of a public function or class, in words."""
    doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    if not doc or doc.startswith(f"{value.__name__}("):  # what @dataclass writes where nobody did
        return ["has no docstring of its own"]
    found = sections(inspect.cleandoc(doc))
    problems = []
    if inspect.isclass(value):
        if not getattr(value, "_is_protocol", False) and not issubclass(value, OPTIONAL_EXAMPLES) and not found.keys() & {"Examples", "Attributes"}:
            problems.append("has neither `Examples` nor `Attributes`")
        wanted = parameters_of(value)
        told = [name for title in ("Parameters", "Attributes") for name in documented_names(found.get(title, ""))]
        if "Parameters" in found and not set(documented_names(found["Parameters"])) <= set(wanted):
            problems.append(f"documents parameters {documented_names(found['Parameters'])}, and has {wanted}")
        if len(told) != len(set(told)):
            problems.append("documents a name twice")
        if missing := [name for name in told if not hasattr(value, name) and name not in [*wanted, *value.__annotations__]]:
            problems.append(f"documents {missing}, which it does not have")
    else:
        wanted = parameters_of(value)
        told = documented_names(found.get("Parameters", ""))
        if told != wanted:
            problems.append(f"documents parameters {told}, and has {wanted}")
        if inspect.signature(value).return_annotation not in (None, "None") and "Returns" not in found:
            problems.append("has no `Returns`")
        if "Examples" not in found:
            problems.append("has no `Examples`")
    if "Examples" in found and ">>> " not in found["Examples"]:
        problems.append("has an `Examples` section without an example")
    return problems


def parameters_of(value: object) -> list[str]:
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name):
    problems = complaints(PUBLIC[name])
    assert not problems, f"{name} " + "; ".join(problems)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    module = importlib.import_module(name)
    assert module.__doc__ or not inspect.getsource(module).strip(), f"{name} says nothing about itself"
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=SAME, verbose=False)
    for example in doctest.DocTestFinder().find(module, name):
        runner.run(example, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


def test_the_rooms_are_found():
    assert {"problem", "kernels", "classes", "statistics", "programs", "radii", "fitting", "bounds", "io"} <= set(ROOMS)
    assert {"laboratory", "baselines", "environments"} <= set(ROOMS)
    assert {"accountable_ope.bounds.value.bound_value", "accountable_ope.radii.wild.wild_radius"} <= PUBLIC.keys()


def test_examples_are_not_skipped():
    skipped = [name for name in MODULES if "doctest: +SKIP" in inspect.getsource(importlib.import_module(name))]
    assert not skipped


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
>>> half(3.0)
1.5
"""


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (GOOD, "", "no docstring"),
        ("number :", "value :", "documents parameters"),
        ("number : float\n", "number : float\nother : int\n", "documents parameters"),
        ("Returns\n-------\nfloat\n", "", "no `Returns`"),
        ("Examples\n--------\n>>> half(3.0)\n1.5\n", "", "no `Examples`"),
        (">>> half(3.0)\n1.5\n", "None.\n", "without an example"),
    ],
)
def test_the_checker_can_fail(old, new, complaint):
    def half(number: float) -> float:
        return number / 2

    half.__doc__ = GOOD
    assert complaints(half) == []
    half.__doc__ = GOOD.replace(old, new)
    assert any(complaint in problem for problem in complaints(half))


def test_the_checker_can_fail_for_classes():
    class Bare:
        """A class."""

    class Documented:
        """A class.

        Attributes
        ----------
        size : int
            Of what is not there.
        """

    class Inherits(Documented):
        pass

    assert complaints(Bare) == ["has neither `Examples` nor `Attributes`"]
    assert complaints(Documented) == ["documents ['size'], which it does not have"]
    assert complaints(Inherits) == ["has no docstring of its own"]


def test_a_wrong_example_fails():
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(optionflags=SAME).run(example, out=lambda _: None).failed == 1
