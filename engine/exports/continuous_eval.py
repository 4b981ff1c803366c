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
    """One dict per query: precision, recall and F1, and whatever ranked metrics were asked for.

    The keys are the document's; ``context_precision`` and so on, as the release has them, in its
    dialect. Ranked metrics are those over the whole list.

    Args:
        card: a scorecard of retrieval.

    Raises:
        ResultError: none of these metrics was asked for.
    """
    names = (_RELEASE if card.dialect == "continuous-eval" else _DOCUMENT) | _RANKED
    return dicts_of(
        card, lambda metric, k: names.get(metric) if k is None else None, shape="continuous_eval"
    )
