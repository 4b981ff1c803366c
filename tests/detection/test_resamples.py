"""Blocks of resamples: each equals a run in which datums are repeated by their weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.checking import AVERAGES, RANGES, RATES, modest, some_settings
from detection.strategies import BOX_DIALECTS, Tables, crowded_tables, more_tables, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from loading import load_frames
from merging.parts import Case
from msgspec import structs
from oracles.detection_metrics import Asked
from partitions.cases import WIDE, in_buckets, same_as_in_memory
from polars.testing import assert_frame_equal
from sizes import tune

import evalengine as ee
from evalengine.evaluation import planner
from evalengine.executors import Threads
from evalengine.kernels.datums import hash_integers
from evalengine.schemas.option_values import make_options
from evalengine.statistics.intervals import METHODS
from evalengine.tallies.datums import Cells
from evalengine.tallies.draws import Draws

METRICS = [*AVERAGES, "mARAtIOU", *RATES]
DIALECTS = BOX_DIALECTS
FEW_DIALECTS = ("standard", "coco", "valor", "voc2007", "voc2012", "lvis", "openimages")
"""One metric for each way to compute a curve of a label."""
CAPS = {"lvis": [3]}
DRAWS = 12
FOUR = {"all": (0, 1e10), "small": (0, 900), "medium": (900, 6400), "large": (6400, 1e10)}


def column(cells: Cells, name: str) -> np.ndarray:
    return np.broadcast_to(np.asarray(cells.columns[name], np.float64), cells.shape)


def same_by_resample(both: Tables, seed: int, by: list[str] | None = None, **options: Any) -> None:
    """Compare every number of a block of resamples with separate resamples."""
    plan = planner.make_plan(make_options(metrics=METRICS, by=by or [], **options), "detection")
    ids, labels = (
        pl.concat([both.predictions[name], both.truths[name]])
        for name in ("datum_id", "label_value")
    )
    tables = more_tables(plan.dialect.name, ids, labels)
    frames = load_frames(both.predictions, both.truths, options=plan.options, **tables)
    tallies = planner.run(plan, frames, Threads(1))
    keys = hash_integers(np.arange(len(tallies.datums)))
    draws = Draws(seed, 0, DRAWS, keys)
    groups: list[tuple[Any, int]] = [(None, 1)]
    for name in by or []:
        group, names = tallies.datums.groups(name)
        groups.append((group, len(names)))
    for group, n_groups in groups:
        view = plan.does.view(tallies, plan.settings, group, n_groups)
        assert plan.does.drawn is not None
        block = plan.does.drawn(view, draws)
        single = [
            plan.does.view(tallies, plan.settings, group, n_groups, weights=weights)
            for weights in draws.weights.T.astype(np.int64)
        ]
        for metric in plan.metrics:
            assert metric.compute is not None
            settings = plan.settings_of(metric)
            each = [metric.compute(one, settings) for one in single]
            for at_once, *parts in zip(metric.compute(block, settings), *each, strict=True):
                selected = [np.broadcast_to(one.keep, one.shape) for one in parts]
                np.testing.assert_array_equal(
                    np.broadcast_to(at_once.keep, at_once.shape), np.concatenate(selected)
                )
                for name in ("value", "support"):
                    np.testing.assert_allclose(
                        column(at_once, name),
                        np.concatenate([column(one, name) for one in parts]),
                        rtol=0,
                        atol=1e-12,
                        err_msg=f"{metric.name} {name}",
                    )


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    tables(crowd=True, area=True),
    some_settings(),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
)
@settings(modest, max_examples=1 + modest.max_examples // 4)
def test_small_tables(
    dialect: str, both: Tables, options: Asked, seed: int, areas: bool, capped: bool
) -> None:
    """Ties, empty sides, labels without ground truth, IoUs equal to thresholds."""
    same_by_resample(
        both,
        seed,
        dialect=dialect,
        iou_thresholds=list(options.iou_thresholds),
        iou_thresholds_to_return=list(options.returned),
        score_thresholds=list(options.score_thresholds),
        recall_score_threshold=options.recall_score_threshold,
        area_ranges=dict(RANGES) if areas else None,  # type: ignore[arg-type]
        max_detections=CAPS.get(dialect, [1, 2]) if capped else None,
    )


THRESHOLDS = {
    "one word": [0.3, 0.5, 0.7],
    "two area ranges a word": [0.3 + 0.02 * i for i in range(30)],
    "an area range in two words": [0.3 + 0.009 * i for i in range(70)],
}


@pytest.mark.parametrize(
    ("dialect", "words"), [*zip(FEW_DIALECTS, cycle(THRESHOLDS), strict=False)]
)
def test_larger_tables(dialect: str, words: str) -> None:
    """Crowds, area ranges, caps and slices, with variants in one word or several."""
    both = crowded_tables(17, datums=12)
    weather = pl.col("datum_id").mod(3).replace_strict({0: "fog", 1: "rain", 2: None})
    sliced = Tables(both.predictions, both.truths.with_columns(weather.alias("weather")))
    ious = THRESHOLDS[words]
    same_by_resample(
        sliced,
        5,
        ["weather"],
        dialect=dialect,
        iou_thresholds=ious,
        iou_thresholds_to_return=ious[:2],
        score_thresholds=[0.25, 0.5, 0.75],
        recall_score_threshold=0.3,
        area_ranges=FOUR,
        max_detections=CAPS.get(dialect, [2, 10]),
    )


@pytest.mark.parametrize("dialect", FEW_DIALECTS)
def test_many_ground_truths(dialect: str) -> None:
    """Labels with more and with fewer ground truths than recall levels."""
    both = crowded_tables(18, datums=60, labels=4)
    rare = pl.col("label_value").ne(1) | pl.col("datum_id").lt(12)
    same_by_resample(both.where(rare), 6, dialect=dialect, iou_thresholds=[0.3, 0.6])


@pytest.mark.parametrize("dialect", ["coco", "valor"])
@pytest.mark.parametrize("n", [20, 100, 300])
def test_recall_levels_reached_exactly(dialect: str, n: int) -> None:
    """Resample k finds k of n ground truths: 0.29 * 100 is less than 29 in doubles."""
    ids = np.arange(2 * n)
    box = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
    truths = pl.DataFrame({"datum_id": ids, "label_value": "a"}).with_columns(
        pl.lit(value).alias(name) for name, value in box.items()
    )
    predictions = truths.head(n).with_columns(score=0.5)
    plan = planner.make_plan(make_options(dialect=dialect, metrics=["AP"]), "detection")
    frames = load_frames(predictions, truths, options=plan.options)
    tallies = planner.run(plan, frames, Threads(1))
    result = ids[:, None] < np.arange(n + 1)
    lost = (ids[:, None] >= n) & (ids[:, None] < 2 * n - np.arange(n + 1))
    draws = Draws(0, 0, n + 1, None)
    draws.__dict__["weights"] = (result | lost).astype(np.uint8)
    metric = next(one for one in plan.metrics if one.name == "AP")
    assert plan.does.drawn is not None
    assert metric.compute is not None
    view = plan.does.view(tallies, plan.settings)
    (block,) = metric.compute(plan.does.drawn(view, draws), plan.settings)
    for k in range(n + 1):
        weights = draws.weights[:, k].astype(np.int64)
        (single,) = metric.compute(
            plan.does.view(tallies, plan.settings, weights=weights), plan.settings
        )
        np.testing.assert_allclose(
            column(block, "value")[k], column(single, "value")[0], rtol=0, atol=1e-12
        )


def test_scores_at_recall_levels_are_those_of_each_resample() -> None:
    both = crowded_tables(3, datums=4)
    plan = planner.make_plan(make_options(metrics=["AP"]), "detection")
    frames = load_frames(both.predictions, both.truths, options=plan.options)
    tallies = planner.run(plan, frames, Threads(1))
    draws = Draws(0, 0, 4, hash_integers(np.arange(len(tallies.datums))))
    view = plan.does.view(tallies, plan.settings)
    assert plan.does.drawn is not None
    single = [
        plan.does.view(tallies, plan.settings, weights=weights).sampled_with_scores(100)
        for weights in draws.weights.T.astype(np.int64)
    ]
    block = plan.does.drawn(view, draws).sampled_with_scores(100)
    for at_once, each in zip(block, zip(*single, strict=True), strict=True):
        np.testing.assert_array_equal(at_once, np.concatenate(each))


def case(seed: int, datums: int = 24, **options: Any) -> Case:
    """Make tables with slices, and options with intervals of all metrics."""
    both = crowded_tables(seed, datums=datums, labels=4)
    ids = pl.Series("datum_id", both.datums)
    listed = ids.to_frame().with_columns(weather=pl.when(ids % 3 > 0).then(pl.lit("fog")))
    settings = {"metrics": METRICS, "by": ["weather"], "intervals": 0.9, "draws": 24, **options}
    return Case((both.predictions, both.truths), settings, "datum_id", {"datums": listed})


def scored(one: Case, **options: Any) -> pl.DataFrame:
    return ee.score(*one.sides, task="detection", **one.options, **one.tables, **options).metrics


def test_order_and_threads_do_not_matter() -> None:
    """Rows keep their order within a datum and datums have any order; blocks have any size."""
    one = case(31, dialect="coco", iou_thresholds=[0.3, 0.6])
    usual = scored(one, threads=1)
    assert usual["lower"].is_not_null().any()
    rng = np.random.default_rng(1)
    place = dict(zip(range(24), rng.permutation(24).tolist(), strict=True))
    moved = [
        side.sort(pl.col("datum_id").replace_strict(place), maintain_order=True)
        for side in one.sides
    ]
    assert_frame_equal(scored(replace(one, sides=tuple(moved)), threads=2), usual, check_exact=True)
    for sizes in ({"draws_at_once": 8}, {"drawn_weights": 1}, {"drawn_cells": 1}):
        tune(**sizes)
        assert_frame_equal(scored(one, threads=2), usual, check_exact=True)


SOME = structs.replace(WIDE, group_rows=60)


@pytest.mark.parametrize(("dialect", "sizes"), [("coco", SOME), ("valor", WIDE)])
def test_bounded_memory_does_not_matter(
    dialect: str, sizes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of labels, and labels that are split into ranges of scores."""
    in_buckets(monkeypatch, sizes)
    metrics = ["AP", "mAPAveragedOverIOUs", "AR", "mAR", "F1"]
    one = case(32, dialect=dialect, metrics=metrics, iou_thresholds=[0.3, 0.6], datums=12,
               recall_score_threshold=0.2)  # fmt: skip
    card = same_as_in_memory(one, "detection", tmp_path)
    assert card.metrics["lower"].is_not_null().sum() > 100


def test_intervals_of_averages_of_precision_are_recentred() -> None:
    """Intervals of ratios of counts are not recentred."""
    one = case(33)
    usual, recentred, percentile = (
        scored(replace(one, options={**one.options, "method": method}))
        for method in (None, "recentred", "percentile")
    )
    assert set(METHODS) >= {"recentred", "percentile"}
    ratio = pl.col("metric").is_in(["AR", "mAR", "mARAtIOU", *RATES])
    assert_frame_equal(usual.filter(~ratio), recentred.filter(~ratio), check_exact=True)
    assert_frame_equal(usual.filter(ratio), percentile.filter(ratio), check_exact=True)
    assert not recentred.equals(percentile)
