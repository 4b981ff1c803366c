"""Tables read in batches beside the same tables read whole; counts beside plain comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine import api

Array = np.ndarray[Any, Any]

THRESHOLDS = np.array([-1.0, 0.0, 0.25, 0.75])
"""Among the scores that the property tests of counts draw."""


def saved(folder: Path, *, rows: int = 1000, **tables: pl.DataFrame) -> list[Path]:
    """Every table as a Parquet file of its name, of so many rows a row group."""
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.parquet")
        table.write_parquet(paths[-1], row_group_size=rows)
    return paths


def told(paths: list[Path], **options: Any) -> dict[str, Any]:
    """All that a scorecard says but how long it took, or the error."""
    try:
        card = ee.score(*paths, **options)
    except ee.InputError as error:
        return {"error": str(error), "kind": type(error)}
    run = {name: value for name, value in card.run.items() if name != "seconds"}
    frames = {name: card.frame(name) for name in card.frames}
    return {"run": run, "notes": card.notes, "labels": card.labels, **frames}


@contextmanager
def read_whole(monkeypatch: pytest.MonkeyPatch, module: Any) -> Iterator[None]:
    """No table is large enough for the batches of this module."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "_LARGE", 1 << 60)
        yield


@contextmanager
def read_in_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A failure where tables are read whole."""

    def never(*given: Any) -> Any:
        raise AssertionError("the tables were read whole")

    with monkeypatch.context() as patch:
        patch.setattr(api, "checked_frames", never)
        yield


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What two runs told is equal, frames in their types too."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, pl.DataFrame):
            assert value.equals(other[name]), name
            assert value.schema == other[name].schema, name
        else:
            assert value == other[name], name


def assert_same_either_way(
    monkeypatch: pytest.MonkeyPatch, module: Any, paths: list[Path], **options: Any
) -> None:
    """In batches and whole the same is told, and no error."""
    with read_in_batches(monkeypatch):
        found = told(paths, **options)
    with read_whole(monkeypatch, module):
        expected = told(paths, **options)
    assert "error" not in expected, expected
    same(found, expected)


def assert_counts(counts: Any, table: Array, label: Array, outcome: Array) -> None:
    """Wins, rows at thresholds and rows listed of every label are those of plain comparisons.

    Args:
        counts: of rows in a grid; its only slice is taken.
        table: (units, labels) scores.
        label: (labels,) the code of each column.
        outcome: (units, labels) whether a row's label is the true one.
    """
    won = counts.won()
    for thresholds in (THRESHOLDS, np.array([0.0, 1.0])):
        hits, others, strays = counts.reached(thresholds)
        assert not strays.any()
        for column, code in enumerate(label.tolist()):
            own, right = table[:, column], outcome[:, column] == 1
            positive, negative = own[right][:, None], own[~right]
            assert won[0, code] == (positive > negative).sum() + (positive == negative).sum() / 2
            reach = own[:, None] >= thresholds
            assert hits[0, code].tolist() == reach[right].sum(axis=0).tolist()
            assert others[0, code].tolist() == reach[~right].sum(axis=0).tolist()
            assert [part[0, code] for part in counts.listed] == [right.sum(), (~right).sum(), 0]
