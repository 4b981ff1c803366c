"""Match and tally: predicted labels are compared with the truth of their unit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import Note, listing
from ...kernels.labels import match_labels, true_label_facts
from ...metrics import Metric
from ...schemas.arrays import Array
from ...tally.datums import Datums, Labels
from ...tally.ranked import comparable
from ...tally.registry import stored_as
from ...tally.stored import Parts
from ...tally.units import Facts, Scored, Units, best_labels, outcomes_of, scored_by_rank
from ..encoding import Workers, truth_of_labels
from ..scores import check_probabilities
from .apart import notes_of
from .deciding import best_above, cut_of, tell, tell_cut
from .encode import Batch, Rows, encode_batch, without_repeats
from .settings import Settings

# Weights that are all zero over the whole set, a slice or a label leave its metrics undefined.


Block = tuple[Units, Sequence[Array]]
"""Some units, and the group of each of their datums in every slice column, int32 [datums]."""


class _Seen:
    """Masks of codes with ground truths, and of codes with weighted ones.

    Args:
        n: number of codes.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._truths, self._heavy = np.zeros((2, n), np.int64)

    def add(self, code: Array, weight: Array) -> None:
        """Take in truths with codes below ``n``, -1 for none."""
        inside = code >= 0
        code, heavy = code[inside], weight[inside] > 0
        self._truths += np.bincount(code, minlength=self._n)
        self._heavy += np.bincount(code[heavy], minlength=self._n)

    @property
    def all_zero(self) -> Array:
        """Codes that occur, but never with a weight above 0, int64 ascending."""
        return np.flatnonzero((self._truths > 0) & (self._heavy == 0))


def notes_of_blocks(
    blocks: Iterable[Block], labels: Labels, groups: Mapping[str, list[str]]
) -> list[Note]:
    """Return notes on labels or groups whose ground truths all have weight 0, one note per kind.

    Args:
        blocks: every unit, with weights.
        labels: meaning of label codes.
        groups: slice column -> names of its groups.
    """
    n, some = 0, False
    of_labels = _Seen(len(labels))
    of_groups = {column: _Seen(len(names)) for column, names in groups.items()}
    for units, codes in blocks:
        unit, label = units.truth_rows()
        assert units.weight is not None
        weight = units.weight[unit]
        n, some = n + unit.size, some or bool(weight.any())
        of_labels.add(label, weight)
        for seen, code in zip(of_groups.values(), codes, strict=True):
            seen.add(code[units.datum_of(unit)], weight)
    if n and not some:
        said = (
            f"column 'weight': all {n:,} weights are 0, so no number is defined. Leave the"
            " column out, or give weights above 0."
        )
        return [Note("zero_weights", said, n)]
    notes = []
    found = of_labels.all_zero
    if found.size:
        values = labels.frame["label_value"].gather(found).to_list()
        notes.append(_note(listing(values), found.size, "label", "labels"))
    for column, seen in of_groups.items():
        found = seen.all_zero
        if found.size:
            shown = listing([groups[column][code] for code in found])
            one, several = (f"{word} of {column!r}" for word in ("slice", "slices"))
            notes.append(_note(shown, found.size, one, several))
    return notes


def weightless_notes(units: Units, labels: Labels, datums: Datums) -> list[Note]:
    """Return the notes on units in memory; empty without weights of 0."""
    if units.weight is None or not (units.weight == 0).any():
        return []
    found = {column: datums.groups(column) for column in datums.slices.columns}
    codes = [group for group, _ in found.values()]
    return notes_of_blocks(
        [(units, codes)], labels, {column: names for column, (_, names) in found.items()}
    )


def _note(some: str, count: int, one: str, several: str) -> Note:
    named = one if count == 1 else several
    said = f"column 'weight': {count:,} {named} with ground truths of weight 0 alone: {some}."
    return Note("zero_weights", said, int(count))


