"""From runs, saved or not, to their comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
import polars as pl

from .evaluation import planner
from .evaluation.summary import Tallied
from .ingest.dtypes import canonical_dtype, fractional
from .ingest.files import Source
from .ingest.opening import Tables, named_as
from .ingest.problems import MANY, Note, count_of, listing
from .ingest.recognise import levels_in, with_calls
from .ingest.sources.tables import head_of, open_source, schema_of
from .ingest.where import parse
from .metrics import Metric, is_open
from .metrics import own as own_metrics
from .progress import Progress, reports_progress, step
from .report.tables import at_k
from .report.verdicts import gaps_of
from .run import (
    card_of_run,
    class_names,
    is_scored,
    messages_of,
    open_tables,
    refuse_tables,
    tallied_of,
    with_keys,
    with_or_without,
)
from .schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Table
from .schemas.errors import InputError, OptionError, TruthsMissingError, invalid, unknown
from .schemas.named import Named
from .schemas.option_values import LEVEL, make_options, parse_intervals
from .schemas.options import FIELDS, Options
from .schemas.tables import table_for
from .schemas.wording import option, render
from .scorecard.card import Scorecard
from .statistics.comparing import Compared, Margins, compare_runs, notes_of, with_own
from .statistics.comparing import margins as margins_between
from .statistics.comparison import Comparison
from .statistics.paired import SKIP, WORST, ZERO, same_kind, too_few
from .statistics.tests import ADJUSTMENTS, DELONG, RANDOMISATION, TESTS

FREE = (
    "threads",
    "memory_limit",
    "scratch",
    "intervals",
    "draws",
    "seed",
    "method",
    "cluster",
    "metrics",
    "by",
    "task",
    "human",
    "spread",
    "label_next",
)
"""Options in which runs that are compared may differ."""
_UNREAD = ("human", "label_next", "spread")
"""Options of one run that a comparison does not read."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@reports_progress
def compare(
    first: Any,
    second: Any = None,
    *more: Any,
    ground_truths: Any = None,
    names: Sequence[str] | None = None,
    predictions: str | Sequence[str] | None = None,
    model: str | None = None,
    replicate: str | None = None,
    common: bool = False,
    adjust: str = "holm",
    test: str = "randomisation",
    missing: str = "skip",
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> Comparison:
    """Compare runs over the same datums: differences, intervals and p-values.

    All runs use the same bootstrap resamples, so shared variation cancels.

    Args:
        first: predictions, as :func:`evalengine.score` takes them, or one table with both sides; a
            :class:`evalengine.Scorecard`; or the folder of a saved one.
        second: the same; differences are the second minus the first.
        *more: further runs; every pair is compared.
        ground_truths: for runs that are predictions.
        names: names of the runs; by default from their files. Runs with the same name are
            replicates of one model, such as training seeds: averages are compared, with the
            variance over replicates and datums.
        predictions: columns of predictions in a single table, one per model, each of which is a
            run, as a list or ``"a,b"``; truths and all other columns are shared. Columns of scores
            are named in ``columns``: ``{"a": "score", "b": "score"}``.
        model: column of a single table that distinguishes models; the rows of each value are a run.
        replicate: column of the predictions that distinguishes replicates of a model; the rows of
            each value are a run.
        common: skip datums that some runs do not have, instead of raising an error. A datum with
            ground truths is in the run even without a prediction.
        adjust: adjustment of p-values for multiple rows: holm, bh (Benjamini-Hochberg) or none.
        test: source of p-values: randomisation (any number), t (paired, means over datums),
            mcnemar (exact, shares of correct datums) or delong (paired, ROC AUC).
        missing: how means count datums for which only some runs have a value: skip (in all runs),
            zero, or worst (the worse end of the metric's range).
        options: options to start from; named ones take precedence.
        datums: table or list of all datum ids; see :func:`evalengine.score`.
        labels: table or list of declared classes.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step as it
            starts, a str with the attributes ``done``, ``total`` and ``unit`` if these are known.
        **named: any field of :class:`evalengine.Options`; the default of ``intervals`` is 0.95
            here.

    Returns:
        a :class:`evalengine.Comparison`.

    Raises:
        InputError: runs over different datums, ground truths or rules; names the first difference.
        ResultError: a saved run without the data for comparisons.
        OptionError: a single run, or several of them with ``predictions`` or ``model``.

    Example:
        >>> import evalengine as ee
        >>> ee.compare("a.parquet", "b.parquet", ground_truths="gts.parquet")  # doctest: +SKIP
    """
    runs = (first, *(() if second is None else (second,)), *more)
    chosen = make_options(options, **named)
    matched = not any(map(is_scored, runs))  # rows of scored runs have no ids made of columns
    tables = Tables(None, ground_truths, datums, labels, storage_options, matched)
    fields: Sequence[dict[str, Any]] = [{} for _ in runs]  # options of each run
    skipped: list[str] = []
    if predictions is not None or model is not None:
        if isinstance(predictions, str):
            predictions = [column.strip() for column in predictions.split(",")]
        parts, skipped = _models_of(runs, predictions, model, tables, chosen)
        names = names or [part.name for part in parts]
        runs, fields = tuple(part.run for part in parts), [part.fields for part in parts]
    if len(runs) < 2:
        raise OptionError(
            "compare needs two runs or more, or one table of several models:"
            f" {option('predictions', ['A', 'B'])} if each has a column of predictions,"
            f" {option('model', 'COLUMN')} if each has separate rows.",
            code="option_missing",
            option="model",
        )
    if adjust not in ADJUSTMENTS:
        raise unknown("adjust", adjust, ADJUSTMENTS)
    if test not in TESTS:
        raise unknown("test", test, TESTS)
    if test not in (RANDOMISATION, DELONG) and chosen.cluster is not None:
        raise OptionError(
            f"{option('test', test)} assumes that datums are independent: omit"
            f" {option('cluster')}, or use {option('test', RANDOMISATION)}."
        )
    if chosen.method is not None:
        raise OptionError(
            f"{option('method', chosen.method)} is for the numbers of one run; intervals of"
            " differences are percentiles of resamples, or those of the test. Omit it."
        )
    unread = [name for name in _UNREAD if getattr(chosen, name) is not None]
    chosen = chosen.replace(**dict.fromkeys(unread, None))
    chosen = chosen if chosen.drawn else chosen.replace(intervals=LEVEL)
    intervals = parse_intervals(chosen)
    assert intervals is not None
    called = _names(runs, names)
    if all(map(is_scored, runs)):
        refuse_tables(tables)
    if replicate is not None:
        parts = []
        for name, run, own in zip(called, runs, fields, strict=True):
            split, gone = _by_value(name, run, _REPLICATE, replicate, tables, chosen.where)
            parts += [_Part(name, part.run, own) for part in split]
            skipped += [f"{name}: {note}" for note in gone]
        called, runs = [part.name for part in parts], tuple(part.run for part in parts)
        fields = [part.fields for part in parts]
    models, called = _models(called)
    if models is not None and test != RANDOMISATION:
        raise OptionError(
            f"{option('test', test)} is of single runs: replicates have a test of their own. Omit"
            " it.",
            code="options_conflict",
            options=["test", "replicate" if replicate else "names"],
        )
    cards: dict[str, Scorecard] = {}
    for name, run, own_fields in zip(called, runs, fields, strict=True):
        step(f"reading {name}")
        try:
            cards[name] = card_of_run(
                msgspec.structs.replace(tables, predictions=run),
                chosen.replace(**own_fields),
                settable=FIELDS,
            )
        except TruthsMissingError:
            last = runs[-1] if len(runs) > 2 and isinstance(runs[-1], (str, Path)) else None
            way = option("ground_truths", *([str(last)] if last is not None else []))
            raise InputError(
                f"{name} contains only predictions, and every argument is a run: give the ground"
                f" truths as {way}."
            ) from None
    tallied = {name: tallied_of(name, card) for name, card in cards.items()}
    for name, source in _same_names(dict(zip(called, runs, strict=True)), tallied, tables).items():
        own_fields = fields[called.index(name)]
        named_tables = msgspec.structs.replace(tables, predictions=source)
        cards[name] = card_of_run(named_tables, chosen.replace(**own_fields), settable=FIELDS)
        tallied[name] = tallied_of(name, cards[name])
    refuse_other_rules(cards, chosen)
    tallied, own, chosen = _own_metrics(tallied, chosen)
    same_kind(tallied)
    cluster = _cluster(cards, chosen, test)
    if cluster != chosen.cluster:
        chosen = chosen.replace(cluster=cluster)
        intervals = msgspec.structs.replace(intervals, cluster=cluster)
    skipped += _metrics_of_some(tallied)
    tallied = _same_metrics(tallied, chosen)
    by, notes = _same_slices(tallied, chosen)
    notes += [
        f"{option(name)} is not read: runs are compared by their own numbers." for name in unread
    ]
    notes += skipped
    tallied = {name: with_keys(run, intervals.cluster, by, name) for name, run in tallied.items()}
    more_notes, warnings = ([], []) if predictions is not None else _same_truth(cards, tallied)
    notes += more_notes
    notes += _other_weights(tallied)
    leader = next(iter(cards.values()))
    directions = {
        metric.name: _better(run.plan, metric)
        for run in tallied.values()
        for metric in run.plan.metrics
    }
    step("drawing")
    compared = compare_runs(
        tallied,
        intervals,
        directions=directions,
        common=common,
        adjust=adjust,
        test=test,
        missing=missing,
        models=models,
    )
    if own:
        own = {name: with_keys(run, intervals.cluster, by, name) for name, run in own.items()}
        first_own = next(iter(own.values())).plan
        ways = {metric.name: _better(first_own, metric) for metric in first_own.metrics}
        directions |= ways
        own_differences = compare_runs(
            own,
            intervals,
            directions=ways,
            common=common,
            adjust=adjust,
            test=test,
            missing=missing,
            models=models,
        )
        compared = with_own(compared, own_differences, adjust)
    notes += notes_of(compared, intervals, adjust, drawn=TESTS[test] is None and models is None)
    if models is not None:
        model_counts = ", ".join(f"{name} {len(of_model)}" for name, of_model in models.items())
        notes.append(
            f"averages of replicates ({model_counts}) are compared; intervals and p are over"
            " replicates and datums."
        )
    warnings += [
        f"{one} and {other} agree in every number and every resample: is one run given twice?"
        " Replicates have to be independent; otherwise intervals are too narrow and p too low."
        for one, other in compared.repeated
    ]
    warnings += [note.message for note in changed_metrics(cards.values())]
    warnings += _merged_notes({name: card.warnings for name, card in cards.items()})
    gap_notes, withheld = _gaps(compared.differences, missing)
    notes += gap_notes
    warnings += withheld
    missing_messages, many = _missing_datums(cards, tallied, compared, common=common)
    (warnings if many else notes).extend(missing_messages)
    merged = _merged_notes(
        {
            name: [note for note in card.notes if note not in card.warnings]
            for name, card in cards.items()
        }
    )
    if model is not None or replicate is not None:  # counts of removed rows are not of the table
        findings = [finding for card in cards.values() for finding in card.findings]
        removed = {finding.message for finding in findings if finding.code == "where"}
        merged = [f"each run: {note}" if note in removed else note for note in merged]
    notes += merged
    sources = {
        name: str(run if isinstance(run, (str, Path)) else card.folder or type(run).__name__)
        for (name, card), run in zip(cards.items(), runs, strict=True)
    }
    return Comparison(
        task=leader.task,
        dialect=leader.dialect,
        options=chosen,
        runs=sources
        if models is None
        else {
            name: ", ".join(dict.fromkeys(sources[one] for one in of_model))
            for name, of_model in models.items()
        },
        adjust=adjust,
        test=test if models is None else REPLICATES,
        n=compared.n,
        differences=compared.differences.drop("units"),
        units=compared.differences["units"],
        flips=compared.flips,
        directions=directions,
        notes=tuple(map(render, (*warnings, *notes))),
        warnings=tuple(map(render, warnings)),
        names=class_names(*cards.values()),
        cites={
            name: card.cite
            for (name, card), run in zip(cards.items(), runs, strict=True)
            if is_scored(run)
        },
    )


def _merged_notes(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the notes shared by all runs, then the others prefixed with the name of their run."""
    shared = set.intersection(*map(set, notes.values()))
    others = [
        f"{name}: {note}"
        for name, run_notes in notes.items()
        for note in run_notes
        if note not in shared
    ]
    return [*(note for note in next(iter(notes.values())) if note in shared), *others]


def _gaps(rows: pl.DataFrame, missing: str) -> tuple[list[str], list[str]]:
    """Notes and warnings about numbers of the whole set that one run has no value of for datums."""
    gone = pl.col("missing_a") + pl.col("missing_b") > 0
    kinds: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for row in rows.filter(pl.col("slice").is_null(), gone).iter_rows(named=True):
        name = " ".join(
            str(part)
            for part in (at_k(row["metric"], row["k"]), row["average"], row["label_value"])
            if part is not None
        )
        kinds[too_few(row["coverage"])].setdefault(gaps_of(row), []).append(name)
    way = {
        ZERO: "Each counts as 0.",
        WORST: "Each counts as the worst value.",
        SKIP: "Means are over the datums of which both have one.",
    }[missing]
    notes = [f"{listing(dict.fromkeys(names))}: {gaps}. {way}" for gaps, names in kinds[0].items()]
    warnings = [
        f"no verdict on {listing(dict.fromkeys(names))}: {gaps}, more than a tenth of the datums"
        f" with a value in either run. {option('missing', WORST)} counts them, if a metric has a"
        " worst value."
        for gaps, names in kinds[1].items()
    ]
    return notes, warnings


_MOST = 0.5
"""Share that any run may have."""


def _missing_datums(
    cards: Mapping[str, Scorecard],
    runs: Mapping[str, Tallied],
    comparison: Compared,
    *,
    common: bool,
) -> tuple[list[str], bool]:
    """Return messages if runs are missing datums, unequally or many; and whether they are many."""
    plan = next(iter(runs.values())).plan
    rule = plan.does.unanswered
    if rule is not None and comparison.unanswered:
        counts = ", ".join(f"{name} {count:,}" for name, count in comparison.unanswered.items())
        return [
            f"only the {count_of(comparison.n, 'datum')} predicted by all runs are compared, since"
            f" means are over these (missing: {counts}){rule.advice}. Skipping hard datums does not"
            " make a run better."
        ], max(comparison.unanswered.values()) >= MANY * comparison.n
    if rule is not None and rule.leaves(plan.settings):
        return [], False
    inputs = {name: card.run["inputs"].get(PREDICTIONS, {}) for name, card in cards.items()}
    n_missing = {name: facts.get("lacking", 0) for name, facts in inputs.items()}
    n = max(int(card.run.get("datums", 0)) for card in cards.values())
    spread = max(n_missing.values()) - min(n_missing.values())
    if not n or (spread < MANY * n and max(n_missing.values()) < _MOST * n):
        return [], False
    counts = ", ".join(f"{name} of {count:,}" for name, count in n_missing.items())
    keeps = f" {option('common', True)} keeps them, as they have ground truths." if common else ""
    return [
        f"many of {count_of(n, 'datum')} have no prediction ({counts}), and all that is in them"
        f" counts as missed. Are these predictions whole, and of the same split?{keeps}"
    ], True


def margins(
    earlier: Scorecard, card: Scorecard, *, metrics: Collection[str], by: Collection[str]
) -> Margins:
    """Compute intervals of the differences between a run and an earlier one, for gates.

    Args:
        card: the run; its options define level, draws, seed and cluster.

    Raises:
        InputError: they were scored by different rules.
        ResultError: the tallies were not kept.
    """
    options = card.options if card.options.drawn else card.options.replace(intervals=LEVEL)
    intervals = parse_intervals(options)
    assert intervals is not None
    cards = {"the baseline": earlier, "this run": card}
    runs = {name: tallied_of(name, one) for name, one in cards.items()}
    refuse_other_rules(cards)
    runs, own_runs, _ = _own_metrics(runs, options.replace(metrics=None))
    runs = _same_metrics(runs, options.replace(metrics=None))
    first, second = (
        _narrowed(with_keys(run, intervals.cluster, run.plan.options.by, name), metrics, by)
        for name, run in runs.items()
    )
    truth_of = first.plan.does.truth
    same_kind = len({run.tallies.datums.id.dtype.is_integer() for run in (first, second)}) == 1
    comparable = same_kind and truth_of is not None
    differing = _differing(first, second, truth_of) if comparable else None
    result = margins_between(first, second, 0 if differing is None else len(differing), intervals)
    if not own_runs:
        return result
    one, other = (
        _narrowed(with_keys(run, intervals.cluster, run.plan.options.by, name), metrics, by)
        for name, run in own_runs.items()
    )
    rows = margins_between(one, other, 0, intervals).rows
    all_rows = pl.concat([result.rows, rows], how="diagonal_relaxed")
    return msgspec.structs.replace(result, rows=all_rows)


def _narrowed(run: Tallied, metrics: Collection[str], by: Collection[str]) -> Tallied:
    """Restrict a run to some metrics and slices; keep all metrics if rows are named differently."""
    plan = run.plan
    if {*metrics} <= {metric.name for metric in plan.metrics}:
        plan = planner.narrowed(plan, list(metrics))
    some = tuple(column for column in plan.options.by if column in by)
    plan = msgspec.structs.replace(plan, options=plan.options.replace(by=some))
    return msgspec.structs.replace(run, plan=plan)


def _cluster(cards: Mapping[str, Scorecard], options: Options, test: str) -> str | None:
    """Return the cluster column of the bootstrap: as requested, otherwise that of all runs.

    Raises:
        OptionError: the runs have different clusters, or the test does not support them.
    """
    clusters = {name: card.options.cluster for name, card in cards.items()}
    if options.cluster is not None or set(clusters.values()) == {None}:
        return options.cluster
    if len(set(clusters.values())) > 1:
        message = ", ".join(f"{name} {one or 'none'}" for name, one in clusters.items())
        raise OptionError(
            f"the runs were scored by different clusters ({message}): choose one with"
            f" {option('cluster', next(filter(None, clusters.values())))}.",
            code="runs_differ",
            option="cluster",
        )
    cluster = next(iter(clusters.values()))
    if test not in (RANDOMISATION, DELONG):
        raise OptionError(
            f"{option('test', test)} assumes that datums are independent, and the runs were scored"
            f" with {option('cluster', cluster)}: take {option('test', RANDOMISATION)}.",
            code="options_conflict",
            options=["test", "cluster"],
        )
    return cluster


def _differing_parts(paths: Sequence[Path]) -> list[str]:
    """Return the paths without the folders and names that all of them begin and end with."""
    every = [path.parts for path in paths]
    least = min(map(len, every))
    first = next((i for i in range(least) if len({parts[i] for parts in every}) > 1), least)
    rest = [parts[first:] for parts in every]
    least = min(map(len, rest))
    last = next((i for i in range(least) if len({parts[-1 - i] for parts in rest}) > 1), least)
    return ["/".join(parts[: len(parts) - last]) for parts in rest]


def _names(runs: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    """Return the names of the runs: as given, by their files or folders, or letters."""
    if names is not None:
        if len(names) != len(runs) or len(set(names)) < 2:
            raise OptionError(
                f"names={list(names)!r}: give {len(runs)}, one per run; runs with the same name are"
                " replicates of one model."
            )
        return list(names)
    paths = [Path(run) for run in runs if isinstance(run, (str, Path))]
    if len(paths) == len(runs):
        for titles in ([path.stem for path in paths], _differing_parts(paths), [*map(str, paths)]):
            if len(set(titles)) == len(titles) and all(titles):
                return titles
    return (
        list(_LETTERS[: len(runs)])
        if len(runs) <= len(_LETTERS)
        else [f"run {i + 1}" for i in range(len(runs))]
    )


def _models(called: Sequence[str]) -> tuple[dict[str, list[str]] | None, list[str]]:
    """Return the runs of each model, if names repeat, and different names of all runs.

    Raises:
        OptionError: a model has a single run, so that nothing is known of its replicates.
    """
    if len(set(called)) == len(called):
        return None, list(called)
    models: dict[str, list[str]] = {}
    names = []
    for name in called:
        run_names = models.setdefault(name, [])
        run_names.append(f"{name} {len(run_names) + 1}")
        names.append(run_names[-1])
    single = [name for name, run_names in models.items() if len(run_names) == 1]
    if single:
        raise OptionError(
            f"{single[0]} has one replicate, and other models have more: give two or more of each.",
            code="too_few_replicates",
            value=single[0],
        )
    return models, names


def _same_names(
    runs: Mapping[str, Any], tallied: Mapping[str, Tallied], tables: Tables
) -> dict[str, Source]:
    """Return the runs with integer ids of images, with the names that other runs matched by."""
    datums = {name: run.tallies.datums for name, run in tallied.items()}
    texts = [
        one.ids for one in datums.values() if one.id_dtype == pl.String and one.ids is not None
    ]
    numbers = [name for name, one in datums.items() if one.id_dtype.is_integer()]
    if not texts or not numbers or tables.ground_truths is None:
        return {}
    truths = open_source(tables.ground_truths, storage_options=tables.storage_options)
    renamed = {}
    for name in numbers:
        if is_scored(runs[name]):
            continue
        source = open_source(runs[name], storage_options=tables.storage_options)
        named = named_as(source, truths, pl.concat(texts))
        if named is not None:
            renamed[name] = named
    return renamed


class _Part(msgspec.Struct):
    """A model or replicate of a table.

    Attributes:
        fields: options that only this run has.
    """

    name: str
    run: Any
    fields: dict[str, Any] = {}


class _Split(msgspec.Struct, frozen=True):
    """An argument that names the columns by which a table is split.

    Attributes:
        noun: one of the parts.
        few: code of the error if there is only one.
        scored: advice if the run is scored already; takes the run's name.
    """

    option: str
    noun: str = ""
    few: str = ""
    scored: str = ""


_MODEL = _Split("model", "model", "too_few_models")
_REPLICATE = _Split(
    "replicate",
    "replicate",
    "too_few_replicates",
    " Give all replicates as runs with the same name ({}).",
)
_COLUMNS = _Split("predictions")


def _models_of(
    runs: Sequence[Any],
    predictions: Sequence[str] | None,
    model: str | None,
    tables: Tables,
    options: Options,
) -> tuple[list[_Part], list[str]]:
    """Return the models of one table, and notes on skipped columns and models.

    Raises:
        OptionError: not a single table, or both arguments.
        InputError: see :func:`_by_column` and :func:`_by_value`.
    """
    if len(runs) > 1 or (predictions is not None and model is not None):
        raise OptionError(
            f"{option('predictions')} and {option('model')} name the models of a single table:"
            " give one table and one of them.",
            code="options_conflict",
            options=["predictions", "model"],
        )
    name = _names(runs, None)[0]
    if predictions is not None:
        return _by_column(name, runs[0], predictions, tables, options)
    return _by_value(name, runs[0], _MODEL, str(model), tables, options.where)


def _opened(
    name: str, run: Any, split: _Split, columns: Sequence[str], storage: dict[str, str] | None
) -> Source:
    """Open a table whose columns an argument names.

    Raises:
        InputError: the run is scored already, or does not have a column.
    """
    if is_scored(run):
        way = split.scored.format(option("names", name))
        raise InputError(
            f"{option(split.option, *columns)}: {name} is scored already.{way}", code="not_kept"
        )
    source = open_source(run, storage_options=storage)
    schema = schema_of(source)
    for column in columns:
        if column not in schema:
            raise InputError(
                f"{option(split.option, column)}: {name} has no such column. Columns there:"
                f" {', '.join(schema)}.",
                code="column_missing",
                column=column,
            )
    return source


def _by_value(
    name: str,
    run: Any,
    split: _Split,
    column: str,
    tables: Tables,
    where: str | Mapping[str, str] | None,
) -> tuple[list[_Part], list[str]]:
    """Split a table by the values of a column, which its parts have only if a condition reads it.

    Conditions remove values, with a note, if the table has all their columns. With separate ground
    truths they must also name the column: otherwise the missing predictions count as missed.

    Raises:
        InputError: the run is scored already, does not have the column, or a single value of it.
    """
    source = _opened(name, run, split, [column], tables.storage_options)
    schema = schema_of(source)
    filters = where if isinstance(where, Mapping) else {TABLE: where}
    conditions = [parse(text) for side in (TABLE, PREDICTIONS) if (text := filters.get(side))]
    reading = any(column in condition.names for condition in conditions)
    removing = [
        condition
        for condition in conditions
        if {*condition.names} <= {*schema}
        and (column in condition.names or tables.ground_truths is None)
    ]
    remains = pl.all_horizontal(pl.lit(True), *(condition.expr for condition in removing)).any()
    grouped = source.frame.group_by(column).agg(remains.alias(f"{column} remains"))
    try:
        every = grouped.collect().sort(column)
    except pl.exceptions.PolarsError:
        if not removing:
            raise
        removing = []  # scoring the parts refuses the condition
        every = source.frame.group_by(column).agg(pl.lit(True)).collect().sort(column)
    values, gone = (every.filter(mask)[column] for mask in (every[:, 1], ~every[:, 1]))
    if len(values) < 2 or values.null_count():
        raise InputError(
            f"{option(split.option, column)}: {name} has"
            f" {'missing values' if values.null_count() else f'one {split.noun}'} in it; two or"
            " more are needed, each with a value.",
            code=split.few,
            column=column,
        )
    partitions = {key: dtype for key, dtype in source.partitions.items() if key != column}
    parts = [
        _Part(
            str(value),
            msgspec.structs.replace(
                source,
                frame=source.frame.filter(pl.col(column) == value).drop([] if reading else column),
                partitions=partitions,
            ),
        )
        for value in values.to_list()
    ]
    texts = " and ".join(repr(condition.text) for condition in removing)
    note = f"where {texts} removed {len(gone)} of {count_of(len(every), split.noun)}"
    return parts, [f"{note}: {listing(gone)}."] if len(gone) else []


def _by_column(
    name: str, run: Any, models: Sequence[str], tables: Tables, options: Options
) -> tuple[list[_Part], list[str]]:
    """Return a table once per column of predictions, and notes on skipped columns.

    Each part has the option ``columns`` for its model. It does not have the columns of other
    models, nor interval ends, quantiles and other predictions of no model. Columns that options
    name are shared.

    Raises:
        OptionError: fewer than two different columns, or columns of different roles.
        InputError: the run is scored already, does not have a column, or its task is unknown or has
            no column of predictions.
    """
    if len(set(models)) < max(2, len(models)):
        raise OptionError(
            f"{option('predictions', list(models))}: give two or more different columns, one per"
            " model.",
            code="option_value",
            option="predictions",
            value=list(models),
        )
    source = _opened(name, run, _COLUMNS, models, tables.storage_options)
    schema = schema_of(source)
    assigned = dict(options.columns or {})
    roles = {model: assigned.pop(model) for model in models if model in assigned}
    table = _table_of_models(
        source, models, roles, tables, options.replace(columns=assigned or None)
    )
    canonical_names = {alias: column.name for column in table.columns for alias in column.aliases}
    for model in models:
        role = roles.get(model) or _role(table, model, schema[model])
        roles[model] = role if role in table.names else canonical_names.get(role, role)
    if len({*roles.values()}) > 1:
        raise OptionError(
            f"{option('columns', {one: roles[one] for one in models})}: models are compared by"
            " columns of the same kind. Give all of them the same name.",
            code="options_conflict",
            options=["columns", "predictions"],
        )
    role = roles[models[0]]
    others = [of for of, _ in table.values if of != role and of in table.any_of]
    kinds = {column.name: column.kind for column in table.columns}
    if kinds.get(role) == "label" and others and not {*models} & {*(options.columns or {})}:
        head = head_of(source, list(models), _HEAD)
        if any(map(fractional, head)):
            way = option("columns", dict.fromkeys(models, others[0]))
            raise InputError(
                f"{option('predictions', list(models))}: numbers with fractions are not labels. If"
                f" they are scores, write {way}.",
                code="option_missing",
                option="columns",
            )
    owners, unowned = _owners(table, role, models, schema)
    named = {*assigned, *options.by, options.cluster}
    unowned = [one for one in unowned if one not in named]
    parts = []
    for model in models:
        gone = {one for one, of in owners.items() if of != model and one not in named} | {*unowned}
        frame, mine, fields = source.frame.drop(gone), model, {}
        if table.unpivoted:
            frame, mine = frame.rename({model: role}), role
            fields = {"value_columns": (role,), "columns": assigned or None}
        else:
            fields = {"columns": {**assigned, mine: role}}
        parts.append(_Part(model, msgspec.structs.replace(source, frame=frame), fields))
    note = f"skipped: columns of none of the compared models: {listing(unowned)}."
    return parts, [note] if unowned else []


_HEAD = 10_000
"""Rows looked at to distinguish scores from labels."""
_PREDICTION = "prediction"
"""Name of predictions that every task with a column of predictions recognises."""


def _table_of_models(
    source: Source,
    models: Sequence[str],
    roles: Mapping[str, str],
    tables: Tables,
    options: Options,
) -> Table:
    """Return the contract of a table with one of the models.

    Raises:
        InputError: the task cannot be inferred.
    """
    first = models[0]
    mine = roles.get(first, _PREDICTION)
    other_columns = [name for name in schema_of(source) if name not in (*models, mine)]
    frame = source.frame.select(*other_columns, pl.col(first).alias(mine))
    one = msgspec.structs.replace(source, frame=frame, classes=None)
    try:
        opened = open_tables(msgspec.structs.replace(tables, predictions=one), options)
    except InputError as error:
        if error.code not in ("task_unknown", "task_unclear"):
            raise
        dtype = source.frame.collect_schema()[first]
        truth = "target" if dtype.is_float() else "actual"
        same_dtype = [name for name in other_columns if frame.collect_schema()[name] == dtype]
        way = option("columns", {same_dtype[0] if len(same_dtype) == 1 else "mine": truth})
        raise InputError(
            f"{option('predictions', list(models))}: the task cannot be inferred from the other"
            f" columns, {listing(other_columns)}. Name the column of true values, such as {way}, or"
            f" the task: {option('task')}.",
            code="task_unclear",
            columns=other_columns,
        ) from None
    side = TABLE if tables.ground_truths is None else PREDICTIONS
    contract = table_for(opened.plan.task, side)
    return with_calls(contract, dict(frame.collect_schema())) if contract.of_calls else contract


def _role(table: Table, model: str, dtype: pl.DataType) -> str:
    """Return the contract's name of a model's column.

    Raises:
        InputError: the task has no column of predictions.
    """
    if table.unpivoted:
        return table.unpivoted[-1]
    columns = {column.name: column for column in table.columns}
    answers = [columns[answer] for answer, _ in table.values] or [
        column for column in table.columns if _PREDICTION in (column.name, *column.aliases)
    ]
    if not answers:
        raise InputError(
            f"{option('predictions', model)}: {table.task} has no column of predictions. Give each"
            f" model separate rows, and name their column: {option('model', 'COLUMN')}.",
            code="options_conflict",
            options=["predictions", "task"],
        )
    fitting = [column for column in answers if canonical_dtype(column, dtype) is not None]
    return (fitting or answers)[0].name


def _owners(
    table: Table, role: str, models: Sequence[str], names: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the model of each column of a model, and predictions of none of the models.

    Interval ends and quantiles, such as ``AutoETS-lo-80``, belong to the column of the longest name
    with which they begin.
    """
    answers = {column.name: column for column in table.columns}
    below = {column.below for column in table.columns if column.below}
    others = [answers[one] for one in {*table.any_of, *below} - {role} if one in answers]
    levels = {one for column in others for one in levels_in(column, names)}
    other_names = {name for column in others for name in (column.name, *column.aliases)} - levels
    other_names |= {role}
    owners = {model: model for model in models}
    unowned = []
    plain = [name for name in names if name not in levels]
    for one in names:
        if one in levels:
            begin = (of for of in plain if one.startswith(tuple(of + sign for sign in "-_. ")))
            owner = max(begin, default="")  # of beginnings of one name, the longest
            if owner in models:
                owners[one] = owner
                continue
        if one not in owners and (one in levels or one.casefold() in other_names):
            unowned.append(one)
    return owners, unowned


REPLICATES = "replicates"
"""Name of the test over replicates and datums."""


def changed_metrics(cards: Iterable[Scorecard]) -> list[Note]:
    """Return a warning on own metrics whose known files differ between runs."""
    by_name: dict[str, set[str]] = {}
    for card in cards:
        for name, facts in (card.run.get("own_metrics") or {}).items():
            by_name.setdefault(name, set()).update(filter(None, [facts.get("digest")]))
    changed = [name for name, digests in by_name.items() if len(digests) > 1]
    if not changed:
        return []
    message = (
        f"{listing(changed)}: the file that defines this own metric differs between the runs, so"
        " that a difference may be one of definition. Score all runs with one file."
    )
    facts = {"metrics": changed}
    return [Note("own_metric_changed", message, len(changed), warning=True, facts=facts)]


_FEWER, _FEW = 0.5, 0.1
"""Shares of the baseline's datums below which a run has a note, and a warning."""


def _fewer_datums(earlier: Scorecard, card: Scorecard, *, gated: bool) -> list[Note]:
    """Return a note on a run of far fewer datums than its baseline, a warning for gates on it."""
    n, before = (int(one.run.get("datums") or 0) for one in (card, earlier))
    if n >= _FEWER * before:
        return []
    message = (
        f"this run has {count_of(n, 'datum')}, its baseline {before:,}. Datums that are missing in"
        " both tables do not lower coverage."
    )
    facts = {"count": n, "of": before}
    return [Note("fewer_datums", message, n, warning=gated and n < _FEW * before, facts=facts)]


def note_changes(earlier: Scorecard | None, card: Scorecard, *, gated: bool = False) -> None:
    """Add notes to a run about changes since its baseline: of own metrics, and of its size.

    Args:
        gated: whether a gate refers to the baseline.
    """
    notes = changed_metrics([card] if earlier is None else [earlier, card])
    if earlier is not None:
        notes += _fewer_datums(earlier, card, gated=gated)
    messages = messages_of(notes)
    card.notes += messages.notes
    card.warnings += messages.warnings
    card.findings += messages.findings


def refuse_other_rules(cards: Mapping[str, Scorecard], options: Options | None = None) -> None:
    """Refuse runs that were scored by different rules, or not by the requested ones.

    Raises:
        InputError: names the option, and the value in each run.
    """
    plain = Options()
    options = options or plain
    for name, card in cards.items():
        for field in FIELDS:
            requested, theirs = getattr(options, field), getattr(card.options, field)
            if field not in (*FREE, "columns") and requested not in (getattr(plain, field), theirs):
                raise InputError(
                    f"{name} was scored {with_or_without(field, theirs)}, not with"
                    f" {option(field, requested)}: score it so, or omit the option."
                )
    (name, first), *rest = cards.items()
    for other, card in rest:
        for what in ("task", "dialect"):
            if getattr(card, what) != getattr(first, what):
                raise InputError(
                    f"{name} was scored with {option(what, getattr(first, what))}, {other} with"
                    f" {option(what, getattr(card, what))}: score both with the same.",
                    code="runs_differ",
                    option=what,
                    value=getattr(card, what),
                )
        for field in FIELDS:
            ours, theirs = getattr(first.options, field), getattr(card.options, field)
            if field not in FREE and field != "columns" and ours != theirs:
                raise InputError(
                    f"{name} was scored {with_or_without(field, ours)}, {other}"
                    f" {with_or_without(field, theirs)}: score both with the same.",
                    code="runs_differ",
                    option=field,
                    value=theirs,
                )


def _better(plan: planner.Plan, metric: Metric) -> str:
    return plan.dialect.better.get(metric.name, metric.better)


def _own_metrics(
    runs: Mapping[str, Tallied], options: Options
) -> tuple[dict[str, Tallied], dict[str, Tallied], Options]:
    """Return runs by built-in metrics, the same by own ones, and the options without these.

    If only own metrics are asked for, or there are no others, they are the first.
    """
    every = {name: run.own for name, run in runs.items() if run.own is not None}
    if len(every) < len(runs):
        return dict(runs), {}, options
    requested: Sequence[str] | None = None
    if options.metrics is not None:
        metric_names = {
            name for one in every.values() for name in (m.name for m in one.plan.metrics)
        }
        references = {one.reference: one.name for one in own_metrics.list_own_metrics()}
        names = {name: references.get(name, name) for name in options.metrics}
        requested = [name for name in names.values() if name in metric_names]
        rest = tuple(name for name in names if names[name] not in metric_names)
        options = options.replace(metrics=rest or None)
    shared = [
        metric.name
        for metric in next(iter(every.values())).plan.metrics
        if all(metric.name in (m.name for m in one.plan.metrics) for one in every.values())
        and (requested is None or metric.name in requested)
    ]
    if not shared:
        return dict(runs), {}, options
    own_runs = {
        name: msgspec.structs.replace(one, plan=planner.narrowed(one.plan, shared))
        for name, one in every.items()
    }
    only = requested is not None and options.metrics is None
    if only or not all(run.plan.metrics for run in runs.values()):
        return own_runs, {}, options
    return dict(runs), own_runs, options


def _metrics_of_some(runs: Mapping[str, Tallied]) -> list[str]:
    """Return a note on metrics that not all tables have, in tasks whose tables name them."""
    if not is_open(next(iter(runs.values())).plan.task):
        return []
    every = {name: [metric.name for metric in run.plan.metrics] for name, run in runs.items()}
    shared = set.intersection(*map(set, every.values()))
    unshared = [
        f"{metric} of {name}"
        for name, metrics in every.items()
        for metric in metrics
        if metric not in shared
    ]
    return [f"skipped: metrics that not all runs have: {listing(unshared)}."] if unshared else []


def _same_metrics(runs: Mapping[str, Tallied], options: Options) -> dict[str, Tallied]:
    """Runs with the metrics that all of them have, and that are asked for."""
    every = [[metric.name for metric in run.plan.metrics] for run in runs.values()]
    shared = [name for name in every[0] if all(name in other for other in every[1:])]
    theirs = "; ".join(
        f"{name} has {', '.join(metrics)}" for name, metrics in zip(runs, every, strict=True)
    )
    if options.metrics is not None:
        first = next(iter(runs.values()))
        named = options.replace(dialect=first.plan.dialect.name)
        plan = planner.make_plan(named, first.plan.task)
        requested = [metric.name for metric in plan.metrics]
        for run in runs.values():  # skip requested metrics that its tables do not support
            planned = planner.make_plan(run.plan.options, run.plan.task).metrics
            carried = {metric.name for metric in run.plan.metrics}
            unfit = {metric.name for metric in planned} - carried
            requested = [name for name in requested if name not in unfit or name in shared]
        missing = [name for name in requested if name not in shared]
        if missing:
            raise invalid(
                "metrics",
                missing,
                f"not all runs have it; {('all have ' + ', '.join(shared) if shared else theirs)}.",
            )
        shared = requested
    if not shared:
        raise InputError(
            f"the runs have no metric in common ({theirs}): score them with the same ones."
        )
    return {
        name: msgspec.structs.replace(run, plan=planner.narrowed(run.plan, shared))
        for name, run in runs.items()
    }


def _same_slices(
    runs: Mapping[str, Tallied], options: Options
) -> tuple[tuple[str, ...], list[str]]:
    """Return the slices to compare, requested or common to all runs, and notes on the others.

    Raises:
        InputError: a run does not have a requested one.
    """
    if options.by:
        for name, run in runs.items():
            missing = [by for by in options.by if by not in run.tallies.datums.slices.columns]
            if missing:
                raise InputError(
                    f"{option('by', missing)}: {name} was scored without it. Score it with that"
                    " slice."
                )
        return options.by, []
    every = [run.plan.options.by for run in runs.values()]
    shared = tuple(by for by in every[0] if all(by in other for other in every[1:]))
    one_sided = sorted({by for some in every for by in some} - set(shared))
    message = f"slices by {listing(one_sided)} are skipped: not all runs have them."
    return shared, [message] if one_sided else []


def _same_truth(
    cards: Mapping[str, Scorecard], runs: Mapping[str, Tallied]
) -> tuple[list[str], list[str]]:
    """Check that all runs had the same ground truths; return notes and warnings."""
    facts = [card.run["inputs"].get(GROUND_TRUTHS) for card in cards.values()]
    digests = {fact.get("sha256") for fact in facts if fact is not None}
    if None not in facts and len(digests) == 1 and None not in digests:
        return [], []
    (name, first), *rest = runs.items()
    truth_of = first.plan.does.truth
    if not first.plan.does.truths:
        return [], []
    differing = [None if truth_of is None else _differing(first, run, truth_of) for _, run in rest]
    for (other, _), where in zip(rest, differing, strict=True):
        if where is not None and len(where):
            some = ", ".join(map(repr, where.head(3).to_list()))
            raise InputError(
                f"{name} and {other} were scored against other ground truths:"
                f" {count_of(len(where), 'datum')}, first {some}. Score both against the same ones."
            )
    if any(where is None for where in differing):
        if None not in facts and len({fact["source"] for fact in facts if fact}) == 1:
            return [], []
        if not any(facts):
            return ["each run brought its own ground truths, which were not compared."], []
        return [], ["whether all runs had the same ground truths is not known: their files differ."]
    return [], []


def _other_weights(runs: Mapping[str, Tallied]) -> list[str]:
    """Return a note on common datums that do not have the same weight in all runs."""
    weights = {name: run.plan.does.weights(run.tallies) for name, run in runs.items()}
    if all(weight is None for weight in weights.values()):
        return []
    sides = {
        name: pl.DataFrame({"id": run.tallies.datums.id}).with_columns(
            weight=pl.lit(1.0) if weights[name] is None else pl.Series(weights[name])
        )
        for name, run in runs.items()
    }
    (name, first), *rest = sides.items()
    for other, side in rest:
        side = side.with_columns(pl.col("id").cast(first.schema["id"]))
        common = first.join(side, on="id", how="inner", suffix="_b")
        differing = common.filter(
            (pl.col("weight") - pl.col("weight_b")).abs() > 1e-9 * pl.col("weight")
        )
        if differing.height:
            some = ", ".join(map(repr, differing["id"].sort().head(3).to_list()))
            return [
                f"{count_of(differing.height, 'datum')} with different weights in {name} and"
                f" {other}, first {some}: a difference of the runs may be one of weights."
            ]
    return []


def _differing(first: Tallied, second: Tallied, truth_of: Any) -> pl.Series | None:
    """Datums of both runs whose ground truths differ, by id; None if either does not have them."""
    truths = [truth_of(run.tallies) for run in (first, second)]
    if any(truth is None for truth in truths):
        return None
    dtype = first.tallies.datums.id.dtype
    sides = [
        pl.DataFrame({"id": run.tallies.datums.id.cast(dtype), "truth": truth})
        for run, truth in zip((first, second), truths, strict=True)
    ]
    common = sides[0].join(sides[1], on="id", how="inner", suffix="_b")
    one, other = pl.col("truth"), pl.col("truth_b")
    common = common.filter(one != other)
    if common.schema["truth"].is_float():
        if len({run.tallies.labels.key_names for run in (first, second)}) > 1:
            return None  # numbers of several targets, which are not those of the other run
        far = (one - other).abs() > _ROUNDED * pl.max_horizontal(one.abs(), other.abs())
        common = common.filter(far, one.is_not_nan(), other.is_not_nan())
    return common["id"].sort()


_ROUNDED = 1e-6
"""Relative difference up to which numbers may be roundings of one, such as to float32."""
