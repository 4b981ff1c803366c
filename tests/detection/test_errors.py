"""TIDE against tidecv, and against scoring tables in which the errors are corrected."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from reference_data import known_answers

import evalengine as ee

CORNERS = ["xmin", "ymin", "xmax", "ymax"]
KINDS = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")


def tables(seed: int, n: int = 12) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make predictions near and next to ground truths, mislabelled and twice; scores tie."""
    r = np.random.default_rng(seed)
    truth, predictions = [], []
    for datum in range(n):
        for _ in range(r.integers(0, 7)):
            x, y = r.integers(0, 80, 2)
            w, h = r.integers(6, 30, 2)
            truth.append((datum, str(r.choice(["a", "b", "c"])), x, y, x + w, y + h))
        own = [one for one in truth if one[0] == datum]
        for _ in range(r.integers(0, 12)):
            if own and r.random() < 0.8:
                _, label, *box = own[r.integers(len(own))]
                box = np.array(box) + r.integers(-4, 5, 4) * r.choice([0, 1, 2])
                label = label if r.random() < 0.7 else "b"
            else:
                x, y = r.integers(0, 80, 2)
                box, label = np.array([x, y, x + 9, y + 9]), "a"
            low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:]) + 1
            predictions.append((datum, label, *low, *high, round(r.random(), 1 + seed % 2)))
    names = ["datum_id", "label_value", *CORNERS]
    return (
        pl.DataFrame(predictions, schema=[*names, "score"], orient="row"),
        pl.DataFrame(truth, schema=names, orient="row").with_row_index("annotation_id"),
    )


def numbers(card, metric):
    rows = card.metrics.filter(metric=metric)
    return {(row["statistic"], row["label_value"]): row["value"] for row in rows.to_dicts()}


def as_tidecv(case, ious=None):
    annotations = [{**one, "area": one["bbox"][2] * one["bbox"][3]} for one in case["gts"]]
    truth = {
        "images": [{"id": i, "width": 100, "height": 100} for i in case["images"]],
        "categories": [{"id": k + 1, "name": str(k)} for k in range(case["classes"])],
        "annotations": annotations,
    }
    options = {"iou_thresholds": ious or [case["positive"]], "background_iou": case["background"]}
    return ee.score(case["dts"], truth, task="detection", dialect="tidecv", **options)


def test_as_tidecv():
    """tidecv 1.0.1 on random files with crowds, ties, caps, and labels without ground truth."""
    for case in known_answers("analysis", "tidecv")[::2]:
        if not case["dts"]:
            continue
        card = as_tidecv(case)
        costs, counts = numbers(card, "TIDE"), numbers(card, "TIDECounts")
        costs["AP", None] = numbers(card, "TIDEAP")[None, None]
        for name, value in case["costs"].items():
            assert costs[name, None] == pytest.approx(value, rel=1e-12, abs=1e-11), case["seed"]
        assert {name: counts[name, None] for name in case["counts"]} == case["counts"]


def test_thresholds_of_tidecv_are_independent():
    """Each threshold has a separate order of predictions with equal scores."""
    keys = ["metric", "statistic", "label_value", "iou_threshold"]
    for case in known_answers("analysis", "tidecv")[::12]:
        if case["dts"]:
            both = as_tidecv(case, [0.5, 0.75]).metrics.sort(keys)
            single = [as_tidecv(case, [iou]).metrics for iou in (0.5, 0.75)]
            assert both.equals(pl.concat(single).sort(keys)), case["seed"]


def test_more_average_precision_is_better_and_more_errors_are_worse():
    predictions, truth = tables(3, 40)
    some = predictions.filter(pl.col("score") > 0.6)
    options = {"metrics": ["TIDEAP", "TIDE", "TIDECounts"], "iou_thresholds": [0.5]}
    compared = ee.compare(
        some, predictions, ground_truths=truth, task="detection", draws=100, **options
    )
    assert compared.directions == {"TIDEAP": "higher", "TIDE": "lower", "TIDECounts": "lower"}


