"""Complete frames in every format of the command, and columns that the tables do not show."""

from __future__ import annotations

import functools
import io
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee
from evalengine.metrics import get
from evalengine.report.show import show, show_frame
from evalengine.report.text import number
from evalengine.schemas.results import FRAMES

EXAMPLES = Path(__file__).parent.parent / "examples"
FRAME = pl.DataFrame(
    {
        "label": ["a|b", "c\nd", None],
        "count": [1, 200, None],
        "value": [0.5, None, 2.0],
        "empty": pl.Series([None] * 3, dtype=pl.String),
    }
)


def example(task: str, **options: Any) -> ee.Scorecard:
    folder = EXAMPLES / task
    return ee.score(folder / "predictions.parquet", folder / "groundtruths.parquet", **options)


def written(frame: pl.DataFrame, form: str) -> str:
    out = io.StringIO()
    show_frame(frame, form, out)
    return out.getvalue()


def table_of(card: ee.Scorecard) -> str:
    out = io.StringIO()
    show(card, "table", out)
    return out.getvalue()


class TestFrames:
    def test_aligned(self) -> None:
        assert written(FRAME, "table").splitlines() == [
            "label  count   value",
            "a|b        1  0.5000",
            "c\\nd     200       –",
            "–          –       2",
        ]

    def test_markdown(self) -> None:
        assert written(FRAME, "markdown").splitlines() == [
            "| label | count | value |",
            "| --- | ---: | ---: |",
            "| a\\|b | 1 | 0.5000 |",
            "| c\\\\nd | 200 | – |",
            "| – | – | 2 |",
        ]

    @pytest.mark.parametrize(
        ("form", "expected"), [("table", "no rows\n"), ("markdown", "--- |\n")]
    )
    def test_without_rows_all_columns_are_named(self, form: str, expected: str) -> None:
        text = written(FRAME.clear(), form)
        assert "empty" in text
        assert text.endswith(expected)

    @pytest.mark.parametrize("name", list(FRAMES))
    def test_every_frame_has_one_line_per_row_in_both_formats(self, name: str) -> None:
        frame = every_frame().frame(name)
        n = frame.height
        assert len(written(frame, "table").splitlines()) == max(1, n) + 1
        assert len(written(frame, "markdown").splitlines()) == n + 2


class TestNothingIsHidden:
    """For every requested metric the table shows values, or states where they are."""

    @pytest.mark.parametrize("task", ["detection", "classification"])
    def test_each_metric_alone_and_with_those_of_the_layout(self, task: str) -> None:
        table = ee.metrics_table().filter(task=task, frame="metrics")
        for name in table["name"]:
            needs = get(task, name).needs  # fields that the example's boxes do not have
            if any(
                "keypoints" in one or one in ("places", "true positives", "angles") for one in needs
            ):
                continue
            alone = example(task, metrics=[name])
            own = alone.metrics.filter(metric=name)
            if own["value"].null_count() == own.height:  # such as AP of LVIS' rare labels
                assert own["reason"][0] in table_of(alone), name
                continue
            assert some_number(alone, name) in table_of(alone), name
            both = table_of(example(task, metrics=["AP", name]))
            assert some_number(alone, name) in both or re.search(
                rf"more columns?\b.*{re.escape(name)}", both
            ), name

    def test_counts_and_f1_of_labels_are_next_to_ap(self) -> None:
        text = table_of(example("detection", metrics=["AP", "Counts", "F1"]))
        line = next(line for line in text.splitlines() if "car " in line)
        assert line.split()[1:] == ["0.7586", "0.5508", "105", "5", "54", "0.7807", "159"]
        assert "F1 at IoU 0.5, score 0.5" in text

    def test_more_thresholds_than_the_layout_has_room_for(self) -> None:
        ious = [0.5, 0.6, 0.7, 0.8, 0.9]
        card = example("detection", metrics=["AP"], iou_thresholds=ious)
        assert "and 2 more columns\n" in table_of(card)
        assert "2 more columns" in card._repr_html_()

    def test_columns_without_room_are_named(self) -> None:
        names = ["Precision", "Recall", "F1", "Jaccard", "Counts", "AP"]
        text = table_of(example("classification", metrics=names))
        assert re.search(r"\d more columns: Counts f", text)

    def test_no_empty_lines_follow_each_other(self) -> None:
        assert "\n\n\n" not in table_of(example("classification", metrics=["Counts"]))


