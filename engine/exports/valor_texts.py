"""Valor's shape of texts: an entry for every datum, ROUGE's types together in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

Entry = dict[str, Any]

_TYPES = {
    "ROUGE1": "rouge1",
    "ROUGE2": "rouge2",
    "ROUGE3": "rouge3",
    "ROUGEL": "rougeL",
    "ROUGELsum": "rougeLsum",
}
_WEIGHTS = (0.25,) * 4


def of_texts(card: Scorecard) -> list[Entry]:
    """ROUGE (F, by type) and BLEU of every datum that is scored, in the order of the frame.

    Args:
        card: a scorecard of texts.

    Returns:
        dicts of ``type``, ``value`` and ``parameters``: ``datum_uid`` and the options of the
        metric.
    """
    options = card.options
    rows = card.frame("per_datum").filter(
        pl.col("status") == "scored", pl.col("statistic").is_null(), pl.col("value").is_not_null()
    )
    rouge: dict[Any, dict[str, float]] = {}
    bleu: dict[Any, float] = {}
    for datum, metric, value in rows.select("datum_id", "metric", "value").iter_rows():
        if metric in _TYPES:
            rouge.setdefault(datum, {})[_TYPES[metric]] = value
        elif metric == "BLEU":
            bleu[datum] = value
    entries: list[Entry] = []
    for datum, found in rouge.items():
        value = {name: found[name] for name in _TYPES.values() if name in found}
        parameters = {"rouge_types": [*value], "use_stemmer": bool(options.use_stemmer)}
        entries.append(
            {"type": "ROUGE", "value": value, "parameters": {"datum_uid": datum, **parameters}}
        )
    weights = list(options.bleu_weights or _WEIGHTS)
    entries += [
        {"type": "BLEU", "value": value, "parameters": {"datum_uid": datum, "weights": weights}}
        for datum, value in bleu.items()
    ]
    return entries
