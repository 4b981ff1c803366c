"""Regression: predicted numbers are laid beside true ones and their errors summed here."""

from ...tally.paired_draws import PairedDraws
from ...tally.paired_values import PairedView
from ..contents import Contents
from ..counted_parts import counts_in_parts
from ..counted_views import cells_per_group, view_of
from ..task import Common, PageFrame, Task, Unanswered
from .explaining import explain
from .fitting import fit
from .losses import contents, losses
from .pairs import few_pairs, own_frames, rows_of_frame
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import common, counted, examine, merge, tally

TASK = Task(
    name="regression",
    settings=resolve,
    default_metrics=default_metrics,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(PairedView, "paired"),
    cells_per_group=cells_per_group,
    own_frames=own_frames,
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    no_limits="every row has one prediction and one target, which leave nothing open",
    drawn=PairedDraws,
    warm_large=warm_large,
    examine=examine,
    in_parts=counts_in_parts("paired", merge, few_pairs, rows_of_frame),
    unanswered=Unanswered(counted),
    common=Common(common, fills=False),
    page=(PageFrame(name="actual_by_prediction", metrics=("ActualByPrediction",)),),
)
