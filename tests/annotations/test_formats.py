"""Fields that each annotation format has beyond boxes and labels, and malformed files."""

from __future__ import annotations

import base64
import gzip
import io
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from annotations.writers import WRITERS, images, write_class_results, write_coco
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture
from refusals import refused

import evalengine as ee
from evalengine.ingest.files import Source
from evalengine.ingest.sources.tables import open_source

VOC = (
    "<annotation><filename>a.jpg</filename>{size}<object><name>cat</name><pose>Left</pose>"
    "<truncated>1</truncated><difficult>1</difficult>{box}</object></annotation>"
)
SIZE = "<size><width>64</width><height>32</height></size>"
BOX = "<bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>5</xmax><ymax>6</ymax></bndbox>"


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def opened(path: Path) -> Source:
    source = open_source(path)
    assert source.format == "annotations"
    return source


def rows(path: Path) -> pl.DataFrame:
    return opened(path).frame.collect()


def noted(source: Source, kind: str) -> str:
    (message,) = [note.message for note in source.notes if note.kind == kind]
    return message


def decoded(mask: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The pixels of a run-length mask with listed counts."""
    values = np.repeat(np.arange(len(mask["counts"])) % 2 == 1, mask["counts"])
    return values.reshape(mask["size"][::-1]).T


# Pascal VOC


def test_voc(tmp_path: Path) -> None:
    put(tmp_path, "x/a.xml", '<?xml version="1.0"?>\n' + VOC.format(size=SIZE, box=BOX))
    put(tmp_path, "x/b.xml", "<annotation><filename>b.png</filename></annotation>")
    source = opened(tmp_path)
    assert source.frame.collect().to_dicts() == [
        {"datum_id": "a", "label_value": "cat", "xmin": 1.0, "ymin": 2.5, "xmax": 5.0, "ymax": 6.0,
         "difficult": 1, "truncated": 1, "pose": "Left"}
    ]  # fmt: skip
    assert source.datums is not None
    assert source.datums.rows() == [("a", "a.jpg", 64, 32), ("b", "b.png", None, None)]
    assert "1 object in 2 images" in noted(source, "format_recognised")


def test_voc_polygons(tmp_path: Path) -> None:
    for ring in (
        "<polygon><x1>0</x1><y1>0</y1><x2>4</x2><y2>0</y2><x3>4</x3><y3>8</y3></polygon>",
        "<polygon><pt><x>0</x><y>0</y></pt><pt><x>4</x><y>0</y></pt><pt><x>4</x><y>8</y></pt>"
        "</polygon>",
    ):
        put(tmp_path, "a.xml", VOC.format(size="", box=ring))
        (row,) = rows(tmp_path / "a.xml").to_dicts()
        assert row["polygon"] == [[[0.0, 0.0], [4.0, 0.0], [4.0, 8.0]]]
        assert (row["xmin"], row["ymin"], row["xmax"], row["ymax"]) == (0.0, 0.0, 4.0, 8.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (VOC.format(size="", box=""), "object 'cat' has no xmin in a bndbox"),
        (VOC.format(size="", box=BOX.replace("2.5", "x")), "<ymin> is 'x', which is not a number"),
        (VOC.format(size="", box=BOX.replace("2.5", "nan")), "<ymin> is 'nan'"),
        (VOC.format(size="", box=BOX).replace("<name>cat", "<name> "), "an object without a name"),
        (VOC.format(size="\n", box=BOX)[:-20], r"line 2: broken XML"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]>" + VOC.format(size="", box=BOX), "a document type"),
        (VOC.format(size="", box="<polygon><x1>1</x1><y1>1</y1></polygon>"), "fewer than three"),
    ],
)
def test_broken_voc(text: str, message: str, tmp_path: Path) -> None:
    for name in "abc":
        put(tmp_path, f"{name}.xml", VOC.format(size="", box=BOX))
    put(tmp_path, "odd.xml", text)
    with pytest.raises(ee.ReadError, match=rf"odd\.xml.*{message}"):
        rows(tmp_path)


# CVAT

IMAGES = (
    '<annotations><version>1.1</version>\n<image id="0" name="d/a.jpg" subset="val" width="8"'
    ' height="6">\n{shapes}</image></annotations>'
)


def test_cvat_shapes(tmp_path: Path) -> None:
    shapes = (
        '<box label="car" occluded="1" xtl="1" ytl="1" xbr="5" ybr="3">'
        '<attribute name="colour">red</attribute></box>'
        '<box label="car" occluded="0" xtl="1" ytl="1" xbr="5" ybr="3" rotation="90"/>'
        '<polygon label="car" occluded="0" points="0,0;4,0;4,4"/>'
        '<points label="car" points="1,1"/><polyline label="car" points="1,1;2,2"/><tag label="x"/>'
    )
    source = opened(put(tmp_path, "a.xml", IMAGES.format(shapes=shapes)))
    frame = source.frame.collect()
    assert frame["label_value"].to_list() == ["car"] * 3
    assert frame["occluded"].to_list() == [1, 0, 0]
    assert frame["colour"].to_list() == ["red", None, None]
    boxes = frame.select("xmin", "ymin", "xmax", "ymax").rows()
    assert boxes[0] == (1, 1, 5, 3)
    assert boxes[1] == pytest.approx((2, 0, 4, 4))
    assert [len(ring[0]) for ring in frame["polygon"]] == [4, 4, 3]
    assert source.datums is not None
    assert source.datums.rows() == [("a", "d/a.jpg", 8, 6, "val")]
    assert "1 points, 1 polyline, 1 tag" in noted(source, "objects_left_out")


def test_cvat_masks(tmp_path: Path) -> None:
    """Runs follow the rows of the mask's box and begin with background."""
    shape = '<mask label="car" occluded="0" rle="1,2,3" left="2" top="1" width="3" height="2"/>'
    (row,) = rows(put(tmp_path, "a.xml", IMAGES.format(shapes=shape))).to_dicts()
    pixels = np.zeros((6, 8), bool)
    pixels[1, 3:5] = True
    assert (decoded(row["mask"]) == pixels).all()
    assert (row["xmin"], row["ymin"], row["xmax"], row["ymax"]) == (3, 1, 5, 2)


def test_cvat_video(tmp_path: Path) -> None:
    """Listed frames, frames between them, and no frame after the object has left."""

    def box(frame: int, x: float, outside: int = 0) -> str:
        return (
            f'<box frame="{frame}" outside="{outside}" occluded="0" keyframe="1" xtl="{x}" ytl="0"'
            f' xbr="{x + 4}" ybr="2"/>'
        )

    text = (
        "<annotations><meta><task><size>9</size><original_size><width>64</width><height>32</height>"
        "</original_size></task></meta>\n"
        f'<track id="3" label="car">{box(1, 0)}{box(3, 8)}{box(4, 8, 1)}{box(6, 2)}</track>'
        "</annotations>"
    )
    source = opened(put(tmp_path, "a.xml", text))
    frame = source.frame.collect()
    assert frame.select("datum_id", "xmin", "track_id").rows() == [
        ("frame_000001", 0.0, 3), ("frame_000002", 4.0, 3), ("frame_000003", 8.0, 3),
        ("frame_000006", 2.0, 3),
    ]  # fmt: skip
    assert source.datums is not None
    assert source.datums.height == 9
    assert source.datums["width"].unique().to_list() == [64]


def test_cvat_videos(tmp_path: Path) -> None:
    text = (
        '<annotations><track id="0" label="car"><box frame="0" outside="0" xtl="{}" ytl="0"'
        ' xbr="60" ybr="2"/></track></annotations>'
    )
    put(tmp_path, "a.xml", text.format(1))
    put(tmp_path, "b.xml", text.format(50))
    predictions = rows(tmp_path).select("datum_id", "xmin").rows()
    assert predictions == [("a_frame_000000", 1.0), ("b_frame_000000", 50.0)]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ('<box occluded="0" xtl="1" ytl="1" xbr="5" ybr="3"/>', "a <box> without a label"),
        ('<box label="a" xtl="1" ytl="1" xbr="5"/>', "a <box> without 'ybr'"),
        ('<box label="a" xtl="1" ytl="1" xbr="5" ybr="w"/>', "'ybr' of <box> is 'w'"),
        ('<polygon label="a" points="1,1;2"/>', "points '2' of a polygon"),
        ('<polygon label="a" points="1,1;2,2"/>', "a polygon of 2 points"),
        ('<mask label="a" rle="1,2" left="0" top="0" width="3" height="2"/>', "of 3 pixels, not 6"),
    ],
)
def test_broken_cvat(shape: str, message: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.xml", IMAGES.format(shapes=shape))
    with pytest.raises(ee.ReadError, match=rf"a\.xml: .*{message}"):
        rows(path)


# LabelMe


def labelme(*shapes: dict[str, Any]) -> str:
    whole = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": "a.jpg",
             "imageData": None, "imageHeight": 6, "imageWidth": 8}  # fmt: skip
    return json.dumps(whole)


