"""SQL conditions: which table they are held against, and what is said where none fits."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest
from small_tables import ground_truths, kinds, load, predictions, refusal

import evalengine as ee
from evalengine.ingest.frames import Frames

WEATHER = {"datum_id": [1, 2, 3], "weather": ["rain", "sun", "rain"], "width": [640, 480, 640]}


def heights(frames: Frames) -> tuple[int, int]:
    return frames.predictions.height, frames.ground_truths.height


def told(frames: Frames) -> list[tuple[str, int | None]]:
    return [(note.message, note.count) for note in frames.notes if note.kind == "where"]


def test_a_column_of_one_side_filters_that_side() -> None:
    frames = load(where="score > 0.75")
    assert heights(frames) == (2, 3)
    assert frames.predictions["score"].to_list() == [0.9, 0.8]
    assert told(frames) == [("where 'score > 0.75' removed 1 of 3 rows of the predictions.", 1)]


def test_a_column_of_both_sides_filters_both() -> None:
    frames = load(where="label_value = 'cat'")
    assert heights(frames) == (2, 2)
    assert [count for _, count in told(frames)] == [1, 1]


@pytest.mark.parametrize("name", ["conf", "score"])
def test_own_and_canonical_names_both_work(name: str) -> None:
    frames = load(predictions().rename({"score": "conf"}), where=f"{name} > 0.75")
    assert heights(frames) == (2, 3)


def test_own_and_canonical_names_mix() -> None:
    table = predictions(source=["a", "b", "a"]).rename({"score": "conf"})
    frames = load(table, where="score > 0.75 AND source = 'b'")
    assert frames.predictions["score"].to_list() == [0.8]
    assert "source" not in frames.predictions.columns


def test_a_canonical_name_means_the_column_the_user_named_for_it() -> None:
    table = predictions(x=[0.0] * 3, y=[0.0] * 3, w=[1.0, 2.0, 3.0], h=[1.0] * 3)
    table = table.drop("xmin", "ymin", "xmax", "ymax")
    frames = load(table, where="xmax > 1.5")
    assert heights(frames) == (2, 3)


def test_a_column_of_the_datums_filters_whole_datums() -> None:
    frames = load(datums=WEATHER, where="weather = 'sun'")
    assert heights(frames) == (1, 1)
    assert frames.datums is not None
    assert frames.datums["datum_id"].to_list() == [2]
    assert [count for _, count in told(frames)] == [2, 2, 2]


def test_a_slice_column_of_one_side_filters_whole_datums() -> None:
    theirs = ground_truths(weather=["rain", "rain", "sun"])
    frames = load(theirs=theirs, where="weather = 'sun'", by=("weather",))
    assert heights(frames) == (1, 1)
    frames = load(theirs=theirs, where="weather = 'sun'")
    assert heights(frames) == (3, 1)


def test_one_condition_per_table() -> None:
    frames = load(
        datums=WEATHER,
        where={
            "predictions": "score > 0.75",
            "ground_truths": "xmin < 15",
            "datums": "width > 500",
        },
    )
    assert heights(frames) == (2, 2)
    assert kinds(frames) == {"where", "datums_without_predictions", "datums_without_ground_truths"}


def test_a_condition_that_all_rows_meet_removes_none() -> None:
    frames = load(where="score > 0")
    assert heights(frames) == (3, 3)
    assert told(frames)[0][1] == 0


def test_nothing_left_on_one_side_is_legal() -> None:
    frames = load(where="score > 5")
    assert heights(frames) == (0, 3)
    assert frames.predictions.schema == predictions().schema


def test_rows_removed_are_not_checked() -> None:
    table = predictions(score=[0.9, None, 0.7])
    frames = load(table, where="score IS NOT NULL")
    assert heights(frames) == (2, 3)


def test_row_numbers_after_a_condition_say_so() -> None:
    message = refusal(predictions(score=[0.1, None, 0.7]), where="xmin > 5")
    assert message.has("null_values", side="predictions", column="score", count=1, rows=[0])


def test_datums_of_another_meaning_are_no_guess() -> None:
    table = predictions(x=[0.0] * 3, y=[0.0] * 3, width=[1.0, 2.0, 3.0], height=[1.0] * 3)
    table = table.drop("xmin", "ymin", "xmax", "ymax")
    message = refusal(table, datums=WEATHER, where="width > 500")
    assert message.has("ambiguous_column", column="width")
    frames = load(table, datums=WEATHER, where={"predictions": "width > 1.5"})
    assert heights(frames) == (2, 3)


def test_an_unknown_column_answers_with_the_nearest() -> None:
    message = refusal(where="scor > 0.5")
    assert message.has("column_missing", columns=["scor"])


def test_double_quotes_are_names_and_that_is_told() -> None:
    message = refusal(where='label_value = "zebra123"')
    assert "no column 'zebra123'" in message
    assert message.has("column_missing", columns=["label_value", "zebra123"])


def test_columns_of_several_tables_ask_for_one_condition_each() -> None:
    message = refusal(datums=WEATHER, where="weather = 'sun' AND score > 0.5")
    assert message.has("column_missing", columns=["weather", "score"])
    assert 'where={"predictions": "...", "datums": "..."}' in message


@pytest.mark.parametrize("text", ["score >", "score > 1 1", "SELECT * FROM x", "nofunc(score) > 1"])
def test_what_is_no_sql_is_refused(text: str) -> None:
    message = refusal(where=text)
    assert message.has("not_a_condition")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("score + 1", {"code": "not_a_condition", "value": "score + 1"}),
        (
            "label_value > 3",
            {"code": "wrong_dtype", "side": "predictions", "columns": ["label_value"]},
        ),
        ("1 > 0", {"code": "not_a_condition", "value": "1 > 0"}),
    ],
)
def test_what_is_no_condition_is_refused(text: str, words: dict[str, Any]) -> None:
    assert refusal(where=text).has(**words)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"prediction": "score > 1"}, {"code": "unknown_name", "value": "prediction"}),
        ({"datums": "width > 1"}, {"code": "where_side", "side": "datums"}),
        ({"ground_truths": "score > 1"}, {"code": "column_missing", "columns": ["score"]}),
    ],
)
def test_conditions_on_tables_that_are_not_there(where: Any, words: dict[str, Any]) -> None:
    assert refusal(where=where).has(**words)


TIMES = [dt.datetime(2020, 1, 1, 1, 2, 3, 500), dt.datetime(2021, 1, 1, 5)]


@pytest.mark.parametrize(
    ("expr", "where"),
    [
        (pl.col("t").dt.date(), "t = '2020-01-01'"),
        (pl.col("t").dt.date(), "t IN ('2020-01-01') AND y_true >= 0"),
        (pl.col("t").dt.date(), "t = DATE '2020-01-01'"),
        (pl.col("t"), "t < '2021-01-01'"),
        (pl.col("t"), "t = '2020-01-01T01:02:03.000500'"),
        (pl.col("t").dt.time(), "t <= '01:02:04'"),
        (pl.col("t").dt.replace_time_zone("Europe/Berlin"), "t < '2021-01-01 05:00:00'"),
        (pl.col("t").dt.replace_time_zone("Europe/Berlin"), "t < TIMESTAMP '2021-01-01 05:00:00'"),
        (pl.col("t").dt.replace_time_zone("Europe/Berlin"), "t < '2021-01-01 04:00:00Z'"),
        (pl.col("t").dt.replace_time_zone("UTC"), "t < '2021-01-01 06:00:00+01:00'"),
    ],
)
def test_dates_and_times_are_compared_with_texts(expr: pl.Expr, where: str) -> None:
    table = pl.DataFrame({"y_true": [0, 1], "y_pred": [0, 0], "t": TIMES}).with_columns(t=expr)
    card = ee.score(table, task="classification", metrics=["Accuracy"], where=where)
    assert card.value("Accuracy") == 1.0
    assert [one.count for one in card.findings if one.code == "where"] == [1]


@pytest.mark.parametrize(
    "where", ["t > 'yesterday'", "t > '2020-13-01'", "t > '2020-01-01 05:00Z'"]
)
def test_other_texts_are_no_times(where: str) -> None:
    table = pl.DataFrame({"y_true": [0, 1], "y_pred": [0, 0], "t": TIMES})
    with pytest.raises(ee.InputError) as error:
        ee.score(table, task="classification", metrics=["Accuracy"], where=where)
    assert error.value.code == "wrong_dtype"
