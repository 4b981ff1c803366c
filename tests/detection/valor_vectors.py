"""Valor's known answers in detection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl
from detection.strategies import Tables
from reference_data import known_answers

Key = tuple[Any, ...]
"""metric, statistic, label key, label value, IoU threshold, score threshold."""


@dataclass(frozen=True)
class Vector:
    """One known answer.

    Attributes:
        id: the case, followed by its part.
        tables: both sides.
        datums: every datum, also those without boxes.
        iou_thresholds: of averages.
        score_thresholds: of counts (and, in valor-lite, of AR).
        options: further arguments of ``score``.
        numbers: key to value; AR has its score threshold in the key if there are several.
        score_curve: (label key, label value, score threshold) to the cell's numbers.
        detailed: (label key, label value, score threshold) to the detailed cell.
        interpolated: (label value, IoU threshold) to (precisions, scores).
    """

    id: str
    tables: Tables
    datums: tuple[str, ...]
    iou_thresholds: tuple[float, ...]
    score_thresholds: tuple[float, ...]
    options: dict[str, Any] = field(default_factory=dict)
    numbers: dict[Key, float | None] = field(default_factory=dict)
    score_curve: dict[Key, dict[str, float]] = field(default_factory=dict)
    detailed: dict[Key, dict[str, Any]] = field(default_factory=dict)
    interpolated: dict[Key, tuple[list[float], list[float]]] = field(default_factory=dict)


CORNERS = ("xmin", "ymin", "xmax", "ymax")


def _frame(rows: Sequence[Mapping[str, Any]], *, scored: bool) -> pl.DataFrame:
    """Make a table with the columns of geometry of its rows, or of boxes without rows."""
    schema: dict[str, Any] = {
        "datum_id": pl.String,
        "label_key": pl.String,
        "label_value": pl.String,
    }
    if scored:
        schema["score"] = pl.Float64
    plain = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
    names = {name for row in rows for name in row["geometry"]} or {*CORNERS}
    dtypes = {"mask": pl.Struct({"size": pl.List(pl.Int64), "runs": pl.List(pl.Int64)})}
    return plain.with_columns(
        pl.Series(
            name,
            [row["geometry"].get(name) for row in rows],
            dtype=pl.Float64 if name in CORNERS else dtypes.get(name),
        )
        for name in sorted(names)
    )


def _columns(geometry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a geometry: corners of a box, also of one written as a polygon."""
    if geometry["type"] == "bbox":
        return {name: geometry[name] for name in CORNERS}
    if geometry["type"] == "raster":
        code = geometry["rle_rowmajor"]
        return {"mask": {"size": code["size"], "runs": code["counts"]}}
    if "wkt" in geometry:
        return {"polygon": geometry["wkt"]}
    rings = geometry["coordinates"]
    if geometry["type"] == "box_polygon":
        xs, ys = sorted({x for x, _ in rings[0]}), sorted({y for _, y in rings[0]})
        if len(xs) == len(ys) == 2:
            return {"xmin": xs[0], "ymin": ys[0], "xmax": xs[1], "ymax": ys[1]}
    return {"polygon": rings}


def row_tables(case: Mapping[str, Any], key: str | None = None) -> Tables:
    """Make tables of a case of rows, of one label key if given."""
    sides = []
    for side in ("predictions", "groundtruths"):
        rows = []
        for row in case[side]:
            if row["label_value"] is None or (key is not None and row["label_key"] != key):
                continue
            shape = _columns(row["geometry"])
            rows.append({**row, "geometry": shape, "datum_id": row["datum"]})
        sides.append(_frame(rows, scored=side == "predictions"))
    return Tables(*sides)


def _datums(case: Mapping[str, Any]) -> tuple[str, ...]:
    rows = case["groundtruths"] + case["predictions"]
    return tuple(sorted({row["datum"] for row in rows}))


def _core(metrics: Sequence[Mapping[str, Any]]) -> dict[str, dict[Key, Any]]:
    """Group valor_core's metrics by key."""
    out: dict[str, dict[Key, Any]] = {"numbers": {}, "score_curve": {}, "detailed": {}}
    for metric in metrics:
        name, value, where = metric["type"], metric["value"], metric.get("parameters", {})
        if "Curve" in name:
            kind = "detailed" if name.startswith("Detailed") else "score_curve"
            for label, cells in value.items():
                for score, cell in cells.items():
                    out[kind][where["label_key"], label, float(score)] = cell
            continue
        label = metric.get("label", {})
        key = label.get("key", where.get("label_key"))
        out["numbers"][name, None, key, label.get("value"), where.get("iou"), None] = value
    return out


def _lite(expected: Mapping[str, Any], key: str) -> dict[str, dict[Key, Any]]:
    """Group valor-lite's metrics by key."""
    out: dict[str, dict[Key, Any]] = {"numbers": {}, "interpolated": {}}
    for metrics in expected.values():
        for metric in metrics:
            name, value, where = metric["type"], metric["value"], metric["parameters"]
            label, iou = where.get("label"), where.get("iou_threshold")
            tail = (key, label, iou, where.get("score_threshold"))
            if name == "PrecisionRecallCurve":
                out["interpolated"][label, iou] = (value["precisions"], value["scores"])
            elif name == "Counts":
                for statistic, count in value.items():
                    out["numbers"][name, statistic, *tail] = count
            else:
                out["numbers"][name, None, *tail] = value
    return out


