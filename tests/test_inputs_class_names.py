"""Class names in a table's schema, dtypes unknown to Polars, and slices of them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

import evalengine as ee

WORDS = ["cat", "dog", "cat", "dog", "eel"]
NAMES = (["dog", "eel", "cat"], ["cat", "dog", "eel"])


def side(names: list[str], words: list[str], column: str = "label_value") -> pa.Table:
    """Return a table as ``datasets`` writes one: numbers, with names in the schema's metadata."""
    feature = {"names": names, "_type": "ClassLabel"}
    numbers: list[Any] = [names.index(word) for word in words]
    table = pa.table({"datum_id": list(range(len(words))), column: numbers})
    info = {"info": {"features": {column: feature}}}
    return table.replace_schema_metadata({"huggingface": json.dumps(info)})


def written(table: pa.Table, folder: Path, form: str) -> Any:
    folder.mkdir()
    if form == "memory":
        return table
    if form == "parquet":
        pq.write_table(table, folder / "t.parquet")
        return folder / "t.parquet"
    path = folder / "data.arrow"
    with pa.OSFile(str(path), "wb") as file:
        make = pa.ipc.new_file if form == "ipc" else pa.ipc.new_stream
        with make(file, table.schema) as rows:
            rows.write_table(table)
    if form != "saved":
        return path
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": path.name}]}))
    return folder


FORMS = ["memory", "parquet", "ipc", "ipc_stream", "saved"]


@pytest.mark.parametrize("form", FORMS)
def test_numbers_with_names_in_two_orders_are_read_by_name(form: str, tmp_path: Path) -> None:
    guess = ["cat", "dog", "dog", "dog", "eel"]
    ours = written(side(NAMES[0], guess), tmp_path / "p", form)
    theirs = written(side(NAMES[1], WORDS), tmp_path / "g", form)
    card = ee.score(ours, theirs, metrics=["Accuracy"])
    assert card.value("Accuracy") == 0.8
    assert sum("names of classes" in note for note in card.notes) == 2
    plain = {"datum_id": list(range(5)), "label_value": WORDS}
    assert ee.score(ours, plain, metrics=["Accuracy"]).value("Accuracy") == 0.8


@pytest.mark.parametrize("form", ["memory", "parquet"])
def test_numbers_whose_names_agree_or_are_unknown_stay_numbers(form: str, tmp_path: Path) -> None:
    theirs = written(side(NAMES[0], WORDS), tmp_path / "g", form)
    numbers = {"datum_id": list(range(5)), "label_value": [NAMES[0].index(w) for w in WORDS]}
    for ours in (theirs, numbers, pl.DataFrame(numbers)):
        card = ee.score(ours, theirs, metrics=["F1", "Accuracy"])
        assert card.value("Accuracy") == 1.0
        assert set(card.metrics["label_value"].drop_nulls()) == {0, 1, 2}
        assert not any("names of classes" in note for note in card.notes)


def test_names_of_one_table_of_both_sides_and_of_lists() -> None:
    words = side(["eel", "dog"], ["eel", "dog"], "predicted")
    both = side(["cat", "dog"], ["cat", "dog"], "actual").append_column(
        "predicted", words["predicted"]
    )
    features = {
        "actual": {"names": ["cat", "dog"], "_type": "ClassLabel"},
        "predicted": {"names": ["eel", "dog"], "_type": "ClassLabel"},
    }
    info = {"huggingface": json.dumps({"info": {"features": features}})}
    assert ee.score(both.replace_schema_metadata(info)).value("Accuracy") == 0.5
    tags = pa.table({"actual": [[0, 1], [1]], "predicted": [[1, 0], [1]]})
    listed = {name: {"feature": one, "_type": "List"} for name, one in features.items()}
    listed["predicted"]["feature"] = {"names": ["dog", "cat"], "_type": "ClassLabel"}
    info = {"huggingface": json.dumps({"info": {"features": listed}})}
    card = ee.score(tags.replace_schema_metadata(info), metrics=["Accuracy"])
    assert card.value("Accuracy") == pytest.approx(2 / 3)


def test_features_of_a_data_set_in_memory() -> None:
    datasets = pytest.importorskip("datasets")

    def made(names: list[str]) -> Any:
        held = datasets.Dataset.from_dict({"datum_id": list(range(5)), "label_value": WORDS})
        return held.cast_column("label_value", datasets.ClassLabel(names=names))

    assert ee.score(*map(made, NAMES), metrics=["Accuracy"]).value("Accuracy") == 1.0


