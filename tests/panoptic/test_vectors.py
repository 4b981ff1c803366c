"""Recorded results of panopticapi, boundary-iou-api and torchmetrics."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import rasterio
from reference_data import known_answers

import evalengine as ee

METRICS = ["PQ", "SQ", "RQ", "Counts"]
Rows = dict[tuple[Any, ...], float | None]


def rows_of(card: ee.Scorecard) -> Rows:
    """Return (metric, label, average, statistic) -> value."""
    keys = ("metric", "label_value", "average", "statistic")
    return {tuple(row[key] for key in keys): row["value"] for row in card.metrics.to_dicts()}


def write_png(path: Path, ids: Any) -> None:
    """Write an image whose colours encode ids."""
    ids = np.asarray(ids)
    colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536]).astype(np.uint8)
    path.parent.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        height, width = ids.shape
        kind = {"height": height, "width": width, "count": 3, "dtype": "uint8"}
        with rasterio.open(path, "w", driver="PNG", **kind) as file:
            file.write(colours)


def write_files(case: Any, folder: Path) -> tuple[str, str]:
    """Write both sides in COCO's format: JSON and a folder of images."""
    for side in ("pred", "gt"):
        for image, ids in zip(case[side]["annotations"], case["maps"][side], strict=True):
            write_png(folder / side / image["file_name"], ids)
        (folder / f"{side}.json").write_text(json.dumps(case[side]))
    return str(folder / "pred.json"), str(folder / "gt.json")


def same(ours: float | None, theirs: Any) -> bool:
    """Compare to 1e-12: the reference's last bit depends on its number of processes."""
    theirs = float(theirs)
    return ours == theirs or (ours is not None and math.isclose(ours, theirs, rel_tol=1e-12))


@pytest.mark.parametrize("name", ["panopticapi", "boundary_iou_api"])
def test_panopticapi(name: str, tmp_path: Path) -> None:
    for i, case in enumerate(known_answers("panoptic", name)["cases"]):
        folder = tmp_path / str(i)
        folder.mkdir()
        more = {}
        if "ratio" in case:
            more = {"iou_type": "boundary", "boundary_ratio": case["ratio"]}
        card = ee.score(*write_files(case, folder), dialect="coco", metrics=METRICS, **more)
        ours = rows_of(card)
        for group, average in (("all", None), ("things", "things"), ("stuff", "stuff")):
            for metric in ("PQ", "SQ", "RQ"):
                value = ours[metric, None, average, None]
                if case[group] is None:
                    assert value is None
                else:
                    assert same(value, case[group][metric.lower()]), (i, group, metric)
        for label, (*counts, iou) in case["stat"].items():
            found = [ours.get(("Counts", int(label), None, name)) for name in ("tp", "fp", "fn")]
            assert found == counts, (i, label)
            if counts[0]:
                assert same(ours["SQ", int(label), None, None], float(iou) / counts[0])


def as_tables(case: Any) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Convert maps of (category, instance) to tables of predictions and truths, and labels."""
    categories = case["things"] + case["stuff"]
    sides = []
    for place in (1, 0):
        rows: list[dict[str, Any]] = []
        for datum, pair in enumerate(case["images"]):
            pixels = np.array(pair[place])
            ids = np.where(
                np.isin(pixels[..., 0], categories), pixels[..., 0] * 9 + pixels[..., 1] + 1, 0
            )
            rows += [
                {
                    "datum_id": datum,
                    "segment_id": one,
                    "label_value": None if one is None else (one - 1) // 9,
                    "raster": ids.tolist(),
                }
                for one in [int(one) for one in np.unique(ids) if one] or [None]
            ]
        schema = {"datum_id": pl.Int64, "segment_id": pl.Int64, "label_value": pl.Int64,
                  "raster": pl.List(pl.List(pl.Int64))}  # fmt: skip
        sides.append(pl.DataFrame(rows, schema=schema))
    kinds = [1] * len(case["things"]) + [0] * len(case["stuff"])
    return sides, pl.DataFrame({"label_value": categories, "isthing": kinds})


def test_torchmetrics() -> None:
    """Counts are equal; ratios are compared in single precision, which torchmetrics uses."""
    for i, case in enumerate(known_answers("panoptic", "torchmetrics")["cases"]):
        sides, labels = as_tables(case)
        ours = rows_of(ee.score(*sides, dialect="torchmetrics", labels=labels,
                                metrics=[*METRICS, "PQDagger"]))  # fmt: skip
        for place, label in enumerate(sorted(case["things"]) + sorted(case["stuff"])):
            for name in ("tp", "fp", "fn"):
                assert ours["Counts", label, None, name] == case["PQ"][name][place], (i, label)
            for metric in ("PQ", "PQDagger"):
                value = ours[metric, label, None, None] or 0.0
                assert value == pytest.approx(case[metric]["pq"][place], abs=1e-6)
        for metric, of, theirs in (
            *zip(("PQ", "SQ", "RQ"), ("PQ",) * 3, case["PQ"]["avg"], strict=True),
            ("PQDagger", "PQDagger", case["PQDagger"]["avg"][0]),
        ):
            value = ours[metric, None, None, None]
            if value is None:
                assert math.isnan(theirs), (i, of)
            else:
                assert value == pytest.approx(theirs, abs=1e-6)
