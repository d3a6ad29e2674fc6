"""The notebooks in examples/notebooks run, in a kernel of their own and in order, and what is stored in them is what they give.

Text is compared as on the pages of the documentation, pictures by being there. AOPE_NOTEBOOKS=write (`make notebooks`) stores the
outputs instead. A notebook that needs another environment (d3rlpy pins an old Gymnasium) is run where its modules are.
"""

import ast
import importlib.util
import os
import re

import pytest

from test_docs import ROOT, assert_prints

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
WRITE = os.environ.get("AOPE_NOTEBOOKS") == "write"
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def imported(notebook):
    trees = [ast.walk(ast.parse(cell.source)) for cell in code_cells(notebook)]
    names = [name.name for tree in trees for node in tree if isinstance(node, ast.Import) for name in node.names]
    return {name.partition(".")[0] for name in names}


def executed(notebook, folder):
    """A copy with the outputs of a run."""
    from nbclient import NotebookClient

    copy = nbformat.from_dict(notebook)
    NotebookClient(copy, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return stripped(copy)


def stripped(notebook):
    """Without what differs from run to run: counts, times, versions, and what other libraries say on the error stream."""
    notebook.metadata = nbformat.from_dict(KERNEL)
    for cell in code_cells(notebook):
        cell.execution_count, cell.metadata = None, nbformat.from_dict({})
        joined = []
        for each in [output for output in cell.outputs if output.get("name") != "stderr"]:
            each.pop("execution_count", None)
            if each.output_type == "execute_result":
                each.execution_count = None
            if each.output_type == "stream" and joined and joined[-1].get("name") == each.name:
                joined[-1].text += each.text
            else:
                joined.append(each)
        cell.outputs = joined
    return notebook


def shown(output):
    """What a person reads, and which kinds of output there are."""
    if output.output_type == "stream":
        return output.text, ("stream", output.name)
    data = output.get("data", {})
    return re.sub(r"0x[0-9a-f]+", "0x", data.get("text/plain", "")), tuple(sorted(data))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_is_stored_in_it(path, tmp_path, monkeypatch):
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    stored = nbformat.read(path, as_version=4)
    missing = [name for name in sorted(imported(stored)) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{path.name} needs {', '.join(missing)}, which is not installed here: see docs/notebooks.md")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    found = executed(stored, tmp_path)
    if WRITE:
        nbformat.write(found, path)
    for cell, wanted in zip(code_cells(found), code_cells(nbformat.read(path, as_version=4)), strict=True):
        assert [shown(each)[1] for each in cell.outputs] == [shown(each)[1] for each in wanted.outputs], cell.source
        for each, other in zip(cell.outputs, wanted.outputs, strict=True):
            if "image/png" not in shown(each)[1]:
                assert_prints(shown(other)[0], shown(each)[0])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs_and_nothing_that_changes(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata == KERNEL and all(cell.execution_count is None for cell in code_cells(notebook))
    outputs = [each for cell in code_cells(notebook) for each in cell.outputs]
    assert not any(each.output_type == "error" or each.get("name") == "stderr" for each in outputs)
    assert any("image/png" in each.get("data", {}) for each in outputs), "a picture"
    assert path.stat().st_size < 400_000


def test_every_notebook_is_on_its_page():
    listed = re.findall(r"\]\(\.\./examples/notebooks/([\w-]+\.ipynb)\)", (ROOT / "docs" / "notebooks.md").read_text())
    assert sorted(listed) == [path.name for path in NOTEBOOKS], "each notebook once"
    assert len(NOTEBOOKS) == 5
