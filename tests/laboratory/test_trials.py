"""The runner: seeds, order, workers, and files from which a run goes on."""

import math
from dataclasses import astuple, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope.bounds.evaluation as evaluation_module
from accountable_ope.errors import InvalidFile, InvalidInput
from accountable_ope.laboratory import (
    Draw,
    IntervalMethod,
    fair_coin,
    family_named,
    known_methods,
    methods_named,
    outcomes,
    read_trials,
    run_trials,
    summarize,
    trial_seed,
)
from accountable_ope.problem.statements import Guarantee, Status

AZUMA = methods_named(["azuma"])
BOTH = methods_named(["azuma", "hoeffding"])


def facts(rows):
    """Everything but the time."""
    return [astuple(replace(row, seconds=0.0)) for row in rows]


@dataclass
class Counting:
    """A draw that counts its calls, and fails at one of them."""

    draw: Draw
    calls: int = 0
    fails_at: int | None = None

    def __call__(self, rng, n):
        self.calls += 1
        if self.calls == self.fails_at:
            raise KeyboardInterrupt
        return self.draw(rng, n)


def counting(fails_at=None):
    family = fair_coin()
    draw = Counting(family.draw, fails_at=fails_at)
    return replace(family, draw=draw), draw


def test_rows_are_in_order_and_say_what_they_are():
    families = [family_named("bandit"), family_named("chain")]
    rows = run_trials(families, [50, 60], chosen=BOTH, trials=2, delta=0.2, workers=1)
    assert [(row.family, row.n, row.method, row.trial) for row in rows] == [
        (family, n, method, trial)
        for family in ("bandit", "chain")
        for n in (50, 60)
        for method in ("azuma", "hoeffding")
        for trial in (0, 1)
    ]
    for row in rows:
        family = family_named(row.family)
        assert (row.truth, row.delta, row.data_kind) == (family.truth, 0.2, family.data_kind.value)
        assert row.covered == (row.lower <= row.truth <= row.upper)
        assert row.width == pytest.approx((row.upper - row.lower) * (1 - family.assumptions.discount))
        assert row.seed == trial_seed(row.family, row.n, row.trial)
        assert row.seconds > 0
        assert row.guarantee == "finite-sample"


def test_seeds_differ_and_stay():
    seeds = {trial_seed(family, n, trial) for family in ("a", "b") for n in (10, 100) for trial in range(500)}
    assert len(seeds) == 2000
    assert trial_seed("fair-coin", 300, 0) == 150836376987299


def test_a_trial_does_not_depend_on_what_else_is_run():
    alone = run_trials([fair_coin()], [100], chosen=AZUMA, trials=3, workers=1)
    among = run_trials([family_named("chain"), fair_coin()], [50, 100], chosen=BOTH, trials=7, workers=1)
    picked = [row for row in among if (row.family, row.n, row.method) == ("fair-coin", 100, "azuma") and row.trial < 3]
    assert facts(picked) == facts(alone)


def test_the_number_of_workers_does_not_matter(tmp_path):
    families = [family_named("greedy-bandit"), family_named("regulator-sampled"), family_named("planted-60")]
    one = run_trials(families, [60], chosen=AZUMA, trials=5, workers=1)
    two = run_trials(families, [60], chosen=AZUMA, trials=5, workers=2, folder=tmp_path)
    assert facts(one) == facts(two)
    assert sorted(facts(read_trials(tmp_path))) == sorted(facts(one))


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    whole = run_trials([fair_coin()], [5000, 60], chosen=AZUMA, trials=70, workers=1)
    family, draw = counting(fails_at=95)
    with pytest.raises(KeyboardInterrupt):
        run_trials([family], [5000, 60], chosen=AZUMA, trials=70, workers=1, folder=tmp_path)
    kept = {(row.n, row.trial) for row in read_trials(tmp_path)}
    assert len(kept) == 70  # chunks of 50 and 20 were finished, the third was lost
    again, draw = counting()
    resumed = run_trials([again], [5000, 60], chosen=AZUMA, trials=70, workers=1, folder=tmp_path)
    assert draw.calls == 2 * 70 - len(kept)
    assert facts(resumed) == facts(whole)
    run_trials([again], [5000, 60], chosen=AZUMA, trials=70, workers=1, folder=tmp_path)
    assert draw.calls == 2 * 70 - len(kept)


