"""Values of pixels that are coded otherwise than by index become indices of labels."""

from __future__ import annotations

import numpy as np

from ...ingest.label_map_sets import UNKNOWN, VOID, is_coloured, numbers_of
from ...ingest.problems import count_of
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.wording import option
from ..pixels.histograms import NOTHING
from ..pixels.sides import Side
from .naming import Names

IGNORED = NOTHING + 1
"""Index of ground-truth pixels that count nowhere, as their coding has it."""


def decoded(
    side: Side, row: Array, index: Array, pixels: Array, names: Names | None, step: int
) -> Array:
    """Return label indices for the values in files; void is ``IGNORED`` or ``NOTHING``.

    Args:
        row: int64 [n], row of the side for each value.
        index: int64 [n], the values.
        pixels: int64 [n], pixels with each value, for messages.
        names: labels, for their colours.
        step: added to indices of predictions.

    Raises:
        InputError: a value without meaning, with its count and first datum.
    """
    if step and side.role == PREDICTIONS:
        index = np.where(index == NOTHING, NOTHING, index + step)
    if "raster_coding" not in side.frame.columns:
        return index
    void = IGNORED if side.role == GROUND_TRUTHS else NOTHING
    codings = np.array(side.codings())
    out = index.copy()
    for coding in sorted({*codings.tolist()} - {""}):
        here = np.flatnonzero((codings == coding)[row] & (index != NOTHING))
        numbers = numbers_of(coding, index[here], {} if names is None else names.colours)
        wrong = here[numbers == UNKNOWN]
        if wrong.size:
            raise _meaningless(side, coding, row[wrong], index[wrong], pixels[wrong])
        out[here] = np.where(numbers == VOID, void, numbers)
    return out


def _meaningless(side: Side, coding: str, row: Array, index: Array, pixels: Array) -> InputError:
    """Return the error that values have no label, which ones, and where the first is."""
    most = np.unique(index)
    shown = ", ".join(_told(coding, int(one)) for one in most[:3])
    more = f" and {most.size - 3:,} more" if most.size > 3 else ""
    what = "colour" if is_coloured(coding) else "value"
    way = (
        "Were the files resized with interpolation, or saved as JPEG? Else say which colour is"
        f" which label: {option('labels')} with a table of label_value and color."
        if is_coloured(coding)
        else f"Say which index is which label: {option('labels')}."
    )
    return InputError(
        f"{side.called}: {count_of(most.size, what)} without a label in {coding}: {shown}{more},"
        f" {count_of(int(pixels.sum()), 'pixel')} in"
        f" {count_of(np.unique(side.datum[row]).size, 'datum')}, first"
        f" {side.numbered(int(row.min()))}. {way}",
        code="values_unlabelled",
        side=side.role,
        coding=coding,
        count=most.size,
        pixels=int(pixels.sum()),
    )


def _told(coding: str, value: int) -> str:
    if not is_coloured(coding):
        return str(value)
    return f"({value & 255}, {value >> 8 & 255}, {value >> 16})"
