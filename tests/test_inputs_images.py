"""Detection in memory: lists of images in the form of other tools, and COCO's dicts and objects."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from coco_files import annotation, result, truths
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO
from refusals import refused

import evalengine as ee

FOLDER = Path(__file__).parent.parent / "examples" / "detection"
GTS = pl.read_parquet(FOLDER / "groundtruths.parquet")
DETS = pl.read_parquet(FOLDER / "predictions.parquet")
NAMES = sorted({*GTS["datum_id"], *DETS["datum_id"]})
CLASSES = sorted(GTS["label_value"].unique())
CORNERS = ("xmin", "ymin", "xmax", "ymax")


def images(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of each image as arrays."""
    predictions_of = []
    for name in NAMES:
        rows = table.filter(datum_id=name)
        image = {
            "boxes": rows.select(CORNERS).to_numpy(),
            "labels": np.array([CLASSES.index(value) for value in rows["label_value"]], np.int64),
        }
        if "score" in rows.columns:
            image["scores"] = rows["score"].to_numpy()
        predictions_of.append(image)
    return predictions_of


class Detections:
    """Fields of supervision's class that are read."""

    def __init__(self, image: dict[str, Any]) -> None:
        self.xyxy = image["boxes"].reshape(-1, 4)
        self.class_id = image["labels"]
        self.confidence = image.get("scores")
        self.mask = image.get("masks")
        self.data = {"class_name": np.array([CLASSES[i] for i in image["labels"]])}


class Tensor:
    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.values


def tensors(image: dict[str, Any]) -> dict[str, Any]:
    return {name: Tensor(values) for name, values in image.items()}


def lists(image: dict[str, Any]) -> dict[str, Any]:
    return {name: values.tolist() for name, values in image.items()}


def pipeline(image: dict[str, Any]) -> list[dict[str, Any]]:
    scores = image.get("scores")
    return [
        {"label": CLASSES[label], "box": dict(zip(CORNERS, box, strict=True))}
        | ({} if scores is None else {"score": scores[i]})
        for i, (label, box) in enumerate(zip(image["labels"], image["boxes"].tolist(), strict=True))
    ]


def real_detections(image: dict[str, Any]) -> Any:
    supervision = pytest.importorskip("supervision")
    return supervision.Detections(
        xyxy=image["boxes"].reshape(-1, 4), class_id=image["labels"],
        confidence=image.get("scores"), mask=image.get("masks"),
    )  # fmt: skip


FORMS = [dict, tensors, lists, Detections, pipeline, real_detections]


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_images(form: Any) -> None:
    want = ee.score(DETS, GTS, datums=pl.DataFrame({"datum_id": NAMES}), dialect="coco")
    card = ee.score(*([form(image) for image in images(table)] for table in (DETS, GTS)),
                    dialect="coco")  # fmt: skip
    assert card.metrics["value"].to_list() == want.metrics["value"].to_list()
    assert card.run["datums"] == len(NAMES)


@pytest.mark.parametrize("form", [dict, tensors, Detections, real_detections])
@pytest.mark.parametrize("axis", [False, True])
def test_masks_of_images(form: Any, axis: bool) -> None:
    """Probabilities [n, 1, h, w] of torchvision and flags [n, h, w] give equal masks."""
    rng = np.random.default_rng(5)
    pixels = rng.random((4, 3, 20, 30)) > 0.4
    ours, theirs = [], []
    rows: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
    for place, masks in enumerate(pixels):
        boxes = np.tile([0.0, 0, 30, 20], (3, 1))
        truth = {"boxes": boxes, "labels": np.array([1, 1, 2]), "masks": masks}
        guess = masks ^ (rng.random(masks.shape) > 0.8)
        held = guess[:, None] * 0.9 if axis and form in (dict, tensors) else guess
        scores = np.array([0.9, 0.7, 0.8])
        ours.append(form({**truth, "scores": scores, "masks": held}))
        theirs.append(form(truth))
        for side, own in (("ours", guess), ("theirs", masks)):
            rows[side] += [
                {"datum_id": place, "label_value": int(label), "mask": one.astype(int).tolist()}
                | ({"score": score} if side == "ours" else {})
                for label, score, one in zip((1, 1, 2), scores, own, strict=True)
            ]
    want = ee.score(pl.DataFrame(rows["ours"]), pl.DataFrame(rows["theirs"]), task="detection")
    got = ee.score(ours, theirs)
    assert got.metrics["value"].to_list() == want.metrics["value"].to_list()


