"""Several models in one table: in columns of predictions, or in rows by a column of models."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine.cli import main

MODELS = ("AutoARIMA", "AutoETS", "Naive")


def forecasts() -> pl.DataFrame:
    """Return a frame in the layout of StatsForecast, with the truth."""
    rng = np.random.default_rng(7)
    y = rng.normal(10, 3, 80)
    models = {name: y + rng.normal(0, 1 + i, 80) for i, name in enumerate(MODELS)}
    bounds = {
        f"{name}-{side}-90": models[name] + way
        for name in MODELS[:2]
        for side, way in (("lo", -1.0), ("hi", 1.0))
    }
    return pl.DataFrame(
        {"unique_id": ["a", "b"] * 40, "ds": np.arange(80) // 2, "y": y, **models, **bounds}
    )


def single(table: pl.DataFrame, model: str) -> pl.DataFrame:
    """Return the table of one model."""
    bounds = {f"{model}-{side}-90": f"{side}-90" for side in ("lo", "hi")}
    return table.select(
        "unique_id",
        "ds",
        "y",
        pl.col(model).alias("prediction"),
        *(pl.col(mine).alias(name) for mine, name in bounds.items() if mine in table.columns),
    )


@pytest.mark.parametrize("metrics", [None, ["MAE", "Coverage"]])
def test_columns_are_runs(metrics: list[str] | None) -> None:
    table, models = forecasts(), MODELS[:2]
    result = ee.compare(table, predictions=models, metrics=metrics, draws=100)
    separate = ee.compare(
        *(single(table, model) for model in models), names=models, metrics=metrics, draws=100
    )
    assert list(result.runs) == list(models)
    assert_frame_equal(result.differences, separate.differences)
    assert not any("ground truths" in note for note in result.notes)


def test_every_pair() -> None:
    result = ee.compare(forecasts(), predictions=MODELS, metrics="MAE", draws=100)
    pairs = result.differences.select("run_a", "run_b", "a", "b").rows()
    assert [(a, b) for a, b, *_ in pairs] == [
        ("AutoARIMA", "AutoETS"), ("AutoARIMA", "Naive"), ("AutoETS", "Naive"),
    ]  # fmt: skip
    table = forecasts()
    for name, other, a, b in pairs:
        for model, value in ((name, a), (other, b)):
            assert value == pytest.approx((table[model] - table["y"]).abs().mean())


@pytest.mark.parametrize("separate", [False, True])
def test_rows_are_runs(separate: bool) -> None:
    rng = np.random.default_rng(8)
    truth = rng.choice(["a", "b"], 60)
    parts = {
        name: pl.DataFrame(
            {
                "datum_id": range(60),
                "y_true": truth,
                "y_pred": np.where(rng.random(60) < right, truth, "a"),
            }
        )
        for name, right in (("new", 0.9), ("old", 0.6))
    }
    long = pl.concat([part.with_columns(model=pl.lit(name)) for name, part in parts.items()])
    given: dict[str, Any] = {}
    if separate:  # truths in a separate table
        given["ground_truths"] = parts["new"].select("datum_id", actual="y_true")
        long = long.select("model", "datum_id", predicted="y_pred")
    result = ee.compare(long, model="model", metrics=["Accuracy"], draws=100, **given)
    of_files = ee.compare(*parts.values(), names=[*parts], metrics=["Accuracy"], draws=100)
    assert list(result.runs) == ["new", "old"]
    assert_frame_equal(result.differences, of_files.differences)


@pytest.mark.parametrize(
    ("table", "task"),
    [
        ({"reference": ["the cat"] * 9, "one": ["the cat"] * 9, "two": ["a cat"] * 9}, "text"),
        ({"y_true": ["a", "b", "b"], "one": ["a", "b", "b"], "two": ["a"] * 3}, "classification"),
    ],
)
def test_columns_of_other_tasks(table: dict[str, list[str]], task: str) -> None:
    result = ee.compare(pl.DataFrame(table), predictions=["one", "two"], draws=20)
    assert result.task == task
    assert result.differences["a"][0] == 1.0 > result.differences["b"][0]


def test_columns_of_class_numbers_keep_their_names(tmp_path: Path) -> None:
    labels = {"_type": "ClassLabel", "names": ["dog", "cat"]}
    features = {"info": {"features": {"one": labels, "two": labels}}}
    pl.DataFrame(
        {"y_true": ["cat", "dog"] * 4, "one": [1, 0] * 4, "two": [0, 0] * 4}
    ).write_parquet(tmp_path / "a.parquet", metadata={"huggingface": json.dumps(features)})
    result = ee.compare(
        str(tmp_path / "a.parquet"), predictions=["one", "two"], metrics="Accuracy", draws=20
    )
    assert result.differences.select("a", "b").row(0) == (1.0, 0.5)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.parquet"
    forecasts().write_parquet(path)
    asked = ["compare", str(path), "--predictions", "Naive,AutoARIMA", "--metric", "MAE"]
    assert main([*asked, "--fail-under", "MAE < baseline surely", "--format", "json"]) == 0
    assert main([*asked, "--fail-under", "MAE > baseline"]) == 1
    assert main([*asked[:2], "--predictions", ",".join(MODELS), "--fail-under", "MAE > 0"]) == 2
    assert "two runs" in capsys.readouterr().err
    assert main(["compare", str(path), "--model", "unique_id", "--metric", "MAE"]) == 2
    capsys.readouterr()
    assert main(["compare", str(path)]) == 2
    assert "--predictions A,B" in capsys.readouterr().err


def test_refusals() -> None:
    table = forecasts()
    card = ee.score(single(table, "Naive"), metrics="MAE")
    with refused("column_missing", ee.InputError, column="Prophet"):
        ee.compare(table, predictions=["Naive", "Prophet"])
    with refused("option_value", ee.OptionError, option="predictions"):
        ee.compare(table, predictions=["Naive"])
    with refused("options_conflict", ee.OptionError):
        ee.compare(table, table, predictions=["Naive", "AutoETS"])
    with refused("options_conflict", ee.OptionError):
        ee.compare(table, predictions=["Naive", "AutoETS"], model="unique_id")
    with refused("too_few_models", ee.InputError, column="model"):
        ee.compare(table.with_columns(model=pl.lit("a")), model="model")
    with refused("not_kept", ee.InputError):
        ee.compare(card, model="model")
    with refused("option_missing", ee.OptionError, option="model"):
        ee.compare(card)


def test_score_names_the_remedy() -> None:
    table = forecasts()
    with pytest.raises(ee.InputError) as error:
        ee.score(table.select("unique_id", "ds", "y", *MODELS))
    assert "predictions=['AutoARIMA', 'AutoETS', 'Naive']" in str(error.value)
    card = ee.score(table, columns={"Naive": "prediction"}, metrics=["MAE"])
    assert any("predictions=['Naive', 'AutoARIMA', 'AutoETS']" in note for note in card.notes)


def test_columns_of_scores_are_runs() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 60)
    table = pl.DataFrame({"churned": truth, "old": rng.random(60), "new": rng.random(60) + truth})
    columns = {"churned": "actual", "old": "score", "new": "score"}
    result = ee.compare(
        table, predictions=["old", "new"], columns=columns, metrics=["ROCAUC"], draws=50
    )
    [(old, new)] = result.differences.filter(metric="ROCAUC").select("a", "b").rows()
    for name, value in (("old", old), ("new", new)):
        alone = ee.score(y_true=truth, y_score=table[name].to_numpy(), metrics=["ROCAUC"])
        assert value == alone.value("ROCAUC")


def with_bounds(table: pl.DataFrame, **widths: float) -> pl.DataFrame:
    """Add the bounds of 90 % intervals to some models."""
    return table.with_columns(
        (pl.col(name) + sign * width).alias(f"{name}-{side}-90")
        for name, width in widths.items()
        for side, sign in (("lo", -1), ("hi", 1))
    )


def covered(table: pl.DataFrame, model: str, width: float) -> float:
    """Return the share of truths that are at most ``width`` from a model's forecast."""
    return float(((table["y"] - table[model]).abs() <= width).mean())


