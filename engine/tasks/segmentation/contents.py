"""What single images hold: pixels of every label that are wrong, and where."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ..contents import LABELS, Content, LabelPixels, PixelsWrong, called, copied
from ..encoding import dataset_of, encode_datums, taken
from ..outlines import of_pixels
from ..pixels.maps import Pair, opened_pair
from ..pixels.rasters import quiet, windows_of
from ..pixels.sides import side_of
from .settings import Settings
from .tallies import Tallies
from .units import Units

_MOST = 1 << 26  # pixels of an image whose wrong ones are outlined
_CELLS, _POINTS = 128, 1_000


def contents(tallies: Tallies, settings: Settings, codes: np.ndarray[Any, Any]) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`."""
    areas, labels = tallies.pixels.areas, tallies.labels
    rows = np.flatnonzero(np.isin(areas.datum, codes))
    wrong = areas.truth[rows] + areas.found[rows] - 2 * areas.right[rows]
    rows = rows[np.lexsort((areas.label[rows], -wrong))]
    out: list[Content] = []
    for code in codes.tolist():
        own = rows[areas.datum[rows] == code]
        shown = []
        for at in own[:LABELS].tolist():
            label = int(areas.label[at])
            truth, found, right = (
                int(column[at]) for column in (areas.truth, areas.found, areas.right)
            )
            union = truth + found - right
            shown.append(
                LabelPixels(
                    key=labels.key_names[labels.key[label]],
                    label=called(labels.frame, label),
                    truth=truth,
                    missed=truth - right,
                    false=found - right,
                    iou=right / union if union else None,
                )
            )
        out.append(PixelsWrong(labels=tuple(shown), left_out=max(0, own.size - LABELS)))
    return out


def with_regions(
    frames: Frames, settings: Settings, ids: list[str], found: list[Content | None]
) -> list[Content | None]:
    """See :attr:`..contents.Contents.completed`: regions of wrong pixels of label maps.

    Of masks of single labels, and where labels are mapped, there are none: indices alone do not
    say there what is wrong.
    """
    roles = (GROUND_TRUTHS, PREDICTIONS)
    few = copied(frames)
    dataset = dataset_of(few)
    columns = [taken(few.sides[role], "datum_id") for role in roles]
    datums, coded = encode_datums(columns, few, dataset, roles)
    sides = [side_of(few, role, code, datums.id) for role, code in zip(roles, coded, strict=True)]
    if any(side.layered for side in sides) or frames.label_map is not None:
        return found
    units = Units.among(sides)
    pairs: list[list[Any]] = [[None, None] for _ in range(units.datum.size)]
    for place, side in enumerate(sides):
        for unit, one in zip(units.of(side).tolist(), side.places(), strict=True):
            pairs[unit][place] = one
    wrong: dict[str, np.ndarray[Any, Any]] = {}
    for code, (truth, said) in zip(units.datum.tolist(), pairs, strict=True):
        here = _wrong((truth, said), settings)
        name = str(datums.id[code])
        if here is not None:
            same = name in wrong and wrong[name].shape == here.shape
            wrong[name] = wrong[name] | here if same else here
    return [
        msgspec.structs.replace(
            content,
            rings=of_pixels(wrong[one], most=_POINTS, cells=_CELLS),
            size=wrong[one].shape,
        )
        if isinstance(content, PixelsWrong) and one in wrong
        else content
        for one, content in zip(ids, found, strict=True)
    ]


def _wrong(pair: Pair, settings: Settings) -> np.ndarray[Any, Any] | None:
    """Pixels whose index is another than the ground truth's, bool [height, width]."""
    with quiet(), ExitStack() as stack:
        truth, found = opened_pair(pair, stack, resample=settings.resample)
        if truth is None or found is None or truth.whole.size > _MOST:
            return None
        out = np.zeros(truth.shape, bool)
        for window in windows_of([truth, found]):
            top, bottom, left, right = window
            ours, theirs = truth.read(window), found.read(window)
            here = ours != theirs
            if settings.ignore_index is not None:
                here &= ours != settings.ignore_index
            out[top:bottom, left:right] = here
        return out
