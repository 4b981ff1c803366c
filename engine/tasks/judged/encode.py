"""Encoding of verdicts: words become values, unknown words become a kind of error.

Distinct combinations of metric, step, status and verdict are few; each is resolved once and joined
to the rows.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import listing
from ...schemas.arrays import Array
from ...schemas.contract import ROW, TABLE
from ...schemas.errors import InputError
from ...tally.datums import Datums
from ..encoding import row_of_datums, table_datums
from .dialects import Settings
from .findings import NO_VERDICT, SHOWN, WRONG_WORD, Again, Findings, Strange
from .metrics import NOT_JUDGED, Measure

OK = ("ok", "scored")
EMPTY = "empty"
FAILED = "error"

_FOLDS: dict[str, Callable[[str], str]] = {
    "exact": lambda word: word,
    "lower": str.lower,
    "strip": lambda word: word.strip().lower(),
}
"""Normalisation -> function."""


Settled = tuple[str | None, str | None, float | None, str | None, str | None]
"""Need, part, count, kind and none of one combination; all None if its step is unknown."""


class Batch(msgspec.Struct):
    """All verdicts of a run.

    Attributes:
        datums: the judged datums.
        rows: rows of the requested metrics: ``datum`` int32, ``need`` str, ``part`` str,
            ``reference`` int64, ``item`` int64 (from 0), ``judgment`` int64, ``items`` int64 or
            null, ``count`` float64 (value of the verdict, null if none), ``kind`` str (kind of
            error, else null), ``none`` str (the empty part, else null).
        found: findings on words and spellings; rows with an unknown step are not in ``rows``.
        row: int64 [n_datums], first row of each datum in the table, -1 for none; None if row i is
            datum i.
        height: rows of the table; None if ``row`` counts from the first row of the whole input.
    """

    datums: Datums
    rows: pl.DataFrame
    found: Findings
    row: Array | None
    height: int | None


def metric_names(written: pl.Series) -> dict[str, str]:
    """Name in the table -> name of the judged metric, for all that are known."""
    names = (str(name) for name in written.unique().to_list())
    return {name: metrics.get("judged", name).name for name in names if metrics.has("judged", name)}


def encode_batch(frames: Frames, settings: Settings, needs: frozenset[str]) -> Batch:
    """Code datums and evaluate words."""
    table = frames.sides[TABLE]
    datums, codes = table_datums(frames, table, table.height)
    place = pl.int_range(pl.len(), dtype=pl.Int64) if ROW not in table.columns else pl.col(ROW)
    numbers = table[ROW].to_numpy() if ROW in table.columns else None
    first = row_of_datums(numbers, codes, len(datums), table.height)
    height = None if numbers is not None else table.height
    findings = Findings()
    base = table.select(
        pl.Series("datum", codes)
        if codes is not None
        else pl.int_range(pl.len(), dtype=pl.Int32).alias("datum"),
        "metric",
        _column(table, "step", pl.String()),
        _column(table, "status", pl.String()),
        _column(table, "verdict", pl.String()),
        _column(table, "reference_index", pl.Int64()).fill_null(0).alias("reference"),
        _column(table, "item_index", pl.Int64()).alias("item"),
        _column(table, "judgment_index", pl.Int64()).fill_null(0).alias("judgment"),
        _column(table, "items", pl.Int64()),
        (_column(table, "error", pl.String()).fill_null("") != "").alias("failed"),
        place.alias("row"),
        _unnumbered(table).alias("unnumbered"),
    )
    key = ["metric", "step", "status", "verdict", "failed"]
    names = metric_names(base["metric"])
    need_of = {
        name: metrics.get("judged", real).needs[0]
        for name, real in names.items()
        if metrics.get("judged", real).needs[0] in needs
    }
    base = base.filter(pl.col("metric").is_in(list(need_of)))
    distinct = base.group_by(key, maintain_order=True).agg(pl.col("row").first())
    settled: list[Settled] = []
    for *combination, row in distinct.iter_rows():
        try:
            settled.append(_settle(*combination, need_of=need_of, settings=settings))
        except InputError as error:
            findings.wrong_step = findings.wrong_step or (row, error.said)
            settled.append((None, None, None, None, None))
    meaning = distinct.with_columns(
        pl.DataFrame(
            settled,
            schema={
                "need": pl.String,
                "part": pl.String,
                "count": pl.Float64,
                "kind": pl.String,
                "none": pl.String,
            },
            orient="row",
        )
    ).filter(pl.col("need").is_not_null())
    rows = base.join(
        meaning.drop("row"), on=key, how="inner", nulls_equal=True, maintain_order="left"
    )
    _find_repeats(rows, meaning, datums, findings)
    findings.strange = _strange(meaning)
    rows = rows.drop(*key, "unnumbered")
    keys = ["datum", "need", "part", "reference", "judgment"]
    if rows["item"].null_count():
        # Verdicts without an index are counted in the order of their rows.
        counted = pl.col("row").rank("ordinal").over(keys).cast(pl.Int64) - 1
        rows = rows.with_columns(pl.coalesce("item", counted).alias("item"))
    return Batch(datums, rows, findings, first, height)


def _strange(meaning: pl.DataFrame) -> dict[str, dict[str, Strange]]:
    """Return unknown words of verdicts by metric; error rows may have no word."""
    wrong = meaning.filter(
        pl.col("kind") == WRONG_WORD,
        pl.col("verdict").is_not_null(),
        pl.col("status").fill_null("").str.strip_chars().str.to_lowercase().is_in(["", *OK]),
    ).sort("row")
    strange: dict[str, dict[str, Strange]] = {}
    columns = ("metric", "verdict", "row", "need", "part")
    for name, word, row, need, part in wrong.select(columns).iter_rows():
        strange.setdefault(name, {}).setdefault(word, Strange(row, need, part))
    return strange


def _find_repeats(
    rows: pl.DataFrame, meaning: pl.DataFrame, datums: Datums, findings: Findings
) -> None:
    """Find verdicts in two rows that spell their metric, step or index differently.

    Equal spellings were compared when the table was checked. An index of 0 and a missing index are
    equal, which matters only for tables with a second spelling.
    """
    real = meaning.filter(pl.col("none").is_null(), pl.col("verdict").is_not_null())
    columns = ("metric", "step", "need", "part")
    findings.spelled = [*real.select(columns).unique(maintain_order=True).iter_rows()]
    every = meaning.filter(pl.col("none").is_null())
    same = every.select("metric", "step").n_unique() == every.select("need", "part").n_unique()
    if same and not rows["unnumbered"].any():
        return
    key = ["datum", "need", "part", "reference", "item", "judgment"]
    named = rows.filter(pl.col("none").is_null(), pl.col("item").is_not_null())
    again = named.filter(pl.struct(key).is_duplicated()).sort(*key, "row")
    findings.again = again.height
    findings.repeated = [
        Again((datums.id[datum], *place), row, metric, step)
        for datum, *place, row, metric, step in again.head(SHOWN)
        .select(*key, "row", "metric", "step")
        .iter_rows()
    ]


def _unnumbered(table: pl.DataFrame) -> pl.Expr:
    """Return an expression for rows without an index that other rows have."""
    mixed = [
        name
        for name in ("reference_index", "judgment_index")
        if name in table.columns and 0 < table[name].null_count() < table.height
    ]
    return pl.any_horizontal(pl.lit(False), *(pl.col(name).is_null() for name in mixed))


def _column(table: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Expr:
    if name not in table.columns:
        return pl.lit(None, dtype=dtype).alias(name)
    return pl.col(name).cast(dtype)


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
        known = step if step in measure.parts else measure.parts[0]
        # Our own word for datums without a row must not be taken for this.
        return need, known, None, f"status {plain}" if plain == NOT_JUDGED else plain, None
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
    whole = word.removesuffix(".0")
    if whole.removeprefix("-").isdecimal():  # whole numbers that were read as floats
        word = whole
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