@pytest.mark.parametrize("low", [-3.0, -1e-6, np.nan])
def test_masks_of_logits_are_refused(low: float) -> None:
    """Only fractions are cut at one half; integer pixels are set if they are not 0."""
    masks = np.full((1, 40, 40), low, np.float32)
    masks[0, 2:38, 2:38] = 0.4
    truth = [{"boxes": [[2, 2, 38, 38]], "labels": [1], "masks": masks > 0}]

    def predictions_of(masks: Any) -> list[dict[str, Any]]:
        return [{"boxes": [[2, 2, 38, 38]], "labels": [1], "scores": [0.9], "masks": masks}]

    with pytest.raises(ee.InputError):
        ee.score(predictions_of(masks), truth, dialect="coco", iou_type="segm")
    for right in (masks > 0, np.where(masks > 0, 255.0, 0), np.where(masks > 0, 0.6, 0.4)):
        card = ee.score(predictions_of(right), truth, dialect="coco", iou_type="segm")
        assert card.value("AP") == pytest.approx(1.0)


def test_an_image_without_objects_counts() -> None:
    empty = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, int)}
    some = {"boxes": np.array([[1.0, 1, 5, 5]]), "labels": np.array([1])}
    scored = {**some, "scores": np.array([0.5])}
    card = ee.score([scored, {**empty, "scores": np.zeros(0)}], [some, empty])
    assert card.run["datums"] == 2
    assert card.value("mAP", iou_threshold=0.5) == pytest.approx(1.0)
    assert ee.score([[], pipeline(scored)], [[], pipeline(some)]).run["datums"] == 2
    none = ee.score([{**empty, "scores": []}] * 2, [some, empty])
    assert none.value("mAP", iou_threshold=0.5) == 0.0


def test_box_format_is_respected() -> None:
    image = {"boxes": [[3.0, 3, 4, 4]], "labels": [1]}
    corners = {"boxes": [[1.0, 1, 5, 5]], "labels": [1]}
    card = ee.score([{**image, "scores": [0.5]}], [image], box_format="cxcywh")
    plain = ee.score([{**corners, "scores": [0.5]}], [corners], metrics=["Counts"])
    assert card.value("mAP", iou_threshold=0.5) == pytest.approx(1.0)
    assert plain.run["datums"] == 1


ONE = {"boxes": [[1.0, 1, 5, 5]], "labels": [1]}


@pytest.mark.parametrize(
    ("ours", "facts"),
    [
        ([{**ONE, "scores": [0.5]}] * 3, {"code": "lengths_differ", "lengths": [3, 1]}),
        ([{**ONE, "scores": [0.5, 0.6]}], {"code": "lengths_differ", "row": 0}),
        ([{"boxes": [[1.0, 1, 5]], "labels": [1], "scores": [1.0]}], {"code": "wrong_shape"}),
        (
            [{"boxes": [1.0, 1, 5, 5], "labels": [1] * 4, "scores": [1] * 4}],
            {"code": "wrong_shape"},
        ),
        (
            [{"boxes": [[1.0] * 4] * 2, "labels": [1, "a"], "scores": [1] * 2}],
            {"code": "types_mixed"},
        ),
        (
            [{**ONE, "scores": [0.5], "masks": np.zeros((4, 4))}],
            {"code": "wrong_shape", "shape": (4, 4)},
        ),
        ([ONE], {"code": "column_missing", "side": "predictions", "column": "score"}),
        ([{**ONE, "boxes": None, "scores": [0.5]}], {"code": "lengths_differ", "row": 0}),
        ([{**ONE, "scores": 0.5}], {"code": "wrong_type"}),
        ([{**ONE, "labels": np.array(1), "scores": [0.5]}], {"code": "wrong_type"}),
    ],
)
def test_refused(ours: Any, facts: dict[str, Any]) -> None:
    with refused(**facts):
        ee.score(ours, [ONE])


