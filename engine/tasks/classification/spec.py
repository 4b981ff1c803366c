"""Classification: labels are encoded, matched and tallied here."""

from ..contents import Contents
from ..task import InParts, LateNotes, Ranking, Task
from .contents import contents
from .explaining import explain
from .filing import bytes_on_disk, judged, of_parts, part_things
from .fitting import fit
from .frames import own_frames
from .losses import losses
from .merging import merge
from .metrics.thresholds import curve_of, drawn_curves
from .page import PAGE
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import by_rank, by_value, examine, tally, truth, weight_notes
from .views import cells_per_group, drawn, one_draw, view

TASK = Task(
    name="classification",
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
    no_limits="equal scores share a threshold and count half in areas, so that their order moves"
    " nothing but which of a datum's equal top labels is predicted: that of the first row",
    drawn=drawn,
    one_draw=one_draw,
    curve=curve_of,
    drawn_curves=drawn_curves,
    truth=truth,
    warm_large=warm_large,
    examine=examine,
    late_notes=LateNotes(("zero_weights", "scores_reversed"), weight_notes),
    in_parts=InParts(part_things, of_parts, bytes_on_disk, judged=judged),
    ranking=Ranking(by_rank, by_value),
    page=PAGE,
)
