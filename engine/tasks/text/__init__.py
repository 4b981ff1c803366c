"""Text: what was written is held against its references and measured here.

The names below are what the planner calls of every task.
"""

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
    "default_metrics",
    "examine",
    "explain",
    "fit",
    "merge",
    "own_frames",
    "resolve",
    "samples",
    "tally",
    "view",
]
