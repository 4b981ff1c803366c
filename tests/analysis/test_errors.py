"""Errors of a run: the worst datums and the rows that cause them."""

from __future__ import annotations

import copy
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from partitions.cases import WIDE, in_buckets
from refusals import refused

import evalengine as ee
from evalengine.cli import cli
from evalengine.evaluation.paging import worst
from evalengine.findings.errors import FoundErrors
from evalengine.ingest.sources.tables import open_source
from evalengine.run import tallied_of

EXAMPLES = Path(__file__).parents[2] / "examples"
BOXES = [
    str(EXAMPLES / "detection" / f"{side}.parquet") for side in ("predictions", "groundtruths")
]
CORNERS = ["xmin", "ymin", "xmax", "ymax"]


@pytest.fixture(scope="module")
def errors() -> FoundErrors:
    return ee.find_errors(*BOXES, top=1000)


@pytest.fixture(scope="module")
def card() -> ee.Scorecard:
    return ee.score(*BOXES, metrics=["mAP", "Errors"])


def test_datums_are_the_worst_and_rows_those_of_the_frame(
    errors: FoundErrors, card: ee.Scorecard
) -> None:
    assert errors.datums.equals(worst(tallied_of("run", card), 1000))
    assert errors.rows is not None
    assert errors.n == 60
    counted = card.errors.filter(pl.col("score") >= 0.35)
    ours = errors.rows.filter(pl.col("score").is_not_null())
    assert ours.sort(pl.all()).equals(counted.sort(pl.all()))
    place = {datum: i for i, datum in enumerate(errors.datums["datum_id"])}
    places = [place.get(datum, len(place)) for datum in errors.rows["datum_id"]]
    assert places == sorted(places)  # faultless datums of the best score come last
    for _, rows in errors.rows.group_by("datum_id", maintain_order=True):
        score = rows["score"].fill_null(-np.inf)
        assert score.is_sorted(descending=True)


def test_rows_match_the_counts_of_why(errors: FoundErrors, card: ee.Scorecard) -> None:
    """Each false positive has a row, and each missed object except those that a row below mends."""
    assert errors.rows is not None
    each = errors.rows.group_by("datum_id").agg(
        wrong=pl.col("score").count(), missed=(pl.col("score").is_null() | pl.col("mended")).sum()
    )
    counts = errors.datums.join(each, on="datum_id", how="left").select(
        pl.col("why").str.extract(r"(\d+) false").cast(pl.Int64).fill_null(0).alias("false"),
        pl.col("why").str.extract(r"(\d+) of").cast(pl.Int64).fill_null(0).alias("lost"),
        pl.col("wrong", "missed").fill_null(0),
    )
    assert counts["wrong"].to_list() == counts["false"].to_list()
    assert (counts["missed"] <= counts["lost"]).all()
    assert counts["lost"].sum() - counts["missed"].sum() == 7
    assert any("7 missed objects" in one and "below 0.35" in one for one in errors.notes)
    below = card.errors.filter(pl.col("score") < 0.35)
    lost = set(below.filter("mended")["annotation_id"])
    assert lost
    rows = errors.rows.filter(pl.col("annotation_id").is_in(list(lost)) & pl.col("score").is_null())
    assert set(rows["annotation_id"]) == lost
    assert set(rows["error"]) == {"Miss"}
    assert rows["annotation_xmin"].null_count() == 0
    assert rows["xmin"].null_count() == rows.height


def test_rows_and_why_use_the_same_iou(errors: FoundErrors) -> None:
    several = ee.find_errors(*BOXES, top=1000, iou_thresholds=[0.5, 0.75])
    assert several.rows is not None
    assert several.rows.equals(errors.rows)
    assert any("at IoU 0.5: rows at 0.75" in one for one in several.notes)
    strict = ee.find_errors(*BOXES, top=1000, pr_curve_iou_threshold=0.75)
    assert strict.rows is not None
    assert set(strict.rows["iou_threshold"]) == {0.75}
    assert any("at IoU 0.75" in note and "F1 at 0.5" in note for note in strict.notes)


def test_rows_by_score_end_with_missed_objects() -> None:
    rows = ee.find_errors(*BOXES, top=1000, sort="score").rows
    assert rows is not None
    score = rows["score"].fill_null(-np.inf)
    assert score.is_sorted(descending=True)
    assert score[-1] == -np.inf
    assert ee.find_errors(*BOXES, top=7, sort="score").rows.equals(rows.head(7))  # type: ignore[union-attr]


