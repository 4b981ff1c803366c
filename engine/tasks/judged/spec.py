"""Judged metrics as a task: verdicts become one row of measures per datum, without a judge."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, listing, not_read
from ...metrics.registry import Metric, get, has, names
from ...schemas.arrays import Array
from ...schemas.contract import DATUMS, TABLE
from ...schemas.errors import N_NAMES, InputError, did_you_mean
from ...schemas.options import Options
from ...schemas.wording import option
from ...tallies.datums import Datums
from ...tallies.stats import Column, Stats
from ..contents import Contents, contents_of_table
from ..encoding import Workers
from ..per_datum import OF_VALUES, StatsTallies, no_labels
from ..task import FittedByRows, Sample, Task
from .dialects import Settings
from .encode import (
    EXTRA,
    FLAWS,
    MISSING,
    UNLIKE,
    Batch,
    Findings,
    Some,
    encode_batch,
    merge_findings,
    metric_names,
    metric_of,
    notes,
    refuse,
)
from .metrics import NOT_JUDGED, PLACE, SCORED, Verdicts, values_of

# Tally.


def written(frames: Frames) -> dict[str, int]:
    """Metric as the table writes it -> rows, ascending."""
    return dict(sorted(frames.sides[TABLE]["metric"].value_counts().iter_rows()))


# Votes: several judgments of the same items become one.

_WHERE = ["need", *PLACE]
_SET = ["datum", "need", "part", "reference"]
_ITEM = [*_SET, "item"]


def voted(rows: pl.DataFrame, *, most: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Reduce several judgments to one row per item by majority vote; ties go to the first judgment.

    Judgments vote first on the number of items to judge, starting with none or some. Judgments
    outside that majority list other items and do not vote on them. Failed judgments do not vote
    either, unless all of an item failed; then its first error is kept. In parts that only list
    negative verdicts, an item that a judgment does not list is a positive vote.

    Args:
        rows: of :class:`~evalengine.tasks.judged.encode.Batch`, with the columns of ``meaning``.
        most: the majority decides the number of items; otherwise the first judgment that did not
            fail.

    Returns:
        the same columns, by row; the rows without error of judgments that did not vote.
    """
    parts = pl.DataFrame(
        [
            (need, part, part, part in measure.listed)
            for need, measure in metrics.measures("judged").items()
            for part in measure.parts
        ],
        schema={"need": pl.String, "of": pl.String, "scope": pl.String, "listed": pl.Boolean},
        orient="row",
    )
    keyed = (
        rows.sort("judgment", "row", maintain_order=True)
        .with_columns(pl.coalesce("none", "part").alias("of"))
        .join(parts, on=["need", "of"], how="left", maintain_order="left")
        .with_columns(pl.col("listed").fill_null(False))
    )
    same, other = keyed, keyed.clear()
    # No scope: there was no item to judge, for any part.
    real = pl.col("scope").is_not_null()
    if keyed["scope"].null_count():
        stances = keyed.group_by(*_WHERE, "judgment").agg(
            pl.col("kind").is_null().any().alias("usable"),
            pl.when(real.any())
            .then(pl.lit(""))
            .otherwise(pl.col("none").unique().sort().str.join("+"))
            .alias("verdicts"),
        )
        same, other = _of_the_same(keyed, stances, _WHERE, pl.col("wanted") != "", most)
    counted = same.filter(real, ~pl.col("listed"))
    lengths = counted.group_by(*_WHERE, "scope", "judgment").agg(
        pl.col("kind").is_null().any().alias("usable"),
        pl.col("none").null_count().alias("verdicts"),
    )
    same, longer = _of_the_same(same, lengths, [*_WHERE, "scope"], pl.col("wanted") == 0, most)
    undecided = pl.concat([other, longer]).filter(pl.col("kind").is_null())
    sound = same.filter(pl.col("kind").is_null())
    votes = (
        sound.group_by([*_ITEM, "none", "count"], maintain_order=True)
        .agg(pl.len().alias("votes"), pl.all().exclude(*_ITEM, "none", "count").first())
        .sort("votes", descending=True, maintain_order=True)
        .unique([*_ITEM, "none"], keep="first", maintain_order=True)
    )
    votes = _carried(votes, sound)
    failed = same.filter(pl.col("kind").is_not_null()).join(
        sound.select(_ITEM).unique(), on=_ITEM, how="anti"
    )
    failed = failed.unique(_ITEM, keep="first", maintain_order=True)
    chosen = pl.concat([votes.select(rows.columns), failed.select(rows.columns)]).sort("row")
    return chosen, undecided.select(rows.columns)


