"""Judged metrics of ragas: overlap of a reference with its contexts or the response."""

from __future__ import annotations

from .means import metric

_RAGAS = "ragas 0.4.3"

METRICS = (
    metric(
        "LLMContextRecall",
        "llm_context_recall",
        definition="statements of the reference that are attributed to the contexts / all; highest"
        " over references",
        formula=r"\max_g \frac{|\{\text{statements of g attributed to"
        r" contexts}\}|}{|\{\text{statements of g}\}|}",
        source=_RAGAS,
        aliases=("llm_context_recall",),
    ),
    metric(
        "FactualCorrectness",
        "factual_correctness",
        definition="F-beta, precision or recall of claims: TP and FP of the response's, FN of the"
        " reference's that the response does not hold; highest over references",
        formula=r"\max_g \frac{(1 + \beta^2)\, \text{TP}}{(1 + \beta^2)\, \text{TP} + \beta^2\,"
        r" \text{FN} + \text{FP}}",
        source=_RAGAS,
        aliases=("factual_correctness",),
        params=("mode", "beta", "atomicity", "coverage"),
    ),
)
