"""Shell completion of files and of option values."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.shell_completion import ShellComplete

from evalengine.cli import cli


@pytest.mark.parametrize(
    ("args", "begun", "expected"),
    [
        (["score", "--dialect"], "valor-l", ["valor-lite"]),
        (["score", "--task", "text", "--metric"], "rougel", ["ROUGEL", "ROUGELsum"]),
        (["score", "--task", "detection", "--metric"], "AP,mAR", ["AP,mAR", "AP,mARAtIOU"]),
        (["score", "--task"], "det", ["detection"]),
        (["score", "--format"], "js", ["json"]),
        (["score", "--task", "detection", "--fail-under"], "mapa", ["mAPAveragedOverIOUs"]),
        (["compare", "--fail-if"], "rougel", ["ROUGEL", "ROUGELsum"]),
        (["metrics"], "rougels", ["ROUGELsum"]),
        (["warmup", "--task"], "det", ["detection"]),
        (["score", "--help"], "al", ["all"]),
        (["plot", "run"], "inter", ["intervals"]),
        (["plot", "run", "labels", "--metric"], "map@", []),
        (["demo"], "re", ["retrieval", "regression"]),
    ],
)
def test_values(args: list[str], begun: str, expected: list[str]) -> None:
    shell = ShellComplete(cli, {}, "evalengine", "_EVALENGINE_COMPLETE")
    assert [item.value for item in shell.get_completions(args, begun)] == expected


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_columns_of_the_given_tables(ending: str, tmp_path: Path) -> None:
    table = pl.DataFrame({"datum_id": [1], "city": ["x"], "weather": ["wet"]})
    path, datums = tmp_path / f"a.{ending}", tmp_path / "datums.csv"
    {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}[ending](
        path
    )
    datums.write_text("datum_id,camera\n1,a\n")
    shell = ShellComplete(cli, {}, "evalengine", "_EVALENGINE_COMPLETE")

    def offered(begun: str, *args: str) -> list[str]:
        return [item.value for item in shell.get_completions(["score", *args], begun)]

    assert offered("c", str(path), "--by") == ["city"]
    assert offered("city,W", str(path), "--by") == ["city,weather"]
    assert offered("c", str(path), "--datums", str(datums), "--cluster") == ["city", "camera"]
    assert offered("c", "missing.csv", "--by") == []
    path.write_bytes(b"PAR1")
    assert offered("c", str(path), "--spread") == []


@pytest.mark.parametrize("args", [["score"], ["score", "a.parquet"], ["check"], ["explain"]])
def test_files(args: list[str]) -> None:
    shell = ShellComplete(cli, {}, "evalengine", "_EVALENGINE_COMPLETE")
    assert [item.type for item in shell.get_completions(args, "a")] == ["file"]
