"""Valor's known answers on classification: cases of three files, and the runs behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from classification.known_answers import plain
from classification.rows import Sides
from reference_data import known_answers

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Vector:
    """One known answer.

    Attributes:
        id: the case.
        sides: predictions and ground truths.
        options: further arguments of ``score``.
        numbers: (metric, label key, label value or None) to value; ROCAUC is the mean of a key.
        curve: (label key, label value, threshold) to the cell's numbers.
        detailed: the same to the detailed cell.
        confusion: (label key, actual, predicted) to count, both present; None if the reference
            has none.
    """

    id: str
    sides: Sides
    options: dict[str, Any] = field(default_factory=dict)
    numbers: dict[Key, float] = field(default_factory=dict)
    curve: dict[Key, dict[str, float]] = field(default_factory=dict)
    detailed: dict[Key, dict[str, Any]] = field(default_factory=dict)
    confusion: dict[Key, int] | None = None


def tables(predictions: Sequence[Sequence[Any]], truths: Sequence[Sequence[Any]]) -> Sides:
    """Make tables of (datum, key, value[, score])."""
    names = ["datum_id", "label_key", "label_value"]
    schema: dict[str, Any] = dict.fromkeys(names, pl.String)
    return (
        pl.DataFrame(predictions, schema={**schema, "score": pl.Float64}, orient="row"),
        pl.DataFrame(truths, schema=schema, orient="row"),
    )


def row_tables(case: Mapping[str, Any]) -> Sides:
    """Make tables of a case of rows."""
    names = ("datum", "label_key", "label_value")
    return tables(
        [[*(row[n] for n in names), row["score"]] for row in case["predictions"]],
        [[row[n] for n in names] for row in case["groundtruths"]],
    )


def _core(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Group valor_core's metrics by key."""
    out: dict[str, Any] = {"numbers": {}, "curve": {}, "detailed": {}, "confusion": {}}
    for metric in expected["metrics"]:
        name, value = metric["type"], metric["value"]
        if "Curve" in name:
            kind = "detailed" if name.startswith("Detailed") else "curve"
            for label, cells in value.items():
                for threshold, cell in cells.items():
                    at = (metric["parameters"]["label_key"], label, float(threshold))
                    out[kind][at] = cell
            continue
        label = metric.get("label", {})
        key = label.get("key", metric.get("parameters", {}).get("label_key"))
        out["numbers"][name, key, label.get("value")] = value
    for matrix in expected["confusion_matrices"] or ():
        for entry in matrix["entries"]:
            cell = (matrix["label_key"], entry["groundtruth"], entry["prediction"])
            out["confusion"][cell] = entry["count"]
    return out


def why_not_core(case: Mapping[str, Any]) -> str | None:
    """Return the reason why a case of valor_core is not run: valor_core refuses it."""
    return "error" if "error" in case else None


def core_vectors() -> Iterator[Vector]:
    """Yield valor_core's answers: the hand-made cases and those of its own tests."""
    for case in known_answers("valor", "edge_cases.json")["cases"]:
        if case["task"] == "classification":
            expected = case["expected"]["valor_core_0.33.19"]
            yield Vector(case["id"], row_tables(case), {}, **_core(expected))
    for case in known_answers("valor", "classification_legacy.json")["cases"]:
        if why_not_core(case):
            continue
        parameters = case["parameters"]
        options = {"pr_curve_max_examples": parameters["pr_curve_max_examples"]}
        if case["label_map"]:
            options["label_map"] = {tuple(old): tuple(new) for old, new in case["label_map"]}
        yield Vector(case["id"], row_tables(case), options, **_core(case["expected"]))


def service_vectors() -> Iterator[tuple[Vector, dict[str, Any]]]:
    """Yield the service's answers (a brute force of its rules), and valor-lite's."""
    for case in known_answers("classification", "valor_classification.json")["cases"]:
        expected = plain(case["expected"]["valor_service_bruteforce"])
        numbers: dict[Key, float] = {}
        for key, value in expected["accuracy"].items():
            numbers["Accuracy", key, None] = value
            numbers["ROCAUC", key, None] = expected["rocauc"][key]
        for label, values in expected["prf"].items():
            key, value = label.split(":")
            for metric, number in zip(("Precision", "Recall", "F1"), values, strict=True):
                numbers[metric, key, value] = number
        curve = {
            (*label.split(":"), float(threshold)): cell
            for label, cells in expected["pr"].items()
            for threshold, cell in cells.items()
        }
        confusion = {
            (key, gt, pd): n for key, cells in expected["cm"].items() for gt, pd, n in cells or ()
        }
        sides = tables(case["inputs"]["predictions"], case["inputs"]["groundtruths"])
        vector = Vector(case["name"], sides, {}, numbers, curve, {}, confusion)
        yield vector, case["expected"].get("valor_lite", {})
