"""Every example in README.md and docs/ runs: Python blocks are executed, console blocks are run, and output is compared.

Blocks of one page share a folder and, for Python, a namespace, so a page reads as one session. The folder holds the files that
`aope demo` writes. "..." stands for any text, white space and the length of a rule do not matter, and a number of three
or more digits may differ by one unit in its last digit or by two thousandths of its size, at which rounds end. Commands exit with
0; a block that begins with ```console exit=2 ends with a command that exits with 2.

Pictures are those that the code of the pages draws: a page that saves witness.png is compared with docs/images/witness.png, and
AOPE_PICTURES=write (`make pictures`) puts it there instead. What takes hours is named by the `aope` command on its page.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from accountable_ope.cli.experiments import FIGURES, PICTURES, file_names
from accountable_ope.demo import copy_demo_data
from command import aope_command

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(python|console)(?: exit=(\d+))?\n(.*?)^```\n(?:\n?```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"\]\((?:[\w./-]*/)?images/([\w.-]+)\)")
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
RULE = re.compile("─+")
ROUNDS_END = 2e-3
"""Rounds of `certified` end when an end moves by less than a thousandth: which is the last hangs on a processor's last bits."""


def assert_prints(expected: str, got: str) -> None:
    expected, got = RULE.sub("─", expected), RULE.sub("─", got)
    near = with_expected_numbers(expected, got)
    assert doctest.OutputChecker().check_output(expected, near, SAME), f"expected:\n{expected}\ngot:\n{got}"


def with_expected_numbers(expected: str, got: str) -> str:
    """`got` with the expected lines where they differ by as little as another processor may make them differ."""
    wanted = [line for line in expected.splitlines() if NUMBER.search(line)]
    return "\n".join(next((line for line in wanted if nearly(line, found)), found) for found in got.split("\n"))


def nearly(expected: str, got: str) -> bool:
    """Whether two lines have the same words, and numbers that are the same as printed."""
    if NUMBER.sub("#", expected).split() != NUMBER.sub("#", got).split():
        return False
    return all(as_printed(a, b) for a, b in zip(NUMBER.findall(expected), NUMBER.findall(got), strict=True))


def as_printed(expected: str, got: str) -> bool:
    digits = expected.split("e")[0].lstrip("-").replace(".", "").lstrip("0")
    unit = float(expected) / float(digits) if digits and float(expected) else 0.0
    near = max(1.5 * abs(unit), ROUNDS_END * abs(float(expected)))
    return expected == got or (len(digits) >= 3 and abs(float(got) - float(expected)) <= near)


def run_python(code: str, namespace: dict, page: Path) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page.name, "exec"), namespace)
    return printed.getvalue()


