"""Panoptic segmentation as a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics import Metric
from ...schemas.arrays import Array
from ...tally.counts import SegmentView
from ..contents import Content, Contents
from ..counted import (
    cells_per_group,
    counts_in_parts,
    crossing_frame,
    frames_of,
    label_tables,
    view_of,
)
from ..task import Cuts, Losses, PageFrame, Sample, Task
from .dialects import Settings
from .encode import encode_batch
from .tallies import Tallies, merge, outcomes, tally

# Loss of single images: PQ over their labels; and their contents.


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`."""
    (column,) = tallies.stats.columns["PQ"]
    value = column.values[:, 0, 0]
    rows = tallies.segments.rows
    fp, fn = (
        np.bincount(rows.datum, getattr(rows, name), minlength=value.size) for name in ("fp", "fn")
    )

    def why(codes: Array) -> list[str]:
        return [f"{int(fn[code]):,} missed, {int(fp[code]):,} too many" for code in codes.tolist()]

    return Losses(
        metric="PQ",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [fp[codes] + fn[codes]],
        why=why,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of images, those with most errors first."""
    rows = tallies.segments.rows
    columns: dict[str, Callable[[int], str | None]] = {
        "matched": lambda at: str(rows.tp[at]),
        "missed": lambda at: str(rows.fn[at]),
        "too many": lambda at: str(rows.fp[at]),
        "mean IoU": lambda at: f"{rows.iou[at] / rows.tp[at]:.3f}" if rows.tp[at] else None,
    }
    return label_tables(tallies, rows, codes, rows.fp + rows.fn, columns)


# Tiny tables that make every kernel of panoptic segmentation run once.


def samples() -> Iterator[Sample]:
    """Maps of few ids and of many, whole segments and their boundaries."""
    every = metrics.names("panoptic")
    for factor in (1, 1000):
        ids = (np.arange(64) // 16 + 1).reshape(8, 8) * factor
        side = pl.DataFrame(
            {
                "datum_id": [0] * 4,
                "segment_id": np.unique(ids),
                "label_value": [1, 1, 2, 2],
                "raster": pl.Series([ids.tolist()] * 4, dtype=pl.List(pl.List(pl.Int64))),
            }
        )
        for kind in ("segm", "boundary"):
            yield side, side, {"metrics": every, "iou_type": kind}


# The plan of a panoptic run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    rules = settings.rules
    what = "IoU of whole segments"
    if settings.boundary_ratio is not None:
        what = (
            "the smaller of the IoU of segments and of their boundaries, of"
            f" {settings.boundary_ratio:g} of the diagonal"
        )
    void = "of either side" if rules.void_predictions else "of the ground truths"
    areas = "annotated" if rules.annotated_areas else "counted"
    return [
        f"match     {what} above 0.5; void {void} taken off; areas of ground truths {areas}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        "mean      over labels with segments: all, things, stuff",
    ]


# The metrics of a run: any segments can carry all of them.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, and notes on columns that the dialect ignores."""
    notes = []
    if not settings.rules.crowds and "iscrowd" in frames.ground_truths.columns:
        message = "column 'iscrowd' is not read: the dialect knows no crowds."
        notes.append(Note("crowds_unread", message))
    return metrics, notes


TASK = Task(
    name="panoptic",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(SegmentView, "segments"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(crossing_frame, outcomes=outcomes),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    drawn=SegmentView.drawn,
    warm=("parts", "masks", "label_maps"),
    examine=lambda frames, settings, _, workers: encode_batch(frames, settings, workers),
    in_parts=counts_in_parts("segments", merge),
    page=(PageFrame(name="confusion", metrics=("ConfusionMatrix",)),),
)
