"""Make the tables of the bundled job: three nights of frames, the last one worse at pedestrians.

    python examples/making/make_jobs.py [FOLDER]

writes `night=DATE/predictions.parquet`, `groundtruths.parquet` and `datums.parquet` for three dates
into `examples/jobs/tables/` (or FOLDER). Every night has the frames of the detection example under
new ids, with predictions shifted a little; in the third, most pedestrians in fog are missed. The
seed is fixed: the same versions of NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
SOURCE = HERE / "detection"
SEED = 17
NIGHTS = ("2026-11-19", "2026-11-20", "2026-11-21")
WORSE = NIGHTS[2]
BOX = ("xmin", "ymin", "xmax", "ymax")


def night(date: str, drawn: np.random.Generator) -> dict[str, pl.DataFrame]:
    """Return the three tables of one night."""
    named = (pl.lit(f"{date}_") + pl.col("datum_id")).alias("datum_id")
    tables = {
        name: pl.read_parquet(SOURCE / f"{name}.parquet").with_columns(named)
        for name in ("predictions", "groundtruths", "datums")
    }
    # Ids restart every night, so they would repeat if nights are read together.
    tables["groundtruths"] = tables["groundtruths"].drop("annotation_id")
    predictions = tables["predictions"].join(
        tables["datums"].select("datum_id", "weather"), on="datum_id", how="left",
        maintain_order="left",
    )  # fmt: skip
    rows = predictions.height
    moved = predictions.with_columns(
        (pl.col(low, high) + pl.Series(drawn.normal(0, 0.5, rows).round(2)))
        for low, high in (BOX[0::2], BOX[1::2])
    )
    lost = pl.Series(drawn.uniform(size=rows) < 0.8) if date == WORSE else pl.lit(False)
    missed = lost & (pl.col("label_value") == "pedestrian") & (pl.col("weather") == "fog")
    tables["predictions"] = moved.filter(~missed).drop("weather")
    return tables


def main(folder: Path) -> None:
    """Write all nights."""
    drawn = np.random.default_rng(SEED)
    for date in NIGHTS:
        target = folder / f"night={date}"
        target.mkdir(parents=True, exist_ok=True)
        for name, table in night(date, drawn).items():
            table.write_parquet(target / f"{name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "jobs" / "tables")
