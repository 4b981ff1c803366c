"""Known answers of valor-lite under ``valor-lite``, with its hard maximum at a threshold.

A hard prediction at a threshold is the best of the predictions at or above it, so these runs filter
the table; valor-lite never counts a score of 0. Known differences, each checked:

- true negatives: valor-lite counts only datums that list the label (valor.md 1.2), this package
all;
- without hard maximum, a datum with a true and another positive label is also a false negative
  (valor.md 1.2, "do not copy");
- ROC areas: its negatives are rows that list the label, a score of 0 starts its curve late, and a
  label never predicted has 0 (valor.md 1.3);
- labels listed twice are refused here; valor-lite returns an area of 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
import pytest
from classification.rows import Sides, counts_by_cell, label_values, score
from classification.valor_vectors import row_tables, service_vectors, tables
from reference_data import known_answers

ROC_DIFFERS: dict[str, dict[str, float]] = {
    "cl_label_only_in_gt": {"cow": 0.5},
    "cl_sparse_scores": {"a": 0.625, "c": 2 / 3},
    "cl_zero_scores": {"b": 0.5},
    "sparse_preds": {"b": 0.5, "c": 1.0},
}
"""Case -> label and the area computed here."""

STRAY = "cl_datum_without_gt"
"""valor-lite requires a ground truth per datum, so it ran without the datum that has none."""


class Case(NamedTuple):
    """One answer of valor-lite."""

    id: str
    method: str
    parameters: dict[str, Any]
    sides: Sides
    expected: Any


def cases(method: str) -> Iterator[Case]:
    """Read unfiltered answers of one method: valor-lite's own tests and the hand-made cases."""
    for case in known_answers("valor", "lite_classification.json")["cases"]:
        if case["filter"] or case["parameters"].get("datums") or case["method"] != method:
            continue
        predictions = [
            [datum["datum"], "label", label, score]
            for datum in case["data"]
            for label, score in zip(datum["predictions"], datum["scores"], strict=True)
        ]
        truths = [[datum["datum"], "label", datum["groundtruth"]] for datum in case["data"]]
        sides = tables(predictions, truths)
        yield Case(case["id"], method, case["parameters"], sides, case["expected"])
    for case in known_answers("valor", "edge_cases.json")["cases"]:
        if case["task"] != "classification":
            continue
        for key, answers in case["expected"]["valor_lite_0.39.0"].items():
            if "error" in answers or case["id"] == STRAY:
                continue
            sides = tuple(table.filter(label_key=key) for table in row_tables(case))
            sides = tuple(table.with_columns(label_key=pl.lit("label")) for table in sides)
            for name, answer in answers.items():
                if METHODS.get(name.split("_hardmax")[0]) == method:
                    parameters = {**case["parameters"], "hardmax": not name.endswith("false")}
                    yield Case(case["id"], method, parameters, sides, answer)
    for vector, answer in service_vectors():
        if method != "compute_rocauc" or "value" not in answer:
            continue
        if vector.id in ("duplicate_prediction_rows", "two_gts_same_key"):
            continue
        areas = answer["value"]["rocauc"]["value"]
        expected = {name.split(".")[1]: rows for name, rows in areas.items()}
        sides = tuple(table.with_columns(label_key=pl.lit("label")) for table in vector.sides)
        yield Case(vector.id, method, {}, sides, expected)


METHODS = {
    "rocauc": "compute_rocauc",
    "precision_recall": "compute_precision_recall",
    "confusion_matrix": "compute_confusion_matrix",
}


def positive(sides: Sides, threshold: float) -> Sides:
    """Return the predictions that valor-lite counts at a threshold, and all ground truths."""
    return sides[0].filter((pl.col("score") >= threshold) & (pl.col("score") > 0)), sides[1]


def labels_of(sides: Sides) -> list[str]:
    """Return all labels of either side."""
    return sorted({*sides[0]["label_value"], *sides[1]["label_value"]})


def unlisted(sides: Sides, label: str) -> int:
    """Count the datums that do not list a label."""
    return int(sides[1]["datum_id"].n_unique()) - sides[0].filter(label_value=label).height


def test_areas() -> None:
    """ROCAUC of every label, and their mean."""
    seen = set()
    for case in cases("compute_rocauc"):
        card = score(case.sides, ["ROCAUC", "mROCAUC"], dialect="valor-lite")
        ours = label_values(card, "ROCAUC")
        theirs = {row["parameters"]["label"]: row["value"] for row in case.expected["ROCAUC"]}
        instead = ROC_DIFFERS.get(case.id, {})
        for label, value in instead.items():
            assert theirs[label] != pytest.approx(value), case.id
        assert ours == pytest.approx(theirs | instead, abs=1e-9), case.id
        mean = case.expected["mROCAUC"][0]["value"]
        if instead:
            mean = sum((theirs | instead).values()) / len(theirs)
        assert card.value("mROCAUC") == pytest.approx(mean, abs=1e-9), case.id
        seen.add(case.id)
    assert set(ROC_DIFFERS) <= seen
    assert len(seen) >= 15


