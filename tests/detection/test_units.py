"""Warnings about boxes of the two sides in different units or forms; good ones cause none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import noted, refused

import evalengine as ee

Array = np.ndarray[Any, Any]
CORNERS = ["xmin", "ymin", "xmax", "ymax"]
SIZE = np.array([640.0, 480.0])


def boxes(seed: int, noise: float = 0.05, datums: int = 40, each: int = 4) -> tuple[Array, Array]:
    """Make predictions near ground truths: corners in pixels, float64 [n, 4] each."""
    rng = np.random.default_rng(seed)
    extent = rng.uniform(20, 200, (datums * each, 2))
    start = rng.uniform(0, 1, extent.shape) * (SIZE - extent)
    truths = np.concatenate([start, start + extent], axis=1)
    moved = truths + rng.normal(0, noise, truths.shape) * np.concatenate([extent, extent], axis=1)
    return np.sort(moved.reshape(-1, 2, 2), axis=1).reshape(-1, 4), truths


def tables(ours: Array, theirs: Array, each: int = 4) -> tuple[pl.DataFrame, pl.DataFrame]:
    sides = []
    for side in (ours, theirs):
        frame = pl.DataFrame(side, schema=CORNERS)
        frame = frame.with_columns(
            datum_id=pl.int_range(len(side)) // each, label_value=pl.lit("a")
        )
        sides.append(frame)
    return sides[0].with_columns(score=pl.int_range(pl.len()) / len(ours)), sides[1]


def share(side: Array) -> Array:
    return side / np.concatenate([SIZE, SIZE])


def centred(side: Array) -> Array:
    """Read the centre as the first corner, with unchanged extents."""
    extent = side[:, 2:] - side[:, :2]
    return np.concatenate([side[:, :2] + extent / 2, side[:, 2:] + extent / 2], axis=1)


WAYS: dict[str, tuple[Callable[[Array], Array], str]] = {
    "shares": (share, " 0 to 1.5, "),
    "centres": (centred, "cxcywh"),
    "transposed": (lambda side: side[:, [1, 0, 3, 2]], "have x and y exchanged"),
    "scaled": (lambda side: side * 2.5, "once x is multiplied by about"),
}


@pytest.mark.parametrize("of_truths", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_other_units_are_warned_about(way: str, of_truths: bool) -> None:
    change, message = WAYS[way]
    ours, theirs = boxes(1)
    sides = tables(ours, change(theirs)) if of_truths else tables(change(ours), theirs)
    card = ee.score(*sides, task="detection")
    (warning,) = card.warnings
    assert message in warning
    named = "ground truths" if of_truths and way in ("shares", "centres") else "predictions"
    assert warning.partition(": the ")[2].startswith(named)
    assert ("about 2.5" in warning) == (of_truths and way == "scaled")
    assert ee.check(*sides, task="detection").warnings == [warning]


@pytest.mark.parametrize("factor", [0.5, 2, 10, 1 / 3])
@pytest.mark.parametrize("seed", range(3))
def test_detections_on_another_scale(factor: float, seed: int) -> None:
    """Realistic detections: moved by some pixels, some missing, some spurious."""
    rng = np.random.default_rng(seed)
    ours, theirs = boxes(seed, 0.05)
    predictions, truth = tables(ours * factor, theirs)
    predictions = predictions.filter(pl.Series(rng.random(predictions.height) < 0.8))
    wrong = tables(boxes(seed + 50)[0] * factor, theirs)[0].gather_every(3)
    card = ee.score(pl.concat([predictions, wrong]), truth)
    factors = noted(card, "boxes_apart", severity="warning").facts["factors"]
    assert factors == pytest.approx([1 / factor] * 2, rel=0.05)


def test_boxes_that_never_overlap() -> None:
    """Boxes elsewhere in each image, which no other interpretation explains."""
    rng = np.random.default_rng(0)
    ours, theirs = boxes(1)
    away = 3000 + rng.uniform(0, 5000, (len(ours), 2))
    card = ee.score(*tables(ours + np.concatenate([away, away], axis=1), theirs))
    assert noted(card, "boxes_apart", severity="warning").facts["overlap"] == 0


def test_one_score_for_all_is_a_warning() -> None:
    predictions, truth = tables(*boxes(1))
    note = noted(
        ee.score(predictions.with_columns(score=0.5), truth), "tied_scores", severity="warning"
    )
    assert (note.count, note.facts["of"]) == (predictions.height, predictions.height)
    half = pl.when(pl.int_range(pl.len()) % 2 == 0).then(1.0).otherwise("score")
    assert ee.score(predictions.with_columns(score=half), truth).warnings == ()
    same = truth.with_columns(score=pl.lit(1.0))  # all right, in any order
    assert ee.score(same, truth).warnings == ()


def test_extents_in_place_of_corners() -> None:
    rng = np.random.default_rng(2)
    start, extent = rng.uniform(60, 90, (60, 2)), rng.uniform(95, 140, (60, 2))
    theirs = np.concatenate([start, start + extent], axis=1)
    sides = tables(theirs + 1, np.concatenate([start, extent], axis=1), each=1)
    assert "xywh" in noted(ee.score(*sides, task="detection"), "boxes_apart").message


@pytest.mark.parametrize("of_truths", [False, True])
def test_extents_of_one_side_that_overlap_corners_in_part(of_truths: bool) -> None:
    """A mean IoU of 0.6 without inverted boxes; renaming the columns of one side corrects it."""
    rng = np.random.default_rng(2)
    start, extent = rng.uniform(5, 60, (60, 2)), rng.uniform(90, 200, (60, 2))
    theirs = np.concatenate([start, start + extent], axis=1)
    wrong = np.concatenate([start, extent], axis=1)
    sides = [*(tables(theirs, wrong) if of_truths else tables(wrong, theirs))]
    (finding,) = (one for one in ee.score(*sides).findings if one.severity == "warning")
    assert finding.code == "boxes_apart"
    names = {"xmax": "box_width", "ymax": "box_height"}
    sides[of_truths] = sides[of_truths].rename(names)
    mended = ee.score(*sides)
    assert (mended.warnings, mended.value("mAP", iou=0.75)) == ((), 1)


def test_inverted_boxes_name_their_columns() -> None:
    ours, theirs = boxes(1)
    sides = [side.rename({"xmax": "right", "ymax": "bottom"}) for side in tables(ours, theirs)]
    wrong = [
        side.with_columns(right=pl.col("right") - pl.col("xmin"),
                          bottom=pl.col("bottom") - pl.col("ymin"))
        for side in sides
    ]  # fmt: skip
    with refused("inverted_boxes") as error:
        ee.score(*wrong)
    columns = {"right": "box_width", "bottom": "box_height"}
    assert all(f'"{own}": "{to}"' in str(error.value) for own, to in columns.items())
    assert ee.score(*wrong, columns=columns).metrics.equals(ee.score(*sides).metrics)


@pytest.mark.parametrize("offset", [[100.0, 100.0], [-30.0, 0.0], [0.0, 2000.0]])
def test_boxes_of_another_origin(offset: list[float]) -> None:
    ours, theirs = boxes(8, 0.02)
    card = ee.score(*tables(ours + np.array(offset * 2), theirs))
    (finding,) = (one for one in card.findings if one.severity == "warning")
    assert finding.code == "boxes_apart"
    result = [
        float(one) for one in re.findall(r"([-+][\d.]+) (?:is added )?to [xy]", finding.message)
    ]
    assert result == pytest.approx([-one for one in offset], abs=10)


@pytest.mark.parametrize("axis", [0, 1])
def test_mirrored_boxes(axis: int) -> None:
    ours, theirs = boxes(8, 0.02)
    turned = ours.copy()
    turned[:, [axis, axis + 2]] = SIZE[axis] - ours[:, [axis + 2, axis]]
    card = ee.score(*tables(turned, theirs))
    message = noted(card, "boxes_apart", severity="warning").message
    (edge,) = map(float, re.findall(r"is (\d+\.?\d*) - " + "xy"[axis], message))
    assert edge == pytest.approx(SIZE[axis], abs=10)


def test_a_memory_limit_does_not_matter(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    paths = [str(tmp_path / "p.parquet"), str(tmp_path / "t.parquet")]
    ours, theirs = boxes(3, datums=60)
    for side, path in zip(tables(share(ours), theirs), paths, strict=True):
        side.write_parquet(path, row_group_size=50)
    card = ee.score(*paths, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert card.warnings == ee.score(*paths, task="detection").warnings
    assert len(card.warnings) == 1


@pytest.mark.parametrize("scale", [1.0, 0.02, 1 / 640])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(2))
def test_overlapping_boxes_have_no_warnings(scale: float, noise: float, seed: int) -> None:
    """Pixels, tiny images, relative coordinates on both sides; good models and bad ones."""
    ours, theirs = boxes(seed, noise)
    assert ee.score(*tables(ours * scale, theirs * scale), task="detection").warnings == ()


def test_empty_models_have_no_warnings() -> None:
    ours, theirs = boxes(4)
    rng = np.random.default_rng(0)
    assert ee.score(*tables(ours[rng.permutation(len(ours))], theirs)).warnings == ()


def test_few_boxes_suffice_for_clear_evidence() -> None:
    """Four boxes of one image reveal relative coordinates or centres; two, only the former."""
    ours, theirs = boxes(6, datums=1)
    for few in (4, 2):
        card = ee.score(*tables(share(ours[:few]), theirs[:few]))
        assert "like shares" in noted(card, "boxes_apart", severity="warning").message
    card = ee.score(*tables(centred(ours), theirs))
    assert "the predictions seem" in noted(card, "boxes_apart", severity="warning").message
    assert ee.score(*tables(centred(ours[:2]), theirs[:2])).warnings == ()
    rng = np.random.default_rng(1)
    assert ee.score(*tables(centred(ours + rng.normal(0, 20, ours.shape)), theirs)).warnings == ()


def test_boxes_without_area_are_no_shares() -> None:
    """Rows of zeros mean no detection: they have no extent to compare and cause no warning."""
    ours, theirs = boxes(7)
    assert ee.score(*tables(np.zeros_like(ours), theirs)).warnings == ()
    assert ee.score(*tables(np.full_like(ours, 3.0), theirs)).warnings == ()


def test_few_boxes_of_labels_counted_from_another_number() -> None:
    """Six boxes of two classes, each with the other's number: clear, since all are exchanged."""
    ours, theirs = boxes(6, datums=2)
    predictions, truth = tables(ours[:6], theirs[:6])
    truth = truth.with_columns(label_value=pl.int_range(pl.len()) % 2 + 1)
    same = predictions.with_columns(label_value=pl.int_range(pl.len()) % 2 + 1)
    assert ee.score(same, truth).warnings == ()
    noted(ee.score(same.with_columns(pl.col("label_value") - 1), truth), "labels_apart", shift=1)
    mixed = same.with_columns(label_value=pl.Series([1, 1, 2, 2, 1, 2]))
    assert ee.score(mixed, truth).warnings == ()
    moved = predictions.with_columns(label_value=pl.lit("a"), datum_id=pl.col("datum_id") + 1)
    card = ee.score(moved, truth.with_columns(label_value=pl.lit("a")))
    assert "by -1" in noted(card, "boxes_apart", severity="warning").message


def test_a_few_boxes_that_do_not_overlap_are_noted() -> None:
    corners = ("xmin", "ymin", "xmax", "ymax")
    truth = pl.DataFrame({"datum_id": [1, 1, 2], "label_value": ["a"] * 3})
    truth = truth.with_columns(pl.lit(float(10 * i)).alias(c) for i, c in enumerate(corners))
    for moved, expected in ((500, ["note"]), (0, [])):
        predictions = truth.with_columns(pl.col("xmin", "xmax") + moved, score=pl.lit(0.5))
        findings = ee.score(predictions, truth).findings
        assert [one.severity for one in findings if one.code == "boxes_apart"] == expected
