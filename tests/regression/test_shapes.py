"""Quantiles of errors and means in bins of predictions, compared with NumPy."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import evalengine as ee

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def _rows(seed: int, n: int, *, weight: bool = False, ties: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    predicted = rng.normal(50, 20, n)
    rows = {
        "prediction": predicted.round(-1) if ties else predicted,
        "target": predicted + rng.normal(0, 5, n),
        "weight": rng.integers(0, 3, n).astype(float),
        "shop": rng.choice(["a", "b"], n),
    }
    return pl.DataFrame(rows if weight else {k: v for k, v in rows.items() if k != "weight"})


def _table(
    card: ee.Scorecard, slice_value: str | None = None
) -> dict[str, dict[object, tuple[float, int]]]:
    rows = card.metrics.filter(pl.col("slice_value").eq_missing(pl.lit(slice_value, pl.String)))
    return {
        name: {
            (row["statistic"], *json.loads(row["parameters"]).values()): (
                row["value"],
                row["support"],
            )
            for row in rows.filter(pl.col("metric") == name).iter_rows(named=True)
        }
        for name in ("ErrorQuantiles", "ActualByPrediction")
    }


def _score(rows: pl.DataFrame, **more: object) -> ee.Scorecard:
    asked = ["ErrorQuantiles", "ActualByPrediction"]
    return ee.score(rows, task="regression", metrics=asked, **more)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weight", [False, True])
def test_against_definitions(n: int, ties: bool, weight: bool) -> None:
    rows = _rows(n, n, weight=weight, ties=ties)
    made = _table(_score(rows, by="shop"), None)
    # A weight of 2 equals the row twice.
    times = rows["weight"].cast(pl.Int64).to_numpy() if weight else np.ones(n, np.int64)
    p, t = (np.repeat(rows[name].to_numpy(), times) for name in ("prediction", "target"))
    place = np.repeat(np.arange(n), times)
    if not p.size:
        assert all(value is None for value, _ in made["ErrorQuantiles"].values())
        return
    for level in LEVELS:
        want = np.quantile(p - t, level, method="averaged_inverted_cdf")
        assert made["ErrorQuantiles"][None, level][0] == pytest.approx(want, rel=1e-12)
    levels = np.arange(1, 10) / 10
    edges = np.quantile(p, levels, method="averaged_inverted_cdf")
    assert sum(n for (side, _), (_, n) in made["ActualByPrediction"].items() if side == "actual") \
        == np.unique(place).size  # fmt: skip
    for i in range(10):
        low = edges[i - 1] if i else -np.inf
        high = edges[i] if i < 9 else np.inf
        inside = (low < p) & (p <= high)
        for side, values in (("predicted", p), ("actual", t)):
            value, support = made["ActualByPrediction"][side, i + 1]
            assert support == np.unique(place[inside]).size
            if inside.any():
                assert value == pytest.approx(values[inside].mean(), rel=1e-12)
            else:
                assert value is None


def test_slices_equal_separate_runs_and_order_does_not_matter() -> None:
    rows = _rows(3, 60)
    card = _score(rows, by="shop")
    for shop in ("a", "b"):
        separate = _score(rows.filter(pl.col("shop") == shop))
        assert _table(card, shop) == _table(separate)
    assert _table(_score(rows[::-1])) == _table(card)


def test_the_page_and_the_plot_have_the_bins() -> None:
    pytest.importorskip("matplotlib")
    card = ee.score(_rows(5, 50))
    assert "actual" in card.plot.kinds
    (axes,) = card.plot.actual(baseline=card).axes
    assert axes.get_xlabel().startswith("mean prediction")
    diagonal, line, _ = axes.get_lines()
    bins = _table(_score(_rows(5, 50)))["ActualByPrediction"]
    assert list(line.get_ydata()) == [v for (side, _), (v, _) in bins.items() if side == "actual"]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    assert diagonal.get_xdata()[0] > 1
    assert "actual" in ee.score(_rows(5, 50), metrics=["MAE"]).plot.kinds


def test_tables_name_quantiles_and_bins(capsys: pytest.CaptureFixture[str]) -> None:
    _score(_rows(5, 50)).show()
    output = capsys.readouterr().out
    assert "ErrorQuantiles quantile" in output
    assert "ActualByPrediction bin  predicted" in output
    assert output.index("0.05 ") < output.index("0.25 ")
