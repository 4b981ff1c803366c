"""From runs, saved or not, to their comparison."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np
import polars as pl

from .ingest.opening import Tables
from .ingest.problems import MANY, count_of, listing
from .metrics import Metric, is_open
from .metrics import own as own_metrics
from .plan import planner
from .plan.summary import Tallied
from .progress import Progress, heard, step
from .report.tables import at_k
from .report.verdicts import gaps_of
from .run import card_of_run, class_names, is_scored, refuse_tables, tallied_of, with_or_without
from .schemas.contract import GROUND_TRUTHS, PREDICTIONS
from .schemas.errors import InputError, OptionError, TruthsMissingError, invalid, unknown
from .schemas.named import Named
from .schemas.option_values import FEW_CLUSTERS, LEVEL, Wanted, make_options, wanted
from .schemas.options import FIELDS, Options
from .schemas.wording import option, spoken
from .scorecard.card import Scorecard
from .statistics.comparing import Compared, Margins, compare_runs, with_own
from .statistics.comparing import margins as margins_between
from .statistics.comparison import Comparison
from .statistics.paired import SKIP, WORST, ZERO, same_kind, too_few
from .statistics.resamples import does_not_vary
from .statistics.tests import ADJUSTMENTS, DELONG, RANDOMISATION, TESTS, cannot_be_significant
from .tasks.encoding import draw_keys

_FREE = (
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
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@heard
def compare(
    first: Any,
    second: Any,
    *more: Any,
    ground_truths: Any = None,
    names: Sequence[str] | None = None,
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
        names: names of the runs; by default from their files.
        common: skip datums that some runs do not have, instead of raising an error.
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

    Example:
        >>> import evalengine as ee
        >>> ee.compare("a.parquet", "b.parquet", ground_truths="gts.parquet")  # doctest: +SKIP
    """
    runs = (first, second, *more)
    tables = Tables(None, ground_truths, datums, labels, storage_options)
    chosen = make_options(options, **named)
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
            " differences are always percentiles of resamples. Omit it."
        )
    chosen = chosen if chosen.drawn else chosen.replace(intervals=LEVEL)
    asked = wanted(chosen)
    assert asked is not None
    called = _names(runs, names)
    if all(map(is_scored, runs)):
        refuse_tables(tables)
    cards: dict[str, Scorecard] = {}
    for name, run in zip(called, runs, strict=True):
        step(f"reading {name}")
        try:
            cards[name] = card_of_run(
                msgspec.structs.replace(tables, predictions=run), chosen, settable=FIELDS
            )
        except TruthsMissingError:
            last = runs[-1] if len(runs) > 2 and isinstance(runs[-1], (str, Path)) else None
            way = option("ground_truths", *([str(last)] if last is not None else []))
            raise InputError(
                f"{name} contains only predictions, and every argument is a run: give the ground"
                f" truths as {way}."
            ) from None
    tallied = {name: tallied_of(name, card) for name, card in cards.items()}
    refuse_other_rules(cards, chosen)
    tallied, own, chosen = _own_metrics(tallied, chosen)
    same_kind(tallied)
    cluster = _cluster(cards, chosen, test)
    if cluster != chosen.cluster:
        chosen = chosen.replace(cluster=cluster)
        asked = msgspec.structs.replace(asked, cluster=cluster)
    skipped = _metrics_of_some(tallied)
    tallied = _same_metrics(tallied, chosen)
    by, notes = _same_slices(tallied, chosen)
    notes += skipped
    tallied = {name: with_keys(name, run, asked, by) for name, run in tallied.items()}
    told, warnings = _same_truth(cards, tallied)
    notes += told
    leader = next(iter(cards.values()))
    directions = {
        metric.name: _better(run.plan, metric)
        for run in tallied.values()
        for metric in run.plan.metrics
    }
    step("drawing")
    found = compare_runs(
        tallied,
        asked,
        directions=directions,
        common=common,
        adjust=adjust,
        test=test,
        missing=missing,
    )
    if own:
        own = {name: with_keys(name, run, asked, by) for name, run in own.items()}
        first_own = next(iter(own.values())).plan
        ways = {metric.name: _better(first_own, metric) for metric in first_own.metrics}
        directions |= ways
        more_found = compare_runs(
            own, asked, directions=ways, common=common, adjust=adjust, test=test, missing=missing
        )
        found = with_own(found, more_found, adjust)
    if found.left_out:
        notes.append(
            f"skipped: {count_of(found.left_out, 'datum')} that not all runs have; {found.n:,} are"
            " compared."
        )
    if found.lone:
        some = listing(dict.fromkeys(found.lone))
        notes.append(
            f"skipped: {count_of(len(found.lone), 'number')} that only one run has: {some}."
        )
    if found.uncounted:
        notes.append(
            f"wins, ties, losses and flips of {count_of(found.uncounted, 'number')} are skipped:"
            " they have too many values per datum to keep."
        )
    notes += [f"no test of {count_of(n, 'number')}: {why}." for why, n in found.failed.items()]
    notes += _weak(found, asked, adjust, drawn=TESTS[test] is None)
    warnings += _merged_notes({name: card.warnings for name, card in cards.items()})
    said, withheld = _gaps(found.differences, missing)
    notes += said
    warnings += withheld
    lacking, many = _lacking(cards, tallied, found)
    (warnings if many else notes).extend(lacking)
    notes += _merged_notes(
        {
            name: [note for note in card.notes if note not in card.warnings]
            for name, card in cards.items()
        }
    )
    return Comparison(
        task=leader.task,
        dialect=leader.dialect,
        options=chosen,
        runs={
            name: str(run if isinstance(run, (str, Path)) else card.folder or type(run).__name__)
            for (name, card), run in zip(cards.items(), runs, strict=True)
        },
        adjust=adjust,
        test=test,
        n=found.n,
        differences=found.differences,
        flips=found.flips,
        directions=directions,
        notes=tuple(map(spoken, (*warnings, *notes))),
        warnings=tuple(map(spoken, warnings)),
        names=class_names(*cards.values()),
    )


