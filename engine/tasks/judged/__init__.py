"""Judged metrics: a table of verdicts is encoded and measured here, without a judge.

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
from .explaining import explain
from .findings import Findings, together
from .fitting import AHEAD, fit, fit_written, may_fit, told_from_rows
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import examine, tally, tally_part, told

__all__ = [
    "AHEAD",
    "Findings",
    "Settings",
    "StatsTallies",
    "cells_per_group",
    "cut",
    "default_metrics",
    "examine",
    "explain",
    "fit",
    "fit_written",
    "key_of",
    "may_fit",
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
    "tally_part",
    "things_of",
    "together",
    "told",
    "told_from_rows",
    "view",
]
