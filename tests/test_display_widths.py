"""Tables of real runs at every width: complete values, fitting lines, reported columns."""

from __future__ import annotations

import functools
import io
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console, RenderableType

import evalengine as ee
from evalengine.report.show import folded, render, show
from evalengine.report.summary import Section, cells, sections, supported
from evalengine.report.svg import _cut, _wide
from evalengine.report.tables import Grid
from evalengine.report.text import number, shorten_distinctly, shortened
from evalengine.scorecard.card import Scorecard

EXAMPLES = Path(__file__).parent.parent / "examples"
WIDTHS = [*range(20, 90, 3), 56, 80, *range(90, 251, 16)]
_MOST = ["mAP", "AP", "mAR", "F1", "Counts", "ConfusionMatrix"]
CARDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "detection": (
        ("detection/predictions", "detection/groundtruths"),
        {"datums": EXAMPLES / "detection/datums.parquet", "by": "weather", "metrics": _MOST},
    ),
    "coco": (("detection/predictions", "detection/groundtruths"), {"dialect": "coco"}),
    "classification": (
        ("classification/predictions", "classification/groundtruths"),
        {"by": "source"},
    ),
    "binary": (
        ("classification/urgent",),
        {"metrics": ["ROCAUC", "ThresholdAtMaxF", "Reliability", "Counts"], "by": "source"},
    ),
    "retrieval": (("retrieval/run", "retrieval/qrels"), {"by": "kind"}),
    "contexts": (("retrieval/contexts",), {}),
    "segmentation": (
        ("segmentation/predicted", "segmentation/truth"),
        {"labels": EXAMPLES / "segmentation/labels.parquet", "ignore_index": 0},
    ),
    "text": (("text/answers",), {"by": "subject"}),
    "judged": (("judged/verdicts",), {}),
}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[-+]\d+)?")


@functools.cache
def card(name: str) -> Scorecard:
    tables, options = CARDS[name]
    found = [EXAMPLES / f"{table}.parquet" for table in tables]
    if name == "segmentation":  # its table names files by paths from the project's folder
        import os

        here = Path.cwd()
        os.chdir(EXAMPLES.parent)
        try:
            made = ee.score(*found, **options)
            made.make()
            return made
        finally:
            os.chdir(here)
    return ee.score(*found, **options)


@functools.cache
def rendered(scorecard: Scorecard) -> RenderableType:
    return render(scorecard)


