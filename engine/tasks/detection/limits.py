"""How far numbers move by the order of equal scores, and by the cap on detections."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ...tally.ranked import Ranked
from ..limits import Limit
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]


def _ends(tallies: Tallies, settings: Settings) -> tuple[Tallies, Tallies, bool] | None:
    """True positives last and first among equal scores of a label; None where no scores are equal.

    Moving a true positive up never lowers a precision at any recall, so that these are the ends of
    average precision. That holds for all IoU thresholds at once where what hits at one is among
    what hits at another; and what hit what is not decided anew, as it would be where two of the
    equal scores are of one datum.
    """
    ranked = tallies.ranked
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))
    new = np.ones(label.size, np.bool_)
    new[1:] = (label[1:] != label[:-1]) | (ranked.score[1:] != ranked.score[:-1])
    if new.all():
        return None
    group = np.cumsum(new)
    hits = np.bitwise_count(ranked.hit).sum(axis=0, dtype=np.int64)
    n = np.arange(label.size)
    last, first = np.lexsort((n, hits, group)), np.lexsort((n, -hits, group))
    bits = ranked.hit[:, first]
    nested = ((bits[:, :-1] & bits[:, 1:]) == bits[:, 1:]) | new[1:]
    pairs = np.unique(np.stack([group, ranked.datum]), axis=1).shape[1]
    exact = bool(nested.all()) and pairs == label.size
    return _in_order(tallies, last), _in_order(tallies, first), exact


def _in_order(tallies: Tallies, order: Array) -> Tallies:
    ranked: Ranked = tallies.ranked
    columns = ("score", "datum", "row", "rank", "skipped", "tie")
    moved = {name: column[order] for name in columns if (column := getattr(ranked, name)).size} | {
        name: getattr(ranked, name)[:, order] for name in ("hit", "ignored")
    }
    return msgspec.structs.replace(tallies, ranked=msgspec.structs.replace(ranked, **moved))


def _uncapped(
    frames: Frames, settings: Settings
) -> tuple[tuple[Frames, Settings], tuple[Frames, Settings]] | None:
    if settings.cap is None:
        return None
    free = frames, msgspec.structs.replace(settings, max_detections=())
    return free, free


_PRECISIONS = ("AP", "mAP", "APAveragedOverIOUs", "mAPAveragedOverIOUs", "PrecisionRecallCurve")

LIMITS = (
    Limit(
        name="ties",
        why="true positives last, or first, among equal scores of a label",
        exact=lambda metric: metric in _PRECISIONS,
        of_tally=_ends,
    ),
    Limit(name="cap", why="without a cap on detections", of_tables=_uncapped),
)
