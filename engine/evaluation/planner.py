"""The planner: from the requested metrics to the plan of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from .. import dialects, exports, tasks
from .._version import __version__
from ..dialects import Dialect
from ..executors import Threads
from ..ingest.both_sides import without_labels
from ..ingest.frames import Frames
from ..ingest.problems import Note, not_read
from ..metrics import Metric, own, registry
from ..schemas.errors import N_NAMES, InputError, OptionError
from ..schemas.option_values import parse_intervals
from ..schemas.options import DECLARED, FIELDS, Options, idle
from ..schemas.wording import option, options_in
from ..tasks.task import Task


class Plan(msgspec.Struct, frozen=True):
    """Plan of a run.

    Attributes:
        settings: the options with every default filled in; its ``k`` contains the cut-offs of all
            metrics.
        metrics: the metrics, in the order requested.
        cuts: metric name -> its cut-offs, ascending, for metrics that have one; None, last, means
            the whole list.
        needs: required tallies of the metrics, and of the report if requested.
        named: whether the user chose the metrics; otherwise an analysis did.
        paged: whether the data of the report are tallied too.
        added: names of metrics that an analysis adds, and does without if the tables do not allow
            them.
        refused: metrics of the report that the tables do not allow, with the reason.
    """

    task: str
    dialect: Dialect
    options: Options
    settings: Any
    metrics: tuple[Metric, ...]
    cuts: dict[str, tuple[int | None, ...]]
    needs: frozenset[str]
    paged: bool = False
    named: bool = True
    added: frozenset[str] = frozenset()
    refused: dict[str, str] = {}

    @property
    def does(self) -> Task:
        """Definition of the task."""
        return tasks.get(self.task)

    @property
    def fingerprint(self) -> str:
        """A digest, equal for runs whose tallies may be merged.

        It covers all settings that change rows, outcomes or kept data, but not threads or metrics
        beyond their tallies.
        """
        rows = msgspec.structs.replace(
            self.options,
            threads=None,
            metrics=None,
            memory_limit=None,
            scratch=None,
            client_reads=None,
            intervals=0.95 if self.options.drawn else None,
            draws=None,
            seed=None,
            method=None,
            human=None,
            spread=None,
            label_next=None,
        )
        key = [__version__, self.task, self.dialect.name, sorted(self.needs), self.settings, rows]
        return hashlib.sha256(msgspec.json.encode(key, enc_hook=repr)).hexdigest()[:16]

    @property
    def cuts_of_needs(self) -> dict[str, set[int | None]]:
        """Need -> cut-offs at which some metric uses it; None means the whole list."""
        result: dict[str, set[int | None]] = {}
        for metric in self.metrics:
            for need in metric.needs:
                result.setdefault(need, set()).update(self.cuts.get(metric.name, (None,)))
        return result

    def settings_of(self, metric: Metric) -> Any:
        """The settings that one metric is computed with: all of them, at its own cut-offs."""
        cuts = self.cuts.get(metric.name)
        if cuts is None or cuts == self.settings.k:
            return self.settings
        return msgspec.structs.replace(self.settings, k=cuts)


def fitting_tasks(options: Options) -> list[str]:
    """Return the task, or those that have the dialect and all metrics of options."""
    if options.task is not None:
        return [options.task]
    return [
        task
        for task in tasks.NAMES
        if options.dialect in dialects.names(task)
        and all(registry.has(task, name) for name in options.metrics or ())
    ]


def make_plan(options: Options, task: str) -> Plan:
    """Plan a run.

    Raises:
        OptionError: an unknown dialect or metric, or a value out of range.
    """
    dialect = dialects.get(task, options.dialect)
    dialect = dialects.get(task, dialect.by_iou_type.get(options.iou_type or "", dialect.name))
    if options.better and task in DECLARED["better"].tasks:
        dialect = msgspec.structs.replace(dialect, better={**dialect.better, **options.better})
    if options.iou_type is None and dialect.iou_type is not None:
        options = options.replace(iou_type=dialect.iou_type)
    does = tasks.get(task)
    if options.metrics and ":" in "\n".join(options.metrics):
        names = [
            name
            for name in options.metrics or ()
            if not own.is_reference(name)
            or (registry.is_open(task) and name not in own.references())
        ]
        options = msgspec.structs.replace(options, metrics=tuple(names) or None)
    means = means_of(options, task, dialect) if dialect.means else ()
    if "iou_thresholds_to_return" in registry.of_any(task, "params"):
        options = _split_threshold(options, task, dialect)
    plain = options
    pairs = None
    if options.metrics is not None:
        pairs = _find_metrics((*options.metrics, *means), task, options, dialect)
        plain = msgspec.structs.replace(options, metrics=tuple(metric.name for metric, _ in pairs))
    settings: Any = does.settings.resolve(plain, dialect)
    if options.metrics == ():
        raise OptionError(
            "metrics is empty: name one, or omit it for the usual ones.",
            code="option_value",
            option="metrics",
        )
    if pairs is None:
        usual = (*(dialect.metrics or registry.names(task)), *(dialect.text_metrics or ()))
        pairs = _find_metrics(tuple(dict.fromkeys(usual)), task, options, dialect)
    chosen = {metric.name: metric for metric, _ in pairs}
    cuts = _cuts(pairs, settings, explicit=options.k is not None)
    if cuts:
        every = tuple(sorted({k for ks in cuts.values() for k in ks if k is not None}))
        if every and every != settings.k:
            settings = msgspec.structs.replace(settings, k=every)
    metrics = tuple(chosen.values())
    return Plan(task, dialect, options, settings, metrics, cuts, _needs(metrics, dialect))


def means_of(options: Options, task: str, dialect: dialects.Dialect) -> tuple[str, ...]:
    """Return the means that the dialect's tables call by the names of requested metrics."""
    means: list[str] = []
    for name in options.metrics or ():
        rated = registry.at_threshold(task, name)
        metric = name if rated is None else rated[0]
        if metric in dialect.means:
            means += dialect.means[metric][rated is not None]
    return tuple(means)


