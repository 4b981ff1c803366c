"""Tally: pixels by datum and label, and what single datums are worth."""

from __future__ import annotations

import time

import msgspec

from ...inputs.frames import Frames
from ...tally.datums import Datums, Labels
from ...tally.pixels import Pixels
from ...tally.stats import Stats
from ..workers import Workers
from .encode import encode_batch
from .per_image import stats_of
from .settings import Settings


class Tallies(msgspec.Struct, frozen=True):
    """What a segmentation run leaves behind.

    Attributes:
        datums: ids and slices.
        labels: of both sides and the declared ones.
        pixels: the counts.
        stats: metrics of single datums.
        seconds: step -> wall seconds.
        beside: frames there are whatever the metrics.
        weighted: whether counts are sums of weights; never.
    """

    datums: Datums
    labels: Labels
    pixels: Pixels
    stats: Stats
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        frames: checked tables, used up here; notes are added to theirs.
        settings: the run's settings.
        needs: ``areas``, ``images``, ``crossings``.
        workers: runs ranges of datums side by side.

    Raises:
        InputError: pixels that cannot be read or do not meet, or an index without a name.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch, settings)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return Tallies(batch.datums, batch.labels, batch.pixels, stats, seconds)


def examine(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> None:
    """Read all pixels without measuring: files, grids and indices show what is wrong only then.

    Args:
        frames: checked tables, used up here; notes are added to theirs.
        settings: the run's settings.
        needs: as of :func:`tally`.
        workers: runs ranges of datums side by side.

    Raises:
        InputError: pixels that cannot be read or do not meet, or an index without a name.
    """
    encode_batch(frames, settings, needs, workers)
