"""Semantic segmentation as a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.wording import option
from ...tally.counts import PixelView
from ..contents import (
    LABELS,
    Content,
    Contents,
    LabelPixels,
    PixelsWrong,
    called,
    copied,
    of_pixels,
)
from ..counted import cells_per_group, counts_in_parts, crossing_frame, frames_of, view_of
from ..encoding import encode_sides
from ..pixels.maps import Pair, opened_pair
from ..pixels.rasters import quiet, side_of, windows_of
from ..task import Common, Cuts, LateNotes, Losses, PageFrame, Sample, Task
from .dialects import Settings
from .encode import Tallies, encode_batch
from .naming import Units
from .tallies import common, label_notes, merge, tally

# The metrics of a run: any label map or mask can carry all of them.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, and notes on options without effect on these tables."""
    notes = []
    if settings.ignore_index is not None and "label_value" in frames.ground_truths.columns:
        written = option("ignore_index", settings.ignore_index)
        notes.append(
            not_read(
                f"{written} is not read: the {GROUND_TRUTHS.replace('_', ' ')} are masks of labels,"
                " which have no indices."
            )
        )
    layered = [
        role.replace("_", " ")
        for role, frame in frames.sides.items()
        if "label_value" in frame.columns
    ]
    if settings.resample and layered:
        notes.append(
            not_read(
                f"{option('resample', True)} is not read: the {' and the '.join(layered)} are"
                " masks of labels, which must share one grid; only label maps are resampled."
            )
        )
    return metrics, notes