def test_labelme_shapes(tmp_path: Path) -> None:
    part = np.array([[0, 1, 1], [0, 0, 1]], bool)
    png = io.BytesIO()
    Picture.fromarray(part.astype(np.uint8) * 255).save(png, "PNG")
    text = labelme(
        {"label": "a", "points": [[0, 0], [4, 0], [4, 4]], "shape_type": "polygon"},
        {"label": "b", "points": [[4, 3], [4, 5]], "shape_type": "circle", "group_id": 7},
        {"label": "c", "points": [[2, 1], [4, 2]], "shape_type": "mask",
         "mask": base64.b64encode(png.getvalue()).decode()},
        {"label": "d", "points": [[1, 1]], "shape_type": "point"},
    )  # fmt: skip
    source = opened(put(tmp_path, "a.json", text))
    frame = source.frame.collect()
    assert frame["label_value"].to_list() == ["a", "b", "c"]
    assert frame["group_id"].to_list() == [None, "7", None]
    boxes = frame.select("xmin", "ymin", "xmax", "ymax").rows()
    assert boxes[0] == (0, 0, 4, 4)
    assert boxes[1] == pytest.approx((2, 1, 6, 5))
    pixels = np.zeros((6, 8), bool)
    pixels[1:3, 2:5] = part
    assert (decoded(frame["mask"][2]) == pixels).all()
    assert "1 point" in noted(source, "objects_left_out")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"label": "a", "points": [[0, 0]], "shape_type": "rectangle"}, "a rectangle 'a' of 1"),
        ({"label": "a", "points": [[0, 0], [1, 1]]}, "a polygon 'a' of 2 points"),
        ({"label": 3, "points": []}, "no file of LabelMe"),
        (
            {"label": "a", "points": [[0, 0], [2, 2]], "shape_type": "mask", "mask": "x"},
            "not a PNG",
        ),
        ({"label": "a", "points": [[0, 0], [2, 2]], "shape_type": "mask"}, "without its pixels"),
    ],
)
def test_broken_labelme(shape: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.json", labelme(shape))
    with pytest.raises(ee.ReadError, match=rf"a\.json: .*{message}"):
        rows(path)


# Label Studio


def region(kind: str = "rectanglelabels", **value: Any) -> dict[str, Any]:
    value = {"x": 25, "y": 50, "width": 50, "height": 25} | value
    return {"type": kind, "original_width": 64, "original_height": 32,
            "value": value | {kind: ["cat"]}}  # fmt: skip


def export(folder: Path, annotations: Any = (), predictions: Any = ()) -> Path:
    task = {"id": 4, "data": {"image": "/data/upload/1/a.jpg"}, "annotations": [*annotations],
            "predictions": [*predictions]}  # fmt: skip
    return put(folder, "export.json", json.dumps([task]))


def test_label_studio_regions(tmp_path: Path) -> None:
    turned = region(rotation=90)
    polygon = region("polygonlabels", points=[[0, 0], [50, 0], [50, 100]])
    whole = {"type": "choices", "value": {"choices": ["blurred"]}}
    result = [region(), turned, polygon, region("brushlabels"), whole]
    source = opened(export(tmp_path, [{"result": result}]))
    frame = source.frame.collect()
    boxes = frame.select("xmin", "ymin", "xmax", "ymax").rows()
    assert boxes[0] == (16, 16, 48, 24)
    assert boxes[1] == pytest.approx((8, 16, 16, 48)), "rotated about its first corner"
    assert boxes[2] == (0, 0, 32, 32)
    assert source.datums is not None
    assert source.datums.rows() == [("a", "a.jpg", 64, 32)]
    assert "1 brushlabels" in noted(source, "objects_left_out")


def test_label_studio_contains_both_sides(tmp_path: Path) -> None:
    """As one input or as either side: annotations are ground truths, predictions are detections."""
    path = export(
        tmp_path,
        [{"result": [region()]}, {"result": [region(x=0)]}],
        [{"result": [region(x=26)], "score": 0.75}],
    )
    single = ee.score(path)
    assert single.value("mAP", iou_threshold=0.75) > 0.999
    assert single.value("mAP", iou_threshold=0.75) == ee.score(path, path).value(
        "mAP", iou_threshold=0.75
    )
    assert any("1 images" in one.message for one in single.findings)
    counts = ee.convert(path, out=tmp_path / "out")
    assert counts["predictions.parquet"] == counts["groundtruths.parquet"] == 1
    assert pl.read_parquet(tmp_path / "out/predictions.parquet")["score"].to_list() == [0.75]


def test_label_studio_names_of_images(tmp_path: Path) -> None:
    """Use ``image``, else the path of a picture, else the id; drop the prefix of uploads."""
    for data, name in (
        ({"caption": "A man. He rides", "image": "/data/upload/1/8f3e2a1b-s_1.jpg"}, "s_1"),
        ({"note": "v1.2", "photo": "s3://b/550e8400-e29b.jpg"}, "550e8400-e29b"),
        ({"scan": "a.dcm"}, "a"),
        ({"text": "One. Two"}, "4"),
    ):
        task = {"id": 4, "data": data, "annotations": [{"result": [region()]}]}
        path = put(tmp_path, "a.json", json.dumps([task]))
        assert rows(path)["datum_id"].to_list() == [name]


def test_label_studio_labels_next_to_regions(tmp_path: Path) -> None:
    """Labels of <Labels> apply to <Rectangle>; types that are not read are noted."""
    place = region()["value"]
    parts = [("rectangle", "q", {}), ("labels", "q", {"labels": ["cat"]}), ("rectangle", "r", {})]
    result = [region() | {"type": t, "id": i, "value": place | more} for t, i, more in parts]
    ellipse = region("new") | {"id": "s"}
    source = opened(export(tmp_path, [{"result": [*result, ellipse]}]))
    frame = source.frame.collect()
    assert frame.select("label_value", "xmin", "xmax").rows() == [("cat", 16, 48)]
    assert "1 rectangle, 1 new" in noted(source, "objects_left_out")


def test_label_studio_notes_several_models(tmp_path: Path) -> None:
    models = [{"model_version": m, "result": [region()], "score": 0.5} for m in "AB"]
    source = opened(export(tmp_path, [{"result": [region()]}], models))
    assert source.results is not None
    assert source.results.collect().height == 1
    assert "(model versions 'A', 'B')" in noted(source, "predictions_several")


def test_label_studio_skips_cancelled_annotations(tmp_path: Path) -> None:
    cancelled = {"result": [region()], "was_cancelled": True}
    source = opened(export(tmp_path, [cancelled, {"result": [region(), region()]}]))
    assert source.frame.collect().height == 2
    assert "1 cancelled" in noted(source, "annotations_cancelled")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"type": "rectanglelabels", "value": {}}, "without original_width"),
        (region() | {"value": {"x": 1, "rectanglelabels": ["a"]}}, "without its place or label"),
        (region(x="left"), "without its place or label"),
        (region("polygonlabels", points=[[1, 1]]), "without its place or label"),
        ({"type": 3}, "no export of Label Studio"),
    ],
)
def test_broken_label_studio(result: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ee.ReadError, match=rf"export\.json: .*{message}"):
        rows(export(tmp_path, [{"result": [result]}]))


