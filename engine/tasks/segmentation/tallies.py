"""Segmentation tallies: pixels by datum and label, and per-datum values."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest import both_sides
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, LABELS, PREDICTIONS
from ...tally.counts import Pixels, PixelView
from ...tally.datums import Labels
from ...tally.stats import Column, Fill, Stats, aligned, row_places
from ..counted import merge_by
from ..encoding import Workers
from .dialects import Settings
from .encode import Tallies, encode_batch
from .metrics.images import OF_IMAGE
from .surfaces import NEED

# Metrics of single datums, as the registry has them: a column each.


STATUS = ("scored", "not_predicted", "no_ground_truth", "no_pixels")
"""Standing of a datum; those of the last have no number."""


def stats_of(present: Array, labels: Labels, pixels: Pixels, settings: Settings) -> Stats:
    """Compute per-datum values from counts: mIOU, macro Dice, pixel accuracy.

    Args:
        present: int8 [n], status of datums by the sides that have them.
    """
    some = np.zeros(present.size, bool)
    some[pixels.images.datum[pixels.images.pixels > 0]] = True
    status = np.where(some, present, np.int8(3))
    columns = columns_of(present.size, labels, pixels, settings)
    return Stats(np.ones(present.size, bool), columns, (STATUS, status))


def columns_of(
    n: int, labels: Labels, pixels: Pixels, settings: Settings
) -> dict[str, tuple[Column, ...]]:
    """Compute every per-image metric from pixel counts."""
    keys = labels.key_names
    parameters: tuple[str | None, ...] = (None,) * len(keys)
    if len(keys) > 1:
        parameters = tuple(json.dumps({"label_key": name}, ensure_ascii=False) for name in keys)
    return {
        one.name: (
            Column(
                metric=one.name,
                parameters=parameters,
                values=one.compute(pixels, labels, n, settings)[:, :, None],
                reason=one.reason,
            ),
        )
        for one in OF_IMAGE
    }


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Raises:
        InputError: pixels that cannot be read or compared, or an index without a name.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch.present, batch.labels, batch.pixels, settings)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return msgspec.structs.replace(batch, stats=stats, seconds=seconds)


merge = merge_by(
    "pixels", lambda whole, settings: stats_of(whole.present, whole.labels, whole.pixels, settings)
)


def label_notes(tallies: Tallies) -> list[Note]:
    """Return notes on one-sided labels, for a run in parts that cannot detect them.

    Args:
        tallies: of the whole run.
    """
    frame = tallies.labels.frame.select("label_key", "label_value")
    seen = PixelView(tallies.pixels, tallies.labels, tallies.stats)
    pairs = {
        side: frame[np.flatnonzero(getattr(seen, name)[0])]
        for side, name in ((PREDICTIONS, "found"), (GROUND_TRUTHS, "truth"))
    }
    if seen.whole.declared is not None:
        pairs[LABELS] = frame.filter(pl.Series(seen.whole.declared))
    return both_sides.label_notes(pairs, dict.fromkeys(pairs, True))


def common(tallies: Sequence[Tallies], codes: Sequence[Array], fill: Fill) -> list[Tallies] | None:
    """Restrict tallies to distances of the labels and images for which all runs have one.

    See :class:`..task.Common`. If neither the truth nor a run has the label in an image, that run
    is right, so that shares of outlines are unchanged.
    """
    own = [one.pixels.surfaces for one in tallies]
    if not all(one.datum.size for one in own):
        return None
    values = [np.stack([getattr(one, name) for name in _DISTANCES], axis=1) for one in own]
    made = aligned(row_places(tallies, own, codes, "label"), values, fill(NEED))
    if made is None:
        return None
    result = []
    for one, value in zip(tallies, made, strict=True):
        columns = dict(zip(_DISTANCES, np.ascontiguousarray(value.T), strict=True))
        surfaces = msgspec.structs.replace(one.pixels.surfaces, **columns)
        pixels = msgspec.structs.replace(one.pixels, surfaces=surfaces)
        result.append(msgspec.structs.replace(one, pixels=pixels))
    return result


_DISTANCES = ("hausdorff", "hd95", "assd")
