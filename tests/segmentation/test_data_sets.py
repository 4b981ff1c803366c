"""Folders of label maps in the layouts of Cityscapes, ADE20K, Pascal VOC and CVAT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import noted, refused
from segmentation.making import write

import evalengine as ee
from evalengine.ingest.label_map_files import COLOUR_MAP, SETS

IMAGES = [f"frankfurt_000000_00{i:04}" for i in (294, 576)] + ["lindau_000001_000019"]
CITYSCAPES = SETS["cityscapes"]
IDS, TRAIN_IDS, COLOURS = CITYSCAPES.codings
ID_OF = np.array([next(i for i, n in IDS.of.items() if n == k + 1) for k in range(19)], np.uint8)


def reference(
    predictions: list[Any], truth: list[Any], void: Any
) -> tuple[float, dict[int, float]]:
    """Return the IoU of each class, without void ground truth, and the mean."""
    a, b = (
        np.concatenate([one.ravel().astype(int) for one in side]) for side in (truth, predictions)
    )
    a, b = a[~void(a)], b[~void(a)]
    iou = {}
    for k in np.unique(np.concatenate([a, b[~void(b)]])).tolist():
        shared = int(((a == k) & (b == k)).sum())
        iou[k] = shared / (int((a == k).sum()) + int((b == k).sum()) - shared)
    return float(np.mean([*iou.values()])), iou


def some(seed: int, n: int, values: Any, error: float = 0.3) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    truth = [rng.choice(values, (12, 17)).astype(np.uint8) for _ in range(n)]
    predictions = [
        np.where(rng.random(t.shape) < error, rng.choice(values, t.shape), t) for t in truth
    ]
    return [one.astype(np.uint8) for one in predictions], truth


def colours_of(maps: list[Any], palette: Any) -> list[Any]:
    """Return the packed colours of indices as three bands [3, h, w]."""
    packed = np.asarray(palette)
    return [
        np.stack([packed[one] & 255, packed[one] >> 8 & 255, packed[one] >> 16]).astype(np.uint8)
        for one in maps
    ]


def cityscapes(folder: Path, truth: list[Any]) -> Path:
    """Write ground truths in the data set's layout: a folder per city, several files per image."""
    for name, trained in zip(IMAGES, truth, strict=True):
        city = folder / name.split("_")[0]
        city.mkdir(parents=True, exist_ok=True)
        ids = np.where(trained == 255, 3, ID_OF[np.minimum(trained, 18)]).astype(np.uint8)
        write(city / f"{name}_gtFine_labelIds.png", ids)
        write(city / f"{name}_gtFine_labelTrainIds.png", trained)
        write(city / f"{name}_gtFine_instanceIds.png", ids)
        (city / f"{name}_gtFine_polygons.json").write_text('{"objects": []}')
    return folder


def saved(folder: Path, names: list[str], maps: list[Any], palette: Any = None) -> Path:
    folder.mkdir(parents=True)
    for name, one in zip(names, maps, strict=True):
        write(folder / name, one, palette)
    return folder


@pytest.mark.parametrize("form", ["train-ids", "ids", "colours", "grey"])
def test_cityscapes_in_every_form(tmp_path: Path, form: str) -> None:
    predictions, truth = some(3, 3, [*range(19), 255])
    predictions = [np.where(one == 255, 4, one).astype(np.uint8) for one in predictions]
    theirs = cityscapes(tmp_path / "gtFine" / "val", truth)
    names = [f"{name}_leftImg8bit.png" for name in IMAGES]
    palette = [next(c for c, n in COLOURS.of.items() if n == k + 1) for k in range(19)]
    maps = {
        "train-ids": lambda: predictions,
        "ids": lambda: [ID_OF[one] for one in predictions],
        "colours": lambda: colours_of(predictions, palette),
        "grey": lambda: [np.stack([one] * 3) for one in predictions],
    }[form]()
    card = ee.score(saved(tmp_path / "found", names, maps), theirs)
    mean, iou = reference(predictions, truth, lambda v: v == 255)
    assert card.value("mIOU") == pytest.approx(mean, abs=1e-15)
    assert card.value("IOU", label_value="car") == pytest.approx(iou[13], abs=1e-15)
    assert card.per_datum["datum_id"].unique().sort().to_list() == IMAGES
    assert "labels of Cityscapes" in noted(card, "label_maps_recognised", count=3).message


