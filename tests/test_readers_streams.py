"""Tables from standard input and pipes, and files that are not tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from refusals import noted

import evalengine as ee
from evalengine.schemas.errors import OptionError, ReadError

TRUTHS = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": ["a", "b", "a"]})
GUESSES = TRUTHS.with_columns(score=pl.lit(0.5))
CODE = "import sys; from evalengine.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize(("path", "form"), [("-", "parquet"), ("/dev/stdin", "ndjson")])
def test_standard_input(path: str, form: str, tmp_path: Path) -> None:
    TRUTHS.write_parquet(tmp_path / "truths.parquet")
    file = tmp_path / f"guesses.{form}"
    getattr(GUESSES, f"write_{form}")(file)
    with open(file, "rb") as given:
        # Through a pipe, which can be read only once.
        pipe = subprocess.Popen(["cat"], stdin=given, stdout=subprocess.PIPE)
        done = subprocess.run(
            [sys.executable, "-c", CODE, "score", path, str(tmp_path / "truths.parquet"),
             "--metric", "Accuracy", "--format", "json"],
            stdin=pipe.stdout, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert pipe.stdout is not None
        pipe.stdout.close()
        pipe.wait()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"][0]["value"] == 1.0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_named_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = GUESSES.write_csv().encode()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    writer.start()
    card = ee.score(str(tmp_path / "pipe"), TRUTHS, metrics=["Accuracy"])
    writer.join()
    assert card.value("Accuracy") == 1.0


def test_empty_input(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="it is empty"):
        ee.score("/dev/null", TRUTHS)


def test_tables_without_rows_are_reported() -> None:
    card = ee.score(GUESSES.clear(), TRUTHS.clear(), task="classification")
    noted(card, "no_rows", severity="warning", count=0)
    card = ee.score(
        GUESSES.clear(), TRUTHS, task="classification"
    )  # an interrupted run is possible
    warned = [one.code for one in card.findings if one.severity == "warning"]
    assert warned == ["datums_without_predictions"]
    with pytest.raises(OptionError, match="metrics is empty"):
        ee.score(GUESSES, TRUTHS, metrics=[])


@pytest.mark.parametrize("kind", ["narwhals", "narwhals lazy", "narwhals pandas", "dask"])
def test_frames_of_other_libraries(kind: str) -> None:
    """Frames that also convert to an array are read as tables."""
    columns = {"datum_id": [1, 2, 3], "actual": ["a", "b", "a"], "predicted": ["a", "b", "b"]}
    frame = pl.DataFrame(columns)
    if kind == "dask":
        dask = pytest.importorskip("dask.dataframe")
        table = dask.from_pandas(frame.to_pandas(), npartitions=2)
    else:
        narwhals = pytest.importorskip("narwhals")
        inner = {"narwhals": frame, "narwhals lazy": frame.lazy()}.get(kind, frame.to_pandas())
        table = narwhals.from_native(inner)
    assert ee.score(table).value("Accuracy") == 2 / 3
