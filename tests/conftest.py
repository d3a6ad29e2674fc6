"""Tiers of tests, and examples of Hypothesis.

Hypothesis draws the same examples every time, so that a failure is a change of the code; `explore` draws new ones. `make test`
leaves out what is marked `slow`, here or beside the test; `make test-slow` runs that, and `make test-fast` leaves out pages too.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

for library in ("OMP", "OPENBLAS", "MKL"):  # before NumPy is imported; a process per core: more threads only wait for each other
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("same")

SLOW = (
    "adapters/test_frameworks.py::test_continuous_actors",
    "arena/test_running.py::test_two_processes",
    "baselines/test_bounds.py::test_half_of_the_goal",
    "baselines/test_contestant_coverage.py",
    "baselines/test_contestant_formulas.py::test_what_is_proved",
    "baselines/test_bounds.py::test_the_threshold",
    "baselines/test_doubly_robust.py::test_intervals_cover",
    "baselines/test_interval.py::test_declared_assumptions",
    "baselines/test_interval.py::test_intervals_cover",
    "bounds/test_asymptotic.py",
    "bounds/test_average_radii.py::test_a_finite_process",
    "bounds/test_average_radii.py::test_half_of_the_intervals",
    "bounds/test_average_radii.py::test_the_whole_rkhs",
    "bounds/test_average_reward.py::test_a_radius_that_is_wrong",
    "bounds/test_average_reward.py::test_azuma_covers",
    "bounds/test_average_reward.py::test_the_papers_radius_covers",
    "bounds/test_diagnosis.py::test_rejection_is_rare",
    "bounds/test_semi_parametric.py::test_covers",
    "bounds/test_semi_parametric.py::test_nested_in_both_norms",
    "bounds/test_stream_state.py::test_a_bad_row",
    "bounds/test_stream_state.py::test_a_first_answer",
    "bounds/test_stream_state.py::test_a_killed_process",
    "bounds/test_stream_state.py::test_every_byte",
    "bounds/test_stream_state.py::test_rows_that_were_not_kept",
    "bounds/test_diagnosis.py::test_the_verdict_rejects",
    "bounds/test_doubts.py",
    "bounds/test_finite_features.py::test_more_features",
    "bounds/test_finite_features.py::test_the_approximation",
    "bounds/test_monitor.py::test_every_radius_for_all_times",
    "bounds/test_monitor.py::test_looking_after_every_batch",
    "bounds/test_monitor.py::test_the_running_interval",
    "bounds/test_monotone.py",
    "bounds/test_one_step_range.py::test_a_range_of_half_the_truth",
    "bounds/test_one_step_range.py::test_a_true_range_covers",
    "bounds/test_one_step_range.py::test_it_is_listed",
    "bounds/test_possible.py::test_a_loss_at_the_level",
    "bounds/test_possible.py::test_an_estimate_known",
    "bounds/test_possible.py::test_least_norm_and_misfit",
    "bounds/test_possible.py::test_the_misfit_that",
    "bounds/test_predictable.py::test_every_path",
    "bounds/test_predictable.py::test_start_states_that_follow",
    "bounds/test_row_boxes.py::test_the_box_at_every_point",
    "bounds/test_row_knowledge.py::test_intervals_with_all",
    "bounds/test_streamed.py::test_a_first_answer_is_that_of_the_rows",
    "verification/test_mutations.py::test_every_field",
    "bounds/test_row_knowledge.py::test_rescaled_rows",
    "bounds/test_selection.py::test_bound_selected_covers",
    "bounds/test_selection.py::test_the_pessimistic_union",
    "bounds/test_sensitivity.py::test_a_decision_that_only",
    "bounds/test_sensitivity.py::test_a_flip_point_where",
    "bounds/test_sensitivity.py::test_nested_in",
    "bounds/test_sensitivity.py::test_nested_when",
    "bounds/test_sensitivity.py::test_one_statistic",
    "bounds/test_sensitivity.py::test_rows_needed",
    "bounds/test_sensitivity.py::test_the_least_norm",
    "bounds/test_sensitivity.py::test_the_picture",
    "bounds/test_sensitivity.py::test_the_rows_needed",
    "bounds/test_sensitivity.py::test_undiscounted_episodes",
    "bounds/test_value.py::test_nested_in_delta",
    "bounds/test_value.py::test_row_order",
    "bounds/test_value.py::test_scaling_rewards",
    "bounds/test_value.py::test_the_box_at_every_point",
    "classes/test_sections.py::test_all_landmarks",
    "classes/test_sections.py::test_bandwidths",
    "classes/test_sections.py::test_bound_value_with_landmarks",
    "classes/test_sections.py::test_fewer_landmarks",
    "cli/test_streaming.py::test_a_run_that_stopped",
    "cli/test_misfit_norm.py::test_a_norm",
    "cli/test_misfit_norm.py::test_sensitivity",
    "cli/test_misfit_norm.py::test_the",
    "cli/test_estimates.py::test_the_default_radius",
    "cli/test_one_step_range.py",
    "cli/test_sensitivity.py",
    "cli/test_simulate.py",
    "coverage/",
    "environments/test_control_tasks.py::test_box_and_reward",
    "environments/test_planted.py::test_value_agrees",
    "experiments/test_figures.py",
    "experiments/test_setting.py",
    "fitting/test_neural.py",
    "golden/",
    "hostile/",
    "io/test_minari.py",
    "laboratory/test_coverage_command.py",
    "laboratory/test_families.py",
    "laboratory/test_trials.py",
    "problem/test_gaussian_policy.py::test_a_whole_rkhs",
    "problem/test_gaussian_policy.py::test_an_interval_holds",
    "programs/test_extreme.py::test_barely_feasible",
    "programs/test_pointwise.py::test_a_hundred_thousand",
    "programs/test_pointwise.py::test_a_solver_that_is_stopped",
    "programs/test_pointwise.py::test_rows_matter",
    "programs/test_tightening.py",
    "radii/test_cut.py",
    "radii/test_envelope.py::test_affine_bounds",
    "radii/test_observed_steps.py::test_half_of_the_cost",
    "radii/test_observed_steps.py::test_the_crossing",
    "radii/test_observed_steps.py::test_violated",
    "radii/test_radii.py::test_azuma_violation",
    "radii/test_walks.py",
    "runner/test_run.py::test_an_interrupted",
    "statistics/test_statistic.py::test_rows_may_come",
    "statistics/test_statistic.py::test_statistics_are_quadratic",
    "test_demo.py::test_stored_values",
    "trust/test_tasks.py::test_exact_values",
    "trust/test_tasks.py::test_stored_values",
    "trust/test_tasks.py::test_the_planted_values",
    "test_docstrings.py::test_examples_run",
)
"""Where node ids begin, from this folder: statistics over many data sets, figures, training, and whatever takes seconds."""

SEEDS = 3
"""Of a test with a parameter `seed`, the fast tier runs this many; more seeds of one kind test the same lines."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        name = item.nodeid.removeprefix(f"{here.name}/")
        seed = item.callspec.params.get("seed") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
        if name.startswith(SLOW) or (isinstance(seed, int) and seed >= SEEDS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def tables_once() -> Iterator[None]:
    """The verifier makes each of its tables once: for tests that prove forgeries of one result again and again."""
    from tables import tables_are_kept

    with tables_are_kept():
        yield
