"""Semantic segmentation: label maps and masks are encoded, met pixel by pixel and counted here.

The names below are what the planner calls of every task.
"""

from .explaining import explain
from .fitting import fit
from .pieces import (
    cut,
    key_of,
    merge_piece,
    of_pieces,
    row_of,
    shown,
    single_datums,
    things_of,
)
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import Tallies, examine, label_notes, merge, tally
from .views import cells_per_group, own_frames, view

__all__ = [
    "Settings",
    "Tallies",
    "cells_per_group",
    "cut",
    "default_metrics",
    "examine",
    "explain",
    "fit",
    "key_of",
    "label_notes",
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
