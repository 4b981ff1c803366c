"""Tally: every measure that is needed, one row a query."""

from __future__ import annotations

import time

import msgspec
import numpy as np

from ... import metrics
from ...ingest.frames import Frames
from ...schemas.arrays import Array
from ...schemas.errors import OptionError
from ...schemas.wording import option
from ...tally.stats import Column, Stats
from ..encoding import Workers
from ..per_datum import StatsTallies, no_labels
from .dialects import Settings
from .encode import Batch, encode_batch
from .metrics.gains import refuse_endless

STATUS = ("scored", "no_relevant", "not_retrieved", "not_judged")
"""Status of a query; the first two enter means, the third if all judged queries count."""


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, match and tally.

    Raises:
        InputError: a document or rank twice in a list, or gains that overflow.
        OptionError: a measure that is undefined for these options.
    """
    begun = time.perf_counter()
    batch = encoded(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch, settings, needs, workers)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return StatsTallies(batch.datums, no_labels(), stats, batch.row, batch.height, seconds)


def scaled_by(needs: frozenset[str]) -> str | None:
    """The column whose highest value in the whole input every part has to know; None for none."""
    scaled = any(metrics.measures("retrieval")[need].scaled for need in needs)
    return "relevance" if scaled else None


def with_highest(settings: Settings, highest: float) -> Settings:
    """Settings of a part of an input in which that column goes up to ``highest``."""
    return msgspec.structs.replace(settings, highest=highest)


def encoded(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Batch:
    """Encode, and check documents, ranks and options.

    Raises:
        InputError: a document or rank twice in a list, or gains that overflow.
        OptionError: a measure that is undefined for these options.
    """
    if settings.ties == "average":
        refuse_unaveraged(needs)
    batch = encode_batch(frames, settings, needs, workers)
    every = metrics.all_metrics("retrieval").values()
    if needs & {need for metric in every if "gains" in metric.params for need in metric.needs}:
        refuse_endless(batch.lists, settings, batch.datums.id)
    return batch


def refuse_unaveraged(needs: frozenset[str]) -> None:
    """Raise OptionError for measures that have no mean over the orders of equal scores."""
    left = {need for need in needs if not metrics.measures("retrieval")[need].averaged}
    if left:
        every = metrics.all_metrics("retrieval").values()
        without = sorted(metric.name for metric in every if left & set(metric.needs))
        raise OptionError(
            f"{option('ties', 'average')}: no formula for the mean over all orders of equal scores"
            f" for {', '.join(without)}; remove these metrics, or write"
            f" {option('ties', 'trec')} or {option('ties', 'input')}.",
            code="metric_unfit",
            option="ties",
            metrics=list(without),
        )


def stats_of(batch: Batch, settings: Settings, needs: frozenset[str], workers: Workers) -> Stats:
    """Compute the columns of all measures, undefined for unjudged queries.

    Queries missing from the run are 0 if the dialect requires it (``Measure.DEFAULT`` of
    ir-measures).
    """
    zero = batch.judged & ~batch.answered
    zero &= settings.rules.missing_zero
    measures = metrics.measures("retrieval")
    columns = {}
    for need in sorted(needs):
        lists = batch.others.get(need, batch.lists)
        made = measures[need](lists, settings, workers)
        columns[need] = tuple(_filled(column, ~batch.judged, np.nan) for column in made)
        columns[need] = tuple(_filled(column, zero, 0.0) for column in columns[need])
    counted = batch.judged if settings.complete else batch.judged & batch.answered
    status = np.where(batch.lists.relevant == 0, 1, 0)
    status[~batch.answered] = 2
    status[~batch.judged] = 3
    return Stats(counted, columns, (STATUS, status.astype(np.int8)))


def _filled(column: Column, queries: Array, value: float) -> Column:
    if not bool(queries.any()):
        return column
    values = column.values.copy()
    values[queries] = value
    return msgspec.structs.replace(column, values=values)
