"""Custom metrics: tasks, slices, intervals, comparison, gates, buckets, workers, plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.test_parts import CASES
from own_metrics import metric_functions
from own_metrics.metric_functions import agreement, error_rate, rows_per_datum
from partitions.cases import in_buckets, write_sides
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.jobs.gates import parse_gates
from evalengine.jobs.sources import Part, score_parts
from evalengine.jobs.verdicts import compare_with, judge_gates, means_differ_in_datums, numbers_of
from evalengine.metrics import own as own_metrics
from evalengine.report.summary import headed, sections
from evalengine.schemas.option_values import make_options

MODULE = "own_metrics.metric_functions"


def without_plugins(expression: str) -> str:
    """Evaluate in a process that refuses plugins; return the value, or the code of the error."""
    code = (
        "import evalengine as ee\ntry:\n"
        f"    print({expression})\n"
        "except ee.EvalengineError as error:\n    print(error.code)"
    )
    environment = {
        **os.environ,
        "EVALENGINE_NO_PLUGINS": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def labels(n: int = 300, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "datum_id": rng.permutation(n),
            "actual": true,
            "predicted": np.where(rng.random(n) < 0.7, true, rng.integers(0, 3, n)),
            "source": rng.choice(["a", "b"], n),
            "group": rng.integers(0, 40, n),
        }
    )


def own_rows(card: ee.Scorecard, name: str) -> pl.DataFrame:
    return card.metrics.filter(metric=name)


def test_numbers_intervals_and_slices_equal_the_built_in_metric() -> None:
    card = ee.score(labels(), metrics=["Accuracy", agreement], by="source", intervals=95)
    columns = ["slice_value", "value", "lower", "upper", "support"]
    ours, theirs = (own_rows(card, name).select(columns) for name in ("agreement", "Accuracy"))
    assert_frame_equal(ours, theirs)
    assert card.value("agreement") == card.value("Accuracy")
    assert card.directions == {"Accuracy": "higher", "agreement": "higher"}
    assert not any(headed(one, sections(card)) for one in sections(card))  # one label key only
    assert set(card.per_datum["metric"]) >= {"agreement"}
    correlated = labels().with_columns(
        group=(pl.col("actual") == pl.col("predicted")) * 20 + pl.col("group") // 2
    )
    clustered = ee.score(correlated, metrics=[agreement], cluster="group", intervals=95)
    assert clustered.metrics.height == 1
    assert clustered.metrics["lower"].item() < theirs["lower"][0]


def test_a_ratio_is_a_ratio_of_sums() -> None:
    table = labels().with_columns(weight=pl.Series(np.random.default_rng(1).random(300)))
    wrong = table.filter(pl.col("actual") != pl.col("predicted"))["weight"].sum()
    card = ee.score(table, metrics=[error_rate], by="source", intervals=95)
    assert card.value("error_rate") == pytest.approx(wrong / table["weight"].sum())
    assert card.metrics["lower"].null_count() == 0


@pytest.mark.parametrize("name", [name for name in CASES if name != "seen"])
def test_every_task(name: str) -> None:
    task, draw = CASES[name]
    case = draw(3)
    options = {k: v for k, v in case.options.items() if k not in ("metrics", "limits")}
    card = ee.score(*case.sides, task=task, **case.tables, **options, metrics=[rows_per_datum])
    assert own_rows(card, "rows_per_datum")["value"].drop_nulls().min() >= 1
    assert card.per_datum.filter(metric="rows_per_datum").height == card.read["datums"]


def test_two_tables_are_joined_by_datum() -> None:
    seen: list[list[str]] = []

    @ee.metric(better="higher")
    def found(rows: pl.DataFrame) -> pl.Expr:
        seen.append(rows.columns)
        return (pl.col("label_value") == pl.col("label_value_truth")).any().cast(pl.Float64)

    table = labels()
    sides = (
        table.select("datum_id", label_value="predicted"),
        table.select("datum_id", label_value="actual"),
    )
    card = ee.score(*sides, metrics=["Accuracy", found])
    assert card.value("found") == card.value("Accuracy")
    assert {"datum_id", "label_value", "label_value_truth"} <= {*seen[0]}


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("executor", [None, "processes"])
def test_buckets_and_workers_change_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str | None, ids: bool
) -> None:
    in_buckets(monkeypatch)
    table = tmp_path / "labels.parquet"
    labels().drop([] if ids else "datum_id").write_parquet(table, row_group_size=50)
    how: dict[str, Any] = {"metrics": ["F1", agreement], "by": ["source"], "intervals": 95}
    whole = ee.score(table, **how)
    parts = ee.score(table, **how, memory_limit="900MiB", executor=executor)
    assert (parts.run["buckets"], parts.value("agreement")) == (3, whole.value("agreement"))
    assert_frame_equal(own_rows(parts, "agreement"), own_rows(whole, "agreement"))


@pytest.mark.parametrize("name", ["detection", "retrieval", "regression", "judged", "values"])
def test_buckets_of_other_tasks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    task, draw = CASES[name]
    case = draw(5)
    sides = write_sides(case, tmp_path)
    options = {k: v for k, v in case.options.items() if k not in ("metrics", "limits")}
    how: dict[str, Any] = {**options, **case.tables, "task": task, "metrics": [rows_per_datum]}
    whole = ee.score(*sides, **how)
    parts = ee.score(*sides, **how, memory_limit="1GB")
    assert parts.run["buckets"] == 3
    both = [own_rows(one, "rows_per_datum").sort("slice", "slice_value") for one in (parts, whole)]
    assert_frame_equal(*both, check_exact=True)


def day_parts(folder: Path, table: pl.DataFrame) -> list[Part]:
    parts = []
    for at in range(3):
        path = folder / f"{at}.parquet"
        table[at * 100 : (at + 1) * 100].write_parquet(path)
        parts.append(Part(f"day {at}", str(path), None, None, "key", folder / f"{at}.tally"))
    return parts


@pytest.mark.parametrize("names", [["error_rate"], ["F1", "agreement", "error_rate"]])
def test_custom_metrics_of_saved_partitions_equal_one_run(names: list[str], tmp_path: Path) -> None:
    """The last run reads only saved tallies."""
    given = [name if name == "F1" else f"{MODULE}:{name}" for name in names]
    options = make_options(
        task="classification", metrics=given, by="source", intervals=95, cluster="group"
    )
    table = labels().with_columns(weight=pl.Series([1.0, 2.0, 0.5] * 100))
    parts = day_parts(tmp_path, table)
    whole = ee.score(table, options=options)
    for reused, some in ((0, parts[:2]), (2, parts), (3, parts)):
        card = score_parts(some, options)
        assert card.run["parts"] == {"all": len(some), "reused": reused}
    assert_frame_equal(card.metrics, whole.metrics, check_exact=True)
    assert card.directions == whole.directions
    assert card.options.metrics == tuple(given)
    card.save(tmp_path / "run")
    assert_frame_equal(ee.load(tmp_path / "run").metrics, whole.metrics)


def test_saved_partitions_refuse_functions_without_a_file(tmp_path: Path) -> None:
    @ee.metric
    def here(rows: pl.DataFrame) -> pl.DataFrame:
        return agreement(rows)

    with refused("option_value", option="metrics", value="here"):
        score_parts(
            day_parts(tmp_path, labels()), make_options(task="classification", metrics=[here])
        )


@pytest.mark.parametrize("partition", ["", 'partition = "day"\n'])
def test_a_job_detects_a_changed_function(partition: str, tmp_path: Path) -> None:
    day_parts(tmp_path, labels())
    (tmp_path / "decorator_of_job.py").write_text("""
