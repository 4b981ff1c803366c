"""Limits: every order of equal scores, scored one after the other, lies between them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import evalengine as ee
from evalengine.cli import cli

BOXES = ("examples/detection/predictions.parquet", "examples/detection/groundtruths.parquet")


def run_of(seed):
    r = np.random.default_rng(seed)
    rows = [(f"q{q}", f"d{d}", float(r.integers(0, 3))) for q in range(2) for d in range(5)]
    judged = [(q, d, int(r.integers(0, 3))) for q, d, _ in rows if r.random() < 0.6]
    judged += [("q0", "lost", 1), ("q1", "d9", 2)]
    return (
        pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row"),
        pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row"),
    )


METRICS = ["nDCG@3", "MAP", "MRR", "P@3", "Recall@3", "Success@1", "RPrecision"]


@pytest.mark.parametrize("seed", range(3))
def test_orders_of_equal_scores_in_retrieval(seed):
    """All orders of a list, a query each: the ends are reached, and nothing is beyond."""
    run, qrels = run_of(seed)
    one, judged = run.filter(query_id="q0"), qrels.filter(query_id="q0")
    tied = one.with_columns(score=pl.lit(1.0))
    found = ee.find_limits(tied, judged, metrics=METRICS).filter(limit="ties")
    assert found["exact"].all()
    orders = pl.DataFrame({"order": list(permutations(range(5)))}).with_row_index("query_id")
    moved = orders.with_columns(doc_id=pl.lit(one["doc_id"].to_list())).explode("order", "doc_id")
    every = ee.score(
        moved.select("query_id", "doc_id", score=-pl.col("order").cast(pl.Float64)),
        orders.select("query_id").join(judged.drop("query_id"), how="cross"),
        metrics=METRICS,
    )
    for row in found.to_dicts():
        values = every.per_datum.filter(metric=row["metric"])["value"]
        assert len(values) == 120
        assert (row["lowest"], row["highest"]) == pytest.approx((values.min(), values.max()))


def test_unjudged_documents():
    run, qrels = run_of(5)
    found = ee.find_limits(run, qrels, metrics=["P@3", "bpref"]).filter(limit="unjudged")
    filled = run.join(qrels, on=["query_id", "doc_id"], how="left").select(
        "query_id", "doc_id", pl.col("relevance").fill_null(1)
    )
    lost = qrels.join(run, on=["query_id", "doc_id"], how="anti")
    known = ee.score(run, pl.concat([filled, lost], how="vertical_relaxed"), metrics=["P@3"])
    row = found.filter(metric="P").row(0, named=True)
    assert row["highest"] == known.value("P", k=3)
    assert row["lowest"] == row["value"]
    assert found["exact"].to_list() == [metric == "P" for metric in found["metric"]]


def boxes(scores, hits):
    """One label; predictions of datums of their own, that hit their one ground truth or nothing."""
    n = len(scores)
    base = {"datum_id": list(range(n)), "label_value": ["a"] * n}
    box = {"ymin": [0.0] * n, "xmax": [10.0] * n, "ymax": [10.0] * n}
    truth = pl.DataFrame({**base, "xmin": [0.0] * n, **box})
    there = [0.0 if hit else 100.0 for hit in hits]
    found = {**base, **box, "xmin": there, "xmax": [x + 10 for x in there], "score": scores}
    return pl.DataFrame(found), truth


def test_orders_of_equal_scores_in_detection():
    r = np.random.default_rng(1)
    scores, hits = [0.9, 0.5, 0.5, 0.5, 0.5, 0.1], r.random(6) < 0.5
    found = ee.find_limits(*boxes(scores, hits), metrics=["AP"], iou_thresholds=[0.5])
    row = found.filter(limit="ties").row(0, named=True)
    values = []
    for order in permutations(range(4)):
        moved = [0.9, *(0.5 - 0.01 * place for place in order), 0.1]
        card = ee.score(*boxes(moved, hits), metrics=["AP"], iou_thresholds=[0.5])
        values.append(card.value("AP"))
    assert row["exact"]
    assert (row["lowest"], row["highest"]) == pytest.approx((min(values), max(values)))
    assert row["lowest"] < row["highest"] or len(set(hits[1:5])) == 1


def test_equal_scores_within_a_datum_are_no_bound():
    found, truth = boxes([0.5, 0.5], [True, False])
    same = found.with_columns(datum_id=pl.lit(0))
    limits = ee.find_limits(same, truth, metrics=["AP"], iou_thresholds=[0.5])
    assert not limits["exact"].any()


def test_cap():
    asked = {"dialect": "coco", "max_detections": [1, 2]}
    found = ee.find_limits(*BOXES, **asked).filter(limit="cap")
    free = ee.score(*BOXES, dialect="coco", max_detections=[1000])
    row = found.filter(metric="mAPAveragedOverIOUs", area="all").row(0, named=True)
    assert row["value"] == ee.score(*BOXES, **asked).value("mAPAveragedOverIOUs")
    assert row["highest"] == free.value("mAPAveragedOverIOUs")
    assert row["highest"] > row["value"]
    assert "cap" not in ee.find_limits(*BOXES)["limit"]


def test_where_nothing_is_left_open():
    with pytest.raises(ee.ResultError, match="limits are told in detection and retrieval"):
        ee.find_limits("examples/text/answers.parquet")
    assert ee.find_limits(*boxes([0.3, 0.2], [True, True])).is_empty()


def test_command():
    asked = ["--dialect", "coco", "--max-detections", "1,2", "--format", "csv"]
    done = CliRunner().invoke(cli, ["limits", *BOXES, *asked])
    assert done.exit_code == 0, done.output
    assert {line.split(",")[-4] for line in done.output.splitlines()[1:]} >= {"cap"}
