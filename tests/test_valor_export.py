"""Valor's format, compared with its documentation and its own test vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest

import evalengine as ee

IOUS = {"iou_thresholds": [0.75, 0.5]}


def of_type(card: Any, kind: str) -> list[dict[str, Any]]:
    return [entry for entry in card.to_valor() if entry["type"] == kind]


class TestNumbers:
    card = fabricated.card(
        [
            *fabricated.aggregates("k"),
            *fabricated.aggregates("k", slice="weather", slice_value="rain"),
            *fabricated.aggregates("k", area="small"),
            *fabricated.of_label("cat", 0.5, "k"),
            *fabricated.of_label("owl", None, "k", support=0),
        ],
        options=IOUS,
    )

    def test_per_label(self) -> None:
        label = {"key": "k", "value": "cat"}
        assert of_type(self.card, "AP") == [
            {"type": "AP", "value": 0.6, "parameters": {"iou": 0.5}, "label": label},
            {"type": "AP", "value": 0.45, "parameters": {"iou": 0.75}, "label": label},
        ]
        assert of_type(self.card, "APAveragedOverIOUs") == [
            {
                "type": "APAveragedOverIOUs",
                "value": 0.5,
                "parameters": {"ious": [0.5, 0.75]},
                "label": label,
            }
        ]

    def test_aggregates_only_of_all_datums(self) -> None:
        assert of_type(self.card, "mAP") == [
            {"type": "mAP", "value": 0.7, "parameters": {"label_key": "k", "iou": 0.5}},
            {"type": "mAP", "value": 0.4, "parameters": {"label_key": "k", "iou": 0.75}},
        ]
        at = {"label_key": "k", "ious": [0.5, 0.75]}
        assert of_type(self.card, "mAR") == [{"type": "mAR", "value": 0.6, "parameters": at}]
        assert of_type(self.card, "mAPAveragedOverIOUs") == [
            {"type": "mAPAveragedOverIOUs", "value": 0.5, "parameters": at}
        ]

    @pytest.mark.parametrize(
        ("dialect", "fill"), [("standard", -1.0), ("valor", -1.0), ("valor-lite", 0.0)]
    )
    def test_without_ground_truth_ap_is_omitted_and_ar_filled(
        self, dialect: str, fill: float
    ) -> None:
        card = fabricated.card(fabricated.of_label("owl", None), dialect=dialect)
        found = {entry["type"]: entry["value"] for entry in card.to_valor()}
        assert found == {"AR": fill}

    def test_default_thresholds_are_the_dialects_in_order_and_round(self) -> None:
        card = fabricated.card(fabricated.aggregates())
        assert of_type(card, "mAR")[0]["parameters"]["ious"] == [
            0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
        ]  # fmt: skip

    def test_integer_labels_are_text(self) -> None:
        card = fabricated.card(fabricated.of_label(3, 0.5), label=pl.Int64())
        assert of_type(card, "AR")[0]["label"] == {"key": "label", "value": "3"}

    def test_all_areas_and_the_largest_cap_of_coco(self) -> None:
        rows = [
            row
            for area in ("all", "small")
            for cap in (1, 100)
            for row in fabricated.aggregates(
                shift=cap / 1000 + (0 if area == "all" else 0.2), area=area, max_detections=cap
            )
        ]
        found = of_type(fabricated.card(rows, dialect="coco"), "mAR")
        assert [entry["value"] for entry in found] == [0.7]

    def test_is_plain_python(self) -> None:
        assert json.loads(json.dumps(self.card.to_valor())) == self.card.to_valor()


def curve(label: str, score: float, **more: Any) -> dict[str, Any]:
    return {
        "curve": "PrecisionRecallCurve",
        "label_key": "class",
        "label_value": label,
        "iou_threshold": 0.5,
        "score_threshold": score,
        **more,
    }


class TestCurve:
    def test_as_the_document_prints_it(self) -> None:
        rows = [
            curve(
                "cat", 0.05, tp=3, fp=1, fn=0, precision=0.75, recall=1.0, f1=6 / 7, accuracy=0.75
            ),
            curve("cat", 0.1 + 0.2, tp=0, fp=0, fn=3, recall=0.0, f1=0.0, accuracy=0.0),
            curve("cat", 0.05, tp=9, fp=9, fn=9, slice="weather", slice_value="rain"),
        ]
        assert fabricated.card([], curves=rows).to_valor() == [
            {
                "type": "PrecisionRecallCurve",
                "parameters": {"label_key": "class", "pr_curve_iou_threshold": 0.5},
                "value": {
                    "cat": {
                        "0.05": {
                            "tp": 3,
                            "fp": 1,
                            "fn": 0,
                            "tn": None,
                            "precision": 0.75,
                            "recall": 1.0,
                            "accuracy": None,
                            "f1_score": 6 / 7,
                        },
                        "0.3": {
                            "tp": 0,
                            "fp": 0,
                            "fn": 3,
                            "tn": None,
                            "precision": 0.0,
                            "recall": 0.0,
                            "accuracy": None,
                            "f1_score": 0.0,
                        },
                    }
                },
            }
        ]

    def test_one_entry_per_label_key(self) -> None:
        rows = [curve("cat", 0.05, tp=1), {**curve("red", 0.05, tp=2), "label_key": "colour"}]
        found = fabricated.card([], curves=rows).to_valor()
        assert [entry["parameters"]["label_key"] for entry in found] == ["class", "colour"]
        assert [list(entry["value"]) for entry in found] == [["cat"], ["red"]]

    def test_other_curves_have_no_format(self) -> None:
        assert fabricated.card([], curves=[{**curve("cat", 0.05), "curve": "x"}]).to_valor() == []


def example(outcome: str, observation: str, count: int, datum: Any = None) -> dict[str, Any]:
    return {
        "dataset": None if datum is None else "test_dataset",
        "label_key": "class",
        "label_value": "cat",
        "iou_threshold": 0.5,
        "score_threshold": 0.05,
        "outcome": outcome,
        "observation": observation,
        "count": count,
        "datum_id": datum,
        "geometry": None if datum is None else f"polygon of {datum}",
    }


def triple(datum: int) -> tuple[str, int, str]:
    return ("test_dataset", datum, f"polygon of {datum}")


class TestDetailed:
    rows = (
        example("tp", "all", 3, 2),
        example("tp", "all", 3, 3),
        example("fp", "misclassifications", 0),
        example("fp", "duplicates", 4, 5),
        example("fp", "duplicates", 4, 6),
        example("fp", "hallucinations", 1, 1),
        example("fn", "no_predictions", 2),
    )

    def detailed(self, limit: int | None, rows: Any = rows) -> dict[str, Any]:
        card = fabricated.card(
            [], examples=rows, datum=pl.Int64(), options={"pr_curve_max_examples": limit}
        )
        (entry,) = card.to_valor()
        assert entry["type"] == "DetailedPrecisionRecallCurve"
        assert entry["parameters"] == {"label_key": "class", "pr_curve_iou_threshold": 0.5}
        assert list(entry["value"]) == ["cat"]
        assert list(entry["value"]["cat"]) == ["0.05"]
        cell: dict[str, Any] = entry["value"]["cat"]["0.05"]
        return cell

    def test_as_the_document_prints_it(self) -> None:
        assert self.detailed(2) == {
            "tp": {
                "total": 3,
                "observations": {"all": {"count": 3, "examples": [triple(2), triple(3)]}},
            },
            "fp": {
                "total": 5,
                "observations": {
                    "misclassifications": {"count": 0, "examples": []},
                    "hallucinations": {"count": 5, "examples": [triple(1), triple(5)]},
                },
            },
            "fn": {
                "total": 2,
                "observations": {
                    "misclassifications": {"count": 0, "examples": []},
                    "no_predictions": {"count": 2, "examples": []},
                },
            },
        }

    @pytest.mark.parametrize(("limit", "shown"), [(None, [1]), (0, []), (1, [1]), (9, [1, 5, 6])])
    def test_folded_examples_keep_to_the_limit(self, limit: int | None, shown: list[int]) -> None:
        found = self.detailed(limit)["fp"]["observations"]["hallucinations"]
        assert found == {"count": 5, "examples": [triple(datum) for datum in shown]}

    def test_two_observations_of_one_count_are_both_counted(self) -> None:
        rows = [example("fp", "hallucinations", 2, 1), example("fp", "duplicates", 2, 1)]
        found = self.detailed(1, rows)
        assert found["fp"]["total"] == 4
        assert found["fp"]["observations"]["hallucinations"]["count"] == 4


LITE = {"label_key": "k", "label": "v1", "iou_threshold": 0.1, "score_threshold": 0.5}


class TestLite:
    def at(self, metric: str, **more: Any) -> dict[str, Any]:
        return {
            "metric": metric,
            "label_key": "k",
            "label_value": "v1",
            "iou_threshold": 0.1,
            "score_threshold": 0.5,
            **more,
        }

    def test_counts_are_gathered(self) -> None:
        # As the engine makes them: all of one statistic, then all of the next.
        rows = [
            self.at("Counts", statistic=name, score_threshold=score, value=value + score)
            for name, value in (("tp", 0), ("fp", 1), ("fn", 2))
            for score in (0.5, 0.75)
        ]
        rows = [{**row, "value": float(int(row["value"]))} for row in rows]
        found = fabricated.card(rows).to_valor()
        assert [entry["parameters"]["score_threshold"] for entry in found] == [0.5, 0.75]
        assert found[0] == {
            "type": "Counts",
            "value": {"tp": 0, "fp": 1, "fn": 2},
            "parameters": LITE,
        }

    def test_ratios_without_averages(self) -> None:
        rows = [
            self.at("F1", value=0.25),
            self.at("Recall"),
            self.at("F1", label_value=None, average="macro", value=0.5),
        ]
        assert fabricated.card(rows).to_valor() == [
            {"type": "F1", "value": 0.25, "parameters": LITE},
            {"type": "Recall", "value": 0.0, "parameters": LITE},
        ]

    def test_confusion(self) -> None:
        rows = [
            {
                "label_key": "k",
                "actual": actual,
                "predicted": predicted,
                "iou_threshold": 0.5,
                "score_threshold": 0.3,
                "count": count,
                "slice": slice_,
            }
            for actual, predicted, count, slice_ in (
                ("a", "a", 5, None),
                ("a", "b", 1, None),
                (None, "b", 2, None),
                ("c", None, 3, None),
                ("a", "a", 9, "weather"),
            )
        ]
        assert fabricated.card([], confusion=rows).to_valor() == [
            {
                "type": "ConfusionMatrix",
                "value": {
                    "confusion_matrix": {"a": {"a": 5, "b": 1}},
                    "unmatched_predictions": {"b": 2},
                    "unmatched_ground_truths": {"c": 3},
                },
                "parameters": {"label_key": "k", "iou_threshold": 0.5, "score_threshold": 0.3},
            }
        ]

    @pytest.mark.parametrize("dialect", ["valor-lite", "standard"])
    def test_matrices_without_a_cell_exist(self, dialect: str, tmp_path: Path) -> None:
        """There is one per IoU and score threshold, as in valor-lite; also for a loaded card."""
        boxes = pl.DataFrame(
            {"datum_id": [1], "label_value": ["a"], "score": [0.3],
             "xmin": [0.0], "ymin": [0.0], "xmax": [5.0], "ymax": [5.0]}
        )  # fmt: skip
        card = ee.score(
            boxes, boxes.drop("score").clear(), dialect=dialect, metrics=["ConfusionMatrix"],
            iou_thresholds=[0.5, 0.75], score_thresholds=[0.5, 0.1],
        )  # fmt: skip
        card.save(tmp_path / "run")
        for found in (card.to_valor(), ee.load(tmp_path / "run").to_valor()):
            assert [entry["type"] for entry in found] == ["ConfusionMatrix"] * 4
            at = [
                (e["parameters"]["iou_threshold"], e["parameters"]["score_threshold"])
                for e in found
            ]
            assert at == [(0.5, 0.1), (0.5, 0.5), (0.75, 0.1), (0.75, 0.5)]
            for (_, score), entry in zip(at, found, strict=True):
                assert entry["value"] == {
                    "confusion_matrix": {},
                    "unmatched_predictions": {"a": 1} if score == 0.1 else {},
                    "unmatched_ground_truths": {},
                }
