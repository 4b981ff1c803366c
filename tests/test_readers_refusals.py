"""Errors about unreadable files name file, format, reason and remedy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refused
from small_tables import load, predictions, refusal
from table_files import FILES, Writer, write_packed_csv, write_records

import evalengine as ee
from evalengine.ingest.sources.tables import open_source
from evalengine.schemas.errors import ReadError


@pytest.mark.parametrize("name", ["predictons.parquet", "nothing/here.parquet", "x*.parquet"])
def test_missing_paths_list_existing_ones(name: str, tmp_path: Path) -> None:
    predictions().write_parquet(tmp_path / "predictions.parquet")
    with pytest.raises(ReadError) as caught:
        load(tmp_path / name)
    message = str(caught.value)
    assert str(tmp_path / name) in message
    assert "'predictions.parquet'" in message
    assert ("no file matches" if "*" in name else "no such file") in message


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path).has("format_unknown")
    assert "is empty" in refusal(tmp_path / "a.parquet")


def test_a_folder_of_several_formats_is_ambiguous(tmp_path: Path) -> None:
    predictions().write_parquet(tmp_path / "a.parquet")
    predictions().write_csv(tmp_path / "b.csv")
    assert refusal(tmp_path).has("formats_differ")
    assert "('a.parquet', 'b.csv')" in refusal(tmp_path)
    message = refusal([tmp_path / "a.parquet", tmp_path / "b.csv"])
    assert message.has("formats_differ")
    assert "a.parquet is Parquet" in message
    assert "b.csv is CSV" in message


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.csv", "t.jsonl", "t.json", "t"])
def test_files_of_no_bytes_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    message = refusal(tmp_path / name)
    assert f"{tmp_path / name}: the" in message
    assert message.has("file_empty")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_truncated_files_are_named(name: str, kept: float, tmp_path: Path) -> None:
    path = tmp_path / name
    FILES[name](predictions(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    message = refusal(path)
    assert f"{path}: the" in message
    assert "truncated" in message
    assert "again" in message


def test_damage_inside_a_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    predictions().write_parquet(path, compression="uncompressed")
    data = bytearray(path.read_bytes())
    data[-30:-10] = b"\xff" * 20
    path.write_bytes(bytes(data))
    with refused("file_damaged", ReadError):
        load(path)


@pytest.mark.parametrize(
    ("name", "writer", "words"),
    [
        ("t.parquet", pl.DataFrame.write_csv, {"code": "wrong_format", "format": None}),
        ("t.arrow", pl.DataFrame.write_parquet, {"code": "wrong_format", "format": "parquet"}),
        ("t.csv", pl.DataFrame.write_parquet, {"code": "wrong_format", "format": "parquet"}),
        ("t.parquet", write_packed_csv, {"code": "wrong_format", "format": None}),
        ("t", write_packed_csv, {"code": "compressed"}),
    ],
)
def test_files_with_the_wrong_extension(
    name: str, writer: Writer, words: dict[str, Any], tmp_path: Path
) -> None:
    writer(predictions(), tmp_path / name)
    message = refusal(tmp_path / name)
    assert message.has(**words)
    assert str(tmp_path / name) in message


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "t.xyz").write_bytes(b"\x01\x02\x03 what")
    assert refusal(tmp_path / "t.xyz").has("format_unknown")
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    assert refusal(tmp_path / "t.xlsx").has("format_unknown", file=str(tmp_path / "t.xlsx"))


@pytest.mark.parametrize("mark", [";", ",", "\t"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_line_of_excel_that_names_the_separator(
    tmp_path: Path, mark: str, begin: str, name: str
) -> None:
    path, plain = tmp_path / name, tmp_path / "plain.csv"
    rows = [["id", "y_true", "y_pred"], ["1", "1", "1.5"], ["2", "1", "1"]]
    text = begin + "\r\n".join([f"sep={mark}", *map(mark.join, rows)]) + "\r\n"
    write = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(write(text.encode()))
    for options in ({}, {"memory_limit": "1GB"}):
        assert ee.score(path, task="regression", **options).value("MAE") == 0.25
    plain.write_text("\n".join(map(mark.join, rows)))
    with refused("files_differ", ee.ReadError, file=str(path)):
        ee.score([path, plain], task="regression")
    plain.write_text(text + mark.join("1234") + "\n")
    with refused("file_malformed", ee.ReadError, line=5):
        ee.score(plain, task="regression")


def test_separators_of_files_are_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y_true;y_pred\n1;1.5\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"y_true;y_pred\n1;1.5\n"))
    (tmp_path / "c.csv").write_text("y_true,y_pred\n1,1.5\n")
    both = [tmp_path / "a.csv", tmp_path / "b.csv.gz"]
    assert ee.score(both, task="regression").value("MAE") == 0.5
    with refused("files_differ", ee.ReadError, file=str(tmp_path / "c.csv")):
        ee.score([*both, tmp_path / "c.csv"], task="regression")


def test_broken_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"datum_id": 1}\n{"datum_id":\n')
    message = refusal(path)
    assert message.has("file_malformed", line=2)
    assert "column 13" in message


@pytest.mark.parametrize("n", [1, 2, 30_000])
def test_broken_json_is_named_by_line_and_column(tmp_path: Path, n: int) -> None:
    path = tmp_path / "t.json"
    row = '{"image_id": "ä", "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}'
    path.write_text("[\n" + f"{row},\n" * n + row.replace(", 2", " 2"))
    message = refusal(path)
    assert message.has("not_json", line=n + 2)
    assert ", column 48: " in message


@pytest.mark.parametrize("place", ["image_id", "file_name"])
def test_json_that_is_not_utf_8(tmp_path: Path, place: str) -> None:
    truths: dict[str, Any] = {
        "images": [{"id": 1, "file_name": "FAULT" if place == "file_name" else "a"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}],
    }
    if place == "image_id":
        truths["annotations"][0]["image_id"] = "FAULT"
    path = tmp_path / "t.json"
    path.write_bytes(json.dumps(truths).encode().replace(b"FAULT", b"caf\xe9"))
    message = refusal(path)
    assert message.has("file_encoding", file=str(path))
    assert "(byte 0xe9, behind 'caf')" in message


def test_a_byte_order_mark_of_json_lines_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('\ufeff{"datum_id": 1}\n')
    message = refusal(path)
    assert message.has("file_malformed", line=1)
    assert "begins with a byte order mark" in message


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_numbers_that_json_does_not_have(tmp_path: Path, number: str) -> None:
    """Python's json writes NaN and Infinity. The line is named."""
    path = tmp_path / "t.jsonl"
    lines = ['{"datum_id": 1, "COMET": 0.5}', f'{{"datum_id": 2, "COMET": {number}}}']
    path.write_text("\n".join(lines) + "\n")
    message = refusal(path)
    assert message.has("file_malformed")
    assert f"line 2 has {number}" in str(message)


