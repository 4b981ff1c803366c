"""Geometry: the form that is compared, conversions between forms, and refusals."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from refusals import noted, refused

import evalengine as ee

SQUARE = [[2.0, 2.0], [10.0, 2.0], [10.0, 10.0], [2.0, 10.0]]
DIAMOND = [[6.0, 1.0], [11.0, 6.0], [6.0, 11.0], [1.0, 6.0]]


def _mask(pixels: Any) -> dict[str, list[int]]:
    """Encode pixels as row-major runs."""
    flat = np.asarray(pixels, np.uint8).ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.r_[0, edges, flat.size]).tolist()
    return {"size": [*np.shape(pixels)], "runs": [0, *runs] if flat[0] else runs}


def _block(top: int, left: int, bottom: int, right: int, size: tuple[int, int] = (20, 20)) -> Any:
    pixels = np.zeros(size, np.uint8)
    pixels[top:bottom, left:right] = 1
    return pixels


def _table(scored: bool, **columns: list[Any]) -> pl.DataFrame:
    n = len(next(iter(columns.values())))
    plain: dict[str, Any] = {"datum_id": [1] * n, "label_value": ["a"] * n}
    if scored:
        plain["score"] = [0.9 - i / 10 for i in range(n)]
    return pl.DataFrame(plain | columns)


def _iou(predictions: pl.DataFrame, truth: pl.DataFrame, **options: Any) -> float | None:
    """Return the IoU of the best match of the first prediction."""
    card = ee.score(
        predictions, truth, task="detection", metrics=["Outcomes"], iou_thresholds=[1e-6], **options
    )
    value: float | None = card.outcomes.row(0, named=True)["iou"]
    return value


def _notes(predictions: pl.DataFrame, truth: pl.DataFrame, **options: Any) -> str:
    return " ".join(ee.check(predictions, truth, task="detection", **options).notes)


def _geometry_note(predictions: pl.DataFrame, truth: pl.DataFrame, **options: Any) -> str:
    """Return the note about the compared geometry."""
    card = ee.score(predictions, truth, task="detection", **options)
    notes = [note for note in card.notes if "are compared" in note]
    assert len(notes) <= 1
    return notes[0] if notes else ""


BOX = {"xmin": [2.0], "ymin": [2.0], "xmax": [10.0], "ymax": [10.0]}
POLYGON = {"polygon": [[DIAMOND]]}
MASK = {"mask": [_mask(_block(2, 2, 8, 10))]}
GEOMETRIES = {"box": BOX, "polygon": POLYGON, "mask": MASK}


@pytest.mark.parametrize(("mine", "other"), [*product(GEOMETRIES, GEOMETRIES)])
def test_the_less_detailed_geometry_is_compared(mine: str, other: str) -> None:
    """IoU by hand: the box or block of pixels against the diamond, its box, or themselves."""
    predictions, truth = _table(True, **GEOMETRIES[mine]), _table(False, **GEOMETRIES[other])
    shapes = {
        "box": shapely.box(2, 2, 10, 10),
        "polygon": shapely.Polygon(DIAMOND),
        "mask": shapely.box(2, 2, 10, 8),
    }
    kind = min((mine, other), key=list(GEOMETRIES).index)
    pair = [shapes[mine], shapes[other]]
    if kind == "box":
        pair = [shapely.box(*shape.bounds) for shape in pair]
    expected = pair[0].intersection(pair[1]).area / pair[0].union(pair[1]).area
    assert _iou(predictions, truth) == pytest.approx(expected, abs=1e-12)
    plural = {"box": "boxes", "polygon": "polygons", "mask": "masks"}[kind]
    note = _geometry_note(predictions, truth)
    if {mine, other} == {"box"}:
        assert note == ""
    else:
        assert note.startswith(f"{plural} are compared")
        assert "convert_to=" in note


def test_convert_to_and_iou_type_select_the_geometry() -> None:
    """A requested form is compared, more or less detailed, and noted."""
    predictions, truth = _table(True, **MASK), _table(False, **POLYGON)
    block, diamond = shapely.box(2, 2, 10, 8), shapely.Polygon(DIAMOND)
    boxes = [shapely.box(*shape.bounds) for shape in (block, diamond)]
    at_box = boxes[0].intersection(boxes[1]).area / boxes[0].union(boxes[1]).area
    for options in ({"iou_type": "bbox"}, {"convert_to": "box"}):
        assert _iou(predictions, truth, **options) == pytest.approx(at_box)
    drawn = np.zeros((20, 20), bool)
    for y, x in product(range(20), range(20)):  # centres inside, as in pycocotools
        drawn[y, x] = diamond.intersects(shapely.Point(x + 0.5, y + 0.5))
    at_mask = _iou(predictions, truth, convert_to="mask")
    assert (
        at_mask
        == _iou(predictions, truth, iou_type="segm")
        == _iou(predictions, truth, convert_to="raster")
    )
    rough = (drawn & (_block(2, 2, 8, 10) > 0)).sum() / (drawn | (_block(2, 2, 8, 10) > 0)).sum()
    assert at_mask == pytest.approx(rough, abs=0.1)
    card = ee.score(predictions, truth, task="detection", convert_to="mask")
    assert "convert_to='mask'" in noted(card, "geometry").message
    assert "polygon" in noted(card, "converted", count=1).message
    boxed = _table(True, **BOX)
    rotated = _table(False, polygon=[[DIAMOND]])
    exact = shapely.box(2, 2, 10, 10).intersection(diamond).area
    assert _iou(boxed, rotated, convert_to="polygon") == pytest.approx(
        exact / (64 + diamond.area - exact)
    )


def test_polygons_become_masks_only_with_the_size_of_the_image() -> None:
    """Polygons of two sides become masks only if the size of the image is known."""
    predictions, truth = _table(True, **POLYGON), _table(False, **POLYGON)
    with refused("image_size_missing", side="predictions", count=1, match="row 0 .*datums="):
        ee.score(predictions, truth, task="detection", iou_type="segm")
    sizes = pl.DataFrame({"datum_id": [1], "height": [20], "width": [20]})
    assert _iou(predictions, truth, iou_type="segm", datums=sizes) == 1.0
    broken = sizes.with_columns(height=pl.lit(20.5))
    with refused("image_size_wrong", table="datums", count=1):
        ee.score(predictions, truth, task="detection", iou_type="segm", datums=broken)


def test_rows_of_one_table_may_differ() -> None:
    """Each row is read from its non-null column; the least detailed row decides."""
    shapes = pl.DataFrame(
        {
            "datum_id": [1, 1, 1], "label_value": ["a", "b", "c"],
            "polygon": [[DIAMOND], None, None],
            "mask": [None, _mask(_block(2, 2, 8, 10)), None],
            "xmin": [None, None, 3.0], "ymin": [None, None, 3.0],
            "xmax": [None, None, 9.0], "ymax": [None, None, 9.0],
        }
    )  # fmt: skip
    predictions = shapes.with_columns(score=pl.lit(0.5))
    card = ee.score(predictions, shapes, task="detection", metrics=["Outcomes"])
    assert card.outcomes["outcome"].to_list() == ["tp"] * 3
    assert card.outcomes["iou"].to_list() == [1.0] * 3
    note = noted(card, "geometry").message
    assert note.startswith("boxes")
    assert note.count("1 polygon and 1 mask and 1 box") == 2
    forced = ee.score(
        predictions, shapes, task="detection", metrics=["Outcomes"], convert_to="mask"
    )
    assert forced.outcomes["iou"].to_list() == [1.0] * 3
    two = predictions.filter(pl.col("label_value") != "c").drop("xmin", "ymin", "xmax", "ymax")
    one = shapes.filter(pl.col("label_value") != "c").drop("xmin", "ymin", "xmax", "ymax")
    assert "polygons are compared" in _geometry_note(two, one)
    assert "masks are compared" in _geometry_note(two, one, dialect="coco")


def test_annotated_boxes_have_priority_over_masks() -> None:
    """If boxes are compared, a row's annotated box counts, not that of its mask."""
    predictions = _table(True, **{**BOX, **MASK})
    truth = _table(False, xmin=[2.0], ymin=[2.0], xmax=[10.0], ymax=[10.0])
    assert _iou(predictions, truth) == 1.0
    assert _iou(predictions.drop("xmin", "ymin", "xmax", "ymax"), truth) == pytest.approx(48 / 64)


