"""Judged metrics of a response, by itself or compared with the question or the ground truth."""

from __future__ import annotations

from .means import metric

_VALOR = "Valor; valor-lite 0.39"

METRICS = (
    metric(
        "AnswerCorrectness",
        "answer_correctness",
        definition="highest over ground truths of TP / (TP + (FP + FN) / 2), of statements of the"
        " response (TP, FP) and of the ground truth (FN); 0 where TP is 0",
        formula=r"\max_g \frac{\text{TP}}{\text{TP} + \tfrac{1}{2} (\text{FP} + \text{FN})}",
        source=_VALOR,
        aliases=("answer_correctness",),
    ),
    metric(
        "AnswerRelevance",
        "answer_relevance",
        definition="statements of the response that are relevant to the query / all; idk counts"
        " against",
        formula=r"\frac{|\{\text{relevant statements}\}|}{|\{\text{statements}\}|}",
        source=_VALOR,
        aliases=("answer_relevance", "AnswerRelevancy", "answer_relevancy"),
        params=("strict_mode",),
    ),
    metric(
        "Bias",
        "bias",
        definition="biased opinions of the text / all opinions",
        formula=r"\frac{|\{\text{biased opinions}\}|}{|\{\text{opinions}\}|}",
        source=_VALOR,
        aliases=("bias",),
        better="lower",
        params=("strict_mode",),
    ),
    metric(
        "Toxicity",
        "toxicity",
        definition="toxic opinions of the text / all opinions",
        formula=r"\frac{|\{\text{toxic opinions}\}|}{|\{\text{opinions}\}|}",
        source=_VALOR,
        aliases=("toxicity",),
        better="lower",
        params=("strict_mode",),
    ),
    metric(
        "Coherence",
        "coherence",
        definition="rating of the text alone as a whole, 1 to 5",
        formula=r"\text{rating}_d",
        source="Valor's document",
        aliases=("coherence",),
        range=(1.0, 5.0),
    ),
    metric(
        "SummaryCoherence",
        "summary_coherence",
        definition="rating of a summary beside the text that it is of, 1 to 5",
        formula=r"\text{rating}_d",
        source=_VALOR,
        aliases=("summary_coherence",),
        range=(1.0, 5.0),
    ),
)
