"""Arguments checked against their annotations: a wrong type is one sentence that names the argument, not a traceback from within.

`@checked` stands above public functions, methods and classes. It looks at types only, and at NaN where a function takes numbers:
what a number may be is the business of the function (see `validation`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

from .errors import InvalidInput
from .validation import LARGEST_WHOLE, describe, refuse_non_finite

T = TypeVar("T", bound=Callable[..., Any])


class Wanted(NamedTuple):
    """What an argument must be: a test, and the words for it."""

    fits: Callable[[Any], bool]
    words: str


ANYTHING = Wanted(lambda value: True, "anything")
NOTHING = Wanted(lambda value: value is None, "None")
EACH = "a sequence, each "
PROGRAMS = f"{__package__}.programs"
"""Its functions meet infinities on their way, over sets that are empty, and answer for them."""

WORDS = {
    "Engine": "an engine, such as aope.engines.Dask(workers=2)",
    "FeatureMap": "a feature map (such as RandomFourier)",
    "FunctionClass": "a class of Q (such as KernelSections or Precomputed)",
    "Kernel": "a kernel, such as aope.Gaussian(0.5)",
    "Policy": "of type Policy; wrap a function: aope.DiscretePolicy(function, actions=...), read a rule or a file: "
    "aope.adapters.rule_policy(rule, data.naming), aope.adapters.onnx_policy(path)",
    "Problem": "a Problem: aope.Problem(data, starts, policy, assumptions)",
    "Regressor": "a fitted regressor with `predict`",
    "Transitions": "of type Transitions; make them from arrays, or by aope.from_dataframe(frame) or aope.load_transitions(file)",
    "Question": "a Question: aope.Question(starts, policy, assumptions), or problem.question",
    "ValuePredictor": "an object with `predict_value`",
}
"""Types that deserve more than their name."""

KINDS = {"float64": ("fiu", "numbers"), "int64": ("iu", "whole numbers"), "bool": ("b", "True or False")}
"""What an array of a declared type may hold: kinds of NumPy, and the word for it."""


def checked(target: T) -> T:
    """Check the arguments of a function, or of the constructor of a class, whenever it is called."""
    if isinstance(target, type):
        name = "__new__" if issubclass(target, tuple) else "__init__"
        setattr(target, name, _checking(getattr(target, name), target.__module__, strict=False))
        return target
    return _checking(target, target.__module__, strict=True)


def _checking(function: T, module: str, *, strict: bool) -> T:
    names = tuple(signature(function).parameters)
    finite = strict and not module.startswith(PROGRAMS)
    # At the first call: by then all names that annotations mention are there.
    wanted_of = cache(lambda: _wanted_of(function.__annotations__, vars(sys.modules[module]), strict))

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = wanted_of()
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            check = wanted.get(name)
            if check is not None and not check.fits(value):
                raise InvalidInput(f"`{name}` must be {check.words}. Got {shown(value)}.")
            if finite and check is not None and isinstance(value, np.ndarray) and value.dtype.kind == "f":
                refuse_non_finite(value, name)
        try:
            return function(*args, **kwargs)
        except MemoryError as error:
            raise InvalidInput(f"There is not enough memory for this ({error}): ask for less.") from error

    return call  # type: ignore[return-value]


def shown(value: object) -> str:
    """A wrong argument in a few words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, (str, bytes, Real, Enum, list, tuple)):
        return describe(value)
    if isinstance(value, np.ndarray):
        return f"{'a masked array' if np.ma.isMaskedArray(value) else 'an array'} of {value.dtype} of shape {value.shape}"
    return type(value).__name__


def _wanted_of(annotations: Mapping[str, Any], namespace: dict[str, Any], strict: bool) -> dict[str, Wanted]:
    """What every argument must be, those left out of which nothing is asked."""
    found = {name: _wanted(_resolved(each, namespace), strict) for name, each in annotations.items() if name != "return"}
    return {name: wanted for name, wanted in found.items() if wanted is not ANYTHING}


def _resolved(annotation: Any, namespace: dict[str, Any]) -> Any:
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        return annotation
    try:
        return eval(text, namespace)
    except NameError:  # imported for type checkers only
        return Any


