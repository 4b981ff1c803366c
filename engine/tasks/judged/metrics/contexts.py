"""Judged metrics of retrieved contexts, and of responses compared with them."""

from __future__ import annotations

from .means import metric

_VALOR = "Valor; valor-lite 0.39"

METRICS = (
    metric(
        "ContextPrecision",
        "context_precision",
        definition="mean of the precision at the rank of every useful context; useful to any ground"
        " truth; 0 where none is",
        formula=r"\frac{1}{\sum_i u_i} \sum_i u_i \frac{\sum_{j \le i} u_j}{i}",
        source=_VALOR,
        aliases=("context_precision", "ContextualPrecision", "contextual_precision"),
        params=("strict_mode",),
    ),
    metric(
        "ContextRecall",
        "context_recall",
        definition="highest over ground truths of its statements that the contexts support / all",
        formula=r"\max_g \frac{|\{\text{statements of g that contexts"
        r" support}\}|}{|\{\text{statements of g}\}|}",
        source=_VALOR,
        aliases=("context_recall", "ContextualRecall", "contextual_recall"),
        params=("strict_mode",),
    ),
    metric(
        "ContextRelevance",
        "context_relevance",
        definition="contexts of which any part is relevant to the query / all contexts",
        formula=r"\frac{|\{\text{relevant contexts}\}|}{|\{\text{contexts}\}|}",
        source=_VALOR,
        aliases=("context_relevance", "ContextualRelevancy", "contextual_relevancy"),
        params=("strict_mode",),
    ),
    metric(
        "Faithfulness",
        "faithfulness",
        definition="claims of the response that the contexts imply / all claims",
        formula=r"\frac{|\{\text{claims that contexts imply}\}|}{|\{\text{claims}\}|}",
        source=_VALOR,
        aliases=("faithfulness",),
        params=("strict_mode", "penalize_ambiguous"),
    ),
    metric(
        "Hallucination",
        "hallucination",
        definition="contexts that the response contradicts / all contexts",
        formula=r"\frac{|\{\text{contexts that the response"
        r" contradicts}\}|}{|\{\text{contexts}\}|}",
        source=_VALOR,
        aliases=("hallucination",),
        better="lower",
        params=("strict_mode",),
    ),
)
