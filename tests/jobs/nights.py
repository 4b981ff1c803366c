"""Generated folders of a job's nightly runs, written without scoring each night."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

import evalengine as ee
from evalengine.jobs.records import Nights, Success, write_records
from evalengine.jobs.verdicts import Verdict
from evalengine.schemas.options import Options
from evalengine.scorecard.card import Scorecard
from evalengine.statistics.sequences import Night as Observed

FIRST = datetime(2024, 1, 1, tzinfo=UTC)


def base(sites: int = 3, rows: int = 200, **options: object) -> Scorecard:
    """Return the scorecard of a binary classification, sliced by site."""
    rng = np.random.default_rng(0)
    actual = rng.integers(0, 2, rows)
    table = pl.DataFrame(
        {
            "datum_id": range(rows),
            "actual": actual,
            "score": np.clip(0.3 * actual + rng.normal(0.35, 0.25, rows), 0, 1),
            "site": [f"s{i % sites}" for i in range(rows)],
        }
    )
    given = {"by": ["site"], "metrics": ["Accuracy", "ROCAUC"], "intervals": 95, "draws": 20}
    return ee.score(table, **{**given, **options})


def write_night(
    folder: Path,
    card: Scorecard,
    night: int,
    values: np.ndarray | None = None,
    *,
    status: str = "passed",
    job: str = "nightly",
    options: Options | None = None,
    truth: str | None = None,
    metrics: pl.DataFrame | None = None,
    name: str | None = None,
    finished: datetime | None = None,
    verdicts: list[Verdict] | None = None,
    observed: Observed | None = None,
    **details: object,
) -> Path:
    """Write a night's folder, named by its day.

    Args:
        values: values of the metrics frame's rows; intervals are shifted with them.
        truth: digest of the ground truths; empty if unknown.
        observed: observation of a gate with ``always`` on the accuracy.
        **details: further fields of ``job.json``.
    """
    frame = card.metrics if metrics is None else metrics
    if values is not None:
        moved = pl.Series(values) - frame["value"]
        frame = frame.with_columns(pl.col("value", "lower", "upper") + moved)
    day = FIRST + timedelta(days=night)
    digest = {"sha256": f"truth of {night}" if truth is None else truth}
    inputs = {"ground_truths": digest} if truth != "" else {}
    made = Scorecard(
        task=card.task,
        dialect=card.dialect,
        options=options or card.options,
        frames={"metrics": lambda: frame},
        labels=card.labels,
        run={**card.run, "inputs": inputs},
        directions=card.directions,
        read=card.read,
    )
    target = folder / (name or f"{day:%Y-%m-%d}")
    made.save(target)
    gates = verdicts or [Verdict("Accuracy >= 0.6", "", status, None, 0.6)]
    success = Success(
        run_id=f"{job}{night:015d}", job=job, evalengine="0.1.0", started=day.isoformat(),
        finished=(finished or day + timedelta(minutes=5)).isoformat(), gates=status,
    )  # fmt: skip
    nights = None if observed is None else Nights("a", {gates[0].gate: {"a night": observed}})
    write_records(target, {"gates": gates, **details}, None, success, nights=nights)
    return target
