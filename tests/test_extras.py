"""Every extra that a feature needs is named with its pip command where it is missing: one sentence, and no traceback of ours."""

import sys
import tomllib
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
import onnx_files
from accountable_ope import adapters, io
from accountable_ope.fitting.training import imported_torch
from accountable_ope.report.plots import new_axes, new_figure
from accountable_ope.statistics.engines.cuda import opened_torch
from command import aope_command

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"test", "lint", "bench", "docs"}
NO_FEATURE = {"training": "trains the policies of examples/train_policies.py: policies of Stable-Baselines3 bring their own"}


def missing_onnx(folder, read):
    pytest.importorskip("onnx")
    return read(onnx_files.linear(folder / "model.onnx", np.eye(2)))


def described(folder, *words):
    (folder / "log.csv").write_text("state,action,reward,next_state\n0,0,0.5,1\n1,1,0.5,0\n")
    done = aope_command(*words, cwd=folder)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert sorted(each.name for each in folder.iterdir()) == ["log.csv"], "nothing was written"
    raise aope.MissingExtra(done.stderr.removeprefix("Error: ").strip())


CALLS = {
    "torch policies": ("neural", "torch", lambda _: adapters.torch_policy(None, "logits", actions=2)),
    "neural features": ("neural", "torch", lambda _: imported_torch()),
    "sums on a GPU": ("gpu", "torch", lambda _: opened_torch()),
    "sums on a cluster": ("cluster", "distributed", lambda _: aope.engines.Dask(workers=2)),
    "ONNX policies": ("onnx", "onnxruntime", lambda folder: missing_onnx(folder, adapters.onnx_policy)),
    "ONNX estimates": ("onnx", "onnxruntime", lambda folder: missing_onnx(folder, adapters.onnx_q)),
    "pictures": ("plots", "matplotlib", lambda _: new_figure(1, 1)),
    "pictures in a notebook": ("plots", "matplotlib", lambda _: new_axes(1, 1)),
    "recording": ("experiments", "gymnasium", lambda _: io.recorder(object())),
    "Minari": ("experiments", "minari", lambda _: io.load_minari("some/log-v0")),
    "Minari on the command line": (
        "experiments",
        "minari",
        lambda folder: described(folder, "check", "minari:some/log-v0"),
    ),
    "a picture on the command line": (
        "plots",
        "matplotlib",
        lambda folder: described(
            folder, "diagnose", "log.csv", "--discount", 0.5, "--reward-range", 0, 1, "--plot", "picture.png"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("feature", CALLS)
def test_the_pip_command_is_in_the_sentence(feature, tmp_path, monkeypatch):
    extra, module, call = CALLS[feature]
    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    find = PathFinder.find_spec

    def hidden(name, path=None, target=None):
        return None if name.partition(".")[0] == module else find(name, path, target)

    monkeypatch.setattr(PathFinder, "find_spec", hidden)
    with pytest.raises(aope.MissingExtra) as caught:
        call(tmp_path)
    sentence = str(caught.value)
    assert f'pip install "accountable-ope[{extra}]"' in sentence and "\n" not in sentence


def test_every_extra_has_a_feature():
    assert {extra for extra, _, _ in CALLS.values()} | NO_FEATURE.keys() == EXTRAS.keys() - FOR_DEVELOPERS
