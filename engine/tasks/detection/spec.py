"""Detection: boxes are encoded, matched and tallied here."""

from ..contents import Contents
from ..task import Ranking, Task
from .contents import contents
from .explaining import explain
from .fitting import fit, needs_all_rows
from .limits import LIMITS
from .losses import losses
from .metrics.thresholds import curve_of
from .page import PAGE
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import by_rank, by_value, examine, merge, tally, truth
from .views import cells_per_group, drawn, one_draw, own_frames, view

TASK = Task(
    name="detection",
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
    limits=LIMITS,
    contents=Contents(of_tables=contents),
    truth=truth,
    ranking=Ranking(by_rank, by_value),
    warm_large=warm_large,
    examine=examine,
    needs_all_rows=needs_all_rows,
    by_labels=True,
    drawn=drawn,
    one_draw=one_draw,
    curve=curve_of,
    scratch_row=60,
    page=PAGE,
)
