"""Wall time and peak memory of `bound_value` on 100,000 transitions with 64 random Fourier features, in a fresh process."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

TARGET = 1024.0
"""MiB of resident memory."""


def peak() -> float:
    """The largest resident memory of this process so far, in MiB (Linux counts in KiB, macOS in bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def measure(trajectories: int, length: int, features: int, single_precision: bool) -> None:
    import numpy as np

    import accountable_ope as aope
    from accountable_ope.environments.planted import PlantedMDP

    imported = peak()
    mdp = PlantedMDP(seed=1)
    data = mdp.sample(np.random.default_rng(0), trajectories=trajectories, length=length)
    sampled = peak()
    facts = aope.Assumptions(discount=mdp.discount, reward_range=(0.0, 1.0), norm_bound=3 * mdp.norm)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    begin = time.perf_counter()
    interval = aope.bound_value(
        problem,
        features=aope.RandomFourier(features),
        kernel=aope.Gaussian(0.5),
        options=aope.kernels.TileOptions(single_precision=single_precision),
    )
    seconds = time.perf_counter() - begin
    whole_matrix = 8 * len(data) ** 2 / 1024**2
    print(f"transitions {len(data):,}, features {features}, {'float32' if single_precision else 'float64'} tiles")
    print(f"interval    {interval}, certificates hold: {interval.check()}")
    print(f"wall time   {seconds:8.1f} s for bound_value")
    print(f"memory      {peak():8.0f} MiB at most ({imported:.0f} after imports, {sampled:.0f} with the data)")
    print(
        f"            {whole_matrix / peak():8.0f} times less than the kernel matrix alone would take ({whole_matrix:,.0f} MiB)"
    )
    print(f"target {'met' if peak() < TARGET else 'missed'}: {peak():.0f} MiB (wanted less than {TARGET:.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=int, default=2000)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--single-precision", action="store_true", help="float32 tiles")
    parser.add_argument("--quick", action="store_true", help="200 trajectories")
    parser.add_argument("--here", action="store_true", help="measure in this process instead of a fresh one")
    options = parser.parse_args()
    if options.quick:
        options.trajectories = 200
    if options.here:
        measure(options.trajectories, options.length, options.features, options.single_precision)
        return
    # What a process once used stays in its peak, so that it has to be a new one.
    sizes = [f"--{name}={getattr(options, name)}" for name in ("trajectories", "length", "features")]
    single = ["--single-precision"] if options.single_precision else []
    subprocess.run([sys.executable, __file__, "--here", *sizes, *single], check=True)


if __name__ == "__main__":
    main()
