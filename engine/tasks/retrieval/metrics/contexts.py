"""Retrieval as users of ragas know it, without a language model."""

from __future__ import annotations

from .parts import metric

_RAGAS = "ragas 0.4.3"

METRICS = (
    metric(
        "IDBasedContextPrecision",
        "id_context_precision",
        definition="distinct relevant documents retrieved / distinct documents retrieved",
        formula=r"\frac{|D \cap G|}{|D|}",
        source=_RAGAS,
        aliases=("id_based_context_precision",),
    ),
    metric(
        "IDBasedContextRecall",
        "id_context_recall",
        definition="distinct relevant documents retrieved / all that are relevant",
        formula=r"\frac{|D \cap G|}{|G|}",
        source=_RAGAS,
        aliases=("id_based_context_recall",),
    ),
    metric(
        "NonLLMContextPrecision",
        "text_context_precision",
        definition="mean of the precision at the rank of every retrieved text that matches",
        formula=r"\frac{1}{R_m} \sum_{i \le m} \text{rel}_i \frac{R_i}{i}",
        source=_RAGAS,
        aliases=(
            "NonLLMContextPrecisionWithReference",
            "non_llm_context_precision_with_reference",
        ),
    ),
    metric(
        "NonLLMContextRecall",
        "text_context_recall",
        definition="relevant texts that some retrieved text matches / all that are relevant",
        formula=r"\frac{f}{R}",
        source=_RAGAS,
        aliases=("non_llm_context_recall",),
    ),
)
