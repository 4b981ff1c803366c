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


@pytest.mark.parametrize(("step", "code"), [(1, "labels_one_off"), (5, "labels_apart")])
def test_numbers_of_labels_beyond_int64(step: int, code: str) -> None:
    low = pl.int_range(40, eager=True) * 100.0
    corners = {"xmin": low, "ymin": low, "xmax": low + 50, "ymax": low + 50}
    numbers = [2**63 + i % 10 for i in range(40)]
    moved = [one + 1 if step == 1 else 2**63 + (one + step) % 10 for one in numbers]
    truth = pl.DataFrame({"datum_id": low, "label_value": pl.Series(moved, dtype=pl.UInt64)})
    truth = truth.with_columns(pl.col("datum_id").cast(pl.Int64), **corners)
    found = truth.with_columns(label_value=pl.Series(numbers, dtype=pl.UInt64), score=0.9)
    assert code in [one.code for one in ee.score(found, truth).findings]