def test_bounds_of_other_models_are_skipped() -> None:
    """``C`` is not compared, and its bounds do not belong to any other model."""
    y = np.random.default_rng(0).normal(10, 2, 80)
    table = pl.DataFrame({"y": y, "A": y + np.linspace(-2, 2, 80), "B": y * 1.1, "C": y + 5})
    result = ee.compare(with_bounds(table, C=1), predictions=["A", "B"], draws=20)
    assert "Coverage" not in result.differences["metric"]
    assert any("C-lo-90" in note for note in result.notes)
    with pytest.raises(ee.InputError):
        ee.compare(with_bounds(table, C=1), predictions=["A", "B"], metrics="Coverage", draws=20)
    every = with_bounds(table, A=1, B=1, C=9)
    result = ee.compare(every, predictions=["A", "B"], metrics="Coverage", draws=20)
    assert result.differences.select("a", "b").rows() == [
        (covered(table, "A", 1), covered(table, "B", 1))
    ]


@pytest.mark.parametrize("models", [["ETS", "ETS-2"], ["ETS-2", "ETS"], ["ETS", "B"]])
def test_names_that_begin_like_others(models: list[str]) -> None:
    y = np.random.default_rng(1).normal(10, 2, 60)
    table = pl.DataFrame({"y": y, "ETS": y + 1, "ETS-2": y * 1.2, "B": y * 0.9})
    widths = {"ETS": 1.1, "ETS-2": 2.0, "B": 0.9}
    result = ee.compare(
        with_bounds(table, **widths), predictions=models, metrics="Coverage", draws=20
    )
    [values] = result.differences.select("a", "b").rows()
    assert values == tuple(covered(table, model, widths[model]) for model in models)


