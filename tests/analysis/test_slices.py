"""The worst slices: an exhaustive search, the package sliceline, and planted faults."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reference_data import known_answers
from refusals import refused
from scipy.stats import norm

import evalengine as ee
from evalengine.cli import main
from evalengine.executors import Threads
from evalengine.findings import slices
from evalengine.findings.slices import conditions_of, search
from evalengine.statistics import tests


def exhaustive(code, column, error, *, most, levels, least, alpha, weight):
    """Scores and items of the best slices, by testing every slice."""
    error, n = error * weight, weight.sum()
    total = error.sum()
    result = []
    for deep in range(1, levels + 1):
        for columns in itertools.combinations(range(code.shape[0]), deep):
            for items in itertools.product(*(np.flatnonzero(column == c) for c in columns)):
                inside = np.logical_and.reduce(
                    [code[c] == i for c, i in zip(columns, items, strict=True)]
                )
                size, own = weight[inside].sum(), error[inside].sum()
                if inside.sum() < least or own <= 0:
                    continue
                score = alpha * (own / size * n / total - 1) - (1 - alpha) * (n / size - 1)
                if score > 0:
                    result.append((-score, deep, tuple(map(int, items))))
    return sorted(result)[:most]


def coded(columns):
    code, column = [], []
    for c, values in enumerate(columns):
        codes = np.unique(values[values >= 0])
        place = np.full(int(values.max(initial=0)) + 1, -1)
        place[codes] = np.arange(codes.size) + len(column)
        code.append(np.where(values < 0, -1, place[np.maximum(values, 0)]))
        column += [c] * codes.size
    return np.array(code, np.int32), np.array(column, np.int32)


@pytest.mark.parametrize("seed", range(40))
def test_as_an_exhaustive_search(seed, monkeypatch):
    r = np.random.default_rng(seed)
    if seed % 3 == 0:
        monkeypatch.setattr(slices, "_AT_ONCE", 4)  # the bar rises between many pieces
    n = int(r.integers(1, 150))
    columns = [r.integers(-1, r.integers(1, 5), n) for _ in range(r.integers(1, 6))]
    code, column = coded(columns)
    kinds = (r.random(n), (r.random(n) < 0.3).astype(float), r.integers(0, 3, n).astype(float))
    error = kinds[seed % 3]
    options = {
        "most": int(r.integers(1, 30)),
        "levels": int(r.integers(1, 5)),
        "least": int(r.integers(1, 10)),
        "alpha": float(r.choice([0.5, 0.95, 1.0])),
        "weight": np.ones(n) if seed % 2 else r.choice([1e-3, 0.5, 1.0, 7.0], n),
    }
    if not error.sum():
        return
    inputs = {**options, "weight": None} if seed % 4 == 1 else options
    result = search(code, column, error, **inputs, threads=Threads(1 + seed % 2))
    expected = exhaustive(code, column, error, **options)
    np.testing.assert_allclose(result.score, [-one[0] for one in expected], rtol=1e-11, atol=1e-12)
    sums = [
        (error * options["weight"])[
            np.logical_and.reduce([code[column[i]] == i for i in items])
        ].sum()
        for items in result.items
    ]
    np.testing.assert_allclose(result.total, sums, rtol=1e-12)


def test_as_sliceline():
    """Match sliceline 0.3.0, which also returns slices equal to the last one."""
    for case in known_answers("analysis", "sliceline"):
        code, column = coded([np.array(values) for values in case["columns"]])
        result = search(
            code,
            column,
            np.array(case["errors"]),
            most=case["most"],
            levels=case["levels"],
            least=case["least"],
            alpha=case["alpha"],
        )
        theirs = case["scores"][: case["most"]]
        np.testing.assert_allclose(result.score, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("errors", [[], [0.0, 0.0]])
def test_without_errors_there_are_no_slices(errors):
    code = np.zeros((1, len(errors)), np.int32)
    result = search(code, np.zeros(1, np.int32), np.array(errors), most=3, levels=2, least=1)
    assert result.items == []


def planted(n=4000, seed=0):
    """Answers that are wrong more often at night in the rain, and a column without influence."""
    r = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "datum_id": [f"d{i:05d}" for i in r.permutation(n)],
            "weather": r.choice(["rain", "sun", "fog"], n),
            "hour": r.integers(0, 24, n),
            "speed": r.random(n) * 130,
            "idle": r.choice(["a", "b"], n),
            "camera": [None if one < 0.2 else "left" for one in r.random(n)],
        }
    )
    bad = (table["weather"] == "rain").to_numpy() & (table["hour"] < 6).to_numpy()
    wrong = r.random(n) < np.where(bad, 0.6, 0.1)
    truth = r.integers(0, 2, n)
    answers = pl.DataFrame(
        {
            "datum_id": table["datum_id"],
            "actual": truth,
            "predicted": np.where(wrong, 1 - truth, truth),
        }
    )
    return table, answers


def test_a_planted_slice_is_named_first_and_its_parts_are_not_padded():
    table, answers = planted()
    result = ee.find_slices(answers, datums=table.drop("speed"), metrics=["Accuracy"], draws=50)
    first = result.frame.row(0, named=True)
    assert first["slice"].startswith("weather = rain and")
    assert "hour" in first["slice"]
    assert not any("idle" in one or "camera" in one for one in result.frame["slice"][:3])
    assert first["p_adjusted"] < 1e-6
    inside = table.sql(f"select datum_id from self where {first['where']}")["datum_id"]
    own = answers.filter(pl.col("datum_id").is_in(inside.implode()))
    assert first["size"] == own.height
    assert first["value"] == (own["actual"] == own["predicted"]).mean()
    rest = answers.filter(~pl.col("datum_id").is_in(inside.implode()))
    assert first["elsewhere"] == (rest["actual"] == rest["predicted"]).mean()
    assert first["lower"] < first["value"] < first["upper"]


def weighted(n=400, seed=0):
    """Labels that are wrong mostly at x by count, and mostly at y by weight."""
    r = np.random.default_rng(seed)
    at, truth = np.where(np.arange(n) % 4 == 0, "x", "y"), r.integers(0, 2, n)
    wrong = r.random(n) < np.where(at == "x", 0.8, 0.2)
    return pl.DataFrame(
        {
            "datum_id": [f"d{i:03d}" for i in range(n)],
            "actual": truth,
            "predicted": np.where(wrong, 1 - truth, truth),
            "weight": np.where((at == "x") == wrong, 0.01, 10.0),
            "w": at,
        }
    )


def test_losses_are_weighted_as_the_metric_is():
    table = weighted().with_columns(
        weight=pl.when(pl.col("datum_id") == "d007").then(0.0).otherwise("weight")
    )
    result = ee.find_slices(table, metrics=["Accuracy"], draws=20)
    (row,) = result.frame.iter_rows(named=True)
    assert row["slice"] == "w = y"
    assert row["size"] == 299
    assert row["value"] < row["elsewhere"]
    assert row["loss"] == pytest.approx(1 - row["value"], rel=1e-12)
    assert row["loss_elsewhere"] == pytest.approx(1 - row["elsewhere"], rel=1e-12)
    assert any("1 of weight 0" in note for note in result.notes)
    plain = ee.find_slices(table.drop("weight"), metrics=["Accuracy"], draws=20)
    assert plain.frame["slice"].to_list() == ["w = x"]


def test_slices_whose_metric_is_better_are_not_shown():
    """Scores at x are unsure, so log loss is higher there, but so is accuracy."""
    n = 200
    at = np.where(np.arange(n) % 2 == 0, "x", "y")
    right = np.where(at == "x", True, np.arange(n) % 4 == 1)
    score = np.where(at == "x", 0.51, np.where(right, 1.0, 0.49))
    table = pl.DataFrame({"datum_id": range(n), "actual": 1, "1": score, "0": 1 - score})
    options = {
        "datums": pl.DataFrame({"datum_id": range(n), "w": at}),
        "draws": 20,
        "score_columns": ["0", "1"],
    }
    sure = ee.find_slices(table, metrics=["LogLoss", "Accuracy"], **options)
    assert sure.frame["slice"].to_list() == ["w = x"]
    result = ee.find_slices(table, metrics=["Accuracy", "LogLoss"], **options)
    assert len(result) == 0
    assert any("1 slice with" in one and "Accuracy" in one for one in result.notes)


def test_slices_use_the_first_metric_of_the_whole_run():
    folder = Path(__file__).parents[2] / "examples" / "detection"
    tables = [str(folder / f"{side}.parquet") for side in ("predictions", "groundtruths")]
    options = {"datums": folder / "datums.parquet", "draws": 20, "least": 5, "by": ["weather"]}
    run = ee.score(*tables, metrics=["AP", "TIDECounts", "mAP"], by=["weather"],
                   datums=options["datums"])  # fmt: skip
    for metrics in (["AP", "mAP"], ["TIDECounts", "mAP"], None):
        assert ee.find_slices(run, metrics=metrics, draws=20, least=5).metric == "mAP"
    with refused("metric_unfit", ee.ResultError):
        ee.find_slices(*tables, metrics=["AP", "TIDECounts"], **options)


def test_p_belongs_to_the_shown_difference():
    pair = np.random.default_rng(0).normal([0.4, 0.6], 0.1, (500, 2))
    spread = np.std(pair[:, 0] - pair[:, 1], ddof=1)
    assert tests._p(pair, -0.3) == pytest.approx(2 * norm.cdf(-0.3 / spread), rel=1e-6)
    assert tests._p(pair, 0.0) == 1
    assert np.isnan(tests._p(pair, np.nan))


def test_every_condition_selects_its_slice():
    table, _ = planted(seed=1)
    table = table.with_columns(
        pl.when(pl.col("speed") < 5).then(None).otherwise("speed").alias('odd "name"'),
        day=pl.date(2026, 1, 1) + pl.duration(days=pl.col("hour") * 9),
        flag=pl.col("idle") == "a",
    )
    conditions = conditions_of(table.drop("datum_id"), least=1)
    for item, condition in enumerate(conditions.every):
        inside = table.with_row_index().sql(f"select index from self where {condition.sql}")
        own = np.flatnonzero(conditions.code[conditions.column[item]] == item)
        assert sorted(inside["index"].to_list()) == own.tolist(), condition.sql
    covered = (conditions.code >= 0).all(axis=1)
    assert covered.all()  # with least=1, every datum satisfies a condition of every column


def test_conditions_of_odd_columns():
    """NaN is above all numbers in SQL, and must be in no slice."""
    n = 65
    table = pl.DataFrame(
        {
            "speed": [float(i) for i in range(40)] + [float("nan")] * 20 + [None] * 5,
            "few": [1.5, 2.5, float("nan"), None, 1.5] * 13,
            "none": [float("nan")] * 30 + [None] * 35,
            "price": pl.Series([Decimal(i) / 4 for i in range(n)]),
            "when": pl.datetime_range(datetime(2026, 1, 1), interval="1h", eager=True,
                                      end=datetime(2026, 1, 1) + timedelta(hours=n - 1)),
            "clock": [time(i % 24, 0) for i in range(n)],
            "took": [timedelta(minutes=i) for i in range(n)],
            "kind": pl.Series(["a'b", "c"] * 32 + ["d"], dtype=pl.Categorical),
            "select": [i % 3 for i in range(n)],
        }
    )  # fmt: skip
    conditions = conditions_of(table, least=1)
    assert "took" not in {one.column for one in conditions.every}
    assert any("'took'" in note for note in conditions.notes)
    for item, condition in enumerate(conditions.every):
        inside = table.with_row_index().sql(f"select index from self where {condition.sql}")
        own = np.flatnonzero(conditions.code[conditions.column[item]] == item)
        assert sorted(inside["index"].to_list()) == own.tolist(), condition.sql


def test_repeated_ids():
    table, answers = planted(600)
    card = ee.score(answers)
    torn = pl.concat([table, table.head(50).with_columns(weather=pl.lit("hail"))])
    result = ee.find_slices(card, datums=torn, draws=30)
    assert any("datum: 'weather'" in note for note in result.notes)
    assert not any("weather" in one for one in result.frame["slice"])
    repeated = ee.find_slices(card, datums=pl.concat([table, table.head(50)]), draws=30)
    assert repeated.frame.equals(ee.find_slices(card, datums=table, draws=30).frame)
    single = torn.select("datum_id", "weather")
    with refused("repeated_values", column="datum_id", count=100):
        ee.find_slices(card, datums=single)


def test_ids_are_not_row_numbers():
    table, answers = planted(300)
    nameless = ee.score(answers.drop("datum_id"))
    with refused("ids_unmatched", of=300):
        ee.find_slices(nameless, datums=table)
    assert len(ee.find_slices(nameless, datums=table.drop("datum_id"), draws=30).frame.columns)


def test_halves_chosen_by_ids_confirm():
    table, answers = planted()
    result = ee.find_slices(answers, datums=table, confirm=True, draws=50)
    shuffled = ee.find_slices(
        answers.sample(fraction=1.0, shuffle=True, seed=3), datums=table, confirm=True, draws=50
    )
    assert result.frame.equals(shuffled.frame)
    assert result.n < 0.6 * answers.height
    assert "others" in result.notes[0]
    first = result.frame.row(0, named=True)
    assert first["slice"].startswith("weather = rain")


def test_saved_runs_shuffled_tables_and_the_shell(tmp_path, capsys):
    table, answers = planted()
    run = tmp_path / "run"
    ee.score(answers, metrics=["Accuracy"]).save(run)
    table.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "datums.parquet")
    in_memory = ee.find_slices(answers, datums=table, metrics=["Accuracy"])
    loaded = ee.find_slices(run, datums=tmp_path / "datums.parquet")
    assert loaded.frame.equals(in_memory.frame)
    assert main(["slices", str(run), "--datums", str(tmp_path / "datums.parquet"),
                 "--format", "json"]) == 0  # fmt: skip
    printed = json.loads(capsys.readouterr().out)["slices"]
    assert [one["slice"] for one in printed] == in_memory.frame["slice"].to_list()
    assert main(["slices", str(run), "--datums", str(tmp_path / "datums.parquet")]) == 0
    assert "--confirm" in capsys.readouterr().out


def test_one_table_is_searched_by_its_own_columns():
    table, answers = planted()
    both = answers.join(table, on="datum_id")
    result = ee.find_slices(both, by=[], draws=50)
    assert result.frame.row(0, named=True)["slice"].startswith("weather = rain")
    assert not any("predicted" in one or "actual" in one for one in result.frame["slice"])
    some = ee.find_slices(both, datums=table, by=["weather"], draws=50)
    assert set(some.frame["slice"]) <= {"weather = rain", "weather = sun", "weather = fog"}


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Decimal(10, 4), pl.Datetime("us")])
@pytest.mark.parametrize("ids", [True, False])
def test_named_columns_of_numbers_and_times_are_cut(dtype, ids, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    at, actual = rng.random(600), rng.integers(0, 2, 600)
    wrong = rng.random(600) < np.where(at > 0.9, 0.8, 0.1)
    rows = pl.DataFrame({"actual": actual, "predicted": np.where(wrong, 1 - actual, actual)})
    scale = 1e9 if dtype == pl.Datetime else 1
    rows = rows.with_columns(at=pl.Series(at * scale).cast(dtype), half=pl.Series([1, 2] * 300))
    rows = rows.with_row_index("datum_id") if ids else rows
    for by in (["at"], ["half", "at"]):
        result = ee.find_slices(rows, task="classification", by=by, draws=50).frame
        result = result.filter(pl.col("slice").str.contains("^at >= [^ ]+( [^ ]+)?$"))
        assert result["size"].to_list() == [60]
    if dtype == pl.Float64 and ids:
        rows.write_csv(tmp_path / "rows.csv")
        for more in ([], ["--by", "at"]):
            with (tmp_path / "rows.csv").open() as stream:
                monkeypatch.setattr("sys.stdin", stream)
                assert main(["slices", "-", "--task", "classification", *more]) == 0
            assert "at >=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (
            lambda t: t.with_columns(datum_id=pl.lit("x") + pl.col("datum_id")),
            {"code": "ids_unmatched", "of": 300},
        ),
        (lambda t: t.select("datum_id"), {"code": "nothing_to_slice"}),
        (lambda t: t.select("datum_id", name="datum_id"), {"code": "nothing_to_slice"}),
        (
            lambda t: t.drop("datum_id").head(7),
            {"code": "column_missing", "column": "datum_id", "rows": 7, "of": 300},
        ),
    ],
)
def test_refused(change, refusal):
    table, answers = planted(300)
    with refused(**refusal):
        ee.find_slices(ee.score(answers), datums=change(table))


def test_options_refused():
    table, answers = planted(300)
    with refused("column_missing", column="wether"):
        ee.find_slices(answers, datums=table, by=["wether"])
    with pytest.raises(ee.OptionError, match="alpha"):
        ee.find_slices(answers, datums=table, alpha=0)
    with pytest.raises(ee.OptionError, match="levels"):
        ee.find_slices(answers, datums=table, levels=0)
    right = answers.with_columns(predicted="actual")
    with refused("nothing_wrong", ee.ResultError):
        ee.find_slices(right, datums=table)


def test_missing_datums_are_noted():
    table, answers = planted(600)
    result = ee.find_slices(ee.score(answers), datums=table.head(590), draws=50)
    assert any(note.startswith("10 datums") for note in result.notes)


@pytest.mark.parametrize(
    "dtype", [pl.Date, pl.Datetime("ms"), pl.Datetime("us", "Europe/Berlin"), pl.Time]
)
def test_the_condition_of_a_slice_of_times_selects_it(dtype: Any) -> None:
    n = 400
    times = pl.Series([datetime(2020, 1, 1, 1), datetime(2021, 1, 1, 2)] * (n // 2))
    times = times.dt.replace_time_zone("Europe/Berlin") if str(dtype).count("Berlin") else times
    times = times.dt.time() if dtype == pl.Time else times.cast(dtype)
    true = [i // 2 % 2 for i in range(n)]
    table = pl.DataFrame(
        {
            "id": range(n),
            "y_true": true,
            "y_pred": [t if i % 2 else 1 - t for i, t in enumerate(true)],
        }
    ).with_columns(g=times)
    result = ee.find_slices(table, task="classification").frame.row(0, named=True)
    card = ee.score(table, task="classification", where=result["where"], metrics=["Accuracy"])
    assert card.value("Accuracy") == 0.0


def test_a_table_without_columns_of_datums() -> None:
    table = {"y_true": [i % 2 for i in range(100)], "y_pred": [1] * 100}
    with pytest.raises(ee.InputError) as error:
        ee.find_slices(table, task="classification")
    assert error.value.code == "nothing_to_slice"
