"""Draw docs/images/ladder.png: one dataset, one interval per rung of the ladder of assumptions (docs/how-sure.md).

python examples/ladder_plot.py docs/images/ladder.png
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import accountable_ope as aope
from accountable_ope.bounds.value import prepare
from accountable_ope.environments import PlantedMDP
from accountable_ope.report.plots import new_figure, save_figure

FINITE, DECLARED, ASYMPTOTIC = "#1a7f5a", "#2b6cb0", "#c07a2b"


def main(path: Path) -> None:
    mdp = PlantedMDP(seed=1, features=10, discount=0.95)
    data = mdp.sample(np.random.default_rng(0), trajectories=60, length=50)
    kernel, features = aope.Gaussian(1.0), mdp.features()
    ready = prepare(data, mdp.starts, mdp.policy, discount=0.95, kernel=kernel, features=features)
    rewards = aope.Assumptions(discount=0.95, reward_range=(0, 1))
    norm = replace(rewards, norm_bound=1.5 * mdp.norm)
    deterministic = replace(norm, reward_noise=False)
    box = replace(deterministic, state_box=((-5.6, -3.5), (5.6, 3.5)))
    rungs = (
        ("Q in the class, the paper's radius", rewards, "hoeffding", FINITE),
        ("the same, Theorem A", rewards, "azuma", FINITE),
        ("the same, certified", rewards, "certified", FINITE),
        ("+ norm of Q bounded", norm, "certified", FINITE),
        ("+ reward a function of (s, a)", deterministic, "certified", FINITE),
        ("+ states in a box", box, "certified", FINITE),
        ("+ rows in order: the cut", box, "certified-cut", FINITE),
        ("+ symmetric residuals", replace(box, symmetric_noise=True), "symmetric", DECLARED),
        ("wild bootstrap", box, "wild", ASYMPTOTIC),
    )
    ends = [ready.assuming(facts).bound(radius=radius).normalized for _, facts, radius, _ in rungs]
    sandwich = aope.bounds.sandwich_interval(aope.Problem(data, mdp.starts, mdp.policy, box), kernel=kernel, features=features)
    labels = [(text, color) for text, _, _, color in rungs] + [("sandwich", ASYMPTOTIC)]
    ends.append(sandwich.normalized)

    figure = new_figure(9, 4.8)
    axes = figure.subplots()
    for row, ((_, color), (low, high)) in enumerate(zip(labels, ends, strict=True)):
        axes.plot([low, high], [row, row], color=color, lw=7, solid_capstyle="butt")
        width = f"{high - low:.3f}" if high - low >= 0.0995 else f"{high - low:.4f}"
        axes.annotate(width, (high, row), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9, color="#1d2430")
    axes.axvline((1 - mdp.discount) * mdp.value, color="#1d2430", ls=":", lw=1.3)
    axes.annotate("truth", ((1 - mdp.discount) * mdp.value, -0.45), xytext=(4, 0), textcoords="offset points", fontsize=9)
    axes.set_yticks(range(len(labels)), [text for text, _ in labels])
    axes.set_ylim(len(labels) - 0.4, -0.75)
    axes.set_xlim(0, 1.09)
    axes.set_xlabel("value per step, (1 - discount) V, and the width of its 90% interval")
    for name, color in (("finite-sample", FINITE), ("finite-sample, declared noise", DECLARED), ("asymptotic", ASYMPTOTIC)):
        axes.plot([], [], color=color, lw=7, label=name)
    axes.legend(frameon=False, loc="lower left", fontsize=9)
    axes.set_title(f"What each added assumption buys: {len(data)} transitions, discount {mdp.discount}", loc="left", fontsize=11)
    save_figure(figure, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
