"""Several policies on one log: shares of delta, differences, and pairing where Q is the same."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.comparison import LOGGED, Comparison, Contender, Difference
from accountable_ope.bounds.decision import Judgment
from accountable_ope.environments import bandit, random_tabular

MDP = bandit(3, 2, seed=0)
TABLES = {"arm 0": np.eye(2)[[0] * 3], "arm 1": np.eye(2)[[1] * 3], "nearly arm 0": [[1, 0], [1, 0], [0.9, 0.1]]}
FACTS = aope.Assumptions(discount=0.0, reward_range=(0, 1))


def contest(log, tables=TABLES, world=MDP, facts=FACTS, **options):
    policies = [aope.NamedPolicy(name, world.policy(table)) for name, table in tables.items()]
    problem = aope.Problem(log, world.starts(), policies[0].policy, facts)
    features = aope.TabularFeatures.grid(np.arange(float(world.mean_reward.shape[0])), policies[0].policy.action_vectors)
    return aope.compare(problem, policies, features=features, kernel=aope.Tabular(), **options)


def episodes(world, count, length, seed=0):
    states, actions = world.mean_reward.shape
    return world.sample_trajectories(np.full((states, actions), 1 / actions), count, length, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def found():
    return contest(episodes(MDP, 2000, 1))


def test_every_interval_has_its_share_of_delta(found):
    assert [each.name for each in found.contenders] == [*TABLES, LOGGED]
    assert found.share == pytest.approx(0.1 / 4)
    assert all(each.found.delta == pytest.approx(found.share) for each in found.contenders)
    assert "hold at once with 90% confidence" in str(found.statements[0])
    alone = aope.bound_value(
        found.contenders[0].found.rebound.problem,
        features=found.contenders[0].found.rebound.evaluation.classes,
        kernel=aope.Tabular(),
        delta=found.share,
    )
    assert (alone.lower, alone.upper) == (found.contenders[0].lower, found.contenders[0].upper)


def test_pairing_never_loses_and_wins_where_policies_are_alike(found):
    pair = found.difference("arm 0", "nearly arm 0")
    one, other = (next(each for each in found.contenders if each.name == name) for name in ("arm 0", "nearly arm 0"))
    assert pair.paired and pair.lower >= one.lower - other.upper and pair.upper <= one.upper - other.lower
    assert pair.upper - pair.lower < 0.5 * (one.upper - one.lower)
    truth = MDP.value(TABLES["arm 0"]) - MDP.value(TABLES["nearly arm 0"])
    assert pair.lower <= truth <= pair.upper
    flipped = found.difference("nearly arm 0", "arm 0")
    assert (flipped.lower, flipped.upper) == (-pair.upper, -pair.lower)
    assert not found.difference("arm 0", LOGGED).paired


def test_all_differences_hold_at_once_as_often_as_claimed():
    """At delta = .5 misses are common enough to be seen, were they more common than claimed."""
    true = {name: MDP.value(table) for name, table in TABLES.items()}
    true[LOGGED], missed, trials = MDP.value(np.full((3, 2), 0.5)), 0, 60
    for seed in range(trials):
        found = contest(episodes(MDP, 150, 1, seed), delta=0.5, radius="azuma")
        truths = [(each, true[each.first] - true[each.second]) for each in found.differences]
        missed += any(not each.lower <= truth <= each.upper for each, truth in truths)
    assert missed <= 38  # P(more) < .02 if each data set missed with probability .5


def test_the_verdict_names_the_best_only_where_it_is_proved(found):
    assert found.difference("arm 0", "arm 1").judgment is Judgment.SUPPORTED and "arm 1" not in found.unbeaten
    assert "the data do not say which" in found.verdict
    two = contest(episodes(MDP, 4000, 1), {name: TABLES[name] for name in ("arm 0", "arm 1")}, logged=False)
    assert two.unbeaten == ("arm 0",) and two.verdict == "With 90% confidence arm 0 is the best of these 2 policies."


def test_with_a_discount_differences_are_those_of_intervals():
    world = random_tabular(3, 2, seed=1, discount=0.5)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False)
    tables = {"left": np.eye(2)[[0] * 3], "right": np.eye(2)[[1] * 3]}
    found = contest(episodes(world, 100, 10), tables, world, facts)
    pair, (left, right, _) = found.differences[0], found.contenders
    assert not pair.paired and (pair.lower, pair.upper) == (left.lower - right.upper, left.upper - right.lower)
    assert "no program is made for two at once" in str(found.statements[1])


def test_without_episodes_the_logged_policy_is_left_out_and_gives_back_its_share():
    found = contest(MDP.sample_iid(300, np.random.default_rng(0)))
    assert len(found.contenders) == 3 and found.share == pytest.approx(0.1 / 3)
    assert "`episodes` are needed" in str(found.missing[0])


def test_a_refuted_class_ranks_nothing():
    policies = [aope.NamedPolicy(name, MDP.policy(table)) for name, table in TABLES.items()]
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1), norm_bound=1e-3)
    problem = aope.Problem(episodes(MDP, 4000, 1), MDP.starts(), policies[0].policy, facts)
    features = aope.TabularFeatures.grid(np.arange(3.0), policies[0].policy.action_vectors)
    found = aope.compare(problem, policies[:2], features=features, kernel=aope.Tabular())
    assert found.differences[0].judgment is Judgment.INCONSISTENT and "no ranking should rest on it" in found.verdict


def test_names_are_different_and_not_empty():
    log = MDP.sample_iid(50, np.random.default_rng(0))
    policy = MDP.policy(TABLES["arm 0"])
    for name in ("", LOGGED):
        with pytest.raises(aope.InvalidInput, match="name of its own"):
            aope.NamedPolicy(name, policy)
    problem = aope.Problem(log, MDP.starts(), policy, FACTS)
    features = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors)
    twice = [aope.NamedPolicy("a", policy), aope.NamedPolicy("a", policy)]
    for policies, message in ((twice, "different names"), ([], "at least one")):
        with pytest.raises(aope.InvalidInput, match=message):
            aope.compare(problem, policies, features=features, kernel=aope.Tabular())


def stand_in():
    """Any value: what is decided rests on the differences."""
    return aope.logged_value(aope.Problem(episodes(MDP, 50, 1), MDP.starts(), MDP.policy(TABLES["arm 0"]), FACTS))


def rival(name, lower, upper, judgment):
    return Difference("new", name, lower, upper, False, judgment)


@pytest.mark.parametrize(
    ("pairs", "wanted", "if_true"),
    [
        ((("a", 0.1, 0.3, Judgment.SUPPORTED), ("b", 0.2, 0.4, Judgment.SUPPORTED)), Judgment.SUPPORTED, Judgment.SUPPORTED),
        ((("a", 0.1, 0.3, Judgment.SUPPORTED), ("b", -0.2, 0.4, Judgment.UNDECIDED)), Judgment.UNDECIDED, Judgment.UNDECIDED),
        ((("a", 0.1, 0.3, Judgment.DOUBTED), ("b", -0.4, -0.2, Judgment.REFUTED)), Judgment.REFUTED, Judgment.REFUTED),
        ((("a", 0.1, 0.3, Judgment.DOUBTED), ("b", 0.2, 0.4, Judgment.SUPPORTED)), Judgment.DOUBTED, Judgment.SUPPORTED),
        (
            (("a", np.nan, np.nan, Judgment.INCONSISTENT), ("b", 0.2, 0.4, Judgment.SUPPORTED)),
            Judgment.INCONSISTENT,
            None,
        ),
    ],
)
def test_the_best_is_better_than_each_other_one(pairs, wanted, if_true):
    """One that is proved to be as good refutes the claim, whatever is doubted about the others."""
    others = tuple(rival(*pair) for pair in pairs)
    contenders = tuple(Contender(name, stand_in()) for name in ("new", *(each.second for each in others)))
    ruling = Comparison(contenders, others, 0.1, 0.03).decide("new")
    assert (ruling.judgment, ruling.if_true, ruling.delta) == (wanted, if_true, 0.1)
    assert str(ruling).startswith(f"{wanted.name}: value of new > that of a and b") and "nan" not in str(ruling)


def test_the_best_of_one_is_no_question():
    with pytest.raises(aope.InvalidInput, match="no other policy"):
        Comparison((Contender("new", stand_in()),), (), 0.1, 0.1).decide("new")
    with pytest.raises(aope.InvalidInput, match="must be one of"):
        Comparison((Contender("new", stand_in()),), (), 0.1, 0.1).decide("old")
