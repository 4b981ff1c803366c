"""Metrics of faithfulness to contexts, without a judge."""

from __future__ import annotations

from typing import Any

from ....metrics.registry import Metric
from .parts import metric


def _faithfulness(name: str, need: str, definition: str, *params: str, formula: str) -> Metric:
    return metric(
        name,
        need,
        definition=f"{definition}; mean over datums; references are not read",
        formula=formula,
        source="continuous-eval 0.3.14 DeterministicFaithfulness",
        spares=("reference",),
        reads=("contexts",),
        params=params,
        aliases=(f"{need.replace('token', 'token_overlap')}",),
    )


METRICS = (
    _faithfulness(
        "RougeFaithfulness",
        "rouge_faithfulness",
        "sentences of the text whose ROUGE-L precision (package rouge) against all contexts is 0.5"
        " or more / sentences",
        "faithfulness_threshold",
        formula=r"\frac{1}{|s|} \sum_s [P_s \ge \theta]",
    ),
    _faithfulness(
        "TokenOverlapFaithfulness",
        "token_faithfulness",
        "sentences of the text of whose content words the contexts have half or more / sentences",
        "faithfulness_threshold",
        "stop_words",
        formula=r"\frac{1}{|s|} \sum_s [P_s \ge \theta]",
    ),
    _faithfulness(
        "BLEUFaithfulness",
        "bleu_faithfulness",
        "mean over the sentences of the text of their BLEU of characters against all contexts",
        formula=r"\frac{1}{|s|} \sum_s \text{BLEU}_s",
    ),
)


def _every(options: Any) -> tuple[str, ...]:
    """All three."""
    return tuple(one.name for one in METRICS)


GROUPS = {"DeterministicFaithfulness": _every}
"""Group name -> function that returns its metrics for given options."""
