"""One number's story says what the tables say."""

from __future__ import annotations

import re
import warnings

import polars as pl
import pytest
from click.testing import CliRunner
from refusals import refused

import evalengine as ee
from evalengine.cli import cli

BOXES = ("examples/detection/predictions.parquet", "examples/detection/groundtruths.parquet")
TO_RETURN = "iou_thresholds_to_return"
LABELS = tuple(path.replace("detection", "classification") for path in BOXES)
RUN = ("examples/retrieval/run.parquet", "examples/retrieval/qrels.parquet")
WEATHER = {"datums": "examples/detection/datums.parquet", "by": ["weather"]}


def counts(told):
    line = next(line for line in told.splitlines() if line.startswith("rows"))
    return {kind: int(n) for n, kind in re.findall(r"([\d]+) (\w+)", line.replace(",", ", "))}


@pytest.mark.parametrize(
    ("number", "named", "asked"),
    [
        ("AP[label=car, iou=0.5]", {}, ("AP", {"label_value": "car", "iou_threshold": 0.5})),
        ("AP50", {"dialect": "coco"}, ("AP50", {})),
        ("AP50", {}, ("mAP", {"iou_threshold": 0.5})),
        ("AP60[label=car]", {"iou_thresholds_to_return": [0.6]}, ("AP", {"label_value": "car"})),
        ("mAP[iou=0.5,weather=fog]", WEATHER, ("mAP", {"iou_threshold": 0.5, "slice": "weather",
                                                       "slice_value": "fog"})),
    ],
)  # fmt: skip
def test_of_detection(number, named, asked):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = ee.explain(*BOXES, number=number, **named)
    value = ee.score(*BOXES, **named).value(asked[0], **asked[1])
    assert f"({value!r})" in told.splitlines()[0]
    at = {"pr_curve_iou_threshold": asked[1].get("iou_threshold", named.get(TO_RETURN, [0.5])[0])}
    outcomes = ee.score(*BOXES, metrics=["Outcomes"], **named, **at).outcomes
    if "car" in number:
        outcomes = outcomes.filter(label_value="car")
        known = dict(outcomes["outcome"].value_counts().rows())
        assert {kind: n for kind, n in counts(told).items() if kind in known} == known
    assert "moves " in told
    assert "1 datum without predictions" in told


def test_rows_are_those_of_the_number(tmp_path):
    told = ee.explain(*BOXES, number="AP75", dialect="coco")
    rows = ee.score(*BOXES, metrics=["Outcomes"], dialect="coco", pr_curve_iou_threshold=0.75)
    assert counts(told).items() >= dict(rows.outcomes["outcome"].value_counts().rows()).items()
    assert "at IoU 0.75" in told
    told = ee.explain(*BOXES, number="APsmall", dialect="coco")
    assert "rows      not listed" in told
    assert "surest" not in told
    ee.score(*BOXES, metrics=["mAP", "Outcomes"], iou_thresholds_to_return=[0.75]).save(
        tmp_path / "run"
    )
    told = ee.explain(tmp_path / "run", number="mAP[iou=0.75]")
    assert "rows      not listed" in told


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        ("standard", "the mean of interpolated precision at 101 recall levels"),
        ("voc2007", "the mean of interpolated precision at 11 recall levels"),
        ("voc2012", "the area under interpolated precision"),
    ],
)
def test_what_average_precision_is_of(dialect, said):
    told = ee.explain(*BOXES, number="AP[label=car,iou=0.5]", dialect=dialect)
    assert f"average   AP is {said}" in told
    assert ("101" in told) == (dialect == "standard")


def test_distances_are_told_in_metres():
    box = {"datum_id": ["a"], "label_value": ["car"], "cx": [1.0], "cy": [2.0], "cz": [0.5],
           "length": [4.0], "width": [2.0], "height": [1.5], "yaw": [0.1]}  # fmt: skip
    truths = pl.DataFrame(box)
    told = ee.explain(
        truths.with_columns(score=pl.lit(0.9)), truths, number="AP[label=car,iou=2]",
        dialect="nuscenes", iou_type="distance", angle_format="radians-z-up",
    )  # fmt: skip
    (line,) = [line for line in told.splitlines() if "option    iou_thresholds =" in line]
    assert {*line.partition("= ")[2].split(", ")} <= {"0.5", "1", "2", "4"}
    assert "at 101 recall levels" in told


def test_of_other_tasks():
    told = ee.explain(*RUN, number="nDCG@10")
    assert "nDCG [k=10] = 0.4999" in told
    assert "q18" in told
    assert "by ties (exact)" in told
    told = ee.explain(*LABELS, number="F1[label=billing]")
    assert counts(told)["tp"] == 88
    assert "moves" not in told
    told = ee.explain("examples/text/answers.parquet", number="ROUGE1")
    assert "worst     q46" in told


def test_of_a_saved_run(tmp_path):
    ee.score(*RUN, metrics=["MAP"]).save(tmp_path / "run")
    told = ee.explain(tmp_path / "run", number="MAP")
    assert told.startswith("MAP = 0.3504")
    assert "worst" in told


def test_what_is_no_number():
    with refused("option_value", option="number", value="AP[car]"):
        ee.explain(*BOXES, number="AP[car]")
    with pytest.raises(ee.ResultError, match="label_value='lorry'"):
        ee.explain(*BOXES, number="AP[label=lorry,iou=0.5]")
    with refused("option_value", option="iou", value="half"):
        ee.explain(*BOXES, number="AP[iou=half]")


def test_command():
    done = CliRunner().invoke(cli, ["explain", *BOXES, "--number", "mAP[iou=0.75]"])
    assert done.exit_code == 0, done.output
    assert re.match(r"mAP \[.*=0.75\] = 0.5218", done.output)


@pytest.mark.parametrize(
    ("number", "wrong"),
    [("IDSW", {"switch"}), ("FN", {"miss"}), ("FP", {"false"}), ("Frag", {"fragment"}),
     ("HOTA", {"miss", "false", "switch"})],
)  # fmt: skip
def test_of_tracking_what_hurts_the_number_is_wrong(number, wrong):
    """Matches hurt none; the worst sequences are told by the rows that hurt this number."""
    boxes = pl.DataFrame({"sequence": "a", "frame": range(1, 7), "label_value": "dog"})
    boxes = boxes.with_columns(xmin=0.0, ymin=0.0, xmax=10.0, ymax=10.0)
    truth = boxes.with_columns(object_id=1)
    tracks = pl.Series("track_id", [1, 1, 2, 9, 2, 2])
    found = boxes.with_columns(tracks, score=0.5).with_columns(
        xmin=pl.when(pl.col("frame") == 4).then(8.0).otherwise("xmin")
    )
    told = ee.explain(found, truth, number=f"{number}[label=dog]")
    value = ee.score(found, truth).value(number, label_value="dog", average=None)
    n = 3 if number == "HOTA" else value
    assert f"a ({n:.0f} wrong)" in told
    surest = next((line for line in told.splitlines() if line.startswith("surest")), "")
    assert {*re.findall(r"a (\w+) dog", surest)} == wrong - {"miss"}


def test_a_run_without_rows_names_the_metric_that_keeps_them():
    told = ee.explain(ee.score(*BOXES, metrics=["mAP"]), number="mAP[iou=0.5]")
    assert "none are kept" in told
    kept = ee.score(*BOXES, metrics=["mAP", "Outcomes"])
    assert "none are kept" not in ee.explain(kept, number="mAP[iou=0.5]")
