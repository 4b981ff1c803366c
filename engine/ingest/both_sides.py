"""Cross-checks of predictions and ground truths: ids, labels and datums."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..schemas.contract import DATUMS, DEFAULT_LABEL_KEY, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import InputError
from ..schemas.wording import option
from . import dtypes
from .geometry import CORNER_NAMES
from .ids import FORMS, Known, Lone, distinct, stepped, written
from .problems import MANY, PLAIN, Note, Speech, count_of, listing, note_of

# Labels that seem equal but are written or numbered differently on both sides.

_MOST = 2_000  # labels of a side that are compared letter by letter
_NEAR = 0.8  # similarity from which names may be one
_SHOWN = 5
_LEAST = 3  # numbered classes of a side from which their range is evidence


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
    blank = _blanks(lone, (theirs["label_value"], ours["label_value"]))
    if not all(len(side) for side in lone) and not blank:
        return []
    if lone[0].dtype.is_integer() and lone[1].dtype.is_integer():
        return _numbered(ours["label_value"], theirs["label_value"], lone[0], lone[1])
    mine, others = (sorted(map(str, side)) for side in lone)
    known = {plain(other): other for other in others}
    same = {name: known[plain(name)] for name in mine if plain(name) in known} | blank
    bare = all(a.strip() == b.strip() for a, b in same.items())
    way = option("label_format", ["blanks"]) if bare else _mapped(same)
    notes = []
    if same:
        notes.append(
            Note(
                "labels_spelt_apart",
                f"{count_of(len(same), 'label')} of the predictions "
                f"{'differs' if len(same) == 1 else 'differ'} from one of the ground truths only "
                f"in capitals, blanks, hyphens or plural, and so cannot match: {_pairs(same)}. "
                f"If they are the same: {way}.",
                len(same),
                warning=True,
                facts={"count": len(same), "blanks": bare},
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


def _blanks(lone: Sequence[pl.Series], others: Sequence[pl.Series]) -> dict[str, str]:
    """Labels of the predictions, and those of the ground truths equal but for blanks around."""
    found: dict[str, str] = {}
    for i, (side, other) in enumerate(zip(lone, others, strict=True)):
        if side.dtype == pl.String == other.dtype and (odd := [n for n in side if n != n.strip()]):
            known = {name.strip(): name for name in other.drop_nulls()}
            pairs = [(name, known[name.strip()]) for name in sorted(odd) if name.strip() in known]
            found |= dict(pairs) if i == 0 else {b: a for a, b in pairs}
    return found


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


# Diagnosis of datum ids that do not match: cause, evidence, remedy.

_HARDLY = 0.1  # share of the smaller side below which common ids are diagnosed
_LOOKED_AT = 5_000  # ids of the smaller side
_PAIRED = 200_000  # ids of the larger side up to which forms are tried two at a time
_MENDED = 0.5  # share of the ids looked at that a form has to bring together
_SURE = 0.95  # share from which no further form is tried
_CHANCE = 4.0  # standard deviations above chance
_LEAST_IDS = 10  # ids of a side from which a range is evidence
_LOWEST = 100  # ids of a bucket kept to diagnose ids that do not match
_SAID = {PREDICTIONS: "predictions", GROUND_TRUTHS: "ground truths"}


Ends = tuple[tuple[int, int], tuple[int, int]]
"""Lowest and highest integer id of the predictions, and of the ground truths."""


class CommonIds(msgspec.Struct, frozen=True):
    """Distinct datum ids of both sides.

    Attributes:
        some: ids of each, ascending: all, or the lowest.
    """

    sizes: tuple[int, int]
    common: int
    some: tuple[pl.Series, pl.Series]
    ends: Ends | None = None

    @classmethod
    def of_parts(cls, parts: Sequence[Any]) -> CommonIds:
        """Merge the results of parts, as returned by :meth:`plain`; at least one."""
        sizes = tuple(sum(part[0][i] for part in parts) for i in (0, 1))
        some = tuple(
            pl.Series([one for part in parts for one in part[2][i]]).sort() for i in (0, 1)
        )
        known = [part[3] for part in parts]
        ends = (
            None
            if None in known
            else tuple(
                (min(end[i][0] for end in known), max(end[i][1] for end in known)) for i in (0, 1)
            )
        )
        return cls(sizes, sum(part[1] for part in parts), some, ends)  # type: ignore[arg-type]

    @property
    def plain(self) -> list[Any]:
        """As JSON has it."""
        return [self.sizes, self.common, [ids.to_list() for ids in self.some], self.ends]


def common_ids(ids: Mapping[str, Known], frames: Mapping[str, pl.DataFrame]) -> CommonIds | None:
    """Summarise the matching ids of a part; None for one table."""
    if TABLE in frames:
        return None
    if not {PREDICTIONS, GROUND_TRUTHS} <= ids.keys():  # the same ids row by row
        n, values = frames[PREDICTIONS].height, frames[PREDICTIONS]["datum_id"]
        return CommonIds((n, n), n, (values.head(_LOWEST),) * 2, _ends_of(values, values))
    ours, theirs = ids[PREDICTIONS], ids[GROUND_TRUTHS]
    common = len(ours) - len(ours.lacking(theirs))
    some = ours.lowest(_LOWEST), theirs.lowest(_LOWEST)
    return CommonIds((len(ours), len(theirs)), common, some, _ends_of(ours.values, theirs.values))


def _ends_of(ours: pl.Series, theirs: pl.Series) -> Ends | None:
    if not all(side.dtype.is_integer() and len(side) for side in (ours, theirs)):
        return None
    return tuple((side.min(), side.max()) for side in (ours, theirs))  # type: ignore[return-value]


def check_meet(
    ids: Mapping[str, Known], speech: Speech = PLAIN, rows: Mapping[str, pl.DataFrame] | None = None
) -> list[Note]:
    """Refuse two sides without a common datum, unless a table of datums declares both.

    Args:
        ids: table to its distinct datum ids.
        rows: tables, which show whether labels or numbers agree once ids are moved.

    Returns:
        A warning if few are common, or if one side seems to be numbered with an offset.

    Raises:
        InputError: with samples of each side, and a remedy.
    """
    if not {PREDICTIONS, GROUND_TRUTHS} <= ids.keys():
        return []
    ours, theirs = ids[PREDICTIONS], ids[GROUND_TRUTHS]
    if ours is theirs or not (len(ours) and len(theirs)):
        return []
    if DATUMS in ids and not any(_met_by(side, ids[DATUMS]) for side in (ours, theirs)):
        raise none_listed(theirs.ordered, ids[DATUMS].ordered, speech)
    sizes = len(ours), len(theirs)
    common = sizes[0] - len(ours.lacking(theirs))
    listed = DATUMS in ids and not any(len(side.lacking(ids[DATUMS])) for side in (ours, theirs))
    near = common < _HARDLY * min(sizes) or _some_lack(sizes, common)
    some = (ours.ordered, theirs.ordered) if near else (ours.values, theirs.values)
    ends = _ends_of(ours.values, theirs.values) if near else None
    if _some_lack(sizes, common) and ours.ordered.dtype == pl.String:
        both = numbers_of(pl.concat([ours.ordered, theirs.ordered]))
        ends = None if both is None else _ends_of(both[: sizes[0]], both[sizes[0] :])
    met = CommonIds(sizes, common, some, ends)
    notes = hardly_met(met, listed=listed, speech=speech)
    if ends is not None and not notes and rows and _agree_moved(rows, ends[1][0] - ends[0][0]):
        notes = _counted_from(met, speech, sure=True)
    return notes


def _agree_moved(rows: Mapping[str, pl.DataFrame], step: int) -> bool:
    """Return True if labels or numbers agree far better once integer ids are moved."""
    ours, theirs = rows[PREDICTIONS], rows[GROUND_TRUTHS]
    for mine, other in (("label_value", "label_value"), ("prediction", "target")):
        if mine not in ours.columns or other not in theirs.columns or not step:
            continue
        if not (ours["datum_id"].dtype.is_integer() and theirs["datum_id"].dtype.is_integer()):
            return False
        if "score" in ours.columns:
            ours = ours.sort("score", descending=True)
        sides = [
            side.select("datum_id", value=name).unique("datum_id", keep="first")
            for side, name in ((ours, mine), (theirs, other))
        ]
        if any(isinstance(side["value"].dtype, pl.List) for side in sides):
            return False
        before, after = (
            sides[0]
            .with_columns(pl.col("datum_id").cast(pl.Int64) + move)
            .join(sides[1].cast({"datum_id": pl.Int64}), on="datum_id")
            .drop_nulls()
            .select(
                pl.corr("value", "value_right")
                if mine == "prediction"
                else (pl.col("value") == pl.col("value_right")).mean()
            )
            .item()
            or 0.0
            for move in (0, step)
        )
        return bool(after > before + _CLEARLY)
    return False


_CLEARLY = 0.2  # by how much more labels or numbers agree once ids are moved


def numbers_of(ids: pl.Series) -> pl.Series | None:
    """Return the last number of each id as an integer, if ids have all else in common."""
    parts = ids.to_frame("id").select(
        number=pl.col("id").str.extract(r"(\d+)\D*$").cast(pl.Int64, strict=False),
        rest=pl.col("id").str.replace(r"\d+(\D*)$", "#$1"),
    )
    plain = parts["rest"].n_unique() == 1 and not parts["number"].null_count()
    return parts["number"] if plain else None


def _met_by(side: Known, datums: Known) -> int:
    return len(side) - len(side.lacking(datums))


def none_listed(some: pl.Series, datums: pl.Series | None, speech: Speech = PLAIN) -> InputError:
    """Return the error for a table of datums without an id of either side.

    Args:
        datums: ids of the table, if known.
    """
    there = "" if datums is None else f" ({samples(datums)})"
    why = "" if datums is None else mend(some, datums, speech, (_SAID[GROUND_TRUTHS], "datums"))
    return InputError(
        f"datums: no {speech.column} of the table{there} is one of the predictions or ground "
        f"truths ({samples(some)}), so no datum is "
        f"scored.{why or ' Does it describe these data?'}",
        code="no_common_id",
        column=speech.column,
    )


def hardly_met(met: CommonIds, *, listed: bool, speech: Speech = PLAIN) -> list[Note]:
    """Return notes on how well the ids of two sides match; see :func:`check_meet`.

    Args:
        listed: whether a table of datums declares all of them.
    """
    least = min(met.sizes)
    if met.common >= _HARDLY * least:
        return _counted_from(met, speech)
    if listed:
        return []
    why = mend(*met.some, speech) or _below_folders(*met.some)
    said = (
        f"predictions have {count_of(met.sizes[0], speech.one, speech.many)} "
        f"({samples(met.some[0])}), ground truths {met.sizes[1]:,} "
        f"({samples(met.some[1])}).{why or _alike(*met.some)}"
    )
    if not why:
        said += (
            " Are both of the same dataset, and is the right column the id? To name it: "
            f"{option('columns', {'mine': speech.column})}."
        )
    if not met.common:
        raise InputError(
            f"predictions and ground truths have no {speech.column} in common: {said}",
            code="no_common_id",
            column=speech.column,
        )
    return [
        Note(
            "ids_hardly_meet",
            f"only {count_of(met.common, speech.one, speech.many)} of {least:,}"
            f" ({met.common / least:.1%}) {'is' if met.common == 1 else 'are'} on both sides, and"
            f" the numbers mean little: {said}",
            warning=True,
        )
    ]


def samples(values: pl.Series) -> str:
    """The first three distinct values, as messages have them."""
    if isinstance(values.dtype, pl.List):
        values = values.head(100).explode(empty_as_null=False, keep_nulls=False)
    return listing(values.drop_nulls().head(100).unique(maintain_order=True).head(3).to_list())


def mend(
    ours: pl.Series,
    theirs: pl.Series,
    speech: Speech = PLAIN,
    called: tuple[str, str] = (_SAID[PREDICTIONS], _SAID[GROUND_TRUTHS]),
) -> str:
    """Return the difference between ids, how many match after correction, and the option for it.

    Args:
        ours: distinct ids of the predictions.
        theirs: distinct ids of the ground truths.

    Returns:
        A sentence that begins with a blank; empty without sufficient evidence.
    """
    if ours.dtype.is_integer() and theirs.dtype.is_integer():
        best = _stepped(ours, theirs)
    else:
        best = _best(ours.cast(pl.String), theirs.cast(pl.String))
    if best is None:
        return ""
    few = called[len(ours) > len(theirs)]
    looked = f"{best.of:,} {speech.many} of the {few}" + (" looked at" if best.part else "")
    return (
        f" They {best.differ}: {best.met:,} of {looked} match the other side's once that is"
        f" corrected ({best.pair[0]!r} and {best.pair[1]!r}). Write"
        f" {option('id_format', list(best.forms))}{best.doubt}."
    )


def differing(ours: pl.Series, theirs: pl.Series, many: str) -> str:
    """Return the difference between ids other than datum ids, which no option corrects; or ""."""
    if ours.dtype != pl.String or theirs.dtype != pl.String:
        return ""
    best = _best(ours.unique().sort(), theirs.unique().sort())
    if best is None:
        return ""
    return (
        f" They {best.differ}: {best.met:,} of {best.of:,} {many} match once that is corrected"
        f" ({best.pair[0]!r} and {best.pair[1]!r}). Write {many} alike in both tables"
        f" ({option('id_format')} is not of these)."
    )


def _below_folders(ours: pl.Series, theirs: pl.Series) -> str:
    """That several folders of one side have the same names, which are ids of the other."""
    if ours.dtype != pl.String or theirs.dtype != pl.String:
        return ""
    for side, other, called in ((ours, theirs, PREDICTIONS), (theirs, ours, GROUND_TRUTHS)):
        parts = side.to_frame("id").select(
            folder=pl.col("id").str.extract("^(.*)/"), name=pl.col("id").str.extract("([^/]*)$")
        )
        folders = parts["folder"].unique().drop_nulls().sort()
        names = parts["name"].unique()
        met = int(names.is_in(other.implode()).sum())
        if len(folders) > 1 and len(names) < len(side) and 2 * met >= min(len(names), len(other)):
            return (
                f" The {_SAID[called]} are of {len(folders):,} folders ({samples(folders)}) with"
                " files of the same names, so that folders belong to the ids: of several models,"
                " give one folder at a time."
            )
    return ""


class _Mended(NamedTuple):
    """Correction of ids.

    Attributes:
        forms: for ``id_format``.
        part: whether these are only some ids of the smaller side.
        pair: a matching id of the predictions and one of the ground truths.
    """

    forms: tuple[str, ...]
    differ: str
    met: int
    of: int
    part: bool
    pair: tuple[object, object]
    doubt: str = ""


def _best(ours: pl.Series, theirs: pl.Series) -> _Mended | None:
    """The plainest form that brings most ids together."""
    best: _Mended | None = None
    for forms, differ in _tries(ours, theirs):
        if best is not None and best.met >= _SURE * best.of:
            break
        found = _mended(ours, theirs, forms, differ)
        if found is not None and (best is None or found.met > 1.1 * best.met):
            best = found
    return best


def _tries(ours: pl.Series, theirs: pl.Series) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield forms to try, simplest first, with a description of the difference."""
    plain = [name for name in FORMS if name not in ("text", "number")]
    yield ("text",), "differ in type"
    for name in plain:
        yield (name,), f"differ in {FORMS[name].differ}"
    if max(len(ours), len(theirs)) <= _PAIRED:
        for name in ("extension", "file", "stem"):
            for other in ("case", "blanks", "unicode", "zeros"):
                both = f"differ in {FORMS[name].differ}, and in {FORMS[other].differ}"
                yield (name, other), both
        for before in ((), ("stem",)):
            pattern = around(*(_as_written(side, before) for side in (ours, theirs)))
            if pattern is not None:
                yield (*before, pattern), "differ in their prefix or suffix"
    yield ("number",), "differ in everything but their last number"
    for step, one in (("-1", "higher"), ("+1", "lower")):
        differ = "differ in everything but their last number, which is"
        yield ("number", step), f"{differ} {one} by 1 in the predictions"