from functools import wraps


def logged(function):
    @wraps(function)
    def inner(rows):
        return function(rows)

    return inner
""")
    body = """
import evalengine as ee
import polars as pl
from decorator_of_job import logged


@ee.metric(range=(0, 2))
@logged
def wide(rows):
    return rows.select("datum_id", value=(pl.col("actual") == pl.col("predicted")) * 1.0)
"""
    day = "{day}" if partition else "*"
    (tmp_path / "job.toml").write_text(f"""
name = "own"
task = "classification"
metrics = ["wide_of_job:wide"]
baseline = "last"
gates = ["wide >= baseline - 2"]
[inputs]
predictions = "{day}.parquet"
{partition}[outputs]
folder = "runs/{{run_id}}"
""")
    values: list[set[float]] = []
    # Python compares modification times with cached bytecode in whole seconds.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for factor in ("1.0", "2.0", "2.0"):
        (tmp_path / "wide_of_job.py").write_text(body.replace("1.0", factor))
        command = [sys.executable, "-m", "evalengine", "run", "job.toml"]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
        runs = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
        values.append({ee.load(run).value("wide") for run in runs})
        cards = [ee.load(run) for run in runs]
        changed = [any(one.code == "own_metric_changed" for one in card.findings) for card in cards]
        assert sum(changed) == len(runs) - 1
    accuracy = ee.score(labels(), metrics=["Accuracy"]).value("Accuracy")
    assert values == [{accuracy}, {accuracy, 2 * accuracy}, {accuracy, 2 * accuracy}]


@pytest.mark.parametrize("find", [ee.find_slices, ee.find_errors])
def test_findings_by_loss_refuse_custom_metrics(find: Any) -> None:
    table = labels()
    sides = (
        table.select("datum_id", "source", label_value="predicted"),
        table.select("datum_id", label_value="actual"),
    )
    card = ee.score(*sides, metrics=[rows_per_datum], by="source")
    for run in (lambda: find(card), lambda: find(*sides, metrics=["F1", rows_per_datum])):
        with refused("option_unfit", option="metrics", value="rows_per_datum"):
            run()


def test_the_mean_of_0_and_1_is_a_proportion() -> None:
    @ee.metric(range=(0, 1))
    def number(rows: pl.DataFrame) -> pl.DataFrame:
        return agreement(rows).with_columns(pl.col("value").cast(pl.Float64))

    card = ee.score(labels(), metrics=["Accuracy", agreement, number], intervals=95, draws=200)
    rows = card.metrics.select("metric", "lower", "upper").iter_rows()
    intervals = {row[0]: row[1:] for row in rows}
    assert intervals["agreement"] == intervals["Accuracy"] == intervals["number"]
    trials = dict(card.metrics.select("metric", "trials").iter_rows())
    assert (trials["agreement"], trials["number"]) == (300, 300)
    single = ee.score(labels(), metrics=[agreement])
    assert "values_of_0_and_1" not in [one.code for one in single.findings]


def test_a_function_that_workers_cannot_import_is_refused(tmp_path: Path) -> None:
    @ee.metric(better="higher")
    def local(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select("datum_id", value=pl.lit(1.0))

    shortest = ee.metric(lambda rows: rows.select("datum_id", value=pl.lit(1.0)))
    for one in (local, shortest):
        with refused("option_unfit", option="executor"):
            ee.score(labels(), metrics=[one], executor="processes")
        assert ee.score(labels(), metrics=[one]).metrics["value"].item() == 1.0


class TestComparison:
    first, second = labels(), labels(seed=2).with_columns(actual=labels()["actual"])

    def runs(self, folder: Path) -> list[Any]:
        better = self.first.with_columns(
            predicted=pl.when(pl.col("datum_id") < 60).then("actual").otherwise("predicted")
        )
        how: dict[str, Any] = {"metrics": ["Accuracy", agreement], "by": "source"}
        cards = [ee.score(table, **how) for table in (self.first, better)]
        return [*cards, *(card.save(folder / str(i)) for i, card in enumerate(cards))]

    def test_runs_and_saved_runs(self, tmp_path: Path) -> None:
        a, b, saved_a, saved_b = self.runs(tmp_path)
        comparison = ee.compare(a, b)
        loaded = ee.compare(saved_a, saved_b, names=["a", "b"])
        assert_frame_equal(comparison.differences, loaded.differences)
        columns = [
            "slice_value",
            "difference",
            "lower",
            "upper",
            "p",
            "p_adjusted",
            "wins",
            "losses",
        ]
        ours, theirs = (
            comparison.differences.filter(metric=name).select(columns)
            for name in ("agreement", "Accuracy")
        )
        assert_frame_equal(ours, theirs)
        assert comparison.directions["agreement"] == "higher"
        only = ee.compare(a, b, metrics=[agreement]).differences
        assert set(only["metric"]) == {"agreement"}
        assert ee.load(saved_a).run["own_metrics"]["agreement"]["better"] == "higher"

    def test_loading_a_run_imports_nothing(self, tmp_path: Path) -> None:
        *_, saved_a, saved_b = self.runs(tmp_path)
        comparison = f"ee.compare({str(saved_a)!r}, {str(saved_b)!r})"
        assert without_plugins(f"{comparison}.differences['metric'].n_unique()") == "2"

    def test_gates_on_numbers_and_on_a_baseline(self, tmp_path: Path) -> None:
        a, b, *_ = self.runs(tmp_path)
        gates = parse_gates(
            ["agreement >= 0.5", "agreement >= baseline + 0.5", "agreement >= baseline surely"]
        )
        verdicts = judge_gates(
            gates,
            numbers_of(b),
            numbers_of(a),
            compare=compare_with(a, b),
            differ=means_differ_in_datums(a, b),
        )
        assert [one.status for one in verdicts] == ["passed", "failed", "passed"]


BAD = {
    "raises": lambda rows: rows["nothere"],
    "exits": lambda rows: sys.exit(0),
    "text": lambda rows: rows.select("datum_id", value=pl.lit("x")),
    "columns": lambda rows: rows.select("datum_id"),
    "other datums": lambda rows: rows.select(pl.col("datum_id") + 1000, value=pl.lit(1)),
    "other ids": lambda rows: rows.select(pl.col("datum_id").cast(pl.String), value=pl.lit(1)),
    "repeats": lambda rows: pl.concat([rows, rows]).select("datum_id", value=pl.lit(1)),
    "infinite": lambda rows: rows.select("datum_id", value=pl.lit(float("inf"))),
    "range": lambda rows: rows.select("datum_id", value=pl.lit(2.0)),
    "no frame": lambda rows: 3,
    "no denominator": lambda rows: rows.select("datum_id", numerator=1.0, denominator=0.0),
}


@pytest.mark.parametrize("name", BAD)
def test_failing_functions_are_named(name: str) -> None:
    mine = ee.metric(BAD[name], range=(0, 1))
    with refused("own_metric_failed", metric="<lambda>"):
        ee.score(labels(), metrics=["F1", mine])


@pytest.mark.parametrize("weight", [None, 1.0, 2.0])
def test_weights_that_a_custom_metric_does_not_read_are_noted(weight: float | None) -> None:
    rows = labels() if weight is None else labels().with_columns(weight=pl.lit(weight))
    card = ee.score(rows, metrics=["F1", agreement])
    codes = [one.code for one in card.findings]
    assert ("own_metrics_unweighted" in codes) == (weight == 2)


def test_datums_without_a_value_are_missing() -> None:
    @ee.metric(range=(0, 1))
    def some(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.filter(pl.col("datum_id") < 100).select("datum_id", value=pl.lit(0.5))

    row = ee.score(labels(), metrics=[some]).metrics.row(0, named=True)
    assert (row["value"], row["support"], row["scored"]) == (0.5, 300, 100)


@ee.metric(range=(0, 4))
def gap(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the difference of labels plus 1.5; missing if label 0 is predicted."""
    difference = (pl.col("actual") - pl.col("predicted")).abs()
    value = pl.when(pl.col("predicted") > 0).then(difference)
    return rows.select("datum_id", value=value + 1.5)