# Open Images


def test_open_images(tmp_path: Path) -> None:
    text = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf\n"
    path = put(tmp_path, "a.csv", text + "i1,xclick,/m/01,1,0.25,0.5,0.1,0.9,-1,1\n")
    put(tmp_path, "class-descriptions.csv", '/m/01,"Cat, big"\n/m/02,Dog\n')
    source = opened(path)
    assert source.frame.collect().to_dicts() == [
        {"datum_id": "i1", "label_value": "/m/01", "xmin": 0.25, "ymin": 0.1, "xmax": 0.5,
         "ymax": 0.9, "is_occluded": -1, "is_group_of": 1}
    ]  # fmt: skip
    assert source.labels is not None
    assert source.labels.rows() == [("/m/01", "Cat, big")]


def test_open_images_submissions(tmp_path: Path) -> None:
    text = "ImageId,PredictionString\ni1,/m/01 0.9 0.1 0.2 0.3 0.4 /m/02 0.5 0 0 1 1\ni2,\n"
    frame = rows(put(tmp_path, "a.csv", text))
    assert frame.rows() == [
        ("i1", "/m/01", 0.9, 0.1, 0.2, 0.3, 0.4), ("i1", "/m/02", 0.5, 0, 0, 1, 1),
    ]  # fmt: skip
    assert frame.columns == ["datum_id", "label_value", "score", "xmin", "ymin", "xmax", "ymax"]


