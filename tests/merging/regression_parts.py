"""Random tables of regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from merging.parts import Case, ids_of

from evalengine import metrics


def regression(seed: int) -> Case:
    """Generate numbers of many magnitudes with ties, of one target or two, in two tables or one."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 12)
    keys = ["price", "size"][: rng.integers(1, 3)]
    table = pl.DataFrame({"datum_id": ids}).join(
        pl.DataFrame({"label_key": keys}), how="cross", maintain_order="left"
    )
    n = table.height
    target = rng.integers(0, 5, n) * 10.0 ** rng.integers(-2, 3)
    target *= {3: 2.0**600, 4: 2.0**-600}.get(seed % 5, 1.0)  # squares overflow or underflow
    table = table.with_columns(
        prediction=pl.Series(target + rng.normal(size=n).round(int(rng.integers(0, 12)))),
        target=pl.Series(target),
        samples=pl.Series(rng.normal(size=(n, 3)).tolist()),
        lower=pl.Series(target - 1),
        upper=pl.Series(target + rng.random(n)),
        group_id=pl.Series(rng.choice(["a", "b"], n)),
        series=pl.Series(rng.choice(["a", "b"], n)),
        scale=pl.Series(rng.random(n)),
        squared_scale=pl.Series(rng.random(n)),
        **{"q0.1": pl.Series(target - 1), "q0.95": pl.Series(target + rng.random(n))},
    )
    if rng.random() < 0.5:
        table = table.with_columns(weight=pl.Series(rng.choice([0.0, 0.5, 1.0, 3.0], n)))
    table = table.sample(fraction=1, shuffle=True, seed=seed)
    options: dict[str, Any] = {
        "metrics": metrics.names("regression"),
        "n_features": 1,
        "by": ["weather"],
        "dialect": str(rng.choice(["standard", "sklearn"])),
    }
    words = pl.Series(rng.choice(["wet", "dry", "ice"], len(ids)))
    tables = {"datums": pl.DataFrame({"datum_id": ids, "weather": words})}
    if rng.random() < 0.5:
        return Case((table,), options, tables=tables)
    predictions = ["prediction", "lower", "upper", "samples", "q0.1", "q0.95"]
    predicted = table.select("datum_id", "label_key", *predictions)
    true = table.drop(predictions).sample(fraction=0.9, seed=seed)
    return Case((predicted.filter(pl.int_range(pl.len()) > 0), true), options, tables=tables)
