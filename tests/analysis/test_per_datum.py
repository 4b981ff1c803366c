"""``PerDatum``: the value that ranks each datum, in tasks without one row per datum.

``tests/merging`` and ``tests/partitions`` check that merged buckets give the same values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine import metrics
from evalengine.evaluation.paging import worst
from evalengine.run import tallied_of

EXAMPLES = Path(__file__).parents[2] / "examples"
BOX = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}


def example(task: str) -> list[str]:
    return [str(EXAMPLES / task / f"{side}.parquet") for side in ("predictions", "groundtruths")]


def binary(seed: int) -> list[pl.DataFrame]:
    rng = np.random.default_rng(seed)
    return [pl.DataFrame({"actual": rng.integers(0, 2, 30), "score": rng.integers(0, 9, 30) / 8})]


CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "F1": (example("detection"), {"metrics": ["PerDatum"]}),
    "beside others": (example("detection"), {"metrics": ["mAP", "PerImage"], "dialect": "coco"}),
    "score": (example("classification"), {"metrics": ["Accuracy", "PerSample"]}),
    "log loss": (example("classification"), {"metrics": ["PerDatum", "LogLoss"]}),
    "binary": (binary(1), {"metrics": ["PerDatum"]}),
    "several labels": (
        example("classification"),
        {"metrics": ["PerDatum"], "multilabel": True, "decision_threshold": 0.3},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_worst_datums_are_sorted_by_it(name: str, tmp_path: Path) -> None:
    tables, options = CASES[name]
    card = ee.score(*tables, **options)
    frame = card.per_datum
    assert frame["datum_id"].n_unique() == frame.height == card.run["datums"]
    assert (frame["value"].is_null() == (frame["status"] == "undefined")).all()
    result = worst(tallied_of("run", card), frame.height)
    joined = result.join(frame, on=["datum_id", "metric"], suffix="_told")
    assert joined.height == result.height > 0
    assert joined["value"].equals(joined["value_told"])
    if name in ("F1", "beside others", "several labels"):
        assert joined["parameters"].equals(joined["parameters_told"])
    others = frame.join(result, on="datum_id", how="anti")["value"].drop_nulls().unique()
    assert others.to_list() in ([], [1.0], [0.0])  # no errors
    assert_frame_equal(ee.load(card.save(tmp_path / "run")).per_datum, frame)


def test_a_datum_by_hand() -> None:
    truths = pl.DataFrame([{"datum_id": i, "label_value": "a", **BOX} for i in (1, 1, 2)])
    truths = truths.with_columns(xmin=pl.Series([0.0, 50.0, 0.0]), xmax=pl.Series([9.0, 59.0, 9.0]))
    ours = pl.DataFrame([{"datum_id": i, "label_value": "a", "score": 0.75, **BOX} for i in (1, 2)])
    frame = ee.score(
        ours, truths, metrics=["PerDatum"], datums=pl.DataFrame({"datum_id": [1, 2, 3]})
    ).per_datum
    assert frame["value"].to_list() == [2 / 3, 1.0, None]
    assert frame["status"].to_list() == ["scored", "scored", "undefined"]
    parameters = {"iou_threshold": 0.5, "score_threshold": 0.75}
    assert [json.loads(one) for one in frame["parameters"]] == [parameters] * 3


def test_right_labels_are_0_and_datums_without_a_truth_undefined() -> None:
    ours = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": ["a"] * 3, "score": [0.9, 0.8, 0.7]})
    truths = pl.DataFrame({"datum_id": [1, 2, 4], "label_value": ["a", "b", "a"]})
    frame = ee.score(ours, truths, metrics=["PerDatum"]).per_datum
    assert frame["value"].to_list() == [0.0, 0.8, None, None]


def test_it_is_no_default_metric() -> None:
    for task in ("detection", "classification"):
        card = ee.score(*example(task))
        assert "per_datum" not in card.frames
        with pytest.raises(ee.ResultError, match="PerDatum fills it"):
            _ = card.per_datum
        assert metrics.get(task, "PerDatum").frame == "per_datum"


def test_sizes_must_be_all() -> None:
    with refused("metric_unfit", metrics=["PerDatum"]):
        ee.score(*example("detection"), metrics=["PerDatum"], area_ranges={"small": (0, 99)})
