"""Limits: the values under every order of equal scores are between them."""

from __future__ import annotations

import re
from itertools import permutations, product

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from partitions.cases import WIDE, in_buckets
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine.cli import cli
from evalengine.findings.bounds import FoundLimits

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
    """One query per order of a list: the limits are reached and never exceeded."""
    run, qrels = run_of(seed)
    one, judged = run.filter(query_id="q0"), qrels.filter(query_id="q0")
    tied = one.with_columns(score=pl.lit(1.0))
    result = ee.find_limits(tied, judged, metrics=METRICS).frame.filter(limit="ties")
    assert set(result["bound"]) == {"exact"}
    orders = pl.DataFrame({"order": list(permutations(range(5)))}).with_row_index("query_id")
    moved = orders.with_columns(doc_id=pl.lit(one["doc_id"].to_list())).explode("order", "doc_id")
    every = ee.score(
        moved.select("query_id", "doc_id", score=-pl.col("order").cast(pl.Float64)),
        orders.select("query_id").join(judged.drop("query_id"), how="cross"),
        metrics=METRICS,
    )
    for row in result.to_dicts():
        values = every.per_datum.filter(metric=row["metric"])["value"]
        assert len(values) == 120
        assert (row["lowest"], row["highest"]) == pytest.approx((values.min(), values.max()))


UNJUDGED = [
    "nDCG@1", "nDCG@3", "nDCG", "DCG@3", "MAP@2", "MAP", "P@2", "Recall@2", "F1@3", "MRR",
    "Success@2", "RPrecision", "RBP", "INSQ", "SDCG@3", "Utility", "SetPrecision",
]  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "grades", "options"),
    [
        (1, [0, 1], {}),
        (2, [0, 1, 3], {}),
        (3, [0, 1, 2], {"gains": "exponential", "relevance_levels": [1, 2]}),
        (4, [0, 2], {"ideal": "retrieved", "dialect": "trec_eval"}),
        (5, [0, 1, 2], {"gains": {1: 4.0, 2: 0.5}}),
    ],
)
def test_every_way_to_judge_the_unjudged(seed, grades, options):
    """One query per way to grade the unjudged documents: limits are reached and never exceeded."""
    r = np.random.default_rng(seed)
    run, judged, ways = [], [], []
    for q in (f"q{n}" for n in range(12)):
        docs = [(f"d{d}", float(r.integers(0, 4))) for d in range(r.integers(1, 5))]
        judgments = {d: int(r.choice(grades)) for d, _ in docs if r.random() < 0.4}
        judgments |= {f"lost{n}": int(r.choice(grades)) for n in range(r.integers(1, 4))}
        run += [(q, *doc) for doc in docs]
        judged += [(q, *one) for one in judgments.items()]
        free = [d for d, _ in docs if d not in judgments]
        for n, inputs in enumerate(product(grades, repeat=len(free))):
            assigned = judgments | dict(zip(free, inputs, strict=True))
            ways += [(q, f"{q}-{n}", d, assigned.get(d), dict(docs).get(d)) for d in assigned]
    table = pl.DataFrame(run, schema=["query_id", "doc_id", "score"], orient="row")
    qrels = pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row")
    names = table.select("query_id", which="query_id").unique()
    result = ee.find_limits(
        table, qrels, datums=names, by=["which"], metrics=UNJUDGED, **options
    ).frame
    result = result.filter(limit="unjudged", slice="which")
    every = pl.DataFrame(
        ways, schema=["which", "query_id", "doc_id", "relevance", "score"], orient="row"
    )
    rows = ee.score(every.drop("relevance").drop_nulls(), every.drop("score"), metrics=UNJUDGED,
                    datums=every.select("query_id", "which").unique(), **options)  # fmt: skip
    keys = ["which", "metric", "k", "parameters"]
    bounds = rows.per_datum.rename({"datum_id": "query_id"}).join(
        every.select("query_id", "which").unique(), on="query_id"
    )
    bounds = bounds.group_by(keys).agg(least=pl.col("value").min(), most=pl.col("value").max())
    both = result.rename({"slice_value": "which"}).join(bounds, on=keys, nulls_equal=True)
    assert both.height == result.height
    beyond = (pl.col("least") < pl.col("lowest") - 1e-9) | (
        pl.col("most") > pl.col("highest") + 1e-9
    )
    assert both.filter(beyond).is_empty()
    off = (pl.col("least") - pl.col("lowest")).abs() + (pl.col("most") - pl.col("highest")).abs()
    assert both.filter(pl.col("bound") == "exact", off > 1e-9).is_empty()
    assert "exact" in set(both["bound"])
    of_gain = set(both.filter(metric="nDCG")["bound"])
    usual = "exact" if len(grades) == 2 else "at most"
    assert of_gain == {"range" if "ideal" in options else "unknown" if seed == 5 else usual}


