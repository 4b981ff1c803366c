"""The explanation of a number agrees with the tables."""

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


def counts(text):
    line = next(line for line in text.splitlines() if line.startswith("rows"))
    return {kind: int(n) for n, kind in re.findall(r"([\d]+) (\w+)", line.replace(",", ", "))}


@pytest.mark.parametrize(
    ("number", "named", "options"),
    [
        ("AP[label=car, iou=0.5]", {}, ("AP", {"label_value": "car", "iou_threshold": 0.5})),
        ("AP50", {"dialect": "coco"}, ("AP50", {})),
        ("AP50", {}, ("mAP", {"iou_threshold": 0.5})),
        ("AP60[label=car]", {"iou_thresholds_to_return": [0.6]}, ("AP", {"label_value": "car"})),
        ("mAP[iou=0.5,weather=fog]", WEATHER, ("mAP", {"iou_threshold": 0.5, "slice": "weather",
                                                       "slice_value": "fog"})),
    ],
)  # fmt: skip
def test_detection(number, named, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = ee.explain(*BOXES, number=number, **named)
    value = ee.score(*BOXES, **named).value(options[0], **options[1])
    assert f"({value!r})" in text.splitlines()[0]
    at = {"pr_curve_iou_threshold": options[1].get("iou_threshold", named.get(TO_RETURN, [0.5])[0])}
    outcomes = ee.score(*BOXES, metrics=["Outcomes"], **named, **at).outcomes
    if "car" in number:
        outcomes = outcomes.filter(label_value="car")
        expected = dict(outcomes["outcome"].value_counts().rows())
        assert {kind: n for kind, n in counts(text).items() if kind in expected} == expected
    assert "moves " in text
    assert "1 datum without predictions" in text


def test_rows_belong_to_the_number(tmp_path):
    text = ee.explain(*BOXES, number="AP75", dialect="coco")
    rows = ee.score(*BOXES, metrics=["Outcomes"], dialect="coco", pr_curve_iou_threshold=0.75)
    assert counts(text).items() >= dict(rows.outcomes["outcome"].value_counts().rows()).items()
    assert "at IoU 0.75" in text
    text = ee.explain(*BOXES, number="APsmall", dialect="coco")
    assert "rows      not listed" in text
    assert "surest" not in text
    ee.score(*BOXES, metrics=["mAP", "Outcomes"], iou_thresholds_to_return=[0.75]).save(
        tmp_path / "run"
    )
    text = ee.explain(tmp_path / "run", number="mAP[iou=0.75]")
    assert "rows      not listed" in text


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        ("standard", "the mean of interpolated precision at 101 recall levels"),
        ("voc2007", "the mean of interpolated precision at 11 recall levels"),
        ("voc2012", "the area under interpolated precision"),
    ],
)
def test_sources_of_average_precision(dialect, message):
    text = ee.explain(*BOXES, number="AP[label=car,iou=0.5]", dialect=dialect)
    assert f"average   AP is {message}" in text
    assert ("101" in text) == (dialect == "standard")


def test_labels_are_given_by_name_or_value():
    """As in gates; numbers come first."""
    numbers = {"car": 1, "pedestrian": 2, "cyclist": 3, "bus": 4, "traffic_light": 5}
    sides = [
        pl.read_parquet(path).with_columns(
            pl.col("label_value").replace_strict(numbers, return_dtype=pl.Int64)
        )
        for path in BOXES
    ]
    labels = pl.DataFrame({"label_value": [*numbers.values()], "label_name": [*numbers]})
    first, second, plain = (
        ee.explain(*tables, number=f"AP[label={label}, iou=0.5]", labels=names).splitlines()[0]
        for tables, label, names in (
            (sides, "car", labels), (sides, "1", labels), (BOXES, "car", None),
        )
    )  # fmt: skip
    assert first == second
    assert first.partition("] = ")[2] == plain.partition("] = ")[2]


def test_distances_are_in_metres():
    box = {"datum_id": ["a"], "label_value": ["car"], "cx": [1.0], "cy": [2.0], "cz": [0.5],
           "length": [4.0], "width": [2.0], "height": [1.5], "yaw": [0.1]}  # fmt: skip
    truths = pl.DataFrame(box)
    text = ee.explain(
        truths.with_columns(score=pl.lit(0.9)), truths, number="AP[label=car,iou=2]",
        dialect="nuscenes", iou_type="distance", angle_format="radians-z-up",
    )  # fmt: skip
    (line,) = [line for line in text.splitlines() if "option    iou_thresholds =" in line]
    assert {*line.partition("= ")[2].split(", ")} <= {"0.5", "1", "2", "4"}
    assert "at 101 recall levels" in text


def test_other_tasks():
    text = ee.explain(*RUN, number="nDCG@10")
    assert "nDCG [k=10] = 0.4999" in text
    assert "q18" in text
    assert "by ties (exact)" in text
    text = ee.explain(*LABELS, number="F1[label=billing]")
    assert counts(text)["tp"] == 88
    assert "moves" not in text
    text = ee.explain("examples/text/answers.parquet", number="ROUGE1")
    assert "worst     q46" in text


def test_saved_runs(tmp_path):
    ee.score(*RUN, metrics=["MAP"]).save(tmp_path / "run")
    text = ee.explain(tmp_path / "run", number="MAP")
    assert text.startswith("MAP = 0.3504")
    assert "worst" in text


def test_unknown_numbers_are_refused():
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
def test_tracking_counts_only_rows_that_lower_the_number(number, wrong):
    """Only rows that lower this number explain the worst sequences; matches never do."""
    boxes = pl.DataFrame({"sequence": "a", "frame": range(1, 7), "label_value": "dog"})
    boxes = boxes.with_columns(xmin=0.0, ymin=0.0, xmax=10.0, ymax=10.0)
    truth = boxes.with_columns(object_id=1)
    tracks = pl.Series("track_id", [1, 1, 2, 9, 2, 2])
    predictions = boxes.with_columns(tracks, score=0.5).with_columns(
        xmin=pl.when(pl.col("frame") == 4).then(8.0).otherwise("xmin")
    )
    text = ee.explain(predictions, truth, number=f"{number}[label=dog]")
    value = ee.score(predictions, truth).value(number, label_value="dog", average=None)
    n = 3 if number == "HOTA" else value
    assert f"a ({n:.0f} wrong)" in text
    surest = next((line for line in text.splitlines() if line.startswith("surest")), "")
    assert {*re.findall(r"a (\w+) dog", surest)} == wrong - {"miss"}


def test_a_run_without_rows_names_the_metric_that_keeps_them():
    text = ee.explain(ee.score(*BOXES, metrics=["mAP"]), number="mAP[iou=0.5]")
    assert "none are kept" in text
    stored = ee.score(*BOXES, metrics=["mAP", "Outcomes"])
    assert "none are kept" not in ee.explain(stored, number="mAP[iou=0.5]")
