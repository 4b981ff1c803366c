"""MLflow: numbers, result and report in a run of a file store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evalengine as ee

from .stand_ins import REAL, integration, module, standing_in

EXAMPLES = Path(__file__).parents[2] / "examples" / "classification"
NAMES = ("predictions.parquet", "groundtruths.parquet")


@pytest.fixture(scope="module")
def card() -> ee.Scorecard:
    return ee.score(*(EXAMPLES / name for name in NAMES), metrics=["Accuracy", "F1"])


def test_logged_content(card: ee.Scorecard) -> None:
    logged: dict[str, Any] = {"artifacts": [], "tags": {}, "metrics": []}
    stand_in = module(
        log_metrics=lambda result, step: logged["metrics"].append((result, step)),
        set_tags=lambda result: logged["tags"].update(result),
        log_artifacts=lambda place, folder: logged["artifacts"].append(
            (folder, sorted(one.name for one in Path(place).iterdir()))
        ),
        log_artifact=lambda place, folder: logged["artifacts"].append((folder, Path(place).name)),
    )
    with standing_in(mlflow=stand_in):
        integration("mlflow").log_card(card, prefix="val/", step=3, labels=True)
    assert logged["metrics"] == [(card.to_dict("val/", labels=True), 3)]
    assert logged["tags"]["evalengine.task"] == "classification"
    assert logged["tags"]["evalengine.metrics"] == "('Accuracy', 'F1')"
    (folder, files), report = logged["artifacts"]
    assert folder == "evalengine/result"
    assert {"metrics.parquet", "run.json"} <= {*files}
    assert report == ("evalengine", "report.html")


@pytest.mark.skipif(not REAL["mlflow"], reason="MLflow is not installed")
@pytest.mark.filterwarnings("ignore")
def test_a_file_store(card: ee.Scorecard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        for epoch in (1, 2):
            integration("mlflow").log_card(
                card, prefix="val/", step=epoch, labels=True, report=epoch == 2, frames=epoch == 2
            )
    client = mlflow.MlflowClient()
    result = client.get_run(run.info.run_id).data
    assert result.metrics == card.to_dict("val/", labels=True)
    assert result.tags["evalengine.dialect"] == "standard"
    history = client.get_metric_history(run.info.run_id, "val/Accuracy")
    assert [one.step for one in history] == [1, 2]
    place = client.download_artifacts(run.info.run_id, "evalengine", str(tmp_path))
    assert ee.load(Path(place, "result")).metrics.equals(card.metrics)
    assert "<html" in Path(place, "report.html").read_text()
