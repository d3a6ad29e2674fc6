"""Monitoring: intervals while the data grow, all of them valid at once.

With a radius that holds for all n at once (Theorems A', B, C, D: one supermartingale, Ville's inequality) the event behind every
interval is the same, whenever one looks: with probability 1 - delta the value lies in the intervals of *all* times, so also in
their intersection. One may look after every batch, stop when one is sure, and let the next data depend on what was seen. What the
event rests on must not depend on the data: kernel, features, ranges, `planned` and the start states are fixed at creation. A
sample of start states is a second event, the same at all times, and pays its share of delta once.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..classes.features import FeatureMap
from ..classes.function_class import Features, FunctionClass, as_classes, expected_features
from ..classes.precomputed import Precomputed
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..io.names import read_naming, written_naming
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel, block
from ..problem.assumptions import Assumptions, RelativeNorm, value_ranges
from ..problem.contradictions import check_data
from ..problem.naming import shared_naming
from ..problem.policy import Policy, SampledPolicy, at_start, state_action_points
from ..problem.problem import Question
from ..problem.statements import Status
from ..problem.transitions import Transitions
from ..radii.registry import DEFAULT_RADIUS, RULES, Approach, RadiusRule, radius_rule
from ..statistics.bellman import bellman_system
from ..statistics.engines.growing import extend_sums
from ..statistics.engines.tiles import PairSums
from ..statistics.statistic import statistics_from
from ..validation import FloatArray, probability_level, whole
from .evaluation import Evaluation
from .looks import Decision, Look, MonitorReport, first_decision, look_at, running_ends
from .unfit import check_kernel

PROBES = 32
"""Rows at which kernel and features must have the same values as before when a saved monitor goes on."""

NEXT_PROBES = 1000
"""Next states at which the policy must act as it did."""

_STORED = (
    *("agreed", "probe", "known", "rows", "actions", "terminated"),
    *("pair_gram", "diag_gram", "kernel_error", "looks", "words"),
)


@dataclass(frozen=True, eq=False)
class _Taken:
    """All rows so far; for every class features at them and at their next states, without the constant; sums over pairs."""

    data: Transitions
    here: tuple[FloatArray, ...]
    after: tuple[FloatArray, ...]
    sums: PairSums


@checked
class Monitor(Shown, Drawn):
    """Bounds for one question while its data grow: an evaluation that grows. A batch that is refused changes nothing.

    Parameters
    ----------
    question : Question
        Start states, target policy and assumptions, fixed before the data.
    features : feature map or a sequence of them
        The class of Q functions.
    kernel : Kernel
        The test kernel.
    radius : str
        A radius that holds at all times at once.
    delta : float
        Failure probability of all intervals together.
    planned : int
        The number of rows at which the intervals are to be tightest; they are valid at all others too.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=20, reward_noise=False, terminates=False)
    >>> question = aope.Question(mdp.starts, mdp.policy, facts)
    >>> monitor = aope.Monitor(question, features=mdp.features(), kernel=aope.Gaussian(1.0), planned=500)
    >>> for night in range(2):
    ...     report = monitor.update(mdp.sample(np.random.default_rng(night), trajectories=4))
    >>> monitor
    Monitor(400 rows in 2 updates, radius='certified', planned=500)
    """

    def __init__(
        self,
        question: Question,
        *,
        features: Features | Sequence[Features],
        kernel: Kernel,
        radius: str = DEFAULT_RADIUS,
        delta: float = 0.1,
        planned: int,
    ) -> None:
        if not isinstance(question, Question):
            raise InvalidInput(
                "`question` must be a Question: aope.Question(starts, policy, assumptions), or problem.question. "
                f"Got {type(question).__name__}."
            )
        check_kernel(kernel)
        self.question, self.kernel = question, kernel
        self.classes = as_classes(features)
        self.radius, self.delta, self.planned = radius, probability_level(delta), whole(planned, "planned", least=1)
        self.features = refuse_growing(radius_rule(radius), question, self.classes)
        self.reference = _reference(question.assumptions)
        # Draws of a sampled policy at the start states belong to the second event: made here, once for all times.
        starts, policy = question.starts.states, at_start(question.policy)
        self._at_start = tuple(expected_features(each, starts, policy) for each in self.features)
        self._taken: _Taken | None = None
        self._looks: tuple[Look, ...] = ()

    def __repr__(self) -> str:
        return f"Monitor({len(self)} rows in {len(self._looks)} updates, radius={self.radius!r}, planned={self.planned})"

    def __len__(self) -> int:
        return 0 if self._taken is None else len(self._taken.data)

    @property
    def history(self) -> tuple[Look, ...]:
        """All looks so far, the first one first."""
        return self._looks

    @checked
    def look_with(self, batch: Transitions) -> Look | None:
        """The first look whose batch had exactly these rows: the same ones again, or those of a process without chance."""
        start = 0
        for look in self._looks:
            stop, known = look.count, None if self._taken is None else self._taken.data
            if known is not None and stop - start == len(batch) and _same_rows(known, slice(start, stop), batch):
                return look
            start = stop
        return None

    @checked
    def decided(self, threshold: float) -> Decision | None:
        """When it became certain that the value is at least the threshold, or below it; None while it is not."""
        return first_decision(self._looks, threshold)

    @checked
    def update(self, batch: Transitions, label: str = "") -> MonitorReport:
        """Take in new rows, which follow those before in the order of generation, and bound the value from all of them.

        An episode may go on from one batch to the next: labels of episodes are not needed and not kept.
        """
        began = time.perf_counter()
        taken, evaluation = self._with(batch)
        interval = evaluation.bound(self.radius, self.delta, planned=self.planned)
        before = self._looks[-1] if self._looks else None
        lower, upper, status = running_ends(before, interval)
        seconds = time.perf_counter() - began
        look = look_at(interval, (lower, upper, status), seconds, label)
        self._taken, self._looks = taken, (*self._looks, look)
        return MonitorReport(interval.count, interval, lower, upper, status, seconds)

    def _with(self, batch: Transitions) -> tuple[_Taken, Evaluation]:
        """All rows with those of the batch, and the evaluation that has grown; the monitor itself is not changed."""
        before, question = self._taken, self.question
        if question.assumptions.discount < 1:  # at discount 1 some row must be terminated, but not one in every batch
            check_data(batch, question.assumptions)
        problem = question.on(batch if before is None else joined_rows(before.data, batch))
        points = state_action_points(batch.states, batch.actions, question.policy)
        policy = _with_own_draws(question.policy, len(self))
        here = tuple(np.array(each(points), dtype=np.float64) for each in self.features)
        after = tuple(_at_next(each, batch, policy) for each in self.features)
        if before is not None:
            here = tuple(np.concatenate(parts) for parts in zip(before.here, here, strict=True))
            after = tuple(np.concatenate(parts) for parts in zip(before.after, after, strict=True))
        systems = tuple(
            bellman_system(problem.experience, Precomputed(x, y, start, each.intercept), reference=self.reference)
            for each, x, y, start in zip(self.classes, here, after, self._at_start, strict=True)
        )
        columns = np.concatenate([system.columns() for system in systems], axis=1)
        known = None if before is None else before.sums
        sums = extend_sums(self.kernel, known, systems[0].points, columns, new=len(batch))
        statistics = tuple(statistics_from(systems, columns, sums, self.kernel))
        evaluation = Evaluation(problem, self.kernel, self.classes, systems, statistics)
        return _Taken(problem.data, here, after, sums), evaluation

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as .npz, atomically."""
        if self._taken is None:
            raise InvalidInput("There is nothing to save before the first update.")
        data, sums = self._taken.data, self._taken.sums
        arrays: dict[str, Any] = {
            "agreed": np.array(self._agreed()),
            "probe": self._probe(data),
            "known": np.array(self._known(data)),
            "rows": np.column_stack([data.rewards, data.states, data.next_states]),
            "actions": data.actions,
            "terminated": data.terminated,
            "left_out": np.array(data.left_out),
            "naming": np.array(written_naming(data.naming)),
            "reference": np.array(self.reference),
            "pair_gram": sums.pair_gram,
            "diag_gram": sums.diag_gram,
            "kernel_error": np.array(sums.kernel_error),
            "looks": np.array([(look.count, *look.now, look.lower, look.upper, look.seconds) for look in self._looks]),
            "words": words_of(self._looks),
        }
        for index, columns in enumerate(zip(self._taken.here, self._taken.after, strict=True)):
            arrays[f"here_{index}"], arrays[f"after_{index}"] = columns
        save_arrays(path, arrays)

    @classmethod
    @checked
    def load(
        cls,
        path: str | os.PathLike[str],
        question: Question,
        *,
        features: Features | Sequence[Features],
        kernel: Kernel,
        radius: str = DEFAULT_RADIUS,
        delta: float = 0.1,
        planned: int,
    ) -> Monitor:
        """Read what `save` wrote, to go on with it: everything but the path must be as it was, and is compared."""
        monitor = cls(question, features=features, kernel=kernel, radius=radius, delta=delta, planned=planned)
        arrays = load_arrays(path, "the state of a monitor", _STORED)
        try:
            changes = [
                f"{old}. Got {new}" for old, new in zip(arrays["agreed"].tolist(), monitor._agreed(), strict=True) if old != new
            ]
            counted = float(arrays.get("reference", 0.0))
            if counted != monitor.reference:  # sums of values that were counted from elsewhere
                changes.append(f"values counted from {counted:.9g}. Got {monitor.reference:.9g}")
            if not changes and not monitor._restore(arrays):
                changes = [
                    "other values of the kernel, the features, the actions' vectors or the policy, or with something else that "
                    "is known of single steps"
                ]
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise InvalidFile(f"{os.fspath(path)} is not the state of a monitor ({error}).") from error
        if changes:
            raise InvalidInput(f"{os.fspath(path)} was made with {changes[0]}: what was fixed at first cannot be changed.")
        return monitor

    def _agreed(self) -> list[str]:
        """In words, what must not change."""
        starts, facts = self.question.starts, self.question.assumptions
        digest = hashlib.sha256(starts.states.tobytes() + starts.weights.tobytes()).hexdigest()
        return [
            *(f"{field.name} {getattr(facts, field.name)!r}" for field in fields(facts)),
            f"kernel {_name(self.kernel)}",
            f"features {', '.join(map(_name, self.classes))}",
            f"radius {self.radius}",
            f"delta {self.delta!r}",
            f"planned {self.planned}",
            f"{starts!r} {digest[:12]}",
        ]

    def _probe(self, data: Transitions) -> FloatArray:
        """Values of the kernel and the features at the first rows, and at the start states: names may hide differences."""
        points = state_action_points(data.states[:PROBES], data.actions[:PROBES], self.question.policy)
        parts = [
            block(self.kernel, points, points),
            *(np.asarray(feature_map(points), dtype=np.float64) for feature_map in self.features),
            *self._at_start,
        ]
        return np.concatenate([part.ravel() for part in parts])

    def _known(self, data: Transitions) -> str:
        """What was declared of single steps, by its values at all rows; nothing where nothing was."""
        return self.question.on(data).row_ranges.sha256 if self.question.knowledge.given else ""

    def _acts_as_before(self, data: Transitions, after: Sequence[FloatArray]) -> bool:
        """Whether the policy gives the features at next states that it gave; drawn actions are not drawn again."""
        if not self.question.policy.exact:
            return True
        live = np.flatnonzero(~data.terminated)
        rows = live[:: 1 + len(live) // NEXT_PROBES]
        if not len(rows):
            return True
        try:
            found = [expected_features(each, data.next_states[rows], self.question.policy) for each in self.features]
        except InvalidInput:  # a table of probabilities at the states of new rows need not hold old ones
            return True
        return all(np.allclose(old[rows], new, rtol=1e-9, atol=1e-12) for old, new in zip(after, found, strict=True))

    def _restore(self, arrays: dict[str, Any]) -> bool:
        """Take over a saved state; whether kernel, features, policy and what is known of steps have the values that they had."""
        rows, many = arrays["rows"], range(len(self.features))
        width = (rows.shape[1] - 1) // 2
        data = Transitions(rows[:, 1 : 1 + width], arrays["actions"], rows[:, 0], rows[:, 1 + width :], arrays["terminated"])
        data = data.having_left_out(int(arrays.get("left_out", 0)))
        data = data.named(read_naming(str(arrays["naming"]), "The state of a monitor")) if "naming" in arrays else data
        here, after = (tuple(arrays[f"{name}_{k}"] for k in many) for name in ("here", "after"))
        sums = PairSums(arrays["pair_gram"], arrays["diag_gram"], float(arrays["kernel_error"]))
        size = sum(phi.dimension + each.intercept + 2 for phi, each in zip(self.features, self.classes, strict=True))
        shapes = [(len(data), feature_map.dimension) for feature_map in self.features]
        fits = [x.shape for x in here] == shapes == [y.shape for y in after]
        looks = looks_from(arrays)
        if not fits or sums.pair_gram.shape != (size, size) or not looks or looks[-1].count != len(data):
            raise ValueError("its arrays do not fit together")
        self._taken, self._looks = _Taken(data, here, after, sums), looks
        same = np.allclose(arrays["probe"], self._probe(data), rtol=1e-9, atol=1e-12)
        return bool(same) and str(arrays["known"]) == self._known(data) and self._acts_as_before(data, after)


def read_history(path: str | os.PathLike[str]) -> tuple[Look, ...]:
    """The looks of a saved monitor, without the rest of it."""
    try:
        return looks_from(load_arrays(path, "the state of a monitor", _STORED))
    except (TypeError, KeyError) as error:
        raise InvalidFile(f"{os.fspath(path)} is not the state of a monitor ({error}).") from error


DOUBT, COPIED = "doubted", "copied"
"""In the state of a monitor, beside a look whose rows speak against the class, or are copies of others."""


def words_of(looks: Sequence[Look]) -> NDArray[np.str_]:
    """Status, label and doubt of looks, for a state."""
    said = [f"{DOUBT if look.doubted else ''} {COPIED if look.copied else ''}".strip() for look in looks]
    return np.array(
        [(each.status_now.name, each.status.name, each.label, doubt) for each, doubt in zip(looks, said, strict=True)]
    )


def looks_from(arrays: dict[str, Any]) -> tuple[Look, ...]:
    """The looks of a saved state."""
    rows = zip(arrays["looks"].tolist(), arrays["words"].tolist(), strict=True)
    return tuple(
        Look(int(count), (low, high), Status[now], lower, upper, Status[status], seconds, label, *_doubted(doubt))
        for (count, low, high, lower, upper, seconds), (now, status, label, *doubt) in rows  # states of before say no doubt
    )


def _doubted(said: Sequence[str]) -> tuple[bool, bool]:
    words = " ".join(said).split()
    return DOUBT in words, COPIED in words


def refuse_growing(rule: RadiusRule, question: Question, classes: Sequence[FunctionClass]) -> tuple[FeatureMap, ...]:
    """The feature maps of the classes; whatever would make the event depend on the time of the look is refused."""
    facts, policy = question.assumptions, question.policy
    if not rule.anytime:
        why = "holds at one number of rows that is fixed in advance"
        if rule.approach is Approach.BOOTSTRAP:
            why = "is fitted anew whenever rows are added"
        allowed = ", ".join(each.name for each in RULES if each.anytime)
        raise InvalidInput(f"`radius` of a monitor must hold at all times at once: {allowed}. {rule.name} {why}.")
    if isinstance(facts.norm_bound, RelativeNorm):
        raise InvalidInput("`norm_bound` of a monitor must be a number or None: the least norm changes as the data grow.")
    if facts.terminates is None and facts.horizon is None and not facts.terminal_reward:
        raise InvalidInput("`terminates` must be True or False in a monitor: it must not depend on which rows were seen so far.")
    maps = []
    for each in classes:
        if each.feature_map is None:
            raise InvalidInput(
                "`features` of a monitor must be functions of (s, a) that are fixed in advance, such as RandomFourier or "
                f"TabularFeatures. {type(each).__name__} depends on the rows."
            )
        maps.append(each.feature_map)
    if not (policy.exact or isinstance(policy, SampledPolicy)):
        raise InvalidInput("`policy` of a monitor must be exact or a SampledPolicy, whose draws can be renewed for new rows.")
    return tuple(maps)


def _same_rows(data: Transitions, rows: slice, batch: Transitions) -> bool:
    pairs = (
        (data.states, batch.states),
        (data.actions, batch.actions),
        (data.rewards, batch.rewards),
        (data.next_states, batch.next_states),
        (data.terminated, batch.terminated),
    )
    return all(np.array_equal(before[rows], now) for before, now in pairs)


def _reference(facts: Assumptions) -> float:
    """The constant from which values are counted at all times: `refuse_growing` sees that no row decides whether states end."""
    terminates = facts.terminates is not False
    return value_ranges(facts, terminates=terminates).reference(terminates=terminates)


def _with_own_draws(policy: Policy, count: int) -> Policy:
    """Draws for new rows must not be those of old ones, which the past knows: a stream of its own for every batch."""
    if not isinstance(policy, SampledPolicy):
        return policy
    return policy.renewed(1 + count)


def joined_rows(data: Transitions, batch: Transitions | None) -> Transitions:
    """One after the other, without labels of episodes; batch: None where there is nothing to add."""
    names = ("states", "actions", "rewards", "next_states", "terminated")
    if batch is None:
        return Transitions(*(getattr(data, name) for name in names)).having_left_out(data.left_out)
    if batch.finite_actions != data.finite_actions:
        kinds = ("vectors", "indices of a finite set")
        raise InvalidInput(f"`actions` must be {kinds[data.finite_actions]}, as before. Got {kinds[batch.finite_actions]}.")
    for name, old, new in (("states", data.states, batch.states), ("actions", data.actions, batch.actions)):
        if old.shape[1:] != new.shape[1:]:
            raise InvalidInput(f"`{name}` must have {old.shape[1]} columns, as before. Got {new.shape[1]}.")
    naming = shared_naming(data.naming, batch.naming)
    joined = Transitions(*(np.concatenate([getattr(data, name), getattr(batch, name)]) for name in names))
    return joined.named(naming).having_left_out(data.left_out + batch.left_out)


def _at_next(features: FeatureMap, batch: Transitions, policy: Policy) -> FloatArray:
    """Features at the next states, averaged over the policy; 0 where terminated."""
    after, live = np.zeros((len(batch), features.dimension)), ~batch.terminated
    after[live] = expected_features(features, batch.next_states[live], policy)
    return after


def _name(thing: object) -> str:
    """How it prints; the type alone where that would be an address in memory."""
    return type(thing).__qualname__ if type(thing).__repr__ is object.__repr__ else repr(thing)
