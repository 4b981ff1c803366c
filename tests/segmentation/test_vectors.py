"""Known answers: torchmetrics 1.9, scikit-learn, valor-lite 0.39 and Valor's service."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee

VECTORS = Path(__file__).parents[2] / ".." / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="the vectors are not here")

ALL = (
    "IOU", "mIOU", "Precision", "Recall", "F1", "Dice", "PixelAccuracy", "MeanClassAccuracy",
    "FrequencyWeightedIoU", "mIOUPerImage", "DicePerImage", "ConfusionMatrix",
)  # fmt: skip


def cases(*path: str) -> list[dict[str, Any]]:
    file = VECTORS.joinpath(*path)
    return json.loads(file.read_text())["cases"] if file.is_file() else []


MAPS = [
    case
    for case in cases("classification", "segmentation.json")
    if "reference" in case["expected"]  # others are of volumes, and of panoptic quality
]
VALOR = cases("valor", "semantic_segmentation.json")


def scored(case: dict[str, Any], dialect: str) -> ee.Scorecard:
    given = case["inputs"]
    return ee.score(
        np.array(given["pred"]),
        np.array(given["gt"]),
        labels=list(range(given["num_classes"])),
        ignore_index=given["ignore_index"],
        dialect=dialect,
        metrics=ALL,
    )


def per_label(card: ee.Scorecard, metric: str) -> list[float | None]:
    rows = card.metrics.filter(pl.col("label_value").is_not_null(), metric=metric)
    return rows.sort("label_value")["value"].to_list()


def same(ours: float | None, theirs: Any, tolerance: float = 1e-9) -> bool:
    if theirs == "NaN":
        return ours is None
    return ours is not None and math.isclose(ours, theirs, abs_tol=tolerance)


@pytest.mark.parametrize("case", MAPS, ids=lambda case: case["name"])
def test_reference(case: dict[str, Any]) -> None:
    expected = case["expected"]["reference"]
    card = scored(case, "standard")
    for metric, name in (("IOU", "iou"), ("Dice", "dice")):
        ours = per_label(card, metric)
        assert len(ours) == len(expected[name])
        assert all(map(same, ours, expected[name])), (metric, ours, expected[name])
    for metric, name in (
        ("PixelAccuracy", "pixel_acc"),
        ("mIOU", "miou_present_union"),
        ("FrequencyWeightedIoU", "fwiou"),
        ("MeanClassAccuracy", "mean_class_acc"),
    ):
        if case["name"] == "all_ignored":  # 0 / 0, which the brute force has as 0
            assert card.value(metric) is None
        else:
            assert same(card.value(metric), expected[name]), metric
    matrix = np.zeros((case["inputs"]["num_classes"],) * 2, int)
    for actual, predicted, n in card.confusion.select("actual", "predicted", "count").iter_rows():
        matrix[actual, predicted] = n
    assert matrix.tolist() == expected["confusion"]


@pytest.mark.parametrize("case", MAPS, ids=lambda case: case["name"])
def test_means_of_valor(case: dict[str, Any]) -> None:
    expected = case["expected"]["reference"]
    for dialect, name in (("valor", "miou_valor_gt_present"), ("valor-lite", "miou_zero_fill")):
        given = case["inputs"]
        card = ee.score(
            np.array(given["pred"]) + 1,
            np.array(given["gt"]) + 1,
            labels=[f"l{i:02d}" for i in range(given["num_classes"])],
            ignore_index=None if given["ignore_index"] is None else given["ignore_index"] + 1,
            dialect=dialect,
        )
        assert card.value("mIOU") == pytest.approx(expected[name], abs=1e-9), dialect


@pytest.mark.parametrize("case", MAPS, ids=lambda case: case["name"])
def test_torchmetrics(case: dict[str, Any]) -> None:
    expected = case["expected"]
    card = scored(case, "torchmetrics")
    jaccard = expected.get("torchmetrics_jaccard", {})
    compared = 0
    if "value" in jaccard.get("none", {}):
        assert all(
            same(ours, theirs, 1e-6)
            for ours, theirs in zip(per_label(card, "IOU"), jaccard["none"]["value"], strict=True)
        )
        assert same(card.value("mIOU"), jaccard["macro"]["value"], 1e-6)
        assert same(card.value("IOU", average="micro"), jaccard["micro"]["value"], 1e-6)
        assert same(card.value("FrequencyWeightedIoU"), jaccard["weighted"]["value"], 1e-6)
        compared += 1
    mean_iou = expected.get("torchmetrics_mean_iou", {}).get("per_class=False|bg=True", {})
    if "value" in mean_iou:
        assert same(card.value("mIOUPerImage"), mean_iou["value"][0], 1e-6)
        compared += 1
    dice = expected.get("torchmetrics_dice", {})
    if "value" in dice.get("none", {}):
        assert all(
            same(ours, theirs, 1e-6)
            for ours, theirs in zip(per_label(card, "Dice"), dice["none"]["value"][0], strict=True)
        )
        assert same(card.value("DicePerImage"), dice["macro"]["value"][0], 1e-6)
        assert same(card.value("Dice", average="micro"), dice["micro"]["value"][0], 1e-6)
        compared += 1
    assert compared or "torchmetrics_jaccard" not in expected, case["name"]


def whole(case: dict[str, Any], dialect: str) -> ee.Scorecard:
    """The run over a case's images, whose labels may stand in another order in each."""
    names = sorted({name for image in case["data"] for name in image["labels"]})
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for image in case["data"]:
        order = np.array([0, *(names.index(name) + 1 for name in image["labels"])])
        for side, key in zip(sides, ("prediction", "groundtruth"), strict=True):
            side[image["datum"]] = order[np.array(image[key])]
    metrics = ("IOU", "mIOU", "Precision", "Recall", "F1", "PixelAccuracy", "ConfusionMatrix")
    return ee.score(*sides, labels=names, dialect=dialect, metrics=metrics)


@pytest.mark.parametrize("case", VALOR, ids=lambda case: case["id"])
def test_valor_lite(case: dict[str, Any]) -> None:
    entries = whole(case, "valor-lite").to_valor()
    for kind, expected in case["expected"].items():
        ours = {
            entry["parameters"].get("label"): entry["value"]
            for entry in entries
            if entry["type"] == kind
        }
        assert len(ours) == len(expected), kind
        for entry in expected:
            value = ours[entry["parameters"].get("label")]
            if kind == "ConfusionMatrix":
                assert flat(value) == pytest.approx(flat(entry["value"]), abs=1e-12)
            else:
                assert value == pytest.approx(entry["value"], abs=1e-12), kind


def flat(value: dict[str, Any], name: str = "") -> dict[str, float]:
    """Numbers of nested dicts by their path."""
    found: dict[str, float] = {}
    for key, inner in value.items():
        found |= (
            flat(inner, f"{name}/{key}") if isinstance(inner, dict) else {f"{name}/{key}": inner}
        )
    return found


@pytest.mark.parametrize("case", VALOR, ids=lambda case: case["id"])
def test_valor_service(case: dict[str, Any]) -> None:
    card = whole(case, "valor")
    expected = case["expected_service_rule"]
    for metric in ("IOU", "Precision", "Recall"):
        rows = card.metrics.filter(pl.col("label_value").is_not_null(), metric=metric)
        ours = dict(rows.select("label_value", "value").iter_rows())
        assert ours == pytest.approx(expected[metric], abs=1e-12), metric
    if expected["mIOU"] is not None:
        assert card.value("mIOU") == pytest.approx(expected["mIOU"], abs=1e-12)
