"""Unread columns of both sides are refused, give a warning, or are listed by ``explain``."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from partitions.cases import FEW, in_buckets

import evalengine as ee
from evalengine.ingest.problems import ChecksFailed
from evalengine.schemas.results import Finding

CODE = "unread_columns_differ"
ROWS = pl.DataFrame({"image_id": [1, 2], "label": ["a", "b"], "score": [0.9, 0.8]})
BOX = {"x_min_px": [1.0, 2.0], "y_min_px": [3.0, 4.0], "x_max_px": [5.0, 6.0],
       "y_max_px": [9.0, 9.0]}  # fmt: skip


def sides(**columns: tuple[list[Any], list[Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two equal tables of labels, except for these columns."""
    mine = ROWS.with_columns(pl.Series(name, of[0]) for name, of in columns.items())
    truth = ROWS.drop("score").with_columns(pl.Series(n, of[1]) for n, of in columns.items())
    return mine, truth


def boxes() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the same boxes, 500 pixels apart in x, under names that are not recognised."""
    apart = {name: [v + 500 for v in of] if name[0] == "x" else of for name, of in BOX.items()}
    return sides(**{name: (of, apart[name]) for name, of in BOX.items()})


def findings_of(card: Any) -> list[Finding]:
    return [one for one in card.findings if one.code == CODE]


def refused(*tables: Any, **options: Any) -> dict[str, Any]:
    with pytest.raises(ChecksFailed) as caught:
        ee.score(*tables, **options)
    (problem,) = caught.value.problems
    assert problem.kind == CODE
    return problem.facts


VALUES = {
    "number": [1.0, 2.0],
    "words": ["left", "right"],
    "boolean": [True, False],
    "duration": [timedelta(1), timedelta(2)],
    "list": [[1], [2]],
    "object": pl.Series([object(), object()], dtype=pl.Object),
}


@pytest.mark.parametrize("ours", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("theirs", VALUES.values(), ids=VALUES)
def test_values_of_different_dtypes_are_compared(ours: Any, theirs: Any) -> None:
    """A column of numbers on one side and words on the other causes no crash."""
    shown = ours is not theirs and not any(one is VALUES["object"] for one in (ours, theirs))
    assert bool(findings_of(ee.score(*sides(extra=(ours, theirs)), task="classification"))) is shown


def test_numbers_and_texts_of_the_same_numbers_do_not_differ() -> None:
    for extra in (([1.0, 2.0], ["1", "2.0"]), (["1", "2.0"], [1.0, 2.0])):
        assert not findings_of(ee.score(*sides(extra=extra), task="classification"))


class TestPositions:
    def test_boxes_under_unknown_names_are_not_scored_as_labels(self) -> None:
        facts = refused(*boxes())
        assert (facts["columns"], facts["count"], facts["of"]) == (["x_min_px", "x_max_px"], 2, 2)
        card = ee.score(*boxes(), columns=facts["ways"], metrics=["mAP"], iou_thresholds=[0.5])
        assert card.task == "detection"
        assert card.value("mAP", iou_threshold=0.5) == 0

    @pytest.mark.parametrize(
        ("name", "mine", "truth"),
        [
            ("polygon_wkt", ["POLYGON ((0 0, 1 0, 1 1, 0 0))"] * 2, ["POLYGON EMPTY"] * 2),
            ("where", ["POINT(1 2)", "POINT(3 4)"], ["POINT(1 3)", "POINT(3 5)"]),
            ("coordinates", [[1.0, 2.0], [3.0, 4.0]], [[1.0, 5.0], [3.0, 6.0]]),
            ("shape", [[[1, 2]], [[3, 4]]], [[[1, 5]], [[3, 6]]]),
            ("span", [[1, 2], [3, 4]], [[5, 6], [7, 8]]),
            ("points", [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]),
            ("bboxLeft", [1, 2], [5, 6]),
            ("roi", [[1.0, 2.0, 3.0, 4.0]] * 2, [[5.0, 2.0, 8.0, 4.0]] * 2),
        ],
    )
    def test_outlines_points_and_spans(self, name: str, mine: list[Any], truth: list[Any]) -> None:
        tables = sides(**{name: (mine, truth)})
        assert refused(*tables)["columns"] == [name]
        with pytest.raises(ChecksFailed):
            ee.check(*tables)

    @pytest.mark.parametrize(
        "names",
        [
            ("start_px", "end_px"),
            ("start_ms", "end_ms"),
            ("begin_index", "stop_index"),
            ("x_px", "y_px", "w_px", "h_px"),
        ],
    )
    def test_ends_of_spans_and_boxes_with_sizes(self, names: tuple[str, ...]) -> None:
        tables = sides(**{name: ([1, 2], [5, 6]) for name in names})
        assert refused(*tables)["columns"] == [*names]

    def test_lists_of_four_numbers_may_be_boxes(self) -> None:
        card = ee.score(*sides(location=([[0.1, 0.2, 0.3, 0.5]] * 2, [[0.5, 0.2, 0.8, 0.4]] * 2)))
        assert [(one.severity, one.facts["columns"]) for one in findings_of(card)] == [
            ("warning", ["location"])
        ]

    @pytest.mark.parametrize(
        "names", [("x",), ("x", "y"), ("Start",), ("height",), ("point",), ("roi",), ("quad",)]
    )
    def test_names_that_may_mean_something_else_are_a_warning(self, names: tuple[str, ...]) -> None:
        card = ee.score(*sides(**{name: ([1, 2], [5, 6]) for name in names}))
        assert [(one.severity, one.facts["columns"]) for one in findings_of(card)] == [
            ("warning", [*names])
        ]

    @pytest.mark.parametrize(
        "columns",
        [
            {"width": ([224, 224], [640, 800]), "height": ([224, 224], [480, 600])},
            {"img_w": ([224, 224], [640, 800]), "img_h": ([224, 224], [480, 600])},
            {"embedding": ([[0.1, 0.2]] * 2, [[0.3, 0.4]] * 2)},
            {"embedding": ([[0.1, 0.2, -0.4, 0.1]] * 2, [[0.3, 0.4, -0.1, 0.2]] * 2)},
            {"probabilities": ([[0.1, 0.2, 0.3, 0.4]] * 2, [[0.4, 0.1, 0.2, 0.3]] * 2)},
            {"start_timestamp": ([1, 2], [5, 6]), "end_timestamp": ([2, 3], [7, 8])},
            {"begin_row_id": ([1, 2], [5, 6]), "end_row_id": ([2, 3], [7, 8])},
            {
                "begin_time": (["8:00", "9:00"], ["8:30", "9:30"]),
                "end_time": (["9:00", "9:10"], ["8:50", "9:50"]),
            },
            {"tokens_of": ([[[0.1] * 3]] * 2, [[[0.3] * 3]] * 2)},
        ],
    )
    def test_sizes_of_images_and_embeddings_are_not_positions(self, columns: Any) -> None:
        assert findings_of(ee.score(*sides(**columns))) == []

    def test_several_objects_of_a_datum(self) -> None:
        more = [pl.concat([t, t.with_columns(label=pl.lit("c"))]) for t in boxes()]
        assert refused(*more, multilabel=True)["count"] == 2

    def test_a_task_that_is_named_answers_the_question(self) -> None:
        card = ee.score(*boxes(), task="classification")
        assert [(one.severity, one.facts["columns"]) for one in findings_of(card)] == [
            ("note", ["x_min_px", "x_max_px"])
        ]
        assert card.warnings == ()

    def test_labels_of_given_regions_are_classification(self) -> None:
        card = ee.score(*sides(**{name: (of, of) for name, of in BOX.items()}))
        assert card.task == "classification"
        assert findings_of(card) == []

    def test_next_to_boxes_that_are_scored_they_are_a_note(self) -> None:
        read = {name: pl.Series(of) for name, of in zip(
            ["xmin", "ymin", "xmax", "ymax"], BOX.values(), strict=True)}  # fmt: skip
        mine, truth = (table.with_columns(**read) for table in boxes())
        card = ee.score(mine, truth)
        assert [(one.severity, one.count) for one in findings_of(card)] == [("note", 2)]


class TestOtherColumns:
    def test_values_that_differ_are_a_warning(self) -> None:
        card = ee.score(*sides(age=([31, 40], [31, 2])))
        (one,) = findings_of(card)
        assert (one.severity, one.count) == ("warning", 1)
        assert (one.facts["columns"], one.facts["of"]) == (["age"], 2)
        assert one.message in card.warnings
        report = ee.check(*sides(age=([31, 40], [31, 2])))
        assert findings_of(report) == [one]

    @pytest.mark.parametrize(
        ("name", "mine", "truth"),
        [
            ("age", [31, 2], [31.0, 2.0]),
            ("age", [0.1 + 0.2, 1.0], [0.3, 1.0]),
            ("age", [None, 2], [7, 2]),
            ("city", ["Bonn ", "Lyon"], ["Bonn", "Lyon"]),
            ("image_path", ["/p/1.png", "/p/2.png"], ["/g/1.png", "/g/2.png"]),
            ("model_version", ["a", "a"], ["b", "b"]),
            ("Unnamed: 0", [0, 1], [1, 0]),
            ("createdAt", ["1", "2"], ["3", "4"]),
        ],
    )
    def test_sound_tables(self, name: str, mine: list[Any], truth: list[Any]) -> None:
        assert findings_of(ee.score(*sides(**{name: (mine, truth)}))) == []

    def test_columns_that_slices_and_conditions_read(self) -> None:
        tables = sides(age=([31, 40], [31, 2]))
        assert findings_of(ee.score(*tables, where={"predictions": "age > 0"})) == []

    def test_rows_far_from_the_first_ones_are_compared(self) -> None:
        n = 12_000
        truth = pl.DataFrame({"datum_id": range(n), "label_value": ["a"] * n, "age": range(n)})
        mine = truth.reverse().with_columns(age=-pl.col("age"))
        (one,) = findings_of(ee.score(mine, truth, task="classification"))
        assert one.count == one.facts["of"] - (one.facts["of"] > one.count)
        assert one.facts["of"] >= 20
        assert findings_of(ee.score(truth.reverse(), truth)) == []

    def test_documents_are_compared_one_by_one(self) -> None:
        run = pl.DataFrame(
            {"query_id": [1, 1, 1], "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0],
             "start": [0, 4, 9]}
        )  # fmt: skip
        judged = run.drop("score").head(1)
        assert findings_of(ee.score(run, judged)) == []
        moved = judged.with_columns(start=pl.lit(7))
        assert [one.severity for one in findings_of(ee.score(run, moved))] == ["note"]


class TestFindings:
    def test_bounded_memory_saved_and_copied(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tables = sides(age=([31, 40], [31, 2]))
        card = ee.score(*tables)
        files = [tmp_path / name for name in ("p.parquet", "g.parquet")]
        for table, file in zip(tables, files, strict=True):
            table.write_parquet(file)
        in_buckets(monkeypatch)
        bounded = ee.score(*files, memory_limit="1GB")
        assert bounded.run["buckets"] == FEW.n
        assert findings_of(bounded) == findings_of(card)
        assert bounded.run["columns"] == card.run["columns"]
        card.save(tmp_path / "run")
        assert ee.load(tmp_path / "run").findings == card.findings
        assert pickle.loads(pickle.dumps(card)).findings == card.findings

    def test_each_note_except_recognised_columns_is_a_finding(self) -> None:
        card = ee.score(*sides(age=([31, 40], [31, 2])))
        notes = [one.message for one in card.findings]
        assert notes == [one for one in card.notes if ": read " not in one]
        warned = [one.message for one in card.findings if one.severity == "warning"]
        assert warned == list(card.warnings)


class TestColumnsListed:
    def test_read_guessed_and_not_read(self) -> None:
        mine = ROWS.rename({"image_id": "datum_id"}).with_columns(mood=pl.lit("x"), w=pl.lit("y"))
        truth = ROWS.drop("score").with_columns(light=pl.lit("day"))
        card = ee.score(mine, truth, columns={"label": "label_value"}, by="light")
        columns = card.run["columns"]
        assert columns["predictions"] == {
            "read": ["datum_id", "label", "score"], "guessed": {}, "unread": ["mood", "w"]
        }  # fmt: skip
        assert columns["ground_truths"] == {
            "read": ["label", "light"], "guessed": {"image_id": "datum_id"}, "unread": []
        }  # fmt: skip

    @pytest.mark.parametrize("number", [None, "Accuracy"])
    def test_explain_lists_them(self, number: str | None) -> None:
        mine, truth = sides(mood=(["x", "y"], ["x", "y"]))
        lines = ee.explain(mine, truth, number=number).splitlines()
        heads = [line.split(":")[0].split() for line in lines if line[10:].startswith("pred")]
        assert ["read", "predictions"] in heads
        assert ["guessed", "predictions"] in heads
        (unread,) = [line for line in lines if line.startswith("not read  predictions")]
        assert unread.endswith(": mood")


@pytest.mark.parametrize(("frames", "warns"), [([0, 1, 2, 3], True), ([0, 0, 1, 1], False)])
def test_boxes_of_several_frames_in_one_datum(frames: list[int], warns: bool) -> None:
    truth = pl.DataFrame(
        {
            "datum_id": ["clip", "clip", "street", "street"],
            "label_value": "car",
            "Frame No": frames,
            **{name: [1.0, 30.0, 1.0, 30.0] for name in ("xmin", "ymin")},
            **{name: [20.0, 50.0, 20.0, 50.0] for name in ("xmax", "ymax")},
        }
    )
    found = ee.score(truth.with_columns(score=0.5), truth).findings
    named = [one.facts for one in found if one.code == "frames_unread"]
    assert named == [{"count": 2, "of": 2, "columns": ["Frame No"]}] * warns


class TestOneTable:
    """Columns of both sides in one table, by words in their names."""

    LABELS = pl.DataFrame({"actual": ["a", "b"] * 20, "predicted": ["a", "b"] * 20})

    def rows(self, *names: str, step: float = 5.0) -> pl.DataFrame:
        numbers = pl.int_range(40, eager=True).cast(pl.Float64)
        return self.LABELS.with_columns(
            (numbers + step * i).alias(name) for i, name in enumerate(names)
        )

    def test_ends_of_spans_are_refused(self) -> None:
        table = self.rows("start_gt", "end_gt", "start_pred", "end_pred")
        assert refused(table)["columns"] == ["start_gt", "end_gt", "start_pred", "end_pred"]
        card = ee.score(table, task="classification")
        assert [one.severity for one in findings_of(card)] == ["note"]

    @pytest.mark.parametrize("names", [("xmin_true", "xmin_pred"), ("trueX", "predictedX")])
    def test_positions_are_a_warning(self, names: tuple[str, str]) -> None:
        for check in (ee.score, ee.check):
            (one,) = findings_of(check(self.rows(*names)))
            assert (one.severity, one.facts["columns"]) == ("warning", [*names])

    @pytest.mark.parametrize(
        "table", [("age_true", "age_pred"), ("xmin_pred", "other"), ("xmin_true", "ymin_pred")]
    )
    def test_other_columns(self, table: tuple[str, str]) -> None:
        assert findings_of(ee.score(self.rows(*table))) == []
        assert findings_of(ee.score(self.rows("xmin_true", "xmin_pred", step=0.0))) == []

    def test_ids_categories_and_selecting_columns(self) -> None:
        card = ee.score(self.rows("pred_start_id", "true_start_id"))
        assert findings_of(card) == []
        names = "true_segment", "pred_segment"
        texts = pl.col(names).cast(pl.Int64).cast(pl.String).str.replace("^", "s")
        assert findings_of(ee.score(self.rows(*names).with_columns(texts))) == []
        for how in ({"by": ["true_x"]}, {"where": "true_x < 100"}):
            assert findings_of(ee.score(self.rows("true_x", "pred_x"), **how)) == []
