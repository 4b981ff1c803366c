"""Tally: every measure that is needed, one row a datum."""

from __future__ import annotations

import time

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...schemas.arrays import Array
from ...schemas.contract import TABLE
from ...tally.datums import Datums
from ...tally.stats import Column, Stats
from ..encoding import Workers
from ..per_datum import StatsTallies, no_labels
from .dialects import Settings
from .encode import Batch, encode_batch
from .findings import EXTRA, MISSING, NAMED, TOLD, UNLIKE, Findings, Some, metric_of, notes, refuse
from .metrics import NOT_JUDGED, PLACE, SCORED, values_of


def written(frames: Frames) -> dict[str, int]:
    """Metric as the table writes it -> rows, ascending."""
    return dict(frames.sides[TABLE]["metric"].value_counts().sort("metric").iter_rows())


# Votes: several judgments of the same items become one.

_WHERE = ["need", *PLACE]
_SET = ["datum", "need", "part", "reference"]
_ITEM = [*_SET, "item"]


def voted(
    rows: pl.DataFrame, *, most: bool, several: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Reduce several judgments to one row per item by majority vote; ties go to the first judgment.

    Judgments vote first on the number of items to judge, starting with none or some. Judgments
    outside that majority list other items and do not vote on them. Failed judgments do not vote
    either, unless all of an item failed; then its first error is kept. In parts that only list
    negative verdicts, an item that a judgment does not list is a positive vote.

    Args:
        rows: of :class:`~evalengine.tasks.judged.encode.Batch`.
        most: the majority decides the number of items; otherwise the first judgment that did not
            fail.
        several: there are several judgments, even if these rows, as part of the table, have just
            one.

    Returns:
        the same columns, by row; the rows without error of judgments that did not vote.
    """
    if not several and rows["judgment"].n_unique() < 2:
        return rows, rows.clear()
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
    alike, other = keyed, keyed.clear()
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
        alike, other = _of_the_same(keyed, stances, _WHERE, pl.col("wanted") != "", most)
    counted = alike.filter(real, ~pl.col("listed"))
    lengths = counted.group_by(*_WHERE, "scope", "judgment").agg(
        pl.col("kind").is_null().any().alias("usable"),
        pl.col("none").null_count().alias("verdicts"),
    )
    alike, longer = _of_the_same(alike, lengths, [*_WHERE, "scope"], pl.col("wanted") == 0, most)
    undecided = pl.concat([other, longer]).filter(pl.col("kind").is_null())
    sound = alike.filter(pl.col("kind").is_null())
    votes = (
        sound.group_by([*_ITEM, "none", "count"], maintain_order=True)
        .agg(pl.len().alias("votes"), pl.all().exclude(*_ITEM, "none", "count").first())
        .sort("votes", descending=True, maintain_order=True)
        .unique([*_ITEM, "none"], keep="first", maintain_order=True)
    )
    votes = _carried(votes, sound)
    lone = alike.filter(pl.col("kind").is_not_null()).join(
        sound.select(_ITEM).unique(), on=_ITEM, how="anti"
    )
    lone = lone.unique(_ITEM, keep="first", maintain_order=True)
    chosen = pl.concat([votes.select(rows.columns), lone.select(rows.columns)]).sort("row")
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
    wanted = (
        verdicts.filter("usable")
        .group_by(*of, "verdicts")
        .agg(pl.len().alias("votes"), pl.col("judgment").min().alias("first"))
        .sort(*(["votes"] if most else []), "first", descending=[True, False] if most else False)
        .unique(of, keep="first", maintain_order=True)
        .select(*of, pl.col("verdicts").alias("wanted"))
    )
    other = (
        verdicts.join(wanted, on=of)
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
    whole = ["datum", "need", "reference"]
    judgments = sound.group_by(whole).agg(
        pl.col("judgment").n_unique().alias("judgments"), pl.col("judgment").min().alias("first")
    )
    joined = votes.join(judgments, on=whole, how="left", maintain_order="left")
    double = pl.col("votes") * 2
    tie = (double == pl.col("judgments")) & (pl.col("judgment") == pl.col("first"))
    kept = ~pl.col("listed") | pl.col("none").is_not_null() | (double > pl.col("judgments")) | tie
    return joined.filter(kept)


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, vote and measure.

    Raises:
        InputError: a step that the metric does not have; one verdict in two rows.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, needs)
    refuse(batch.found)
    tallies = _measured(batch, settings, needs, begun, several=False)
    frames.notes += notes(batch.found, settings)
    return tallies


def told(findings: Findings, settings: Settings, needs: frozenset[str]) -> list[Note]:
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
    batch.found.written = rows
    return _measured(batch, settings, needs, begun, several=several), batch.found


def _measured(
    batch: Batch, settings: Settings, needs: frozenset[str], begun: float, *, several: bool
) -> StatsTallies:
    """Vote and measure; adds to the findings."""
    findings, datums = batch.found, batch.datums
    chosen, undecided = voted(
        _not_spared(batch.rows, settings), most=settings.rules.most_decide, several=several
    )
    rows = _counted_out(chosen)
    encoded = time.perf_counter()
    columns: dict[str, tuple[Column, ...]] = {
        need: (_column(need, rows.filter(pl.col("need") == need), len(datums), settings),)
        for need in sorted(needs)
    }
    wrong = rows.filter(pl.col("kind").is_in([*TOLD])).select("kind", "datum").unique()
    for kind in wrong["kind"].unique().to_list():
        findings.kinds[kind] = _some(wrong.filter(pl.col("kind") == kind)["datum"], datums)
    by_need = undecided.select("need", *PLACE, "judgment").unique()
    for need in by_need["need"].unique().to_list():
        judgments = by_need.filter(pl.col("need") == need)["datum"]
        findings.apart[need] = msgspec.structs.replace(
            _some(judgments.unique(), datums), judgments=len(judgments)
        )
    findings.standings = {need: _standings(column) for need, (column,) in columns.items()}
    whole = np.ones(len(datums), bool)
    stats = Stats(whole, columns, ((SCORED,), np.zeros(whole.size, np.int8)))
    seconds = {"match": encoded - begun, "measure": time.perf_counter() - encoded}
    return StatsTallies(datums, no_labels(), stats, batch.row, batch.height, seconds)


def _some(codes: pl.Series, datums: Datums) -> Some:
    lowest = codes.bottom_k(NAMED).sort()
    return Some(len(codes), datums.id.gather(lowest).to_list())


def _standings(column: Column) -> dict[str, int]:
    """Count datums by status."""
    assert column.status is not None
    names, codes = column.status
    return dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True))


def _not_spared(rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Drop rows of parts that this run does not use, if the ground truth has another part."""
    spared = pl.lit(False)
    for need, measure in metrics.measures("judged").items():
        for part in measure.spared_by(settings):
            spared |= (pl.col("need") == need) & (pl.coalesce("none", "part") == part)
    return rows.filter(~spared | spared.all().over(*PLACE, "need"))


def _counted_out(rows: pl.DataFrame) -> pl.DataFrame:
    """Mark the rows of sets with missing or excess verdicts."""
    place = ["datum", "need", "part", "reference"]
    rule = pl.DataFrame(
        [
            (need, part, part in measure.listed, measure.single, measure.ranked)
            for need, measure in metrics.measures("judged").items()
            for part in measure.parts
        ],
        schema={
            "need": pl.String,
            "part": pl.String,
            "listed": pl.Boolean,
            "single": pl.Boolean,
            "ranked": pl.Boolean,
        },
        orient="row",
    )
    real = rows.filter(pl.col("none").is_null())
    sets = (
        real.group_by(place)
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            (pl.col("item").max() + 1).alias("reached"),
            pl.col("items").max().alias("wanted"),
            pl.col("items").min().alias("least"),
            pl.col("kind").null_count().alias("sound"),
        )
        .filter(pl.col("sound") == pl.col("n"))  # the others have a separate error
        .join(rule, on=["need", "part"], how="left")
    )
    # Contexts are the same for every ground truth.
    of_all = pl.when("ranked").then(pl.col("n").max().over("datum", "need"))
    n, wanted = pl.col("n"), pl.when("single").then(1).otherwise(pl.coalesce("wanted", of_all))
    short = ~pl.col("listed") & ((n < wanted) | (n < pl.col("reached")))
    wrong = sets.with_columns(
        pl.when((pl.col("wanted") != pl.col("least")).fill_null(False))
        .then(pl.lit(UNLIKE))
        .when((n > wanted).fill_null(False))
        .then(pl.lit(EXTRA))
        .when(short.fill_null(False))
        .then(pl.lit(MISSING))
        .alias("wrong")
    ).filter(pl.col("wrong").is_not_null())
    if not wrong.height:
        return rows
    joined = rows.join(wrong.select(*place, "wrong"), on=place, how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("kind", "wrong").alias("kind")).drop("wrong")


