"""Contents of single images: boxes and their outcomes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ..contents import BOXES, Box, Boxes, Content, called, copied
from ..outlines import POINTS, Ring
from ..workers import Workers
from .encode import Side, encode_batch
from .overlaps import find_facts, find_pairs, label_of
from .settings import Settings
from .tallies import met

_ORDER = ("missed", "fp", "tp", "ignored")
_TOGETHER = 1_000  # points of all outlines of an image
_FEWEST = 16  # of one of them


def contents(
    frames: Frames, settings: Settings, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`: matched again, datum by datum as in the run."""
    told, lowest = made_with["iou_threshold"], made_with["score_threshold"]
    iou = settings.meant(told)
    settings = msgspec.structs.replace(settings, spot_ious=(iou,))
    batch = encode_batch(copied(frames), settings, workers)
    matched, near = met(batch, settings, frozenset({"spot_ious", "outcomes"}), workers)
    pairs = find_pairs(matched, batch.labels, len(batch.datums), iou, workers, near)
    facts, ranked = find_facts(matched, pairs, iou), matched.ranked
    shown = np.flatnonzero(ranked.score >= ranked.comparable(lowest))
    missed = np.flatnonzero(
        facts.gt_regular & ((facts.gt_taker < 0) | (facts.gt_taken < ranked.comparable(lowest)))
    )
    outcome = np.select([facts.hit, facts.ignored], [2, 3], default=1)[shown]
    kind = np.r_[outcome, np.zeros(missed.size, np.int64)]
    score = np.r_[ranked.score[shown], np.full(missed.size, np.nan)]
    datum = np.r_[ranked.datum[shown], ranked.gt_datum[missed]]
    label = np.r_[label_of(ranked.start)[shown], label_of(ranked.gt_start)[missed]]
    corners = np.concatenate(
        [
            batch.predictions.boxes(ranked.row[shown]),
            batch.ground_truths.boxes(ranked.gt_row[missed]),
        ]
    )
    row = np.r_[ranked.row[shown], ranked.gt_row[missed]]
    order = np.lexsort((np.arange(kind.size), -np.nan_to_num(score), kind, datum))
    sides = batch.predictions, batch.ground_truths
    code = {str(one): i for i, one in enumerate(batch.datums.id.to_list())}
    out: list[Content | None] = []
    for one in ids:
        own = order[datum[order] == code[one]] if one in code else order[:0]
        most = min(POINTS, max(_FEWEST, _TOGETHER // max(1, min(own.size, BOXES))))
        boxes = [
            Box(
                label=called(batch.labels.frame, int(label[at])),
                outcome=_ORDER[kind[at]],
                score=None if np.isnan(score[at]) else float(score[at]),
                corners=tuple(corners[at].tolist()),
                rings=_outline(sides[int(at >= shown.size)], int(row[at]), most),
            )
            for at in own[:BOXES].tolist()
        ]
        out.append(
            Boxes(
                boxes=tuple(boxes),
                left_out=max(0, own.size - BOXES),
                iou_threshold=told,
                score_threshold=lowest,
            )
        )
    return out


def _outline(side: Side, row: int, most: int) -> tuple[Ring, ...]:
    return () if side.shapes is None else side.shapes.outline(row, most)
