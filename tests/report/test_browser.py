"""The report in a real browser: the system's Chromium, without a window; skipped where there is none."""

import json
import shutil

import pytest

from command import aope_command
from hostile.commands import QUESTION, write_files
from shown_results import NAMES, result

NARROW, WIDE = 390, 1200
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report and the JSON of the same run, from a file whose name is no friend of HTML."""
    folder = write_files(tmp_path_factory.mktemp("browser"))
    hostile = "log <b>&\"'.parquet"
    (folder / "log.parquet").rename(folder / hostile)
    words = ("bound", hostile, *QUESTION[:-2], "--ladder", "--explain", "--report", "report.html", "--json")
    answer = aope_command(*words, cwd=folder)
    assert answer.stdout, answer.stderr
    return folder / "report.html", json.loads(answer.stdout), hostile


def look(browser, path, width, scheme="light"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == NARROW}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.get(path.as_uri())


def overhang(browser):
    """Elements that leave the page to the right, and whether it scrolls that way."""
    script = """
      const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1);
      return [document.documentElement.scrollWidth - innerWidth, wide.map(e => e.tagName + ': ' + e.textContent.slice(0, 40))];
    """
    return browser.execute_script(script)


def brightness(color):
    """0 black, 1 white; of rgb(r, g, b)."""
    red, green, blue = (float(part) for part in color[color.index("(") + 1 : -1].split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_nothing_leaves_the_page_and_nothing_complains(browser, written, width, scheme):
    look(browser, written[0], width, scheme)
    scrolls, wide = overhang(browser)
    assert scrolls <= 0 and wide == []
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    style = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    ink, paper = map(brightness, browser.execute_script(style))
    assert abs(ink - paper) > 0.6 and (paper < 0.5) == (scheme == "dark")


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_numbers_on_the_page_are_those_of_the_json(browser, written, width):
    path, document, _ = written
    look(browser, path, width)
    cells = "return [...document.querySelectorAll('td[data-label=\"value\"]')].map(e => e.innerText)"
    wanted = [f"[{each['lower']:.4f}, {each['upper']:.4f}]" for each in document["intervals"]]
    assert browser.execute_script(cells)[: len(wanted)] == wanted
    bars = "return [...document.querySelectorAll('svg text')].map(e => e.textContent)"
    logged = f"[{document['logged_value']['lower']:.4f}, {document['logged_value']['upper']:.4f}]"
    assert [text for text in browser.execute_script(bars) if text.startswith("[")] == [*wanted, logged]
    first = browser.execute_script("return document.querySelector('.verdict').innerText")
    assert document["verdict"]["sentence"] in first


def test_bars_stand_where_their_numbers_do(browser, written):
    path, document, _ = written
    look(browser, path, NARROW)
    low, high = document["assumptions"]["value_range_used"]
    script = """
      const svg = document.querySelector('svg').getBoundingClientRect();
      return [...document.querySelectorAll('svg rect')].map(e => { const b = e.getBoundingClientRect();
        return [(b.left - svg.left) / svg.width, (b.right - svg.left) / svg.width]; });
    """
    rows = [*document["intervals"], document["logged_value"]]
    for (left, right), each in zip(browser.execute_script(script), rows, strict=True):
        assert left == pytest.approx((each["lower"] - low) / (high - low), abs=0.01)
        assert right == pytest.approx((each["upper"] - low) / (high - low), abs=0.01)


def test_letters_in_the_chart_can_be_read_on_a_phone(browser, written):
    look(browser, written[0], NARROW)
    heights = "return [...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height)"
    assert min(browser.execute_script(heights)) >= 12


def test_date_version_and_command_are_on_it_and_it_prints(browser, written):
    path, _, hostile = written
    look(browser, path, WIDE)
    foot = browser.execute_script("return document.querySelector('footer').innerText")
    assert "UTC by accountable-ope" in foot and "aope bound" in foot and "--ladder" in foot
    assert hostile.replace("'", "'\"'\"'") in foot
    assert browser.execute_script("return document.title") == hostile
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 10_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_of_a_notebook_take_the_color_of_their_page(browser, tmp_path, scheme):
    ink, paper = ("#111", "#fff") if scheme == "light" else ("#eee", "#111")
    cells = "".join(result(name)._repr_html_() for name in NAMES)
    page = tmp_path / "cells.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><body style='color:{ink};background:{paper}'>{cells}", encoding="utf-8")
    look(browser, page, WIDE, scheme)
    assert browser.get_log("browser") == []
    colors = "return [...document.querySelectorAll('.aope p, .aope td, .aope th, .aope li')].map(e => getComputedStyle(e).color)"
    assert len(set(browser.execute_script(colors))) == 1
    assert overhang(browser)[0] <= 0
