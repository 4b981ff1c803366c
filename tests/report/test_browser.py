"""Reports in a browser: requests, errors, accessibility, window widths, printing."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from jobs.nights import base, write_night
from report import chromium
from report.chromium import Chromium, Page
from report.test_page import ODD, TABLES, tables, worse

import evalengine as ee

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.BINARY is None, reason="chromium is not installed"),
]
CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
GOOD = """<!DOCTYPE html><html lang="en"><head><title>t</title>
<link rel="icon" href="data:,"></head><body><h1>a</h1>%s</body></html>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a task's example report, for detection with a baseline."""

    @cache
    def made(task: str) -> Path:
        path = tmp_path_factory.mktemp(task) / "report.html"
        if task == "detection":
            before = ee.score(*tables(task))
            return ee.score(worse(), tables(task)[1]).to_html(path, baseline=before)
        return ee.score(*tables(task), report=path) and path

    return made


def check_page(page: Page) -> None:
    """Check requests, errors and accessibility in both themes and three widths."""
    assert page.requests == []
    assert page.errors == []
    for theme in ("light", "dark"):
        page.theme(theme)
        for width in (400, 1000, 1600):
            page.resize(width)
            assert page.evaluate(CHECKS) == [], (theme, width)


@pytest.mark.parametrize("task", TABLES)
def test_pages_make_no_requests_and_are_accessible(
    browser: Chromium, task: str, page_of: Callable[[str], Path]
) -> None:
    path = page_of(task)
    with browser.opened(path) as page:
        check_page(page)
        printed = page.pdf()
    # Printed, long tables and folded sections are cut with a note.
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 16


def test_pages_are_complete_without_scripts(
    browser: Chromium, page_of: Callable[[str], Path]
) -> None:
    path = page_of("detection")
    with browser.opened(path) as page:
        full = page.evaluate("document.querySelector('main').innerText")
    with browser.opened(path, scripts=False) as page:
        plain = page.evaluate("document.querySelector('main').innerText")
        assert page.evaluate("getComputedStyle(document.querySelector('.js')).display") == "none"
    words = set(full.split()) - set(plain.split())
    assert words <= {"Search", "5", "rows", "Score", "threshold", "0.5"}
    assert "worse" in plain


def test_tables_are_sorted_and_searched_by_keyboard(
    browser: Chromium, page_of: Callable[[str], Path]
) -> None:
    with browser.opened(page_of("detection")) as page:
        names = (
            "[...document.querySelectorAll('#labels-0 tbody tr')].filter(r => !r.hidden)"
            ".map(r => r.cells[0].innerText)"
        )
        worst_first = page.evaluate(names)
        page.evaluate("document.querySelector('#labels-0-search').focus()")
        for _ in range(3):  # the table's region, the first and the second header
            page.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        page.press("Enter")
        page.press("Enter")
        sort = "document.querySelectorAll('#labels-0 th')[1].getAttribute('aria-sort')"
        assert page.evaluate(sort) == "descending"
        assert page.evaluate(names) == worst_first[::-1]
        page.evaluate(
            "(f => { f.value = 'CAR'; f.dispatchEvent(new Event('input')); })"
            "(document.querySelector('#labels-0-search'))"
        )
        assert page.evaluate(names) == ["car"]


WATCHED = """
window.passed = new Set();
document.addEventListener("focusin", (event) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(event.target);
  if (outlineStyle !== "none" && parseFloat(outlineWidth)) window.passed.add(event.target);
});
window.asked = [...document.querySelectorAll("a[href], button, input, select, summary")]
  .filter((one) => one.getClientRects().length);
window.asked.length"""
MISSED = "asked.filter((one) => !passed.has(one)).map((one) => one.outerHTML.slice(0, 120))"


def missed_by_tab(page: chromium.Page) -> list[str]:
    """Return the controls that Tab does not reach from the top, or without a visible focus."""
    for _ in range(page.evaluate(WATCHED) + page.evaluate(SCROLLED) + 1):
        page.press("Tab")
    missed: list[str] = page.evaluate(MISSED)
    return missed


SCROLLED = "document.querySelectorAll('[tabindex], .scroll').length"


@pytest.mark.parametrize("task", TABLES)
def test_all_controls_are_reached_by_tab(
    browser: Chromium, task: str, page_of: Callable[[str], Path]
) -> None:
    with browser.opened(page_of(task)) as page:
        assert missed_by_tab(page) == []
        assert page.evaluate("asked.some((one) => one.matches('th button'))")
        assert page.evaluate("asked.some((one) => one.matches('[type=search]'))")
        if task == "detection":
            assert page.evaluate("asked.some((one) => one.matches('[type=range]'))")


