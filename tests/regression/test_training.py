"""Training tables: order in time, targets, digests, overlap with scored rows, huge values."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee
from evalengine.schemas.errors import InputError
from evalengine.schemas.option_values import TableObject, as_table

ROWS = pl.DataFrame({"prediction": [1.5], "target": [4.5]})
DAYS = [date(2024, month, 1) for month in range(1, 13)]
VALUES = [float(month) for month in range(12)]  # steps of 1


def trained(times: Any, **more: Any) -> pl.DataFrame:
    """Make a year of training rows sorted by text, which differs from the order in time."""
    return pl.DataFrame({"time": times, "target": VALUES, **more}).sort(pl.col("time").cast(str))


def mase(training: Any, rows: pl.DataFrame = ROWS, **options: Any) -> float | None:
    return ee.score(rows, metrics=["MASE"], training=training, **options).value("MASE")


@pytest.mark.parametrize(
    "times",
    [
        DAYS,
        [day.isoformat() for day in DAYS],
        [f"{day:%Y-%m}" for day in DAYS],
        [f"{day} 12:00" if i % 2 else f"{day}T12:00:00.5" for i, day in enumerate(DAYS)],
        [f"{day}T12:00{'Z' if i % 2 else '+0530'}" for i, day in enumerate(DAYS)],
    ],
)
def test_iso_strings_are_ordered_as_times(times: list[Any]) -> None:
    assert mase(trained(times)) == 3.0


def test_time_zones_are_used() -> None:
    times = ["2024-01-01T09:00+09:00", "2024-01-01T01:00Z", "2024-01-01T02:00+00:00"]
    assert mase(pl.DataFrame({"time": times, "target": [0.0, 1, 3]})) == 2.0


@pytest.mark.parametrize(
    ("times", "first"),
    [
        ([f"{month}/1/2024" for month in range(1, 13)], "'1/1/2024', '10/1/2024'"),
        ([str(month) for month in range(1, 13)], "'1', '10'"),
        ([f"2024-{month:02}-31" for month in range(1, 13)], "'2024-02-31'"),
        ([f"{day} 12:00" + "Z" * (i > 0) for i, day in enumerate(DAYS)], "'2024-01-01 12:00'"),
    ],
)
def test_other_strings_are_refused(times: list[str], first: str) -> None:
    with refused("wrong_dtype", InputError, table="training", column="time") as e:
        mase(trained(times))
    assert f"first {first}" in str(e.value)


def test_a_single_row_per_series_needs_no_order() -> None:
    card = ee.score(ROWS, metrics=["MASE"], training=pl.DataFrame({"time": ["x"], "target": [1.0]}))
    assert card.metrics["reason"].to_list() == ["a scale is 0"]


def test_one_time_in_two_formats_is_a_repeat() -> None:
    table = pl.DataFrame({"time": ["2024-01-01", "2024-01-01 00:00"], "target": [1.0, 2]})
    with refused("repeated_values", table="training", count=2):
        mase(table)


TARGETS = pl.DataFrame(
    {"label_key": ["x", "y"], "datum_id": [0, 0], "prediction": [1.5, 1.5], "target": [4.5, 4.5]}
)
HISTORY = trained(DAYS).with_columns(label_key=pl.lit("x"))
BOTH = pl.concat([HISTORY, HISTORY.with_columns(pl.col("target") * 10, label_key=pl.lit("y"))])


@pytest.mark.parametrize("series", [None, "a", 7])
def test_each_target_has_its_own_scale(series: Any) -> None:
    rows, history = TARGETS, BOTH
    if series is not None:  # also series 1 and 11: joined keys must stay distinct
        rows, history = (one.with_columns(series=pl.lit(series)) for one in (rows, history))
        other = history.with_columns(pl.col("target") * 100, series=pl.lit(series) + series)
        history = pl.concat([history, other], how="vertical_relaxed")
    card = ee.score(rows, metrics=["MASE"], training=history.sample(fraction=1, shuffle=True))
    assert [card.value("MASE", label_key=key) for key in "xy"] == [3.0, 0.3]
    with refused("null_values", column="scale", match="series and targets"):
        ee.score(rows, metrics=["MASE"], training=history.filter(label_key="x"))


def test_one_sided_targets() -> None:
    with refused("targets_differ", table="training", count=2):
        mase(HISTORY.drop("label_key"), TARGETS)
    assert mase(HISTORY.drop("label_key"), TARGETS.filter(label_key="x")) == 3.0
    with pytest.raises(InputError, match="training has 2 targets"):
        mase(BOTH, ROWS)
    assert mase(HISTORY, ROWS) == 3.0
    assert (
        mase(HISTORY.with_columns(series=pl.lit("a")), ROWS.with_columns(series=pl.lit("a"))) == 3.0
    )
    with refused("repeated_values", table="training", match="label_key"):
        mase(BOTH.drop("label_key"), ROWS)


def test_runs_with_other_training_are_not_compared(tmp_path: Path) -> None:
    rows = pl.DataFrame({"datum_id": range(30), "prediction": [1.5] * 30, "target": [4.5] * 30})
    history = trained(DAYS)
    asked: dict[str, Any] = {"metrics": ["MASE"]}
    one = ee.score(rows, training=history, **asked)
    other = ee.score(rows, training=history.with_columns(pl.col("target") * 2), **asked)
    with refused("runs_differ", option="training", match="sha256 "):
        ee.compare(one, other)
    for name, card in (("one", one), ("other", other)):
        card.save(tmp_path / name)
    with refused("runs_differ", option="training"):
        ee.compare(tmp_path / "one", tmp_path / "other")
    shuffled = history.sample(fraction=1, shuffle=True, seed=1)
    for same in (history, shuffled, shuffled.to_pandas(), shuffled.to_dict(as_series=False)):
        equal = ee.score(rows, training=same, **asked)
        assert ee.compare(tmp_path / "one", equal).differences["difference"].to_list() == [0.0]
    old = ee.load(tmp_path / "one").options.training
    assert (old.name, len(old.digest)) == ("polars.DataFrame of 12 rows", 64)
    assert (
        as_table("training", {"object": old.name}) == TableObject("training", old.name) != old
    )  # as saved without digests


def test_scored_rows_in_training_are_noted() -> None:
    history = trained(DAYS).with_columns(series=pl.lit("a"))
    rows = pl.DataFrame(
        {"series": ["a", "a", "a", "b"], "time": [DAYS[0], DAYS[1], date(2025, 1, 1), DAYS[2]],
         "prediction": [1.5] * 4, "target": [4.5] * 4}
    )  # fmt: skip
    history = pl.concat([history, history.with_columns(series=pl.lit("b")).head(2)])
    message = "table: 2 rows of a series and time that training has"
    for times in (rows["time"], rows["time"].cast(str), rows["time"].cast(pl.Datetime("ms"))):
        card = ee.score(rows.with_columns(times), metrics=["MASE"], training=history)
        assert [message in note for note in card.notes].count(True) == 1
    later = ee.score(rows[2:], metrics=["MASE"], training=history)
    assert "scored_in_training" not in {one.code for one in later.findings}
    sides = rows.drop("target"), rows.drop("prediction")
    card = ee.score(*sides, metrics=["MASE"], training=history, where="target > 0")
    assert "before where" in noted(card, "scored_in_training", count=2).message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_squares_beyond_doubles(size: float) -> None:
    table = trained(DAYS, series=["big"] * 12).with_columns(pl.col("target") * size)
    rows = ROWS.with_columns(series=pl.lit("big"))
    assert mase(table, rows) == pytest.approx(3 / size, rel=1e-12)
    with refused("null_values", match=r"float64 \('big':"):
        ee.score(rows, metrics=["RMSSE"], training=table)
    fine = table.with_columns(pl.col("target") / size * 1e-150)
    large = ee.score(rows, metrics=["RMSSE"], training=fine)
    assert large.value("RMSSE") == pytest.approx(3e150)
    huge = pl.DataFrame({"series": "big", "target": [-1.5e308, 1.5e308]})
    with refused("null_values", match=r"float64 \('big'"):
        mase(huge, rows)


def test_times_of_a_day() -> None:
    times = [datetime(2024, 1, 1, hour) for hour in range(12)]
    assert mase(trained(times)) == mase(trained([str(one) for one in times])) == 3.0


SERIES = pl.DataFrame(
    {"series": ["a", "a", "b", "b", "c"], "time": [5, 6, 5, 6, 5], "prediction": [1.0, 2, 7, 8, 1],
     "target": [2.5, 2, 7, 7, 2]}
)  # fmt: skip
STILL = pl.DataFrame(
    {
        "series": ["a"] * 5 + ["b"] * 5 + ["c"] * 5 + ["d"] * 5,
        "time": [*range(5)] * 4,
        "target": [1.5, 2, 1, 3, 2] + [7.0] * 5 + [1.0, 2, 3, 4, 5] + [0.0] * 5,
    }
)


@pytest.mark.parametrize("metric", ["MASE", "SeriesMASE", "RMSSE"])
def test_scored_series_that_are_constant_in_training_are_noted(metric: str, tmp_path: Path) -> None:
    """Without these series there is a value and no note."""

    def value_and_notes(rows: Any, **options: Any) -> tuple[float | None, list[Any]]:
        options = {"metrics": [metric], "training": STILL, **options}
        findings = ee.check(rows, **options).findings
        notes = [one.facts for one in findings if one.code == "constant_training"]
        return ee.score(rows, **options).value(metric), notes

    value, (facts,) = value_and_notes(SERIES)
    assert value is None
    assert (facts["series"], facts["number"], facts["count"]) == (["b"], 1, 2)
    value, notes = value_and_notes(SERIES, where="series <> 'b'")
    assert value is not None
    assert not notes
    SERIES.write_parquet(tmp_path / "rows.parquet")
    filed = ee.score(
        str(tmp_path / "rows.parquet"), metrics=[metric], training=STILL, memory_limit="600MB"
    )
    assert filed.notes == ee.score(SERIES, metrics=[metric], training=STILL).notes


def test_rows_with_scale_zero_are_counted() -> None:
    rows = SERIES.drop("series", "time").with_columns(scale=pl.Series([1.0, 0, 2, 0, 1]))
    for metric, many in (("MASE", 1), ("MAE", 0)):
        card = ee.score(rows, metrics=[metric])
        notes = [note for note in card.notes if "'scale'" in note and note.startswith("2 rows")]
        assert len(notes) == many
        assert (card.value(metric) is None) == many