def test_a_folder_grows_by_trials_and_by_methods(tmp_path):
    family, draw = counting()
    run_trials([family], [60], chosen=AZUMA, trials=4, workers=1, folder=tmp_path)
    more = run_trials([family], [60], chosen=BOTH, trials=6, workers=1, folder=tmp_path)
    assert draw.calls == 4 + 6  # all six data sets once more, for the other radius; the last two for both
    assert facts(more) == facts(run_trials([fair_coin()], [60], chosen=BOTH, trials=6, workers=1))
    stored = list(read_trials(tmp_path))
    assert len(stored) == 12
    assert len({(row.trial, row.method) for row in stored}) == 12


def test_another_delta_goes_to_other_files(tmp_path):
    first = run_trials([fair_coin()], [60], chosen=AZUMA, trials=3, delta=0.1, workers=1, folder=tmp_path)
    second = run_trials([fair_coin()], [60], chosen=AZUMA, trials=3, delta=0.3, workers=1, folder=tmp_path)
    assert {row.delta for row in first} == {0.1}
    assert {row.delta for row in second} == {0.3}
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    assert {row.delta: row.trials for row in summarize(read_trials(tmp_path))} == {0.1: 3, 0.3: 3}


def test_what_two_runs_computed_twice_counts_once(tmp_path):
    run_trials([fair_coin()], [60], chosen=AZUMA, trials=3, workers=1, folder=tmp_path)
    [path] = tmp_path.glob("*.parquet")
    (tmp_path / "copy.parquet").write_bytes(path.read_bytes())
    (tmp_path / "left.partial.parquet").write_bytes(b"half of a file")
    assert len(list(read_trials(tmp_path))) == 3


def test_a_family_that_has_changed_is_refused(tmp_path):
    run_trials([fair_coin()], [60], chosen=AZUMA, trials=1, workers=1, folder=tmp_path)
    with pytest.raises(InvalidInput, match="another family 'fair-coin'.*use another folder"):
        run_trials([replace(fair_coin(), truth=0.4)], [60], chosen=AZUMA, trials=1, workers=1, folder=tmp_path)


def test_the_last_digits_of_a_truth_may_be_those_of_another_machine(tmp_path):
    run_trials([fair_coin()], [60], chosen=AZUMA, trials=1, workers=1, folder=tmp_path)
    nudged = replace(fair_coin(), truth=float(np.nextafter(fair_coin().truth, 1.0)))
    assert len(run_trials([nudged], [60], chosen=AZUMA, trials=2, workers=1, folder=tmp_path)) == 2


def test_files_of_another_version_or_kind_are_refused(tmp_path):
    run_trials([fair_coin()], [60], chosen=AZUMA, trials=1, workers=1, folder=tmp_path)
    [path] = tmp_path.glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"accountable-ope": "0.0.1"}), path)
    with pytest.raises(InvalidFile, match="made by accountable-ope 0.0.1, this is .*: use another folder"):
        list(read_trials(tmp_path))
    pq.write_table(pa.table({"family": ["x"]}), path)
    with pytest.raises(InvalidFile, match="does not hold rows of type Trial"):
        list(read_trials(tmp_path))
    with pytest.raises(InvalidFile, match="is not a folder"):
        read_trials(path)
    with pytest.raises(InvalidFile, match="cannot be used as a folder"):
        run_trials([fair_coin()], [60], chosen=AZUMA, trials=1, workers=1, folder=path)


@dataclass(frozen=True)
class FixedInterval:
    lower: float
    upper: float
    status: Status = Status.OK


def narrow(evaluation, delta):
    """A made-up interval function: the mean reward give or take a hundredth."""
    mean = evaluation.problem.data.rewards.mean()
    return FixedInterval(mean - 0.01, mean + 0.01)


def nothing(evaluation, delta):
    return FixedInterval(math.nan, math.nan, Status.INCONSISTENT)


def test_interval_functions_stand_beside_the_radii():
    chosen = (
        IntervalMethod("narrow", Guarantee.ASYMPTOTIC, narrow),
        *AZUMA,
        IntervalMethod("nothing", Guarantee.FINITE_SAMPLE, nothing),
    )
    rows = run_trials([fair_coin()], [100], chosen=chosen, trials=40, workers=2)
    asymptotic, azuma, empty = summarize(rows)
    assert [row.method for row in (asymptotic, azuma, empty)] == ["narrow", "azuma", "nothing"]
    assert 0 < asymptotic.fraction < 0.7 and not asymptotic.refuted
    assert asymptotic.width == pytest.approx(0.02)
    assert azuma.fraction > 0.8
    assert empty.covered == 0 and empty.inconsistent == 1 and empty.refuted


