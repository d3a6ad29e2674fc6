"""What cannot be true, what is only rounding, and what few coordinates may claim."""

import dataclasses
import io
import itertools

import numpy as np
import pytest
from rich.console import Console

import accountable_ope as aope
from accountable_ope.cli.text import print_correction, print_diagnosis
from accountable_ope.kernels.kernel import block
from accountable_ope.report.document import correction_document, diagnosis_document


def chain_log(rows=200):
    """Deterministic: every step pays 1, so Q = 10 at a discount of .9; states are a circle."""
    states = (np.arange(rows) % 5)[:, None] / 5
    return aope.Transitions(states, np.zeros(rows, dtype=int), np.ones(rows), np.roll(states, -1, axis=0))


def chain_problem(**declared):
    policy = aope.DiscretePolicy(lambda states: np.ones((len(states), 1)), actions=1)
    facts = aope.Assumptions(**{"discount": 0.9, "reward_range": (0, 1), "norm_bound": 50.0, "reward_noise": False} | declared)
    return aope.Problem(chain_log(), aope.StartStates([[0.0]]), policy, facts)


def paying(problem, rewards):
    data = problem.data
    return dataclasses.replace(problem, data=aope.Transitions(data.states, data.actions, rewards, data.next_states))


@pytest.mark.parametrize("radius", ["hoeffding", "azuma", "certified", "wild"])
def test_an_estimate_with_impossible_values_is_rejected_in_a_sentence(radius):
    """Bumps that cancel in residuals leave the loss small: that values lie in [0, 10] refutes them all the same."""
    features = aope.RandomFourier(3)

    def alternating(states, actions):
        return 10 + 6 * np.cos(2 * np.pi * states[:, 0])

    found = aope.diagnose(alternating, chain_problem(), features=features, kernel=aope.Gaussian(5.0), radius=radius)
    assert found.verdict.name == "REJECTED"
    assert [each.name for each in found.impossible] == ["impossible-values"]
    assert "takes values from 5.146 to 16" in found.impossible[0].text and "Q lies in [0, 10]" in found.impossible[0].text
    assert diagnosis_document(found)["impossible"] == [found.impossible[0].text]
    console = Console(file=io.StringIO(), width=200)
    print_diagnosis(console, found)
    assert "takes values from 5.146 to 16" in console.file.getvalue()
    with_misfit = chain_problem(misfit=6.0)
    if radius in ("azuma", "certified"):
        assert not aope.diagnose(alternating, with_misfit, features=features, kernel=aope.Gaussian(5.0), radius=radius).impossible


def test_a_constant_of_ten_thousand_is_rejected_where_values_end_at_ten():
    """At a discount near 1 and without rewards its residuals say little; its values say it all."""
    found = aope.diagnose(
        lambda states, actions: np.full(len(states), 1e4),
        chain_problem(),
        features=aope.RandomFourier(3),
        kernel=aope.Gaussian(1.0),
    )
    assert found.verdict.name == "REJECTED" and found.impossible[-1].parameter("largest") == 1e4


def test_a_correction_says_where_it_leaves_the_possible_values():
    """Far too high an estimate, corrected as little as the radius asks for, is still too high."""
    problem = chain_problem()
    options = {"features": aope.RandomFourier(3), "kernel": aope.Gaussian(1.0), "radius": "azuma"}
    found = aope.correct(lambda states, actions: np.full(len(states), 200.0), problem, **options)
    assert found.status.name == "CORRECTED"
    assert [each.name for each in found.doubts] == ["impossible-values"]
    values = found(np.array([[0.0], [0.2]]), np.array([0, 0]))
    assert found.doubts[0].parameter("least") <= values.min() and found.doubts[0].parameter("largest") >= values.max() > 10
    assert correction_document(found)["doubts"] == [found.doubts[0].text]
    console = Console(file=io.StringIO(), width=200)
    print_correction(console, found)
    assert found.doubts[0].text in console.file.getvalue()
    inside = aope.correct(lambda states, actions: np.full(len(states), 10.0), problem, **options)
    assert inside.status.name == "UNCHANGED" and inside.doubts == ()


