"""Values under the user's names: statistics, forms of tables, gaps, directions, gates."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from polars.testing import assert_frame_equal
from refusals import noted, refused

import evalengine as ee
from evalengine.cli import main
from evalengine.evaluation.planner import make_plan
from evalengine.jobs.gates import parse_gate, parse_gates, refuse_unknown
from evalengine.jobs.verdicts import judge_gates, numbers_of
from evalengine.schemas.options import Options
from evalengine.tallies.draws import Draws
from evalengine.tasks.values.metrics import is_share

THREE = {"datum_id": [1, 2, 3], "metric": ["COMET"] * 3, "value": [0.5, 1.5, 4.0]}
EVERY = ["mean", "sum", "median", "std", "min", "max", "p5", "p95", "p99.9"]


def long(**changed: Any) -> pl.DataFrame:
    return pl.DataFrame(THREE | changed, strict=False)


def wide(n: int, seed: int, gaps: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.normal(3, 2, n), rng.exponential(100, n), rng.random(n) < 0.7
    table = pl.DataFrame(
        {"datum_id": rng.permutation(n), **dict(zip("xyz", values, strict=True))}
    ).with_columns(lang=pl.Series(rng.choice(["de", "fr"], n)))
    gone = pl.Series(rng.random(n) < gaps)
    return table.with_columns(y=pl.when(~gone).then("y"))


def numpy_statistics(values: np.ndarray) -> dict[str, float]:
    result = {
        "mean": values.mean(),
        "sum": values.sum(),
        "median": np.median(values),
        "std": values.std(ddof=1) if values.size > 1 else math.nan,
        "min": values.min(),
        "max": values.max(),
    }
    return result | {
        name: np.percentile(values, float(name[1:])) for name in EVERY if name[0] == "p"
    }


@pytest.mark.parametrize("seed", range(12))
def test_statistics_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = wide(int(rng.integers(1, 60)), seed, gaps=0.2)
    card = ee.score(table, task="values", statistics=EVERY, by="lang")
    for row in card.metrics.iter_rows(named=True):
        rows = table if row["slice"] is None else table.filter(lang=row["slice_value"])
        values = rows[row["metric"]].cast(pl.Float64).drop_nulls().to_numpy()
        want = numpy_statistics(values)[row["statistic"]] if values.size else math.nan
        assert (row["value"] is None) == math.isnan(want)
        assert row["value"] is None or row["value"] == pytest.approx(want, rel=1e-11, abs=1e-11)
        assert (row["support"], row["scored"]) == (rows.height, values.size)


@pytest.mark.parametrize("seed", range(6))
def test_equal_weights_change_nothing_and_others_count(seed: int) -> None:
    table, rng = wide(30, seed), np.random.default_rng(seed)
    plain = ee.score(table, task="values", statistics=[*EVERY]).metrics
    same = ee.score(table.with_columns(weight=0.25), task="values", statistics=EVERY).metrics
    left, right = (frame.filter(pl.col("statistic") != "sum")["value"] for frame in (plain, same))
    assert left.to_numpy() == pytest.approx(right.to_numpy(), rel=1e-12)
    weight = rng.random(30)
    card = ee.score(
        table.with_columns(weight=weight), task="values", statistics=["mean", "sum", "std", "p30"]
    )
    x = table["x"].to_numpy()
    mean = np.average(x, weights=weight)
    assert card.value("x") == pytest.approx(mean)
    assert card.value("x.sum") == pytest.approx((x * weight).sum())
    spread = np.average((x - mean) ** 2, weights=weight) * 30 / 29
    assert card.value("x.std") == pytest.approx(math.sqrt(spread))
    order = np.argsort(x)
    below = np.cumsum(weight[order]) - weight[order]
    above = weight.sum() - below - weight[order]
    assert card.value("x.p30") == pytest.approx(np.interp(0.3, below / (below + above), x[order]))


def test_long_and_wide_tables_are_the_same() -> None:
    table = wide(50, 1, gaps=0.3)
    how: dict[str, Any] = {"statistics": EVERY, "by": ["lang"], "intervals": 0.95, "draws": 40}
    table = table.with_columns(pl.col("z").cast(pl.Float64))
    narrow = table.unpivot(["x", "y", "z"], index=["datum_id", "lang"], variable_name="metric")
    one, other = ee.score(narrow, **how), ee.score(table, task="values", **how)
    assert one.task == "values"
    assert_frame_equal(one.metrics, other.metrics)
    assert_frame_equal(one.per_datum, other.per_datum)


def test_a_share_of_datums_has_wilsons_interval() -> None:
    table = pl.DataFrame({"ok": [True] * 8 + [False] * 2, "points": [1.0] * 8 + [0.5] * 2})
    rows = {
        row["metric"]: row
        for row in ee.score(table, task="values", intervals=95).metrics.iter_rows(named=True)
    }
    assert rows["ok"]["lower"] == pytest.approx(0.490162, abs=1e-6)  # Wilson, 8 of 10
    assert rows["ok"]["upper"] == pytest.approx(0.943318, abs=1e-6)
    assert rows["points"]["lower"] != pytest.approx(rows["ok"]["lower"])


def test_differences_of_shares_are_tangos_only_of_unweighted_means() -> None:
    """40 of 40 against none: [0.82, 1]. One weight of 1000 reduces it to 1.08 effective datums."""
    runs = [pl.DataFrame({"ok": [right] * 40}) for right in (False, True)]
    how: dict[str, Any] = {"task": "values", "statistics": ["mean", "median", "max", "min"]}

    def bounds_of(*tables: pl.DataFrame) -> dict[str, tuple[float | None, float | None]]:
        rows = ee.compare(*tables, **how, draws=50).differences
        return {
            name: (low, high)
            for name, low, high in rows.select("statistic", "lower", "upper").rows()
        }

    result = bounds_of(*runs)
    assert result.pop("mean") == (pytest.approx(0.824757, abs=1e-6), 1.0)
    assert {*result.values()} == {(None, None)}
    weight = pl.Series("weight", [1000.0] + [1.0] * 39)
    assert {*bounds_of(*(run.with_columns(weight) for run in runs)).values()} == {(None, None)}


@pytest.mark.parametrize("statistic", ["max", "min", "p100", "p0"])
def test_extreme_values_have_no_interval(statistic: str) -> None:
    how: dict[str, Any] = {"task": "values", "statistics": ["mean", statistic], "draws": 40}
    first, second = wide(60, 1), wide(60, 2)
    for method in (None, "bca", "jackknife"):
        rows = ee.score(first, **how, by="lang", intervals=0.95, method=method).metrics
        bounds_of = rows.filter(pl.col("statistic") == statistic).select(
            "lower", "upper", "se", "draws"
        )
        assert bounds_of.null_count().row(0) == (bounds_of.height,) * 4
        assert rows.filter(statistic="mean", metric="x")["lower"][0] is not None
        defined = rows.filter(pl.col("statistic") == statistic, pl.col("value").is_not_null())[
            "reason"
        ]
        assert defined.null_count() == 0
    result = ee.compare(first, second, **how).differences.filter(statistic=statistic)
    made = result.select("lower", "upper", "se", "detectable")
    assert made.null_count().row(0) == (result.height,) * 4
    assert result["p"].null_count() == 0


QUESTIONS = {
    "booleans": ([True, None, False, True], 3),
    "texts": (["true", "false", "", "True"], 3),
    "integers": ([1, 0, 0, 1], 4),
    "floats": ([1.0, 0.0, None, 1.0], 3),
    "counts": ([1, 0, 0, 2], None),
    "nothing": ([None, None, None, None], None),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_values_of_0_and_1_are_proportions(name: str, shape: str) -> None:
    value, trials = QUESTIONS[name]
    table = pl.DataFrame({"datum_id": range(4), "v": value})
    how: dict[str, Any] = {"task": "values", "intervals": 95, "value_columns": ["v"]}
    if shape == "long":
        table = table.with_columns(metric=pl.lit("v")).rename({"v": "value"})
        del how["value_columns"]
    card = ee.score(table, **how)
    (row,) = card.metrics.iter_rows(named=True)
    assert row["trials"] == trials
    notes = [one for one in card.findings if one.code == "values_of_0_and_1"]
    assert len(notes) == (name in ("integers", "floats"))
    for one in ({"weight": [2.0, 1.0, 1.0, 1.0]}, {"datum_id": [0, 0, 1, 2], "epoch": range(4)}):
        changed = table.with_columns(**{key: pl.Series(some) for key, some in one.items()})
        assert ee.score(changed, **how).metrics["trials"].to_list() == [None]


def test_tables_of_nights_are_proportions_if_all_of_them_are() -> None:
    values = [[True, False], [1, 2], [None, None]]
    nights = [
        ee.score(pl.DataFrame({"datum_id": [2 * i, 2 * i + 1], "v": some}), value_columns=["v"])
        for i, some in enumerate(values)
    ]
    tallies = [night.tallied.tallies for night in nights]
    does, settings = nights[0].tallied.plan.does, nights[0].tallied.plan.settings
    for some, share in (([0, 2], True), ([0, 1], False), ([2], False)):
        whole = does.merge([tallies[i] for i in some], settings)
        assert is_share(whole.stats, "v") is share


@pytest.mark.parametrize("weighs", [False, True])
def test_statistics_of_resamples_are_those_of_repeated_rows(weighs: bool) -> None:
    table = pl.DataFrame({"datum_id": range(6), "v": [1.0, 2.0, 4.0, 8.0, 4.0, -1.0]})
    weight = np.array([0.5, 2.0, 1.0, 0.25, 3.0, 0.0])
    how: dict[str, Any] = {"value_columns": ["v"], "statistics": EVERY}
    own = {"weight": weight} if weighs else {}
    card = ee.score(table.with_columns(**own), **how, intervals=0.95, draws=20)
    tallied = card.tallied
    view = tallied.plan.does.view(tallied.tallies, tallied.plan.settings)
    draws = Draws(0, 0, 20, tallied.tallies.datums.keys)
    (metric,) = tallied.plan.metrics
    found = metric.compute(view.drawn(draws), tallied.plan.settings)
    for d in range(20):
        rows = np.arange(6).repeat(draws.weights[:, d])
        again = table[rows].with_columns(datum_id=pl.int_range(rows.size))
        own = {"weight": pl.Series(weight[rows])} if weighs else {}
        want = {} if not rows.size else _values_of(ee.score(again.with_columns(**own), **how))
        for cells in found:
            value = cells.columns["value"][d]
            expected = want.get(cells.columns["statistic"])
            assert value == pytest.approx(math.nan if expected is None else expected, nan_ok=True)


def _values_of(card: ee.Scorecard) -> dict[str, float]:
    return dict(card.metrics.select("statistic", "value").iter_rows())


def _renumbered(table: pl.DataFrame) -> pl.DataFrame:
    """Renumber the datums, which changes their order."""
    return table.with_columns(datum_id=-pl.col("datum_id"))


class TestTables:
    def test_the_task_is_inferred_from_the_columns(self) -> None:
        assert ee.score(long()).value("COMET") == 2.0
        judged = long().with_columns(metric=pl.lit("Bias"), verdict=pl.lit("yes"))
        assert ee.score(judged, metrics=["Bias"]).task == "judged"
        labels = long(actual=["a", "b", "a"], predicted=["a", "b", "b"])
        assert ee.score(labels).task == "classification"

    def test_columns_by_default_are_numbers_but_ids_weights_and_slices(self) -> None:
        table = wide(10, 0).with_columns(
            weight=1.0, row_id=1, age=pl.int_range(10), note=pl.lit("")
        )
        card = ee.score(table, task="values", by="age")
        assert card.metrics["metric"].unique().sort().to_list() == ["x", "y", "z"]
        noted(card, "columns_of_values", columns=["x", "y", "z"])
        assert not ee.score(table, value_columns=["y"]).findings

    @pytest.mark.parametrize(
        ("values", "mean", "scored"),
        [
            ([1.0, math.nan, None], 1.0, 1),
            (["1", "NA", "3"], 2.0, 2),
            (["True", "false", "True"], 2 / 3, 3),
            ([True, None, False], 0.5, 2),
            ([None, None, None], None, 0),
        ],
        ids=["nan", "texts", "words", "booleans", "nothing"],
    )
    def test_missing_values_and_words(self, values: list[Any], mean: Any, scored: int) -> None:
        card = ee.score(long(value=values), task="values")
        row = card.metrics.row(0, named=True)
        assert (row["value"], row["support"], row["scored"]) == (mean, 3, scored)
        if scored < 3:
            noted(card, "values_missing", metrics={"COMET": 3 - scored})

    def test_a_datum_without_a_row_is_not_a_missing_value(self) -> None:
        table = pl.concat([long(), long(metric=["other"] * 3).head(1)])
        card = ee.score(table)
        assert card.metrics.filter(metric="other").select("support", "scored").row(0) == (1, 1)
        noted(card, "metric_absent", metrics={"other": 2})

    def test_repeated_rows_are_averaged_if_a_column_distinguishes_them(self) -> None:
        twice = long(datum_id=[1, 1, 2])
        with refused("repeated_values", key=["datum_id", "metric"]):
            ee.score(twice)
        for name in ("epoch", "sample"):
            card = ee.score(twice.with_columns(pl.Series(name, [1, 2, 1])))
            assert card.value("COMET") == (1.0 + 4.0) / 2
            noted(card, "values_averaged", count=2)
        with refused("repeated_values"):
            ee.score(twice.with_columns(epoch=1))

    def test_order_of_rows_changes_no_bit(self) -> None:
        rng = np.random.default_rng(3)
        table = pl.DataFrame(
            {
                "datum_id": rng.integers(0, 20, 200),
                "epoch": np.arange(200),
                "metric": ["m"] * 200,
                "value": rng.normal(size=200) * 10.0 ** rng.integers(-8, 8, 200),
            }
        )
        self.same_in_any_order(table)

    def test_ties_of_unequal_weights_are_in_one_order(self) -> None:
        rng = np.random.default_rng(4)
        ids, values = range(50), rng.integers(0, 4, 50)
        table = pl.DataFrame({"datum_id": ids, "metric": "m", "value": values})
        self.same_in_any_order(table.with_columns(weight=pl.Series(rng.random(50))))

    def same_in_any_order(self, table: pl.DataFrame) -> None:
        one, other = (
            ee.score(some, statistics=EVERY).metrics
            for some in (table, _renumbered(table).sample(fraction=1, shuffle=True, seed=1))
        )
        assert_frame_equal(one, other, check_exact=True)

    def test_odd_names_are_kept(self) -> None:
        names = ["a b", "a.p95", "x,none", "A", "a", "recall@5", "mean", "Mean"]
        table = pl.DataFrame({name: [float(i), i + 1.0] for i, name in enumerate(names)})
        card = ee.score(table, task="values", statistics=["mean", "p95"])
        assert [card.value(name) for name in names] == [i + 0.5 for i in range(8)]
        assert card.value("a.p95.p95") == pytest.approx(1.95)
        again = ee.score(table, task="values", metrics=["recall@5", "Mean"])
        assert again.value("recall@5") == 5.5
        assert again.metrics.height == 2
        (verdict,) = judge_gates([parse_gate("'a b' <= 0.5")], numbers_of(card))
        assert verdict.status == "passed"

    def test_empty_tables_have_no_numbers(self) -> None:
        card = ee.score(long().clear(), intervals=95)
        assert card.metrics.height == 0

    @pytest.mark.parametrize(
        ("options", "code", "facts"),
        [
            ({"metrics": ["COMTE"]}, "unknown_name", {"value": "COMTE"}),
            ({"better": {"COMTE": "lower"}}, "unknown_name", {"option": "better"}),
            ({"better": {"COMET": "up"}}, "unknown_name", {"value": "up"}),
            ({"statistics": ["p101"]}, "option_value", {"option": "statistics"}),
            ({"statistics": ["mode"]}, "option_value", {"value": "mode"}),
            ({"statistics": []}, "option_value", {}),
            ({"value_columns": ["weight"]}, "reserved_name", {"column": "weight"}),
            ({"value_columns": ["nothere"]}, "column_missing", {}),
        ],
    )
    def test_refusals(self, options: dict[str, Any], code: str, facts: dict[str, Any]) -> None:
        with refused(code, **facts):
            ee.score(long().with_columns(weight=1.0), task="values", **options)

    @pytest.mark.parametrize(
        ("value", "code"), [([1.0, math.inf, 2.0], "not_finite"), (["1", "x", "3"], "wrong_dtype")]
    )
    def test_values_that_are_not_numeric(self, value: list[Any], code: str) -> None:
        with refused(code):
            ee.score(long(value=value), task="values")


class TestVerdicts:
    def test_gates_by_the_users_names(self) -> None:
        card = ee.score(
            wide(400, 2), task="values", statistics=["mean", "p95"], intervals=95, by="lang"
        )
        gates = parse_gates(["x >= 2.5 surely", "y.p95 <= 1", "z[lang=*] >= 0.5", "x.p95 >= 5"])
        refuse_unknown(gates, make_plan(Options(), "values"))
        result = [one.status for one in judge_gates(gates, numbers_of(card))]
        assert result == ["passed", "failed", "passed", "passed", "passed"]

    def test_a_command_with_a_gate(self, tmp_path: Path) -> None:
        table = tmp_path / "scores.csv"
        wide(300, 4).write_csv(table)
        how = ["score", str(table), "--values", "x,z", "--statistic", "mean,p95"]
        assert main([*how, "--fail-under", "x >= 2 surely"]) == 0
        assert main([*how, "--fail-under", "x.p95 <= 1"]) == 1
        assert main([*how, "--fail-under", "w >= 1"]) == 2

    def test_comparisons_say_better_only_for_a_known_direction(self) -> None:
        first = wide(200, 5)
        second = first.with_columns(
            x=pl.col("x") + pl.Series(np.random.default_rng(1).random(200)), y=pl.col("y") * 2
        )
        result = ee.compare(first, second, task="values", better={"x": "lower"})
        assert result.directions == {"x": "lower", "y": "neither", "z": "neither"}
        assert re.search(r"(better|worse)\s+than", str(result))
        unknown = ee.compare(first, second, task="values")
        assert {*unknown.directions.values()} == {"neither"}
        assert not re.search(r"(better|worse)\s+than", str(unknown))

    def test_missing_values_of_comparisons(self) -> None:
        first = wide(100, 6)
        second = first.with_columns(
            z=pl.when(pl.int_range(100) >= 20).then("z"), x=pl.col("x") + pl.int_range(100) / 100
        )
        kept = {"task": "values", "better": {"z": "higher", "x": "higher", "y": "lower"}}
        rows = ee.compare(first, second, **kept).differences
        row = rows.filter(metric="z").row(0, named=True)
        assert (row["missing_a"], row["missing_b"], row["coverage"]) == (0, 20, 0.8)
        worst = ee.compare(first, second, **kept, metrics=["z"], missing="worst").differences
        want = first["z"].tail(80).sum() / 100
        assert worst["b"].item() == pytest.approx(want)
        with refused("option_value", option="missing"):
            ee.compare(first, second, **kept, missing="worst")

    def test_saved_runs_compare_and_report(self, tmp_path: Path) -> None:
        how = {"task": "values", "better": {"fluency": "higher"}, "statistics": ["mean", "p95"]}
        runs = []
        for seed in (7, 8):
            table = wide(60, seed).sort("datum_id").rename({"x": "fluency"})
            runs.append(ee.score(table, **how).save(tmp_path / str(seed)))
        result = ee.compare(*runs)
        assert result.directions["fluency"] == "higher"
        assert set(result.differences["statistic"]) == {"mean", "p95"}
        ee.report(ee.load(runs[0]), tmp_path / "page.html")
        assert "fluency" in (tmp_path / "page.html").read_text()


def test_a_statistic_that_was_not_computed_is_named_with_the_option() -> None:
    card = ee.score(pl.DataFrame({"datum_id": [1], "metric": "latency", "value": 2.0}))
    with refused("unknown_name", value="latency.p95") as raised:
        card.value("latency.p95")
    assert "statistics" in str(raised.value)


def test_a_metric_of_only_one_run_is_named() -> None:
    first = pl.DataFrame(
        {"datum_id": range(30), "s": np.linspace(0, 1, 30), "ok": [True, False] * 15}
    )
    result = ee.compare(first, first.rename({"s": "S"}), task="values")
    (note,) = [one for one in result.notes if "not all runs" in one]
    assert "s of a" in note
    assert "S of b" in note
    same = ee.compare(first, first, task="values")
    assert not [one for one in same.notes if "not all runs" in one]


def test_markers_of_missing_values(tmp_path: Path) -> None:
    value = np.where(np.arange(200) % 10 == 0, -999, np.arange(200) / 200)
    table = pl.DataFrame({"datum_id": np.arange(200), "COMET": value, "cost": value + 1000})
    for how in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch")}):
        table.write_parquet(tmp_path / "t.parquet")
        card = ee.score(tmp_path / "t.parquet", value_columns=["COMET", "cost"], **how)
        noted(card, "sentinel_values", metric="COMET", count=20, severity="warning")
    wide = table.with_columns(COMET=pl.when(value > 0).then(value * 2000).otherwise(-999))
    for fair in (wide, table.with_columns(COMET=pl.lit(-999.0)), table[:11]):
        card = ee.score(fair, value_columns=["COMET"])
        assert "sentinel_values" not in {one.code for one in card.findings}


@pytest.mark.parametrize("seed", range(3))
def test_markers_are_those_of_all_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    in_buckets(monkeypatch)
    rng = np.random.default_rng(seed)
    common = rng.integers(1, 5, 400).astype(float)
    rows = {
        "fair": np.r_[common, [99] * 4, [150] * 4],
        "rare": np.r_[common, [99] * 3, [-99] * 2, [3] * 3],
        "two": np.r_[common, [999] * 3, [-99] * 4, [2]],
        "percent": np.r_[np.resize([98.1, 98.2], 400), [99.0] * 8],
    }
    table = pl.DataFrame({"datum_id": rng.permutation(408), **rows})
    table.write_parquet(tmp_path / "t.parquet")
    for how in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch")}):
        card = ee.score(tmp_path / "t.parquet", task="values", value_columns=list(rows), **how)
        marks = [one.facts for one in card.findings if one.code == "sentinel_values"]
        assert [(one["metric"], one["value"], one["count"]) for one in marks] == [
            ("rare", "99.0", 3),
            ("two", "-99.0", 4),
            ("two", "999.0", 3),
        ]
        assert ("buckets" in card.run) == bool(how)


def test_columns_of_numbers_with_a_few_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks of missing values do not hide a column; other texts are refused with their row."""
    in_buckets(monkeypatch)
    rows = {"datum_id": range(400), "BLEU": np.arange(400) / 4}
    rows["site"] = ["1", "2", "3", "3b"] * 100
    path = tmp_path / "t.csv"
    for mark in ("NA", "#N/A", "-"):
        marked = np.where(np.arange(400) == 7, mark, (np.arange(400) % 25 / 40).astype(str))
        pl.DataFrame({**rows, "COMET": marked}).write_csv(path)
        for how in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch")}):
            card = ee.score(path, task="values", **how)
            assert card.value("COMET") == pytest.approx((400 * 12 - 7) / 40 / 399)
            assert card.value("BLEU") == 199.5 / 4
            assert card.metrics["metric"].n_unique() == 2
            noted(card, "values_missing", severity="note")
    pl.DataFrame({**rows, "COMET": np.where(marked == "-", "0,3", marked)}).write_csv(path)
    with refused("wrong_dtype", match="row 7: '0,3'", column="COMET"):
        ee.score(path, task="values")


@pytest.mark.parametrize("texts", [["1.5", "2.0", "A+"], ["3.10", "3.11", "pypy"], ["02134", "NA"]])
def test_versions_grades_and_codes_are_not_values(texts: list[str]) -> None:
    column = np.where(np.arange(400) % 20 == 7, texts[-1], np.resize(texts[:-1], 400))
    card = ee.score(pl.DataFrame({"latency": np.arange(400) / 4, "of": column}), task="values")
    assert card.metrics["metric"].unique().to_list() == ["latency"]


def test_the_index_of_a_data_frame_is_not_a_metric(tmp_path: Path) -> None:
    for name in ("", "Unnamed: 0"):
        (tmp_path / "t.csv").write_text(f"{name},comet\n0,0.5\n1,0.25\n")
        card = ee.score(tmp_path / "t.csv", task="values")
        assert card.metrics["metric"].to_list() == ["comet"]
        noted(card, "unread_column", severity="note")
    assert ee.score(tmp_path / "t.csv", value_columns=["Unnamed: 0"]).value("Unnamed: 0") == 0.5