def test_boxes_are_those_of_the_tables(errors: FoundErrors) -> None:
    predictions, truths = map(pl.read_parquet, BOXES)
    assert errors.rows is not None
    wrong = errors.rows.filter(pl.col("prediction_row").is_not_null())
    assert 0 < wrong.height < errors.rows.height
    own = predictions[wrong["prediction_row"]]
    assert wrong.select(CORNERS).equals(own.select(pl.col(CORNERS).cast(pl.Float64)))
    assert errors.rows.filter(pl.col("prediction_row").is_null())["xmin"].null_count() > 0
    boxes = errors.rows.filter(pl.col("annotation_id").is_not_null())
    theirs = boxes.select("annotation_id").join(
        truths, on="annotation_id", how="left", maintain_order="left"
    )
    for name in CORNERS:
        assert boxes[f"annotation_{name}"].to_list() == theirs[name].cast(pl.Float64).to_list()


def test_boxes_of_shapes_are_those_around_them() -> None:
    ring = [[0.0, 0.0, 10.0, 2.0, 4.0, 8.0]]
    shapes = pl.DataFrame({"datum_id": ["a"], "label_value": ["x"], "polygon": [ring]})
    wrong = shapes.with_columns(label_value=pl.lit("y"), score=pl.lit(0.5))
    rows = ee.find_errors(wrong, shapes).rows
    assert rows is not None
    assert rows["error"].to_list() == ["Cls"]
    assert rows.select(CORNERS).row(0) == (0.0, 0.0, 10.0, 8.0)
    assert rows.select(f"annotation_{name}" for name in CORNERS).row(0) == (0.0, 0.0, 10.0, 8.0)


def test_a_run_without_errors_has_none() -> None:
    box = dict(zip(CORNERS, ([0.0], [0.0], [9.0], [9.0]), strict=True))
    truths = pl.DataFrame({"datum_id": ["a"], "label_value": ["x"], **box})
    errors = ee.find_errors(truths.with_columns(score=pl.lit(0.9)), truths)
    assert len(errors) == 0
    assert errors.rows is not None
    assert errors.rows.height == 0
    assert repr(errors).endswith("in 1 datum")


def test_rows_of_saved_runs_need_the_frame(tmp_path: Path, card: ee.Scorecard) -> None:
    card.save(tmp_path / "with")
    errors = ee.find_errors(tmp_path / "with", top=9)
    assert errors.datums.equals(ee.find_errors(card, top=9).datums)
    assert errors.rows is not None
    assert errors.rows.height == 9
    ee.score(*BOXES).save(tmp_path / "without")
    plain = ee.find_errors(tmp_path / "without", top=9)
    assert plain.rows is None
    assert plain.datums.equals(errors.datums)
    with refused("option_unread", option="sort", value="score"):
        ee.find_errors(tmp_path / "without", sort="score")
    with refused("not_kept", ee.ResultError):
        plain.write("cvat", tmp_path / "a.xml")
    done = CliRunner().invoke(cli, ["errors", str(tmp_path / "without"), "--top", "1"])
    assert done.exit_code == 0, done.output
    assert "frame_0054" in done.stdout
    for options in (["--rows"], ["--to", "cvat", "--out", str(tmp_path / "a.xml")]):
        done = CliRunner().invoke(cli, ["errors", str(tmp_path / "without"), *options])
        assert done.exit_code == 2
        output = " ".join(done.output.split())
        assert "--metrics Errors" in output
        assert f"omit {options[0]}" in output
    with refused("option_unread", option="ground_truths"):
        ee.find_errors(card, BOXES[1])


