"""REMem's shape: pooled values, and a dict for every example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from .per_datum import dicts_of

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

_NAMES = {
    "RetrievalRecall": "Recall",
    "RetrievalRecallAll": "Recall_all",
    "RetrievalNDCGAny": "NDCG_any",
}


def _key(metric: str, k: int | None) -> str | None:
    return f"{_NAMES[metric]}@{k}" if metric in _NAMES and k is not None else None


def to_remem(card: Scorecard) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Convert to pooled ``Recall@k``, ``Recall_all@k`` and ``NDCG_any@k``, and one dict per
    example.

    Args:
        card: a scorecard of retrieval.

    Raises:
        ResultError: the scorecard has none of REMem's metrics.
    """
    examples = dicts_of(card, _key, shape="remem")
    rows = card.metrics.filter(pl.col("slice").is_null()).select("metric", "k", "value")
    pooled = {
        name: 0.0 if value is None else value
        for metric, k, value in rows.iter_rows()
        if (name := _key(metric, k)) is not None
    }
    return pooled, examples
