"""Every figure in the summary of the benchmarks is on one of its pages."""

from __future__ import annotations

import importlib
import re
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SUMMARY = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
ROWS = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+) \|$", SUMMARY.partition("\n- **")[0], re.M)


def anchor(heading: str) -> str:
    """Return the anchor that the site makes of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def tables(link: str) -> list[list[list[str]]]:
    """Return rows of cells of the tables in the section that a link leads to."""
    page, _, part = link.partition("#")
    sections = re.split(r"^## ", (ROOT / "docs" / page).read_text("utf-8"), flags=re.M)
    [text] = [text for text in sections[1:] if not part or anchor(text.partition("\n")[0]) == part]
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.M)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in blocks
    ]


def quotients(link: str, column: str) -> set[str]:
    """Return evalengine's figure divided by a peer's, for every column whose heading begins so."""
    found = set[str]()
    for header, _, *rows in tables(link):
        for place, name in enumerate(header):
            if not name.lower().startswith(column) or not name:
                continue
            ours, theirs = (
                [
                    float(row[place])
                    for row in rows
                    if ("evalengine" in row[0]) is own and row[place]
                ]
                for own in (True, False)
            )
            found |= {f"{a / b:.2f}" for a, b in product(ours, theirs)}
    return found


def extremes(cell: str) -> tuple[float, float]:
    """Return the lowest and the highest figure of a cell."""
    low, _, high = cell.partition(" to ")
    return float(low), float(high or low)


@pytest.mark.parametrize(("work", "link", "rest"), ROWS, ids=[row[0] for row in ROWS])
def test_figures_of_the_summary_are_those_of_the_pages(work: str, link: str, rest: str) -> None:
    door, _, theirs, ours, *ratios = (cell.strip() for cell in f"{rest} ".split("|"))
    assert door, work
    assert len(ratios) == 3
    cells = {cell for table in tables(link) for row in table for cell in row}
    assert {theirs, ours} <= cells, work
    inside, whole, memory = (ratio.strip("*") for ratio in ratios)
    low, high = extremes(inside or whole)
    assert low >= extremes(ours)[0] / extremes(theirs)[1] - 0.006
    assert high <= extremes(ours)[1] / extremes(theirs)[0] + 0.006
    for said in ratios:
        assert not said or said.startswith("**") == (extremes(said.strip("*"))[1] > 1), work
    if inside and whole:
        assert whole in cells | quotients(link, "whole"), work
    if memory:
        assert memory in cells | quotients(link, "peak"), work


def test_the_summary_has_rows() -> None:
    assert len(ROWS) > 30


def test_a_section_takes_the_place_of_its_predecessor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    write = importlib.import_module("reporting").write_docs
    page = tmp_path / "one.md"
    page.write_text("# One\n<!-- benchmark a: begin -->\nold\n<!-- benchmark a: end -->\nend\n")
    write("a", "new", tmp_path)
    write("b", "other", tmp_path)
    assert page.read_text() == (
        "# One\n<!-- benchmark a: begin -->\nnew\n<!-- benchmark a: end -->\nend\n"
    )
    assert "\nother\n" in (tmp_path / "b.md").read_text()
