"""The dbt project: its model and test, built by dbt with DuckDB if both are installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import evalengine as ee

PROJECT = Path(__file__).parents[2] / "integrations" / "dbt"
PREDICTIONS = pl.DataFrame({"datum_id": [1, 2, 3, 4], "label_value": ["a", "b", "b", "a"]})
TRUTH = pl.DataFrame({"datum_id": [1, 2, 3, 4], "label_value": ["a", "b", "b", "b"]})
TABLES = {"predictions": PREDICTIONS.with_columns(score=pl.lit(1.0)), "ground_truths": TRUTH}


def test_the_model_scores_its_references() -> None:
    space: dict[str, object] = {}
    exec((PROJECT / "models" / "evaluation.py").read_text(), space)
    config = lambda **_: None  # noqa: E731
    config.get = {"options": {"metrics": ["Accuracy"]}}.get  # type: ignore[attr-defined]
    dbt = SimpleNamespace(config=config, ref=TABLES.__getitem__)
    rows = space["model"](dbt, None)  # type: ignore[operator]
    assert rows.column("value").to_pylist() == [0.75]


DBT = Path(sys.executable).with_name("dbt")


@pytest.mark.skipif(
    not DBT.exists() or importlib.util.find_spec("dbt") is None, reason="dbt is not installed"
)
@pytest.mark.parametrize("least", ["0.75", "0.76"])
def test_dbt_builds_and_tests(tmp_path: Path, least: str) -> None:
    project = tmp_path / "dbt"
    shutil.copytree(PROJECT, project)
    schema = project / "models" / "evaluation.yml"
    schema.write_text(schema.read_text().replace("0.75", least))
    for name, table in TABLES.items():
        table.write_parquet(tmp_path / f"{name}.parquet")
        (project / "models" / f"{name}.sql").write_text(
            f"select * from read_parquet('{tmp_path / name}.parquet')"
        )
    (project / "profiles.yml").write_text(
        f"evaluation: {{target: dev, outputs: {{dev: {{type: duckdb, path: '{tmp_path}/e.db'}}}}}}"
    )
    done = subprocess.run(
        [DBT, "build", "--profiles-dir", str(project), "--no-send-anonymous-usage-stats"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if least == "0.75" else 1), done.stdout + done.stderr
    assert f"{least.replace('.', '_')}__Accuracy" in done.stdout
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "e.db")) as base:
        [(value,)] = base.sql("select value from evaluation where metric = 'Accuracy'").fetchall()
    assert value == ee.score(*TABLES.values()).value("Accuracy")