@pytest.mark.parametrize("radius", ["azuma", "certified", "wild"])
def test_a_loss_at_the_level_of_rounding_is_no_evidence(radius):
    """A circle without chance, and a table that contains Q: least loss and chance loss are rounding, about 1e-16 and 3e-18."""
    table = aope.TabularFeatures.grid(np.arange(5)[:, None], np.eye(1))
    for seed, scale in ((3, 1.0), (4, 1.0), (7, 1.0), (7, 1e3)):
        draw = np.random.default_rng(seed).integers(0, 5, 300)
        asked = chain_problem(reward_range=(0, scale), norm_bound=None)
        data = aope.Transitions(draw, np.zeros(300, dtype=int), scale * (0.1 + 0.17 * draw), (draw + 1) % 5)
        problem = dataclasses.replace(asked, data=data)
        interval = aope.bound_value(problem, features=table, kernel=aope.Gaussian(1.0), radius=radius)
        part = interval.certificates[0]
        assert abs(part.least_loss) < 1e-13 * scale**2
        assert interval.doubts == () and not part.specification.p_value <= 0.05


@pytest.mark.parametrize("radius", ["azuma", "certified", "wild"])
def test_an_estimate_known_to_seven_digits_is_not_refuted_by_the_eighth(radius):
    for scale in (1.0, 1e6):
        problem = paying(chain_problem(reward_range=(0, scale), norm_bound=None), np.full(200, scale))
        value = 10 * scale * (1 + 5e-8)
        options = {"features": aope.RandomFourier(4), "kernel": aope.Gaussian(0.5), "radius": radius}
        found = aope.diagnose(lambda states, actions, q=value: np.full(len(states), q), problem, **options)
        assert found.verdict.name == "CONSISTENT" and found.impossible == ()
        assert (
            aope.correct(lambda states, actions, q=value: np.full(len(states), q), problem, **options).status.name == "UNCHANGED"
        )
        off = aope.diagnose(lambda states, actions, q=0.9 * value: np.full(len(states), q), problem, **options)
        assert radius != "wild" or off.verdict.name == "REJECTED"


def test_what_was_allowed_for_rounding_is_said_where_it_counts():
    """An estimate off by 1e-8 of itself, far from 0: nothing but the allowance keeps it, and text and JSON say so."""
    options = {"features": aope.RandomFourier(4), "kernel": aope.Gaussian(0.5), "radius": "certified"}

    def asked(shift):
        paid = paying(chain_problem(reward_range=(0, 2e6)), np.full(200, shift + 5e-4))
        return paid.assuming(dataclasses.replace(paid.assumptions, reward_range=(shift, shift + 1e-3), norm_bound=None))

    def off(states, actions):
        return np.full(len(states), 10 * (1e6 + 5e-4) * (1 + 1e-8))

    far = asked(1e6)
    found = aope.diagnose(off, far, **options)
    plain = found.radius.total - found.rounding.loss
    assert found.loss > plain and found.loss <= found.radius.total
    assert [each.name for each in found.remarks] == ["rounding"]
    said = found.remarks[0]
    assert said.parameter("loss") == found.rounding.loss and "seven digits" in said.text
    document = diagnosis_document(found)
    assert document["remarks"] == [said.text] and document["allowed_for_rounding"] == found.rounding.loss
    assert said.text in found._repr_html_().replace("&#x27;", "'")
    console = Console(file=io.StringIO(), width=400)
    print_diagnosis(console, found)
    assert said.text in console.file.getvalue()

    unchanged = aope.correct(off, far, **options)
    assert unchanged.status.name == "UNCHANGED" and unchanged.loss_before > unchanged.radius.total
    assert correction_document(unchanged)["remarks"] == [unchanged.remarks[0].text]
    console = Console(file=io.StringIO(), width=400)
    print_correction(console, unchanged)
    assert unchanged.remarks[0].text in console.file.getvalue()

    near = aope.diagnose(lambda states, actions: np.full(len(states), 5e-3), asked(0.0), **options)
    assert 0 < near.rounding.loss < 1e-6 * near.radius.total and near.remarks == ()


EXACT = ("azuma", "certified", "empirical-bernstein")