class TestOptions:
    """Options have the same effect on a custom metric as on a table of its values."""

    table = labels(120)
    values = table.join(gap(table).rename({"value": "gap"}), on="datum_id")

    def both(self, **options: Any) -> list[ee.Scorecard]:
        of_values = {"value_columns": ["gap"], "better": {"gap": "higher"}, **options}
        return [
            ee.score(self.table, metrics=["Accuracy", gap], **options),
            ee.score(self.values.drop("actual", "predicted"), task="values", **of_values),
        ]

    @pytest.mark.parametrize("method", ["bca", "normal", None])
    def test_method(self, method: str | None) -> None:
        rows = [own_rows(one, "gap") for one in self.both(intervals=95, method=method)]
        assert rows[0].select("lower", "upper").equals(rows[1].select("lower", "upper"))

    def test_spread(self) -> None:
        ours, theirs = (
            one.frame("spread") for one in self.both(by="source", spread="source", draws=50)
        )
        assert set(ours["metric"]) == {"Accuracy", "gap"}
        columns = ["lowest", "highest", "difference", "expected", "expected_95"]
        assert ours.filter(metric="gap").select(columns).equals(theirs.select(columns))

    def test_range(self, tmp_path: Path) -> None:
        other = self.table.with_columns(predicted=pl.lit(1))
        a, b = (ee.score(one, metrics=["Accuracy", gap]) for one in (self.table, other))
        row = ee.compare(a, b, metrics=[gap], missing="worst").differences.row(0, named=True)
        missing = self.table.filter(predicted=0).height
        total = own_rows(a, "gap")["value"].item() * (120 - missing)
        assert row["a"] == pytest.approx(total / 120)  # the worst value is 0
        saved = [one.save(tmp_path / name) for name, one in (("a", a), ("b", b))]
        loaded = ee.compare(*saved, metrics=[gap], missing="worst").differences.row(0, named=True)
        assert (loaded["a"], loaded["b"]) == (row["a"], row["b"])

    def test_statistics_of_values(self) -> None:
        @ee.metric
        def same(rows: pl.DataFrame) -> pl.DataFrame:
            return rows.select("datum_id", "value")

        table = pl.DataFrame(
            {"datum_id": range(9), "metric": "m", "value": [i * i for i in range(9)]}
        )
        card = ee.score(table, metrics=["m", same], statistics=["mean", "p95"])
        assert card.value("same.p95") == card.value("m.p95")


