"""Panoptic segmentation: maps of segments are read, met and counted here."""

from ...tally.segments import SegmentDraws, SegmentView
from ..contents import Contents
from ..counted_parts import counts_in_parts
from ..counted_views import cells_per_group, frames_of, view_of
from ..crossings import crossing_frame
from ..task import PageFrame, Task
from .explaining import explain
from .fitting import fit
from .losses import contents, losses
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import examine, merge, outcomes, tally

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
