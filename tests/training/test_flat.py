"""to_dict: names that loggers accept, each value once, undefined ones as requested."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee

EXAMPLES = Path(__file__).parents[2] / "examples"
RETRIEVAL = EXAMPLES / "retrieval"
CLASSES = pl.DataFrame({"actual": ["a b", "a_b", "a/b", "ü", "", "a b"],
                        "predicted": ["a b", "a_b", "ü", "ü", "", "a_b"],
                        "site": ["x y", "x_y", "x y", "x_y", "x y", "x_y"]})  # fmt: skip
MLFLOW = re.compile(r"^[/\w.\- ]*$")
TENSORBOARD = re.compile(r"[^-/\w.]")


def detection(**more: Any) -> ee.Scorecard:
    sides = (EXAMPLES / "detection" / f"{name}.parquet" for name in ("predictions", "groundtruths"))
    return ee.score(*sides, datums=EXAMPLES / "detection" / "datums.parquet", **more)


CARDS = {
    "coco": lambda: detection(dialect="coco", by="weather"),
    "standard": lambda: detection(by="weather", metrics=["mAP", "AP", "Counts", "mAR", "F1"]),
    "classes": lambda: ee.score(CLASSES, by="site", metrics=["F1", "Accuracy", "Recall"]),
    "retrieval": lambda: ee.score(*(RETRIEVAL / f"{name}.parquet" for name in ("run", "qrels"))),
    "ter": lambda: ee.score(["a cat", "on"], ["a cat sat", "on it"], task="text"),
}  # fmt: skip


@pytest.mark.parametrize("name", CARDS)
def test_every_value_has_a_name_that_loggers_accept(name: str) -> None:
    card = CARDS[name]()
    found = card.to_dict("val/", labels=True, slices=True, undefined=math.nan)
    assert len(found) == card.metrics.height
    defined = card.metrics["value"].is_not_null().sum()
    assert len(card.to_dict(labels=True, slices=True)) == defined
    for key, value in found.items():
        assert type(value) is float
        assert MLFLOW.match(key)
        assert not TENSORBOARD.search(key)
        assert not re.search(r"//|/\.|^/|/$|\s", key)  # a path that no file system changes
    values = sorted(value for value in found.values() if not math.isnan(value))
    assert values == sorted(card.metrics["value"].drop_nulls().to_list())


def test_names() -> None:
    coco = detection(dialect="coco").to_dict("val/", step=7)
    assert {"val/AP", "val/AP50", "val/APsmall", "val/AR1", "val/AR100"} < coco.keys()
    assert coco["val/step"] == 7
    assert coco["val/AP50"] == detection(dialect="coco").value("AP50")
    card = detection(by="weather", metrics=["mAP", "AP"], iou_thresholds=[0.5])
    assert [*card.to_dict()] == ["mAP_iou_0.5"]
    sliced = card.to_dict(slices=True, labels=True)
    assert "mAP_iou_0.5/weather_fog" in sliced
    assert "AP_iou_0.5/weather_fog/bus" in sliced
    assert "AP_iou_0.5/bus" in sliced
    two = pl.DataFrame({"actual": [1, 0, 1], "score": [0.5, 0.25, 0.125]})
    assert ee.score(two, metrics=["ROCAUC"]).to_dict() == {"ROCAUC": 0.5}


def test_names_that_would_collide() -> None:
    result = ee.score(CLASSES, metrics=["F1"]).to_dict(labels=True)
    alike = [name for name in result if name.startswith("F1/a_b")]
    assert len(alike) == 3
    assert all(re.fullmatch(r"F1/a_b\.[0-9a-f]{6}", name) for name in alike)
    assert "F1/_" in result
    assert alike == [name for name in ee.score(CLASSES).to_dict(labels=True) if name in alike]


def test_intervals() -> None:
    card = ee.score(CLASSES, metrics=["Accuracy"], intervals=90, draws=50)
    found = card.to_dict("val/")
    row = card.metrics.row(0, named=True)
    assert found == {f"val/Accuracy{end}": row[key] for end, key in
                     (("", "value"), ("_lower", "lower"), ("_upper", "upper"))}  # fmt: skip
    assert [*card.to_dict(intervals=False)] == ["Accuracy"]


def test_saved_runs(tmp_path: Path) -> None:
    card = detection(dialect="coco")
    assert ee.load(card.save(tmp_path / "run")).to_dict() == card.to_dict()