@functools.cache
def at_width(scorecard: Scorecard, width: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    console.print(rendered(scorecard))
    return out.getvalue()


@functools.cache
def parts(scorecard: Scorecard) -> list[Section]:
    return sections(scorecard)


@functools.cache
def grids(scorecard: Scorecard) -> list[Grid]:
    return [
        grid
        for section in parts(scorecard)
        for grid in (*section.tables, section.labels, *section.slices)
        if grid is not None
    ]


def formatted_values(scorecard: Scorecard) -> set[str]:
    """Return every value that a table may show, as it may be formatted."""
    found: set[str] = set()
    for section in parts(scorecard):
        for line in section.headline:
            found |= {number(line.value), repr(line.value)}
    for grid in grids(scorecard):
        for row in grid.rows:
            found |= {*cells(grid, row), *supported(row).split()}
    return found


@pytest.mark.parametrize("name", CARDS)
def test_every_line_fits_and_every_value_is_complete(name: str) -> None:
    made = card(name)
    # Numbers in names, titles and notes are complete if the widest page has them as well.
    whole = formatted_values(made) | set(NUMBER.findall(at_width(made, 1000)))
    for width in WIDTHS:
        text = at_width(made, width)
        assert max(map(len, text.splitlines())) <= width, width
        found = set(NUMBER.findall(re.sub(r"and\s+\d+\s+more", "", text)))
        assert found <= whole, (width, found - whole)
        lines = [line.split() for line in text.splitlines()]
        for section in parts(made):
            for line in section.headline:
                assert any(number(line.value) in words for words in lines), (width, line.title)


@pytest.mark.parametrize("name", CARDS)
def test_a_column_is_shown_with_all_its_rows_or_is_counted(name: str) -> None:
    made = card(name)
    for width in WIDTHS:
        text = at_width(made, width)
        said = sum(int(n) for n in re.findall(r"and\s+(\d+)\s+more\s+columns?", text))
        lines = [line.split() for line in text.splitlines()]
        total = sum(len(grid.columns) + grid.hidden for grid in grids(made))
        shown = 0
        for grid in grids(made):
            first = grid.rows[0]
            numbers = [word for cell in cells(grid, first) for word in cell.split()]
            most = max(_prefix(words, numbers, supported(first).split()) for words in lines)
            shown += most
        assert shown + said >= total, width


def _prefix(words: list[str], numbers: list[str], support: list[str]) -> int:
    """Return how many of the values are at the end of a line, before its support."""
    for ends in (support, []):
        kept = words[: len(words) - len(ends)] if ends and words[-len(ends) :] == ends else words
        for n in range(len(numbers), 0, -1):
            if kept[-n:] == numbers[:n]:
                return n
    return 0


@pytest.mark.parametrize("name", CARDS)
def test_markdown_and_html_shorten_nothing(name: str) -> None:
    made = card(name)
    out = io.StringIO()
    show(made, "markdown", out)
    words = set(re.split(r"[\s|]+", out.getvalue()))
    page = set(re.split(r"[\s<>]+", made._repr_html_()))
    for section in parts(made):
        for line in section.headline:
            assert number(line.value) in words & page
    for grid in grids(made):
        for row in grid.rows:
            assert {word for cell in cells(grid, row) for word in cell.split()} <= words


def test_a_title_is_never_broken_in_a_number() -> None:
    for title in ("RetrievalRecallAll@100", "mAP @ IoU 0.75", "F0.25 at score 0.0001", "AP50"):
        for width in range(1, 30):
            lines = folded(title, width).split("\n")
            assert "".join(lines).replace(" ", "") == title.replace(" ", "")
            numbers = re.findall(r"[\d.]*\d", title)
            assert [n for line in lines for n in re.findall(r"[\d.]*\d", line)] == numbers
            longest = max(map(len, re.findall(r"@?[\d.]*\d", title)))
            assert max(map(len, lines)) <= max(width, longest)


def test_wide_terminals_show_every_column() -> None:
    text = at_width(card("text"), 250)
    assert "more column" not in text
    assert "ROUGELsum" in text


def test_support_is_complete_next_to_long_numeric_labels() -> None:
    n = 12
    frame = pl.DataFrame({"datum_id": range(n), "label_value": [10**12 + i for i in range(n)]})
    made = ee.score(frame.with_columns(score=1.0), frame, task="classification")
    for width in WIDTHS:
        text = at_width(made, width)
        assert max(map(len, text.splitlines())) <= width
        for word in text.split():
            if word.startswith("10000") and "…" not in word:
                assert len(word) == 13


def test_long_names_that_differ_in_the_middle_are_distinguished():
    texts = [f"{'a' * 40}/kind_{kind}/{'b' * 40}" for kind in ("one", "two", "three")]
    for cut, measure in ((shortened, len), (_cut, _wide)):
        shown = shorten_distinctly([*texts, "short"], 26 * measure("a"), cut, measure)
        assert shown[-1] == "short"
        assert all("…kind_" in text for text in shown[:-1])
        assert all(measure(text) <= 26 * measure("a") for text in shown)
    assert len({*shorten_distinctly([f"{'a' * 50}{i}{'b' * 50}" for i in range(100)], 26)}) == 100
    assert shorten_distinctly(["x" * 40 + "1", "y" * 40], 8) == ["xxxxxxx…", "yyyyyyy…"]
    assert {*shorten_distinctly(["x" * 40, "x" * 41], 1)} == {"…"}  # no room for a difference
    dates = shorten_distinctly(["experiment20261101", "experiment20261102"], 12)
    assert [date[-1] for date in dates] == ["1", "2"]


def test_tables_of_long_labels_have_different_names():
    labels = [f"http://example.org/classes/v1/{kind}/label.rdf#Preferred" for kind in "ABC"]
    scored = ee.score({"actual": labels * 4, "predicted": labels * 3 + labels[::-1]})
    rows = [line.split()[0] for line in at_width(scored, 80).splitlines() if "http" in line]
    assert len({*rows}) == len(rows) == 3
    assert max(map(len, rows)) <= 26
