"""Tables of classification: one with both sides or two, labels of every type, scores per label."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from loading import load_frames
from refusals import Refusal, noted, refused

import evalengine as ee
from evalengine.ingest.frames import Frames
from evalengine.schemas.errors import EvalengineError, InputError, OptionError
from evalengine.schemas.option_values import make_options

PREDICTIONS = {"datum_id": [1, 1, 2], "label_value": ["cat", "dog", "cat"], "score": [0.9, 0.1, 1]}
TRUTHS = {"datum_id": [1, 2], "label_value": ["dog", "cat"]}


def load(ours: Any, theirs: Any = None, **options: Any) -> Frames:
    tables = {name: options.pop(name, None) for name in ("datums", "labels")}
    return load_frames(
        ours, theirs, options=make_options(**options), task="classification", **tables
    )


def refusal(*args: Any, **options: Any) -> Refusal:
    with pytest.raises(EvalengineError) as caught:
        load(*args, **options)
    return Refusal(caught.value)


def table(frames: Frames) -> pl.DataFrame:
    assert frames.table is not None
    return frames.table


def kinds(frames: Frames) -> dict[str, str]:
    return {note.kind: note.message for note in frames.notes}


def test_two_tables_are_two_sides() -> None:
    frames = load(PREDICTIONS, TRUTHS)
    assert set(frames.sides) == {"predictions", "ground_truths"}
    assert frames.table is None
    assert frames.predictions.columns == ["datum_id", "label_value", "score"]
    assert frames.ground_truths.rows() == [(1, "dog"), (2, "cat")]
    assert (frames.by_row, frames.same_order, frames.score_labels) == (False, False, None)


def test_two_tables_in_the_same_order_are_distinguished_from_others() -> None:
    ours = {"datum_id": [1, 2], "label_value": ["dog", "dog"]}
    assert load(ours, TRUTHS).same_order
    assert not load({**ours, "datum_id": [2, 1]}, TRUTHS).same_order


def test_the_sides_can_be_replaced() -> None:
    frames = load(PREDICTIONS, TRUTHS)
    frames.predictions = frames.predictions.head(1)
    frames.ground_truths = frames.ground_truths.head(0)
    assert [frame.height for frame in frames.sides.values()] == [1, 0]


@pytest.mark.parametrize("alias", ["y_true", "TARGET", "truth", "gold", "expected", "label_true"])
@pytest.mark.parametrize("other", ["y_pred", "prediction", "output", "pred", "predicted_label"])
def test_names_that_users_have_are_recognised(alias: str, other: str) -> None:
    frames = load({alias: [0, 1], other: [1, 1], "y_score": [0.5, 0.25]})
    assert table(frames).columns == ["actual", "predicted", "score"]
    assert frames.recognised["table"] == {alias: "actual", other: "predicted", "y_score": "score"}


def test_a_bare_label_is_suggested_and_used_only_next_to_a_prediction() -> None:
    message = refusal({"label": [0, 1], "score": [0.1, 0.9]})
    assert message.has("column_missing", side="table", column="actual")
    frames = load({"label": [0, 1], "prediction": [1, 1]})
    assert table(frames)["actual"].to_list() == [0, 1]
    frames = load({"label": [0, 1], "score": [0.1, 0.9]}, columns={"label": "actual"})
    assert table(frames)["actual"].to_list() == [0, 1]


def test_without_predictions_or_scores_nothing_was_predicted() -> None:
    message = refusal({"actual": [0, 1]})
    assert message.has("column_missing", side="table", column="predicted")
    assert "score_columns" in message


LABELS: list[tuple[Any, Any, Any]] = [
    (pl.Series([0, 1], dtype=pl.Int8), pl.Series([1, 1], dtype=pl.UInt32), pl.Int64),
    ([True, False], [True, True], pl.Boolean),
    ([True, False], [1, 0], pl.Int64),
    ([0, 1], [False, True], pl.Int64),
    ([0.0, 1.0], [True, False], pl.Int64),
    ([-1.0, 1.0], [1, -1], pl.Int64),
    (["a", "b"], pl.Series(["b", "a"], dtype=pl.Categorical), pl.String),
    (pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])), ["b", "b"], pl.String),
    ([2**64 - 1, 1], [1, 1], pl.UInt64),
    ([[1, 2], []], [[2.0, 1.0], []], pl.List(pl.Int64)),
    ([[True], []], [[1], []], pl.List(pl.Int64)),
    ([["a"], []], pl.Series([["b"], []], dtype=pl.List(pl.Categorical)), pl.List(pl.String)),
    (pl.Series([[1, 2]] * 2, dtype=pl.Array(pl.Int32, 2)), [[2, 2]] * 2, pl.List(pl.Int64)),
    ([[], []], [[], []], pl.List(pl.String)),
]


@pytest.mark.parametrize(("actual", "predicted", "dtype"), LABELS, ids=str)
def test_labels_of_both_columns_get_one_dtype(actual: Any, predicted: Any, dtype: Any) -> None:
    result = table(load(pl.DataFrame({"actual": actual, "predicted": predicted})))
    assert result.schema == {"actual": dtype, "predicted": dtype}
    assert result["actual"].to_list() == pl.Series(actual).to_list()
    assert result["predicted"].to_list() == pl.Series(predicted).to_list()


@pytest.mark.parametrize(
    ("actual", "predicted", "words"),
    [
        (
            [0.5, 1.0],
            [0, 1],
            {"code": "not_whole", "side": "table", "column": "actual", "count": 1, "rows": [0]},
        ),
        (
            [1.0, 1e19],
            [0, 1],
            {"code": "not_whole", "side": "table", "column": "actual", "count": 1},
        ),
        (
            [math.nan, 1.0],
            [0, 1],
            {"code": "not_finite", "side": "table", "column": "actual", "count": 1},
        ),
        (
            [None, 1],
            [0, 1],
            {"code": "null_values", "side": "table", "column": "actual", "count": 1, "rows": [0]},
        ),
        (
            [0, 1],
            [0, None],
            {
                "code": "null_values",
                "side": "table",
                "column": "predicted",
                "count": 1,
                "rows": [1],
            },
        ),
        (["a", "b"], [0, 1], {"code": "types_differ", "column": "labels"}),
        (["a", "b"], [True, False], {"code": "types_differ", "column": "labels"}),
        ([[1], [2]], [1, 2], {"code": "lists_on_one_side", "side": "table", "column": "actual"}),
        (
            [[1], [2, 3]],
            [[1], [2]],
            {
                "code": "unequal_lists",
                "side": "table",
                "column": "predicted",
                "count": 1,
                "rows": [1],
            },
        ),
        (
            [[1], [None]],
            [[1], [2]],
            {"code": "null_in_list", "side": "table", "column": "actual", "count": 1, "rows": [1]},
        ),
        (
            [[1], [1.5]],
            [[1], [2]],
            {"code": "not_whole", "side": "table", "column": "actual", "count": 1},
        ),
        (
            [[1], [math.inf]],
            [[1], [2]],
            {"code": "not_finite", "side": "table", "column": "actual", "count": 1},
        ),
        ([[[1]], [[2]]], [[1], [2]], {"code": "wrong_dtype", "side": "table", "column": "actual"}),
        ([b"a", b"b"], [0, 1], {"code": "wrong_dtype", "side": "table", "column": "actual"}),
    ],
)
def test_invalid_labels_are_refused(actual: Any, predicted: Any, words: dict[str, Any]) -> None:
    assert refusal(pl.DataFrame({"actual": actual, "predicted": predicted}, strict=False)).has(
        **words
    )


def test_lists_have_no_scores() -> None:
    message = refusal({"actual": [[1], [2]], "predicted": [[1], [2]], "score": [0.1, 0.2]})
    assert message.has("lists_on_one_side", side="table", column="actual")


@pytest.mark.parametrize(
    ("scores", "dtype"),
    [
        ([0.5, 1.0], pl.Float64),
        (pl.Series([0.5, 1.0], dtype=pl.Float32), pl.Float32),
        ([0, 1], pl.Float64),
    ],
)
def test_scores_are_floats(scores: Any, dtype: Any) -> None:
    assert table(load({"actual": [0, 1], "score": scores})).schema["score"] == dtype


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([True, False], {"code": "wrong_dtype", "side": "table", "column": "score"}),
        (["0.5", "1"], {"code": "wrong_dtype", "side": "table", "column": "score"}),
        ([[0.5, 0.5], [1.0, 0.0]], {"code": "wrong_dtype", "side": "table", "column": "score"}),
        (
            [0.5, math.inf],
            {"code": "not_finite", "side": "table", "column": "score", "count": 1, "rows": [1]},
        ),
    ],
)
def test_invalid_scores_are_refused(scores: Any, words: dict[str, Any]) -> None:
    assert refusal({"actual": [0, 1], "score": scores}).has(**words)


def test_weights_are_numbers_from_0() -> None:
    frames = load({"actual": [0, 1], "predicted": [0, 1], "sample_weight": [0, 2]})
    assert table(frames)["weight"].to_list() == [0.0, 2.0]
    message = refusal(PREDICTIONS, {**TRUTHS, "weight": [1.0, -1.0]})
    assert message.has("too_low", side="ground_truths", column="weight", count=1, rows=[1])


@pytest.mark.parametrize("limit", [None, "500MB"])
def test_weights_whose_sums_overflow_are_refused(limit: str | None) -> None:
    ids, labels = list(range(4)), ["a", "b", "a", "a"]
    predictions = pl.DataFrame({"datum_id": ids, "label_value": labels})
    truths = predictions.with_columns(sample_weight=pl.Series([1.0, 1e308, 1e308, 1e50]))
    with refused("too_high", column="weight", count=2, rows=[1, 2]) as caught:
        ee.score(predictions, truths, memory_limit=limit)
    assert "(from 'sample_weight')" in str(caught.value)
    small = predictions.with_columns(sample_weight=pl.Series([1.0, 0.0, 1e-51, 1e-50]))
    with refused(
        "too_high", ee.InputError, side="ground_truths", column="weight", count=1, rows=[2]
    ):
        ee.score(predictions, small, memory_limit=limit)
    kept = truths.with_columns(sample_weight=pl.lit(1e50))
    card = ee.score(predictions, kept, metrics=["Accuracy", "MCC"], memory_limit=limit)
    assert card.value("Accuracy") == card.value("MCC") == 1.0


def test_keys_are_unique() -> None:
    message = refusal({**PREDICTIONS, "label_value": ["cat", "cat", "cat"]}, TRUTHS)
    assert message.has(
        "repeated_values",
        side="predictions",
        column="label_value",
        count=2,
        rows=[0, 1],
        values=1,
        key=["datum_id", "label_value"],
    )
    twice = {"datum_id": [1, 1], "label_value": ["cat", "dog"]}
    message = refusal(PREDICTIONS, twice)
    assert message.has(
        "repeated_values",
        side="ground_truths",
        column="datum_id",
        count=2,
        rows=[0, 1],
        values=1,
        key=["datum_id"],
    )
    assert "multilabel=True" in message
    assert load(PREDICTIONS, twice, multilabel=True).ground_truths.height == 2
    twice["label_value"] = ["cat", "cat"]
    assert "multilabel=True" not in refusal(PREDICTIONS, twice, multilabel=True)
    row = {"datum_id": [1, 1], "actual": [0, 1], "predicted": [0, 1]}
    assert refusal(row).has(
        "repeated_values",
        side="table",
        column="datum_id",
        count=2,
        rows=[0, 1],
        values=1,
        key=["datum_id"],
    )
    assert table(load({**row, "label_key": ["a", "b"]})).height == 2


def test_a_table_without_datum_id_gets_none() -> None:
    frames = load({"actual": [0, 1], "predicted": [0, 1]})
    assert "datum_id" not in table(frames).columns
    assert frames.by_row


def test_rows_of_one_datum_under_several_keys_are_not_datums() -> None:
    rows = {"datum_id": [1, 1], "label_key": ["a", "b"], "actual": [0, 1], "predicted": [0, 1]}
    frames = load({**rows, "w": ["x", "x"]}, by="w")
    assert not frames.by_row
    assert frames.slices is not None
    assert frames.slices.rows() == [(1, "x")]


def test_labels_on_one_side_are_noted_for_one_table_too() -> None:
    told = kinds(load({"actual": ["a", "b"], "predicted": ["a", "c"]}, labels=["a", "b"]))
    assert told == {
        "labels_in_predictions_only": "1 label in the predictions only: 'c'.",
        "labels_in_ground_truths_only": "1 label in the ground truths only: 'b'.",
        "labels_not_declared": "1 label not in the labels table: 'c'.",
    }
    assert not kinds(load({"actual": ["a", "b"], "score": [0.1, 0.2]}))
    assert not kinds(load({"actual": [["a"], ["b"]], "predicted": [["b"], ["a"]]}))


def test_swapped_tables_are_pointed_out() -> None:
    ours = {"datum_id": [1, 2], "label_value": ["dog", "cat"], "score": [0.5, 0.5]}
    (note,) = (one for one in load(TRUTHS, ours).notes if one.kind == "tables_swapped")
    assert note.warning
    assert "tables_swapped" not in kinds(load(ours, TRUTHS))


def test_label_maps_apply_to_both_columns() -> None:
    frames = load({"actual": ["van", "car"], "predicted": ["car", "bus"]}, label_map={"van": "car"})
    assert frames.label_map is not None
    assert frames.label_map["ground_truths"].rows() == [
        ("label", "car", "label", "car"),
        ("label", "van", "label", "car"),
    ]
    assert frames.label_map["predictions"]["new_label_value"].to_list() == ["bus", "car"]
    assert table(frames)["actual"].to_list() == ["van", "car"]


def test_a_label_map_may_merge_columns() -> None:
    rows = {"actual": ["no", "yes"], "predicted": [0, 1]}
    frames = load(rows, label_map={"no": 0, "yes": 1})
    assert frames.label_map is None
    assert table(frames).rows() == [(0, 0), (1, 1)]
    lists = {"actual": [["no"], [], ["yes", "no"]], "predicted": [[0], [], [1, 1]]}
    frames = load(lists, label_map={"no": 0, "yes": 1})
    assert table(frames)["actual"].to_list() == [[0], [], [1, 0]]


def test_a_label_map_of_booleans() -> None:
    rows = {"actual": [True, False], "predicted": [True, True]}
    frames = load(rows, label_map={True: "yes", False: "no"})
    assert frames.label_map is not None
    assert frames.label_map["ground_truths"]["new_label_value"].to_list() == ["no", "yes"]


def test_a_label_map_cannot_split_a_row_of_one_table() -> None:
    rows = {"actual": ["a"], "predicted": ["a"]}
    message = refusal(rows, label_map=[[("label", "a"), ("other", "a")]])
    assert message.has("map_moves_keys", value="a")


def test_where_filters_the_one_table() -> None:
    rows = {"y_true": [0, 1, 1], "y_pred": [0, 1, 0], "w": ["x", "y", "y"]}
    frames = load(rows, where="w = 'y' AND actual = 1")
    assert table(frames)["predicted"].to_list() == [1, 0]
    assert "1 of 3 rows" in kinds(frames)["where"]
    assert table(load(rows, where={"table": "y_pred = 1"})).height == 1
    assert refusal(rows, where={"predictions": "y_pred = 1"}).has("where_side", side="predictions")


def test_datums_need_an_id_in_the_table() -> None:
    rows = {"actual": [0, 1], "predicted": [0, 1]}
    assert refusal(rows, datums=[1, 2]).has("no_id", column="datum_id")
    told = kinds(load({**rows, "datum_id": [1, 2]}, datums=[2, 3]))
    assert told["datums_not_listed"].startswith("1 datum of")
    assert told["datums_not_listed"].endswith(": 1.")
    assert told["datums_without_rows"] == "1 datum without rows: 3."


def test_csv_columns_follow_each_other_to_strings(tmp_path: Any) -> None:
    path = tmp_path / "both.csv"
    path.write_text("actual,predicted\n1,1\n2,none\n")
    frames = load(str(path))
    assert table(frames).rows() == [("1", "1"), ("2", "none")]
    assert "ids_from_text" in kinds(frames)


def test_an_empty_table_has_its_columns() -> None:
    empty = pl.DataFrame({"actual": ["a"], "predicted": ["a"], "w": [1]}).clear()
    frames = load(empty, by="w")
    assert table(frames).schema == {"actual": pl.String, "predicted": pl.String}
    assert frames.slices is not None
    assert frames.slices.shape == (0, 1)


def test_one_table_for_a_task_of_two_is_refused() -> None:
    with refused("truths_missing", task="detection"):
        load_frames({"actual": [1]}, task="detection")
    with refused("unknown_name", OptionError, value="clasification"):
        load_frames({"actual": [1]}, task="clasification")


def test_tables_without_ids_are_paired_row_by_row() -> None:
    answers = pl.DataFrame({"y_pred": ["a", "b"]})
    truths = pl.DataFrame({"y_true": ["a", "a"]})
    card = ee.score(answers, truths)
    assert card.value("Accuracy") == 0.5
    noted(card, "paired_by_row", count=2)
    with refused("no_id", ee.InputError, lengths=[2, 1]):
        ee.score(answers, truths.head(1))
    with refused("no_id", ee.InputError, columns=["g"]):
        ee.score(answers.with_columns(g=pl.lit(1)), truths.with_columns(g=pl.lit(1)))
    named = ee.score(
        answers.with_row_index("image_id"),
        truths.with_row_index("image_id"),
        columns={"y_pred": "label_value", "y_true": "label_value"},
    )
    assert named.value("Accuracy") == 0.5


def test_unread_columns_next_to_paired_rows_are_a_warning() -> None:
    """One of them may be the id that was meant."""
    answers = pl.DataFrame({"order": [1, 2, 3], "y_pred": ["a", "b", "b"]})
    truths = pl.DataFrame({"email_ref": [3, 2, 1], "y_true": ["b", "b", "a"]})
    card = ee.score(answers, truths, metrics=["Accuracy"])
    message = noted(card, "paired_by_row", severity="warning").message
    assert "predictions: 'order'; ground truths: 'email_ref'" in message
    sliced = truths.rename({"email_ref": "part"})
    assert not ee.score(answers.drop("order"), sliced, by="part").warnings
    columns = {"order": "datum_id", "email_ref": "datum_id"}
    named = ee.score(answers, truths, metrics=["Accuracy"], columns=columns)
    assert named.value("Accuracy") == 1.0


@pytest.mark.parametrize("name", ["id", "sample_id", "row_id", "datum_id", "image_id"])
@pytest.mark.parametrize(
    ("answer", "truth"), [("pred", "truth"), ("y_pred", "y_true"), ("predicted", "actual")]
)
def test_tables_with_ids_are_matched_by_them(name: str, answer: str, truth: str) -> None:
    answers = pl.DataFrame({name: [1, 2, 3], answer: ["a", "b", "b"]})
    truths = pl.DataFrame({name: [3, 2, 1], truth: ["b", "b", "a"]})
    assert ee.score(answers, truths, metrics=["Accuracy"]).value("Accuracy") == 1.0
    for sides in ((answers, truths.drop(name)), (answers.drop(name), truths)):
        with refused("column_missing", ee.InputError, column="datum_id"):
            ee.score(*sides, metrics=["Accuracy"])


def test_absent_positive_label_is_refused() -> None:
    table = pl.DataFrame({"expected": ["yes", "no"], "output": ["yes", "yes"]})
    with refused("unknown_label", ee.InputError, option="positive_label", value="zz"):
        ee.score(table, positive_label="zz")


def test_repeated_labels_are_not_reported_if_ids_are_refused() -> None:
    table = pl.DataFrame({"datum_id": [1.0, 2.0], "label_value": ["a", "a"], "score": [0.1, 0.2]})
    with refused("wrong_dtype", InputError, side="predictions", column="datum_id") as failure:
        ee.score(table, table.select("datum_id", "label_value"), task="classification")
    assert [one.kind for one in failure.value.problems].count("repeated_values") == 0
