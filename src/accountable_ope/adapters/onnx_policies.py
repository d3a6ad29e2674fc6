"""Policies in ONNX files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.naming import UNNAMED, Label, Naming
from ..problem.policy import DeterministicPolicy, DiscretePolicy
from ..validation import FloatArray, IntArray
from .answers import Output, label_indices, one_hot, policy_of
from .onnx_models import OnnxModel, Tensor

WORDS: tuple[tuple[Output, tuple[str, ...]], ...] = (
    ("probabilities", ("probabilit", "probs", "softmax")),
    ("logits", ("logit",)),
    ("actions", ("action", "label")),
)
"""By which parts of its name an output says what it is."""


@checked
def onnx_policy(
    path: str | os.PathLike[str],
    output: Output | None = None,
    actions: ArrayLike | int | None = None,
    naming: Naming = UNNAMED,
    labels: Sequence[str | int | float | bool] | None = None,
) -> DiscretePolicy | DeterministicPolicy:
    """The policy of an ONNX file, run by onnxruntime: states (n, d) -> probabilities, logits or actions.

    Parameters
    ----------
    path : path
        One input, the state; one output, or several of which one is called by what it is.
    output : str, optional
        What it answers: "probabilities" or "logits" of a finite action set (n, A), or "actions": vectors (n, k), or, where
        `actions` or their names are given or it answers whole numbers, labels or indices. By default the name of the output says
        so ("probabilities", "logits", "action").
    actions : int or array (A, k), optional
        The finite action set: vectors that enter x = (s, a), or their number for one-hot vectors.
    naming : Naming, optional
        Which index each action has, such as `data.naming`. Answers that are text, or numbers where actions are called by numbers,
        are names of actions.
    labels : sequence of str, int, float or bool, optional
        The names of the actions that its columns are for, or its whole numbers 0, 1, ..., in their order. By default the file
        says so, as those of most classifiers do; where it does not and actions have names, these must be in sorted order, as the
        columns of a classifier are, and the names of a log mostly.

    Returns
    -------
    DiscretePolicy or DeterministicPolicy

    Raises
    ------
    InvalidFile
        Where it is no ONNX model, or a pickle.
    InvalidInput
        Where nothing says what it answers, or in which order, or, when asked, shapes are not as declared, an answer is no number
        or a state is answered differently among others.
    MissingExtra
        Where onnxruntime is not installed.

    Examples
    --------
    >>> from accountable_ope.adapters import onnx_policy
    >>> from accountable_ope.errors import InvalidFile
    >>> try:
    ...     onnx_policy("model.pkl")
    ... except InvalidFile as error:
    ...     print(str(error)[:41])
    model.pkl is a pickle or an archive of pi
    """
    model = OnnxModel.load(path)
    if len(model.inputs) != 1:
        raise InvalidFile(f"{model.name} must have one input, the state. It has {len(model.inputs)}.")
    tensor, what = output_of(model, output)
    order = column_order(model, tensor, what, naming, labels)
    finite = actions if actions is not None else (len(naming.actions) or None)
    if finite is None and order is not None:
        finite = int(order.max()) + 1
    if what == "actions" and finite is None and tensor.kind not in ("tensor(float)", "tensor(double)"):
        raise InvalidInput(f"{model.name} answers the label of an action: give `actions`, the number of actions.")
    (state,) = model.inputs

    def answer(states: FloatArray) -> NDArray[Any]:
        model.refuse_columns(state, states.shape[1], "states have")
        found = model.run((states,), tensor)
        if what != "actions":
            return found
        if found.dtype.kind in "OUS":
            return _named(np.array([str(each) for each in found.reshape(-1)]), naming, model.name)
        if order is not None:
            return np.asarray(one_hot(found.reshape(-1), len(order), model.name) @ order)[:, None]
        return _named(found.reshape(-1), naming, model.name) if naming.actions else found

    if what != "actions" and tensor.columns is None and finite is None:
        raise InvalidInput(f"{model.name} does not declare how many {what} it answers: give `actions`, the number of actions.")
    return policy_of(answer, what, finite, tensor.columns, model.name, order)


def column_order(
    model: OnnxModel, tensor: Tensor, what: Output, naming: Naming, labels: Sequence[Label] | None = None
) -> IntArray | None:
    """The index of the action that each column, or each whole number, is for; None where it is its own, or the action's name."""
    said, names = tensor.maker.labels, naming.actions
    if len(said) != tensor.columns and tensor.columns is not None:
        said = ()  # of something that was made into these columns
    if labels is not None:
        return _stated(labels, said, what, naming, model.name)
    if what == "actions":
        called_by_numbers = not any(isinstance(each, str) for each in names) and tensor.maker.operator != "ArgMax"
        if tensor.kind == "tensor(string)" or called_by_numbers:
            return None
    elif said and (not names or _known(said, names)):
        return label_indices(np.array(said), naming, model.name)
    if not names:
        return None
    if what != "actions" and tensor.columns is not None and tensor.columns != len(names):
        raise InvalidInput(
            f"{model.name} answers {tensor.columns} {what} per state, but the log knows {len(names)} actions ({_listed(names)}): "
            "name those that its columns are for, in their order, by labels=[...] (--policy-labels)."
        )
    if list(names) != _sorted(names) or len({isinstance(each, str) for each in names}) > 1:
        order = "its columns are" if what != "actions" else "its whole numbers are"
        raise InvalidInput(
            f"{model.name} does not say for which actions {order}, and the actions of the log are in an order of their own "
            f"({_listed(names)}): name them in the order of the model by labels=[...] (--policy-labels); that of a classifier is "
            f"its classes_, mostly {_listed(_sorted(names))}."
        )
    return np.arange(len(names))


