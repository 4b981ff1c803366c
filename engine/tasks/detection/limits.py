"""How far numbers move by the order of equal scores, and by the cap on detections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ...schemas.contract import PREDICTIONS
from ...tally import stored
from ...tally.ranked import Ranked
from ...tally.ranked_groups import OF_ROWS, RankedGroups
from ..limits import AT_LEAST, EXACT, Bound, Facts, Given, Limit, any_of
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]

_PRECISIONS = {"AP", "mAP", "APAveragedOverIOUs", "mAPAveragedOverIOUs"}
_COUNTED = {
    "Counts", "Precision", "Recall", "F1", "Accuracy", "AR", "mAR", "ARAveragedOverScores",
    "mARAveragedOverScores",
}  # fmt: skip
"""Metrics of how much is right from a score on, whatever the order of equal ones."""


def _facts(frames: Frames, settings: Settings) -> Facts | None:
    """Whether what a row hits, or what a cap leaves, may hang on the order of equal scores."""
    run, rules = frames.sides.get(PREDICTIONS), settings.rules
    if run is None or "score" not in run.columns:
        return None
    near = ["datum_id", *(() if rules.cap_of_datum else ("label_key", "label_value"))]
    near = [name for name in near if name in run.columns]
    within = bool(rules.most_of_label) or run.select(*near, "score").is_duplicated().any()
    return {"within": within}


def _ends(given: Given) -> Iterator[Tallies]:
    """True positives last and first among equal scores of a label.

    Moving a true positive up never lowers a precision at any recall, so that these are the ends of
    average precision. That holds for all IoU thresholds at once where what hits at one is among
    what hits at another. Where two of the equal scores are of one datum, what hits what hangs on
    their order, and so may what the cap leaves: then the rows turned round are tried as well, and
    other orders may lead beyond.
    """
    cases = [given.tallies]
    if given.facts["within"]:
        run = given.frames.sides[PREDICTIONS]
        sides = {**given.frames.sides, PREDICTIONS: run.reverse()}
        turned = msgspec.structs.replace(given.frames, sides=sides)
        cases.append(given.run(turned, given.settings))
    for tallies in cases:
        for sign in (-1.0, 1.0):
            ranked = _ordered(tallies.ranked, sign)
            yield msgspec.structs.replace(tallies, ranked=ranked)


def _ordered(ranked: Ranked, sign: float) -> Ranked:
    """The rows of a label by descending score, of equal ones those that hit more last, or first."""
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))
    new = np.ones(label.size, np.bool_)
    new[1:] = (label[1:] != label[:-1]) | (ranked.score[1:] != ranked.score[:-1])
    group = np.cumsum(new)
    hits = np.bitwise_count(ranked.hit).sum(axis=0, dtype=np.int64)
    # Those of one datum stay side by side as they were matched: in another order they hit others.
    pairs = np.stack([group, ranked.datum])
    _, block = np.unique(pairs, axis=1, return_inverse=True)
    block = block.reshape(-1)
    tie = sign * (np.bincount(block, hits) / np.maximum(np.bincount(block), 1))[block]
    order = np.lexsort((np.arange(label.size), ranked.datum, -tie, group))
    moved = {name: column[..., order] for name in OF_ROWS if (column := getattr(ranked, name)).size}
    return msgspec.structs.replace(ranked, **{**moved, "tie": tie[order]})


def _pieces(ranked: Ranked | RankedGroups) -> Iterator[tuple[bool, Ranked]]:
    """All rows, and whether those of a piece go on with the label of the piece before."""
    if isinstance(ranked, Ranked):
        yield False, ranked
        return
    for files in ranked.files:
        for n, file in enumerate(files):
            yield n > 0, stored.load(file)


def _looked_at(ranked: Ranked | RankedGroups) -> tuple[bool, bool]:
    """Whether some scores of a label are equal, and whether of those what hits at one IoU threshold
    is always among what hits at another; of rows those that hit most first."""
    tied, nested, last = False, True, (np.zeros(0), np.zeros((0, 0), np.uint64))
    for on, piece in _pieces(ranked):
        label = np.repeat(np.arange(piece.n_labels), np.diff(piece.start))
        score, bits = piece.score, piece.hit
        if on and last[0].size and score.size:
            score, bits = np.append(last[0], score), np.append(last[1], bits, axis=1)
            label = np.append(label[:1], label)
        if not score.size:
            continue
        same = (label[1:] == label[:-1]) & (score[1:] == score[:-1])
        tied |= bool(same.any())
        nested &= bool((((bits[:, :-1] & bits[:, 1:]) == bits[:, 1:]) | ~same).all())
        last = score[-1:], bits[:, -1:]
    return tied, nested


def _bound(settings: Settings, facts: Facts, ends: Sequence[Tallies]) -> Bound | None:
    within = facts["within"]
    looked = [_looked_at(one.ranked) for one in ends[1::2]]
    if not within and not any(tied for tied, _ in looked):
        return None
    nested = all(one for _, one in looked)

    def bound(metric: str) -> str:
        known = not within and (metric in _COUNTED or (nested and metric in _PRECISIONS))
        return EXACT if known else AT_LEAST

    return bound


def _free(settings: Settings, facts: Facts) -> tuple[Settings, ...]:
    return (msgspec.structs.replace(settings, max_detections=()),)


LIMITS = (
    Limit(
        name="ties",
        why="true positives last, or first, among equal scores of a label",
        facts=_facts,
        whole=any_of,
        settings=lambda settings, facts: (settings,) * (4 if facts["within"] else 2),
        ends=_ends,
        bound=_bound,
    ),
    Limit(
        name="cap",
        why="without a cap on detections",
        facts=lambda frames, settings: None if settings.cap is None else {},
        whole=any_of,
        settings=_free,
        ends=lambda given: iter([given.run(given.frames, *_free(given.settings, given.facts))]),
        bound=lambda settings, facts, ends: lambda metric: EXACT,
    ),
)
