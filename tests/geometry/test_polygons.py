"""Polygons in every format: rasterised against pycocotools, measured against Shapely."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
import pytest
import shapely
from geometry.pixels import column, pixels
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco
from refusals import refused
from sizes import tune

from evalengine.executors.pools import Threads
from evalengine.geometry import masks, polygons
from evalengine.geometry import polygons as convert
from evalengine.kernels import masks as kernels

SQUARE = [[0, 0], [6, 0], [6, 4], [0, 4]]
HOLE = [[1, 1], [3, 1], [3, 2], [1, 2]]
DISJOINT = [[10, 10], [14, 10], [14, 13]]


def read(values: list[Any], **more: Any) -> polygons.Polygons:
    return polygons.read_polygons(column(values, "polygon"), side="predictions", **more)


def codes(result: masks.Masks) -> list[str]:
    return masks.to_rle(result).struct.field("counts").to_list()


def sizes(result: polygons.Polygons, h: int, w: int) -> tuple[Any, Any]:
    return np.full(len(result), h), np.full(len(result), w)


@st.composite
def rings(draw: Any) -> list[float]:
    """Flat rings of any shape: crossing, outside the image, on whole and half pixels, thin."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(3, 25))
    scale = draw(st.sampled_from([0.3, 4.0, 30.0, 70.0, 3000.0]))
    xy = (rng.random((n, 2)) - draw(st.sampled_from([0.0, 0.3, 0.9]))) * scale
    step = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    if step:
        xy = np.round(xy / step) * step
    thin = draw(st.sampled_from([None, 0, 1]))
    if thin is not None:
        xy[:, thin] = xy[0, thin]
    return xy.ravel().tolist()


@given(st.lists(rings(), min_size=1, max_size=4), st.integers(1, 50), st.integers(1, 50))
def test_rasterised_as_pycocotools_does(flat: list[list[float]], h: int, w: int) -> None:
    each = read([[ring] for ring in flat])
    want = [coco.frPyObjects([ring], h, w)[0]["counts"].decode() for ring in flat]
    assert codes(polygons.rasterise(each, *sizes(each, h, w))) == want
    whole = read([flat])
    merged = coco.merge(coco.frPyObjects(flat, h, w))["counts"].decode()
    assert codes(polygons.rasterise(whole, *sizes(whole, h, w))) == [merged]


@given(
    rings(),
    st.lists(st.lists(st.floats(-9, 60), max_size=5).filter(lambda r: len(r) % 2 == 0), min_size=1),
)
def test_specks_after_a_flat_ring_have_no_area(ring: list[float], specks: list[Any]) -> None:
    """As in pycocotools, which fails if such a ring is first."""
    merged = coco.merge(coco.frPyObjects([ring, *specks], 40, 50))["counts"].decode()
    whole = read([[ring, *specks], [ring]])
    assert codes(polygons.rasterise(whole, *sizes(whole, 40, 50))) == [merged] * 2
    with pytest.raises(Exception):  # noqa: B017, PT011  # pycocotools' own kind, or TypeError
        coco.frPyObjects([specks[0], ring], 40, 50)
    with refused("ring_short", count=1, rows=[0]):
        read([[specks[0], ring], [ring]])


@given(st.lists(st.tuples(*[st.floats(-20, 60)] * 4), max_size=5))
def test_boxes_rasterised_as_pycocotools_does(given_boxes: list[Any]) -> None:
    boxes = np.array([(x, y, x + abs(w), y + abs(h)) for x, y, w, h in given_boxes]).reshape(-1, 4)
    result = polygons.from_boxes(boxes)
    want = [
        coco.frPyObjects([[x, y, x, v, u, v, u, y]], 30, 40)[0]["counts"].decode()
        for x, y, u, v in boxes.tolist()
    ]
    assert codes(polygons.rasterise(result, *sizes(result, 30, 40))) == want
    assert (result.boxes == boxes).all()


def flat(ring: list[list[int]]) -> list[float]:
    return [float(number) for point in ring for number in point]


GEOMETRY = shapely.Polygon(SQUARE, [HOLE])
BOTH = shapely.MultiPolygon([GEOMETRY, shapely.Polygon(DISJOINT)])