def test_open_images_files_with_other_flags(tmp_path: Path) -> None:
    head = "ImageID,LabelName,XMin,XMax,YMin,YMax"
    put(tmp_path, "a.csv", f"{head},IsOccluded\na,car,.1,.5,.1,.5,1\n")
    put(tmp_path, "b.csv", f"{head}\nb,car,.1,.5,.1,.5\n")
    assert rows(tmp_path)["is_occluded"].to_list() == [1, None]
    put(tmp_path, "b.csv", f"{head},Score\nb,car,.1,.5,.1,.5,.9\n")
    with refused("scores_missing", ee.ReadError):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ImageID,LabelName,XMin,XMax,YMin,YMax\ni,l,0,1,0,1\ni,l,0,x,0,1\n",
         r"line 3: column 'XMax' contains 'x'"),
        ("ImageID,LabelName,XMin,XMax,YMin,YMax\ni,l,0,1,0\n",
         r"line 2: column 'YMax' contains None"),
        ("ImageId,PredictionString\ni1,/m/01 0.9 0.1 0.2 0.3\n", r"line 2: 5 fields in a Pred"),
        ("ImageId,PredictionString\ni1,/m/01 0.9 0.1 0.2 0.3 x\n", r"a PredictionString: "),
        ("ImageId,PredictionString\ni1,c .5 .1 .1 .2 .2\ni2,c .5 .1 .1 .2 .2,x\n",
         r"line 3: more fields than the header's 2"),
        ("ImageId,PredictionString\ni1,\ni2,c .9 10 10 20 20\n",
         r"line 3: corners that are not shares of the image.*'xmin': 10"),
        ("ImageID,LabelName,XMin,XMax,YMin,YMax\ni,l,0,1,0,1\ni,l,10,50,10,50\n",
         r"line 3: corners that are not shares of the image.*1 such"),
        ("ImageID,LabelName,XMin,XMax,YMin,YMax\ni,l,0,1,0,1\ni,,0,1,0,1\n",
         r"line 3: a box without a class"),
    ],
)  # fmt: skip
def test_broken_open_images(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ee.ReadError, match=rf"a\.csv.*{message}"):
        rows(put(tmp_path, "a.csv", text))


