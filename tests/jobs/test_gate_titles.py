"""Gates named by titles of the report's tables, which refer to the same rows."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from refusals import refused

import evalengine as ee
from evalengine.evaluation.planner import make_plan
from evalengine.jobs.gates import check_gates, parse_gates, refuse_unknown
from evalengine.jobs.verdicts import judge_gates, numbers_of
from evalengine.report.summary import sections
from evalengine.report.tables import Grid
from evalengine.schemas.errors import ResultError
from evalengine.schemas.options import Options

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "detection"


@functools.cache
def card(dialect: str, metrics: tuple[str, ...] = ()) -> ee.Scorecard:
    return ee.score(
        EXAMPLES / "predictions.parquet",
        EXAMPLES / "groundtruths.parquet",
        datums=EXAMPLES / "datums.parquet",
        dialect=dialect,
        by="weather",
        **({"metrics": metrics} if metrics else {}),
    )


def gate_value(made: ee.Scorecard, gate: str) -> float | None:
    (verdict,) = judge_gates(parse_gates([gate]), numbers_of(made))
    return verdict.value


def table(made: ee.Scorecard, name: str) -> Grid:
    (section,) = sections(made)
    grids = [section.labels, *section.slices]
    return next(grid for grid in grids if grid is not None and grid.title == name)


@pytest.mark.parametrize("dialect", ["standard", "coco"])
@pytest.mark.parametrize("name", ["label", "weather"])
def test_every_column_of_labels_and_slices(dialect: str, name: str) -> None:
    made = card(dialect)
    grid = table(made, name)
    assert len(grid.columns) == 4
    for row in grid.rows:
        for title, value in zip(grid.columns, row.numbers, strict=True):
            assert gate_value(made, f"{title}[{name}={row.names[0]}] >= 0") == value, title
            if name == "label":
                assert made.value(title, label_value=row.names[0]) == value
            else:
                assert made.value(title, slice=name, slice_value=row.names[0]) == value


def test_every_line_of_cocos_headline() -> None:
    made = card("coco")
    lines = sections(made)[0].headline
    assert len(lines) == 12
    for line in lines:
        assert gate_value(made, f"{line.title} >= 0") == line.value, line.title
        assert gate_value(made, f"{line.title.lower()} >= 0") == line.value, line.title
        assert made.value(line.title) == line.value


def test_headline_lines_named_by_metrics() -> None:
    made = card("standard")
    for line in sections(made)[0].headline:
        if "@" not in line.title:
            assert gate_value(made, f"{line.title} >= 0") == line.value
    assert gate_value(made, "mAP@0.75 >= 0") == made.value("mAP", iou_threshold=0.75)


def test_a_title_with_a_threshold_is_the_metric_of_that_name() -> None:
    made = card("coco")
    rows = made.metrics.filter(metric="AP", label_value="car", iou_threshold=0.75, area="all")
    (expected,) = rows.filter(rows["slice"].is_null())["value"]
    assert gate_value(made, "AP[label=car, iou=0.75] >= 0") == expected
    assert made.value("AP", label_value="car", iou_threshold=0.75) == expected


def test_one_label_at_one_threshold_does_not_change_ap() -> None:
    """The metric AP then has a single row, but the title AP is the mean over thresholds."""
    made = ee.score(
        EXAMPLES / "predictions.parquet",
        EXAMPLES / "groundtruths.parquet",
        dialect="coco",
        label_map=dict.fromkeys(("car", "bus", "pedestrian", "cyclist", "traffic_light"), "thing"),
        iou_thresholds_to_return=[0.5],
    )
    shown = next(line.value for line in sections(made)[0].headline if line.title == "AP")
    assert gate_value(made, "AP >= 0") == shown == made.value("AP")
    assert shown != made.value("AP", iou_threshold=0.5)


def test_ap_of_a_label_is_its_mean_over_thresholds() -> None:
    gate = "AP[label=pedestrian] >= 0"
    made = card("coco", ("AP",))
    assert gate_value(made, gate) == gate_value(card("coco"), gate)
    assert gate_value(made, gate) != made.value("AP", label="pedestrian", iou_threshold=0.5)
    options = Options(task="detection", dialect="coco", metrics=("AP50",))
    with refused("ambiguous", columns=["iou_threshold"]):
        check_gates(parse_gates([gate]), options)
    check_gates(parse_gates(["AP50[label=pedestrian] >= 0"]), options)


def test_titles_of_another_dialect_are_refused() -> None:
    with refused("unknown_name", value="AP50"):
        gate_value(card("standard"), "AP50 >= 0")
    with refused("unknown_name", value="APmidi"):
        refuse_unknown(parse_gates(["APmidi >= 0.1"]), make_plan(Options(), "detection"))


def test_without_the_titles_column_a_gate_means_the_metric() -> None:
    made = card("coco", ("AP50", "AP75"))
    with refused("ambiguous", ResultError, columns=["label_value", "iou_threshold"], count=10):
        gate_value(made, "AP >= 0")