def _as_written(ids: pl.Series, forms: tuple[str, ...]) -> pl.Series:
    return ids.to_frame("id").select(written(pl.col("id"), forms))["id"]


def around(ours: pl.Series, theirs: pl.Series) -> str | None:
    """Return a regular expression that removes the common prefix and suffix of one side's ids."""
    ends = [_ends(side) for side in (ours, theirs)]
    if ends[0] == ends[1]:
        return None
    # Keep common affixes of both sides, and those that contain each other.
    (one, other), (first, last) = (sorted(both, key=len) for both in zip(*ends, strict=True))
    before = {other[: len(other) - len(one)]} if other.endswith(one) else {one, other}
    behind = {last[len(first) :]} if last.startswith(first) else {first, last}
    before, behind = before - {""}, behind - {""}
    pattern = "(.*?)" if behind else "(.*)"
    for found, place in ((before, "^{}"), (behind, "{}$")):
        either = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
        at = place.format(f"(?:{either})?" if either else "")
        pattern = at + pattern if place[0] == "^" else pattern + at
    return pattern


def _ends(ids: pl.Series) -> tuple[str, str]:
    """Return the common prefix and suffix of a side's ids, except digits and complete ids."""
    some = ids.drop_nulls().to_list()
    if len(some) < 2:  # of one id all is before and behind
        return "", ""
    before = _begin(min(some), max(some))
    turned = [one[::-1] for one in some]
    behind = _begin(min(turned), max(turned))[::-1]
    shortest = min(map(len, some))
    before = re.sub(r"[0-9]+$", "", before)
    behind = re.sub(r"^[0-9]+", "", behind)
    if len(before) + len(behind) >= shortest:
        behind = ""
    return before if len(before) < shortest else "", behind


