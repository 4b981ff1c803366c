"""Diagnosis of datum ids that do not match: cause, evidence, remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..schemas.contract import DATUMS, GROUND_TRUTHS, PREDICTIONS, TABLE
from ..schemas.errors import InputError
from ..schemas.wording import option
from .ids import FORMS, DatumIds, common_start, is_signed, stepped, written
from .problems import PLAIN, DatumNouns, Note, count_of, listing

_HARDLY = 0.1  # share of the smaller side below which common ids are diagnosed
_LOOKED_AT = 5_000  # ids of the smaller side
_PAIRED = 200_000  # ids of the larger side up to which forms are tried two at a time
_MENDED = 0.5  # share of the ids looked at that a form has to bring together
_SURE = 0.95  # share from which no further form is tried
_CHANCE = 4.0  # standard deviations above chance
_LEAST_IDS = 10  # ids of a side from which a range is evidence
_LOWEST = 100  # ids of a bucket kept to diagnose ids that do not match
_SIDES = {PREDICTIONS: "predictions", GROUND_TRUTHS: "ground truths"}


IdRanges = tuple[tuple[int, int], tuple[int, int]]
"""Lowest and highest integer id of the predictions, and of the ground truths."""


class CommonIds(msgspec.Struct, frozen=True):
    """Distinct datum ids of both sides.

    Attributes:
        some: ids of each, ascending: all, or the lowest.
    """

    sizes: tuple[int, int]
    common: int
    some: tuple[pl.Series, pl.Series]
    ranges: IdRanges | None = None

    @classmethod
    def of_parts(cls, parts: Sequence[Any]) -> CommonIds:
        """Merge the results of parts, as returned by :meth:`plain`; at least one."""
        sizes = tuple(sum(part[0][i] for part in parts) for i in (0, 1))
        some = tuple(
            pl.Series([one for part in parts for one in part[2][i]]).sort() for i in (0, 1)
        )
        ranges = [part[3] for part in parts]
        same_kind = some[0].dtype != pl.String or numbers_of(pl.concat(some)) is not None
        id_ranges = (
            None
            if None in ranges or not same_kind
            else tuple(
                (min(end[i][0] for end in ranges), max(end[i][1] for end in ranges)) for i in (0, 1)
            )
        )
        return cls(sizes, sum(part[1] for part in parts), some, id_ranges)  # type: ignore[arg-type]

    @property
    def plain(self) -> list[Any]:
        """As JSON has it."""
        return [self.sizes, self.common, [ids.to_list() for ids in self.some], self.ranges]


def common_ids(ids: DatumIds | None, frames: Mapping[str, pl.DataFrame]) -> CommonIds | None:
    """Summarise the matching ids of a part; None for one table."""
    if TABLE in frames:
        return None
    if ids is None:  # the same ids row by row
        n, values = frames[PREDICTIONS].height, frames[PREDICTIONS]["datum_id"]
        id_ranges = _range_of_ids(*(_outer(values),) * 2)
        return CommonIds((n, n), n, (values.head(_LOWEST),) * 2, id_ranges)
    return _compared(ids, _LOWEST)


def _compared(ids: DatumIds, most: int | None = None) -> CommonIds:
    """Compare the ids of both sides; of each at most some are kept."""
    ours, theirs = ids.in_table(PREDICTIONS), ids.in_table(GROUND_TRUTHS)
    common = ids.common(PREDICTIONS, GROUND_TRUTHS)
    id_ranges = (
        _range_of_ids(_outer(ours), _outer(theirs))
        if most is not None
        else _range_of_ids(ours, theirs)
    )
    some = ours.head(most or len(ours)), theirs.head(most or len(theirs))
    return CommonIds((len(ours), len(theirs)), common, some, id_ranges)


def _outer(ids: pl.Series) -> pl.Series:
    """The integer ids, or the lowest and highest numbers in ids that begin and end alike."""
    if ids.dtype != pl.String or not len(ids):
        return ids
    length = ids.str.len_bytes()
    extremes = [ids.filter(length == length.min()).min(), ids.filter(length == length.max()).max()]
    numbers = numbers_of(pl.Series(extremes, dtype=pl.String))
    return ids if numbers is None else numbers


def _range_of_ids(ours: pl.Series, theirs: pl.Series) -> IdRanges | None:
    if not all(side.dtype.is_integer() and len(side) for side in (ours, theirs)):
        return None
    return tuple((side.min(), side.max()) for side in (ours, theirs))  # type: ignore[return-value]


def check_meet(
    ids: DatumIds, nouns: DatumNouns = PLAIN, rows: Mapping[str, pl.DataFrame] | None = None
) -> list[Note]:
    """Refuse two sides without a common datum, unless a table of datums declares both.

    Args:
        rows: tables, which show whether labels or numbers agree once ids are moved.

    Returns:
        A warning if few are common, or if one side seems to be numbered with an offset.
    """
    if not {PREDICTIONS, GROUND_TRUTHS} <= ids.there.keys():
        return []
    sizes = ids.count(PREDICTIONS), ids.count(GROUND_TRUTHS)
    common = ids.common(PREDICTIONS, GROUND_TRUTHS)
    enough = common >= _HARDLY * min(sizes) and not _some_lack(sizes, common)
    if enough and DATUMS not in ids.there:
        return []
    shared = _compared(ids)
    ours, theirs = shared.some
    if not all(shared.sizes):
        return []
    listed = False
    if DATUMS in ids.there:
        n_unmatched = [len(ids.minus(side, DATUMS)) for side in (PREDICTIONS, GROUND_TRUTHS)]
        if n_unmatched == [*shared.sizes]:
            raise none_listed(theirs, ids.in_table(DATUMS), nouns)
        listed = not any(n_unmatched)
    few_shared = shared.common < _HARDLY * min(shared.sizes)
    if _some_lack(shared.sizes, shared.common):
        few_shared = True
        if ours.dtype == pl.String:
            numbers = numbers_of(pl.concat([ours, theirs]))
            id_ranges = (
                None
                if numbers is None
                else _range_of_ids(numbers[: len(ours)], numbers[len(ours) :])
            )
            shared = msgspec.structs.replace(shared, ranges=id_ranges)
    notes = note_few_common(shared, listed=listed, nouns=nouns)
    if few_shared and shared.ranges is not None and not notes and rows:
        step = shared.ranges[1][0] - shared.ranges[0][0]
        return _counted_from(shared, nouns, sure=True) if _agree_moved(rows, step) else []
    return notes


def _agree_moved(rows: Mapping[str, pl.DataFrame], step: int) -> bool:
    """Return True if labels or numbers agree far better once integer ids are moved."""
    ours, theirs = rows[PREDICTIONS], rows[GROUND_TRUTHS]
    for mine, other in (("label_value", "label_value"), ("prediction", "target")):
        if mine not in ours.columns or other not in theirs.columns or not step:
            continue
        if not (is_signed(ours["datum_id"]) and is_signed(theirs["datum_id"])):
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


def none_listed(some: pl.Series, datums: pl.Series | None, nouns: DatumNouns = PLAIN) -> InputError:
    """Return the error for a table of datums without an id of either side."""
    examples = "" if datums is None else f" ({samples(datums)})"
    why = "" if datums is None else mend(some, datums, nouns, (_SIDES[GROUND_TRUTHS], "datums"))
    return InputError(
        f"datums: no {nouns.column} of the table{examples} is one of the predictions or ground "
        f"truths ({samples(some)}), so no datum is "
        f"scored.{why or ' Does it describe these data?'}",
        code="no_common_id",
        column=nouns.column,
    )


def note_few_common(shared: CommonIds, *, listed: bool, nouns: DatumNouns = PLAIN) -> list[Note]:
    """Return notes on how well the ids of two sides match; see :func:`check_meet`."""
    least = min(shared.sizes)
    if shared.common >= _HARDLY * least:
        return _counted_from(shared, nouns)
    if listed:
        return []
    why = mend(*shared.some, nouns) or _below_folders(*shared.some)
    message = (
        f"predictions have {count_of(shared.sizes[0], nouns.one, nouns.many)} "
        f"({samples(shared.some[0])}), ground truths {shared.sizes[1]:,} "
        f"({samples(shared.some[1])}).{why or _describe_splits(*shared.some)}"
    )
    if not why:
        message += (
            " Are both of the same dataset, and is the right column the id? To name it: "
            f"{option('columns', {'mine': nouns.column})}."
        )
    if not shared.common:
        raise InputError(
            f"predictions and ground truths have no {nouns.column} in common: {message}",
            code="no_common_id",
            column=nouns.column,
        )
    return [
        Note(
            "ids_hardly_meet",
            f"only {count_of(shared.common, nouns.one, nouns.many)} of {least:,}"
            f" ({shared.common / least:.1%}) {'is' if shared.common == 1 else 'are'} on both sides,"
            f" and the numbers mean little: {message}",
            warning=True,
        )
    ]


def nearly(ids: DatumIds, nouns: DatumNouns = PLAIN) -> list[Note]:
    """Return a note on ids of one side only that are those of the other, written otherwise."""
    ours = ids.minus(PREDICTIONS, GROUND_TRUTHS)
    theirs = ids.minus(GROUND_TRUTHS, PREDICTIONS)
    few, many = sorted((len(ours), len(theirs)))
    if ours.dtype != pl.String or not few or many > _PAIRED:
        return []
    spellings = {*FORMS} - {"text", "number"}
    tried = (
        _mended(ours, theirs, forms, differ)
        for forms, differ in _tries(ours, theirs)
        if spellings.issuperset(forms)
    )
    best = max(filter(None, tried), key=lambda one: one.met, default=None)
    if best is None:
        return []
    message = (
        f"{count_of(best.met, nouns.one, nouns.many)} of the predictions only"
        f" {'differs' if best.met == 1 else 'differ'} from ground truths in"
        f" {best.differ.removeprefix('differ in ')}"
        f" ({best.pair[0]!r} and {best.pair[1]!r}). If they are the same, write"
        f" {option('id_format', list(best.forms))}."
    )
    return [Note("ids_nearly_meet", message, best.met)]


def samples(values: pl.Series) -> str:
    """The first three distinct values, as messages have them."""
    if isinstance(values.dtype, pl.List):
        values = values.head(100).explode(empty_as_null=False, keep_nulls=False)
    return listing(values.drop_nulls().head(100).unique(maintain_order=True).head(3).to_list())


def mend(
    ours: pl.Series,
    theirs: pl.Series,
    nouns: DatumNouns = PLAIN,
    called: tuple[str, str] = (_SIDES[PREDICTIONS], _SIDES[GROUND_TRUTHS]),
) -> str:
    """Return the difference between ids, how many match after correction, and the option for it.

    Returns:
        A sentence that begins with a blank; empty without sufficient evidence.
    """
    if ours.is_empty() or theirs.is_empty():  # nulls only
        return ""
    if ours.dtype.is_integer() and theirs.dtype.is_integer():
        best = _stepped(ours, theirs)
    else:
        best = _best(ours.cast(pl.String), theirs.cast(pl.String))
    if best is None:
        return ""
    few = called[len(ours) > len(theirs)]
    looked = f"{best.of:,} {nouns.many} of the {few}" + (" looked at" if best.part else "")
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
        f" ({option('id_format')} changes only datum ids)."
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
        hits = int(names.is_in(other.implode()).sum())
        if len(folders) > 1 and len(names) < len(side) and 2 * hits >= min(len(names), len(other)):
            return (
                f" The {_SIDES[called]} are of {len(folders):,} folders ({samples(folders)}) with"
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
        candidate = _mended(ours, theirs, forms, differ)
        if candidate is not None and (best is None or candidate.met > 1.1 * best.met):
            best = candidate
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
                difference = f"differ in {FORMS[name].differ}, and in {FORMS[other].differ}"
                yield (name, other), difference
        for before in ((), ("stem",)):
            pattern = around(
                *(
                    side.to_frame("id").select(written(pl.col("id"), before))["id"]
                    for side in (ours, theirs)
                )
            )
            if pattern is not None:
                yield (*before, pattern), "differ in their prefix or suffix"
    yield ("number",), "differ in everything but their last number"
    for step, one in (("-1", "higher"), ("+1", "lower")):
        differ = "differ in everything but their last number, which is"
        yield ("number", step), f"{differ} {one} by 1 in the predictions"


def around(ours: pl.Series, theirs: pl.Series) -> str | None:
    """Return a regular expression that removes the common prefix and suffix of one side's ids."""
    common_affixes = [_affixes(side) for side in (ours, theirs)]
    if common_affixes[0] == common_affixes[1]:
        return None
    # Keep common affixes of both sides, and those that contain each other.
    (one, other), (first, last) = (
        sorted(pair, key=len) for pair in zip(*common_affixes, strict=True)
    )
    before = {other[: len(other) - len(one)]} if other.endswith(one) else {one, other}
    suffixes = {last[len(first) :]} if last.startswith(first) else {first, last}
    before, suffixes = before - {""}, suffixes - {""}
    pattern = "(.*?)" if suffixes else "(.*)"
    for affixes, place in ((before, "^{}"), (suffixes, "{}$")):
        either = "|".join(map(re.escape, sorted(affixes, key=len, reverse=True)))
        at = place.format(f"(?:{either})?" if either else "")
        pattern = at + pattern if place[0] == "^" else pattern + at
    return pattern


