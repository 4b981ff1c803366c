"""Retrieval: lists are encoded, matched and measured here."""

from functools import partial

from ...schemas.wording import option
from ...tally.stats_draws import StatsDraws
from ..contents import Contents
from ..stats_parts import IN_PARTS
from ..stats_views import cells_per_group, common, counted, merge, own_frames, view
from ..task import Common, LateNotes, Scaling, Task, Unanswered
from .contents import contents
from .encode import needs_all_rows
from .explaining import explain
from .fitting import fit
from .limits import LIMITS
from .losses import losses
from .samples import samples, warm_large
from .settings import default_metrics, resolve
from .tallies import examine, scaled_by, tally, with_highest

TASK = Task(
    name="retrieval",
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
    drawn=StatsDraws,
    warm_large=warm_large,
    examine=examine,
    needs_all_rows=needs_all_rows,
    scaling=Scaling(scaled_by, with_highest),
    late_notes=LateNotes(
        ("scores_reversed", "judged_elsewhere"), lambda _: []
    ),  # of whole runs alone
    in_parts=IN_PARTS,
    common=Common(partial(common, cuts=True)),
    unanswered=Unanswered(
        counted,
        leaves=lambda settings: not settings.complete,
        way=f"; {option('complete', True)} counts each of the others as 0",
    ),
)