@pytest.mark.parametrize(("spread", "start", "discount"), [(0.0, 0.8, 0.0), (0.0, 3.0, 0.0), (0.01, 0.8, 0.5), (0.01, 2.0, 0.9)])
def test_the_misfit_that_few_landmarks_claim_is_a_lower_bound(spread, start, discount):
    """Q = 2 everywhere against a ball of radius 1, in which no function exceeds 1: at one point it is missed by exactly 1."""
    policy = aope.DeterministicPolicy(lambda states: np.zeros((len(states), 1)))
    states, after = spread * np.random.default_rng(0).uniform(-1, 1, (2, 300, 1))
    reward = 2 * (1 - discount)
    data = aope.Transitions(states, np.zeros((300, 1)), np.full(300, reward), after)
    facts = aope.Assumptions(discount, (reward - 1e-3, reward + 1e-3), norm_bound=1.0, reward_noise=False)
    problem = aope.Problem(data, aope.StartStates([[start]]), policy, facts)
    for landmarks, radius in itertools.product((1, 2, 3, None), EXACT):
        features = aope.KernelSections(aope.Gaussian(1.0), landmarks, intercept=False)
        part = aope.bound_value(problem, features=features, kernel=aope.Gaussian(0.5), radius=radius).certificates[0]
        assert not part.consistent and part.least_misfit <= 1 + spread**2  # K0(0, .) comes that near
        assert landmarks is not None or discount > 0 or part.least_misfit > 0.9  # and is known to, where nothing is missed
        assert part.least_norm is None or part.least_norm <= 2 * (1 + spread**2)  # 2 K0(0, .) is nearly 2 at all of these points


@pytest.mark.parametrize("seed", range(3))
def test_least_norm_and_misfit_of_few_landmarks_against_a_known_q(seed):
    """Q is a sum of five kernel functions, its norm is known, and rewards are what they must be: nothing is random."""
    rng, space, discount = np.random.default_rng(seed), aope.Gaussian(0.7), 0.8
    centers, weights = np.column_stack([rng.uniform(-1, 1, 5), np.zeros(5)]), rng.normal(size=5)
    norm = float(np.sqrt(weights @ block(space, centers, centers) @ weights))
    states, after = rng.uniform(-1, 1, (2, 150, 1))

    def q(rows):
        return block(space, np.column_stack([rows, np.zeros(len(rows))]), centers) @ weights

    rewards = q(states) - discount * q(after)
    data = aope.Transitions(states, np.zeros((150, 1)), rewards, after)
    policy = aope.DeterministicPolicy(lambda rows: np.zeros((len(rows), 1)))
    largest = float(np.abs(weights).sum())
    facts = aope.Assumptions(discount, (-2 * largest, 2 * largest), (-largest, largest), reward_noise=False, one_step_range=1e-3)
    start = aope.StartStates([[3.0]])  # far from the data, so that its section sees little of them
    claimed = []
    for landmarks, radius in itertools.product((1, 2, 4, 8, None), EXACT):
        features = aope.KernelSections(space, landmarks, intercept=False)
        wide, tight = (
            aope.bound_value(
                aope.Problem(data, start, policy, dataclasses.replace(facts, norm_bound=bound)),
                features=features,
                kernel=aope.Gaussian(0.5),
                radius=radius,
            ).certificates[0]
            for bound in (2 * norm, 0.2 * norm)
        )
        assert wide.consistent and wide.least_norm <= norm * (1 + 1e-6)
        assert tight.least_misfit <= 0.8 * float(np.abs(q(np.linspace(-1, 1, 200)[:, None])).max())  # 0.2 Q is in the ball
        claimed.append(tight.least_misfit)
    assert max(claimed) > 0  # there is something to be wrong about


def test_a_relative_norm_is_refused_where_the_least_norm_is_not_known():
    problem = chain_problem(norm_bound=aope.RelativeNorm(2.0))
    for features in (
        aope.KernelSections(aope.Gaussian(1.0), 2),
        [aope.RandomFourier(3), aope.KernelSections(aope.Gaussian(1.0))],
    ):
        with pytest.raises(aope.InvalidInput, match="`norm_bound` must be a number with KernelSections"):
            aope.bound_value(problem, features=features, kernel=aope.Gaussian(1.0))


def test_a_range_that_only_the_class_has_proves_no_misfit():
    """self-normalized rests on the range of functions of the class, which Q, proved to be none of them, need not have."""
    problem = paying(chain_problem(norm_bound=1e-3, discount=0.5), (np.arange(200) % 5 == 0).astype(float))
    options = {"features": aope.RandomFourier(3), "kernel": aope.Gaussian(0.2)}
    found = aope.bound_value(problem, radius="self-normalized", **options)
    assert found.status.name == "INCONSISTENT" and found.certificates[0].least_misfit == 0
