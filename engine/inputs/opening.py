"""Every table of a run opened once: sources by role, and the columns they have."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from evalengine.readers.source import Source
from evalengine.readers.tables import open_source, schema_of
from evalengine.schemas.options import Options
from evalengine.schemas.tables import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE

from .lists import open_datums, open_labels


class Inputs(msgspec.Struct):
    """Tables whose columns are known and whose rows are not read yet.

    Attributes:
        sources: role to source: predictions and ground truths, or one table with both sides;
            datums and labels where given or along with the ground truths.
        schemas: role to own columns.
    """

    sources: dict[str, Source]
    schemas: dict[str, dict[str, pl.DataType]]


def open_inputs(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | None = None,
    storage_options: dict[str, str] | None = None,
) -> Inputs:
    """Open every table that is there.

    Args:
        predictions: path, glob, list of paths, or table; of both sides if it is the only one.
        ground_truths: the same; a COCO ground-truth file brings datums and labels along.
        datums: table or list of all datum ids.
        labels: table or list of declared labels.
        options: box_format is used here.
        storage_options: for remote paths, as Polars takes them.

    Raises:
        ReadError: a file that is missing or cannot be read.
        InputError: something that is no table.
    """
    options = options or Options()
    given = {PREDICTIONS: predictions, GROUND_TRUTHS: ground_truths}
    if ground_truths is None:
        given = {TABLE: predictions}
    sources = {
        role: open_source(thing, storage_options=storage_options, box_format=options.box_format)
        for role, thing in given.items()
    }
    truths = sources[next(reversed(given))]
    for role, thing, along, opener in (
        (DATUMS, datums, truths.datums, open_datums),
        (LABELS, labels, truths.labels, open_labels),
    ):
        if thing is not None:
            sources[role] = opener(thing, storage_options)
        elif along is not None:
            sources[role] = Source(along.lazy(), truths.description, truths.format)
    return Inputs(sources, {role: schema_of(source) for role, source in sources.items()})
