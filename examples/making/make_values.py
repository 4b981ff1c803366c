"""Make the bundled example of values: scores of translations by two models, from another tool.

    python examples/making/make_values.py [FOLDER]

``small.parquet`` and ``large.parquet`` have one row per segment: a quality score, the latency in
milliseconds and whether a check passed. The values are synthetic, with a fixed seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

N = 240


def tables() -> dict[str, pl.DataFrame]:
    """Return both models on the same segments: the large one is better and slower."""
    rng = np.random.default_rng(8)
    hard = rng.normal(0, 0.06, N)
    document = np.arange(N) // 6
    found = {}
    for name, gain, wait in (("small", 0.0, 180.0), ("large", 0.02, 320.0)):
        score = (0.8 + gain - hard + rng.normal(0, 0.03, N)).clip(0, 1).round(4)
        found[name] = pl.DataFrame(
            {
                "segment_id": np.arange(1, N + 1),
                "document": [f"d{one:02d}" for one in document],
                "language": np.where(document % 2, "de", "fi"),
                "COMET": pl.Series(score).set(pl.Series(rng.random(N) < 0.01), None),
                "latency": rng.gamma(4, wait / 4, N).round(1),
                "passed": score + rng.normal(0, 0.03, N) > 0.76,
            }
        )
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "values")
    folder.mkdir(exist_ok=True)
    for name, table in tables().items():
        table.write_parquet(folder / f"{name}.parquet")
