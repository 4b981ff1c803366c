"""Tallies: results of matching, from which metrics are computed."""

from .cells import Cells
from .counts import Counts
from .datums import Datums, Labels
from .ranked import Ranked, Variants, Word
from .ranked_view import RankedView, View

__all__ = [
    "Cells",
    "Counts",
    "Datums",
    "Labels",
    "Ranked",
    "RankedView",
    "Variants",
    "View",
    "Word",
]
