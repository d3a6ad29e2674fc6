"""Where the default radius has no cut: every reason, the share of delta that is left, certificates that say something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.radii.no_cut import NoCut
from accountable_ope.verification import Record, verify_record

MDP = PlantedMDP(seed=1, features=2, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=4)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False)
KERNEL = aope.Gaussian(1.0)
SECTIONS = aope.KernelSections(aope.Gaussian(2.0), 8)
DELTA = 0.1
BY_ROWS = (NoCut.WEIGHTS, NoCut.POINTS, NoCut.STARTS_SEEN)
"""What rows of the bound decide."""


def problem(data: aope.Transitions = DATA, starts: aope.StartStates = MDP.starts) -> aope.Problem:
    return aope.Problem(data, starts, MDP.policy, FACTS)


def ready(asked: aope.Problem, features: object = None, anchor: object = None) -> aope.bounds.Evaluation:
    return aope.evaluate(asked, features=MDP.features() if features is None else features, kernel=KERNEL, anchor=anchor)


def estimate(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.full(len(states), 0.5)


@dataclass(frozen=True)
class Draws:
    """A policy of somebody else's that draws, from whatever stream."""

    exact: bool = False
    action_vectors: None = None

    def branches(self, states: np.ndarray):
        yield aope.problem.Branch(np.random.default_rng(0).uniform(-1, 1, (len(states), 1)), np.ones(len(states)))


def of_draws(policy: object) -> aope.Interval:
    rng = np.random.default_rng(3)
    states, actions = rng.uniform(-1, 1, (60, 1)), rng.uniform(-1, 1, (60, 1))
    data = aope.Transitions(states, actions, 0.5 + 0.4 * states[:, 0], 0.5 * states + 0.4 * actions)
    asked = aope.Problem(data, aope.StartStates([[0.0]]), policy, FACTS)
    return aope.bound_value(asked, features=aope.RandomFourier(3), kernel=KERNEL, delta=DELTA)


WITHOUT: dict[NoCut, Callable[[], aope.Interval]] = {
    NoCut.GROWING: lambda: ready(problem()).bound(planned=len(DATA)),
    NoCut.ANCHORED: lambda: ready(problem(), anchor=estimate).bound(),
    NoCut.COORDINATES: lambda: ready(problem(), SECTIONS).bound(),
    NoCut.POINTS: lambda: aope.evaluate(
        problem(), features=MDP.features(), kernel=KERNEL, chosen=aope.Choice(points=False)
    ).bound(),
    NoCut.POLICY: lambda: of_draws(Draws()),
    NoCut.SUMS: lambda: of_sums(),
    NoCut.STARTS: lambda: ready(problem(starts=replaced(fixed=False))).bound(),
    NoCut.STARTS_SEEN: lambda: ready(problem(starts=aope.StartStates(DATA.first_states().states, exact=False))).bound(),
    NoCut.WEIGHTS: lambda: ready(problem(DATA.rows(slice(0, 15)))).bound(),
}


def of_sums() -> aope.Interval:
    asked = problem()
    question = aope.StreamQuestion(asked.question, MDP.features(), aope.RandomFeatureKernel(40))
    return aope.bound_sums(aope.partial_statistic(asked.data, question), question, asked.data)


def replaced(*, fixed: bool) -> aope.StartStates:
    return aope.StartStates(MDP.starts.states, MDP.starts.weights, fixed=fixed)


@cache
def without(reason: NoCut) -> aope.Interval:
    return WITHOUT[reason]()


@cache
def with_cut() -> aope.Interval:
    return ready(problem()).bound()


def shares(interval: aope.Interval) -> list[float]:
    """Of delta, what every martingale has."""
    return [each.envelope.delta for each in interval.certificates[0].constraints.evidence]


@pytest.mark.parametrize("reason", NoCut)
def test_a_result_without_a_cut_says_why_and_what_is_left_of_delta(reason: NoCut) -> None:
    """All of it where the reason was known before the data; half of it where rows decided."""
    interval = without(reason)
    part = interval.certificates[0]
    assert part.cut is None and part.basis.no_cut is reason
    assert interval.remarks == (reason.statement,) and reason.statement.parameter("reason") == reason.name.lower()
    assert not {"cut", "fixed-starts", "propensities"} & {each.name for each in interval.premises}
    assert shares(interval) == [interval.split.kernel * (0.5 if reason in BY_ROWS else 1.0)]
    assert interval.check(), interval.verify().message


