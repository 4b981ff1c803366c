"""Semantic segmentation: label maps and masks are encoded, met pixel by pixel and counted here."""

from ...tally.pixels import PixelDraws, PixelView
from ..contents import Contents
from ..counted_parts import counts_in_parts
from ..counted_views import cells_per_group, frames_of, view_of
from ..task import Common, LateNotes, PageFrame, Task
from .confusion import confusion_frame
from .contents import contents, with_regions
from .explaining import explain
from .fitting import fit
from .losses import losses
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import common, examine, label_notes, merge, tally

TASK = Task(
    name="segmentation",
    settings=resolve,
    default_metrics=default_metrics,
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
    drawn=PixelDraws,
    warm_large=warm_large,
    examine=examine,
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