def corrected(predictions, truth, errors, kind):
    """Correct one kind of error in the tables."""
    predictions = predictions.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    if kind in ("Miss", "FalseNeg"):
        removed = errors.filter(error="Miss")["annotation_id"]
        return predictions, truth.filter(~pl.col("annotation_id").is_in(removed.implode()))
    own = (
        errors.filter(error=kind)
        if kind != "FalsePos"
        else errors.filter(pl.col("error") != "Miss")
    )
    hits = own.filter(pl.col("mended") & pl.lit(kind in ("Loc", "Cls")))
    removed = own.filter(~pl.col("prediction_row").is_in(hits["prediction_row"].implode()))
    predictions = predictions.filter(~pl.col("row").is_in(removed["prediction_row"].implode()))
    target = hits.select(pl.col("prediction_row").alias("row"), "annotation_id").join(
        truth.select("annotation_id", "label_value", *CORNERS), on="annotation_id"
    )
    predictions = predictions.join(
        target, on="row", how="left", suffix="_true", maintain_order="left"
    )
    moved = ["label_value"] if kind == "Cls" else [*CORNERS, "label_value"]
    return predictions.with_columns(
        pl.coalesce(f"{name}_true", name).alias(name) for name in [*moved]
    ), truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dialect", ["standard", "coco"])
def test_costs_are_those_of_corrected_tables(seed, dialect):
    predictions, truth = tables(seed)
    iou = [0.5, 0.75][seed % 2]
    options = {"task": "detection", "dialect": dialect, "iou_thresholds": [iou]}
    card = ee.score(
        predictions,
        truth,
        metrics=["TIDEAP", "TIDE", "TIDECounts", "Errors", "mAP", "AP"],
        **options,
    )
    costs, counts = numbers(card, "TIDE"), numbers(card, "TIDECounts")
    base = card.value("mAP", iou_threshold=iou)
    assert numbers(card, "TIDEAP")[None, None] == base  # the AP of the same run, to the bit
    for label in truth["label_value"].unique():
        assert numbers(card, "TIDEAP")[None, label] == _ap(card, label, iou)
    errors = card.errors
    for kind in KINDS:
        assert counts[kind, None] == errors.filter(error=kind).height
    labels = truth["label_value"].unique().to_list()
    for kind in (*KINDS, "FalsePos"):
        changed, truths = corrected(predictions, truth, errors, kind)
        again = ee.score(changed, truths, metrics=["AP"], **options)
        after = [0.0 if (value := _ap(again, label, iou)) is None else value for label in labels]
        before = [_ap(card, label, iou) for label in labels]
        gain = np.mean(after) - np.mean(before)
        gain = max(gain, 0) if kind != "FalsePos" else gain
        assert costs[kind, None] == pytest.approx(gain, abs=1e-9), kind


def _ap(card, label, iou):
    rows = card.metrics.filter(metric="AP", label_value=label).filter(
        (pl.col("iou_threshold") - iou).abs() < 1e-9
    )
    return rows["value"][0] if rows.height else None


def test_thresholds_are_independent():
    """An object that is missed at one threshold may be found at another."""
    keys = ["metric", "statistic", "label_value", "iou_threshold"]
    for seed in range(3):
        predictions, truth = tables(seed)
        options = {"task": "detection", "metrics": ["TIDEAP", "TIDE", "TIDECounts"]}
        both = ee.score(predictions, truth, iou_thresholds=[0.3, 0.5, 0.8], **options).metrics.sort(
            keys
        )
        single = [
            ee.score(predictions, truth, iou_thresholds=[i], **options) for i in (0.3, 0.5, 0.8)
        ]
        assert both.equals(pl.concat([card.metrics for card in single]).sort(keys))


@pytest.mark.parametrize("dialect", ["standard", "tidecv"])
def test_slices_and_parts_agree(dialect, tmp_path):
    predictions, truth = tables(3, 40)
    predictions, truth = (
        one.with_columns(place=(pl.col("datum_id") % 3).cast(pl.String))
        for one in (predictions, truth)
    )
    metrics = ["TIDEAP", "TIDE", "TIDECounts", "Errors"]
    options = {"task": "detection", "dialect": dialect, "metrics": metrics}
    options["iou_thresholds"] = [0.5, 0.75]
    whole = ee.score(predictions, truth, by="place", **options)
    for place in "012":
        part = [one.filter(place=place) for one in (predictions, truth)]
        single = ee.score(*part, **options).metrics.drop("slice", "slice_value")
        own = whole.metrics.filter(slice_value=place).drop("slice", "slice_value")
        keys = ["metric", "statistic", "label_value", "iou_threshold"]
        assert own.sort(keys).equals(single.sort(keys))
    for name, side in (("p", predictions), ("g", truth)):
        side.write_parquet(tmp_path / f"{name}.parquet")
    paths = [tmp_path / "p.parquet", tmp_path / "g.parquet"]
    from evalengine.schemas.tuning import tuned

    with tuned(shuffle_rows=50):
        bounded = ee.score(*paths, by="place", memory_limit="600MB", **options)
    assert bounded.metrics.equals(whole.metrics)
    assert bounded.errors.equals(whole.errors)
    whole.save(tmp_path / "run")
    assert ee.load(tmp_path / "run").errors.equals(whole.errors)


