"""Tiny tables that make every kernel of retrieval run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ... import metrics
from .settings import MATCHES, SENTENCES

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Runs and judgments by id, and lists of texts by every rule."""
    every = [name for name in metrics.names("retrieval") if name != "TokenCount"]
    run = pl.DataFrame(
        {"query_id": ["a", "b", "a"], "doc_id": ["x", "y", "z"], "score": [1.0, 1.0, 1.0]}
    )
    qrels = pl.DataFrame(
        {"query_id": ["a", "b", "a"], "doc_id": ["x", "y", "w"], "relevance": [1.0, 0.0, 2.0]}
    )
    yield run, qrels, {"metrics": every}
    yield run, qrels, {"metrics": ["RetrievalRecallAll", "MAP", "MRR", "nDCG"], "ties": "average"}
    texts = pl.DataFrame(
        {
            "retrieved": [["One sentence. And another one.", "user: three"]],
            "relevant": [["One sentence. And another.", "three words here"]],
        }
    )
    for match in MATCHES:
        wanted = ["PrecisionRecallF1"] if match in SENTENCES else ["PrecisionRecallF1", "MRR"]
        for dialect in ("standard", "continuous-eval"):
            yield texts, None, {"metrics": wanted, "match": match, "dialect": dialect}
    yield texts, None, {"dialect": "remem"}


def warm_large() -> None:
    """Run the kernels that only large tables reach."""
    from ...kernels import warm

    warm.walks()
