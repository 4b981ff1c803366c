"""Box columns in every supported form."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_tables import CORNERS, ground_truths, load, note, predictions, refusal

from evalengine.schemas.errors import OptionError

BOXES = [[0.0, 1.0, 5.0, 7.0], [10.0, 11.0, 15.0, 17.0], [20.0, 21.0, 25.0, 27.0]]
EXTENTS = [[0.0, 1.0, 5.0, 6.0], [10.0, 11.0, 5.0, 6.0], [20.0, 21.0, 5.0, 6.0]]
CENTRES = [[2.5, 4.0, 5.0, 6.0], [12.5, 14.0, 5.0, 6.0], [22.5, 24.0, 5.0, 6.0]]
DTYPES = {
    "list": pl.List(pl.Float64),
    "array": pl.Array(pl.Float64, 4),
    "single": pl.List(pl.Float32),
}


def bare(**columns: Any) -> pl.DataFrame:
    """Return predictions with other columns in place of their box columns."""
    return predictions(**columns).drop(CORNERS)


def with_four(names: str, rows: list[list[float]]) -> pl.DataFrame:
    columns = dict(zip(names.split(), zip(*rows, strict=True), strict=True))
    return bare().with_columns(**{name: pl.Series(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    "names",
    [
        "x_min y_min x_max y_max", "x1 y1 x2 y2", "left top right bottom", "x0 y0 x1 y1",
        "X0 Y0 X1 Y1", "Xmin Ymin Xmax Ymax", "box_xmin box_ymin box_xmax box_ymax",
        "x0 y0 x2 y2",
    ],
)  # fmt: skip
def test_corners_by_other_names(names: str) -> None:
    frames = load(with_four(names, BOXES))
    assert frames.predictions.equals(predictions())
    assert frames.recognised["predictions"] == dict(zip(names.split(), CORNERS, strict=True))


@pytest.mark.parametrize(
    "names",
    [
        "x y w h", "x y width height", "xmin ymin width height", "left top width height",
        "xmin ymin w h", "x1 y1 w h", "bbox_x bbox_y bbox_w bbox_h", "X Y Width Height",
        "xmin ymin box_width box_height",
    ],
)  # fmt: skip
def test_corner_and_extent(names: str) -> None:
    frames = load(with_four(names, EXTENTS))
    assert frames.predictions.select(predictions().columns).equals(predictions())
    assert frames.predictions["box_width"].to_list() == [5.0, 5.0, 5.0]
    assert frames.predictions["box_height"].to_list() == [6.0, 6.0, 6.0]
    x, _, width, _ = names.split()
    assert frames.recognised["predictions"].get(width, "box_width") == "box_width"
    assert frames.recognised["predictions"].get(x, "xmin") == "xmin"


@pytest.mark.parametrize("names", ["cx cy w h", "x_center y_center width height"])
def test_centre_and_extent(names: str) -> None:
    frames = load(with_four(names, CENTRES))
    assert frames.predictions.select(predictions().columns).equals(predictions())
    assert frames.predictions["box_width"].to_list() == [5.0, 5.0, 5.0]
    assert frames.recognised["predictions"][names.split()[0]] == "xmin, xmax"


def test_width_and_height_next_to_corners_are_those_of_the_image() -> None:
    frames = load(predictions(width=[640] * 3, height=[480] * 3))
    assert frames.predictions.equals(predictions())


def test_one_missing_corner_is_not_made_up_from_the_image_width() -> None:
    message = refusal(predictions(width=[640] * 3, height=[480] * 3).drop("xmax"))
    assert message.has("column_missing", side="predictions", column="xmax")
    assert "'ymax' is missing" not in message


def test_two_pairs_of_extents_are_refused() -> None:
    table = with_four("x y w h", EXTENTS).with_columns(width=640, height=480)
    message = refusal(table)
    assert message.has(
        "ambiguous_column",
        side="predictions",
        column="box_width",
        columns=["w", "h", "width", "height"],
    )
    frames = load(table, columns={"w": "box_width", "h": "box_height"})
    assert frames.predictions["xmax"].to_list() == [5.0, 15.0, 25.0]


def test_extents_named_by_the_user() -> None:
    frames = load(
        with_four("a b c d", EXTENTS),
        columns={"a": "xmin", "b": "ymin", "c": "box_width", "d": "box_height"},
    )
    assert frames.predictions["ymax"].to_list() == [7.0, 17.0, 27.0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("box_format", "rows"), [("xyxy", BOXES), ("xywh", EXTENTS), ("cxcywh", CENTRES)]
)
def test_one_list_column_with_its_format(
    dtype: str, box_format: str, rows: list[list[float]]
) -> None:
    table = bare().with_columns(bbox=pl.Series(rows).cast(DTYPES[dtype]))
    frames = load(table, box_format=box_format)
    assert frames.predictions.select(predictions().columns).equals(predictions())
    assert ("box_width" in frames.predictions.columns) == (box_format != "xyxy")
    assert not any(name.startswith("__") for name in frames.predictions.columns)
    assert frames.recognised["predictions"] == {"bbox": "xmin, ymin, xmax, ymax"}


def test_a_list_of_integers_is_a_box() -> None:
    table = bare().with_columns(bbox=pl.Series(EXTENTS).cast(pl.List(pl.Int32)))
    assert load(table, box_format="xywh").predictions["xmax"].to_list() == [5.0, 15.0, 25.0]


def test_a_bare_list_is_refused_with_a_remedy() -> None:
    message = refusal(bare().with_columns(box=pl.Series(BOXES)))
    assert message.has("box_format_missing", side="predictions", column="bbox")
    for known in ("xywh", "xyxy", "cxcywh"):
        assert f"box_format='{known}'" in message


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with refused("unknown_name", OptionError, value="xyhw"):
        load(bare().with_columns(bbox=pl.Series(BOXES)), box_format="xyhw")


@pytest.mark.parametrize(
    ("names", "rows"),
    [("xmin ymin xmax ymax", BOXES), ("x1 y1 x2 y2", BOXES), ("x y w h", EXTENTS),
     ("left top width height", EXTENTS), ("x0 y0 x1 y1", BOXES)],
)  # fmt: skip
def test_a_struct_states_its_format(names: str, rows: list[list[float]]) -> None:
    boxes = [dict(zip(names.split(), row, strict=True)) for row in rows]
    frames = load(bare().with_columns(bbox=pl.Series(boxes)))
    assert frames.predictions.select(predictions().columns).equals(predictions())


def test_a_struct_of_other_fields_is_refused() -> None:
    boxes = [dict(zip("abcd", row, strict=True)) for row in BOXES]
    assert refusal(bare().with_columns(bbox=pl.Series(boxes))).has(
        "wrong_fields", side="predictions", column="bbox", fields=["a", "b", "c", "d"]
    )


def test_lists_of_other_lengths_are_refused_with_their_rows() -> None:
    rows = [BOXES[0], [1.0, 2.0, 3.0], []]
    message = refusal(bare().with_columns(bbox=pl.Series(rows)), box_format="xyxy")
    assert message.has("not_four_numbers", side="predictions", column="bbox", count=2, rows=[1, 2])
    assert "row 1 (" in message
    assert "length=3" in message
    assert "length=0" in message
    assert "null" not in message


def test_a_null_list_is_a_null_box() -> None:
    rows = pl.Series([BOXES[0], None, BOXES[2]])
    message = refusal(bare().with_columns(bbox=rows), box_format="xyxy")
    assert "have 1 null" in message
    assert "row 1 (" in message
    assert "'bbox'" in message


def test_arrays_of_another_width_are_refused() -> None:
    rows = pl.Series([[1.0, 2.0, 3.0]] * 3, dtype=pl.Array(pl.Float64, 3))
    assert refusal(bare().with_columns(bbox=rows), box_format="xyxy").has(
        "not_four_numbers", side="predictions", column="bbox"
    )


def test_a_column_of_text_is_not_a_box() -> None:
    message = refusal(bare(bbox=["[1, 2, 3, 4]"] * 3), box_format="xyxy")
    assert message.has("wrong_dtype", side="predictions", column="bbox")


def test_corners_are_preferred_to_a_list_with_a_note() -> None:
    frames = load(predictions(bbox=EXTENTS))
    assert "'bbox' is not" in note(frames, "unused_column")


def test_columns_that_only_look_like_masks_are_pointed_out() -> None:
    message = refusal(bare(segmentation=[1.0, 2.0, 3.0]))
    assert "no boxes" in message
    assert message.has("geometry_missing", side="predictions", column="xmin")


def test_corners_with_their_extent_keep_both() -> None:
    table = ground_truths(box_width=[5.0] * 3, box_height=[6.0] * 3)
    assert load(theirs=table).ground_truths.equals(table)


number = st.floats(-1e6, 1e6, allow_nan=False)
extent = st.floats(0, 1e6, allow_nan=False)


@given(st.lists(st.tuples(number, number, extent, extent), min_size=1, max_size=20))
def test_extents_give_the_far_corner_to_the_bit_and_stay(
    rows: list[tuple[float, float, float, float]],
) -> None:
    table = pl.DataFrame(
        {
            "datum_id": [1] * len(rows),
            "label_value": ["a"] * len(rows),
            "score": [0.5] * len(rows),
            "bbox": [list(row) for row in rows],
        }
    )
    frame = load(table, box_format="xywh").predictions
    assert frame["xmax"].to_list() == [x + w for x, _, w, _ in rows]
    assert frame["ymax"].to_list() == [y + h for _, y, _, h in rows]
    assert frame["box_width"].to_list() == [w for _, _, w, _ in rows]
    assert frame["box_height"].to_list() == [h for _, _, _, h in rows]
