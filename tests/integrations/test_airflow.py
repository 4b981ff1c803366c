"""The operator, in Airflow if it is installed, and with stand-ins for its classes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .stand_ins import REAL, integration, module, program, standing_in

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of Airflow


class Operator:
    """The part of Airflow's base class that the operator uses."""

    def __init__(self, task_id: str) -> None:
        self.task_id, self.log = task_id, logging.getLogger(task_id)


class Retry(Exception):
    pass


class Fail(Retry):
    pass


@pytest.fixture(params=["stand-in", "airflow"])
def airflow(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The integration, and the classes of the two failures."""
    if request.param == "airflow":
        if not REAL["airflow"]:
            pytest.skip("Airflow is not installed")
        from airflow.exceptions import AirflowException, AirflowFailException

        yield integration("airflow"), AirflowException, AirflowFailException
        return
    exceptions = module(AirflowException=Retry, AirflowFailException=Fail)
    sdk = module(BaseOperator=Operator)
    with standing_in(airflow=module(), airflow__exceptions=exceptions, airflow__sdk=sdk):
        yield integration("airflow"), Retry, Fail


@pytest.mark.slow
def test_a_night_and_its_failures(airflow: Any, folder: Path) -> None:
    own, retry, fail = airflow
    night = own.EvaluateOperator(
        task_id="a", job=str(folder / "job.toml"), variables={"date": "2026-11-19"}
    )
    assert {"job", "variables"} <= {*night.template_fields}
    done = night.execute({})
    assert done["folder"] == str(folder / "runs" / "2026-11-19")
    assert (folder / "runs" / "2026-11-19" / "_SUCCESS").exists()
    night.variables = {"date": "2026-12-24"}
    with pytest.raises(fail, match="ended with 2"):
        night.execute({})
    text = (folder / "job.toml").read_text().replace("0.5]", "0.5, statistic=x]")
    (folder / "job.toml").write_text(text.replace(">= 0.5", "> 1").replace(", statistic=x", ""))
    night.variables = {"date": "2026-11-20"}
    with pytest.raises(fail, match="ended with 1"):
        night.execute({})
    (folder / "runs").rename(folder / "other")
    (folder / "runs").write_text("no folder")
    with pytest.raises((retry, fail), match="ended with 3") as caught:
        night.execute({})
    assert caught.type is retry


@pytest.mark.skipif(not REAL["airflow"], reason="Airflow is not installed")
def test_the_page_s_dag_runs_the_night_before(folder: Path, tmp_path: Path) -> None:
    from airflow.sdk.execution_time import macros

    dag = program("airflow_dag.py", folder / "job.toml", tmp_path)["nightly_evaluation"]
    [task] = dag.tasks
    task.render_template_fields({"ds": "2026-11-20", "macros": macros})
    assert task.execute({})["folder"].endswith("2026-11-19")
