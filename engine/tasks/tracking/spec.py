"""Tracking: objects and tracks are met frame by frame, and counted by sequence and label here."""

from ...tally.tracks import TrackDraws, TrackView
from ..contents import Contents
from ..counted_parts import counts_in_parts
from ..counted_views import frames_of, view_of
from ..task import Task
from .events import error_rows, outcome_rows
from .explaining import explain
from .losses import contents, losses
from .samples import samples, warm_large
from .settings import Settings, default_metrics, resolve
from .tallies import Tallies, examine, merge, rows_of, tally


def cells_per_group(tallies: Tallies, settings: Settings) -> int:
    """Numbers of one group of sequences."""
    return (5 * len(settings.alphas) + 20) * (len(tallies.labels) + 1)


TASK = Task(
    name="tracking",
    settings=resolve,
    default_metrics=default_metrics,
    tally=tally,
    examine=examine,
    merge=merge,
    view=view_of(TrackView, "tracks"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(
        outcomes=rows_of("outcomes", outcome_rows), errors=rows_of("errors", error_rows)
    ),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    no_limits="no number of it rests on ties of scores, a cap or missing judgments",
    drawn=TrackDraws,
    warm_large=warm_large,
    in_parts=counts_in_parts("tracks", merge),
)
