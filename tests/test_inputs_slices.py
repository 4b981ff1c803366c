"""Slice columns are found, constant within a datum, crossed, and null if a datum has no value."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loading import load_frames
from refusals import refused
from small_tables import counted, ground_truths, kinds, load, predictions, refusal

import evalengine as ee
from evalengine.ingest.slices import slice_text
from evalengine.schemas.contract import ROW
from evalengine.schemas.errors import InputError
from evalengine.schemas.option_values import make_options

DATUMS = pl.DataFrame(
    {"datum_id": [2, 1, 3], "weather": ["sun", "rain", "rain"], "camera": [7, 8, None]}
)


def test_without_by_there_are_no_slices() -> None:
    assert load(datums=DATUMS).slices is None


def test_slices_come_from_the_datums_by_ascending_id() -> None:
    slices = load(datums=DATUMS, by=("weather", "camera")).slices
    assert slices is not None
    assert slices.rows() == [(1, "rain", "8"), (2, "sun", "7"), (3, "rain", None)]
    assert slices.schema == {"datum_id": pl.Int64, "weather": pl.String, "camera": pl.String}


@pytest.mark.parametrize("option", ["by", "cluster"])
def test_a_slice_column_is_not_the_id_next_to_another_one(option: str) -> None:
    """TREC calls a query a topic."""
    found = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "x"], "score": [0.5, 0.25]})
    judged = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "y"], "relevance": [1, 1]})
    datums = pl.DataFrame({"query_id": ["a", "b"], "topic": ["t", "u"]})
    card = ee.score(
        found, judged, datums=datums, metrics=["MRR"], intervals=95, draws=20, **{option: "topic"}
    )
    assert card.value("MRR") == 0.5
    with refused("ambiguous_column", column="datum_id"):
        ee.score(found, judged, datums=datums, metrics=["MRR"])


def test_crossed_slices_join_their_values() -> None:
    frames = load(datums=DATUMS, by=("weather*camera",))
    assert frames.slices is not None
    assert frames.slices.rows() == [(1, "rain*8"), (2, "sun*7"), (3, None)]
    assert counted(frames, "datums_without_slice") == (1, [3])


@pytest.mark.parametrize("values", [("a\\", "b*c", "a*b\\", "c"), ("a*", "b", "a", "*b")])
def test_crossed_values_do_not_merge(values: tuple[str, ...]) -> None:
    one, other = values[::2], values[1::2]
    datums = pl.DataFrame({"datum_id": [1, 2], "one": one, "other": other})
    frames = load(datums=datums, by=("one*other",))
    assert frames.slices is not None
    assert frames.slices["one*other"].n_unique() == 2


def test_slices_of_several_tables_are_crossed() -> None:
    frames = load(
        predictions(model=["a", "a", "b"]),
        ground_truths(city=["x", "x", "y"]),
        datums=DATUMS,
        by=("model*city*weather", "city"),
    )
    assert frames.slices is not None
    assert frames.slices.rows() == [(1, "a*x*rain", "x"), (2, "b*y*sun", "y"), (3, None, None)]
    assert "model" not in frames.predictions.columns
    assert "city" not in frames.ground_truths.columns


def test_the_datums_win_over_the_sides() -> None:
    frames = load(predictions(weather=["fog"] * 3), datums=DATUMS, by=("weather",))
    assert frames.slices is not None
    assert frames.slices["weather"].to_list() == ["rain", "sun", "rain"]


def test_a_datum_of_one_side_without_value_has_null() -> None:
    frames = load(predictions(weather=["fog"] * 3, datum_id=[1, 1, 1]), by=("weather",))
    assert frames.slices is not None
    assert frames.slices.rows() == [(1, "fog"), (2, None)]
    assert counted(frames, "datums_without_slice") == (1, [2])


def test_canonical_columns_slice_too_and_stay() -> None:
    frames = load(predictions(dataset=["d1", "d1", "d2"]), by=("dataset",))
    assert frames.slices is not None
    assert frames.slices["dataset"].to_list() == ["d1", "d2"]
    assert "dataset" in frames.predictions.columns


@pytest.mark.parametrize(
    ("values", "texts"),
    [([True, True, False], ["true", "false"]), ([1.5, 1.5, 2.0], ["1.5", "2.0"])],
)
def test_slice_values_are_strings(values: list[object], texts: list[str]) -> None:
    frames = load(predictions(mark=values), by=("mark",))
    assert frames.slices is not None
    assert frames.slices["mark"].to_list() == texts


def test_columns_that_vary_within_a_datum_are_refused() -> None:
    message = refusal(predictions(weather=["rain", "sun", "sun"]), by=("weather",))
    assert message.has("varies_within_datum", column="weather", count=1, first=0)


def test_a_value_and_a_null_in_one_datum_vary() -> None:
    message = refusal(predictions(weather=["rain", None, "sun"]), by=("weather",))
    assert "'rain', None" in message


def test_an_unknown_slice_column_suggests_the_nearest() -> None:
    message = refusal(datums=DATUMS, by=("wether",))
    assert message.has("column_missing", column="wether")
    assert "(in 'camera*wether')" in refusal(datums=DATUMS, by=("camera*wether",))


def test_lists_are_not_slices() -> None:
    message = refusal(predictions(tags=[["a"]] * 3), by=("tags",))
    assert message.has("wrong_dtype", side="predictions", column="tags")


def test_the_same_entry_twice_is_one() -> None:
    slices = load(datums=DATUMS, by=("weather", "weather")).slices
    assert slices is not None
    assert slices.columns == ["datum_id", "weather"]


def test_complete_slices_have_no_note() -> None:
    assert "datums_without_slice" not in kinds(load(datums=DATUMS, by=("weather",)))


def test_where_keeps_slices_of_the_remaining_datums() -> None:
    frames = load(datums=DATUMS, by=("weather",), where="weather = 'rain'")
    assert frames.slices is not None
    assert frames.slices.rows() == [(1, "rain"), (3, "rain")]


def by_row(table: dict[str, object], **options: object) -> pl.DataFrame:
    given = {"actual": [0, 1, 1], "predicted": [0, 1, 0], **table}
    datums = options.pop("datums", None)
    frames = load_frames(
        pl.DataFrame(given), datums=datums, options=make_options(**options), task="classification"
    )
    assert frames.by_row
    assert frames.slices is not None
    return frames.slices


@pytest.mark.parametrize("ids", [{}, {"datum_id": [9, 7, 8]}])
def test_slices_of_one_table_are_row_by_row_in_their_own_dtype(ids: dict[str, object]) -> None:
    cat = pl.Series(["u", "v", "u"], dtype=pl.Categorical)
    table = {
        **ids,
        "n": [5, 3, 5],
        "flag": [True, False, None],
        "cat": cat,
        "text": ["a", "b*", "a"],
    }
    slices = by_row(table, by=["n", "flag", "cat", "text*n"])
    assert dict(slices.schema) == {
        "n": pl.Int64, "flag": pl.Boolean, "cat": pl.Categorical, "text*n": pl.String,
    }  # fmt: skip
    assert slices.rows() == [
        (5, True, "u", "a*5"),
        (3, False, "v", r"b\**3"),
        (5, None, "u", "a*5"),
    ]


def test_rows_without_a_slice_are_noted() -> None:
    frames = load_frames(
        {"actual": [0, 1], "predicted": [0, 1], "g": [1, None]},
        options=make_options(by="g"),
        task="classification",
    )
    assert counted(frames, "datums_without_slice") == (1, [1])
    assert frames.table is not None
    assert "g" not in frames.table.columns


def test_slices_of_the_datums_follow_the_rows() -> None:
    datums = {"datum_id": [1, 2, 3, 4], "g": [10, 20, 30, 40]}
    slices = by_row({"datum_id": [3, 1, 2], "h": ["x", "y", "z"]}, by=["g", "h", "g*h"],
                    datums=datums)  # fmt: skip
    assert slices.rows() == [(30, "x", "30*x"), (10, "y", "10*y"), (20, "z", "20*z")]


def test_text_of_slice_values() -> None:
    assert slice_text(pl.Series("x", [1.0, 2.0])).to_list() == ["1", "2"]
    assert slice_text(pl.Series("x", [True, None])).to_list() == ["true", None]


def test_the_column_of_row_numbers_is_not_a_slice() -> None:
    table = {"actual": [0, 1], "predicted": [0, 1], ROW: [7, 8]}
    with refused("reserved_name", InputError, column="__evalengine_row"):
        load_frames(table, options=make_options(by=ROW), task="classification")


def test_a_column_is_found_by_its_complete_name_first() -> None:
    """Stars and blanks belong to a name; in a cross, a star of a name has a backslash."""
    table = DATUMS.rename({"weather": "a*b", "camera": "c "}).with_columns(
        a=pl.col("datum_id"), c=pl.lit("x")
    )
    by = ("a*b", "c ", "c", r"a\*b*c ", "a * c")
    slices = load(datums=table, by=by).slices
    assert slices is not None
    assert slices.rows() == [
        (1, "rain", "8", "x", "rain*8", "1*x"),
        (2, "sun", "7", "x", "sun*7", "2*x"),
        (3, "rain", None, "x", None, "3*x"),
    ]
    blank = load(datums=DATUMS, by=(" weather ",)).slices
    assert blank is not None
    assert blank[" weather "].to_list() == ["rain", "sun", "rain"]
    refusal(r"no slice column 'b' \(in 'weather\*b'\)", datums=DATUMS, by=("weather*b",))


@given(st.booleans(), st.data())
def test_values_are_those_of_any_row(texts: bool, data: st.DataObject) -> None:
    """The order of rows does not matter; the value is null if neither side has one."""
    ids = [f"d{i}" if texts else i * 3 for i in range(6)]
    of = dict(zip(ids, data.draw(st.permutations([1, 2, None, 10, 1, None])), strict=True))
    rows = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=12))
    truth = pl.DataFrame({"datum_id": rows, "g": pl.Series([of[i] for i in rows], dtype=pl.Int64)})
    box = pl.DataFrame({"label_value": "a", "xmin": 0.0, "ymin": 0.0, "xmax": 5.0, "ymax": 5.0})
    found = pl.DataFrame({"datum_id": data.draw(st.permutations(ids)), "score": 0.5})
    slices = load(found.join(box, how="cross"), truth.join(box, how="cross"), by=("g",)).slices
    assert slices is not None
    assert slices.rows() == [
        (i, str(of[i]) if i in rows and of[i] is not None else None) for i in sorted(ids)
    ]
