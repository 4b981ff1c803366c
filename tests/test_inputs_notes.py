"""Notes and refusals for unusable input: weights, mixed types, tables without rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import Refusal, noted, refused

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.problems import Note, notes_of_parts
from evalengine.schemas.errors import InputError

TRUTHS = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": ["a", "b", "a"]})
PREDICTIONS = TRUTHS.with_columns(score=pl.Series([0.9, 0.8, 0.7]))
BOXES = TRUTHS.with_columns(xmin=0.0, ymin=0.0, xmax=2.0, ymax=2.0)


def refusal(*tables: Any, **options: Any) -> Refusal:
    with pytest.raises(InputError) as caught:
        ee.score(*tables, **options)
    return Refusal(caught.value)


class TestWeights:
    SAID = "predictions: column 'sample_weight' is not read: sample weights are read from the"

    def unread_notes(self, card: ee.Scorecard) -> list[str]:
        return [note for note in card.notes if "is not read" in note]

    def test_on_predictions_they_are_ignored_with_a_note(self) -> None:
        weighed = PREDICTIONS.with_columns(sample_weight=pl.Series([5.0, 1.0, 0.0]))
        card = ee.score(weighed, TRUTHS)
        assert len(self.unread_notes(card)) == 1
        assert self.unread_notes(card)[0].startswith(self.SAID)
        assert card.metrics.equals(ee.score(PREDICTIONS, TRUTHS).metrics)

    def test_on_ground_truths_they_count_without_a_note(self) -> None:
        wrong = PREDICTIONS.with_columns(label_value=pl.lit("a"))
        card = ee.score(wrong, TRUTHS.with_columns(weight=pl.Series([1.0, 8.0, 1.0])))
        assert self.unread_notes(card) == []
        assert card.value("Accuracy") == 0.2

    @pytest.mark.parametrize("side", [0, 1])
    def test_detection_has_none(self, side: int) -> None:
        tables = [BOXES.with_columns(score=0.5), BOXES]
        assert self.unread_notes(ee.score(*tables)) == []
        tables[side] = tables[side].with_columns(Weight=1.0)
        name = ("predictions", "ground truths")[side]
        message = f"{name}: column 'Weight' is not read: detection has no sample weights."
        assert self.unread_notes(ee.score(*tables)) == [message]

    def test_a_column_that_is_used_otherwise_is_read(self) -> None:
        weights = PREDICTIONS.rename({"score": "weight"})
        assert self.unread_notes(ee.score(weights, TRUTHS, columns={"weight": "score"})) == []
        sliced = PREDICTIONS.with_columns(weight=pl.lit(1))
        assert self.unread_notes(ee.score(sliced, TRUTHS, by="weight")) == []


COLUMNS: dict[str, list[Any]] = {
    "datum_id": [1, "2", 3, None],
    "label_value": ["a", "b", 7, True],
    "score": [1, 0.5, None, 0.25],
}


class TestMixedTypes:
    @pytest.mark.parametrize(
        ("name", "table"),
        [
            ("pandas.DataFrame", pd.DataFrame(COLUMNS, dtype=object)),
            ("dict", COLUMNS),
            (
                "list",
                [
                    dict(zip(COLUMNS, row, strict=True))
                    for row in zip(*COLUMNS.values(), strict=True)
                ],
            ),
        ],
    )
    def test_columns_counts_and_rows_are_named(self, name: str, table: Any) -> None:
        message = refusal(table, TRUTHS)
        assert message.has("types_mixed", count=2)
        assert message.startswith(name)
        assert "row 1 ('2')" in message
        assert "row 2 (7); row 3 (True)" in message

    def test_no_more_than_three_rows_and_no_long_values(self) -> None:
        values = [*range(9), *(f"{i}" * 100 for i in range(5))]
        message = refusal(pd.DataFrame({"actual": values, "score": 0.5}))
        assert "strings in 5 rows" in message
        assert "row 9 ('" + "0" * 59 + "...)" in message
        assert "row 11" in message
        assert "row 12" not in message

    def test_nulls_have_no_type(self) -> None:
        table = pd.DataFrame(
            {"actual": pd.Series(["a", None, np.nan, pd.NA, pd.NaT, 3], dtype=object)}
        )
        assert refusal(table).has("types_mixed", count=1)

    def test_columns_of_pandas_are_named(self) -> None:
        lists = {"retrieved": [[1], ["1"]], "relevant": [[1], [2]]}
        assert refusal(pd.DataFrame(lists)).has("types_mixed", column="retrieved", row=1)
        twice = pd.DataFrame([[1, 2, 3]], columns=["y_true", "y_pred", "y_pred"])
        assert refusal(twice, task="regression").has("column_twice", columns=["y_pred"])

    def test_columns_of_two_lengths_are_named(self) -> None:
        message = refusal({"actual": [1, 2], "score": [0.5]})
        assert message.has("lengths_differ", lengths={"actual": 2, "score": 1})


class TestEmpty:
    @pytest.mark.parametrize("empty", [pl.DataFrame(), pd.DataFrame(), {}, []])
    def test_empty_tables_have_no_task(self, empty: Any) -> None:
        message = refusal(empty, empty)
        assert message.has("task_unknown")
        assert refusal(empty).has("task_unknown")

    @pytest.mark.parametrize("empty", [pl.DataFrame(), pd.DataFrame(), {}, []])
    def test_with_a_task_they_are_empty(self, empty: Any) -> None:
        assert ee.score(empty, empty, task="detection").metrics.height == 0
        card = ee.score(empty, TRUTHS)
        assert card.notes[0].startswith("3 datums without predictions: 1, 2, 3.")
        assert card.value("Recall", label_value="a") == 0.0

    @pytest.mark.parametrize("options", [{}, {"positive_label": "yes"}])
    @pytest.mark.parametrize("columns", [["actual", "score"], ["actual", "predicted", "score"]])
    @pytest.mark.parametrize("dtype", [pl.Null, pl.String, pl.Int64])
    def test_one_table_without_rows_and_dtypes(
        self, columns: list[str], dtype: pl.DataType, options: dict[str, Any]
    ) -> None:
        schema = {name: pl.Float64() if name == "score" else dtype for name in columns}
        if dtype == pl.Null:
            schema = dict.fromkeys(columns, dtype)
        if dtype == pl.Int64:
            options = dict.fromkeys(options, 1)
        card = ee.score(pl.DataFrame(schema=schema), **options)
        assert card.metrics["value"].null_count() == card.metrics.height
        assert card.curves.height == 0


class TestProbabilities:
    def test_long_tables(self) -> None:
        wrong = PREDICTIONS.with_columns(score=pl.Series([0.5, 1.5, -0.1]))
        assert refusal(wrong, TRUTHS, metrics=["ECE"]).has(
            "not_probabilities", columns=["score"], rows=[1, 2], count=2, first=(1, 0, 1.5)
        )

    def test_score_columns_by_the_users_row_and_column(self) -> None:
        table = pl.DataFrame(
            {
                "datum_id": [1, 2, 3],
                "prob_a": [0.5, 0.6, 1.25],
                "prob_b": [0.5, 2.0, -1.0],
                "prob_c": [0.0, 1.0, 0.5],
            }
        )
        message = refusal(table, TRUTHS, score_columns="prob_*", metrics=["LogLoss"])
        assert message.has(
            "not_probabilities",
            columns=["prob_a", "prob_b"],
            rows=[1, 2, 2],
            count=3,
            first=(1, 1, 2.0),
        )
        kept = refusal(
            table, TRUTHS, score_columns="prob_*", metrics=["LogLoss"], where="datum_id = 3"
        )
        assert kept.has(
            "not_probabilities",
            columns=["prob_a", "prob_b"],
            rows=[0, 0],
            count=2,
            first=(0, 0, 1.25),
        )

    def test_one_table_by_own_name(self) -> None:
        table = pl.DataFrame({"y_true": [0, 1], "logit": [-2.0, 3.0]})
        message = refusal(table, columns={"logit": "score"}, metrics=["Brier"])
        assert message.has(
            "not_probabilities", columns=["logit"], rows=[0, 1], count=2, first=(0, 0, -2.0)
        )

    def test_0_and_1_are_probabilities_and_others_may_have_logits(self) -> None:
        table = pl.DataFrame({"actual": [0, 1], "score": [0.0, 1.0]})
        assert ee.score(table, metrics=["Brier"]).value("Brier") == 0.0
        logits = pl.DataFrame({"actual": [0, 1], "score": [-2.0, 3.0]})
        assert ee.score(logits, metrics=["ROCAUC"]).value("ROCAUC", label_value=1) == 1.0


@pytest.mark.parametrize(
    ("table", "other", "read"),
    [
        ({"y_true": [1.5], "target": [2.5], "y_pred": [1.5]}, "y_true", "target"),
        ({"prediction": [1.5], "target": [2.5], "y_pred": [3.5]}, "y_pred", "prediction"),
        ({"ds": [1], "y": [1.5], "target": [2.5], "y_hat": [1.5]}, "y", "target"),
        ({"actual": ["a"], "predicted": ["a"], "y_pred": ["b"]}, "y_pred", "predicted"),
        ({"text": ["a"], "reference": ["a"], "ground_truth": ["b"]}, "ground_truth", "reference"),
    ],
)
def test_a_second_column_of_values_is_noted(table: Any, other: str, read: str) -> None:
    def notes(**options: Any) -> list[str]:
        card = ee.score(table, **options)
        return [one.message for one in card.findings if one.code == "unread_column"]

    (message,) = notes()
    assert repr(other) in message
    assert repr(read) in message
    assert notes(columns={other: read}) == notes(by=[other]) == []
    table = {name: values for name, values in table.items() if name != other}
    assert notes() == []


@pytest.mark.parametrize(
    ("task", "columns", "side", "more"),
    [
        ("regression", ({"prediction": [1.5]}, {"target": [2.5]}), 0, {"y_pred": [3.5]}),
        ("regression", ({"prediction": [1.5]}, {"target": [2.5]}), 1, {"y_true": [3.5]}),
        ("retrieval", ({"doc_id": ["a"], "score": [1.0]}, {"doc_id": ["a"]}), 0, {"sim": [0.5]}),
    ],
)
def test_a_second_column_of_values_of_one_side_is_noted(
    task: str, columns: tuple[dict[str, Any], ...], side: int, more: dict[str, Any]
) -> None:
    datum = "query_id" if task == "retrieval" else "datum_id"
    sides = [pl.DataFrame({datum: [1], **values}) for values in columns]
    sound = ee.score(*sides, task=task)
    assert "unread_column" not in {one.code for one in sound.findings}
    sides[side] = sides[side].with_columns(**{name: pl.Series(v) for name, v in more.items()})
    card = ee.score(*sides, task=task)
    noted(card, "unread_column", severity="note", count=1)
    assert card.metrics.equals(sound.metrics)
    read = {"y_pred": "prediction", "y_true": "target", "sim": "score"}[next(iter(more))]
    card = ee.score(*sides, task=task, columns={read: read})
    assert "unread_column" not in {one.code for one in card.findings}


def test_columns_that_are_no_second_values_are_not_noted() -> None:
    both = pl.DataFrame({"query_id": [1], "doc_id": ["a"], "score": [1.0], "relevance": [1]})
    labels = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "category": ["b"]})
    place = pl.DataFrame({"x": [1.0], "y": [2.0], "prediction": [3.0], "target": [4.0]})
    for card in (
        ee.score(both, both, task="retrieval"),
        ee.score(labels, labels.clone()),
        ee.score(place),
    ):
        assert "unread_column" not in {one.code for one in card.findings}


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"y_true": ["a", "b"]}, None),  # equal
        ({"y": ["u", "v"]}, None),
        ({"output": ["I think a", "maybe b"]}, None),
        ({"actual_label": [1, 2], "predicted_label": [1, 1]}, None),
        ({"target": [0.1, 0.2]}, None),
        ({"y_pred": ["a", "b"]}, "y_pred = 'a'"),
        ({"y_pred": ["a", "b"]}, "NOT (\"y_pred\" = 'a')"),
    ],
)
def test_columns_next_to_values_that_are_not_noted(more: Any, where: str | None) -> None:
    table = {"actual": ["a", "b"], "predicted": ["a", "a"], **more}
    card = ee.score(table, task="classification", metrics=["Accuracy"], where=where)
    assert "unread_column" not in {one.code for one in card.findings}


@pytest.mark.parametrize(
    ("task", "name", "values", "same"),
    [
        ("regression", "target", [1.0, 2.0], [1, 2]),
        ("classification", "actual", ["a", "b"], pl.Series(["a", "b"], dtype=pl.Categorical)),
    ],
)
def test_columns_that_equal_the_values_are_not_noted(
    task: str, name: str, values: list[Any], same: Any
) -> None:
    other = "prediction" if task == "regression" else "predicted"
    table = pl.DataFrame({name: values, other: values[::-1], "y_true": same})
    card = ee.score(table, task=task)
    assert "unread_column" not in {one.code for one in card.findings}


def test_notes_of_parts_add_up() -> None:
    one, two, three = (Note(kind, f"3 {kind}", 3) for kind in ("one", "two", "three"))
    unread_notes = notes_of_parts([[two], [one, two], [], [two, three], [three]])
    assert {note.kind: note.count for note in unread_notes} == {"one": 3, "two": 9, "three": 6}
    assert next(note for note in unread_notes if note.kind == "one") == one


def test_the_angle_of_boxes_is_not_read_without_a_word():
    row = {"datum_id": [1], "label_value": ["a"], "cx": [9.0], "cy": [9.0], "w": [5.0], "h": [3.0]}
    plain = pl.DataFrame(row)
    turned = plain.with_columns(theta=0.3)
    card = ee.score(turned.with_columns(score=0.5), plain, iou_type="bbox")
    assert "'theta'" in noted(card, "unread_column", count=1).message
    with refused("angle_format_missing", ee.InputError, side="predictions", column="angle"):
        ee.score(turned.with_columns(score=0.5), plain)
    card = ee.score(plain.with_columns(score=0.5), plain)
    assert not any("upright" in note for note in card.notes)
    shapes = {"obb": [9.0, 9.0, 5.0, 3.0, 0.3], "polygon": [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0]]}
    for name, shape in shapes.items():  # already turned
        truths = turned.select("datum_id", "label_value", "theta", pl.Series(name, [shape]))
        card = ee.score(truths.with_columns(score=0.5), truths, angle_format="radians-clockwise")
        assert "unread_column" not in {one.code for one in card.findings}


BOX = {"xmin": [0.0], "ymin": [0.0], "xmax": [5.0], "ymax": [5.0]}


@pytest.mark.parametrize(
    ("task", "rows", "scored"),
    [
        ("retrieval", {"query_id": ["q"], "doc_id": ["d"], "relevance": [1]}, True),
        ("detection", {"datum_id": [1], "label_value": ["a"], **BOX}, True),
        ("classification", {"datum_id": [1], "label_value": ["a"]}, False),
    ],
)
def test_ground_truths_without_a_row_are_a_warning(
    task: Any, rows: dict[str, list[Any]], scored: bool, tmp_path: Path
) -> None:
    truths = pl.DataFrame(rows)
    predictions = truths.with_columns(pl.lit(0.5).alias("score")) if scored else truths
    for card in (ee.score, ee.check):
        noted(card(predictions, truths[:0], task=task), "no_ground_truths", severity="warning")
    for some in ((predictions, truths), (predictions[:0], truths), (predictions[:0], truths[:0])):
        codes = {one.code for one in ee.score(*some, task=task).findings}
        assert "no_ground_truths" not in codes
    datum = truths.columns[0]
    card = ee.score(predictions, truths, task=task, where={"ground_truths": f"{datum} IS NULL"})
    assert noted(card, "no_ground_truths", severity="warning").message.endswith("Change where=.")
    plan = ee.plan(predictions, truths, task=task)
    other = predictions.with_columns(pl.lit(truths[datum].dtype.to_python()(2)).alias(datum))
    parts = [plan.tally(predictions, truths), plan.tally(other, truths[:0])]
    assert "no_ground_truths" not in {one.code for one in ee.merge(parts).summarise().findings}
    noted(parts[1].summarise(), "no_ground_truths", severity="warning")
    if task == "detection":  # the list states that these have no objects
        card = ee.score(predictions, truths[:0], task=task, datums=[1])
        assert "no_ground_truths" not in {one.code for one in card.findings}
    paths = [str(tmp_path / name) for name in ("predictions.parquet", "truths.parquet")]
    predictions.write_parquet(paths[0])
    truths[:0].write_parquet(paths[1])
    assert main(["check", *paths, "--task", task]) == 1
    assert main(["score", *paths, "--task", task, "--strict"]) == 1


def test_of_two_angles_the_one_called_angle_is_read() -> None:
    row = {"datum_id": [1], "label_value": ["a"], "cx": [9.0], "cy": [9.0], "w": [5.0], "h": [3.0]}
    truths = pl.DataFrame({**row, "angle": [0.3]})
    turned = truths.with_columns(score=0.5, angle=1.3)
    two = turned.with_columns(theta=0.3)
    with refused("angle_format_missing", side="predictions", column="angle"):  # no upright boxes
        ee.score(two, truths)
    options: dict[str, Any] = {"angle_format": "radians-clockwise", "metrics": ["mAP"]}
    card = ee.score(two, truths, **options)
    message = noted(card, "unread_column", count=1).message
    assert "'angle' is read" in message
    assert "upright" not in message
    assert card.metrics.equals(ee.score(turned, truths, **options).metrics)
    same = turned.with_columns(rotation=pl.col("angle"))
    assert "unread_column" not in {one.code for one in ee.score(same, truths, **options).findings}
    neither = two.rename({"angle": "rotation"}).select(*row, "score", "theta", "rotation")
    with refused("ambiguous_column", side="predictions", columns=["theta", "rotation"]):
        ee.score(neither, truths, **options)
    for by in ("rotation", "rotation * source"):  # a slice has one value per datum
        card = ee.score(neither.with_columns(source=pl.lit("a")), truths, by=[by], **options)
        theta = turned.with_columns(angle=0.3)
        expected = ee.score(theta, truths, **options).value("mAP", iou_threshold=0.5)
        assert card.value("mAP", iou_threshold=0.5, slice=None) == expected


def test_the_same_file_on_both_sides_is_a_warning(tmp_path: Path) -> None:
    def warned(*paths: Path) -> bool:
        findings = ee.score(*paths, task="classification").findings
        return any((one.code, one.severity) == ("same_file", "warning") for one in findings)

    labels = pl.DataFrame({"id": [1, 2], "label": ["a", "b"]})
    both = labels.rename({"label": "y_true"}).with_columns(y_pred=pl.lit("a"))
    for name, table in (("a", labels), ("b", labels), ("both", both)):
        table.write_csv(tmp_path / f"{name}.csv")
    one, other, whole = (tmp_path / f"{name}.csv" for name in ("a", "b", "both"))
    assert warned(one, one)
    assert not warned(one, other)
    where = {"predictions": "id = 1 OR label = 'a'", "ground_truths": "id < 3"}
    card = ee.score(one, one, task="classification", where=where)  # rows of one long table
    assert "same_file" not in {finding.code for finding in card.findings}
    boxes = [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5], "score": 0.5}]
    (tmp_path / "boxes.json").write_text(json.dumps(boxes))
    (tmp_path / "run.json").write_text('{"q": {"d": 1}}')
    for name in ("boxes.json", "run.json"):
        noted(ee.score(*[tmp_path / name] * 2), "same_file", severity="warning")
    assert not warned(whole, whole)
    ids = both.with_columns(y_pred=pl.Series([0.5, 1.0]), y_true=pl.Series([1.0, 1.0]))
    ids.write_csv(tmp_path / "ids.csv")
    card = ee.score(tmp_path / "ids.csv", tmp_path / "ids.csv", task="regression")
    assert not [one for one in card.findings if one.code == "same_file"]


@pytest.mark.parametrize("low", [(-1, 0), (0, -1)])
def test_two_classes_of_other_codes_are_a_warning(low: tuple[int, int]) -> None:
    table = pl.DataFrame({"y_true": [low[1], 1] * 3, "y_pred": [low[0], 1] * 3})
    card = ee.score(table)
    assert [one.severity for one in card.findings if one.code == "labels_of_two_codes"] == [
        "warning"
    ]
    mapped = ee.score(table, label_map={low[0]: low[1]})
    assert mapped.value("Accuracy") == 1.0
    assert not [one for one in mapped.findings if one.code == "labels_of_two_codes"]
    others = table.vstack(pl.DataFrame({"y_true": [2], "y_pred": [2]}))
    assert "labels_of_two_codes" not in {one.code for one in ee.score(others).findings}