def test_outlines_of_coded_files_are_those_of_their_labels(tmp_path: Path) -> None:
    """Void ground truth is never counted; files contain colours, or ids of another numbering."""
    predictions, truth = some(8, 3, [1, 2, 13, 255], error=0.1)
    predictions = [np.where(one == 255, 4, one).astype(np.uint8) for one in predictions]
    theirs = cityscapes(tmp_path / "gtFine" / "val", truth)
    palette = [next(c for c, n in COLOURS.of.items() if n == k + 1) for k in range(19)]
    ours = saved(tmp_path / "found", [f"{n}.png" for n in IMAGES], colours_of(predictions, palette))
    metrics = ["BoundaryIOU", "HausdorffDistance", "NSD"]
    card = ee.score(ours, theirs, metrics=metrics)
    plain = ee.score(
        dict(zip(IMAGES, predictions, strict=True)), dict(zip(IMAGES, truth, strict=True)),
        metrics=metrics, ignore_index=255,
    )  # fmt: skip
    for name in metrics:
        assert card.value(name, label_value="car") == plain.value(name, label_value=13), name


def test_cityscapes_ids_are_distinguished_from_train_ids(tmp_path: Path) -> None:
    predictions, truth = some(4, 3, [0, 1, 2, 3], error=0.1)
    theirs = cityscapes(tmp_path / "gt", truth)
    ours = saved(
        tmp_path / "found", [f"{n}_pred.png" for n in IMAGES], [ID_OF[o] for o in predictions]
    )
    card = ee.score(ours, theirs)
    assert card.value("mIOU") == pytest.approx(reference(predictions, truth, lambda v: v == 255)[0])
    assert any("labelIds 9" in note and "trainIds 0.0%" in note for note in card.notes)


@pytest.mark.parametrize("reduced", [False, True])
def test_ade20k_with_and_without_its_zero(tmp_path: Path, reduced: bool) -> None:
    predictions, truth = some(5, 2, range(151), error=0.2)
    names = ["ADE_val_00000001.png", "ADE_val_00000002.png"]
    predictions = [np.maximum(one, 1) for one in predictions]
    maps = [one - 1 for one in predictions] if reduced else predictions
    card = ee.score(saved(tmp_path / "a", names, maps), saved(tmp_path / "b", names, truth))
    mean, iou = reference(predictions, truth, lambda v: v == 0)
    assert card.value("mIOU") == pytest.approx(mean, abs=1e-15)
    assert card.value("IOU", label_value="wall") == pytest.approx(iou[1], abs=1e-15)
    raw = ee.score(tmp_path / "a", tmp_path / "b", ignore_index=0)
    assert (raw.value("mIOU") == pytest.approx(card.value("mIOU"))) is not reduced
    assert any("ade20k" in note for note in raw.notes)


PALETTE = {i: (c & 255, c >> 8 & 255, c >> 16) for i, c in enumerate(COLOUR_MAP)}


