"""What the report draws from: counts by score threshold, bins of confidence, confusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..page_frames import HUNDREDTHS
from ..task import PageFrame

if TYPE_CHECKING:
    from .tallies import Tallies

_SAMPLE = 200_000
_EVEN = np.linspace(0.0, 1.0, 49)
_TAIL = 1.0 - np.logspace(-0.5, -5.0, 46)


def _thresholds(tallies: Tallies) -> dict[str, Any]:
    """Hundredths, for people; and quantiles of the scores, the highest ones closest together, so
    that curves are smooth wherever scores lie.

    Scores are a sample: they only choose where to count.
    """
    scores = _some_scores(tallies)
    chosen = (
        np.unique(np.quantile(scores, np.r_[_EVEN, _TAIL], method="lower"))
        if scores.size
        else scores
    )
    return {"score_thresholds": tuple(np.unique(np.r_[HUNDREDTHS, chosen]).tolist())}


def _some_scores(tallies: Tallies) -> np.ndarray[Any, Any]:
    scored = tallies.scored
    if tallies.parts is not None:  # of datums by hash: any part is a sample
        scored = next(iter(tallies.parts)).rows.scored
    if scored is None or not scored.parts:
        return np.zeros(0)
    scores = scored.score
    some = np.asarray(scores[:: max(1, scores.size // _SAMPLE)], np.float64)
    return some[np.isfinite(some)]


PAGE = (
    PageFrame(name="thresholds", metrics=("PrecisionRecallCurve",), options=_thresholds),
    PageFrame(name="confusion", metrics=("ConfusionMatrix",)),
    PageFrame(name="reliability", metrics=("Reliability",), tallied=False),
)