def _of_the_same(
    keyed: pl.DataFrame, verdicts: pl.DataFrame, of: list[str], nothing: pl.Expr, most: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows into judgments that agree with the majority, and others.

    Args:
        keyed: rows of all judgments.
        verdicts: statement of each judgment: ``of``, ``judgment``, ``verdicts``, and ``usable``,
            which is True if it did not fail as a whole.
        of: columns on which judgments are compared.
        nothing: expression on ``wanted``: there was no item to judge.
        most: the majority decides, otherwise the first.

    Returns:
        kept rows, and the others. If there was no item to judge, failures are removed, too.
    """
    majority = (
        verdicts.filter("usable")
        .group_by(*of, "verdicts")
        .agg(pl.len().alias("votes"), pl.col("judgment").min().alias("first"))
        .sort(*(["votes"] if most else []), "first", descending=[True, False] if most else False)
        .unique(of, keep="first", maintain_order=True)
        .select(*of, pl.col("verdicts").alias("wanted"))
    )
    other = (
        verdicts.join(majority, on=of)
        .filter(pl.when("usable").then(pl.col("verdicts") != pl.col("wanted")).otherwise(nothing))
        .select(*of, "judgment")
    )
    if not other.height:
        return keyed, keyed.clear()
    at = [*of, "judgment"]
    stay = keyed.join(other, on=at, how="anti", maintain_order="left")
    return stay, keyed.join(other, on=at, how="semi", maintain_order="left")


def _carried(votes: pl.DataFrame, sound: pl.DataFrame) -> pl.DataFrame:
    """Without listed items that fewer judgments list than do not."""
    if not votes["listed"].any():
        return votes
    key = ["datum", "need", "reference"]
    judgments = sound.group_by(key).agg(
        pl.col("judgment").n_unique().alias("judgments"), pl.col("judgment").min().alias("first")
    )
    joined = votes.join(judgments, on=key, how="left", maintain_order="left")
    double = pl.col("votes") * 2
    tie = (double == pl.col("judgments")) & (pl.col("judgment") == pl.col("first"))
    mask = ~pl.col("listed") | pl.col("none").is_not_null() | (double > pl.col("judgments")) | tie
    return joined.filter(mask)


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, vote and measure.

    Raises:
        InputError: a step that the metric does not have; one verdict in two rows.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, needs)
    refuse(batch.findings)
    tallies = _measured(batch, settings, needs, begun, several=False)
    frames.notes += notes(batch.findings, settings)
    return tallies


def notes_of_findings(findings: Findings, settings: Settings, needs: frozenset[str]) -> list[Note]:
    """Return the notes of :func:`tally` for a run in parts.

    Args:
        findings: merged findings of all parts.
        needs: of the fitted plan, which may be fewer than were tallied.

    Raises:
        InputError: as for :func:`tally`.
    """
    refuse(findings)
    standings = {need: some for need, some in findings.standings.items() if need in needs}
    return notes(msgspec.structs.replace(findings, standings=standings), settings)


def tally_part(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers, *, several: bool
) -> tuple[StatsTallies, Findings]:
    """Return the tally of some datums, and findings to merge over parts.

    Args:
        several: with the rows of other parts, there are several judgments.
    """
    begun = time.perf_counter()
    rows = written(frames)
    batch = encode_batch(frames, settings, needs)
    batch.findings.written = rows
    return _measured(batch, settings, needs, begun, several=several), batch.findings


def _measured(
    batch: Batch, settings: Settings, needs: frozenset[str], begun: float, *, several: bool
) -> StatsTallies:
    """Vote and measure; adds to the findings.

    Args:
        several: there are several judgments, even if these rows, as part of the table, have just
            one.
    """
    findings, datums = batch.findings, batch.datums
    rows = _used(batch, settings)
    if several or rows["judgment"].n_unique() > 1:
        wide = rows.join(batch.meaning, on="code", how="left", maintain_order="left")
        chosen, undecided = voted(wide, most=settings.rules.most_decide)
        rows = chosen.select(rows.columns)
        by_need = undecided.select("need", *PLACE, "judgment").unique()
        for need in by_need["need"].unique().to_list():
            judgments = by_need.filter(pl.col("need") == need)["datum"].to_numpy()
            some = _some(np.unique(judgments), datums)
            findings.apart[need] = msgspec.structs.replace(some, judgments=judgments.size)
    encoded = time.perf_counter()
    columns: dict[str, tuple[Column, ...]] = {}
    wrong: defaultdict[str, list[Array]] = defaultdict(list)
    for need, verdicts in _by_need(rows, batch.meaning, needs, len(datums)):
        verdicts.kind = _counted_out(need, verdicts)
        for kind in FLAWS:
            if (at := verdicts.kind == verdicts.kinds.index(kind)).any():
                wrong[kind].append(verdicts.datum[at])
        columns[need] = (_column(need, verdicts, settings),)
    findings.kinds = {
        kind: _some(np.unique(np.concatenate(some)), datums) for kind, some in wrong.items()
    }
    findings.standings = {need: _standings(column) for need, (column,) in columns.items()}
    counted = np.ones(len(datums), bool)
    stats = Stats(counted, columns, ((SCORED,), np.zeros(counted.size, np.int8)))
    seconds = {"match": encoded - begun, "measure": time.perf_counter() - encoded}
    return StatsTallies(datums, no_labels(), stats, batch.row, batch.height, seconds)


def _some(codes: Array, datums: Datums) -> Some:
    """Return number and lowest ids of datums, whose codes ascend."""
    return Some(codes.size, datums.id.gather(codes[:N_NAMES]).to_list())


def _standings(column: Column) -> dict[str, int]:
    """Count datums by status."""
    assert column.status is not None
    names, codes = column.status
    return dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True))


def _used(batch: Batch, settings: Settings) -> pl.DataFrame:
    """Drop rows of parts that this run does not use, if the ground truth has another part."""
    rows = batch.rows
    flags = [
        (pl.col("need") == need) & (pl.coalesce("none", "part") == part)
        for need in batch.meaning["need"].unique()
        for part in metrics.measures("judged")[need].unused_by(settings)
    ]
    if not flags:
        return rows
    wide = rows.join(batch.meaning, on="code", how="left", maintain_order="left")
    unused = pl.any_horizontal(flags)
    return wide.filter(~unused | unused.all().over(*PLACE, "need")).select(rows.columns)


def _by_need(
    rows: pl.DataFrame, meaning: pl.DataFrame, needs: frozenset[str], n: int
) -> Iterator[tuple[str, Verdicts]]:
    """Yield the verdicts of each need as arrays."""
    datum, code, reference, item, items = (
        rows[name].to_numpy() for name in ("datum", "code", "reference", "item", "items")
    )
    of_code = meaning["need"].to_list()
    kinds = sorted({*FLAWS, *meaning["kind"].drop_nulls()})
    kind = _codes(meaning["kind"], kinds)
    count = meaning["count"].to_numpy()
    for need in sorted(needs):
        measure = metrics.measures("judged")[need]
        mine = np.array([name == need for name in of_code], bool)
        at: Any = slice(None) if mine.all() else np.flatnonzero(mine[code])
        part = _codes(meaning["part"], measure.parts)
        none = _codes(meaning["none"], sorted(measure.empties))
        own = code[at]
        place, datum_of = _places(datum[at], reference[at], n)
        yield need, Verdicts(
            n, datum[at], place, datum_of, item[at], items[at], part[own], count[own], kind[own],
            none[own], kinds,
        )  # fmt: skip


def _codes(names: pl.Series, vocabulary: Sequence[str]) -> Array:
    """Return the place of each name in a list, -1 for others."""
    place = {name: code for code, name in enumerate(vocabulary)}
    return np.array([place.get(name, -1) for name in names.to_list()], np.int32)


def _places(datum: Array, reference: Array, n: int) -> tuple[Array, Array]:
    """Return the code of each row's datum and reference, and the datum of each code."""
    if not reference.any():
        return datum, np.arange(n)
    references, code = np.unique(reference, return_inverse=True)
    key, place = np.unique(datum.astype(np.int64) * references.size + code, return_inverse=True)
    return place, key // references.size


def _counted_out(need: str, verdicts: Verdicts) -> Array:
    """Return kinds of errors, with those of sets with missing or excess verdicts."""
    measure = metrics.measures("judged")[need]
    kind, n_places = verdicts.kind.copy(), verdicts.datum_of.size
    for code, part in enumerate(measure.parts):
        at = np.flatnonzero((verdicts.none < 0) & (verdicts.part == code))
        place = verdicts.place[at]
        n = np.bincount(place, minlength=n_places)
        # Sets of errors only have a separate error, and so have sets with some.
        sound = (n > 0) & (np.bincount(place[kind[at] >= 0], minlength=n_places) == 0)
        reached = np.zeros(n_places, np.int64)
        np.maximum.at(reached, place, verdicts.item[at] + 1)
        items = verdicts.items[at]
        needed = np.full(n_places, -1, np.int64)
        np.maximum.at(needed, place, items)
        least = np.full(n_places, np.iinfo(np.int64).max)
        np.minimum.at(least, place[items >= 0], items[items >= 0])
        unlike = (needed >= 0) & (needed != least)
        if measure.single:
            needed[:] = 1
        elif measure.ranked:  # contexts are the same for every ground truth
            most = np.zeros(verdicts.n, np.int64)
            np.maximum.at(most, verdicts.datum_of[sound], n[sound])
            needed = np.where(needed < 0, most[verdicts.datum_of], needed)
        wrong = np.full(n_places, -1, np.int32)
        if part not in measure.listed:
            wrong[(n < needed) | (n < reached)] = verdicts.kinds.index(MISSING)
        wrong[(n > needed) & (needed >= 0)] = verdicts.kinds.index(EXTRA)
        wrong[unlike] = verdicts.kinds.index(UNLIKE)
        wrong[~sound] = -1
        kind[at] = np.where(kind[at] < 0, wrong[place], kind[at])
    return kind


def _column(need: str, verdicts: Verdicts, settings: Settings) -> Column:
    """Values and standings of all datums in one metric."""
    metric = metric_of(need)
    datum, none = verdicts.datum, verdicts.none
    kind = _complete(need, verdicts, settings)
    words = [*verdicts.kinds]
    word = np.full(verdicts.n, -1, np.int64)
    _assign_first(word, datum, kind, np.flatnonzero(kind >= 0))
    sound = word[datum] < 0
    real = np.flatnonzero(sound & (none < 0))
    value = values_of(need, verdicts, real, settings)
    if (empty := np.flatnonzero(sound & (none >= 0))).size:
        place = verdicts.place
        called, code, of_place = _without(need, verdicts, empty, settings)
        _assign_first(word, datum, len(words) + code[place], empty)
        words += called
        # The empty parts decide only if that place has no verdicts.
        of_place[place[real]] = np.nan
        np.fmax.at(value, verdicts.datum_of, of_place)
    value = _adjusted(value, need, metric.name, settings)
    status = _status(value, datum, word, words)
    return Column(metric=metric.name, values=value[:, None, None], status=status)


def _assign_first(word: Array, datum: Array, code: Array, rows: Array) -> None:
    """Assign to each datum the code of its first row."""
    last_wins = rows[::-1]
    word[datum[last_wins]] = code[last_wins]


def _complete(need: str, verdicts: Verdicts, settings: Settings) -> Array:
    """Return kinds of errors, with those of places with a missing part."""
    measure = metrics.measures("judged")[need]
    if len(measure.parts) == 1:
        return verdicts.kind
    place, empties = verdicts.place, sorted(measure.empties)
    complete = np.ones(verdicts.datum_of.size, bool)
    for name in measure.required(settings):
        has = (verdicts.none < 0) & (verdicts.part == measure.parts.index(name))
        if name in empties:
            has |= verdicts.none == empties.index(name)
        complete &= np.bincount(place[has], minlength=complete.size) > 0
    covers_all = np.isin(verdicts.none, [empties.index(name) for name in measure.whole])
    complete[place[covers_all]] = True
    missing = ~complete[place] & (verdicts.kind < 0)
    return np.where(missing, verdicts.kinds.index(MISSING), verdicts.kind)


def _without(
    need: str, verdicts: Verdicts, rows: Array, settings: Settings
) -> tuple[list[str], Array, Array]:
    """Return the names of statuses of empty parts, and the code and value of each place's.

    A status names the empty part, with a single word for all parts together.

    Args:
        rows: of status empty. The value of other places is NaN.
    """
    measure = metrics.measures("judged")[need]
    empties = sorted(measure.empties)
    parts = np.zeros(verdicts.datum_of.size, np.int64)  # a bit each
    for code in range(len(empties)):
        parts[verdicts.place[rows[verdicts.none[rows] == code]]] |= 1 << code
    sets, of_place = np.unique(parts, return_inverse=True)
    kinds = ["+".join(t for i, t in enumerate(empties) if bits >> i & 1) for bits in sets.tolist()]
    ruled = settings.rules.empty.get(need, {})
    # If several parts are empty without a rule for the combination, the individual rules must
    # agree.
    kind_values = {kind: _ruled(kind, ruled) for kind in kinds if kind}
    called = {kind: kind.replace("+", "_or_") for kind in kinds if kind}
    if measure.whole:
        zero = {f"{part}.{word}": np.zeros(1) for part in measure.parts for word in ("yes", "no")}
        value = float(measure.formula(zero, settings)[0])
        names = {*measure.parts, measure.whole[0]}
        kind_values |= {
            t: value for t in kind_values if t not in ruled and set(t.split("+")) <= names
        }
        called["+".join(sorted(measure.parts))] = measure.whole[0]
    values = np.array([kind_values.get(kind) for kind in kinds], np.float64)
    return [f"no_{called.get(kind)}" for kind in kinds], of_place, values[of_place]


def _ruled(kind: str, ruled: dict[str, float]) -> float | None:
    if kind in ruled:
        return ruled[kind]
    each = [ruled.get(one) for one in kind.split("+")]
    return each[0] if None not in each and len(set(each)) == 1 else None


def _adjusted(value: Array, need: str, name: str, settings: Settings) -> Array:
    """Rounded as the dialect does; all but the best as the worst under ``strict_mode``."""
    digits = settings.rules.decimals_of.get(need)
    if digits is not None:
        value = np.round(value, digits)
    if settings.strict_mode and need not in settings.rules.strict_ignored:
        metric = metrics.get("judged", name)
        if "strict_mode" in metric.params:
            low, high = metric.range
            better = settings.better.get(name, metric.better)
            best, worst = (high, low) if better == "higher" else (low, high)
            smoothed = np.abs(value - best) < 1e-9  # the best value, over a denominator + 1e-10
            value = np.where(np.isnan(value) | smoothed, value, worst)
    return value


def _status(
    value: Array, datum: Array, word: Array, words: Sequence[str]
) -> tuple[tuple[str, ...], Array]:
    """Names of standings and the code of each datum's.

    Args:
        datum: of each row.
        word: code of each datum's entry of ``words``, -1 for none.
    """
    undefined = "undefined"
    present = np.unique(word[word >= 0])
    used = [words[code] for code in present]
    names = tuple(dict.fromkeys((SCORED, NOT_JUDGED, undefined, *sorted(used))))
    codes = np.full(value.size, names.index(NOT_JUDGED), np.int32)
    codes[datum] = names.index(undefined)
    code_of = np.zeros(len(words), np.int32)
    code_of[present] = [names.index(name) for name in used]
    codes = np.where(word >= 0, code_of[word], codes)
    codes[~np.isnan(value)] = names.index(SCORED)
    return names, codes


# The metrics of a run: those asked for, or those that the table has verdicts of.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all for which the table has verdicts.

    Raises:
        InputError: the table has rows, but verdicts only of unknown metrics.
    """
    return fit_written(metrics, written(frames), settings, requested=requested)


def fit_written(
    metrics: tuple[Metric, ...], rows: Mapping[str, int], settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all with verdicts; see :func:`fit`."""
    unknown = {name: rows[name] for name in sorted(rows) if not has("judged", name)}
    present = set(metric_names(rows).values())
    notes = []
    if unknown:
        if not present and not requested:
            raise InputError(
                f"column 'metric' names no judged metric: {listing(unknown)}."
                f"{did_you_mean(next(iter(unknown)), names('judged'))} `evalengine metrics --task"
                " judged` lists them; correct the column.",
                code="unknown_name",
                value=next(iter(unknown)),
            )
        many = count_of(sum(unknown.values()), "row")
        message = f"{many} of unknown metrics skipped: {listing(unknown)}."
        notes.append(
            Note("unknown_metrics", message, len(unknown), facts={"metrics": [*unknown][:5]})
        )
    fitting = (
        metrics if requested else tuple(metric for metric in metrics if metric.name in present)
    )
    read = {name for metric in fitting for name in metric.params}
    undecided = any(words.ambiguous for words in settings.rules.words.values())
    if settings.penalize_ambiguous and "penalize_ambiguous" in read and not undecided:
        message = "is only read by dialects with undecided verdicts (deepeval)."
        notes.append(not_read(f"{option('penalize_ambiguous')} {message}"))
    if "beta" in settings.given and settings.mode != "f1" and "beta" in read:
        message = (
            f"{option('beta', settings.beta)} weighs recall in F and has no effect with"
            f" {option('mode', settings.mode)}."
        )
        notes.append(not_read(message))
    return fitting, notes


AHEAD = ("metric", "judgment_index")
"""Columns whose distinct values decide in advance which metrics to tally."""


def may_fit(
    metrics: tuple[Metric, ...], needs: frozenset[str], ahead: pl.DataFrame, *, requested: bool
) -> tuple[tuple[Metric, ...], bool]:
    """Return the metrics that verdicts may have, before checks, and whether judgments vote.

    Args:
        ahead: distinct values of ``AHEAD`` in all rows, for the columns that exist.

    Returns:
        metrics; True if any item may have several judgments, so that all of them vote.
    """
    real_names = metric_names(ahead["metric"].cast(pl.String).drop_nulls().unique().to_list())
    present = set(real_names.values())
    fitting = (
        metrics if requested else tuple(metric for metric in metrics if metric.name in present)
    )
    if "judgment_index" not in ahead.columns:
        return fitting, False
    named = [name for name, real in real_names.items() if get("judged", real).needs[0] in needs]
    judgments = ahead.filter(pl.col("metric").cast(pl.String).is_in(named))["judgment_index"]
    return fitting, judgments.cast(pl.Int64, strict=False).fill_null(0).n_unique() > 1


def needs_all_rows(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], settings: Settings, options: Options
) -> str:
    """Return why verdicts depend on all rows; empty if the first rows suffice.

    The remaining rows decide whether judgments vote, and a condition on the table of datums can
    only be applied after the join.
    """
    if DATUMS in ready.where and "judgment_index" in ready.sides[TABLE].naming.exprs:
        return "the contents of a judged table depend on all of its rows"
    return ""


# The plan of a judged run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    strict = "; values below the best count as the worst" if settings.strict_mode else ""
    return [
        f"words     made alike by {settings.rules.fold}; judgments of one item vote",
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}{strict}",
        "mean      over datums with a value; the rest is counted by its kind",
    ]


# A tiny table of verdicts; judged metrics have no compiled kernels.


def samples() -> Iterator[Sample]:
    """Verdicts of one metric."""
    yield (
        pl.DataFrame({"datum_id": [1, 1], "metric": ["Bias"] * 2, "verdict": ["yes", "no"]}),
        None,
        {},
    )


TASK = Task(
    name="judged",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    truths=False,
    contents=Contents(of_tables=contents_of_table),
    needs_all_rows=needs_all_rows,
    judge=True,
    fitted_by_rows=FittedByRows(
        AHEAD, may_fit, fit_written, tally_part, Findings, merge_findings, notes_of_findings
    ),
    **OF_VALUES,
)
