"""Files of thresholds per label: how ``score`` applies them, and notes about them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from partitions.cases import in_buckets, write_sides
from polars.testing import assert_frame_equal
from refusals import noted

import evalengine as ee


class TestFiles:
    """Thresholds per label that ``score`` applies."""

    @staticmethod
    def boxes() -> tuple[pl.DataFrame, pl.DataFrame]:
        rng = np.random.default_rng(4)
        at = rng.integers(0, 9, 300) * 10.0
        truth = pl.DataFrame(
            {"datum_id": rng.integers(0, 60, 300), "label_value": rng.integers(0, 3, 300),
             "xmin": at, "ymin": 0.0, "xmax": at + 9, "ymax": 9.0}
        )  # fmt: skip
        found = truth.with_columns(
            score=pl.Series(rng.random(300).astype(np.float32)),
            ymin=pl.Series(rng.choice([0.0, 20.0], 300)),
        ).with_columns(ymax=pl.col("ymin") + 9)
        return found, truth

    @pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
    def test_boxes_below_are_removed(self, ending: str, tmp_path: Path) -> None:
        sides = self.boxes()
        result = ee.find_thresholds(*sides, metrics=["ThresholdAtCost"], miss_cost=0.6, draws=20)
        file = tmp_path / f"best.{ending}"
        assert result.save(file) == 4
        card = ee.score(*sides, metrics=["Counts", "mAP"], score_thresholds=[0], thresholds=file)
        counts = card.metrics.filter(
            pl.col("metric") == "Counts", pl.col("iou_threshold").is_between(0.499, 0.501)
        )
        rows = result.frame.filter(pl.col("average").is_null())
        for statistic in ("tp", "fp", "fn"):
            ours = counts.filter(pl.col("statistic") == statistic).sort("label_value")["value"]
            assert ours.to_list() == rows.sort("label_value")[statistic].to_list()
        below = 300 - int(rows.select(pl.col("tp") + pl.col("fp")).sum().item())
        assert below > 0
        message = f"predictions: {below} rows below the threshold of their label skipped."
        assert message in card.notes
        remaining = sides[0].join(
            result.table().with_columns(pl.col("threshold").cast(pl.Float32)), on="label_value"
        )
        remaining = remaining.filter(pl.col("score") >= pl.col("threshold")).drop(
            "threshold", "label_key"
        )
        alone = ee.score(remaining, sides[1], metrics=["mAP"])
        assert alone.value("mAP", iou_threshold=0.5) == card.value("mAP", iou_threshold=0.5)

    def test_of_buckets_and_saved_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        predictions, truth = self.boxes()
        given: dict[str, Any] = {"metrics": ["Counts"], "thresholds": {1: 0.4, "x": 0.2}}
        sides = write_sides(Case((predictions, truth), {}), tmp_path)
        whole = ee.score(*sides, **given)
        in_buckets(monkeypatch)
        bounded = ee.score(*sides, **given, memory_limit="1GB", scratch=str(tmp_path / "s"))
        assert bounded.run["buckets"] > 1
        assert_frame_equal(whole.metrics, bounded.metrics, check_exact=True)
        assert sorted(whole.notes) == sorted(bounded.notes)
        noted(whole, "thresholds_unused", labels=["x"])
        noted(whole, "thresholds_lacking", labels=["0", "2"])
        whole.save(tmp_path / "run")
        assert ee.load(tmp_path / "run").options == whole.options

    def test_labels_are_decided(self) -> None:
        """The best label above its threshold is chosen; multilabel ones are separate."""
        rng = np.random.default_rng(2)
        p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
        own = np.array([0.8, 0.5, 0.6])
        scored = pl.DataFrame(
            {"datum_id": np.repeat(np.arange(200), 3), "label_value": ["x", "y", "z"] * 200,
             "score": p.ravel()}
        )  # fmt: skip
        truth = pl.DataFrame(
            {"datum_id": np.arange(200), "label_value": np.array(["x", "y", "z"])[y]}
        )
        given = dict(zip("xyz", own.tolist(), strict=True))
        card = ee.score(scored, truth, metrics=["Accuracy"], thresholds=given)
        reaching = np.where(p >= own, p, -1)
        best = np.where(reaching.max(axis=1) < 0, -1, reaching.argmax(axis=1))
        assert card.value("Accuracy") == np.mean(best == y)
        none = int((best < 0).sum())
        noted(card, "undecided", count=none)
        several = ee.score(
            scored, truth, metrics=["Counts"], multilabel=True, thresholds=given
        ).metrics
        for i, name in enumerate("xyz"):
            rows = several.filter(pl.col("label_value") == name)
            by_name = dict(zip(rows["statistic"], rows["value"], strict=True))
            at = p[:, i] >= own[i]
            assert (by_name["tp"], by_name["fp"]) == ((at & (y == i)).sum(), (at & (y != i)).sum())
        one = pl.DataFrame({"actual": y == 1, "score": p[:, 1]})
        result = ee.find_thresholds(one, metrics="ThresholdAtRecall", draws=20)
        chosen = ee.score(one, metrics=["Counts"], thresholds=result.table()).metrics
        tp = chosen.filter(pl.col("statistic") == "tp", pl.col("label_value"))["value"].item()
        assert tp == result.frame["tp"].item()

    def test_forms_and_refusals(self, tmp_path: Path) -> None:
        truth = self.boxes()
        (tmp_path / "no.json").write_text("[1]")
        (tmp_path / "marked.json").write_text("[1]", "utf-8-sig")
        (tmp_path / "torn.json").write_text("[")
        for given, message in (
            ({"a": "high"}, "'high' of label 'a' is not a finite number"),
            (
                [("label", "a", 0.1), ("label", "a", 0.2)],
                "label 'a' has two thresholds, 0.1 and 0.2",
            ),
            ([{"label_value": "a"}], "column 'threshold' is missing among label_value"),
            (str(tmp_path / "no.json"), "1 is not a label with a threshold"),
            (str(tmp_path / "marked.json"), "1 is not a label with a threshold"),
            (str(tmp_path / "torn.json"), "it cannot be read"),
            (str(tmp_path / "not_there.csv"), "it cannot be read"),
            ("best.txt", r"a \.json, \.csv or \.parquet file is read"),
            (7, "7 is not a table"),
        ):
            with pytest.raises(ee.OptionError, match=message):
                ee.score(*truth, thresholds=given)


class TestNames:
    """Files whose labels mean something else in other data."""

    ROWS = (
        {"label_key": "label", "label_value": 1, "label_name": "car", "threshold": 0.6},
        {"label_key": "label", "label_value": 2, "label_name": "truck", "threshold": 0.2},
    )

    def kept(self, *names: str | None, value: int = 0) -> tuple[list[float], ee.Scorecard]:
        """Return the least score kept per label with these names, and the card."""
        labels = pl.DataFrame({"label_value": [*range(value, value + len(names))]})
        if any(names):
            labels = labels.with_columns(label_name=pl.Series(names))
        scores = [i / 10 for i in range(10)]
        n = len(names)
        truth = pl.DataFrame(
            {"datum_id": [*range(10)] * n, "label_value": np.repeat(labels["label_value"], 10),
             "xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
        )  # fmt: skip
        card = ee.score(
            truth.with_columns(score=pl.Series(scores * n)), truth, labels=labels,
            metrics=["Counts"], iou_thresholds=[0.5], score_thresholds=[0.0],
            thresholds=self.ROWS,
        )  # fmt: skip
        tp = card.metrics.filter(pl.col("statistic") == "tp").sort("label_value")["value"]
        return [1 - one / 10 for one in tp], card

    def test_names_decide(self) -> None:
        found, card = self.kept("car", "truck")
        assert found == pytest.approx([0.6, 0.2])
        (car, truck) = noted(card, "thresholds_moved").facts["labels"]
        assert re.findall(r"\w+", car)[:2] == ["car", "1"]
        assert re.findall(r"\w+", truck)[:2] == ["truck", "2"]
        same, card = self.kept("car", "truck", value=1)
        assert same == pytest.approx([0.6, 0.2])
        assert not [note for note in card.notes if note.startswith("thresholds")]

    def test_another_name_has_no_threshold(self) -> None:
        found, card = self.kept("bus", "bike")
        assert found == [0, 0]
        noted(card, "thresholds_unused", labels=["car", "truck"])

    def test_without_names_values_do(self) -> None:
        found, card = self.kept(None, None)
        assert found == pytest.approx([0, 0.6])
        noted(card, "thresholds_unnamed", labels=["1 (car)"])

    def test_files_have_names(self, tmp_path: Path) -> None:
        sides = TestFiles.boxes()
        labels = pl.DataFrame({"label_value": [0, 1, 2], "label_name": ["car", "bus", "2"]})
        result = ee.find_thresholds(*sides, labels=labels, metrics="ThresholdAtMaxF", draws=20)
        assert [line.split("  ")[1] for line in repr(result).splitlines()[3:7]] == [
            "0 car", "1 bus", "2", "(all)",
        ]  # fmt: skip
        for ending in ("json", "csv", "parquet"):
            result.save(tmp_path / f"t.{ending}")
            moved = [one.with_columns(pl.col("label_value") + 1) for one in sides]
            there = labels.with_columns(pl.col("label_value") + 1)
            ours, theirs = (
                ee.score(*tables, labels=names, metrics=["Counts"],
                         thresholds=tmp_path / f"t.{ending}").metrics["value"]
                for tables, names in ((sides, labels), (moved, there))
            )  # fmt: skip
            assert ours.to_list() == theirs.to_list()


def test_labels_without_a_threshold() -> None:
    """Labels without ground truths are not in the file; each reason is reported."""
    predictions, truth = TestFiles.boxes()
    ghost = predictions[:5].with_columns(pl.lit(7, pl.Int64).alias("label_value"))
    rules = ["ThresholdAtMaxF", "ThresholdAtRecall", "ThresholdAtPrecision"]
    aims = {"target_recall": 0.2, "target_precision": 1.0}
    made = ee.find_thresholds(
        pl.concat([predictions, ghost]), truth.tail(290), metrics=rules, **aims, draws=20
    )
    assert 7 in made.frame["label_value"]
    assert 7 not in made.table("ThresholdAtMaxF")["label_value"]
    (without,) = [note for note in made.notes if "no ground truth" in note]
    assert re.findall(r"'(\w+) of 7'", without) == [
        "ThresholdAtMaxF", "ThresholdAtRecall", "ThresholdAtPrecision",
    ]  # fmt: skip
    assert any("threshold reaches" in note for note in made.notes)
    header, *_ = [line for line in repr(made).splitlines() if "rule" in line]
    assert header.endswith("kept")
    one = ee.find_thresholds(predictions, truth, metrics="ThresholdAtMaxF", draws=20)
    assert "kept" not in repr(one)


@pytest.mark.parametrize("find", [ee.find_thresholds, ee.find_calibration])
def test_runs_filtered_by_thresholds(find: Callable[..., Any]) -> None:
    sides = TestFiles.boxes()
    card = ee.score(*sides, metrics=["Counts"], thresholds={0: 0.6})
    assert any("no lower threshold" in note for note in find(card, draws=20).notes)
    assert not any("no lower threshold" in note for note in find(*sides, draws=20).notes)


def test_labels_that_exclude_each_other() -> None:
    """Counts are of each label against the rest, with a note; multilabel labels are separate."""
    p = np.random.default_rng(2).dirichlet(np.ones(3), 60)
    scored = pl.DataFrame(
        {"datum_id": np.repeat(np.arange(60), 3), "label_value": ["x", "y", "z"] * 60,
         "score": p.ravel()}
    )  # fmt: skip
    truth = pl.DataFrame({"datum_id": np.arange(60), "label_value": ["x", "y", "z"] * 20})
    given: dict[str, Any] = {"metrics": "ThresholdAtMaxF", "draws": 20}
    for several in (False, True):
        result = ee.find_thresholds(scored, truth, **given, multilabel=several)
        notes = [note for note in result.notes if note.startswith("labels exclude")]
        assert len(notes) == (not several)
        held = ee.score(
            scored, truth, metrics=["Counts"], multilabel=several, thresholds=result.table()
        ).metrics.filter(pl.col("statistic") == "tp")["value"]
        own = result.frame.filter(pl.col("average").is_null())["tp"]
        assert (held.to_list() == own.to_list()) is several
        assert held.sum() <= own.sum()
