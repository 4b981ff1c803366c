"""What single queries are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..stats_losses import Judging, values
from ..stats_losses import losses as of_stats
from ..stats_views import StatsTallies

_RANK = "MRR"
_UNANSWERED = "not_retrieved"


def _why(tallies: StatsTallies, every: Sequence[Judging], codes: np.ndarray[Any, Any]) -> list[str]:
    """Where the first relevant document stands, where the reciprocal of its rank is known."""
    said = values(tallies, every[:1], codes)
    whole = (one for one in every if one.column.metric == _RANK and one.column.k[one.k] is None)
    inverse = next(whole, None)
    words, standing = tallies.stats.status
    out = []
    for plain, code in zip(said, codes.tolist(), strict=True):
        word = words[standing[code]]
        value = float("nan") if inverse is None else inverse.value[code]
        if word == _UNANSWERED:
            out.append("nothing retrieved")
        elif value > 0:
            out.append(f"first relevant document at rank {round(1 / value)}")
        else:
            out.append("no relevant document retrieved" if value == 0 else plain)
    return out


losses = partial(of_stats, first=("nDCG", "F1"), spared="no_relevant", told=_why)
