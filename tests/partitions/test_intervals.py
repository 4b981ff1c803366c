"""Intervals of runs in buckets, bit for bit equal to a run in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import WIDE, in_buckets, same_as_in_memory, write_sides
from polars.testing import assert_frame_equal
from random_tables import CLUSTER, clustered, of_each_kind, random_case
from sizes import tune

import evalengine as ee

BY_PARTS = ("detection", "retrieval", "text", "segmentation", "panoptic", "tracking", "regression")
"""Cases whose resamples are summed by bucket; lists and verdicts are tallied like retrieval."""


def with_intervals(name: str, seed: int, **options: Any) -> Case:
    case = of_each_kind(name, random_case(name, seed))
    return replace(case, options={**case.options, "intervals": 0.9, "draws": 20, **options})


@pytest.mark.parametrize(
    ("name", "method"),
    [*product(BY_PARTS, ["bca"]), ("retrieval", "percentile"), ("retrieval", "wilson")],
)
def test_intervals_of_buckets(
    name: str, method: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    case = with_intervals(name, 21, method=method)
    card = same_as_in_memory(case, CASES[name][0], tmp_path, files=2)
    if method != "wilson":
        assert card.metrics["lower"].is_not_null().any()


@pytest.mark.parametrize(
    ("name", "weighted"), [("classification", True), ("binary", True), ("binary", False)]
)
def test_intervals_of_classification(
    name: str, weighted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Areas under curves have the intervals of a run in memory, also with sample weights.

    Areas of pairs of labels, and weighted partial areas, have no intervals.
    """
    in_buckets(monkeypatch)
    case = with_intervals(name, 21, method="percentile")
    if weighted:
        *others, truths = case.sides
        rng = np.random.default_rng(21)
        often = np.round(rng.random(len(case.ids)) * 3) * rng.random(len(case.ids))
        of = dict(zip(case.ids, often.tolist(), strict=True))
        weight = pl.col("datum_id").replace_strict(of, return_dtype=pl.Float64)
        case = replace(case, sides=(*others, truths.with_columns(weight=weight)))
    sides = write_sides(case, tmp_path)
    given: dict[str, Any] = {"task": "classification", **case.options, **case.tables}
    whole = ee.score(*sides, **given).metrics
    limit: dict[str, Any] = {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}
    bounded = ee.score(*sides, **given, **limit).metrics
    pairs = bounded["metric"].is_in(["mROCAUCOneVsOne", *["PartialROCAUC"] * weighted])
    assert_frame_equal(bounded.filter(~pairs), whole.filter(~pairs), check_exact=True)
    areas = bounded.filter(pl.col("metric").str.contains("ROCAUC") & ~pairs)
    assert areas["lower"].is_not_null().any()


@pytest.mark.parametrize("name", ["detection", "lists"])
def test_clusters_across_buckets(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster has datums in several buckets; some buckets have none of it."""
    in_buckets(monkeypatch, WIDE)
    case = clustered(
        with_intervals(name, 22, cluster=CLUSTER), lambda one: str(ord(str(one)[-1]) % 3)
    )
    card = same_as_in_memory(case, CASES[name][0], tmp_path)
    plain = same_as_in_memory(with_intervals(name, 22), CASES[name][0], tmp_path)
    assert card.metrics["se"].to_list() != plain.metrics["se"].to_list()


@pytest.mark.parametrize("name", ["detection", "panoptic"])
def test_sizes_of_chunks_change_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes of chunks and the number of threads do not change intervals."""
    in_buckets(monkeypatch, WIDE)
    case = with_intervals(name, 23)
    few = {"metrics": case.options["metrics"][:3], "by": []}
    case = replace(case, options={**case.options, **few})
    task = CASES[name][0]
    usual = same_as_in_memory(case, task, tmp_path).metrics
    given: dict[str, Any] = {**case.options, **case.tables, "memory_limit": "1GB", "threads": 2}
    sides = write_sides(case, tmp_path)
    for sizes in ({"draws_at_once": 12}, {"drawn_weights": 90}, {"drawn_bytes": 0}):
        tune(**sizes)
        other = ee.score(*sides, task=task, **given, scratch=str(tmp_path / "s"))
        assert other.run["buckets"] > 1
        assert_frame_equal(other.metrics, usual, check_exact=True)


def test_intervals_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, WIDE)
    case = with_intervals("panoptic", 24)
    same_as_in_memory(case, "panoptic", tmp_path, executor="processes", threads=2)


