"""Forecasts: scales from a training table, series and horizons, composite ids of times."""

from __future__ import annotations

import math
import os
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee
from evalengine.schemas.errors import InputError, OptionError

N = int(os.environ.get("EVALENGINE_EXAMPLES", "4"))
NAMES = ["MASE", "RMSSE", "SeriesMASE", "SeriesRMSSE"]
COLUMNS = {"model": "prediction"}


def random_tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Generate training and forecast rows of series of different lengths, shuffled."""
    rng = np.random.default_rng(seed)
    train, rows = [], []
    for series in range(int(rng.integers(1, 5))):
        size = 10.0 ** rng.integers(-3, 4)
        n, ahead = int(rng.integers(9, 30)), int(rng.integers(1, 6))
        train += [(f"s{series}", t, x) for t, x in enumerate(rng.normal(size=n) * size)]
        rows += [
            (f"s{series}", n + h - 1, h, *(rng.normal(size=2) * size)) for h in range(1, ahead + 1)
        ]
    schema = ["unique_id", "ds", "h", "model", "y"]
    tables = (
        pl.DataFrame(train, schema=["unique_id", "ds", "y"], orient="row"),
        pl.DataFrame(rows, schema=schema, orient="row"),
    )
    first, second = (table.sample(fraction=1, shuffle=True, seed=seed) for table in tables)
    return first, second


def reference(train: pl.DataFrame, rows: pl.DataFrame, season: int) -> dict[str, float]:
    """Compute the formulas of Hyndman and Koehler and of the M5 competition."""
    values: dict[str, list[float]] = {}
    for name, _, value in sorted(train.iter_rows()):
        values.setdefault(name, []).append(value)
    scale, squared = {}, {}
    for name, history in values.items():
        steps = [history[t] - history[t - season] for t in range(season, len(history))]
        scale[name] = math.fsum(map(abs, steps)) / len(steps)
        squared[name] = math.fsum(step**2 for step in steps) / len(steps)
    terms: dict[str, list[tuple[float, float]]] = {}
    for name, _, _, predicted, true in rows.iter_rows():
        error = abs(predicted - true)
        terms.setdefault(name, []).append((error / scale[name], error**2 / squared[name]))
    every = [term for own in terms.values() for term in own]

    def mean(of: list[float]) -> float:
        return math.fsum(of) / len(of)

    return {
        "MASE": mean([one for one, _ in every]),
        "RMSSE": math.sqrt(mean([two for _, two in every])),
        "SeriesMASE": mean([mean([one for one, _ in own]) for own in terms.values()]),
        "SeriesRMSSE": mean([math.sqrt(mean([two for _, two in own])) for own in terms.values()]),
    }


def test_scales_of_training() -> None:
    for seed in range(N):
        train, rows = random_tables(seed)
        season = seed % 8 + 1
        asked: dict[str, Any] = {"metrics": NAMES, "training": train, "seasonality": season}
        for name, expected in reference(train, rows, season).items():
            card = ee.score(rows, columns=COLUMNS, **asked)
            assert card.value(name) == pytest.approx(expected, rel=4e-15), (seed, name)
            sides = rows.drop("y", "h"), rows.select("unique_id", "ds", "y").sort("y")
            two = ee.score(*sides, columns=COLUMNS, **asked)
            assert two.value(name) == card.value(name)


def test_training_in_a_file_and_in_buckets(tmp_path: Path) -> None:
    train, rows = random_tables(11)
    train.write_csv(tmp_path / "train.csv")
    rows.write_parquet(tmp_path / "rows.parquet")
    asked: dict[str, Any] = {"metrics": NAMES, "columns": COLUMNS, "by": ["horizon"]}
    whole = ee.score(rows, training=train, **asked)
    assert set(whole.metrics["slice"].drop_nulls()) == {"horizon"}
    filed = ee.score(
        str(tmp_path / "rows.parquet"), training=str(tmp_path / "train.csv"),
        memory_limit="600MB", **asked,
    )  # fmt: skip
    assert filed.metrics.equals(whole.metrics)
    whole.save(tmp_path / "out")
    loaded = ee.load(tmp_path / "out")
    assert loaded.options.training == whole.options.training
    with refused("option_missing", OptionError, option="training"):
        ee.score(rows, options=loaded.options)


def test_invalid_training_is_refused() -> None:
    train, rows = random_tables(3)

    one_series = train.filter(pl.col("unique_id") == "s0")
    for code, column, table in (
        ("null_values", "scale", one_series),
        ("repeated_values", None, pl.concat([train, train])),
        ("null_values", None, train.with_columns(y=None)),
        ("column_missing", "series", one_series.drop("unique_id")),
        ("types_differ", "series", train.with_columns(unique_id=pl.int_range(pl.len()))),
        ("column_missing", "target", train.drop("y")),
    ):
        with refused(code, InputError, **({"column": column} if column else {})):
            ee.score(rows, columns=COLUMNS, metrics=["MASE"], training=table)
    with pytest.raises(OptionError, match="seasonality"):
        ee.score(rows, columns=COLUMNS, metrics=["MASE"], training=train, seasonality=0)
    with refused("options_conflict", option="training", column="scale"):
        ee.score(rows.with_columns(scale=1.0), columns=COLUMNS, metrics=["MASE"], training=train)
    short = ee.score(rows, columns=COLUMNS, metrics=["MASE"], training=train, seasonality=30)
    assert short.metrics["reason"].to_list() == ["a scale is 0"]
    assert "30 values" in noted(short, "short_training").message


def test_one_series_without_names_or_times() -> None:
    train = pl.DataFrame({"target": [1.0, 3, 2, 6]})
    rows = pl.DataFrame({"prediction": [1.5, 2.5], "target": [2.0, 4.5]})
    card = ee.score(rows, metrics=["MASE"], training=train)
    assert card.value("MASE") == pytest.approx(1.25 / (7 / 3))
    noted(card, "training_in_row_order")


def test_composite_ids() -> None:
    rows = pl.DataFrame(
        {"id": [1, 1, 2, 2], "step": [1, 7, 1, 7], "target": [1.5, 2, 3, 4],
         "prediction": [1.0, 2.5, 3, 3]}
    )  # fmt: skip
    one = ee.score(rows, by=["horizon"])
    assert one.frame("per_datum")["datum_id"].to_list() == ["1/1", "1/7", "2/1", "2/7"]
    assert any("'id' and 'step'" in note for note in one.notes)
    sides = rows.drop("target"), rows.drop("prediction").reverse()
    two = ee.score(*sides, by=["horizon"])
    assert two.metrics.equals(one.metrics)
    once = ee.score(rows.filter(pl.col("step") == 1), task="regression")
    assert once.frame("per_datum")["datum_id"].to_list() == [1, 2]
    with refused("repeated_values"):
        ee.score(rows.drop("step"))
    cutoffs = pl.DataFrame(
        {"unique_id": "a", "ds": [3, 3, 4], "cutoff": [1, 2, 2], "yhat": [0.5, 1.5, 2.5]}
    )
    true = pl.DataFrame({"unique_id": "a", "ds": [3, 4], "y": [0.25, 2.25]})
    with refused("ids_differ", match="'ds'.* 'cutoff'"):
        ee.score(cutoffs, true)
    assert ee.score(cutoffs.join(true, on=["unique_id", "ds"])).value("MAE") == 1.75 / 3
    assert ee.score(cutoffs[1:], true).value("MAE") == 0.75
    dates = rows.rename({"id": "date", "step": "ds"})
    with refused("ambiguous_column", column="time"):
        ee.score(dates.drop("target"), dates.drop("prediction"))


def test_series_are_resampled_as_clusters() -> None:
    """For series of equal length, the mean over series is that over rows in every resample."""
    rng = np.random.default_rng(2)
    rows = pl.DataFrame(
        {
            "series": np.repeat(np.arange(9), 4),
            "prediction": rng.normal(size=36),
            "target": rng.normal(size=36),
            "scale": 1.0,
        }
    )
    for table in (rows, rows.with_columns(weight=0.25)):
        card = ee.score(
            table, metrics=["MASE", "SeriesMASE"], cluster="series", intervals=95, draws=50
        )
        one, two = card.metrics.select("value", "lower", "upper").rows()
        assert one == pytest.approx(two, rel=1e-12)


HOURS = pl.datetime_range(
    pl.datetime(2024, 10, 26), pl.datetime(2024, 10, 28), "6h", time_zone="UTC", eager=True
).alias("ds")
DAYS = pl.date_range(pl.date(2024, 2, 25), pl.date(2024, 3, 4), eager=True).alias("ds")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (HOURS.dt.convert_time_zone("Europe/Berlin"), HOURS),
        (HOURS.dt.convert_time_zone("Europe/Berlin").dt.strftime("%Y-%m-%dT%H:%M:%S%:z"), HOURS),
        (HOURS.cast(pl.Datetime("ms", "UTC")), HOURS.dt.convert_time_zone("Asia/Tokyo")),
        (DAYS, DAYS.cast(pl.Datetime("ns"))),
        (DAYS.cast(pl.String), DAYS.cast(pl.Datetime("us"))),
    ],
)
def test_equal_instants_match_across_zones_and_types(ours: pl.Series, theirs: pl.Series) -> None:
    y = np.arange(9.0)
    predicted = pl.DataFrame({"unique_id": "a", "ds": ours[::-1], "yhat": y[::-1] + 1.5})
    card = ee.score(predicted, pl.DataFrame({"unique_id": "a", "ds": theirs, "y": y}))
    assert card.value("MAE") == 1.5
    assert {one.code for one in card.findings} <= {
        "ids_together",
        "task_inferred",
        "columns_recognised",
    }


NS = (pl.Series(range(0, 4000, 100)) + 1_700_000_000_000_000_000).cast(pl.Datetime("ns", "UTC"))

FAR = pl.Series([date(1500, 1, 1), date(2024, 1, 1), date(9999, 12, 31)])


@pytest.mark.parametrize(
    ("ours", "theirs", "first"),
    [
        (DAYS, DAYS, "a/2024-02-25"),
        (DAYS.cast(pl.String), DAYS, "a/2024-02-25"),
        (DAYS.cast(pl.Datetime("us")), DAYS, "a/2024-02-25"),
        (DAYS, DAYS.cast(pl.String), "a/2024-02-25"),
        (FAR, FAR.cast(pl.Datetime("us")), "a/1500-01-01 00:00:00.000000"),
        (FAR.cast(pl.String), FAR, "a/1500-01-01"),
        (HOURS.dt.convert_time_zone("Asia/Tokyo"), HOURS, "a/" + HOURS.cast(pl.String)[0]),
        (HOURS, HOURS, "a/" + HOURS.cast(pl.String)[0]),
        (NS, NS, "a/" + NS.cast(pl.String)[0]),
        (NS.dt.convert_time_zone("Asia/Tokyo"), NS, "a/" + NS.cast(pl.String)[0]),
        (NS.dt.strftime("%Y-%m-%dT%H:%M:%S%.9f%:z"), NS, "a/" + NS.cast(pl.String)[0]),
    ],
)
def test_ids_of_times_have_the_format_of_the_ground_truths(
    ours: pl.Series, theirs: pl.Series, first: str
) -> None:
    y = np.arange(float(len(theirs)))
    predicted = pl.DataFrame({"series": "a", "time": ours, "prediction": y})
    true = pl.DataFrame({"series": "a", "time": theirs, "target": y})
    card = ee.score(predicted, true, task="regression")
    datums = card.per_datum["datum_id"]
    assert datums.min() == first
    assert datums.n_unique() == len(theirs)


def test_times_that_the_other_side_cannot_represent_do_not_match() -> None:
    half = DAYS.cast(pl.Datetime("us")) + timedelta(hours=12)
    nanoseconds = DAYS.cast(pl.Datetime("ns"))
    for ours, theirs in ((half, DAYS), (FAR.cast(pl.String), nanoseconds), (FAR, nanoseconds)):
        predicted = pl.DataFrame({"series": "a", "time": ours, "prediction": 1.0})
        true = pl.DataFrame({"series": "a", "time": theirs, "target": 1.0})
        with refused("no_common_id") as error:
            ee.score(predicted, true, task="regression")
        assert f"'a/{ours[0]}" in str(error.value)


@pytest.mark.parametrize("form", ["stem", "number", "file", "extension", "+1"])
def test_id_formats_of_single_columns_do_not_apply_to_composite_ids(form: str) -> None:
    rows = pl.DataFrame({"series": ["a.x"] * 9 + ["b.x"] * 9, "time": pl.concat([DAYS, DAYS])})
    predicted, true = (rows.with_columns(pl.lit(1.0).alias(n)) for n in ("prediction", "target"))
    card = ee.score(predicted, true, task="regression", id_format=[form])
    assert card.value("MAE") == 0


def test_id_format_applies_to_composite_ids() -> None:
    predicted = pl.DataFrame({"unique_id": "A", "ds": DAYS.cast(pl.String), "yhat": 1.0})
    true = pl.DataFrame({"unique_id": "a", "ds": DAYS.cast(pl.String) + " 00:00", "y": 3.0})
    with refused("no_common_id"):
        ee.score(predicted, true)
    forms = ["case", "^(.*?)(?: 00:00)?$"]
    assert ee.score(predicted, true, id_format=forms).value("MAE") == 2
    both = pl.concat([true, true.with_columns(unique_id=pl.lit("b"))])
    with refused("ids_merged", side="ground_truths", count=9, match=" of 'a/2024-02-25 00:00', "):
        ee.score(predicted, both, id_format=["^[^/]*/(.{10})"])


def test_doubled_forecasts_are_a_warning() -> None:
    y = np.random.default_rng(0).normal(size=40)
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 2, 9), eager=True)
    once = pl.DataFrame({"unique_id": "a", "ds": days, "y": y, "yhat": y + np.resize([1, 2], 40)})
    noted(ee.score(pl.concat([once, once])), "rows_doubled", count=40, severity="warning")
    moved = once.with_columns(pl.col("yhat").shift(1, fill_value=0))
    tiled = once.with_columns(y=pl.lit(1.0), yhat=pl.lit(2.0))
    for right in (once, pl.concat([once, moved]), pl.concat([tiled, tiled])):
        assert "rows_doubled" not in {one.code for one in ee.score(right).findings}


def test_uneven_times_of_training_are_noted() -> None:
    days = pl.date_range(pl.date(2023, 6, 1), pl.date(2023, 12, 31), eager=True).alias("ds")
    every = pl.DataFrame({"ds": days, "y": np.sin(np.arange(len(days)))})
    rows = pl.DataFrame({"prediction": [1.5, 2.5], "target": [1.0, 2.0]})

    def codes(train: pl.DataFrame, season: int) -> dict[str, int | None]:
        asked: dict[str, Any] = {"metrics": ["MASE"], "training": train, "seasonality": season}
        return {one.code: one.count for one in ee.score(rows, **asked).findings}

    weekdays = every.filter(pl.col("ds").dt.weekday() < 6)
    steps = weekdays["ds"] - weekdays["ds"].shift(7)
    assert codes(weekdays, 7)["training_uneven"] == int((steps != steps.median()).sum())
    text = weekdays.with_columns(pl.col("ds").cast(pl.String))
    assert codes(text, 7)["training_uneven"] == codes(weekdays, 7)["training_uneven"]
    months = pl.date_range(pl.date(2020, 1, 1), pl.date(2023, 1, 1), "1mo", eager=True)
    monthly = pl.DataFrame({"ds": months, "y": np.sin(np.arange(len(months)))})
    for train, season in ((every, 7), (weekdays, 5), (weekdays, 1), (monthly, 12)):
        assert "training_uneven" not in codes(train, season)