def _begin(one: str, other: str) -> str:
    same = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        same += 1
    return one[:same]


def _mended(
    ours: pl.Series, theirs: pl.Series, forms: tuple[str, ...], differ: str
) -> _Mended | None:
    """Return the result of applying forms; None if too few match, or if ids of one side collide."""
    numbered = forms[0] == "number"
    step = int(forms[1]) if numbered and len(forms) > 1 else 0
    sides = [
        side.to_frame("old").with_columns(new=written(pl.col("old"), forms[:1] if step else forms))
        for side in (ours, theirs)
    ]
    if step:
        sides[0] = sides[0].with_columns(new=stepped(pl.col("new"), step))
    if any(side["new"].n_unique() < side.height for side in sides):
        return None
    few, many = (0, 1) if len(ours) <= len(theirs) else (1, 0)
    looked = _some(sides[few])
    pairs = looked.join(sides[many], on="new", how="inner", suffix="_other", maintain_order="left")
    if pairs.height < max(_MENDED * looked.height, min(2, looked.height)):
        return None
    found = (pairs["old"][0], pairs["old_other"][0])
    doubt = ""
    if numbered or "(" in forms[-1]:
        by_chance = _by_chance(looked["new"], sides[many]["new"])
        if by_chance is not None and not _beyond(pairs.height, looked.height, by_chance):
            same = pairs.height == sides[0].height == sides[1].height > 1
            if not same:
                return None
            doubt = ", if equal numbers are the same datum: such numbers may match by chance"
    return _Mended(
        forms,
        differ,
        pairs.height,
        looked.height,
        looked.height < sides[few].height,
        found if few == 0 else found[::-1],
        doubt,
    )


