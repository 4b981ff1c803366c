"""Every source of rows gives the same frames; errors name the file and the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import ground_truths, kinds, load, note, predictions
from table_files import FILES

import evalengine as ee
from evalengine.ingest.files import by_extension
from evalengine.ingest.sources.formats import detect
from evalengine.ingest.sources.tables import open_source
from evalengine.schemas.errors import ReadError


class OnlyStream:
    """Object of an unknown library with the Arrow stream interface."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.table = frame.to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


OBJECTS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pyarrow table": lambda frame: frame.to_arrow(),
    "pyarrow batch": lambda frame: frame.to_arrow().combine_chunks().to_batches()[0],
    "pyarrow reader": lambda frame: frame.to_arrow().to_reader(),
    "pandas": lambda frame: frame.to_pandas(),
    "pandas pyarrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pandas shuffled index": lambda frame: frame.to_pandas().set_index(
        pd.Index(range(frame.height, 0, -1))
    ),
    "pandas named index": lambda frame: frame.to_pandas().set_index("datum_id"),
    "pandas index of two": lambda frame: frame.to_pandas().set_index(["datum_id", "label_value"]),
    "stream": OnlyStream,
    "columns": lambda frame: frame.to_dict(as_series=False),
    "numpy columns": lambda frame: {name: frame[name].to_numpy() for name in frame.columns},
    "rows": lambda frame: frame.to_dicts(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_file_format_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    FILES[name](predictions(), path)
    for source in (path, str(path)):
        frames = load(source)
        assert frames.predictions.equals(predictions())
        assert frames.predictions.schema == predictions().schema
        assert frames.sources["predictions"].endswith(str(path))


@pytest.mark.parametrize("name", OBJECTS)
def test_every_table_in_memory_gives_the_same_rows(name: str) -> None:
    frames = load(OBJECTS[name](predictions()), OBJECTS[name](ground_truths()))
    assert frames.predictions.equals(predictions())
    assert frames.ground_truths.equals(ground_truths())


FEW = settings(max_examples=12)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=5)


