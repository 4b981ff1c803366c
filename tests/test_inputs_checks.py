"""Every refusal names column, count, first rows and remedy; nothing valid is refused."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import CORNERS, ground_truths, kinds, load, note, predictions, refusal

from evalengine.ingest.problems import ChecksFailed
from evalengine.schemas.errors import InputError

TYPES: list[tuple[str, Any, str]] = [
    ("datum_id", [1.0, 1.0, 2.0], "whole numbers as integers"),
    ("datum_id", [True, True, False], "integers or strings"),
    ("datum_id", [datetime.date(2020, 1, 1)] * 3, "integers or strings"),
    ("label_value", [[1], [2], [3]], "integers or strings"),
    ("label_value", [b"a", b"b", b"c"], "integers or strings"),
    ("label_key", [1.5, 1.5, 1.5], "strings"),
    ("score", ["0.9", "0.8", "0.7"], "numbers"),
    ("score", [True, True, True], "numbers"),
    ("xmin", ["0", "1", "2"], "numbers"),
]


@pytest.mark.parametrize(("column", "values", "words"), TYPES)
def test_wrong_types_are_refused(column: str, values: Any, words: str) -> None:
    message = refusal(predictions(**{column: pl.Series(values)}))
    assert f"column {column!r} has dtype" in message
    assert words in message


def test_a_wrong_type_names_the_users_own_column() -> None:
    message = refusal(predictions().rename({"score": "conf"}).with_columns(conf=pl.lit("high")))
    assert message.has("wrong_dtype", side="predictions", column="score")


@pytest.mark.parametrize("column", ["iscrowd", "ignore"])
def test_flags_that_are_text_are_refused(column: str) -> None:
    message = refusal(theirs=ground_truths(**{column: ["0", "1", "0"]}))
    assert message.has("wrong_dtype", side="ground_truths")


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
)
def test_integer_ids_become_int64(dtype: pl.DataType) -> None:
    cast = [pl.col("datum_id").cast(dtype), pl.Series("label_value", [1, 2, 1], dtype=dtype)]
    frames = load(predictions().with_columns(cast), ground_truths(label_value=[1, 2, 1]))
    assert frames.predictions.schema["datum_id"] == pl.Int64
    assert frames.predictions.schema["label_value"] == pl.Int64
    assert frames.predictions["datum_id"].to_list() == [1, 1, 2]


def test_integers_beyond_int64_stay_unsigned_on_both_sides() -> None:
    big = pl.Series([2**64 - 1, 1, 2], dtype=pl.UInt64)
    frames = load(predictions(datum_id=big))
    assert frames.predictions.schema["datum_id"] == pl.UInt64
    assert frames.ground_truths.schema["datum_id"] == pl.UInt64
    assert frames.predictions["datum_id"].to_list() == [2**64 - 1, 1, 2]


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["cat", "dog"]), pl.String()])
def test_text_of_any_kind_becomes_string(dtype: pl.DataType) -> None:
    frames = load(predictions().with_columns(pl.col("label_value").cast(dtype)))
    assert frames.predictions.schema["label_value"] == pl.String
    assert frames.predictions["label_value"].to_list() == ["cat", "dog", "cat"]


def test_scores_keep_single_precision_and_everything_else_becomes_double() -> None:
    numbers = [pl.col("score").cast(pl.Float32), pl.col(CORNERS).cast(pl.Float32)]
    frame = load(predictions().with_columns(numbers)).predictions
    assert frame.schema["score"] == pl.Float32
    assert all(frame.schema[name] == pl.Float64 for name in CORNERS)
    whole = predictions(score=[1, 0, 1]).with_columns(pl.col(CORNERS).cast(pl.Int32))
    frame = load(whole).predictions
    assert frame.schema["score"] == pl.Float64
    assert frame["xmax"].to_list() == [5.0, 15.0, 25.0]


def test_decimals_become_floats() -> None:
    decimals = pl.Series([Decimal("0.9"), Decimal("0.8"), Decimal("0.7")])
    assert load(predictions(score=decimals)).predictions["score"].to_list() == [0.9, 0.8, 0.7]


@pytest.mark.parametrize("values", [[0, 1, 0], [False, True, False], [0.0, 1.0, 0.0]])
def test_flags_become_boolean(values: list[Any]) -> None:
    frame = load(theirs=ground_truths(iscrowd=values)).ground_truths
    assert frame["iscrowd"].to_list() == [False, True, False]


@pytest.mark.parametrize(
    ("side", "column"),
    [
        ("predictions", "datum_id"), ("predictions", "label_value"), ("predictions", "score"),
        ("predictions", "label_key"), ("predictions", "ymax"), ("ground_truths", "datum_id"),
        ("ground_truths", "xmin"), ("ground_truths", "iscrowd"), ("ground_truths", "area"),
        ("ground_truths", "annotation_id"),
    ],
)  # fmt: skip
def test_nulls_are_refused(side: str, column: str) -> None:
    plain = {"label_key": ["k"] * 3, "iscrowd": [0] * 3, "area": [1.0] * 3,
             "annotation_id": [1, 2, 3]}  # fmt: skip
    table = predictions(label_key=["k"] * 3) if side == "predictions" else ground_truths(**plain)
    holed = table.with_columns(
        pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise(pl.col(column)).alias(column)
    )
    both = (holed, ground_truths()) if side == "predictions" else (predictions(), holed)
    message = refusal(*both)
    assert message.has("null_values", count=1, rows=[1])
    assert message.startswith(side.replace("_", " "))


def test_the_advice_for_nulls_quotes_an_odd_name() -> None:
    """The condition in the message can be typed as it is."""
    table = predictions().rename({"score": "sco re*"})
    holed = table.with_columns(pl.when(pl.int_range(pl.len()) > 0).then("sco re*").alias("sco re*"))
    columns = {"sco re*": "score"}
    assert refusal(holed, ground_truths(), columns=columns).has(
        "null_values", side="predictions", column="score", count=1, rows=[0]
    )
    remaining = load(holed, columns=columns, where='"sco re*" IS NOT NULL').predictions
    assert remaining.height == table.height - 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", ["score", "xmin", "ymax"])
def test_values_that_are_not_finite_are_refused(column: str, value: float) -> None:
    table = predictions()
    values = table[column].to_list()
    values[2] = value
    message = refusal(table.with_columns(pl.Series(column, values)))
    assert message.has("not_finite", side="predictions", count=1, rows=[2])
    assert f"{column}={value!r}" in message


def test_plus_and_minus_infinity_do_not_hide_each_other() -> None:
    message = refusal(predictions(score=[math.inf, -math.inf, 0.5]))
    assert message.has("not_finite", side="predictions", column="score", count=2, rows=[0, 1])


def test_an_infinite_ground_truth_area_is_refused() -> None:
    assert "column 'area': 1 row" in refusal(theirs=ground_truths(area=[1.0, math.inf, 2.0]))


def test_huge_finite_values_whose_sum_overflows_are_fine() -> None:
    huge = [1.7e308, 1.7e308, 1.7e308]
    assert load(predictions(score=huge)).predictions["score"].to_list() == huge


def test_inverted_boxes_are_refused() -> None:
    message = refusal(predictions(xmax=[5.0, 9.0, 25.0], ymax=[0.5, 17.0, 27.0]))
    assert message.has("inverted_boxes", side="predictions", column="xmin", count=2, rows=[0, 1])
    assert "in a file of annotations" in str(message)
    assert "row 0 (datum_id=1" in message
    assert "row 1 (datum_id=1" in message
    assert "box_width" in message


def test_zero_area_boxes_are_counted_in_a_note() -> None:
    frames = load(predictions(xmax=[0.0, 15.0, 20.0]), ground_truths(ymax=[1.0, 17.0, 27.0]))
    notes = [note for note in frames.notes if note.kind == "zero_area_boxes"]
    assert [note.count for note in notes] == [2, 1]
    assert (notes[0].count, notes[0].before) == (2, "predictions: ")


def test_boxes_of_zeros_are_counted_in_ground_truths() -> None:
    """In tables of some tools they mark images without objects; here they count as objects."""
    zeros = {name: [0.0, 7.0, 0.0] for name in ("xmin", "ymin")}
    zeros |= {name: [0.0, 17.0, 0.0] for name in ("xmax", "ymax")}
    frames = load(predictions(**zeros), ground_truths(**zeros))
    assert [note.count for note in frames.notes if note.kind == "boxes_of_zeros"] == [2]


def test_negative_extents_are_refused_once() -> None:
    table = predictions(x=[0.0] * 3, y=[0.0] * 3, w=[1.0, -2.0, 1.0], h=[1.0] * 3).drop(CORNERS)
    message = refusal(table)
    assert message.has("too_low", side="predictions", column="box_width", count=1, rows=[1])
    assert "box_width=-2.0" in message
    assert "inverted" not in message


def test_a_negative_area_is_refused() -> None:
    message = refusal(theirs=ground_truths(area=[1.0, -1.0, 2.0]))
    assert message.has("too_low", side="ground_truths", column="area", count=1, rows=[1])


@pytest.mark.parametrize("values", [[0, 2, 1], [0.0, 0.5, 1.0], [0, -1, 0]])
def test_flags_other_than_0_and_1_are_refused(values: list[Any]) -> None:
    message = refusal(theirs=ground_truths(iscrowd=values))
    assert message.has("not_a_flag", side="ground_truths", column="iscrowd", count=1, rows=[1])
    assert f"iscrowd={values[1]!r}" in message


@pytest.mark.parametrize("ids", [[7, 8, 7], ["a", "b", "a"], [2**40, 5, 2**40]])
def test_annotation_ids_are_unique(ids: list[Any]) -> None:
    message = refusal(theirs=ground_truths(annotation_id=ids))
    assert message.has(
        "repeated_values",
        side="ground_truths",
        column="annotation_id",
        count=2,
        rows=[0, 2],
        values=1,
        key=["annotation_id"],
    )
    assert "row 0 (" in message
    assert "row 2 (" in message
    assert "row 1 (" not in message


def test_identical_boxes_are_legal() -> None:
    table = pl.concat([predictions(), predictions()])
    assert load(table).predictions.height == 6


def test_datums_are_unique() -> None:
    message = refusal(datums=[1, 2, 1])
    assert message.has(
        "repeated_values",
        side="datums",
        column="datum_id",
        count=2,
        rows=[0, 2],
        values=1,
        key=["datum_id"],
    )


def test_labels_are_unique_under_each_key() -> None:
    assert refusal(labels=["cat", "dog", "cat"]).has(
        "repeated_values",
        side="labels",
        column="label_value",
        count=2,
        rows=[0, 2],
        values=1,
        key=["label_value"],
    )
    table = {"label_key": ["a", "b"], "label_value": ["cat", "cat"]}
    assert load(labels=table).labels is not None
    table = {"label_key": ["a", "a"], "label_value": ["cat", "cat"]}
    assert refusal(labels=table).has(
        "repeated_values",
        side="labels",
        column="label_value",
        count=2,
        rows=[0, 1],
        values=1,
        key=["label_key", "label_value"],
    )


def test_all_problems_of_both_sides_are_reported_together() -> None:
    ours = predictions(score=[math.nan, 2.0, None], xmax=[-1.0, 15.0, 25.0]).drop("label_value")
    theirs = ground_truths(iscrowd=[3, 0, 0], area=[-1.0, 0.0, 0.0])
    with pytest.raises(ChecksFailed) as caught:
        load(ours, theirs)
    problems = caught.value.problems
    assert [(problem.side, problem.column, problem.count) for problem in problems] == [
        ("predictions", "label_value", None),
        ("predictions", "score", 1),
        ("predictions", "score", 1),
        ("predictions", "xmin", 1),
        ("ground_truths", "iscrowd", 1),
        ("ground_truths", "area", 1),
    ]
    assert str(caught.value).count("\n- ") == 6
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, ValueError)


def test_only_the_first_three_rows_are_shown() -> None:
    table = pl.concat([predictions(score=[math.nan] * 3)] * 10)
    message = refusal(table)
    assert "30 rows with NaN" in message
    assert message.count("row 0 (") == message.count("row 2 (") == 1
    assert "row 3 (" not in message


@pytest.mark.parametrize("column", ["dataset", "width"])
def test_columns_that_may_be_empty_may_be(column: str) -> None:
    table = {"datum_id": [1, 2], column: [None, None]}
    frames = load(datums=table)
    assert frames.datums is not None
    assert frames.datums[column].null_count() == 2


def test_a_clean_pair_has_no_notes() -> None:
    assert kinds(load()) == set()


def test_the_note_has_the_count() -> None:
    frames = load(predictions(xmax=[0.0, 15.0, 25.0]))
    assert note(frames, "zero_area_boxes").startswith("predictions: 1 box has")


sane = st.floats(-1e9, 1e9, allow_nan=False)
odd = st.one_of(sane, st.sampled_from([math.nan, math.inf, -math.inf, None]))


@given(st.lists(st.tuples(odd, odd, odd, odd, odd), min_size=1, max_size=8))
def test_a_table_is_refused_exactly_if_a_row_is_bad(rows: list[tuple[float | None, ...]]) -> None:
    def bad(row: tuple[float | None, ...]) -> bool:
        if any(value is None or not math.isfinite(value) for value in row):
            return True
        _, xmin, ymin, xmax, ymax = row
        return xmax < xmin or ymax < ymin  # type: ignore[operator]

    columns = dict(zip(["score", *CORNERS], zip(*rows, strict=True), strict=True))
    table = pl.DataFrame(
        {"datum_id": [1] * len(rows), "label_value": ["cat"] * len(rows), **columns},
        schema_overrides=dict.fromkeys(["score", *CORNERS], pl.Float64),
    )
    if any(map(bad, rows)):
        refusal(table)
    else:
        assert load(table).predictions.equals(table)
