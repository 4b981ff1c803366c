"""SQL conditions: the tables they apply to, and messages if they apply to none."""

from __future__ import annotations

import datetime as dt
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import polars as pl
import pytest
from refusals import refused
from small_tables import ground_truths, kinds, load, predictions, refusal

import evalengine as ee
from evalengine.ingest.frames import Frames

WEATHER = {"datum_id": [1, 2, 3], "weather": ["rain", "sun", "rain"], "width": [640, 480, 640]}


def heights(frames: Frames) -> tuple[int, int]:
    return frames.predictions.height, frames.ground_truths.height


def kinds_and_counts(frames: Frames) -> list[tuple[str, int | None]]:
    return [(note.message, note.count) for note in frames.notes if note.kind == "where"]


def test_a_column_of_one_side_filters_that_side() -> None:
    frames = load(where="score > 0.75")
    assert heights(frames) == (2, 3)
    assert frames.predictions["score"].to_list() == [0.9, 0.8]
    assert kinds_and_counts(frames) == [
        ("where 'score > 0.75' removed 1 of 3 rows of the predictions.", 1)
    ]


def test_a_column_of_both_sides_filters_both() -> None:
    frames = load(where="label_value = 'cat'")
    assert heights(frames) == (2, 2)
    assert [count for _, count in kinds_and_counts(frames)] == [1, 1]


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


def test_a_column_of_the_datums_filters_complete_datums() -> None:
    frames = load(datums=WEATHER, where="weather = 'sun'")
    assert heights(frames) == (1, 1)
    assert frames.datums is not None
    assert frames.datums["datum_id"].to_list() == [2]
    assert [count for _, count in kinds_and_counts(frames)] == [2, 2, 2]


def test_a_slice_column_of_one_side_filters_complete_datums() -> None:
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


def test_a_condition_that_all_rows_satisfy_removes_none() -> None:
    frames = load(where="score > 0")
    assert heights(frames) == (3, 3)
    assert kinds_and_counts(frames)[0][1] == 0


def test_an_empty_side_is_legal() -> None:
    frames = load(where="score > 5")
    assert heights(frames) == (0, 3)
    assert frames.predictions.schema == predictions().schema


def test_rows_removed_are_not_checked() -> None:
    table = predictions(score=[0.9, None, 0.7])
    frames = load(table, where="score IS NOT NULL")
    assert heights(frames) == (2, 3)


def test_row_numbers_after_a_condition_are_marked() -> None:
    message = refusal(predictions(score=[0.1, None, 0.7]), where="xmin > 5")
    assert message.has("null_values", side="predictions", column="score", count=1, rows=[0])


def test_datums_of_another_meaning_are_not_guessed() -> None:
    table = predictions(x=[0.0] * 3, y=[0.0] * 3, width=[1.0, 2.0, 3.0], height=[1.0] * 3)
    table = table.drop("xmin", "ymin", "xmax", "ymax")
    message = refusal(table, datums=WEATHER, where="width > 500")
    assert message.has("ambiguous_column", column="width")
    frames = load(table, datums=WEATHER, where={"predictions": "width > 1.5"})
    assert heights(frames) == (2, 3)


def test_scores_of_judgments_are_not_filtered_with_those_of_a_run() -> None:
    run = pl.DataFrame({"query_id": ["a", "a"], "doc_id": ["b", "c"], "score": [0.1, 0.9]})
    judged = run.with_columns(score=pl.Series([2, 1]))  # BEIR's name of grades
    with refused("ambiguous_column", column="score"):
        ee.score(run, judged, task="retrieval", where="score > 0.5")
    card = ee.score(run, judged, task="retrieval", where={"predictions": "score > 0.5"})
    assert card.run["inputs"]["ground_truths"]["rows"] == 2


def test_an_unknown_column_suggests_the_nearest() -> None:
    message = refusal(where="scor > 0.5")
    assert message.has("column_missing", columns=["scor"])


def test_double_quotes_are_names_with_a_note() -> None:
    message = refusal(where='label_value = "zebra123"')
    assert "no column 'zebra123'" in message
    assert message.has("column_missing", columns=["label_value", "zebra123"])


def test_columns_of_several_tables_ask_for_one_condition_each() -> None:
    message = refusal(datums=WEATHER, where="weather = 'sun' AND score > 0.5")
    assert message.has("column_missing", columns=["weather", "score"])
    assert 'where={"predictions": "...", "datums": "..."}' in message


@pytest.mark.parametrize("text", ["score >", "score > 1 1", "SELECT * FROM x", "nofunc(score) > 1"])
def test_invalid_sql_is_refused(text: str) -> None:
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
def test_other_statements_are_refused(text: str, words: dict[str, Any]) -> None:
    assert refusal(where=text).has(**words)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"prediction": "score > 1"}, {"code": "unknown_name", "value": "prediction"}),
        ({"datums": "width > 1"}, {"code": "where_side", "side": "datums"}),
        ({"ground_truths": "score > 1"}, {"code": "column_missing", "columns": ["score"]}),
    ],
)
def test_conditions_on_missing_tables(where: Any, words: dict[str, Any]) -> None:
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
def test_other_texts_are_not_times(where: str) -> None:
    table = pl.DataFrame({"y_true": [0, 1], "y_pred": [0, 0], "t": TIMES})
    with pytest.raises(ee.InputError) as error:
        ee.score(table, task="classification", metrics=["Accuracy"], where=where)
    assert error.value.code == "wrong_dtype"


