"""valor_core's known answers: ``valor`` gives its numbers except for its errors.

The tables below list every difference by case, with the reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from detection.valor_vectors import Key, core_vectors, load, row_tables, why_not_core
from detection.vector_runs import metric_rows, score

TOP_ROW_ONLY = (
    "core's curve looks only at a ground truth's best-scored prediction, even where that one fails"
    " the IoU test (valor.md 3.8); we count the match that AP counts"
)
TWO_TRUE = (
    "core's detailed curve has no one-to-one matching (valor.md 3.9): two predictions of one ground"
    " truth are two true positives, and one prediction finds two ground truths; we count one match"
    " and a duplicate or a miss"
)
CURVE_DIFFERS: dict[str, tuple[str, dict[Key, tuple[int, int, int]]]] = {
    "od_low_iou_first_below": (TOP_ROW_ONLY, {("k", "v1", 0.5): (1, 1, 0)}),
    "od_misclassification": (TOP_ROW_ONLY, {("k", "cat", 0.05): (1, 1, 0)}),
}
"""Case -> reason, and tp, fp, fn of a cell here."""

DETAILED_DIFFERS: dict[str, tuple[str, dict[Key, dict[str, int]]]] = {
    "od_locked_argmax": (TWO_TRUE, {("k", "v1", 0.5): {"tp": 1, "duplicates": 1, "fn": 1}}),
    "od_duplicates": (TWO_TRUE, {("k", "v1", 0.5): {"tp": 1, "duplicates": 2, "fn": 0}}),
    "od_equal_iou_two_gts": (TWO_TRUE, {("k", "v1", 0.5): {"tp": 1, "duplicates": 1, "fn": 1}}),
    "evaluate_detection_functional_test__0": (
        TWO_TRUE,
        {("class", "49", 0.05): {"tp": 8, "duplicates": 1, "fn": 2}},
    ),
}
"""Case -> reason, and the values of a cell here."""


def test_core_averages() -> None:
    """AP and AR: core skips labels without ground truth in AP and gives them an AR of -1."""
    ran, rows = set(), 0
    shapes: Counter[str] = Counter()
    for vector in core_vectors():
        metrics = sorted({key[0] for key in vector.numbers})
        if not metrics:
            continue
        ours = metric_rows(score(vector, "valor", metrics))
        assert set(vector.numbers) <= set(ours), vector.id
        for key, value in ours.items():
            expected = vector.numbers.get(key)
            if value is None:
                assert expected in (None, -1.0), (vector.id, key)
            else:
                assert value == pytest.approx(expected, abs=1e-9), (vector.id, key)
            rows += 1
        ran.add(vector.id)
        shapes.update({"polygon", "mask"} & {*vector.tables.truths.columns})
    assert len(ran) >= 30
    assert rows >= 400
    assert shapes["polygon"] >= 6
    assert shapes["mask"] >= 1


def test_core_curves() -> None:
    """PrecisionRecallCurve; core fills undefined rates with 0."""
    ran, cells = set(), 0
    for vector in core_vectors():
        if not vector.score_curve:
            continue
        frame = score(vector, "valor", ["PrecisionRecallCurve"]).curves
        ours = {
            (row["label_key"], row["label_value"], row["score_threshold"]): row
            for row in frame.iter_rows(named=True)
        }
        assert set(ours) == set(vector.score_curve), vector.id
        _, instead = CURVE_DIFFERS.get(vector.id, ("", {}))
        for key, (tp, fp, fn) in instead.items():
            assert (ours[key]["tp"], ours[key]["fp"], ours[key]["fn"]) == (tp, fp, fn)
        for key, expected in vector.score_curve.items():
            row = ours[key]
            if vector.id in CURVE_DIFFERS and row["tp"] != expected["tp"]:
                assert row["tp"] > expected["tp"]
                assert row["tp"] + row["fn"] == expected["tp"] + expected["fn"]
                assert row["tp"] + row["fp"] == expected["tp"] + expected["fp"]
                continue
            assert (row["tp"], row["fp"], row["fn"], row["tn"]) == tuple(
                expected[name] for name in ("tp", "fp", "fn", "tn")
            ), (vector.id, key)
            for name, theirs in (("precision",) * 2, ("recall",) * 2, ("f1", "f1_score")):
                assert (row[name] or 0.0) == pytest.approx(expected[theirs], abs=1e-9)
            cells += 1
        ran.add(vector.id)
    assert set(CURVE_DIFFERS) <= ran
    assert len(ran) >= 20
    assert cells >= 900


def test_core_detailed_curves() -> None:
    """DetailedPrecisionRecallCurve, with duplicates counted as hallucinations, as in core."""
    ran, cells = set(), 0
    for vector in core_vectors():
        if not vector.detailed:
            continue
        frame = score(vector, "valor", ["DetailedPrecisionRecallCurve"]).examples
        ours: dict[Key, Counter[Any]] = {key: Counter() for key in vector.detailed}
        duplicates: Counter[Key] = Counter()
        names = ("label_key", "label_value", "score_threshold", "outcome", "observation", "count")
        for *label, outcome, observation, count in frame.select(names).unique().iter_rows():
            if observation == "duplicates":
                duplicates[tuple(label)] += count
                observation = "hallucinations"
            ours[tuple(label)][outcome, observation] += count
        _, instead = DETAILED_DIFFERS.get(vector.id, ("", {}))
        for key, cell in instead.items():
            assert ours[key]["tp", "all"] == cell["tp"]
            assert duplicates[key] == cell["duplicates"]
            assert ours[key]["fn", "no_predictions"] == cell["fn"]
        for key, cell in vector.detailed.items():
            expected = Counter(
                {
                    (outcome, name): int(observation["count"])
                    for outcome, part in cell.items()
                    for name, observation in part["observations"].items()
                }
            )
            if vector.id in DETAILED_DIFFERS and +ours[key] != +expected:
                assert _sums(ours[key]) == _curve_sums(vector.score_curve[key])
                continue
            assert +ours[key] == +expected, (vector.id, key)
            cells += 1
        ran.add(vector.id)
    assert set(DETAILED_DIFFERS) <= ran
    assert len(ran) >= 20
    assert cells >= 900


def _sums(cell: Counter[Any]) -> tuple[int, int]:
    """Return tp + fp and tp + fn of a detailed cell."""
    total: Counter[str] = Counter()
    for (outcome, _), count in cell.items():
        total[outcome] += count
    return total["tp"] + total["fp"], total["tp"] + total["fn"]


def _curve_sums(cell: dict[str, float]) -> tuple[float, float]:
    """Return the same sums of a cell of the plain curve."""
    return cell["tp"] + cell["fp"], cell["tp"] + cell["fn"]


def test_edge_cases_distinguish_the_dialects() -> None:
    """The rules that the hand-made cases distinguish, by dialect."""
    cases = {vector.id: vector for vector in core_vectors() if vector.id.startswith("od_")}
    expected = {
        ("od_locked_argmax", "k", "v1"): {"valor": 51 / 101, "standard": 1.0, "valor-docs": 1.0},
        ("od_equal_iou_two_gts", "k", "v1"): {"valor": 51 / 101, "standard": 1.0},
        ("od_fp_other_image_high", "k", "v1"): {"valor": 0.5, "standard": 0.5, "valor-docs": 1.0},
        ("od_fp_image_without_gt", "k", "v1"): {"valor": 0.5, "standard": 0.5, "valor-docs": 1.0},
        ("od_recall_29_of_100", "k", "v1"): {"valor": 30 / 101},
        ("od_low_iou_first_below", "k", "v1"): {"valor": 0.5, "standard": 0.5, "valor-docs": 0.0},
    }
    for (case, key, label), by_dialect in expected.items():
        for dialect, value in by_dialect.items():
            card = score(cases[case], dialect, ["AP"])
            ap = card.value("AP", iou_threshold=0.5, label_key=key, label_value=label)
            assert ap == pytest.approx(value, abs=1e-12), (case, dialect)


MIXED = "core refuses mixed geometry but down to a named one (valor.md 2); we bring it to one kind"


def test_mixtures_that_core_refuses() -> None:
    """By default the comparison is the one core uses when configured; ``convert_to`` changes it."""
    cases = {case["id"]: case for case in load("detection_legacy.json")["cases"]}
    configured = next(v for v in core_vectors() if v.id == "evaluate_mixed_annotations__3")
    assert configured.options["convert_to"] == "box"
    ours = {}
    for number, message in ((0, "the most detailed"), (1, "asked for"), (2, "asked for")):
        case = cases[f"evaluate_mixed_annotations__{number}"]
        assert "ValueError" in str(case["error"]), MIXED
        parameters = case["parameters"].get("convert_annotations_to_type")
        vector = replace(configured, tables=row_tables(case))
        card = score(vector, "valor", ["AP"], convert_to=parameters)
        kind = {None: "boxes", "raster": "masks", "polygon": "polygons"}[parameters]
        assert any(note.startswith(f"{kind} are compared, {message}") for note in card.notes)
        ours[number] = metric_rows(card)
    assert {key: ours[0][key] for key in configured.numbers} == pytest.approx(
        configured.numbers, abs=1e-9
    )
    for number in (1, 2):
        assert all(0 <= value <= 1 for value in ours[number].values())


def test_skipped_cases() -> None:
    """Count the skipped legacy cases by reason."""
    cases = Counter(why_not_core(case) for case in load("detection_legacy.json")["cases"])
    assert set(cases) <= {None, "error"}
    assert cases[None] >= 27