BASE = {"actual": ["a", "b", "a", "b"], "predicted": ["a", "b", "b", "b"]}


@pytest.mark.parametrize(
    ("values", "slices"),
    [
        (pd.cut([1, 5, 1, 99], [0, 2, 8]), {"(0, 2]", "(2, 8]"}),
        (pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3, 4]),
         {"(0, 1]", "(1, 2]", "(2, 3]", "(3, 4]"}),
        (pd.PeriodIndex(["2020-01", "2020-02"] * 2, freq="M"), {"2020-01", "2020-02"}),
        (pd.to_timedelta([1, 2] * 2, unit="D"), {"1d", "2d"}),
    ],
)  # fmt: skip
def test_slices_of_pandas_dtypes(values: Any, slices: set[str]) -> None:
    card = ee.score(pd.DataFrame(BASE).assign(s=values), by=["s"], metrics=["Accuracy"])
    assert set(card.metrics["slice_value"].drop_nulls()) == slices


def test_slices_of_durations_and_long_integers(tmp_path: Path) -> None:
    days = pl.Series([dt.timedelta(days=i % 2) for i in range(4)])
    table = pl.DataFrame(BASE).with_columns(
        s=days, datum_id=pl.int_range(4), i=pl.Series([1, 2, 1, 2], dtype=pl.Int128)
    )
    table.write_parquet(tmp_path / "t.parquet")
    for given in (table, table.drop("datum_id"), tmp_path / "t.parquet"):
        card = ee.score(given, by=["s", "i", "s*actual"], metrics=["Accuracy"])
        found = set(card.metrics["slice_value"].drop_nulls())
        assert found == {"0µs", "1d", "1", "2", "0µs*a", "1d*b"}
    steps = {"target": [1.5, 2.5, 3.5, 4.5], "prediction": [1.5, 2.5, 3.5, 4.5]}
    card = ee.score(pl.DataFrame(steps).with_columns(horizon=days), by=["horizon"])
    assert set(card.metrics["slice_value"].drop_nulls()) == {"0µs", "1d"}


def test_extension_types_in_files_are_refused_by_column(tmp_path: Path) -> None:
    frame = pd.DataFrame(BASE).assign(s=pd.PeriodIndex(["2020-01"] * 4, freq="M"))
    frame.to_parquet(tmp_path / "t.parquet")
    if pl.scan_parquet(tmp_path / "t.parquet").collect_schema()["s"].is_integer():
        pytest.skip("this Polars reads what extension types store")
    with refused("wrong_dtype", ee.InputError, side="table", column="s"):
        ee.score(tmp_path / "t.parquet", by=["s"])
    assert ee.score(tmp_path / "t.parquet").value("Accuracy") == 0.75


def decimals(precision: int) -> pa.Table:
    target = pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal256(precision, 2))
    return pa.table({"datum_id": [1, 2], "target": target, "prediction": [1.5, 2.5]})


