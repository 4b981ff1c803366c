"""Errors about unreadable files name the place and the remedy, and hide secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.schemas.wording import without_secrets

TRUTHS = {"datum_id": [1, 2, 3], "label_value": ["a", "b", "a"]}
HEAD = b"datum_id,label_value,score\n"
ROW = b'{"datum_id": 1, "label_value": "a", "score": 0.5}\n'


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("more.csv", HEAD + b"1,a,1\n2,b,1,9\n", {"code": "file_malformed", "line": 3}),
        ("open.csv", HEAD + b'1,a,1\n2,"b,1\n3,c,1\n', {"code": "file_malformed", "line": 3}),
        ("latin.csv", HEAD + b"1,a,1\n2,caf\xe9,1\n", {"code": "file_encoding", "line": 3}),
        ("cut.jsonl", ROW * 2 + ROW[:20], {"code": "file_malformed", "line": 3}),
        ("comma.jsonl", ROW + b'{"datum_id": 2,,\n' + ROW, {"code": "file_malformed", "line": 2}),
        ("list.jsonl", ROW + b"[1, 2]\n", {"code": "file_malformed", "line": 2}),
        ("returns.csv", HEAD.replace(b"\n", b"\r") + b"1,a,1\r", {"code": "file_malformed"}),
        ("joined.csv", HEAD + b"1,a,1\n" + HEAD, {"code": "header_repeated", "count": 1}),
        (
            "twice.csv",
            HEAD[:-1] + b",score\n1,a,1,0\n",
            {"code": "column_twice", "columns": ["score"]},
        ),
        (
            "missing.csv",
            HEAD + b"1,a,0.5\n2,b,n/a\n3,a,0.1\n",
            {
                "code": "null_values",
                "side": "predictions",
                "column": "score",
                "count": 1,
                "rows": [1],
            },
        ),
        (
            "comma.csv",
            HEAD + b'1,a,"0,5"\n2,b,"1,0"\n',
            {"code": "wrong_dtype", "side": "predictions", "column": "score"},
        ),
        (
            "nan.csv",
            HEAD + b"1,a,0.5\n2,b,nan\n3,a,0.1\n",
            {
                "code": "null_values",
                "side": "predictions",
                "column": "score",
                "count": 1,
                "rows": [1],
            },
        ),
    ],
)
def test_the_place_is_named(
    tmp_path: Path, name: str, content: bytes, facts: dict[str, Any]
) -> None:
    (tmp_path / name).write_bytes(content)
    with refused(**facts):
        ee.score(str(tmp_path / name), TRUTHS, task="classification")


@pytest.mark.parametrize(
    ("line", "code"), [(HEAD, "header_repeated"), (b"# a comment\n", "comment_lines")]
)
def test_the_file_of_a_glob_is_named(tmp_path: Path, line: bytes, code: str) -> None:
    for i in range(3):
        (tmp_path / f"{i}.csv").write_bytes(HEAD + b"1,a,1\n" + line * (i == 1) + b"2,b,1\n")
    with refused(code, file=str(tmp_path / "1.csv")):
        ee.score(str(tmp_path / "*.csv"), TRUTHS, task="classification")


def test_an_array_in_json_lines_is_named(tmp_path: Path) -> None:
    (tmp_path / "array.jsonl").write_bytes(b"[\n" + ROW[:-1] + b"\n]")
    with refused("file_malformed", line=1, match=r"called \.json"):
        ee.score(str(tmp_path / "array.jsonl"), TRUTHS, task="classification")


def test_unnamed_columns_of_a_csv_are_not_repeated_ones(tmp_path: Path) -> None:
    file = tmp_path / "commas.csv"
    file.write_text("datum_id,label_value,score,,\n1,a,0.5,,\n2,b,0.5,,\n3,a,0.1,,\n")
    assert ee.score(str(file), TRUTHS).value("Accuracy") == 1.0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:word@host/a?sig=S&x=1: gone", "http://[hidden]@host/a?[hidden] gone"),
        ("path: 's3://k:v@b/a.parquet'", "path: 's3://[hidden]@b/a.parquet'"),
        ("Did you mean 'x=1'? Or s3://b/part-?.parquet, or me@host?", None),
    ],
)
def test_secrets_of_addresses_are_hidden(text: str, shown: str | None) -> None:
    assert without_secrets(text) == (text if shown is None else shown)
    assert str(ee.InputError(text)) == without_secrets(text)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_full_standard_output(form: str) -> None:
    tables = [f"examples/detection/{side}.parquet" for side in ("predictions", "groundtruths")]
    command = [sys.executable, "-m", "evalengine", "score", *tables, "--format", form]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert "No space left" in done.stderr
    assert "should not happen" not in done.stderr


class Dataset:
    """Stand-in for a Hugging Face stream that makes no table."""

    __module__ = "datasets.arrow_dataset"


@pytest.mark.parametrize(
    ("thing", "facts"),
    [
        (["dog", "cat"], {"code": "file_missing"}),
        (np.array(["dog", "cat"]), {"code": "truths_missing"}),
        (np.array([0.1, 0.2]), {"code": "truths_missing"}),
        (pl.Series([1, 2]), {"code": "truths_missing"}),
        (pd.Series([1, 2]), {"code": "truths_missing"}),
        (Dataset(), {"code": "not_a_table"}),
        ({"a": ["x", "y"], "b": ["x"]}, {"code": "lengths_differ", "lengths": {"a": 2, "b": 1}}),
    ],
)
def test_objects_that_are_not_tables_are_refused_with_a_remedy(
    thing: object, facts: dict[str, Any]
) -> None:
    with refused(**facts) as error:
        ee.score(thing, {"datum_id": [1], "label_value": ["a"]})
    assert "Error:" not in str(error.value)
