"""Policies in ONNX files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.naming import UNNAMED, Naming
from ..problem.policy import DeterministicPolicy, DiscretePolicy
from ..validation import FloatArray
from .answers import Output, label_indices, policy_of
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
) -> DiscretePolicy | DeterministicPolicy:
    """The policy of an ONNX file, run by onnxruntime: states (n, d) -> probabilities, logits or actions.

    Parameters
    ----------
    path : path
        One input, the state; one output, or several of which one is called by what it is.
    output : str, optional
        What it answers: "probabilities" or "logits" of a finite action set (n, A), or "actions": vectors (n, k), or, where
        `actions` or their names are given or it answers whole numbers, their indices. By default the name of the output says so
        ("probabilities", "logits", "action").
    actions : int or array (A, k), optional
        The finite action set: vectors that enter x = (s, a), or their number for one-hot vectors.
    naming : Naming, optional
        Which index each action has, for a model that answers their labels as text.

    Returns
    -------
    DiscretePolicy or DeterministicPolicy

    Raises
    ------
    InvalidFile
        Where it is no ONNX model, or a pickle.
    InvalidInput
        Where nothing says what it answers or, when asked, shapes are not as declared or an answer is no number.
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
    finite = actions if actions is not None else (len(naming.actions) or None)
    if what == "actions" and finite is None and tensor.kind not in ("tensor(float)", "tensor(double)"):
        raise InvalidInput(f"{model.name} answers the label of an action: give `actions`, the number of actions.")
    (state,) = model.inputs

    def answer(states: FloatArray) -> NDArray[Any]:
        model.refuse_columns(state, states.shape[1], "states have")
        found = model.run((states,), tensor)
        if found.dtype.kind in "OUS":
            return label_indices(np.array([str(each) for each in found.reshape(-1)]), naming, model.name)[:, None]
        return found

    if what != "actions" and tensor.columns is None and finite is None:
        raise InvalidInput(f"{model.name} does not declare how many {what} it answers: give `actions`, the number of actions.")
    return policy_of(answer, what, finite, tensor.columns, model.name)


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
    if len(named) == 1:
        return tensor, named[0]
    if tensor.kind in ("tensor(int64)", "tensor(int32)", "tensor(string)"):
        return tensor, "actions"
    raise InvalidInput(
        f"{model.name}: the name of the output `{tensor.name}` does not say what it is: give output (--policy-output), one of "
        "probabilities, logits, actions."
    )