@pytest.mark.parametrize(
    "hidden", ['<button tabindex="-1">a</button>', '<button style="outline:0">a</button>']
)
def test_controls_that_tab_does_not_reach_are_detected(
    browser: Chromium, hidden: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.html"
    path.write_text(GOOD % f"<button>fine</button>{hidden}", encoding="utf-8")
    with browser.opened(path) as page:
        assert missed_by_tab(page) == [hidden]


def blank_sheets(pdf: bytes) -> list[int]:
    """Return the numbers, from 1, of printed pages of a single colour."""
    rendered = subprocess.run(
        ["pdftoppm", "-r", "30", "-gray"], input=pdf, capture_output=True, check=True
    )
    rest, blank, number = rendered.stdout, [], 0
    while rest:
        number += 1
        _, size, _, rest = rest.split(b"\n", 3)
        width, height = map(int, size.split())
        sheet, rest = rest[: width * height], rest[width * height :]
        blank += [number] if len(set(sheet)) == 1 else []
    assert number
    return blank


PAPER = pytest.mark.skipif(
    shutil.which("pdftoppm") is None, reason="pdftoppm (poppler-utils) is not installed"
)


@PAPER
@pytest.mark.parametrize("task", TABLES)
def test_no_printed_page_is_blank(
    browser: Chromium, task: str, page_of: Callable[[str], Path]
) -> None:
    with browser.opened(page_of(task)) as page:
        page.theme("dark")
        assert blank_sheets(page.pdf()) == []


@PAPER
def test_a_blank_printed_page_is_detected(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "blank.html"
    path.write_text(GOOD % "<p style='break-after:page'>a<p style='break-after:page'>&nbsp;<p>b")
    with browser.opened(path) as page:
        assert blank_sheets(page.pdf()) == [2]


def test_the_slider_changes_the_counts(browser: Chromium, tmp_path: Path) -> None:
    card = ee.score(*tables("detection"))
    curve = ee.score(
        *tables("detection"), metrics="PrecisionRecallCurve", score_thresholds=[0.36]
    ).curves
    with browser.opened(card.to_html(tmp_path / "a.html")) as page:
        page.evaluate("document.querySelector('#threshold').focus()")
        page.press("ArrowRight")
        assert page.evaluate("document.querySelector('#threshold-value').value") == "0.36"
        row = page.evaluate(
            "[...document.querySelectorAll('#counts tbody tr')].find("
            "r => r.cells[0].innerText === 'car').innerText"
        )
    tp, fp, fn, precision = curve.filter(label_value="car").select(
        "tp", "fp", "fn", "precision"
    ).row(0)  # fmt: skip
    assert row.split()[1:5] == [str(tp), str(fp), str(fn), f"{precision:.4f}"]


def test_labels_that_are_scripts_do_not_run(browser: Chromium, tmp_path: Path) -> None:
    odd = [ODD, '"><img src=x onerror=alert(2)>', "</script><script>alert(3)</script>"]
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "datum_id": [f"{one} {i}" for i in range(20) for one in odd],
            "actual": rng.choice(odd, 60),
            "predicted": rng.choice(odd, 60),
            "score": rng.random(60),
            "slice": odd * 20,
        }
    )
    with browser.opened(ee.score(table, by="slice").to_html(tmp_path / "a.html")) as page:
        assert page.dialogs == []
        assert page.requests == []
        assert page.errors == []
        assert page.evaluate(CHECKS) == []


def test_a_matrix_wider_than_the_window_shows_that_it_scrolls(
    browser: Chromium, tmp_path: Path
) -> None:
    rng = np.random.default_rng(7)
    actual = rng.integers(0, 14, 400)
    predicted = np.where(rng.random(400) < 0.6, actual, rng.integers(0, 14, 400))
    table = pl.DataFrame({"actual": actual, "predicted": predicted}).cast(pl.String)
    with browser.opened(ee.score(table).to_html(tmp_path / "a.html")) as page:
        page.resize(400)
        assert page.evaluate(CHECKS) == []
        cut = "some((one) => one.scrollWidth > one.clientWidth + 1)"
        assert page.evaluate(f"[...document.querySelectorAll('figure > div')].{cut}")


