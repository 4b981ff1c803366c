"""ragas' shape: a dict of scores for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .per_datum import dicts_of

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

_NAMES = {
    "IDBasedContextPrecision": "id_based_context_precision",
    "IDBasedContextRecall": "id_based_context_recall",
    "NonLLMContextPrecision": "non_llm_context_precision_with_reference",
    "NonLLMContextRecall": "non_llm_context_recall",
    "LLMContextRecall": "context_recall",
    "ContextPrecision": "llm_context_precision_with_reference",
    "Faithfulness": "faithfulness",
    "FactualCorrectness": "factual_correctness(mode={mode})",
    "SemanticSimilarity": "semantic_similarity",
}


def to_ragas(card: Scorecard) -> list[dict[str, float]]:
    """Convert to one dict per row, by ragas' names; NaN where ragas has NaN.

    Args:
        card: a scorecard of retrieval, of texts (SemanticSimilarity) or of judged metrics.

    Raises:
        ResultError: the scorecard has none of ragas' metrics.
    """
    mode = card.options.mode or "f1"
    return dicts_of(
        card,
        lambda metric, k: _NAMES[metric].format(mode=mode) if metric in _NAMES else None,
        shape="ragas",
        undefined=float("nan"),
    )