class Stream:
    """Table of another library, with only Arrow's stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(schema)


def test_decimals_of_256_bits(tmp_path: Path) -> None:
    """Up to 38 digits are read; longer ones are refused with the column, without a panic."""
    assert ee.score(decimals(38)).value("MAE") == 0.0
    table = decimals(60)
    pq.write_table(table, tmp_path / "t.parquet")
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as rows,
    ):
        rows.write_table(table)
    for given in (table, tmp_path / "t.parquet", tmp_path / "t.arrow"):
        with pytest.raises(ee.ReadError, match=r"column 'target'.*38 digits"):
            ee.score(given)
    with pytest.raises(ee.InputError, match="38 digits"):
        ee.score(Stream(table))


@pytest.mark.parametrize("last", [2, 10**30])
def test_integer_decimals_are_ids_and_labels(last: int) -> None:
    """HUGEINT of DuckDB becomes integers if they fit, otherwise names by their digits."""
    ids = pa.array([1, last], pa.decimal128(38, 0))
    ours = pa.table({"datum_id": ids, "label_value": ["a", "b"]})
    other = {"datum_id": [1, last] if last == 2 else ["1", str(last)], "label_value": ["a", "b"]}
    for theirs in (ours, other):
        assert ee.score(ours, theirs, metrics=["Accuracy"]).value("Accuracy") == 1.0
    both = pa.table({"actual": ids, "predicted": ids})
    assert ee.score(both).value("Accuracy") == 1.0


def test_columns_of_data_sets_with_names_in_two_orders() -> None:
    """Plain columns and scikit-learn's keywords; numbers by themselves stay numbers."""
    datasets = pytest.importorskip("datasets")

    def column(names: list[str], words: list[str]) -> Any:
        made = datasets.Dataset.from_dict({"labels": words})
        return made.cast_column("labels", datasets.ClassLabel(names=names))["labels"]

    guess = ["cat", "dog", "dog", "dog", "eel"]
    ours, theirs = column(NAMES[0], guess), column(NAMES[1], WORDS)
    metrics = ["Accuracy"]
    for card in (
        ee.score(ours, theirs, metrics=metrics),
        ee.score(y_true=theirs, y_pred=ours, metrics=metrics),
        ee.score(guess, theirs, metrics=metrics),
    ):
        assert card.value("Accuracy") == 0.8
        assert sorted(card.labels["label_value"]) == ["cat", "dog", "eel"]
    numbers = ee.score([NAMES[1].index(word) for word in guess], theirs, metrics=metrics)
    assert (numbers.value("Accuracy"), sorted(numbers.labels["label_value"])) == (0.8, [0, 1, 2])


class TestDoors:
    """Batches, parts and several files."""

    OURS, THEIRS = side(NAMES[0], WORDS), side(NAMES[1], WORDS)

    def test_batches(self) -> None:
        collector = ee.Collector(metrics=["Accuracy"])
        for first in (0, 2):
            collector.add(self.OURS.slice(first, 2), self.THEIRS.slice(first, 2))
        collector.add(pl.DataFrame(schema={"datum_id": pl.Int64, "label_value": pl.Int64}),
                      self.THEIRS.slice(4, 0))  # fmt: skip
        assert collector.score().value("Accuracy") == 1.0
        for other in (side(NAMES[1], WORDS), pl.DataFrame(self.OURS)):
            with refused("batches_differ", side="predictions", column="label_value"):
                collector.add(other, self.THEIRS)
        more = ee.Collector(metrics=["Accuracy"])
        more.add(side(NAMES[1], WORDS), self.THEIRS)
        with refused("batches_differ", column="label_value"):
            more.merge(collector)
        again = ee.Collector(metrics=["Accuracy"])
        again.add(self.OURS.slice(4), self.THEIRS.slice(4))
        assert (collector + again).score(metrics=["Accuracy"]).value("Accuracy") == 1.0

    def test_parts(self) -> None:
        parts = [
            ee.tally(self.OURS.slice(first, many), self.THEIRS.slice(first, many),
                     metrics=["Accuracy"])
            for first, many in ((0, 2), (2, 3))
        ]  # fmt: skip
        assert ee.merge(parts).summarise().value("Accuracy") == 1.0

    @pytest.mark.parametrize("form", ["parquet", "ipc"])
    def test_files_in_other_orders_are_refused(self, form: str, tmp_path: Path) -> None:
        paths = [
            written(table, tmp_path / name, form)
            for name, table in (("a", self.OURS.slice(0, 2)), ("b", self.THEIRS.slice(2)))
        ]
        for truth in (self.THEIRS, pl.DataFrame({"datum_id": range(5), "label_value": WORDS})):
            with refused("files_differ", ee.ReadError, column="label_value"):
                ee.score(paths, truth, metrics=["Accuracy"])
        same = [written(self.OURS.slice(2), tmp_path / "c", form), paths[0]]
        assert ee.score(same, self.THEIRS, metrics=["Accuracy"]).value("Accuracy") == 1.0

    def test_tags(self) -> None:
        names = {"actual": ["O", "B-PER", "I-PER"], "predicted": ["O", "I-PER", "B-PER"]}
        features = {
            column: {"feature": {"names": of, "_type": "ClassLabel"}, "_type": "Sequence"}
            for column, of in names.items()
        }
        rows = pa.table({"actual": [[1, 2, 0]] * 3, "predicted": [[2, 1, 0]] * 3})
        info = {"huggingface": json.dumps({"info": {"features": features}})}
        card = ee.score(rows.replace_schema_metadata(info), task="spans", metrics=["F1"])
        assert card.value("F1", label_value="PER") == 1.0
