"""A tally of classification in parts: what of a part goes to its file, and what stays in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...tally.merging import merge_labels, merged_seconds
from ...tally.merging_units import merge_places
from ...tally.parts import SHOWN, Place, parts_of, things_of_part
from ...tally.scored_parts import ScoredRows
from ...tally.units import Units
from .merging import merge, merge_heads, without_scores
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]


class Bytes(NamedTuple):
    """Bytes on disk of a unit and of a scored label."""

    unit: int
    score: int


def bytes_on_disk(
    metrics: Sequence[Metric],
    settings: Settings,
    needs: frozenset[str],
    heads: Mapping[str, pl.DataFrame],
    n_slices: int,
) -> Bytes:
    """Bytes that a unit and a score take in files, at most, beside those of their columns.

    Args:
        metrics: those of the run.
        settings: the run's settings.
        needs: what is tallied.
        heads: the first rows of every table.
        n_slices: number of slice columns.
    """
    weight = _WEIGHT * any("weight" in head.columns for head in heads.values())
    runs = (1 + n_slices) * (1 + (settings.average == "micro"))
    score = _SCORE + runs * 2 * (_RUN + weight)
    unit = _UNIT + _COLUMN * n_slices + weight
    unit += _FACTS * bool(needs & {"probabilities", "ranks"})
    shown = _shows_datums(metrics, settings)
    return Bytes(unit + _SHOWN_UNIT * shown, score + _SHOWN_SCORE * shown)


_UNIT, _SCORE, _COLUMN, _WEIGHT, _FACTS = 28, 26, 4, 8, 20
_RUN = 8  # of a part's run, and of that of all parts
_SHOWN_UNIT, _SHOWN_SCORE = 60, 30  # where frames show single datums, beside ids as they are


def _shows_datums(metrics: Sequence[Metric], settings: Settings) -> bool:
    """Whether frames show single datums: outcomes, sequences, and examples of cells."""
    examples = settings.examples_given and any("confusion" in metric.needs for metric in metrics)
    return examples or any(metric.frame in _OF_DATUMS for metric in metrics)


_OF_DATUMS = ("examples", "label_errors", "outcomes", "per_datum")


def part_things(tallies: Tallies, settings: Settings, metrics: Sequence[Metric]) -> dict[str, Any]:
    """What is written of the tally of one part, by name.

    Args:
        tallies: of the part.
        settings: the run's settings.
        metrics: those of the run.
    """
    units, scored = tallies.units, tallies.scored
    bare = msgspec.structs.replace(
        tallies,
        units=_without_rows(units),
        scored=None if scored is None else without_scores(scored),
    )
    scores = 0 if scored is None else len(scored)
    things = things_of_part(tallies, bare, ScoredRows(units, scored), scores=scores)
    if _shows_datums(metrics, settings) or tallies.beside:
        scores = tallies.details or any(metric.frame == "label_errors" for metric in metrics)
        # Of sequences, each of which is scored by itself, and of datums that are judged.
        whole = tallies.beside or any(metric.frame == "per_datum" for metric in metrics)
        things[SHOWN] = tallies if whole else _shown(tallies, scores=scores)
    return things


def _shown(tallies: Tallies, *, scores: bool) -> Tallies:
    """What frames that show single datums need of the tally of one part, with scores or without."""
    return msgspec.structs.replace(
        tallies,
        units=msgspec.structs.replace(tallies.units, facts=None, weight=None),
        scored=tallies.scored if scores else None,
    )


def judged(tallies: Tallies, settings: Settings) -> Tallies:
    """The tally that single datums are judged from, in memory: without scores that do not tell.

    Args:
        tallies: of a run, in memory or in files.
        settings: the run's settings.
    """
    if tallies.parts is None:
        return tallies
    bare = tallies.scored
    told = bare is None or not bare.several or settings.multilabel
    if told or tallies.units.truth_start is not None:
        return merge([*tallies.parts.shown()], settings)
    few = (msgspec.structs.replace(part, scored=None) for part in tallies.parts.shown())
    return msgspec.structs.replace(merge([*few], settings), scored=bare)


def _without_rows(units: Units) -> Units:
    """What units are like, without any."""

    def none(column: Array | None) -> Array | None:
        return None if column is None else column[:0]

    return msgspec.structs.replace(
        units,
        datum=none(units.datum),
        key=none(units.key),
        truth=units.truth[:0],
        truth_start=None if units.truth_start is None else np.zeros(1, np.int64),
        hard=none(units.hard),
        hard_score=none(units.hard_score),
        weight=none(units.weight),
        facts=None
        if units.facts is None
        else type(units.facts)(*(column[:0] for column in msgspec.structs.astuple(units.facts))),
    )


def of_parts(files: Sequence[str], place: Place, settings: Settings) -> Tallies:
    """The tally whose parts stand in files.

    Args:
        files: of all parts.
        place: where long runs go.
        settings: the run's settings; unused.

    Raises:
        InputError: parts that do not go together.
    """
    heads, parts, datums = parts_of(files, place)
    bare: list[Tallies] = [head.bare for head in heads]
    labels, codes = merge_labels([one.labels for one in bare])
    if any(code.size != len(labels) for code in codes):
        raise InputError("partitions know different labels: declare all of them with labels=.")
    places = [(one.declared, one.labels) for one in bare]
    return msgspec.structs.replace(
        bare[0],
        datums=datums,
        labels=labels,
        declared=merge_places(places, codes, labels, keyed=bare[0].keyed),
        scored=merge_heads([one.scored for one in bare], [head.scores for head in heads]),
        seconds=merged_seconds(bare),
        beside=max((one.beside for one in bare), key=len),
        parts=parts,
    )
