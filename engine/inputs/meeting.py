"""Both sides held against each other: kinds of ids and labels, common datums, one-sided labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from evalengine.schemas.errors import InputError
from evalengine.schemas.tables import DATUMS, DEFAULT_LABEL_KEY, GROUND_TRUTHS, LABELS, PREDICTIONS

from . import dtypes
from .distinct import distinct, only_in
from .problems import Note, count_of, listing


def same_kind(frames: dict[str, pl.DataFrame], column: str, text: Mapping[str, bool]) -> list[Note]:
    """Bring one id column of all tables to one dtype, in place.

    A side without rows follows the others. A CSV file has no types of its own: integers in it
    become strings where the other side holds strings.

    Args:
        frames: side to frame; changed in place.
        column: ``datum_id``, ``label_value`` or ``annotation_id``.
        text: side to whether its ids come from text without types.

    Returns:
        What was brought to strings.
    """
    present = {side: frame for side, frame in frames.items() if column in frame.columns}
    filled = {side: frame.schema[column] for side, frame in present.items() if frame.height}
    notes: list[Note] = []
    if not filled:
        filled = {side: frame.schema[column] for side, frame in present.items()}
    kinds = {dtypes.kind_of(dtype) for dtype in filled.values()}
    if len(kinds) > 1:
        for side, dtype in filled.items():
            if dtype != pl.String and text.get(side):
                frames[side] = frames[side].with_columns(pl.col(column).cast(pl.String))
                filled[side] = pl.String()
                notes.append(
                    Note("ids_from_text", f"{side}: {column} read from CSV as strings, since the"
                         " other side holds strings.")
                )  # fmt: skip
    if len({dtypes.kind_of(dtype) for dtype in filled.values()}) > 1:
        return notes
    target = _common(list(filled.values()))
    for side in present:
        if frames[side].schema[column] != target:
            frames[side] = frames[side].with_columns(pl.col(column).cast(target, strict=False))
    return notes


def _common(found: list[pl.DataType]) -> pl.DataType:
    if any(dtype == pl.String for dtype in found):
        return pl.String()
    return pl.UInt64() if any(dtype == pl.UInt64 for dtype in found) else pl.Int64()


def check_kinds(frames: Mapping[str, pl.DataFrame], column: str) -> None:
    """Refuse integers on one side and strings on another.

    Raises:
        InputError: saying which side holds what, with three samples of each.
    """
    kinds = {
        side: dtypes.kind_of(frame.schema[column])
        for side, frame in frames.items()
        if column in frame.columns and frame.height
    }
    if len(set(kinds.values())) > 1:
        shown = "; ".join(
            f"{side} {kind} ({_samples(frames[side][column])})" for side, kind in kinds.items()
        )
        raise InputError(
            f"{column}: {shown}: they can never be equal. Bring both to one type, e.g. cast the"
            f" integers to strings: pl.col({column!r}).cast(pl.String)."
        )


def check_meet(ids: Mapping[str, pl.Series]) -> None:
    """Refuse two sides without a common datum, unless a table of datums declares both.

    Args:
        ids: table to its distinct datum ids.

    Raises:
        InputError: with three samples of each side.
    """
    ours, theirs = ids[PREDICTIONS], ids[GROUND_TRUTHS]
    if DATUMS in ids and not any(len(only_in(side, ids[DATUMS])) for side in (ours, theirs)):
        return
    if len(ours) and len(theirs) and len(only_in(ours, theirs)) == len(ours):
        hint = _transformed(ours, theirs)
        raise InputError(
            f"predictions and ground truths have no datum_id in common: predictions hold"
            f" {count_of(len(ours), 'datum', 'datums')} ({_samples(ours)}), ground truths"
            f" {len(theirs):,} ({_samples(theirs)}).{hint} Are both of the same dataset, and is the"
            ' right column the id? columns={"mine": "datum_id"} says which.'
        )


def _transformed(ours: pl.Series, theirs: pl.Series) -> str:
    """Say so if the ids would meet without folders, extensions or letter case."""
    if ours.dtype != pl.String:
        return ""
    path = r"^.*[/\\]|\.[A-Za-z0-9]{1,5}$"
    changes: dict[str, Callable[[pl.Series], pl.Series]] = {
        "letter case": lambda ids: ids.str.to_lowercase(),
        "surrounding spaces": lambda ids: ids.str.strip_chars(),
        "folder or file extension": lambda ids: ids.str.replace_all(path, ""),
    }
    for name, change in changes.items():
        if change(ours).is_in(change(theirs).implode()).any():
            return f" They differ in {name} only."
    return ""


def _samples(values: pl.Series) -> str:
    return listing(values.drop_nulls().head(100).unique(maintain_order=True).head(3).to_list())


def datum_notes(ids: Mapping[str, pl.Series]) -> list[Note]:
    """Datums that one side lacks; they count, and are worth telling."""
    ours, theirs = ids[PREDICTIONS], ids[GROUND_TRUTHS]
    notes = []
    everything = ids.get(DATUMS)
    if everything is not None:
        for side in (PREDICTIONS, GROUND_TRUTHS):
            extra = only_in(ids[side], everything)
            notes += _note(
                "datums_not_listed",
                extra,
                f"of the {side.replace('_', ' ')} not listed in the datums table",
            )
    known = everything if everything is not None else theirs
    notes += _note("datums_without_predictions", only_in(known, ours), "without predictions")
    known = everything if everything is not None else ours
    notes += _note("datums_without_ground_truths", only_in(known, theirs), "without ground truths")
    return notes


def _note(kind: str, found: pl.Series, what: str) -> list[Note]:
    n = len(found)
    if n == 0:
        return []
    some = listing(found.head(5).to_list(), n)
    return [Note(kind, f"{count_of(n, 'datum', 'datums')} {what}: {some}.", n)]


def label_pairs(frame: pl.DataFrame) -> pl.DataFrame:
    """The distinct (label_key, label_value) of a side, ordered; key ``label`` where it has none."""
    if "label_key" not in frame.columns:
        values = distinct(frame["label_value"])
        return pl.DataFrame(
            {
                "label_key": pl.Series([DEFAULT_LABEL_KEY], dtype=pl.String).new_from_index(
                    0, len(values)
                ),
                "label_value": values,
            }
        )
    return frame.select("label_key", "label_value").unique().sort("label_key", "label_value")


def label_notes(pairs: Mapping[str, pl.DataFrame], keyed: Mapping[str, bool]) -> list[Note]:
    """Labels and label keys that stand on one side only.

    Args:
        pairs: side to its labels after any label map.
        keyed: side to whether it has a label_key column.

    Raises:
        InputError: label keys on one side only, so that nothing can meet.
    """
    ours, theirs = pairs[PREDICTIONS], pairs[GROUND_TRUTHS]
    if not (ours.height and theirs.height):
        return _undeclared(pairs)
    keys = {side: set(frame["label_key"].unique()) for side, frame in pairs.items()}
    common = keys[PREDICTIONS] & keys[GROUND_TRUTHS]
    notes: list[Note] = []
    if keyed[PREDICTIONS] != keyed[GROUND_TRUTHS]:
        notes.append(_one_keyed(keyed, keys, bool(common)))
    if not common:
        shown = {side: listing(sorted(found)) for side, found in keys.items()}
        notes.append(
            Note("no_common_label_key", "predictions and ground truths have no label_key in common"
                 f" ({shown[PREDICTIONS]} against {shown[GROUND_TRUTHS]}): nothing can match.", 0)
        )  # fmt: skip
    for side, mine, other in ((PREDICTIONS, ours, theirs), (GROUND_TRUTHS, theirs, ours)):
        lone = mine.join(other, on=["label_key", "label_value"], how="anti", maintain_order="left")
        if lone.height:
            what = f"{count_of(lone.height, 'label')} in the {side.replace('_', ' ')} only"
            some = listing(_labels(lone), lone.height)
            notes.append(Note(f"labels_in_{side}_only", f"{what}: {some}.", lone.height))
    return notes + _undeclared(pairs)


def _undeclared(pairs: Mapping[str, pl.DataFrame]) -> list[Note]:
    """Labels that a table of labels does not list."""
    if LABELS not in pairs or not pairs[LABELS].height:
        return []
    used = pl.concat([pairs[PREDICTIONS], pairs[GROUND_TRUTHS]]).unique(maintain_order=True)
    lone = used.join(
        pairs[LABELS], on=["label_key", "label_value"], how="anti", maintain_order="left"
    )
    if not lone.height:
        return []
    some = listing(_labels(lone), lone.height)
    what = count_of(lone.height, "label")
    return [Note("labels_not_declared", f"{what} not in the labels table: {some}.", lone.height)]


def _labels(pairs: pl.DataFrame) -> list[Any]:
    first = pairs.head(5)
    if first["label_key"].n_unique() == 1 and first["label_key"][0] == DEFAULT_LABEL_KEY:
        return first["label_value"].to_list()
    return list(first.iter_rows())


def _one_keyed(keyed: Mapping[str, bool], keys: Mapping[str, set[str]], meets: bool) -> Note:
    side, other = (
        (PREDICTIONS, GROUND_TRUTHS) if keyed[PREDICTIONS] else (GROUND_TRUTHS, PREDICTIONS)
    )
    plain = other.replace("_", " ")
    text = (
        f"the {side.replace('_', ' ')} have a label_key column ({listing(sorted(keys[side]))}), the"
        f" {plain} have none and take {DEFAULT_LABEL_KEY!r}"
    )
    if not meets:
        raise InputError(
            f"label_key: {text}, so that nothing can match. Give the {plain} a label_key column,"
            f" drop it from the {side.replace('_', ' ')}, or map labels with label_map=."
        )
    return Note("label_key_one_side", f"{text}.")
