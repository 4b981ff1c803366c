"""Evaluate a night in Airflow 3; the date of the run selects the tables.

Retries are for temporary failures: another run at work, or a disk that was full. A failed gate and
wrong input do not change with a retry, so they fail the task at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from evalengine.integrations.airflow import EvaluateOperator

with DAG(
    "nightly_evaluation",
    schedule="15 2 * * *",
    start_date=datetime(2026, 11, 1),
    catchup=True,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
) as nightly_evaluation:
    EvaluateOperator(
        task_id="evaluate",
        job="/srv/evaluation/nightly.toml",
        # Airflow 3 dates a run by the day it is due; its tables are those of the day before.
        variables={"date": "{{ macros.ds_add(ds, -1) }}"},
    )