def test_hulls_of_valors_service() -> None:
    """A block of 6 x 8 pixels becomes a polygon of 5 x 7 under ``valor``."""
    predictions = _table(True, **MASK)
    truth = _table(False, polygon=[[[[2.0, 2.0], [9.0, 2.0], [9.0, 7.0], [2.0, 7.0]]]])
    assert _iou(predictions, truth, dialect="valor") == 1.0
    assert _iou(predictions, truth) == pytest.approx(35 / 48)


def test_raster_files(tmp_path: Path) -> None:
    """Masks in files, by value and band, next to masks in the table; a missing file is named."""
    import rasterio

    pixels = _block(2, 2, 8, 10) * 7 + _block(12, 12, 18, 18) * 9
    path = tmp_path / "truth.tif"
    with rasterio.open(
        path, "w", driver="GTiff", height=20, width=20, count=1, dtype="uint8",
        transform=rasterio.Affine(1, 0, 100, 0, -1, 200),
    ) as file:  # fmt: skip
        file.write(pixels, 1)
    predictions = _table(True, mask=[_mask(_block(2, 2, 8, 10)), _mask(_block(12, 12, 18, 17))])
    truth = _table(False, raster=[str(path)] * 2, raster_value=[7, 9], raster_band=[1, 1])
    card = ee.score(predictions, truth, task="detection", metrics=["Outcomes"])
    assert card.outcomes["iou"].to_list() == [1.0, 30 / 36]
    with_boxes = tmp_path / "truth.parquet"
    truth.with_columns(raster=pl.lit(path.name)).write_parquet(with_boxes)
    card = ee.score(predictions, with_boxes, task="detection", metrics=["Outcomes"])
    assert card.outcomes["iou"].to_list() == [1.0, 30 / 36]
    both = truth.with_columns(
        raster=pl.Series([str(path), None]), mask=pl.Series([None, _mask(_block(12, 12, 18, 18))])
    )
    card = ee.score(predictions, both, task="detection", metrics=["Outcomes"])
    assert card.outcomes["iou"].to_list() == [1.0, 30 / 36]
    missing = truth.with_columns(raster=pl.Series([str(path), str(tmp_path / "none.png")]))
    with refused("file_missing", side="ground_truths", column="raster", count=1, rows=[1]):
        ee.score(predictions, missing, task="detection")


