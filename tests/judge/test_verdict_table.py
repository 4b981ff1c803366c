"""Table of verdicts: tokens, prompts, time, atomic write."""

from __future__ import annotations

import time
from typing import Any

import polars as pl
import pytest

from evalengine.judge.judging import verdict_table, write_whole
from evalengine.judge.run import Outcome, Row, Spent


def outcomes(n: int) -> tuple[list[Row], list[Outcome]]:
    record: dict[str, Any] = {"metric": "Bias", "step": "opinions", "verdict": "yes"}
    rows = [Row(i, {"text": "t"}) for i in range(n)]
    made = [
        Outcome(
            [{**record, "datum_id": i, "item_index": j} for j in range(2)],
            Spent({f"{i}a": (10, 1), f"{i // 2}b": (100, 2)}, {"opinions/1": None, "bias/1": None}),
        )
        for i in range(n)
    ]
    return rows, made


def test_tokens_are_counted_once_and_all_prompts_are_named():
    table = verdict_table(*outcomes(2))
    assert table["datum_id"].to_list() == [0, 0, 1, 1]
    assert table["input_tokens"].to_list() == [110, None, 10, None]
    assert table["output_tokens"].to_list() == [3, None, 1, None]
    assert set(table["prompt"]) == {"opinions/1, bias/1"}


def test_no_rows_make_an_empty_table_with_the_same_columns():
    assert verdict_table([], []).columns == verdict_table(*outcomes(1)).columns


def test_time_is_linear_in_the_number_of_rows():
    """Eight times the rows would take 64 times as long if time were quadratic."""

    def seconds(n: int) -> float:
        given = outcomes(n)
        begun = time.process_time()
        verdict_table(*given)
        return time.process_time() - begun

    seconds(100)
    small = min(seconds(2_000) for _ in range(3))
    assert seconds(16_000) < 24 * max(small, 0.005)


def test_a_failed_write_keeps_the_old_table(tmp_path, monkeypatch):
    target = tmp_path / "v.parquet"
    write_whole(pl.DataFrame({"a": [1]}), target)

    def half(self: pl.DataFrame, file: Any) -> None:
        file.write(b"PAR1 half")
        raise OSError("no space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", half)
    with pytest.raises(OSError, match="no space"):
        write_whole(pl.DataFrame({"a": [2]}), target)
    assert pl.read_parquet(target)["a"].to_list() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]