def test_columns_that_begin_like_a_model_are_shared() -> None:
    table = (
        forecasts()
        .rename({"unique_id": "Naive_id"})
        .with_columns(
            Naive_site=pl.Series(["x", "y"] * 40), AutoETS_weight=pl.Series([1.0] * 40 + [3.0] * 40)
        )
    )
    result = ee.compare(
        table,
        predictions=["Naive", "AutoETS"],
        by=["Naive_site"],
        cluster="Naive_id",
        columns={"AutoETS_weight": "weight"},
        metrics="MAE",
        draws=20,
    )
    assert {*result.differences["slice"].drop_nulls()} == {"Naive_site"}
    errors = (table["Naive"] - table["y"]).abs()
    weights = table["AutoETS_weight"]
    whole = result.differences.filter(pl.col("slice").is_null())["a"][0]
    assert whole == pytest.approx((errors * weights).sum() / weights.sum())


def test_one_text_of_columns() -> None:
    """A comma separates columns, as in the command line."""
    table = forecasts()
    result = ee.compare(table, predictions="Naive, AutoETS", metrics="MAE", draws=20)
    assert list(result.runs) == ["Naive", "AutoETS"]
    with refused("option_value", ee.OptionError, value=["Naive"]):
        ee.compare(table, predictions="Naive")


CALLS = [[{"name": name, "arguments": "{}"}] for name in "fg"]


@pytest.mark.parametrize(
    ("table", "options", "role"),
    [
        ({"relevant": [["a"]], "A": [["a", "b"]], "B": [["b", "a"]]}, {"metrics": "RR"},
         "retrieved"),
        ({"reference_embedding": [[1.0, 0.0]], "A": [[1.0, 0.0]], "B": [[0.0, 1.0]]}, {},
         "embedding"),
        ({"actual": [["B-PER"]], "A": [["B-PER"]], "B": [["O"]]}, {"task": "spans"}, "predicted"),
        ({"reference": [CALLS[0]], "A": [CALLS[0]], "B": [CALLS[1]]}, {"task": "agents"},
         "predicted_trajectory"),
        ({"A": [0.75], "B": [0.5]}, {"task": "values"}, "value"),
    ],
)  # fmt: skip
def test_columns_have_the_role_of_their_task(
    table: dict[str, list[Any]], options: dict[str, Any], role: str
) -> None:
    """Runs equal those of single tables whose column has the contract's name."""
    frame = pl.DataFrame({name: values * 20 for name, values in table.items()}).with_row_index("id")
    result = ee.compare(frame, predictions=["A", "B"], draws=20, **options)
    more = {"value_columns": ["value"]} if role == "value" else {}
    rest = [name for name in frame.columns if name not in "AB"]
    separate = ee.compare(
        *(frame.select(*rest, pl.col(model).alias(role)) for model in "AB"),
        names=["A", "B"],
        draws=20,
        **options,
        **more,
    )
    assert_frame_equal(result.differences, separate.differences)
    assert (result.differences["a"] > result.differences["b"]).any()


