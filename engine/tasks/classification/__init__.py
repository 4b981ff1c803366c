"""Classification: labels are encoded, matched and tallied here.

The names below are what the planner calls of every task.
"""

from .batched import stream
from .counting import count, counts_suffice, merge_counted, thresholds_of
from .explaining import explain
from .filing import filed_part, files_suffice, of_files, shown_part, shows_datums
from .fitting import fit
from .merging import lean, merge
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import Tallies, tally, weight_notes
from .views import cells_per_group, own_frames, view

__all__ = [
    "Settings",
    "Tallies",
    "cells_per_group",
    "count",
    "counts_suffice",
    "default_metrics",
    "explain",
    "filed_part",
    "files_suffice",
    "fit",
    "lean",
    "merge",
    "merge_counted",
    "of_files",
    "own_frames",
    "resolve",
    "samples",
    "shown_part",
    "shows_datums",
    "stream",
    "tally",
    "thresholds_of",
    "view",
    "weight_notes",
]
