"""Boundaries and distances of outlines: values of MONAI and medpy, a plain reference, edges.

known_answers/segmentation/README.md states how the vectors were made. During development, 2,100
such pairs were compared, BoundaryIOU with the masks of boundary-iou-api.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from reference_data import known_answers
from refusals import refused
from scipy.ndimage import binary_erosion
from segmentation.making import rows_of, same, some_maps, write

import evalengine as ee

EVERY = ["BoundaryIOU", "BoundaryF1", "HD95", "HausdorffDistance", "ASSD", "NSD"]
CASES = known_answers("segmentation", "surfaces")["cases"]


def mask(case: dict[str, Any], side: str) -> Any:
    out = np.zeros(case["size"], np.uint8)
    out.flat[case[side]] = 1
    return out


def scored(predictions: Any, truth: Any, **options: Any) -> dict[str, float | None]:
    """Return the metrics of label 1 in one image; 0 is not a label."""
    asked = {"background": 0, "metrics": EVERY, "labels": [1], **options}
    card = ee.score(predictions[None], truth[None], **asked)
    return dict(card.metrics.filter(label_value=1).select("metric", "value").iter_rows())


def settings(case: dict[str, Any]) -> tuple[float, ...]:
    return (*case["spacing"], case["tolerance"])


ALIKE = sorted({settings(case) for case in CASES if case["spacing"] == [1, 1]})
OTHERS = [settings(case) for case in CASES if case["spacing"] != [1, 1]][:12]


@pytest.mark.parametrize("dialect", ["standard", "medpy"])
def test_monai_and_medpy(dialect: str) -> None:
    """Cases of the same settings are one run, with one label and one image per case."""
    for height, width, tolerance in ALIKE + OTHERS:
        cases = [case for case in CASES if settings(case) == (height, width, tolerance)]
        sides = [
            {i: mask(case, side) * (i + 1) for i, case in enumerate(cases)}
            for side in ("found", "truth")
        ]
        card = ee.score(
            *sides, dialect=dialect, background=0, labels=range(1, len(cases) + 1), metrics=EVERY,
            pixel_spacing=(height, width), surface_tolerance=tolerance,
        )  # fmt: skip
        rows = card.metrics.select("label_value", "metric", "value").iter_rows()
        ours = {(label, metric): value for label, metric, value in rows}
        for label, case in enumerate(cases, 1):
            theirs, close = (
                (case.get("medpy", {}), 1e-12) if dialect == "medpy" else (case["monai"], 1e-5)
            )
            for name, value in theirs.items():
                if case["truth"] and case["found"]:
                    assert ours[label, name] == pytest.approx(value, rel=close, abs=close), case
                elif name == "NSD" and (case["truth"] or case["found"]):
                    assert ours[label, name] == value == 0
                else:
                    assert ours[label, name] is None


def plain(
    truth: Any, predictions: Any, steps: tuple[float, float], tolerance: float
) -> dict[str, float]:
    """Reference implementation by all pairs of outline pixels."""
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    lines = [
        np.argwhere(side & ~binary_erosion(side, cross)) * steps for side in (truth, predictions)
    ]
    gaps = np.sqrt(((lines[0][:, None] - lines[1]) ** 2).sum(-1))
    missed, astray = gaps.min(1), gaps.min(0)
    together = np.concatenate([missed, astray])
    recall, precision = ((one <= tolerance).mean() for one in (missed, astray))
    return {
        "HausdorffDistance": together.max(),
        "HD95": max(np.percentile(missed, 95), np.percentile(astray, 95)),
        "ASSD": together.mean(),
        "NSD": (together <= tolerance).mean(),
        "BoundaryF1": 2 * precision * recall / max(precision + recall, 1e-300),
    }


def test_by_every_pair_of_pixels() -> None:
    rng = np.random.default_rng(3)
    for _ in range(15):
        truth, predictions = rng.random((2, *rng.integers(2, 20, 2))) < rng.uniform(0.2, 0.9)
        if not truth.any() or not predictions.any():
            continue
        steps, tolerance = (
            tuple(rng.choice([0.5, 1, 2.5], 2).tolist()),
            float(rng.choice([0, 1, 2])),
        )
        ours = scored(predictions.astype(np.uint8), truth.astype(np.uint8),
                      pixel_spacing=steps, surface_tolerance=tolerance)  # fmt: skip
        for name, value in plain(truth, predictions, steps, tolerance).items():
            assert ours[name] == pytest.approx(value, rel=1e-12), name


def test_boundary_iou_uses_eroded_masks() -> None:
    """Boundaries of two images are summed before the division; d is rounded half to even."""
    predictions, truth = some_maps(seed=4, n=2, labels=2)
    top = bottom = 0
    for a, b in zip(predictions == 1, truth == 1, strict=True):
        # 16 x 13 pixels: the diagonal is 20.6, and a tenth of it rounds to 2 pixels.
        edges = [one & ~binary_erosion(one, np.ones((3, 3)), iterations=2) for one in (a, b)]
        top += (edges[0] & edges[1]).sum()
        bottom += (edges[0] | edges[1]).sum()
    card = ee.score(predictions, truth, background=0, metrics=["BoundaryIOU"], boundary_ratio=0.1)
    assert card.value("BoundaryIOU", label_value=1) == top / bottom
    assert card.value("BoundaryIOU", average="macro") == top / bottom
    assert card.metrics["parameters"].unique().to_list() == ['{"boundary_ratio": 0.1}']


def test_one_side_without_the_label() -> None:
    """Distances skip the image; NSD, BoundaryF1 and BoundaryIOU count it as missed."""
    truth = np.zeros((3, 9, 9), np.uint8)
    truth[:2, 2:6, 2:6] = 1
    predictions = truth.copy()
    predictions[1] = 0
    card = ee.score(predictions, truth, background=0, metrics=EVERY)
    rows = {row["metric"]: row for row in card.metrics.filter(label_value=1).to_dicts()}
    assert [rows[name]["value"] for name in EVERY] == [0.5, 0.5, 0.0, 0.0, 0.0, 0.5]
    assert [rows[name]["support"] for name in EVERY[1:]] == [2] * 5
    assert [rows[name]["scored"] for name in ("HD95", "NSD")] == [1, 2]
    alone = scored(predictions[1], truth[1])
    assert alone == {name: 0.0 if name in ("BoundaryIOU", "BoundaryF1", "NSD") else None
                     for name in EVERY}  # fmt: skip
    card = ee.score(predictions[1:2], truth[1:2], background=0, metrics=["HD95"])
    assert "both sides" in card.metrics["reason"][0]


def test_neither_side_has_the_label() -> None:
    empty = np.zeros((4, 4), np.uint8)
    assert set(scored(empty, empty).values()) == {None}


def test_one_pixel_per_side() -> None:
    truth, predictions = np.zeros((2, 7, 9), np.uint8)
    truth[1, 1] = predictions[4, 5] = 1
    ours = scored(predictions, truth)
    assert ours == {"BoundaryIOU": 0.0, "BoundaryF1": 0.0, "HD95": 5.0, "HausdorffDistance": 5.0,
                    "ASSD": 5.0, "NSD": 0.0}  # fmt: skip
    ours = scored(predictions, truth, pixel_spacing=2, surface_tolerance=10)
    assert ours["HD95"] == 10
    assert ours["NSD"] == ours["BoundaryF1"] == 1
    ours = scored(predictions, truth, pixel_spacing=(4, 0.5))
    assert ours["ASSD"] == (12**2 + 2**2) ** 0.5


def test_the_outline_runs_along_the_image() -> None:
    full = np.ones((5, 6), np.uint8)
    inner = np.zeros_like(full)
    inner[2, 2] = 1
    ours = scored(inner, full)
    # 18 pixels of the frame; the corner (4, 5) is the farthest.
    assert ours["HausdorffDistance"] == (2**2 + 3**2) ** 0.5
    assert scored(full, full)["BoundaryIOU"] == 1


def test_ignored_pixels_have_no_label() -> None:
    truth, predictions = np.zeros((2, 8, 8), np.uint8)
    truth[2:5, 2:5] = predictions[2:5, 2:5] = 1
    truth[6:] = 255
    predictions[6:, :3] = 1
    assert scored(predictions, truth, ignore_index=255)["HausdorffDistance"] == 0
    truth[6:] = 0
    assert scored(predictions, truth)["HausdorffDistance"] == 13**0.5


def test_files_and_masks_give_the_values_of_maps(tmp_path: Any) -> None:
    predictions, truth = some_maps(seed=5, n=4)
    names = ["road", "car", "sky", "tree"]
    options: dict[str, Any] = {"labels": names, "metrics": EVERY, "pixel_spacing": (1, 2)}
    card = ee.score(predictions, truth, **options)
    tables = [
        pl.DataFrame({
            "datum_id": range(4),
            "raster": [write(tmp_path / f"{side}{i}.png", one) for i, one in enumerate(maps)],
        })
        for side, maps in (("found", predictions), ("truth", truth))
    ]  # fmt: skip
    same(ee.score(*tables, **options), card, "metrics")
    masks = ee.score(rows_of(predictions), rows_of(truth), task="segmentation", **options)
    same(masks, card, "metrics")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("pixel_spacing", 0),
        ("pixel_spacing", (1, 1, 2)),
        ("surface_tolerance", -1),
        ("boundary_ratio", 1),
    ],
)
def test_refused(option: str, value: Any) -> None:
    full = np.ones((1, 2, 2), np.uint8)
    with refused("option_value", ee.OptionError, option=option):
        ee.score(full, full, metrics=EVERY, **{option: value})


def test_a_mask_without_pixels_is_no_image_of_its_label() -> None:
    """NSD and boundary F1 counted it as an image with the label on one side, and so as 0."""
    truth = {0: np.array([[1, 1, 0]]), 1: np.array([[0, 0, 0]])}
    masks = pl.DataFrame(
        {
            "datum_id": [0, 0, 1, 1],
            "label_value": [0, 1, 0, 1],
            "mask": [[[0, 0, 1]], [[1, 1, 0]], [[1, 1, 1]], [[0, 0, 0]]],
        }
    )
    card = ee.score(masks, truth, metrics=["NSD", "BoundaryF1", "HD95"])
    rows = card.metrics.filter(label_value=1).select("metric", "value", "support", "scored")
    assert sorted(rows.rows()) == [
        ("BoundaryF1", 1.0, 1, 1),
        ("HD95", 0.0, 1, 1),
        ("NSD", 1.0, 1, 1),
    ]