def test_masks_of_one_image_have_one_size() -> None:
    predictions = _table(True, **MASK)
    truth = _table(False, mask=[_mask(_block(2, 2, 8, 10, (20, 21)))])
    with refused("sizes_differ", count=1, match=r"row 0 .* is 20 x 21, .* 20 x 20"):
        ee.score(predictions, truth, task="detection")
    sizes = pl.DataFrame({"datum_id": [1], "height": [20], "width": [21]})
    with refused("sizes_differ", side="predictions", count=1):
        ee.score(predictions, predictions.drop("score"), task="detection", datums=sizes)


def test_rows_without_geometry_and_broken_polygons_are_named() -> None:
    truth = _table(False, polygon=[[DIAMOND], None])
    predictions = _table(True, **POLYGON)
    with refused("geometry_missing", column="polygon", count=1, rows=[1]):
        ee.score(predictions, truth, task="detection")
    half = truth.with_columns(xmin=pl.Series([1.0, 1.0]), ymin=None, xmax=None, ymax=None)
    with refused("null_values", column="ymin", count=2):
        ee.score(predictions, half, task="detection")
    bow = [[0.0, 0.0], [8.0, 8.0], [8.0, 0.0], [0.0, 8.0]]
    crossed = _table(False, polygon=[[bow]])
    with refused("polygon_invalid", side="ground_truths", column="polygon", count=1):
        ee.score(predictions, crossed, task="detection")
    assert _iou(predictions, crossed, invalid_polygons="repair") is not None


def test_options_that_do_not_fit_are_refused() -> None:
    predictions, truth = _table(True, **POLYGON), _table(False, **POLYGON)
    for options, code, facts in (
        ({"iou_type": "cuboids"}, "unknown_name", {"value": "cuboids"}),
        ({"convert_to": "pixels"}, "unknown_name", {"value": "pixels"}),
        ({"invalid_polygons": "drop"}, "unknown_name", {"value": "drop"}),
        ({"iou_type": "bbox", "convert_to": "mask"}, "options_conflict", {}),
        ({"boundary_ratio": 0.0}, "option_value", {"option": "boundary_ratio", "value": 0.0}),
    ):
        with refused(code, ee.OptionError, **facts):
            ee.score(predictions, truth, task="detection", **options)


def test_the_task_follows_from_the_tables() -> None:
    """Scores with polygons or masks mean detection; other names and forms are recognised."""
    predictions = _table(True, **MASK).rename({"mask": "segmentation"})
    truth = _table(False, polygon=[shapely.Polygon(DIAMOND).wkb]).rename({"polygon": "geometry"})
    report = ee.check(predictions, truth)
    assert report.recognised["predictions"] == {"segmentation": "mask"}
    assert report.recognised["ground_truths"] == {"geometry": "polygon"}
    assert ee.score(predictions, truth).task == "detection"
    with_boxes = predictions.with_columns(bbox=pl.Series([[2.0, 2.0, 8.0, 6.0]]))
    assert "'bbox'" in noted(ee.score(with_boxes, truth), "unread_column").message