def test_methods_are_skipped_where_they_do_not_apply():
    """One needs symmetric residuals, one would take too long on many rows of an exact kernel."""
    declared = IntervalMethod("declared", Guarantee.FINITE_SAMPLE_DECLARED_NOISE, narrow)
    small = IntervalMethod("small", Guarantee.FINITE_SAMPLE, narrow, largest_count=50)
    planted = family_named("planted-60")
    rows = run_trials([fair_coin(), planted], [40, 60], chosen=(declared, small), trials=1, workers=1)
    assert {(row.family, row.n, row.method) for row in rows} == {
        ("fair-coin", 40, "declared"),
        ("fair-coin", 60, "declared"),
        ("fair-coin", 40, "small"),
        ("fair-coin", 60, "small"),
        ("planted-60", 40, "small"),
    }
    with pytest.raises(InvalidInput, match="None of the methods applies"):
        run_trials([planted], [60], chosen=(declared, small), trials=1, workers=1)


def test_the_registry_follows_the_radii():
    known = [method.name for method in known_methods()]
    assert {"hoeffding", "hoeffding-u", "hoeffding-printed", "azuma"} <= set(known)
    assert [method.name for method in methods_named(["azuma", "hoeffding", "azuma"])] == ["azuma", "hoeffding"]
    assert {method.name for method in methods_named()} <= set(known)
    with pytest.raises(InvalidInput, match="`radius` must be one of hoeffding, .* Got 'bogus'"):
        methods_named(["bogus"])


def test_all_radii_come_from_one_pass(monkeypatch):
    honest, calls = evaluation_module.kernel_statistics, []
    monkeypatch.setattr(evaluation_module, "kernel_statistics", lambda *given: calls.append(1) or honest(*given))
    family = family_named("planted-60")
    run_trials([family], [60], chosen=BOTH, trials=3, workers=1)
    assert len(calls) == 3


def test_a_sampled_policy_has_its_own_draws_for_every_data_set():
    family = family_named("regulator-sampled")
    data = family.draw(np.random.default_rng(0), 60)
    ends = {outcomes(family, data, AZUMA, 0.1, seed)[0].lower for seed in (1, 2)}
    assert len(ends) == 2


def test_an_error_says_where_it_happened():
    family = replace(fair_coin(), assumptions=replace(fair_coin().assumptions, reward_range=(0.0, 0.5)))
    with pytest.raises(InvalidInput, match="Family fair-coin, n = 60, trial 0: .*reward"):
        run_trials([family], [60], chosen=AZUMA, trials=1, workers=1)


def test_an_error_in_a_worker_arrives(tmp_path):
    family = replace(fair_coin(), assumptions=replace(fair_coin().assumptions, reward_range=(0.0, 0.5)))
    with pytest.raises(InvalidInput, match="Family fair-coin, n = 60"):
        run_trials([family], [60], chosen=AZUMA, trials=4, workers=2, folder=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 0}, "`trials` must be a whole number of at least 1"),
        ({"workers": 0}, "`workers` must be a whole number of at least 1"),
        ({"delta": 1.0}, r"`delta` must be in \(0, 1\)"),
        ({"counts": [1]}, "`n` must be a whole number of at least 2"),
        ({"counts": []}, "At least one `n` is needed"),
        ({"families": []}, "At least one `family` is needed"),
        ({"chosen": []}, "At least one `radius` is needed"),
    ],
)
def test_bad_settings_are_refused(change, message):
    settings = {"families": [fair_coin()], "counts": [60], "chosen": AZUMA, "trials": 1, "workers": 1} | change
    with pytest.raises(InvalidInput, match=message):
        run_trials(settings.pop("families"), settings.pop("counts"), **settings)


def test_progress_is_reported():
    seen = []
    run_trials(
        [fair_coin()], [60, 5000], chosen=AZUMA, trials=51, workers=1, report=lambda done, total: seen.append((done, total))
    )
    assert seen == [(0, 102), (50, 102), (51, 102), (101, 102), (102, 102)]
