"""Shapes of continuous-eval, ragas, REMem and Phoenix."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ..schemas.errors import ResultError
from ..schemas.option_values import in_name, label_text

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# Rows of single datums as dicts, which several tools' shapes are made of.

Key = Callable[[str, int | None], str | None]
"""Function from metric and cut-off to another tool's name for it, or None."""


class Rows(list[dict[str, float]]):
    """Dicts per datum, with their ids for joins with the data set.

    Attributes:
        ids: datum id of each dict.
    """

    def __init__(self, rows: dict[Any, dict[str, float]]) -> None:
        super().__init__(rows.values())
        self.ids = list(rows)


def dicts_of(card: Scorecard, key: Key, *, shape: str, undefined: float = 0.0) -> Rows:
    """Return one dict per datum that counts in means, in the order of the frame.

    That is the order of the rows for one table, and of the ids for two.

    Raises:
        ResultError: the scorecard has no metric of that tool.
    """
    by_datum: dict[Any, dict[str, float]] = {}
    some = False
    rows = card.frame("per_datum").filter(
        pl.col("value").is_not_null() | ~pl.col("status").is_in(["not_judged", "not_retrieved"])
    )
    for datum, metric, k, value in rows.select("datum_id", "metric", "k", "value").iter_rows():
        name = key(metric, k)
        row = by_datum.setdefault(datum, {})
        if name is None:
            continue
        if name in row:
            raise ResultError(
                f"to_{shape}() shows {metric} once, and this run has several, which differ in"
                " their parameters: score with one relevance level.",
                code="metric_repeated",
                metric=metric,
            )
        row[name] = undefined if value is None else value
        some = True
    if not some and by_datum:
        present = ", ".join(card.frame("per_datum")["metric"].unique(maintain_order=True))
        raise ResultError(f"to_{shape}() supports no metric of this run: {present}.")
    return Rows(by_datum)


# continuous-eval's shape: a dict of scores for every row.

_DOCUMENT = {"Precision": "precision", "Recall": "recall", "F1": "f1"}
_RELEASE = {"Precision": "context_precision", "Recall": "context_recall", "F1": "context_f1"}
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

    Raises:
                ResultError: the scorecard has no such metric.
    """
    names = (_RELEASE if card.dialect == "continuous-eval" else _DOCUMENT) | _RANKED
    return dicts_of(
        card, lambda metric, k: names.get(metric) if k is None else None, shape="continuous_eval"
    )


# ragas' shape: a dict of scores for every row.

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
    """Convert to one dict per row, by ragas' names; NaN as in ragas.

    Args:
        card: a scorecard of retrieval, of texts (SemanticSimilarity) or of judged metrics.

    Raises:
                ResultError: the scorecard has no metric of ragas.
    """
    mode = card.options.mode or "f1"
    return dicts_of(
        card,
        lambda metric, k: _NAMES[metric].format(mode=mode) if metric in _NAMES else None,
        shape="ragas",
        undefined=float("nan"),
    )


# REMem's shape: pooled values, and a dict for every example.

_REMEM_NAMES = {
    "RetrievalRecall": "Recall",
    "RetrievalRecallAll": "Recall_all",
    "RetrievalNDCGAny": "NDCG_any",
}


def _key(metric: str, k: int | None) -> str | None:
    return f"{_REMEM_NAMES[metric]}@{k}" if metric in _REMEM_NAMES and k is not None else None


def to_remem(card: Scorecard) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Convert to pooled ``Recall@k``, ``Recall_all@k`` and ``NDCG_any@k``, and one dict per
    example.

    Raises:
                ResultError: the scorecard has no metric of REMem.
    """
    examples = dicts_of(card, _key, shape="remem")
    rows = card.metrics.filter(pl.col("slice").is_null()).select("metric", "k", "value")
    pooled = {
        name: 0.0 if value is None else value
        for metric, k, value in rows.iter_rows()
        if (name := _key(metric, k)) is not None
    }
    return pooled, examples


# Phoenix's shape: precision, recall and F-beta as a list of scores.


def to_phoenix(card: Scorecard) -> list[dict[str, Any]]:
    """Convert to precision, recall and F of the selected average (or the positive label).

    Names are Phoenix's: ``precision``, ``recall`` and ``f1`` (``f0_5`` at beta 0.5), followed by
    the average unless it is macro. Undefined is NaN, as with Phoenix's zero_division of NaN.

    Raises:
        ResultError: one of the three is not among its metrics.
    """
    beta = 1.0 if card.options.beta is None else card.options.beta
    average = card.options.average or "macro"
    frame = card.metrics.filter(pl.col("slice").is_null())
    labels = frame.filter(pl.col("average").is_null(), pl.col("metric") == "Precision")
    positive = automatic_positive(
        labels["label_value"].to_list(), card.options.positive_label, average
    )
    scores = []
    for metric, name in (
        ("Precision", "precision"),
        ("Recall", "recall"),
        (f"F{in_name(beta)}", None),
    ):
        rows = frame.filter(pl.col("metric") == metric)
        if positive is None:
            rows = rows.filter(pl.col("average") == average)
        else:
            rows = rows.filter(pl.col("label_value").cast(pl.String) == label_text(positive))
        if rows.height != 1:
            raise ResultError(
                f"to_phoenix() needs one row of {metric}, and there are {rows.height}: score with"
                " metrics=['Precision', 'Recall', 'F1'] (F at its beta) and one label key."
            )
        value = rows["value"].item()
        scores.append(
            phoenix_score(
                name or beta_name(beta),
                math.nan if value is None else value,
                "" if positive is not None or average == "macro" else f"_{average}",
            )
        )
    return scores


def phoenix_score(name: str, value: float, suffix: str) -> dict[str, Any]:
    """One score as Phoenix writes it."""
    return {"name": name + suffix, "score": value, "kind": "code", "direction": "maximize"}


def beta_name(beta: float) -> str:
    """``f1``, ``f0_5``, ``f2``."""
    return "f" + f"{beta:g}".replace(".", "_")


def automatic_positive(labels: list[Any], positive_label: Any, average: str) -> Any:
    """Return the positive label; by default 1 if labels are 0 and 1 and the average is macro."""
    if positive_label is not None:
        return positive_label
    if average == "macro" and len(labels) == 2 and all(label in (0, 1) for label in labels):
        return next(label for label in labels if label == 1)
    return None


# Text form of exports, for the shell.

_ARRAYS = ("precision", "recall", "scores")
"""COCO's arrays of millions of numbers, not printed; use ``to_coco()`` in Python."""


def as_text(card: Scorecard, name: str) -> str:
    """Format an export as lines of text or JSON.

    Rows per datum include their ids: ``{"ids": [...], "rows": [...]}``. COCO's arrays are omitted.

    Args:
        name: of the export, ``to_<name>``.

    Raises:
        ResultError: the task or dialect has no such shape.
    """
    result: Any = getattr(card, f"to_{name.replace('-', '_')}")()
    if isinstance(result, str):
        return result if result.endswith("\n") else result + "\n"
    if isinstance(result, Mapping):
        result = {key: result[key] for key in result if key not in _ARRAYS}
    elif hasattr(result, "ids"):
        result = {"ids": list(result.ids), "rows": list(result)}
    return json.dumps(result, ensure_ascii=False, indent=1, default=str) + "\n"
