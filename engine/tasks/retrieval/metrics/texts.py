"""Retrieval as users of long-memory and RAG evaluations know it."""

from __future__ import annotations

from .parts import metric

_REMEM = "REMem; LongMemEval"

METRICS = (
    metric(
        "RetrievalRecall",
        "retrieval_recall",
        definition="relevant documents among the first k / all that are relevant",
        formula=r"\frac{R_k}{R}",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "RetrievalRecallAll",
        "retrieval_recall_all",
        aliases=("Recall_all",),
        definition="1 where all relevant documents are among the first k, else 0",
        formula=r"[R_k = R]",
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
        formula=r"\frac{\text{rel}_1 + \sum_{i = 2}^{k} \text{rel}_i / \log_2 i}{1 + \sum_{i ="
        r" 2}^{\min(k, R_m)} 1 / \log_2 i}",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "PrecisionRecallF1",
        "precision_recall_f1",
        definition="Precision: retrieved that are relevant / retrieved; Recall: relevant that are"
        " found / relevant; F1: their harmonic mean; a row each",
        formula=r"\frac{h}{m}, \quad \frac{1}{n} \sum_q \frac{f}{R}, \quad \frac{1}{n} \sum_q"
        r" \frac{2 h f}{h R + f m}",
        source="continuous-eval",
    ),
    metric(
        "TokenCount",
        "token_count",
        definition="characters of all retrieved texts, joined by line breaks, / 4, rounded down",
        formula=r"\left\lfloor \frac{\text{characters}}{4} \right\rfloor",
        source="continuous-eval (approx)",
        range=(0.0, float("inf")),
        better="neither",
    ),
)
