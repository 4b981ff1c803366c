"""A tally of classification in parts: what of a part goes to its file, and what stays in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...tally import stored
from ...tally.datums import Datums
from ...tally.merging import merge_labels, merged_seconds
from ...tally.merging_units import merge_places
from ...tally.parts_view import DATUMS, ROWS, PartRows, Parts, PartsDatums
from ...tally.runs import Place
from ...tally.units import Units
from .merging import merge_heads, without_scores
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]

HEAD = "head"
"""Name of the thing in a part's file that holds what is not rows."""


class Head(msgspec.Struct, frozen=True):
    """What a part tells of its rows.

    Attributes:
        bare: its tally without rows.
        slices: distinct values of each slice column, ascending, which codes stand for.
        datums: how many datums it has.
        scores: how many scored labels.
    """

    bare: Tallies
    slices: tuple[pl.Series, ...]
    datums: int
    scores: int


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


_OF_DATUMS = ("examples", "outcomes")


def part_things(tallies: Tallies, settings: Settings, metrics: Sequence[Metric]) -> dict[str, Any]:
    """What is written of the tally of one part, by name.

    Args:
        tallies: of the part.
        settings: the run's settings.
        metrics: those of the run.
    """
    datums, units, scored = tallies.datums, tallies.units, tallies.scored
    columns = datums.slices.columns
    rows = PartRows(units, scored, tuple(datums.groups(name)[0] for name in columns))
    bare = msgspec.structs.replace(
        tallies,
        datums=Datums(datums.id[:0], datums.slices[:0]),
        units=_without_rows(units),
        scored=None if scored is None else without_scores(scored),
    )
    slices = tuple(datums.slices[name].drop_nulls().unique().sort() for name in columns)
    n_scores = 0 if scored is None else len(scored)
    things = {HEAD: Head(bare, slices, len(datums), n_scores), ROWS: rows}
    if _shows_datums(metrics, settings) or tallies.beside:
        things[DATUMS] = _shown(tallies)
    return things


def _shown(tallies: Tallies) -> Tallies:
    """What frames that show single datums need of the tally of one part."""
    if "per_datum" in tallies.beside:  # of sequences, each of which is scored by itself
        return tallies
    return msgspec.structs.replace(
        tallies,
        units=msgspec.structs.replace(tallies.units, facts=None, weight=None),
        scored=tallies.scored if tallies.details else None,
    )


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


def of_parts(files: Sequence[str], place: Place) -> tuple[Tallies, int]:
    """The tally whose parts stand in files, and how many datums it has.

    Args:
        files: of all parts.
        place: where long runs go.

    Raises:
        InputError: parts that do not go together.
    """
    every: list[Head] = [stored.load(file, HEAD) for file in files]
    filled = [i for i, head in enumerate(every) if head.datums] or [0]
    heads = [every[i] for i in filled]
    bare = [head.bare for head in heads]
    labels, codes = merge_labels([head.bare.labels for head in every])
    if any(code.size != len(labels) for code in codes):
        raise InputError("partitions know different labels: declare all of them with labels=.")
    names, maps = _code_slices([head.slices for head in heads])
    counts = [head.scores for head in heads]
    parts = Parts(
        tuple(files[i] for i in filled), tuple(maps), sum(counts), place.folder, place.rows
    )
    blank, n = bare[0].datums, sum(head.datums for head in heads)
    places = [(one.declared, one.labels) for one in bare]
    whole = msgspec.structs.replace(
        bare[0],
        datums=PartsDatums(None, blank.slices, rows=n, kind=blank.id_dtype, names=tuple(names)),
        labels=labels,
        declared=merge_places(places, [codes[i] for i in filled], labels, keyed=bare[0].keyed),
        scored=merge_heads([one.scored for one in bare], counts),
        seconds=merged_seconds([head.bare for head in every]),
        beside=max((one.beside for one in bare), key=len),
        parts=parts,
    )
    return whole, n


def _code_slices(
    values: Sequence[tuple[pl.Series, ...]],
) -> tuple[list[list[str]], list[tuple[Array, ...]]]:
    """Codes of the values of slice columns in all parts.

    Args:
        values: of each part, distinct values of each column.

    Returns:
        names of the groups of each column; of each part the codes of its values in the whole,
        int32 [n + 1], the last for none, one array a column.
    """
    names: list[list[str]] = []
    maps: list[list[Array]] = [[] for _ in values]
    for columns in zip(*values, strict=True):
        frames = [column.rename("value").to_frame() for column in columns]
        filled = [frame for frame in frames if frame.height] or frames[:1]
        every = pl.concat(filled, how="vertical_relaxed").unique().sort("value")
        coded = every.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("code"))
        names.append(every["value"].cast(pl.String).to_list())
        for own, frame in zip(maps, frames, strict=True):
            found = frame.cast(every.schema).join(
                coded, on="value", how="left", maintain_order="left"
            )["code"]
            own.append(np.append(found.to_numpy(), np.int32(-1)).astype(np.int32))
    return names, [tuple(own) for own in maps]
