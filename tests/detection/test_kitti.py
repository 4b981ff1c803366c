"""Dialects kitti and kitti-r11: a plain version of KITTI's rules, and required columns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.kitti_tables import CORNERS, random_tables
from loading import load_frames
from merging import parts
from merging.oriented_parts import seen
from oracles import kitti
from oracles.boxes_3d import iou_3d, iou_bev
from partitions.cases import in_buckets, same_as_in_memory
from refusals import refused

import evalengine as ee
from evalengine.evaluation import planner
from evalengine.executors.pools import Threads
from evalengine.schemas.option_values import make_options

SETS = int(os.environ.get("EVALENGINE_KITTI", "5"))
SIMILARITIES: dict[str, kitti.Similarity] = {
    "bbox": kitti.iou_2d,
    "bev": lambda one, two: iou_bev(one["box3d"], two["box3d"]),
    "3d": lambda one, two: iou_3d(one["box3d"], two["box3d"]),
}
IOUS = {"Car": 0.7, "Pedestrian": 0.5, "Cyclist": 0.5}
BASE: dict[str, Any] = {"dialect": "kitti", "task": "detection", "angle_format": "radians-z-up"}


def images(sides: tuple[pl.DataFrame, pl.DataFrame]) -> list[tuple[list[Any], list[Any]]]:
    ids = sorted({*sides[0]["datum_id"], *sides[1]["datum_id"]})
    return [tuple(side.filter(datum_id=one).to_dicts() for side in sides) for one in ids]  # type: ignore[misc]


def usable(sides: tuple[pl.DataFrame, pl.DataFrame]) -> bool:
    return bool({*sides[0]["datum_id"]} & {*sides[1]["datum_id"]})


def values_of(card: ee.Scorecard, **where: Any) -> list[float | None]:
    return card.metrics.filter(**where)["value"].to_list()


@pytest.mark.parametrize("iou_type", SIMILARITIES)
def test_the_rules(iou_type: str) -> None:
    """AP at 40 and 11 positions, AOS and their means, for every label and difficulty."""
    compared = 0
    for seed in range(SETS):
        sides = random_tables(seed)
        if not usable(sides):
            continue
        inputs = images(sides)
        cards = {
            positions: ee.score(*sides, **{**BASE, "dialect": name}, iou_type=iou_type)
            for name, positions in (("kitti", range(1, 41)), ("kitti-r11", range(0, 41, 4)))
        }
        for difficulty in kitti.HEIGHT:
            means: dict[Any, list[float]] = {}
            for label, least in IOUS.items():
                precision, angle, sought = kitti.evaluate(
                    inputs, label, difficulty, least, SIMILARITIES[iou_type]
                )
                for positions, card in cards.items():
                    for metric, values in (("AP", precision), ("AOS", angle)):
                        if metric == "AOS" and iou_type != "bbox":
                            continue
                        mean = sum(values[at] for at in positions) / len(positions)
                        result = values_of(card, metric=metric, label_value=label, area=difficulty)
                        if sought:
                            assert result == [pytest.approx(mean, abs=1e-12)], (seed, label, metric)
                            means.setdefault((positions, metric), []).append(mean)
                            compared += mean > 0
                        else:
                            assert result in ([], [None])
            for (positions, metric), each in means.items():
                name = "mAPAveragedOverIOUs" if metric == "AP" else metric
                rows = cards[positions].metrics.filter(
                    pl.col("label_value").is_null(), metric=name, area=difficulty
                )
                assert rows["value"].to_list() == [pytest.approx(sum(each) / len(each), abs=1e-12)]
    assert compared > 4 * SETS


def best(seeds: range = range(12)) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Choose the tables with the most matches."""
    sides = [random_tables(seed) for seed in seeds]
    return max(
        (pair for pair in sides if usable(pair) and pair[0]["datum_id"].n_unique() > 2),
        key=lambda pair: ee.score(*pair, metrics=["mAPAveragedOverIOUs"], **BASE).metrics["value"][
            0
        ],
    )


def test_parts_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = seen(5)
    parts.check(case, "detection", 5, 3)
    in_buckets(monkeypatch)
    same_as_in_memory(case, "detection", tmp_path)