def test_a_result_with_a_cut_says_so() -> None:
    interval = with_cut()
    part = interval.certificates[0]
    assert part.cut is not None and part.basis.no_cut is None and [each.name for each in interval.remarks] == ["cut"]
    assert shares(interval) == [DELTA / 2, DELTA / 2]
    assert interval.remarks[0].parameter("earlier_rows") == part.cut.earlier >= 10
    assert {"cut", "fixed-starts"} <= {each.name for each in interval.premises}
    sampled = of_draws(aope.SampledPolicy(lambda states, rng: rng.uniform(-1, 1, (len(states), 1)), draws=2))
    assert sampled.certificates[0].cut is not None  # its draws are known to be apart from the data


def test_other_radii_say_nothing_of_a_cut() -> None:
    for radius in ("azuma", "empirical-bernstein", "wild"):
        interval = ready(problem()).bound(radius)
        assert interval.remarks == () and interval.certificates[0].basis.no_cut is None


def test_start_states_of_the_log_are_not_fixed_and_neither_is_a_cut() -> None:
    first = DATA.first_states()
    assert not first.fixed and not first.exact and MDP.starts.fixed
    interval = ready(problem(starts=first)).bound()
    assert interval.remarks == (NoCut.STARTS.statement,) and interval.check()
    given = {"data": DATA, "policy": MDP.policy, "features": MDP.features()}
    assert aope.verify(interval, starts=first, **given).valid
    # Whatever is said of them: states that are logged once each were not fixed before the data.
    said = aope.StartStates(first.states, exact=False)
    assert said.fixed and not problem(starts=said).starts_are_fixed
    again = ready(problem(starts=said)).bound()
    # It is the rows that tell: a share of delta must not hang on whether a logger lets an episode begin there in the last one.
    assert again.remarks == (NoCut.STARTS_SEEN.statement,) and shares(interval) == [2 * each for each in shares(again)]
    assert aope.verify(again, starts=said, **given).valid and aope.verify(interval, starts=first, **given).valid
    assert "why there is no cut" in aope.verify(interval, starts=said, **given).message


