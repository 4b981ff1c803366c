"""Two COCO files with images and categories of their own: ids that contradict are matched by name.

Tools that export predictions as a whole COCO file number images and categories anew. An id then
means one thing here and another there, while file names and category names still agree.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import InputError

from .source import Source

_SHOWN = 3


def renumbered(predictions: Source, truths: Source) -> Source:
    """The predictions with the ids that the ground truths have for the same names.

    Args:
        predictions: read from a COCO file; returned as it is where it brought no names along, or
            its ids mean what the ground truths' mean.
        truths: the ground truths, with the names of their images or categories.

    Raises:
        InputError: ids contradict, and names do not tell which is which.
    """
    both = ("categories", "label_value", "label_name", predictions.labels, truths.labels)
    images = ("images", "datum_id", "file_name", predictions.datums, truths.datums)
    frame, notes = predictions.frame, list(predictions.notes)
    for what, column, name, ours, theirs in (both, images):
        if ours is None or theirs is None:
            continue
        if name not in ours.columns or name not in theirs.columns:
            continue
        here, there = _named(ours, column, name), _named(theirs, column, name)
        if what == "images" and not {*here.values()} & {*there.values()}:
            here, there = (
                {i: os.path.basename(path) for i, path in one.items()} for one in (here, there)
            )
        wrong = _contradictions(here, there)
        if not wrong:
            continue
        if ours.schema[column] != theirs.schema[column]:
            raise _unclear(what, wrong, "ids are integers in one file and strings in the other")
        new = _new_ids(here, there, what, wrong)
        frame = frame.with_columns(pl.col(column).replace([*new], [*new.values()]))
        notes.append(
            (
                "ids_matched_by_name",
                f"{_said(what, wrong)} They are matched by {_BY[what]}.",
                len(wrong),
            )
        )
    return msgspec.structs.replace(predictions, frame=frame, notes=tuple(notes))


_BY = {"categories": "name", "images": "file_name"}
Wrong = list[tuple[Any, str, Any, str]]
"""Id and name in the predictions, id and name in the ground truths of what contradicts it."""


def _named(table: pl.DataFrame, column: str, name: str) -> dict[Any, str]:
    """Id to name."""
    return dict(table.select(column, name).drop_nulls().iter_rows())


def _contradictions(here: dict[Any, str], there: dict[Any, str]) -> Wrong:
    """Ids with another name in the ground truths, and names with another id."""
    ids = {name: i for i, name in there.items()}
    found: Wrong = []
    for i, name in here.items():
        if there.get(i, name) != name:
            found.append((i, name, i, there[i]))
        elif i not in there and name in ids:
            found.append((i, name, ids[name], name))
    return found


def _said(what: str, wrong: Wrong) -> str:
    shown = "; ".join(
        f"{mine!r} ({name!r}) in the predictions, {other!r} ({known!r}) in the ground truths"
        for mine, name, other, known in wrong[:_SHOWN]
    )
    return f"{len(wrong):,} ids of {what} differ between the two files by their names: {shown}."


def _unclear(what: str, wrong: Wrong, why: str) -> InputError:
    return InputError(
        f"{_said(what, wrong)} They cannot be matched by {_BY[what]}: {why}. Number both files"
        " alike."
    )


def _new_ids(
    here: dict[Any, str], there: dict[Any, str], what: str, wrong: Wrong
) -> dict[Any, Any]:
    """Ids of the predictions to those of the ground truths."""
    ids = {name: i for i, name in there.items()}
    if len(ids) < len(there) or len({*here.values()}) < len(here):
        raise _unclear(what, wrong, f"some {_BY[what]} stands more than once")
    taken = [(i, name) for i, name in here.items() if name not in ids and i in there]
    if taken:
        i, name = taken[0]
        raise _unclear(
            what, wrong, f"{name!r} is only in the predictions, and its id {i!r} another's"
        )
    return {i: ids.get(name, i) for i, name in here.items()}