def test_tasks_without_objects_have_no_rows() -> None:
    table = EXAMPLES / "classification" / "urgent.parquet"
    errors = ee.find_errors(table, top=3)
    assert errors.rows is None
    assert errors.datums.height == 3
    assert errors.datums.equals(worst(tallied_of("run", ee.score(table)), 3))
    with refused("option_unread", option="sort", value="score"):
        ee.find_errors(table, sort="score")
    done = CliRunner().invoke(cli, ["errors", str(table), "--rows"])
    assert done.exit_code == 2
    assert "omit --rows" in done.output


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"top": 0}, {"code": "option_value", "option": "top", "value": 0}),
        ({"sort": "los"}, {"code": "unknown_name", "value": "los"}),
    ],
)
def test_options_are_checked(options: dict[str, object], refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        ee.find_errors(*BOXES, **options)  # type: ignore[arg-type]


def test_runs_without_a_tally_are_refused(card: ee.Scorecard) -> None:
    with refused("not_kept", ee.ResultError, step="finding errors"):
        ee.find_errors(copy.copy(card))


def test_the_shell(errors: FoundErrors, card: ee.Scorecard) -> None:
    def printed(*options: str) -> str:
        done = CliRunner().invoke(cli, ["errors", *BOXES, *options])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "of 60 datums" in printed("--top", "1")
    text = printed("--top", "2")
    heading, _, header, first, *_ = text.splitlines()
    assert re.findall(r"\d[\d.]*", heading) == ["2", "60", "1", "0.5000", "0.3500"]
    assert header.split() == ["datum_id", "F1", "why"]
    assert first.split()[:5] == ["frame_0054", "0.0000", "4", "of", "4"]
    assert errors.rows is not None
    rows = pl.read_csv(io.StringIO(printed("--rows", "--top", "5", "--format", "csv")))
    assert rows["annotation_id"].to_list() == errors.rows["annotation_id"].head(5).to_list()
    content = json.loads(printed("--top", "5", "--format", "json"))
    assert [row["datum_id"] for row in content["datums"]] == errors.datums["datum_id"].head(
        5
    ).to_list()
    assert "| datum_id |" in printed("--format", "markdown")
    assert "474.0 344.0 827.0 508.0" in printed("--rows", "--top", "1")
    done = CliRunner().invoke(cli, ["errors", *BOXES, "--sort", "score"])
    assert done.exit_code == 2
    assert "--sort is of" in done.output


IMAGES = EXAMPLES / "detection" / "datums.parquet"


@pytest.mark.parametrize(("form", "name"), [("cvat", "a.xml"), ("label-studio", "a.json")])
def test_written_tasks_are_read_back(tmp_path: Path, form: str, name: str) -> None:
    errors = ee.find_errors(*BOXES, top=60, datums=IMAGES)
    assert errors.rows is not None
    assert errors.write(form, tmp_path / name) == errors.rows["datum_id"].n_unique()
    read = open_source(tmp_path / name).frame.collect()
    shown = [pl.coalesce(name, f"annotation_{name}").alias(name) for name in CORNERS]
    rows = errors.rows.select("datum_id", "label_value", *shown, pl.col("score"))
    for datum, own in rows.group_by("datum_id"):
        again = read.filter(pl.col("datum_id") == datum[0])
        assert again["label_value"].to_list() == own["label_value"].to_list()
        assert again["score"].to_list() == own["score"].to_list()
        boxes = again.select(CORNERS).to_numpy()
        assert boxes == pytest.approx(own.select(CORNERS).to_numpy(), abs=1e-9)


def test_coco_files_have_the_reasons_of_errors(tmp_path: Path) -> None:
    errors = ee.find_errors(*BOXES, top=60)  # sizes are not needed
    errors.write("coco", tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())
    assert errors.rows is not None
    rows = errors.rows.sort(pl.col("datum_id").cum_count().first().over("datum_id"))
    assert [one["error"] for one in content["annotations"]] == rows["error"].to_list()
    names = {one["id"]: one["name"] for one in content["categories"]}
    images = {one["id"]: one["file_name"] for one in content["images"]}
    for one, row in zip(content["annotations"], rows.iter_rows(named=True), strict=True):
        assert names[one["category_id"]] == row["label_value"]
        assert images[one["image_id"]] == row["datum_id"]
        assert one.get("score") == row["score"]
        assert one.get("iou") == row["iou"]


def test_missing_sizes_are_refused_before_writing(tmp_path: Path) -> None:
    errors = ee.find_errors(*BOXES, top=5)
    with refused("image_size_missing", count=2):
        errors.write("cvat", tmp_path / "a.xml")
    assert not list(tmp_path.iterdir())
    with refused("unknown_name", value="cvta"):
        errors.write("cvta", tmp_path / "a.xml")
    table = EXAMPLES / "classification" / "urgent.parquet"
    with pytest.raises(ee.ResultError, match="no rows to plot"):
        ee.find_errors(table).write("coco", tmp_path / "a.json")


def test_the_shell_writes_tasks_of_a_saved_run(tmp_path: Path, card: ee.Scorecard) -> None:
    card.save(tmp_path / "run")
    options = ["errors", str(tmp_path / "run"), "--datums", str(IMAGES), "--to", "cvat"]
    done = CliRunner().invoke(cli, options)
    assert done.exit_code == 2
    assert "give both" in done.output
    done = CliRunner().invoke(cli, [*options, "--out", str(tmp_path / "a.xml"), "--top", "7"])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{tmp_path / 'a.xml'}: 7 errors in 3 images\n"
    assert (tmp_path / "a.xml").read_text().count("<box ") == 7


def test_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded run has the same worst datums and rows as a run in memory."""
    whole = ee.find_errors(*BOXES, top=20)
    in_buckets(monkeypatch, WIDE)
    bounded = ee.find_errors(*BOXES, top=20, memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert whole.rows is not None
    assert bounded.rows is not None
    assert bounded.datums.equals(whole.datums)
    assert bounded.rows.equals(whole.rows)
    assert bounded.n == whole.n
    assert sorted(bounded.notes) == sorted(whole.notes)
    options = {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}
    ee.score(*BOXES, metrics=["mAP", "Errors"], **options).save(tmp_path / "run")
    saved = ee.find_errors(tmp_path / "run", top=20)
    assert saved.rows is not None
    assert saved.datums.equals(whole.datums)
    assert saved.rows.equals(whole.rows)


def kitti_tables() -> list[pl.DataFrame]:
    """A car predicted at an IoU of 0.6, and a person."""
    box = {
        "datum_id": ["a", "b"], "label_value": ["Car", "Pedestrian"], "xmin": [0.0, 0.0],
        "ymin": [0.0, 0.0], "xmax": [100.0, 50.0], "ymax": [100.0, 100.0],
    }  # fmt: skip
    truths = pl.DataFrame(box).with_columns(occluded=0, truncated=0.0)
    moved = pl.col("ymin") + pl.when(pl.col("label_value") == "Car").then(40.0).otherwise(0.0)
    return [pl.DataFrame(box).with_columns(score=0.9, ymin=moved), truths]


def test_labels_with_another_iou_are_noted() -> None:
    tables = kitti_tables()
    message = "AP of 'Car' is at IoU 0.7, and hits are looked at here at IoU 0.5: write "
    for find in (ee.find_thresholds, ee.find_calibration, ee.diagnose):
        for at, there in ((0.5, True), (0.7, False)):
            errors = find(*tables, dialect="kitti", pr_curve_iou_threshold=at)
            assert (message + "pr_curve_iou_threshold=0.7" in " ".join(errors.notes)) is there
    errors = ee.find_errors(*tables, dialect="kitti")
    assert message + "iou_thresholds=[0.7]" in " ".join(errors.notes)
    errors = ee.find_errors(*tables, dialect="kitti", iou_thresholds=[0.7])
    assert message[:6] not in " ".join(errors.notes)
    assert "1 of 1 object missed" in errors.datums["why"][0]


def test_why_a_dialect_has_no_rows() -> None:
    tables = kitti_tables()
    why = r"dialect kitti matches anew at every score: write dialect='standard'"
    with refused("option_unread", option="sort", value="score"):
        ee.find_errors(*tables, dialect="kitti", sort="score")
    with pytest.raises(ee.ResultError, match=f"^LabelErrors: {why}"):
        ee.find_label_errors(*tables, dialect="kitti")


def test_boxes_have_no_notes_about_keypoints() -> None:
    box = {"datum_id": ["a"], "label_value": ["car"], "cx": [1.0], "cy": [2.0], "cz": [0.5],
           "length": [4.0], "width": [2.0], "height": [1.5], "yaw": [0.1]}  # fmt: skip
    truths = pl.DataFrame(box)
    errors = ee.find_errors(
        truths.with_columns(score=0.9), truths, dialect="nuscenes", iou_type="distance",
        angle_format="radians-z-up",
    )  # fmt: skip
    assert "KeypointErrors" not in " ".join(errors.notes)
