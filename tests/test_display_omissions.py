"""Every rendering states what was requested but is not shown, and how to get it."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest

import evalengine as ee
from evalengine.cli import main
from evalengine.report.show import show
from evalengine.report.summary import sections
from evalengine.scorecard.card import Scorecard

EXAMPLES = Path(__file__).parent.parent / "examples"
DETECTION = EXAMPLES / "detection"
FORMS = ("table", "markdown", "html", "prompt")


def rendered(card: Scorecard, form: str) -> str:
    if form in ("html", "prompt"):
        return card._repr_html_() if form == "html" else repr(card)
    out = io.StringIO()
    show(card, form, out)
    return out.getvalue()


def words(text: str) -> str:
    """Return a text in one line, without the escapes of Markdown."""
    return " ".join(text.replace("\\", "").split())


def detection(**options: Any) -> Scorecard:
    return ee.score(
        DETECTION / "predictions.parquet", DETECTION / "groundtruths.parquet", **options
    )


def sides(n: int = 90, labels: str = "abc") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a classification table of some labels, in four slices of the column ``day``."""
    draw = random.Random(0)
    truths = pl.DataFrame(
        [(i, draw.choice(labels), f"day {draw.randrange(4)}") for i in range(n)],
        schema=["datum_id", "label_value", "day"],
        orient="row",
    )
    rows = [
        (i, label, round(draw.random() + 0.4 * (label == true), 3))
        for i, true, _ in truths.iter_rows()
        for label in labels
    ]
    return pl.DataFrame(rows, schema=["datum_id", "label_value", "score"], orient="row"), truths


class TestSlicesByLabel:
    card = ee.score(*sides(), metrics=["Accuracy", "ROCAUC"], by="day")

    def test_every_slice_and_label_is_listed_the_worst_first(self) -> None:
        grid = next(g for g in sections(self.card)[0].slices if g.names == ("day", "label"))
        rows = self.card.metrics.filter(
            pl.col("metric") == "ROCAUC", pl.col("slice").is_not_null()
        ).sort("value")
        expected = [*zip(rows["slice_value"], rows["label_value"], rows["value"], strict=True)]
        assert [(*row.names, *row.numbers) for row in grid.rows] == expected
        assert len(expected) == 12

    @pytest.mark.parametrize("form", FORMS)
    def test_in_every_rendering(self, form: str) -> None:
        text = rendered(self.card, form)
        worst = self.card.metrics.filter(
            pl.col("metric") == "ROCAUC", pl.col("slice").is_not_null()
        )["value"].min()
        assert f"{worst:.4f}" in text
        assert "not shown" not in text

    def test_of_many_the_worst_are_shown_and_the_others_counted(self) -> None:
        card = ee.score(*sides(300, "abcdefghijkl"), metrics=["Accuracy", "ROCAUC"], by="day")
        assert re.search(r"\.\.\. +and 18 more", rendered(card, "table"))

    @pytest.mark.parametrize("form", FORMS)
    def test_metrics_with_an_aggregate_are_named_with_their_rows(self, form: str) -> None:
        card = ee.score(*sides(), metrics=["F1"], by="day")
        macro = pl.col("average").eq_missing(pl.lit("macro"))
        left = card.metrics.filter(pl.col("slice").is_not_null(), ~macro)
        message = f"day x label): {left.height} rows; all: card.metrics, --frame metrics"
        assert message in words(rendered(card, form))


class TestThresholds:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("n", [2, 6, 7, 19])
    def test_of_many_thresholds_the_others_are_counted(self, n: int, form: str) -> None:
        at = [round(0.04 * i + 0.1, 2) for i in range(n)]
        card = detection(metrics=["F1"], iou_thresholds=[0.5], score_thresholds=at)
        text = words(rendered(card, form))
        near = (card.metrics["score_threshold"] - 0.5).abs()
        left = (near > near.min()).sum()
        message = f"{n - 1} more score thresholds"
        assert (message in text) == (n > 6)
        assert (f": {left} rows; all: card.metrics" in text) == (n > 6)

    def test_every_row_is_shown_or_counted(self) -> None:
        """Shown values and rows reported as hidden add up to the rows of the frame."""
        card = detection(
            metrics=["F1", "Precision", "mAP", "AP"],
            iou_thresholds=[0.5, 0.75],
            score_thresholds=[0.1, 0.2, 0.3, 0.4],
            datums=DETECTION / "datums.parquet",
            by="weather",
        )
        (section,) = sections(card)
        grids = [grid for grid in (*section.tables, section.labels, *section.slices) if grid]
        shown = len(section.headline) + sum(len(row.numbers) for g in grids for row in g.rows)
        (left,) = re.findall(r": ([\d,]+) rows; all", section.unshown)
        assert shown + int(left.replace(",", "")) == card.metrics.height

    def test_a_run_that_is_completely_shown_has_no_remark(self) -> None:
        for card in (detection(), ee.score(*sides())):
            assert "not shown" not in rendered(card, "table")