def test_invalid_names_are_refused(tmp_path: Path) -> None:
    with refused("option_value", option="metrics"):
        ee.score(labels(), metrics=[metric_functions.plain])
    with refused("option_value", option="metrics"):
        ee.score(labels(), metrics=[f"{MODULE}:plain"])
    with refused("unknown_name"):
        ee.score(labels(), metrics=[f"{MODULE}:nothere"])
    with refused("unknown_name"):
        ee.score(labels(), metrics=["no_such_module_here:nothing"])
    labels().write_parquet(tmp_path / "t.parquet")
    score = f"ee.score({str(tmp_path / 't.parquet')!r}, metrics=['{MODULE}:agreement'])"
    assert without_plugins(score) == "plugins_refused"

    @ee.metric
    def F1(rows: pl.DataFrame) -> pl.DataFrame:
        return rows

    with refused("reserved_name", value="F1"):
        ee.score(labels(), metrics=[F1])


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package with an entry point per group; yield its folder."""
    (tmp_path / "their_code.py").write_text(
        "import evalengine as ee, polars as pl\n"
        "from evalengine.executors.pools import InTurn\n"
        "@ee.metric(better='higher')\n"
        "def theirs(rows):\n    return rows.select('datum_id', value=pl.lit(0.25))\n"
        "def read(path):\n    return pl.read_csv(path, separator='|')\n"
        "def pool(address, threads):\n    return InTurn(threads)\n"
    )
    info = tmp_path / "their_code-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-code\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[evalengine.metrics]\ntheirs = their_code:theirs\n"
        "[evalengine.readers]\nbars = their_code:read\n"
        "[evalengine.executors]\nmine = their_code:pool\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("EVALENGINE_NO_PLUGINS", raising=False)
    own_metrics.plugins.cache_clear()
    yield tmp_path
    own_metrics.plugins.cache_clear()
    sys.modules.pop("their_code", None)


def test_entry_points_are_listed_without_import_and_loaded_when_named(
    plugin: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out.split() == [
        *("metrics", "theirs", "their_code:theirs"),
        *("readers", "bars", "their_code:read"),
        *("executors", "mine", "their_code:pool"),
    ]
    ee.score(labels(), metrics=["F1"])
    assert "their_code" not in sys.modules
    labels().write_csv(plugin / "table.txt", separator="|")
    card = ee.score(f"bars:{plugin}/table.txt", metrics=["theirs", "F1"], executor="mine")
    assert (card.value("theirs"), card.read["datums"]) == (0.25, 300)
    monkeypatch.setenv("EVALENGINE_NO_PLUGINS", "0")  # restores it after the command
    table = plugin / "labels.parquet"
    labels().write_parquet(table)
    assert main(["score", str(table), "--metric", "theirs"]) == 0
    assert main(["--no-plugins", "score", str(table), "--metric", "theirs"]) == 2
    assert main(["--no-plugins", "score", str(table), "--executor", "mine"]) == 2


def test_the_command_finds_a_module_next_to_it(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "metric_here.py").write_text(
        "import evalengine as ee, polars as pl\n"
        "@ee.metric(better='lower')\n"
        "def half(rows):\n    return rows.select('datum_id', value=pl.lit(0.5))\n"
    )
    labels().write_parquet(tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("EVALENGINE_NO_PLUGINS", raising=False)
    how = ["score", "t.parquet", "--metric", "F1,metric_here:half"]
    assert main([*how, "--fail-under", "half <= 0.5"]) == 0
    assert main([*how, "--fail-under", "half <= 0.4"]) == 1


@pytest.mark.parametrize("workers", ["", 'executor = "processes"'])
def test_a_job_finds_a_module_next_to_it_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    in_buckets(monkeypatch)
    monkeypatch.setattr(sys, "path", [*sys.path])
    job, elsewhere = tmp_path / "job", tmp_path / "elsewhere"
    job.mkdir()
    elsewhere.mkdir()
    module = f"metric_of_job_{len(workers)}"
    (job / f"{module}.py").write_text(
        "import evalengine as ee, polars as pl\n"
        "@ee.metric\n"
        "def half(rows):\n    return rows.select('datum_id', value=pl.lit(0.5))\n"
    )
    labels().write_parquet(job / "t.parquet", row_group_size=50)
    (job / "job.toml").write_text(
        f'name = "own"\nmetrics = ["F1", "{module}:half"]\ngates = ["half <= 0.4"]\n{workers}\n'
        '[inputs]\npredictions = "t.parquet"\n[outputs]\nfolder = "out"\n'
        '[options]\nmemory_limit = "900MiB"\n'
    )
    monkeypatch.chdir(elsewhere)
    assert main(["run", "../job/job.toml"]) == 1
    card = ee.load(job / "out")
    assert (card.value("half"), card.run["buckets"]) == (0.5, 3)


def test_equal_module_names_of_two_jobs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(own_metrics, "_JOB_FOLDERS", set())
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "of_two_jobs.py").write_text("")
    for _ in range(2):
        own_metrics.look_in(str(tmp_path / "one"), ["F1", "of_two_jobs:f"])
    assert sys.path.count(str(tmp_path / "one")) == 1
    with pytest.raises(ee.OptionError):
        own_metrics.look_in(str(tmp_path / "two"), ["of_two_jobs:f"])


def above(least: int) -> Any:
    @ee.metric
    def hit(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select("datum_id", value=pl.col("datum_id") > least)

    return hit


def test_a_comparison_warns_about_a_changed_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    labels().write_parquet("t.parquet")
    file = tmp_path / "changed_of_own.py"
    for name in ("a", "b", "c"):
        code = Path(metric_functions.__file__).read_text()
        file.write_text(code if name != "c" else f"{code}# changed")
        score = ["score", "t.parquet", "--metric", "changed_of_own:agreement", "--out", name]
        gates = ["--baseline", "a", "--fail-under", "agreement >= baseline - 0.1"]
        assert main([*score, *(gates if name != "a" else [])]) == 0
        assert ("warning: 'agreement': the file" in capsys.readouterr().out) == (name == "c")
        codes = {one.code for one in ee.load(name).findings}
        assert ("own_metric_changed" in codes) == (name == "c")
    assert not ee.compare("a", "b").warnings
    (warning,) = ee.compare("b", "c").warnings[:1]
    assert warning.startswith("'agreement': the file")


def test_two_functions_with_one_name_are_refused() -> None:
    first, second = above(0), above(200)
    with refused("reserved_name", value="hit"):
        ee.score(labels(), metrics=[first, second])
    assert ee.score(labels(), metrics=[first, first]).value("hit") == 299 / 300


@pytest.mark.parametrize("kind", ["closures", "lambdas"])
def test_tallies_of_different_functions_with_one_name_are_not_merged(kind: str) -> None:
    def lambdas(value: bool) -> Any:
        made = [lambda rows: rows.select("datum_id", value=pl.lit(True)), lambda rows: rows]
        return ee.metric(made[value])

    make = {"closures": above, "lambdas": lambdas}[kind]
    table = labels()
    parts = table.filter(pl.col("datum_id") < 150), table.filter(pl.col("datum_id") >= 150)
    first = ee.plan(table, metrics=[make(0)])
    tallied = first.tally(parts[0])
    ee.merge([tallied, ee.tally(parts[1], metrics=[make(0)])])  # equal code and closure
    second = ee.plan(table, metrics=[make(1)])
    assert second.fingerprint != first.fingerprint
    with refused("other_plan"):
        first.tally(parts[1])  # in this process the name refers to the second function
    if kind == "closures":
        with refused("other_plan", match="other own metrics"):
            ee.merge([tallied, second.tally(parts[1])])