def test_the_last_row_does_not_decide_which_share_of_delta_the_kernel_has() -> None:
    rng, star = np.random.default_rng(0), np.array([[0.123, -0.456]])
    states, after = rng.uniform(-1, 1, (400, 2)), rng.uniform(-1, 1, (400, 2))
    found = []
    for last in (states[-1:], star):
        here = np.concatenate([states[:-1], last])
        data = aope.Transitions(here, rng.integers(0, 2, 400), np.full(400, 0.5), after, episodes=np.arange(400) // 4)
        asked = aope.Problem(data, aope.StartStates(star), MDP.policy, FACTS)
        found.append(shares(ready(asked, aope.RandomFourier(2)).bound()))
    assert found == [[DELTA / 2, DELTA / 2], [DELTA / 2]]


def test_a_cut_with_start_states_of_the_log_is_refused_with_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    said = aope.StartStates(DATA.states[[10, 60, 110]])
    with monkeypatch.context() as patched:
        patched.setattr("accountable_ope.problem.problem.read_off_the_log", lambda data, starts: False)
        forged = ready(problem(starts=said)).bound()
        given = {"data": DATA, "policy": MDP.policy, "features": MDP.features(), "starts": said}
        assert forged.certificates[0].cut is not None and aope.verify(forged, **given).valid
    found = aope.verify(forged, **given)
    assert not found.valid and "why there is no cut" in found.message


def test_the_same_interval_whatever_stands_against_a_cut() -> None:
    """Start states that are not fixed change nothing else; a plan says only when it was made."""
    loose, growing = without(NoCut.STARTS), without(NoCut.GROWING)
    assert (loose.lower, loose.upper) == (growing.lower, growing.upper)


# Certificates that say something else


def with_sums(record: Record, **changes: object) -> Record:
    part = record.classes[0]
    return replace(record, classes=(replace(part, sums=replace(part.sums, **changes)), *record.classes[1:]))


def with_remark(record: Record, reason: NoCut) -> Record:
    said = [(each.name, each.text) for each in (reason.statement,)]
    return replace(
        record, remarks=tuple(replace(each, name=n, text=t) for each, (n, t) in zip(record.remarks, said, strict=True))
    )


@pytest.mark.parametrize("reason", [NoCut.GROWING, NoCut.ANCHORED, NoCut.COORDINATES, NoCut.POINTS])
def test_a_reason_that_is_not_true_is_refused(reason: NoCut) -> None:
    """With fifteen rows nothing is known against a cut: half of delta is spent on it, whether or not there is one."""
    record = with_remark(with_sums(without(NoCut.WEIGHTS).record(), no_cut=reason.name), reason)
    found = verify_record(record)
    assert not found.valid and "what stands against its cut is not true" in found.message


@pytest.mark.parametrize("reason", [NoCut.POLICY, NoCut.STARTS])
def test_the_whole_share_is_not_proved_by_half_of_it_and_data_tell(reason: NoCut) -> None:
    """The same proofs with the whole of delta prove other numbers; and what policy and start states are, the data tell."""
    honest = without(NoCut.WEIGHTS)
    forged = with_remark(with_sums(honest.record(), no_cut=reason.name), reason)
    given = {"data": DATA.rows(slice(0, 15)), "starts": MDP.starts, "policy": MDP.policy, "features": MDP.features()}
    assert aope.verify(honest, **given).valid
    assert not aope.verify(forged, **given).valid
    # A whole certificate that was made with the whole share, of rows that do give weights.
    whole = with_remark(with_sums(without(NoCut.STARTS).record(), no_cut=reason.name), reason)
    found = aope.verify(whole, **{**given, "data": DATA})
    assert not found.valid


def test_an_exact_policy_draws_nothing() -> None:
    record = with_remark(with_sums(without(NoCut.STARTS).record(), no_cut="POLICY"), NoCut.POLICY)
    assert record.setting.exact_policy and not verify_record(record).valid


def test_half_of_the_share_is_what_is_left_where_the_first_rows_gave_nothing() -> None:
    """The proofs of the whole share do not hold with half of it."""
    record = with_remark(with_sums(without(NoCut.STARTS).record(), no_cut="WEIGHTS"), NoCut.WEIGHTS)
    assert not verify_record(record).valid


def test_a_cut_beside_a_reason_is_refused() -> None:
    record = with_cut().record()
    cut = record.classes[0].sums.cut
    for reason in NoCut:
        found = verify_record(with_sums(record, no_cut=reason.name))
        assert not found.valid and "a cut, which its radius does not have" in found.message
    other = ready(problem()).bound("empirical-bernstein").record()
    assert not verify_record(with_sums(other, cut=cut)).valid
    neither = verify_record(with_sums(record, cut=None))
    assert not neither.valid and "does not say why" in neither.message
    unknown = verify_record(with_sums(without(NoCut.STARTS).record(), no_cut="BECAUSE"))
    assert not unknown.valid


@pytest.mark.parametrize("change", [{"growing": True}, {"anchored": True}])
def test_a_cut_where_something_stands_against_it_is_refused(change: dict[str, bool]) -> None:
    record = with_cut().record()
    found = verify_record(replace(record, setting=replace(record.setting, **change)))
    assert not found.valid


def test_a_remark_that_was_removed_or_reworded_is_noticed() -> None:
    for interval in (with_cut(), without(NoCut.STARTS)):
        record = interval.record()
        assert "remarks" in verify_record(replace(record, remarks=())).message
        softer = tuple(replace(each, text="All is well.") for each in record.remarks)
        assert "remarks" in verify_record(replace(record, remarks=softer)).message


def test_a_cut_with_other_numbers_is_noticed_with_the_data() -> None:
    given = {"data": DATA, "starts": MDP.starts, "policy": MDP.policy, "features": MDP.features()}
    record = with_cut().record()
    assert aope.verify(record, **given).valid
    cut = record.classes[0].sums.cut
    for forged in (
        replace(cut, kind="fitted" if cut.kind == "bounded" else "bounded"),
        replace(cut, earlier=cut.earlier - 5),
        replace(cut, rate=0.9 * cut.rate),
        replace(cut, total=0.9 * cut.total),
        replace(cut, kind="wishes"),
    ):
        assert not aope.verify(with_sums(record, cut=forged), **given).valid
