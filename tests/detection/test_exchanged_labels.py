"""Warnings about labels that overlap other labels more than by chance."""

from __future__ import annotations

import polars as pl
import pytest

import evalengine as ee
from evalengine.tasks.rules import renamed

VALUES = pl.Series(["a", "b", "c"])


def pairs(times: int) -> pl.DataFrame:
    """Make pairs in which each label overlaps one other label, three times in four."""
    rows = [(0, 1, 3), (1, 2, 3), (2, 0, 3), (0, 2, 1), (1, 0, 1), (2, 1, 1)]
    frame = pl.DataFrame(rows, schema=["mine", "other", "len"], orient="row")
    return frame.with_columns(pl.col("len") * times)


def test_exchanged_labels_need_more_than_chance() -> None:
    for n in (2, 3):
        assert renamed(pairs(n), VALUES, "boxes meet, but") is not None
    assert renamed(pairs(3), VALUES, "pixels meet, but", independent=False) is not None
    sure = pairs(1).filter(pl.col("len") == 3)
    assert renamed(sure, VALUES, "boxes meet, but") is not None


@pytest.mark.parametrize(("n", "warned"), [(3, False), (4, True)])
def test_labels_that_are_exchanged_in_few_boxes(n: int, warned: bool) -> None:
    """With three labels, one random set in 60 exchanges all of them."""
    low = pl.int_range(n, eager=True) * 100.0
    corners = {"xmin": low, "ymin": low, "xmax": low + 50, "ymax": low + 50}
    labels = [chr(97 + i) for i in range(n)]
    truth = pl.DataFrame({"datum_id": range(n), "label_value": labels, **corners})
    predictions = truth.with_columns(
        label_value=pl.Series(labels[1:] + labels[:1]), score=pl.lit(0.9)
    )
    codes = [one.code for one in ee.score(predictions, truth).findings if one.severity == "warning"]
    assert ("labels_apart" in codes) is warned


def test_the_suggested_map_merges_no_labels() -> None:
    """Two labels overlap the same other label most, but the map contains that label once."""
    rows = [(0, 2, 20), (1, 0, 20), (2, 0, 12), (2, 1, 9), (0, 1, 1)]
    frame = pl.DataFrame(rows, schema=["mine", "other", "len"], orient="row")
    note = renamed(frame, VALUES, "boxes overlap, but")
    assert note is not None
    assert note.facts is not None
    assert note.facts["labels"] == [["a", "c"], ["b", "a"]]
