"""Labels of two sides that seem to be the same and are written or numbered in two ways."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from evalengine.schemas.wording import option

from .geometry import CORNER_NAMES
from .problems import Note, count_of

_MOST = 2_000  # labels of a side that are compared letter by letter
_NEAR = 0.8  # similarity from which names may be one
_SHOWN = 5
_LEAST = 3  # numbered classes of a side from which their range tells something


def spelling_notes(ours: pl.DataFrame, theirs: pl.DataFrame) -> list[Note]:
    """Compare the spelling of labels that occur on only one side.

    Args:
        ours: label_key and label_value of the predictions, distinct.
        theirs: label_key and label_value of the ground truths, distinct.

    Returns:
        A warning on labels that differ only in case, blanks, hyphens or plural, or on classes
        numbered from 0 and from 1; a note on similar names.
    """
    keys = ["label_key", "label_value"]
    lone = [
        a.join(b, on=keys, how="anti", maintain_order="left")["label_value"].drop_nulls().unique()
        for a, b in ((ours, theirs), (theirs, ours))
    ]
    if not all(len(side) for side in lone):
        return []
    if lone[0].dtype.is_integer() and lone[1].dtype.is_integer():
        return _numbered(ours["label_value"], theirs["label_value"], lone[0], lone[1])
    mine, others = (sorted(map(str, side)) for side in lone)
    known = {plain(other): other for other in others}
    same = {name: known[plain(name)] for name in mine if plain(name) in known}
    notes = []
    if same:
        notes.append(
            Note(
                "labels_spelt_apart",
                f"{count_of(len(same), 'label')} of the predictions"
                f" {'differs' if len(same) == 1 else 'differ'} from one of the ground truths in"
                " capitals, blanks, hyphens or plural alone, and so cannot match:"
                f" {_pairs(same)}. If they are the same: {_mapped(same)}.",
                len(same),
                warning=True,
            )
        )
    near = _near([n for n in mine if n not in same], [o for o in others if o not in same.values()])
    if near:
        notes.append(
            Note(
                "labels_look_alike",
                f"{count_of(len(near), 'label')} of the predictions"
                f" {'looks' if len(near) == 1 else 'look'} like one of the ground truths:"
                f" {_pairs(near)}. If they are the same: {_mapped(near)}.",
                len(near),
            )
        )
    return notes


def plain(label: str) -> str:
    """Return a label without case, separators and plural endings."""
    bare = re.sub(r"[\s_./-]+", "", label.casefold())
    return re.sub("(?<=[sxz])es$|(?<=[^sui])s$", "", bare) or bare


def _near(mine: list[str], others: list[str]) -> dict[str, str]:
    """Names that differ in few letters, numbers in them aside: ``class 1`` is not ``class 2``."""
    if not mine or not others or max(len(mine), len(others)) > _MOST:
        return {}
    # Imported on call: only needed for labels that do not match.
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extractOne

    by_numbers: dict[tuple[str, ...], list[str]] = {}
    for other in others:
        by_numbers.setdefault(_numbers(other), []).append(other)
    found: dict[str, str] = {}
    for name in mine:
        choices = by_numbers.get(_numbers(name), [])
        best = extractOne(name, choices, scorer=OSA.normalized_similarity, score_cutoff=_NEAR)
        if best is not None:
            found[name] = best[0]
    return found


def _numbers(name: str) -> tuple[str, ...]:
    return tuple(re.findall("[0-9]+", name))


def _numbered(ours: pl.Series, theirs: pl.Series, mine: pl.Series, others: pl.Series) -> list[Note]:
    """Return a warning on gapless class numbers, equally many on both sides, that are offset by
    one.
    """
    sides = [side.drop_nulls().unique().cast(pl.Int64).sort() for side in (ours, theirs)]
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
        frames: side to its table, or one table of both.
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
    known = dict(best.select("number", "name").sort("number").iter_rows())
    few = pairs.height < min(_EACH * many, _SURELY_MANY)
    return None if few and not known.items() <= guess.items() else (known, pairs.height)


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
    both = ours.join(theirs, on="datum_id", suffix="_other", maintain_order="left_right")
    named = {"mine": "label_value", "other": "label_value_other"}
    if not boxes:
        return both.select(**named).drop_nulls()
    low = {n: pl.max_horizontal(n, f"{n}_other") for n in ("xmin", "ymin")}
    high = {n: pl.min_horizontal(n, f"{n}_other") for n in ("xmax", "ymax")}
    shared = (high["xmax"] - low["xmin"]).clip(0) * (high["ymax"] - low["ymin"]).clip(0)

    def area(end: str) -> pl.Expr:
        wide, tall = (pl.col(f"{n}max{end}") - pl.col(f"{n}min{end}") for n in "xy")
        return wide * tall

    iou = shared / (area("") + area("_other") - shared)
    best = both.with_columns(iou=iou).sort("iou", descending=True, maintain_order=True)
    best = best.filter(pl.col("iou") >= _OVERLAP).unique("row_other", keep="first")
    return best.select(**named).drop_nulls()


def _pairs(found: dict[str, str]) -> str:
    some = "; ".join(f"{a!r} and {b!r}" for a, b in list(found.items())[:_SHOWN])
    more = len(found) - _SHOWN
    return f"{some} and {more:,} more" if more > 0 else some


def _mapped(found: dict[str, str]) -> str:
    first = dict(list(found.items())[:_SHOWN])
    more = {"...": ""} if len(found) > _SHOWN else {}
    return option("label_map", {**first, **more})