def test_rotated_boxes_in_eight_columns() -> None:
    """x1, y1 to x4, y4 are the corners of a polygon."""
    corners = {f"{axis}{i + 1}": [DIAMOND[i][k]] for i in range(4) for k, axis in enumerate("xy")}
    predictions, truth = _table(True, **corners), _table(False, **POLYGON)
    assert _iou(predictions, truth) == 1.0
    assert ee.score(predictions, truth).run["recognised"]["predictions"]["y3"] == "polygon"
    assert _iou(predictions, _table(False, **BOX)) == pytest.approx(64 / 100)


def test_areas_are_annotated_or_those_of_the_shapes() -> None:
    """Area ranges use ``area``, otherwise the polygon's area, not that of its box."""
    predictions, truth = _table(True, **POLYGON), _table(False, **POLYGON)
    ranges = {"all": (0.0, 1e10), "here": (49.0, 51.0), "box": (99.0, 101.0)}
    options: dict[str, Any] = {"metrics": ["mAP"], "area_ranges": ranges, "iou_thresholds": [0.5]}

    def support(table: pl.DataFrame) -> dict[str, int]:
        rows = ee.score(predictions, table, task="detection", **options).metrics
        return dict(rows.select("area", "support").iter_rows())

    assert support(truth) == {"all": 1, "here": 1, "box": 0}
    assert support(truth.with_columns(area=pl.lit(100.0))) == {"all": 1, "here": 0, "box": 1}


def test_examples_show_polygons_and_the_boxes_of_masks() -> None:
    options: dict[str, Any] = {"task": "detection", "metrics": ["DetailedPrecisionRecallCurve"]}
    predictions, truth = _table(True, **POLYGON), _table(False, **POLYGON)
    frame = ee.score(predictions, truth, **options).examples
    shown = frame.filter(pl.col("geometry").is_not_null())["geometry"].unique().to_list()
    assert [shapely.from_geojson(text).equals(shapely.Polygon(DIAMOND)) for text in shown] == [True]
    predictions, truth = _table(True, **MASK), _table(False, **MASK)
    shown = (
        ee.score(predictions, truth, **options).examples["geometry"].drop_nulls().unique().to_list()
    )
    assert [shapely.from_geojson(text).bounds for text in shown] == [(2.0, 2.0, 10.0, 8.0)]


ring = st.builds(
    lambda x, y, radius, n, turn: [
        [x + radius * float(np.cos(turn + 2 * np.pi * i / n)),
         y + radius * float(np.sin(turn + 2 * np.pi * i / n))]
        for i in range(n)
    ],
    st.floats(0, 30), st.floats(0, 30), st.floats(1, 15), st.integers(3, 8), st.floats(0, 3),
)  # fmt: skip


@given(st.lists(ring, min_size=1, max_size=6), st.lists(ring, min_size=1, max_size=6))
def test_overlaps_of_polygons_equal_shapely(mine: list[Any], other: list[Any]) -> None:
    """Overlaps across labels have Shapely's IoU; pairs below the threshold are skipped."""
    predictions = _table(True, polygon=[[r] for r in mine]).with_columns(
        score=pl.Series(np.linspace(0.9, 0.1, len(mine)))
    )
    truth = _table(False, polygon=[[r] for r in other])
    one, two = ([shapely.Polygon(r) for r in side] for side in (mine, other))
    ious = np.array([[a.intersection(b).area / a.union(b).area for b in two] for a in one])
    for threshold in (0.1, 0.5):
        if np.abs(ious - threshold).min() < 1e-9:
            continue
        card = ee.score(
            predictions, truth, task="detection", metrics=["Counts"], iou_thresholds=[threshold],
            score_thresholds=[0.0],
        )  # fmt: skip
        free, hits = [True] * len(two), 0
        for row in ious:
            best = max((v, j) for j, v in enumerate(np.where(free, row, -1.0)))
            if best[0] >= threshold:
                free[best[1]] = False
                hits += 1
        assert card.value("Counts", statistic="tp") == hits


