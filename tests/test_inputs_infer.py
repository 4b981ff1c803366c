"""The task is inferred from the columns, or requested from the user."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import Refusal, refused
from small_tables import ground_truths, predictions

import evalengine as ee
from evalengine.ingest.infer import infer_task
from evalengine.ingest.opening import Tables, open_inputs
from evalengine.schemas.errors import EvalengineError
from evalengine.schemas.option_values import make_options

LONG = {"datum_id": [1], "label": ["a"], "score": [0.5]}
TRUTH = {"datum_id": [1], "label": ["a"]}
BOX = {"xmin": [0.0], "ymin": [0.0], "xmax": [1.0], "ymax": [1.0]}
PLACE = {"video": ["v"], "frame": [3]}
IMAGES = {**LONG, **BOX, **PLACE, "track_id": [1]}, {**TRUTH, **BOX, **PLACE, "object_id": [1]}
LIST = {"bbox": [[0.0, 0.0, 1.0, 1.0]]}


def infer(ours: Any, theirs: Any = None, **options: Any) -> str:
    given = make_options(**options)
    return infer_task(open_inputs(Tables(ours, theirs), given), given)


def refusal(*args: Any, **options: Any) -> Refusal:
    with pytest.raises(EvalengineError) as caught:
        infer(*args, **options)
    return Refusal(caught.value)


@pytest.mark.parametrize(
    ("ours", "theirs", "task"),
    [
        ({"y_true": [1], "y_pred": [1]}, None, "classification"),
        ({"actual": [1], "score": [1], "xmin": [0.5]}, None, "classification"),
        (LONG, TRUTH, "classification"),
        (TRUTH, TRUTH, "classification"),
        ({**LONG, **BOX}, {**TRUTH, **BOX}, "detection"),
        ({**LONG, **LIST}, {**TRUTH, **LIST}, "detection"),
        ({**LONG, "x": [0], "y": [0], "w": [1], "h": [1]}, {**TRUTH, **BOX}, "detection"),
        ({**LONG, **BOX}, TRUTH, "detection"),
        ({**LONG, "mask": ["..."]}, {**TRUTH, "mask": ["..."]}, "detection"),
        ([], {**TRUTH, **BOX}, "detection"),
        ([], TRUTH, "classification"),
        ({**LONG, **BOX}, [], "detection"),
        ({**LONG, "x": [0.5], "left": [1]}, TRUTH, "classification"),
    ],
)
def test_it_is_inferred_from_the_columns(ours: Any, theirs: Any, task: str) -> None:
    assert infer(ours, theirs) == task


def test_the_users_task_has_priority() -> None:
    assert infer({**LONG, **BOX}, TRUTH, task="classification") == "classification"
    assert infer({"mine": [1], "score": [1]}, columns={"mine": "actual"}) == "classification"
    wide = {"datum_id": [1], "a": [0.5]}
    assert infer(wide, TRUTH, score_columns=["a"]) == "classification"


def test_small_tables_are_detection() -> None:
    assert infer(predictions(), ground_truths()) == "detection"


def test_coco_is_detection(tmp_path: Path) -> None:
    truth = {
        "images": [{"id": 1, "width": 9, "height": 9}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [],
    }
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(truth))
    (tmp_path / "results.json").write_text("[]")
    assert infer(str(tmp_path / "results.json"), str(path)) == "detection"
    assert refusal(str(path)).has("truths_missing", task="detection")


def test_boxes_only_in_the_ground_truths_are_questioned() -> None:
    message = refusal(LONG, {**TRUTH, **BOX})
    assert message.has("task_ambiguous", tasks=["classification", "detection"])


def test_one_table_of_boxes_needs_a_second() -> None:
    assert refusal({**LONG, **BOX}).has("truths_missing", task="detection")


@pytest.mark.parametrize("tables", [({"a": [1]},), ({"a": [1]}, {"b": [1]}), ([], [])])
def test_ambiguous_columns_require_the_task(tables: Any) -> None:
    message = refusal(*tables)
    assert message.has("task_unknown")
    assert "write task=" in message


def test_only_predictions_require_their_truths() -> None:
    message = refusal({"query_id": ["q"], "doc_id": ["d"], "score": [0.5], "rank": [1]})
    assert message.has("truths_missing", task="retrieval")


def test_an_id_alone_is_no_table_of_predictions() -> None:
    table = {"question_id": ["q"], "model_answer": ["a"], "gold_answers": [["a"]]}
    assert refusal(table).has("task_unknown")
    assert refusal({"question_id": ["q"]}).has("truths_missing", task="retrieval")


def test_a_topic_next_to_a_question_is_not_the_query() -> None:
    lists = {"retrieved_contexts": [["a b"], ["c d"]], "reference_contexts": [["a b"], ["x y"]]}
    table = {"user_input": ["p", "q"], "topic": [None, "t"], **lists}
    card = ee.score(pl.DataFrame(table), metrics=["MRR"], by="topic")
    assert card.value("MRR", slice="topic", slice_value="t") == 0.0
    assert card.per_datum["datum_id"].to_list() == [0, 1]
    named = ee.score(pl.DataFrame({"topic": ["t", "u"], **lists}), metrics=["MRR"])
    assert named.per_datum["datum_id"].to_list() == ["t", "u"]


def test_rows_do_not_repeat_in_a_part_of_their_key() -> None:
    tracks = {"sequence": ["v", "v"], "frame": [1, 1], "object": [1, 2], "xmin": [0.0, 5.0]}
    table = pl.DataFrame(tracks).with_columns(ymin=0.0, xmax=9.0, ymax=9.0)
    with pytest.raises(ee.InputError) as caught:
        ee.score(table, table, task="tracking")
    assert {problem.kind for problem in caught.value.problems} == {"column_missing"}


def test_customer_segments_are_not_panoptic_segments() -> None:
    churn = {"customer_id": [1, 2], "churned": [1, 0], "p_churn": [0.9, 0.1], "segment": ["x", "y"]}
    for tables in ([churn], [churn, churn]):
        with pytest.raises(EvalengineError) as caught:
            ee.score(*map(pl.DataFrame, tables))
        assert caught.value.code != "truths_missing"
        assert "churned" in str(caught.value)
    segments = {"image_id": [1], "label": ["a"], "segment": [1], "raster": [[[1, 1]]]}
    assert ee.score(pl.DataFrame(segments), pl.DataFrame(segments)).task == "panoptic"


def test_a_metric_of_another_task_does_not_change_the_inferred_task() -> None:
    boxes = pl.DataFrame(
        {"datum_id": [1], "label_value": ["a"], "xmin": [0.0], "ymin": [0.0], "xmax": [1.0],
         "ymax": [1.0]}
    )  # fmt: skip
    with refused("unknown_name", ee.OptionError, value="ThresholdAtFPR"):
        ee.score(boxes.with_columns(score=0.5), boxes, metrics=["ThresholdAtFPR"])


def test_complete_tables_of_images_stay_detection() -> None:
    """Video, frame and track may be next to ids of images, labels and scores."""
    ours, theirs = IMAGES
    assert infer(ours, theirs) == infer(ours, theirs, metrics=["mAP"]) == "detection"
    assert infer(ours, theirs, metrics=["HOTA"]) == "tracking"
    for lacking in ("datum_id", "score", "label"):
        less = {name: values for name, values in ours.items() if name != lacking}
        assert infer(less, theirs) == "tracking"
        assert infer(less, theirs, metrics=["mAP"]) == "detection"
    assert infer(ours, {**BOX, **PLACE, "object_id": [1], "label": ["a"]}) == "tracking"
    assert infer({**LONG, **BOX}, theirs) == "detection"


@pytest.mark.parametrize("column", ["sequence", "frames", "sequence_length", "video"])
def test_datums_may_have_columns_that_tracking_reads(column: str) -> None:
    datums = {"image_id": [1], column: [-1]}
    card = ee.score(LONG, TRUTH, datums=datums, by=[column], metrics=["Accuracy"])
    assert card.metrics["slice"].drop_nulls().to_list() == [column]


AGES = {"target": [31, 42, 27], "prediction": [30.4, 40.1, 28.8]}
ONE_LATE = [1.0] * 1500 + [1.5]


@pytest.mark.parametrize(
    "tables",
    [
        (AGES,),
        ({"y_true": AGES["target"], "y_pred": AGES["prediction"]},),
        ({"y_true": ONE_LATE, "y_pred": ONE_LATE},),
        ({"id": [1, 2, 3], "y_pred": AGES["prediction"]}, {"id": [1, 2, 3], **AGES}),
        (AGES["prediction"], AGES["target"]),
    ],
)
def test_errors_about_measured_numbers_name_their_task(tables: Any) -> None:
    with pytest.raises(ee.InputError, match="measured numbers, write task='regression'"):
        ee.score(*tables)


def test_decimals_are_measured() -> None:
    prices = {name: [Decimal("1.5"), Decimal("2.25")] for name in AGES}
    card = ee.score(prices, metrics=["MAE"])
    assert (card.task, card.value("MAE")) == ("regression", 0)
    assert infer({**AGES, "target": [*prices["target"], Decimal(3)]}) == "regression"


def test_integers_that_hardly_repeat_are_noted() -> None:
    counts = {"target": [*range(40)], "prediction": [*range(1, 41)]}
    notes = [note for note in ee.score(counts).notes if "task='regression'" in note]
    assert len(notes) == 2
    repeated = {name: [value % 5 for value in values] for name, values in counts.items()}
    assert not any("regression" in note for note in ee.score(repeated).notes)


MARKS = ["NA", "#N/A", "null", "None", "nan", "-", "n/a", " "]
PAIRS = [
    ("target", "prediction"), ("actual", "predicted"), ("y_true", "y_pred"),
    ("actual", "forecast"), ("y", "yhat"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "bad", "whole", "mark"),
    [
        (*case, mark)
        for case, mark in zip(product(PAIRS, [0, 1], [False, True]), cycle(MARKS), strict=False)
    ],
)
def test_a_marker_of_a_missing_value_changes_no_task(
    mark: str, names: tuple[str, str], bad: int, whole: bool, tmp_path: Path
) -> None:
    """CSV, texts in memory, and filtered rows give the values of the other rows."""
    true = [float(i if whole else i + 0.25) for i in range(40)]
    sides = [[f"{v:g}" for v in true], [f"{v + 0.5:g}" for v in true]]
    sides[bad][17] = mark
    path = tmp_path / "t.csv"
    rows = "\n".join(f"{a},{b}" for a, b in zip(*sides, strict=True))
    path.write_text(f"{names[0]},{names[1]}\n{rows}\n")
    own, other = (pl.Series(names[i], sides[i]) for i in (bad, 1 - bad))
    for table in (path, pl.DataFrame([own, other.cast(pl.Float64)])):
        with pytest.raises(ee.InputError) as error:
            ee.score(table)
        (problem,) = error.value.problems
        assert (problem.column, problem.count) == (("target", "prediction")[bad], 1)
        assert [row for row, _ in problem.rows] == [17]
        assert repr(mark) in problem.message
        card = ee.score(table, where=f"{names[bad]} IS NOT NULL")
        assert (card.task, card.value("MAE")) == ("regression", 0.5)
        assert card.run["inputs"]["table"]["rows"] == 39


@pytest.mark.parametrize("classes", [2, 5, 40])
@pytest.mark.parametrize("scale", [40, 1])
def test_a_marker_makes_no_labels_of_fractions(classes: int, scale: int) -> None:
    """Predictions within [0, 1], and few true values."""
    rows = pl.DataFrame(
        {
            "datum_id": range(40),
            "target": [i % classes for i in range(40)],
            "prediction": [*(f"{i / scale:.3f}5" for i in range(39)), "NA"],
        }
    )
    sides = rows.select("datum_id", "prediction"), rows.select("datum_id", "target")
    for tables in (sides, (rows.drop("datum_id"),)):
        with pytest.raises(ee.InputError) as error:
            ee.score(*tables)
        assert [(p.kind, p.column, p.rows[0][0]) for p in error.value.problems] == [
            ("null_values", "prediction", 39)
        ]
    if classes == 2:
        named = rows.select(y_true="target", y_pred="prediction")
        with refused("types_differ", ee.InputError, match="predicted strings"):
            ee.score(named, metrics=["Accuracy"])


def test_invalid_numbers_and_columns_of_other_texts() -> None:
    """A few texts are invalid numbers; integers as texts, and words, are labels."""
    true = [str(i + 0.5) for i in range(40)]
    numbers = [i + 0.25 for i in range(40)]
    with refused("wrong_dtype", ee.InputError, match="row 3: 'abc'", side="table", column="target"):
        ee.score({"target": [*true[:3], "abc", *true[4:]], "prediction": numbers})
    for words in (["1", "2", "NA"], ["a", "b", "2.5"]):
        card = ee.score({"target": words * 4, "prediction": words * 4})
        assert (card.task, card.value("Accuracy")) == ("classification", 1.0)
    with pytest.raises(ee.InputError) as error:
        ee.score(numbers, ["NA", *true[1:]])
    assert [one.column for one in error.value.problems] == ["target"]
    scores = {"datum_id": [1, 2], "label_value": ["a", "b"], "score": ["0.5", "NA"]}
    with refused(
        "null_values", ee.InputError, side="predictions", column="score", count=1, rows=[1]
    ):
        ee.score(scores, {"datum_id": [1, 2], "label_value": ["a", "b"]})


def test_a_marker_after_the_first_rows_is_found(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i + 0.5}\n" for i in range(1500))
    (tmp_path / "t.csv").write_text(f"target,prediction\n{rows}NA,7.5\n")
    with pytest.raises(ee.InputError) as error:
        ee.score(tmp_path / "t.csv")
    assert [(one.column, one.rows[0][0]) for one in error.value.problems] == [("target", 1500)]
    table = pl.read_csv(tmp_path / "t.csv", infer_schema_length=None).with_row_index("datum_id")
    with pytest.raises(ee.InputError) as error:
        ee.score(table.select("datum_id", "prediction"), table.select("datum_id", "target"))
    assert [(one.column, one.rows[0][0]) for one in error.value.problems] == [("target", 1500)]


@pytest.mark.parametrize("at", [17, 1400])
@pytest.mark.parametrize("names", PAIRS)
def test_a_blank_among_integers_changes_no_task(
    names: tuple[str, str], at: int, tmp_path: Path
) -> None:
    """For one table, two tables and arrays with NaN, the error names the row and nothing else."""
    table = pl.DataFrame({names[0]: range(1500), names[1]: [i + 0.37 for i in range(1500)]})
    row = pl.int_range(pl.len())
    table = table.with_columns(pl.when(row != at).then(names[0]).alias(names[0]))
    table.write_csv(tmp_path / "t.csv")
    whole = table.with_row_index("datum_id")
    sides = whole.select("datum_id", names[1]), whole.select("datum_id", names[0])
    arrays = [table[name].cast(pl.Float64).to_numpy() for name in names[::-1]]
    for given in ((tmp_path / "t.csv",), sides, arrays):
        with pytest.raises(ee.InputError) as error:
            ee.score(*given)
        found = [(one.column, one.count, one.rows[0][0]) for one in error.value.problems]
        assert found == [("target", 1, at)]
    card = ee.score(tmp_path / "t.csv", where=f"{names[0]} IS NOT NULL")
    assert (card.task, card.value("MAE")) == ("regression", pytest.approx(0.37))


SAID = [f"the {noun} {verb} on a {colour} mat" for noun in ("cat", "dog", "fox")
        for verb in ("sat", "lay", "ran") for colour in ("red", "old", "wet")]  # fmt: skip
WRONG = [text.replace("the", "a") for text in SAID]


@pytest.mark.parametrize("names", [("prediction", "reference"), ("predicted", "target")])
def test_sentences_are_texts(names: tuple[str, str]) -> None:
    ids = [*range(len(SAID))]
    sides = {"id": ids, names[0]: WRONG}, {"id": ids, names[1]: SAID}
    assert ee.score(*sides).task == "text"
    assert infer(*sides, metrics=["Accuracy"]) == "classification"
    assert infer({"prediction": SAID}, {"target": SAID}) == "classification"  # equal: classes
    few = [text.split()[1] for text in SAID]
    for true, predicted in ((few, WRONG), (SAID[:3] * 9, WRONG[:3] * 9), (few, few)):
        sides = {"id": ids, "prediction": predicted}, {"id": ids, "target": true}
        assert infer(*sides) == "classification"


def test_sentences_in_columns_of_labels_are_questioned() -> None:
    with refused("task_unclear", columns=["y_true", "y_pred"]):
        infer({"y_true": SAID, "y_pred": WRONG})
    table = {"y_true": SAID, "y_pred": WRONG}
    texts = ee.score(table, task="text", columns={"y_true": "reference", "y_pred": "text"})
    assert (texts.task, infer(table, task="classification")) == ("text", "classification")


WHOLE = {"target": [3, 5, 7, 9], "prediction": [3, 5, 7, 8]}


def test_a_metric_of_one_task_decides_if_columns_allow_it() -> None:
    assert infer(WHOLE) == infer(AGES, metrics=["Accuracy"]) == "classification"
    for table in (WHOLE, {"y_true": WHOLE["target"], "y_pred": WHOLE["prediction"]}):
        card = ee.score(table, metrics=["MAE", "R2"])
        assert (card.task, card.value("MAE")) == ("regression", 0.25)
    assert ee.score(AGES, metrics=["MAE"]).task == "regression"
    for ours, theirs in ((np.arange(9) + 0.5, np.arange(9)), (np.arange(9) + 1, np.arange(9))):
        card = ee.score(ours, theirs, metrics=["MAE"])
        assert card.value("MAE") == float(np.mean(ours - theirs))
    training = {"series": ["a"] * 4, "target": [1, 2, 4, 3]}
    card = ee.score({"series": ["a"] * 4, **WHOLE}, metrics=["MASE"], training=training)
    assert card.value("MASE") == pytest.approx(0.25 / (4 / 3))


def test_columns_named_by_hand_decide() -> None:
    numbers, bounds = [1, 2, 3], {"low": [0, 1, 2], "high": [2, 3, 4]}
    said = {"low": "lower", "high": "upper"}
    assert infer({"poll": numbers, "real": numbers}, columns={"poll": "prediction",
                 "real": "target"}) == "regression"  # fmt: skip
    assert infer({"mine": numbers, "actual": numbers}, columns={"mine": "prediction"}) == (
        "regression"
    )
    table = {"actual": numbers, "pred": numbers, **bounds}
    assert infer(table, columns=said) == "regression"
    for asked in ({}, {"metrics": ["Coverage"]}, {"task": "regression"}):
        assert ee.score(table, columns=said, **asked).value("Coverage") == 1.0
    card = ee.score(table, columns=said, metrics=["MAE"])
    assert card.value("MAE") == 0
    words = {"actual": ["a", "b"], "mine": ["a", "b"]}
    with pytest.raises(ee.OptionError, match=r"'prediction'.*'predicted'"):
        ee.score(words, columns={"mine": "prediction"})


def test_a_column_without_a_name_is_not_one_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",true_hr,predicted_hr\n0,70.1,71.2\n")
    with pytest.raises(ee.InputError, match="cannot be inferred"):
        ee.score(path)
    said = {"true_hr": "target", "predicted_hr": "prediction"}
    assert ee.score(path, columns=said).value("MAE") == pytest.approx(1.1)
    path.write_text(",target,prediction\n0,70.1,71.2\n")
    assert ee.score(path).value("MAE") == pytest.approx(1.1)