def _split_threshold(options: Options, task: str, dialect: dialects.Dialect) -> Options:
    """Split metric names with an IoU threshold, AP50 or mAP@0.5, into metric and option.

    If the same option defines another metric's default thresholds, these are added.
    """
    names = options.metrics or ()
    rated = [(name, one) for name in names if (one := registry.at_threshold(task, name))]
    if not rated or options.iou_thresholds_to_return is not None:
        return options
    by_name = dict(rated)
    thresholds = {at for _, at in by_name.values()}
    others = [name for name in names if name not in by_name and registry.has(task, name)]
    read = {one for name in others for one in registry.parse_metric_name(task, name)[0].params}
    if "iou_thresholds_to_return" in read:
        thresholds |= {*dialect.default("iou_thresholds_to_return")}
    return msgspec.structs.replace(
        options,
        metrics=tuple(
            dict.fromkeys(by_name[name][0] if name in by_name else name for name in names)
        ),
        iou_thresholds_to_return=tuple(sorted(thresholds)),
    )


def _find_metrics(
    names: tuple[str, ...], task: str, options: Options, dialect: dialects.Dialect
) -> list[tuple[Metric, int | None]]:
    """Return the metrics of names, with the cut-offs in them.

    Names of groups stand for all of their metrics, a dialect's own names for ours.
    """
    result: list[tuple[Metric, int | None]] = []
    for name in names:
        ours = dialect.own_names.get(name, name)
        group = registry.group_of(task, ours)
        members = (ours,) if group is None else group(options)
        result += map(partial(registry.parse_metric_name, task), members)
    return result


def _cuts(
    requested: list[tuple[Metric, int | None]], settings: Any, *, explicit: bool
) -> dict[str, tuple[int | None, ...]]:
    """Return the cut-offs of each metric that has one: those in its names, defaults for a bare
    name.
    """
    by_name: dict[str, set[int | None]] = {}
    lowest: dict[str, int] = {}
    for metric, k in requested:
        if "k" not in metric.params:
            continue
        lowest[metric.name] = metric.lowest_k
        own = by_name.setdefault(metric.name, set())
        if k is not None:
            own.add(k)
            continue
        if metric.bare != "cut":
            own.add(None)
        if metric.bare != "whole" or explicit:
            own.update(settings.k)
    if not by_name:
        return {}
    cuts = {
        name: tuple(sorted(ks, key=lambda k: (k is None, k or 0))) for name, ks in by_name.items()
    }
    wrong = [name for name, ks in cuts.items() if ks[0] is not None and ks[0] < lowest[name]]
    if wrong:
        raise _too_low(wrong, cuts, lowest[wrong[0]])
    return cuts


def _too_low(
    wrong: list[str], cuts: Mapping[str, tuple[int | None, ...]], lowest: int
) -> OptionError:
    """Return the error for cut-offs below the minimum of the metrics' references."""
    low = [k for k in cuts[wrong[0]] if k is not None and k < lowest]
    names = ", ".join(wrong[:N_NAMES]) + (" ..." if len(wrong) > N_NAMES else "")
    able = [name for name in cuts if name not in wrong]
    rest = (
        f"; of those asked for, {', '.join(able)} take{'s' * (len(able) == 1)} it" if able else ""
    )
    return OptionError(
        f"{option('k', low)} for {names}: a cut-off is {lowest} or more{rest}.",
        code="option_value",
        option="k",
        value=low,
    )


