"""Counts by datum and label: pixels, panoptic segments and tracks, and their views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .datums import Labels, Lazy
from .draws import Draws
from .registry import stored_as
from .stats import StatsView
from .tables import Table, Tables, TableView

# Pairs of labels, which pixels and segments have in common; and the view of all counts.


@stored_as("counts.pairs/1")
class Crossings(Table, frozen=True):
    """Shared pixels or segments: one row per datum and pair of labels of one key.

    Attributes:
        datum: int32 [n], datum code.
        actual: int32 [n], label code in the ground truth, -1 for unlabelled.
        predicted: int32 [n], label code in the prediction, -1 for unlabelled; never both -1.
        count: int64 [n].
    """

    datum: Array
    actual: Array
    predicted: Array
    count: Array


class CountsView(TableView):
    """Counts by groups of datums, or of their resamples.

    Args:
        tally: :class:`Tables`, or :class:`~evalengine.tallies.tables.InFiles` of them.
        stats: per-datum metrics, one column per metric, one parameter per label key.
        draws: see :class:`TableView`, as for the others.
        **grouping: see :class:`View`.
    """

    def __init__(
        self, tally: Any, labels: Labels, stats: Any, *, draws: Draws | None = None, **grouping: Any
    ) -> None:
        super().__init__(tally, labels, draws=draws, **grouping)
        self.stats = stats
        self.grouping = grouping
        self._columns: dict[tuple[str, str], Array] = {}

    def drawn(self, draws: Draws) -> CountsView:
        """Return the view of a block of resamples."""
        return type(self)(self.tally, self.labels, self.stats, draws=draws, **self.grouping)

    def sums(self, name: str, column: str, by: str = "label") -> Array:
        """Return the sums of a column by group and code: int64, or exact float64.

        Args:
            name: the table.
            column: its column, [n, ...].
            by: ``label`` or ``key``.

        Returns:
            [group, code, ...].
        """
        if (name, column) not in self._columns:

            def values(rows: Any) -> Array:
                return getattr(getattr(rows, name), column)

            exact = values(self.whole).dtype.kind == "f"
            self._columns[name, column] = (
                self.exact_sums(name, values, by)[0]
                if exact
                else self.integer_sums(name, values, by)
            )
        return self._columns[name, column]

    def image_total(self, need: str) -> tuple[Array, Array]:
        """Sums of a metric over datums, and how many have it, float64 [group, key] each."""
        single = StatsView(self.stats, self.labels, draws=self.draws, **self.grouping)
        total, many = single.total(single.columns[need][0])
        return total[:, :, 0], many[:, :, 0]

    @Lazy
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Pairs of labels that share something: group, actual, predicted (-1 for none), count."""
        assert self.draws is None  # the pairs that occur differ between resamples
        n = len(self.labels) + 1
        pairs, many = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for rows, group in self.blocks():
            table = rows.crossings
            at = np.zeros(table.datum.size, np.int64) if group is None else group[table.datum]
            pair = (at * np.int64(n) + table.actual + 1) * n + table.predicted + 1
            count = table.count if self.weights is None else table.count * self.weights[table.datum]
            pairs.append(pair[at >= 0])
            many.append(count[at >= 0])
        distinct, at = np.unique(np.concatenate(pairs), return_inverse=True)
        count = np.zeros(distinct.size, np.int64)
        np.add.at(count, at, np.concatenate(many))
        distinct, count = distinct[count > 0], count[count > 0]
        return distinct // (n * n), distinct // n % n - 1, distinct % n - 1, count


def _column(name: str, column: str, by: str = "label") -> Any:
    """Property of a view: the sums of a column, [group, code]."""
    return property(lambda view: view.sums(name, column, by))


# Segmentation.


@stored_as("pixels.areas/1")
class Areas(Table, frozen=True):
    """Areas: one row per datum and label with pixels on either side.

    Attributes:
        datum: int32 [n], datum code.
        label: int32 [n], label code.
        truth: int64 [n], pixels of the label in the ground truth.
        found: int64 [n], pixels of the label in the prediction.
        right: int64 [n], pixels of the label in both.
    """

    datum: Array
    label: Array
    truth: Array
    found: Array
    right: Array


