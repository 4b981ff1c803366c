"""How far numbers move by the order of equal scores, and by documents that nobody judged."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from ...ingest.frames import Frames
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ..limits import Limit
from .settings import Settings

Ends = tuple[tuple[Frames, Settings], tuple[Frames, Settings]] | None


def _tied(frames: Frames, settings: Settings) -> Ends:
    run = frames.sides.get(PREDICTIONS)
    if run is None or "doc_id" not in run.columns or "score" not in run.columns:
        return None
    worst, best = (msgspec.structs.replace(settings, ties=end) for end in ("worst", "best"))
    return (frames, worst), (frames, best)


def _unjudged(frames: Frames, settings: Settings) -> Ends:
    run, qrels = frames.sides.get(PREDICTIONS), frames.sides.get(GROUND_TRUTHS)
    if run is None or qrels is None or "doc_id" not in run.columns:
        return None
    pair = ["datum_id", "doc_id"]
    known = qrels.select("datum_id").unique()
    more = run.select(pair).join(qrels.select(pair), on=pair, how="anti")
    more = more.join(known, on="datum_id", how="semi").unique(maintain_order=True)
    sides: list[tuple[Frames, Any]] = []
    for relevance in (0, 1):
        flat = {"relevance": pl.lit(relevance).cast(qrels.schema.get("relevance", pl.Int64))}
        rows = qrels if "relevance" in qrels.columns else qrels.with_columns(relevance=pl.lit(1))
        judged = pl.concat([rows, more.with_columns(**flat)], how="diagonal_relaxed")
        made = msgspec.structs.replace(frames, sides={**frames.sides, GROUND_TRUTHS: judged})
        sides.append((made, settings))
    return sides[0], sides[1]


_BY_ORDER = ("nDCG", "DCG", "MAP", "MRR", "P", "Recall", "Success", "RPrecision", "F1", "RBP")
_BY_RELEVANT = ("P", "MRR", "Success", "DCG", "RBP")

LIMITS = (
    Limit(
        name="ties",
        why="relevant documents last, or first, among equal scores of a query",
        exact=lambda metric: metric in _BY_ORDER,
        of_tables=_tied,
    ),
    Limit(
        name="unjudged",
        why="every retrieved document without a judgment irrelevant, or relevant",
        exact=lambda metric: metric in _BY_RELEVANT,
        of_tables=_unjudged,
    ),
)
