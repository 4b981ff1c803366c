"""Runs over time: one static HTML page, and tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Any

import msgspec
import polars as pl

from ..exports.monitoring import Sample, openmetrics
from ..ingest.problems import count_of
from ..schemas.display import (
    CIRCLE,
    CROSS,
    DASHED,
    DOTTED,
    END,
    NAME,
    NOTE,
    PLAIN,
    READING,
    SQUARE,
    Band,
    Cell,
    Chart,
    Column,
    Line,
    Mark,
    Points,
    Scale,
    Table,
)
from ..schemas.errors import N_NAMES
from ..schemas.results import FAILED, METRICS, PASSED, SKIPPED
from ..statistics.sequences import Change
from .page import ARROWS, MOST_BYTES, environment, look
from .svg import figure
from .text import UNDEFINED, aligned, interval, number, plain, shorten_distinctly, signed
from .verdicts import BETTER, WORSE

MOST_POINTS = 1200
"""Maximum number of points per line; with more nights, points are means of neighbours."""
_TITLED = 90
"""Maximum number of nights for which each has a symbol."""
_CHARTS, _COLUMNS, _GATES, _MOVED = 24, 6, 20, 200
_NIGHTS = (2000, 1000, 500, 200, 50)
"""Nights in the table, tried in order until the page is small enough."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_SPARK = 40


class Night(msgspec.Struct, frozen=True):
    """A run.

    Attributes:
        name: of its folder, or when it was scored.
        finished: UTC, ISO 8601.
        gates: ``passed``, ``failed``, ``unjudged``, or empty without gates.
        page: link to its report; empty if there is none.
        breaks: why its numbers do not continue the line; empty if they do.
        remark: anything else that differs from the run before.
        facts: columns of data files: ``run_id``, ``job``, ``task``, ``dialect``, ``folder``; and
            ``group``, the path without the date if it identifies the trend, and ``day``, the date
            if it identifies the night.
    """

    name: str
    finished: str
    gates: str = ""
    page: str = ""
    breaks: str = ""
    remark: str = ""
    facts: dict[str, str] = {}


class Series(msgspec.Struct, frozen=True):
    """A number over time.

    Attributes:
        values, lower, upper: one per night; None if undefined, or without an interval.
        better: ``higher``, ``lower`` or ``neither``.
        bounds: (gate, number) of gates on it.
        failed: places of nights in which such a gate failed.
        few: whether it has too few nights since the last break for any change to be named.
        row: what identifies it, as columns of the metrics frame.
        group: slice or label, in words; empty for the whole set.
        by: slice column, or ``label``.
    """

    title: str
    values: list[float | None]
    lower: list[float | None] = []
    upper: list[float | None] = []
    better: str = "neither"
    counted: bool = False
    changes: list[Change] = []
    bounds: list[tuple[str, float]] = []
    failed: list[int] = []
    few: bool = False
    row: dict[str, Any] = {}
    group: str = ""
    by: str = ""

    @property
    def last(self) -> int | None:
        """Index of the last night with a value; None if no night has one."""
        defined = [i for i, value in enumerate(self.values) if value is not None]
        return defined[-1] if defined else None

    def reading(self, change: Change) -> str:
        """Return ``better`` or ``worse``; ``higher`` or ``lower`` if no direction is better."""
        up = change.after > change.before
        if self.better not in ("higher", "lower"):
            return "higher" if up else "lower"
        return BETTER if up == (self.better == "higher") else WORSE


class Trend(msgspec.Struct, frozen=True):
    """Runs of one job and task over time.

    Attributes:
        x: place of each night on the axis: a day, or its number.
        series: headline numbers, in order.
        moved: slices and labels that changed, the latest first.
        searched: number of slices and labels that were searched.
        gates: gate -> status per night, empty if it was not judged.
        level: of the changes.
        independent: whether changes were searched: not if runs share datums.
    """

    title: str
    about: str
    nights: list[Night]
    x: list[float]
    series: list[Series]
    moved: list[Series] = []
    searched: int = 0
    gates: dict[str, list[str]] = {}
    notes: list[str] = []
    level: float = 0.95
    independent: bool = True


# Sentences.


def _describe(one: Series, change: Change, nights: Sequence[Night]) -> str:
    reading = one.reading(change)
    before, after = number(change.before), number(change.after)
    return f"{reading} since {nights[change.at].name}: {after} on average, {before} before"