def tables(ids: st.SearchStrategy[Any]) -> st.SearchStrategy[pl.DataFrame]:
    number = st.floats(-1e12, 1e12)
    size = st.floats(0, 1e6)
    row = st.tuples(ids, ids, number, number, number, size, size)

    def build(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
        plain = [(d, v, s, x, y, x + w, y + h) for d, v, s, x, y, w, h in rows]
        return pl.DataFrame(plain, schema=predictions().columns, orient="row")

    return st.lists(row, min_size=1, max_size=12).map(build)


@given(st.one_of(tables(st.integers(-(2**63), 2**63 - 1)), tables(texts)))
@settings(max_examples=6)
def test_random_tables_are_read_to_the_bit(tmp_path: Path, table: pl.DataFrame) -> None:
    for name in ("t.parquet", "t.arrow", "t.jsonl", "t.json"):
        FILES[name](table, tmp_path / name)
        assert load(tmp_path / name, table.drop("score")).predictions.equals(table), name
    for name in OBJECTS:
        assert load(OBJECTS[name](table), table.drop("score")).predictions.equals(table), name


@given(tables(st.integers(0, 10**9)))
@settings(max_examples=12)
def test_random_tables_are_read_from_csv(tmp_path: Path, table: pl.DataFrame) -> None:
    table.write_csv(tmp_path / "t.csv")
    assert load(tmp_path / "t.csv", table.drop("score")).predictions.equals(table)


def test_globs_lists_and_folders_are_read_in_name_order(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        predictions(score=[i / 10] * 3).write_parquet(tmp_path / f"part-{i}.parquet")
    wanted = [0.0] * 3 + [0.1] * 3 + [0.2] * 3
    for source in (tmp_path, f"{tmp_path}/part-*.parquet", f"{tmp_path}/**/*.parquet"):
        frames = load(source)
        assert frames.predictions["score"].to_list() == wanted
        assert "3 files" in frames.sources["predictions"]
    listed = [tmp_path / "part-2.parquet", str(tmp_path / "part-0.parquet")]
    assert load(listed).predictions["score"].to_list() == [0.2] * 3 + [0.0] * 3


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_a_name_with_brackets_is_itself_before_it_is_a_pattern(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run[1]{suffix}"
    FILES["t" + suffix](predictions(), path)
    assert load(path).predictions.height == 3


def test_only_required_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    predictions(embedding=[[1.0]] * 3, note=["x"] * 3).write_parquet(path)
    source = open_source(path)
    assert "embedding" in source.frame.collect_schema()
    assert load(path).predictions.columns == predictions().columns


def test_leading_zeros_in_csv_are_kept(tmp_path: Path) -> None:
    ids = ["007", "007", "7"]
    predictions(datum_id=ids).write_csv(tmp_path / "t.csv")
    frame = load(tmp_path / "t.csv", ground_truths(datum_id=ids)).predictions
    assert frame["datum_id"].to_list() == ids


def test_integers_in_csv_become_strings_if_the_other_side_has_strings(tmp_path: Path) -> None:
    predictions().write_csv(tmp_path / "t.csv")
    frames = load(tmp_path / "t.csv", ground_truths(datum_id=["1", "1", "2"]))
    assert frames.predictions["datum_id"].to_list() == ["1", "1", "2"]
    assert "predictions: datum_id" in note(frames, "ids_from_text")
    assert "ids_from_text" not in kinds(load(tmp_path / "t.csv"))


def test_types_in_csv_are_inferred_from_all_rows(tmp_path: Path) -> None:
    table = pl.concat([predictions(label_value=["1", "1", "1"])] * 200 + [predictions()])
    table.write_csv(tmp_path / "t.csv")
    frame = load(tmp_path / "t.csv", ground_truths()).predictions
    assert frame["label_value"].to_list()[-3:] == ["cat", "dog", "cat"]


@pytest.mark.parametrize("rows", [False, True])
def test_integers_among_floats_in_plain_values(rows: bool) -> None:
    table: Any = {
        "datum_id": [1, 2],
        "label_value": ["a", "b"],
        "score": [1, 0.5],
        "bbox": [[0, 0.5, 1, 1], [0, 0, 1, 2]],
    }
    if rows:
        table = pl.DataFrame(table, strict=False).to_dicts()
        table[0]["score"], table[1]["bbox"] = 1, [0, 0, 1, 2]
    frame = load(table, box_format="xyxy").predictions
    assert frame["score"].to_list() == [1.0, 0.5]
    assert frame["ymin"].to_list() == [0.5, 0.0]


def test_remote_paths_pass_through_to_polars() -> None:
    options = {"aws_region": "nowhere", "aws_access_key_id": "x", "aws_secret_access_key": "y"}
    source = open_source("s3://bucket/x/*.parquet", storage_options=options)
    assert source.format == "parquet"
    assert isinstance(source.frame, pl.LazyFrame)


@pytest.mark.parametrize(
    ("name", "format_"),
    [("a.PARQUET", "parquet"), ("a.b.csv", "csv"), ("a.csv.gz", "csv"), ("a.gz", None),
     ("a.parquet.gz", None), ("a", None), ("s3://b/a.jsonl?x=1.y", "ndjson")],
)  # fmt: skip
def test_formats_by_extension(name: str, format_: str | None) -> None:
    assert by_extension(name) == format_


def test_formats_by_first_bytes(tmp_path: Path) -> None:
    for name, writer in FILES.items():
        if "." in name or name.endswith("extension"):
            writer(predictions(), tmp_path / "x")
            packed = name.endswith(".gz")
            if packed:
                with pytest.raises(ReadError, match="gzip"):
                    detect(str(tmp_path / "x"))
            else:
                detect(str(tmp_path / "x"))


def test_pyarrow_views_and_dictionaries_are_strings() -> None:
    table = predictions().to_arrow()
    values = pa.array(["cat", "dog", "cat"])
    for column in (values.dictionary_encode(), values.cast(pa.string_view())):
        changed = table.set_column(1, "label_value", column)
        assert load(changed).predictions.equals(predictions())


@pytest.mark.parametrize("limit", [None, "500MB"])
@pytest.mark.parametrize("top", [2**63, 2**64 - 1, 2**64, 2**127, 10**60])
def test_ids_in_csv_may_be_beyond_64_bits(top: int, limit: str | None, tmp_path: Path) -> None:
    ids = [str(top - 1), str(top), "5"]
    ours = pl.DataFrame({"datum_id": ids, "label_value": ["a", "b", "a"]})
    ours.write_csv(tmp_path / "ours.csv")
    ours.head(2).write_csv(tmp_path / "theirs.csv")
    sides = (tmp_path / "ours.csv", tmp_path / "theirs.csv")
    card = ee.score(*sides, metrics=["Accuracy"], memory_limit=limit)
    assert card.value("Accuracy") == 1.0
    assert any("'5'" in text or ": 5" in text for text in card.notes)
    if top < 2**64:  # as integers, to match those of other files
        theirs = pl.DataFrame({"datum_id": pl.Series([top - 1, top], dtype=pl.UInt64)})
        theirs = theirs.with_columns(label_value=pl.Series(["a", "a"]))
        card = ee.score(sides[0], theirs, metrics=["Accuracy"], memory_limit=limit)
        assert card.value("Accuracy") == 0.5


def test_json_lines_of_texts_and_lists_of_texts(tmp_path: Path) -> None:
    """Tools write one reference as text and several as a list."""
    path = tmp_path / "answers.jsonl"
    rows = [("a b", "a b"), ("a b", ["x", "a b"]), ("c", None), ("e [f]", "g [h]"), ("d", ["d"])]
    lines = [json.dumps({"text": text, "reference": of}) for text, of in rows]
    path.write_text("\n".join(lines))
    card = ee.score(path, metrics=["ExactMatch"], task="text", nulls="skip")
    assert (card.value("ExactMatch"), card.metrics["support"].to_list()) == (0.75, [4])
    assert not [one for one in card.findings if one.code == "lists_as_texts"]
    path.write_text("\n".join(lines[::3]))  # only texts, with brackets
    assert ee.score(path, metrics=["ExactMatch"], task="text").value("ExactMatch") == 0.5
