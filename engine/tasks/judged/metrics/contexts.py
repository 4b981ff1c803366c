"""Judged metrics of retrieved contexts, and of texts held against them."""

from __future__ import annotations

from .means import metric

_VALOR = "Valor; valor-lite 0.39"

METRICS = (
    metric(
        "ContextPrecision",
        "context_precision",
        definition="mean of the precision at the rank of every useful context; useful to any ground"
        " truth; 0 where none is",
        source=_VALOR,
        aliases=("context_precision", "ContextualPrecision", "contextual_precision"),
        params=("strict_mode",),
    ),
    metric(
        "ContextRecall",
        "context_recall",
        definition="highest over ground truths of its statements that the contexts support / all",
        source=_VALOR,
        aliases=("context_recall", "ContextualRecall", "contextual_recall"),
        params=("strict_mode",),
    ),
    metric(
        "ContextRelevance",
        "context_relevance",
        definition="contexts of which any part is relevant to the query / all contexts",
        source=_VALOR,
        aliases=("context_relevance", "ContextualRelevancy", "contextual_relevancy"),
        params=("strict_mode",),
    ),
    metric(
        "Faithfulness",
        "faithfulness",
        definition="claims of the response that the contexts imply / all claims",
        source=_VALOR,
        aliases=("faithfulness",),
        params=("strict_mode", "penalize_ambiguous"),
    ),
    metric(
        "Hallucination",
        "hallucination",
        definition="contexts that the response contradicts / all contexts",
        source=_VALOR,
        aliases=("hallucination",),
        better="lower",
        params=("strict_mode",),
    ),
)
