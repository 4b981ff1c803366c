"""The registry: every metric, declared once with its definition, source and needs."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from ..schemas.asked import Asked, parse_metric
from ..schemas.errors import OptionError, did_you_mean, unknown
from ..schemas.task_names import NAMES
from ..schemas.wording import option

if TYPE_CHECKING:
    import polars as pl


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric.

    Attributes:
        name: what users write and frames say.
        task: the task it belongs to.
        frame: the output frame it fills.
        needs: what must be tallied for it, in the task's own terms.
        spares: columns that the contract of one table requires and it does not read; where all
            metrics asked for spare one, the table may lack it.
        reads: optional columns that are read for it alone, and stay unread where it was not asked
            for among others.
        params: options that change it; ``k`` among them for those that have a cut-off.
        bare: what the name without ``@`` stands for, of those that have a cut-off: ``cut`` for the
            cut-offs of the option ``k``; ``whole`` for the whole list, and the cut-offs only where
            ``k`` was given; ``both`` for the whole list and the cut-offs.
        lowest_k: the lowest cut-off that its reference takes, of those that have one.
        aliases: other names that users know it by.
        averages: values of the ``average`` column beside per-label rows.
        range: smallest and largest value.
        better: ``higher``, ``lower`` or ``neither``.
        interval: the kind of interval it has unless another is asked for; ``recentred`` where draws
            lie to one side of the number, as those of interpolated precision do.
        counts: whether its values are whole numbers, of rows that have no weights.
        trials: the column of its cells that says how many datums it is a share of; None where it is
            no proportion of independent datums.
        variance: of its numbers by theory, an array of the shape of each of its cells, NaN where
            there is none; from a view and the task's settings.
        ranks: whether it depends on the order of scores and not on their values, so that tests by
            swaps go by ranks within each run.
        pairs: whether it holds truths of a label against those of another, so that runs in bounded
            memory keep the true label beside every scored one; of classification.
        wrong: outcomes of rows that count against it, or flags of such rows; all outcomes but
            :data:`~evalengine.schemas.results.RIGHT` unless given.
        definition: one sentence.
        formula: the same in TeX; empty where it lists rows and computes no number.
        source: whose definition it is.
        compute: from a view and the task's settings to cells; None where the tally stage makes
            the frame itself.
    """

    name: str
    task: str
    frame: str
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
    counts: bool = False
    trials: str | None = None
    variance: Callable[[Any, Any], list[Any]] | None = None
    ranks: bool = False
    pairs: bool = False
    wrong: tuple[str, ...] = ()
    definition: str
    formula: str
    source: str
    compute: Callable[[Any, Any], list[Any]] | None = None


def all_metrics(task: str) -> Mapping[str, Metric]:
    """Every metric of a task by name."""
    if task not in NAMES:
        raise unknown("task", task, NAMES)
    return _known(task)


@cache
def _known(task: str) -> Mapping[str, Metric]:
    return MappingProxyType(
        {metric.name: metric for module in _modules(task) for metric in module.METRICS}
    )


@cache
def _modules(task: str) -> tuple[ModuleType, ...]:
    """Where a task declares its metrics; every name that is asked for is looked up there."""
    home = _home(task)
    return tuple(importlib.import_module(f".{name}", home.__name__) for name in home.MODULES)


def _home(task: str) -> ModuleType:
    return importlib.import_module(f"..tasks.{task}.metrics", __package__)


def same(task: str) -> dict[str, str]:
    """Names in other tools, squeezed -> the metric that they equal."""
    return getattr(_home(task), "SAME", {})


def close(task: str) -> dict[str, str]:
    """Names in other tools, squeezed -> how our number differs, or which option it takes."""
    return getattr(_home(task), "CLOSE", {})


_FILLER = re.compile(r"[\s_]+|-(?!\d)")


def squeezed(name: str) -> str:
    """A name in small letters, without blanks, underscores and hyphens between words.

    A hyphen before a digit stays, since it may be a sign.
    """
    return _FILLER.sub("", name).casefold()


