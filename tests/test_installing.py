"""This package beside others: it resolves with what people have, and its core needs nothing of its extras."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BESIDE = ("d3rlpy", "stable-baselines3", "scikit-learn", "pandas")
ABSENT = ("torch", "matplotlib", "pandas", "polars", "gymnasium", "sklearn", "onnxruntime", "dask", "minari")

pytestmark = pytest.mark.slow


def uv(*words, **options):
    """Runs uv, without this repository on the path of what it starts."""
    found = [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") else [shutil.which("uv")]
    if found == [None]:
        pytest.skip("uv is not installed: pip install uv")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*found, *map(str, words)], capture_output=True, text=True, env=environment, check=False, **options)
    if done.returncode and re.search(r"[Ff]ailed to fetch|error sending request|[Cc]onnect|dns error|timed out", done.stderr):
        pytest.skip(f"the package index cannot be reached: {done.stderr.splitlines()[0][:120]}")
    return done


@pytest.mark.parametrize("extras", ["", "[plots,onnx,neural]"])
@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_it_resolves_beside_what_people_have(tmp_path, extras, python):
    """Each of them in its newest version that can be had without this package too."""

    def resolved(*more):
        (tmp_path / "wanted.in").write_text("\n".join([*BESIDE, *more]))
        done = uv("pip", "compile", "--quiet", "--no-annotate", "--no-header", "--python-version", python, tmp_path / "wanted.in")
        assert done.returncode == 0, done.stderr
        return dict(line.split("==") for line in done.stdout.splitlines() if "==" in line)

    alone, together = resolved(), resolved(f"accountable-ope{extras} @ {ROOT.as_uri()}")
    assert {name: together[name] for name in BESIDE} == {name: alone[name] for name in BESIDE}
    core = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split(r"[<>=]", each)[0] for each in core} <= together.keys()
    assert not any("<" in each or "==" in each for each in core), "no upper limits"


def test_the_core_works_alone(tmp_path):
    assert uv("venv", "--quiet", "--python", sys.executable, tmp_path / "core").returncode == 0
    python = tmp_path / "core" / "bin" / "python"
    done = uv("pip", "install", "--quiet", "--python", python, "--constraint", ROOT / "constraints.txt", ROOT)
    assert done.returncode == 0, done.stderr

    def run(*words):
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return subprocess.run([python, *words], cwd=tmp_path, capture_output=True, text=True, env=clean, check=False)

    listed = f"import importlib.util as u; print([name for name in {ABSENT!r} if u.find_spec(name)])"
    assert run("-c", listed).stdout == "[]\n", "an extra came with the core"
    imported = run("-c", "import accountable_ope as aope; print(aope.__version__, aope.bound_value.__name__)")
    assert imported.returncode == 0 and "bound_value" in imported.stdout, imported.stderr
    demo = run("-m", "accountable_ope", "demo", "--output", "made")
    assert demo.returncode == 0 and (tmp_path / "made" / "report.html").is_file(), demo.stderr
    rows = "".join(f"{k // 4},{k % 3},{k * 7 % 2},{k % 2},{'yes' if k % 4 == 3 else 'no'}\n" for k in range(200))
    (tmp_path / "log.csv").write_text(f"episode,age,action,reward,terminated\n{rows}")
    bound = run(
        *("-m", "accountable_ope", "bound", "log.csv", "--column", "state=age", "--policy", "1 if age > 1 else 0"),
        *("--discount", "0.5", "--reward-range", "0", "1", "--tabular"),
    )
    assert bound.returncode in (0, 3, 5) and "certified" in bound.stdout, bound.stderr
    plot = run("-c", "from accountable_ope.report.plots import new_figure; new_figure(1, 1)")
    assert 'pip install "accountable-ope[plots]"' in plot.stderr
