"""Tables of segments: formats, edge cases of the rules, frames, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from panoptic.test_vectors import rows_of, write_png
from refusals import noted, refused

import evalengine as ee
from evalengine.geometry.masks import from_pixels, to_rle

LABELS = pl.DataFrame({"label_value": ["car", "sky"], "isthing": [1, 0]})


def side(*segments: tuple[int, int | None, str | None], pixels: Any, **more: Any) -> pl.DataFrame:
    """Make rows (datum, id, label) of images with the same map."""
    return pl.DataFrame(
        {
            "datum_id": [one[0] for one in segments],
            "segment_id": pl.Series([one[1] for one in segments], dtype=pl.Int64),
            "label_value": pl.Series([one[2] for one in segments], dtype=pl.String),
            "raster": [np.asarray(pixels).tolist()] * len(segments),
            **more,
        }
    )


def counts(*sides: pl.DataFrame, label: str = "car", **options: Any) -> list[float | None]:
    """Count tp, fp and fn of a label."""
    options = {"task": "panoptic", "labels": LABELS, **options}
    rows = rows_of(ee.score(*sides, metrics=["Counts"], **options))
    return [rows["Counts", label, None, name] for name in ("tp", "fp", "fn")]


def test_an_iou_of_one_half_is_no_match() -> None:
    truth = side((0, 1, "car"), pixels=[[1, 1, 1, 0]])
    found = side((0, 1, "car"), pixels=[[1, 1, 1, 1]])
    assert counts(found, truth) == [1, 0, 0]  # without void, IoU is 3 / 3
    half = side((0, 1, "car"), (0, 2, "car"), pixels=[[1, 1, 2, 2]])
    whole = side((0, 1, "car"), pixels=[[1, 1, 1, 1]])
    assert counts(half, whole) == [0, 2, 1]


@pytest.mark.parametrize(("void", "wrong"), [(2, 1), (3, 0), (4, 0)])
def test_more_than_half_void_is_ignored(void: int, wrong: int) -> None:
    pixels = [[0] * void + [7] * (4 - void)]
    truth = side((0, 7, "sky"), pixels=pixels)
    found = side((0, 1, "car"), pixels=[[1, 1, 1, 1]])
    if void < 4:
        assert counts(found, truth) == [0, wrong, 0]
    else:
        none = side((0, None, None), pixels=pixels)
        assert counts(found, none) == [0, 0, 0]


def test_coco_uses_only_the_last_crowd_of_a_label() -> None:
    found = side((0, 1, "car"), (0, 2, "car"), pixels=[[1, 1, 2, 2]])
    crowds = side((0, 5, "car"), (0, 6, "car"), pixels=[[5, 5, 6, 6]], iscrowd=[1, 1])
    assert counts(found, crowds) == [0, 0, 0]
    assert counts(found, crowds, dialect="coco") == [0, 1, 0]
    assert counts(found, crowds.reverse(), dialect="coco") == [0, 1, 0]
    assert counts(found, crowds.with_columns(label_value=pl.lit("sky"))) == [0, 2, 0]


def test_annotated_and_counted_areas() -> None:
    found = side((0, 1, "car"), pixels=[[1, 1, 1, 0]])
    truth = side((0, 1, "car"), pixels=[[1, 1, 1, 1]], area=[9.0])
    assert counts(found, truth) == [1, 0, 0]
    assert counts(found, truth, dialect="coco") == [0, 1, 1]
    card = ee.score(found, truth, labels=LABELS)
    assert any("annotated area" in note for note in card.notes)


def test_one_sided_images() -> None:
    found = side((0, 1, "car"), (1, 1, "car"), pixels=[[1, 1]])
    truth = side((0, 1, "car"), (2, 1, "car"), pixels=[[1, 1]])
    assert counts(found, truth) == [1, 1, 1]
    assert counts(found, truth, dialect="coco") == [1, 0, 1]


def test_torchmetrics_merges_segments_of_stuff() -> None:
    found = side((0, 1, "sky"), (0, 2, "sky"), pixels=[[1, 1, 2, 2]])
    truth = side((0, 1, "sky"), pixels=[[1, 1, 1, 1]])
    assert counts(found, truth, label="sky") == [0, 2, 1]
    assert counts(found, truth, label="sky", dialect="torchmetrics") == [1, 0, 0]


def test_means_without_labels_of_a_kind_have_a_reason() -> None:
    both = side((0, 1, "car"), pixels=[[1, 1]])
    card = ee.score(both, both, labels=LABELS)
    rows = card.metrics.filter(metric="PQ", average="stuff")
    assert rows["value"].to_list() == [None]
    assert "no label" in rows["reason"][0]
    assert card.value("PQ") == card.value("PQ", average="things") == 1.0
    bare = ee.score(both, both)
    assert bare.metrics["average"].null_count() == bare.metrics.height
    assert any("isthing" in note for note in bare.notes)


def test_masks_equal_maps(tmp_path: Path) -> None:
    """Masks, pixel lists, and files with colours or a single band give the same numbers."""
    rng = np.random.default_rng(5)
    maps = [rng.integers(0, 4, (4, 3)).repeat(3, axis=0).repeat(2, axis=1) for _ in range(4)]
    cards = []
    for form in ("mask", "raster", "colours", "band"):
        sides = []
        for name, images in (("found", maps[:2]), ("truth", maps[2:])):
            rows: list[dict[str, Any]] = []
            for datum, pixels in enumerate(images):
                path = tmp_path / f"{form}-{name}-{datum}.png"
                if form == "colours":
                    write_png(path, pixels)
                elif form == "band":
                    import rasterio

                    kind = {"height": 12, "width": 6, "count": 1, "dtype": "uint16"}
                    with (
                        pytest.warns(rasterio.errors.NotGeoreferencedWarning),
                        rasterio.open(path, "w", driver="PNG", **kind) as file,
                    ):
                        file.write(pixels.astype(np.uint16), 1)
                rows += [
                    {"datum_id": datum, "segment_id": int(one), "label_value": int(one) % 2,
                     "pixels": (pixels == one), "raster": pixels.tolist(), "path": str(path)}
                    for one in np.unique(pixels) if one
                ]  # fmt: skip
            ids = pl.DataFrame([{key: row[key] for key in ("datum_id", "segment_id", "label_value")}
                                for row in rows])  # fmt: skip
            if form == "mask":
                made = to_rle(from_pixels([row["pixels"] for row in rows])).alias("mask")
                ids = ids.drop("segment_id")
            else:
                key = "raster" if form == "raster" else "path"
                made = pl.Series("raster", [row[key] for row in rows])
            sides.append(ids.with_columns(made))
        cards.append(ee.score(*sides, task="panoptic", metrics=["PQ", "SQ", "RQ", "Counts"]))
    for card in cards[1:]:
        assert card.metrics.equals(cards[0].metrics)


def test_confusion_and_outcomes() -> None:
    found = side((0, 1, "car"), (0, 2, "car"), (0, 3, "sky"), pixels=[[1, 1, 2, 2, 3, 3, 3, 0]])
    truth = side((0, 1, "car"), (0, 2, "sky"), (0, 3, "car"), pixels=[[1, 1, 2, 2, 9, 9, 3, 3]])
    card = ee.score(found, truth, labels=LABELS, metrics=["ConfusionMatrix", "Outcomes"])
    assert card.confusion.select("actual", "predicted", "count").rows() == [
        (None, "sky", 1), ("car", None, 1), ("car", "car", 1), ("sky", "car", 1)
    ]  # fmt: skip
    noted(card, "segments_without_row", count=1)
    rows = card.frame("outcomes").select("segment_id", "matched_annotation_id", "outcome", "iou")
    assert rows.rows() == [
        (1, 1, "tp", 1.0),
        (2, 2, "fp_misclassified", 1.0),
        (3, None, "fp_hallucination", None),
        (None, 2, "fn_misclassified", None),
        (None, 3, "fn_missed", None),
    ]


def test_export_to_panopticapi() -> None:
    both = side((0, 1, "car"), pixels=[[1, 1]])
    shape = ee.score(both, both, labels=LABELS, dialect="coco").to_panoptic()
    assert shape["All"] == {"pq": 1.0, "sq": 1.0, "rq": 1.0, "n": 1}
    assert shape["Stuff"] == {"pq": None, "sq": None, "rq": None, "n": 0}
    assert shape["per_class"]["sky"] == {"pq": 0.0, "sq": 0.0, "rq": 0.0}
    with pytest.raises(ee.ResultError, match="no SQ"):
        ee.score(both, both, metrics=["PQ"]).to_panoptic()


@pytest.mark.parametrize(
    ("found", "code", "facts", "message"),
    [
        (side((0, 1, "car"), pixels=[[1, 4]]),
         "segments_without_row", {"count": 1}, "datum 0: id 4"),
        (side((0, 1, "car"), (0, 2, "car"), pixels=[[1, 1]]),
         "segments_without_pixels", {"count": 1}, "row 1"),
        (side((0, 1, "car"), pixels=[[1, 1, 1]]), "grids_differ", {}, "1 x 3"),
        (side((0, 1, "car"), (0, 1, "car"), pixels=[[1, 1]]),
         "repeated_values", {"column": "segment_id", "count": 2}, None),
        (side((0, None, "car"), pixels=[[1, 1]]), "null_values", {"column": "segment_id"}, None),
        (side((0, 1, None), pixels=[[1, 1]]), "null_values", {"column": "label_value"}, None),
        (side((0, 1, "car"), pixels=[[1, -1]]), "too_low", {"value": -1}, None),
    ],
)  # fmt: skip
def test_invalid_tables_are_refused(
    found: pl.DataFrame, code: str, facts: dict[str, Any], message: str | None
) -> None:
    truth = side((0, 1, "car"), pixels=[[1, 1]])
    with refused(code, ee.InputError, match=message, **facts):
        ee.score(found, truth, labels=LABELS)


def test_masks_that_overlap_are_refused() -> None:
    masks = to_rle(from_pixels([np.ones((2, 2)), np.eye(2)])).alias("mask")
    found = pl.DataFrame({"datum_id": [0, 0], "label_value": ["car", "car"]}).with_columns(masks)
    with refused("segments_overlap", match="row 1.* 2 pixels"):
        ee.score(found, found, task="panoptic")


def test_missing_images_are_refused(tmp_path: Path) -> None:
    segments = [{"id": 1, "category_id": 1}]
    image = {"image_id": 1, "file_name": "a.png", "segments_info": segments}
    whole = {"annotations": [image], "categories": [{"id": 1, "name": "car", "isthing": 1}]}
    for name, content in (("gt", whole), ("pred", [image])):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    sides = [str(tmp_path / f"{name}.json") for name in ("pred", "gt")]
    with pytest.raises(ee.ReadError, match="is neither in"):
        ee.score(*sides)
    write_png(tmp_path / "gt" / "a.png", [[1, 1]])
    write_png(tmp_path / "pred" / "a.png", [[1, 0]])
    card = ee.score(*sides)
    assert (card.task, card.value("PQ")) == ("panoptic", 0.0)


def test_unsupported_boundary_options_are_refused() -> None:
    both = side((0, 1, "car"), pixels=[[1, 1]])
    with refused("options_conflict", ee.OptionError, option="iou_type"):
        ee.score(both, both, dialect="torchmetrics", iou_type="boundary")
    with refused("option_value", ee.OptionError, option="boundary_ratio", value=1.5):
        ee.score(both, both, boundary_ratio=1.5)


def test_void_is_excluded_from_boundaries() -> None:
    """Columns 6 and 7 are void; boundaries are one pixel wide and include the map's border."""
    pixels = np.zeros((6, 8), int)
    pixels[:, :6] = 1
    truth = side((0, 1, "car"), pixels=pixels)
    found = side((0, 1, "car"), pixels=np.ones((6, 8), int))
    card = ee.score(
        found, truth, task="panoptic", labels=LABELS, iou_type="boundary", metrics=["SQ"]
    )
    # 16 pixels in both, 24 and 20 in each, 8 of the 24 on void
    assert card.value("SQ", label_value="car") == 16 / (24 + 20 - 16 - 8)
    # the whole boundary is on void: no intersection
    pixels = np.zeros((7, 7), int)
    pixels[1:-1, 1:-1] = 1
    truth = side((0, 1, "car"), pixels=pixels)
    found = side((0, 1, "car"), pixels=np.ones((7, 7), int))
    assert counts(found, truth) == [1, 0, 0]
    assert counts(found, truth, iou_type="boundary") == [0, 1, 1]


RENAMED = {"labels_apart": {"a": "b", "b": "c", "c": "a"}, "labels_exchanged": {"a": "b", "b": "a"}}


@pytest.mark.parametrize("code", RENAMED)
def test_labels_of_other_segments_are_a_warning(code: str) -> None:
    rows = [
        {"datum_id": i, "segment_id": k + 1, "label_value": "abc"[(i + k) % 3],
         "raster": np.repeat([[1, 2, 3]], 4, axis=0).repeat(2, axis=1).tolist()}
        for i in range(15) for k in range(3)
    ]  # fmt: skip
    truth = pl.DataFrame(rows)
    renamed = truth.with_columns(pl.col("label_value").replace(RENAMED[code]))
    for check in (ee.score, ee.check):
        noted(check(renamed, truth, task="panoptic"), code, severity="warning")
        fair = check(truth, truth, task="panoptic")
        assert code not in {one.code for one in fair.findings}
