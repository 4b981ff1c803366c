"""Explanation of a run or of one number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from .. import dialects, metrics, tasks
from ..evaluation import planner
from ..evaluation.limits import KEYS
from ..evaluation.paging import worst
from ..evaluation.summary import Tallied
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..ingest.rules.columns import describe_columns
from ..report.tables import by_title
from ..report.text import number as formatted
from ..run import card_of_run, is_scored, refuse_tables, tallied_of
from ..schemas.errors import EvalengineError, OptionError, ResultError, invalid
from ..schemas.options import Options
from ..schemas.results import RIGHT
from ..schemas.wording import option
from ..scorecard.card import Scorecard
from ..scorecard.lookup import SHORT, ambiguous, chosen_rows
from .bounds import find_limits

_WRITTEN = re.compile(r"\s*(?P<metric>[^\s\[\]]+)\s*(?:\[(?P<conditions>.*)\])?\s*")
_CONDITION = re.compile(r"""\s*("[^"]*"|[^=,"]+?)\s*=\s*("[^"]*"|[^,"]*?)\s*(?:,|$)""")
_FRAMES = ("outcomes", "per_datum")
_FEW = 5
_SPOT = "pr_curve_iou_threshold"


def explain_number(tables: Tables, number: str, options: Options) -> str:
    """Explain one number; arguments as in :func:`evalengine.explain`.

    Args:
        number: a metric with conditions on columns of the metrics frame, slices and labels, as in
            gates: ``AP[label=car, iou=0.5]``.

    Raises:
        OptionError: ``number`` cannot be parsed.
        ResultError: the run has no such number, or several.
    """
    name, conditions = _parsed(number)
    run = tables.predictions
    if is_scored(run):
        refuse_tables(tables)
    elif options.metrics is None:
        options = _asking(name, conditions, options)
    card = card_of_run(tables, options, showing=_FRAMES)
    row = _row(card, name, conditions)
    try:
        tallied = tallied_of("the run", card)
    except EvalengineError:
        tallied = None
    unkept = []  # the metric that would add the rows to a scored run without them
    makers = [(frame, planner.filling(card.task, frame)) for frame in _FRAMES]
    frame, filling = next(filter(lambda one: one[1], makers), ("", ()))
    if is_scored(run) and filling and frame not in card.frames:
        none = f"none are kept: score the tables with metric {filling[0].name}, too"
        unkept.append(_line("rows", none))
    parts = [
        *_what(card, row),
        *_rules(card, row, tallied),
        *unkept,
        *_rows(_listing(card, row, tables, options), card, row, tallied),
        *describe_columns(card.run.get("columns", {})),
        *(_line("note", message) for message in (*card.warnings, *card.notes)),
    ]
    inputs = msgspec.structs.replace(tables, predictions=card) if is_scored(run) else tables
    parts += _limits(inputs, row, options)
    return "\n".join(parts)


def _parsed(text: str) -> tuple[str, dict[str, str]]:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise invalid("number", text, "write a metric, and conditions in [].")
    inside, place, conditions = match["conditions"] or "", 0, {}
    while place < len(inside):
        one = _CONDITION.match(inside, place)
        if one is None:
            raise invalid("number", text, "a condition is NAME=VALUE.")
        conditions[one[1].strip('"')] = one[2].strip('"')
        place = one.end()
    return match["metric"], conditions


def _asking(name: str, conditions: Mapping[str, str], options: Options) -> Options:
    """Add the metric and threshold of a number to the options, if the name is a metric."""
    rated = next(filter(None, (metrics.at_threshold(task, name) for task in tasks.NAMES)), None)
    if rated is not None:  # AP50, also as a title, is of the default set
        thresholds = options.iou_thresholds or options.iou_thresholds_to_return
        return options if thresholds else options.replace(iou_thresholds_to_return=(rated[1],))
    if not any(name.partition("@")[0] in metrics.names(task) for task in tasks.NAMES):
        return options  # a title of the tables, or another way to write several options
    requested = msgspec.structs.replace(options, metrics=(name,))
    at = conditions.get("iou", conditions.get("iou_threshold"))
    if at is None or options.iou_thresholds is not None:
        return requested
    try:
        return msgspec.structs.replace(requested, iou_thresholds=(float(at),))
    except ValueError:
        raise OptionError(
            f"{option('number', name)}: iou={at} is not a number.",
            code="option_value",
            option="iou",
            value=at,
        ) from None


def _row(card: Scorecard, name: str, conditions: Mapping[str, str]) -> dict[str, Any]:
    rows = card.metrics
    slices = rows["slice"].drop_nulls().unique().to_list()
    filters: dict[str, Any] = {}
    for one, value in conditions.items():
        column = SHORT.get(one, one)
        if one in slices:
            filters["slice"], column = one, "slice_value"
        elif one == "label" and value in card.labels["label_name"].to_list():
            values = card.labels["label_value"].cast(pl.String)
            column = column if value in values.to_list() else "label_name"
        dtype = rows.schema.get(column, pl.String())
        try:
            typed = (
                int(value) if dtype.is_integer() else float(value) if dtype.is_float() else value
            )
        except ValueError:
            typed = value
        filters[column] = None if value == "null" else typed
    titled = by_title(card.task, card.dialect, name, {*filters}, rows["metric"].unique())
    if titled is not None:
        name, filters = titled[0], {**titled[1], **filters}
    elif (rated := metrics.at_threshold(card.task, name)) is not None:
        name, filters = rated[0], {"iou_threshold": rated[1], **filters}
        labels = rows.filter(metric=name)["label_value"]
        mean = f"m{name}"  # mean over labels; the plain name is per label
        if "label_value" not in filters and not labels.null_count() and mean in {*rows["metric"]}:
            name = mean
    matches = chosen_rows(rows, card.labels, name, filters)
    if matches.height > 1:
        raise ambiguous(matches, matches["metric"][0])
    return matches.row(0, named=True)


def _listing(
    card: Scorecard, row: dict[str, Any], tables: Tables, options: Options
) -> pl.DataFrame | str | None:
    """Return the outcomes of rows at the IoU threshold of a number, or the reason for their
    absence.
    """
    if "outcomes" not in card.frames:
        return None
    rows, at = card.frame("outcomes"), row["iou_threshold"]
    listing = planner.filling(card.task, "outcomes")
    if not any(_SPOT in one.params for one in listing):
        return rows
    settings = planner.make_plan(card.options, card.task).settings
    if row["area"] not in (None, settings.areas[0][0]):
        return (
            f"not listed: they are matched whatever their area, and this number is of {row['area']}"
        )
    if at is None or not rows.height or at in {*rows["iou_threshold"]}:
        return rows
    if is_scored(tables.predictions):
        return f"not listed: the run keeps those at other IoU thresholds than {at:g}"
    requested = options.replace(metrics=tuple(one.name for one in listing), **{_SPOT: at})
    return card_of_run(tables, requested).frame("outcomes")


def _line(title: str, text: str) -> str:
    return f"{title:<10}{text}"


def _what(card: Scorecard, row: dict[str, Any]) -> Iterator[str]:
    at = [
        f"{key}={row[key]:g}" if isinstance(row[key], float) else f"{key}={row[key]}"
        for key in KEYS[1:]
        if row[key] is not None and key != "parameters"
    ]
    value = "undefined" if row["value"] is None else f"{formatted(row['value'])} ({row['value']!r})"
    yield f"{row['metric']}{' [' + ', '.join(at) + ']' if at else ''} = {value}"
    if row["reason"]:
        yield _line("because", row["reason"])
    if row["lower"] is not None:
        yield _line("interval", f"{formatted(row['lower'])} to {formatted(row['upper'])}")
    if row["support"] is not None:
        scored = "" if row["scored"] is None else f", {row['scored']:,} of them scored"
        yield _line("rests on", f"{row['support']:,} (support){scored}")
    one = metrics.get(card.task, row["metric"])
    better = {"neither": "neither end is better"}.get(one.better, f"{one.better} is better")
    yield _line("is", one.definition)
    yield _line("from", one.source)
    yield _line("range", f"{one.range[0]:g} to {one.range[1]:g}, {better}")


def _rules(card: Scorecard, row: dict[str, Any], tallied: Tallied | None) -> Iterator[str]:
    yield _line("dialect", f"{card.dialect}: {dialects.get(card.task, card.dialect).about}")
    if tallied is not None:
        plan = tallied.plan
        yield from tasks.get(card.task).explain(plan.settings, plan.needs)
        convert = getattr(plan.settings, "in_user_unit", None)
        for name in metrics.get(card.task, row["metric"]).params:
            value = getattr(plan.settings, name, None)
            if value not in (None, ()):
                if "iou" in name and convert is not None:
                    several = isinstance(value, tuple)
                    value = tuple(map(convert, value)) if several else convert(value)
                yield _line("option", f"{name} = {_listed(value)}")
    if row["parameters"]:
        yield _line("option", row["parameters"])


def _listed(value: Any) -> str:
    if not isinstance(value, (tuple, list)):
        return str(value)
    few = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in value[:12])
    return few + (f" and {len(value) - 12} more" if len(value) > 12 else "")


def _rows(
    listed: pl.DataFrame | str | None, card: Scorecard, row: dict[str, Any], tallied: Tallied | None
) -> Iterator[str]:
    inside: pl.Series | None = None  # datums of the number's slice; None for all
    if row["slice"] is not None and tallied is not None:
        all_datums = tallied.tallies.datums
        chosen = all_datums.slices[row["slice"]].cast(pl.String) == row["slice_value"]
        inside = all_datums.id.filter(chosen.fill_null(False))
    if isinstance(listed, str):
        yield _line("rows", listed)
        return
    if listed is not None:
        against = metrics.get(card.task, row["metric"]).wrong
        yield from _of_outcomes(listed, row, inside, against)
    singles = None  # the number per datum, if it is a mean over datums
    if "per_datum" in card.frames and row["label_value"] is None:
        singles = card.frame("per_datum").filter(
            pl.col("metric") == row["metric"],
            *(pl.col(name).eq_missing(pl.lit(row[name])) for name in ("k", "statistic")),
            *([] if inside is None else [pl.col("datum_id").is_in(inside.implode())]),
        )
    if singles is not None and singles.height:
        undefined = singles["value"].null_count()
        values = singles.drop_nulls("value")
        more = f", {undefined:,} of them undefined" if undefined else ""
        yield _line("datums", f"{singles.height:,}{more}; {(values['value'] == 0).sum():,} are 0")
        lower = metrics.get(card.task, row["metric"]).better == "lower"
        few = values.sort("value", "datum_id", descending=[lower, False]).head(_FEW)
        examples = (
            f"{one} {formatted(value)}" for one, value in few.select("datum_id", "value").rows()
        )
        yield _line("worst", "; ".join(examples))
    elif tallied is not None and row["label_value"] is None:
        try:
            few = worst(tallied, _FEW if inside is None else len(tallied.tallies.datums))
        except EvalengineError:
            return
        if inside is not None:
            few = few.filter(pl.col("datum_id").is_in(inside.implode())).head(_FEW)
        if few.height:
            examples = (f"{one} ({why})" for one, why in few.select("datum_id", "why").rows())
            yield _line("worst", f"{'; '.join(examples)}, by {few['metric'][0]} of single datums")


def _of_outcomes(
    rows: pl.DataFrame, row: dict[str, Any], inside: pl.Series | None, against: tuple[str, ...]
) -> Iterator[str]:
    """Yield lines on the outcomes behind a number, and on the rows that hurt it most."""
    for name in ("label_key", "label_value"):
        if row[name] is not None:
            rows = rows.filter(pl.col(name) == row[name])
    if row["iou_threshold"] in set(rows["iou_threshold"].drop_nulls()):
        rows = rows.filter(pl.col("iou_threshold") == row["iou_threshold"])
    if inside is not None:
        rows = rows.filter(pl.col("datum_id").is_in(inside.implode()))
    before = rows.height
    if row["score_threshold"] is not None:
        rows = rows.filter(~(pl.col("score") < row["score_threshold"]).fill_null(False))
    if rows.height:
        counts = rows["outcome"].value_counts().sort("count", "outcome", descending=[True, False])
        at = rows["iou_threshold"].drop_nulls().unique().sort().to_list()
        where = f" at IoU {_listed(at)}" if at else ""
        yield _line("rows", ", ".join(f"{n:,} {kind}" for kind, n in counts.rows()) + where)
    if rows.height < before:
        yield _line("skipped", f"{count_of(before - rows.height, 'row')} below the score threshold")
    outcome = pl.col("outcome")
    hurts = outcome.is_in(against) if against else ~outcome.is_in(RIGHT)
    flags = [name for name in against if rows.schema.get(name) == pl.Boolean]
    wrong = rows.filter(pl.any_horizontal(hurts, *flags))
    surest = wrong.drop_nulls("score").sort("score", "datum_id", descending=[True, False])
    if surest.height:
        examples = (
            f"{one['datum_id']} {one['outcome']} {one['label_value']} {formatted(one['score'])}"
            for one in surest.head(_FEW).iter_rows(named=True)
        )
        yield _line("surest", f"of the errors: {'; '.join(examples)}")
    if wrong.height and row["label_value"] is not None:
        most = wrong.group_by("datum_id").len().sort("len", "datum_id", descending=[True, False])
        examples = (f"{one} ({n} wrong)" for one, n in most.head(_FEW).rows())
        yield _line("worst", "; ".join(examples))


def _limits(tables: Tables, row: dict[str, Any], options: Options) -> Iterator[str]:
    run, ground_truths = tables.predictions, tables.ground_truths
    more_tables = {name: getattr(tables, name) for name in ("datums", "labels", "storage_options")}
    try:
        bounds = find_limits(run, ground_truths, options=options, **more_tables).frame
    except ResultError:
        return
    for key in KEYS:
        bounds = bounds.filter(pl.col(key).eq_missing(pl.lit(row[key], bounds.schema[key])))
    for one in bounds.iter_rows(named=True):
        limit, bound = one["limit"], one["bound"]
        if bound in ("range", "unknown"):
            yield _line("moves", f"by {limit}, how far is not known")
        elif one["lowest"] == one["highest"]:
            more = "" if bound != "at least" else " as far as was tried; other choices may move it"
            yield _line("moves", f"not at all by {limit}{more}")
        else:
            range_text = f"{formatted(one['lowest'])} to {formatted(one['highest'])} by {limit}"
            yield _line("moves", f"{range_text} ({bound})")