def test_bounds_of_graded_judgments():
    """An unjudged document may have the highest grade of the judged ones, not only relevance 1."""
    run = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["x", "y", "z"], "score": [3.0, 2.0, 1.0]})
    qrels = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["x", "w"], "relevance": [1, 3]})
    result = ee.find_limits(run, qrels, metrics=["DCG@3", "bpref"]).frame.filter(limit="unjudged")
    assert result["highest"].to_list() == pytest.approx([1 + 3 / np.log2(3) + 3 / 2, 1.0])
    assert result["bound"].to_list() == ["exact", "range"]
    assert ee.find_limits(run, qrels, metrics=["DCG@3"], judged_only=True).frame.is_empty()


def boxes(scores, hits):
    """One label; each prediction has a datum and either matches its only ground truth or misses."""
    n = len(scores)
    base = {"datum_id": list(range(n)), "label_value": ["a"] * n}
    box = {"ymin": [0.0] * n, "xmax": [10.0] * n, "ymax": [10.0] * n}
    truth = pl.DataFrame({**base, "xmin": [0.0] * n, **box})
    there = [0.0 if hit else 100.0 for hit in hits]
    predictions = {**base, **box, "xmin": there, "xmax": [x + 10 for x in there], "score": scores}
    return pl.DataFrame(predictions), truth


def test_orders_of_equal_scores_in_detection():
    r = np.random.default_rng(1)
    scores, hits = [0.9, 0.5, 0.5, 0.5, 0.5, 0.1], r.random(6) < 0.5
    result = ee.find_limits(*boxes(scores, hits), metrics=["AP"], iou_thresholds=[0.5]).frame
    row = result.filter(limit="ties").row(0, named=True)
    values = []
    for order in permutations(range(4)):
        moved = [0.9, *(0.5 - 0.01 * place for place in order), 0.1]
        card = ee.score(*boxes(moved, hits), metrics=["AP"], iou_thresholds=[0.5])
        values.append(card.value("AP"))
    assert row["bound"] == "exact"
    assert (row["lowest"], row["highest"]) == pytest.approx((min(values), max(values)))
    assert row["lowest"] < row["highest"]


def test_equal_scores_within_a_datum():
    """The order decides the matches: with [10, 110] first one object matches, with [0, 60] both."""

    def spans(bounds, **more):
        n = len(bounds)
        left, right = (list(map(float, one)) for one in zip(*bounds, strict=True))
        box = {"xmin": left, "ymin": [0.0] * n, "xmax": right, "ymax": [10.0] * n}
        return pl.DataFrame({"datum_id": [0] * n, "label_value": ["a"] * n, **box, **more})

    predictions = spans([(10, 110), (0, 60)], score=[0.5, 0.5])
    options = {"metrics": ["AP"], "iou_thresholds": [0.5]}
    tables = predictions, spans([(0, 100), (40, 140)])
    values = {
        ee.score(one, tables[1], **options).value("AP")
        for one in (predictions, predictions.reverse())
    }
    row = ee.find_limits(*tables, **options).frame.row(0, named=True)
    assert (row["lowest"], row["bound"]) == (min(row["value"], *values), "at least")
    assert row["highest"] == max(values) == 1.0 > row["value"]
    # The cap admits one of the two predictions; only one of them matches.
    predictions = spans([(200, 300), (0, 100)], score=[0.5, 0.5])
    options |= {"dialect": "coco", "max_detections": [1], "metrics": ["mAPAveragedOverIOUs"]}
    row = ee.find_limits(predictions, spans([(0, 100)]), **options).frame.filter(
        limit="ties", area="all"
    )
    assert row.select("lowest", "highest").row(0) == pytest.approx((0.0, 1.0))
    assert row["bound"].item() == "at least"


