"""How far numbers move by the order of equal scores, and by the cap on detections."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...schemas.contract import PREDICTIONS
from ...tally.ranked import Ranked
from ..limits import AT_LEAST, EXACT, Ends, Given, Limit
from .tallies import Tallies

Array = np.ndarray[Any, Any]

_PRECISIONS = {"AP", "mAP", "APAveragedOverIOUs", "mAPAveragedOverIOUs"}
_COUNTED = {
    "Counts", "Precision", "Recall", "F1", "Accuracy", "AR", "mAR", "ARAveragedOverScores",
    "mARAveragedOverScores",
}  # fmt: skip
"""Metrics of how much is right from a score on, whatever the order of equal ones."""


def _tied(given: Given) -> Ends | None:
    """True positives last and first among equal scores of a label; None where no scores are equal.

    Moving a true positive up never lowers a precision at any recall, so that these are the ends of
    average precision. That holds for all IoU thresholds at once where what hits at one is among
    what hits at another. Where two of the equal scores are of one datum, what hits what hangs on
    their order, and so may what the cap leaves: then the rows turned round are tried as well, and
    other orders may lead beyond.
    """
    run = given.frames.sides.get(PREDICTIONS)
    if run is None or "score" not in run.columns:
        return None
    near = [
        "datum_id",
        *(() if given.settings.rules.cap_of_datum else ("label_key", "label_value")),
    ]
    near = [name for name in near if name in run.columns]
    rules = given.settings.rules
    within = bool(rules.most_of_label) or run.select(*near, "score").is_duplicated().any()
    cases = [given.tallies]
    if within:
        sides = {**given.frames.sides, PREDICTIONS: run.reverse()}
        turned = msgspec.structs.replace(given.frames, sides=sides)
        cases.append(given.run(turned, given.settings))
    ordered = [found for case in cases if (found := _ordered(case)) is not None]
    if not ordered and not within:
        return None
    runs = [*cases[1:], *(tallies for found in ordered for tallies in found[:2])]
    nested = all(found[2] for found in ordered)

    def bound(metric: str) -> str:
        known = not within and (metric in _COUNTED or (nested and metric in _PRECISIONS))
        return EXACT if known else AT_LEAST

    return Ends(tuple((tallies, given.settings) for tallies in runs), bound)


def _ordered(tallies: Tallies) -> tuple[Tallies, Tallies, bool] | None:
    """Hits last, hits first, and whether what hits at one IoU hits at those below."""
    ranked = tallies.ranked
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))
    new = np.ones(label.size, np.bool_)
    new[1:] = (label[1:] != label[:-1]) | (ranked.score[1:] != ranked.score[:-1])
    if new.all():
        return None
    group = np.cumsum(new)
    hits = np.bitwise_count(ranked.hit).sum(axis=0, dtype=np.int64)
    # Those of one datum stay side by side as they were matched: in another order they hit others.
    pairs = np.stack([group, ranked.datum])
    _, begin, block = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    block = block.reshape(-1)
    mean = (np.bincount(block, hits) / np.bincount(block))[block]
    inside = np.arange(label.size), begin[block]
    last, first = np.lexsort((*inside, mean, group)), np.lexsort((*inside, -mean, group))
    bits = ranked.hit[:, first]
    nested = ((bits[:, :-1] & bits[:, 1:]) == bits[:, 1:]) | new[1:]
    return _in_order(tallies, last), _in_order(tallies, first), bool(nested.all())


def _in_order(tallies: Tallies, order: Array) -> Tallies:
    ranked: Ranked = tallies.ranked
    columns = ("score", "datum", "row", "rank", "skipped", "tie")
    moved = {name: column[order] for name in columns if (column := getattr(ranked, name)).size} | {
        name: getattr(ranked, name)[:, order] for name in ("hit", "ignored")
    }
    return msgspec.structs.replace(tallies, ranked=msgspec.structs.replace(ranked, **moved))


def _uncapped(given: Given) -> Ends | None:
    if given.settings.cap is None:
        return None
    free = msgspec.structs.replace(given.settings, max_detections=())
    return Ends(((given.run(given.frames, free), free),))


LIMITS = (
    Limit(
        name="ties",
        why="true positives last, or first, among equal scores of a label",
        ends=_tied,
    ),
    Limit(name="cap", why="without a cap on detections", ends=_uncapped),
)
