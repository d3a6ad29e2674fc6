"""Policies and estimates that a command line names: a function of a module, an ONNX file, or a rule on columns."""

from __future__ import annotations

import csv
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..adapters.onnx_models import PICKLES, OnnxModel, refuse_pickle
from ..adapters.onnx_policies import column_order, onnx_policy, output_of
from ..adapters.rules import rule_policy
from ..errors import InvalidInput
from ..problem.naming import Label, Naming
from ..problem.policy import DeterministicPolicy, DiscretePolicy, Policy, action_vectors
from ..problem.transitions import Transitions
from ..validation import FloatArray, raw_array
from .options import ProblemOptions
from .output import note
from .parsing import parse_vectors


def is_file(name: str) -> bool:
    """Whether an option names an ONNX file; a pickle is refused."""
    suffix = Path(name).suffix.lower()
    if ":" not in name and suffix in PICKLES:
        refuse_pickle(name)
    return suffix == ".onnx"


def named_policy(name: str, data: Transitions, options: ProblemOptions) -> Policy:
    """`module:function`, looked up from the current folder; an ONNX file; or a rule on columns, which is never run."""
    file = is_file(name)
    for option, value in (("--policy-output", options.policy_output), ("--policy-labels", options.policy_labels)):
        if value is not None and not file:
            raise InvalidInput(f"{option} is for a policy in an ONNX file, and has no effect here.")
    if file:
        return _onnx(name, data, options)
    if _is_function(name) or not name.strip():
        return _function(name, data, options.action_values)
    return _rule(name, data, options.action_values)


def _is_function(name: str) -> bool:
    """Whether module:function is meant, if perhaps not written well; no rule has a colon, but what is meant as one may."""
    return name.endswith(".py") or (":" in name and (".py" in name or not re.search(r"\s", name.strip())))


def _onnx(path: str, data: Transitions, options: ProblemOptions) -> Policy:
    model = OnnxModel.load(path)
    tensor, output = output_of(model, options.policy_output)
    if not data.finite_actions:
        if output != "actions":
            raise InvalidInput(f"--policy {path} answers {output} of finitely many actions, but the logged actions are vectors.")
        _refuse_values(path, options.action_values)
        if options.policy_labels is not None:
            raise InvalidInput(f"--policy-labels has no effect with --policy {path}: the logged actions are vectors.")
        return onnx_policy(path, output)
    labels = None if options.policy_labels is None else policy_labels(options.policy_labels, data.naming)
    order = column_order(model, tensor, output, data.naming, labels)
    if order is None and output != "actions" and tensor.columns is not None:
        count = tensor.columns
    else:
        count = _count(data, options.action_values)
        if order is not None and not data.naming.actions:
            count = max(count, int(order.max()) + 1)
        if order is not None and labels is None:
            taken = ", ".join(str(data.naming.action(int(each))) for each in order[:8]) + (", ..." if len(order) > 8 else "")
            note(f"{path}: its {'whole numbers' if output == 'actions' else 'columns'} are taken for {taken}, in this order.")
    return onnx_policy(path, output, declared_vectors(options.action_values, count), data.naming, labels)


def policy_labels(text: str, naming: Naming) -> list[Label]:
    """Names of actions between commas, those with a comma in them in quotes; numbers where actions have no names."""
    words = [each.strip() for each in next(csv.reader([text], skipinitialspace=True), [])]
    called: dict[str, Label] = {str(each): each for each in naming.actions}
    if not called and not all(each.isdecimal() for each in words):
        raise InvalidInput(f"--policy-labels must be indices, such as 1,0: the actions of this log have no names. Got {text!r}.")
    unknown = [each for each in words if called and each not in called]
    if unknown:
        known = ", ".join(list(called)[:8])
        raise InvalidInput(f"--policy-labels names {unknown[0]!r}, which is none of the actions of the log ({known}).")
    return [called.get(each, each) if called else int(each) for each in words]


def _rule(rule: str, data: Transitions, action_values: str | None) -> Policy:
    try:
        if not data.finite_actions:
            _refuse_values(rule, action_values)
            return rule_policy(rule, data.naming)
        vectors = declared_vectors(action_values, _count(data, action_values))
        return rule_policy(rule, data.naming, vectors)
    except InvalidInput as error:
        if rule.isidentifier():  # neither the name of an action nor that of a function
            forms = 'module:function, policy.onnx, or a rule such as "A if column > 2 else B"'
            raise InvalidInput(f"--policy must be {forms}. {error}") from error
        raise InvalidInput(f"--policy: {error}") from error