def run_console(block: str, folder: Path, exit_code: int) -> None:
    """Lines that start with $ are commands; what follows, up to the next, is what they print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    for number, part in enumerate(parts, start=1):
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        words = shlex.split(command)
        if words[0] != "aope":
            continue  # pip install, make: run by the gate itself
        done = aope_command(*words[1:], cwd=folder)
        wanted = exit_code if number == len(parts) else 0
        assert done.returncode == wanted, f"{command}\nexited with {done.returncode}, not {wanted}:\n{done.stdout}{done.stderr}"
        if expected.strip():
            assert_prints(expected, done.stdout + done.stderr)


@pytest.fixture
def page_folder(tmp_path, monkeypatch):
    """Where a page is run: the current folder, importable, with the files of the demonstration."""
    copy_demo_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "dumb"), ("PYTHONUTF8", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))  # pages may set it; put back afterwards
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:  # another page may write a module of the same name
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page, page_folder):
    namespace: dict = {"__name__": "page"}
    for kind, exit_code, block, output in FENCE.findall(page.read_text()):
        if kind == "console":
            run_console(block, page_folder, int(exit_code or 0))
        else:
            printed = run_python(block, namespace, page)
            if output:
                assert_prints(output, printed)
    for drawn in drawn_on(page):
        if os.environ.get("AOPE_PICTURES") == "write":
            shutil.copyfile(page_folder / drawn, IMAGES / drawn)
        assert_same_picture(page_folder / drawn, IMAGES / drawn)


def drawn_on(page: Path) -> set[str]:
    """The pictures of docs/images that the Python blocks of a page save."""
    blocks = "".join(block for kind, _, block, _ in FENCE.findall(page.read_text()) if kind == "python")
    return set(re.findall(r'^save_figure\(.*"([\w-]+\.png)"\)$', blocks, re.MULTILINE))


def assert_same_picture(drawn: Path, shown: Path) -> None:
    """The same size, and no patch of 16 x 16 pixels differs much: another version may smooth letters otherwise."""
    from matplotlib.image import imread

    one, other = (imread(path)[..., :3].mean(axis=2) for path in (drawn, shown))
    assert one.shape == other.shape, f"{shown.name} is not what its page draws: `make pictures`"
    rows, columns = (16 * (length // 16) for length in one.shape)
    patches = np.abs(one - other)[:rows, :columns].reshape(rows // 16, 16, columns // 16, 16).mean(axis=(1, 3))
    assert patches.max() < PATCH, f"{shown.name} is not what its page draws ({patches.max():.2f}): `make pictures`"


PATCH = 0.1
"""How far the mean darkness (0 to 1) of a patch may differ: a digit that becomes another one changes it by more."""


def commanded_on(page: Path) -> set[str]:
    """The pictures that the commands printed on a page write: those of experiments, of `aope coverage` and `aope arena`."""
    text = page.read_text()
    found = {
        Path(plot).name
        for plot in re.findall(r"^ *(?:\$ )?aope (?:coverage|arena) .*--plot docs/images/(\S+)", text, re.MULTILINE)
    }
    for figure, options in re.findall(r"^ *(?:\$ )?aope experiment (figure\d)(.*)$", text, re.MULTILINE):
        env = re.search(r"--env (\S+)", options)
        for task in (env[1],) if env else FIGURES[figure]:
            found |= {name for name in file_names(figure, task) if Path(name).suffix.removeprefix(".") in PICTURES}
    return found


def picture_complaints(pages: list[Path], images: set[str]) -> list[str]:
    """Pictures that no page makes, that two make, that no page shows, or whose readers are not told which page makes them."""
    makers: dict[str, list[Path]] = {}
    for page in pages:
        for name in drawn_on(page) | commanded_on(page):
            makers.setdefault(name, []).append(page)
    shown = {(name, page) for page in pages for name in SHOWN.findall(page.read_text())}
    problems = [f"{name} is made by no code and no command of a page" for name in sorted(images - makers.keys())]
    problems += [f"{name} is made by two pages" for name, made in sorted(makers.items()) if len(made) > 1]
    problems += [
        f"{name} is on no page" for name in sorted(images) if Path(name).stem not in {Path(each).stem for each, _ in shown}
    ]
    for name, page in sorted(shown):
        if name not in images:
            problems.append(f"{page.name} shows {name}, which is not there")
        elif name in makers and page not in makers[name] and f"{makers[name][0].name})" not in page.read_text():
            problems.append(f"{page.name} shows {name} and does not lead to {makers[name][0].name}, which makes it")
    return problems


def test_every_picture_is_made_by_its_page():
    assert not picture_complaints(PAGES, {path.name for path in IMAGES.iterdir()})


def test_a_picture_that_no_page_makes_is_found(tmp_path):
    drawn, named, other = (tmp_path / f"{name}.md" for name in ("drawn", "named", "other"))
    code = '```python\nsave_figure(figure, "curve.png")\n```\n'
    drawn.write_text(f"{code}![A curve](images/curve.png)\n")
    named.write_text("    aope experiment figure4 --out experiments\n\n![Figure 4](images/figure4-inverted-pendulum.png)\n")
    images = {"curve.png", "figure4-inverted-pendulum.png", "figure4-inverted-pendulum.svg"}
    assert picture_complaints([drawn, named], images) == []
    assert picture_complaints([drawn], images) == [
        "figure4-inverted-pendulum.png is made by no code and no command of a page",
        "figure4-inverted-pendulum.svg is made by no code and no command of a page",
        "figure4-inverted-pendulum.png is on no page",
        "figure4-inverted-pendulum.svg is on no page",
    ]
    other.write_text("![By hand](images/sketch.png) ![A curve](images/curve.png)\n")
    assert picture_complaints([drawn, named, other], images | {"sketch.png"}) == [
        "sketch.png is made by no code and no command of a page",
        "other.md shows curve.png and does not lead to drawn.md, which makes it",
    ]
    other.write_text(f"{code}![Away](images/away.png)\n")
    assert picture_complaints([drawn, named, other], images) == [
        "curve.png is made by two pages",
        "other.md shows away.png, which is not there",
    ]


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_an_exit_code_that_was_not_announced_fails(page_folder):
    bad = "$ aope bound demo.parquet --starts demo-starts.parquet --discount 1.2 --reward-range 0 1\n"
    run_console(bad, page_folder, exit_code=2)
    for block, announced in ((bad, 0), (bad, 3), (bad + "$ aope --help\n", 2)):
        with pytest.raises(AssertionError, match="exited with"):
            run_console(block, page_folder, announced)


def test_a_picture_that_is_not_current_fails(tmp_path):
    """A digit of a title, a line that moved by little, another size."""
    from accountable_ope.report.plots import new_figure, save_figure

    def draw(name: str, title: str = "radius 0.0011", height: float = 1.0, size: float = 4.0) -> Path:
        figure = new_figure(6, size)
        axes = figure.subplots()
        axes.plot([0, 1], [0, height])
        axes.set_ylim(0, 2)
        axes.set_title(title, loc="left", fontsize=11)
        save_figure(figure, tmp_path / name)
        return tmp_path / name

    shown = draw("shown.png")
    assert_same_picture(draw("same.png"), shown)
    for number, other in enumerate(({"title": "radius 0.0012"}, {"height": 1.05}, {"size": 4.1})):
        with pytest.raises(AssertionError, match="is not what its page draws"):
            assert_same_picture(draw(f"{number}.png", **other), shown)


def test_the_checker_can_fail():
    assert_prints("[1.571, 3.216]\n", "[1.570, 3.217]\n")
    for other in ("[1.576, 3.216]\n", "[1.571, 3.316]\n", "[1.571; 3.216]\n", "[1.571]\n"):
        with pytest.raises(AssertionError, match="expected"):
            assert_prints("[1.571, 3.216]\n", other)
    with pytest.raises(AssertionError, match="expected"):
        assert_prints("[1.5, 3.2]\n", "[1.6, 3.2]\n")
