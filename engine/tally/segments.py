"""Counts of segments (panoptic) and of tracks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .counted_rows import CountDraws, CountsView, Crossings, merged_crossings, no_rows
from .datums import Labels
from .merging import joined
from .registry import stored_as

# Panoptic segments: outcomes by datum and label, and their view.

UNKNOWN, STUFF, THING = -1, 0, 1
"""Kinds of labels."""


@stored_as("segments.rows/1")
class SegmentRows(msgspec.Struct, frozen=True):
    """Segment counts: one row per datum and label that has segments.

    Attributes:
        datum: int32 [n], datum code.
        label: int32 [n], label code.
        tp: int64 [n], matched pairs of segments.
        fp: int64 [n], unmatched predicted segments.
        fn: int64 [n], unmatched ground truths.
        iou: float64 [n], sum of IoU over the matched pairs.
        touched: float64 [n], sum of IoU over all pairs of the label that share pixels.
        truth: int64 [n], ground truths that are not crowds.
    """

    datum: Array
    label: Array
    tp: Array
    fp: Array
    fn: Array
    iou: Array
    touched: Array
    truth: Array


@stored_as("segments/1")
class Segments(msgspec.Struct, frozen=True):
    """All counts of a panoptic run.

    Attributes:
        rows: by datum and label.
        crossings: segments by datum and pair of labels.
        declared: bool [n_labels], labels that were declared.
        kind: int8 [n_labels]: ``THING``, ``STUFF`` or ``UNKNOWN``.
    """

    rows: SegmentRows
    crossings: Crossings
    declared: Array
    kind: Array

    def bare(self) -> Segments:
        """Return the shared fields, without rows."""
        return msgspec.structs.replace(
            self, rows=no_rows(self.rows), crossings=no_rows(self.crossings)
        )

    def blocks(self, group: Array | None) -> Iterator[tuple[Segments, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


class SegmentView(CountsView):
    """Segments by groups of datums; see :class:`.CountsView`."""

    def _column(self, name: str) -> Any:
        def rows(segments: Segments) -> tuple[Array, Array, Array]:
            own = segments.rows
            return own.datum, own.label, getattr(own, name)

        return rows

    def count(self, name: str) -> Array:
        """Sums of a column of whole numbers, int64 [group, label]."""
        return self.summed(self._column(name), len(self.labels))

    def total(self, name: str) -> Array:
        """Exact sums of a column of numbers, float64 [group, label]."""
        return self.exact_total(self._column(name), len(self.labels))[0]

    @cached_property
    def tp(self) -> Array:
        """Pairs that match, int64 [group, label]."""
        return self.count("tp")

    @cached_property
    def fp(self) -> Array:
        """Predicted segments that match none, int64 [group, label]."""
        return self.count("fp")

    @cached_property
    def fn(self) -> Array:
        """Ground truths that match none, int64 [group, label]."""
        return self.count("fn")

    @cached_property
    def iou(self) -> Array:
        """Sums of IoU over pairs that match, float64 [group, label]."""
        return self.total("iou")


class SegmentDraws(CountDraws, SegmentView):
    """A view of segments whose groups are resamples."""


def merge_segments(
    parts: Sequence[Segments], datums: Sequence[Array], codes: Sequence[Array], whole: Labels
) -> Segments:
    """Merge the counts of all parts.

    Args:
        parts: counts of disjoint sets of datums.
        datums: new datum codes per part.
        codes: new label codes per part.
        whole: labels of all parts.
    """
    labels = [np.r_[code, np.int32(-1)].astype(np.int32) for code in codes]
    rows = [
        msgspec.structs.replace(part.rows, datum=own[part.rows.datum], label=new[part.rows.label])
        for part, own, new in zip(parts, datums, labels, strict=True)
    ]
    columns = [joined(rows, name) for name in SegmentRows.__struct_fields__]
    order = np.lexsort((columns[1], columns[0]))
    declared, kind = np.zeros(len(whole), bool), np.full(len(whole), UNKNOWN, np.int8)
    for part, code in zip(parts, codes, strict=True):
        declared[code[part.declared]] = True
        known = part.kind != UNKNOWN
        kind[code[known]] = part.kind[known]
    return Segments(
        SegmentRows(*(column[order] for column in columns)),
        merged_crossings([part.crossings for part in parts], datums, labels, whole),
        declared,
        kind,
    )


# Tracking outcomes by sequence and label, and their view.


@stored_as("tracks.rows/1")
class TrackRows(msgspec.Struct, frozen=True):
    """Tracking counts: one row per sequence and label that has a box on either side.

    Attributes:
        datum: int32 [n], code of the sequence.
        label: int32 [n], label code.
        truth: int64 [n], boxes of ground truths.
        found: int64 [n], predicted boxes.
        frames: int64 [n], frames of the sequence; 0 if either side has none.
        tp: int64 [n], matched pairs in CLEAR.
        switches: int64 [n], matches whose object had another track before.
        fragments: int64 [n], times that objects are found again.
        mostly: int64 [n], objects that are matched in most of their frames.
        partly: int64 [n], objects that are matched in some.
        lost: int64 [n], all other objects.
        overlap: float64 [n], sum of IoU over the matched pairs in CLEAR.
        common: int64 [n], boxes that objects share with their assigned track.
        alpha_tp: int64 [n, alphas], matched pairs in HOTA.
        alpha_overlap: float64 [n, alphas], their IoU.
        alpha_either: float64 [n, alphas], sum over these pairs of the boxes that object and track
            share, as a share of all boxes of either.
        alpha_truth: float64 [n, alphas], same as a share of the object's boxes.
        alpha_found: float64 [n, alphas], same as a share of the track's boxes.
    """

    datum: Array
    label: Array
    truth: Array
    found: Array
    frames: Array
    tp: Array
    switches: Array
    fragments: Array
    mostly: Array
    partly: Array
    lost: Array
    overlap: Array
    common: Array
    alpha_tp: Array
    alpha_overlap: Array
    alpha_either: Array
    alpha_truth: Array
    alpha_found: Array


@stored_as("tracks/1")
class Tracks(msgspec.Struct, frozen=True):
    """All counts of a tracking run.

    Attributes:
        rows: by sequence and label.
        declared: bool [n_labels], labels that were declared.
        labelled: the tables have labels; otherwise all rows have one unnamed label.
    """

    rows: TrackRows
    declared: Array
    labelled: bool

    def bare(self) -> Tracks:
        """Return the shared fields, without rows."""
        return msgspec.structs.replace(self, rows=no_rows(self.rows))

    def blocks(self, group: Array | None) -> Iterator[tuple[Tracks, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


class TrackView(CountsView):
    """Tracks by groups of sequences; see :class:`.CountsView`."""

    def summed_column(self, name: str) -> Array:
        """Sums of a column, [group, label] or [group, label, alpha]: int64, or exact float64."""
        if name in self._known:
            return self._known[name]
        values = getattr(self.whole.rows, name)
        width = values.shape[1] if values.ndim > 1 else 1
        n_codes = len(self.labels) * width

        def rows(tracks: Tracks) -> tuple[Array, Array, Array]:
            own = tracks.rows
            code = (own.label.astype(np.int64)[:, None] * width + np.arange(width)).ravel()
            return own.datum.repeat(width), code, getattr(own, name).ravel()

        if values.dtype.kind == "f":
            out = self.exact_total(rows, n_codes)[0]
        else:
            out = self.summed(rows, n_codes)
        self._known[name] = out.reshape(len(out), len(self.labels), *values.shape[1:])
        return self._known[name]

    @cached_property
    def _known(self) -> dict[str, Array]:
        """Columns that were summed; all metrics of a family read the same ones."""
        return {}


class TrackDraws(CountDraws, TrackView):
    """A view of tracks whose groups are resamples."""


def merge_tracks(
    parts: Sequence[Tracks], datums: Sequence[Array], codes: Sequence[Array], whole: Labels
) -> Tracks:
    """Merge the counts of all parts.

    Args:
        parts: counts of disjoint sets of sequences.
        datums: new datum codes per part.
        codes: new label codes per part.
        whole: labels of all parts.
    """
    rows = [
        msgspec.structs.replace(
            part.rows,
            datum=own[part.rows.datum].astype(np.int32),
            label=code[part.rows.label].astype(np.int32),
        )
        for part, own, code in zip(parts, datums, codes, strict=True)
    ]
    columns = [
        np.concatenate([getattr(part, name) for part in rows])
        for name in TrackRows.__struct_fields__
    ]
    order = np.lexsort((columns[1], columns[0]))
    declared = np.zeros(len(whole), bool)
    for part, code in zip(parts, codes, strict=True):
        declared[code[part.declared]] = True
    labelled = any(part.labelled for part in parts)
    return Tracks(TrackRows(*(column[order] for column in columns)), declared, labelled)
