"""Edge cases of values: tiny errors, units of weights, crossed bounds, units, sentinels."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee
from evalengine.schemas.errors import InputError

ROWS = pl.DataFrame({"y_true": [0.5, 1.5, 2.0], "y_pred": [0.25, 1.25, 4.5]})


def test_small_errors_keep_their_digits() -> None:
    for size in (1e-8, 1e-3, 0.9, 1.1, 50.0, 1000.0):
        value = ee.score([size], [0.0], task="regression", metrics=["LogCosh"]).value("LogCosh")
        exact = size**2 / 2 - size**4 / 12 if size < 0.01 else None
        if exact is None:
            exact = math.log(math.cosh(size)) if size < 700 else size - math.log(2)
        assert value == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("unit", [1.0, 0.1, 0.3, 1e-20, 7e12])
def test_medians_do_not_depend_on_the_unit_of_weights(unit: float) -> None:
    size = np.arange(1.0, 21)
    rows = pl.DataFrame({"target": size * 0, "prediction": size, "weight": size * 0 + unit})
    card = ee.score(rows, task="regression", metrics=["MedianAE"])
    assert card.value("MedianAE") == 10.5


def test_the_concordance_index_is_at_most_one() -> None:
    rng = np.random.default_rng(0)
    for n in range(2, 40):
        target = rng.normal(size=n)
        rows = pl.DataFrame({"target": target, "prediction": target, "weight": rng.random(n)})
        assert ee.score(rows, metrics=["CIndex"]).value("CIndex") <= 1


@pytest.mark.parametrize(("target", "prediction"), [(0.0, 1.0), (1.0, -1.0)])
def test_a_constant_target_with_a_number_outside_the_distribution(
    target: float, prediction: float
) -> None:
    rows = pl.DataFrame({"target": [target] * 3, "prediction": [prediction, 2.0, 2.0]})
    names = ["D2Tweedie", "TweedieDeviance"]
    card = ee.score(rows, metrics=names, tweedie_power=2.0, dialect="sklearn", task="regression")
    assert [card.value(name) for name in names] == [None, None]


def test_inverted_intervals_are_refused() -> None:
    rows = ROWS.with_columns(lower=pl.Series([0.0, 3.0, 1.0]), upper=pl.Series([1.0, 2.0, 3.0]))
    with refused("bounds_inverted", column="lower", count=1, rows=[1]):
        ee.score(rows, metrics=["IntervalWidth"])
    even = rows.with_columns(upper="lower")
    assert ee.score(even, metrics=["IntervalWidth"]).value("IntervalWidth") == 0


def test_repeated_and_crossed_quantiles() -> None:
    def scored(**quantiles: list[float]) -> ee.Scorecard:
        return ee.score(
            ROWS.with_columns(pl.Series(k, v) for k, v in quantiles.items()),
            metrics=["QuantileLoss"],
        )

    low, high = [0.0, 1.0, 2.0], [1.0, 0.5, 3.0]
    with refused("column_twice", columns=["q0.1", "q0.10"]):
        scored(**{"q0.1": low, "q0.10": high})
    with refused("wrong_name", column="q0.0"):
        scored(**{"q0.0": low, "q0.5": high})
    close = scored(**{"q0.1234567": low, "q0.1234568": high, "q0.9999999": high}).metrics
    parameters = close["parameters"].drop_nulls().to_list()
    assert [float(one.split(":")[1].rstrip("}")) for one in parameters] == [
        0.1234567, 0.1234568, 0.9999999,
    ]  # fmt: skip
    noted(scored(**{"q0.1": low, "q0.9": high}), "crossing_quantiles", count=1)


def test_intervals_inside_those_of_a_lower_level_are_noted() -> None:
    bounds = {
        "lo0.8": [0.0, 0, 0],
        "hi0.8": [4.0, 4, 4],
        "lo0.95": [-1.0, 1, -1],
        "hi0.95": [5, 5, 3],
    }
    rows = ROWS.with_columns(pl.Series(name, values) for name, values in bounds.items())
    card = ee.score(rows, metrics=["Coverage"])
    noted(card, "crossing_quantiles", count=2, severity="note")
    nested = rows.with_columns(pl.lit(-1.0).alias("lo0.95"), pl.lit(4.0).alias("hi0.95"))
    card = ee.score(nested, metrics=["Coverage"])
    assert "crossing_quantiles" not in {one.code for one in card.findings}


def test_missing_columns_and_options_are_named() -> None:
    with refused("column_missing", columns=["scale"], match="mine.*scale"):
        ee.score(ROWS, metrics=["MASE"])
    with pytest.raises(InputError) as caught:
        ee.score(ROWS, metrics=["AdjustedR2"])
    assert "mine" not in str(caught.value)
    ragged = ROWS.with_columns(samples=pl.Series([[1.0, 2.0], [1.0], [2.0, 3.0]]))
    with refused("wrong_length", column="samples", count=1, rows=[1]):
        ee.score(ragged, metrics=["CRPS"])


LINEAR = ["MAE", "RMSE", "MeanError", "MedianAE", "MaxError", "Pinball", "Winkler"]
UNITLESS = ["MAPE", "SMAPE", "WAPE", "R2", "ExplainedVariance", "Pearson", "Concordance",
            "D2AbsoluteError"]  # fmt: skip


def _in_units(power: int) -> pl.DataFrame:
    """Generate rows of three targets, all multiplied by a power of 2."""
    rng = np.random.default_rng(7)
    target = rng.normal(size=60)
    values = {
        "target": target,
        "prediction": target + rng.normal(size=60),
        "lower": target - 1,
        "upper": target + rng.random(60) - 0.5,
    }
    scaled = {name: np.ldexp(of, power) for name, of in values.items()}
    key, datum = ["a", "b", "c"] * 20, np.arange(60) // 3
    return pl.DataFrame({"datum_id": datum, "label_key": key, **scaled})


@pytest.mark.parametrize("power", [700, 1015, -700, -960])
def test_units_do_not_change_results(power: int) -> None:
    """Overflow of squares does not matter if the result itself is a double."""
    options = {"task": "regression", "metrics": LINEAR + UNITLESS + ["MSE"], "draws": 100}
    options |= {"intervals": 0.9}
    shown = ["metric", "label_key", "average", "value", "lower", "upper", "reason"]
    usual, scaled = (ee.score(_in_units(k), **options).metrics.select(shown) for k in (0, power))
    for name in LINEAR + UNITLESS:
        by = power if name in LINEAR else 0
        for one, other in zip(
            usual.filter(metric=name).iter_rows(),
            scaled.filter(metric=name).iter_rows(),
            strict=True,
        ):
            for a, b in zip(one[3:6], other[3:6], strict=True):
                exact = None if a is None else math.ldexp(a, by)
                whole = exact is None or one[2] is None
                assert b == (exact if whole else pytest.approx(exact, rel=1e-15)), name
    squares = scaled.filter(metric="MSE", label_key="a")
    if power > 0:
        assert squares["value"][0] is None
        assert "1.8e308" in squares["reason"][0]
    else:
        assert squares["value"][0] == 0


def test_huge_values_next_to_tiny_ones() -> None:
    rows = pl.DataFrame({"target": [1e200, 1e-200, 1.0, 2.0], "prediction": [3e200, 2e-200, 1, 2]})
    card = ee.score(rows, task="regression", metrics=["SMAPE", "MAPE", "RMSE", "MeanError", "R2"])
    assert card.value("SMAPE") == pytest.approx((1 + 2 / 3) / 4, rel=1e-15)
    assert card.value("MAPE") == 0.75
    assert (card.value("RMSE"), card.value("MeanError")) == (1e200, 5e199)
    assert card.value("R2") == pytest.approx(1 - 4 / 0.75, rel=1e-15)
    largest = pl.DataFrame({"target": [-1.7e308, 1.5], "prediction": [1.7e308, 1.5]})
    card = ee.score(largest, task="regression", metrics=["MAE", "SMAPE", "RMSE", "MaxError"])
    assert (card.value("MAE"), card.value("SMAPE")) == (1.7e308, 1.0)
    assert card.value("MaxError") is None


@pytest.mark.parametrize("n", [40_000, 40_001])
@pytest.mark.parametrize("kind", ["apart", "tied", "in order"])
def test_medians_of_many_rows(n: int, kind: str) -> None:
    error = np.random.default_rng(n).normal(size=n)
    if kind == "tied":
        error = np.round(error)
    if kind == "in order":
        error = np.sort(error)
    table = pl.DataFrame({"target": np.zeros(n), "prediction": error})
    card = ee.score(table, task="regression", metrics=["MedianAE"])
    assert card.value("MedianAE") == np.median(np.abs(error))


def test_huge_numbers_are_shown_with_an_exponent() -> None:
    table = pl.DataFrame({"target": [1e201, 2e201], "prediction": [1.5e201, 2e201]})
    text = str(ee.score(table, task="regression", metrics=["MAE", "MeanError"]))
    assert "2.5e+200" in text
    assert "MeanError" in text


UNITS = {"thousand": (1000, 0), "fahrenheit": (1.8, 32), "pounds": (2.2, 0), "sign": (-1, 0)}


@pytest.mark.parametrize("unit", UNITS)
def test_predictions_in_another_unit_are_a_warning(unit: str) -> None:
    scale, offset = UNITS[unit]
    rng = np.random.default_rng(0)
    target = rng.normal(20, 5, 60)
    predicted = target + rng.normal(0, 1, 60)
    card = ee.score(predicted * scale + offset, target, task="regression")
    code = "sign_flipped" if scale < 0 else "units_differ"
    (note,) = [one for one in card.findings if one.code == code]
    assert note.severity == "warning"
    assert note.facts["factor"] == pytest.approx(1 / scale, rel=0.1)
    checked = ee.check(predicted * scale + offset, target, task="regression")
    assert checked.warnings == [note.message]
    expected = np.corrcoef(predicted * scale, target)[0, 1]
    assert note.facts["correlation"] == pytest.approx(expected)
    for other in (predicted, rng.normal(20, 9, 60), predicted[:9]):
        codes = {
            one.code for one in ee.score(other, target[: other.size], task="regression").findings
        }
        assert codes.isdisjoint({"units_differ", "sign_flipped"})


@pytest.mark.parametrize("sentinel", [-999.0, 9999.0])
def test_sentinels_of_missing_values_are_a_warning(sentinel: float) -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(20, 5, 60)
    predicted = target + rng.normal(0, 1, 60)

    def with_sentinels(values: np.ndarray, n: int) -> np.ndarray:
        return np.append(np.full(n, sentinel), values[n:])

    def warnings(predictions: np.ndarray, targets: np.ndarray) -> list[tuple[str, int]]:
        findings = ee.score(predictions, targets, task="regression").findings
        notes = [one for one in findings if one.code == "sentinel_values"]
        assert all(one.severity == "warning" for one in notes)
        assert all(float(one.facts["value"]) == sentinel for one in notes)
        return [(one.facts["side"], one.facts["count"]) for one in notes]

    assert warnings(with_sentinels(predicted, 4), target) == [("predictions", 4)]
    assert warnings(predicted, with_sentinels(target, 3)) == [("targets", 3)]
    assert warnings(with_sentinels(predicted, 4), with_sentinels(target, 4)) == [
        ("predictions", 4), ("targets", 4),
    ]  # fmt: skip
    assert warnings(with_sentinels(predicted, 2), target) == warnings(predicted, target) == []
    true = np.append(np.full(4, sentinel) + 9, target[4:])  # really extreme
    assert warnings(with_sentinels(predicted, 4), true) == []


@pytest.mark.parametrize("sentinel", [-999.0, -99.0, 1e20])
def test_common_sentinels_are_detected_in_wide_values(sentinel: float) -> None:
    target = np.random.default_rng(0).uniform(0, 60, 300)
    predicted = target + np.resize([-3.0, 2.0], 300)
    replaced = np.where(np.arange(300) % 50 == 0, sentinel, target)
    card = ee.score(predicted, replaced, task="regression")
    noted(card, "sentinel_values", count=6, side="targets", severity="warning")
    noted(ee.check(predicted, replaced, task="regression"), "sentinel_values", count=6)
    for other in (
        np.where(np.arange(300) % 50 == 0, 99.0, target),  # close to the others
        np.where(np.arange(300) % 50 > 0, sentinel, 7.0),  # most rows
    ):
        card = ee.score(predicted, other, task="regression")
        assert "sentinel_values" not in {one.code for one in card.findings}


def test_99_is_no_sentinel_among_percentages() -> None:
    target = np.append(np.resize([97.8, 98.0, 98.2], 60), [99.0] * 3)
    card = ee.score(np.resize([98.1, 97.9], 63), target, task="regression")
    assert "sentinel_values" not in {one.code for one in card.findings}
