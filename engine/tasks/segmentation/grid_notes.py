"""Notes on predicted label maps that were brought onto another grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...ingest.problems import Note, note_of
from ...schemas.wording import option
from ..pixels.histograms import NOTHING, Pairs
from .units import Units

Array = np.ndarray[Any, Any]


def resampling_notes(resampled: Array, counted: Pairs, units: Units, ids: pl.Series) -> list[Note]:
    """That maps were resampled, and which of them reach no pixel of their ground truth.

    Such a map is no error, since a prediction may cover less ground than the truth, but nothing of
    it is compared: the datum is scored as one without a prediction, and nobody would see why.

    Args:
        resampled: int64 [m], units whose predicted map was brought onto another grid.
        counted: pixels by pairs of indices, by unit.
        units: what is compared.
        ids: the ids that datum codes stand for.
    """
    if not resampled.size:
        return []
    reached = np.zeros(units.datum.size, bool)
    reached[counted.place[counted.found != NOTHING]] = True
    said = {
        "resampled": (
            resampled,
            "with a predicted raster of another grid, of which the nearest pixels are compared"
            f" ({option('resample', True)})",
        ),
        "no_overlap": (
            resampled[~reached[resampled]],
            "whose predicted raster does not overlap the ground truth's, so that nothing counts as"
            " predicted there",
        ),
    }
    notes = []
    for kind, (unit, what) in said.items():
        datum = np.unique(units.datum[unit])
        if datum.size:
            lowest = ids.gather(datum).sort().head(5).to_list()
            notes.append(note_of(kind, datum.size, ("datum", "datums", what), lowest))
    return notes