def fitted(plan: Plan, frames: Frames) -> Plan:
    """Fit the plan to the tables: remove metrics that they do not allow.

    Removed default metrics are added to the frames' notes; notes that the dialect's rules settle
    are removed.

    Raises:
        InputError: a metric that the user named cannot be computed from these tables.
    """
    named = plan.metrics
    if plan.added:
        named = tuple(one for one in plan.metrics if one.name not in plan.added)
    chosen, notes = plan.does.fit(
        named, frames, plan.settings, requested=plan.options.metrics is not None
    )
    if plan.added:
        added = tuple(one for one in plan.metrics if one.name in plan.added)
        every = (*chosen, *added)
        chosen, more = plan.does.fit(every, frames, plan.settings, requested=False)
        notes = [*notes, *more]
    fit = _with(plan, chosen)
    if frames.notes:
        frames.notes[:] = worth_telling(plan, frames.notes)
    frames.notes += notes + _unread(fit, notes)
    if not plan.paged:
        return fit
    needs, refused = _needs_of_page(fit, frames)
    return msgspec.structs.replace(fit, needs=fit.needs | needs, refused=refused)


def worth_telling(plan: Plan, notes: Sequence[Note]) -> list[Note]:
    """Remove notes on tables that the dialect's rules settle."""
    left = [note for note in notes if note.kind not in plan.dialect.heeds]
    return without_labels(left, plan.dialect.unpredicted)


def _needs_of_page(plan: Plan, frames: Frames) -> tuple[frozenset[str], dict[str, str]]:
    """Return the report's tallies in addition to those of the metrics, and its impossible metrics.

    Returns:
        tallies that these tables allow; metric -> reason why it is impossible.
    """
    registered = registry.all_metrics(plan.task)
    every = {name: frame.tallied for frame in plan.does.page for name in frame.metrics}
    fitting, _ = plan.does.fit(
        tuple(registered[name] for name in every), frames, plan.settings, requested=False
    )
    able = {metric.name for metric in fitting}
    refused = {}
    for name in every.keys() - able:
        try:
            plan.does.fit((registered[name],), frames, plan.settings, requested=True)
        except InputError as error:
            refused[name] = f"{error.message.partition('. ')[0].rstrip('.')}."
    needs = (metric.needs for metric in fitting if every.get(metric.name, True))
    return frozenset(need for some in needs for need in some), refused


def may_fit(plan: Plan, ahead: pl.DataFrame) -> tuple[Plan, bool]:
    """Fit the plan to rows read in advance, for tasks that depend on rows; also return whether
    items were judged several times.

    Args:
        ahead: distinct values of the columns that the task names.
    """
    fitted_by_rows = plan.does.fitted_by_rows
    assert fitted_by_rows is not None
    chosen, several = fitted_by_rows.may_fit(
        plan.metrics, plan.needs, ahead, requested=plan.options.metrics is not None
    )
    return _with(plan, chosen), several


def fitted_late(plan: Plan, tables: Any) -> tuple[Plan, list[Note]]:
    """Fit the plan to tables whose parts are already tallied; see :func:`fitted`.

    Returns:
        the plan; notes on it and on the tables.

    Raises:
        InputError: as in :func:`fitted` and :func:`run`.
    """
    fitted_by_rows = plan.does.fitted_by_rows
    assert fitted_by_rows is not None
    chosen, notes = fitted_by_rows.fit(
        plan.metrics, tables.written, plan.settings, requested=plan.options.metrics is not None
    )
    fit = _with(plan, chosen)
    unread = _unread(fit, notes)
    row_notes = fitted_by_rows.notes(tables, plan.settings, fit.needs)
    return fit, [*notes, *unread, *row_notes]


def _unread(plan: Plan, notes: Sequence[Note]) -> list[Note]:
    """Note given options that the task or the metrics of the run do not read."""
    result = [*map(partial(Note, "idle_option"), idle(plan.options, plan.task))]
    params = registry.of_any(plan.task, "params")
    options_given = [
        name for name in FIELDS if name in params and getattr(plan.options, name) is not None
    ]
    if not options_given:
        return result
    read = {name for metric in plan.metrics for name in metric.params}
    read |= {name for note in notes for name in options_in(note.message)}
    names = ", ".join(metric.name for metric in plan.metrics[:N_NAMES])
    more = f" and {len(plan.metrics) - N_NAMES} more" if len(plan.metrics) > N_NAMES else ""
    why = f"is not read by any of the metrics ({names}{more})" if plan.named else "is not read here"
    result += [
        not_read(f"{option(name, getattr(plan.options, name))} {why}.")
        for name in options_given
        if name not in read
    ]
    return result


