"""Random tables of every task for tests of intervals: repeated, reordered, clustered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from merging import parts
from merging.parts import Case
from merging.test_parts import CASES

import evalengine as ee
from evalengine import metrics
from evalengine.statistics.intervals import resample_quantile, tails

ESTIMATES = ["lower", "upper", "se", "bias", "draws"]
CORRECTED = ["corrected", "corrected_lower", "corrected_upper"]
CLUSTER = "video"
MOST_COPIES = 16
LEFT_OUT = {
    "detection": ["ThresholdAtPrecision", "ThresholdAtRecall", "ThresholdAtCost",
                  "ThresholdAtEqualError", "MCE", "Reliability"],
    "classification": ["ThresholdAtPrecision", "ThresholdAtRecall", "ThresholdAtFPR",
                       "ThresholdAtCost", "ThresholdAtEqualError", "CohenKappaLinear", "MCE"],
    "segmentation": ["BoundaryF1", "HausdorffDistance", "ASSD", "NSD"],
    "text": ["ROUGE2", "ROUGELsum", "chrF"],
}  # fmt: skip
"""Metrics that are skipped because another metric of the task is resampled in the same way."""
_NUMBERS = ["value", "support", "scored", "reason", *ESTIMATES, "trials", *CORRECTED]


def of_each_kind(name: str, case: Case) -> Case:
    """Keep one metric of each group that one module computes from the same needs.

    For tests of intervals of any value; other tests check the resamples of all metrics.
    """
    kinds: dict[Any, str] = {}
    for one in case.options.get("metrics", ()):
        metric = metrics.get(CASES[name][0], one)
        module = getattr(getattr(metric.compute, "func", metric.compute), "__module__", None)
        kind = (metric.frame, metric.needs, module, metric.interval, metric.pairs, metric.counts)
        kinds.setdefault(kind, one)
    few = {"metrics": [*kinds.values()]} if kinds else {}
    return replace(case, options={**case.options, **few})


def random_case(name: str, seed: int) -> Case:
    """Return tables of a task, and the metrics that they allow and that fill ``metrics``.

    Scores within a datum are distinct: boxes of a repeated datum are ranked by datum, but a weight
    counts each box twice at its rank. In valor-lite and nuscenes there are no slices: labels
    without ground truths have an AP of 0, even if a resample has no datum of the slice. There are
    no ties between datums, which nuscenes orders by row.
    """
    case = CASES[name][1](seed)
    asked = case.options.get("metrics")
    task = CASES[name][0]
    if asked is not None:
        names = [one for one in asked if metrics.get(task, one).frame == "metrics"]
        names = [one for one in names if one not in LEFT_OUT.get(task, ())]
        asks = replace(case, options={**case.options, "metrics": names})
        carried = parts.fitted(asks, task).metrics
        names = [one.name for one in carried if one.name in names]
        case = replace(case, options={**case.options, "metrics": names})
    if task != "detection" and name != "segments":
        return case
    if case.options["dialect"] in ("valor-lite", "nuscenes"):
        case = replace(case, options={**case.options, "by": []})
    predictions, truths = case.sides
    within = pl.int_range(pl.len()).over("datum_id")
    predictions = predictions.with_columns(score=pl.col("score") / 2 + within / 1000)
    if case.options["dialect"] == "nuscenes":
        predictions = predictions.with_columns(score=pl.col("score") - pl.int_range(pl.len()) / 1e9)
    return replace(case, sides=(predictions, truths.drop("annotation_id", strict=False)))


def scored(name: str, case: Case, **options: Any) -> pl.DataFrame:
    """Return the frame ``metrics`` of a case."""
    given = {**case.options, **options}
    return ee.score(*case.sides, task=CASES[name][0], **case.tables, **given).metrics


def identity(rows: pl.DataFrame) -> list[str]:
    """Return the columns that identify a row of the frame."""
    return [column for column in rows.columns if column not in _NUMBERS]


def each_table(case: Case, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Case:
    """Apply a function to every table of a case that has datums."""
    tables = dict(case.tables)
    if "datums" in tables:
        tables["datums"] = change(tables["datums"])
    return replace(case, sides=tuple(map(change, case.sides)), tables=tables)


def repeated(case: Case, times: dict[Any, int]) -> Case:
    """Repeat every datum by its count, under new ids, next to each other and in order."""
    assert max(times.values()) < MOST_COPIES
    often = pl.col(case.datum).replace_strict(times, return_dtype=pl.Int64)
    whole = case.sides[0].schema[case.datum].is_integer()

    def copies(table: pl.DataFrame) -> pl.DataFrame:
        return pl.concat(
            table.filter(often > copy).with_columns(
                pl.col(case.datum) * MOST_COPIES + copy
                if whole
                else pl.format("{}#{}", case.datum, pl.lit(copy)).alias(case.datum)
            )
            for copy in range(max(times.values()))
        )

    return each_table(case, copies)


def reordered(case: Case, seed: int) -> Case:
    """Reorder the datums, and keep the order of rows within each."""
    ids = case.ids
    places = np.random.default_rng(seed).permutation(len(ids)).tolist()
    place = pl.col(case.datum).replace_strict(dict(zip(ids, places, strict=True)))
    return each_table(case, lambda table: table.sort(place, maintain_order=True))


def clustered(case: Case, of: Callable[[Any], str]) -> Case:
    """Add a table of datums with the cluster of each."""
    ids = pl.Series(case.datum, case.ids, dtype=case.sides[0].schema[case.datum])
    clusters = ids.to_frame().with_columns(
        pl.Series(CLUSTER, [of(one) for one in ids], dtype=pl.String)
    )
    known = case.tables.get("datums")
    if known is not None:
        clusters = known.join(clusters, on=case.datum, maintain_order="left")
    return replace(case, tables={**case.tables, "datums": clusters})


def are_percentiles(bounds: np.ndarray, values: np.ndarray, level: float) -> np.ndarray:
    """Return whether the bounds of each value are percentiles of its resamples, bool [rows].

    With few datums percentiles are wider: by Student's t of some number of datums below 20.
    """
    fits = np.isnan(bounds).all(axis=1)
    for units in (np.inf, *range(2, 20)):
        z = resample_quantile(level, np.full(1, units), 1)
        low, high = np.nanquantile(values, tails(z)[:, 0], axis=0)
        result = np.stack([low, high], axis=1)
        fits |= np.isclose(bounds, result, rtol=1e-9, atol=1e-9).all(axis=1)
    return fits
