"""Nested folders: columns in paths, and files at deeper levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from partitions.cases import in_buckets, in_row_ranges
from refusals import refused

import evalengine as ee
from evalengine.ingest.sources.tables import open_source

TRUTHS = pl.DataFrame({"datum_id": range(8), "label_value": ["a", "b"] * 4})
GUESSES = pl.DataFrame({
    "datum_id": range(8), "label_value": ["a"] * 8, "score": [0.5] * 8,
    "year": [2023, 2024] * 4, "city": ["ulm", "aa/b=1"] * 2 + ["ulm", None] * 2,
})  # fmt: skip


def written(folder: Path, form: str = "parquet") -> Path:
    """Write guesses by year and city, with these columns only in paths, and Spark's extra files."""
    for (year, city), rows in GUESSES.group_by("year", "city", maintain_order=True):
        named = "__HIVE_DEFAULT_PARTITION__" if city is None else str(city).replace("/", "%2F")
        own = folder / f"year={year}" / f"city={named}"
        own.mkdir(parents=True)
        getattr(rows.drop("year", "city"), f"write_{form}")(own / f"part-0.{form}")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("form", ["parquet", "ipc", "csv", "ndjson"])
@pytest.mark.parametrize("glob", [False, True])
def test_columns_of_the_path_are_kept(form: str, glob: bool, tmp_path: Path) -> None:
    folder = written(tmp_path / "run", form)
    given = str(folder / "**" / f"*.{form}") if glob else folder
    frame = open_source(given).frame.collect().sort("datum_id")
    assert frame.select(GUESSES.columns).equals(GUESSES)
    want = ee.score(GUESSES.with_columns(pl.col("year")), TRUTHS, by="year", metrics=["Accuracy"])
    card = ee.score(given, TRUTHS, by="year", metrics=["Accuracy"])
    assert card.metrics.equals(want.metrics)
    assert card.value("Accuracy", slice="year", slice_value="2023") == 1.0


def test_partitions_as_polars_writes_them(tmp_path: Path) -> None:
    GUESSES.write_parquet(tmp_path / "run", partition_by=["year"])
    assert open_source(tmp_path / "run").frame.collect().sort("datum_id").height == 8
    own = open_source(tmp_path / "run" / "year=2023")
    assert own.frame.collect()["year"].to_list() == [2023] * 4


def test_in_bounded_memory_and_by_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    folder = written(tmp_path / "run")
    want = ee.score(folder, TRUTHS, by="city", metrics=["Accuracy"])
    for more in ({"memory_limit": "2GiB"}, {"executor": "processes"}):
        named: dict[str, Any] = dict(more)
        card = ee.score(folder, TRUTHS, by="city", metrics=["Accuracy"], **named)
        assert card.run["buckets"] > 1
        assert card.metrics.equals(want.metrics)
        in_row_ranges(monkeypatch, 2)


def test_files_further_down(tmp_path: Path) -> None:
    for shard in ("a", "b/c"):
        (tmp_path / "run" / shard).mkdir(parents=True)
    GUESSES[:3].write_parquet(tmp_path / "run" / "a" / "0.parquet")
    GUESSES[3:].write_parquet(tmp_path / "run" / "b" / "c" / "0.parquet")
    assert open_source(tmp_path / "run").frame.collect().equals(GUESSES)


def test_mixtures_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "run")
    GUESSES.write_parquet(folder / "all.parquet")
    with refused("partitions_differ", ee.ReadError, match=r"'all.parquet'"):
        ee.score(folder, TRUTHS)
    with refused("partitions_differ", ee.ReadError, match=r"\(year, city\), and .*all.parquet"):
        ee.score(folder / "**" / "*.parquet", TRUTHS)
    (folder / "all.parquet").unlink()
    (folder / "month=1").mkdir()
    GUESSES.write_parquet(folder / "month=1" / "x.parquet")
    with refused("partitions_differ", ee.ReadError, match=r"x\.parquet|\(year, city\)"):
        ee.score(folder, TRUTHS)
    (folder / "month=1" / "x.parquet").rename(folder / "month=1" / "x.csv")
    with pytest.raises(ee.ReadError, match="contains several formats"):
        ee.score(folder, TRUTHS)


def test_a_file_of_other_columns_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "run")
    (folder / "year=2025" / "city=x").mkdir(parents=True)
    pl.DataFrame({"datum_id": ["9"], "label_value": ["a"], "score": [0.5]}).write_parquet(
        folder / "year=2025" / "city=x" / "y.parquet"
    )
    with refused("files_differ", ee.ReadError, match=r"Int64 in .*String in"):
        ee.score(folder, TRUTHS)
