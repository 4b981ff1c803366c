"""ROUGE."""

from __future__ import annotations

from typing import Any

from ....metrics.registry import Metric
from .parts import metric

_SOURCE = "rouge-score 0.1.2; Lin 2004"
_F = r"\frac{2 P R}{P + R}, \quad P = \frac{M}{|c|}, \quad R = \frac{M}{|r|}"
_PARAMS = ("use_stemmer", "rouge_tokenizer")


def _grams(order: int) -> Metric:
    return metric(
        f"ROUGE{order}",
        f"rouge{order}",
        definition=f"F of {order}-grams that candidate and reference share, each as often as in"
        " both; precision and recall as statistics; mean over datums",
        formula=_F,
        source=_SOURCE,
        params=_PARAMS,
        aliases=(f"rouge{order}", f"rouge-{order}", f"ROUGE-{order}"),
    )


METRICS = (
    _grams(1),
    _grams(2),
    _grams(3),
    metric(
        "ROUGEL",
        "rougel",
        definition="F of the longest common subsequence of tokens; precision and recall as"
        " statistics; in the dialect continuous-eval of the different words in longest common"
        " subsequences of any two sentences, F, precision and recall each of its best reference;"
        " mean over datums",
        formula=_F,
        source=f"{_SOURCE}; in continuous-eval rouge 1.0.1",
        params=_PARAMS,
        aliases=("rougeL", "rouge-l", "rouge-L", "ROUGE-L"),
    ),
    metric(
        "ROUGELsum",
        "rougelsum",
        definition="F of the tokens of the reference in a longest common subsequence of one of its"
        " lines and a line of the candidate; precision and recall as statistics; mean over datums",
        formula=_F,
        source=_SOURCE,
        params=_PARAMS,
        aliases=("rougeLsum", "rouge-lsum", "ROUGE-Lsum"),
    ),
)


TYPES = {metric.aliases[0]: metric.name for metric in METRICS}
"""Type of ROUGE as rouge-score names it -> the metric."""
USUAL = ("rouge1", "rouge2", "rougeL", "rougeLsum")
"""Default of the option ``rouge_types``."""


def _chosen(options: Any) -> tuple[str, ...]:
    """The types that the option ``rouge_types`` names."""
    # Unknown types are refused when options are resolved to settings.
    return tuple(TYPES.get(name, name) for name in options.rouge_types or USUAL)


GROUPS = {"ROUGE": _chosen}
"""Group name -> function that returns its metrics for given options."""
