"""The registry: every metric, declared once with its definition, source and needs."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import msgspec

from ..schemas.contract import NAMES
from ..schemas.errors import OptionError, did_you_mean, unknown
from ..schemas.option_values import ParsedMetric, parse_metric
from ..schemas.wording import option


class AsShare(NamedTuple):
    """A number that increases with a share of independent datums, and its inverse."""

    share: Callable[[Any], Any]
    number: Callable[[Any], Any]


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric.

    Attributes:
        spares: required columns of the single-table contract that it does not read; they may be
            missing if no requested metric reads them.
        reads: optional columns that only this metric reads; unread if it was not requested.
        params: options that change it, including ``k`` if it has a cut-off.
        bare: meaning of the name without ``@``, for metrics with a cut-off: ``cut`` for the
            cut-offs of the option ``k``; ``whole`` for the whole list, with cut-offs only if ``k``
            was given; ``both`` for the whole list and the cut-offs.
        averages: values of the ``average`` column in addition to per-label rows.
        better: ``higher``, ``lower`` or ``neither``.
        interval: default kind of interval; ``recentred`` if resamples are biased, as for
            interpolated precision.
        unfit: kind of interval, or an empty name for all -> why it has none of that kind.
        counts: whether its values are whole numbers, for rows without weights.
        trials: column of its cells with the number of datums it is a share of; None if it is not a
            proportion of independent datums.
        as_share: the share that the number of a label is a function of, if ``trials`` are of it.
        mean_of: function from settings to the metric whose shares of independent labels it
            averages; None for none.
        excess_of: metric of single labels that it averages and that is too high in small sets; a
            corrected number is shown next to its mean. Empty for none.
        area_variance: function from a view, settings, the keys of its clusters, and whether
            there are clusters, to variances of areas under ROC curves and the numbers of
            positives and negatives, float64 [3, *shape of its cells], NaN if unknown.
        placements: function from a view to the values per datum that a paired test compares, by
            group and label; see :class:`..tally.sorted_scores.Placements`.
        ranks: whether it depends only on the order of scores, so that randomisation tests use ranks
            within each run.
        chooses: whether it chooses scores or rows within a resample, so that resamples are computed
            one after the other.
        pairs: whether it compares truths of a label with those of another, so that runs in bounded
            memory keep the true label with every scored one; for classification.
        wrong: outcomes of rows that count against it, or flags of such rows; by default all
            outcomes except :data:`~evalengine.schemas.results.RIGHT`.
        formula: the same in TeX; empty if it lists rows instead of computing a number.
        compute: from a view and the task's settings to cells; None if the tally stage makes the
            frame.
        measures: need -> how the tally computes it, for tasks with one row per datum.
        own: whether its name is the user's.
    """

    name: str
    task: str
    frame: str = "metrics"
    needs: tuple[str, ...]
    spares: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    bare: str = "cut"
    lowest_k: int = 1
    aliases: tuple[str, ...] = ()
    averages: tuple[str, ...] = ()
    range: tuple[float, float] = (0.0, 1.0)
    better: str = "higher"
    interval: str = "percentile"
    unfit: Mapping[str, str] = {}
    counts: bool = False
    trials: str | None = None
    as_share: AsShare | None = None
    mean_of: Callable[[Any], str | None] | None = None
    excess_of: str = ""
    area_variance: Callable[..., Any] | None = None
    placements: Callable[[Any], Any] | None = None
    ranks: bool = False
    chooses: bool = False
    pairs: bool = False
    wrong: tuple[str, ...] = ()
    definition: str
    formula: str = ""
    source: str
    compute: Callable[[Any, Any], list[Any]] | None = None
    measures: Mapping[str, Any] = {}
    own: bool = False


def define(
    task: str,
    name: str,
    definition: str,
    source: str,
    compute: Callable[[Any, Any], list[Any]] | None,
    **more: Any,
) -> Metric:
    """Define a metric; ``more`` are further fields."""
    return Metric(
        name=name, task=task, definition=definition, source=source, compute=compute, **more
    )


@cache
def all_metrics(task: str) -> Mapping[str, Metric]:
    """Every metric of a task by name."""
    if task not in NAMES:
        raise unknown("task", task, NAMES)
    return MappingProxyType(
        {metric.name: metric for module in _modules(task) for metric in module.METRICS}
    )


@cache
def measures(task: str) -> Mapping[str, Any]:
    """Computation of each need in the tally of a task, from the metrics that declare it."""
    every = (metric.measures for metric in all_metrics(task).values())
    return MappingProxyType({need: one for declared in every for need, one in declared.items()})


@cache
def _modules(task: str) -> tuple[ModuleType, ...]:
    """Return the modules in which a task declares its metrics: ``metrics.py``, or its parts."""
    home = _home(task)
    names = getattr(home, "MODULES", None)
    if names is None:
        return (home,)
    return tuple(importlib.import_module(f".{name}", home.__name__) for name in names)


