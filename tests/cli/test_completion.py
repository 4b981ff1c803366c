"""What a shell completes: files, and values of options."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from evalengine.cli import cli


@pytest.mark.parametrize(
    ("args", "begun", "found"),
    [
        (["score", "--dialect"], "valor-l", ["valor-lite"]),
        (["score", "--task", "text", "--metric"], "rougel", ["ROUGEL", "ROUGELsum"]),
        (["score", "--task", "detection", "--metric"], "AP,mAR", ["AP,mAR", "AP,mARAtIOU"]),
        (["score", "--task"], "det", ["detection"]),
        (["score", "--format"], "js", ["json"]),
    ],
)
def test_values(args: list[str], begun: str, found: list[str]) -> None:
    shell = ShellComplete(cli, {}, "evalengine", "_EVALENGINE_COMPLETE")
    assert [item.value for item in shell.get_completions(args, begun)] == found


@pytest.mark.parametrize("args", [["score"], ["score", "a.parquet"], ["check"], ["explain"]])
def test_files(args: list[str]) -> None:
    shell = ShellComplete(cli, {}, "evalengine", "_EVALENGINE_COMPLETE")
    assert [item.type for item in shell.get_completions(args, "a")] == ["file"]
