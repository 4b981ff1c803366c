"""Retrieval as users of long-memory and RAG evaluations know it."""

from __future__ import annotations

from .parts import metric

_REMEM = "REMem; LongMemEval"

METRICS = (
    metric(
        "RetrievalRecall",
        "retrieval_recall",
        definition="relevant documents among the first k / all that are relevant",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "RetrievalRecallAll",
        "retrieval_recall_all",
        aliases=("Recall_all",),
        definition="1 where all relevant documents are among the first k, else 0",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "RetrievalNDCGAny",
        "retrieval_ndcg_any",
        aliases=("NDCG_any",),
        definition="relevance of rank 1 plus sum of relevance / log2(rank) behind it, over that of"
        " the best order of what was retrieved; relevance is 0 or 1",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "PrecisionRecallF1",
        "precision_recall_f1",
        definition="Precision: retrieved that are relevant / retrieved; Recall: relevant that are"
        " found / relevant; F1: their harmonic mean; a row each",
        source="continuous-eval",
    ),
    metric(
        "TokenCount",
        "token_count",
        definition="characters of all retrieved texts, joined by line breaks, / 4, rounded down",
        source="continuous-eval (approx)",
        range=(0.0, float("inf")),
        better="neither",
    ),
)
