"""Column names of forecasting tools, and tables of distributions without point predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import noted, refused

import evalengine as ee
from evalengine.ingest.dtypes import widened
from evalengine.schemas.errors import InputError

N = 12
TRUE = np.random.default_rng(0).normal(size=N).round(3)
LOW, MIDDLE, HIGH = TRUE - 1.25, TRUE + 0.125, TRUE + 0.5


def table(low: str, middle: str, high: str, true: str = "y") -> pl.DataFrame:
    return pl.DataFrame({true: TRUE, low: LOW, middle: MIDDLE, high: HIGH})


@pytest.mark.parametrize(
    "names",
    [
        ("q0.1", "q0.5", "q0.9"),
        ("q.1", "q_0.5", "quantile_0.9"),
        ("p10", "p50", "p90"),  # Amazon Forecast, TimescaleDB
        ("quantile_10", "quantile_50", "quantile_90"),
        ("q10", "q50", "Q90"),
        ("0.1", "0.5", "0.9"),  # AutoGluon, Chronos, GluonTS
        ("NHITS_ql0.1", "NHITS_ql0.5", "NHITS_ql0.9"),  # NeuralForecast
        ("TimeGPT-q-10", "TimeGPT-q-50", "TimeGPT-q-90"),
        ("forecast_p10", "forecast_p50", "forecast_p90"),
    ],
)
def test_quantiles_by_other_names(names: tuple[str, str, str]) -> None:
    card = ee.score(table(*names))
    assert card.task == "regression"
    rows = card.metrics.filter(metric="QuantileLoss")
    assert [f'{{"quantile": {level}}}' for level in (0.1, 0.5, 0.9)] == rows["parameters"].to_list()
    assert rows["value"].to_list() == pytest.approx([0.125, 0.0625, 0.05])
    assert all(name in card.notes[0] for name in names if not name.startswith("q0"))


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (("yhat_lower", "yhat", "yhat_upper"), None),  # Prophet
        (("lwr", "fitted", "upr"), None),  # R
        (("lo-80", "forecast", "hi-80"), 0.8),
        (("AutoARIMA-lo-80", "yhat", "AutoARIMA-hi-80"), 0.8),  # StatsForecast
        (("lower_95", "yhat", "upper_95"), 0.95),
        (("Lo.97.5", "yhat", "Hi.97.5"), 0.975),
        (("lo0.8", "yhat", "hi0.8"), 0.8),
    ],
)
def test_intervals_by_other_names(names: tuple[str, str, str], level: float | None) -> None:
    card = ee.score(table(*names), metrics=["MAE", "Coverage", "Winkler"], interval_level=0.5)
    assert (card.value("MAE"), card.value("Coverage")) == (pytest.approx(0.125), 1.0)
    parameters = None if level is None else f'{{"level": {level}}}'
    expected = [None, parameters, parameters or '{"level": 0.5}']
    assert card.metrics["parameters"].to_list() == expected
    above = ee.score(
        table(*names).with_columns(y=pl.Series(HIGH + 1)), metrics=["Winkler"], interval_level=0.5
    )
    used = 0.5 if level is None else level
    assert above.value("Winkler") == pytest.approx(1.75 + 2 / (1 - used))


def test_several_intervals_and_models() -> None:
    two = table("A-lo-80", "A", "A-hi-80").with_columns(
        pl.Series("A-lo-95", LOW - 1), pl.Series("A-hi-95", HIGH + 1)
    )
    asked = {"columns": {"A": "prediction"}, "metrics": ["IntervalWidth"]}
    rows = ee.score(two, **asked).metrics
    assert dict(rows.select("parameters", "value").iter_rows()) == {
        '{"level": 0.8}': pytest.approx(1.75), '{"level": 0.95}': pytest.approx(3.75),
    }  # fmt: skip
    models = two.with_columns(pl.Series("B-lo-80", LOW - 9), pl.Series("B-hi-80", HIGH))
    assert ee.score(models, **asked).metrics["value"][0] == pytest.approx(1.75)
    with refused("column_twice", columns=["A-lo-80", "B-lo-80"]):
        ee.score(models, metrics=["IntervalWidth"], task="regression")
    crossed = two.with_columns(pl.Series("A-lo-95", HIGH + 2))
    with refused("bounds_inverted", column="lo0.95", count=12):
        ee.score(crossed, **asked)


def test_names_that_may_be_percent_or_tenths() -> None:
    rows = table("q1", "q50", "q90")
    with refused("ambiguous_column", columns=["q1"], match=r"\{\"q1\": \"q0.01\"\} or"):
        ee.score(rows)
    tenths = table("q1", "q5", "q9")
    for given, options in [
        (tenths, {}),
        (tenths.with_columns(yhat=pl.Series(MIDDLE)), {"metrics": ["CRPSFromQuantiles"]}),
    ]:
        with refused("ambiguous_column", columns=["q1", "q5", "q9"]):
            ee.score(given, **options)
    assert ee.score(tenths.with_columns(yhat=pl.Series(MIDDLE))).value("MAE") > 0
    card = ee.score(rows, columns={"q1": "q0.1"}, metrics=["QuantileCoverage"])
    assert card.metrics["parameters"][0] == '{"quantile": 0.1}'


def test_distributions_without_predictions() -> None:
    rows = table("q0.1", "q0.5", "q0.9").with_row_index("datum_id")
    names = ["QuantileLoss", "QuantileCoverage", "CRPSFromQuantiles"]
    one = ee.score(rows)
    assert set(one.metrics["metric"]) == {*names}
    both = ee.score(rows.with_columns(prediction=pl.Series(MIDDLE)), metrics=names)
    assert one.value("CRPSFromQuantiles") == both.value("CRPSFromQuantiles")
    sides = rows.drop("y"), rows.select("datum_id", "y")
    assert ee.score(*sides).value("CRPSFromQuantiles") == one.value("CRPSFromQuantiles")
    unnamed = [side.drop("datum_id") for side in sides]
    assert ee.score(*unnamed).value("CRPSFromQuantiles") == one.value("CRPSFromQuantiles")
    sampled = rows.select("datum_id", "y", samples=pl.concat_list("q0.1", "q0.5", "q0.9"))
    assert set(ee.score(sampled).metrics["metric"]) == {"CRPS"}
    assert ee.score(sampled.select("datum_id", "samples"), sides[1]).task == "regression"
    with refused("column_missing", column="prediction"):
        ee.score(rows, metrics=["MAE"])
    with refused("column_missing", columns=["prediction"], match="MAE needs"):
        ee.score(rows, metrics=["MAE", "CRPSFromQuantiles"])


@pytest.mark.parametrize("true", ["y", "target"])
@pytest.mark.parametrize(
    "spread",
    [
        {"p10": [0, 1], "p90": [2, 4]},
        {"lower": [0, 1], "upper": [2, 4]},
        {"lo-80": [0, 1], "hi-80": [2, 4]},
        {"samples": [[1, 2], [2, 3]]},
    ],
)
def test_names_of_distributions_make_integers_regression(
    true: str, spread: dict[str, list[int]]
) -> None:
    ids = {"datum_id": [1, 2]}
    assert ee.score({true: [1, 2], **spread}).task == "regression"
    assert ee.score({**ids, **spread}, {**ids, true: [1, 2]}).task == "regression"
    scored = pl.DataFrame({true: [1, 0], **spread, "score": [0.5, 0.25]})
    if true == "target":  # "score" may be the score of a label
        assert ee.score(scored).task == "classification"


@pytest.mark.parametrize("name", ["mean", "predictions"])  # AutoGluon, Chronos
def test_names_of_predictions_next_to_a_distribution(name: str) -> None:
    rows = table("0.1", "0.5", "0.9", "target").with_columns(
        pl.Series(name, MIDDLE + 1), item_id=pl.lit("a"), timestamp=pl.int_range(N)
    )
    for given in (rows, rows.with_columns(target=pl.int_range(N))):
        card = ee.score(given)
        assert card.task == "regression"
        assert any(note.startswith(f"table: read {name} as") for note in card.notes)
    asked = ["MAE", "CRPSFromQuantiles"]
    want = ee.score(rows.rename({name: "prediction"}), metrics=asked)
    assert ee.score(rows, metrics=asked).metrics.equals(want.metrics)
    named = rows.with_columns(yhat=pl.Series(MIDDLE))
    assert ee.score(named).value("MAE") == pytest.approx(0.125)
    with pytest.raises(InputError, match="no column of predictions"):
        ee.score(rows.select(name, "target"), task="regression")


def test_missing_predictions_are_refused_with_the_names_of_distributions() -> None:
    with refused("column_missing", match="'samples'.*'lower'"):
        ee.score(pl.DataFrame({"a": [1.5], "b": [2.5]}), task="regression")


@pytest.mark.parametrize(
    ("metric", "columns"),
    [
        ("CRPSFromQuantiles", ["q0.1", "q0.5", "q0.9"]),
        ("CRPS", ["samples"]),
        ("Winkler", ["lower", "upper"]),
    ],
)
def test_per_datum_values_of_distributions(
    metric: str, columns: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table("q0.1", "q0.5", "q0.9").with_row_index("datum_id").with_columns(
        samples=pl.concat_list("q0.1", "q0.5", "q0.9"), lower="q0.1", upper="q0.9"
    )  # fmt: skip
    few = rows.select("datum_id", "y", *columns)
    card = ee.score(few)
    each = card.frame("per_datum")
    assert each["metric"].unique().to_list() == [metric]
    assert each["value"].mean() == pytest.approx(card.value(metric), rel=1e-14)
    predicted = ee.score(few.with_columns(prediction=pl.Series(MIDDLE)), metrics=[metric])
    assert predicted.frame("per_datum")["metric"].unique().to_list() == ["AbsoluteError"]
    two = [few.with_columns(label_key=pl.lit(key)) for key in "ab"]
    several = ee.score(pl.concat(two)).frame("per_datum")
    first = several.filter(pl.col("parameters").str.contains('"a"'))
    assert first["value"].equals(each["value"])
    worst = ee.find_errors(few).datums
    assert worst["value"][0] == each["value"].max()
    assert f"{metric} " in worst["why"][0]
    assert ee.diagnose(few).frame["share"][0] > 0
    card.to_html(tmp_path / "page.html")
    in_buckets(monkeypatch)
    parts = ee.score(few, memory_limit="1GB", scratch=str(tmp_path))
    assert parts.frame("per_datum").equals(each)
    assert parts.metrics.equals(card.metrics)


def test_decimal_commas_are_refused() -> None:
    rows = pl.DataFrame({"y_true": ["3,14", "2"], "y_pred": ["3,1", "-1.002,5"]})
    with pytest.raises(InputError, match=r"decimal commas, first '3,1', '-1\.002,5'"):
        ee.score(rows)
    for texts in (["1,000.5", "998.5"], ["12,345", "1,234,567"], ["12.345", "1.234.567"]):
        with refused("wrong_dtype", columns=["y_pred", "y_true"]) as caught:
            ee.score(pl.DataFrame({"y_true": texts, "y_pred": texts}))
        assert "thousands" in str(caught.value)
        with refused("wrong_dtype", match="thousands"):
            ee.score(pl.DataFrame({"y_true": texts, "y_pred": texts}), task="regression")
    for text in (",5", "-.5,0"):  # zeros may be left out
        with refused("wrong_dtype", match="decimal points"):
            ee.score(pl.DataFrame({"y_true": [text], "y_pred": 1.0}), task="regression")
    decimals = ["0.125", "1.250", "12.345"]
    with pytest.raises(InputError) as caught:
        ee.score(pl.DataFrame({"y_true": decimals, "y_pred": decimals}))
    assert "Cast it to Float64" in str(caught.value)
    assert "thousands" not in str(caught.value)
    for labels in (["a", "3,1"], ["1.2.3", "10.0.1"], ["001.234.567", "002.345.678"]):
        assert ee.score({"y_true": labels, "y_pred": labels}).task == "classification"


@pytest.mark.parametrize(
    "text",
    ["3,14", "1.234,5", "1 234,5", "1,234.5", "1'234.5", "1\u202f234.5", "€3.14", "-3.14 $",
     "\u22123.14", "31.4%", "31,4 %"],
)  # fmt: skip
@pytest.mark.parametrize("other", [None, "NA", "#N/A", "k. A."])
def test_numbers_of_other_conventions_are_refused(text: str, other: str | None) -> None:
    """Marks of missing values and a few other texts do not make them labels."""
    texts = [text, text.replace("4", "5")] * 10
    rows = pl.DataFrame({"y_true": texts, "y_pred": [*texts[1:], other or text]})
    with refused("wrong_dtype", columns=["y_pred", "y_true"]):
        ee.score(rows)


@pytest.mark.parametrize(
    "labels",
    [
        ["50%", "75%", "99%"],
        ["1 120", "120 7"],
        ["$5", "$10"],
        ["\u22121", "1"],
        ["10:30"],
        [*["1,2", "3"] * 9, "1,2,3"],
    ],
)
def test_texts_with_signs_may_be_labels(labels: list[str]) -> None:
    assert ee.score({"y_true": labels * 20, "y_pred": labels * 20}).value("Accuracy") == 1


def test_percentages_as_strings_are_refused() -> None:
    table = pl.DataFrame({"y_true": [0.5, 0.7], "y_pred": ["87%", "9.5 %"]})
    with refused("wrong_dtype", columns=["y_pred"]):
        ee.score(table)
    labels = pl.DataFrame({"y_true": ["50%", "75%"], "y_pred": ["50%", "50%"]})
    assert ee.score(labels).value("Accuracy") == 0.5


def test_an_assumed_level_of_intervals_is_noted() -> None:
    rows = table("yhat_lower", "yhat", "yhat_upper")
    card = ee.score(rows, metrics=["Winkler", "Coverage"])
    assert "(interval_level=0.9)" in noted(card, "interval_level").message
    parameters = dict(card.metrics.select("metric", "parameters").iter_rows())
    assert parameters == {"Winkler": '{"level": 0.9}', "Coverage": None}
    quiet = [
        ee.score(rows, metrics=["Winkler"], interval_level=0.9),
        ee.score(rows, metrics=["Coverage"]),
        ee.score(table("lo-80", "yhat", "hi-80"), metrics=["Winkler"]),
    ]
    assert not any("taken for" in note for one in quiet for note in one.notes)
    bounds = ee.score(rows.drop("yhat"), metrics=["Coverage"], task="regression")
    assert any("taken for a 90 %" in note for note in bounds.notes)  # per-datum values use it
    both = rows.with_columns(pl.Series("lo-90", LOW - 1), pl.Series("hi-90", HIGH + 1))
    rows = ee.score(both, metrics=["Winkler"], columns={"yhat": "prediction"}).metrics
    assert rows["parameters"].n_unique() == 2  # parameters distinguish the rows


def test_a_models_column_next_to_its_levels_is_the_prediction() -> None:
    table = pl.DataFrame(
        {"y": [1.5, 2.5], "AutoETS": [1.0, 2.0], "AutoETS-lo-80": [0.0, 1.0]}
    ).with_columns((pl.col("AutoETS") + 1).alias("AutoETS-hi-80"))
    card = ee.score(table)
    assert card.value("MAE") == 0.5
    assert any("AutoETS as prediction" in note for note in card.notes)
    # No level has the name of this column.
    assert "MAE" not in ee.score(table.rename({"AutoETS": "Naive"})).metrics["metric"]


def test_half_floats_keep_their_fractions(tmp_path: Path) -> None:
    """Polars' ``floor`` returns 16-bit floats unchanged."""
    halves = np.array([1.5, 2.25, -0.5, 3.0], np.float16)
    rows = pl.DataFrame({"prediction": halves, "target": halves + np.float16(0.25)})
    rows.write_parquet(tmp_path / "t.parquet")
    plan = ee.plan(rows.with_row_index("datum_id"))
    collector = ee.Collector()
    collector.add(rows)
    for card in (
        ee.score(rows),
        ee.score(rows["prediction"], rows["target"]),
        ee.score(tmp_path / "t.parquet", memory_limit="1GB"),
        plan.tally(rows.with_row_index("datum_id")).summarise(),
        collector.score(),
    ):
        assert (card.task, card.value("MAE")) == ("regression", 0.25)
    lists = rows.select(pl.concat_list(pl.all()), pl.col("target").reshape((4, 1)))
    assert [widened(one) for one in lists.dtypes] == [pl.List(pl.Float32), pl.Array(pl.Float32, 1)]