# Text files


def test_dota(tmp_path: Path) -> None:
    put(tmp_path, "P1.txt", "imagesource:GoogleEarth\ngsd:0.1\n0 0 4 0 4 2 0 2 ship 1\n")
    put(tmp_path, "P2.txt", "imagesource:GoogleEarth\ngsd:null\n")
    source = opened(tmp_path)
    assert source.frame.collect().to_dicts() == [
        {"datum_id": "P1", "label_value": "ship", "xmin": 0.0, "ymin": 0.0, "xmax": 4.0,
         "ymax": 2.0, "polygon": [[[0.0, 0.0], [4.0, 0.0], [4.0, 2.0], [0.0, 2.0]]], "difficult": 1}
    ]  # fmt: skip
    assert source.datums is not None
    assert source.datums["datum_id"].to_list() == ["P1", "P2"]
    put(tmp_path, "P3.txt", "0 0 4 0 4 2 0 ship 1\n")
    with refused("file_malformed", ee.ReadError, line=1, match=r"P3\.txt.*'ship'"):
        rows(tmp_path)


def test_kitti(tmp_path: Path) -> None:
    line = "Car 0.5 1 -1.57 599 156 629 189 2.85 2.63 12.34 0.47 1.49 69.44 -1.56"
    region = "DontCare -1 -1 -10 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10"
    put(tmp_path, "000001.txt", f"{line}\n{region}\n")
    source = opened(tmp_path)
    assert source.frame.collect().to_dicts() == [
        {"datum_id": "000001", "label_value": "Car", "xmin": 599.0, "ymin": 156.0, "xmax": 629.0,
         "ymax": 189.0, "truncated": 0.5, "alpha": -1.57, "occluded": 1,
         "box3d": [0.47, 1.49, 69.44, 12.34, 2.63, 2.85, -1.56]}
    ]  # fmt: skip
    assert source.datums is not None
    assert source.datums["regions"].to_list() == [[1.0, 2.0, 3.0, 4.0]]
    assert "1 regions 'DontCare'" in noted(source, "regions_left_out")
    put(tmp_path, "000002.txt", f"{line} 0.75\n")
    with refused("file_malformed", ee.ReadError, match="1 of 2 lines"):
        rows(tmp_path)
    put(tmp_path, "000001.txt", f"{line} 0.5\n")
    assert rows(tmp_path)["score"].to_list() == [0.5, 0.75]


