"""Every example in README.md and docs/ runs: Python blocks are executed, console blocks are run, and output is compared.

Blocks of one page share a folder and, for Python, a namespace, so a page reads as one session. The folder holds the files that
`aope demo` writes. "..." stands for any text, white space does not matter, and a number of three or more digits may differ by one
unit in its last digit.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from accountable_ope.demo import copy_demo_data

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n?```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def assert_prints(expected: str, got: str) -> None:
    near = with_expected_numbers(expected, got)
    assert doctest.OutputChecker().check_output(expected, near, SAME), f"expected:\n{expected}\ngot:\n{got}"


def with_expected_numbers(expected: str, got: str) -> str:
    """`got` with the expected numbers where they differ by a unit of the last of three or more digits, as another BLAS may."""
    wanted, found = NUMBER.findall(expected), NUMBER.findall(got)
    if len(wanted) != len(found):
        return got
    numbers = iter([a if as_printed(a, b) else b for a, b in zip(wanted, found, strict=True)])
    return NUMBER.sub(lambda _: next(numbers), got)


def as_printed(expected: str, got: str) -> bool:
    digits = expected.split("e")[0].lstrip("-").replace(".", "").lstrip("0")
    unit = float(expected) / float(digits) if digits and float(expected) else 0.0
    return len(digits) >= 3 and abs(float(got) - float(expected)) <= 1.5 * abs(unit)


def run_python(code: str, namespace: dict, page: Path) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page.name, "exec"), namespace)
    return printed.getvalue()


def run_console(block: str, folder: Path) -> None:
    """Lines that start with $ are commands; what follows, up to the next, is what they print."""
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        joined = part.replace("\\\n", " ")
        command, _, expected = joined.partition("\n")
        words = shlex.split(command)
        if words[0] == "aope":
            words = [sys.executable, "-c", "from accountable_ope.cli import main; main()", *words[1:]]
        else:
            continue  # pip install, make: run by the gate itself
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment, timeout=120, check=False)
        assert "Traceback" not in done.stderr
        if expected.strip():
            assert_prints(expected, done.stdout + done.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page, tmp_path, monkeypatch):
    copy_demo_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))  # pages may set it; put back afterwards
    namespace: dict = {"__name__": "page"}
    for kind, block, output in FENCE.findall(page.read_text()):
        if kind == "console":
            run_console(block, tmp_path)
        else:
            printed = run_python(block, namespace, page)
            if output:
                assert_prints(output, printed)


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_checker_can_fail():
    assert_prints("[1.571, 3.216]\n", "[1.570, 3.217]\n")
    for other in ("[1.573, 3.216]\n", "[1.571, 3.316]\n", "[1.571; 3.216]\n", "[1.571]\n"):
        with pytest.raises(AssertionError, match="expected"):
            assert_prints("[1.571, 3.216]\n", other)
    with pytest.raises(AssertionError, match="expected"):
        assert_prints("[1.5, 3.2]\n", "[1.6, 3.2]\n")
