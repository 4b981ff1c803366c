"""MLflow: numbers, frames and the report of a scorecard in a run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mlflow

from evalengine.schemas.options import FIELDS
from evalengine.scorecard.card import Scorecard

FOLDER = "evalengine"
_LONGEST = 500  # of a parameter, everywhere
_AT_ONCE = 1000  # metrics that a server takes in one call


def log_card(
    card: Scorecard,
    *,
    prefix: str = "",
    step: int | None = None,
    frames: bool = True,
    report: bool = True,
    folder: str = FOLDER,
    **flat: Any,
) -> None:
    """Log a scorecard to the active run, or to a new one.

    Args:
        card: result of :func:`evalengine.score`.
        prefix: before the names of numbers.
        step: of the numbers, such as the epoch.
        frames: log the whole result as an artifact, which :func:`evalengine.load` reads: Parquet
            files and ``run.json``.
        report: log ``report.html``, which MLflow shows.
        folder: of the artifacts.
        **flat: selects the numbers: arguments of :meth:`evalengine.Scorecard.to_dict`.
    """
    numbers = [*card.to_dict(prefix, **flat).items()]
    for first in range(0, len(numbers), _AT_ONCE):
        mlflow.log_metrics(dict(numbers[first : first + _AT_ONCE]), step=step)
    mlflow.set_tags({f"{folder}.task": card.task, f"{folder}.dialect": card.dialect})
    # Tags, not parameters: a run may have several scorecards.
    options = {
        name: getattr(card.options, name) for name in FIELDS if name not in ("task", "dialect")
    }
    mlflow.set_tags(
        {
            f"{folder}.{name}": str(value)[:_LONGEST]
            for name, value in options.items()
            if value is not None
        }
    )
    with tempfile.TemporaryDirectory() as place:
        if frames:
            mlflow.log_artifacts(str(card.save(Path(place, "result"))), f"{folder}/result")
        if report:
            mlflow.log_artifact(str(card.to_html(Path(place, "report.html"))), folder)