def _merged_notes(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the notes shared by all runs, then the others prefixed with the name of their run."""
    every = [{*told} for told in notes.values()]
    shared = set.intersection(*every)
    said = [
        f"{name}: {note}" for name, told in notes.items() for note in told if note not in shared
    ]
    return [*(note for note in next(iter(notes.values())) if note in shared), *said]


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


def _lacking(
    cards: Mapping[str, Scorecard], runs: Mapping[str, Tallied], found: Compared
) -> tuple[list[str], bool]:
    """Return messages if runs are missing datums, unequally or many; and whether they are many."""
    plan = next(iter(runs.values())).plan
    rule = plan.does.unanswered
    if rule is not None and found.unanswered:
        shown = ", ".join(f"{name} {count:,}" for name, count in found.unanswered.items())
        return [
            f"only the {count_of(found.n, 'datum')} predicted by all runs are compared, since"
            f" means are over these (missing: {shown}){rule.way}. Skipping hard datums does not"
            " make a run better."
        ], max(found.unanswered.values()) >= MANY * found.n
    if rule is not None and rule.leaves(plan.settings):
        return [], False
    inputs = {name: card.run["inputs"].get(PREDICTIONS, {}) for name, card in cards.items()}
    lacking = {name: told.get("lacking", 0) for name, told in inputs.items()}
    n = max(int(card.run.get("datums", 0)) for card in cards.values())
    apart = max(lacking.values()) - min(lacking.values())
    if not n or (apart < MANY * n and max(lacking.values()) < _MOST * n):
        return [], False
    shown = ", ".join(f"{name} of {count:,}" for name, count in lacking.items())
    return [
        f"many of {count_of(n, 'datum')} have no prediction ({shown}), and all that is in them"
        " counts as missed. Are these predictions whole, and of the same split?"
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
    asked = wanted(options)
    assert asked is not None
    cards = {"the baseline": earlier, "this run": card}
    runs = {name: tallied_of(name, one) for name, one in cards.items()}
    refuse_other_rules(cards)
    runs, own, _ = _own_metrics(runs, options.replace(metrics=None))
    runs = _same_metrics(runs, options.replace(metrics=None))
    first, second = (
        _narrowed(with_keys(name, run, asked, run.plan.options.by), metrics, by)
        for name, run in runs.items()
    )
    truth_of = first.plan.does.truth
    alike = len({run.tallies.datums.id.dtype.is_integer() for run in (first, second)}) == 1
    known = alike and truth_of is not None
    differing = _differing(first, second, truth_of) if known else None
    found = margins_between(first, second, 0 if differing is None else len(differing), asked)
    if not own:
        return found
    one, other = (
        _narrowed(with_keys(name, run, asked, run.plan.options.by), metrics, by)
        for name, run in own.items()
    )
    rows = margins_between(one, other, 0, asked).rows
    both = pl.concat([found.rows, rows], how="diagonal_relaxed")
    return msgspec.structs.replace(found, rows=both)


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
    told = {name: card.options.cluster for name, card in cards.items()}
    if options.cluster is not None or set(told.values()) == {None}:
        return options.cluster
    if len(set(told.values())) > 1:
        message = ", ".join(f"{name} {one or 'none'}" for name, one in told.items())
        raise OptionError(
            f"the runs were scored by different clusters ({message}): choose one with"
            f" {option('cluster', next(filter(None, told.values())))}.",
            code="runs_differ",
            option="cluster",
        )
    cluster = next(iter(told.values()))
    if test not in (RANDOMISATION, DELONG):
        raise OptionError(
            f"{option('test', test)} assumes that datums are independent, and the runs were scored"
            f" with {option('cluster', cluster)}: take {option('test', RANDOMISATION)}.",
            code="options_conflict",
            options=["test", "cluster"],
        )
    return cluster


def _weak(found: Compared, asked: Wanted, adjust: str, *, drawn: bool) -> list[str]:
    """Return notes on reasons why few or no differences can be found."""
    notes = []
    if found.clusters < FEW_CLUSTERS:
        of = "" if asked.cluster is None else f" of {asked.cluster!r}"
        what = count_of(found.clusters, "cluster" if of else "datum") + of
        notes.append(
            f"the comparison rests on {what}: of fewer than {FEW_CLUSTERS} intervals are often"
            f" too narrow"
            + (
                f", and p is hardly ever below {0.5 ** (found.clusters - 1):.2g}."
                if cannot_be_significant(found.clusters, asked.level)
                else "."
            )
        )
    if found.single:
        what = f"no interval for {count_of(found.single, 'number')}"
        notes.append(f"{what}: {does_not_vary(asked.cluster)}.")
    if found.unmoved:
        what = f"no interval for {count_of(found.unmoved, 'number')}"
        notes.append(
            f"{what}: no resample changes the difference, though the runs are not identical."
        )
    # Smallest p of a single number; bh reaches it if all others are as small.
    together = found.most if adjust == "holm" else 1
    least = together / (asked.draws + 1)
    if drawn and found.most and least > 1 - asked.level:
        enough = math.ceil(together / (1 - asked.level) / 1000) * 1000
        among = f"among {count_of(found.most, 'number')} of one kind (aggregates, labels or slices)"
        which, way = "p", "."
        if adjust != "none":
            among, which = f"{among} that are adjusted together", "adjusted p"
        if adjust == "holm":
            way = ", or ask for fewer metrics."
        notes.append(
            f"{asked.draws:,} resamples are too few for any finding {among}: no {which} is below"
            f" {min(least, 1.0):.2g}. Use more: {option('draws', enough)}{way}"
        )
    return notes


def _names(runs: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    """Return the names of the runs: as given, by their files or folders, or letters."""
    if names is not None:
        if len(names) != len(runs) or len(set(names)) != len(names):
            raise OptionError(f"names={list(names)!r}: give {len(runs)} different ones.")
        return list(names)
    paths = [Path(run) for run in runs if isinstance(run, (str, Path))]
    if len(paths) == len(runs):
        for told in ([path.stem for path in paths], [str(path) for path in paths]):
            if len(set(told)) == len(told):
                return told
    return (
        list(_LETTERS[: len(runs)])
        if len(runs) <= len(_LETTERS)
        else [f"run {i + 1}" for i in range(len(runs))]
    )


def refuse_other_rules(cards: Mapping[str, Scorecard], asked: Options | None = None) -> None:
    """Refuse runs that were scored by different rules, or not by the requested ones.

    Raises:
        InputError: names the option, and the value in each run.
    """
    plain = Options()
    asked = asked or plain
    for name, card in cards.items():
        for field in FIELDS:
            given, theirs = getattr(asked, field), getattr(card.options, field)
            if field not in (*_FREE, "columns") and given not in (getattr(plain, field), theirs):
                raise InputError(
                    f"{name} was scored {with_or_without(field, theirs)}, not with"
                    f" {option(field, given)}: score it so, or omit the option."
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
            if field not in _FREE and field != "columns" and ours != theirs:
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
    asked: Sequence[str] | None = None
    if options.metrics is not None:
        known = {name for one in every.values() for name in (m.name for m in one.plan.metrics)}
        references = {one.reference: one.name for one in own_metrics.known()}
        names = {name: references.get(name, name) for name in options.metrics}
        asked = [name for name in names.values() if name in known]
        rest = tuple(name for name in names if names[name] not in known)
        options = options.replace(metrics=rest or None)
    shared = [
        metric.name
        for metric in next(iter(every.values())).plan.metrics
        if all(metric.name in (m.name for m in one.plan.metrics) for one in every.values())
        and (asked is None or metric.name in asked)
    ]
    if not shared:
        return dict(runs), {}, options
    own = {
        name: msgspec.structs.replace(one, plan=planner.narrowed(one.plan, shared))
        for name, one in every.items()
    }
    only = asked is not None and options.metrics is None
    if only or not all(run.plan.metrics for run in runs.values()):
        return own, {}, options
    return dict(runs), own, options


def _metrics_of_some(runs: Mapping[str, Tallied]) -> list[str]:
    """Return a note on metrics that not all tables have, in tasks whose tables name them."""
    if not is_open(next(iter(runs.values())).plan.task):
        return []
    every = {name: [metric.name for metric in run.plan.metrics] for name, run in runs.items()}
    shared = set.intersection(*map(set, every.values()))
    unshared = [
        f"{metric} of {name}"
        for name, own in every.items()
        for metric in own
        if metric not in shared
    ]
    return [f"skipped: metrics that not all runs have: {listing(unshared)}."] if unshared else []


def _same_metrics(runs: Mapping[str, Tallied], options: Options) -> dict[str, Tallied]:
    """Runs with the metrics that all of them have, and that are asked for."""
    every = [[metric.name for metric in run.plan.metrics] for run in runs.values()]
    shared = [name for name in every[0] if all(name in other for other in every[1:])]
    theirs = "; ".join(
        f"{name} has {', '.join(own)}" for name, own in zip(runs, every, strict=True)
    )
    if options.metrics is not None:
        first = next(iter(runs.values()))
        plan = planner.make_plan(options, first.plan.task)
        asked = [metric.name for metric in plan.metrics]
        for run in runs.values():  # skip requested metrics that its tables do not support
            planned = planner.make_plan(run.plan.options, run.plan.task).metrics
            carried = {metric.name for metric in run.plan.metrics}
            unfit = {metric.name for metric in planned} - carried
            asked = [name for name in asked if name not in unfit or name in shared]
        lacking = [name for name in asked if name not in shared]
        if lacking:
            raise invalid(
                "metrics",
                lacking,
                f"not all runs have it; {('all have ' + ', '.join(shared) if shared else theirs)}.",
            )
        shared = asked
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
    lone = sorted({by for some in every for by in some} - set(shared))
    message = f"slices by {listing(lone)} are skipped: not all runs have them."
    return shared, [message] if lone else []


def with_keys(name: str, run: Tallied, asked: Wanted, by: tuple[str, ...]) -> Tallied:
    """Restrict a run to some slices and add the resampling keys of its datums."""
    datums = run.tallies.datums
    if asked.cluster is not None and asked.cluster not in datums.slices.columns:
        raise InputError(
            f"{option('cluster', asked.cluster)}: {name} was scored without that column. Score it"
            f" with {option('cluster', asked.cluster)} or {option('by', asked.cluster)}."
        )
    rows = datums.ids
    if rows is None:
        rows = pl.Series(np.arange(len(datums), dtype=np.int64))
    keys = draw_keys(rows, datums.slices, asked.cluster)
    datums = msgspec.structs.replace(datums, keys=keys, slices=datums.slices.select(by))
    plan = msgspec.structs.replace(run.plan, options=run.plan.options.replace(by=by))
    tallies = msgspec.structs.replace(run.tallies, datums=datums)
    return msgspec.structs.replace(run, plan=plan, tallies=tallies)


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
    if truth_of is None:
        if None not in facts and len({fact["source"] for fact in facts if fact}) == 1:
            return [], []
        if not any(facts):
            return ["each run brought its own ground truths, which were not compared."], []
        return [], ["whether all runs had the same ground truths is not known: their files differ."]
    for other, run in rest:
        where = _differing(first, run, truth_of)
        if where is not None and len(where):
            some = ", ".join(map(repr, where.head(3).to_list()))
            raise InputError(
                f"{name} and {other} were scored against other ground truths: {len(where):,} datums"
                f" differ, first {some}. Score both against the same ones."
            )
    return [], []


def _differing(first: Tallied, second: Tallied, truth_of: Any) -> pl.Series | None:
    """Datums of both runs whose ground truths differ, by id."""
    sides = []
    for run in (first, second):
        table = pl.DataFrame({"id": run.tallies.datums.id, "truth": truth_of(run.tallies)})
        sides.append(table)
    both = sides[0].join(sides[1], on="id", how="inner", suffix="_b")
    return both.filter(pl.col("truth") != pl.col("truth_b"))["id"].sort()
