"""Every argument of every public function and constructor, replaced by each of many hostile values."""

import inspect
import math

import pytest

from accountable_ope.errors import AopeError, InvalidInput
from accountable_ope.problem.statements import Status
from hostile.scenario import NOT_CALLED, play, public_callables, record
from hostile.values import HOSTILE, Hang, cannot_mean, no_longer_than, warnings_are_errors

NAMES = sorted(set(public_callables()) - set(NOT_CALLED))
MUCH_WORK = {"draws", "episodes", "length", "rounds", "steps", "trials"}
"""Where a large number is a long wait that was asked for."""
LIMIT = 10.0
"""Seconds that a case may take; most take microseconds."""


def parameters(name):
    """The names of the arguments that are replaced, with their annotations as text."""
    found = inspect.signature(public_callables()[name]).parameters.values()
    return {
        each.name: str(each.annotation) for each in found if each.name not in ("self", "cls") and each.kind != each.VAR_POSITIONAL
    }


def number_of_cases():
    return sum(len(parameters(name)) for name in NAMES) * len(HOSTILE)


@pytest.fixture(scope="module")
def good_calls(tmp_path_factory):
    return record(play, tmp_path_factory.mktemp("good"))


def test_every_public_name_has_a_good_call(good_calls):
    """A new public function needs a call in the scenario."""
    assert set(NAMES) <= set(good_calls), set(NAMES) - set(good_calls)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_arguments_are_refused_in_one_sentence(good_calls, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for a function that takes any text as the name of a file to write
    good = good_calls[name]
    wrong = []
    for parameter, annotation in parameters(name).items():
        for label, hostile in HOSTILE.items():
            if (label == "many" and parameter in MUCH_WORK) or (label == "true" and parameter == "neural"):
                continue
            arguments = {**good.arguments, parameter: hostile.make()}
            complaint = outcome(good.function, arguments, parameter, must_fail=cannot_mean(annotation, hostile))
            if complaint:
                wrong.append(f"{parameter}: {annotation} = {label}: {complaint}")
    assert not wrong, f"{name} has {len(wrong)} failures:\n" + "\n".join(wrong)


def outcome(function, arguments, parameter, *, must_fail):
    """What is wrong with the answer to this call; nothing where it is as it should be."""
    positional = [arguments.pop(each) for each in ("self", "cls") if each in arguments]
    try:
        with no_longer_than(LIMIT), warnings_are_errors():
            result = function(*positional, **arguments)
    except AopeError as error:
        said = str(error)
        if isinstance(error, InvalidInput) and (must_fail and parameter not in said):
            return f"does not name the argument: {said}"
        return f"more than a sentence: {said}" if "\n" in said or len(said) > 600 else None
    except Hang:
        return "takes too long"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    if must_fail:
        return f"accepted: {type(result).__name__}"
    return None if isinstance(function, type) or is_sane(result) else f"gives {result!r}"


def is_sane(result):
    """An interval has two ends in order."""
    lower, upper = getattr(result, "lower", 0.0), getattr(result, "upper", 0.0)
    if not isinstance(lower, float) or not isinstance(upper, float):
        return True
    return not (math.isnan(lower) or math.isnan(upper)) or getattr(result, "status", None) is Status.INCONSISTENT