DAYS = pl.Series("g", [date(2020, 1, 1), date(2020, 1, 31), None, date(2021, 6, 1)])
MOMENTS = DAYS.cast(pl.Datetime("us")) + timedelta(hours=12, microseconds=5)
OF_KIND = {
    "date": DAYS,
    "moment": MOMENTS,
    "milliseconds": MOMENTS.cast(pl.Datetime("ms")),
    "zone": MOMENTS.dt.replace_time_zone("Europe/Berlin"),
    "nanoseconds": MOMENTS.cast(pl.Datetime("ns", "UTC")),
    "time": MOMENTS.dt.time(),
}
SELECTED = [
    ("date", "g = '2020-01-01'", [0]),
    ("date", "'2020-01-31' <= g", [1, 3]),
    ("date", "g != '2020-01-31' AND name <> 'g = ''2020-01-01'''", [0, 3]),
    ("date", "\"g\" IN ('2020-01-01','2021-06-01')", [0, 3]),
    ("date", "g not between '2020-01-02' and '2020-12-31' AND name > 'A'", [0, 3]),
    ("date", "g > DATE '2020-01-01' AND g < '2021-01-01'", [1]),
    ("date", "g > '1960-01-01' AND g < '2020-02-01'", [0, 1]),
    ("moment", "g > '2020-01-31'", [1, 3]),
    ("moment", "g = '2020-01-01 12:00:00.000005' OR g > '2021-01-01T00:00'", [0, 3]),
    ("milliseconds", "g = '2020-01-01 12:00:00'", [0]),
    ("zone", "g <= '2020-01-31 12:00:00.000005'", [0, 1]),
    ("zone", "g = '2020-01-31 11:00:00.000005Z'", [1]),
    ("zone", "g < '2021-06-01 10:00:00.000005+00:00'", [0, 1]),
    ("zone", "g > TIMESTAMP '2020-01-31 12:00:00' AND name <> '2020-01-31'", [1, 3]),
    ("nanoseconds", "g >= '2020-01-31 12:00:00.000005001'", [3]),
    ("time", "g = '12:00:00.000005' OR g < '11:59'", [0, 1, 3]),
]


def dated(kind: str) -> pl.DataFrame:
    rows = {"datum_id": range(4), "y_true": [0, 1, 0, 1], "y_pred": [0, 1, 1, 1], "name": [*"abcd"]}
    return pl.DataFrame(rows).with_columns(OF_KIND[kind])


@pytest.mark.parametrize(("kind", "where", "rows"), SELECTED)
def test_comparisons_of_times_with_texts_are_exact(kind: str, where: str, rows: list[int]) -> None:
    card = ee.score(dated(kind), task="classification", metrics=["Accuracy"], where=where)
    only = dated(kind).filter(pl.col("datum_id").is_in(rows))
    expected = ee.score(only, task="classification", metrics=["Accuracy"])
    assert card.value("Accuracy") == expected.value("Accuracy")
    (finding,) = [one for one in card.findings if one.code == "where"]
    assert finding.count == 4 - len(rows)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("date", "g = '2020-13-01'"),
        ("date", "g >= '2020-01-01 12:00'"),
        ("date", "g > '2020-01'"),
        ("moment", "g > '2020-01-01T00:00Z'"),
        ("zone", "g > '2020-03-29 02:30'"),
        ("time", "g > 'noon'"),
        ("date", "upper(g) = '2020-01-01'"),
    ],
)
def test_invalid_dates_are_refused_with_a_remedy(kind: str, where: str) -> None:
    with pytest.raises(ee.InputError, match=r"g >= '2020-01-31'") as caught:
        ee.score(dated(kind), task="classification", where=where)
    assert caught.value.code == "wrong_dtype"
    assert "python" not in str(caught.value)


@pytest.mark.parametrize("kind", OF_KIND)
def test_the_condition_of_a_slice_of_times_selects_it(kind: str) -> None:
    n = 200
    true, wrong = [0, 1] * n, [i // 2 % 2 for i in range(2 * n)]
    table = pl.DataFrame({"datum_id": range(2 * n), "y_true": true}).with_columns(
        y_pred=pl.Series(true) ^ pl.Series(wrong),
        g=OF_KIND[kind].gather([0, 0, 3, 3] * (n // 2)) if kind != "time" else
        pl.Series([time(1), time(1), time(2, 30), time(2, 30)] * (n // 2)),
    )  # fmt: skip
    (row,) = ee.find_slices(table, task="classification").frame.to_dicts()
    card = ee.score(table, task="classification", where=row["where"], metrics=["Accuracy"])
    assert card.value("Accuracy") == 0.0


def test_repeated_hours_of_clocks_are_distinguished() -> None:
    utc = [datetime(2020, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1, 2)]
    rows = {"datum_id": range(3), "y_true": [0, 1, 0], "y_pred": [0, 1, 1], "g": utc}
    table = pl.DataFrame(rows).with_columns(pl.col("g").dt.convert_time_zone("Europe/Berlin"))
    card = ee.score(table, task="classification", where="g = '2020-10-25 02:30:00+02:00'")
    assert [one.count for one in card.findings if one.code == "where"] == [2]