def _column(need: str, rows: pl.DataFrame, n: int, settings: Settings) -> Column:
    """Values and standings of all datums in one metric."""
    metric = metric_of(need)
    rows = _complete(need, rows, settings)
    failed = rows.filter(pl.col("kind").is_not_null()).unique("datum", keep="first")
    sound = rows.join(failed.select("datum"), on="datum", how="anti")
    without = _without(need, sound.filter(pl.col("none").is_not_null()), settings)
    real = sound.filter(pl.col("none").is_null())
    every = [values_of(need, real, settings)] if real.height else []
    if without.height:
        # The empty parts decide only if that place has no verdicts.
        judged = real.select(PLACE).unique()
        every.append(without.join(judged, on=PLACE, how="anti").select(*PLACE, "value"))
    value = np.full(n, np.nan)
    if every:
        best = (
            pl.concat(every)
            .with_columns(pl.col("value").fill_nan(None))
            .group_by("datum")
            .agg(pl.col("value").max())
            .drop_nulls()
        )
        value[best["datum"].to_numpy()] = best["value"].to_numpy()
    value = _adjusted(value, need, metric.name, settings)
    words = pl.concat(
        [
            failed.select("datum", pl.col("kind").alias("word")),
            without.select("datum", pl.format("no_{}", "called").alias("word")),
        ]
    ).unique("datum", keep="first", maintain_order=True)
    return Column(
        metric=metric.name, values=value[:, None, None], status=_status(value, rows, words)
    )