def test_weights_equal_copies() -> None:
    """An image with weight 2 counts as two such images; a slice equals a run of its image."""
    ours, theirs = best()
    ids = sorted({*ours["datum_id"], *theirs["datum_id"]})
    weights = np.arange(len(ids))[::-1] % 3
    copies = []
    for side in (ours, theirs):
        many = side["datum_id"].replace_strict(ids, weights, return_dtype=pl.Int64)
        again = side.with_columns(copy=pl.int_ranges(0, many)).explode("copy").drop_nulls("copy")
        copies.append(again.with_columns(pl.concat_str("datum_id", "copy")).drop("copy"))
    plan = planner.make_plan(make_options(**{**BASE, "task": None}), "detection")
    frames = load_frames(ours, theirs, options=plan.options, task="detection")
    tallies = planner.run(plan, frames, Threads(1))
    view = plan.does.one_draw(plan.does.view(tallies, plan.settings), weights)
    expected = ee.score(copies[0], copies[1], **BASE).metrics
    compared = 0
    for one in plan.metrics:
        assert one.compute is not None
        result = [cells.columns["value"].ravel() for cells in one.compute(view, plan.settings)]
        rows = expected.filter(pl.col("value") > 0, metric=one.name)["value"].to_list()
        there = np.concatenate(result)
        assert all(np.nanmin(np.abs(there - value)) < 1e-12 for value in rows)
        compared += len(rows)
    assert compared > 8
    first = ids[0]
    sides = [side.with_columns(video=pl.col("datum_id")) for side in (ours, theirs)]
    card = ee.score(*sides, by=["video"], **BASE)
    single = ee.score(*(side.filter(datum_id=first) for side in sides), **BASE).metrics
    rows = card.metrics.filter(slice_value=first)
    assert rows["value"].to_list() == single["value"].to_list()


def test_positions_without_true_positives_are_0() -> None:
    """With fewer true positives than positions, the others stay 0, as in KITTI's kit."""
    box = {"xmin": 0.0, "ymin": 0.0, "xmax": 60.0, "ymax": 50.0, "occluded": 0, "truncated": 0.0}
    truth = pl.DataFrame([{"datum_id": n, "label_value": "Car", **box} for n in range(20)])
    predictions = truth.with_columns(score=pl.Series(np.arange(20) / 20))
    card = ee.score(predictions, truth, **BASE, metrics=["AP"], intervals=0.9, draws=20)
    assert set(card.metrics["value"]) == {19 / 40}
    assert (card.metrics["lower"] < 19 / 40).all()  # resamples have more or fewer than 20
    assert (card.metrics["upper"] > 19 / 40).all()
    result = card.to_kitti()
    assert result == dict.fromkeys([f"Car_image/{one}_R40" for one in kitti.HEIGHT][:3], 47.5)
    ((name, value), *_) = (
        ee.score(predictions, truth, **{**BASE, "dialect": "kitti-r11"}).to_kitti().items()
    )
    assert (name, value) == ("Car_image/easy", pytest.approx(100 * 5 / 11))
    van = predictions.with_columns(label_value=pl.lit("Van"))
    assert ee.score(pl.concat([predictions, van]), truth, **BASE).to_kitti() == result
    loose = ee.score(predictions, truth, **BASE, metrics=["AP"], iou_thresholds=[0.25, 0.5])
    assert loose.metrics["iou_threshold"].unique().to_list() == [0.25, 0.5]
    with pytest.raises(ee.ResultError, match="iou_thresholds"):
        loose.to_kitti()


