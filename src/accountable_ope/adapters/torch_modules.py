"""Policies that are torch modules: asked in batches, without gradients, in evaluation mode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked, shown
from ..errors import InvalidInput
from ..problem.policy import DeterministicPolicy, DiscretePolicy, action_vectors
from ..validation import FloatArray, whole
from .answers import Output, asked, in_parts, policy_of, required


@checked
def torch_policy(
    module: Any, output: Output, actions: ArrayLike | int | None = None, batch: int = 8192
) -> DiscretePolicy | DeterministicPolicy:
    """The policy that a torch module stands for: states (n, d) -> probabilities, logits or actions.

    Parameters
    ----------
    module : torch.nn.Module
        Asked in evaluation mode and without gradients, on its own device and in its own precision.
    output : str
        What it answers: "probabilities" or "logits" of a finite action set (n, A), or "actions": vectors (n, k), or, where
        `actions` are given, their indices (n,).
    actions : int or array (A, k), optional
        The finite action set: vectors that enter x = (s, a), or their number for one-hot vectors. None: action vectors.
    batch : int
        States that are asked for at once.

    Returns
    -------
    DiscretePolicy or DeterministicPolicy

    Raises
    ------
    MissingExtra
        Where torch is not installed.
    InvalidInput
        Where it is no module or, when asked, its answers are not what `output` says.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from accountable_ope.adapters import torch_policy
    >>> layer = torch.nn.Linear(1, 2)
    >>> _ = layer.weight.data.copy_(torch.tensor([[0.0], [1.0]])), layer.bias.data.zero_()
    >>> policy = torch_policy(layer, output="logits", actions=2)
    >>> [branch.weights.round(3).tolist() for branch in policy.branches(np.array([[0.0], [1.0]]))]
    [[0.5, 0.269], [0.5, 0.731]]
    """
    torch = required("torch", "torch_policy", "neural")
    if not isinstance(module, torch.nn.Module):
        raise InvalidInput(f"`module` must be a torch.nn.Module. Got {shown(module)}.")
    whole(batch, "batch", least=1)
    if actions is None and output != "actions":
        raise InvalidInput(f'`actions` are needed with output="{output}": the number of actions, or their vectors.')
    name = f"The module {type(module).__name__}"

    def answer(states: FloatArray) -> NDArray[Any]:
        return in_parts(lambda some: asked(lambda rows: _forward(torch, module, rows), some, name), states, batch)

    count = None if actions is None or output == "actions" else len(action_vectors(actions))
    return policy_of(answer, output, actions, count, name)


def _forward(torch: Any, module: Any, states: FloatArray) -> NDArray[Any]:
    first = next(iter(module.parameters()), None)
    device, precision = (None, torch.float32) if first is None else (first.device, first.dtype)
    trained = module.training
    module.eval()
    try:
        with torch.no_grad():
            found = module(torch.as_tensor(np.array(states), dtype=precision, device=device))
    finally:
        module.train(trained)
    if not isinstance(found, torch.Tensor):
        raise InvalidInput(f"The module {type(module).__name__} must answer one tensor. Got {type(found).__name__}.")
    out = found.detach().cpu()
    return np.asarray(out.double().numpy() if out.is_floating_point() else out.numpy())
