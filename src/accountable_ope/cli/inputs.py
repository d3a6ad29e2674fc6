"""From the options of a command line to data, start states, policy and estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..adapters.onnx_values import onnx_q
from ..errors import InvalidFile, InvalidInput
from ..io.coding import ANY_WORDS, WordRules
from ..io.column_names import ACTION_AT_NEXT, ACTION_AT_STATE, AT_NEXT, AT_STATE
from ..io.columns import FileColumns
from ..io.minari import load_minari
from ..io.reading import TransitionFile
from ..io.reading import read_log as read_columns
from ..io.sources import open_source
from ..io.starts import StartFile, read_start_file
from ..problem.assumptions import Assumptions
from ..problem.changed_units import changed_units_sentences
from ..problem.first_look import first_look, paid_at_ends, refuse_other_units
from ..problem.gaussian_policy import GaussianPolicy
from ..problem.naming import Naming
from ..problem.policy import Policy, TabulatedPolicy
from ..problem.problem import Experience, Problem
from ..problem.row_columns import LOGGED
from ..problem.transitions import StartStates, Transitions
from ..statistics.estimates import AnyQ, QColumns
from ..validation import FloatArray, plural
from .named import declared_vectors, guarded, is_file, named, named_policy
from .options import ProblemOptions
from .output import announce

MINARI = "minari:"
"""What a Minari dataset is named by on the command line, before its id."""

FROM_ROWS = f" Where the file has no next states, `{AT_STATE}` or `{ACTION_AT_STATE}` in every row is enough."
"""What a log must say of the target policy, where next states are those of following rows."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a command works on, as read from its files."""

    data: Transitions
    starts: StartStates
    policy: Policy
    file: TransitionFile
    start_file: StartFile | None
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> list[FileColumns]:
        """How the columns of every file were read, and what a first look at them showed."""
        log, *others = columns_of(self.file, self.start_file)
        return [replace(log, remarks=(*log.remarks, *(f"{each}." for each in self.remarks))), *others]

    def looked_at(self, assumptions: Assumptions | None = None, *, one_bandwidth: bool = False) -> Inputs:
        """The same with what a first look shows, which a person at a terminal sees before any work.

        assumptions: where they are known already, for what could be declared beside them.
        one_bandwidth: whether one bandwidth serves all columns of the state.
        """
        names = self.file.columns.states
        refuse_other_units(self.data, self.starts, names)
        seen = first_look(self.data, self.starts, self.policy, one_bandwidth=one_bandwidth, names=names)
        ends = () if assumptions is None else paid_at_ends(self.data, assumptions)
        found = replace(self, remarks=(*seen, *ends))
        for each in found.columns:
            for sentence in each.remarks:
                announce(f"Note: {sentence}")
        return found

    def problem(self, assumptions: Assumptions, propensities: bool = False) -> Problem:
        """The question that is asked of them; `propensities`: whether the column `behavior_probability` may weigh rows."""
        if propensities and self.data.behavior_probability is None:
            raise InvalidInput(f"--propensities needs a column `{LOGGED}`, and {self.file.columns.file} has none.")
        check_declared_rewards(self.file, assumptions.reward_range)
        asked = Problem(self.file.data, self.starts, self.policy, assumptions, propensities=propensities)
        return asked.part(self.data)


def read_inputs(path: Path, options: ProblemOptions, need_starts: bool = True, estimate: bool = False) -> Inputs:
    """Data, start states and the target policy: from the files' columns, or as --policy names it.

    estimate: whether to read an existing Q too, from the columns.
    """
    options.check()
    file = read_log(path, options, estimate)
    start_file = _read_starts(file, options, estimate) if need_starts else None
    check_ignored(options, columns_of(file, start_file))
    policy = read_policy([(path, file)], start_file, options)
    # Where no start states are needed one row keeps the record valid; the policy is known at next states.
    starts = StartStates(file.data.next_states[:1]) if start_file is None else start_file.starts
    return Inputs(file.data, starts, policy, file, start_file)


