"""Random tables of every task for tests of intervals: repeated, in another order, clustered."""

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
"""Metrics that others of the task stand for, which are made in the same way in every draw."""
_NUMBERS = ["value", "support", "scored", "reason", *ESTIMATES, "trials", *CORRECTED]


def of_each_kind(name: str, case: Case) -> Case:
    """The case with one metric of those that one module computes from the same needs.

    For what intervals do with a number, whatever it is; that its draws are right is seen of all.
    """
    kinds: dict[Any, str] = {}
    for one in case.options.get("metrics", ()):
        told = metrics.get(CASES[name][0], one)
        module = getattr(getattr(told.compute, "func", told.compute), "__module__", None)
        kind = (told.frame, told.needs, module, told.interval, told.pairs, told.counts)
        kinds.setdefault(kind, one)
    few = {"metrics": [*kinds.values()]} if kinds else {}
    return replace(case, options={**case.options, **few})


def drawn(name: str, seed: int) -> Case:
    """Tables of a task, and metrics that fill the frame ``metrics`` and that the tables carry.

    Boxes of one datum have scores of their own: those of a datum that stands twice rank by datum, a
    weight counts each of them twice where it stands. Without slices in valor-lite and nuscenes, to
    which labels without ground truths have an AP of 0: also those of a slice that a draw has no
    datum of; nuscenes tells ties of datums by their rows, so that there are none.
    """
    case = CASES[name][1](seed)
    asked = case.options.get("metrics")
    task = CASES[name][0]
    if asked is not None:
        kept = [one for one in asked if metrics.get(task, one).frame == "metrics"]
        kept = [one for one in kept if one not in LEFT_OUT.get(task, ())]
        asks = replace(case, options={**case.options, "metrics": kept})
        carried = parts.fitted(asks, task).metrics
        kept = [one.name for one in carried if one.name in kept]
        case = replace(case, options={**case.options, "metrics": kept})
    if task != "detection" and name != "segments":
        return case
    if case.options["dialect"] in ("valor-lite", "nuscenes"):
        case = replace(case, options={**case.options, "by": []})
    found, truths = case.sides
    within = pl.int_range(pl.len()).over("datum_id")
    found = found.with_columns(score=pl.col("score") / 2 + within / 1000)
    if case.options["dialect"] == "nuscenes":
        found = found.with_columns(score=pl.col("score") - pl.int_range(pl.len()) / 1e9)
    return replace(case, sides=(found, truths.drop("annotation_id", strict=False)))


def scored(name: str, case: Case, **options: Any) -> pl.DataFrame:
    """The frame ``metrics`` of a case."""
    given = {**case.options, **options}
    return ee.score(*case.sides, task=CASES[name][0], **case.tables, **given).metrics


def identity(rows: pl.DataFrame) -> list[str]:
    """The columns that say which number a row is."""
    return [column for column in rows.columns if column not in _NUMBERS]


def each_table(case: Case, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Case:
    """The case with every table changed that has datums."""
    tables = dict(case.tables)
    if "datums" in tables:
        tables["datums"] = change(tables["datums"])
    return replace(case, sides=tuple(map(change, case.sides)), tables=tables)


def repeated(case: Case, times: dict[Any, int]) -> Case:
    """Every datum as often as it counts, each time another one, next to the others in order."""
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
    """Datums in another order, the rows of each in their own."""
    ids = case.ids
    places = np.random.default_rng(seed).permutation(len(ids)).tolist()
    place = pl.col(case.datum).replace_strict(dict(zip(ids, places, strict=True)))
    return each_table(case, lambda table: table.sort(place, maintain_order=True))


def clustered(case: Case, of: Callable[[Any], str]) -> Case:
    """The case with a table of datums that tells the cluster of each."""
    ids = pl.Series(case.datum, case.ids, dtype=case.sides[0].schema[case.datum])
    clusters = ids.to_frame().with_columns(
        pl.Series(CLUSTER, [of(one) for one in ids], dtype=pl.String)
    )
    known = case.tables.get("datums")
    if known is not None:
        clusters = known.join(clusters, on=case.datum, maintain_order="left")
    return replace(case, tables={**case.tables, "datums": clusters})


def are_percentiles(ends: np.ndarray, values: np.ndarray, level: float) -> np.ndarray:
    """Whether the ends of each number are percentiles of its resamples, bool [rows].

    Percentiles of few datums are wider: by Student's t of some number of datums below 20.

    Args:
        ends: float64 [rows, 2], NaN without.
        values: float64 [resamples, rows].
    """
    fits = np.isnan(ends).all(axis=1)
    for units in (np.inf, *range(2, 20)):
        z = resample_quantile(level, np.full(1, units), 1)
        low, high = np.nanquantile(values, tails(z)[:, 0], axis=0)
        found = np.stack([low, high], axis=1)
        fits |= np.isclose(ends, found, rtol=1e-9, atol=1e-9).all(axis=1)
    return fits
