"""A night's evaluation in Airflow 3: the run's own date decides which tables are read.

Retries are for failures that may pass: another run at work, a disk that was full (status 3). A
failed gate (1) and bad input (2) stay what they are however often they are tried.
"""

from __future__ import annotations

import subprocess
from datetime import date, datetime, timedelta

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task

JOB = "/srv/evaluation/nightly.toml"


@dag(
    schedule="15 2 * * *",
    start_date=datetime(2026, 11, 1),
    catchup=True,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
)
def nightly_evaluation() -> None:
    """One task."""

    @task
    def evaluate(ds: str | None = None) -> None:
        if ds is None:
            raise AirflowFailException("give the run a logical date: it says which night is meant")
        # Airflow 3 dates a run by the day it is due; its tables are those of the day before.
        night = date.fromisoformat(ds) - timedelta(days=1)
        command = ["evalengine", "run", JOB, "--set", f"date={night}", "--log-format", "json"]
        status = subprocess.run(command, check=False).returncode
        if status in (1, 2):
            raise AirflowFailException(f"evalengine ended with {status}")
        if status:
            raise AirflowException(f"evalengine ended with {status}")

    evaluate()


nightly_evaluation()