@pytest.mark.parametrize("form", ["palette", "colours", "numbers"])
def test_pascal_voc_in_every_form(tmp_path: Path, form: str) -> None:
    predictions, truth = some(6, 2, [*range(21), 255])
    predictions = [np.where(one == 255, 0, one).astype(np.uint8) for one in predictions]
    names = ["2007_000033.png", "2007_000042.png"]
    theirs = saved(tmp_path / "SegmentationClass", names, truth, PALETTE)
    maps = colours_of(predictions, COLOUR_MAP) if form == "colours" else predictions
    ours = saved(tmp_path / "found", names, maps, PALETTE if form == "palette" else None)
    card = ee.score(ours, theirs)
    mean, iou = reference(predictions, truth, lambda v: v == 255)
    assert card.value("mIOU") == pytest.approx(mean, abs=1e-15)
    assert card.value("IOU", label_value="aeroplane") == pytest.approx(iou[1], abs=1e-15)
    # Other data in the same palette has other labels, and the same void.
    for folder in (ours, theirs):
        for i, name in enumerate(names):
            (folder / name).rename(folder / f"scan{i}.png")
    other = ee.score(ours, theirs)
    assert other.value("mIOU") == card.value("mIOU")
    assert other.value("IOU", label_value=1) == card.value("IOU", label_value="aeroplane")


def test_colours_named_by_a_table_or_by_cvat(tmp_path: Path) -> None:
    predictions, truth = some(7, 2, [0, 1, 2])
    palette = [0x000000, 0x1E0F0A, 0x5A0A32]  # (0, 0, 0), (10, 15, 30), (50, 10, 90)
    names = ["a.png", "b.png"]
    ours = saved(tmp_path / "o" / "SegmentationClass", names, colours_of(predictions, palette))
    theirs = saved(tmp_path / "t" / "SegmentationClass", names, colours_of(truth, palette))
    with refused("values_unlabelled", side="ground_truths", count=2, values=[0x1E0F0A, 0x5A0A32]):
        ee.score(ours, theirs)
    labels = pl.DataFrame(
        {"label_value": ["none", "cat", "dog"], "color": ["#000000", "10,15,30", "#320a5a"]}
    )
    mean, _ = reference(predictions, truth, lambda v: v < 0)
    assert ee.score(ours, theirs, labels=labels).value("mIOU") == pytest.approx(mean)
    listed = "# label:color_rgb:parts:actions\nnone:0,0,0::\ncat:10,15,30::\ndog:50,10,90::\n"
    (tmp_path / "t" / "labelmap.txt").write_text(listed)
    card = ee.score(ours, tmp_path / "t")
    assert card.value("mIOU") == pytest.approx(mean)
    assert card.value("IOU", label_value="dog") > 0
    few = labels.head(2)
    with refused("values_unlabelled", count=1, coding="colors"):
        ee.score(ours, theirs, labels=few)


def test_masks_with_coded_files(tmp_path: Path) -> None:
    """Files of coded values are matched with masks of labels."""
    predictions, truth = some(8, 3, [0, 1, 255])
    predictions = [np.where(one == 255, 0, one).astype(np.uint8) for one in predictions]
    theirs = cityscapes(tmp_path / "gt", truth)
    masks = pl.DataFrame(
        [
            {"datum_id": n, "label_value": label, "mask": (one == k).astype(int).tolist()}
            for n, one in zip(IMAGES, predictions, strict=True)
            for k, label in enumerate(["road", "sidewalk"])
        ]
    )
    card = ee.score(masks, theirs, task="segmentation")
    mean, _ = reference(predictions, truth, lambda v: v == 255)
    assert card.value("mIOU") == pytest.approx(mean)


def test_names_that_differ_and_images_that_are_missing(tmp_path: Path) -> None:
    predictions, truth = some(9, 4, [0, 1])
    ours = saved(tmp_path / "o", [f"pred_{i}_mask.png" for i in "abce"], predictions)
    theirs = saved(tmp_path / "t", [f"{i}-gt.tif" for i in "abcd"], truth)
    card = ee.score(ours, theirs)
    assert card.per_datum["datum_id"].n_unique() == 5
    assert "'d'" in noted(card, "datums_without_predictions", count=1).message
    assert "'e'" in noted(card, "datums_without_ground_truths", count=1).message