class TestConfusion:
    @pytest.mark.parametrize("form", FORMS)
    def test_other_thresholds_and_slices_are_counted(self, form: str) -> None:
        card = detection(
            metrics=["ConfusionMatrix"], datums=DETECTION / "datums.parquet", by="weather"
        )
        message = "not shown: 18 more pairs of thresholds, 3 slices; all: card.confusion, --frame"
        assert message in words(rendered(card, form))

    def test_a_few_thresholds_are_all_shown(self) -> None:
        card = detection(
            metrics=["ConfusionMatrix"], iou_thresholds=[0.5, 0.75], score_thresholds=[0.3]
        )
        text = rendered(card, "table")
        assert "at IoU 0.5, score 0.3" in text
        assert "at IoU 0.75, score 0.3" in text
        assert "not shown" not in text

    def test_counts_are_those_of_the_frame(self) -> None:
        card = detection(
            metrics=["ConfusionMatrix"], iou_thresholds=[0.5, 0.75], score_thresholds=[0.3]
        )
        grids = sections(card)[0].tables
        for grid, iou in zip(grids, (0.5, 0.75), strict=True):
            rows = card.confusion.filter((pl.col("iou_threshold") - iou).abs() < 1e-9)
            assert sum(sum(filter(None, row.numbers)) for row in grid.rows) == rows["count"].sum()