def check_declared_rewards(file: TransitionFile, reward_range: tuple[float, float]) -> None:
    """Raise where a reward lies outside of the declared range; names the column and the line of the file."""
    low, high = reward_range
    outside = (file.data.rewards < low) | (file.data.rewards > high)
    if outside.any():
        row, count = int(np.argmax(outside)), int(outside.sum())
        name = next((name for name, meaning in file.columns.aliases if meaning == "reward"), "reward")
        raise InvalidInput(
            f"{file.columns.file}: column `{name}` must lie in the declared --reward-range {low:g} {high:g}. {count} of its "
            f"entries {plural(count, 'does', 'do')} not, first {file.data.rewards[row]:g} in {file.row(row)}."
        )


def read_log(path: Path, options: ProblemOptions, estimate: bool = False, words: WordRules = ANY_WORDS) -> TransitionFile:
    """A file of transitions, or minari:ID; the policy from its columns unless it is named."""
    if str(path).startswith(MINARI):
        return _read_minari(str(path), options)
    policy = options.policy is None
    return read_columns(open_source(path), options.ignore_column, options.columns, policy=policy, estimate=estimate, words=words)


def _read_minari(name: str, options: ProblemOptions) -> TransitionFile:
    """A Minari dataset on this machine, by its id or its folder."""
    if options.column:
        raise InvalidInput(f"--column has no effect on {name}: what the parts of a Minari dataset are is known.")
    data = load_minari(name.removeprefix(MINARI))
    return TransitionFile(data, None, None, None, None, FileColumns(name))


def read_starts(path: Path, options: ProblemOptions, naming: Naming | None, estimate: bool = False) -> StartFile:
    """A file of start states; the policy from its columns unless it is named. naming: of the log; None: words are refused."""
    exact, policy = False if options.sampled_starts else None, options.policy is None
    return read_start_file(path, exact, options.ignore_column, options.columns, policy=policy, estimate=estimate, naming=naming)


def columns_of(*files: TransitionFile | StartFile | None) -> list[FileColumns]:
    """How the columns of files were read."""
    return [file.columns for file in files if file is not None and file.columns is not None]


def check_ignored(options: ProblemOptions, columns: Sequence[FileColumns]) -> None:
    """Raise where a column is to be ignored that no file has."""
    for name in options.ignore_column:
        if not any(name in each.ignored for each in columns):
            files = " and ".join(each.file for each in columns)
            raise InvalidInput(f"--ignore-column {name} has no effect: there is no such column in {files}.")


def read_policy(files: Sequence[tuple[Path, TransitionFile]], starts: StartFile | None, options: ProblemOptions) -> Policy:
    """The target policy by name, or from the columns of all files together."""
    if options.policy is not None:
        return named_policy(options.policy, files[0][1].data, options)
    tables = [_policy_from_columns(file, starts, options.action_values, str(path)) for path, file in files]
    states, probabilities = [table.states for table in tables], [table.probabilities for table in tables]
    return TabulatedPolicy(np.concatenate(states), np.concatenate(probabilities), tables[0].action_vectors)


def check_policy(
    path: Path, file: TransitionFile, starts: StartFile | None, options: ProblemOptions, assumptions: Assumptions | None
) -> tuple[str, ...]:
    """Raise at what a bound would refuse in the target policy, where one is given, and in how it fits data and start states.

    Returns what a first look at all of them shows, as `Inputs.looked_at`.
    """
    known_starts = starts is not None and (
        options.starts is not None or options.policy is not None or starts.at_state is not None
    )
    data, live = file.data, ~file.data.terminated
    first = StartStates(data.states[:1]) if starts is None else starts.starts
    if first.states.shape[1] != data.states.shape[1]:
        raise InvalidInput(f"Start states have {first.states.shape[1]} columns, states have {data.states.shape[1]}.")
    if options.policy is None and file.at_next is None:
        return changed_units_sentences(data, file.columns.states)
    policy = read_policy([(path, file)], starts if known_starts else None, options)
    if not known_starts:  # a table of columns may know the policy at next states only
        first = StartStates(data.next_states[live][:1] if live.any() else data.next_states[:1])
    if assumptions is None:
        Experience(data, first, policy, 1.0)
    else:
        Problem(data, first, policy, assumptions)
    for states in (data.next_states[live], first.states):
        if isinstance(policy, GaussianPolicy):
            policy.means(states)
            continue
        for _ in policy.branches(states) if len(states) else ():
            pass  # asked everywhere, as a bound would
    ends = () if assumptions is None else paid_at_ends(data, assumptions)
    return (*first_look(data, first, policy, names=file.columns.states), *ends)


