"""Tables of several files or a database: Delta, Iceberg, DuckDB, Lance, Hugging Face data sets."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from refusals import refused

import evalengine as ee

TRUTHS = pl.DataFrame({"datum_id": range(6), "label_value": ["a", "b", "c"] * 2})
GUESSES = TRUTHS.with_columns(score=pl.lit(0.5), day=pl.Series([1, 1, 1, 2, 2, 2]))
GUESSES = GUESSES.with_columns(pl.Series("label_value", ["a", "b", "c", "a", "a", "a"]))


def same(given: Any) -> None:
    """Compare the values of a table in another form with those of the table."""
    want = ee.score(GUESSES, TRUTHS, by="day", metrics=["Accuracy", "ROCAUC"])
    card = ee.score(given, TRUTHS, by="day", metrics=["Accuracy", "ROCAUC"])
    assert card.metrics.equals(want.metrics)
    assert ee.check(given, TRUTHS).rows["predictions"] == 6


def test_delta(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    path = str(tmp_path / "run")
    GUESSES[:3].write_delta(path, delta_write_options={"partition_by": ["day"]})
    GUESSES[3:].write_delta(path, mode="append")
    same(path)
    same(DeltaTable(path))
    GUESSES[:1].write_delta(path, mode="overwrite")  # its old files still exist
    assert ee.check(path, TRUTHS).rows["predictions"] == 1


def test_delta_in_bounded_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "run")
    GUESSES.write_delta(path)
    card = ee.score(path, TRUTHS, metrics=["Accuracy"], memory_limit="2GiB")
    assert card.value("Accuracy") == 4 / 6


def test_a_broken_delta_table(tmp_path: Path) -> None:
    (tmp_path / "run" / "_delta_log").mkdir(parents=True)
    with refused("file_unreadable", ee.ReadError):
        ee.score(tmp_path / "run", TRUTHS)


@pytest.mark.parametrize(
    ("library", "extra", "marks"),
    [
        ("deltalake", "delta", ["_delta_log/0.json"]),
        ("pyiceberg", "iceberg", ["metadata/v1.metadata.json"]),
        ("lance", "lance", ["_versions/1.manifest"]),
        ("duckdb", "duckdb", ["x.duckdb"]),
    ],
)
def test_a_missing_library_is_named(
    library: str, extra: str, marks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mark in marks:
        (tmp_path / mark).parent.mkdir(exist_ok=True)
        (tmp_path / mark).write_bytes(b"12345678DUCK")
    real = builtins.__import__

    def without(name: str, *args: Any, **named: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, *args, **named)

    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(builtins, "__import__", without)
    given = tmp_path / marks[0] if library == "duckdb" else tmp_path
    with refused("package_missing", ee.ReadError, match=rf"\[{extra}\]"):
        ee.score(given, TRUTHS)


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # Polars uses a faster plugin
def test_iceberg(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    catalog = sql.SqlCatalog("c", uri="sqlite://", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("runs")
    rows = GUESSES.to_arrow()
    table = catalog.create_table("runs.guesses", schema=rows.schema)
    table.append(rows.slice(0, 3))
    table.append(rows.slice(3))
    same(table)
    same(table.location().removeprefix("file://"))


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    guesses = GUESSES.to_arrow()  # noqa: F841  DuckDB reads it by its name
    with duckdb.connect(tmp_path / "runs.duckdb") as base:
        base.sql("CREATE TABLE guesses AS SELECT * FROM guesses")
    same(tmp_path / "runs.duckdb")
    with duckdb.connect(tmp_path / "runs.duckdb") as base:
        base.sql('CREATE SCHEMA old; CREATE TABLE old."a b" AS SELECT * FROM guesses LIMIT 1')
    same(f"{tmp_path / 'runs.duckdb'}::guesses")
    assert ee.check(f"{tmp_path / 'runs.duckdb'}::old.a b", TRUTHS).rows["predictions"] == 1
    with refused("table_missing", ee.ReadError, match=r"guesses, old\.a b", table=None):
        ee.score(tmp_path / "runs.duckdb", TRUTHS)
    with refused("table_missing", ee.ReadError, match="guesses, ", table="x"):
        ee.score(f"{tmp_path / 'runs.duckdb'}::x", TRUTHS)
    same(duckdb.sql("SELECT * FROM guesses"))


def test_a_duckdb_file_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(tmp_path / "big.duckdb") as base:
        base.sql("CREATE TABLE t AS SELECT range AS datum_id, 'a' AS label_value FROM range(9)")
    monkeypatch.setattr("os.path.getsize", lambda path: 1 << 30)
    with refused("memory_limit_too_small", ee.OptionError, least="8640MiB"):
        ee.score(tmp_path / "big.duckdb", TRUTHS, memory_limit="2GiB")


def test_lance(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    lance.write_dataset(GUESSES.to_arrow(), tmp_path / "run.lance")
    same(tmp_path / "run.lance")
    same(lance.dataset(tmp_path / "run.lance"))


def test_a_data_set_of_pyarrow(tmp_path: Path) -> None:
    GUESSES.write_parquet(tmp_path / "a.parquet")
    same(pyarrow.dataset.dataset(tmp_path / "a.parquet"))


def saved(folder: Path) -> Path:
    """Write the files of ``save_to_disk``: streams listed in ``state.json``, not in name order."""
    folder.mkdir(parents=True)
    files = ["data-00001-of-00002.arrow", "data-00000-of-00002.arrow"]
    for name, rows in zip(files, (GUESSES[:3], GUESSES[3:]), strict=True):
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        with (
            pa.OSFile(str(folder / name), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as out,
        ):
            out.write_table(table)
    state = {"_data_files": [{"filename": name} for name in files], "_split": "test"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_a_saved_data_set(tmp_path: Path) -> None:
    same(saved(tmp_path / "run"))
    (tmp_path / "run" / "data-00000-of-00002.arrow").unlink()
    with refused("file_unreadable", ee.ReadError):
        ee.score(tmp_path / "run", TRUTHS)


def test_splits_of_a_saved_data_set(tmp_path: Path) -> None:
    saved(tmp_path / "runs" / "test")
    (tmp_path / "runs" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    same(tmp_path / "runs")
    (tmp_path / "runs" / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')
    with refused("split_missing", ee.ReadError, splits=["test", "train"]):
        ee.score(tmp_path / "runs", TRUTHS)


def test_data_sets_of_hugging_face(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict(GUESSES.to_dict(as_series=False))
    same(whole)
    same(whole.shuffle(seed=1))  # rows by an index next to the table
    same(datasets.DatasetDict(test=whole))
    whole.shuffle(seed=1).save_to_disk(tmp_path / "run")
    same(tmp_path / "run")
    with refused("split_missing", ee.ReadError, splits=["test", "train"]):
        ee.score(datasets.DatasetDict(test=whole, train=whole), TRUTHS)
    same(whole.to_iterable_dataset())
    card = ee.score(whole["label_value"], TRUTHS["label_value"], task="classification")
    assert card.value("Accuracy") == 4 / 6


def outside(tmp_path: Path) -> Path:
    """Write a data set next to the one that is read, which refers to its files."""
    return saved(tmp_path / "secret")


@pytest.mark.parametrize("way", ["../secret/", "absolute", "link"])
def test_a_saved_data_set_reads_only_its_folder(tmp_path: Path, way: str) -> None:
    secret, run = outside(tmp_path), saved(tmp_path / "run")
    name = "data-00000-of-00002.arrow"
    if way == "link":
        (run / name).unlink()
        (run / name).symlink_to(secret / name)
    else:
        name = way + name if way != "absolute" else str(secret / name)
    (run / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    with pytest.raises(ee.ReadError, match="outside its folder"):
        ee.score(run, TRUTHS)


@pytest.mark.parametrize("way", ["../secret", "absolute", "link"])
def test_splits_are_in_their_folder(tmp_path: Path, way: str) -> None:
    secret, runs = outside(tmp_path), tmp_path / "runs"
    runs.mkdir()
    split = str(secret) if way == "absolute" else way
    if way == "link":
        (runs / "link").symlink_to(secret)
    (runs / "dataset_dict.json").write_text(json.dumps({"splits": [split]}))
    with pytest.raises(ee.ReadError, match="outside its folder"):
        ee.score(runs, TRUTHS)


def test_a_linked_state_of_a_saved_data_set(tmp_path: Path) -> None:
    secret, run = outside(tmp_path), saved(tmp_path / "run")
    (run / "state.json").unlink()
    (run / "state.json").symlink_to(secret / "state.json")
    with pytest.raises(ee.ReadError, match="outside its folder"):
        ee.score(run, TRUTHS)


def test_views_of_duckdb_are_not_read(tmp_path: Path) -> None:
    """A view can read any file, so it is refused as the only table or by its name."""
    duckdb = pytest.importorskip("duckdb")
    GUESSES.write_csv(tmp_path / "secret.csv")
    with duckdb.connect(tmp_path / "v.duckdb") as base:
        base.sql(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
    for given in (tmp_path / "v.duckdb", f"{tmp_path / 'v.duckdb'}::v"):
        with pytest.raises(ee.ReadError, match="tables: none"):
            ee.score(given, TRUTHS)
    guesses = GUESSES.to_arrow()  # noqa: F841  DuckDB reads it by its name
    with duckdb.connect(tmp_path / "v.duckdb") as base:
        base.sql("CREATE TABLE guesses AS SELECT * FROM guesses")
    same(tmp_path / "v.duckdb")
    with refused("table_missing", ee.ReadError, match="guesses", table="v"):
        ee.score(f"{tmp_path / 'v.duckdb'}::v", TRUTHS)


def test_a_delta_table_reads_only_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    GUESSES.write_parquet(tmp_path / "secret.parquet")
    GUESSES.write_delta(tmp_path / "run")
    same(tmp_path / "run")
    [log] = (tmp_path / "run" / "_delta_log").glob("*.json")
    own = next(one.name for one in (tmp_path / "run").glob("*.parquet"))
    text = log.read_text()
    for name in ("../secret.parquet", str(tmp_path / "secret.parquet")):
        log.write_text(text.replace(own, name))
        with refused("file_unreadable", ee.ReadError):
            ee.score(tmp_path / "run", TRUTHS)


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
def test_an_iceberg_table_reads_only_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    catalog = sql.SqlCatalog("c", uri="sqlite://", warehouse=f"file://{tmp_path / 'a'}")
    catalog.create_namespace("runs")
    rows = GUESSES.to_arrow()
    (tmp_path / "elsewhere").mkdir()
    away = {"write.data.path": f"file://{tmp_path / 'elsewhere'}"}
    table = catalog.create_table("runs.guesses", schema=rows.schema, properties=away)
    table.append(rows)
    with pytest.raises(ee.ReadError, match="outside its folder"):
        ee.score(table.location().removeprefix("file://"), TRUTHS)


@pytest.mark.parametrize("named", ["location", "manifest-list", "manifest"])
def test_no_file_that_an_iceberg_table_names_elsewhere_is_opened(
    named: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyiceberg")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    catalog = sql.SqlCatalog("c", uri="sqlite://", warehouse=f"file://{tmp_path / 'a'}")
    catalog.create_namespace("runs")
    rows = GUESSES.to_arrow()
    away = (
        {"write.metadata.path": f"file://{tmp_path / 'elsewhere'}"} if named == "manifest" else {}
    )
    (tmp_path / "elsewhere").mkdir()
    table = catalog.create_table("runs.guesses", schema=rows.schema, properties=away)
    table.append(rows)
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    if named == "manifest":  # the list is inside, and names manifests that do not exist
        folder.mkdir(exist_ok=True)
        for file in (tmp_path / "elsewhere").iterdir():
            file.rename(folder / file.name)
    newest = sorted(folder.glob("*.metadata.json"))[-1]
    about = json.loads(newest.read_text())
    gone = f"file://{tmp_path / 'elsewhere' / 'gone'}"
    (snapshot,) = about["snapshots"]
    if named == "location":
        about["location"] = gone
    elif named == "manifest-list":
        snapshot["manifest-list"] = gone
    else:
        name = Path(snapshot["manifest-list"]).name
        snapshot["manifest-list"] = f"file://{folder / name}"
    newest.write_text(json.dumps(about))
    with pytest.raises(ee.ReadError, match="outside its folder"):
        ee.score(folder.parent, TRUTHS)