def test_cap():
    options = {"dialect": "coco", "max_detections": [1, 2]}
    result = ee.find_limits(*BOXES, **options).frame.filter(limit="cap")
    free = ee.score(*BOXES, dialect="coco", max_detections=[1000])
    row = result.filter(metric="mAPAveragedOverIOUs", area="all").row(0, named=True)
    assert row["value"] == ee.score(*BOXES, **options).value("mAPAveragedOverIOUs")
    assert row["highest"] == free.value("mAPAveragedOverIOUs")
    assert row["highest"] > row["value"]
    assert "cap" not in ee.find_limits(*BOXES).frame["limit"]


def test_numbers_without_choices_have_no_limits():
    with refused("task_unfit", ee.ResultError, task="text"):
        ee.find_limits("examples/text/answers.parquet")
    assert ee.find_limits(*boxes([0.3, 0.2], [True, True])).frame.is_empty()
    with refused("task_unfit", ee.ResultError, task="classification"):
        ee.find_limits(pl.DataFrame({"actual": [1, 0], "score": [0.5, 0.5]}))


def test_numbers_that_did_not_move_are_not_counted():
    """Equal bounds of kind ``at least`` mean that no tried choice moved the number."""
    result = ee.find_limits(*BOXES)
    rows = result.frame.to_dicts()
    wide = sum(row["lowest"] < row["highest"] - 1e-12 for row in rows)
    assert 0 < wide < len(rows)  # a single limit: one row per number
    assert {row["bound"] for row in rows} == {"at least"}
    heading = repr(result).splitlines()[0]
    assert re.findall(r"\d+", heading) == [str(wide), str(len(rows) - wide)]
    assert all(row["lowest"] < row["highest"] for row in result.displayed.to_dicts())
    some = result.frame.filter(pl.col("lowest") == pl.col("highest"))
    assert repr(FoundLimits(some)).startswith("no number")


LISTS = [f"examples/retrieval/{name}.parquet" for name in ("run", "qrels")]


@pytest.mark.parametrize(
    ("tables", "options", "number"),
    [
        (
            BOXES,
            {"dialect": "coco", "max_detections": [1, 2], "by": ["weather"],
             "metrics": ["mAP", "mAR"], "iou_thresholds": [0.5, 0.75],
             "datums": "examples/detection/datums.parquet"},
            "mAP[iou=0.5]",
        ),
        (LISTS, {"metrics": ["nDCG@5", "MAP", "bpref"], "by": ["kind"]}, "MAP"),
    ],
)  # fmt: skip
def test_in_bounded_memory_and_saved(tables, options, number, tmp_path, monkeypatch):
    """Limits are the same in buckets; a run that was scored with limits stores them."""
    whole = ee.find_limits(*tables, **options).frame
    assert whole.height
    in_buckets(monkeypatch, WIDE)
    options |= {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}
    card = ee.score(*tables, limits=True, **options)
    assert card.run["buckets"] > 1
    assert_frame_equal(card.limits, whole, check_exact=True)
    card.save(tmp_path / "run")
    assert ee.find_limits(tmp_path / "run").frame.equals(whole)
    assert "moves" in str(ee.explain(tmp_path / "run", number=number))


def test_refused(tmp_path):
    """Runs without limits and tasks without limits are refused."""
    card = ee.score(*BOXES)
    card.save(tmp_path / "run")
    for run in (card, tmp_path / "run"):
        with refused("not_kept", ee.ResultError):
            ee.find_limits(run)
    with refused("task_unfit", ee.ResultError, task="text"):
        ee.score("examples/text/answers.parquet", limits=True)


def test_command():
    options = ["limits", *BOXES, "--dialect", "coco", "--max-detections", "1,2"]
    done = CliRunner().invoke(cli, [*options, "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert {line.split(",")[-4] for line in done.output.splitlines()[1:]} == {"cap", "ties"}
    shown = CliRunner().invoke(cli, options).output
    assert "[0.5,0.55" not in shown
    assert "did not move" in shown
    assert "skipped" in shown
    shown = CliRunner().invoke(cli, ["limits", *LISTS, "--metric", "P@5,MAP,bpref"]).output
    widths = [float(line.split()[5]) - float(line.split()[4]) for line in shown.splitlines()[3:7]]
    assert widths == sorted(widths, reverse=True)
    assert "known of 'bpref'" in shown