def _refuse_values(name: str, action_values: str | None) -> None:
    if action_values is not None:
        raise InvalidInput(f"--action-values has no effect with --policy {name}: the logged actions are vectors.")


def _count(data: Transitions, action_values: str | None) -> int:
    """How many actions there are: as declared, as they are named, or as the log shows."""
    if action_values is not None:
        return len(parse_vectors(action_values, "--action-values"))
    return max(len(data.naming.actions), int(data.actions.max()) + 1)


def _function(name: str, data: Transitions, action_values: str | None) -> Policy:
    """A policy object, or a function of the states."""
    policy = named(name, "--policy")
    if action_values is not None and (isinstance(policy, Policy) or not data.finite_actions):
        why = "a policy object knows its actions" if isinstance(policy, Policy) else "the logged actions are vectors"
        raise InvalidInput(f"--action-values has no effect with --policy {name}: {why}.")
    if isinstance(policy, Policy):
        return policy
    if not callable(policy):
        raise InvalidInput(f"--policy {name} must be a function of the states or a policy object. It is {type(policy).__name__}.")
    function = guarded(policy, f"--policy {name}")
    if not data.finite_actions:
        return DeterministicPolicy(function)
    probabilities = _tried_out(function, data.states, f"--policy {name}")
    return DiscretePolicy(function, declared_vectors(action_values, probabilities.shape[1]))


def _tried_out(function: Callable[..., ArrayLike], states: FloatArray, name: str) -> NDArray[Any]:
    """What the function says of one state and of a few, or one sentence that shows what is expected of it."""
    expected = (
        f"{name} must map states, an array (n, {states.shape[1]}), to probabilities (n, actions), such as [[0.2, 0.8]] for one "
        "state"
    )
    found = np.empty(0)
    for part in (states[:1], states[:3]):
        try:
            found = raw_array(function(part))
        except InvalidInput as error:
            if len(part) > 1 or _takes_one(function, states[0]):
                alone = "It works for one state alone: call it for each, as in np.array([f(state) for state in states])"
                raise InvalidInput(f"{expected}. {alone}. With several, {error}") from error
            raise
        if found.dtype.kind not in "iubf":
            shown = repr(str(found.flat[0])) if found.size else "nothing"
            raise InvalidInput(f"{expected}, not the name of an action. It returned {shown}: number the actions 0, 1, 2, ...")
        if found.shape == (len(part),) and len(part) > 1:
            hint = " The actions that it takes become probabilities by np.eye(NUMBER_OF_ACTIONS)[actions]."
            raise InvalidInput(f"{expected}. For {len(part)} states it returned one number each.{hint}")
        if len(part) == len(states[:3]) and (found.ndim != 2 or len(found) != len(part)):
            raise InvalidInput(f"{expected}. For {len(part)} states it returned shape {found.shape}.")
    return found


def _takes_one(function: Callable[..., ArrayLike], state: FloatArray) -> bool:
    """Whether a function is meant for a single state."""
    try:
        return raw_array(function(state)).ndim <= 1
    except InvalidInput:
        return False


def declared_vectors(text: str | None, count: int) -> FloatArray:
    """A number or a vector for every action, as declared; by default one-hot vectors."""
    if text is None:
        return action_vectors(count)
    vectors = parse_vectors(text, "--action-values")
    if len(vectors) != count:
        raise InvalidInput(f"--action-values must name {count} actions. Got {text!r}.")
    return action_vectors(vectors)


def named(name: str, option: str) -> Any:
    """module:attribute, looked up from the current folder."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute or ".py" in name or "/" in name:
        stem = Path(module_name).stem or "policies"
        raise InvalidInput(
            f"{option} must be module:function, without .py or a folder: {stem}:{attribute or 'NAME'} is the function "
            f"{attribute or 'NAME'} of the file {stem}.py in the current folder. Got {name!r}."
        )
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"{option} {name}: {error}.") from error
    except (Exception, SystemExit) as error:  # whatever a user's module does while it is imported
        raise InvalidInput(f"{option} {name}: importing {module_name} raised {type(error).__name__}: {error}.") from error


def guarded(function: Callable[..., ArrayLike], name: str) -> Callable[..., ArrayLike]:
    """The user's function, whose own errors become one sentence that names it."""

    def call(*arguments: Any) -> ArrayLike:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise InvalidInput(f"{name} raised {type(error).__name__}: {error}.") from error

    return call