@pytest.mark.parametrize("name", ["part-{}.parquet", "part-{}.csv", "part-{}.jsonl"])
def test_among_many_files_the_broken_one_is_named(name: str, tmp_path: Path) -> None:
    writer = FILES["t" + Path(name).suffix]
    for i in range(4):
        writer(predictions(), tmp_path / name.format(i))
    broken = tmp_path / name.format(2)
    if name.endswith("parquet"):
        data = bytearray(broken.read_bytes())
        data[-30:-10] = b"\xff" * 20
        broken.write_bytes(bytes(data))
    elif name.endswith("csv"):
        broken.write_text(broken.read_text() + "1,2,3,4,5,6,7,8,9,10\n")
    else:
        broken.write_text(broken.read_text() + '{"datum_id":\n')
    with pytest.raises(ReadError) as caught:
        load(f"{tmp_path}/part-*")
    assert str(caught.value).startswith(f"{broken}: cannot be")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (predictions().with_columns(pl.col("score").cast(pl.Float32)),
         "column 'score' is Float64 in {0} but Float32 in {1}"),
        (predictions().drop("ymax"), "column 'ymax' (Float64) of {0} is missing in {1}"),
        (predictions(extra=[1, 2, 3]), "column 'extra' (Int64) of {1} is missing in {0}"),
    ],
)  # fmt: skip
def test_files_that_differ_name_file_column_and_dtypes(
    other: pl.DataFrame, words: str, tmp_path: Path
) -> None:
    names = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    predictions().write_parquet(names[0])
    other.write_parquet(names[1])
    message = refusal(f"{tmp_path}/*.parquet")
    assert "the files differ" in message
    assert words.format(*names) in message


def test_record_files_that_differ_are_named_too(tmp_path: Path) -> None:
    write_records(predictions(), tmp_path / "a.json")
    write_records(predictions().drop("score"), tmp_path / "b.json")
    assert "column 'score' (Float64)" in refusal(f"{tmp_path}/*.json")
    write_records(predictions(), tmp_path / "b.json")
    assert load(f"{tmp_path}/*.json").predictions.height == 6


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (3, {"code": "not_a_table"}),
        ([1, 2], {"code": "not_a_table"}),
        ({"a": [1, 2], "b": [1]}, {"code": "lengths_differ", "lengths": {"a": 2, "b": 1}}),
        ({"datum_id": [1, "a"]}, {"code": "types_mixed", "count": 1}),
    ],
)
def test_objects_that_are_not_tables_are_refused(thing: Any, words: dict[str, Any]) -> None:
    with refused(**words):
        load(thing)


