"""Sums that must agree at every threshold, in every dialect."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
from detection.strategies import Tables
from oracles.detection_metrics import DIALECTS
from output_frames import tidy

import evalengine as ee

LABEL = ("label_key", "label_value")


def _labels(frame: pl.DataFrame) -> list[tuple[str, Any]]:
    keys = frame["label_key"] if "label_key" in frame.columns else ["label"] * frame.height
    return list(zip(keys, frame["label_value"], strict=True))


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the first area range, which the tests call all."""
    return frame.filter(pl.col("area").is_null() | (pl.col("area") == "all"))


def _cells(card: ee.Scorecard) -> dict[Any, dict[str, int]]:
    """Map (label, IoU, score) to tp, fp and fn."""
    cells: dict[Any, dict[str, int]] = {}
    frame = _whole(card.metrics).filter(pl.col("metric") == "Counts")
    for row in frame.iter_rows(named=True):
        key = tidy(tuple(row[n] for n in (*LABEL, "iou_threshold", "score_threshold")))
        cells.setdefault(key, {})[row["statistic"]] = int(row["value"])
    return cells


def _observed(card: ee.Scorecard) -> Counter[Any]:
    """Map (label, score, outcome) to the sum of the detailed curve's cells."""
    sums: Counter[Any] = Counter()
    cell = [*LABEL, "score_threshold", "outcome", "observation", "count"]
    for *key, _, count in card.examples.select(cell).unique().iter_rows():
        sums[tuple(key)] += count
    return sums


def check_sums(card: ee.Scorecard, drawn: Tables) -> None:
    """Check all sums; ignored predictions and crowds are in no count."""
    truths = drawn.truths
    if DIALECTS[card.dialect].crowd and "iscrowd" in truths.columns:
        truths = truths.filter(iscrowd=0)
    annotated = Counter(_labels(truths))
    names = (*LABEL, "iou_threshold", "score_threshold")
    rows = card.outcomes.filter(outcome="ignored").select(names).iter_rows()
    ignored = Counter(map(tidy, rows))
    scored = list(zip(_labels(drawn.predictions), drawn.predictions["score"], strict=True))
    for key, counts in _cells(card).items():
        listed = sum(label == key[:2] and s >= key[3] for label, s in scored)
        assert counts["tp"] + counts["fp"] + ignored[key] == listed
        assert counts["tp"] + counts["fn"] == annotated[key[:2]]
    check_agreement(card)
    check_monotone(card)


def check_agreement(card: ee.Scorecard) -> None:
    """Check that curves, examples, confusion and outcomes contain the counts of metrics."""
    cells = _cells(card)
    observed = _observed(card)
    for row in _whole(card.curves).filter(pl.col("curve") == "PrecisionRecallCurve").to_dicts():
        key = (*(row[n] for n in LABEL), row["score_threshold"])
        for outcome in ("tp", "fp", "fn"):
            assert observed[*key, outcome] == row[outcome]
    diagonal: Counter[Any] = Counter()
    actual: Counter[Any] = Counter()
    predicted: Counter[Any] = Counter()
    for row in card.confusion.iter_rows(named=True):
        at = tidy((row["iou_threshold"], row["score_threshold"]))
        assert row["count"] > 0
        if row["actual"] == row["predicted"]:
            diagonal[row["label_key"], row["actual"], *at] += row["count"]
        if row["actual"] is not None:
            actual[row["label_key"], row["actual"], *at] += row["count"]
        if row["predicted"] is not None:
            predicted[row["label_key"], row["predicted"], *at] += row["count"]
    for key, counts in cells.items():
        assert diagonal[key] == counts["tp"]
        assert actual[key] == counts["tp"] + counts["fn"]
        assert predicted[key] == counts["tp"] + counts["fp"]
    outcomes: Counter[Any] = Counter()
    for row in card.outcomes.iter_rows(named=True):
        names = (*LABEL, "iou_threshold", "score_threshold")
        outcomes[*tidy(tuple(row[n] for n in names)), row["outcome"][:2]] += 1
    for key, counts in cells.items():
        for outcome, count in counts.items():
            assert outcomes[*key, outcome] == count


def check_monotone(card: ee.Scorecard) -> None:
    """Check that a higher score threshold never adds hits, nor precision rises with recall."""
    cells = _cells(card)
    for (*label, iou, score), counts in cells.items():
        for higher in (s for *_, s in cells if s > score):
            above = cells[*label, iou, higher]
            assert above["tp"] <= counts["tp"]
            assert above["fp"] <= counts["fp"]
    curves = card.curves.filter(pl.col("curve") == "InterpolatedPrecisionRecallCurve")
    for _, curve in curves.group_by(*LABEL, "iou_threshold", "area"):
        precision = curve.sort("recall")["precision"].to_list()
        assert precision == sorted(precision, reverse=True)