@pytest.mark.parametrize(
    ("value", "area", "box", "pixel_count"),
    [
        ([SQUARE, HOLE], 22, [0, 0, 6, 4], 22),
        ([[*SQUARE, SQUARE[0]]], 24, [0, 0, 6, 4], 24),
        (SQUARE, 24, [0, 0, 6, 4], 24),
        ([flat(SQUARE), flat(DISJOINT)], 30, [0, 0, 14, 13], 30),
        (flat(SQUARE), 24, [0, 0, 6, 4], 24),
        ([[SQUARE, HOLE], [DISJOINT]], 28, [0, 0, 14, 13], 28),
        (GEOMETRY.wkb, 22, [0, 0, 6, 4], 22),
        (BOTH.wkb, 28, [0, 0, 14, 13], 28),
        (GEOMETRY.wkt, 22, [0, 0, 6, 4], 22),
        (BOTH.wkt, 28, [0, 0, 14, 13], 28),
        (shapely.to_geojson(BOTH), 28, [0, 0, 14, 13], 28),
    ],
)
def test_forms(value: Any, area: float, box: list[float], pixel_count: int) -> None:
    result = read([value, value])
    assert result.area.tolist() == [area, area]
    assert result.boxes.tolist() == [box, box]
    drawn = polygons.rasterise(result, *sizes(result, 20, 20))
    assert drawn.area.tolist() == pytest.approx([pixel_count] * 2, abs=1.0)
    wanted = np.zeros((20, 20), np.uint8)
    wanted[:4, :6] = 1
    if area in (22, 28):
        wanted[1:2, 1:3] = 0
    assert (pixels(drawn)[0][:5, :8] == wanted[:5, :8]).all()


def test_arrays_of_fixed_length_are_lists() -> None:
    values = pl.Series("polygon", np.array([[SQUARE], [SQUARE]], float))
    assert polygons.read_polygons(values, side="it").area.tolist() == [24, 24]


def test_slices_and_chunks_of_a_column() -> None:
    far = flat(DISJOINT)
    widths = [[[0.0, 0.0, i + 1.0, 0.0, i + 1.0, 2.0, 0.0, 2.0], far] for i in range(5)]
    nested = [[[[0.0, 0.0], [i + 1.0, 0.0], [i + 1.0, 2.0], [0.0, 2.0]]] for i in range(5)]
    for values, more in ((widths, 6.0), (nested, 0.0)):
        whole = column(values, "polygon")
        chunks = pl.concat([whole[:1], whole[3:]], rechunk=False)
        for part, areas in (
            (whole[2:4], [6.0, 8.0]),
            (whole.gather([4, 1]), [10.0, 4.0]),
            (chunks, [2.0, 8.0, 10.0]),
        ):
            result = polygons.read_polygons(part, side="it")
            assert result.area.tolist() == [area + more for area in areas]


def test_strings_of_two_kinds_in_one_column() -> None:
    result = read([GEOMETRY.wkt, " " + shapely.to_geojson(BOTH), GEOMETRY.wkt])
    assert result.area.tolist() == [22, 28, 22]


def test_binary_in_hexadecimal_digits() -> None:
    shape = shapely.box(0, 0, 4, 3)
    text = shapely.to_wkb(shape, hex=True)
    result = read(
        [text, f" {text.lower()}\n", shape.wkt, shapely.to_wkb(shape, hex=True, byte_order=0)]
    )
    assert result.area.tolist() == [12.0] * 4
    with refused("polygon_unreadable", format="WKB in hexadecimal digits", count=1, rows=[1]):
        read([text, text[:-6]])


def test_parts_that_overlap_are_united() -> None:
    other = [[3, 0], [9, 0], [9, 4], [3, 4]]
    result = read([[[SQUARE], [other]], [[SQUARE], [DISJOINT]]])
    assert result.area.tolist() == [36, 30]