def test_messages_name_the_columns_of_the_table() -> None:
    rng = np.random.default_rng(4)
    table = pl.DataFrame({"y_true": [0, 1] * 30, "m1": rng.random(60), "m2": rng.random(60)})
    with pytest.raises(ee.InputError, match=r"m1.*score.*m2.*score"):
        ee.compare(table, predictions=["m1", "m2"])
    with refused("options_conflict", ee.OptionError):
        ee.compare(table, predictions=["m1", "m2"], columns={"m1": "score"})
    result = ee.compare(
        table, predictions=["m1", "m2"], columns={"m1": "y_score", "m2": "score"}, draws=20
    )
    assert "ROCAUC" in result.differences["metric"]
    texts = table.select("y_true", m1=pl.lit(2.5), m2=pl.lit("x"))
    with pytest.raises(ee.InputError, match="'m"):
        ee.compare(texts, predictions=["m2", "m1"], task="regression", columns={"y_true": "target"})
    with refused("task_unclear", ee.InputError) as error:
        ee.compare(pl.DataFrame({"m": [1], "n": [2], "o": [3]}), predictions=["m", "n"])
    assert "prediction'" not in str(error.value)
    prices = pl.DataFrame({"id": [1, 2], "price": [1.5, 2.0], "a": [1.0, 2.5], "b": [1.5, 2.5]})
    with pytest.raises(ee.InputError, match=r"price.*target"):
        ee.compare(prices, predictions=["a", "b"])
    named = ee.compare(prices, predictions=["a", "b"], columns={"price": "target"}, draws=20)
    assert named.task == "regression"
    with refused("options_conflict", ee.InputError):
        ee.compare(
            pl.DataFrame({"model_a": ["x"], "model_b": ["y"], "winner": ["a"], "m": [1], "n": [2]}),
            predictions=["m", "n"],
            task="preferences",
        )


def long_forecasts() -> pl.DataFrame:
    """Return rows of two models without ids, those of the second in another order."""
    wide = forecasts()
    rows = [
        wide.select("unique_id", "ds", "y", model=pl.lit(name), yhat=pl.col(name))
        for name in MODELS[:2]
    ]
    return pl.concat([rows[0], rows[1].sample(fraction=1, shuffle=True, seed=5)])


def test_rows_of_forecasts_are_matched_by_series_and_time() -> None:
    shuffled = long_forecasts()
    result = ee.compare(shuffled, model="model", metrics=["MAE"], draws=100)
    of_columns = ee.compare(forecasts(), predictions=MODELS[:2], metrics=["MAE"], draws=100)
    columns = ["a", "b", "difference", "wins", "ties", "losses"]
    assert_frame_equal(result.differences[columns], of_columns.differences[columns])
    one, other = shuffled.partition_by("model", include_key=False)
    separate = ee.compare(one, other, names=MODELS[:2], metrics=["MAE"], draws=100)
    assert_frame_equal(separate.differences, result.differences)
    fewer = ee.compare(one, other.head(60), metrics=["MAE"], draws=100, common=True)
    assert fewer.n == 60
    with pytest.raises(ee.InputError, match="20 datums of the others are missing"):
        ee.compare(one, other.head(60), metrics=["MAE"], draws=100)


def test_rows_whose_times_repeat_are_matched_in_their_order_with_a_note() -> None:
    wide = forecasts().drop("unique_id")
    runs = [wide.select("ds", "y", yhat=name) for name in MODELS[:2]]
    result = ee.compare(*runs, metrics=["MAE"], draws=20)
    assert result.n == 80
    assert any("do not identify" in note for note in result.notes)


@pytest.mark.parametrize("ids", [True, False])
def test_other_true_numbers_are_refused(ids: bool) -> None:
    table = long_forecasts()
    if ids:
        key = pl.concat_str("unique_id", "ds", separator="_").alias("datum_id")
        table = table.select(key, "y", "yhat", "model")
    second = pl.col("model") == MODELS[1]
    near = table.with_columns(pl.when(second).then(pl.col("y") * (1 + 1e-8)).otherwise("y"))
    assert ee.compare(near, model="model", metrics=["MAE"], draws=20).n == 80
    first_five = second & (pl.col("y").rank("ordinal").over("model") <= 5)
    other = table.with_columns(pl.when(first_five).then(pl.col("y") + 1).otherwise("y"))
    with pytest.raises(ee.InputError, match="other ground truths: 5 datums"):
        ee.compare(other, model="model", metrics=["MAE"], draws=20)


