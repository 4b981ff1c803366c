"""Encoding of verdicts: words become values, unknown words become a kind of error.

Distinct combinations of metric, step, status and verdict are few; each is resolved once and joined
to the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, listing
from ...schemas.arrays import Array
from ...schemas.contract import ROW, TABLE
from ...schemas.errors import N_NAMES, InputError
from ...tallies.datums import Datums
from ...tallies.merging import added
from ..encoding import row_of_datums, table_datums
from .dialects import Settings
from .metrics import NOT_JUDGED, SCORED, Measure, kinds_of

# Findings on verdicts, collected per part of a table and merged for the whole.
#
# A run in memory is one part. Counts are added, the lowest rows and ids of all parts are named, and
# spellings are compared across parts.

NO_VERDICT, WRONG_WORD = "no_verdict", "wrong_vocabulary"
MISSING, EXTRA, UNLIKE = "missing_verdicts", "extra_verdicts", "items_differ"

FLAWS = {
    NO_VERDICT: "A row has no verdict",
    WRONG_WORD: "A verdict is not a word of its metric",
    MISSING: "There are fewer verdicts than items",
    EXTRA: "There are more verdicts than items",
    UNLIKE: "Verdicts on the same items have different numbers of items",
}
"""Kinds of error visible in the table -> sentence about the datums."""

LISTED = 4  # rows of repeated verdicts
LOST = 0.1  # share of a metric's datums without a value from which unknown words are a warning


class Some(msgspec.Struct):
    """Number of datums, and the lowest ids.

    Attributes:
        lowest: ids, ascending, ``N_NAMES`` at most.
        judgments: number of affected judgments, if counted.
    """

    n: int = 0
    lowest: list[Any] = []
    judgments: int = 0


class Unknown(msgspec.Struct):
    """An unknown word of a metric.

    Attributes:
        row: the first row with it.
        need: need of that row.
        part: part of that row.
    """

    row: int
    need: str
    part: str


class Again(msgspec.Struct):
    """A repeated verdict.

    Attributes:
        place: datum id, need, part, reference, item, judgment.
        row: its row.
        metric: as written there.
        step: as written there.
    """

    place: tuple[Any, str, str, int, int, int]
    row: int
    metric: str
    step: str | None


class Findings(msgspec.Struct):
    """Findings on one part of a table of verdicts.

    Attributes:
        written: metric as written -> rows, including unknown metrics.
        wrong_step: first row whose step its metric does not have, and the message.
        spelled: distinct metric and step as written, need and part, of verdicts.
        again: number of rows with a repeated verdict.
        repeated: the first of them, ``LISTED`` at most.
        kinds: kind of error of ``FLAWS`` -> datums.
        strange: metric as written -> word -> its first occurrence.
        apart: need -> datums with judgments that did not vote.
        standings: need -> status -> number of datums.
    """

    written: dict[str, int] = {}
    wrong_step: tuple[int, str] | None = None
    spelled: list[tuple[str, str | None, str, str]] = []
    again: int = 0
    repeated: list[Again] = []
    kinds: dict[str, Some] = {}
    strange: dict[str, dict[str, Unknown]] = {}
    apart: dict[str, Some] = {}
    standings: dict[str, dict[str, int]] = {}


def merge_findings(parts: Sequence[Findings]) -> Findings:
    """Merge findings.

    Args:
        parts: of disjoint sets of datums, rows numbered as in the whole.
    """
    steps = [part.wrong_step for part in parts if part.wrong_step is not None]
    spelled = dict.fromkeys(one for part in parts for one in part.spelled)
    return Findings(
        written=added(part.written for part in parts),
        wrong_step=min(steps) if steps else None,
        spelled=[*spelled],
        again=sum(part.again for part in parts),
        repeated=nsmallest(
            LISTED,
            (one for part in parts for one in part.repeated),
            key=lambda one: (one.place, one.row),
        ),
        kinds=_datums(part.kinds for part in parts),
        strange=_first(part.strange for part in parts),
        apart=_datums(part.apart for part in parts),
        standings={
            need: added(part.standings.get(need, {}) for part in parts)
            for need in dict.fromkeys(need for part in parts for need in part.standings)
        },
    )


def _datums(parts: Iterable[Mapping[str, Some]]) -> dict[str, Some]:
    total: dict[str, Some] = {}
    for part in parts:
        for name, some in part.items():
            before = total.get(name, Some())
            total[name] = Some(
                before.n + some.n,
                nsmallest(N_NAMES, [*before.lowest, *some.lowest]),
                before.judgments + some.judgments,
            )
    return total


def _first(parts: Iterable[Mapping[str, Mapping[str, Unknown]]]) -> dict[str, dict[str, Unknown]]:
    first: dict[str, dict[str, Unknown]] = {}
    for part in parts:
        for name, words in part.items():
            seen = first.setdefault(name, {})
            for word, case in words.items():
                if word not in seen or case.row < seen[word].row:
                    seen[word] = case
    return first


def refuse(findings: Findings) -> None:
    """Raise InputError if rows cannot be read as verdicts."""
    if findings.wrong_step is not None:
        raise InputError(
            findings.wrong_step[1], code="wrong_step", column="step", row=findings.wrong_step[0]
        )
    written = {(metric, step) for metric, step, _, _ in findings.spelled}
    if not findings.again or len(written) == len(
        {(need, part) for *_, need, part in findings.spelled}
    ):
        return
    first = [
        f"{one.row} (metric {one.metric!r}" + (f", step {one.step!r})" if one.step else ")")
        for one in findings.repeated
    ]
    more = ", ..." if findings.again > len(first) else ""
    raise InputError(
        f"columns 'metric' and 'step': {count_of(findings.again, 'row')} of which another has the"
        f" same verdict by another spelling, in rows {', '.join(first)}{more}. Each verdict may"
        f" appear once; several judgments of one item are distinguished by judgment_index.",
        code="repeated_values",
        column="step",
        count=findings.again,
    )


def notes(findings: Findings, settings: Settings) -> list[Note]:
    """Return the notes on verdicts, in display order."""
    result = [
        Note(
            kind,
            f"{words} in {_of(findings.kinds[kind])}: an error, not a score.",
            findings.kinds[kind].n,
        )
        for kind, words in FLAWS.items()
        if kind in findings.kinds
    ]
    result += [_of_words(name, findings, settings) for name in sorted(findings.strange)]
    result += [_without_vote(need, findings.apart[need]) for need in sorted(findings.apart)]
    result += [_coverage(need, findings.standings[need]) for need in sorted(findings.standings)]
    return [note for note in result if note.message]


def _of(some: Some) -> str:
    return f"{count_of(some.n, 'datum')} ({listing(some.lowest, some.n)})"


def _of_words(name: str, findings: Findings, settings: Settings) -> Note:
    """Return a note on unknown words of a metric, with its known words; a warning if they cost many
    datums their value.
    """
    words = findings.strange[name]
    accepted: list[str] = []
    for word in sorted(words):
        counts = settings.words_of(words[word].need, words[word].part).counts
        accepted += [one for one in counts if one not in accepted]
    exact = " to the letter" if settings.rules.fold == "exact" else ""
    message = (
        f"{listing(sorted(words))} among the verdicts of {name}: unknown. Known are"
        f" {', '.join(accepted)}{exact}."
    )
    needs = {case.need for case in words.values()} & findings.standings.keys()
    total = added(findings.standings[need] for need in needs)
    lost, rows = total.get(WRONG_WORD, 0), sum(total.values()) - total.get(NOT_JUDGED, 0)
    if many := lost > LOST * rows:
        message += f" {lost:,} of {count_of(rows, 'datum')} have no value: write the known words."
    return Note(
        "unknown_words",
        message,
        len(words),
        warning=many,
        facts={"metric": name, "words": sorted(words)[:N_NAMES]},
    )


def _without_vote(need: str, some: Some) -> Note:
    """Judgments that did not vote, since most found another number of items."""
    message = (
        f"{metric_of(need).name}: {count_of(some.judgments, 'judgment')} of {_of(some)} did not"
        " vote: the number of items is not that of the judgments that decide."
    )
    return Note(
        "judgments_without_vote", message, some.judgments, facts={"metric": metric_of(need).name}
    )


def _coverage(need: str, standings: Mapping[str, int]) -> Note:
    """Return a note on how many datums of a metric have a value, if some have none."""
    count = {name: n for name, n in standings.items() if n and name not in (SCORED, NOT_JUDGED)}
    scored = standings.get(SCORED, 0)
    unscored = kinds_of(count)
    rows = scored + sum(count.values())
    message = (
        f"{metric_of(need).name}: {scored:,} of {count_of(rows, 'row')} scored; {unscored}."
        if unscored
        else ""
    )
    return Note(
        "coverage", message, rows - scored, facts={"metric": metric_of(need).name, "rows": rows}
    )


def metric_of(need: str) -> metrics.Metric:
    """The metric that a need is for."""
    return next(one for one in metrics.all_metrics("judged").values() if one.needs == (need,))


# Verdicts as values.

OK = ("ok", "scored")
EMPTY = "empty"
FAILED = "error"


_FOLDS: dict[str, Callable[[str], str]] = {
    "exact": lambda word: word,
    "lower": str.lower,
    "strip": lambda word: word.strip().lower(),
    "leading": lambda word: re.split("[^a-z]", word.strip().lower(), maxsplit=1)[0],
}
"""Normalisation -> function."""


Settled = tuple[str, str, float | None, str | None, str | None]
"""Need, part, count, kind and none of one combination."""


class Batch(msgspec.Struct):
    """All verdicts of a run.

    Attributes:
        datums: the judged datums.
        rows: rows of the requested metrics: ``datum`` int32, ``code`` (row of ``meaning``),
            ``reference`` int64, ``item`` int64 (from 0), ``judgment`` int64, ``items`` int64 (-1
            for none), ``row`` int64.
        meaning: distinct combinations of words: ``code``, ``need`` str, ``part`` str, ``count``
            float64 (value of the verdict, null if none), ``kind`` str (kind of error, else null),
            ``none`` str (the empty part, else null).
        findings: findings on words and spellings; rows with an unknown step are not in ``rows``.
        row: int64 [n_datums], first row of each datum in the table, -1 for none; None if row i is
            datum i.
        height: rows of the table; None if ``row`` counts from the first row of the whole input.
    """

    datums: Datums
    rows: pl.DataFrame
    meaning: pl.DataFrame
    findings: Findings
    row: Array | None
    height: int | None


def metric_names(written: Iterable[Any]) -> dict[str, str]:
    """Name in the table -> name of the judged metric, for all that are known."""
    names = map(str, written)
    return {name: metrics.get("judged", name).name for name in names if metrics.has("judged", name)}


_KEY = ["metric", "step", "status", "verdict", "failed"]
_ROWS = ["datum", "code", "reference", "item", "judgment", "items", "row"]


def encode_batch(frames: Frames, settings: Settings, needs: frozenset[str]) -> Batch:
    """Code datums and evaluate words."""
    table = frames.sides[TABLE]
    numbers = table[ROW].to_numpy() if ROW in table.columns else None
    datums, codes = table_datums(frames, table, table.height, numbers)
    first = row_of_datums(numbers, codes, len(datums), table.height)
    height = None if numbers is not None else table.height
    findings = Findings()
    unnumbered = _unnumbered(table)
    base = table.select(
        pl.Series("datum", np.arange(table.height, dtype=np.int32) if codes is None else codes),
        "metric",
        _column(table, "step", pl.String()),
        _column(table, "status", pl.String()),
        _column(table, "verdict", pl.String()),
        _column(table, "reference_index", pl.Int64(), 0).alias("reference"),
        _column(table, "item_index", pl.Int64()).alias("item"),
        _column(table, "judgment_index", pl.Int64(), 0).alias("judgment"),
        _column(table, "items", pl.Int64(), -1),
        (_column(table, "error", pl.String(), "") != "").alias("failed"),
        pl.Series("row", np.arange(table.height)) if numbers is None else pl.col(ROW).alias("row"),
        *unnumbered,
    )
    written = table["metric"].unique().to_list()
    need_of = {
        name: metrics.get("judged", real).needs[0]
        for name, real in metric_names(written).items()
        if metrics.get("judged", real).needs[0] in needs
    }
    if len(need_of) < len(written):
        base = base.filter(pl.col("metric").is_in(list(need_of)))
    distinct = base.group_by(_KEY, maintain_order=True).agg(pl.col("row").first())
    read: list[_Read] = []
    accepted: list[int] = []
    for i, (metric, step, status, verdict, failed, row) in enumerate(distinct.iter_rows()):
        try:
            settled = _settle(
                metric, step, status, verdict, failed, need_of=need_of, settings=settings
            )
        except InputError as error:
            findings.wrong_step = findings.wrong_step or (row, error.message)
            continue
        accepted.append(i)
        read.append(_Read(metric, step, status, verdict, row, *settled))
    if len(accepted) < distinct.height:
        distinct = distinct[accepted]
    code = pl.Series("code", np.arange(len(read), dtype=np.int32))
    meaning = pl.DataFrame(
        [code, *(pl.Series(name, [getattr(one, name) for one in read], dtype)
                 for name, dtype in _MEANING.items())]
    )  # fmt: skip
    rows = base.join(
        distinct.select(*_KEY, code), on=_KEY, how="inner", nulls_equal=True, maintain_order="left"
    )
    _find_repeats(rows, meaning, read, datums, findings)
    findings.strange = _unknown(read)
    rows = rows[_ROWS]
    if rows["item"].null_count():
        # Verdicts without an index are counted in the order of their rows.
        keys = ["datum", "need", "part", "reference", "judgment"]
        wide = rows.join(meaning, on="code", how="left", maintain_order="left")
        counted = pl.col("row").rank("ordinal").over(keys).cast(pl.Int64) - 1
        rows = wide.with_columns(pl.coalesce("item", counted).alias("item"))[_ROWS]
    return Batch(datums, rows, meaning, findings, first, height)


class _Read(msgspec.Struct, frozen=True):
    """One combination of words, the first row that has it, and its meaning."""

    metric: str
    step: str | None
    status: str | None
    verdict: str | None
    row: int
    need: str
    part: str
    count: float | None
    kind: str | None
    none: str | None


_MEANING = {
    "need": pl.String,
    "part": pl.String,
    "count": pl.Float64,
    "kind": pl.String,
    "none": pl.String,
}


def _unknown(read: Sequence[_Read]) -> dict[str, dict[str, Unknown]]:
    """Return unknown words of verdicts by metric; error rows may have no word."""
    unknown: dict[str, dict[str, Unknown]] = {}
    for one in sorted(read, key=lambda one: one.row):
        usual = (one.status or "").strip().lower() in ("", *OK)
        if one.kind == WRONG_WORD and one.verdict is not None and usual:
            first = Unknown(one.row, one.need, one.part)
            unknown.setdefault(one.metric, {}).setdefault(one.verdict, first)
    return unknown


def _find_repeats(
    rows: pl.DataFrame,
    meaning: pl.DataFrame,
    read: Sequence[_Read],
    datums: Datums,
    findings: Findings,
) -> None:
    """Find verdicts in two rows that spell their metric, step or index differently.

    Equal spellings were compared when the table was checked. An index of 0 and a missing index are
    equal, which matters only for tables with a second spelling.
    """
    every = [one for one in read if one.none is None]
    findings.spelled = [
        *dict.fromkeys(
            (one.metric, one.step, one.need, one.part) for one in every if one.verdict is not None
        )
    ]
    spellings = {(one.metric, one.step) for one in every}
    same = len(spellings) == len({(one.need, one.part) for one in every})
    if same and not ("unnumbered" in rows.columns and rows["unnumbered"].any()):
        return
    key = ["datum", "need", "part", "reference", "item", "judgment"]
    named = rows.join(meaning, on="code", how="left", maintain_order="left").filter(
        pl.col("none").is_null(), pl.col("item").is_not_null()
    )
    again = named.filter(pl.struct(key).is_duplicated()).sort(*key, "row")
    findings.again = again.height
    findings.repeated = [
        Again((datums.id[datum], *place), row, metric, step)
        for datum, *place, row, metric, step in again.head(LISTED)
        .select(*key, "row", "metric", "step")
        .iter_rows()
    ]


def _unnumbered(table: pl.DataFrame) -> list[pl.Expr]:
    """Return an expression for rows without an index that other rows have, if there are any."""
    mixed = [
        name
        for name in ("reference_index", "judgment_index")
        if name in table.columns and 0 < table[name].null_count() < table.height
    ]
    if not mixed:
        return []
    return [pl.any_horizontal(pl.col(name).is_null() for name in mixed).alias("unnumbered")]


def _column(table: pl.DataFrame, name: str, dtype: pl.DataType, null: Any = None) -> pl.Expr:
    """Return a column of a dtype, with a value instead of null."""
    if name not in table.columns:
        return pl.lit(null, dtype=dtype).alias(name)
    column = pl.col(name).cast(dtype)
    return column.fill_null(null) if null is not None and table[name].null_count() else column


def _settle(
    written: str,
    step: str | None,
    status: str | None,
    verdict: str | None,
    failed: bool,
    *,
    need_of: dict[str, str],
    settings: Settings,
) -> Settled:
    """Return need, part, count, kind of error, and empty part of one combination."""
    need = need_of[written]
    measure = metrics.measures("judged")[need]
    plain = (status or "").strip().lower() or None
    step = (step or "").strip().lower() or None
    if plain == EMPTY:
        return need, "", None, None, _none_of(written, step, measure)
    if plain is None and failed:
        plain = FAILED
    if plain is not None and plain not in OK:
        named_part = next((part for part in measure.parts if part == step), measure.parts[0])
        # Our own word for datums without a row must not be taken for this.
        return need, named_part, None, f"status {plain}" if plain == NOT_JUDGED else plain, None
    part = _part(written, step, measure)
    if verdict is None or not verdict.strip():
        return need, part, None, NO_VERDICT, None
    count = _counted(verdict, need, part, settings)
    return need, part, count, WRONG_WORD if count is None else None, None


def _counted(verdict: str, need: str, part: str, settings: Settings) -> float | None:
    """Return the value of a word; None if the metric does not know it."""
    words = settings.words_of(need, part)
    fold = settings.rules.fold_of.get(need, settings.rules.fold)
    word = _FOLDS[fold](verdict)
    number = word.removesuffix(".0")
    if number.removeprefix("-").isdecimal():  # whole numbers that were read as floats
        word = number
    if word in words.counts:
        return words.counts[word]
    digits = word.removeprefix("-")
    if words.numbers and digits.isascii() and digits.isdecimal():
        return float(digits.strip("0") != "")
    return words.other


def _part(written: str, step: str | None, measure: Measure) -> str:
    if len(measure.parts) == 1:
        names = (*measure.called, *measure.parts)
        if step is not None and step not in names:
            raise InputError(
                f"column 'step': {step!r} is given for verdicts of {written}. Write"
                f" {' or '.join(map(repr, names))}, or leave it empty."
            )
        return measure.parts[0]
    if step is None or step not in measure.parts:
        raise InputError(
            f"column 'step': {step!r} is given for verdicts of {written}, which judges"
            f" {' and '.join(map(repr, measure.parts))}. Write one of these."
        )
    return step


def _none_of(written: str, step: str | None, measure: Measure) -> str:
    name = measure.empties[0] if step is None else step
    if name not in measure.empties:
        raise InputError(
            f"column 'step': {step!r} is given in a row of status 'empty' of {written}, but names"
            f" no item that can be missing. Write one of {listing(measure.empties)}."
        )
    return name
