"""Rules about values: models in one table, spans next to equal texts, missing-value markers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.ingest.problems import ChecksFailed

MODELS = {
    "model": ["A", "A", "B", "B"],
    "id": [1, 2, 1, 2],
    "y_true": ["a", "b", "a", "b"],
    "y_pred": ["a", "b", "b", "b"],
}
TEXTS = ["Anna lives in Rome", "Bob works for IBM", "nothing here"]


def kinds(*tables: Any, **options: Any) -> set[str]:
    return {note.code for note in ee.check(*tables, **options).findings}


def problem(*tables: Any, **options: Any) -> Any:
    with pytest.raises(ChecksFailed) as error:
        ee.score(*tables, **options)
    (found,) = error.value.problems
    return found


def spans(*ends: int) -> list[dict[str, Any]]:
    return [{"start": 0, "end": end, "label": "PER"} for end in ends]


@pytest.mark.parametrize("options", [{}, {"by": ["model"]}])
def test_models_of_one_table_are_refused_by_name(options: dict[str, Any]) -> None:
    found = problem(MODELS, **options)
    assert (found.kind, found.facts["columns"], found.count) == ("several_models", ["model"], 2)
    assert (found.facts["models"], found.facts["number"]) == (["A", "B"], 2)
    for name, right in (("A", 1.0), ("B", 0.5)):
        card = ee.score(MODELS, where=f"model = '{name}'")
        assert card.value("Accuracy") == right


def test_other_columns_that_distinguish_repeated_rows_are_named() -> None:
    table = {("learner" if name == "model" else name): one for name, one in MODELS.items()}
    for given in (table, {**table, "note": ["x", "y", "z", "w"]}):
        with pytest.raises(ee.InputError, match=r"'learner' differs.*learner = 'A'"):
            ee.score(given)
    same = {**table, "learner": ["A"] * 4}
    with refused(
        "repeated_values",
        ee.InputError,
        side="table",
        column="datum_id",
        count=4,
        rows=[0, 1, 2],
        values=2,
        key=["datum_id"],
    ) as error:
        ee.score(same)
    assert "'learner'" not in str(error.value)


def test_models_whose_rows_are_datums_or_boxes_give_a_warning() -> None:
    rows = {name: sorted(of * 5) if name == "model" else of * 5 for name, of in MODELS.items()
            if name != "id"}  # fmt: skip
    assert "several_models" in {n.code for n in ee.check(rows).findings if n.severity == "warning"}
    assert "several_models" not in kinds(rows, by=["model"])
    other = {**rows, "y_true": [*rows["y_true"][:-1], "a"]}  # each model has other rows
    assert "several_models" not in kinds(other)
    for less in ({name: of[5:15] for name, of in rows.items()},
                 {("method" if name == "model" else name): of for name, of in rows.items()},
                 {"model": [*"ABC"], "y_true": ["a"] * 3, "y_pred": [*"aba"]}):  # fmt: skip
        assert "several_models" not in kinds(less)
    box = {"xmin": [0.0] * 4, "ymin": [0.0] * 4, "xmax": [1.0] * 4, "ymax": [1.0] * 4}
    boxes = pl.DataFrame({"datum_id": [1, 2, 1, 2], "label_value": ["a"] * 4, **box})
    found = boxes.with_columns(score=pl.lit(0.5), model=pl.Series(MODELS["model"]))
    assert "several_models" in kinds(found, boxes.head(2))
    own = found.with_columns(model=pl.Series(["A", "B", "A", "B"]))  # one model per image
    assert "several_models" not in kinds(own, boxes.head(2))
    same = found.with_columns(model=pl.lit("A"))
    assert "several_models" not in kinds(same, boxes.head(2))


def test_runs_of_the_same_boxes_give_a_warning() -> None:
    rng = np.random.default_rng(0)
    n = 200
    x, y = rng.uniform(0, 600, (2, n))
    boxes = pl.DataFrame({"datum_id": np.arange(n) // 5, "label_value": rng.choice(["a", "b"], n),
                          "xmin": x, "ymin": y, "xmax": x + 60, "ymax": y + 60})  # fmt: skip
    scored = boxes.with_columns(score=rng.random(n), model=pl.lit("A"))
    for name in ("epoch", "seed", "fold", "checkpoint"):
        runs = [scored.with_columns(pl.col("xmin") + i, pl.lit(i).alias(name)) for i in range(3)]
        findings = {one.code: one for one in ee.score(pl.concat(runs), boxes).findings}
        facts = findings["several_models"].facts
        assert (facts["columns"], facts["number"], facts["literal"]) == ([name], 3, "0")
        assert findings["several_models"].severity == "warning"
        own = scored.with_columns((pl.col("datum_id") % 3).alias(name))  # one fold per image
        labels = scored.with_columns((pl.col("label_value") == "a").alias(name))
        parts = scored.with_columns(pl.Series(name, np.arange(n) % 2))  # no object twice
        for clean in (own, labels, parts, scored.with_columns(pl.lit(1).alias(name))):
            assert "several_models" not in kinds(clean, boxes)


def test_sources_of_one_fused_list_are_not_models() -> None:
    run = {"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0],
           "method": ["bm25", "dense", "dense"]}  # fmt: skip
    judged = {"query_id": ["q"], "doc_id": ["a"], "relevance": [1]}
    assert "several_models" not in kinds(run, judged)
    twice = {name: values * 2 for name, values in run.items()}
    twice["method"] = ["x"] * 3 + ["y"] * 3
    assert problem(twice, judged).kind == "several_models"


@pytest.mark.parametrize("same", [False, True])
def test_spans_next_to_equal_texts(same: bool) -> None:
    ours = pl.DataFrame({"id": [1, 2, 3], "text": TEXTS, "spans": [spans(4), spans(3), spans()]})
    truth = [spans(4) if same else spans(4, 18), spans(3), spans()]
    theirs = ours.with_columns(spans=pl.Series(truth))
    found = problem(ours, theirs)
    assert (found.kind, found.facts["columns"]) == ("spans_not_read", ["spans"])
    assert (found.facts["count"], found.facts["of"]) == (3, 3)
    assert problem(ours, theirs.drop("spans")).kind == "spans_not_read"
    asked = ee.check(ours, theirs, task="text")
    assert [note.code for note in asked.findings if note.severity == "warning"] == [
        "spans_not_read"
    ]
    written = ours.with_columns(text=pl.col("text") + " and more words")
    assert "spans_not_read" not in kinds(written, theirs, task="text")
    assert "spans_not_read" not in kinds(ours.drop("spans"), theirs.drop("spans"))


def test_a_missing_value_marker_among_integer_labels(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    labels = [*"123123123", "NA", "1", "2"]
    path.write_text("actual,predicted\n" + "".join(f"{one},2\n" for one in labels))
    (note,) = [n for n in ee.check(path).findings if n.code == "missing_as_label"]
    assert note.severity == "warning"
    assert note.facts == {"side": "table", "columns": ["actual"], "count": 1, "of": 12,
                          "rows": [9], "marks": ["NA"]}  # fmt: skip
    assert "missing_as_label" not in kinds(path, where="actual <> 'NA'")
    assert "missing_as_label" in kinds(path, memory_limit="1GB")
    words = ["a", "b", "NA"] * 4
    assert "missing_as_label" not in kinds({"actual": words, "predicted": words})
    both = {"actual": labels, "predicted": labels}  # a class of both sides
    assert "missing_as_label" not in kinds(both)
    often = {"actual": [*"1212", *["None"] * 4], "predicted": [*"12121212"]}
    assert "missing_as_label" not in kinds(often)


def test_a_mark_among_several_labels_per_row() -> None:
    found = {"predicted": [["1"], ["2", "3"]]}
    card = ee.score({"actual": [["1"], ["2", "NA"]], **found}, multilabel=True)
    (note,) = [one for one in card.findings if one.code == "missing_as_label"]
    assert (note.facts["rows"], note.facts["marks"]) == ([1], ["NA"])
    named = {"actual": [["NA"], ["DE"]], "predicted": [["NA"], ["DE", "IT"]]}
    assert "missing_as_label" not in kinds(named, multilabel=True)


@pytest.mark.parametrize("kind", [int, float])
def test_integers_that_hardly_repeat_may_be_measured(kind: type) -> None:
    prices = [kind(100_000 + 1_000 * i) for i in range(60)]
    assert "numbers_as_labels" in kinds({"actual": prices, "predicted": prices[::-1]})
    classes = [kind(i % 7) for i in range(60)]
    assert "numbers_as_labels" not in kinds({"actual": classes, "predicted": classes[::-1]})


FORECASTS = {
    "unique_id": ["a"] * 3 + ["b"] * 3,
    "ds": [1, 2, 3] * 2,
    "y": [1.0, 2, 3, 4, 5, 6],
    "AutoARIMA": [1.1, 2, 3, 4, 5, 6.5],
    "AutoETS": [1.0, 2.2, 3, 4, 5.5, 6],
    "AutoETS-lo-90": [0.0, 1, 2, 3, 4, 5],
    "temperature": [20.0, 31, 12, 20, 33, 14],
    "lag1": [1.0, 1, 2, 4, 4, 5],
}


def other_models(table: dict[str, list[Any]], **options: Any) -> list[str]:
    """Return columns that a note reports as predictions of other models."""
    for note in ee.check(table, metrics=["MAE"], **options).findings:
        if note.code == "models_not_scored":
            assert note.severity == "note"
            return list(note.facts["columns"])
    return []


def test_forecasts_of_other_models_are_named() -> None:
    for own, other in (("AutoARIMA", "AutoETS"), ("AutoETS", "AutoARIMA")):
        assert other_models(FORECASTS, columns={own: "prediction"}) == [other]
    one = {name: values for name, values in FORECASTS.items() if name != "AutoETS"}
    assert other_models(one, columns={"AutoARIMA": "prediction"}) == []


@pytest.mark.parametrize(
    ("own", "other", "named"),
    [
        ("y_pred", "y_pred_lgbm", True),
        ("prediction", "old_prediction", True),
        ("y_pred", "price_last_week", False),
        ("y_pred", "y_pred_lag1", False),
        ("forecast", "naive_forecast", True),
        *(("pred", f"pred_{end}", False) for end in ("lower", "upper", "low", "std", "raw")),
        ("y_pred", "high.y_pred", False),
    ],
)
def test_predictions_of_like_names_are_named(own: str, other: str, named: bool) -> None:
    table = {"y_true": [1.0, 2, 3, 4], own: [1.0, 2, 3, 5], other: [1.0, 2, 3, 4.5]}
    assert other_models(table) == [other] * named
    far = {**table, other: [100.0, -7, 3, 60]}
    assert other_models(far) == []


@pytest.mark.filterwarnings("error")
def test_an_empty_table_has_no_other_models() -> None:
    empty = pl.DataFrame({"y_true": [1.0], "y_pred": [1.0], "y_pred_lgbm": [1.0]}).clear()
    assert "models_not_scored" not in kinds(empty, metrics=["MAE"])