@pytest.mark.parametrize("path", ["s3://bucket/x.unknown", "s3://bucket/x", "gs://b/x.json"])
def test_remote_paths_need_a_known_extension(path: str) -> None:
    assert refusal(path).has("format_unknown")


def test_missing_integers_of_pandas_explain_their_floats() -> None:
    table = predictions().to_pandas()
    table.loc[1, "datum_id"] = None
    message = refusal(table)
    assert message.has("wrong_dtype", side="predictions", column="datum_id")


def test_a_compressed_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    rows = predictions().write_csv().encode() * 50
    path.write_bytes(gzip.compress(rows)[:-40])
    assert refusal(path).has("file_unreadable")


@pytest.mark.parametrize("depth", [5_000, 200_000])
@pytest.mark.parametrize(("opening", "end"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("t.json", "{}"),
        ("t.json", '[{{"datum_id":{}}}]'),
        ("t.json", '[{{"image_id":1,"category_id":1,"bbox":{}}}]'),
        ("t.json", '{{"images":[],"annotations":{},"categories":[]}}'),
        ("t.json", '{{"images":{},"annotations":[],"categories":[]}}'),
        ("t.json", '{{"q1":{}}}'),
        ("t.jsonl", '{{"datum_id":{}}}\n{{"datum_id":1}}\n'),
    ],
)
def test_json_that_is_nested_too_deep_is_named(
    name: str, around: str, opening: str, end: str, depth: int, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(around.format(opening * depth + "1" + end * depth))
    message = refusal(path)
    assert str(path) in message
    known = ("nested too deeply", "DepthLimit", "needed", "cannot be read as JSON Lines: line")
    assert any(words in message for words in known)


@pytest.mark.parametrize("around", ["[{}]", '{{"a":{}}}'])
def test_nesting_that_the_parser_allows_is_refused_beyond_100_levels(
    around: str, tmp_path: Path
) -> None:
    """Polars' time grows with the cube of the levels: 9 s for 800."""
    path = tmp_path / "t.json"
    value = "1"
    for _ in range(150):
        value = around.format(value)
    path.write_text(f'[{{"datum_id":{value}}}]')
    assert refusal(path).has("nested_too_deeply")


def test_numbers_among_storage_options_are_texts() -> None:
    given = {"aws_region": "x", "timeout": 30, "aws_allow_http": True}
    source = open_source("s3://bucket/x.parquet", storage_options=given)  # type: ignore[arg-type]
    assert source.storage_options == {
        "aws_region": "x", "timeout": "30", "aws_allow_http": "true",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (
            {"aws_secret_access_key": ["hidden"]},
            {"code": "option_value", "option": "storage_options", "name": "aws_secret_access_key"},
        ),
        (
            {"aws_secret_access_key": None},
            {"code": "option_value", "option": "storage_options", "name": "aws_secret_access_key"},
        ),
        ({1: "hidden"}, {"code": "option_value", "option": "storage_options", "name": 1}),
        ("hidden", {"code": "option_value", "option": "storage_options"}),
        (["hidden"], {"code": "option_value", "option": "storage_options"}),
    ],
)
def test_other_storage_options_are_refused_without_their_values(
    given: Any, facts: dict[str, Any]
) -> None:
    with refused(**facts) as caught:
        open_source("s3://bucket/x.parquet", storage_options=given)
    assert "hidden" not in str(caught.value)


def test_numbers_that_fit_no_dtype_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"datum_id": 1' + "0" * 60 + ', "label_value": 1}]')
    assert refusal(path).has("file_malformed")


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "lines.json"])
def test_a_key_that_occurs_twice_is_named(name: str, tmp_path: Path) -> None:
    """Polars takes the first value, Python the last."""
    objects = ['{"id": 1, "n": {"a": 1}}', '{"id": 2, "n": {"a": 1, "a": 2}}']
    records = name == "t.json"
    text = "[" + ",\n".join(objects) + "]" if records else "\n".join(objects) + "\n"
    path = tmp_path / name
    path.write_text(text)
    with refused("repeated_key", ReadError, file=str(path), line=2, column="a"):
        open_source(str(path))
    path.write_text(text.replace('"a": 2', '"b": 2'))
    assert open_source(str(path)).frame.collect().height == 2


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_booleans_among_numbers_are_named(name: str, tmp_path: Path) -> None:
    rows = ['{"id": 1, "acc": true}', '{"id": 2}', '{"id": 3, "acc": 0.5}']
    path = tmp_path / name
    path.write_text("\n".join(rows) if name == "t.jsonl" else f"[{','.join(rows)}]")
    with refused("file_malformed", ReadError, match="3 has 'acc' 0.5, and (line|record) 1 has"):
        ee.score(path, value_columns=["acc"])
