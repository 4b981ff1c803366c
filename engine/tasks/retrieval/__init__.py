"""Retrieval: lists are encoded, matched and measured here.

The names below are what the planner calls of every task.
"""

from ..stats_views import StatsTallies, cells_per_group, merge, own_frames, view
from .encode import told_from_rows
from .explaining import explain
from .fitting import fit
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import examine, tally

__all__ = [
    "Settings",
    "StatsTallies",
    "cells_per_group",
    "default_metrics",
    "examine",
    "explain",
    "fit",
    "merge",
    "own_frames",
    "resolve",
    "samples",
    "tally",
    "told_from_rows",
    "view",
]
