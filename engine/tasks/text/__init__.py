"""Text: what was written is held against its references and measured here.

The names below are what the planner calls of every task.
"""

from ..stats_pieces import (
    cut,
    key_of,
    merge_piece,
    of_pieces,
    row_of,
    shown,
    single_datums,
    things_of,
)
from ..stats_views import StatsTallies, cells_per_group, merge, view
from .explaining import explain
from .fitting import fit
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import examine, tally
from .views import own_frames

__all__ = [
    "Settings",
    "StatsTallies",
    "cells_per_group",
    "cut",
    "default_metrics",
    "examine",
    "explain",
    "fit",
    "key_of",
    "merge",
    "merge_piece",
    "of_pieces",
    "own_frames",
    "resolve",
    "row_of",
    "samples",
    "shown",
    "single_datums",
    "tally",
    "things_of",
    "view",
]
