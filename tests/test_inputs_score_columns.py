"""``score_columns``: one column per label, in the dtype of the true labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from loading import load_frames
from partitions.cases import in_buckets
from refusals import Refusal, noted, refused

import evalengine as ee
from evalengine.ingest.frames import Frames
from evalengine.ingest.problems import ChecksFailed
from evalengine.schemas.errors import EvalengineError
from evalengine.schemas.option_values import make_options

SCORES = {"p_0": [0.5, 0.25], "p_1": [0.5, 0.75]}


def load(ours: Any, theirs: Any = None, score_columns: Any = ("p_*",), **options: Any) -> Frames:
    given = make_options(score_columns=score_columns, **options)
    return load_frames(ours, theirs, options=given, task="classification")


def refusal(*args: Any, **options: Any) -> Refusal:
    with pytest.raises(EvalengineError) as caught:
        load(*args, **options)
    return Refusal(caught.value)


def labels(frames: Frames) -> list[Any]:
    assert frames.score_labels is not None
    return frames.score_labels.to_list()


@pytest.mark.parametrize(
    ("actual", "names", "found", "dtype"),
    [
        ([0, 1], ["0", "1"], [0, 1], pl.Int64),
        ([0, 1], ["score_0", "score_1"], [0, 1], pl.Int64),
        ([10, 11], ["p_10", "p_11"], [10, 11], pl.Int64),
        ([0, 1], ["p0", "p1"], [0, 1], pl.Int64),
        ([0.0, 1.0], ["prob_0", "prob_1"], [0, 1], pl.Int64),
        ([-1, 1], ["score_-1", "score_1"], [-1, 1], pl.Int64),
        ([False, True], ["p_False", "p_True"], [False, True], pl.Boolean),
        ([False, True], ["p_0", "p_1"], [False, True], pl.Boolean),
        (["cat", "dog"], ["dog", "cat"], ["dog", "cat"], pl.String),
        (["cat", "dog"], ["prob_dog", "prob_cat"], ["dog", "cat"], pl.String),
        (["p_a", "p_b"], ["p_a", "p_b"], ["p_a", "p_b"], pl.String),
        (["1", "2"], ["p_1", "p_2"], ["1", "2"], pl.String),
        ([1, 1], ["prob_1"], [1], pl.Int64),
    ],
)
def test_labels_are_inferred_from_names(actual: Any, names: Any, found: Any, dtype: Any) -> None:
    values = {name: [0.5, i / 8] for i, name in enumerate(names)}
    frames = load({"actual": actual, **values}, score_columns=names)
    assert labels(frames) == found
    assert frames.score_labels is not None
    assert frames.score_labels.dtype == dtype
    assert frames.table is not None
    assert frames.table.columns == ["actual", *(f"score:{label}" for label in found)]
    for name, label in zip(names, found, strict=True):
        assert frames.table[f"score:{label}"].to_list() == values[name]
        assert frames.recognised["table"][name] == f"score:{label}"


def test_a_mapping_assigns_columns_to_labels() -> None:
    frames = load({"actual": [3, 4], **SCORES}, score_columns={4: "p_0", 3: "p_1"})
    assert labels(frames) == [4, 3]
    assert frames.table is not None
    assert frames.table["score:4"].to_list() == SCORES["p_0"]
    assert labels(load({"actual": [3, 4], **SCORES}, score_columns={"4": "p_0", "3": "p_1"})) == [
        4,
        3,
    ]


def test_integer_labels_of_scores_make_booleans_integers() -> None:
    frames = load({"actual": [True, False], **SCORES}, score_columns={0: "p_0", 1: "p_1"})
    assert frames.table is not None
    assert frames.table["actual"].to_list() == [1, 0]


def test_patterns_keep_the_order_of_the_table() -> None:
    rows = {"p_b": [1.0], "actual": ["a"], "p_a": [0.0]}
    assert labels(load(rows)) == ["b", "a"]
    assert labels(load(rows, score_columns=("p_a", "p_*"))) == ["a", "b"]


def test_single_precision_stays_unless_mixed() -> None:
    rows = pl.DataFrame({"actual": [0, 1], **SCORES})
    single = load(rows.cast({"p_0": pl.Float32, "p_1": pl.Float32})).table
    assert single is not None
    assert single.schema["score:0"] == single.schema["score:1"] == pl.Float32
    mixed = load(rows.cast({"p_0": pl.Float32, "p_1": pl.Float64})).table
    assert mixed is not None
    assert mixed.schema["score:0"] == mixed.schema["score:1"] == pl.Float64


def test_wide_predictions_match_a_table_of_ground_truths() -> None:
    truths = {"datum_id": [2, 1], "label": [1, 0]}
    frames = load({"datum_id": [1, 2], **SCORES, "label_value": ["x", "y"]}, truths)
    assert frames.predictions.columns == ["datum_id", "score:0", "score:1"]
    assert labels(frames) == [0, 1]
    message = refusal({"datum_id": [1, 1], **SCORES}, truths)
    assert message.has(
        "repeated_values",
        side="predictions",
        column="datum_id",
        count=2,
        rows=[0, 1],
        values=1,
        key=["datum_id"],
    )


def test_label_maps_apply_to_the_labels_of_scores() -> None:
    frames = load({"actual": ["0", "0"], **SCORES}, label_map={"1": "0"})
    assert frames.label_map is not None
    assert frames.label_map["predictions"].rows() == [
        ("label", "0", "label", "0"),
        ("label", "1", "label", "0"),
    ]
    assert not [note for note in frames.notes if note.kind == "label_map_unused"]
    frames = load(
        {"actual": ["no", "yes"], **SCORES},
        score_columns={0: "p_0", 1: "p_1"},
        label_map={"no": 0, "yes": 1},
    )
    assert frames.table is not None
    assert frames.table["actual"].to_list() == labels(frames) == [0, 1]


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (
            {"p_1": [0.5, None]},
            ["p_*"],
            {
                "code": "null_values",
                "side": "table",
                "column": "score:p_1",
                "count": 1,
                "rows": [1],
            },
        ),
        (
            {"p_1": [0.5, float("nan")]},
            ["p_*"],
            {"code": "not_finite", "side": "table", "column": "score:p_1", "count": 1, "rows": [1]},
        ),
        (
            {"p_1": ["a", "b"]},
            ["p_*"],
            {"code": "wrong_dtype", "side": "table", "column": "score:p_1"},
        ),
        (
            {"p_1": [True, False]},
            ["p_*"],
            {"code": "wrong_dtype", "side": "table", "column": "score:p_1"},
        ),
        ({}, ["p_0", "p_l"], {"code": "column_missing", "side": "table", "column": "p_l"}),
        ({}, ["q_*"], {"code": "column_missing", "side": "table", "column": "q_*"}),
        ({}, ["p_0", "p_0"], {"code": "column_twice", "side": "table", "column": "p_0"}),
        (
            {"x_1": [0.1, 0.2]},
            ["p_1", "x_1"],
            {"code": "column_twice", "option": "score_columns", "count": 1},
        ),
        ({"cat": [0.1, 0.2]}, ["p_0", "cat"], {"code": "types_differ", "option": "score_columns"}),
        (
            {"actual": ["a", "b"]},
            {0: "p_0", 1: "p_1"},
            {"code": "types_differ", "column": "label_value"},
        ),
        ({}, {0: "p_0", "b": "p_1"}, {"code": "types_mixed", "option": "score_columns"}),
        ({}, [], {"code": "option_value", "option": "score_columns"}),
        ({}, {"a": 1}, {"code": "option_value", "option": "score_columns"}),
    ],
)
def test_impossible_options_are_refused(rows: Any, columns: Any, words: dict[str, Any]) -> None:
    assert refusal({"actual": [0, 1], **SCORES, **rows}, score_columns=columns).has(**words)


def test_tasks_without_score_columns_refuse_them() -> None:
    with refused("option_unfit", option="score_columns"):
        load_frames([], [], options=make_options(score_columns="a"), task="detection")


def test_columns_named_after_no_label_are_refused_with_a_remedy() -> None:
    table = pl.DataFrame({"actual": ["cat", "dog"], "one": [0.75, 0.25], "two": [0.25, 0.75]})
    half = table.rename({"one": "cat"})
    for rows, names, odd in (
        (table, ["one", "two"], ["one", "two"]),
        (half, ["cat", "two"], ["two"]),
    ):
        with pytest.raises(ChecksFailed) as caught:
            load(rows, None, names)
        (problem,) = caught.value.problems
        assert (problem.kind, problem.facts["columns"]) == ("labels_without_scores", odd)
    assert ee.score(table, score_columns={"cat": "one", "dog": "two"}).warnings == ()
    more = half.rename({"two": "dog"}).with_columns(cow=pl.lit(0.0))  # a class that is never true
    assert load(more, None, ["cat", "dog", "cow"]).score_labels is not None


def test_arrays_without_scores_of_a_true_class() -> None:
    """Arrays with named classes are refused as tables are."""
    scores = np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]] * 4)
    with refused("labels_without_scores", ee.InputError):
        ee.score(scores, ["x", "y", "z"] * 4, labels=["x", "y"], metrics=["mROCAUC"])
    whole = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.2, 0.2, 0.6]] * 4)
    card = ee.score(whole, ["x", "y", "z"] * 4, labels=["x", "y", "z"], metrics=["mROCAUC"])
    assert card.value("mROCAUC") == 1.0


def test_one_column_of_scores_for_two_classes() -> None:
    """A column of one class does not determine the other's scores; one table of both is binary."""
    mine = pl.DataFrame({"id": range(6), "score": [0.9, 0.2, 0.6, 0.4, 0.7, 0.1]})
    true = pl.DataFrame({"id": range(6), "label": [1, 0, 0, 1, 1, 0]})
    with refused("types_differ", option="score_columns", example={"1": "score"}):
        ee.score(mine, true, task="classification", score_columns=["score"])
    for label, other in ((1, 0), (0, 1)):
        with refused("labels_without_scores", labels=[other], of=2):
            ee.score(mine, true, task="classification", score_columns={label: "score"})
    one = mine.join(true.rename({"label": "actual"}), on="id")
    card = ee.score(one, metrics=["ROCAUC", "Accuracy"])
    assert card.value("ROCAUC") == pytest.approx(8 / 9)  # as in scikit-learn
    assert card.value("Accuracy") == pytest.approx(4 / 6)