def test_intervals_and_the_edges():
    predictions, truth = tables(5, 40)
    card = ee.score(predictions, truth, metrics=["TIDE", "TIDECounts"], intervals=0.9, draws=40)
    rows = card.metrics.filter(pl.col("label_value").is_null())
    assert rows["se"].null_count() == 0
    assert (rows["se"] > 0).sum() > 10
    empty = ee.score(predictions.clear(), truth, task="detection", metrics=["TIDE", "TIDECounts"])
    counts = numbers(empty, "TIDECounts")
    assert counts["Miss", None] == truth.height
    assert counts["FalsePos", None] == 0
    every = ["TIDEAP", "TIDE", "TIDECounts"]
    single = ee.score(predictions, truth.clear(), task="detection", metrics=every)
    assert numbers(single, "TIDECounts")["Bkg", None] == predictions.height
    assert numbers(single, "TIDEAP")[None, None] is None
    with pytest.raises(ee.OptionError, match="background_iou"):
        ee.score(predictions, truth, metrics=["TIDE"], background_iou=0)
    with pytest.raises(ee.OptionError, match=r"background_iou=0\.3"):
        ee.score(
            predictions, truth, metrics=["TIDE"], background_iou=0.3, iou_thresholds=[0.2, 0.5]
        )
    at = ee.score(
        predictions, truth, metrics=["TIDECounts"], background_iou=0.3, iou_thresholds=[0.3]
    )
    assert numbers(at, "TIDECounts")["Loc", None] == 0  # no IoU between the two thresholds


def test_a_duplicate_a_class_and_the_edges_of_location():
    """Equal IoUs, an IoU equal to a threshold, two errors of one ground truth."""
    truth = pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "b"], "xmin": [0, 100],
                          "ymin": [0, 0], "xmax": [10, 110], "ymax": [10, 10]})  # fmt: skip
    rows = [
        ("a", 0, 0, 10, 10, 0.9, None),  # a hit
        ("a", 0, 0, 10, 9, 0.8, "Dupe"),
        ("b", 0, 0, 10, 10, 0.7, "Cls"),
        ("b", 100, 0, 105, 10, 0.6, None),  # IoU 0.5 hits
        ("b", 100, 0, 104, 10, 0.5, "Loc"),
        ("a", 0, 0, 10, 1, 0.4, "Loc"),  # IoU 0.1 exactly
        ("a", 50, 50, 60, 60, 0.3, "Bkg"),
        ("a", 100, 0, 104, 10, 0.2, "Both"),
    ]
    predictions = pl.DataFrame(
        [(1, *row[:6]) for row in rows],
        schema=["datum_id", "label_value", *CORNERS, "score"],
        orient="row",
    )
    card = ee.score(predictions, truth, metrics=["Errors"], iou_thresholds=[0.5])
    kinds = dict(card.errors.select("prediction_row", "error").iter_rows())
    assert kinds == {i: row[6] for i, row in enumerate(rows) if row[6]}


@pytest.mark.parametrize("labels", [["b", "a"], ["a", "b"]])
def test_equal_overlaps_are_of_the_first_row(labels):
    boxes = {name: [0, 0] for name in CORNERS[:2]} | {name: [10, 10] for name in CORNERS[2:]}
    truth = pl.DataFrame({"datum_id": [1, 1], "label_value": labels, **boxes})
    predictions = truth.head(1).with_columns(label_value=pl.lit("c"), score=pl.lit(0.5))
    errors = ee.score(predictions, truth, metrics=["Errors"], iou_thresholds=[0.5]).errors
    assert errors.filter(error="Cls")["annotation_label"].to_list() == labels[:1]
