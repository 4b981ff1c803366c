"""Panoptic segmentation: reading, matching and counting of segment maps."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...tally.segments import SegmentDraws, SegmentView
from ..contents import Contents
from ..counted_parts import counts_in_parts
from ..counted_views import cells_per_group, frames_of, view_of
from ..crossings import crossing_frame
from ..task import PageFrame, Task
from .losses import contents, losses
from .samples import samples, warm_large
from .settings import Settings, default_metrics, resolve
from .tallies import examine, merge, outcomes, tally

# The plan of a panoptic run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step.

    Args:
        needs: required tallies.
    """
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
    """Return the metrics as planned, and notes on columns that the dialect ignores.

    Args:
        asked_for: the user named the metrics.
    """
    notes = []
    if not settings.rules.crowds and "iscrowd" in frames.ground_truths.columns:
        said = "column 'iscrowd' is not read: the dialect knows no crowds."
        notes.append(Note("crowds_unread", said))
    return metrics, notes


TASK = Task(
    name="panoptic",
    settings=resolve,
    default_metrics=default_metrics,
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
    drawn=SegmentDraws,
    warm_large=warm_large,
    examine=examine,
    in_parts=counts_in_parts("segments", merge),
    page=(PageFrame(name="confusion", metrics=("ConfusionMatrix",)),),
)