NAMES = ["s_a", "s_b"]
LISTED = {
    "numpy": np.array(NAMES),
    "pandas Series": pd.Series(NAMES),
    "pandas Index": pd.Index(NAMES),
    "polars Series": pl.Series(NAMES),
}
SCORED = {"actual": ["a", "b"], "s_a": [0.9, 0.2], "s_b": [0.1, 0.8]}


@pytest.mark.parametrize("names", LISTED.values(), ids=LISTED)
def test_names_in_arrays_and_series(names: Any) -> None:
    card = ee.score(SCORED, task="classification", score_columns=names, metrics=["Accuracy"])
    assert card.value("Accuracy") == 1.0
    assert make_options(by=names, stop_words=names).by == tuple(NAMES)


@pytest.mark.parametrize("values", [*LISTED.values(), pl.DataFrame({"a": NAMES})])
@pytest.mark.parametrize("option", ["where", "columns", "better", "area_ranges", "positive_label"])
def test_arrays_and_series_in_place_of_mappings_are_refused(option: str, values: Any) -> None:
    with pytest.raises(ee.OptionError) as caught:
        make_options(**{option: values})
    assert (caught.value.code, caught.value.facts["option"]) == ("option_value", option)


def test_mappings_of_pandas_and_single_labels_in_arrays_are_read() -> None:
    assert make_options(columns=pd.Series({"z": "actual"})).columns == {"z": "actual"}
    for label in (np.array(["a"]), pl.Series(["a"]), np.str_("a")):
        assert make_options(positive_label=label).positive_label == "a"


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_label_without_rows_of_scores(
    shuffled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning if all datums have scores of the same labels; models' best labels have none."""
    in_buckets(monkeypatch)
    n = 400
    truth = pl.DataFrame({"datum_id": range(n), "label_value": ["a", "b", "c", "c"] * (n // 4)})
    rows = pl.DataFrame({"label_value": ["a", "b"], "score": [0.75, 0.25]})
    found = truth.select("datum_id").join(rows, how="cross")
    found = found.sample(fraction=1, shuffle=True, seed=0) if shuffled else found
    for name, table in (("p", found), ("t", truth)):
        table.write_parquet(tmp_path / f"{name}.parquet")
    paths = tmp_path / "p.parquet", tmp_path / "t.parquet"
    for how in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch")}):
        for metrics in (["mROCAUC"], ["LogLoss"], ["Accuracy"]):
            card = ee.score(*paths, metrics=metrics, **how)
            noted(card, "labels_without_scores", severity="warning", count=n // 2)
    third = found.filter(label_value="a").with_columns(label_value=pl.lit("c"))
    first = found.filter(pl.col("label_value").ne("b") | (pl.col("datum_id") % 7 > 0))
    for fair in (pl.concat([found, third]), first, found.filter(label_value="a")):
        card = ee.score(fair, truth, metrics=["Accuracy"])
        assert "labels_without_scores" not in {one.code for one in card.findings}
