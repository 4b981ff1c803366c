"""Cross-checks of predictions and ground truths: ids, labels and datums."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.contract import DATUMS, DEFAULT_LABEL_KEY, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import N_NAMES, InputError
from ..schemas.wording import option
from . import dtypes
from .geometry import CORNER_NAMES, iou_with
from .id_mismatch import mend, samples
from .ids import DatumIds, distinct
from .problems import MANY, PLAIN, DatumNouns, Note, count_of, listing, note_of

# Labels that seem equal but are written or numbered differently on both sides.

_MOST = 2_000  # labels of a side that are compared letter by letter
_NEAR = 0.8  # similarity from which names may be one
_LEAST = 3  # numbered classes of a side from which their range is evidence


def _spelling_notes(
    ours: pl.Series, theirs: pl.Series, one_sided: Sequence[pl.DataFrame]
) -> list[Note]:
    """Compare the spelling of labels that occur on only one side.

    Args:
        ours: label_value of the predictions.
        theirs: label_value of the ground truths.
        one_sided: label_key and label_value that only one side has, per side.

    Returns:
        A warning on labels that differ only in case, blanks, hyphens, zeros, plural or Unicode
        form, or on classes numbered from 0 and from 1; a note on similar names.
    """
    one_sided_labels = [side["label_value"].drop_nulls().unique() for side in one_sided]
    equal = _equal_spellings(one_sided_labels, (theirs, ours))
    if not all(len(side) for side in one_sided_labels) and not equal:
        return []
    if one_sided_labels[0].dtype.is_integer() and one_sided_labels[1].dtype.is_integer():
        return _numbered(ours, theirs, one_sided_labels[0], one_sided_labels[1])
    mine, theirs_only = (sorted(map(str, side)) for side in one_sided_labels)
    by_spelling = {plain(other): other for other in theirs_only}
    same = {name: by_spelling[plain(name)] for name in mine if plain(name) in by_spelling} | equal
    only_blanks = all(a.strip() == b.strip() for a, b in same.items())
    way = option("label_format", ["blanks"]) if only_blanks else _mapped(same)
    if any(_composed(a) == _composed(b) for a, b in same.items()):
        way += ", or normalise the columns, e.g. with .str.normalize('NFC') of Polars"
    notes = []
    few = same == equal and 2 * len(same) < theirs.n_unique()
    # Labels of which one side has both spellings may be two classes; a few of hundreds are wrong
    # answers rather than classes.
    rare = 100 * len(same) < theirs.n_unique()
    maybe_classes = few and not any(
        _composed(a.strip()) == _composed(b.strip())
        or (a in mine and b in theirs_only and not rare)
        for a, b in same.items()
    )
    if same:
        notes.append(
            Note(
                "labels_spelt_apart",
                f"{count_of(len(same), 'label')} of the predictions "
                f"{'differs' if len(same) == 1 else 'differ'} from one of the ground truths only "
                "in capitals, blanks, hyphens, zeros, plural or Unicode form, and so cannot match: "
                f"{_pairs(same)}. If they are the same: {way}.",
                len(same),
                warning=not maybe_classes,
                facts={"count": len(same), "blanks": only_blanks},
            )
        )
    similar = _similar_names(
        [n for n in mine if n not in same], [one for one in theirs_only if one not in same.values()]
    )
    if similar:
        notes.append(
            Note(
                "labels_look_alike",
                f"{count_of(len(similar), 'label')} of the predictions"
                f" {'looks' if len(similar) == 1 else 'look'} like one of the ground truths:"
                f" {_pairs(similar)}. If they are the same: {_mapped(similar)}.",
                len(similar),
            )
        )
    return notes


def _equal_spellings(one_sided: Sequence[pl.Series], others: Sequence[pl.Series]) -> dict[str, str]:
    """Labels of the predictions, and those of the ground truths equal but for blanks around,
    capitals and Unicode form (NFC, NFD).

    Single letters in capitals and small are classes of their own, as in recognition of characters.
    """
    result: dict[str, str] = {}
    for i, (side, other) in enumerate(zip(one_sided, others, strict=True)):
        if len(side) and side.dtype == pl.String == other.dtype:
            by_spelling = {_folded(name): name for name in other.drop_nulls()}
            pairs = [
                (name, by_spelling[_folded(name)])
                for name in sorted(side)
                if _folded(name) in by_spelling
            ]
            result |= dict(pairs) if i == 0 else {b: a for a, b in pairs}
    return result


_INVISIBLE = "[\u00ad\u200b-\u200f\u2060\ufeff]+"
"""Soft hyphens, blanks without width and marks of direction or byte order."""


def _composed(label: str) -> str:
    return unicodedata.normalize("NFC", label)


def _folded(label: str) -> str:
    composed = _composed(re.sub(_INVISIBLE, "", label).strip())
    return composed.casefold() if len(composed) > 1 else composed


def plain(label: str) -> str:
    """Return a label in composed Unicode, without case, separators, plural endings and zeros."""
    if label.isdecimal():
        return label.lstrip("0") or "0"
    letters = re.sub(rf"[\s_./\u2010-\u2014-]+|{_INVISIBLE}", "", _composed(label.casefold()))
    return re.sub("(?<=[sxz])es$|(?<=[^sui])s$", "", letters) or letters


def _similar_names(mine: list[str], others: list[str]) -> dict[str, str]:
    """Names that differ in few letters, numbers in them aside: ``class 1`` is not ``class 2``."""
    if not mine or not others or max(len(mine), len(others)) > _MOST:
        return {}
    # Imported on call: only needed for labels that do not match.
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extractOne

    by_numbers: dict[tuple[str, ...], list[str]] = {}
    for other in others:
        by_numbers.setdefault(tuple(re.findall("[0-9]+", other)), []).append(other)
    result: dict[str, str] = {}
    for name in mine:
        choices = by_numbers.get(tuple(re.findall("[0-9]+", name)), [])
        best = extractOne(name, choices, scorer=OSA.normalized_similarity, score_cutoff=_NEAR)
        if best is not None:
            result[name] = best[0]
    return result


def _numbered(ours: pl.Series, theirs: pl.Series, mine: pl.Series, others: pl.Series) -> list[Note]:
    """Return a warning on as many gapless class numbers that are offset by one, and on two classes
    that are -1 and 1 on one side, 0 and 1 on the other.
    """
    sides = [side.drop_nulls().unique().sort() for side in (ours, theirs)]
    codes = [side.to_list() for side in sides if len(side) == 2]
    if codes in ([[-1, 1], [0, 1]], [[0, 1], [-1, 1]]):
        low, first = codes[0][0], codes[1][0]
        message = (
            f"the two classes of the predictions are {low} and 1, those of the ground truths"
            f" {first} and 1, so {low} never matches. If {low} and {first} mean the same:"
            f" {_mapped({low: first})}."
        )
        return [Note("labels_of_two_codes", message, warning=True)]
    if len(mine) != 1 or len(others) != 1 or len(sides[0]) != len(sides[1]):
        return []
    (low, high), (first, last) = ((int(side[0]), int(side[-1])) for side in sides)
    n, step = len(sides[0]), first - low
    if abs(step) != 1 or n < _LEAST or high - low != n - 1 or last - first != n - 1:
        return []
    return [
        Note(
            "labels_one_off",
            f"classes of the predictions are numbered {low} to {high}, those of the ground truths"
            f" {first} to {last}: if one side counts from another number, no class is compared with"
            f" itself. {option('label_format', [f'{step:+d}'])} moves those of the predictions.",
            warning=True,
        )
    ]


def names_of_numbers(
    frames: Mapping[str, pl.DataFrame], many: int, guess: Mapping[int, str]
) -> tuple[dict[int, str], int] | None:
    """Match numbers of classes with names, by pairs of rows; also return the number of pairs.

    Pairs are overlapping boxes; in other tasks rows of one datum, the one with the highest score
    first.

    Args:
        guess: names by number that few pairs suffice to confirm.

    Returns:
        None if pairs are few or contradict each other.
    """
    pairs = _paired(frames)
    if pairs is None or pairs.height < _LEAST:
        return None
    ours, theirs = (pairs[name] for name in ("mine", "other"))
    if ours.dtype == pl.String:
        ours, theirs = theirs, ours
    if not ours.dtype.is_integer() or theirs.dtype != pl.String:
        return None
    counted = pl.DataFrame({"number": ours, "name": theirs}).group_by("number", "name").len()
    best = counted.sort("len", "name", descending=[True, False]).unique(
        "number", keep="first", maintain_order=True
    )
    if best["len"].sum() < _AGREED * pairs.height or best["name"].is_duplicated().any():
        return None
    mapping = dict(best.select("number", "name").sort("number").iter_rows())
    few = pairs.height < min(_EACH * many, _SURELY_MANY)
    return None if few and not mapping.items() <= guess.items() else (mapping, pairs.height)


_EACH = 2  # pairs per class that show which is which
_SURELY_MANY = 200  # pairs that are enough for any number of classes
_AGREED = 0.7  # share of pairs that have to agree
_DATUMS = 500  # datums that are looked at
_OVERLAP = 0.5  # IoU from which boxes are a pair


def _paired(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Labels ``mine`` of predictions and ``other`` of ground truths that belong together."""
    one = frames.get(TABLE)
    if one is not None:
        if not {"predicted", "actual"} <= {*one.columns}:
            return None
        return one.select(mine="predicted", other="actual").drop_nulls()
    sides = [frames.get(role) for role in (PREDICTIONS, GROUND_TRUTHS)]
    if any(side is None or not {"datum_id", "label_value"} <= {*side.columns} for side in sides):
        return None
    ours, theirs = (side for side in sides if side is not None)
    if any(isinstance(side.schema["label_value"], pl.List) for side in (ours, theirs)):
        return None
    ids = theirs.select("datum_id").unique(maintain_order=True)
    ids = ids.join(ours.select("datum_id").unique(), on="datum_id", how="semi")
    ids = ids.gather_every(max(1, ids.height // _DATUMS))
    boxes = all({*CORNER_NAMES} <= {*side.columns} for side in (ours, theirs))
    if not boxes:
        if "score" in ours.columns:
            ours = ours.sort("score", descending=True, maintain_order=True)
        ours = ours.unique("datum_id", keep="first", maintain_order=True)
    ours, theirs = (
        side.join(ids, on="datum_id", how="semi", maintain_order="left")
        .with_row_index("row")
        .select("datum_id", "row", "label_value", *(CORNER_NAMES if boxes else ()))
        for side in (ours, theirs)
    )
    joined = ours.join(theirs, on="datum_id", suffix="_other", maintain_order="left_right")
    named = {"mine": "label_value", "other": "label_value_other"}
    if not boxes:
        return joined.select(**named).drop_nulls()
    joined = joined.with_columns(iou=iou_with("_other"))
    best = joined.sort("iou", descending=True, maintain_order=True)
    best = best.filter(pl.col("iou") >= _OVERLAP).unique("row_other", keep="first")
    return best.select(**named).drop_nulls()


def _pairs(spellings: dict[str, str]) -> str:
    some = "; ".join(
        f"{a!a} and {b!a}" if _composed(a) == _composed(b) else f"{a!r} and {b!r}"
        for a, b in list(spellings.items())[:N_NAMES]
    )
    more = len(spellings) - N_NAMES
    return f"{some} and {more:,} more" if more > 0 else some


def _mapped(mapping: Mapping[Any, Any]) -> str:
    first = dict(list(mapping.items())[:N_NAMES])
    more: dict[Any, Any] = {"...": ""} if len(mapping) > N_NAMES else {}
    return option("label_map", {**first, **more})


# Cross-checks of predictions and ground truths.

LABEL_COLUMNS = ("label_value", "actual", "predicted")
SIDE_OF = {"actual": GROUND_TRUTHS, "predicted": PREDICTIONS}
ONE_SIDED_LABELS = frozenset({f"labels_in_{side}_only" for side in (PREDICTIONS, GROUND_TRUTHS)})
"""Kinds of notes on labels of one side only."""
SCORES = "score_columns"
"""Key, next to the tables, of the labels of score columns as a table."""
_MOST_LISTED = 100  # labels of one side that a note knows

Place = tuple[str, str]
"""A role and one of its columns."""


def places(frames: Mapping[str, pl.DataFrame], names: Sequence[str]) -> list[Place]:
    """Return the (table, column) pairs of columns with these names."""
    return [(role, name) for role, frame in frames.items() for name in names if name in frame]


def dtypes_of(frames: Mapping[str, pl.DataFrame], names: Sequence[str]) -> list[pl.DataType]:
    """Return the dtype of each column with one of these names."""
    return [frame.schema[name] for frame in frames.values() for name in names if name in frame]


def same_kind(
    frames: dict[str, pl.DataFrame], names: Sequence[str], text: Mapping[str, bool]
) -> list[Note]:
    """Unify the dtypes of columns that are matched, over all tables, in place.

    A side without rows adopts the dtype of the others; booleans become 0 and 1 if others are
    integers. CSV files are untyped: their integers become strings if another column contains
    strings.

    Args:
        text: side to whether its ids come from untyped text.
    """
    present = places(frames, names)
    inner_dtypes = {place: dtypes.inner_of(frames[place[0]].schema[place[1]]) for place in present}
    filled = {
        place: dtype for place, dtype in inner_dtypes.items() if _filled_labels(frames, place)
    } or inner_dtypes
    notes: list[Note] = []
    if len(_kinds(filled)) > 1 and "strings" in _kinds(filled):
        for (role, name), dtype in filled.items():
            if dtypes.kind_of(dtype) == "integers" and text.get(role):
                _cast(frames, role, name, pl.String())
                filled[role, name] = pl.String()
                notes.append(
                    Note(
                        "ids_from_text",
                        f"{role}: {name} read from CSV as strings, since the other "
                        f"{'column' if role == TABLE else 'side'} has strings.",
                    )
                )
    if "strings" in _kinds(filled) and len(_kinds(filled)) > 1:
        return notes
    target = dtypes.common(list(filled.values()))
    if target == pl.UInt64():
        for role, name in filled:
            refuse_negative(frames[role][name], f"{role}: {name}")
    for role, name in present:
        if dtypes.inner_of(frames[role].schema[name]) != target:
            _cast(frames, role, name, target)
    return notes


def refuse_negative(values: pl.Series, named: str) -> None:
    """Refuse negative ids next to ids of 2**63 and above: no integer type has both."""
    flat = values.explode() if isinstance(values.dtype, pl.List) else values
    lowest = flat.min() if flat.dtype.is_signed_integer() else None
    if isinstance(lowest, int) and lowest < 0:
        raise InputError(
            f"{named} has negative ids (lowest {lowest}), and other ids are 2**63 or more: no "
            "integer type fits both. Cast both sides to String.",
            code="ids_too_wide",
            lowest=lowest,
        )


def _kinds(column_dtypes: Mapping[Place, pl.DataType]) -> set[str]:
    return {dtypes.kind_of(dtype) for dtype in column_dtypes.values()}


def _filled_labels(frames: Mapping[str, pl.DataFrame], place: Place) -> bool:
    values = frames[place[0]][place[1]]
    return bool(values.list.len().sum()) if isinstance(values.dtype, pl.List) else len(values) > 0


def _cast(frames: dict[str, pl.DataFrame], role: str, name: str, target: pl.DataType) -> None:
    old = frames[role][name]
    dtype = dtypes.like(old.dtype, target)
    if _filled_labels(frames, (role, name)):
        new = old.cast(dtype)
    else:
        # Empty ones have no values to convert, whatever dtype they have.
        new = pl.Series(name, [None if v is None else [] for v in old], dtype=dtype)
    frames[role] = frames[role].with_columns(new)


def check_kinds(
    frames: Mapping[str, pl.DataFrame], names: Sequence[str], nouns: DatumNouns = PLAIN
) -> None:
    """Refuse integers on one side and strings on another."""
    if len({*dtypes_of(frames, names)}) < 2:
        return
    values = {
        place: frames[place[0]][place[1]]
        for place in places(frames, names)
        if _filled_labels(frames, place)
    }
    kinds = {place: dtypes.kind_of(series.dtype) for place, series in values.items()}
    if len(set(kinds.values())) > 1:
        columns = "; ".join(
            f"{nouns.named(name) if role == TABLE else role} {kinds[role, name]}"
            f" ({samples(series)})"
            for (role, name), series in values.items()
        )
        lost = next(place for place, kind in kinds.items() if kind != "strings")
        label = nouns.named(lost[1])
        subject = label if lost[0] != TABLE else "labels"
        way = ""
        if "datum_id" in names:
            ids = {role: distinct(series) for (role, _), series in values.items()}
            if {PREDICTIONS, GROUND_TRUTHS} <= ids.keys():  # else only tables of datums differ
                way = mend(ids[PREDICTIONS], ids[GROUND_TRUTHS], nouns)
        elif {*names} & {*LABEL_COLUMNS}:
            way = _numbers_for_names(values, frames)
        way = way or (
            f" Bring both to one type, e.g. cast the {kinds[lost]} to strings:"
            f" pl.col({label!r}).cast(pl.String)."
        )
        raise InputError(
            f"{subject}: {columns}: they can never be equal.{way}",
            code="types_differ",
            column=subject,
        )


def _numbers_for_names(
    values: Mapping[Place, pl.Series], frames: Mapping[str, pl.DataFrame]
) -> str:
    """Return the option that maps numbers to names, with the map if the rows of both sides show it.

    Empty if the strings are numbers themselves.
    """
    flat = [
        distinct(v.explode(empty_as_null=False, keep_nulls=False) if v.dtype == pl.List else v)
        for v in values.values()
    ]
    numbers = {n for side in flat if side.dtype.is_integer() for n in side.to_list()}
    names = {n for side in flat if side.dtype == pl.String for n in side.to_list()}
    if not numbers or not names or all(name.strip().lstrip("-").isdigit() for name in names):
        return ""
    # Most tools number classes by their alphabetical order, which is no evidence by itself.
    result = names_of_numbers(frames, len(numbers), dict(enumerate(sorted(names), min(numbers))))
    if result is None:
        return (
            f" Map the numbers to the names: {option('label_map')}. The rows do not"
            " show which is which: take the list of classes that the numbers were made with."
        )
    mapping, pairs = result
    first = {str(n): name for n, name in sorted(mapping.items())[:N_NAMES]}
    more = {"...": ""} if len(mapping) > N_NAMES else {}
    missing = len(numbers - mapping.keys())
    unused = f" {count_of(missing, 'number')} occurs in no table." if missing else ""
    return (
        f" Map the numbers to the names, as {count_of(pairs, 'pair')} of predictions and ground"
        f" truths show them: {option('label_map', {**first, **more})}.{unused}"
    )


def datum_notes(
    ids: DatumIds,
    nouns: DatumNouns = PLAIN,
    *,
    came_along: bool = False,
    rows: Mapping[str, pl.DataFrame] | None = None,
    whole: bool = True,
) -> list[Note]:
    """Return notes on datums that one side does not have.

    Args:
        came_along: whether the datums are listed by the ground truths' files, not by a table of the
            user.
        whole: whether these are all rows, so that few datums without predictions need no count.
    """
    notes = []
    everything = DATUMS if DATUMS in ids.there else None
    sides = [role for role in (PREDICTIONS, GROUND_TRUTHS, TABLE) if role in ids.there]
    if everything is not None and came_along and PREDICTIONS in sides:
        what = (
            "of the predictions that the ground truths' files do not list, scored as having no"
            " ground truths (false positives)"
        )
        notes += _note("datums_not_listed", ids.minus(PREDICTIONS, DATUMS), what, nouns)
    elif everything is not None:
        for side in sides:
            what = f"of the {side.replace('_', ' ')} not listed in the datums table"
            notes += _note("datums_not_listed", ids.minus(side, DATUMS), what, nouns)
    if sides == [TABLE]:
        if everything is not None:
            unmatched = ids.minus(DATUMS, TABLE)
            notes += _note("datums_without_rows", unmatched, "without rows", nouns)
        return notes
    unmatched = ids.minus(everything or GROUND_TRUTHS, PREDICTIONS)
    if len(unmatched) or not whole:  # all parts count
        with_truths, truths = (len(ids.minus(GROUND_TRUTHS, PREDICTIONS)), ids.count(GROUND_TRUTHS))
        words = nouns.one, nouns.many, "without predictions"
        note = note_of(
            "datums_without_predictions", len(unmatched), words, unmatched.head(5).to_list()
        )
        facts: dict[str, Any] = {"with_ground_truths": with_truths, "ground_truths": truths}
        if rows is not None and (not whole or with_truths >= MANY * truths):
            facts |= _sizes(ids, videos="frame" in rows[GROUND_TRUTHS].columns)
        notes.append(msgspec.structs.replace(note, facts={**facts, "least": 1}))
    unmatched = ids.minus(everything or PREDICTIONS, GROUND_TRUTHS)
    return notes + _note("datums_without_ground_truths", unmatched, "without ground truths", nouns)


def _sizes(ids: DatumIds, *, videos: bool) -> dict[str, Any]:
    """Count datums by their number of ground truths, and those of them without predictions.

    A detector misses all of few objects easily; a run that lost its rows lost them everywhere.
    Videos, and datums with many objects, count as lost whatever the others have.

    Returns:
        ``sizes``: number of ground truths -> datums, and those without predictions; ``lost``.
    """
    rows = np.bincount(ids.codes[GROUND_TRUTHS], minlength=len(ids.values))
    present = ids.there[GROUND_TRUTHS]
    missing = rows[present & ~ids.there[PREDICTIONS]]
    of_size = np.bincount(rows[present])
    of_missing = np.bincount(missing, minlength=of_size.size)
    occurring = np.flatnonzero(of_size).tolist()
    sizes = {str(size): [int(of_size[size]), int(of_missing[size])] for size in occurring}
    return {"sizes": sizes, "lost": missing.size if videos else int((missing >= _FULL).sum())}


_FULL = 50  # ground truths that no detector misses all of


def _note(kind: str, values: pl.Series, what: str, nouns: DatumNouns) -> list[Note]:
    n, words = len(values), (nouns.one, nouns.many, what)
    return [note_of(kind, n, words, values.head(5).to_list())] if n else []


def label_pairs(frame: pl.DataFrame, column: str = "label_value") -> pl.DataFrame:
    """Return the distinct (label_key, label_value) of a side, sorted."""
    keys = distinct(frame["label_key"]) if "label_key" in frame.columns else [DEFAULT_LABEL_KEY]
    nested = isinstance(frame.schema[column], pl.List)
    if len(keys) > 1:
        pairs = frame.select("label_key", pl.col(column).alias("label_value"))
        if nested:
            pairs = pairs.unique().explode("label_value", empty_as_null=False, keep_nulls=False)
        return pairs.unique().sort("label_key", "label_value")
    values = frame[column]
    if nested:
        values = values.explode(empty_as_null=False, keep_nulls=False)
    values = distinct(values).alias("label_value")
    key = pl.Series("label_key", keys if len(keys) else [DEFAULT_LABEL_KEY], dtype=pl.String)
    return pl.DataFrame({"label_key": key.new_from_index(0, len(values)), "label_value": values})


def side_pairs(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the distinct labels of both sides and of the declared ones.

    In one table ``actual`` is the side of the ground truths, ``predicted`` that of the predictions;
    score columns are predictions too. Missing sides are omitted.
    """
    pairs = {}
    for role, frame in frames.items():
        if {"object_id", "region"} <= {*frame.columns}:  # regions are no objects
            frame = frame.filter(~pl.col("region").cast(pl.Boolean).fill_null(value=False))
        for name in LABEL_COLUMNS:
            if name in frame.columns and role not in (DATUMS, SCORES):
                pairs[SIDE_OF.get(name, role)] = label_pairs(frame, name)
    if SCORES in frames:
        home = frames[TABLE] if TABLE in frames else frames[PREDICTIONS]
        keys = home["label_key"] if "label_key" in home.columns else [DEFAULT_LABEL_KEY]
        crossed = pl.DataFrame({"label_key": pl.Series(keys, dtype=pl.String).unique()}).join(
            frames[SCORES], how="cross"
        )
        tables = [pairs[PREDICTIONS], crossed] if PREDICTIONS in pairs else [crossed]
        pairs[PREDICTIONS] = pl.concat(tables).unique().sort("label_key", "label_value")
    return pairs


def label_notes(pairs: Mapping[str, pl.DataFrame], keyed: Container[str]) -> list[Note]:
    """Return notes on labels and label keys that occur on only one side.

    Args:
        pairs: side to its labels after any label map.
        keyed: sides with a label_key column.

    Raises:
        InputError: label keys on only one side, so that no labels match.
    """
    ours, theirs = pairs.get(PREDICTIONS), pairs.get(GROUND_TRUTHS)
    undeclared = _undeclared(pairs) if LABELS in pairs else []
    if ours is None or theirs is None or not ours.height or not theirs.height:
        return undeclared
    one_keyed = (PREDICTIONS in keyed) != (GROUND_TRUTHS in keyed)
    if ours.equals(theirs, null_equal=False) and not one_keyed:
        return undeclared
    unmatched = [
        mine.join(other, on=["label_key", "label_value"], how="anti", maintain_order="left")
        for mine, other in ((ours, theirs), (theirs, ours))
    ]
    keys = {side: set(frame["label_key"].unique()) for side, frame in pairs.items()}
    common = keys[PREDICTIONS] & keys[GROUND_TRUTHS]
    notes: list[Note] = []
    if one_keyed:
        notes.append(_one_keyed(keyed, keys, bool(common)))
    if not common:
        key_lists = {side: listing(sorted(values)) for side, values in keys.items()}
        notes.append(
            Note(
                "no_common_label_key",
                "predictions and ground truths have no label_key in common "
                f"({key_lists[PREDICTIONS]} against {key_lists[GROUND_TRUTHS]}): no row can match.",
                0,
                warning=True,
            )
        )
    elif unmatched[0].height == ours.height:
        message = "no label of the predictions is one of the ground truths: no row can match."
        notes.append(Note("no_common_label", message, 0, warning=True))
    if common:
        notes += _spelling_notes(ours["label_value"], theirs["label_value"], unmatched)
    for side, one_sided in zip((PREDICTIONS, GROUND_TRUTHS), unmatched, strict=True):
        if one_sided.height:
            notes.append(_in_one_only(side, _labels(one_sided, _MOST_LISTED), one_sided.height))
    return notes + undeclared


_MISSING = ("NaN", "nan", "<NA>", "None")
TEXTS_AS_LABELS = ("missing_as_label", "lists_as_labels")
"""Notes on rows, which parts add up."""


def missing_notes(
    frames: Mapping[str, pl.DataFrame],
    pairs: Mapping[str, pl.DataFrame],
    mapped: Mapping[str, Collection[Any]] | None = None,
) -> list[Note]:
    """Return warnings on texts of missing values and of lists among labels.

    Args:
        pairs: side to its labels.
        mapped: side to those that a label map renames.
    """
    labels_of = {}
    for side in (PREDICTIONS, GROUND_TRUTHS):
        if side in pairs and pairs[side].schema["label_value"] == pl.String:
            labels_of[side] = pairs[side]["label_value"].drop_nulls()
    notes = []

    def noted(kind: str, side: str, odd: list[str], texts: Sequence[pl.Series], why: str) -> None:
        n = sum(int(values.is_in(odd).sum()) for values in texts)
        if n:  # otherwise another bucket has them
            what = f"of the {side.replace('_', ' ')} with the label {listing(sorted(odd))}, {why}"
            note = note_of(kind, n, ("row", "rows", what))
            facts = {"side": side, "count": n, "labels": sorted(odd)}
            notes.append(msgspec.structs.replace(note, warning=True, facts=facts))

    for side, labels in labels_of.items():
        unmapped = labels.filter(~labels.is_in(list((mapped or {}).get(side, ())))).unique()
        odd, lists = (
            unmapped.filter(unmapped.is_in(_MISSING)).to_list(),
            unmapped.filter(are_lists(unmapped)).to_list(),
        )
        if not odd and not lists:
            continue
        texts = [
            frames[role][name]
            for role, name in places(frames, LABEL_COLUMNS)
            if SIDE_OF.get(name, role) == side and frames[role][name].dtype == pl.String
        ]
        if lists:
            why = (
                "a list written as text, read as one class: give JSON Lines or Parquet with lists,"
                f" and {option('multilabel', True)}"
            )
            noted("lists_as_labels", side, lists, texts, why)
        often = sum(int((values == "None").sum()) for values in texts)
        on_both_sides = len(labels_of) == 2 and all("None" in one for one in labels_of.values())
        if on_both_sides or often > MANY * sum(map(len, texts)):
            odd = [one for one in odd if one != "None"]  # a class
        if not odd or labels.n_unique() <= len(odd):
            continue
        why = "read as a class: are values missing? Remove these rows, or write another name"
        noted("missing_as_label", side, odd, texts, why)
    return notes


FIRST_TEXTS = 1000
"""Texts of each side that are looked at."""


def unicode_forms(ours: pl.Series, theirs: pl.Series, name: str) -> list[Note]:
    """Warn if the first texts of one side are decomposed and those of the other composed.

    Args:
        ours: texts of the predictions.
        theirs: texts of the other side, called ``name``.
    """
    sides, names = (ours.head(FIRST_TEXTS), theirs.head(FIRST_TEXTS)), ("predictions", name)
    marked = [
        not all(map(str.isascii, side.to_list()))  # ASCII has one form
        and bool((side.str.normalize("NFC") != side).any())
        for side in sides
    ]
    if marked[0] == marked[1]:
        return []
    plain = sides[marked.index(False)]
    if not (plain.str.normalize("NFD") != plain).any():
        return []
    message = (
        f"texts of the {names[marked.index(True)]} are decomposed (Unicode NFD), those of the"
        f" {names[marked.index(False)]} composed (NFC): equal to the eye, unequal in every metric."
        " Normalise both, e.g. with .str.normalize('NFC') of Polars."
    )
    return [Note("unicode_forms", message, warning=True)]


def are_lists(texts: pl.Series) -> pl.Series:
    """Return which texts are lists of texts: ``['a', 'b']``, ``["a"]``."""
    return texts.str.contains(r"^\s*\[\s*['\"].*['\"]\s*\]\s*$")


def _in_one_only(side: str, labels: Sequence[Any], many: int) -> Note:
    """Make a note on labels of only one side; ``labels`` may be just the first ones."""
    what = f"{count_of(many, 'label')} in the {side.replace('_', ' ')} only"
    message = f"{what}: {listing(labels, many)}."
    return Note(f"labels_in_{side}_only", message, many, lowest=tuple(labels))


def without_labels(notes: Sequence[Note], settled: Collection[str]) -> list[Note]:
    """Remove labels from notes that only the ground truths are allowed to have."""
    left = []
    for note in notes:
        if settled and note.kind == f"labels_in_{GROUND_TRUTHS}_only":
            labels = [one[-1] if isinstance(one, tuple) else one for one in note.lowest]
            named = [
                one
                for one, value in zip(note.lowest, labels, strict=True)
                if str(value) not in settled
            ]
            many = (note.count or 0) - len(labels) + len(named)
            left += [_in_one_only(GROUND_TRUTHS, named, many)] if many else []
        else:
            left.append(note)
    return left


def _undeclared(pairs: Mapping[str, pl.DataFrame]) -> list[Note]:
    """Labels that a table of labels does not list."""
    sides = [pairs[side] for side in (PREDICTIONS, GROUND_TRUTHS) if side in pairs]
    if not pairs[LABELS].height or not sides:
        return []
    used = pl.concat(sides).unique(maintain_order=True)
    undeclared = used.join(
        pairs[LABELS], on=["label_key", "label_value"], how="anti", maintain_order="left"
    )
    if not undeclared.height:
        return []
    some = listing(_labels(undeclared), undeclared.height)
    what = count_of(undeclared.height, "label")
    return [
        Note("labels_not_declared", f"{what} not in the labels table: {some}.", undeclared.height)
    ]


def _labels(pairs: pl.DataFrame, most: int = N_NAMES) -> list[Any]:
    first = pairs.head(most)
    if first["label_key"].n_unique() == 1 and first["label_key"][0] == DEFAULT_LABEL_KEY:
        return first["label_value"].to_list()
    return list(first.iter_rows())


def _one_keyed(keyed: Container[str], keys: Mapping[str, set[str]], meets: bool) -> Note:
    side, other = PREDICTIONS, GROUND_TRUTHS
    if side not in keyed:
        side, other = other, side
    plain = other.replace("_", " ")
    text = (
        f"the {side.replace('_', ' ')} have a label_key column ({listing(sorted(keys[side]))}), the"
        f" {plain} have none and take {DEFAULT_LABEL_KEY!r}"
    )
    if not meets:
        raise InputError(
            f"label_key: {text}, so no row can match. Give the {plain} a label_key column, drop "
            f"it from the {side.replace('_', ' ')}, or map labels with {option('label_map')}.",
            code="label_key_one_side",
        )
    return Note("label_key_one_side", f"{text}.")
