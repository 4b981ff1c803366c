"""Single calls on plain Python lists of labels."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import polars as pl

from .. import dialects, metrics, tasks
from ..exports.phoenix import automatic_positive, beta_name, phoenix_score
from ..schemas.asked import in_name
from ..schemas.errors import InputError, OptionError
from ..schemas.options import Options
from ..tally.datums import Labels
from ..tally.scored_view import ScoredView
from ..tally.units import Units

_AVERAGES = ("macro", "micro", "weighted")


def precision_recall_fscore(
    expected: Sequence[Hashable],
    output: Sequence[Hashable],
    *,
    beta: float = 1.0,
    average: str = "macro",
    positive_label: Any = None,
    zero_division: float = 0.0,
) -> list[dict[str, Any]]:
    """Precision, recall and F-beta of two lists of labels, as Phoenix's PrecisionRecallFScore.

    Labels are compared as Python compares them, so 1 equals 1.0 and True but not "1".

    Args:
        expected: true labels, integers, strings or booleans.
        output: predicted labels, of the same length.
        beta: weight of recall in F, above 0.
        average: ``macro``, ``micro`` or ``weighted``.
        positive_label: score only this label. By default it is 1 if the average is macro and the
            labels are 0 and 1.
        zero_division: value of 0 / 0; NaN gives NaN.

    Returns:
        three dicts of ``name``, ``score``, ``kind`` and ``direction``.

    Raises:
        InputError: not sequences, different lengths, empty, or the positive label does not occur.
        OptionError: beta or average out of range.

    Example:
        >>> import evalengine as ee
        >>> scores = ee.precision_recall_fscore(["cat", "dog", "cat"], ["cat", "cat", "cat"])
        >>> [(score["name"], round(score["score"], 3)) for score in scores]
        [('precision', 0.333), ('recall', 0.5), ('f1', 0.4)]
    """
    if average not in _AVERAGES:
        raise OptionError(f"average={average!r}: write one of {', '.join(_AVERAGES)}.")
    if isinstance(beta, bool) or not (math.isfinite(beta) and beta > 0):
        raise OptionError(f"beta={beta}: write a finite number above 0.")
    truth, predicted = _list("expected", expected), _list("output", output)
    if len(truth) != len(predicted):
        raise InputError(
            f"expected and output must have the same length: {len(truth)} and {len(predicted)}."
        )
    if not truth:
        raise InputError("expected and output must be non-empty.")
    code: dict[Hashable, int] = {}
    for label in (*truth, *predicted):
        code.setdefault(label, len(code))
    positive = automatic_positive(list(code), positive_label, average)
    if positive is not None and positive not in code:
        raise InputError(f"positive_label={positive!r} is not among the labels {list(code)[:10]}.")
    options = Options(
        dialect="phoenix", beta=float(beta), average=average, zero_division=float(zero_division)
    )
    settings = tasks.get("classification").settings(
        options, dialects.get("classification", "phoenix")
    )
    view = _view([code[label] for label in truth], [code[label] for label in predicted], len(code))
    scores = []
    suffix = "" if positive is not None or average == "macro" else f"_{average}"
    for metric, name in (
        ("Precision", "precision"),
        ("Recall", "recall"),
        (f"F{in_name(beta)}", beta_name(beta)),
    ):
        compute = metrics.get("classification", metric).compute
        assert compute is not None
        cells = {cell.columns.get("average"): cell for cell in compute(view, settings)}
        chosen = cells[None if positive is not None else average].columns["value"]
        assert isinstance(chosen, np.ndarray)
        value = chosen[0, 0 if positive is None else code[positive]]
        scores.append(phoenix_score(name, float(value), suffix))
    return scores


def _list(name: str, labels: Any) -> list[Hashable]:
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise InputError(f"{name} must be a sequence of labels, not {labels!r}.")
    found = list(labels.tolist() if hasattr(labels, "tolist") else labels)
    wrong = [label for label in found if not isinstance(label, (str, int, float))]
    if wrong or any(isinstance(label, float) and not label.is_integer() for label in found):
        raise InputError(
            f"{name}: labels are strings, integers or booleans; found"
            f" {(wrong or [x for x in found if isinstance(x, float)])[0]!r}."
        )
    return found


def _view(truth: list[int], predicted: list[int], n_labels: int) -> ScoredView:
    units = Units(
        datum=None,
        key=None,
        truth=np.array(truth, np.int32),
        truth_start=None,
        hard=np.array(predicted, np.int32),
        hard_score=None,
        weight=None,
    )
    names = pl.DataFrame({"label_key": ["label"] * n_labels, "label_value": range(n_labels)})
    labels = Labels(names, np.zeros(n_labels, np.int32), ("label",))
    return ScoredView(units, None, labels)
