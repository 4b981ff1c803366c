"""Segments in time: a reference of ActivityNet's rule, its JSON, valid and invalid tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee

TIOUS = [0.3, 0.5, 0.75, 0.95]


def tiou(one: Any, other: Any) -> float:
    shared = max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
    union = (one[1] - one[0]) + (other[1] - other[0]) - shared
    return shared / union if union > 0 else 0.0


def average_precision(truths: list[Any], found: list[Any], threshold: float) -> float:
    """Reference average precision of one label, from rows of video, start, end (and score)."""
    free = [True] * len(truths)
    right = []
    for video, start, end, _ in sorted(found, key=lambda row: -row[3]):
        matches = [
            (tiou((start, end), row[1:3]), -i) for i, row in enumerate(truths) if row[0] == video
        ]
        hit = False
        for overlap, at in sorted(matches, reverse=True):
            if overlap < threshold:
                break
            if free[-at]:
                free[-at], hit = False, True
                break
        right.append(hit)
    tp = np.cumsum(right)
    precision, recall = tp / np.arange(1, len(right) + 1), tp / len(truths)
    precision = np.r_[0, precision, 0]
    recall = np.r_[0, recall, 1]
    for i in range(len(precision) - 2, -1, -1):
        precision[i] = max(precision[i], precision[i + 1])
    steps = np.flatnonzero(recall[1:] != recall[:-1]) + 1
    return float(np.sum((recall[steps] - recall[steps - 1]) * precision[steps]))


def drawn(seed: int) -> tuple[list[Any], list[Any]]:
    """Return random labelled segments, some empty, touching or at negative times; scores differ."""
    rng = np.random.default_rng(seed)

    def side(n: int) -> list[Any]:
        start = np.round(rng.uniform(-3, 20, n), 1)
        length = np.round(rng.choice([0.0, 1.0, 2.5, 4.0, 8.0], n) * rng.uniform(0.5, 1.5, n), 1)
        rows = zip(rng.integers(0, 4, n), start, start + length, rng.integers(0, 3, n), strict=True)
        return [(f"v{v}", float(s), float(e), f"l{c}") for v, s, e, c in rows]

    truths = side(int(rng.integers(1, 25)))
    found = side(int(rng.integers(0, 25)))
    for row in truths:
        if rng.random() < 0.7:
            moved = rng.uniform(-1, 1, 2).round(1)
            ends = sorted((row[1] + moved[0], row[2] + moved[1]))
            found.append((row[0], float(ends[0]), float(ends[1]), row[3]))
    scores = rng.permutation(len(found)) / max(1, len(found))
    return truths, [(*row, float(score)) for row, score in zip(found, scores, strict=True)]


def tables(truths: list[Any], found: list[Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = {
        "datum_id": pl.String,
        "start": pl.Float64,
        "end": pl.Float64,
        "label_value": pl.String,
    }
    return (
        pl.DataFrame(found, schema={**names, "score": pl.Float64}, orient="row"),
        pl.DataFrame(truths, schema=names, orient="row"),
    )


@pytest.mark.parametrize("seed", range(40))
def test_activitynet(seed: int) -> None:
    truths, found = drawn(seed)
    card = ee.score(
        *tables(truths, found), task="spans", dialect="activitynet", iou_thresholds=TIOUS
    )
    means = []
    for threshold in TIOUS:
        values = []
        for label in sorted({row[3] for row in truths}):
            own = [(*row[:3], row[4]) for row in found if row[3] == label]
            values.append(
                average_precision([row for row in truths if row[3] == label], own, threshold)
            )
            ours = card.value("AP", label_value=label, iou_threshold=threshold)
            assert ours == pytest.approx(values[-1], abs=1e-12)
        means.append(np.mean(values))
        assert card.value("mAP", iou_threshold=threshold) == pytest.approx(means[-1], abs=1e-12)
    assert card.value("mAPAveragedOverIOUs") == pytest.approx(np.mean(means), abs=1e-12)


def test_thresholds_of_dialects() -> None:
    truths, found = drawn(1)
    for dialect, ious in (
        ("activitynet", [x / 100 for x in range(50, 100, 5)]),
        ("thumos", [0.3, 0.4, 0.5, 0.6, 0.7]),
        ("standard", [0.5, 0.75]),
    ):
        rows = ee.score(*tables(truths, found), dialect=dialect).metrics.filter(metric="mAP")
        assert rows["iou_threshold"].to_list() == pytest.approx(ious)


def test_standard_equals_that_of_boxes() -> None:
    """Intervals as boxes of equal height have the same values in detection's standard dialect."""
    predictions, truths = tables(*drawn(3))
    whole = [one.filter(pl.col("end") > pl.col("start")) for one in (predictions, truths)]
    boxes = [
        one.rename({"start": "xmin", "end": "xmax"}).with_columns(ymin=0.0, ymax=1.0)
        for one in whole
    ]
    names = ["AP", "mAP", "mAPAveragedOverIOUs", "mAR"]
    ours = ee.score(*whole, metrics=names).metrics
    theirs = ee.score(*boxes, task="detection", metrics=names).metrics
    assert ours["value"].to_list() == pytest.approx(theirs["value"].to_list(), abs=1e-12)


