"""History of metrics over time: a folder of Parquet files, or a Delta table.

A run is one file, or one set of rows, under its id; adding it twice has no effect.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..atomic import whole_file
from ..schemas.errors import OptionError, WriteError
from ..schemas.results import METRICS
from .records import Success

if TYPE_CHECKING:
    from deltalake import DeltaTable

RUN_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String,
    "job": pl.String,
    "finished": pl.Datetime("us", "UTC"),
    "evalengine": pl.String,
    "folder": pl.String,
    "task": pl.String,
    "dialect": pl.String,
    "variables": pl.String,
    "gates": pl.String,
}
"""Columns about the run, before those of the metrics frame."""


_ATTEMPTS, _PAUSE = 8, 0.1
"""Attempts to commit to a Delta table after conflicts, and the seconds between."""


def history_rows(
    metrics: pl.DataFrame,
    success: Success,
    *,
    folder: str,
    task: str,
    dialect: str,
    variables: Mapping[str, str],
) -> pl.DataFrame:
    """Return a run's metrics with columns that identify it; label values as text, since tasks
    differ.
    """
    run: dict[str, Any] = {
        "run_id": success.run_id,
        "job": success.job,
        "finished": datetime.fromisoformat(success.finished),
        "evalengine": success.evalengine,
        "folder": folder,
        "task": task,
        "dialect": dialect,
        "variables": json.dumps(dict(variables), sort_keys=True, ensure_ascii=False),
        "gates": success.gates,
    }
    columns = [pl.lit(run[name]).cast(dtype).alias(name) for name, dtype in RUN_COLUMNS.items()]
    own = [
        pl.col(name).cast(pl.Float64 if name == "support" else dtype or pl.String)
        for name, dtype in METRICS.items()
    ]
    return metrics.select(*columns, *own)


def check_history(target: str, form: str) -> None:
    """Check that a history can be written, before any work.

    Raises:
        OptionError: a remote folder of Parquet files, or the library for Delta tables is missing.
    """
    if form == "delta":
        _deltalake()
    elif "://" in target:
        raise OptionError(
            f"outputs.history: {target} is remote, where files cannot be renamed: take"
            ' history_format = "delta", or a local folder.',
            code="remote_folder",
            option="outputs.history",
        )


def append(rows: pl.DataFrame, run_id: str, target: str, form: str, *, again: bool) -> bool:
    """Add a run to a history, atomically.

    Args:
        rows: result of :func:`history_rows`.
        form: ``parquet`` or ``delta``.
        again: replace existing rows with this id; otherwise they are kept if their finish time is
            the same, and replaced if the run has been repeated since.

    Returns:
        whether anything was written.

    Raises:
        WriteError: it could not be written.
    """
    try:
        if form == "delta":
            return _into_delta(rows, run_id, target, again)
        return _into_parquet(rows, run_id, Path(target), again)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise WriteError(f"cannot write history {target}: {error}.") from error


def _into_parquet(rows: pl.DataFrame, run_id: str, folder: Path, again: bool) -> bool:
    path = folder / f"{run_id}.parquet"
    if path.exists() and not again and _as_late(path, rows):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    # Written next to the folder: readers of the folder must not see remains of a crashed run.
    fresh = folder.with_name(f".{folder.name}.{run_id}.{secrets.token_hex(4)}.new")
    for left in folder.parent.glob(f".{escape(folder.name)}.{run_id}.*.new"):
        left.unlink(missing_ok=True)
    with whole_file(path, lasting=True, draft=fresh) as file:
        rows.write_parquet(file)
    return True


def _as_late(path: Path, rows: pl.DataFrame) -> bool:
    """Return whether the rows of a run in a file have the same finish time as these."""
    try:
        stands = pl.read_parquet(path, columns=["finished"], glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False
    return stands["finished"].equals(rows["finished"])


def _into_delta(rows: pl.DataFrame, run_id: str, target: str, again: bool) -> bool:
    delta = _deltalake()
    for left in reversed(range(_ATTEMPTS)):
        try:
            return _commit(delta, rows, run_id, target, again)
        except delta.exceptions.DeltaError as error:
            # Another job made the table, or wrote to it, since this one looked.
            met = isinstance(error, delta.exceptions.CommitFailedError)
            if not met or not left:
                raise WriteError(f"cannot write history {target}: {error}.") from error
            time.sleep(_PAUSE)
    raise AssertionError


def _commit(delta: Any, rows: pl.DataFrame, run_id: str, target: str, again: bool) -> bool:
    # Columns that a later version of evalengine has more are added: null in rows before it.
    if not delta.DeltaTable.is_deltatable(target):
        delta.write_deltalake(target, rows.to_arrow(), mode="append", schema_mode="merge")
        return True
    if not again and _stands(delta.DeltaTable(target), run_id, rows):
        return False
    delta.write_deltalake(
        target,
        rows.to_arrow(),
        mode="overwrite",
        predicate=f"run_id = '{run_id}'",
        schema_mode="merge",
    )
    return True


def _stands(table: DeltaTable, run_id: str, rows: pl.DataFrame) -> bool:
    stands = pl.scan_delta(table).filter(pl.col("run_id") == run_id).collect()
    times = [one["finished"].unique() for one in (stands, rows) if "finished" in one.columns]
    return stands.height > 0 and all(time.equals(times[0]) for time in times)


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        raise OptionError(
            'outputs.history_format = "delta" needs deltalake, which is not installed: pip install'
            " 'evalengine[delta]'.",
            code="package_missing",
            package="deltalake",
        ) from None
    return deltalake
