"""Values and columns at the edge: tiny errors, units of weights, crossed ends."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

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


def test_no_index_of_order_is_above_one() -> None:
    rng = np.random.default_rng(0)
    for n in range(2, 40):
        target = rng.normal(size=n)
        rows = pl.DataFrame({"target": target, "prediction": target, "weight": rng.random(n)})
        assert ee.score(rows, metrics=["CIndex"]).value("CIndex") <= 1


def test_intervals_the_wrong_way_round() -> None:
    rows = ROWS.with_columns(lower=pl.Series([0.0, 3.0, 1.0]), upper=pl.Series([1.0, 2.0, 3.0]))
    with pytest.raises(InputError, match=r"1 row with lower above upper.*row 1 \("):
        ee.score(rows, metrics=["IntervalWidth"])
    even = rows.with_columns(upper="lower")
    assert ee.score(even, metrics=["IntervalWidth"]).value("IntervalWidth") == 0


def test_quantiles_of_one_level_and_crossed_ones() -> None:
    def scored(**quantiles: list[float]) -> ee.Scorecard:
        return ee.score(
            ROWS.with_columns(pl.Series(k, v) for k, v in quantiles.items()),
            metrics=["QuantileLoss"],
        )

    low, high = [0.0, 1.0, 2.0], [1.0, 0.5, 3.0]
    with pytest.raises(InputError, match=r"columns 'q0\.1', 'q0\.10' are all of q0\.1"):
        scored(**{"q0.1": low, "q0.10": high})
    with pytest.raises(InputError, match=r"column 'q0\.0': levels are between 0 and 1"):
        scored(**{"q0.0": low, "q0.5": high})
    near = scored(**{"q0.1234567": low, "q0.1234568": high, "q0.9999999": high}).metrics
    told = near["parameters"].drop_nulls().to_list()
    assert [float(one.split(":")[1].rstrip("}")) for one in told] == [
        0.1234567, 0.1234568, 0.9999999,
    ]  # fmt: skip
    notes = scored(**{"q0.1": low, "q0.9": high}).notes
    assert any("1 row has a quantile above one of a higher level" in note for note in notes)


def test_what_lacks_is_named() -> None:
    with pytest.raises(InputError, match=r"'scale' is read from the ground truths.*mine.*scale"):
        ee.score(ROWS, metrics=["MASE"])
    with pytest.raises(InputError) as caught:
        ee.score(ROWS, metrics=["AdjustedR2"])
    assert "mine" not in str(caught.value)
    ragged = ROWS.with_columns(samples=pl.Series([[1.0, 2.0], [1.0], [2.0, 3.0]]))
    with pytest.raises(InputError, match=r"Give every row a list of as many finite numbers"):
        ee.score(ragged, metrics=["CRPS"])