def test_results_by_class(tmp_path: Path) -> None:
    """The same numbers as COCO's JSON of the same boxes; oriented boxes are polygons."""
    some = images(0, predictions=True)
    for image in some:
        image.stem = image.stem.replace(" ", "_")
    truths = images(0, predictions=False)
    for image in truths:
        image.stem = image.stem.replace(" ", "_")
    paths = write_class_results(tmp_path, some), write_coco(tmp_path, truths, predictions=False)
    whole = write_coco(tmp_path, some, predictions=True), paths[1]
    stats = [
        ee.score(*sides, dialect="coco", iou_type="bbox").to_coco()["stats"]
        for sides in (paths, whole)
    ]
    assert stats[0] == stats[1]
    task = put(tmp_path, "obb/Task1_ship.txt", "P1 0.9 0 0 4 0 4 2 0 2\n")
    (row,) = rows(task).to_dicts()
    assert (row["label_value"], row["score"]) == ("ship", 0.9)
    assert len(row["polygon"][0]) == 4


# All


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_by_a_named_error(data: st.DataObject) -> None:
    """Bytes cut out, doubled or changed anywhere: the file is read, or a named error refuses it."""
    name = data.draw(st.sampled_from(sorted(WRITERS)))
    predictions = data.draw(st.booleans())
    with TemporaryDirectory() as folder, suppress(ee.InputError):
        path = WRITERS[name](
            Path(folder), images(1, predictions=predictions, many=3), predictions=predictions
        )
        whole = sorted(path.rglob("*") if path.is_dir() else [path])
        files = [one for one in whole if one.is_file() and one.suffix != ".jpg"]
        file = data.draw(st.sampled_from(files))
        content = bytearray(file.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            at, length = data.draw(st.integers(0, len(content))), data.draw(st.integers(0, 40))
            odd = st.sampled_from([b"<", b'"', b"-1", b"}", b"1e999", b"\xff", b"null"])
            content[at : at + length] = data.draw(st.one_of(st.binary(max_size=6), odd))
        file.write_bytes(content)
        ee.check(path, path, task="detection")


@pytest.mark.parametrize("row", ["c.jpg,,,,,", "c.jpg,,0,0,0,0", "c.jpg,/m/1,0,0,0,0"])
def test_images_of_open_images_without_objects(row: str, tmp_path: Path) -> None:
    """They count as images; they add no ground truths."""
    head, boxes = "ImageID,LabelName,{}XMin,YMin,XMax,YMax\n", "{},/m/1,{}0.1,0.1,0.5,0.5\n"
    text = head.format("") + "".join(boxes.format(name, "") for name in ("a.jpg", "b.jpg"))
    truth = put(tmp_path, "truth.csv", f"{text}{row}\n")
    scores = zip(("a", "b", "c"), (0.9, 0.8, 0.7), strict=True)
    lines = "".join(boxes.format(f"{name}.jpg", f"{score},") for name, score in scores)
    predictions = put(tmp_path, "found.csv", head.format("Conf,") + lines)
    source = opened(truth)
    assert source.frame.collect().height == 2
    assert source.datums is not None
    assert source.datums["datum_id"].to_list() == ["a", "b", "c"]
    for more in ({}, {"memory_limit": "1GB"}):
        card = ee.score(predictions, truth, metrics=["Counts", "AP"], **more)
        assert card.value("AP", iou_threshold=0.5) == pytest.approx(1)
        counts = card.metrics.filter(metric="AP")["support"].to_list()
        assert {*counts} == {2}
    assert any(note.kind == "boxes_of_zeros" for note in source.notes) == ("/m/1" in row)


# Groups, several labels and bytes of images


def square(label: str, x: float, group: int | None = None, kind: str = "polygon") -> dict[str, Any]:
    points = [[x, 0], [x + 2, 0], [x + 2, 2], [x, 2]]
    return {"label": label, "points": points if kind == "polygon" else points[::2],
            "shape_type": kind, "group_id": group}  # fmt: skip


def test_labelme_groups_are_one_object(tmp_path: Path) -> None:
    """Shapes of one group are one object; other labels and images are separate objects."""
    shapes = square("a", 0, 1), square("a", 4, 1), square("b", 4, 1), square("a", 0), square("a", 1)
    path = put(tmp_path, "t/a.json", labelme(*shapes))
    put(tmp_path, "t/b.json", labelme(square("a", 4, 1)))
    frame = rows(path.parent)
    assert frame.select("datum_id", "label_value", "xmin", "xmax").rows() == [
        ("a", "a", 0, 6), ("a", "b", 4, 6), ("a", "a", 0, 2), ("a", "a", 1, 3), ("b", "a", 4, 6),
    ]  # fmt: skip
    assert noted(opened(path), "shapes_joined")
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 8, "height": 6}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 6, 2], "area": 8,
             "iscrowd": 0, "score": 0.5,
             "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2], [4, 0, 6, 0, 6, 2, 4, 2]]}
        ],
    }  # fmt: skip
    predictions = put(tmp_path, "found.json", json.dumps(coco))
    truth = put(tmp_path, "one/a.json", labelme(*shapes[:2]))
    for more in ({"dialect": "coco", "iou_type": "segm"}, {"dialect": "standard"}):
        card = ee.score(predictions, truth.parent, iou_thresholds=[0.99], metrics=["AP"], **more)
        assert card.metrics["value"].drop_nulls().max() > 0.99
    counts = ee.convert(truth.parent, out=tmp_path / "out", to="coco")
    assert counts["groundtruths.json"] == 1


