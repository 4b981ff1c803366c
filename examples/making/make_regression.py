"""Write the example tables of regression: what shops sold, and what was forecast.

Run it with the folder to write to; without one it writes beside itself, in ``regression``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    """Write ``sales.parquet``: a row a shop and day, of two horizons, with intervals."""
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


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "regression")