@pytest.mark.parametrize("dialect", ["standard", "coco", "valor-docs"])
@pytest.mark.parametrize("kind", ["polygon", "mask"])
def test_one_empty_side_is_legal(kind: str, dialect: str) -> None:
    """A side without rows, with or without columns, can be scored against polygons and masks."""
    predictions, truth = _table(True, **GEOMETRIES[kind]), _table(False, **GEOMETRIES[kind])
    options: dict[str, Any] = {"task": "detection", "dialect": dialect, "iou_thresholds": [0.5]}
    options["metrics"] = ["Counts", "Outcomes"]
    for empty in (predictions.clear(), pl.DataFrame()):
        card = ee.score(empty, truth, **options)
        assert card.outcomes["outcome"].to_list() == ["fn_missed"]
    for empty in (truth.clear(), pl.DataFrame()):
        card = ee.score(predictions, empty, **options)
        assert card.outcomes["outcome"].to_list() == ["fp_hallucination"]


def test_256_small_masks_traced_on_one_canvas() -> None:
    truth = _table(False, mask=[[[1, 1], [1, 0]]] * 256).with_columns(datum_id=pl.int_range(256))
    predictions = truth.with_columns(score=pl.lit(0.5))
    card = ee.score(predictions, truth, convert_to="polygon", metrics=["Outcomes"])
    assert card.outcomes["iou"].to_list() == [1.0] * 256


TRIANGLE = [
    (500009.35305575765, 5000007.581602609),
    (500008.2746858594, 5000008.786231985),
    (500001.39317382773, 5000006.242575127),
]


@pytest.mark.parametrize("offset", [(0.0, 0.0), (5e5, 5e6)])
def test_equal_polygons_have_iou_1_at_any_place_and_in_any_notation(
    offset: tuple[float, float],
) -> None:
    rng = np.random.default_rng(6)
    rings = [np.array(TRIANGLE) - [5e5, 5e6] + offset]
    for _ in range(300):
        n = int(rng.integers(3, 12))
        angle = np.sort(rng.random(n)) * 2 * np.pi
        around = rng.uniform(1, 5, (n, 1)) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        rings.append(around + rng.random(2) * 10 + offset)
    rings = [ring for ring in rings if shapely.Polygon(ring).is_valid]
    ids = list(range(len(rings)))
    truth = _table(False, polygon=[[ring.tolist()] for ring in rings])
    for turned in (
        [ring.tolist() for ring in rings],
        [np.roll(ring, 1, axis=0).tolist() for ring in rings],
        [ring[::-1].tolist() for ring in rings],
    ):
        predictions = _table(True, polygon=[[ring] for ring in turned])
        sides = [table.with_columns(datum_id=pl.Series(ids)) for table in (predictions, truth)]
        sides[0] = sides[0].with_columns(score=pl.lit(0.5))
        card = ee.score(*sides, metrics=["Outcomes"], iou_thresholds=[0.5])
        assert card.outcomes["iou"].to_list() == [1.0] * len(rings)


@pytest.mark.parametrize("dtype", [pl.List(pl.List(pl.Boolean)), pl.Array(pl.Boolean, (2, 2))])
def test_rows_of_boolean_pixels(dtype: pl.DataType) -> None:
    mask = pl.Series("mask", [[[True, False], [True, True]]], dtype=dtype)
    truth = _table(False, mask=mask.to_list()).with_columns(mask)
    numbers = _table(True, mask=[[[1, 0], [1, 0]]])
    assert _iou(numbers, truth) == pytest.approx(2 / 3)


@pytest.mark.parametrize("form", ["mask", "polygon"])
def test_overlaps_with_other_labels_are_no_matches(form: str) -> None:
    """Overlaps across labels, computed for the confusion matrix, do not affect matching."""
    shape = {"mask": _mask(_block(2, 2, 8, 10)), "polygon": [DIAMOND]}[form]
    truth = _table(False, **{form: [shape]}).with_columns(label_value=pl.lit("b"))
    predictions = _table(True, **{form: [shape, shape]}).with_columns(
        label_value=pl.Series(["a", "b"])
    )
    metrics = ["Outcomes", "ConfusionMatrix", "AP", "Counts"]
    card = ee.score(predictions, truth, task="detection", metrics=metrics, iou_thresholds=[0.5])
    assert card.value("AP", label_value="b", iou_threshold=0.5) == pytest.approx(1.0)
    outcomes = dict(card.outcomes.select("label_value", "outcome").iter_rows())
    assert outcomes["b"] == "tp"
    assert outcomes["a"].startswith("fp")
    single = ee.score(
        predictions.head(1), truth, task="detection", metrics=metrics, iou_thresholds=[0.5]
    )
    assert single.value("AP", label_value="b", iou_threshold=0.5) == 0.0
    cells = single.confusion.filter(score_threshold=0.5).select("actual", "predicted", "count")
    assert cells.rows() == [("b", "a", 1)]
    assert sorted(single.outcomes["outcome"]) == ["fn_misclassified", "fp_misclassified"]