# Loss of single images: mean IOU over their labels.


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`; of several label keys the worst counts."""
    stats, areas = tallies.stats, tallies.pixels.areas
    ((column,), (agreeing,)) = stats.columns["mIOU"], stats.columns["PixelAccuracy"]
    value, agreement = (
        np.fmin.reduce(np.where(stats.counted[:, None], one.values[:, :, 0], np.nan), axis=1)
        for one in (column, agreeing)
    )

    def why(codes: Array) -> list[str]:
        """Pixels that are wrong, and the label with the most of them."""
        rows = np.flatnonzero(np.isin(areas.datum, codes))
        off = areas.truth[rows] + areas.found[rows] - 2 * areas.right[rows]
        rows = rows[np.lexsort((areas.label[rows], -off, areas.datum[rows]))]
        datums, first = np.unique(areas.datum[rows], return_index=True)
        worst = dict(zip(datums.tolist(), rows[first].tolist(), strict=True))
        sentences = []
        for code in codes.tolist():
            share = 100 * (1 - agreement[code])
            parts = [] if np.isnan(share) else [f"{share:.3g} % of the pixels wrong"]
            if code in worst:
                at = worst[code]
                missed, false = (side[at] - areas.right[at] for side in (areas.truth, areas.found))
                parts.append(
                    f"most of {called(tallies.labels.frame, int(areas.label[at]))}: {missed:,} of"
                    f" its {areas.truth[at]:,} missed, {false:,} too many"
                )
            sentences.append(", ".join(parts))
        return sentences

    return Losses(
        metric="mIOU",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [-agreement[codes]],
        why=why,
    )


# Contents of single images: wrong pixels of every label, and their regions.

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
            truth, predicted, right = (
                int(column[at]) for column in (areas.truth, areas.found, areas.right)
            )
            union = truth + predicted - right
            shown.append(
                LabelPixels(
                    key=labels.key_names[labels.key[label]],
                    label=called(labels.frame, label),
                    truth=truth,
                    missed=truth - right,
                    false=predicted - right,
                    iou=right / union if union else None,
                )
            )
        out.append(PixelsWrong(labels=tuple(shown), left_out=max(0, own.size - LABELS)))
    return out


def with_regions(
    frames: Frames, settings: Settings, ids: list[str], contents_of: list[Content | None]
) -> list[Content | None]:
    """See :attr:`..contents.Contents.completed`: regions of wrong pixels of label maps.

    Not available for masks of single labels, or with mapped labels, since indices do not show which
    pixels are wrong.
    """
    roles = (GROUND_TRUTHS, PREDICTIONS)
    few = copied(frames)
    datums, coded = encode_sides(few)
    sides = [side_of(few, role, code, datums.id) for role, code in zip(roles, coded, strict=True)]
    if any(side.layered for side in sides) or frames.label_map is not None:
        return contents_of
    units = Units.among(sides)
    pairs: list[list[Any]] = [[None, None] for _ in range(units.datum.size)]
    for place, side in enumerate(sides):
        for unit, one in zip(units.of(side).tolist(), side.places(), strict=True):
            pairs[unit][place] = one
    wrong: dict[str, np.ndarray[Any, Any]] = {}
    for code, (truth, predicted) in zip(units.datum.tolist(), pairs, strict=True):
        here = _wrong((truth, predicted), settings)
        name = str(datums.id[code])
        if here is not None:
            same = name in wrong and wrong[name].shape == here.shape
            wrong[name] = wrong[name] | here if same else here
    return [
        msgspec.structs.replace(
            content, rings=of_pixels(wrong[one], most=_POINTS, cells=_CELLS), size=wrong[one].shape
        )
        if isinstance(content, PixelsWrong) and one in wrong
        else content
        for one, content in zip(ids, contents_of, strict=True)
    ]


def _wrong(pair: Pair, settings: Settings) -> np.ndarray[Any, Any] | None:
    """Pixels whose index is another than the ground truth's, bool [height, width]."""
    with quiet(), ExitStack() as stack:
        truth, predicted = opened_pair(pair, stack, resample=settings.resample)
        if truth is None or predicted is None or truth.whole.size > _MOST:
            return None
        out = np.zeros(truth.shape, bool)
        for window in windows_of([truth, predicted]):
            top, bottom, left, right = window
            ours, theirs = truth.read(window), predicted.read(window)
            here = ours != theirs
            if settings.ignore_index is not None:
                here &= ours != settings.ignore_index
            out[top:bottom, left:right] = here
        return out


# The confusion matrix of pixels, with the IoU of each pair of labels and unmatched shares.


def confusion_frame(column: str | None, names: list[str], view: PixelView) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Returns:
        the contract's columns, then ``iou``: pixels of the pair / pixels that either label has,
        null for unlabelled pixels; and ``share``: pixels of the label without a label on the other
        side / all of the label, null for pairs.
    """
    group, actual, predicted, count = view.crossed
    pair = (actual >= 0) & (predicted >= 0)
    # For a missing label, -1, the last label's sums are read but not used.
    truth, predicted_area = (
        np.pad(sums, ((0, 0), (0, 1)))[group, code]
        for sums, code in ((view.truth, actual), (view.found, predicted))
    )
    nan = np.full(count.size, np.nan)
    union, own = truth + predicted_area - count, np.where(actual < 0, predicted_area, truth)
    iou = np.divide(count, union, out=nan.copy(), where=pair)
    share = np.divide(count, own, out=nan, where=~pair)
    return crossing_frame(column, names, view).with_columns(
        pl.Series("iou", iou, nan_to_null=True), pl.Series("share", share, nan_to_null=True)
    )


# Tiny tables that make every kernel of segmentation run once.


def samples() -> Iterator[Sample]:
    """Label maps of bytes, and of indices beyond them."""
    every = metrics.names("segmentation")
    small = (np.arange(64, dtype=np.uint8) // 9).reshape(1, 8, 8)
    yield small, small[:, ::-1], {"metrics": every, "ignore_index": 255}
    wide = small.astype(np.int32) * 1000
    yield wide, wide[:, ::-1], {"metrics": every}


# The plan of a segmentation run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    left = [
        f"{name} {index}"
        for name, index in (
            ("ignored index", settings.ignore_index),
            ("background", settings.background),
        )
        if index is not None
    ]
    grid = "resampled to the ground truth's grid" if settings.resample else "on one grid"
    return [
        f"match     pixel by pixel, {grid}; {', '.join(left) or 'every index a label'}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        f"mean      over labels that are {settings.rules.means} (mIOU), per label key",
    ]


TASK = Task(
    name="segmentation",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(PixelView, "pixels"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(confusion_frame),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents, completed=with_regions),
    drawn=PixelView.drawn,
    warm=("parts", "masks"),
    examine=encode_batch,
    # Only tallying finds the labels.
    late_notes=LateNotes(
        (
            "labels_in_predictions_only",
            "labels_in_ground_truths_only",
            "labels_not_declared",
            "no_common_label_key",
            "no_common_label",
            "labels_apart",
            "labels_exchanged",
            "labels_one_sided",
            "maps_turned",
            "maybe_void",
        ),
        label_notes,
    ),
    in_parts=counts_in_parts("pixels", merge),
    common=Common(common),
    page=(PageFrame(name="confusion", metrics=("ConfusionMatrix",)),),
)
