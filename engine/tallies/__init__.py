"""Tallies: results of matching, from which metrics are computed."""

from .datums import Cells, Datums, Labels, View
from .ranked import ConfusedPairs, Ranked, Variants, Word
from .ranked_view import RankedView

__all__ = [
    "Cells",
    "ConfusedPairs",
    "Datums",
    "Labels",
    "Ranked",
    "RankedView",
    "Variants",
    "View",
    "Word",
]
