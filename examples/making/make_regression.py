"""Write the example tables of regression: sales of shops, and forecasts of them.

The argument is the folder to write to; by default it is ``regression``, in the folder above.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent.parent


def forecasts() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return six series of eight weeks, and forecasts of two more weeks in Nixtla's layout."""
    rng = np.random.default_rng(5)
    weeks, ahead = 8, 14
    rows, history = [], []
    for i in range(6):
        level = rng.lognormal(3, 0.8)
        days = np.arange(weeks * 7 + ahead)
        season = 1 + 0.3 * np.sin(2 * np.pi * days / 7 + i)
        value = (level * season * rng.lognormal(0, 0.15, days.size)).round(2)
        then = days[-ahead:]
        spread = 0.15 * level * (1 + 0.05 * np.arange(ahead))
        found = level * season[-ahead:] + rng.normal(size=ahead) * spread / 3
        series = pl.DataFrame({"ds": days, "y": value}).with_columns(
            unique_id=pl.lit(f"item {i}"),
            ds=pl.lit("2026-01-05").str.to_date() + pl.duration(days=pl.col("ds")),
        )
        history.append(series.head(-ahead).select("unique_id", "ds", "y"))
        rows.append(
            series.tail(ahead).select(
                "unique_id",
                "ds",
                pl.Series("h", then - then[0] + 1),
                "y",
                pl.Series("yhat", found.round(2)),
                pl.Series("yhat-lo-80", (found - 1.28 * spread).round(2)),
                pl.Series("yhat-hi-80", (found + 1.28 * spread).round(2)),
            )
        )
    return pl.concat(history), pl.concat(rows)


def main(folder: Path) -> None:
    """Write ``sales.parquet``, with one row per shop and day, and the forecasts of other series.

    Sales have two horizons and intervals; forecasts come with their training data.
    """
    rng = np.random.default_rng(11)
    shops, days = 12, 20
    usual = rng.lognormal(4, 0.5, shops).repeat(days)
    horizon = np.tile(np.where(np.arange(days) < days // 2, 1, 7), shops)
    target = (usual * rng.lognormal(0, 0.25, usual.size)).round(1)
    spread = usual * np.where(horizon == 1, 0.12, 0.25)
    forecast = (target + rng.normal(size=usual.size) * spread + 0.03 * usual).round(1)
    table = pl.DataFrame(
        {
            "id": np.arange(usual.size),
            "shop": [f"shop {i:02}" for i in range(shops) for _ in range(days)],
            "horizon": horizon,
            "forecast": forecast,
            "actual": target,
            "lower": (forecast - 1.64 * spread).round(1),
            "upper": (forecast + 1.64 * spread).round(1),
            "scale": (usual * 0.28).round(2),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    table.write_parquet(folder / "sales.parquet")
    history, rows = forecasts()
    history.write_parquet(folder / "history.parquet")
    rows.write_parquet(folder / "forecasts.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "regression")
