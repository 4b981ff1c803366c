"""Random tables of multilabel classification."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from merging.parts import Case, ids_of


def sets(seed: int) -> Case:
    """Generate a table with lists of labels per datum, some empty, or with a score per label."""
    rng = np.random.default_rng(seed)
    ids, labels = ids_of(rng, 40), ["a", "b", "c"]
    n = len(ids)

    def listed() -> pl.Series:
        chosen = rng.random((n, 3)) < 0.4
        return pl.Series([[labels[i] for i in np.flatnonzero(one)] for one in chosen],
                         dtype=pl.List(pl.String))  # fmt: skip

    columns: dict[str, Any] = {
        "datum_id": ids, "weather": rng.choice(["wet", "dry"], n), "actual": listed(),
    }  # fmt: skip
    options: dict[str, Any] = {"by": ["weather"], "multilabel": True, "average": "samples"}
    if rng.random() < 0.5:
        columns["weight"] = rng.random(n)
    if rng.random() < 0.5:
        columns["predicted"] = listed()
        options["metrics"] = ["Accuracy", "HammingLoss", "F1", "Jaccard", "Counts"]
    else:
        columns |= {f"p_{label}": rng.integers(0, 6, n) / 5 for label in labels}
        options["score_columns"] = "p_*"
        options["metrics"] = ["Accuracy", "HammingLoss", "F1", "ROCAUC", "mROCAUC", "mAP"]
    return Case((pl.DataFrame(columns),), options, tables={"labels": labels})