def _wanted(hint: Any, strict: bool) -> Wanted:
    """The test that an annotation stands for; ANYTHING where there is none."""
    if hint in SIMPLE:
        return SIMPLE_STRICT[hint] if strict and hint in SIMPLE_STRICT else SIMPLE[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is None:
        return _instance(hint)
    if origin in (Union, types.UnionType):
        if set(get_args(ArrayLike)) <= set(inner):
            return ANYTHING  # whoever takes anything like an array turns it into one, and says what is wrong with it
        return _either([_wanted(each, strict) for each in inner])
    if origin is Literal:
        return Wanted(
            lambda value: any(value is each or (type(value) is type(each) and value == each) for each in inner),
            f"one of {', '.join(map(repr, inner))}",
        )
    if origin is np.ndarray:
        return _array(inner)
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return _tuple([_wanted(each, strict) for each in inner])
    if origin is tuple or origin is Sequence or origin is list:
        return _several(_wanted(inner[0], strict) if inner else ANYTHING)
    if origin is Callable:
        return Wanted(lambda value: callable(value) and not isinstance(value, type), "callable")
    if origin is Iterable:
        return Wanted(lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes), "a sequence")
    return _instance(origin)


def _either(wanted: list[Wanted]) -> Wanted:
    if any(each is ANYTHING for each in wanted):
        return ANYTHING
    words = ""
    for each in dict.fromkeys(one.words for one in wanted if one is not NOTHING):
        words += (" or " if words else "") + ("a sequence of them" if words and each == EACH + words else each)
    return Wanted(lambda value: any(each.fits(value) for each in wanted), words)


def _several(each: Wanted) -> Wanted:
    """A tuple, list or array; a text is not meant as a sequence of letters, and an iterator can be read once only."""

    def fits(value: Any) -> bool:
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str | bytes) or np.ma.isMaskedArray(value):
            return False
        return not (isinstance(value, np.ndarray) and value.ndim == 0) and all(map(each.fits, value))

    return Wanted(fits, "a sequence" if each is ANYTHING else EACH + each.words)


def _tuple(wanted: list[Wanted]) -> Wanted:
    """So many things, each of its own kind; a list or an array serves as well."""

    def fits(value: Any) -> bool:
        if not isinstance(value, tuple | list | np.ndarray) or np.ma.isMaskedArray(value):
            return False
        return len(value) == len(wanted) and all(each.fits(part) for each, part in zip(wanted, value, strict=True))

    if len(wanted) == 2 and wanted[0].words == wanted[1].words:
        return Wanted(fits, "a pair (low, high)")
    return Wanted(fits, f"{len(wanted)} things: {', '.join(each.words for each in wanted)}")


def _array(inner: tuple[Any, ...]) -> Wanted:
    scalar = get_args(inner[1])[0] if len(inner) > 1 and get_args(inner[1]) else None
    if not isinstance(scalar, type) or not issubclass(scalar, np.generic):
        return Wanted(lambda value: isinstance(value, np.ndarray), "an array")
    kinds, word = KINDS.get(np.dtype(scalar).name, ("fiub", "numbers"))

    def fits(value: Any) -> bool:
        return isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value) and value.dtype.kind in kinds

    return Wanted(fits, f"an array of {word}")


def _instance(hint: Any) -> Wanted:
    if not isinstance(hint, type) or hint is object:
        return ANYTHING
    words = WORDS.get(hint.__name__, f"of type {hint.__name__}")
    if not getattr(hint, "_is_protocol", False):
        return Wanted(lambda value: isinstance(value, hint), words)
    if not getattr(hint, "_is_runtime_protocol", False):
        return ANYTHING
    # A class has the members that its instances have, and is none of them.
    return Wanted(lambda value: not isinstance(value, type) and isinstance(value, hint), words)


def _is_number(value: Any) -> bool:
    if type(value) is float:  # most are, and asking an abstract class takes long
        return True
    if isinstance(value, Integral):
        return not isinstance(value, bool | np.bool_) and abs(int(value)) < LARGEST_WHOLE
    return isinstance(value, Real)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and _is_number(value)


SIMPLE: dict[Any, Wanted] = {
    Any: ANYTHING,
    bool: Wanted(lambda value: isinstance(value, bool | np.bool_), "True or False"),
    int: Wanted(_is_whole, "a whole number"),
    float: Wanted(_is_number, "a finite number"),
    str: Wanted(lambda value: isinstance(value, str), "text"),
    None: NOTHING,
    types.NoneType: NOTHING,
    Mapping: Wanted(lambda value: isinstance(value, Mapping), "a mapping"),
    Iterator: Wanted(lambda value: isinstance(value, Iterator), "an iterator"),
}
SIMPLE_STRICT = {float: Wanted(lambda value: _is_number(value) and value == value, "a finite number")}
