"""Text: what was written is held against its references and measured here."""

from ...tally.stats_draws import StatsDraws
from ..contents import Contents
from ..stats_losses import losses
from ..stats_parts import IN_PARTS
from ..stats_views import cells_per_group, common, counted, merge, view
from ..task import Common, Task, Unanswered
from .contents import contents
from .explaining import explain
from .fitting import fit
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import examine, tally
from .views import own_frames

TASK = Task(
    name="text",
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
    warm_large=warm_large,
    examine=examine,
    in_parts=IN_PARTS,
    common=Common(common),
    unanswered=Unanswered(counted),
    growth=8,  # tokens beside their texts
)
