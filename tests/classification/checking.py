"""Checks of whole scorecards against the oracle."""

from __future__ import annotations

from typing import Any

from classification.rows import NAMES
from classification.strategies import GRID
from oracles.classification import RATIOS, Oracle
from output_frames import numbers, of_slice

import evalengine as ee

Key = tuple[Any, ...]

THRESHOLDS = (0.25, 0.5, 1.0)
HARD = [*RATIOS, "Accuracy", "Counts"]
RANKED = ["ROCAUC", "mROCAUC", "AP", "mAP", "PrecisionRecallCurve", "DetailedPrecisionRecallCurve"]
ONE_LABEL = ["ConfusionMatrix", "Outcomes", "LogLoss", "Brier", "TopKAccuracy"]

assert set(THRESHOLDS) <= set(GRID)


def same(ours: float | None, theirs: Any) -> bool:
    """Compare two numbers within rounding; both may be undefined."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    return abs(ours - float(theirs)) <= 1e-12


def check_metrics(card: ee.Scorecard, oracle: Oracle, of: tuple[Any, ...] = ()) -> None:
    """Check that one slice of the metrics has the oracle's rows and values."""
    ours = numbers(of_slice(card.metrics, *of), NAMES)
    metrics = set(card.directions)
    expected: dict[Key, Any] = {}
    present = [label for label in oracle.labels if oracle.total(oracle.of_key(label[0]))]
    for (metric, key, value, average), number in oracle.ratios().items():
        if metric in metrics:
            expected[metric, None, key, value, average, None, None] = number
    for label in oracle.labels:
        if "Counts" in metrics:
            for name, n in zip(("tp", "fp", "fn", "tn"), oracle.counts(label), strict=True):
                expected["Counts", name, *label, None, None, None] = n
        if "ROCAUC" in metrics:
            expected["ROCAUC", None, *label, None, None, None] = oracle.area(label)
            expected["AP", None, *label, None, None, None] = oracle.average_precision(label)
    for key in {label[0] for label in present}:
        if "Accuracy" in metrics:
            expected["Accuracy", None, key, None, None, None, None] = oracle.accuracy(key)
        if "LogLoss" in metrics:
            losses = oracle.losses(key)
            for name in ("LogLoss", "Brier"):
                expected[name, None, key, None, None, None, None] = losses[name]
            for k in (1, 2):
                expected["TopKAccuracy", None, key, None, None, k, None] = losses[k]  # type: ignore[index]
        if "mROCAUC" in metrics:
            labels = [label for label in oracle.labels if label[0] == key]
            for metric, of_label in (("mROCAUC", oracle.area), ("mAP", oracle.average_precision)):
                defined = [(label, of_label(label)) for label in labels]
                defined = [(label, value) for label, value in defined if value is not None]
                positives = [sum(w for _, w in oracle.sides(label)[0]) for label, _ in defined]
                values = [value for _, value in defined]
                macro = sum(values) / len(values) if values else None
                total = sum(positives)
                weighted = (
                    sum(v * p for v, p in zip(values, positives, strict=True)) / total
                    if total
                    else None
                )
                expected[metric, None, key, None, "macro", None, None] = macro
                expected[metric, None, key, None, "weighted", None, None] = weighted
    weightless = {key for key in expected if key not in ours}
    for key in weightless:  # labels and keys without weight have no rows
        assert oracle.weights, key
        assert expected.pop(key) in (None, 0) or key[1] == "tn", key
    for key in set(ours) - set(expected):  # rows without a value if all weights are zero
        assert oracle.weights, key
        assert ours.pop(key) is None, key
    assert set(ours) == set(expected), (
        sorted(set(ours) - set(expected), key=repr),
        sorted(set(expected) - set(ours), key=repr),
    )
    for key, value in expected.items():
        assert same(ours[key], value), (key, ours[key], value)


def check_curves(card: ee.Scorecard, oracle: Oracle, of: tuple[Any, ...] = ()) -> None:
    """Check the counts of PrecisionRecallCurve and their sums."""
    rows = {}
    for row in of_slice(card.curves, *of).iter_rows(named=True):
        rows[row["label_key"], row["label_value"], row["score_threshold"]] = row
    seen = set()
    for label in oracle.labels:
        for threshold in THRESHOLDS:
            cells = oracle.cells(label, threshold)
            row = rows.get((*label, threshold))
            if row is None:
                assert oracle.weights
                continue
            seen.add((*label, threshold))
            for outcome in ("tp", "fp", "fn", "tn"):
                n = sum(n for (name, _), n in cells.items() if name == outcome)
                assert row[outcome] == round(n), (label, threshold, outcome)
            tp, fp, fn, tn = (row[name] for name in ("tp", "fp", "fn", "tn"))
            assert same(row["precision"], tp / (tp + fp) if tp + fp else None)
            assert same(row["recall"], tp / (tp + fn) if tp + fn else None)
            assert same(row["f1"], 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None)
            assert same(row["fpr"], fp / (fp + tn) if fp + tn else None)
            everything = tp + fp + fn + tn
            assert same(row["accuracy"], (tp + tn) / everything if everything else None)
    assert seen == set(rows)


def check_details(card: ee.Scorecard, oracle: Oracle) -> None:
    """Check the detailed curve with its examples, the confusion matrix and the outcomes."""
    cells: dict[Key, dict[tuple[str, str], int]] = {}
    for row in card.examples.iter_rows(named=True):
        at = (row["label_key"], row["label_value"], row["score_threshold"])
        bucket = (row["outcome"], row["observation"])
        assert bucket not in cells.setdefault(at, {})
        cells[at][bucket] = row["count"]
        assert (row["datum_id"] is not None) == (row["count"] > 0)
        if row["datum_id"] is not None:
            single = Oracle(
                [p for p in oracle.predictions if p[0] == row["datum_id"]],
                [t for t in oracle.truths if t[0] == row["datum_id"]],
            )
            cell = single.cells((at[0], at[1]), at[2])
            if cell:  # a true negative may list only other labels
                assert set(cell) == {bucket}
    assert set(cells) == {(*label, t) for label in oracle.labels for t in THRESHOLDS}
    for (key, value, threshold), cell in cells.items():
        expected = oracle.cells((key, value), threshold)
        assert {bucket: n for bucket, n in cell.items() if n} == dict(expected)
    if oracle.several:
        return
    confusion = {
        (row["label_key"], row["actual"], row["predicted"]): row["count"]
        for row in of_slice(card.confusion).iter_rows(named=True)
    }
    assert confusion == oracle.confusion()
    names = ("datum_id", "label_key", "label_value", "outcome", "score")
    outcomes = [tuple(row[n] for n in names) for row in card.outcomes.iter_rows(named=True)]
    assert sorted(outcomes, key=repr) == sorted(oracle.outcomes().elements(), key=repr)
