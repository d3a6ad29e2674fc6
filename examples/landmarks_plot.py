"""Draw docs/images/landmarks.png: the interval for the whole RKHS by landmarks, beside random features of the same number.

python examples/landmarks_plot.py docs/images/landmarks.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.report.plots import new_figure, save_figure

SIZES = (5, 10, 20, 40, 80, 160)


def main(path: Path) -> None:
    mdp = PlantedMDP(seed=3, features=4, discount=0.6)
    data = mdp.sample(np.random.default_rng(0), trajectories=30, length=50)

    def ends(features: aope.classes.FeatureMap | aope.KernelSections, norm_bound: float = 2.0) -> tuple[float, float]:
        facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=norm_bound, reward_noise=False)
        interval = aope.bound_value(
            aope.Problem(data, mdp.starts, mdp.policy, facts), kernel=aope.Gaussian(1.0), features=features
        )
        return interval.lower, interval.upper

    sections = [ends(aope.KernelSections(aope.Gaussian(1.5), size)) for size in SIZES]
    exact = ends(aope.KernelSections(aope.Gaussian(1.5), None))
    # With this bandwidth the kernel of the random features tends to half of exp(-||x - y||^2 / 1.5^2): in its norm the same ball
    # has sqrt(2) times the radius.
    same_ball = 2.0 * np.sqrt(2)
    fourier = [[ends(aope.RandomFourier(size, 1.5 / np.sqrt(2), seed), same_ball) for size in SIZES] for seed in range(8)]
    figure = new_figure(8, 4.6)
    axes = figure.subplots()
    for seed, run in enumerate(fourier):
        label = "random features, eight draws" if seed == 0 else None
        for end in (0, 1):
            axes.plot(SIZES, [x[end] for x in run], "-", color="#c07a2b", lw=1, alpha=0.6, label=label if end == 0 else None)
    for end in (0, 1):
        axes.plot(SIZES, [x[end] for x in sections], "o-", color="#1a7f5a", lw=2, label="landmarks" if end == 0 else None)
        axes.axhline(exact[end], color="#1d2430", lw=1, label="exact RKHS, all sections" if end == 0 else None)
    axes.axhline(mdp.value, color="#1d2430", ls=":", lw=1.3, label="true value")
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_xlabel("number of landmarks or of random features")
    axes.set_ylabel("value of the target policy")
    axes.set_title(
        f"Same data ({len(data)} transitions), same norm bound: landmarks shrink to the exact interval", loc="left", fontsize=11
    )
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