@given(st.integers(0, 2**32 - 1))
def test_areas_and_intersections_equal_shapely(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [
        shapely.Point(*rng.random(2) * 9).buffer(1 + 4 * rng.random(), quad_segs=3)
        for _ in range(6)
    ]
    result = read([shapely.to_wkb(one) for one in shapes])
    assert result.area == pytest.approx(shapely.area(shapes), rel=1e-13)
    assert (result.boxes == shapely.bounds(shapes)).all()
    ia, ib = (one.ravel().astype(np.int32) for one in np.mgrid[:6, :6])
    want = shapely.area(shapely.intersection(np.array(shapes)[ia], np.array(shapes)[ib]))
    assert polygons.intersection_areas(result, result, ia, ib) == pytest.approx(want, abs=1e-9)
    rows = rng.integers(0, 6, 4)
    selected = polygons.concat([result.take(rows), read([SQUARE])])
    assert (selected.area == [*result.area[rows], 24]).all()
    assert (selected.boxes == [*result.boxes[rows].tolist(), [0, 0, 6, 4]]).all()


@st.composite
def solids(draw: Any) -> Any:
    """Valid polygons, with hollows, holes and several parts, on integers or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    step = draw(st.sampled_from([0.0, 1.0]))
    parts = []
    for _ in range(draw(st.integers(2, 4))):
        n = rng.integers(3, 15)
        turn = np.sort(rng.random(n)) * 2 * np.pi
        reach = 1 + 8 * rng.random(n)
        xy = np.stack([reach * np.cos(turn), reach * np.sin(turn)], axis=1) + rng.random(2) * 20
        parts.append(
            shapely.make_valid(shapely.Polygon(np.round(xy / step) * step if step else xy))
        )
    last = parts.pop()
    solid = shapely.difference(shapely.union_all(parts), last)
    if not solid.area or solid.geom_type not in ("Polygon", "MultiPolygon"):
        return shapely.Polygon(SQUARE, [HOLE])
    return solid


@given(solids(), solids())
def test_intersections_of_any_two_polygons_equal_shapely(one: Any, two: Any) -> None:
    result = read([one.wkb, two.wkb, one.reverse().wkb])
    ia, ib = (part.ravel().astype(np.int32) for part in np.mgrid[:3, :3])
    shared = polygons.intersection_areas(result, result, ia, ib)
    want = shapely.area(shapely.intersection(result.geometries[ia], result.geometries[ib]))
    assert shared == pytest.approx(want, rel=1e-11, abs=1e-9)
    assert (shared[ia == ib] == result.area).all()


def test_inside_and_outside_are_exact() -> None:
    inner = [[1 / 3, 1 / 3], [7 / 3, 1 / 7], [5 / 3, 9 / 7]]
    outside = [[6, 1 / 3], [9, 1 / 3], [9, 3]]
    result = read([[SQUARE], [inner], [outside]])
    rows = np.zeros(3, np.int32)
    shared = polygons.intersection_areas(result, result, rows, np.arange(3, dtype=np.int32))
    assert shared.tolist() == [24.0, result.area[1], 0.0]


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(8)
    result = read([(rng.random((rng.integers(3, 9), 2)) * 40).tolist() for _ in range(150)])
    there = read([[SQUARE, HOLE], [SQUARE, HOLE]] * 40)
    with ThreadPoolExecutor(3) as pool:
        over = Threads(3, pool).over
        for one in (result, there):
            single = polygons.rasterise(one, *sizes(one, 30, 30))
            both = polygons.rasterise(one, *sizes(one, 30, 30), over)
            assert all((a == b).all() for a, b in zip(single.runs, both.runs, strict=True))
        pair = np.arange(80, dtype=np.int32)
        assert polygons.intersection_areas(there, there, pair, pair, over).tolist() == [22.0] * 80


@given(st.integers(0, 2**32 - 1))
def test_outlines_contain_exactly_the_pixels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = [(rng.random((9, 13)) < density).astype(np.uint8) for density in (0, 0.2, 0.6, 1)]
    result = masks.from_pixels(images)
    traced = convert.outlines(result)
    assert (traced.area == result.area).all()
    back = polygons.rasterise(traced, result.height, result.width)
    assert all((a == b).all() for a, b in zip(pixels(back), images, strict=True))
    hulls = convert.hulls(result)
    for i, image in enumerate(images):
        corners = np.argwhere(image)[:, ::-1]
        want = shapely.MultiPoint(corners).convex_hull.area if len(corners) else 0.0
        assert hulls.area[i] == pytest.approx(want)


def test_many_outlines_on_several_canvases() -> None:
    rng = np.random.default_rng(5)
    images = [(rng.random((6, 9)) < rng.choice([0, 0.4, 1])).astype(np.uint8) for _ in range(300)]
    result = masks.from_pixels(images)
    whole = convert.outlines(result)  # more masks than fit into a byte
    tune(canvas_pixels=100)
    for traced in (whole, convert.outlines(result)):
        assert (traced.area == result.area).all()
        back = polygons.rasterise(traced, result.height, result.width)
        assert all((a == b).all() for a, b in zip(back.runs, result.runs, strict=True))


def test_a_block_of_pixels_and_its_hull() -> None:
    image = np.zeros((8, 9))
    image[2:6, 3:8] = 1
    result = masks.from_pixels([image, np.eye(1, 9)])
    assert convert.outlines(result).area.tolist() == [20, 1]
    assert convert.hulls(result).area.tolist() == [12, 0]  # one less in both directions


def test_no_polygons() -> None:
    result = polygons.read_polygons(pl.Series("polygon", [], pl.List(pl.List(pl.Float64))), side="")
    assert len(result) == result.area.size == result.boxes.size == 0
    none = np.zeros(0, np.int64)
    assert len(polygons.rasterise(result, none, none)) == 0
    assert polygons.intersection_areas(result, result, none, none).size == 0


def test_polygons_of_many_corners_are_fast() -> None:
    """Edges that are separate in x are not compared: all 200,000^2 pairs take a minute."""
    n = 200_000
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    radius = 100 * (1 + 0.3 * np.sin(5 * angle))
    xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    pair = [shapely.Polygon(xy), shapely.Polygon(xy + np.array([10, 5]))]
    result = read([shapely.to_wkb(one) for one in pair])
    assert result.area.size == 2
    began = time.process_time()
    shared = polygons.intersection_areas(result, result, np.array([0]), np.array([1]))
    assert time.process_time() - began < 10
    assert shared[0] == pytest.approx(shapely.intersection(*pair).area, rel=1e-9)


def test_outlines_of_few_masks_at_a_time() -> None:
    rng = np.random.default_rng(3)
    result = masks.from_pixels([rng.random((7, 9)) < 0.5 for _ in range(20)])
    whole = convert.outlines(result).rings
    tune(canvas_masks=3)
    few = convert.outlines(result).rings
    assert (whole.xy == few.xy).all()
    assert (whole.start == few.start).all()


def test_memory_for_edges_is_that_of_the_largest_polygon(monkeypatch: pytest.MonkeyPatch) -> None:
    result = read([[SQUARE], [SQUARE, HOLE], [SQUARE]])
    rooms: list[Any] = []
    kernel = kernels._edges

    def counted(*args: Any) -> int:
        rooms.append(args[4].shape)
        return int(kernel(*args))

    monkeypatch.setattr(kernels, "_edges", counted)
    assert result.area.tolist() == [24.0, 22.0, 24.0]
    assert rooms == [(8, 5)]


@pytest.mark.parametrize("invalid", ["refuse", "repair"])
def test_geometries_of_few_polygons_at_a_time(invalid: str) -> None:
    """Edges of chunks equal those of all polygons at once; geometries are not stored for them."""
    rng = np.random.default_rng(8)
    square = np.array([[0, 0], [4, 0], [4, 4], [0, 4]])
    values: list[Any] = [[(square + rng.integers(0, 9, 2)).tolist()] for _ in range(7)]
    if invalid == "repair":
        values[5] = [[[0, 0], [4, 4], [4, 0], [0, 4]]]
    whole = polygons.read_polygons(column(values), side="s", invalid=invalid)
    edges, area = whole.edges, whole.area
    tune(polygons=3)
    parts = polygons.read_polygons(column(values), side="s", invalid=invalid)
    assert (parts.area == area).all()
    assert all((a == b).all() for a, b in zip(parts.edges, edges, strict=True))
    assert "_built" not in parts.__dict__
    assert (shapely.area(parts.geometries) == shapely.area(whole.geometries)).all()


def test_refused_polygons_of_several_ranges_are_counted_together() -> None:
    tune(polygons=2)
    crossed = [[[0, 0], [4, 4], [4, 0], [0, 4]]]
    square = [[[0, 0], [4, 0], [4, 4], [0, 4]]]
    several = polygons.read_polygons(column([square, square, crossed, square, crossed]), side="s")
    with refused("polygon_invalid", count=2, rows=[2, 4]):
        _ = several.edges