def test_thumos_ignores_ambiguous_segments() -> None:
    truths = [("v", 0.0, 4.0, "a"), ("v", 10.0, 14.0, "a")]
    found = [("v", 10.0, 14.0, "a", 0.9), ("v", 0.0, 4.0, "a", 0.8)]
    ours, theirs = tables(truths, found)
    theirs = theirs.with_columns(ignore=pl.Series([False, True]))
    assert ee.score(ours, theirs, dialect="thumos").value("mAPAveragedOverIOUs") == 1.0
    assert (
        ee.score(ours, theirs.with_columns(ignore=False), dialect="thumos").value(
            "mAP", iou_threshold=0.5
        )
        == 1.0
    )
    lone = ee.score(ours.head(1), theirs, dialect="thumos")
    assert lone.value("mAP", iou_threshold=0.5) == 0.0


def test_empty_and_touching_segments_have_no_overlap() -> None:
    truths = [("v", 1.0, 1.0, "a"), ("v", 4.0, 6.0, "a")]
    found = [("v", 1.0, 1.0, "a", 0.9), ("v", 6.0, 8.0, "a", 0.8)]
    card = ee.score(*tables(truths, found), dialect="activitynet")
    assert card.value("mAPAveragedOverIOUs") == 0.0
    assert "empty_spans" in {one.code for one in card.findings}


def test_json(tmp_path: Path) -> None:
    truth = {
        "database": {
            "v1": {"subset": "validation", "duration": 9.0,
                   "annotations": [{"label": "run", "segment": [0, 4.5]}]},
            "v2": {"subset": "testing", "annotations": [{"label": "run", "segment": [1, 2]}]},
        },
        "version": "1.3",
    }  # fmt: skip
    found = {
        "version": "1.3",
        "results": {"v1": [{"label": "run", "score": 0.5, "segment": [0, 4]}]},
    }
    paths = [tmp_path / name for name in ("found.json", "truth.json")]
    for path, content in zip(paths, (found, truth), strict=True):
        path.write_text(json.dumps(content))
    card = ee.score(*paths, dialect="activitynet")
    assert card.value("mAP", iou_threshold=0.5) == 0.5
    assert "splits_without_predictions" in {one.code for one in card.findings}
    few = ee.score(*paths, dialect="activitynet", where="split = 'validation'")
    assert few.value("mAP", iou_threshold=0.5) == 1.0
    paths[0].write_text('{"results": {"v1": [{"label": "run", "segment": [0]}]}}')
    with pytest.raises(ee.ReadError) as error:
        ee.score(*paths, dialect="activitynet")
    assert error.value.code == "file_malformed"