def headline(trend: Trend) -> str:
    """Describe the last night's first number and its last change."""
    if not trend.series or trend.series[0].last is None:
        return "No number is defined in any of these runs."
    one = trend.series[0]
    at = one.last
    assert at is not None
    value = number(one.values[at], counted=one.counted)
    if one.lower and one.lower[at] is not None:
        value += f" {interval(one.lower[at], one.upper[at])}"
    text = f"{plain(trend.nights[at].name)}: {plain(one.title)} {value}"
    if one.changes:
        return f"{text}, {_describe(one, one.changes[-1], trend.nights)}."
    first = next((i for i, night in reversed([*enumerate(trend.nights)]) if night.breaks), 0)
    nights = len(trend.nights) - first
    if nights < 2 or not trend.independent:
        return f"{text}."
    if one.few:
        return f"{text}. {count_of(nights, 'run')} are too few to name a change."
    return f"{text}. No change is certain in {count_of(nights, 'run')}."


def gates_line(trend: Trend) -> str:
    """Describe the last night's gates and how often gates failed; empty without gates."""
    judged = [night for night in trend.nights if night.gates]
    if not judged:
        return ""
    failed = [night for night in judged if night.gates == FAILED]
    last = judged[-1]
    text = f"Gates of {plain(last.name)}: {last.gates}."
    at = trend.nights.index(last)
    if names := [plain(gate) for gate, statuses in trend.gates.items() if statuses[at] == FAILED]:
        more = f" and {len(names) - N_NAMES} more" if names[N_NAMES:] else ""
        text = f"{text[:-1]}: {', '.join(names[:N_NAMES])}{more}."
    if failed:
        text += f" Gates failed in {len(failed):,} of {count_of(len(judged), 'run')},"
        text += f" last in {plain(failed[-1].name)}."
    elif len(judged) > 1:
        text += f" They passed in all {len(judged):,} runs." * all(
            night.gates == PASSED for night in judged
        )
    return text


# Charts.


def _binned(values: Sequence[float | None], edges: Sequence[int]) -> list[float | None]:
    means: list[float | None] = []
    for a, b in pairwise(edges):
        defined = [value for value in values[a:b] if value is not None]
        means.append(sum(defined) / len(defined) if defined else None)
    return means


def _axis(trend: Trend, ticks: int = 4) -> Scale:
    """Return the scale of nights, with a few of their names."""
    n = len(trend.nights)
    places = sorted({round(i * (n - 1) / (ticks - 1)) for i in range(ticks)}) if n > 1 else [0]
    names = [plain(trend.nights[i].name) for i in places]
    positions = [trend.x[i] for i in places]
    return Scale("night", trend.x[0], trend.x[-1], positions, shorten_distinctly(names, 12))


