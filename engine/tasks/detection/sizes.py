"""Heights and widths of images: as declared, else those of their masks, which must all agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import count_of
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tally.datums import Datums
from ..image_sizes import declared_sizes
from .geometry import BOX, OBB, POLYGON, WORDS
from .shapes import Drawn

Array = np.ndarray[Any, Any]
_SHOWN = 3


def image_sizes(
    frames: Frames, datums: Datums, drawn: tuple[Drawn, Drawn], codes: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Height and width of every datum, int64 [n_datums] each; 0 where nothing tells them.

    Args:
        frames: the tables; ``datums`` may declare height and width.
        datums: the datums.
        drawn: both sides' masks.
        codes: both sides' datum codes, int32 [n].

    Raises:
        InputError: masks of one datum differ in size, or from the declared size, or a datum of
            which something is to be rasterised has no size.
    """
    height, width = declared_sizes(frames, datums).T.copy()
    told = height > 0
    for side, of_rows in zip(drawn, codes, strict=True):
        masks, datum = side.masks, of_rows[side.rows]
        if not datum.size:
            continue
        fresh = ~told[datum]
        height[datum[fresh]], width[datum[fresh]] = masks.height[fresh], masks.width[fresh]
        told[datum] = True
        wrong = np.flatnonzero((masks.height != height[datum]) | (masks.width != width[datum]))
        if wrong.size:
            raise InputError(_different(side, wrong, datum, height, width))
    for side, of_rows in zip(drawn, codes, strict=True):
        rows = side.to_draw()
        unknown = rows[~told[of_rows[rows]]]
        if unknown.size:
            raise InputError(_unknown(side, unknown))
    return height, width


def _different(side: Drawn, wrong: Array, datum: Array, height: Array, width: Array) -> str:
    masks = side.masks
    shown = [
        f"{side.objects.origin.told(int(side.rows[i]))} is {masks.height[i]} x"
        f" {masks.width[i]}, its image {height[datum[i]]} x {width[datum[i]]}"
        for i in wrong[:_SHOWN]
    ]
    return (
        f"{side.objects.side.replace('_', ' ')}: {count_of(wrong.size, 'mask')} whose size (height"
        f" x width) is not that of the image, or of other masks on it, first (rows count from 0):"
        f" {'; '.join(shown)}. Masks of a datum must have one size: bring them to it, or write"
        f" {option('convert_to', 'polygon')}."
    )


def _unknown(side: Drawn, rows: Array) -> str:
    kinds = side.objects.kind[rows]
    what = [
        count_of(n, *WORDS[kind])
        for kind in (POLYGON, OBB, BOX)
        if (n := int((kinds == kind).sum()))
    ]
    shown = [side.objects.origin.told(row) for row in rows[:_SHOWN].tolist()]
    return (
        f"{side.objects.side.replace('_', ' ')}: {' and '.join(what)} to be drawn as masks on"
        f" images of unknown size, first (rows count from 0): {'; '.join(shown)}. Give columns"
        f" height and width in {option('datums')}, or write {option('convert_to', 'polygon')} or"
        f" {option('iou_type', 'bbox')}."
    )