def test_hard_maximum() -> None:
    """Counts, Precision, Recall, F1 and Accuracy of the best label, if it reaches the threshold."""
    compared = fewer = 0
    for case in cases("compute_precision_recall"):
        if not case.parameters["hardmax"]:
            continue
        for threshold in case.parameters["score_thresholds"]:
            card = score(
                positive(case.sides, threshold),
                ["Counts", "Precision", "Recall", "F1", "Accuracy"],
                dialect="valor-lite",
                labels=labels_of(case.sides),
            )
            for name, rows in case.expected.items():
                for row in rows:
                    if row["parameters"]["score_threshold"] != threshold:
                        continue
                    label = row["parameters"].get("label")
                    compared += 1
                    if name != "Counts":
                        ours = card.value(name, label_value=label, average=None)
                        assert ours == pytest.approx(row["value"], abs=1e-9), (case.id, label)
                        continue
                    for statistic, value in row["value"].items():
                        ours = card.value("Counts", statistic=statistic, label_value=label)
                        if statistic == "tn":
                            assert ours is not None
                            assert value <= ours <= value + unlisted(case.sides, label)
                            fewer += value < ours
                        else:
                            assert ours == value, (case.id, threshold, label, statistic)
    assert compared >= 400
    assert fewer


def test_every_label_at_a_threshold() -> None:
    """Counts without hard maximum equal PrecisionRecallCurve, except for additional misses."""
    compared = more = 0
    for case in cases("compute_precision_recall"):
        if case.parameters["hardmax"]:
            continue
        thresholds = case.parameters["score_thresholds"]
        card = score(
            positive(case.sides, 0.0),
            ["PrecisionRecallCurve"],
            dialect="valor-lite",
            score_thresholds=thresholds,
            labels=labels_of(case.sides),
        )
        ours = {
            (row["label_value"], row["score_threshold"]): row
            for row in card.curves.iter_rows(named=True)
        }
        for row in case.expected["Counts"]:
            where, theirs = row["parameters"], row["value"]
            mine = ours[where["label"], where["score_threshold"]]
            assert (mine["tp"], mine["fp"]) == (theirs["tp"], theirs["fp"]), case.id
            assert mine["fn"] <= theirs["fn"] <= mine["fn"] + mine["tp"], case.id
            room = unlisted(case.sides, where["label"])
            assert theirs["tn"] <= mine["tn"] <= theirs["tn"] + room, case.id
            more += mine["fn"] < theirs["fn"]
            compared += 1
    assert compared >= 30
    assert more


def matrices(method: str) -> Iterator[tuple[Case, Sides, dict[str, Any]]]:
    """Yield cases, the tables that count at a threshold, and the matrix of the best labels."""
    for case in cases(method):
        thresholds = case.parameters["score_thresholds"]
        if case.parameters["hardmax"] and thresholds == sorted(thresholds):
            for row in case.expected:
                at = row["parameters"]["score_threshold"]
                yield case, positive(case.sides, at), row["value"]


def test_confusion() -> None:
    """Unmatched ground truths have no prediction."""
    compared = 0
    for case, sides, value in matrices("compute_confusion_matrix"):
        card = score(sides, ["ConfusionMatrix"], dialect="valor-lite")
        ours = {key[1:]: n for key, n in counts_by_cell(card.confusion).items()}
        theirs = {
            (truth, label): n
            for truth, cells in value["confusion_matrix"].items()
            for label, n in cells.items()
        } | {(truth, None): n for truth, n in value["unmatched_ground_truths"].items()}
        assert ours == {cell: n for cell, n in theirs.items() if n}, case.id
        compared += 1
    assert compared >= 15


def test_confusion_examples() -> None:
    """valor-lite lists every datum of a cell; so does ``pr_curve_max_examples=40``."""
    compared = 0
    for case, sides, theirs in matrices("compute_confusion_matrix_with_examples"):
        card = score(sides, ["ConfusionMatrix"], dialect="valor-lite", pr_curve_max_examples=40)
        entries = [e for e in card.to_valor() if e["type"] == "ConfusionMatrixWithExamples"]
        ours = entries[0]["value"]
        assert not ours["unmatched_predictions"], case.id
        for truth, cells in theirs["confusion_matrix"].items():
            mine = ours["confusion_matrix"].get(truth, {})
            assert filled(mine) == filled(cells), case.id
        missed = ours["unmatched_ground_truths"]
        assert filled(missed) == filled(theirs["unmatched_ground_truths"]), case.id
        compared += 1
    assert compared >= 5


def filled(cells: dict[str, Any]) -> dict[str, Any]:
    """Return the cells with a count, with their examples sorted."""
    return {
        name: (cell["count"], sorted((e["datum_id"], e.get("score")) for e in cell["examples"]))
        for name, cell in cells.items()
        if cell["count"]
    }