@pytest.mark.parametrize("shaped", [False, True])
def test_labelme_groups_of_boxes_and_masks(shaped: bool, tmp_path: Path) -> None:
    boxes = [square("a", 0, 1, "rectangle"), square("a", 4, 1, "rectangle")]
    more = [square("c", 0)] if shaped else []
    frame = rows(put(tmp_path, "a.json", labelme(*boxes, *more)))
    assert frame.height == 1 + shaped
    assert frame.row(0, named=True)["xmax"] == 6
    if shaped:
        assert len(frame["polygon"][0]) == 2
    png = io.BytesIO()
    Picture.fromarray(np.full((2, 2), 255, np.uint8)).save(png, "PNG")
    masks = [
        {"label": "c", "points": [[x, 1], [x + 1, 2]], "shape_type": "mask", "group_id": 1,
         "mask": base64.b64encode(png.getvalue()).decode()} for x in (0, 4)
    ]  # fmt: skip
    frame = rows(put(tmp_path, "a.json", labelme(*masks)))
    pixels = np.zeros((6, 8), bool)
    pixels[1:3, [0, 1, 4, 5]] = True
    assert (decoded(frame["mask"][0]) == pixels).all()
    mixed = opened(put(tmp_path, "a.json", labelme(*masks, square("c", 0, 1))))
    assert mixed.frame.collect().height == 3
    assert noted(mixed, "groups_not_joined")


@pytest.mark.parametrize("packed", [False, True])
def test_labelme_with_the_bytes_of_the_image_first(packed: bool, tmp_path: Path) -> None:
    """With sorted keys the image's bytes come first, so shapes are far from the start."""
    whole = json.loads(labelme(square("a", 0), square("b", 4)))
    whole["imageData"] = base64.b64encode(bytes(300_000)).decode()
    text = json.dumps(whole, sort_keys=True)
    assert text.index('"shapes"') > 1 << 16
    path = tmp_path / ("a.json.gz" if packed else "a.json")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    for one in (path, tmp_path):
        assert rows(one)["label_value"].to_list() == ["a", "b"]


def test_label_studio_regions_of_several_labels(tmp_path: Path) -> None:
    two = region()
    two["value"]["rectanglelabels"] = ["cat", "dog"]
    source = opened(export(tmp_path, [{"result": [two, region(x=0)]}]))
    assert source.frame.collect()["label_value"].to_list() == ["cat", "dog", "cat"]
    assert noted(source, "labels_several")