def narrowed(plan: Plan, names: Sequence[str]) -> Plan:
    """Return the plan with only some of its metrics, or, if tables name them, with these."""
    chosen = tuple(metric for metric in plan.metrics if metric.name in names)
    if len(chosen) < len(names) and registry.is_open(plan.task):
        chosen = tuple(registry.get(plan.task, name) for name in names)
    return _with(plan, chosen)


def filling(task: str, frame: str) -> tuple[Metric, ...]:
    """Metrics of a task that fill a frame."""
    return tuple(one for one in registry.all_metrics(task).values() if one.frame == frame)


def showing(plan: Plan, frames: Collection[str]) -> Plan:
    """Return the plan with additional metrics that fill some frames, if its task has them."""
    filled = [one for frame in frames for one in filling(plan.task, frame)]
    more = tuple(one for one in filled if one not in plan.metrics)
    added = plan.added | {one.name for one in more}
    return msgspec.structs.replace(_with(plan, (*plan.metrics, *more)), added=added)


def _with(plan: Plan, chosen: tuple[Metric, ...]) -> Plan:
    if chosen == plan.metrics:
        return plan
    return msgspec.structs.replace(plan, metrics=chosen, needs=_needs(chosen, plan.dialect))


def _needs(chosen: tuple[Metric, ...], dialect: dialects.Dialect) -> frozenset[str]:
    """Return the tallies for the metrics and the dialect's export."""
    needs: frozenset[str] = frozenset().union(*map(attrgetter("needs"), chosen))
    return needs if dialect.export is None else needs | exports.REGISTRY[dialect.export].needs


def examine(plan: Plan, frames: Frames, threads: Threads) -> None:
    """Run checks that need encoding, in tasks that have them; consumes the frames.

    Notes are added to the frames'.

    Raises:
        InputError: the tables break the contract of the task.
        OptionError: options that do not fit the tables.
    """
    (plan.does.examine or plan.does.tally)(frames, plan.settings, plan.needs, threads)


def run(plan: Plan, frames: Frames, threads: Threads) -> Any:
    """Encode, match and tally; returns the task's tallies."""
    return plan.does.tally(frames, plan.settings, plan.needs, threads)


def merge(plan: Plan, parts: Sequence[Any]) -> Any:
    """Merge the tallies of parts; bit-identical to one run over all of their rows.

    Args:
        parts: tallies of disjoint sets of datums; in row order, if datums are numbered from the
            first row of each part.

    Raises:
        InputError: a datum occurs in two parts, or they were read differently.
    """
    merged = plan.does.merge(parts, plan.settings)
    datums = merged.datums
    if (
        len(parts) == 1
        or datums.ids is not None
        or datums.keys is None
        or plan.options.cluster is not None
    ):
        return merged
    # Each part numbered its rows from 0.
    return msgspec.structs.replace(merged, datums=datums.with_keys_of_rows())


def explain(plan: Plan) -> str:
    """The plan in words, one line a step."""
    return "\n".join(
        [
            f"task      {plan.task}",
            f"dialect   {plan.dialect.name}: {plan.dialect.about}",
            f"metrics   {', '.join(_name_with_cuts(metric, plan) for metric in plan.metrics)}",
            *plan.does.explain(plan.settings, plan.needs),
            f"slices    {', '.join(plan.options.by) or 'none'}",
            *_describe_intervals(plan.options),
            f"key       {plan.fingerprint} (tallies under one key can be merged)",
        ]
    )


def _describe_intervals(options: Options) -> list[str]:
    """Return lines on the resampling for intervals; empty without intervals."""
    given = parse_intervals(options)
    if given is None:
        return []
    what = "datums" if given.cluster is None else f"clusters of {given.cluster!r}"
    kind = given.method or "by metric"
    return [
        f"intervals {100 * given.level:g} %, {given.draws:,} resamples of {what}, seed"
        f" {given.seed}, method {kind}"
    ]


def _name_with_cuts(metric: Metric, plan: Plan) -> str:
    """A metric's name with its cut-offs."""
    cuts = plan.cuts.get(metric.name)
    if cuts is None or cuts == (None,):
        return metric.name
    return f"{metric.name} (k {', '.join('whole list' if k is None else str(k) for k in cuts)})"
