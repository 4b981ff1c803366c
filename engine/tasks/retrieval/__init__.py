"""Retrieval: lists are encoded, matched and measured here.

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
from ..stats_views import StatsTallies, cells_per_group, merge, own_frames, view
from .encode import told_from_rows
from .explaining import explain
from .fitting import fit
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import examine, scaled_by, tally, with_highest

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
    "scaled_by",
    "shown",
    "single_datums",
    "tally",
    "things_of",
    "told_from_rows",
    "view",
    "with_highest",
]
