"""Estimates of Q in ONNX files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.policy import action_vectors
from ..validation import FloatArray
from .company import Company
from .onnx_models import OnnxModel, Tensor, finite_values
from .sklearn_models import action_columns

ACTION = ("action", "act")
"""Parts of the name of the input that takes the action; the second one, where no name says so."""


@checked
@dataclass(frozen=True, eq=False)
class OnnxQ:
    """Q(s, a) as an ONNX model answers it; made by `onnx_q`.

    Attributes
    ----------
    model : OnnxModel
    vectors : array (A, k) or None
        What it takes for actions that are given by their index.
    """

    model: OnnxModel
    vectors: FloatArray | None = None
    _company: Company = field(default_factory=Company, init=False, repr=False)

    def __repr__(self) -> str:
        return f"OnnxQ({self.model.name})"

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        chosen = np.asarray(actions)
        found = self._values(states, chosen)
        self._company.check(
            found[:, None], lambda some: self._values(states[some], chosen[some])[:, None], states, self.model.name
        )
        return found

    predict_value = __call__

    def _values(self, states: FloatArray, chosen: NDArray[Any]) -> FloatArray:
        model = self.model
        output = model.output(("value", "q"))
        if len(model.inputs) == 2:
            found = model.run(self._two(states, chosen), output)
        elif model.inputs[0].columns in (None, states.shape[1]) and output.columns != 1:
            return self._listed(states, chosen, output)
        else:
            wanted = model.inputs[0].columns
            extra = None if wanted is None else wanted - states.shape[1]
            found = model.run(
                (np.concatenate([states, action_columns(chosen, self.vectors, extra, model.name)], axis=1),), output
            )
        if found.reshape(len(states), -1).shape[1] != 1:
            raise InvalidInput(f"{model.name} must answer one value per row. Its answer has shape {found.shape}.")
        return finite_values(found, states, model.name).reshape(-1)

    def _two(self, states: FloatArray, actions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        first, second = self.model.inputs
        swapped = any(word in first.name.lower() for word in ACTION) and not any(word in second.name.lower() for word in ACTION)
        state, action = (second, first) if swapped else (first, second)
        self.model.refuse_columns(state, states.shape[1], "states have")
        if action.whole and actions.ndim == 2:
            raise InvalidInput(f"{self.model.name}: the input `{action.name}` takes indices of actions, but actions are vectors.")
        if action.whole:
            taken = actions[:, None]
        else:
            taken = action_columns(actions, self.vectors, action.columns, self.model.name)
        return (taken, states) if swapped else (states, taken)

    def _listed(self, states: FloatArray, actions: NDArray[Any], output: Tensor) -> FloatArray:
        """From the values of all actions."""
        if actions.ndim != 1:
            raise InvalidInput(f"{self.model.name} answers a value for each of finitely many actions, but actions are vectors.")
        values = finite_values(self.model.run((states,), output), states, self.model.name)
        if values.ndim != 2 or (len(actions) and int(actions.max()) >= values.shape[1]):
            raise InvalidInput(
                f"{self.model.name} must answer a value for every action ({int(actions.max()) + 1}). Its answer has shape "
                f"{values.shape}."
            )
        return np.asarray(values[np.arange(len(states)), actions])


@checked
def onnx_q(path: str | os.PathLike[str], actions: ArrayLike | int | None = None) -> OnnxQ:
    """An estimate of Q from an ONNX file, run by onnxruntime, for `diagnose` and `correct`.

    Parameters
    ----------
    path : path
        Inputs: state and action, or both in one row; or the state alone, where the output has a value for every action. An action
        is its index where the input takes whole numbers or one column, else its vector.
    actions : int or array (A, k), optional
        The vectors of a finite action set, or their number for one-hot vectors; None for action vectors.

    Returns
    -------
    OnnxQ

    Raises
    ------
    InvalidFile
        Where it is no ONNX model, or a pickle.
    InvalidInput
        When asked: where shapes are not as declared, or an answer is no number.
    MissingExtra
        Where onnxruntime is not installed.

    Examples
    --------
    >>> from accountable_ope.adapters import onnx_q
    >>> from accountable_ope.errors import InvalidFile
    >>> try:
    ...     onnx_q("fqe.d3")
    ... except InvalidFile as error:
    ...     print(str(error)[:39])
    fqe.d3 is a pickle or an archive of pic
    """
    model = OnnxModel.load(path)
    if len(model.inputs) > 2:
        raise InvalidFile(f"{model.name} must have one or two inputs, state and action. It has {len(model.inputs)}.")
    return OnnxQ(model, None if actions is None else action_vectors(actions))
