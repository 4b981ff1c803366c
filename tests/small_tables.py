"""Small valid tables for tests of readers and checks, and functions that break them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from loading import load_frames
from refusals import Refusal

from evalengine.ingest.frames import Frames
from evalengine.schemas.errors import EvalengineError
from evalengine.schemas.options import Options

CORNERS = ["xmin", "ymin", "xmax", "ymax"]


def predictions(**columns: Any) -> pl.DataFrame:
    """Return three predictions on two images; given columns replace or extend them."""
    return _table({"score": [0.9, 0.8, 0.7]}, columns)


def ground_truths(**columns: Any) -> pl.DataFrame:
    """Return three ground truths on the same images; given columns replace or extend them."""
    return _table({}, columns)


def _table(more: dict[str, Any], columns: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "datum_id": [1, 1, 2],
        "label_value": ["cat", "dog", "cat"],
        **more,
        "xmin": [0.0, 10.0, 20.0],
        "ymin": [1.0, 11.0, 21.0],
        "xmax": [5.0, 15.0, 25.0],
        "ymax": [7.0, 17.0, 27.0],
    }
    return pl.DataFrame({**plain, **columns})


def load(
    ours: Any = None, theirs: Any = None, *, datums: Any = None, labels: Any = None, **options: Any
) -> Frames:
    """Load the small tables, or given ones, as checked frames."""
    return load_frames(
        predictions() if ours is None else ours,
        ground_truths() if theirs is None else theirs,
        datums=datums,
        labels=labels,
        options=Options(**options),
        task="detection",
    )


def refusal(
    ours: Any = None, theirs: Any = None, *, datums: Any = None, labels: Any = None, **options: Any
) -> Refusal:
    """Return the message of the error that the tables raise."""
    with pytest.raises(EvalengineError) as caught:
        load(ours, theirs, datums=datums, labels=labels, **options)
    return Refusal(caught.value)


def note(frames: Frames, kind: str) -> str:
    """Return the message of the only note of a kind."""
    found = [note.message for note in frames.notes if note.kind == kind]
    assert len(found) == 1, [note.kind for note in frames.notes]
    return found[0]


def counted(frames: Frames, kind: str) -> tuple[int | None, list[Any]]:
    """Return the count of the only note of a kind, and the ids it names."""
    (found,) = [note for note in frames.notes if note.kind == kind]
    return found.count, list(found.lowest)


def kinds(frames: Frames) -> set[str]:
    """Return the kinds of all notes."""
    return {note.kind for note in frames.notes}
