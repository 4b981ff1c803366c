"""Tracking outcomes by sequence and label, and their view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .counted_draws import CountDraws
from .counted_rows import CountsView, no_rows
from .datums import Labels
from .registry import stored_as


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
