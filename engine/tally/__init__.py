"""Tallies: results of matching, from which metrics are computed."""

from .cells import Cells
from .datums import Datums, Labels, View
from .ranked import Counts, Ranked, Variants, Word
from .ranked_view import RankedView

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