def chart(trend: Trend, one: Series) -> Chart:
    """Make the chart of a number, with its intervals, failed gates, changes and breaks."""
    defined = [value for value in (*one.values, *one.lower, *one.upper) if value is not None]
    defined += [bound for _, bound in one.bounds]
    low, high = min(defined, default=0.0), max(defined, default=1.0)
    edge = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - edge, high + edge
    marks: list[Mark] = []
    bands: list[Mark] = []
    starts = [0, *(i for i, night in enumerate(trend.nights) if i and night.breaks)]
    for start, end in [*zip(starts, [*starts[1:], len(trend.nights)], strict=True)]:
        step = max(1, -(-len(trend.nights) // MOST_POINTS))
        edges = [*range(start, end, step), end]
        x = _binned(trend.x, edges)
        x_values = [place for place in x if place is not None]
        marks.append(Line(x_values, _binned(one.values, edges), "value", 0))
        if any(value is not None for value in one.lower[start:end]):
            bounds = _binned(one.lower, edges), _binned(one.upper, edges)
            bands.append(Band(x_values, *bounds, "interval of the night", 0))
    marks = [*bands, *marks]
    for text, bound in one.bounds:
        marks.insert(
            0, Line([trend.x[0], trend.x[-1]], [bound, bound], plain(text), 5, DASHED, 1.2)
        )
    for i, night in enumerate(trend.nights):
        if i and night.breaks:
            marks.append(Line([trend.x[i]] * 2, [low, high], "other options", PLAIN, DOTTED, 1.2))
    for change in one.changes:
        x_at = trend.x[change.at]
        marks.append(Line([x_at, x_at], [low, high], "change", 3, DASHED, 1.4))
    if len(trend.nights) <= _TITLED:
        marks.append(_points(trend, one, set(range(len(trend.nights))) - set(one.failed), CIRCLE))
    if one.failed:
        symbol = CROSS if len(trend.nights) <= _TITLED else END
        marks.append(_points(trend, one, set(one.failed), symbol, "gate failed", 1))
    sentences = [_describe(one, change, trend.nights) for change in one.changes]
    message = f"{plain(one.title)} by night, {count_of(len(trend.nights), 'night')}"
    at = one.last
    if at is not None:
        values = [value for value in one.values if value is not None]
        message += (
            f"; lowest {number(min(values))}, highest {number(max(values))},"
            f" last {number(one.values[at])}"
        )
    note = "; ".join(f"{text[0].upper()}{text[1:]}" for text in sentences[-3:])
    return Chart(
        "trend",
        plain(one.title),
        _axis(trend),
        Scale("value", low, high),
        marks,
        "; ".join([message, *sentences]) + ".",
        note,
    )


def _points(
    trend: Trend, one: Series, places: set[int], symbol: int, legend: str = "", colour: int = 0
) -> Points:
    points = [(i, value) for i in sorted(places) if (value := one.values[i]) is not None]
    titles = [f"{plain(trend.nights[i].name)}: {number(value)}" for i, value in points]
    radius = [2.6 if symbol == CIRCLE else 4.0]
    x, y = [trend.x[i] for i, _ in points], [value for _, value in points]
    return Points(
        x, y, symbol, legend, colour, radius, titles if len(trend.nights) <= _TITLED else []
    )


def gates_chart(trend: Trend) -> Chart | None:
    """Make the chart of failed, passed and skipped gates by night; None without gates."""
    every = sorted(trend.gates, key=lambda gate: -trend.gates[gate].count(FAILED))
    gates = every[:_GATES]
    if not gates:
        return None
    marks: list[Mark] = []
    for row, gate in enumerate(gates):
        marks.append(_passed(trend, gate, row))
    few = len(trend.nights) <= _TITLED
    for status, symbol, colour in (
        (SKIPPED, CIRCLE if few else END, 7),
        (FAILED, SQUARE if few else END, 1),
    ):
        points = [
            (trend.x[i], float(row))
            for row, gate in enumerate(gates)
            for i, outcome in enumerate(trend.gates[gate])
            if outcome == status
        ]
        if points:
            x, y = [a for a, _ in points], [b for _, b in points]
            marks.append(Points(x, y, symbol, status, colour, [3.2], hollow=colour == 7))
    failed = [trend.gates[gate].count(FAILED) for gate in gates]
    after = [f"{n:,} failed" if n else "" for n in failed]
    names = [plain(gate) for gate in gates]
    axis = _axis(trend, 2)
    message = "; ".join(f"{name}: {n:,} failed" for name, n in zip(names, failed, strict=True))
    left = len(every) - len(gates)
    note = f"{left:,} more gates failed less often" if left else ""
    scale = Scale("gate", names=names, after=after)
    return Chart("gates", "Gates by night", axis, scale, marks, f"{message}.", note)


def _passed(trend: Trend, gate: str, row: int) -> Line:
    """Return the line through the nights in which a gate passed, with gaps at other nights."""
    x: list[float] = []
    y: list[float | None] = []
    for passed, some in groupby(
        zip(trend.x, trend.gates[gate], strict=True), key=lambda at: at[1] == PASSED
    ):
        places = [place for place, _ in some]
        x += [places[0], places[-1]]
        y += [row, row] if passed else [None, None]
    return Line(x, y, PASSED, 2, width=4.0)


# Tables.


def nights_table(trend: Trend, most: int, id: str) -> Table:
    """Make the table of nights, the latest first."""
    series = trend.series[:_COLUMNS]
    gated = any(night.gates for night in trend.nights)
    columns = [Column("night", NAME), *([Column("gates", READING)] if gated else [])]
    columns += [Column(plain(one.title)) for one in series] + [Column("remarks", NOTE)]
    rows = []
    for i in range(len(trend.nights) - 1, -1, -1)[:most]:
        night = trend.nights[i]
        row = [Cell(plain(night.name), link=night.page)]
        row += [Cell(night.gates, state=night.gates)] if gated else []
        for one in series:
            value = one.values[i]
            row.append(Cell(number(value, counted=one.counted), _short(value)))
        remarks = [night.breaks, night.remark]
        remarks += [
            _describe(one, c, trend.nights) for one in series for c in one.changes if c.at == i
        ]
        rows.append([*row, Cell(plain("; ".join(filter(None, remarks))))])
    left = len(trend.nights) - len(rows)
    notes = [f"{left:,} earlier nights are not in this table."] if left else []
    table = Table(columns, rows, "Nights, the latest first", notes, id, searched=len(rows) > 15)
    return table.filled()


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def changes_table(
    trend: Trend, series: Sequence[Series], title: str, id: str, *, grouped: bool = False
) -> Table | None:
    """Make the table of changes, the latest first; None without changes.

    Args:
        grouped: name the slice or label.
    """
    every = [(one, change) for one in series for change in one.changes]
    if not every:
        return None
    every.sort(key=lambda pair: (-pair[1].at, -abs(pair[1].after - pair[1].before)))
    columns = [*([Column("by", NAME), Column("group", NAME)] if grouped else [])]
    columns += [Column("metric", NAME), Column("since", NAME), Column("before"), Column("after")]
    columns += [Column("difference"), Column("reading", READING), Column("certain in", NAME)]
    rows = []
    for one, change in every[:_MOVED]:
        reading = one.reading(change)
        by = [Cell(plain(one.by)), Cell(plain(one.group))] if grouped else []
        moved = change.after - change.before
        rows.append(
            [
                *by,
                Cell(plain(one.title)),
                Cell(plain(trend.nights[change.at].name)),
                Cell(number(change.before), _short(change.before)),
                Cell(number(change.after), _short(change.after)),
                Cell(signed(moved), _short(moved)),
                Cell(f"{ARROWS.get(reading, '')} {reading}".strip(), state=reading),
                Cell(plain(trend.nights[change.seen].name)),
            ]
        )
    left = len(every) - len(rows)
    notes = [f"{left:,} more changes are not in this table."] if left else []
    return Table(columns, rows, title, notes, id, searched=len(rows) > 15)


# The page.


def as_page(trends: Sequence[Trend], title: str, unread: Sequence[str] = ()) -> str:
    """Return the page of at most 2 MB.

    Args:
        trends: in order.
        unread: folders that could not be read, and why.
    """
    page = ""
    for most in _NIGHTS:
        sections = [_section(trend, i, most) for i, trend in enumerate(trends)]
        page = (
            environment()
            .get_template("trend.html")
            .render(
                **look(),
                title=plain(title),
                trends=sections,
                about="; ".join(plain(trend.about) for trend in trends) if len(trends) == 1 else "",
                notes=[plain(reason) for reason in unread],
            )
        )
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def _section(trend: Trend, i: int, most: int) -> dict[str, Any]:
    series = trend.series[:_CHARTS]
    strips = gates_chart(trend)
    judged = next((night.gates for night in reversed(trend.nights) if night.gates), "")
    last = trend.series[0].changes[-1:] if trend.series else []
    state = judged if judged in (FAILED, PASSED) else ""
    if not state and last:
        state = trend.series[0].reading(last[0])
    groups = f"{trend.searched:,} slices and labels" if trend.searched != 1 else "1 slice or label"
    left = len(trend.series) - len(series)
    return {
        "id": f"trend-{i}",
        "title": plain(trend.title),
        "about": plain(trend.about),
        "said": headline(trend),
        "gates": gates_line(trend),
        "state": state,
        "charts": [_safe(figure(chart(trend, one))) for one in series],
        "more": f"{count_of(left, 'more number')}: evalengine history --format csv."
        if left
        else "",
        "strips": None if strips is None else _safe(figure(strips)),
        "changes": changes_table(trend, trend.series, "Changes, the latest first", f"changes-{i}"),
        "moved": changes_table(
            trend,
            trend.moved,
            "Slices and labels that changed, the latest first",
            f"moved-{i}",
            grouped=True,
        ),
        "searched": groups if trend.searched else "",
        "level": f"{100 * (1 - trend.level):g} %",
        "nights": nights_table(trend, most, f"nights-{i}"),
        "notes": [plain(note) for note in trend.notes],
    }


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


# The terminal.


def spark(values: Sequence[float | None]) -> str:
    """Return a sparkline of block characters; missing values are blanks."""
    n = len(values)
    width = min(_SPARK, n)
    binned = _binned(values, [i * n // max(1, width) for i in range(width + 1)])
    defined = [value for value in binned if value is not None]
    low, reach = min(defined, default=0.0), max(defined, default=0.0) - min(defined, default=0.0)
    top = len(_BLOCKS) - 1
    return "".join(
        " " if value is None else _BLOCKS[round((value - low) / reach * top) if reach else top // 2]
        for value in binned
    )


def history_text(trends: Sequence[Trend], width: int | None = None, nights: int = 14) -> str:
    """Format runs over time for a terminal: one line per number, and the latest nights.

    Args:
        width: characters per line; None for unlimited.
        nights: largest number of nights in the table.
    """
    parts = []
    for trend in trends:
        table = nights_table(trend, nights, "")
        parts += [
            f"{plain(trend.title)}: {plain(trend.about)}",
            *filter(None, [headline(trend), gates_line(trend)]),
            "",
            *aligned(spark_table(trend), width, ["highest", "lowest"]),
            "",
            *aligned(table, width, [column.title for column in table.columns[:1:-1]]),
            *table.notes,
        ]
        if trend.moved:
            sentence = f"{len(trend.moved):,} of {trend.searched:,} slices and labels changed"
            parts.append(f"{sentence}; evalengine report lists them")
        parts += [f"note: {plain(note)}" for note in trend.notes] + [""]
    return "\n".join(parts[:-1]) + "\n"


_FACTS = (
    "night",
    "finished",
    "gates",
    "run_id",
    "job",
    "task",
    "dialect",
    "folder",
    "breaks",
    "number",
)
_UNKEPT = ("support", "scored", "reason")


def history_frame(trends: Sequence[Trend]) -> pl.DataFrame:
    """Return the headline numbers of all nights, one row per night and number.

    Returns:
        ``night, finished, gates, run_id, job, task, dialect, folder, breaks, number``, the columns
        of the metrics frame, and ``change``: better, worse, higher or lower, in the first night
        of a new level.
    """
    types: dict[str, Any] = dict.fromkeys(_FACTS, pl.String)
    types |= {name: dtype or pl.String for name, dtype in METRICS.items() if name not in _UNKEPT}
    types["change"] = pl.String
    rows = []
    for trend in trends:
        for i, night in enumerate(trend.nights):
            about = {"night": night.name, "finished": night.finished, "gates": night.gates or None}
            about |= {"breaks": night.breaks or None, **night.facts}
            for one in trend.series:
                row = {
                    **about,
                    **one.row,
                    "number": one.title,
                    "value": one.values[i],
                    "lower": one.lower[i],
                    "upper": one.upper[i],
                    "change": next((one.reading(c) for c in one.changes if c.at == i), None),
                }
                rows.append([row.get(name) for name in types])
    return pl.DataFrame(rows, types, orient="row")


_GAUGES = {
    "evalengine_value": "Number of a run.",
    "evalengine_lower": "Low end of its interval.",
    "evalengine_upper": "High end of its interval.",
    "evalengine_gates_passed": "1 if all gates of a run passed, 0 if one failed.",
}


def history_gauges(trends: Sequence[Trend]) -> str:
    """Format the headline numbers and gates of all nights as OpenMetrics text.

    The time is the day of the night (00:00 UTC) if it is known, otherwise when it was scored.
    """
    samples: dict[tuple[Any, ...], Sample] = {}

    def add(name: str, labels: dict[str, str], value: float | None, at: float) -> None:
        if (name, *labels.items(), at) in samples:  # two runs at one time
            labels = {**labels, "run_id": run_id}
        if value is not None:
            samples[name, *labels.items(), at] = Sample(name, labels, value, at)

    for trend in trends:
        for i, night in enumerate(trend.nights):
            when = datetime.fromisoformat(night.facts.get("day") or night.finished)
            at = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
            common = {
                name: night.facts.get(name, "") for name in ("job", "task", "dialect", "group")
            }
            run_id = night.facts.get("run_id", "")
            for one in trend.series:
                row = {name: "" if v is None else str(v) for name, v in one.row.items()}
                for name, numbers in (("value", one.values), ("lower", one.lower)):
                    add(f"evalengine_{name}", {**common, **row}, numbers[i], at)
                add("evalengine_upper", {**common, **row}, one.upper[i], at)
            if night.gates in (PASSED, FAILED):
                add("evalengine_gates_passed", common, float(night.gates == PASSED), at)
    return openmetrics(samples.values(), _GAUGES)


def spark_table(trend: Trend) -> Table:
    """Make a table with one row per number: sparkline, last and extreme values, last change."""
    columns = [Column("metric", NAME), Column("trend", NAME), Column("last"), Column("lowest")]
    columns += [Column("highest"), Column("change", NOTE)]
    rows = []
    for one in trend.series:
        defined = [value for value in one.values if value is not None]
        last, low, high = (defined[-1], min(defined), max(defined)) if defined else (None,) * 3
        change = "too few nights" if one.few and trend.independent else UNDEFINED
        if one.changes:
            change = _describe(one, one.changes[-1], trend.nights)
        numbers = [Cell(number(value, counted=one.counted)) for value in (last, low, high)]
        rows.append(
            [Cell(plain(one.title)), Cell(spark(one.values)), *numbers, Cell(plain(change))]
        )
    return Table(columns, rows)