def read_q(name: str | None, inputs: Inputs) -> AnyQ:
    """The estimate to diagnose: an ONNX file, `module:function`, or the columns q and next_q, and q of the start file."""
    if name is not None:
        return named_q(name, inputs.policy)
    starts = inputs.start_file
    columns = []
    for values, what in (
        (inputs.file.q, "`q` in the data"),
        (inputs.file.next_q, "`next_q` in the data"),
        (None if starts is None else starts.q, "`q` in the --starts file"),
    ):
        if values is None:
            raise InvalidFile(f"There is no column {what}: give the estimate as columns, or --q model.onnx or module:function.")
        columns.append(values)
    return QColumns(*columns)


def named_q(name: str, policy: Policy) -> AnyQ:
    """An ONNX file, or the estimate `module:function`; policy: whose actions it is asked for."""
    if is_file(name):
        return onnx_q(name, policy.action_vectors)
    estimate = named(name, "--q")
    return guarded(estimate, f"--q {name}") if callable(estimate) else estimate


def _read_starts(file: TransitionFile, options: ProblemOptions, estimate: bool) -> StartFile:
    if options.starts is not None:
        return read_starts(options.starts, options, file.data.naming, estimate)
    found = first_states(file)
    if found is None:
        raise InvalidInput("--starts is needed: the data have no `episode` column, so nobody knows where episodes start.")
    return found


def first_states(file: TransitionFile) -> StartFile | None:
    """The first states of the episodes, where those are known."""
    if file.data.episodes is None:
        return None
    _, first_rows = np.unique(file.data.episodes, return_index=True)
    at_state = None if file.at_state is None else file.at_state[np.sort(first_rows)]
    return StartFile(file.data.first_states(), at_state, by_action=file.by_action)


def _policy_from_columns(file: TransitionFile, starts: StartFile | None, action_values: str | None, name: str) -> TabulatedPolicy:
    """The policy as it stands in the columns; at terminated rows it is not needed."""
    if file.at_next is None:
        raise InvalidFile(
            f"{name} has no column `{AT_NEXT}` (nor `{AT_NEXT}_0`): give the target policy's probabilities at the next "
            f"states, or the action that it takes there (`{ACTION_AT_NEXT}`), or say by --policy what the policy is: a rule such "
            f"as 'A if column > 2 else B', policy.onnx, or module:function.{FROM_ROWS}"
        )
    if starts is not None and starts.at_state is None:
        raise InvalidFile(
            f"The start states have no column `{AT_STATE}`: give the target policy's probabilities at the start states, or its "
            f"`{ACTION_AT_STATE}` (in the --starts file, or, for first states of episodes, in {name})."
        )
    if not file.data.finite_actions:
        raise InvalidInput("`action` must be a column of whole numbers when the policy is given as columns of probabilities.")
    live = ~file.data.terminated
    given = (file.at_next, file.at_state, None if starts is None else starts.at_state)
    count = max(each.shape[1] for each in given if each is not None)
    tables = [(file.data.next_states[live], _wide(file.at_next[live], count, file.by_action))]
    if starts is not None and starts.at_state is not None:
        tables.append((starts.starts.states, _wide(starts.at_state, count, starts.by_action)))
    if file.at_state is not None:
        tables.append((file.data.states, _wide(file.at_state, count, file.by_action)))
    widths = {probabilities.shape[1] for _, probabilities in tables}
    if len(widths) != 1:
        raise InvalidInput(f"`{AT_STATE}` and `{AT_NEXT}` must have one column per action, all the same number. Got {widths}.")
    for states, _ in tables:
        if states.shape[1] != file.data.states.shape[1]:
            raise InvalidInput(f"Start states have {states.shape[1]} columns, states have {file.data.states.shape[1]}.")
    vectors = declared_vectors(action_values, widths.pop())
    return TabulatedPolicy(np.concatenate([t[0] for t in tables]), np.concatenate([t[1] for t in tables]), vectors)


def _wide(probabilities: FloatArray, actions: int, by_action: bool) -> FloatArray:
    """With a column of zeros for every action that other rows take, where the policy was given as the action that it takes."""
    more = actions - probabilities.shape[1]
    return np.pad(probabilities, ((0, 0), (0, more))) if by_action and more > 0 else probabilities