@cache
def of_any(task: str, field: str) -> tuple[str, ...]:
    """Return ``params``, ``reads`` or ``spares`` of all metrics of a task, without repetitions."""
    every = (getattr(metric, field) for metric in all_metrics(task).values())
    return tuple(dict.fromkeys(name for names in every for name in names))


def _home(task: str) -> ModuleType:
    return importlib.import_module(f"..tasks.{task}.metrics", __package__)


@cache
def same(task: str) -> dict[str, str]:
    """Names in other tools, squeezed -> the metric that they equal."""
    every = (entry.split("=") for entry in getattr(_home(task), "SAME", "").split())
    return {name: ours for ours, names in every for name in names.split(",")}


@cache
def close(task: str) -> dict[str, str]:
    """Names in other tools, squeezed -> how our number differs, or which option it takes."""
    every = getattr(_home(task), "CLOSE", {})
    return {name: sentence for names, sentence in every.items() for name in names.split()}


_FILLER = re.compile(r"[\s_]+|-(?!\d)")


def snake_case(name: str) -> str:
    """Return a name as ``set_precision`` for ``SetPrecision``."""
    return re.sub(r"(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def squeezed(name: str) -> str:
    """Return a name in lower case, without blanks, underscores and hyphens between words.

    A hyphen before a digit is kept, since it may be a sign.
    """
    return _FILLER.sub("", name).casefold()


def symbols(metric: Metric) -> dict[str, str]:
    """Return the meanings of the symbols of a metric's formula, in TeX."""
    home = _home(metric.task)
    formula = re.sub(r"\\text\{[^}]*\}", " ", metric.formula)
    return {
        symbol: meaning
        for symbol, meaning in home.SYMBOLS.items()
        if _symbol(symbol).search(metric.formula if "\\text" in symbol else formula)
    }


def _symbol(symbol: str) -> re.Pattern[str]:
    """Return a pattern for a symbol by itself; a letter with index or arguments never matches."""
    behind = r"(?![A-Za-z_(^])" if len(symbol) == 1 else r"(?![A-Za-z])"
    return re.compile(rf"(?<![A-Za-z\\]){re.escape(symbol)}{behind}")


def is_open(task: str) -> bool:
    """Return whether tables name the metrics of a task, so that any name is one."""
    return bool(getattr(_home(task), "OPEN", False))


def _no_family(name: str) -> None:
    """Modules without a ``family`` of metrics that differ by a number in their name."""


def names(task: str) -> list[str]:
    """Names of a task's metrics."""
    return list(all_metrics(task))


def get(task: str, name: str) -> Metric:
    """Return the metric of that name.

    Raises:
        OptionError: no such metric; suggests the nearest.
    """
    metric = _lookup(task, name)
    if metric is None:
        hint = _close(task, name) or _elsewhere(task, name)
        hint = hint or did_you_mean(name, all_metrics(task))
        raise OptionError(
            f"{name!r} is not a known {task} metric.{hint} All of them: evalengine metrics"
            f" --task {task}, or evalengine.metrics_table().",
            code="unknown_name",
            value=name,
        )
    return metric


def _close(task: str, name: str) -> str:
    """The sentence about another tool's metric that is nearly ours; empty without one."""
    sentence = close(task).get(squeezed(name))
    return f" {sentence}" if sentence else ""


@lru_cache(1024)
def _lookup(task: str, name: str) -> Metric | None:
    """The metric of that name or alias, or of a family, if there is one."""
    metrics = all_metrics(task)
    if name in metrics:
        return metrics[name]
    for metric in metrics.values():
        if name in metric.aliases:
            return metric
    for module in _modules(task):
        of_family: Metric | None = getattr(module, "family", _no_family)(name)
        if of_family is not None:
            return of_family
    # Case-insensitive if unambiguous: names first, then aliases.
    plain = name.casefold()
    for called in ((lambda one: (one.name,)), (lambda one: one.aliases)):
        matches = {
            metric.name: metric
            for metric in metrics.values()
            if plain in map(str.casefold, called(metric))
        }
        if len(matches) == 1:
            return next(iter(matches.values()))
    return metrics.get(_in_other_tools(task).get(squeezed(name), ""))


@cache
def _in_other_tools(task: str) -> dict[str, str]:
    """Map unambiguous squeezed names, aliases, and names in other tools to metrics."""
    owners: dict[str, set[str]] = {}
    for metric in all_metrics(task).values():
        for name in (metric.name, *metric.aliases):
            owners.setdefault(squeezed(name), set()).add(metric.name)
    unique = {name: next(iter(metrics)) for name, metrics in owners.items() if len(metrics) == 1}
    other = {name: ours for name, ours in same(task).items() if name not in owners}
    return {name: ours for name, ours in (unique | other).items() if name not in close(task)}


_CUT = re.compile(r"(.+?)(?:_at)?_([0-9]{1,9})|top_?([0-9]{1,9})(?:_accuracy|_acc)?")
_THRESHOLDS = "iou_thresholds_to_return"
_RATE = re.compile(r"(.+?)[@_]?(0?\.[0-9]+)|(.+?)[@_]?([1-9][05])")


@lru_cache(1024)
def at_threshold(task: str, name: str) -> tuple[str, float] | None:
    """Split a name with an IoU threshold, AP50 or mAP@0.5, into metric and threshold; None for
    others.
    """
    rate = _RATE.fullmatch(name)
    if rate is None or _lookup(task, name) is not None:
        return None
    base, at = (rate[1], float(rate[2])) if rate[1] else (rate[3], int(rate[4]) / 100)
    metric = _lookup(task, base)
    if metric is None or _THRESHOLDS not in metric.params:
        return None
    return metric.name, at


def _parsed(task: str, name: str) -> ParsedMetric:
    """Split a name into metric and cut-off, also in trec_eval's form: ``P_5``, ``ndcg_cut_10``."""
    if _lookup(task, name) is not None:  # mAP@[.5:.95] has no cut-off
        return ParsedMetric(name, None)
    rated = at_threshold(task, name)
    if rated is not None:
        written = f"{option('metrics', rated[0])} {option(_THRESHOLDS, [rated[1]])}"
        raise OptionError(
            f"{name!r}: IoU thresholds are a separate option: write {written}.",
            code="unknown_name",
            value=name,
        )
    cut = _CUT.fullmatch(name)
    if cut is not None:
        metric = _lookup(task, cut[1] or "TopKAccuracy")
        if metric is not None and "k" in metric.params:
            return ParsedMetric(metric.name, int(cut[2] or cut[3]))
    return parse_metric(name)


def _elsewhere(task: str, name: str) -> str:
    """The sentence about other tasks that have a metric of that name; empty without any."""
    others = [other for other in NAMES if other != task and has(other, name)]
    if not others:
        return ""
    ways = " or ".join(option("task", other) for other in others)
    return f" It is a metric of {' and of '.join(others)}: write {ways} if the tables are for that."


def members(task: str, name: str, options: Any) -> tuple[str, ...]:
    """Return the metrics of a name: itself, or those of a group (ROUGE)."""
    group = group_of(task, name)
    return (name,) if group is None else tuple(group(options))


@lru_cache(1024)
def group_of(task: str, name: str) -> Callable[[Any], Any] | None:
    """Return the function from options to the metrics of a group; None for a metric."""
    return _groups(task).get(name.casefold()) if _lookup(task, name) is None else None


@cache
def _groups(task: str) -> dict[str, Callable[[Any], Any]]:
    """Names of groups in small letters."""
    return {
        name.casefold(): group
        for module in _modules(task)
        for name, group in getattr(module, "GROUPS", {}).items()
    }


@lru_cache(1024)
def parse_metric_name(task: str, name: str) -> tuple[Metric, int | None]:
    """Return the metric of a name, and the cut-off after an ``@`` in it.

    Raises:
        OptionError: no such metric, or one without cut-offs, or an invalid cut-off.
    """
    parsed = _parsed(task, name)
    metric = get(task, parsed.metric)
    if parsed.k is not None and "k" not in metric.params:
        able = [one.name for one in all_metrics(task).values() if "k" in one.params]
        cut = f"metrics with one: {', '.join(able)}" if able else f"no metric of {task} has one"
        sentence = _close(task, name)
        hint = f".{sentence}" if sentence else f"; write {metric.name!r} ({cut})."
        raise OptionError(
            f"{name!r}: {metric.name} has no cut-off{hint}",
            code="option_unfit",
            option="metrics",
            value=name,
        )
    return metric, parsed.k


@lru_cache(1024)
def metric_of(task: str, name: str) -> Metric:
    """Return the metric of a name, ignoring a cut-off or IoU threshold in it.

    Raises:
        OptionError: no such metric, or one without cut-offs, or an invalid cut-off.
    """
    rated = at_threshold(task, name)
    return parse_metric_name(task, name)[0] if rated is None else get(task, rated[0])


@lru_cache(1024)
def has(task: str, name: str) -> bool:
    """Return whether a task has a metric of that name, with or without a cut-off.

    Names that only tables know do not count.
    """
    if name.casefold() in _groups(task) or at_threshold(task, name) is not None:
        return True
    try:
        parsed = _parsed(task, name)
    except OptionError:
        return False
    metric = _lookup(task, parsed.metric)
    if metric is None or metric.own:
        return False
    return parsed.k is None or "k" in metric.params


def everywhere(name: str) -> list[tuple[Metric, int | None]]:
    """Return the metrics of all tasks with that name, each with the cut-off in it."""
    return [
        parse_metric_name(task, name)
        for task in NAMES
        if has(task, name) and _lookup(task, _parsed(task, name).metric) is not None
    ]