def _some(ids: pl.DataFrame) -> pl.DataFrame:
    return ids.gather_every(math.ceil(ids.height / _LOOKED_AT))


def _by_chance(ids: pl.Series, others: pl.Series) -> float | None:
    """Return the share of numbers that would match by chance; None if not numbers."""
    mine, known = (side.cast(pl.Int64, strict=False).drop_nulls() for side in (ids, others))
    if 2 * len(mine) < len(ids) or 2 * len(known) < len(others):
        return None
    return _filled(known.to_numpy())


def _filled(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Return the density of distinct numbers within their range."""
    return float(numbers.size / (float(numbers.max()) - float(numbers.min()) + 1))


def _beyond(met: int, of: int, chance: float) -> bool:
    """Return whether more ids match than by chance."""
    spread = math.sqrt(max(of * chance * (1 - chance), 1e-9))
    return met - of * chance > _CHANCE * spread and met > 1


def doubtful(ours: pl.Series, theirs: pl.Series) -> bool:
    """Return whether distinct integers match only partly: fewer than half, or no more than by
    chance.

    Args:
        ours: distinct integers of a side.
    """
    few = min(len(ours), len(theirs))
    met = int(ours.is_in(theirs.implode()).sum())
    if met == few:
        return False
    chance = _by_chance(ours, theirs)
    return 2 * met < few or chance is None or not _beyond(met, len(ours), chance)


def _stepped(ours: pl.Series, theirs: pl.Series) -> _Mended | None:
    """Return the correction of integer ids that match after a shift."""
    mine, known = (side.cast(pl.Int64, strict=False).drop_nulls() for side in (ours, theirs))
    if not len(mine) or not len(known):
        return None
    chance = _filled(known.to_numpy())
    found = []
    ends = (int(known[at]) - int(mine[at]) for at in (0, -1))  # ascending
    for step in dict.fromkeys((1, -1, *ends)):
        if abs(step) >= 10**9:  # more than id_format reads
            continue
        moved = _some(pl.DataFrame({"old": mine, "new": mine + step}))
        met = moved.filter(pl.col("new").is_in(known.implode()))
        of = min(moved.height, len(known))
        enough = met.height >= max(_MENDED * of, 3)
        if enough and _beyond(met.height, moved.height, chance):
            pair = met.row(0)
            differ = f"are {'lower' if step > 0 else 'higher'} by {abs(step):,} in the predictions"
            part = moved.height < len(mine)
            found.append(_Mended((f"{step:+d}",), differ, met.height, of, part, pair))
    return max(found, key=lambda one: one.met, default=None)


def _some_lack(sizes: tuple[int, int], common: int) -> bool:
    """Return whether sides of equal size each have ids missing in the other."""
    return sizes[0] == sizes[1] >= _LEAST_IDS and common < sizes[0]


def _counted_from(met: CommonIds, speech: Speech, *, sure: bool = False) -> list[Note]:
    """Return a warning on gapless integer ids, equally many on both sides, that are offset."""
    if met.ends is None or not _some_lack(met.sizes, met.common):
        return []
    (low, high), (first, last) = met.ends
    step = first - low
    if (
        not step
        or (abs(step) > 1 and not sure)
        or any(end != met.sizes[0] - 1 for end in (high - low, last - first))
    ):
        return []
    forms = [*["number"] * (met.some[0].dtype == pl.String), f"{step:+d}"]
    return [
        Note(
            "ids_one_off",
            f"predictions have the {speech.column}s {low} to {high}, ground truths {first} to"
            f" {last}, without a gap: if one side counts from another number, every"
            f" {speech.one} is compared with another. {option('id_format', forms)}"
            " moves those of the predictions.",
            warning=True,
            facts={"step": step},
        )
    ]


def _alike(ours: pl.Series, theirs: pl.Series) -> str:
    """That ids are of one form and yet others, as those of two splits are."""
    if ours.dtype.is_integer() and theirs.dtype.is_integer():
        return (
            f" They are numbers from {ours[0]} to {ours[-1]}, and from {theirs[0]} to"
            f" {theirs[-1]}: different {'ranges' if _apart(ours, theirs) else 'numbers'}, as in"
            " two splits of a dataset."
        )
    shapes = [
        {re.sub(r"[0-9]+", "#", one) for one in side.cast(pl.String).head(200)}
        for side in (ours, theirs)
    ]
    if shapes[0] & shapes[1] and min(map(len, shapes)) <= 20:
        form = sorted(shapes[0] & shapes[1])[0]
        return (
            f" Both are written alike ({form!r}), and no other spelling makes them match: these"
            " seem to be different datums, as in two splits of a dataset."
        )
    return ""


def _apart(ours: pl.Series, theirs: pl.Series) -> bool:
    return bool(ours[-1] < theirs[0] or theirs[-1] < ours[0])


# Cross-checks of predictions and ground truths.

LABEL_COLUMNS = ("label_value", "actual", "predicted")
SIDE_OF = {"actual": GROUND_TRUTHS, "predicted": PREDICTIONS}
LONE = frozenset({f"labels_in_{side}_only" for side in (PREDICTIONS, GROUND_TRUTHS)})
"""Kinds of notes on labels of one side only."""
SCORES = "score_columns"
"""Key, next to the tables, of the labels of score columns as a table."""
_NAMED = 5  # labels in an example of a map or in a note
_HELD = 100  # labels of one side that a note knows

Place = tuple[str, str]
"""A role and one of its columns."""


def places(frames: Mapping[str, pl.DataFrame], names: Sequence[str]) -> list[Place]:
    """Return the (table, column) pairs of columns with these names."""
    return [(role, name) for role, frame in frames.items() for name in names if name in frame]


def same_kind(
    frames: dict[str, pl.DataFrame], names: Sequence[str], text: Mapping[str, bool]
) -> list[Note]:
    """Unify the dtypes of columns that are matched, over all tables, in place.

    A side without rows adopts the dtype of the others; booleans become 0 and 1 if others are
    integers. CSV files are untyped: their integers become strings if another column contains
    strings.

    Args:
        frames: side to frame; modified in place.
        names: ``datum_id``, or the label columns.
        text: side to whether its ids come from untyped text.

    Returns:
        Notes on conversions to strings.
    """
    present = places(frames, names)
    found = {place: dtypes.inner_of(frames[place[0]].schema[place[1]]) for place in present}
    filled = {
        place: dtype for place, dtype in found.items() if _filled_labels(frames, place)
    } or found
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
    """Refuse negative ids that are matched with ids of 2**63 and above: no integer type has both.

    Raises:
        InputError: names the column and its lowest value.
    """
    flat = values.explode() if isinstance(values.dtype, pl.List) else values
    lowest = flat.min() if flat.dtype.is_signed_integer() else None
    if isinstance(lowest, int) and lowest < 0:
        raise InputError(
            f"{named} has negative ids (lowest {lowest}), and other ids are 2**63 or more: no "
            "integer type fits both. Cast both sides to String.",
            code="ids_too_wide",
            lowest=lowest,
        )


def _kinds(found: Mapping[Place, pl.DataType]) -> set[str]:
    return {dtypes.kind_of(dtype) for dtype in found.values()}


def _filled_labels(frames: Mapping[str, pl.DataFrame], place: Place) -> bool:
    values = frames[place[0]][place[1]]
    if isinstance(values.dtype, pl.List):
        return bool(values.list.len().sum())
    return len(values) > 0


def _cast(frames: dict[str, pl.DataFrame], role: str, name: str, target: pl.DataType) -> None:
    old = frames[role][name]
    wanted = dtypes.like(old.dtype, target)
    if _filled_labels(frames, (role, name)):
        new = old.cast(wanted)
    else:
        # Empty ones have no values to convert, whatever dtype they have.
        new = pl.Series(name, [None if v is None else [] for v in old], dtype=wanted)
    frames[role] = frames[role].with_columns(new)


def check_kinds(
    frames: Mapping[str, pl.DataFrame], names: Sequence[str], speech: Speech = PLAIN
) -> None:
    """Refuse integers on one side and strings on another.

    Raises:
        InputError: states the kind of each side, with three samples of each.
    """
    values = {
        place: frames[place[0]][place[1]]
        for place in places(frames, names)
        if _filled_labels(frames, place)
    }
    kinds = {place: dtypes.kind_of(series.dtype) for place, series in values.items()}
    if len(set(kinds.values())) > 1:
        shown = "; ".join(
            f"{speech.named(name) if role == TABLE else role} {kinds[role, name]}"
            f" ({samples(series)})"
            for (role, name), series in values.items()
        )
        lost = next(place for place, kind in kinds.items() if kind != "strings")
        own = speech.named(lost[1])
        subject = own if lost[0] != TABLE else "labels"
        way = (
            (_mend_of_kinds(values, speech) if "datum_id" in names else "")
            or (_numbers_for_names(values, frames) if {*names} & {*LABEL_COLUMNS} else "")
        ) or (
            f" Bring both to one type, e.g. cast the {kinds[lost]} to strings:"
            f" pl.col({own!r}).cast(pl.String)."
        )
        raise InputError(
            f"{subject}: {shown}: they can never be equal.{way}",
            code="types_differ",
            column=subject,
        )


def _mend_of_kinds(values: Mapping[Place, pl.Series], speech: Speech) -> str:
    """Return a remedy for ids of two kinds; empty if only tables of datums differ."""
    sides = {role: series for (role, _), series in values.items()}
    if not {PREDICTIONS, GROUND_TRUTHS} <= sides.keys():
        return ""
    return mend(distinct(sides[PREDICTIONS]), distinct(sides[GROUND_TRUTHS]), speech)


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
    found = names_of_numbers(frames, len(numbers), dict(enumerate(sorted(names), min(numbers))))
    if found is None:
        return (
            f" Map the numbers to the names: {option('label_map')}. The rows do not"
            " show which is which: take the list of classes that the numbers were made with."
        )
    known, pairs = found
    first = {str(n): name for n, name in sorted(known.items())[:_NAMED]}
    more = {"...": ""} if len(known) > _NAMED else {}
    missing = len(numbers - known.keys())
    lone = f" {count_of(missing, 'number')} occurs in no table." if missing else ""
    return (
        f" Map the numbers to the names, as {count_of(pairs, 'pair')} of predictions and ground"
        f" truths show them: {option('label_map', {**first, **more})}.{lone}"
    )


def datum_notes(
    ids: Mapping[str, Known],
    speech: Speech = PLAIN,
    *,
    came_along: bool = False,
    rows: Mapping[str, pl.DataFrame] | None = None,
    whole: bool = True,
) -> list[Note]:
    """Return notes on datums that one side does not have.

    Args:
        came_along: whether the datums are listed by the ground truths' files, not by a table of the
            user.
        rows: role to rows, for counting datums with many ground truths.
        whole: whether these are all rows, so that few datums without predictions need no count.
    """
    notes = []
    everything = ids.get(DATUMS)
    sides = [role for role in (PREDICTIONS, GROUND_TRUTHS, TABLE) if role in ids]
    if everything is not None and came_along and PREDICTIONS in ids:
        extra = ids[PREDICTIONS].lacking(everything)
        what = (
            "of the predictions that the ground truths' files do not list, scored as having no"
            " ground truths (false positives)"
        )
        notes += _note("datums_not_listed", extra, what, speech)
    elif everything is not None:
        for side in sides:
            extra = ids[side].lacking(everything)
            notes += _note(
                "datums_not_listed",
                extra,
                f"of the {side.replace('_', ' ')} not listed in the datums table",
                speech,
            )
    if sides == [TABLE]:
        if everything is not None:
            lone = everything.lacking(ids[TABLE])
            notes += _note("datums_without_rows", lone, "without rows", speech)
        return notes
    ours, theirs = ids[PREDICTIONS], ids[GROUND_TRUTHS]
    known = everything if everything is not None else theirs
    lone = known.lacking(ours)
    if n := len(lone):
        with_truths = len(theirs.lacking(ours)) if everything is not None else n
        told = _note("datums_without_predictions", lone, "without predictions", speech)
        facts = {"with_ground_truths": with_truths, "ground_truths": len(theirs)}
        if rows is not None and (not whole or with_truths >= MANY * len(theirs)):
            facts |= _busy(rows)
        notes += [msgspec.structs.replace(note, facts=facts) for note in told]
    known = everything if everything is not None else ours
    lone = known.lacking(theirs)
    notes += _note("datums_without_ground_truths", lone, "without ground truths", speech)
    return notes


def _busy(rows: Mapping[str, pl.DataFrame]) -> dict[str, int]:
    """Count the datums with at least the median number of ground truths, and those unpredicted.

    A detector misses all of few objects easily; a run that lost its rows lost them everywhere.
    Videos, and datums with many objects, count as lost whatever the others have.
    """
    truths = rows[GROUND_TRUTHS].group_by("datum_id").len()
    full = 0 if "frame" in rows[GROUND_TRUTHS].columns else _FULL
    busy = truths.filter(pl.col("len") >= pl.col("len").median())
    found = rows[PREDICTIONS]["datum_id"].unique()
    missing = truths.filter(~pl.col("datum_id").is_in(found.implode()))
    lost = missing["len"] >= full
    missing = busy.join(missing, on="datum_id", how="semi")
    return {"busy": busy.height, "busy_missing": missing.height, "lost": int(lost.sum())}


_FULL = 50  # ground truths that no detector misses all of


def _note(kind: str, found: Lone, what: str, speech: Speech) -> list[Note]:
    n = len(found)
    if n == 0:
        return []
    return [note_of(kind, n, (speech.one, speech.many, what), found.first())]


def label_pairs(frame: pl.DataFrame, column: str = "label_value") -> pl.DataFrame:
    """Return the distinct (label_key, label_value) of a side, sorted; the default key is
    ``label``.
    """
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
        for name, side in ((name, SIDE_OF.get(name, role)) for name in LABEL_COLUMNS):
            if name in frame.columns and role not in (DATUMS, SCORES):
                pairs[side] = label_pairs(frame, name)
    if SCORES in frames:
        home = frames[TABLE] if TABLE in frames else frames[PREDICTIONS]
        keys = home["label_key"] if "label_key" in home.columns else [DEFAULT_LABEL_KEY]
        crossed = pl.DataFrame({"label_key": pl.Series(keys, dtype=pl.String).unique()}).join(
            frames[SCORES], how="cross"
        )
        both = [pairs[PREDICTIONS], crossed] if PREDICTIONS in pairs else [crossed]
        pairs[PREDICTIONS] = pl.concat(both).unique().sort("label_key", "label_value")
    return pairs


def label_notes(pairs: Mapping[str, pl.DataFrame], keyed: Mapping[str, bool]) -> list[Note]:
    """Return notes on labels and label keys that occur on only one side.

    Args:
        pairs: side to its labels after any label map.
        keyed: side to whether it has a label_key column.

    Raises:
        InputError: label keys on only one side, so that no labels match.
    """
    if not all(side in pairs and pairs[side].height for side in (PREDICTIONS, GROUND_TRUTHS)):
        return _undeclared(pairs)
    ours, theirs = pairs[PREDICTIONS], pairs[GROUND_TRUTHS]
    keys = {side: set(frame["label_key"].unique()) for side, frame in pairs.items()}
    common = keys[PREDICTIONS] & keys[GROUND_TRUTHS]
    notes: list[Note] = []
    if keyed[PREDICTIONS] != keyed[GROUND_TRUTHS]:
        notes.append(_one_keyed(keyed, keys, bool(common)))
    if not common:
        shown = {side: listing(sorted(found)) for side, found in keys.items()}
        notes.append(
            Note(
                "no_common_label_key",
                "predictions and ground truths have no label_key in common "
                f"({shown[PREDICTIONS]} against {shown[GROUND_TRUTHS]}): no row can match.",
                0,
                warning=True,
            )
        )
    elif not ours.join(theirs, on=["label_key", "label_value"], how="semi").height:
        said = "no label of the predictions is one of the ground truths: no row can match."
        notes.append(Note("no_common_label", said, 0, warning=True))
    if common:
        notes += spelling_notes(ours, theirs)
    sides = ((PREDICTIONS, ours, theirs), (GROUND_TRUTHS, theirs, ours))
    for side, mine, other in () if ours.equals(theirs) else sides:
        lone = mine.join(other, on=["label_key", "label_value"], how="anti", maintain_order="left")
        if lone.height:
            notes.append(_in_one_only(side, _labels(lone, _HELD), lone.height))
    return notes + _undeclared(pairs)


_MISSING = ("NaN", "nan", "<NA>", "None")


def missing_notes(
    frames: Mapping[str, pl.DataFrame], pairs: Mapping[str, pl.DataFrame]
) -> list[Note]:
    """Return warnings on texts of missing values among other labels.

    Args:
        pairs: side to its labels.
    """
    known = {}
    for side in (PREDICTIONS, GROUND_TRUTHS):
        if side in pairs and pairs[side].schema["label_value"] == pl.String:
            known[side] = pairs[side]["label_value"].drop_nulls()
    notes = []
    for side, labels in known.items():
        odd = labels.filter(labels.is_in(_MISSING)).unique().to_list()
        if not odd:
            continue
        texts = [
            frames[role][name]
            for role, name in places(frames, LABEL_COLUMNS)
            if SIDE_OF.get(name, role) == side and frames[role][name].dtype == pl.String
        ]
        often = sum(int((values == "None").sum()) for values in texts)
        both = len(known) == 2 and all("None" in one for one in known.values())
        if both or often > MANY * sum(map(len, texts)):
            odd = [one for one in odd if one != "None"]  # a class
        if not odd or labels.n_unique() <= len(odd):
            continue
        n = sum(int(values.is_in(odd).sum()) for values in texts)
        said = (
            f"{count_of(n, 'row')} of the {_SAID[side]} with the label {listing(sorted(odd))}, read"
            " as a class: are values missing? Remove these rows, or write another name."
        )
        facts = {"side": side, "count": n, "labels": sorted(odd)}
        notes.append(Note("missing_as_label", said, n, warning=True, facts=facts))
    return notes


def _in_one_only(side: str, labels: Sequence[Any], many: int) -> Note:
    """Make a note on labels of only one side; ``labels`` may be just the first ones."""
    what = f"{count_of(many, 'label')} in the {side.replace('_', ' ')} only"
    said = f"{what}: {listing(labels, many)}."
    return Note(f"labels_in_{side}_only", said, many, lowest=tuple(labels))


def without_labels(notes: Sequence[Note], settled: Collection[str]) -> list[Note]:
    """Remove labels from notes that only the ground truths are allowed to have."""
    left = []
    for note in notes:
        if settled and note.kind == f"labels_in_{GROUND_TRUTHS}_only":
            held = [one[-1] if isinstance(one, tuple) else one for one in note.lowest]
            named = [
                one
                for one, value in zip(note.lowest, held, strict=True)
                if str(value) not in settled
            ]
            many = (note.count or 0) - len(held) + len(named)
            left += [_in_one_only(GROUND_TRUTHS, named, many)] if many else []
        else:
            left.append(note)
    return left


def _undeclared(pairs: Mapping[str, pl.DataFrame]) -> list[Note]:
    """Labels that a table of labels does not list."""
    sides = [pairs[side] for side in (PREDICTIONS, GROUND_TRUTHS) if side in pairs]
    if LABELS not in pairs or not pairs[LABELS].height or not sides:
        return []
    used = pl.concat(sides).unique(maintain_order=True)
    lone = used.join(
        pairs[LABELS], on=["label_key", "label_value"], how="anti", maintain_order="left"
    )
    if not lone.height:
        return []
    some = listing(_labels(lone), lone.height)
    what = count_of(lone.height, "label")
    return [Note("labels_not_declared", f"{what} not in the labels table: {some}.", lone.height)]


def _labels(pairs: pl.DataFrame, most: int = _NAMED) -> list[Any]:
    first = pairs.head(most)
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
            f"label_key: {text}, so no row can match. Give the {plain} a label_key column, drop "
            f"it from the {side.replace('_', ' ')}, or map labels with {option('label_map')}.",
            code="label_key_one_side",
        )
    return Note("label_key_one_side", f"{text}.")
