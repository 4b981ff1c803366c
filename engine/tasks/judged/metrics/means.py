"""Means of judged metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.registry import Metric
from ....tally.cells import Cells

if TYPE_CHECKING:
    from ....tally.stats import Column, StatsView

# Means over judged datums, with counts of those without a value.

SCORED, NOT_JUDGED = "scored", "not_judged"
"""Standing of a datum that has a value, and of one that has no row of the metric."""
_MOST_KINDS = 10


def mean_of_judged(need: str) -> Callable[[StatsView, Any], list[Cells]]:
    """Return a function that computes the mean over datums with a value, and reasons for the rest.

    ``support`` counts the datums with rows of the metric, ``scored`` those of them with a
    value, ``reason`` the rest by kind; ``parameters`` contain the better direction.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        return [_cells(column, view, settings) for column in view.columns[need]]

    return compute


def _cells(column: Column, view: StatsView, settings: Any) -> Cells:
    assert column.status is not None
    names, _ = column.status
    total, scored = (part[:, 0, 0] for part in view.total(column))
    value = np.full(total.shape, np.nan)
    np.divide(total, scored, out=value, where=scored > 0)
    group, code, count = view.standings(column)
    out = code == names.index(NOT_JUDGED)
    absent = np.bincount(group[out], count[out], view.n_groups)
    support = np.bincount(group[~out], count[~out], view.n_groups)
    unscored: list[dict[str, int]] = [{} for _ in range(view.n_groups)]
    for i in np.flatnonzero(~out & (code != names.index(SCORED)) & (count > 0)):
        unscored[group[i]][names[code[i]]] = int(count[i])
    reasons = [
        _reason(int(support[group]), int(absent[group]), kinds)
        for group, kinds in enumerate(unscored)
    ]
    return Cells(
        axes=("group",),
        columns={
            "metric": column.metric,
            "value": value,
            "support": support,
            "scored": scored,
            "parameters": json.dumps(settings.parameters_of(column.metric)),
        },
        shape=value.shape,
        reason=np.array(reasons, dtype=np.str_),
        always=True,
    )


def _reason(rows: int, absent: int, unscored: dict[str, int]) -> str:
    """Return why a mean is undefined, or which datums are not in it, based on counts."""
    if not rows:
        return "no verdict of this metric" if absent else "no datum to average over"
    left = sum(unscored.values())
    return f"{left} of {_rows(rows)} not scored: {kinds_of(unscored)}" if left else ""


def kinds_of(unscored: dict[str, int]) -> str:
    """Format counts per kind as ``timeout 3, refused 1``, the most frequent kinds first."""
    first = sorted(unscored.items(), key=lambda kind: (-kind[1], kind[0]))
    counts = [f"{name} {count}" for name, count in first[:_MOST_KINDS]]
    rest = [count for _, count in first[_MOST_KINDS:]]
    if rest:
        kinds = "another kind" if len(rest) == 1 else f"{len(rest):,} other kinds"
        counts.append(f"{sum(rest):,} of {kinds}")
    return ", ".join(counts)


def _rows(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def metric(name: str, need: str, *, formula: str, **rest: Any) -> Metric:
    """Define a judged metric: the mean over datums of its need's value."""
    return Metric(
        name=name,
        task="judged",
        frame="metrics",
        needs=(need,),
        compute=mean_of_judged(need),
        formula=r"\frac{1}{n} \sum_d " + formula,
        **rest,
    )


# Judged metrics of a response, by itself or compared with the question or the ground truth.

_VALOR = "Valor; valor-lite 0.39"

_ANSWERS_METRICS = (
    metric(
        "AnswerCorrectness",
        "answer_correctness",
        definition="highest over ground truths of TP / (TP + (FP + FN) / 2), of statements of the"
        " response (TP, FP) and of the ground truth (FN); 0 if TP is 0",
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
        definition="rating of only the text, as a whole, 1 to 5",
        formula=r"\text{rating}_d",
        source="Valor's document",
        aliases=("coherence",),
        range=(1.0, 5.0),
    ),
    metric(
        "SummaryCoherence",
        "summary_coherence",
        definition="rating of a summary next to its text, 1 to 5",
        formula=r"\text{rating}_d",
        source=_VALOR,
        aliases=("summary_coherence",),
        range=(1.0, 5.0),
    ),
)


# Judged metrics of retrieved contexts, and of responses compared with them.

_CONTEXTS_METRICS = (
    metric(
        "ContextPrecision",
        "context_precision",
        definition="mean of the precision at the rank of every useful context; useful to any ground"
        " truth; 0 if none is",
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


# Judged metrics of ragas: overlap of a reference with its contexts or the response.

_RAGAS = "ragas 0.4.3"

_RAGAS_METRICS = (
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
        " reference's missing in the response; highest over references",
        formula=r"\max_g \frac{(1 + \beta^2)\, \text{TP}}{(1 + \beta^2)\, \text{TP} + \beta^2\,"
        r" \text{FN} + \text{FP}}",
        source=_RAGAS,
        aliases=("factual_correctness",),
        params=("mode", "beta", "atomicity", "coverage"),
    ),
)


METRICS = (*_ANSWERS_METRICS, *_CONTEXTS_METRICS, *_RAGAS_METRICS)