def symbols(metric: Metric) -> dict[str, str]:
    """What the symbols of a metric's formula stand for, in TeX."""
    home = _home(metric.task)
    bare = re.sub(r"\\text\{[^}]*\}", " ", metric.formula)
    return {
        symbol: meaning
        for symbol, meaning in home.SYMBOLS.items()
        if _symbol(symbol).search(metric.formula if "\\text" in symbol else bare)
    }


def _symbol(symbol: str) -> re.Pattern[str]:
    """Finds it where it stands for itself: a letter alone is none with an index or arguments."""
    behind = r"(?![A-Za-z_(^])" if len(symbol) == 1 else r"(?![A-Za-z])"
    return re.compile(rf"(?<![A-Za-z\\]){re.escape(symbol)}{behind}")


def _no_family(name: str) -> None:
    """Modules without a ``family`` of metrics that differ by a number in their name."""


def names(task: str) -> list[str]:
    """Names of a task's metrics."""
    return list(all_metrics(task))


def get(task: str, name: str) -> Metric:
    """The metric of that name.

    Raises:
        OptionError: no such metric; names the nearest.
    """
    metric = _found(task, name)
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
def _found(task: str, name: str) -> Metric | None:
    """The metric of that name or alias, or of a family, if there is one."""
    metrics = all_metrics(task)
    if name in metrics:
        return metrics[name]
    for metric in metrics.values():
        if name in metric.aliases:
            return metric
    for module in _modules(task):
        made: Metric | None = getattr(module, "family", _no_family)(name)
        if made is not None:
            return made
    # In any capitals, where that is one metric: names come first, then aliases.
    plain = name.casefold()
    for called in ((lambda one: (one.name,)), (lambda one: one.aliases)):
        alike = {
            metric.name: metric
            for metric in metrics.values()
            if plain in map(str.casefold, called(metric))
        }
        if len(alike) == 1:
            return next(iter(alike.values()))
    return metrics.get(_in_other_tools(task).get(squeezed(name), ""))


@cache
def _in_other_tools(task: str) -> dict[str, str]:
    """Squeezed names and aliases, where they are one metric's, and names of other tools."""
    owners: dict[str, set[str]] = {}
    for metric in all_metrics(task).values():
        for name in (metric.name, *metric.aliases):
            owners.setdefault(squeezed(name), set()).add(metric.name)
    own = {name: next(iter(metrics)) for name, metrics in owners.items() if len(metrics) == 1}
    other = {name: ours for name, ours in same(task).items() if name not in owners}
    return {name: ours for name, ours in (own | other).items() if name not in close(task)}


_CUT = re.compile(r"(.+?)(?:_at)?_([0-9]{1,9})|top_?([0-9]{1,9})(?:_accuracy|_acc)?")
_THRESHOLDS = "iou_thresholds_to_return"
_RATE = re.compile(r"(.+?)[@_]?(0?\.[0-9]+)|(.+?)[@_]?([1-9][05])")


def at_threshold(task: str, name: str) -> tuple[str, float] | None:
    """A name that holds an IoU threshold, AP50 or mAP@0.5, as metric and threshold; else None."""
    rate = _RATE.fullmatch(name)
    if rate is None or _found(task, name) is not None:
        return None
    base, at = (rate[1], float(rate[2])) if rate[1] else (rate[3], int(rate[4]) / 100)
    metric = _found(task, base)
    if metric is None or _THRESHOLDS not in metric.params:
        return None
    return metric.name, at


def _wanted(task: str, name: str) -> Asked:
    """A name in metric and cut-off, also as trec_eval writes it: ``P_5``, ``ndcg_cut_10``.

    Raises:
        OptionError: what stands behind an ``@`` is not a cut-off, or an IoU threshold, which runs
            alone take in a name.
    """
    if _found(task, name) is not None:  # mAP@[.5:.95] holds no cut-off
        return Asked(name, None)
    rated = at_threshold(task, name)
    if rated is not None:
        said = f"{option('metrics', rated[0])} {option(_THRESHOLDS, [rated[1]])}"
        raise OptionError(
            f"{name!r}: IoU thresholds are an option of their own: write {said}.",
            code="unknown_name",
            value=name,
        )
    cut = _CUT.fullmatch(name)
    if cut is not None:
        metric = _found(task, cut[1] or "TopKAccuracy")
        if metric is not None and "k" in metric.params:
            return Asked(metric.name, int(cut[2] or cut[3]))
    return parse_metric(name)