def test_one_named_file_per_side_is_a_pair(tmp_path: Path) -> None:
    predictions, truth = some(9, 2, [0, 1])
    ours, theirs = (
        saved(tmp_path / "o", ["a.png"], predictions[:1]),
        saved(tmp_path / "t", ["b.png"], truth[:1]),
    )
    card = ee.score(ours / "a.png", theirs / "b.png")
    assert card.value("mIOU") < 1.0
    assert not card.warnings
    (warning,) = ee.check(ours, theirs).warnings
    assert "names differ" in warning
    assert all(str(file) in warning for file in (ours / "a.png", theirs / "b.png"))


def test_one_name_in_several_folders(tmp_path: Path) -> None:
    predictions, truth = some(10, 2, [0, 1])
    for side, maps in (("o", predictions), ("t", truth)):
        for clip, one in zip("xy", maps, strict=True):
            saved(tmp_path / side / clip, ["0001.png"], [one])
    card = ee.score(tmp_path / "o", tmp_path / "t")
    assert card.per_datum["datum_id"].unique().sort().to_list() == ["x/0001", "y/0001"]


def test_meaningless_values_and_photographs(tmp_path: Path) -> None:
    _, truth = some(11, 3, range(19))
    theirs = cityscapes(tmp_path / "gt", truth)
    ours = saved(tmp_path / "o", [f"{n}.png" for n in IMAGES], [t + 40 for t in truth])
    with refused("values_unlabelled", coding="cityscapes-ids"):
        ee.score(ours, theirs, labels="cityscapes")
    pictures = tmp_path / "jpeg"
    pictures.mkdir()
    (pictures / "a.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(ee.ReadError, match="JPEG files"):
        ee.score(pictures, theirs)


def test_a_file_that_states_its_coding(tmp_path: Path) -> None:
    predictions, truth = some(12, 1, range(19))
    paths = [
        write(tmp_path / f"{i}.png", one) for i, one in enumerate([predictions[0], ID_OF[truth[0]]])
    ]
    sides = [
        pl.DataFrame({"datum_id": ["a"], "raster": [path], "raster_coding": [coding]})
        for path, coding in zip(paths, ["cityscapes-train-ids", "cityscapes-ids"], strict=True)
    ]
    card = ee.score(*sides, labels="cityscapes")
    assert card.value("mIOU") == pytest.approx(reference(predictions, truth, lambda v: v == 255)[0])
    with refused("unknown_name", column="raster_coding", count=1, value="ids"):
        ee.score(sides[0].with_columns(raster_coding=pl.lit("ids")), sides[1])


@pytest.mark.parametrize("folder", ["gt", "SegmentationClass"])
def test_ground_truths_given_as_predictions_are_reported(tmp_path: Path, folder: str) -> None:
    """Swapped sides are recognised by Cityscapes' names, and by the folder of Pascal VOC."""
    predictions, truth = some(5, 3, [0, 1, 2])
    names = [f"{name}_leftImg8bit.png" for name in IMAGES]
    ours = saved(tmp_path / "found", names, predictions)
    if folder == "gt":
        theirs = cityscapes(tmp_path / folder, truth)
        sign = "*_gtFine_labelIds"
    else:
        theirs, sign = saved(tmp_path / folder, names, truth), "SegmentationClass/"
    assert sign in noted(ee.score(theirs, ours), "tables_swapped", severity="warning").message
    assert ee.score(ours, theirs).warnings == ()


def test_pictures_of_three_equal_bands(tmp_path: Path) -> None:
    predictions, truth = some(4, 3, [0, 1, 2, 3])
    names = [f"frame_{i}.png" for i in range(3)]
    grey = saved(tmp_path / "found", names, [np.stack([one] * 3) for one in predictions])
    plain = saved(tmp_path / "true", names, truth)
    expected, _ = reference(predictions, truth, lambda one: one == 255)
    assert ee.score(str(grey), str(plain)).value("mIOU") == pytest.approx(expected)
