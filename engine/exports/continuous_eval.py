"""continuous-eval's shape: a dict of scores for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .per_datum import dicts_of

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

_DOCUMENT = {"Precision": "precision", "Recall": "recall", "F1": "f1"}
_RELEASE = {
    "Precision": "context_precision",
    "Recall": "context_recall",
    "F1": "context_f1",
}
_RANKED = {
    "MAP": "average_precision",
    "MRR": "reciprocal_rank",
    "nDCG": "ndcg",
    "TokenCount": "num_tokens",
}


def to_continuous_eval(card: Scorecard) -> list[dict[str, float]]:
    """Convert to one dict per query: precision, recall, F1, and the requested ranked metrics.

    Keys are those of continuous-eval's documentation; in its dialect those of the release,
    ``context_precision`` and so on. Ranked metrics are over the whole list.

    Args:
        card: a scorecard of retrieval.

    Raises:
        ResultError: the scorecard has none of these metrics.
    """
    names = (_RELEASE if card.dialect == "continuous-eval" else _DOCUMENT) | _RANKED
    return dicts_of(
        card, lambda metric, k: names.get(metric) if k is None else None, shape="continuous_eval"
    )
