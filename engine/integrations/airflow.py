"""Airflow 3: an operator that runs a job file, and knows which failures may pass."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import BaseOperator

_STAYS = (1, 2)
"""Exit statuses that trying again does not change: a gate failed, or wrong input."""


class EvaluateOperator(BaseOperator):  # type: ignore[misc]  # untyped if Airflow is not installed
    """Operator that runs a job, see docs/jobs.md, in a separate process: Airflow's workers are
    forks.

    Failures that a retry may fix (another run at work, a full disk, an endpoint that does not
    answer) fail the try; a failed gate and wrong input fail the task.

    Args:
        job: path of the job file; templated, like ``variables``.
        variables: values of its ``[variables]``.
        wait: seconds to wait for another run of the same folder.
        **kwargs: of every operator.

    Returns:
        of ``execute``, kept as XCom: ``folder``, the absolute path of the result, and ``gates``.
    """

    template_fields: Sequence[str] = ("job", "variables")

    def __init__(
        self,
        *,
        job: str,
        variables: Mapping[str, str] | None = None,
        wait: float = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job, self.variables, self.wait = job, dict(variables or {}), wait

    def execute(self, context: Any) -> dict[str, Any]:
        """Run the job.

        Raises:
            AirflowFailException: a gate failed, or the job or its inputs are invalid.
            AirflowException: a temporary failure.
        """
        changes = [f"--set={name}={value}" for name, value in self.variables.items()]
        command = [
            sys.executable,
            "-m",
            "evalengine",
            "run",
            self.job,
            *changes,
            "--wait",
            str(self.wait),
            "--log-format",
            "json",
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            result: dict[str, Any] = {}
            for line in process.stdout:
                self.log.info(line.rstrip())
                result |= _parse_line(line)
        if "folder" in result:  # in the log it is relative to the job file
            result["folder"] = str(
                Path(self.job).absolute().parent / Path(result["folder"]).expanduser()
            )
        status = process.returncode
        if status in _STAYS:
            raise AirflowFailException(f"evalengine ended with {status}: see the log")
        if status:
            raise AirflowException(f"evalengine ended with {status}: see the log")
        return result


def _parse_line(line: str) -> dict[str, Any]:
    """Return the folder and gates in a log line."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return {
        key: record[key]
        for key in ("folder", "gates")
        if isinstance(record, dict) and key in record
    }