def test_ranked_metrics_need_scores() -> None:
    predictions, truths = tables(*drawn(2))
    with pytest.raises(ee.InputError) as error:
        ee.score(predictions.drop("score"), truths, metrics=["mAP"])
    assert error.value.code == "metric_unfit"
    assert {*ee.score(predictions.drop("score"), truths).metrics["metric"]} == {
        "Precision",
        "Recall",
        "F1",
    }
    at = ee.score(predictions, truths, metrics=["F1"], iou_thresholds=[0.5], score_thresholds=[0.5])
    assert {*at.metrics["iou_threshold"]} == {0.5}
    assert {*at.metrics["score_threshold"]} == {0.5}


def test_analyses() -> None:
    """Analyses, table summaries and bounds of detection work on spans."""
    predictions, truths = tables(*drawn(5))
    worst = ee.find_errors(predictions, truths, dialect="activitynet")
    assert "F1" in str(worst)
    assert ee.score(predictions, truths, metrics=["Outcomes", "ConfusionMatrix", "TIDE"]).frames
    assert ee.diagnose(predictions, truths) is not None


def test_results_of_which_some_have_scores_are_refused(tmp_path: Path) -> None:
    rows = [{"label": "run", "segment": [i, i + 1], "score": 0.5} for i in range(3)]
    del rows[1]["score"]
    truth = {"database": {"v": {"annotations": [{"label": "run", "segment": [0, 1]}]}}}
    paths = [tmp_path / name for name in ("found.json", "truth.json")]
    for path, content in zip(paths, ({"results": {"v": rows}}, truth), strict=True):
        path.write_text(json.dumps(content))
    with pytest.raises(ee.ReadError) as error:
        ee.score(*paths)
    assert (error.value.code, error.value.facts["count"]) == ("scores_missing", 1)


def test_segments_outside_recordings_are_noted(tmp_path: Path) -> None:
    segments = {f"v{i}": [{"label": "run", "segment": [1, 9]}] for i in range(4)}
    base = {video: {"duration": 10, "annotations": one} for video, one in segments.items()}
    for i, found in enumerate(segments.values()):
        frames = [25, 225] if i % 2 else [-1, 9]
        found[:] = [{"label": "run", "segment": frames, "score": 0.5}]
    truth = {
        "database": {
            video: {**one, "annotations": [{"label": "run", "segment": [1, 9]}]}
            for video, one in base.items()
        }
    }
    paths = [tmp_path / name for name in ("found.json", "truth.json")]
    for path, content in zip(paths, ({"results": segments}, truth), strict=True):
        path.write_text(json.dumps(content))
    card = ee.score(*paths, dialect="activitynet")
    counts = {found.code: found.count for found in card.findings}
    assert counts == {"starts_negative": 2, "spans_after_end": 2}
    assert "'v1', 'v3'" in "".join(card.notes)


@pytest.mark.parametrize(
    ("dialect", "read"),
    [("standard", True), ("thumos", True), ("activitynet", False), ("sed", False)],
)
def test_an_unread_ignore_column_is_noted(dialect: str, read: bool) -> None:
    truth = pl.DataFrame({"datum_id": [1, 2], "label_value": ["a", "a"], "start": [0, 0]})
    truth = truth.with_columns(end=pl.Series([3, 4]), ignore=pl.Series([0, 1]))
    predictions = truth.drop("ignore").with_columns(score=pl.Series([0.5, 0.6]))
    card = ee.score(predictions, truth, dialect=dialect)
    assert [one.count for one in card.findings if one.code == "ignore_unread"] == [1] * (not read)


def test_events_of_no_length_keep_their_ends() -> None:
    """A difference of ends that exceeds the collar by one bit is too much, as in sed_eval."""
    truth = pl.DataFrame(
        {"datum_id": [0], "label_value": ["a"], "start": [2.4], "end": [2.5000000000000004]}
    )
    found = truth.with_columns(start=pl.lit(2.0), end=pl.lit(2.0))
    for predictions in (found, found.with_columns(score=pl.lit(0.5))):
        card = ee.score(predictions, truth, dialect="sed", collar=0.5, percentage_of_length=0)
        assert card.value("F1", average="micro") == 0.0
