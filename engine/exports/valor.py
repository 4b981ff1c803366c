"""Valor's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import polars as pl

from .. import dialects, metrics
from ..schemas.errors import OptionError, ResultError
from ..scorecard.card import Scorecard
from ..scorecard.lookup import whole

# Valor's shape of semantic segmentation: valor-lite's entries, plus the service's label.

Entry = dict[str, Any]

_UNDEFINED = 0.0
"""valor-lite's value for undefined numbers."""
_OF_LABEL = ("IOU", "Precision", "Recall", "F1")
_OF_KEY = {"mIOU": "mIOU", "PixelAccuracy": "Accuracy"}
"""Metric -> Valor's name."""


def pixel_entries(card: Scorecard) -> list[Entry]:
    """Convert the numbers of a segmentation over the whole set.

    Returns:
        metrics in the order of the frame, then one confusion matrix per label key.
    """
    return [*_numbers(card), *_matrices(card)]


def _numbers(card: Scorecard) -> Iterator[Entry]:
    whole = card.metrics.filter(pl.col("slice").is_null(), pl.col("average").is_null())
    for row in whole.iter_rows(named=True):
        metric, key, label = row["metric"], row["label_key"], row["label_value"]
        value = _UNDEFINED if row["value"] is None else row["value"]
        if metric in _OF_LABEL:
            yield {
                "type": metric,
                "value": value,
                "parameters": {"label_key": key, "label": str(label)},
                "label": {"key": key, "value": str(label)},
            }
        elif metric in _OF_KEY:
            yield {"type": _OF_KEY[metric], "value": value, "parameters": {"label_key": key}}


def _matrices(card: Scorecard) -> Iterator[Entry]:
    """Return IoU of all pairs of labels per key, and shares of pixels without a matching label."""
    cells = card.frame("confusion").filter(pl.col("slice").is_null())
    if not cells.height:
        return
    iou: dict[tuple[Any, ...], float] = {}
    unmatched: dict[str, dict[tuple[Any, Any], float]] = {"predicted": {}, "actual": {}}
    for row in cells.iter_rows(named=True):
        key, actual, predicted = row["label_key"], row["actual"], row["predicted"]
        if actual is None:
            unmatched["predicted"][key, predicted] = row["share"]
        elif predicted is None:
            unmatched["actual"][key, actual] = row["share"]
        else:
            iou[key, actual, predicted] = row["iou"]
    for (key,), labels in card.labels.group_by("label_key", maintain_order=True):
        values = labels["label_value"].to_list()
        yield {
            "type": "ConfusionMatrix",
            "value": {
                "confusion_matrix": {
                    str(a): {str(b): {"iou": iou.get((key, a, b), 0.0)} for b in values}
                    for a in values
                },
                "unmatched_predictions": _ratios(unmatched["predicted"], key, values),
                "unmatched_ground_truths": _ratios(unmatched["actual"], key, values),
            },
            "parameters": {"label_key": key},
        }


def _ratios(shares: dict[tuple[Any, Any], float], key: Any, values: list[Any]) -> Entry:
    return {str(value): {"ratio": shares.get((key, value), 0.0)} for value in values}


# Valor's shape: a list of ``{"type", "value", "parameters"}``, built only from frames.
#
# Numbers per label have ``"label": {"key", "value"}`` and no label key in their parameters, as in
# Valor; aggregates and curves have the label key there. Counts, Precision, Recall, F1, Accuracy
# and ConfusionMatrix have valor-lite's parameters plus the label key. Only the whole set is
# included: no slices, no area ranges, and only the largest cap on detections.

# Valor's shape of texts: an entry for every datum, ROUGE's types together in one.


_TYPES = {
    "ROUGE1": "rouge1",
    "ROUGE2": "rouge2",
    "ROUGE3": "rouge3",
    "ROUGEL": "rougeL",
    "ROUGELsum": "rougeLsum",
}
_WEIGHTS = (0.25,) * 4


