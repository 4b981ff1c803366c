"""What the parts of a run in bounded memory tell of their tables, together."""

from __future__ import annotations

from typing import Any

import msgspec

from ..ingest.collecting import Prepared
from ..ingest.meeting import LONE
from ..ingest.mismatch import CommonIds, hardly_met, none_listed
from ..ingest.problems import DOCUMENTS_APART, Note, count_of, notes_of_parts
from ..ingest.relabel import hold_labels
from ..ingest.rules import reworded
from ..ingest.rules.values import of_labels
from ..ingest.speech import Speech
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.options import Options
from .shuffle import Whole


def check_met(heads: list[dict[str, Any]], ready: Prepared) -> list[Note]:
    """Refuse two sides without a common datum; a warning where few are common."""
    met = [head["met"] for head in heads if head["met"] is not None]
    if not met:
        return []
    found = CommonIds.of_parts(met)
    if not all(found.sizes):
        return []  # a condition may leave nothing of a side, which is no strange one
    unlisted = sum(
        note["count"]
        for head in heads
        for note in head["notes"]
        if note["kind"] == "datums_not_listed"
    )
    side = next(side for role, side in ready.sides.items() if role in (PREDICTIONS, TABLE))
    speech = Speech(side.table.datum, *side.table.unit)
    if unlisted == sum(found.sizes):
        raise none_listed(found.some[1], None, speech)
    return hardly_met(found, listed=DATUMS in ready.sides and not unlisted, speech=speech)


def notes_of(
    heads: list[dict[str, Any]], ready: Prepared, whole: Whole, options: Options
) -> list[Note]:
    """What the rows tell, of the whole."""
    found = [msgspec.convert(head["notes"], list[Note]) for head in heads]
    found = _of_all(found, heads)
    frames = dict(whole.blanks)
    if whole.labels is not None:
        frames[LABELS] = whole.labels
    if not whole.pairs:
        return _where(heads, ready, whole) + notes_of_parts(found, reworded)
    _, told = hold_labels(frames, options.label_map, whole.pairs)
    if any(note.kind in LONE for note in told):
        told += of_labels(ready, options, told)
    return _where(heads, ready, whole) + notes_of_parts(found, reworded) + told


def _of_all(found: list[list[Note]], heads: list[dict[str, Any]]) -> list[list[Note]]:
    """The notes of each bucket; what must hold in every bucket is told once, or not at all."""
    both = [
        any(note.kind == DOCUMENTS_APART for note in notes)
        for notes, head in zip(found, heads, strict=True)
        if head["heights"].get(TABLE)
        or all(head["heights"].get(role) for role in (PREDICTIONS, GROUND_TRUTHS))
    ]
    kept = [[note for note in notes if note.kind != DOCUMENTS_APART] for notes in found]
    told = [note for notes in found for note in notes if note.kind == DOCUMENTS_APART]
    return [*kept, told[:1]] if told and all(both) else kept


def _where(heads: list[dict[str, Any]], ready: Prepared, whole: Whole) -> list[Note]:
    """How many rows conditions removed."""
    texts = dict.fromkeys(repr(condition.text) for condition in ready.where.values())
    notes = []
    rows = rows_of(heads, whole)
    for role in (PREDICTIONS, GROUND_TRUTHS, TABLE, DATUMS):
        before = whole.before.get(role, whole.heights.get(role))
        if before is None or not ready.where or role not in rows:
            continue
        gone = before - rows[role]
        if role in ready.where or gone:
            notes.append(
                Note("where", f"where {' and '.join(texts)} removed {gone:,} of"
                     f" {count_of(before, 'row')} of the {role.replace('_', ' ')}.", gone)
            )  # fmt: skip
    return notes


def rows_of(heads: list[dict[str, Any]], whole: Whole) -> dict[str, int]:
    rows: dict[str, int] = {}
    for head in heads:
        for role, height in head["heights"].items():
            rows[role] = rows.get(role, 0) + height
    if whole.labels is not None:
        rows[LABELS] = whole.labels.height
    return rows
