"""Tallies: results of matching, from which metrics are computed."""

from .cells import Cells
from .datums import Datums, Labels
from .ranked import Counts, Ranked, Variants, Word
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