def _stated(labels: Sequence[Label], said: Sequence[Label], what: Output, naming: Naming, name: str) -> IntArray:
    """The order that somebody named, which must not be another than that of the file."""
    found = label_indices(np.array(labels, dtype=object if naming.actions else None), naming, name)
    if not len(found) or len(set(found.tolist())) < len(found):
        raise InvalidInput(f"`labels` must name a different action for each column of {name}. Got {_listed(labels)}.")
    if what != "actions" and said and set(said) <= set(naming.actions or ()):
        told = label_indices(np.array(said), naming, name)
        if told.tolist() != found.tolist():
            raise InvalidInput(
                f"{name} says that its columns are for {_listed(said)}, in this order, and `labels` (--policy-labels) name "
                f"{_listed(labels)}: leave them out."
            )
    return found


def _known(said: Sequence[Label], names: Sequence[Label]) -> bool:
    """Whether classes of a file are names of actions: text is, and numbers are where actions are called by numbers."""
    return isinstance(said[0], str) or not any(isinstance(each, str) for each in names)


def _sorted(names: Sequence[Label]) -> list[Label]:
    """Names in the order that classes of a classifier have; numbers beside text, which have no order, come first."""
    return sorted(names, key=lambda each: (1, 0.0, each) if isinstance(each, str) else (0, float(each), ""))


def _named(values: NDArray[Any], naming: Naming, name: str) -> IntArray:
    """Indices of actions by their names, each looked up once."""
    labels, places = np.unique(values, return_inverse=True)
    return label_indices(labels, naming, name)[places.reshape(-1)][:, None]


def _listed(names: Sequence[Label]) -> str:
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")


def output_of(model: OnnxModel, wanted: Output | None) -> tuple[Tensor, Output]:
    """Which output is meant, and what it is."""
    words = next((words for kind, words in WORDS if kind == wanted), tuple(word for _, some in WORDS for word in some))
    tensor = model.output(words)
    if not tensor.kind.startswith("tensor("):
        raise InvalidFile(
            f"{model.name}: the output `{tensor.name}` must be a tensor. It is {tensor.kind}: export an array (zipmap=False)."
        )
    if wanted is not None:
        return tensor, wanted
    named = [kind for kind, some in WORDS if any(word in tensor.name.lower() for word in some)]
    if len(named) == 1 or named[1:] == ["actions"]:  # such as action_logits
        return tensor, named[0]
    if tensor.kind in ("tensor(int64)", "tensor(int32)", "tensor(string)"):
        return tensor, "actions"
    raise InvalidInput(
        f"{model.name}: the name of the output `{tensor.name}` does not say what it is: give output (--policy-output), one of "
        "probabilities, logits, actions."
    )
