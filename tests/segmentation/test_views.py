"""A slice equals a run over its datums; a weight equals repeated datums."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from loading import load_frames
from polars.testing import assert_frame_equal
from segmentation.making import EVERY, NAMES, some_maps

import evalengine as ee
from evalengine.evaluation import planner
from evalengine.evaluation.summary import summarise
from evalengine.executors import Threads
from evalengine.metrics import registry
from evalengine.tasks.segmentation import spec
from evalengine.tasks.segmentation.metrics import OF_IMAGE, OfImage

FOUND, TRUTH = some_maps(n=7)
CITY = ["x", "y", "x", "x", "y", "y", None]
DATUMS = pl.DataFrame({"datum_id": range(7), "city": CITY})


def of(where: Any, **options: Any) -> ee.Scorecard:
    return ee.score(FOUND[where], TRUTH[where], metrics=EVERY, **options)


@pytest.mark.parametrize("dialect", ["standard", "valor", "valor-lite", "torchmetrics"])
def test_slices(dialect: str) -> None:
    names = NAMES if dialect in ("standard", "torchmetrics") else NAMES[1:]
    card = ee.score(
        FOUND, TRUTH, labels=names, datums=DATUMS, by="city", metrics=EVERY, dialect=dialect
    )
    for city in "xy":
        where = np.array([one == city for one in CITY])
        alone = of(where, labels=names, dialect=dialect)
        for frame in ("metrics", "confusion"):
            mine = card.frame(frame).filter(slice_value=city).drop("slice", "slice_value")
            assert_frame_equal(mine, alone.frame(frame).drop("slice", "slice_value"))
    assert card.metrics["slice_value"].unique().sort().to_list() == [None, "x", "y"]


def test_means_per_image_are_independent_of_other_slices() -> None:
    maps = np.array([[[1, 1], [2, 2]], [[3, 3], [4, 4]]])
    other = pl.DataFrame({"datum_id": [0, 1], "part": ["x", "y"]})
    asked = {"dialect": "valor-lite", "metrics": ["mIOU", "mIOUPerImage"]}
    card = ee.score(maps, maps, datums=other, by="part", **asked)
    alone = ee.score(maps[:1], maps[:1], **asked)
    for name in asked["metrics"]:
        (mine,) = card.metrics.filter(metric=name, slice_value="x")["value"]
        assert mine == alone.value(name) == 1.0


def summarised(predictions: Any, truth: Any, weights: Any = None) -> Any:
    plan = planner.make_plan(ee.Options(metrics=EVERY), "segmentation")
    frames = load_frames(predictions, truth, task="segmentation")
    tallies = planner.run(plan, frames, Threads(1))
    makers, _ = summarise(plan, tallies, weights=weights)
    return {name: makers[name]() for name in ("metrics", "confusion")}


@pytest.mark.parametrize("times", [(2, 0, 1, 3, 0, 1, 0), (1,) * 7])
def test_weights_are_repeats(times: tuple[int, ...]) -> None:
    draw = np.array(times)
    weighted = summarised(FOUND, TRUTH, draw)
    repeated = summarised(FOUND.repeat(draw, 0), TRUTH.repeat(draw, 0))
    for frame, ours in weighted.items():
        assert_frame_equal(ours, repeated[frame])


def test_order_and_threads_change_nothing() -> None:
    plain = ee.score(dict(enumerate(FOUND)), dict(enumerate(TRUTH)), metrics=EVERY, threads=1)
    order = [3, 1, 6, 0, 2, 5, 4]
    other = ee.score(
        {i: FOUND[i] for i in order}, {i: TRUTH[i] for i in reversed(order)}, metrics=EVERY
    )
    for frame in ("metrics", "confusion", "per_datum"):
        assert_frame_equal(plain.frame(frame), other.frame(frame))


def test_torchmetrics_pools_the_labels_of_all_images() -> None:
    predictions, truth = some_maps(n=3)
    truth[0][truth[0] == 3] = 1  # an image without a label on either side
    predictions[0][predictions[0] == 3] = 1
    each = []
    for image in range(3):
        sides = [[side[image] == k for k in range(4)] for side in (predictions, truth)]
        pairs = [(p, t) for p, t in zip(*sides, strict=True) if (p | t).any()]
        each.append([(p & t).sum() / (p | t).sum() for p, t in pairs])
    pooled = np.mean([value for image in each for value in image])
    means = np.mean([np.mean(image) for image in each])
    assert abs(pooled - means) > 1e-4
    for dialect, wanted in (("torchmetrics", pooled), ("standard", means)):
        card = ee.score(predictions, truth, dialect=dialect, metrics=["mIOUPerImage"])
        assert card.value("mIOUPerImage") == pytest.approx(wanted, abs=1e-15)
        assert card.metrics["support"].to_list() == [3]


def test_metrics_per_image_match_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {one.name for one in OF_IMAGE}
    assert {f"{name}PerImage" for name in names} <= {*registry.names("segmentation")}
    card = ee.score(FOUND, TRUTH)
    assert {*card.per_datum["metric"]} == names

    def least(pixels: Any, labels: Any, n_datums: int, settings: Any) -> Any:
        return np.full((n_datums, len(labels.key_names)), 0.25)

    more = OfImage("LeastIoU", least, "never")
    monkeypatch.setattr(spec, "OF_IMAGE", (*OF_IMAGE, more))
    rows = ee.score(FOUND, TRUTH).per_datum.filter(metric="LeastIoU")
    assert rows["value"].to_list() == [0.25] * 7
