"""Judged metrics: a table of verdicts is encoded and measured here, without a judge."""

from ...tally.stats_draws import StatsDraws
from ..contents import Contents
from ..stats_losses import losses
from ..stats_parts import IN_PARTS
from ..stats_views import cells_per_group, common, merge, own_frames, view
from ..task import Common, Task, ToldByRows
from .contents import contents
from .explaining import explain
from .findings import Findings, together
from .fitting import AHEAD, fit, fit_written, may_fit, needs_all_rows
from .samples import samples
from .settings import default_metrics, resolve
from .tallies import examine, tally, tally_part, told

TASK = Task(
    name="judged",
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
    contents=Contents(of_tables=contents),
    drawn=StatsDraws,
    examine=examine,
    needs_all_rows=needs_all_rows,
    told_by_rows=ToldByRows(AHEAD, may_fit, fit_written, tally_part, Findings, together, told),
    in_parts=IN_PARTS,
    common=Common(common),
)
