"""Reports in a browser: no request, no error, readable by all, at every width, on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from report import chromium
from report.chromium import Chromium
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


def page_of_task(task: str, folder: Path) -> Path:
    """The page of an example, of detection with a baseline, slices and intervals."""
    path = folder / "report.html"
    if task == "detection":
        before = ee.score(*tables(task))
        return ee.score(worse(), tables(task)[1]).to_html(path, baseline=before)
    return ee.score(*tables(task), report=path) and path


@pytest.mark.parametrize("task", TABLES)
def test_a_page_asks_for_nothing_and_suits_everyone(
    browser: Chromium, task: str, tmp_path: Path
) -> None:
    path = page_of_task(task, tmp_path)
    with browser.opened(path) as page:
        assert page.requests == []
        assert page.errors == []
        for theme in ("light", "dark"):
            page.theme(theme)
            for width in (400, 1000, 1600):
                page.resize(width)
                assert page.evaluate(CHECKS) == [], (theme, width)
        printed = page.pdf()
    # On paper it stays short: long tables and what is folded are cut there, and say so.
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 16


def test_without_scripts_everything_is_there(browser: Chromium, tmp_path: Path) -> None:
    path = page_of_task("detection", tmp_path)
    with browser.opened(path) as page:
        full = page.evaluate("document.querySelector('main').innerText")
    with browser.opened(path, scripts=False) as page:
        plain = page.evaluate("document.querySelector('main').innerText")
        assert page.evaluate("getComputedStyle(document.querySelector('.js')).display") == "none"
    words = set(full.split()) - set(plain.split())
    assert words <= {"Search", "5", "rows", "Score", "threshold", "0.5"}
    assert "worse" in plain


def test_a_table_is_sorted_and_searched_by_keyboard(browser: Chromium, tmp_path: Path) -> None:
    with browser.opened(page_of_task("detection", tmp_path)) as page:
        names = (
            "[...document.querySelectorAll('#labels-0 tbody tr')].filter(r => !r.hidden)"
            ".map(r => r.cells[0].innerText)"
        )
        worst_first = page.evaluate(names)
        page.evaluate("document.querySelector('#labels-0-search').focus()")
        for _ in range(3):  # the table's region, the first header, the second
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


def test_the_slider_moves_the_counts(browser: Chromium, tmp_path: Path) -> None:
    card = ee.score(*tables("detection"))
    curve = ee.score(
        *tables("detection"), metrics="PrecisionRecallCurve", score_thresholds=[0.51]
    ).curves
    with browser.opened(card.to_html(tmp_path / "a.html")) as page:
        page.evaluate("document.querySelector('#threshold').focus()")
        page.press("ArrowRight")
        assert page.evaluate("document.querySelector('#threshold-value').value") == "0.51"
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


def test_a_large_page_opens_within_a_second(browser: Chromium, tmp_path: Path) -> None:
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
        # Of the page alone, without the browser's start: the navigation's own clock.
        took = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        assert took < 1000
        page.resize(400)
        assert page.evaluate(CHECKS) == []


BAD = {
    "no language": GOOD.replace(' lang="en"', "") % "",
    "not one h1": GOOD % "<h1>b</h1>",
    "a level of headings is left out": GOOD % "<h3>b</h3>",
    "a table without caption": GOOD % "<table><thead><tr><th scope=col>x</table>",
    "a header without scope": GOOD % "<table><caption>c</caption><thead><tr><th>x</table>",
    "a row of other length": GOOD
    % "<table><caption>c<thead><tr><th scope=col>x<tbody><tr><td>1<td>2</table>",
    "a picture without title": GOOD % "<svg width=5 height=5></svg>",
    "a picture without alt": GOOD % '<img src="data:,">',
    "a field without label": GOOD % "<input>",
    "nothing to press by name": GOOD % "<button></button>",
    "a link to nowhere": GOOD % '<a href="#x">x</a>',
    "an id twice": GOOD % "<p id=a>a<p id=a>b",
    "named by nothing": GOOD % "<section aria-labelledby=x>a</section>",
    "contrast": GOOD % '<p style="color:#999;background:#fff">grey',
    "wider than the window": GOOD % '<div style="width:3000px">a</div>',
}


def test_the_checks_see_what_they_look_for(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for wrong, html in {"": GOOD % "<p>fine", **BAD}.items():
        path.write_text(html, encoding="utf-8")
        with browser.opened(path) as page:
            found = page.evaluate(CHECKS)
        if not wrong:
            assert found == []
        assert all(wrong in one for one in found[:1]), (wrong, found)
        assert bool(found) == bool(wrong), wrong


def test_requests_errors_and_dialogs_are_seen(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        GOOD
        % """<img src="http://a.invalid/x.png" alt="x"><script src="https://b.invalid/x.js"></script>
        <style>@import "http://c.invalid/x.css";</style><link rel="prefetch" href="http://d.invalid/x">
        <script>fetch("http://e.invalid/").catch(() => {}); alert("said"); nothing();</script>""",
        encoding="utf-8",
    )
    with browser.opened(path) as page:
        asked = {re.sub(r"^https?://(.)\.invalid.*", r"\1", url) for url in page.requests}
        assert asked == {*"abcde"}
        assert page.errors
        assert page.dialogs == ["said"]
