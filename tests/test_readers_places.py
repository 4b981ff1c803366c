"""Files that cannot be read name the place, the way out, and no secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evalengine as ee
from evalengine.schemas.wording import without_secrets

TRUTHS = {"datum_id": [1, 2, 3], "label_value": ["a", "b", "a"]}
HEAD = b"datum_id,label_value,score\n"
ROW = b'{"datum_id": 1, "label_value": "a", "score": 0.5}\n'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("more.csv", HEAD + b"1,a,1\n2,b,1,9\n", r"line 3 has 4 fields, and the header 3"),
        ("open.csv", HEAD + b'1,a,1\n2,"b,1\n3,c,1\n', r"line 3: .*Close the quote"),
        ("latin.csv", HEAD + b"1,a,1\n2,caf\xe9,1\n", r"line 3 is not UTF-8 .*'2,caf'.*iconv"),
        ("cut.jsonl", ROW * 2 + ROW[:20], "line 3 is not JSON .*one whole JSON object"),
        ("comma.jsonl", ROW + b'{"datum_id": 2,,\n' + ROW, "line 2 is not JSON "),
        ("list.jsonl", ROW + b"[1, 2]\n", r"line 2 is not JSON object: '\[1, 2\]'"),
        ("twice.csv", HEAD[:-1] + b",score\n1,a,1,0\n", "names 'score' more than once"),
        (
            "missing.csv",
            HEAD + b"1,a,0.5\n2,b,n/a\n3,a,0.1\n",
            r"has 1 null, first \(rows count from 0\): row 1 .*'n/a' is read as missing",
        ),
        ("comma.csv", HEAD + b'1,a,"0,5"\n2,b,"1,0"\n', r"2 of 2 texts .*Write decimal points"),
        ("nan.csv", HEAD + b"1,a,0.5\n2,b,nan\n3,a,0.1\n", r"1 null, .*'nan' is read as missing"),
    ],
)  # fmt: skip
def test_the_place_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ee.InputError, match=said):
        ee.score(str(tmp_path / name), TRUTHS, task="classification")


def test_unnamed_columns_of_a_csv_are_no_repeated_ones(tmp_path: Path) -> None:
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
def test_standard_output_that_takes_no_more(form: str) -> None:
    tables = [f"examples/detection/{side}.parquet" for side in ("predictions", "groundtruths")]
    command = [sys.executable, "-m", "evalengine", "score", *tables, "--format", form]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert "standard output cannot be written: No space left on device." in done.stderr
    assert "should not happen" not in done.stderr


class Dataset:
    """Stands for a stream of Hugging Face's that makes no table."""

    __module__ = "datasets.arrow_dataset"


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (
            ["dog", "cat"],
            "a list of texts is a list of paths, and 'dog' is not a file. Give both sides",
        ),
        (np.array(["dog", "cat"]), "one numpy.ndarray is not a table. Give both sides as values"),
        (np.array([0.1, 0.2]), "one numpy.ndarray is not a table. Give both sides as values"),
        (pl.Series([1, 2]), "one polars.Series is not a table. Give both sides as values"),
        (pd.Series([1, 2]), "one pandas.Series is not a table. Give both sides as values"),
        (Dataset(), "a Dataset is read once, row by row. Give datasets"),
        ({"a": ["x", "y"], "b": ["x"]}, "columns of a table have one length, .*'a' 2, 'b' 1"),
    ],
)
def test_what_is_no_table_names_the_way_out(thing: object, said: str) -> None:
    with pytest.raises(ee.InputError, match=said) as found:
        ee.score(thing, {"datum_id": [1], "label_value": ["a"]})
    assert "Error:" not in str(found.value)