def _affixes(ids: pl.Series) -> tuple[str, str]:
    """Return the common prefix and suffix of a side's ids, except digits and complete ids."""
    some = ids.drop_nulls().to_list()
    if len(some) < 2:  # of one id all is before and behind
        return "", ""
    before = common_start(some)
    suffix = common_start([one[::-1] for one in some])[::-1]
    shortest = min(map(len, some))
    before = re.sub(r"[0-9]+$", "", before)
    suffix = re.sub(r"^[0-9]+", "", suffix)
    if len(before) + len(suffix) >= shortest:
        suffix = ""
    return before if len(before) < shortest else "", suffix


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
    looked = _some_of(sides[few])
    pairs = looked.join(sides[many], on="new", how="inner", suffix="_other", maintain_order="left")
    if pairs.height < max(_MENDED * looked.height, min(2, looked.height)):
        return None
    example = (pairs["old"][0], pairs["old_other"][0])
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
        example if few == 0 else example[::-1],
        doubt,
    )


def _some_of(ids: pl.DataFrame) -> pl.DataFrame:
    return ids.gather_every(math.ceil(ids.height / _LOOKED_AT))


def _by_chance(ids: pl.Series, others: pl.Series) -> float | None:
    """Return the share of numbers that would match by chance; None if not numbers."""
    our_ids, other_ids = (side.cast(pl.Int64, strict=False).drop_nulls() for side in (ids, others))
    if 2 * len(our_ids) < len(ids) or 2 * len(other_ids) < len(others):
        return None
    return _filled(other_ids.to_numpy())


