"""Columns of any kind of box without numbers are refused by name."""

import datetime as dt

import polars as pl
import pytest

import evalengine as ee

VALUES = {
    "text": ["0.5", "b"],
    "boolean": [True, False],
    "date": [dt.date(2020, 1, 1)] * 2,
    "struct": [{"a": 1}, {"a": 2}],
}
SOLID = {"x": 1.0, "y": 1.0, "z": 1.0, "length": 4.0, "width": 2.0, "height": 1.5, "yaw": 0.1}
ORIENTED = {"cx": 5.0, "cy": 5.0, "w": 4.0, "h": 2.0, "angle": 0.3}
UPRIGHT = {"xmin": 0.0, "ymin": 0.0, "xmax": 4.0, "ymax": 4.0}
CORNERS = {"x1": 0.0, "y1": 0.0, "x2": 4.0, "y2": 0.0, "x3": 4.0, "y3": 4.0, "x4": 0.0, "y4": 4.0}
POINTS = {f"{a}_{i}": 2.0 * i for i in (1, 2, 3) for a in "xyv"} | {"area": 9.0}
KINDS = {
    "3d": (SOLID, {"iou_type": "3d", "angle_format": "radians-z-up"}),
    "oriented": (ORIENTED, {"angle_format": "radians-clockwise"}),
    "corners": (CORNERS, {}),
    "points": (POINTS, {"iou_type": "keypoints", "keypoint_sigmas": [0.1] * 3}),
}


def sides(columns):
    """Make predictions and ground truths of the same two boxes."""
    boxes = {name: [value] * 2 for name, value in columns.items()}
    truths = pl.DataFrame({"datum_id": ["a", "b"], "label": ["car"] * 2, **boxes})
    return truths.with_columns(score=0.9), truths


def score(tables, **options):
    options = {"task": "detection", "metrics": ["AP"], "iou_thresholds": [0.5], **options}
    return ee.score(*tables, **options)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("3d", name) for name in ("x", "z", "length", "yaw")),
        *(("oriented", name) for name in ("cx", "angle")),
        *(("corners", name) for name in ("x1", "x3", "y4")),
        *(("points", name) for name in ("x_1", "y_3")),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_a_column_without_numbers_is_refused_by_name(kind, name, values, side):
    columns, options = KINDS[kind]
    tables = list(sides(columns))
    tables[side] = tables[side].with_columns(pl.Series(name, values))
    with pytest.raises(ee.InputError, match=f"'{name}'") as caught:
        score(tables, **options)
    assert caught.value.code == "wrong_dtype"


def test_columns_of_nulls_are_refused():
    for kind, name in (("3d", "z"), ("3d", "yaw"), ("oriented", "angle"), ("corners", "x3")):
        columns, options = KINDS[kind]
        ours, truths = sides(columns)
        with pytest.raises(ee.InputError) as caught:
            score([ours.with_columns(pl.lit(None).alias(name)), truths], **options)
        assert caught.value.code == "not_finite"


def test_visibility_without_numbers_is_refused_only_if_read():
    columns, options = KINDS["points"]
    ours, truths = sides(columns)
    text = pl.lit("seen").alias("v_2")
    with pytest.raises(ee.InputError, match="'v_2'"):
        score([ours, truths.with_columns(text)], **options)
    assert score([ours.with_columns(text), truths], **options).value("AP") == 1.0


@pytest.mark.parametrize(
    ("kind", "name"),
    [("3d", "z"), ("3d", "yaw"), ("oriented", "angle"), ("corners", "x1"), ("points", "y_2")],
)
def test_texts_among_numbers_are_counted_with_their_first_rows(kind, name):
    columns, options = KINDS[kind]
    ours, truths = (pl.concat([table] * 3) for table in sides(columns))
    ours = ours.with_columns(pl.Series(name, ["1", "u", "2", "3", "?", "4"]))
    with pytest.raises(ee.InputError) as caught:
        score([ours, truths], **options)
    assert caught.value.facts["columns"] == [name]
    assert all(one in str(caught.value) for one in ("2 of 6 ", "row 1: 'u'", "row 4: '?'"))


@pytest.mark.parametrize("null", [None, False])
def test_visibility_of_booleans_is_read(null):
    columns, options = KINDS["points"]
    ours, truths = sides(columns)
    wrong, options = ours.with_columns(x_2=pl.lit(90.0)), {**options, "iou_thresholds": [0.9]}
    for visibility, value in ((True, 0.0), (null, 1.0)):
        visible = truths.with_columns(v_2=pl.lit(visibility, pl.Boolean))
        assert score([wrong, visible], **options).value("AP") == value


def test_empty_columns_of_texts_are_nulls(tmp_path):
    columns, options = KINDS["points"]
    ours, truths = sides(columns)
    for names in (["v_2"], ["x_3", "y_3"], ["x_3", "y_3", "v_3"]):
        absent = truths.with_columns(pl.lit(None, pl.String).alias(name) for name in names)
        absent.write_csv(tmp_path / "truths.csv")
        for table in (absent, tmp_path / "truths.csv"):
            assert score([ours, table], **options).value("AP") == 1.0


def test_a_point_without_any_coordinates_is_not_labelled():
    columns, options = KINDS["points"]
    ours, truths = sides(columns)
    absent = [pl.lit(None).alias(name) for name in ("x_3", "y_3")]
    assert score([ours, truths.with_columns(absent)], **options).value("AP") == 1.0


def test_the_exact_name_of_an_angle_is_read_next_to_an_alias():
    columns, options = KINDS["oriented"]
    ours, truths = sides(columns | {"w": 60.0, "h": 10.0})
    turned = ours.with_columns(angle=pl.lit(1.9), theta=pl.lit(0.3))
    assert score([turned, truths], **options).value("AP") == 0.0


def test_geometry_that_is_not_compared_is_not_refused():
    text = pl.lit("?")
    for columns, name in ((SOLID, "z"), (CORNERS, "x3"), (POINTS, "x_1"), (ORIENTED, "angle")):
        tables = [table.with_columns(text.alias(name)) for table in sides(columns | UPRIGHT)]
        assert score(tables, iou_type="bbox").value("AP") == 1.0
    tables = [table.with_columns(angle=text) for table in sides(ORIENTED)]
    assert score(tables).value("AP") == 1.0  # no angle_format: upright, with a note
    boxes = {"x1": 0.0, "y1": 0.0, "x2": 4.0, "y2": 4.0}
    empty = [pl.lit(None).alias(name) for name in ("x3", "y3", "x4", "y4")]
    assert score([table.with_columns(empty) for table in sides(boxes)]).value("AP") == 1.0


def test_tables_without_rows_have_no_dtypes(tmp_path):
    for kind in ("3d", "oriented"):
        columns, options = KINDS[kind]
        ours, truths = sides(columns)
        ours.head(0).write_csv(tmp_path / "ours.csv")
        assert score([tmp_path / "ours.csv", truths], **options).value("AP") == 0.0


def test_3d_boxes_that_are_missing_are_reported_although_boxes_in_pixels_are_refused():
    tables = [table.with_columns(xmin=pl.lit("?")) for table in sides(UPRIGHT)]
    with pytest.raises(ee.InputError) as caught:
        score(tables, iou_type="3d", angle_format="radians-z-up")
    assert caught.value.code == "geometry_missing"
