"""Random tables of spans: entities without scores and segments with scores."""

from __future__ import annotations

import numpy as np
import polars as pl

from evalengine import metrics
from evalengine.tasks.spans.metrics import RANKED

from .parts import Case, ids_of


def _side(rng: np.random.Generator, ids: pl.Series, n: int) -> pl.DataFrame:
    start = rng.integers(-2, 8, n)
    return pl.DataFrame(
        {
            "datum_id": ids.gather(rng.integers(0, len(ids) - 1, n)),
            "label_value": rng.choice(["a", "b", "zz"], n),
            "start": start / 2,
            "end": (start + rng.integers(0, 5, n)) / 2,
        }
    )


def _slices(ids: pl.Series, rng: np.random.Generator) -> pl.DataFrame:
    """Make three slices with at least two datums each."""
    words = rng.permutation(["wet", "dry", "ice"] * len(ids))[: len(ids)]
    words[:6] = ["wet", "dry", "ice"] * 2
    return pl.DataFrame({"datum_id": ids, "weather": words})


def entities(seed: int) -> Case:
    """Generate entities, some repeated, overlapping or empty; some datums have none."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    names = [name for name in metrics.names("spans") if name not in RANKED]
    options = {
        "dialect": str(rng.choice(["standard", "seqeval", "nervaluate", "sed"])),
        "metrics": names,
        "by": ["weather"],
    }
    tables = {"datums": _slices(ids, rng)}
    truths = _side(rng, ids, 30)
    predictions = pl.concat([truths.head(20), _side(rng, ids, 20)])
    return Case((predictions, truths), options, tables=tables)


def segments(seed: int) -> Case:
    """Generate segments with tied scores."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    truths = _side(rng, ids, 30)
    predictions = pl.concat([truths.head(20), _side(rng, ids, 30)])
    predictions = predictions.with_columns(score=pl.Series(rng.integers(0, 5, 50) / 4))
    truths = truths.with_columns(ignore=pl.Series(rng.random(30) < 0.2))
    options = {
        "dialect": str(rng.choice(["standard", "activitynet", "thumos", "sed"])),
        "metrics": metrics.names("spans"),
        "score_thresholds": [0.25, 0.5, 0.75],
        "iou_thresholds": [0.3, 0.5, 0.75],
        "by": ["weather"],
    }
    return Case((predictions, truths), options, tables={"datums": _slices(ids, rng)})