def load(name: str) -> Any:
    """Read one of Valor's vector files."""
    return known_answers("valor", name)


def why_not_core(case: Mapping[str, Any]) -> str | None:
    """Return the reason why a legacy case is not run: valor_core refuses it."""
    return "error" if "error" in case else None


def why_not_lite(case: Mapping[str, Any]) -> str | None:
    """Return the reason why a lite case is no precision-recall vector; confusion runs elsewhere."""
    if case["filter"] or case["parameters"].get("datums") is not None:
        return "filter"
    if case["method"] == "compute_examples":
        return "examples"
    return "confusion" if "confusion" in case["method"] else None


def cached(make: Callable[[], Iterator[Vector]]) -> Callable[[], tuple[Vector, ...]]:
    """Cache vectors, which the tests of a file read several times."""
    return cache(lambda: tuple(make()))


@cached
def core_vectors() -> Iterator[Vector]:
    """Yield valor_core's answers: the hand-made cases and those of its own tests."""
    for case in load("edge_cases.json")["cases"]:
        if case["task"] != "object_detection":
            continue
        expected, tables = case["expected"]["valor_core_0.33.19"], row_tables(case)
        parameters = case["parameters"]
        if "metrics" in expected:
            ious = tuple(parameters["iou_thresholds"])
            options = {k: v for k, v in parameters.items() if k.startswith(("recall", "pr_"))}
            yield Vector(
                case["id"], tables, _datums(case), ious, (), options, **_core(expected["metrics"])
            )
    for case in load("detection_legacy.json")["cases"]:
        if why_not_core(case):
            continue
        tables = row_tables(case)
        parameters = case["parameters"]
        options = {k: v for k, v in parameters.items() if k.startswith(("recall", "pr_"))}
        if case.get("label_map"):
            options["label_map"] = {tuple(old): tuple(new) for old, new in case["label_map"]}
        ious = tuple(
            parameters.get(
                "iou_thresholds_to_compute", [round(0.5 + 0.05 * i, 2) for i in range(10)]
            )
        )
        if "convert_annotations_to_type" in parameters:
            options["convert_to"] = parameters["convert_annotations_to_type"]
        options["iou_thresholds_to_return"] = parameters.get(
            "iou_thresholds_to_return", [0.5, 0.75]
        )
        metrics = case["expected"]["metrics"]
        yield Vector(case["id"], tables, _datums(case), ious, (), options, **_core(metrics))


@cached
def lite_vectors() -> Iterator[Vector]:
    """Yield valor-lite's answers: precision-recall runs without filters, each input once."""
    for case in load("edge_cases.json")["cases"]:
        if case["task"] != "object_detection":
            continue
        parameters = case["parameters"]
        for key, answer in case["expected"]["valor_lite_0.39.0"].items():
            tables = row_tables(case, key)
            expected = answer.get("precision_recall", answer)
            if "error" in expected:
                continue
            yield Vector(
                f"{case['id']}/{key}",
                tables,
                _datums(case),
                tuple(parameters["iou_thresholds"]),
                tuple(parameters["score_thresholds"]),
                **_lite(expected, key),
            )
    seen = set()
    for case in load("lite_object_detection.json")["cases"]:
        if why_not_lite(case):
            continue
        tables = lite_tables(case["data"])
        parameters = case["parameters"]
        content = (
            tables.predictions.write_json(),
            tables.truths.write_json(),
            json.dumps(parameters),
        )
        if content in seen:
            continue
        seen.add(content)
        yield _lite_vector(case["id"], case, tables)
    case = load("lite_coco_regression.json")
    for datum in case["data"]:
        datum["datum"] = datum["uid"]
        for row in datum["groundtruths"] + datum["predictions"]:
            row["geometry"] = {"type": "bbox", **row}
            row["geometry"]["type"] = "bbox"
    tables = lite_tables(case["data"])
    yield _lite_vector("lite_coco_regression", case, tables)


def _lite_vector(name: str, case: Mapping[str, Any], tables: Tables) -> Vector:
    parameters = case["parameters"]
    return Vector(
        name,
        tables,
        tuple(sorted(datum["datum"] for datum in case["data"])),
        tuple(parameters["iou_thresholds"]),
        tuple(parameters["score_thresholds"]),
        **_lite(case["expected"], "label"),
    )


def lite_tables(data: Sequence[Mapping[str, Any]]) -> Tables:
    """Make tables of valor-lite's nested data, one row per label."""
    sides = []
    for side in ("predictions", "groundtruths"):
        rows = []
        for datum in data:
            for annotation in datum[side]:
                shape = _columns(annotation["geometry"])
                scores = annotation.get("scores") or [None] * len(annotation["labels"])
                for label, score in zip(annotation["labels"], scores, strict=True):
                    rows.append(
                        {
                            "datum_id": datum["datum"],
                            "label_key": "label",
                            "label_value": label,
                            "score": score,
                            "geometry": shape,
                        }
                    )
        sides.append(_frame(rows, scored=side == "predictions"))
    return Tables(*sides)
