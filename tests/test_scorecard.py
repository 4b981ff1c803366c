"""Scorecards: frames on demand, and value() with its errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import fabricated
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine.schemas.errors import ResultError
from evalengine.schemas.option_values import make_options
from evalengine.schemas.results import FRAMES, frame_schema
from evalengine.scorecard.card import Scorecard


def bare(**more: Any) -> Scorecard:
    given: dict[str, Any] = {
        "task": "detection",
        "dialect": "standard",
        "options": make_options(),
        "frames": {},
        "labels": fabricated.labels_of([("label", 1, "cat")], pl.Int64()),
        "run": {},
    }
    return Scorecard(**{**given, **more})


class TestFrames:
    def test_made_once_and_only_on_demand(self) -> None:
        calls = []

        def make() -> pl.DataFrame:
            calls.append("metrics")
            return fabricated.frame("metrics", fabricated.aggregates())

        card = bare(frames={"metrics": make})
        assert calls == []
        first = card.metrics
        assert card.metrics is first
        assert calls == ["metrics"]

    @pytest.mark.parametrize("name", list(FRAMES))
    def test_an_unrequested_frame_is_empty_with_the_contracts_columns(self, name: str) -> None:
        frame = bare().frame(name)
        assert frame.height == 0
        assert dict(frame.schema) == frame_schema(name, label=pl.Int64())

    @pytest.mark.parametrize(
        ("name", "metric"), [("confusion", "ConfusionMatrix"), ("outcomes", "Outcomes")]
    )
    def test_by_its_own_name_it_is_refused(self, name: str, metric: str) -> None:
        """An empty confusion matrix would mean that nothing was confused."""
        with refused("not_kept", ResultError, match=f"{metric} fills it"):
            getattr(bare(), name)

    def test_unknown_frame(self) -> None:
        with pytest.raises(ResultError, match="'metrics'"):
            bare().frame("metrix")
        with pytest.raises(ResultError, match="'curves'"):
            bare(frames={"curve": pl.DataFrame})

    def test_run_may_be_made_later(self) -> None:
        calls = []

        def run() -> dict[str, Any]:
            calls.append(1)
            return {"seconds": 1}

        card = bare(run=run)
        assert calls == []
        assert card.run == {"seconds": 1} == card.run
        assert calls == [1]


class TestValue:
    card = fabricated.card(
        [
            *fabricated.aggregates(),
            *fabricated.aggregates(shift=-0.1, slice="weather", slice_value="rain"),
            *fabricated.of_label("cat", 0.8),
            *fabricated.of_label("owl", None, support=0),
            *(
                {
                    "metric": "F1",
                    "label_key": "label",
                    "average": average,
                    "iou_threshold": 0.5,
                    "score_threshold": 0.3,
                    "value": value,
                }
                for average, value in (("macro", 0.31), ("micro", 0.32))
            ),
            {"metric": "Counts", "label_key": "label", "statistic": "tp", "value": 3.0},
            {"metric": "Counts", "label_key": "label", "statistic": "fp", "value": 4.0},
        ],
        labels=[("label", "cat", "Felis catus"), ("label", "owl", None)],
    )

    def test_prefers_the_aggregate_over_all_datums(self) -> None:
        assert self.card.value("mAR") == 0.6
        assert self.card.value("mAP", iou_threshold=0.5) == 0.7

    def test_filters_by_any_column(self) -> None:
        assert self.card.value("mAR", slice="weather", slice_value="rain") == 0.5
        assert self.card.value("AP", label_value="cat", iou_threshold=0.75) == 0.75
        assert self.card.value("AR", label_key="label", label_value="cat") == pytest.approx(0.82)
        assert self.card.value("Counts", statistic="fp") == 4.0

    def test_label_name_replaces_its_value(self) -> None:
        assert self.card.value("APAveragedOverIOUs", label_name="Felis catus") == 0.8
        with refused("unknown_name", ResultError, value="felis catu"):
            self.card.value("AP", label_name="felis catu")

    def test_floats_within_a_tolerance(self) -> None:
        assert self.card.value("F1", score_threshold=0.1 + 0.2) == 0.31
        assert self.card.value("mAP", iou_threshold=0.5 + 5e-10) == 0.7
        with pytest.raises(ResultError, match=r"iou_threshold is 0\.5, 0\.75"):
            self.card.value("mAP", iou_threshold=0.5 + 1e-8)

    def test_numpy_numbers_are_numbers(self) -> None:
        assert self.card.value("mAP", iou_threshold=np.float32(0.75)) == 0.4

    def test_macro_before_micro(self) -> None:
        assert self.card.value("F1") == 0.31
        assert self.card.value("F1", average="micro") == 0.32

    def test_undefined_is_none(self) -> None:
        assert self.card.value("AR", label_value="owl") is None

    def test_none_means_null(self) -> None:
        assert self.card.value("mAR", slice=None) == 0.6
        with pytest.raises(ResultError, match="label_value=None"):
            self.card.value("AR", label_value=None)

    def test_ambiguity_names_the_column_and_its_values(self) -> None:
        with refused("ambiguous", ResultError, columns=["iou_threshold"], count=2):
            self.card.value("mAP")
        with refused("ambiguous", ResultError, columns=["label_value"], count=2):
            self.card.value("AR")

    def test_unknown_metric_filter_and_value(self) -> None:
        with refused("unknown_name", ResultError, value="mAPP"):
            self.card.value("mAPP")
        with pytest.raises(ResultError, match="Did you mean"):
            self.card.value("mpa")
        with refused("unknown_name", ResultError, value="iou_treshold"):
            self.card.value("mAP", iou_treshold=0.5)
        assert self.card.value("mAP", iou=0.5) == self.card.value("mAP", iou_threshold=0.5)
        assert self.card.value("AP", label="cat", iou=0.5) == self.card.value(
            "AP", label_value="cat", iou_threshold=0.5
        )
        with refused("no_such_row", ResultError, metric="AR", column="label_value"):
            self.card.value("AR", label_value="kat")
        labels = {"actual": [0, 1], "predicted": [0, 1]}
        with refused("no_such_row", ResultError, match="Write label_value=1, of type int"):
            ee.score(labels, task="classification").value("F1", label_value="1")

    @pytest.mark.parametrize("name", ["map", "MAP", "mAP"])
    def test_metrics_by_the_names_that_options_take(self, name: str) -> None:
        found = self.card.value(name, iou=0.5)
        assert found == self.card.value("mAP", iou_threshold=0.5)
        with pytest.raises(ResultError, match=r"^mAP has"):
            self.card.value(name)

    def test_the_filter_that_excluded_everything_is_the_one_named(self) -> None:
        with pytest.raises(ResultError, match=r"iou_threshold=0\.6.*0\.5, 0\.75"):
            self.card.value("AP", label_value="cat", iou_threshold=0.6)

    def test_a_slice_column_as_a_filter(self) -> None:
        table = {"actual": [0, 1], "predicted": [0, 1], "site": ["A", "B"]}
        card = ee.score(table, task="classification", by=["site"], metrics=["Accuracy"])
        with refused("unknown_name", ResultError, value="site", match="slice_value='A'"):
            card.value("Accuracy", site="A")

    def test_a_card_without_values(self) -> None:
        with pytest.raises(ResultError, match="no numbers"):
            bare().value("mAP")


class TestValueOfCoco:
    rows = tuple(
        {"metric": "mAR", "label_key": "label", "area": area, "max_detections": cap, "value": value}
        for area, cap, value in (
            ("small", 100, 0.1),
            ("all", 1, 0.2),
            ("all", 100, 0.4),
            ("all", 10, 0.3),
        )
    )

    def test_all_areas_and_the_largest_cap(self) -> None:
        card = fabricated.card(self.rows)
        assert card.value("mAR") == 0.4
        assert card.value("mAR", max_detections=10) == 0.3
        assert card.value("mAR", area="small") == 0.1

    def test_no_cap_is_the_largest(self) -> None:
        card = fabricated.card([*self.rows, {**self.rows[1], "max_detections": None, "value": 0.5}])
        assert card.value("mAR") == 0.5

    def test_names_of_numbered_labels(self) -> None:
        card = fabricated.card(
            fabricated.of_label(17, 0.5), label=pl.Int64(), labels=[("label", 17, "cat")]
        )
        assert card.value("AR", label_value=17) == card.value("AR", label_name="cat") == 0.52
        with refused("no_such_row", ResultError, metric="AR", column="label_value"):
            card.value("AR", label_value="cat")

    def test_several_label_keys_are_ambiguous(self) -> None:
        card = fabricated.card([*fabricated.aggregates("a"), *fabricated.aggregates("b")])
        with pytest.raises(ResultError, match=r"label_key \('a', 'b'\)"):
            card.value("mAR")
        assert card.value("mAR", label_key="b") == 0.6


class TestExports:
    def test_a_missing_format_names_the_tasks_that_have_it(self) -> None:
        with pytest.raises(ResultError, match=r"to_coco\(\).*detection"):
            bare().to_coco()

    def test_a_format_is_called_with_the_card(self) -> None:
        card = bare(exports={"coco": lambda card: ("coco", card)})
        assert card.to_coco() == ("coco", card)

    def test_coco_of_frames_only(self) -> None:
        card = fabricated.card(TestValueOfCoco.rows, dialect="coco")
        found = card.to_coco()
        assert dict(zip(found["names"], found["stats"], strict=True)) == {
            "AR1": 0.2,
            "AR10": 0.3,
            "AR100": 0.4,
            "ARsmall": 0.1,
        }
        with pytest.raises(ResultError):
            found["precision"]


class TestCopies:
    COPIES = (lambda card: pickle.loads(pickle.dumps(card)), copy.deepcopy, copy.copy)

    @pytest.mark.parametrize("copied", COPIES)
    @pytest.mark.parametrize("task", ["classification", "detection"])
    @pytest.mark.parametrize("asked", [False, True])
    def test_a_copy_is_the_same_card(self, task: str, asked: bool, copied: Any) -> None:
        folder = Path(__file__).parent.parent / "examples" / task
        metrics = ["AP", "PrecisionRecallCurve", "ConfusionMatrix"]
        card = ee.score(
            folder / "predictions.parquet",
            folder / "groundtruths.parquet",
            metrics=metrics,
            score_thresholds=[0.5],
        )
        if asked:
            _ = card.metrics
        twin = copied(card)
        assert twin is not card
        assert repr(twin) == repr(card)
        assert (twin.task, twin.dialect, twin.options) == (card.task, card.dialect, card.options)
        assert (twin.notes, twin.primary, twin.directions) == (
            card.notes, card.primary, card.directions,
        )  # fmt: skip
        assert twin.run == card.run
        assert twin.frames == card.frames
        for name in FRAMES:
            assert_frame_equal(twin.frame(name), card.frame(name))
        assert_frame_equal(twin.labels, card.labels)
        assert twin.to_valor() == card.to_valor()

    def test_a_copy_exports_from_its_frames_as_a_loaded_result_does(self, tmp_path: Path) -> None:
        folder = Path(__file__).parent.parent / "examples" / "detection"
        card = ee.score(
            folder / "predictions.parquet", folder / "groundtruths.parquet", dialect="coco"
        )
        twin = pickle.loads(pickle.dumps(card))
        loaded = ee.load(card.save(tmp_path / "run"))
        assert twin.to_coco()["stats"] == loaded.to_coco()["stats"] == card.to_coco()["stats"]
        with pytest.raises(ResultError):
            twin.to_coco()["precision"]
        with pytest.raises(ResultError, match="to_phoenix"):
            twin.to_phoenix()