def test_targets_that_a_run_does_not_predict_are_not_other_truths() -> None:
    truths = pl.DataFrame(
        {"datum_id": [1, 1, 2, 2, 3, 3], "label_key": ["u", "v"] * 3, "target": np.arange(6.0)}
    )
    whole = truths.select("datum_id", "label_key", prediction=pl.col("target") + 0.5)
    weighted = truths.with_columns(weight=1.0)  # another table of the same truths
    cards = [
        ee.score(part, true, task="regression", metrics=["MAE"])
        for part, true in ((whole, truths), (whole.slice(1, 5), weighted))
    ]
    assert ee.compare(*cards, names=["a", "b"], draws=20).n == 3
    moved = ee.score(whole, truths.with_columns(pl.col("target") + 1), task="regression")
    with pytest.raises(ee.InputError, match="other ground truths: 3 datums"):
        ee.compare(cards[0], moved, names=["a", "b"], metrics=["MAE"], draws=20)


@pytest.mark.parametrize(
    ("table", "truth"),
    [
        ({"prediction": ["a b", "c"], "reference": ["a b", "c d"]}, {"reference": ["a b", "d"]}),
        ({"retrieved": [[1, 2], [3]], "relevant": [[1], [3, 2]]}, {"relevant": [[1], [3]]}),
    ],
)
def test_other_texts_and_documents_are_refused(table: dict[str, Any], truth: Any) -> None:
    name = "query_id" if "retrieved" in table else "datum_id"
    first = pl.DataFrame({name: ["x", "y"], **table})
    same = ee.compare(first, first, names=["a", "b"], draws=20)
    assert not any("ground truths" in note for note in same.notes)
    with pytest.raises(ee.InputError, match="other ground truths: 1 datum, first 'y'"):
        ee.compare(first, first.with_columns(**pl.DataFrame(truth).to_dict()), draws=20)


def test_verdicts_of_a_judge_have_no_ground_truths() -> None:
    verdicts = pl.DataFrame(
        {
            "datum_id": ["x", "y"] * 2,
            "metric": ["Faithfulness"] * 4,
            "verdict": ["yes", "no", "yes", "yes"],
            "model": ["a", "a", "b", "b"],
        }
    )
    result = ee.compare(verdicts, model="model", task="judged", draws=20)
    assert not any("ground truths" in note for note in result.notes)


def test_numbers_of_a_verdict_are_in_the_order_of_its_runs() -> None:
    table = pl.DataFrame(
        {"y_true": [1] * 8, "one": [1] * 6 + [0] * 2, "two": [0, 1, 1, 1, 1, 0, 1, 0]}
    )
    result = ee.compare(table, predictions=["one", "two"], metrics=["Accuracy"], draws=100)
    assert "one and two do not differ significantly: Accuracy 0.7500 against 0.6250" in (
        result.verdict
    )
    rows = result.differences.with_columns(p=pl.lit(0.03), p_adjusted=pl.lit(0.2))
    may, sure = copy.copy(result), copy.copy(result)
    may.differences, sure.differences = rows, rows.with_columns(p_adjusted=pl.lit(0.01))
    assert "may differ" in may.verdict
    assert "Accuracy 0.7500 against 0.6250" in may.verdict
    assert "two is worse than one: Accuracy 0.6250 against 0.7500" in sure.verdict


def test_a_long_table_of_forecasts_is_not_scored_as_one_model() -> None:
    for table in (long_forecasts(), long_forecasts().sort("ds", "model")):
        with refused("several_models", columns=["model"], number=2):
            ee.score(table)
        assert ee.score(table, where="model = 'AutoETS'").per_datum.height == 80
    # A model that is a property of the rows: cars of one day have other prices.
    cars = long_forecasts().with_columns(y=pl.int_range(pl.len()) * 1.0).drop("unique_id")
    assert ee.score(cars).per_datum.height == 160


def test_bounds_of_several_models_suggest_existing_columns() -> None:
    table = forecasts()
    with refused("column_twice", match=r"predictions=\['AutoARIMA', 'AutoETS'\]"):
        ee.score(table)
    card = ee.score(table, columns={"AutoARIMA": "prediction"}, metrics=["MAE", "Coverage"])
    assert card.value("MAE") == ee.score(single(table, "AutoARIMA"), metrics="MAE").value("MAE")


