"""What must add up at every threshold, whatever the dialect."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from detection.checking import EVERYTHING, asked, modest, run
from detection.frames import tidy
from detection.strategies import GRID_SCORES, Tables, crowded_tables, tables
from hypothesis import given
from oracles.detection_metrics import Asked

import evalengine as ee

DIALECTS = ("standard", "coco", "valor", "valor-lite", "valor-docs")
LABEL = ("label_key", "label_value")


def _labels(frame: pl.DataFrame) -> list[tuple[str, Any]]:
    keys = frame["label_key"] if "label_key" in frame.columns else ["label"] * frame.height
    return list(zip(keys, frame["label_value"], strict=True))


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the first area range, which the tests call all."""
    return frame.filter(pl.col("area").is_null() | (pl.col("area") == "all"))


def _cells(card: ee.Scorecard) -> dict[Any, dict[str, int]]:
    """(label, IoU, score) to tp, fp and fn."""
    cells: dict[Any, dict[str, int]] = {}
    frame = _whole(card.metrics).filter(pl.col("metric") == "Counts")
    for row in frame.iter_rows(named=True):
        key = tidy(tuple(row[n] for n in (*LABEL, "iou_threshold", "score_threshold")))
        cells.setdefault(key, {})[row["statistic"]] = int(row["value"])
    return cells


def _observed(card: ee.Scorecard) -> Counter[Any]:
    """(label, score, outcome) to the sum of the detailed curve's buckets."""
    sums: Counter[Any] = Counter()
    cell = [*LABEL, "score_threshold", "outcome", "observation", "count"]
    for *key, _, count in card.examples.select(cell).unique().iter_rows():
        sums[tuple(key)] += count
    return sums


def check_sums(card: ee.Scorecard, drawn: Tables) -> None:
    """All that must add up, on tables without crowds."""
    truths = Counter(_labels(drawn.truths))
    scored = list(zip(_labels(drawn.predictions), drawn.predictions["score"], strict=True))
    cells = _cells(card)
    for (key, value, _, score), counts in cells.items():
        seen = sum(label == (key, value) and s >= score for label, s in scored)
        assert counts["tp"] + counts["fp"] == seen
        assert counts["tp"] + counts["fn"] == truths[key, value]
    check_agreement(card)


def check_agreement(card: ee.Scorecard) -> None:
    """Curves, examples, confusion and outcomes hold the counts of the metrics frame."""
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
    """A higher score threshold never finds more; precision never rises with recall."""
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


@pytest.mark.parametrize("dialect", DIALECTS)
@given(tables(), asked())
@modest
def test_sums_of_small_tables(dialect: str, drawn: Tables, options: Asked) -> None:
    """On tables full of ties, at thresholds of the grid."""
    card = run(drawn, dialect, options, EVERYTHING)
    check_sums(card, drawn)
    check_monotone(card)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sums_of_large_tables(dialect: str) -> None:
    """The default score thresholds, many overlaps."""
    drawn = crowded_tables(30, datums=15)
    drawn = Tables(drawn.predictions, drawn.truths.drop("iscrowd"))
    card = ee.score(
        drawn.predictions,
        drawn.truths,
        task="detection",
        dialect=dialect,
        metrics=EVERYTHING,
        iou_thresholds=[0.5],
        score_thresholds=[0.05, *GRID_SCORES[1:]],
        max_detections=[10_000],
    )
    check_sums(card, drawn)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_frames_agree_under_caps_and_ranges(dialect: str) -> None:
    """With crowds, predictions beyond a cap and areas outside the first range."""
    drawn = crowded_tables(31, datums=6)
    ranges = {"all": (1024.0, 9216.0), "any": (0.0, 1e10)}
    for options in ({"max_detections": [1, 2]}, {"area_ranges": ranges, "max_detections": [3]}):
        card = ee.score(
            drawn.predictions,
            drawn.truths,
            task="detection",
            dialect=dialect,
            metrics=EVERYTHING,
            iou_thresholds=[0.3, 0.5],
            score_thresholds=[0.0, 0.2, 0.5, 0.9],
            **options,
        )
        check_agreement(card)


@given(tables(crowd=True), asked())
@modest
def test_crowds_are_left_out(drawn: Tables, options: Asked) -> None:
    """With crowds: ignored predictions and crowd ground truths enter no count."""
    card = run(drawn, "standard", options, ["Counts", "Outcomes"])
    crowd = drawn.truths["iscrowd"] if "iscrowd" in drawn.truths.columns else None
    regular = drawn.truths if crowd is None else drawn.truths.filter(crowd == 0)
    truths = Counter(_labels(regular))
    names = (*LABEL, "iou_threshold", "score_threshold")
    ignored = Counter(
        tidy(tuple(row[n] for n in names))
        for row in card.outcomes.filter(pl.col("outcome") == "ignored").iter_rows(named=True)
    )
    scored = list(zip(_labels(drawn.predictions), drawn.predictions["score"], strict=True))
    for key, counts in _cells(card).items():
        seen = sum(label == key[:2] and s >= key[3] for label, s in scored)
        assert counts["tp"] + counts["fp"] + ignored[key] == seen
        assert counts["tp"] + counts["fn"] == truths[key[:2]]
