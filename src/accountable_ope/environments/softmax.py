"""The policies of the experiments: softmax(Q / temperature) of trained networks that are shipped as plain arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import DiscretePolicy
from ..validation import FloatArray, frozen, positive
from .control_task import ControlTask, MonteCarlo
from .inverted_pendulum import InvertedPendulum
from .puck_mountain import PuckMountain

TASKS = ("inverted-pendulum", "puck-mountain")
TARGET_TEMPERATURE = 0.1
BEHAVIOR_TEMPERATURE = 1.0
_FOLDER = "policies"


@dataclass(frozen=True, eq=False)
class QNetwork:
    """Layers of relu(W x + b), the last one without relu: states (n, d) -> Q of every action (n, A)."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    def __call__(self, states: FloatArray) -> FloatArray:
        layer = np.asarray(states, dtype=np.float64)
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            layer = layer @ weight.T + bias
            if index + 1 < len(self.weights):
                layer = np.maximum(layer, 0.0)
        return layer

    def softmax(self, states: FloatArray, temperature: float) -> FloatArray:
        """exp(Q / temperature), normalized in every row."""
        from scipy.special import softmax

        return np.asarray(softmax(self(states) / temperature, axis=1))


@checked
def control_task(name: str) -> ControlTask:
    """A task of the experiments, with the constants that its policies were trained with.

    Parameters
    ----------
    name : str
        "inverted-pendulum" or "puck-mountain".

    Returns
    -------
    ControlTask

    Raises
    ------
    InvalidInput
        Where there is no task of that name.

    Examples
    --------
    >>> from accountable_ope.environments import control_task
    >>> control_task("puck-mountain").horizon
    100
    """
    if name == "inverted-pendulum":
        return InvertedPendulum()
    if name == "puck-mountain":
        return PuckMountain()
    raise InvalidInput(f"`task` must be one of {', '.join(TASKS)}. Got {name!r}.")


@cache
def q_network(task: str) -> QNetwork:
    """The shipped network of a task (made by examples/train_policies.py)."""
    control_task(task)  # a wrong name gets its error
    with (
        as_file(files("accountable_ope") / "data" / _FOLDER / f"{task}.npz") as path,
        np.load(path, allow_pickle=False) as stored,
    ):
        count = len(stored.files) // 2
        return QNetwork(
            tuple(frozen(stored[f"weight_{k}"].astype(np.float64)) for k in range(count)),
            tuple(frozen(stored[f"bias_{k}"].astype(np.float64)) for k in range(count)),
        )


@checked
def softmax_policy(task: str, temperature: float) -> DiscretePolicy:
    """softmax(Q / temperature) of the task's network.

    Parameters
    ----------
    task : str
        "inverted-pendulum" or "puck-mountain".
    temperature : float
        Nearly greedy at 0.1, much more random at 1.

    Returns
    -------
    DiscretePolicy

    Raises
    ------
    InvalidInput
        Where there is no task of that name or `temperature` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import softmax_policy
    >>> softmax_policy("puck-mountain", 0.1).probabilities(np.zeros((1, 2))).shape
    (1, 3)
    """
    network, heat = q_network(task), positive(temperature, "temperature")
    return DiscretePolicy(lambda states: network.softmax(states, heat), control_task(task).actions)


@checked
def measured_value(task: str, temperature: float = TARGET_TEMPERATURE) -> MonteCarlo:
    """The value of a policy as measured by examples/measure_truth.py, at discount 0.95.

    Parameters
    ----------
    task : str
        "inverted-pendulum" or "puck-mountain".
    temperature : float
        Of the softmax policy.

    Returns
    -------
    MonteCarlo

    Raises
    ------
    InvalidInput
        Where there is no task of that name, or no value was measured at that temperature.

    Examples
    --------
    >>> from accountable_ope.environments import measured_value
    >>> measured_value("puck-mountain").episodes
    50000
    """
    control_task(task)
    text = (files("accountable_ope") / "data" / _FOLDER / "truth.json").read_text(encoding="utf-8")
    for row in json.loads(text)["values"]:
        if row["task"] == task and row["temperature"] == temperature:
            return MonteCarlo(row["value"], row["standard_error"], row["episodes"], row["cut_off"])
    raise InvalidInput(f"No value was measured for {task} at temperature {temperature:g}.")