class TestOtherFrames:
    """Metrics in other frames are named with their number of rows, never "no numbers"."""

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize(
        ("task", "metric"),
        [
            ("detection", "Outcomes"),
            ("detection", "PrecisionRecallCurve"),
            ("detection", "DetailedPrecisionRecallCurve"),
            ("detection", "ConfusionMatrix"),
            ("classification", "ROCCurve"),
            ("classification", "ConfusionMatrix"),
        ],
    )
    def test_in_every_rendering(self, task: str, metric: str, form: str) -> None:
        folder = EXAMPLES / task
        card = ee.score(
            folder / "predictions.parquet", folder / "groundtruths.parquet", metrics=[metric]
        )
        text = rendered(card, form)
        assert "no numbers" not in text
        name = next(name for name in card.frames if name != "metrics" and card.height(name))
        assert f"{name}</code> ({card.height(name)} rows)" in text or (
            f"{name} ({card.height(name)} rows)" in text
        )

    def test_json_names_them_and_csv_does_on_standard_error(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tables = [str(DETECTION / f"{name}.parquet") for name in ("predictions", "groundtruths")]
        asked = ("score", *tables, "--metric", "Outcomes", "--format")
        assert main([*asked, "json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["metrics"] == []
        assert result["frames"] == {"outcomes": 511}
        assert main([*asked, "csv"]) == 0
        assert "outcomes (511 rows); print" in capsys.readouterr().err

    @pytest.mark.parametrize("form", ["csv", "json", "markdown", "table"])
    def test_a_frame_without_its_metric_is_refused(
        self, form: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tables = [str(DETECTION / f"{name}.parquet") for name in ("predictions", "groundtruths")]
        for frame, metric in (("confusion", "ConfusionMatrix"), ("outcomes", "Outcomes")):
            assert main(["score", *tables, "--frame", frame, "--format", form]) == 2
            out, err = capsys.readouterr()
            assert (out, metric in err) == ("", True)


class TestWorst:
    def rows(self) -> list[dict[str, Any]]:
        rows = [*fabricated.aggregates(), *fabricated.of_label("cat", 0.5)]
        rows += fabricated.of_label("owl", None)
        for i in range(40):
            rows += fabricated.aggregates(shift=-i / 100, slice="cam", slice_value=f"c{i:02d}")
        undefined = fabricated.aggregates(slice="cam", slice_value="dark")
        rows += [{**row, "value": None, "reason": "no ground truth"} for row in undefined]
        return rows

    def test_undefined_slices_are_not_the_worst(self) -> None:
        text = repr(fabricated.card(self.rows()))
        assert "41 of cam;" in text
        assert "worst mAPAveragedOverIOUs: c39 0.1100, c38 0.1200, c37 0.1300" in text
        few = [row for row in self.rows() if row.get("slice_value") in (None, "dark", "c00")]
        text = repr(fabricated.card(few))
        assert "2 of cam;" in text
        assert "worst mAPAveragedOverIOUs: c00 0.5000" in text

    def test_of_many_slices_the_first_thirty_are_the_worst(self) -> None:
        lines = rendered(fabricated.card(self.rows()), "table").splitlines()
        seen = [line.split()[0] for line in lines if re.match(r"  c\d\d ", line)]
        assert seen == [f"c{i:02d}" for i in range(39, 9, -1)]
        assert "  ... and 11 more" in "\n".join(lines)

    def test_lower_may_be_better_and_some_metrics_have_no_worst(self) -> None:
        card = fabricated.card(self.rows())
        card.directions["mAPAveragedOverIOUs"] = "lower"
        assert "worst mAPAveragedOverIOUs: c00 0.5000, c01" in repr(card)
        card.directions["mAPAveragedOverIOUs"] = "neither"
        assert "  41 of cam\n" in repr(card)


class TestCoverage:
    """The number of rows behind each mean is next to it, also if columns differ."""

    def card(self) -> Scorecard:
        rows = [
            {"metric": metric, "slice": "day", "slice_value": day, "value": value,
             "support": 60, "scored": scored}
            for metric, day, value, scored in (
                ("Bias", "mon", 0.25, 60),
                ("Faithfulness", "mon", 0.75, 5),
                ("Bias", "tue", 0.5, 7),
                ("Faithfulness", "tue", 0.125, 7),
            )
        ]  # fmt: skip
        rows += [{"metric": "Bias", "value": 0.3, "support": 60, "scored": 50}]
        return fabricated.card(rows)

    @pytest.mark.parametrize("form", ["table", "markdown", "html"])
    def test_each_column_shows_its_own(self, form: str) -> None:
        text = re.sub(r"<[^>]*>|\|", " ", rendered(self.card(), form))
        assert "mon 0.2500 0.7500 (5 of 60) 60" in words(text)
        assert "tue 0.5000 0.1250 7 of 60" in words(text)
        assert "50 of 60 scored" in text

    def test_at_the_prompt(self) -> None:
        card = self.card()
        card.directions["Bias"] = "lower"
        assert "tue 0.5000 (7 of 60), mon 0.2500" in repr(card)

    def test_in_json(self) -> None:
        result = json.loads(rendered(self.card(), "json"))["metrics"]
        assert [(row["scored"], row["support"]) for row in result] == [
            (60, 60), (5, 60), (7, 60), (7, 60), (50, 60)
        ]  # fmt: skip


class TestHeadings:
    def test_the_default_label_key_is_not_a_heading(self) -> None:
        for form in FORMS:
            text = rendered(fabricated.card(), form)
            assert not re.search(r"###|<h4>|label key|^label:", text, re.M), form

    def test_others_are(self) -> None:
        rows = [*fabricated.aggregates("animal"), *fabricated.aggregates("colour")]
        card = fabricated.card(rows)
        assert "### label key animal" in rendered(card, "markdown")
        assert "<h4>label key colour</h4>" in rendered(card, "html")

    def test_files_are_counted_if_no_single_one_was_named(self, tmp_path: Path) -> None:
        predictions, truths = sides()
        for i in range(3):
            predictions[i * 90 : (i + 1) * 90].write_parquet(tmp_path / f"p{i}.parquet")
        truths.write_parquet(tmp_path / "truths.parquet")
        card = ee.score(str(tmp_path / "p*.parquet"), tmp_path / "truths.parquet")
        message = "270 predictions in 3 files, 90 ground truths, 90 datums"
        for form in FORMS:
            assert message in words(rendered(card, form))
        card.save(tmp_path / "run")
        assert message in repr(ee.load(tmp_path / "run"))
        card = ee.score([tmp_path / "p0.parquet"], str(tmp_path / "t*.parquet"))
        assert "90 predictions, 90 ground" in repr(card)
        assert "in 1 file, 90 datums" in repr(card)

    def test_singular_nouns(self) -> None:
        table = pl.DataFrame({"datum_id": [1], "metric": ["Bias"], "verdict": ["yes"]})
        assert ": 1 row, 1 datum\n" in repr(ee.score(table))


class TestNotes:
    """Labels that never match are reported in every format, or else on standard error."""

    @pytest.fixture
    def tables(self, tmp_path: Path) -> list[str]:
        truths = pl.DataFrame({"datum_id": range(6), "label_value": ["CAR", "dog"] * 3})
        lower = truths.with_columns(pl.col("label_value").str.to_lowercase(), score=0.5)
        truths.write_parquet(tmp_path / "truths.parquet")
        lower.write_parquet(tmp_path / "found.parquet")
        return [str(tmp_path / "found.parquet"), str(tmp_path / "truths.parquet")]

    @pytest.mark.parametrize("form", ["json", "csv", "markdown", "table"])
    def test_in_every_format(
        self, tables: list[str], form: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for more in ([], ["--frame", "metrics"]):
            args = ["score", *tables, "--task", "classification", "--format", form, *more]
            assert main(args) == 0
            out, err = capsys.readouterr()
            assert "1 label in" in out + err
            assert "predictions only: 'car'." in out + err
            if form == "csv":
                pl.read_csv(io.StringIO(out))  # nothing but the frame

    def test_in_python(self, tables: list[str]) -> None:
        card = ee.score(*tables, task="classification")
        message = "1 label in the predictions only: 'car'."
        assert message in card.notes
        assert message in repr(card)
        assert message in card._repr_html_().replace("&#x27;", "'")

    def test_parquet(self, tables: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        args = ["score", *tables, "--task", "classification", "--format", "parquet"]
        assert main(args) == 0
        out, err = capfdbinary.readouterr()
        assert pl.read_parquet(io.BytesIO(out)).height
        assert b"1 label in the predictions only: 'car'." in err