@pytest.mark.parametrize(
    ("table", "nearest"),
    [
        ({"id": [1, 2], "price": [1.5, 2.0], "a": [1.0, 2.5], "b": [1.5, 2.5]}, "regression"),
        ({"id": [1, 2], "price": ["x", "y"], "a": ["x", "y"], "b": [1.5, 2.5]}, "classification"),
    ],
)
def test_unknown_columns_of_floats_are_nearest_to_regression(table: Any, nearest: str) -> None:
    with pytest.raises(ee.InputError, match=f"nearest task is {nearest}"):
        ee.score(table)


def test_columns_are_not_models_if_the_truth_is_missing() -> None:
    table = {"customer": [0, 1], "churned": [0, 1], "prob": [0.2, 0.7], "site": ["A", "B"]}
    with pytest.raises(ee.InputError, match="it needs 'actual'") as info:
        ee.score(table)
    assert "predictions=" not in str(info.value)


class TestConditions:
    """Conditions of models A, B and C, of which C has datums of its own."""

    @staticmethod
    def table() -> pl.DataFrame:
        return pl.DataFrame(
            {
                "m": ["A"] * 6 + ["B"] * 6 + ["C"] * 3,
                "datum_id": [*range(6)] * 2 + [10, 11, 12],
                "id": [*range(1, 7)] * 2 + [0, 0, 0],
                "y_true": ["a", "b", "a"] * 5,
                "y_pred": ["a", "b", "b", "a", "a", "a"] + ["a", "b", "a"] * 3,
            }
        )

    @pytest.mark.parametrize(
        ("where", "n"),
        [("m != 'C'", 6), ("m != 'C' AND id > 1", 5), ("id > 1 AND m < 'C'", 5), ("id > 0", 6)],
    )
    def test_a_condition_removes_models(self, where: str, n: int) -> None:
        table = self.table()
        result = ee.compare(table, model="m", where=where, metrics="Accuracy", draws=20)
        two = table.filter(pl.col("m") != "C", pl.col("id") > 6 - n)
        assert_frame_equal(
            result.differences, ee.compare(two, model="m", metrics="Accuracy", draws=20).differences
        )
        assert [note for note in result.notes if "where" in note] == [
            f"where {where!r} removed 1 of 3 models: 'C'.",
            f"each run: where {where!r} removed {6 - n} of 6 rows of the table.",
        ]

    @pytest.mark.parametrize("by_side", [False, True])
    def test_with_separate_ground_truths(self, by_side: bool) -> None:
        table = self.table()
        truths = table.head(6).select("datum_id", actual="y_true")
        where: Any = "m <> 'C' AND id > 0"
        result = ee.compare(
            table.select("m", "datum_id", "id", predicted="y_pred"),
            ground_truths=truths,
            model="m",
            where={"predictions": where} if by_side else where,
            metrics="Accuracy",
            draws=20,
        )
        assert list(result.runs) == ["A", "B"]
        assert f"where {where!r} removed 1 of 3 models: 'C'." in result.notes

    def test_a_model_without_predictions_is_not_removed_by_other_columns(self) -> None:
        """Its missing predictions count as missed."""
        boxes = pl.DataFrame(
            {"datum_id": range(8), "label_value": ["cat"] * 8, "xmin": 0.0, "ymin": 0.0}
        ).with_columns(xmax=pl.lit(9.0), ymax=pl.lit(9.0))
        table = pl.concat(
            boxes.with_columns(score=pl.lit(score), m=pl.lit(name))
            for name, score in (("high", 0.9), ("low", 0.2))
        )
        result = ee.compare(
            table, ground_truths=boxes, model="m", where="score > 0.5", metrics="AP", draws=20
        )
        assert list(result.runs) == ["high", "low"]
        assert set(result.differences["b"]) == {0.0}

    def test_a_condition_removes_replicates(self) -> None:
        table = pl.concat(
            self.table().filter(pl.col("m") != "C").with_columns(r=pl.lit(r)) for r in range(3)
        )
        result = ee.compare(
            table, model="m", replicate="r", where="r < 2 AND id > 0", metrics="Accuracy", draws=20
        )
        removed = "where 'r < 2 AND id > 0' removed 1 of 3 replicates: 2."
        assert {f"A: {removed}", f"B: {removed}"} <= {*result.notes}

    def test_a_condition_of_wrong_type_is_refused(self) -> None:
        with refused("wrong_dtype", columns=["m", "id"]):
            ee.compare(self.table(), model="m", where="m != 'C' AND id > 'a'")