def of_texts(card: Scorecard) -> list[Entry]:
    """Convert ROUGE (F, by type) and BLEU of every scored datum, in the order of the frame.

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
    for datum, scores in rouge.items():
        value = {name: scores[name] for name in _TYPES.values() if name in scores}
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


# Valor's entries of judged metrics: one per datum, an Error if there is no value.

_RATINGS = (1.0, 5.0)
"""Range of metrics whose value is an integer in Valor."""


def judged_entries(card: Scorecard) -> list[dict[str, Any]]:
    """Convert to ``{"type", "value", "parameters"}`` of every datum and judged metric.

    A datum without a value has type ``Error``, with the metric and its status as value, as
    valor-lite does for unusable replies.

    Args:
        card: a scorecard of judged metrics, new or loaded.
    """
    rows = card.frame("per_datum").filter(pl.col("status") != "not_judged")
    rated = {
        metric
        for metric in rows["metric"].unique()
        if metrics.get("judged", metric).range == _RATINGS
    }
    entries: list[dict[str, Any]] = []
    for datum, metric, value, status in rows.select(
        "datum_id", "metric", "value", "status"
    ).iter_rows():
        at = {"datum_uid": datum}
        if value is None:
            error = {"type": metric, "message": status}
            entries.append({"type": "Error", "value": error, "parameters": at})
        else:
            number = int(value) if metric in rated else value
            entries.append({"type": metric, "value": number, "parameters": at})
    return entries


Row = dict[str, Any]

_UNDEFINED_NUMBERS = -1.0
"""Valor's value for undefined numbers, for dialects that keep them undefined."""

_CURVE = "PrecisionRecallCurve"
_DETAILED = "DetailedPrecisionRecallCurve"
_FOLDED = {"duplicates": "hallucinations"}
"""Valor knows no duplicates: a second prediction of one object is a hallucination to it."""

_OBSERVATIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "detection": {
        "tp": ("all",),
        "fp": ("misclassifications", "hallucinations"),
        "fn": ("misclassifications", "no_predictions"),
    },
    "classification": {
        "tp": ("all",),
        "tn": ("all",),
        "fp": ("misclassifications",),
        "fn": ("misclassifications", "no_predictions"),
    },
}
"""Task -> outcome -> observations that every cell of the detailed curve has, if only as zero."""


def to_valor(card: Scorecard) -> list[Entry]:
    """Convert all frames of a scorecard for which Valor has a shape.

    Returns:
        metrics in the order of the metrics frame, then curves, detailed curves and confusion
        matrices. Plain Python values, ready for JSON.

    Raises:
        ResultError: texts with only metrics that Valor does not have.
    """
    if card.task in _WHOLE:
        entries = _WHOLE[card.task](card)
        if not entries and card.task == "text" and card.frame("per_datum").height:
            present = ", ".join(card.frame("per_datum")["metric"].unique(maintain_order=True))
            raise ResultError(
                f"to_valor() supports no metric of this run: {present}.", code="no_metric_shown"
            )
        return entries
    return [
        *_valor_numbers(card),
        *_curves(card),
        *_detailed(card),
        *_confusion(card),
        *_confusion_examples(card),
    ]


def _dialect(card: Scorecard) -> dialects.Dialect | None:
    try:
        return dialects.get(card.task, card.dialect)
    except OptionError:  # a stored result of a dialect that this version does not have
        return None


def _fill(card: Scorecard) -> float:
    dialect = _dialect(card)
    undefined = None if dialect is None else dialect.undefined
    return _UNDEFINED_NUMBERS if undefined is None else undefined


def _setting(card: Scorecard, name: str, otherwise: Any) -> Any:
    """An option as given, or else the dialect's default."""
    value = getattr(card.options, name)
    dialect = _dialect(card)
    if value is None and dialect is not None:
        value = dialect.default(name)
    return otherwise if value is None else value


