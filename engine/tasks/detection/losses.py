"""What single images are judged by: F1 at one IoU and one score threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialects import Dialect
from ...ingest.problems import count_of
from ...metrics import Metric
from ...tally.ranked import Ranked
from ..task import Cuts, Losses
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]

IOU = 0.5
_HUNDREDTHS = np.arange(100) / 100


def _bits(ranked: Ranked, threshold: int) -> tuple[Array, Array, Array]:
    """Hits and rows that count, bool [n] each, and ground truths that count, bool [m]."""
    word, bit = ranked.variants.bit(threshold)
    at = np.uint64(1) << np.uint64(bit)
    hit = (ranked.hit[word] & at) != 0
    return hit, (ranked.ignored[word] & at) == 0, (ranked.gt_counted[word] & at) != 0


def score_threshold(ranked: Ranked, hit: Array, counts: Array, positives: int) -> float:
    """The score threshold at which F1 of the whole run is highest, the lowest of equal ones.

    Of hundredths, or where scores lie beyond [0, 1] of their percentiles.

    Args:
        ranked: the tally.
        hit: bool [n], true positives.
        counts: bool [n], rows that count.
        positives: ground truths that count.
    """
    score = ranked.score
    if not score.size:
        return 0.0
    grid = _HUNDREDTHS
    if score.min() < 0 or score.max() > 1:
        finite = score[np.isfinite(score)]
        grid = np.unique(np.percentile(finite, np.arange(100), method="lower"))
    reached = np.searchsorted([ranked.comparable(one) for one in grid], score, side="right")
    right, every = (
        np.bincount(reached[rows], minlength=grid.size + 1)[::-1].cumsum()[::-1][1:]
        for rows in (hit & counts, counts)
    )
    # Both sums of F1 = 2 tp / (tp + fp + positives) are integers: equal ones are equal.
    f1 = 2 * right / np.maximum(every + positives, 1)
    return float(grid[int(np.argmax(f1))])


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses | str:
    """See :class:`..task.JudgeDatums`."""
    if not settings.has_overall_range:
        return "area_ranges have no range of all sizes"
    ranked, n = tallies.ranked, len(tallies.datums)
    thresholds = np.asarray(ranked.variants.thresholds)
    nearest = int(np.argmin(np.abs(thresholds - IOU)))
    hit, counts, wanted = _bits(ranked, nearest)
    lowest = score_threshold(ranked, hit, counts, int(wanted.sum()))
    counts &= ranked.score >= ranked.comparable(lowest)
    tp = np.bincount(ranked.datum[hit & counts], minlength=n)
    fp = np.bincount(ranked.datum[counts & ~hit], minlength=n)
    there = np.bincount(ranked.gt_datum[wanted], minlength=n)
    whole = tp + fp + there
    f1 = np.full(n, np.nan)
    np.divide(2 * tp, whole, out=f1, where=whole > 0)

    def why(codes: Array) -> list[str]:
        return [
            _sentence(int(there[code] - tp[code]), int(there[code]), int(fp[code]))
            for code in codes
        ]

    return Losses(
        metric="F1",
        made_with={
            "iou_threshold": round(float(thresholds[nearest]), 10),
            "score_threshold": lowest,
        },
        value=f1,
        higher=True,
        best=1.0,
        ties=lambda codes: [(there - tp + fp)[codes].astype(np.float64)],
        why=why,
    )


def _sentence(missed: int, there: int, false: int) -> str:
    """Such as "3 of 5 objects missed, 2 false positives"."""
    said = []
    if missed > 0:  # of a group of objects several predictions may be right
        said.append(f"{missed:,} of {count_of(there, 'object')} missed")
    if false:
        said.append(count_of(false, "false positive"))
    if not there:
        said.append("no object there")
    return ", ".join(said)
