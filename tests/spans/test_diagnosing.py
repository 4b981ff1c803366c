"""Warnings state why hardly any spans match."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evalengine as ee


def truths() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    start = np.cumsum(rng.integers(3, 9, 30))
    return pl.DataFrame(
        {
            "datum_id": np.arange(30) // 10,
            "label_value": rng.choice(["a", "b"], 30),
            "start": start,
            "end": start + rng.integers(1, 3, 30),
        }
    )


START, END = pl.col("start"), pl.col("end")
CHANGES = {
    "last place": (START, END - 1),
    "Subtract": (START + 7, END + 7),
    "frames at 25": (START * 25, END * 25),
    "milliseconds": (START * 1000, END * 1000),
    "characters": (START * 5 + START % 7, END * 5 + START % 7),
}


@pytest.mark.parametrize("part", [*CHANGES])
def test_reasons(part: str) -> None:
    truth = truths()
    start, end = CHANGES[part]
    found = truth.with_columns(start=start, end=end).sample(fraction=1.0, shuffle=True, seed=1)
    for ours, theirs in ((found, truth), (truth, found)):
        card = ee.score(ours, theirs)
        (warning,) = [one for one in card.findings if one.code == "spans_apart"]
        assert (warning.severity, part in warning.message) == ("warning", True)
        assert warning.message in ee.check(ours, theirs).warnings


def test_no_reason_for_clean_or_random_spans() -> None:
    truth = truths()
    rng = np.random.default_rng(0)
    start = rng.integers(0, 200, 30)
    other = truth.with_columns(start=pl.Series(start), end=pl.Series(start + 2))
    for predictions in (truth, other):
        card = ee.score(predictions, truth)
        assert "spans_apart" not in {one.code for one in card.findings}


def test_segments_that_match_at_the_lowest_threshold_are_accepted() -> None:
    start = pl.Series("start", np.arange(20) * 20.0)
    truth = pl.DataFrame({"datum_id": np.arange(20), "label_value": ["a"] * 20, "start": start})
    truth = truth.with_columns(end=START + 10)
    score = pl.Series(np.linspace(0.1, 0.9, 20))
    predictions = truth.with_columns(start=START + 0.5, end=END + 0.5, score=score)
    for dialect in ("standard", "activitynet"):
        card = ee.score(predictions, truth, dialect=dialect)
        assert card.value("mAP", iou_threshold=0.5) == pytest.approx(1)
        assert not card.warnings
    far = predictions.with_columns(start=START + 7, end=END + 7)
    assert [one.code for one in ee.score(far, truth).findings] == ["spans_apart"]


ROUGH = {
    "frames at 25": ("thumos", lambda ends: (ends * 25).round()),
    "milliseconds": ("sed", lambda ends: ends * 1000),
    "hours": ("activitynet", lambda ends: ends * 3600),
    "later": ("standard", lambda ends: ends + 5),
}


@pytest.mark.parametrize("part", [*ROUGH])
@pytest.mark.parametrize("more", [0, 1])
def test_detections_that_are_inexact(part: str, more: int) -> None:
    rng = np.random.default_rng(1)
    ends = 3 + np.cumsum(rng.uniform(2, 9, (20, 8)), axis=1)
    datum, label = np.repeat(np.arange(20), 4), rng.choice(["a", "b"], 80)
    sides = [
        pl.DataFrame({"datum_id": datum, "label_value": label, "start": one[0], "end": one[1]})
        for one in (e.reshape(-1, 2).T for e in (ends, ends + rng.uniform(-0.5, 0.5, ends.shape)))
    ]
    truth, found = sides[0], sides[1].with_columns(score=pl.Series(rng.random(80)))
    dialect, change = ROUGH[part]
    if more and part != "later":  # pairs in order require equal numbers of spans on both sides
        extra = found.with_columns(end=(START + END) / 2, score=pl.lit(0.01))
        found = pl.concat([found, extra])
    for start, end in ((START, END), (change(START), change(END))):
        card = ee.score(found.with_columns(start=start, end=end), truth, dialect=dialect)
        notes = [one.message for one in card.findings if one.code == "spans_apart"]
        assert [part in message for message in notes] == [True] * (start is not START)


def test_limits_are_of_boxes() -> None:
    with pytest.raises(ee.EvalengineError, match="limits"):
        ee.score(truths(), truths(), limits=True)


def test_tags_without_the_task_are_named() -> None:
    tags = pl.DataFrame({"actual": [["B-A", "O"]] * 3, "predicted": [["B-A", "O"]] * 3})
    card = ee.score(tags)
    (note,) = [one for one in card.findings if one.code == "tags_as_classes"]
    assert "task='spans'" in note.message
    for table, options in (
        (tags, {"task": "classification"}),
        (tags.select(pl.all().list.eval(pl.element().str.replace("B-", "x"))), {}),
    ):
        codes = {one.code for one in ee.score(table, **options).findings}
        assert "tags_as_classes" not in codes


def test_other_labels_are_of_spans() -> None:
    truth = truths()
    predictions = truth.with_columns(label_value="z" + pl.col("label_value"), score=0.5)
    notes = [
        note for note in ee.score(predictions, truth, task="spans").warnings if "overlap" in note
    ]
    assert notes
    assert "boxes" not in " ".join(notes)


def test_video_frames_are_suggested_as_times_without_the_task() -> None:
    rows = pl.DataFrame(
        {"video_id": ["v"], "start_frame": [1], "end_frame": [9], "label": ["x"], "score": [0.5]}
    )
    with pytest.raises(ee.InputError) as error:
        ee.score(rows, rows.drop("score"))
    way = {"start_frame": "start", "end_frame": "end"}
    assert f"task='spans' and columns={way}".replace("'", '"') in str(error.value).replace("'", '"')
    card = ee.score(rows, rows.drop("score"), task="spans", columns=way)
    assert card.value("mAP", iou=0.5) == pytest.approx(1)
    with pytest.raises(ee.InputError) as error:
        ee.score(rows.drop("end_frame"), rows.drop("score"), task="classification")
    assert "If rows are spans" not in str(error.value).partition("ground truths (")[0]