@stored_as("classification.run/1", changes={1: {"filed": None}})
class Tallies(msgspec.Struct, frozen=True):
    """Tally of a classification run.

    Attributes:
        declared: int32 [l], position of each label among the declared ones, -1 for others; or None.
        units: one row per datum and label key.
        scored: scored labels, or None without scores.
        seconds: step -> wall seconds.
        beside: frames that exist for any metrics: ``per_datum`` of label sequences.
        keyed: declared labels came with label keys.
        details: the detailed curve was requested.
        confusion_examples: examples of the confusion matrix were requested.
        parts: files of units and scored labels, if their rows are on disk.
    """

    datums: Datums
    labels: Labels
    declared: Array | None
    units: Units
    scored: Scored | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ()
    keyed: bool = False
    details: bool = False
    confusion_examples: bool = False
    parts: Parts | None = None

    def ordered(self, code: Array | None = None) -> tuple[Any, ...]:
        """Return units and scores in an order independent of the rows of tables.

        Args:
            code: int32 [n_datums], index of each datum among those that count, -1 for others; None
                if all count.
        """
        units, scored = self.units, self.scored
        datum = units.datum_of() if code is None else code[units.datum_of()]
        key = np.zeros(len(units), np.int32) if units.key is None else units.key
        order = np.lexsort((key, datum))
        order = order[datum[order] >= 0]
        place = np.full(len(units), -1)
        place[order] = np.arange(order.size)
        made: list[Any] = [self.labels, self.declared, self.parts, datum[order], key[order]]
        facts = units.facts
        scores = (
            (None, None, None)
            if facts is None
            else (facts.true_score, facts.rank, np.round(facts.squared, 9))  # sums, in any order
        )
        every = (units.hard, units.hard_score, units.weight, *scores)
        made += [None if column is None else column[order] for column in every]
        tables: list[tuple[Array, Array, tuple[Array, ...]]] = [(*units.truth_rows(), ())]
        if scored is not None:
            unit, label = scored.unit_codes, scored.label_codes
            unit = np.arange(len(scored)) if unit is None else unit
            label = np.full(len(scored), scored.only) if label is None else label
            tables.append((unit, label, (scored.score, scored.outcome)))
        for unit, label, columns in tables:
            rows = (*columns[::-1], label, place[unit])
            order = np.lexsort(rows)
            order = order[place[unit][order] >= 0]
            made.append(tuple(column[order] for column in rows))
        return tuple(made if scored is not None else [*made, None])

    @property
    def weighted(self) -> bool:
        """True if counts are sums of weights."""
        return self.units.weight is not None


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        frames: checked tables; consumed.
        needs: subset of ``hard``, ``scores``, ``probabilities``, ``ranks``, ``details``,
            ``confusion``.
        workers: unused, since matching is one cheap pass.

    Raises:
        InputError: probabilities outside [0, 1], if a metric needs probabilities.
    """
    begun = time.perf_counter()
    if "probabilities" in needs:
        check_probabilities(frames, "Log loss, Brier score and calibration need")
    batch = encode_batch(
        frames, positive_label=settings.positive_label, multilabel=settings.multilabel
    )
    if settings.relabelled:
        batch = without_repeats(batch)
    encoded = time.perf_counter()
    if "hard" in needs:
        tell_cut(frames, batch, settings)
    if batch.rows is not None and not batch.rows.several and needs & {"scores", "ranks"}:
        _note_decisions(frames, batch.rows)
    if batch.rows is None:
        units, scored = _unscored(batch), None
    elif not batch.rows.several:
        units, scored = _binary(batch, batch.rows, settings, needs)
    else:
        units, scored = _listed(batch, batch.rows, settings, needs)
    if "hard" in needs:
        one = batch.hard is None and not settings.multilabel
        of = None if scored is None else scored.labels
        tell(frames, settings, batch.labels, units.hard if one else None, of)
    frames.notes += weightless_notes(units, batch.labels, batch.datums) + notes_of(batch, units)
    beside = {
        "per_datum": batch.sequences,
        "examples": "confusion" in needs and settings.examples_given,
    }
    seconds = {"encode": encoded - begun, "match": time.perf_counter() - encoded}
    return Tallies(
        batch.datums,
        batch.labels,
        batch.declared,
        units,
        scored,
        seconds,
        tuple(frame for frame, there in beside.items() if there),
        keyed=frames.labels is not None and "label_key" in frames.labels.columns,
        details="details" in needs,
        confusion_examples=beside["examples"],
    )


def examine(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> None:
    """Tally without measuring, to add notes on labels and scores that hardly agree with the truth.

    Args:
        frames: checked tables; consumed, except their notes.
        needs: as for :func:`tally`.
        workers: unused.

    Raises:
        InputError: as for :func:`tally`.
    """
    tally(frames, settings, needs, workers)


def truth(tallies: Tallies) -> Array:
    """See :attr:`evalengine.tasks.task.Task.truth`."""
    unit, label = tallies.units.truth_rows()
    datum = tallies.units.datum_of(unit)
    return truth_of_labels(tallies.labels, len(tallies.datums), datum, label)


def weight_notes(tallies: Tallies) -> list[Note]:
    """Return notes on ground truths of weight 0; see :func:`.tallies.weightless_notes`."""
    datums, parts = tallies.datums, tallies.parts
    if parts is None:
        return weightless_notes(tallies.units, tallies.labels, datums)
    if tallies.units.weight is None:
        return []
    names = {column: datums.groups(column)[1] for column in datums.slices.columns}
    blocks = ((part.rows.units, part.codes) for part in parts)
    return notes_of_blocks(blocks, tallies.labels, names)


def _unscored(batch: Batch) -> Units:
    return Units(
        datum=batch.datum,
        key=batch.key,
        truth=batch.truth,
        truth_start=batch.truth_start,
        hard=batch.hard,
        hard_score=None,
        weight=batch.weight,
        by_row=batch.by_row,
    )


def _binary(
    batch: Batch, rows: Rows, settings: Settings, needs: frozenset[str]
) -> tuple[Units, Scored]:
    """One score a unit, of the positive label."""
    hit = batch.truth == rows.only
    hard = batch.hard
    decided = hard is None and "hard" in needs
    limit = comparable(cut_of(batch, rows, settings), single=rows.single)
    if decided:
        others = [code for code in range(len(batch.labels)) if code != rows.only]
        # With more than two labels, "not the positive one" is not a label, so there is no
        # prediction.
        other = others[0] if len(others) == 1 else -1
        hard = np.where(rows.score >= limit, np.int32(rows.only), np.int32(other))
    facts = None
    if needs & {"probabilities", "ranks"}:
        true_score = np.where(hit, rows.score, 1.0 - rows.score)
        facts = Facts(
            true_score=true_score,
            rank=((rows.score >= limit) != hit).astype(np.int32),
            squared=(rows.score - hit) ** 2,
        )
    labels = np.zeros(len(batch.labels), bool)
    labels[rows.only] = True
    units = Units(
        datum=batch.datum,
        key=batch.key,
        truth=batch.truth,
        truth_start=None,
        hard=hard,
        hard_score=None,
        weight=batch.weight,
        facts=facts,
        by_row=batch.by_row,
        decided=decided,
    )
    scored = Scored(
        rows.parts,
        hit.view(np.uint8),
        None,
        rows.unit,
        rows.only,
        labels,
        rows.single,
    )
    return units, scored


def _listed(
    batch: Batch, rows: Rows, settings: Settings, needs: frozenset[str]
) -> tuple[Units, Scored]:
    """Any number of scored labels a unit."""
    n_units = batch.truth.size if batch.truth_start is None else batch.truth_start.size - 1
    want_hard = "hard" in needs and not settings.multilabel
    hard: Array | None
    hard_score: Array | None
    if rows.grid is not None and batch.truth_start is None:
        outcome = outcomes_of(rows.grid, batch.truth)
        hard, hard_score = best_labels(rows.grid, rows.parts, n_units if want_hard else 0)
    else:
        outcome, hard, hard_score = match_labels(
            _units_of(rows, n_units),
            _labels_of(rows),
            rows.score,
            batch.truth,
            batch.truth_start,
            want_hard=want_hard,
        )
    facts = None
    if "probabilities" in needs or "ranks" in needs:
        facts = Facts(
            *true_label_facts(
                _units_of(rows, n_units),
                _labels_of(rows),
                rows.score,
                outcome,
                n_units,
                first_wins=settings.rules.top_k_first_row,
            )
        )
    if not want_hard:  # of several labels a datum, those at the decision threshold are predicted
        hard, hard_score = None, None
    elif batch.hard is None and settings.thresholds:
        unit, label = _units_of(rows, n_units), _labels_of(rows)
        hard, hard_score = best_above(batch, rows, settings, unit, label)
    elif batch.hard is not None:
        hard = batch.hard
        hard_score = np.full(n_units, np.nan)
        unit = _units_of(rows, n_units)
        own = np.flatnonzero(_labels_of(rows) == hard[unit])
        hard_score[unit[own]] = rows.score[own]
    units = Units(
        datum=batch.datum,
        key=batch.key,
        truth=batch.truth,
        truth_start=batch.truth_start,
        hard=hard,
        hard_score=hard_score,
        weight=batch.weight,
        facts=facts,
        by_row=batch.by_row,
    )
    labels = np.ones(len(batch.labels), bool)
    scored = Scored(
        rows.parts,
        outcome,
        rows.label,
        rows.unit,
        -1,
        labels,
        rows.single,
        rows.ranked,
        rows.grid,
    )
    return units, scored


def _units_of(rows: Rows, n_units: int) -> Array:
    """Unit of every row, int32 [n]."""
    return np.arange(n_units, dtype=np.int32) if rows.unit_codes is None else rows.unit_codes


def _labels_of(rows: Rows) -> Array:
    assert rows.label_codes is not None
    return rows.label_codes


def _note_decisions(frames: Frames, rows: Rows) -> None:
    """Note scores that are 0 and 1 only, which are likely decisions and not scores."""
    for length in (_LEAST, None):  # a few of each part first
        n = ones = 0
        for part in rows.parts:
            one = part[:length] == 1
            if not (one | (part[:length] == 0)).all():
                return
            n, ones = n + one.size, ones + int(one.sum())
    if n >= _LEAST and 0 < ones < n:
        said = (
            f"all {n:,} scores are 0 or 1, as decisions are: areas under curves then have a single"
            " threshold. Give the scores before they were cut."
        )
        frames.notes.append(Note("scores_are_decisions", said, n))


_LEAST = 20  # scores from which on it is unlikely that all are 0 or 1 by chance


def by_rank(tallies: Tallies, settings: Settings, within: Array | None) -> Tallies:
    """The tally with ranks in place of scores; see :class:`..task.Ranking`."""
    if tallies.scored is None:
        return tallies
    pooled = settings.average in ("micro", "samples")
    scored = scored_by_rank(tallies.scored, tallies.units, within, pooled=pooled)
    return msgspec.structs.replace(tallies, scored=scored)


def by_value(tallies: Tallies, settings: Settings, metric: Metric) -> bool:
    """Return True if a metric depends on score values; hard predictions are already decided."""
    return not metric.ranks and (metric.needs != ("hard",) or tallies.units.hard is None)
