"""Every number held against plain Python, over random label maps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.segmentation import labels_in, mean, of_key, of_label, pairs
from segmentation.making import EVERY, pairs_of_maps

import evalengine as ee

KEYED = {*EVERY} - {"Counts", "ConfusionMatrix"}
DTYPES = (np.uint8, np.int64, np.uint16, np.int32)


def approx(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-12, abs=1e-15)


def expected(
    found: dict[str, Any], truth: dict[str, Any], ignore: int | None, background: int | None
) -> dict[str, Counter[Any]]:
    """Pairs of labels of every datum; where a side lacks it, it has no label there."""
    made = {}
    for name in {**found, **truth}:
        blank = np.full((found.get(name, truth.get(name))).shape, -7)
        counts = pairs(truth.get(name, blank), found.get(name, blank), ignore, background)
        made[name] = Counter[Any]()
        for (t, p), n in counts.items():
            made[name][None if t == -7 else t, None if p == -7 else p] += n
    return made


@settings(max_examples=25)
@given(
    pairs_of_maps(),
    st.sampled_from([None, 255, 2]),
    st.sampled_from([None, 0]),
    st.sampled_from(DTYPES),
)
@example(({"a": np.array([[1]])}, {"a": np.array([[1]])}), None, None, np.uint8)  # one pixel
@example(({"a": np.array([[2]])}, {"a": np.array([[255]])}), 255, None, np.uint8)  # none left
@example(({"a": np.array([[0]])}, {"a": np.array([[0]])}), None, 0, np.int64)  # no label at all
@example(({"a": np.array([[70000]])}, {"a": np.array([[-5]])}), None, None, np.int32)
def test_numbers(sides: Any, ignore: int | None, background: int | None, dtype: Any) -> None:
    found, truth = ({name: one.astype(dtype) for name, one in side.items()} for side in sides)
    card = ee.score(found, truth, ignore_index=ignore, background=background, metrics=EVERY)
    each = expected(found, truth, ignore, background)
    whole = sum(each.values(), Counter[Any]())
    for label in labels_in(whole):
        for metric, value in of_label(whole, label).items():
            if metric not in ("truth", "found", "right"):
                ours = card.value(metric, label_value=label)
                assert ours == approx(value), (metric, label)
    assert sorted(card.metrics["label_value"].drop_nulls().unique()) == labels_in(whole)
    reasons = card.metrics.filter(pl.col("value").is_null())["reason"]
    assert not reasons.null_count()
    if not labels_in(whole):
        assert card.metrics["metric"].unique().len() == len(KEYED)
    totals = of_key(whole)
    assert card.value("IOU", average="micro") == approx(totals.pop("IOU"))
    assert card.value("Dice", average="macro") == approx(totals.pop("Dice"))
    for metric, value in totals.items():
        assert card.value(metric) == approx(value), metric
    single = {name: of_key(counts) for name, counts in each.items()}
    for metric in ("mIOU", "Dice", "PixelAccuracy"):
        rows = card.per_datum.filter(metric=metric)
        ours = dict(rows.select("datum_id", "value").iter_rows())
        assert ours == {name: approx(one[metric]) for name, one in single.items()}, metric
        assert card.value(f"{metric}PerImage") == approx(mean(o[metric] for o in single.values()))
    cells = {
        (actual, predicted): count
        for actual, predicted, count in card.confusion.select(
            "actual", "predicted", "count"
        ).iter_rows()
    }
    assert cells == {pair: n for pair, n in whole.items() if n and pair != (None, None)}


@settings(max_examples=12)
@given(pairs_of_maps())
def test_counts_add_up(sides: Any) -> None:
    card = ee.score(*sides, metrics=["Counts", "Recall", "ConfusionMatrix"])
    counts = card.metrics.filter(metric="Counts").pivot(
        "statistic", index="label_value", values="value", aggregate_function="first"
    )
    support = card.metrics.filter(pl.col("label_value").is_not_null(), metric="Recall")
    joined = counts.join(support.select("label_value", "support"), on="label_value")
    assert joined.select((pl.col("tp") + pl.col("fn") == pl.col("support")).all()).item()
    pixels = sum(one.size for one in {**sides[0], **sides[1]}.values())
    assert card.confusion["count"].sum() == pixels