def quiet(make: Any, *given: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return make(*given)


@pytest.mark.parametrize("kind", ["bbox", "segm", "encoded"])
def test_coco_in_memory_is_read_as_its_file(kind: str, tmp_path: Path) -> None:
    square = np.zeros((480, 640), np.uint8, order="F")
    square[4:20, 6:30] = 1
    code = coco_masks.encode(square)
    text = {**code, "counts": code["counts"].decode()}
    ring = [[6, 4, 30, 4, 30, 20, 6, 20]]
    box = [6, 4, 24, 16]
    whole = truths(annotation(1, bbox=box, segmentation=ring, area=384.0),
                   annotation(2, bbox=box, segmentation=text, area=384.0))  # fmt: skip
    predictions_of = [result(bbox=box, score=0.9), result(bbox=box, score=0.4)]
    if kind != "bbox":
        predictions_of = [{**one, "segmentation": text} for one in predictions_of]
    for name, content in (("gts", whole), ("dets", predictions_of)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    want = ee.score(tmp_path / "dets.json", tmp_path / "gts.json", dialect="coco")
    if kind == "encoded":
        predictions_of = [{**one, "segmentation": code} for one in predictions_of]
        whole["annotations"][1]["segmentation"] = code
    predictions_of = [{**one, "score": np.float64(one["score"])} for one in predictions_of]
    coco = quiet(COCO)
    coco.dataset = copy.deepcopy(whole)
    quiet(coco.createIndex)
    loaded = quiet(coco.loadRes, copy.deepcopy(predictions_of))
    for ours, theirs in (
        (predictions_of, whole),
        (predictions_of, coco),
        (loaded, coco),
        (loaded, whole),
    ):
        card = ee.score(ours, theirs, dialect="coco")
        assert card.metrics.equals(want.metrics)
    assert ee.score(predictions_of, whole, by="weather").metrics["slice"].drop_nulls().len() > 0


def test_invalid_coco_in_memory() -> None:
    with refused("file_malformed", ee.ReadError, field="bbox", row=1):
        ee.score([result()], truths(annotation(), annotation(2, bbox="no")))
    with refused("file_malformed", ee.InputError):
        ee.score([result()], truths(annotation(area=object())))
    with refused("file_malformed", ee.ReadError):
        ee.score([result()], {**truths(), "annotations": None})
    with pytest.raises(ee.InputError, match="box_format='xywh'"):
        ee.score([{"image_id": 1, "category": 1, "bbox": [1, 1, 2, 2], "score": 0.5}], [ONE])


def test_a_pipeline_without_detections() -> None:
    truths = [{"boxes": [[0.0, 0.0, 9.0, 8.0]], "labels": ["car"]}, {"boxes": [], "labels": []}]
    card = ee.score([[], []], truths)
    assert card.value("mAP", iou_threshold=0.5) == 0.0
    assert card.read == {"predictions": 0, "ground_truths": 1, "datums": 2}
    collector = ee.Collector("detection")
    one = {"label": "car", "score": 0.9, "box": {"xmin": 0, "ymin": 0, "xmax": 9, "ymax": 8}}
    collector.add([[one], []], truths)
    collector.add([[], []], truths)
    assert collector.score().value("mAR") == 0.5
