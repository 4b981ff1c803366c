"""Partial tallies by Spark, Ray Data and process pools; missing packages are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "detection"
FILES = [str(EXAMPLE / f"{name}.parquet") for name in ("predictions", "groundtruths")]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


def expected() -> pl.DataFrame:
    return ee.score(*FILES, metrics=["AP", "mAP"]).metrics


POOL = """
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
import polars as pl
import evalengine as ee

FILES = sys.argv[1:3]

def tally_of(plan, groups, group):
    inside = pl.col("datum_id").hash(7) % groups == group
    return plan.tally(*(pl.scan_parquet(file).filter(inside) for file in FILES)).to_bytes()

if __name__ == "__main__":
    plan = ee.plan(*FILES, metrics=["AP", "mAP"])
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        card = ee.merge(pool.map(partial(tally_of, plan, 5), range(5))).summarise()
    card.metrics.write_parquet(sys.argv[3])
"""


def test_processes(tmp_path: Path) -> None:
    """The code is in a script, because spawned processes import the main file."""
    script, out = tmp_path / "pool.py", tmp_path / "metrics.parquet"
    script.write_text(POOL)
    subprocess.run([sys.executable, script, *FILES, out], check=True, timeout=300)
    assert pl.read_parquet(out).equals(expected())


def test_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java for Spark")
    import pyarrow as pa

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    try:
        ours, theirs = (session.read.parquet(file) for file in FILES)
        plan = ee.plan(ours.limit(99).toPandas(), theirs.limit(9).toPandas(), metrics=["AP", "mAP"])

        def tally(ours: Any, theirs: Any) -> Any:
            sides = (side.drop(["group"]) for side in (ours, theirs))
            return pa.table({"tally": [plan.tally(*sides).to_bytes()]})

        key = sql.functions.xxhash64("datum_id")
        group = sql.functions.pmod(key, sql.functions.lit(7)).alias("group")
        grouped = [side.select("*", group).groupBy("group") for side in (ours, theirs)]
        rows = grouped[0].cogroup(grouped[1]).applyInArrow(tally, "tally binary")
        card = ee.merge(bytes(row.tally) for row in rows.toLocalIterator()).summarise()
    finally:
        session.stop()
    assert card.metrics.equals(expected())


def test_ray_data() -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("ray.data", reason="Ray Data is not installed")
    rows = pl.DataFrame(
        {
            "datum_id": range(1000),
            "actual": ["a", "b"] * 500,
            "predicted": ["a", "a", "b", "b"] * 250,
        }
    )
    plan = ee.plan(rows.head(5), metrics=["Accuracy", "F1"])

    def tally(group: Any) -> dict[str, list[bytes]]:
        return {"tally": [plan.tally(group).to_bytes()]}

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        data = ray.data.from_arrow(rows.to_arrow())
        tallies = data.map_batches(tally, batch_size=300, batch_format="pyarrow")
        card = ee.merge(row["tally"] for row in tallies.iter_rows()).summarise()
    finally:
        ray.shutdown()
    whole = ee.score(rows, metrics=["Accuracy", "F1"])
    assert card.metrics.equals(whole.metrics)