def test_a_large_page_has_few_elements(browser: Chromium, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    truth = rng.permutation(12_000) % 1200
    found = np.where(rng.random(12_000) < 0.7, truth, rng.integers(0, 1200, 12_000))
    names = np.array([f"a rather long name of a label, number {i}" for i in range(1200)])
    table = pl.DataFrame(
        {
            "datum_id": range(12_000),
            "actual": names[truth],
            "predicted": names[found],
            "site": [f"site {i % 300}" for i in range(12_000)],
        }
    )
    path = ee.score(table, by="site").to_html(tmp_path / "a.html")
    with browser.opened(path) as page:
        # Elements decide the time to open a page. One per cell of 1,200 x 1,200 would take
        # minutes; the page has 10,196.
        assert 1_200 < page.evaluate("document.querySelectorAll('*').length") < 12_000
        for width in (400, 1000, 1600):
            page.resize(width)
            assert page.evaluate(CHECKS) == []


BAD = [
    ("no language", GOOD.replace(' lang="en"', "") % ""),
    ("not one h1", GOOD % "<h1>b</h1>"),
    ("a level of headings is left out", GOOD % "<h3>b</h3>"),
    ("a table without caption", GOOD % "<table><thead><tr><th scope=col>x</table>"),
    ("a header without scope", GOOD % "<table><caption>c</caption><thead><tr><th>x</table>"),
    ("no title", (GOOD % "").replace("<title>t</title>", "")),
    ("a table without header", GOOD % "<table><caption>c<tbody><tr><td>x</table>"),
    (
        "a row of other length",
        GOOD % "<table><caption>c<thead><tr><th scope=col>x<tbody><tr><td>1<td>2</table>",
    ),
    ("a picture without title", GOOD % "<svg width=5 height=5></svg>"),
    ("a picture without alt", GOOD % '<img src="data:,">'),
    ("a field without label", GOOD % "<input>"),
    ("nothing to press by name", GOOD % "<button></button>"),
    ("a link to nowhere", GOOD % '<a href="#x">x</a>'),
    ("an id twice", GOOD % "<p id=a>a<p id=a>b"),
    ("named by nothing", GOOD % "<section aria-labelledby=x>a</section>"),
    ("contrast", GOOD % '<p style="color:#999;background:#fff">grey'),
    ("contrast", GOOD % '<p style="opacity:.5">pale'),
    ("contrast", GOOD % '<div style="background:#000"><p style="background:#fff8;color:#fff">a'),
    ("contrast", GOOD % '<p style="background:linear-gradient(#333, #333) 0 / 10%">on a bar'),
    (
        "contrast",
        GOOD % '<svg role="img"><title>t</title><rect width="99" height="99" fill="#222"/>'
        '<text x="9" y="50">in a cell</text></svg>',
    ),
    ("a link to the network", GOOD % '<link rel="dns-prefetch" href="//a.invalid">'),
    ("a link to the network", GOOD % '<link rel="preconnect" href="//a.invalid">'),
    ("wider than the window", GOOD % '<div style="width:3000px">a</div>'),
    (
        "cut without a sign",
        GOOD % '<div class="scroll" style="overflow-x:auto"><p style="width:3000px">a</p></div>',
    ),
]


def test_the_checks_detect_every_fault(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for wrong, html in (("", GOOD % "<p>fine"), *BAD):
        path.write_text(html, encoding="utf-8")
        with browser.opened(path) as page:
            faults = page.evaluate(CHECKS)
        if not wrong:
            assert faults == []
        assert all(wrong in one for one in faults[:1]), (wrong, faults)
        assert bool(faults) == bool(wrong), wrong


OUTWARD = """<img src="http://a.invalid/x.png" alt="x"><script src="https://b.invalid/x.js"></script>
<style>@import "http://c.invalid/x.css";</style><link rel="prefetch" href="http://d.invalid/x">
<iframe srcdoc="<img src='http://f.invalid/x.png'>"></iframe>
<script>fetch("http://e.invalid/").catch(() => {}); new WebSocket("ws://g.invalid/");
navigator.sendBeacon("http://h.invalid/", "");
new Worker(URL.createObjectURL(new Blob(["fetch('http://i.invalid/')"])));
alert("said"); console.error("loud"); nothing();</script>"""


def test_requests_errors_and_dialogs_are_detected(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(GOOD % OUTWARD, encoding="utf-8")
    with browser.opened(path) as page:
        until = time.monotonic() + 10
        asked: set[str] = set()
        while asked != {*"abcdefghi"} and time.monotonic() < until:
            asked = set(re.findall(r"\b(.)\.invalid", " ".join(page.requests)))
        assert asked == {*"abcdefghi"}
        # The proxy sees the same requests as the browser's events.
        assert set(re.findall(r"\b(.)\.invalid", " ".join(browser.proxy.asked))) == asked
        assert any("nothing is not defined" in one or "Uncaught" in one for one in page.errors)
        assert any("loud" in one for one in page.errors)
        assert page.dialogs == ["said"]


def test_pages_of_runs_over_time_are_accessible(browser: Chromium, tmp_path: Path) -> None:
    card = base()
    for night in range(6):
        write_night(tmp_path / "runs", card, night, status=("passed", "failed")[night % 2])
    path = ee.report(tmp_path / "runs", tmp_path / "nights.html")
    with browser.opened(path) as page:
        check_page(page)
