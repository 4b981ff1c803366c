"""A tally of classification taken apart for files, and what is left of it in memory.

Units and scored labels of a bucket become rows that carry all that metrics ask of them: weights,
groups of slices, what was predicted. They are put into the order of one run in files, and views go
through the files (:mod:`evalengine.tally.filed_view`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...tally.datums import Datums
from ...tally.filed_view import Filed, FiledDatums
from ...tally.merging import merge_labels, merged_seconds
from ...tally.merging_units import merge_places
from ...tally.score_rows import OrderedScores, score_rows
from ...tally.unit_blocks import UnitBlock, without_rows
from .merging import merge_heads, without_scores
from .settings import Settings
from .tallies import Tallies
from .views import view

Array = np.ndarray[Any, Any]


class FiledPart(NamedTuple):
    """The tally of one bucket, taken apart.

    Attributes:
        bare: the tally without rows.
        slices: distinct values of each slice column, ascending, which codes stand for.
        block: its units.
        scores: makes the order of its scored labels; None where no metric looks at them.
        pooled: the same by label key; None where no metric needs them so. Either takes several
            times the scores, and goes before the other is made.
        counts: see :class:`~evalengine.tally.filed_view.Filed`; with ``rows`` of scored labels.
        alone: whether every datum has one unit.
    """

    bare: Tallies
    slices: tuple[pl.Series, ...]
    block: UnitBlock
    scores: Callable[[], OrderedScores] | None
    pooled: Callable[[], OrderedScores] | None
    counts: dict[str, int]
    alone: bool


def files_suffice(heads: Mapping[str, pl.DataFrame]) -> bool:
    """Whether the tally can be merged as rows in files: not where rows hold sequences of labels.

    Args:
        heads: the first rows of every table.
    """
    return not any(dtype.is_nested() for head in heads.values() for dtype in head.dtypes)


def bytes_on_disk(
    settings: Settings, needs: frozenset[str], heads: Mapping[str, pl.DataFrame], n_slices: int
) -> tuple[int, int]:
    """Bytes that a unit and a score take in files, at most: they stand twice while they are merged.

    Args:
        settings: the run's settings.
        needs: what is tallied.
        heads: the first rows of every table.
        n_slices: number of slice columns.
    """
    each = _COLUMN * n_slices + _WEIGHT * any("weight" in head.columns for head in heads.values())
    score = _SCORE + each
    unit = _UNIT + each + _FACTS * bool(needs & {"probabilities", "ranks"})
    unit += _SAMPLES * (settings.multilabel + (settings.average == "samples"))
    return unit, score * (1 + (settings.average == "micro"))


_UNIT, _SCORE, _COLUMN, _WEIGHT, _FACTS, _SAMPLES = 45, 55, 10, 20, 70, 50


def shows_datums(metrics: Sequence[Metric], settings: Settings) -> bool:
    """Whether frames show single datums: outcomes, and examples of cells.

    Args:
        metrics: those of the run.
        settings: the run's settings.
    """
    examples = settings.examples_given and any("confusion" in metric.needs for metric in metrics)
    return examples or any(metric.frame in _OF_DATUMS for metric in metrics)


_OF_DATUMS = ("examples", "outcomes")


def shown_part(tallies: Tallies) -> Tallies:
    """What frames that show single datums need of the tally of one bucket.

    Args:
        tallies: of the bucket.
    """
    listed = tallies.details
    units, scored, datums = tallies.units, tallies.scored, tallies.datums
    if datums.ids is None and units.row is not None:  # named by their rows in the whole table
        datums = msgspec.structs.replace(datums, ids=pl.Series("datum_id", units.row))
    return msgspec.structs.replace(
        tallies,
        datums=datums,
        units=msgspec.structs.replace(units, facts=None, weight=None, row=None),
        scored=msgspec.structs.replace(scored, row=None) if listed and scored is not None else None,
    )


def filed_part(
    tallies: Tallies, settings: Settings, needs: frozenset[str], metrics: Sequence[Metric]
) -> FiledPart:
    """The tally of one bucket, taken apart.

    Args:
        tallies: of the bucket; rows know their places in the whole input.
        settings: the run's settings.
        needs: what was tallied.
        metrics: those of the run.
    """
    datums, units, scored = tallies.datums, tallies.units, tallies.scored
    whole = view(tallies, settings)
    datum = units.datum_of()
    known = whole.known_units
    lead = known[np.unique(datum[known], return_index=True)[1]]
    slices = tuple(
        datums.slices[name].drop_nulls().unique().sort() for name in datums.slices.columns
    )
    codes = tuple(datums.groups(name)[0][datum] for name in datums.slices.columns)
    more: dict[str, Array] = {}
    if settings.multilabel:
        more |= zip(("right", "predicted", "actual"), whole.samples, strict=True)
    if settings.average == "samples" and whole.has_scores:
        more |= zip(("roc", "precision"), whole.sample_areas, strict=True)
    if "probabilities" in needs and scored is not None and not scored.several:
        more |= zip(("confidence", "sure"), whole.confidence, strict=True)
    block = UnitBlock(
        None if units.by_row else datums.id,
        msgspec.structs.replace(units, datum=None) if units.by_row else units,
        _marked(known, len(units)),
        _marked(lead, len(units)),
        codes,
        more,
    )
    rows = pooled = None
    if scored is not None and _looks_at_scores(tallies, settings, needs):
        n_labels = len(tallies.labels)
        pairs = any(metric.pairs for metric in metrics) and units.truth_start is None
        truth = units.truth if pairs and scored.several else None
        rows = partial(score_rows, scored, scored.label_codes, n_labels, units.weight, codes, truth)
        if settings.average == "micro" and scored.ranked:
            pooled = partial(_pooled, tallies, codes)
    counts = {
        "datums": len(datums),
        "units": len(units),
        "known": known.size,
        "judged": whole.judged_units.size,
        "weightless": 0 if units.weight is None else int((units.weight == 0).sum()),
        "rows": 0 if scored is None else scored.outcome.size,
    }
    bare = msgspec.structs.replace(
        tallies,
        datums=Datums(datums.id[:0], datums.slices[:0]),
        units=without_rows(units),
        scored=None if scored is None else without_scores(scored),
    )
    return FiledPart(bare, slices, block, rows, pooled, counts, lead.size == known.size)


def _marked(places: Array, n: int) -> Array:
    out = np.zeros(n, bool)
    out[places] = True
    return out


def _looks_at_scores(tallies: Tallies, settings: Settings, needs: frozenset[str]) -> bool:
    """Whether a view asks for rows of scored labels, not only for what units know of them."""
    by_units = tallies.units.hard is not None and tallies.units.weight is None
    return not by_units or "scores" in needs or settings.rules.listed_labels


def _pooled(tallies: Tallies, codes: Sequence[Array]) -> OrderedScores:
    labels, scored = tallies.labels, tallies.scored
    assert scored is not None
    if scored.label_codes is None:
        label = np.broadcast_to(labels.key[scored.only], scored.outcome.size)
    else:
        label = labels.key[scored.label_codes]
    return score_rows(scored, label, len(labels.key_names), tallies.units.weight, codes)


def of_files(
    parts: Sequence[Tallies],
    counts: Sequence[Mapping[str, int]],
    names: list[list[str]],
    filed: Filed,
) -> Tallies:
    """The tally of all parts, whose rows are in files.

    Args:
        parts: tallies of the buckets, without rows.
        counts: of each of them.
        names: groups of each slice column.
        filed: the files.

    Raises:
        InputError: parts that do not go together.
    """
    labels, codes = merge_labels([part.labels for part in parts])
    if any(code.size != len(labels) for code in codes):
        raise InputError("partitions know different labels: declare all of them with labels=.")
    first = next((p for p, own in zip(parts, counts, strict=True) if own["units"]), parts[0])
    places = [(part.declared, part.labels) for part in parts]
    blank = first.datums
    return msgspec.structs.replace(
        first,
        datums=FiledDatums(
            None,
            blank.slices,
            rows=filed.counts["datums"],
            kind=blank.id_dtype,
            names=tuple(names),
        ),
        labels=labels,
        declared=merge_places(places, codes, labels, keyed=parts[0].keyed),
        scored=merge_heads([part.scored for part in parts], [own["rows"] for own in counts]),
        seconds=merged_seconds(parts),
        beside=max((part.beside for part in parts), key=len),
        filed=filed,
    )