def _whole_set(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Rows of the whole set: no slices, all areas, the largest cap, per metric or curve."""
    frame = frame.filter(pl.col("slice").is_null())
    parts = [
        whole(frame.filter(pl.col(by) == name), ("area", "max_detections"))
        for name in frame[by].unique(maintain_order=True).to_list()
    ]
    parts = [part.filter(pl.col("area").is_null() | (pl.col("area") == "all")) for part in parts]
    return pl.concat(parts) if parts else frame


def _valor_numbers(card: Scorecard) -> Iterator[Entry]:
    fill = _fill(card)
    ious = sorted(_rounded(iou) for iou in _setting(card, "iou_thresholds", ()))
    entries: dict[tuple[Any, ...], list[Row]] = {}
    for row in _whole_set(card.metrics, "metric").iter_rows(named=True):
        entries.setdefault(tuple(row[name] for name in _OF_ONE_ENTRY), []).append(row)
    for rows in entries.values():
        metric = rows[0]["metric"]
        if metric == "Counts":
            value = {row["statistic"]: int(row["value"] or 0) for row in rows}
            yield {"type": metric, "value": value, "parameters": _at_thresholds(rows[0], ious)}
            continue
        shape = _SHAPES[card.task].get(metric)
        if shape is not None:
            for row in rows:
                yield from _in_shape(row, shape, ious, fill)


_OF_ONE_ENTRY = (
    "metric",
    "label_key",
    "label_value",
    "average",
    "iou_threshold",
    "score_threshold",
)
"""Rows that agree in these make one entry: the statistics of Counts."""


class _Shape(NamedTuple):
    """Entries of a metric.

    Attributes:
        at: makes the parameters of a row, from it and all IoU thresholds.
        averages: rows of other averages have no place in Valor; None for no average.
        labels: only rows of a label.
        omits: undefined numbers are omitted.
        fill: number for undefined ones; None for the dialect's.
        also: another name of the metric, which has the same entry.
    """

    at: Callable[[Row, list[float]], Entry]
    averages: tuple[str | None, ...] = (None, "macro")
    labels: bool = False
    omits: bool = False
    fill: float | None = None
    also: str = ""


def _in_shape(row: Row, shape: _Shape, ious: list[float], fill: float) -> Iterator[Entry]:
    value = row["value"]
    if row["average"] not in shape.averages or (shape.labels and row["label_value"] is None):
        return
    if value is None:
        if shape.omits:
            return
        value = fill if shape.fill is None else shape.fill
    entry: Entry = {"type": row["metric"], "value": value, "parameters": shape.at(row, ious)}
    if row["label_value"] is not None and "label_key" not in entry["parameters"]:
        entry["label"] = {"key": row["label_key"], "value": str(row["label_value"])}
    yield entry
    if shape.also:
        yield {**entry, "type": shape.also}


def _at_ious(row: Row, ious: list[float]) -> Entry:
    at: Entry = {} if row["label_value"] is not None else {"label_key": row["label_key"]}
    if row["iou_threshold"] is None:
        return {**at, "ious": ious}
    return {**at, "iou": _rounded(row["iou_threshold"])}


def _at_thresholds(row: Row, ious: list[float]) -> Entry:
    at: Entry = {"label_key": row["label_key"]}
    if row["label_value"] is not None:
        at["label"] = str(row["label_value"])
    for name in ("iou_threshold", "score_threshold"):
        if row[name] is not None:
            at[name] = _rounded(row[name])
    return at


def _at_key(row: Row, ious: list[float]) -> Entry:
    return {"label_key": row["label_key"]}


_PRECISION = _Shape(_at_ious, omits=True)
_RECALL = _Shape(_at_ious)
_RATIO = _Shape(_at_thresholds, (None,), fill=0.0)
_OF_CLASS = _Shape(lambda row, ious: {}, (None,), labels=True)
_SHAPES: dict[str, dict[str, _Shape]] = {
    "detection": {
        **dict.fromkeys(("AP", "APAveragedOverIOUs", "mAP", "mAPAveragedOverIOUs"), _PRECISION),
        **dict.fromkeys(("AR", "mAR"), _RECALL),
        **dict.fromkeys(("Precision", "Recall", "F1", "Accuracy"), _RATIO),
    },
    "classification": {
        "Accuracy": _Shape(_at_key),
        **dict.fromkeys(("F1", "Precision", "Recall"), _OF_CLASS),
        "ROCAUC": _OF_CLASS._replace(omits=True),
        "mROCAUC": _Shape(_at_key, ("macro",), also="ROCAUC"),
    },
}
"""Task -> metric -> shape of its entries; those of Counts have all statistics."""

_WHOLE: dict[str, Callable[[Scorecard], list[Entry]]] = {
    "judged": judged_entries,
    "segmentation": pixel_entries,
    "text": of_texts,
}
"""Tasks with entries of another kind -> function that makes them."""

_CURVE_FILL = {"detection": 0.0}
"""Task -> fill for undefined values in curves; by default the dialect's fill."""


def _curves(card: Scorecard) -> Iterator[Entry]:
    curves = card.frame("curves").filter(pl.col("curve") == _CURVE)
    fill = _CURVE_FILL.get(card.task, _fill(card))
    by_entry: dict[tuple[Any, Any], Entry] = {}
    for row in _whole_set(curves, "curve").iter_rows(named=True):
        values = by_entry.setdefault((row["label_key"], row["iou_threshold"]), {})
        values.setdefault(str(row["label_value"]), {})[repr(_rounded(row["score_threshold"]))] = {
            "tp": row["tp"],
            "fp": row["fp"],
            "fn": row["fn"],
            "tn": row["tn"],
            "precision": _or(fill, row["precision"]),
            "recall": _or(fill, row["recall"]),
            # Without true negatives, Valor has no accuracy either.
            "accuracy": None if row["tn"] is None else _or(fill, row["accuracy"]),
            "f1_score": _or(fill, row["f1"]),
        }
    yield from _by_key(_CURVE, by_entry)


def _detailed(card: Scorecard) -> Iterator[Entry]:
    limit = _setting(card, "pr_curve_max_examples", 1)
    with_geometry = card.task != "classification"
    by_entry: dict[tuple[Any, Any], Entry] = {}
    cells: dict[tuple[Any, ...], Entry] = {}
    counted: set[tuple[Any, ...]] = set()
    of_curve = card.frame("examples").filter(
        pl.col("slice").is_null(), pl.col("actual").is_null(), pl.col("predicted").is_null()
    )
    # Observations that are folded into others come after them, so that theirs come first.
    folded = pl.col("observation").is_in(list(_FOLDED))
    for row in of_curve.sort(folded, maintain_order=True).iter_rows(named=True):
        place = (row["label_key"], row["iou_threshold"])
        score = repr(_rounded(row["score_threshold"]))
        at = (*place, row["label_value"], score)
        if at not in cells:
            cells[at] = _zeros(card.task)
            values = by_entry.setdefault(place, {})
            values.setdefault(str(row["label_value"]), {})[score] = cells[at]
        outcome = cells[at].setdefault(row["outcome"], {"total": 0, "observations": {}})
        name = _FOLDED.get(row["observation"], row["observation"])
        entry = outcome["observations"].setdefault(name, {"count": 0, "examples": []})
        # The count of a cell is repeated on each row of its examples, so count it once.
        once = (*at, row["outcome"], row["observation"])
        if once not in counted:
            counted.add(once)
            outcome["total"] += row["count"]
            entry["count"] += row["count"]
        if row["datum_id"] is not None and len(entry["examples"]) < limit:
            example = (row["dataset"], row["datum_id"])
            entry["examples"].append((*example, row["geometry"]) if with_geometry else example)
    yield from _by_key(_DETAILED, by_entry)


def _zeros(task: str) -> Entry:
    return {
        outcome: {
            "total": 0,
            "observations": {name: {"count": 0, "examples": []} for name in observations},
        }
        for outcome, observations in _OBSERVATIONS.get(task, {}).items()
    }


def _by_key(kind: str, by_entry: dict[tuple[Any, Any], Entry]) -> Iterator[Entry]:
    for (key, iou), value in by_entry.items():
        yield {
            "type": kind,
            "value": value,
            "parameters": {
                "label_key": key,
                "pr_curve_iou_threshold": None if iou is None else _rounded(iou),
            },
        }


def _confusion(card: Scorecard) -> Iterator[Entry]:
    by_place = {place: _empty_matrix() for place in _places(card)}
    for row in card.frame("confusion").filter(pl.col("slice").is_null()).iter_rows(named=True):
        spot = (row[name] for name in ("iou_threshold", "score_threshold"))
        place = (row["label_key"], *(None if t is None else _rounded(t) for t in spot))
        value = by_place.setdefault(place, _empty_matrix())
        actual, predicted = row["actual"], row["predicted"]
        if actual is None:
            value["unmatched_predictions"][str(predicted)] = row["count"]
        elif predicted is None:
            value["unmatched_ground_truths"][str(actual)] = row["count"]
        else:
            matrix = value["confusion_matrix"]
            matrix.setdefault(str(actual), {})[str(predicted)] = row["count"]
    for (key, iou, score), value in by_place.items():
        at = {"label_key": key, "iou_threshold": iou, "score_threshold": score}
        yield {
            "type": "ConfusionMatrix",
            "value": value,
            "parameters": {name: what for name, what in at.items() if what is not None},
        }


def _empty_matrix() -> Entry:
    return {"confusion_matrix": {}, "unmatched_predictions": {}, "unmatched_ground_truths": {}}


def _places(card: Scorecard) -> list[tuple[str, float | None, float | None]]:
    """Return the keys of all confusion matrices, also empty ones: label key, IoU and score."""
    if "confusion" not in card.frames:
        return []
    keys = card.labels["label_key"].unique(maintain_order=True).to_list()
    grid: list[tuple[float | None, float | None]] = [(None, None)]
    if card.task == "detection":
        ious = card.options.iou_thresholds or (_setting(card, "pr_curve_iou_threshold", 0.5),)
        scores = sorted({_rounded(score) for score in _setting(card, "score_thresholds", ())})
        grid = [(_rounded(iou), score) for iou in sorted(set(ious)) for score in scores]
    return [(key, *at) for key in keys for at in grid]


def _confusion_examples(card: Scorecard) -> Iterator[Entry]:
    """valor-lite's ConfusionMatrixWithExamples, of runs that were asked for examples."""
    of_matrix = card.frame("examples").filter(
        pl.col("slice").is_null(),
        pl.col("actual").is_not_null() | pl.col("predicted").is_not_null(),
    )
    by_key: dict[Any, Entry] = {}
    for row in of_matrix.iter_rows(named=True):
        value = by_key.setdefault(row["label_key"], _empty_matrix())
        actual, predicted = str(row["actual"]), str(row["predicted"])
        if row["actual"] is None:
            cells, name = value["unmatched_predictions"], predicted
        elif row["predicted"] is None:
            cells, name = value["unmatched_ground_truths"], actual
        else:
            cells, name = value["confusion_matrix"].setdefault(actual, {}), predicted
        cell = cells.setdefault(name, {"count": row["count"], "examples": []})
        if row["datum_id"] is not None:
            example = {"datum_id": row["datum_id"]}
            if row["score"] is not None:
                example["score"] = row["score"]
            cell["examples"].append(example)
    for key, value in by_key.items():
        yield {
            "type": "ConfusionMatrixWithExamples",
            "value": value,
            "parameters": {"label_key": key},
        }


def _or(fill: float, value: float | None) -> float:
    return fill if value is None else value


def _rounded(threshold: float) -> float:
    """A threshold as people write it: grids such as COCO's are not round decimals."""
    return round(threshold, 10)
