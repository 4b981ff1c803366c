"""HTML of a scorecard in a notebook."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import polars as pl
from report.test_page import ODD, TABLES, tables

import evalengine as ee


def image_titles(html: str) -> list[str]:
    """Return the titles of images, which must be valid XML."""
    images = re.findall(r"<svg.*?</svg>", html, re.S)
    title = "{http://www.w3.org/2000/svg}title"
    return [str(ElementTree.fromstring(one).findtext(title)) for one in images]


def test_a_curve_and_the_confusion_matrix() -> None:
    html = ee.score(*tables("detection"))._repr_html_()
    assert [title.split(",")[0] for title in image_titles(html)] == [
        "Precision and recall",
        "Confusion",
    ]
    assert "0.7432" in html
    assert "bus" in html


def test_every_task_has_an_image() -> None:
    for task in TABLES:
        assert image_titles(ee.score(*tables(task))._repr_html_()), task


def test_a_run_without_curves_has_tables() -> None:
    html = ee.score(*tables("detection"), metrics="AR")._repr_html_()
    assert "<table>" in html


def test_names_are_escaped() -> None:
    table = pl.DataFrame({"datum_id": [1, 2], "actual": [ODD, "b"], "predicted": ["b", ODD]})
    html = ee.score(table)._repr_html_()
    assert ODD not in html
    assert "<script" not in html