@stored_as("pixels.surfaces/2", oldest=1)
class Surfaces(Table, frozen=True):
    """Outline distances: one row per datum and label with pixels on either side, if measured.

    Attributes:
        datum: int32 [n], datum code.
        label: int32 [n], label code.
        edge_truth: int64 [n], boundary pixels of the ground truth.
        edge_found: int64 [n], boundary pixels of the prediction.
        edge_right: int64 [n], boundary pixels of both.
        hausdorff: float64 [n], largest distance between the outlines; NaN if a side is empty.
        hd95: float64 [n], 95th percentile of the distance; NaN if a side is empty.
        assd: float64 [n], mean distance; NaN if a side is empty.
        nsd: float64 [n], share of both outlines within the tolerance, 0 if a side is empty.
        f1: float64 [n], F1 of the shares of either side, 0 if a side is empty.
        diagonal: float64 [n], distance of opposite corner pixels of the image, the largest possible
            distance; NaN or None if unknown, as in files of older versions.
    """

    fills: ClassVar[Mapping[str, float]] = {"diagonal": np.nan}

    datum: Array
    label: Array
    edge_truth: Array
    edge_found: Array
    edge_right: Array
    hausdorff: Array
    hd95: Array
    assd: Array
    nsd: Array
    f1: Array
    diagonal: Array | None = None


def no_surfaces() -> Surfaces:
    """None measured."""
    kinds = [np.int32] * 2 + [np.int64] * 3 + [np.float64] * 5
    return Surfaces(*(np.empty(0, kind) for kind in kinds))


@stored_as("pixels.images/1")
class Images(Table, frozen=True):
    """Pixel accuracy counts: one row per datum and label key.

    Attributes:
        datum: int32 [n], datum code.
        key: int32 [n], code of the label key.
        pixels: int64 [n], pixels that count.
        right: int64 [n], pixels with the same label on both sides, or unlabelled on both.
        overlapping: bool [n], some pixels have several labels on one side; ``right`` is then
            meaningless.
    """

    datum: Array
    key: Array
    pixels: Array
    right: Array
    overlapping: Array


@stored_as("pixels/1")
class Pixels(Tables, frozen=True):
    """All counts of a segmentation run.

    Attributes:
        areas: by datum and label.
        crossings: by datum and pair of labels.
        images: by datum and label key.
        declared: bool [n_labels], declared labels; None without declared labels.
        ignored: bool [n_labels], labels of the ignored index that only predictions have.
        surfaces: by datum and label; empty if outlines are not measured.
    """

    areas: Areas
    crossings: Crossings
    images: Images
    declared: Array | None
    ignored: Array
    surfaces: Surfaces = msgspec.field(default_factory=no_surfaces)


class PixelView(CountsView):
    """Pixels by groups of datums.

    Attributes:
        truth: pixels of each label in the ground truths, int64 [group, label].
        predicted: same in the predictions.
        right: same in both.
        counted: pixels that count, int64 [group, key].
        agreeing: pixels on which both sides agree, int64 [group, key].
        overlapping: datums in which labels of one side overlap, int64 [group, key].
    """

    truth = _column("areas", "truth")
    predicted = _column("areas", "found")
    right = _column("areas", "right")
    counted = _column("images", "pixels", "key")
    agreeing = _column("images", "right", "key")
    overlapping = _column("images", "overlapping", "key")

    @property
    def images(self) -> Array:
        """Datums, int64 [group, key]."""
        return self.size("images", "key").astype(np.int64)


# Panoptic segmentation.

UNKNOWN, STUFF, THING = -1, 0, 1
"""Kinds of labels."""


@stored_as("segments.rows/1")
class SegmentRows(Table, frozen=True):
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
class Segments(Tables, frozen=True):
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


class SegmentView(CountsView):
    """Segments by groups of datums: sums of columns of :class:`SegmentRows`, [group, label]."""

    tp = _column("rows", "tp")
    fp = _column("rows", "fp")
    fn = _column("rows", "fn")
    iou = _column("rows", "iou")


# Tracking.


@stored_as("tracks.rows/1")
class TrackRows(Table, frozen=True):
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
class Tracks(Tables, frozen=True):
    """All counts of a tracking run.

    Attributes:
        rows: by sequence and label.
        declared: bool [n_labels], labels that were declared.
        labelled: the tables have labels; otherwise all rows have one unnamed label.
    """

    rows: TrackRows
    declared: Array
    labelled: bool


# Preferences.


@stored_as("preferences.counts/1")
class Preferences(Tables, frozen=True):
    """Comparisons of models.

    Attributes:
        bouts: points by prompt and pair of models, ``actual`` being the winner and ``predicted``
            the loser: 2 for a win, 1 for either side of a tie.
    """

    bouts: Crossings


class PreferenceView(CountsView):
    """Points by groups of prompts."""

    def n_codes(self, by: str) -> int:
        """Number of pairs of models; see :class:`~evalengine.tallies.tables.TableView`."""
        return len(self.labels) ** 2

    def code_of(self, table: Any, by: str) -> Array:
        """Pair of models of each row; see :class:`~evalengine.tallies.tables.TableView`."""
        return table.actual.astype(np.int64) * len(self.labels) + table.predicted

    @Lazy
    def points(self) -> Array:
        """Points of each model (axis 1) against each other (axis 2), int64 [group, n, n]."""
        n = len(self.labels)
        return self.sums("bouts", "count", "pair").reshape(self.n_groups, n, n)