@pytest.mark.parametrize("method", ["bca", "jackknife"])
def test_jackknife_of_groups_of_datums(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many datums, the jackknife omits groups of datums instead of single ones."""
    in_buckets(monkeypatch)
    ids, judged = pl.int_range(700, eager=True), pl.Series(np.arange(700) * 7 % 5 % 2)
    run = pl.DataFrame({"query_id": ids, "doc_id": 0, "score": 1.0})
    sides = run, run.select("query_id", "doc_id", relevance=judged)
    options = {"metrics": ["P@1"], "intervals": 95, "draws": 20, "method": method}
    card = same_as_in_memory(Case(sides, options, "query_id"), "retrieval", tmp_path)
    value, se = card.metrics.select("value", "se").row(0)
    assert se == pytest.approx((value * (1 - value) / 700) ** 0.5, rel=0.5)


ADDED_UP = [
    "Accuracy", "Precision", "Recall", "F1", "MCC", "Counts", "LogLoss", "Brier", "ECE", "MCE",
]  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by", [None, "place"])
def test_classes_in_buckets(
    weighted: bool, by: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, sums and areas of a table with ids."""
    in_buckets(monkeypatch)
    rng = np.random.default_rng(9)
    n = 300
    table = pl.DataFrame(
        {
            "datum_id": rng.permutation(n),
            "score": rng.random(n).round(2),
            "actual": rng.random(n) < 0.4,
            "place": np.array(["x", "y"])[rng.integers(0, 2, n)],
        }
    )
    if weighted:
        table = table.with_columns(weight=pl.Series(rng.exponential(size=n)))
    options: dict[str, Any] = {"intervals": 0.9, "draws": 20, "by": by}
    areas = ["ROCAUC", "mROCAUC", "AP", "mAP"]
    case = Case((table,), {**options, "metrics": [*ADDED_UP, *areas]}, "datum_id")
    card = same_as_in_memory(case, "classification", tmp_path)
    assert card.metrics.filter(pl.col("value").is_not_null())["lower"].null_count() == 0


def _unnamed_rows() -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    """Return task -> a single table without datum ids, and options."""
    rng = np.random.default_rng(11)
    n = 90
    words = rng.choice(["a b c", "a b", "b c d"], (2, n))
    calls = [
        [{"name": name, "arguments": {"q": 1}}] for name in rng.choice(["f", "g"], (2, n)).ravel()
    ]
    pairs = rng.choice(["x", "y"], (2, n))
    return {
        "regression": (
            pl.DataFrame({"target": rng.normal(size=n), "prediction": rng.normal(size=n)}),
            {"metrics": ["MAE", "R2"]},
        ),
        "classification": (
            pl.DataFrame({"actual": pairs[0], "predicted": pairs[1]}),
            {"metrics": ["MCC"]},
        ),
        "text": (
            pl.DataFrame({"prediction": words[0], "reference": words[1]}),
            {"metrics": ["ROUGE1"]},
        ),
        "agents": (
            pl.DataFrame({"predicted": calls[:n], "expected": calls[n:]}),
            {"metrics": ["TrajectoryF1"]},
        ),
        "values": (pl.DataFrame({"latency": rng.normal(size=n)}), {"value_columns": ["latency"]}),
    }


@pytest.mark.parametrize("task", list(_unnamed_rows()))
def test_rows_without_ids_are_resampled_by_their_number_in_the_input(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row numbers within buckets would merge rows of several buckets into one datum."""
    rows, options = _unnamed_rows()[task]
    file = tmp_path / "t.parquet"
    rows.write_parquet(file, row_group_size=20)
    options = {**options, "task": task, "intervals": 0.9, "draws": 60}
    whole = ee.score(file, **options)
    in_buckets(monkeypatch)
    card = ee.score(file, memory_limit="1GB", **options)
    assert card.run["buckets"] > 1
    assert whole.metrics["lower"].null_count() < whole.metrics.height
    assert_frame_equal(card.metrics, whole.metrics, rel_tol=1e-12)
    # Both runs number the rows: datum i is row i of the file.
    assert ee.compare(card, whole).n == rows.height