def _elsewhere(task: str, name: str) -> str:
    """The sentence about other tasks that have a metric of that name; empty without any."""
    others = [other for other in NAMES if other != task and has(other, name)]
    if not others:
        return ""
    ways = " or ".join(option("task", other) for other in others)
    return f" It is a metric of {' and of '.join(others)}: write {ways} if the tables are for that."


def members(task: str, name: str, options: Any) -> tuple[str, ...]:
    """The metrics that a name stands for: itself, or those of a group (ROUGE).

    Args:
        task: the task.
        name: what was asked for.
        options: what a group depends on.
    """
    group = _groups(task).get(name.casefold())
    return (name,) if group is None or _found(task, name) is not None else tuple(group(options))


@cache
def _groups(task: str) -> dict[str, Callable[[Any], Any]]:
    """Names of groups in small letters."""
    return {
        name.casefold(): group
        for module in _modules(task)
        for name, group in getattr(module, "GROUPS", {}).items()
    }


def asked(task: str, name: str) -> tuple[Metric, int | None]:
    """The metric that a name stands for, and the cut-off that stands in it behind an ``@``.

    Raises:
        OptionError: no such metric, or one without cut-offs, or what is not a cut-off.
    """
    wanted = _wanted(task, name)
    metric = get(task, wanted.metric)
    if wanted.k is not None and "k" not in metric.params:
        able = [one.name for one in all_metrics(task).values() if "k" in one.params]
        cut = f"metrics with one: {', '.join(able)}" if able else f"no metric of {task} has one"
        near = _close(task, name)
        hint = f".{near}" if near else f"; write {metric.name!r} ({cut})."
        raise OptionError(f"{name!r}: {metric.name} has no cut-off{hint}")
    return metric, wanted.k


def meant(task: str, name: str) -> Metric:
    """The metric that a name stands for, whatever cut-off or IoU threshold stands in it.

    Raises:
        OptionError: no such metric, or one without cut-offs, or what is not a cut-off.
    """
    rated = at_threshold(task, name)
    return asked(task, name)[0] if rated is None else get(task, rated[0])


def has(task: str, name: str) -> bool:
    """Whether a task knows a metric by that name, with a cut-off or without."""
    if name.casefold() in _groups(task):
        return True
    if at_threshold(task, name) is not None:
        return True
    try:
        wanted = _wanted(task, name)
    except OptionError:
        return False
    metric = _found(task, wanted.metric)
    return metric is not None and (wanted.k is None or "k" in metric.params)


def everywhere(name: str) -> list[tuple[Metric, int | None]]:
    """The metrics of all tasks that a name stands for, each with the cut-off that stands in it."""
    return [
        asked(task, name)
        for task in NAMES
        if has(task, name) and _found(task, _wanted(task, name).metric) is not None
    ]


def table() -> pl.DataFrame:
    """All metrics of all tasks as a table.

    Returns:
        columns name, task, frame, averages, aliases, range, better, definition, formula, source,
            options.
    """
    import polars as pl

    rows = [
        {
            "name": metric.name,
            "task": task,
            "frame": metric.frame,
            "averages": ", ".join(metric.averages) or None,
            "aliases": ", ".join(metric.aliases) or None,
            "range": f"{metric.range[0]:g} to {metric.range[1]:g}",
            "better": metric.better,
            "definition": metric.definition,
            "formula": metric.formula or None,
            "source": metric.source,
            "options": ", ".join(metric.params) or None,
        }
        for task in NAMES
        for metric in all_metrics(task).values()
    ]
    return pl.DataFrame(rows)
