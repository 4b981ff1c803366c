"""Segmentation tallies: pixels by datum and label, and per-datum values."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest import both_sides
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, LABELS, PREDICTIONS
from ...tally.counts import Images, Pixels, PixelView
from ...tally.datums import Datums, Labels
from ...tally.registry import stored_as
from ...tally.stats import Column, Fill, Stats, aligned, row_places
from ..counted import merged_counts
from ..encoding import Workers
from .dialects import Settings
from .encode import Batch, encode_batch
from .metrics.images import OF_IMAGE
from .surfaces import NEED

# Metrics of single datums, as the registry has them: a column each.


STATUS = ("scored", "not_predicted", "no_ground_truth", "no_pixels")
"""Standing of a datum; those of the last have no number."""


def stats_of(batch: Batch, settings: Settings) -> Stats:
    """mIOU, macro Dice and pixel accuracy of every datum, one parameter a label key."""
    return stats_from(presence(batch), batch.labels, batch.pixels, settings)


def stats_from(present: Array, labels: Labels, pixels: Pixels, settings: Settings) -> Stats:
    """Compute per-datum values from counts.

    Args:
        present: from :func:`presence`.
    """
    columns = columns_of(present.size, labels, pixels, settings)
    status = status_of(present, pixels.images)
    return Stats(np.ones(present.size, bool), columns, (STATUS, status))


def columns_of(
    n: int, labels: Labels, pixels: Pixels, settings: Settings
) -> dict[str, tuple[Column, ...]]:
    """Compute every per-image metric from pixel counts.

    Args:
        n: number of datums.
    """
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


def presence(batch: Batch) -> Array:
    """Return the status of datums by the sides that have them, int8 [n]: 0, 1 or 2."""
    status = np.zeros(len(batch.datums), np.int8)
    status[~batch.answered] = 1
    status[~batch.known] = 2
    return status


def status_of(present: Array, images: Images) -> Array:
    """Return the status of every datum, int8 [n].

    Args:
        present: from :func:`presence`.
        images: by datum and label key.
    """
    some = np.zeros(present.size, bool)
    some[images.datum[images.pixels > 0]] = True
    return np.where(some, present, np.int8(3))


@stored_as("segmentation.run/1")
class Tallies(msgspec.Struct, frozen=True):
    """Tally of a segmentation run.

    Attributes:
        datums: ids and slices.
        labels: of both sides and the declared ones.
        pixels: the counts, :class:`~evalengine.tally.counts.Pixels`, or on disk
            :class:`~evalengine.tally.tables.InFiles`.
        stats: per-datum metrics, :class:`~evalengine.tally.stats.Stats`, or on disk ``InFiles``.
        present: int8 [n_datums], status of each datum: on both sides or only one.
        seconds: step -> wall seconds.
        beside: frames that exist for any metrics.
        weighted: counts are sums of weights; always False.
    """

    datums: Datums
    labels: Labels
    pixels: Any
    stats: Any
    present: Array
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        frames: checked tables; consumed, except their notes.
        needs: ``areas``, ``images``, ``crossings``.

    Raises:
        InputError: pixels that cannot be read or compared, or an index without a name.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch, settings)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return Tallies(batch.datums, batch.labels, batch.pixels, stats, presence(batch), seconds)


def merge(parts: Sequence[Tallies], settings: Settings) -> Tallies:
    """Merge tallies.

    Args:
        parts: tallies of disjoint sets of datums.

    Raises:
        InputError: parts are incompatible.
    """
    made = merged_counts(parts, "pixels")
    return Tallies(
        **made, stats=stats_from(made["present"], made["labels"], made["pixels"], settings)
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
    is
    right, so that shares of outlines are unchanged.
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
