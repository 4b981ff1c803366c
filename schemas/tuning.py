"""Sizes that decide how something is done, and never what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


class Tuning(msgspec.Struct, frozen=True):
    """What is done at once, and from how many rows one way beats another.

    Attributes:
        json_bytes: of a JSON file that are parsed at a time.
        few_rows: up to which NumPy and Polars code ids: loading the kernels would cost more.
        few_texts: tied strings below which Polars' own sort puts them in order.
        block_rows: integers looked at together while they are marked, which stay in the cache.
        pair_rows: pairs of neighbouring rows compared together.
        polygons: whose geometries are made and checked at a time.
        canvas_masks: masks traced at once, at most.
        canvas_pixels: of masks traced at once, together.
        strip_pixels: of a label map that is read by strips.
        window_pixels: of a pair of label maps that is read by windows.
        chunk_rows: rows of a chunk of a column on average, below which chunks are joined.
        counted_rows: from which a look at a sample of scores pays, whether few differ.
        sample_rows: that such a sample has.
        text_bytes: of sentences and contexts taken at once: a text's stand beside each sentence.
        group_cells: numbers held at once while slices are summarised (32 MB).
        shuffle_rows: read at a time while rows are shuffled, at most.
        shuffle_bytes: of rows read at a time, about: a row may be a whole label map.
        query_bytes: of rows that one query reads, about: Polars decodes row groups ahead.
        range_rows: of a table that a worker shuffles in one call; None to go by workers and
            buckets.
        datum_bytes: that a row of single datums takes in memory while its frame is made.
        draws_at_once: draws computed together, whose weights of a datum lie side by side.
        drawn_cells: numbers of all draws of a block together, about.
        drawn_weights: weights of draws that are held at once, for all datums.
        kept_bytes: of a tally that a saved result keeps for comparing, at most.
        calibrated_scores: distinct scores that are held at once while scores are calibrated.
        drawn_bytes: of a metric's numbers in draws that are held in memory; more are in a file.
        datum_file_bytes: that such a row takes in a file, at most, ids of some length included.
    """

    json_bytes: int = 1 << 21
    few_rows: int = 50_000
    few_texts: int = 1000
    block_rows: int = 1 << 16
    pair_rows: int = 1 << 18
    polygons: int = 1 << 16
    canvas_masks: int = 1 << 14
    canvas_pixels: int = 1 << 22
    strip_pixels: int = 1 << 23
    window_pixels: int = 1 << 22
    chunk_rows: int = 1 << 12
    counted_rows: int = 100_000
    sample_rows: int = 8192
    text_bytes: int = 1 << 25
    group_cells: int = 4_000_000
    shuffle_rows: int = 200_000
    shuffle_bytes: int = 16 << 20
    query_bytes: int = 48 << 20
    range_rows: int | None = None
    datum_bytes: int = 200
    draws_at_once: int = 64
    drawn_cells: int = 1 << 25
    drawn_weights: int = 1 << 26
    kept_bytes: int = 1 << 26
    calibrated_scores: int = 1 << 18
    drawn_bytes: int = 1 << 28
    datum_file_bytes: int = 50


_current = Tuning()


def tuning() -> Tuning:
    """The sizes that hold in this process."""
    return _current


def take(sizes: Tuning) -> None:
    """Have this process go by other sizes."""
    global _current
    _current = sizes


@contextmanager
def tuned(**changes: Any) -> Iterator[None]:
    """Other sizes for a while, in all threads of this process; its workers keep theirs."""
    before = _current
    take(msgspec.structs.replace(before, **changes))
    try:
        yield
    finally:
        take(before)
