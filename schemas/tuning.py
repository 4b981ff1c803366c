"""Sizes that affect performance and memory, never results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


class Tuning(msgspec.Struct, frozen=True):
    """Block sizes, and row counts from which one method is faster than another.

    Attributes:
        json_bytes: bytes of a JSON file parsed at a time.
        few_rows: maximum rows for which NumPy and Polars code ids, since loading kernels costs
            more.
        unmarked_rows: maximum rows whose integer ids NumPy marks and looks up, for the same reason.
        few_texts: number of tied strings below which Polars sorts them.
        block_rows: integers marked at a time, which fit in the cache.
        pair_rows: pairs of neighbouring rows compared at a time.
        polygons: polygons whose geometries are built and checked at a time.
        canvas_masks: maximum masks traced at a time.
        canvas_pixels: total pixels of masks traced at a time.
        strip_pixels: pixels of a label map above which it is read by strips.
        window_pixels: pixels of a pair of label maps above which it is read by windows.
        chunk_rows: average rows per chunk of a column below which chunks are joined.
        counted_rows: rows from which sampling scores for few distinct values pays off.
        sample_rows: rows of such a sample.
        text_bytes: bytes of sentences and contexts at a time; contexts are repeated per sentence.
        group_cells: numbers in memory while slices are summarised (32 MB).
        shuffle_rows: maximum rows read at a time while rows are shuffled.
        shuffle_bytes: approximate bytes read at a time; a row may be a whole label map.
        query_bytes: approximate bytes read by one query, since Polars decodes row groups ahead.
        range_rows: rows of a table that a worker shuffles in one call; None to derive it from
            workers and buckets.
        object_bytes: maximum bytes of rows in a range that goes to an object store, and of copies
            of objects in a process.
        datum_bytes: bytes in memory per row of a per-datum frame while it is built.
        draws_at_once: resamples computed together, with the weights of a datum adjacent.
        drawn_cells: approximate numbers over all resamples of a block.
        drawn_weights: resampling weights in memory at a time, for all datums.
        tally_bytes: maximum size of a tally saved with a result for comparisons.
        undigested_bytes: bytes of tables of files; rows of larger ones are kept for one scorecard.
        calibrated_scores: distinct scores in memory while scores are calibrated.
        drawn_bytes: bytes of a metric's resampled values in memory; more are on disk.
        datum_file_bytes: maximum bytes on disk per row of a per-datum frame, with ids of some
            length.
    """

    json_bytes: int = 1 << 21
    few_rows: int = 50_000
    unmarked_rows: int = 1_000_000
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
    object_bytes: int = 1 << 30
    datum_bytes: int = 200
    draws_at_once: int = 64
    drawn_cells: int = 1 << 25
    drawn_weights: int = 1 << 26
    tally_bytes: int = 1 << 26
    undigested_bytes: int = 1 << 27
    calibrated_scores: int = 1 << 18
    drawn_bytes: int = 1 << 28
    datum_file_bytes: int = 50


_current = Tuning()


def tuning() -> Tuning:
    """Return the sizes of this process."""
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
