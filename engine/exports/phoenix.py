"""Phoenix's shape: precision, recall and F-beta as a list of scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.asked import in_name
from evalengine.schemas.errors import ResultError

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard


def to_phoenix(card: Scorecard) -> list[dict[str, Any]]:
    """Convert to precision, recall and F of the selected average (or the positive label).

    Names are Phoenix's: ``precision``, ``recall`` and ``f1`` (``f0_5`` at beta 0.5), followed by
    the average unless it is macro. Undefined is NaN, as with Phoenix's zero_division of NaN.

    Args:
        card: a scorecard, new or loaded, with Precision, Recall and F at its beta.

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
            rows = rows.filter(pl.col("label_value").cast(pl.String) == _text(positive))
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
    """Return the given positive label; by default 1 if labels are 0 and 1 and the average is macro.

    Args:
        labels: all labels, true and predicted.
    """
    if positive_label is not None:
        return positive_label
    if average == "macro" and len(labels) == 2 and all(label in (0, 1) for label in labels):
        return next(label for label in labels if label == 1)
    return None


def _text(value: Any) -> str:
    """A label as Polars writes it as a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)
