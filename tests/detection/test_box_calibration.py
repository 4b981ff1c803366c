"""Calibration by position and size, against netcal's vectors and bins filled row by row."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from reference_data import known_answers
from refusals import refused

import evalengine as ee

CORNERS = ("xmin", "ymin", "xmax", "ymax")
BY = ("position", "size", "position and size")


def tables(score: Any, right: Any, box: Any, size: tuple[int, int]) -> dict[str, pl.DataFrame]:
    """Make one image per box; it has a ground truth if the box is right."""
    n = len(score)
    predictions = pl.DataFrame(
        {"datum_id": np.arange(n), "label_value": ["a"] * n, "score": np.asarray(score, float),
         **dict(zip(CORNERS, np.asarray(box, float).T, strict=True))}
    )  # fmt: skip
    truth = predictions.filter(pl.Series(np.asarray(right, bool))).drop("score")
    images = pl.DataFrame({"datum_id": np.arange(n)}).with_columns(height=size[0], width=size[1])
    return {"predictions": predictions, "ground_truths": truth, "datums": images}


def scored(of: dict[str, pl.DataFrame], **options: Any) -> ee.Scorecard:
    return ee.score(**of, task="detection", **{"metrics": ["BoxECE"], **options})


@pytest.mark.parametrize("number", range(12))
def test_numbers_of_netcal(number: int) -> None:
    """netcal skips small bins, but still weights by all boxes."""
    case = known_answers("analysis", "netcal")["cases"][number]
    of = tables(case["score"], case["right"], case["box"], case["size"])
    options = {
        "n_bins": case["n_bins"],
        "box_bins": case["box_bins"],
        "least_in_bin": case["least"],
    }
    card = scored(of, metrics=["BoxECE", "ECE"], **options)
    assert card.value("ECE", average="micro") == pytest.approx(case["ece"]["plain"][0], abs=1e-12)
    rows = card.metrics.filter(metric="BoxECE", average="micro")
    for by in BY:
        theirs, kept_bins = case["ece"][by]
        row = rows.row(by_predicate=pl.col("statistic") == by, named=True)
        assert row["support"] == kept_bins
        if not kept_bins:
            assert row["value"] is None
            assert row["reason"].startswith("no bin with")
            continue
        assert row["value"] * kept_bins / len(case["score"]) == pytest.approx(theirs, abs=1e-12)


def test_bins_add_up_to_the_error() -> None:
    """Bins are those of each box; the errors of bins add up to the total error."""
    rng = np.random.default_rng(2)
    n, k = 200, 3
    centre, half = rng.uniform(0, [90, 60], (n, 2)), rng.uniform(2, [45, 30], (n, 2))
    right, score = rng.random(n) < 0.6, rng.integers(0, 21, n) / 20
    of = tables(score, right, np.c_[centre - half, centre + half], (60, 90))
    card = scored(of, metrics=["BoxECE", "BoxReliability"], box_bins=k, n_bins=2, least_in_bin=4)
    shares = {"position": centre / [90, 60], "size": 2 * half / [90, 60]}
    frame = card.metrics.filter(metric="BoxReliability", average="micro")
    for by, names in (("position", ("cx", "cy")), ("size", ("width", "height"))):
        inside = defaultdict(list)
        for i, place in enumerate(np.minimum((shares[by] * k).astype(int), k - 1)):
            inside[tuple(place)].append(i)
        errors, kept_bins = [], []
        for (x, y), rows in inside.items():
            key = f'{{"{names[0]}": {x / k}, "{names[1]}": {y / k}}}'
            own = dict(frame.filter(parameters=key).select("statistic", "value").iter_rows())
            assert own["share"] == pytest.approx(len(rows) / n)
            assert own["confidence"] == pytest.approx(score[rows].mean())
            assert own["precision"] == pytest.approx(right[rows].mean())
            parts = [[i for i in rows if (score[i] >= 0.5) == high] for high in (False, True)]
            counted = [part for part in parts if len(part) >= 4]
            m = sum(map(len, counted))
            kept_bins.append(m)
            if not m:
                assert own["ece"] is None
                continue
            gaps = [abs(right[part].mean() - score[part].mean()) * len(part) for part in counted]
            errors.append(sum(gaps))
            assert own["ece"] == pytest.approx(sum(gaps) / m)
        assert frame.filter(pl.col("parameters").str.contains(names[0])).height == 4 * len(inside)
        whole = card.value("BoxECE", average="micro", statistic=by)
        assert whole == pytest.approx(sum(errors) / sum(kept_bins))


def test_slices_are_those_of_their_datums() -> None:
    """Several labels and slices; datums without a slice, one of them with a score above 1."""
    rng = np.random.default_rng(4)
    n = 120
    centre, half = rng.uniform(0, 60, (n, 2)), rng.uniform(2, 30, (n, 2))
    right, score = rng.random(n) < 0.6, rng.integers(0, 21, n) / 20
    score[0] = 1.5
    of = tables(score, right, np.c_[centre - half, centre + half], (60, 60))
    labels = pl.DataFrame({"datum_id": np.arange(n), "label_value": rng.choice([*"abc"], n)})
    for side in ("predictions", "ground_truths"):
        of[side] = of[side].drop("label_value").join(labels, "datum_id", maintain_order="left")
    slices = pl.Series("by", [None, *rng.choice(["x", "y", None], n - 1)], dtype=pl.String)
    of["datums"] = of["datums"].with_columns(slices)
    options: dict[str, Any] = {"metrics": ["BoxECE", "BoxReliability"], "least_in_bin": 2}
    card = scored(of, by="by", **options)
    for name in "xy":
        some = of["datums"].filter(pl.col("by") == name)
        one = {side: frame.filter(pl.col("datum_id").is_in(some["datum_id"].implode()))
               for side, frame in of.items()}  # fmt: skip
        one["datums"] = some.drop("by")
        names = [*set(card.metrics.columns) - {"slice", "slice_key", "slice_value"}]
        mine = card.metrics.filter(slice_value=name).select(names)
        assert mine.filter(pl.col("value").is_not_null()).height > 20
        theirs = scored(one, **options).metrics.select(names)
        assert_frame_equal(mine, theirs, check_row_order=False, rel_tol=1e-12)


def test_undefined_values_have_a_reason() -> None:
    box = [[0, 0, 5, 5], [1, 1, 6, 6]]
    of = tables([0.2, 1.5], [True, True], box, (10, 10))
    card = scored(of, least_in_bin=1)
    rows = card.metrics.filter(statistic="size")
    assert rows["value"].null_count() == rows.height
    assert rows["reason"].unique().to_list() == ["scores are outside [0, 1]"]
    unsized = {**of, "datums": of["datums"].drop("height")}
    with refused("metric_unfit", match="no size"):
        scored(unsized)
    result = scored(unsized, metrics=["BoxECE", "mAP"])
    assert any("BoxECE skipped" in note for note in result.notes)
    some = of["datums"].with_columns(height=pl.Series([10, None]))
    with refused("image_size_missing", count=1):
        scored({**of, "datums": some})
    for name, value in (("box_bins", 0), ("box_bins", 101), ("least_in_bin", 0)):
        with pytest.raises(ee.OptionError, match=name):
            scored(of, **{name: value})


def test_intervals_contain_the_number() -> None:
    rng = np.random.default_rng(3)
    n = 300
    score = rng.random(n)
    low = rng.uniform(0, 50, (n, 2))
    of = tables(score, rng.random(n) < score**2, np.c_[low, low + 20], (100, 100))
    card = scored(of, box_bins=2, intervals=0.95, draws=40)
    rows = card.metrics.filter(average="micro")
    assert rows.height == 3
    assert (rows["lower"] < rows["value"]).all()
    assert (rows["value"] < rows["upper"]).all()