def cars(**columns: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make a car in each of four images, and its predictions."""
    box = {"xmin": 0.0, "ymin": 0.0, "xmax": 60.0, "ymax": 50.0, "occluded": 0, "alpha": 0.0}
    truth = pl.DataFrame([{"datum_id": n, "label_value": "Car", **box} for n in range(4)])
    truth = truth.with_columns(truncated=pl.lit(0.15)).with_columns(**columns)
    return truth.select("datum_id", "label_value", *CORNERS, "alpha", score=0.5), truth


@pytest.mark.parametrize("share", [0.15, 0.3])
def test_single_precision_changes_no_difficulty(share: float) -> None:
    """0.15 in single precision is greater than in double precision."""
    ours, theirs = cars(truncated=pl.lit(share))
    metrics = ee.score(ours, theirs, **BASE).metrics
    single = theirs.cast({"truncated": pl.Float32})
    assert ee.score(ours, single, **BASE).metrics.equals(metrics)


@pytest.mark.parametrize(("metric", "kinds"), [("AP", 2), ("AOS", 4)])
def test_angles_need_their_metrics(metric: str, kinds: int) -> None:
    plan = planner.make_plan(make_options(**BASE, metrics=[metric]), "detection")
    tallies = planner.run(
        plan, load_frames(*cars(), options=plan.options, task="detection"), Threads(1)
    )
    variants = tallies.ranked.variants
    assert len(tallies.ranked.values) == kinds * len(variants.areas) * len(variants.thresholds)


def test_notes_name_ignored_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vans next to cars are evaluated; regions and other labels are noted once."""
    ours, theirs = cars()
    more = ["Van", "Truck", "Truck", "DontCare", "Cyclist", "Misc"]
    others = pl.concat([theirs, theirs]).head(6).with_columns(label_value=pl.Series(more))
    whole = pl.concat([theirs, others])
    notes = ee.score(ours, whole, **BASE).notes
    notes_of_truths = [note for note in notes if "ground truths" in note]
    for message, (start, name) in zip(
        notes_of_truths,
        (("1 label", "'Cyclist'"), ("ground truths: 2 rows", "'Truck'"),
         ("ground truths: 1 row", "'Misc'")),
        strict=True,
    ):  # fmt: skip
        assert message.startswith(start)
        assert name in message
    for name, table in (("ours", ours), ("theirs", whole)):
        table.write_parquet(tmp_path / f"{name}.parquet")
    in_buckets(monkeypatch)
    paths = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    assert {*notes_of_truths} <= {*ee.score(*paths, **BASE, memory_limit="1GB").notes}
    single = ee.score(ours.clear(), whole.filter(label_value="Van"), **BASE).notes
    assert any("1 row of" in note and "'Van'" in note for note in single)


def test_regions_of_datums_are_those_of_rows() -> None:
    """Regions are rows named DontCare, in files or tables, or a column of the table of datums."""
    ours, theirs = best()
    is_region = pl.col("label_value") == "DontCare"
    lists = theirs.filter(is_region).group_by("datum_id").agg(
        regions=pl.concat_list(CORNERS).explode()
    )  # fmt: skip
    ids = pl.DataFrame({"datum_id": sorted({*ours["datum_id"], *theirs["datum_id"]})})
    datums = ids.join(lists, on="datum_id", how="left")
    rows = ee.score(ours, theirs, **BASE).metrics
    assert ee.score(ours, theirs.filter(~is_region), datums=datums, **BASE).metrics.equals(rows)
    without = ee.score(ours, theirs.filter(~is_region), **BASE).metrics
    assert not without.equals(rows)
    bad = datums.with_columns(regions=pl.Series([[1.0, 2.0]] * datums.height))
    with refused("wrong_length", column="regions", count=datums.height):
        ee.score(ours, theirs, datums=bad, **BASE)


def test_missing_columns_are_refused() -> None:
    ours, theirs = best()
    with refused("column_missing", side="ground_truths", column="occluded"):
        ee.score(ours, theirs.drop("occluded"), **BASE)
    blank = theirs.with_columns(truncated=pl.Series([None] * theirs.height, dtype=pl.Float64))
    with refused("null_values", side="ground_truths", column="truncated"):
        ee.score(ours, blank, **BASE)
    with refused("column_missing", side="predictions", column="height_2d"):
        ee.score(ours.drop(CORNERS), theirs, iou_type="3d", **BASE)
    with pytest.raises(ee.OptionError, match="area_ranges"):
        ee.score(ours, theirs, area_ranges={"all": (0, 1)}, **BASE)
    blind = ours.with_columns(alpha=-10.0)
    card = ee.score(blind, theirs, metrics=["AP", "AOS", "TIDE"], **BASE)
    assert any("AOS skipped" in note and "alpha (-10)" in note for note in card.notes)
    assert any("TIDE skipped" in note for note in card.notes)
    flags = theirs.with_columns(occluded=pl.col("occluded") > 0)  # not read by other dialects
    options = {**BASE, "dialect": "coco"}
    plain = ee.score(ours, theirs, **options, metrics=["mAP"]).metrics
    assert ee.score(ours, flags, **options, metrics=["mAP"]).metrics.equals(plain)
