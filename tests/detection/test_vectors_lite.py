"""valor-lite's known answers: ``valor-lite`` gives its numbers except for its errors.

The table below lists every difference by case, with the reason. ``valor`` also differs in the
means.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from detection.valor_vectors import Key, Vector, lite_vectors, load, why_not_lite
from detection.vector_runs import ELSEWHERE, metric_rows, score

AVERAGES = ["AP", "APAveragedOverIOUs", "mAP", "mAPAveragedOverIOUs", "AR", "mAR"]
RATES = ["Counts", "Precision", "Recall", "F1"]

FLOATING_BIN = "lite floors recall * 100 in floating point: 29/100 falls in bin 28 (valor.md 3.5)"

LITE_DIFFERS: dict[str, tuple[str, dict[str, float]]] = {
    "od_recall_29_of_100/k": (
        FLOATING_BIN,
        dict.fromkeys(("AP", "APAveragedOverIOUs", "mAP", "mAPAveragedOverIOUs"), 30 / 101),
    )
}
"""Case -> reason, and the value of a metric here."""


@pytest.mark.parametrize("dialect", ["valor-lite", "valor"])
def test_lite_averages_and_counts(dialect: str) -> None:
    """AP, AR at each score threshold, counts and rates; lite fills undefined values with 0.

    ``valor`` differs only in the means, which skip labels without ground truth.
    """
    ran, rows = set(), 0
    shapes: Counter[str] = Counter()
    for vector in lite_vectors():
        ours: dict[Key, Any] = {}
        metrics = [*AVERAGES, *RATES]
        for threshold in vector.score_thresholds:
            card = score(
                vector,
                dialect,
                metrics,
                score_thresholds=list(vector.score_thresholds),
                recall_score_threshold=threshold,
            )
            ours |= metric_rows(card, score_of_recall=threshold)
            metrics = ["AR", "mAR"]  # all metrics that use this threshold
        _, instead = LITE_DIFFERS.get(vector.id, ("", {}))
        unannotated = _unannotated(vector)
        for key, expected in vector.numbers.items():
            metric = key[0]
            if "OverScores" in metric:
                expected_mean = _mean_over_scores(ours, key, vector.score_thresholds)
                if not (dialect == "valor" and unannotated):
                    assert expected_mean == pytest.approx(expected, abs=1e-9), (vector.id, key)
                continue
            value = ours[key]
            if dialect == "valor" and metric.startswith("m") and unannotated:
                annotated = len(_labels(vector)) - unannotated
                scale = len(_labels(vector)) / annotated if annotated else 0.0
                assert (value is None) == (annotated == 0)
                expected *= scale
            expected = instead.get(metric, expected)
            assert (value or 0.0) == pytest.approx(expected, abs=1e-9), (vector.id, key)
            rows += 1
        ran.add(vector.id)
        shapes.update({"polygon", "mask"} & {*vector.tables.truths.columns})
    assert set(LITE_DIFFERS) <= ran
    assert "lite_coco_regression" in ran
    assert len(ran) >= 55
    assert rows >= 2000
    assert shapes["polygon"] >= 9
    assert shapes["mask"] >= 1


def _labels(vector: Vector) -> set[str]:
    return {*vector.tables.predictions["label_value"], *vector.tables.truths["label_value"]}


def _unannotated(vector: Vector) -> int:
    """Count labels that are predicted but never annotated."""
    return len(_labels(vector) - set(vector.tables.truths["label_value"]))


def _mean_over_scores(rows: dict[Key, Any], key: Key, thresholds: tuple[float, ...]) -> float:
    """Compute lite's mean of AR over score thresholds from single runs."""
    name = key[0].removesuffix("AveragedOverScores")
    values = [rows[name, *key[1:-1], threshold] or 0.0 for threshold in thresholds]
    return float(sum(values) / len(values))


def test_lite_interpolated_curves() -> None:
    """101 precisions per label and the scores that reach them; 0 if none does."""
    ran, curves, zeros = set(), 0, 0
    for vector in lite_vectors():
        frame = score(vector, "valor-lite", ["InterpolatedPrecisionRecallCurve"]).curves
        _, instead = LITE_DIFFERS.get(vector.id, ("", {}))
        for (label, iou), (precisions, scores) in vector.interpolated.items():
            rows = frame.filter(
                (pl.col("label_key") != ELSEWHERE)
                & (pl.col("label_value") == label)
                & ((pl.col("iou_threshold") - iou).abs() < 1e-9)
            ).sort("recall")
            if rows.is_empty():  # a label of the loader that is missing in these datums
                assert not any([*precisions, *scores]), (vector.id, label)
                continue
            zeros += not any(precisions)
            assert rows.height == len(precisions) == 101
            for level, row in enumerate(rows.iter_rows(named=True)):
                if instead and level == 29:
                    assert (row["precision"], precisions[level]) == (1.0, 0.0)
                    continue
                where = (vector.id, label, iou, level)
                assert row["precision"] == pytest.approx(precisions[level], abs=1e-9), where
                assert (row["score_threshold"] or 0.0) == pytest.approx(scores[level], abs=1e-9), (
                    where
                )
            curves += 1
        ran.add(vector.id)
    assert set(LITE_DIFFERS) <= ran
    assert curves >= 170
    assert zeros >= 10


def test_skipped_cases() -> None:
    """Count the skipped cases of lite by reason."""
    cases = Counter(why_not_lite(case) for case in load("lite_object_detection.json")["cases"])
    assert set(cases) <= {None, "filter", "examples", "confusion"}
    assert cases[None] >= 250
    assert cases["confusion"] >= 9