def _filled(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Return the density of distinct numbers within their range."""
    return float(numbers.size / (float(numbers.max()) - float(numbers.min()) + 1))


def _beyond(n_common: int, of: int, chance: float) -> bool:
    """Return whether more ids match than by chance."""
    spread = math.sqrt(max(of * chance * (1 - chance), 1e-9))
    return n_common - of * chance > _CHANCE * spread and n_common > 1


def doubtful(ours: pl.Series, theirs: pl.Series) -> bool:
    """Return whether few distinct integers match, or no more than by chance."""
    few = min(len(ours), len(theirs))
    matches = int(ours.is_in(theirs.implode()).sum())
    if matches == few:
        return False
    chance = _by_chance(ours, theirs)
    return 2 * matches < few or chance is None or not _beyond(matches, len(ours), chance)


def _stepped(ours: pl.Series, theirs: pl.Series) -> _Mended | None:
    """Return the correction of integer ids that match after a shift."""
    our_ids, other_ids = (side.cast(pl.Int64, strict=False).drop_nulls() for side in (ours, theirs))
    if not len(our_ids) or not len(other_ids):
        return None
    chance = _filled(other_ids.to_numpy())
    candidates = []
    shifts = (int(other_ids[at]) - int(our_ids[at]) for at in (0, -1))  # ascending
    for step in dict.fromkeys((1, -1, *shifts)):
        if abs(step) >= 10**9:  # more than id_format reads
            continue
        moved = _some_of(pl.DataFrame({"old": our_ids, "new": our_ids + step}))
        matches = moved.filter(pl.col("new").is_in(other_ids.implode()))
        of = min(moved.height, len(other_ids))
        enough = matches.height >= max(_MENDED * of, 3)
        if enough and _beyond(matches.height, moved.height, chance):
            pair = matches.row(0)
            differ = f"are {'lower' if step > 0 else 'higher'} by {abs(step):,} in the predictions"
            part = moved.height < len(our_ids)
            candidates.append(_Mended((f"{step:+d}",), differ, matches.height, of, part, pair))
    return max(candidates, key=lambda one: one.met, default=None)


def _some_lack(sizes: tuple[int, int], common: int) -> bool:
    """Return whether sides of equal size each have ids missing in the other."""
    return sizes[0] == sizes[1] >= _LEAST_IDS and common < sizes[0]


def _counted_from(shared: CommonIds, nouns: DatumNouns, *, sure: bool = False) -> list[Note]:
    """Return a warning on gapless integer ids, equally many on both sides, that are offset."""
    if shared.ranges is None or not _some_lack(shared.sizes, shared.common):
        return []
    (low, high), (first, last) = shared.ranges
    step = first - low
    if (
        not step
        or (abs(step) > 1 and not sure)
        or any(end != shared.sizes[0] - 1 for end in (high - low, last - first))
    ):
        return []
    forms = [*["number"] * (shared.some[0].dtype == pl.String), f"{step:+d}"]
    return [
        Note(
            "ids_one_off",
            f"predictions have the {nouns.column}s {low} to {high}, ground truths {first} to"
            f" {last}, without a gap: if one side counts from another number, every"
            f" {nouns.one} is compared with another. {option('id_format', forms)}"
            " moves those of the predictions.",
            warning=True,
            facts={"step": step},
        )
    ]


def _describe_splits(ours: pl.Series, theirs: pl.Series) -> str:
    """That ids are of one form and yet others, as those of two splits are."""
    if ours.dtype.is_integer() and theirs.dtype.is_integer():
        disjoint = ours[-1] < theirs[0] or theirs[-1] < ours[0]
        return (
            f" They are numbers from {ours[0]} to {ours[-1]}, and from {theirs[0]} to"
            f" {theirs[-1]}: different {'ranges' if disjoint else 'numbers'}, as in"
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
