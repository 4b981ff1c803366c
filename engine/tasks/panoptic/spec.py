"""Panoptic segmentation: maps of segments are read, met and counted here."""

from ...tally.segments import SegmentDraws
from ..contents import Contents
from ..counted_parts import counts_in_parts
from ..task import PageFrame, Task
from .explaining import explain
from .fitting import fit
from .losses import contents, losses
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import examine, merge, tally
from .views import cells_per_group, own_frames, view

TASK = Task(
    name="panoptic",
    settings=resolve,
    default_metrics=default_metrics,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view,
    cells_per_group=cells_per_group,
    own_frames=own_frames,
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