class TestReliability:
    def test_every_bin_is_a_line(self) -> None:
        card = example("classification", metrics=["Reliability", "ECE"], n_bins=10)
        rows = card.metrics.filter(metric="Reliability")
        bins = [
            [f"{at:.4f}", *(number(v) for v in part["value"]), str(part["support"][0])]
            for (at,), part in rows.group_by(["score_threshold"], maintain_order=True)
        ]
        assert len(bins) == rows["score_threshold"].n_unique() > 5
        lines = [line.split() for line in table_of(card).splitlines()]
        at = lines.index(
            ["Reliability", "bin", "from", "confidence", "accuracy", "share", "support"]
        )
        assert lines[at + 1 : at + 1 + len(bins)] == bins
        assert "at score" not in table_of(card)

    def test_in_markdown_html_and_at_the_prompt(self) -> None:
        card = example("classification", metrics=["Reliability"], n_bins=2)
        out = io.StringIO()
        show(card, "markdown", out)
        assert "| Reliability bin from |" in out.getvalue()
        assert "| accuracy | share | support |" in out.getvalue()
        assert "| 0.5000 |" in out.getvalue()
        assert '<td style="text-align:left">0.5000</td>' in card._repr_html_()
        assert "  Reliability: 2 rows" in repr(card)

    def test_slices_do_not_show_one_bin_as_if_it_were_all(self) -> None:
        truths = pl.DataFrame(
            {"datum_id": [1, 2], "label_value": ["a", "b"], "day": ["mon", "tue"]}
        )
        predictions = pl.DataFrame(
            {"datum_id": [1, 2], "label_value": ["a", "a"], "score": [0.9, 0.4]}
        )
        metrics = ["Accuracy", "Reliability"]
        text = table_of(ee.score(predictions, truths, metrics=metrics, by="day"))
        assert "  day  Accuracy  support\n" in text
        assert "and 3 more columns\n" in text


def some_number(card: ee.Scorecard, name: str) -> str:
    """Return a value of the metric as a table shows it, at the threshold nearest 0.5."""
    rows = card.metrics.filter(metric=name).drop_nulls("value")
    for column in ("iou_threshold", "score_threshold"):
        if rows[column].null_count() == 0:
            near = (rows[column] - 0.5).abs()
            rows = rows.filter(near == near.min())
    return number(rows["value"][0])


@functools.cache
def every_frame() -> ee.Scorecard:
    """Score a run that fills every frame of detection."""
    curves = ["PrecisionRecallCurve", "DetailedPrecisionRecallCurve"]
    metrics = ["AP", *curves, "ConfusionMatrix", "Outcomes"]
    return example("detection", metrics=metrics, score_thresholds=[0.5], iou_thresholds=[0.5])


class TestConfusion:
    """A small matrix is shown; with many labels, the most frequent confusions."""

    def test_of_few_labels(self) -> None:
        text = table_of(example("detection", metrics=["ConfusionMatrix"]))
        lines = [line.split() for line in text.splitlines()]
        assert ["bus", "0", "0", "0", "0", "16", "5"] in lines
        assert ["(no", "truth)", "5", "5", "2", "0", "1", "0"] in lines
        assert "at IoU 0.5, score 0.5" in text

    def test_of_many_labels(self) -> None:
        n = 30
        truth = pl.DataFrame({"datum_id": range(2 * n), "label_value": [*range(n)] * 2})
        guess = truth.with_columns(label_value=pl.Series([*range(n), *[0] * n]))
        card = ee.score(guess, truth, task="classification", metrics=["ConfusionMatrix"])
        text = table_of(card)
        assert "most frequent of 29" in text
        assert sum(line.split()[1:] == ["0", "1"] for line in text.splitlines()) == 20
