"""`aope simulate`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from ..environments.control_task import ControlTask, roll_out
from ..environments.softmax import TARGET_TEMPERATURE, control_task, softmax_policy
from ..errors import InvalidInput
from ..io.minari import new_minari_folder, save_minari
from ..io.parquet import save_starts, save_transitions
from ..problem.policy import DiscretePolicy, TabulatedPolicy
from ..problem.propensities import with_propensities
from ..problem.transitions import Transitions
from ..report.document import Document
from ..validation import plural, positive, whole
from .options import OUTPUT, AsJson
from .output import check_places, print_json

DISCOUNT, NORM_BOUND = 0.95, 10.0
"""What the suggested command declares: the discount of the experiments on these tasks, and a norm that users replace."""


def simulate(
    task: Annotated[str, Parameter(help="puck-mountain or inverted-pendulum.")],
    /,
    *,
    temperature: Annotated[float, Parameter(help="Temperature of the softmax policy that is rolled out.")] = 1.0,
    target_temperature: Annotated[
        float, Parameter(help="Temperature of the target policy, written as columns.")
    ] = TARGET_TEMPERATURE,
    episodes: Annotated[int, Parameter(help="Number of episodes.")] = 20,
    length: Annotated[int | None, Parameter(help="Most steps of an episode. Default: the task's horizon.")] = None,
    seed: Annotated[int, Parameter(help="Seed of start states, actions and noise.")] = 0,
    out: Annotated[Path | None, Parameter(group=OUTPUT, help="Write the transitions to this Parquet file.")] = None,
    starts: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Write the start states, the distribution itself, to this file.")
    ] = None,
    minari: Annotated[str | None, Parameter(group=OUTPUT, help="Write a new Minari dataset of this id, such as puck-v0.")] = None,
    as_json: AsJson = False,
) -> None:
    """Files of one roll-out, and the command that bounds the value of the target policy from them."""
    problem = control_task(task)
    behavior = softmax_policy(task, temperature)
    target = softmax_policy(task, positive(target_temperature, "target_temperature"))
    whole(episodes, "episodes", least=1)
    if length is not None:
        whole(length, "length", least=1)
    whole(seed, "seed", least=0)
    _check_places(out, starts, minari)
    rolled = roll_out(problem, behavior, np.random.default_rng(seed), episodes=episodes, length=length)
    data = with_propensities(rolled, behavior)
    table = _tabulated(target, data, problem)
    if out is not None:
        save_transitions(data, out, table)
    if starts is not None:
        save_starts(problem.starts, starts, table)
    if minari is not None:
        words = f"{task}, softmax policy at temperature {temperature:g}, {episodes} episodes, seed {seed}."
        save_minari(data, minari, actions=len(problem.actions), state_box=problem.state_box, description=words)
    document: Document = {
        "task": task,
        "temperature": temperature,
        "target_temperature": target_temperature,
        "seed": seed,
        "rows": len(data),
        "episodes": data.number_of_episodes,
        "terminated": int(data.terminated.sum()),
        "transitions": None if out is None else str(out),
        "starts": None if starts is None else str(starts),
        "start_states": len(problem.starts),
        "minari": minari,
        "next": None if out is None else _bound_command(problem, out, starts),
    }
    if as_json:
        print_json("simulate", document)
    else:
        _print(document)


def _check_places(out: Path | None, starts: Path | None, minari: str | None) -> None:
    """Before any work: is there something to write, and a place for it?"""
    if out is None and minari is None:
        raise InvalidInput("--out or --minari is needed: without them nothing would be written.")
    check_places({"--out": out, "--starts": starts})
    if minari is not None:
        new_minari_folder(minari)


def _tabulated(target: DiscretePolicy, data: Transitions, problem: ControlTask) -> TabulatedPolicy:
    """The target policy at every state of the files, which is all that a file of columns can hold."""
    states = np.concatenate([data.states, data.next_states, problem.starts.states])
    return TabulatedPolicy(states, target.probabilities(states), problem.actions)


def _bound_command(problem: ControlTask, out: Path, starts: Path | None) -> str:
    """What a user could run next: all that is known of the task, declared."""
    values = ";".join(",".join(f"{number:g}" for number in vector) for vector in problem.actions)
    if problem.actions.shape[1] == 1:
        values = values.replace(";", ",")
    box = ",".join(f"{low:g}:{high:g}" for low, high in zip(*problem.state_box, strict=True))
    low, high = problem.reward_range
    words = ["aope", "bound", str(out)]
    words += [] if starts is None else ["--starts", str(starts)]
    words += [f"--action-values={values}", "--discount", f"{DISCOUNT:g}", "--reward-range", f"{low:g}", f"{high:g}"]
    words += [] if problem.reward_noise else ["--deterministic-reward"]
    words += [f"--state-box={box}", "--norm-bound", f"{NORM_BOUND:g}"]
    return shlex.join(words)


def _print(document: Document) -> None:
    print(
        f"{document['task']}, softmax policy at temperature {document['temperature']:g}, seed {document['seed']}: "
        f"{document['rows']} transitions in {document['episodes']} {plural(document['episodes'], 'episode', 'episodes')}, "
        f"{document['terminated']} terminated"
    )
    if document["transitions"] is not None:
        print(f"Transitions: {document['transitions']} (target policy at temperature {document['target_temperature']:g})")
    if document["starts"] is not None:
        print(f"Start states: {document['starts']} ({document['start_states']}, the distribution itself)")
    if document["minari"] is not None:
        print(f"Minari dataset: {document['minari']}")
    if document["next"] is not None:
        print(f"Next, with a norm bound of your own:\n  {document['next']}")