def _complete(need: str, rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Mark the rows of places with a missing part."""
    measure = metrics.measures("judged")[need]
    required = measure.required(settings)
    if len(measure.parts) == 1 or not rows.height:
        return rows
    has = pl.coalesce("none", "part")
    whole = pl.col("none").is_in(list(measure.whole)).any()
    places = rows.group_by(PLACE).agg(
        pl.all_horizontal([(has == part).any() for part in required]).alias("complete") | whole
    )
    rows = rows.join(places, on=PLACE, how="left", maintain_order="left")
    lacks = ~pl.col("complete") & pl.col("kind").is_null()
    kind = pl.when(lacks).then(pl.lit(MISSING)).otherwise("kind")
    return rows.with_columns(kind.alias("kind")).drop("complete")


def _without(need: str, rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Return datum, reference, value and the empty part, for rows of status empty.

    ``called`` is that part as a status name, with a single word for all parts together.
    """
    measure = metrics.measures("judged")[need]
    sets = rows.group_by(PLACE, maintain_order=True).agg(
        pl.col("none").unique().sort().str.join("+")
    )
    ruled = settings.rules.empty.get(need, {})
    kinds = sets["none"].unique().to_list()
    # If several parts are empty without a rule for the combination, the individual rules must
    # agree.
    found = {kind: _ruled(kind, ruled) for kind in kinds}
    called = {kind: kind.replace("+", "_or_") for kind in kinds}
    if measure.whole:
        parts = metrics.measures("judged")[need].parts
        zero = {f"{part}.{word}": np.zeros(1) for part in parts for word in ("yes", "no")}
        value = float(metrics.measures("judged")[need].formula(zero, settings)[0])
        nothing = None if np.isnan(value) else value
        own = {*measure.parts, measure.whole[0]}
        found |= {t: nothing for t in kinds if t not in ruled and set(t.split("+")) <= own}
        called["+".join(sorted(measure.parts))] = measure.whole[0]
    values = sets["none"].replace_strict(found, return_dtype=pl.Float64, default=None)
    return sets.select(
        "datum",
        pl.col("reference").cast(pl.Int64),
        values.cast(pl.Float64).alias("value"),
        pl.col("none").replace_strict(called, return_dtype=pl.String).alias("called"),
    )


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
            value = np.where(np.isnan(value) | (value == best), value, worst)
    return value


def _status(value: Array, rows: pl.DataFrame, words: pl.DataFrame) -> tuple[tuple[str, ...], Array]:
    """Names of standings and the code of each datum's."""
    undefined = "undefined"
    told = words["word"].unique().sort().to_list()
    names = tuple(dict.fromkeys((SCORED, NOT_JUDGED, undefined, *told)))
    place = {name: code for code, name in enumerate(names)}
    codes = np.full(value.size, place[NOT_JUDGED], np.int32)
    codes[rows["datum"].unique().to_numpy()] = place[undefined]
    coded = words["word"].replace_strict(place, return_dtype=pl.Int32)
    codes[words["datum"].to_numpy()] = coded.to_numpy()
    codes[~np.isnan(value)] = place[SCORED]
    return names, codes
