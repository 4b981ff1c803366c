"""Charts as inline SVG, without scripts or fixed colours, with text for screen readers.

Colours are CSS custom properties with fallbacks readable on light and dark backgrounds: ``--c1`` to
``--c8``, ``--grid``, ``--ground``, ``--text``. Dashes and marks distinguish lines without colour.
Wide figures scroll within the page.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any
from xml.sax.saxutils import escape

from .chart_shapes import Axis, Bar, Bars, Chart, Drawn, Line, Matrix, described, supported

_WIDTH = 480
_TALL = 250
_LEFT, _RIGHT, _TOP = 46, 14, 26
_SIZE = 12
_EM = 0.56
_ARROW = " → "
_ROW = 20
_CELL = (34, 64)
_FEW = 25
"""A line of so many points has a mark at each."""
COLOURS = ("#2a78c8", "#c8501e", "#1a8a5f", "#b0459c", "#8a6d00", "#6b62d0", "#c2384f", "#4f7d8c")
"""Each has a contrast of 3 to 1 or more to white and to black."""
_GRID = "var(--grid,#8888884d)"
_TEXT = "var(--text,currentColor)"
_MARKS = (
    "M{x0} {y}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",  # circle
    "M{x0} {y0}h{d}v{d}h-{d}z",  # square
    "M{x} {y0}l{r} {d}h-{d}z",  # triangle
    "M{x} {y0}l{r} {r}l-{r} {r}l-{r} -{r}z",  # diamond
    "M{x0} {y0}l{r} {d}l{r} -{d}z",  # triangle, upside down
    "M{x0} {y}h{d}M{x} {y0}v{d}",  # plus
    "M{x0} {y0}l{d} {d}m-{d} 0l{d} -{d}",  # cross
    "M{x0} {y}h{d}",  # dash
)


def svg(chart: Drawn) -> str:
    """A chart as an ``<svg>`` element that is as wide as its place, up to 720 pixels."""
    kinds: dict[type[Any], Callable[[Any], tuple[list[str], float, float]]] = {
        Chart: _lines,
        Bars: lambda bars: _bars(bars) if bars.across is None else _histogram(bars),
        Matrix: _matrix,
    }
    parts, width, height = kinds[type(chart)](chart)
    least = f"min-width:{width * 0.8:.0f}px;" if width > _WIDTH else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" role="img"'
        f' class="chart" style="width:100%;{least}max-width:{width * 1.5:.0f}px;height:auto;'
        f'font:{_SIZE}px system-ui,sans-serif;fill:{_TEXT}">'
        f"<title>{_safe(chart.title)}</title><desc>{_safe(described(chart))}</desc>"
        f"{''.join(parts)}</svg>"
    )


def figure(chart: Drawn) -> str:
    """A chart with its title above and its note below, as a ``<figure>`` element."""
    note = f"<small>{_safe(chart.note)}</small>" if chart.note else ""
    return (
        f'<figure class="chart"><figcaption>{_safe(chart.title)}</figcaption>'
        f'<div style="overflow-x:auto">{svg(chart)}</div>{note}</figure>'
    )


def _safe(text: str) -> str:
    """Escape text for XML and replace unprintable characters."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _n(value: float) -> str:
    """A coordinate with one decimal."""
    text = f"{value:.1f}"
    return (
        text.removesuffix(".0").replace("-0", "0") if text in ("-0.0",) else text.removesuffix(".0")
    )


def _wide(text: str, size: float = _SIZE) -> float:
    """About how wide a text is."""
    return size * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else _EM for c in text)


def _cut(text: str, room: float, size: float = _SIZE) -> str:
    """Shorten a text in the middle, since names often differ at the end; in a pair, each side."""
    if _wide(text, size) <= room:
        return text
    if _ARROW in text:
        sides = text.split(_ARROW, 1)
        arrow = _wide(_ARROW, size)
        least = min(_wide(side, size) for side in sides)
        half = max((room - arrow) / 2, room - arrow - least)
        return _ARROW.join(_cut(side, half, size) for side in sides)
    head, tail = (len(text) + 1) // 2, len(text) // 2
    while head and _wide(text[:head] + "…" + text[len(text) - tail :], size) > room:
        head, tail = (head - 1, tail) if head >= tail else (head, tail - 1)
    return text[:head].rstrip() + "…" + text[len(text) - tail :].lstrip()


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    room: float | None = None,
    size: float = _SIZE,
    more: str = "",
) -> str:
    """Return a text element; a shortened text gets its full form as title."""
    shown = text if room is None else _cut(text, room, size)
    whole = f"<title>{_safe(text)}</title>" if shown != text else ""
    more += f' text-anchor="{anchor}"' if anchor != "start" else ""
    more += f' font-size="{_n(size)}"' if size != _SIZE else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{more}>{_safe(shown)}{whole}</text>'


def ticks(axis: Axis, most: int = 6) -> list[float]:
    """Numbers on an axis: those that it marks, if they are few; else round ones, at most so many,
    and one more."""
    reach = axis.high - axis.low
    if axis.marked is not None and len(axis.marked) <= most + 2:
        near = min((b - a for a, b in pairwise(axis.marked)), default=reach)
        if near >= reach / 20:
            return axis.marked
    if reach <= 0:
        return [axis.low]
    rough = reach / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first = math.ceil(axis.low / step - 1e-9)
    last = math.floor(axis.high / step + 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]


def shortest(value: float) -> str:
    """A number of an axis or cell in about four characters."""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            unit = min(size, 1e3) if mark == "k" else size
            return f"{value / unit:.3g}{mark}"
    return f"{value:,.10g}"


def _scale(axis: Axis, low: float, high: float) -> Callable[[float], float]:
    """From values to coordinates; an axis without reach has its value in the middle."""
    reach = axis.high - axis.low
    if reach <= 0:
        return lambda value: (low + high) / 2
    return lambda value: low + (value - axis.low) / reach * (high - low)


def _colour(i: int) -> str:
    i %= len(COLOURS)
    return f"var(--c{i + 1},{COLOURS[i]})"


def _mark(i: int, x: float, y: float, r: float) -> str:
    at = {"x": x, "y": y, "x0": x - r, "y0": y - r, "r": r, "d": 2 * r}
    return _MARKS[i % len(_MARKS)].format(**{name: _n(value) for name, value in at.items()})


def _axes(
    x: Axis, y: Axis, across: Callable[[float], float], up: Callable[[float], float], room: float
) -> list[str]:
    """Grid, numbers and titles of a chart with two axes."""
    base, right = _TOP + _TALL, _WIDTH - _RIGHT
    grid = [f"M{_LEFT} {_n(up(v))}H{right}" for v in ticks(y)]
    marks = [f"M{_n(across(v))} {base}v4" for v in ticks(x)]
    parts = [f'<path d="{"".join(grid + marks)}" style="fill:none;stroke:{_GRID}"/>']
    parts += [_text(_LEFT - 6, up(v) + 4, shortest(v), anchor="end") for v in ticks(y)]
    parts += [_text(across(v), base + 17, shortest(v), anchor="middle") for v in ticks(x)]
    parts.append(_text(4, 14, y.title, room=_WIDTH - 8))
    parts.append(_text(right, base + 34, x.title, anchor="end", room=room))
    return parts


def _lines(chart: Chart) -> tuple[list[str], float, float]:
    across = _scale(chart.x, _LEFT + 4, _WIDTH - _RIGHT)
    up = _scale(chart.y, _TOP + _TALL, _TOP)
    parts = _axes(chart.x, chart.y, across, up, _WIDTH - _LEFT - _RIGHT)
    if chart.diagonal:
        low, high = max(chart.x.low, chart.y.low), min(chart.x.high, chart.y.high)
        parts.append(
            f'<path d="M{_n(across(low))} {_n(up(low))}L{_n(across(high))} {_n(up(high))}"'
            f' style="stroke:{_TEXT};opacity:.4" stroke-dasharray="1 4"/>'
        )
    own = [line.name for line in chart.lines if not line.baseline]
    entries: list[tuple[str, str]] = []
    plain = sum(not line.whole for line in chart.lines if not line.baseline)
    for line in reversed(chart.lines):  # the whole on top
        place = own.index(line.name) if line.name in own else 0
        i = place - (len(own) - plain)
        style = _style(line, i)
        parts.append(_drawn(line, i, style, across, up, place))
        if not line.baseline:
            swatch = f'<path d="M0 -4h22" style="{style}"/>'
            mark = "" if line.whole else f'<path d="{_mark(i, 11, -4, 3.5)}" style="{style}"/>'
            entries.append((swatch + mark, supported(line.name, line.support)))
    entries.reverse()
    if any(line.baseline for line in chart.lines):
        dashed = f'<path d="M0 -4h22" stroke-dasharray="5 4" style="fill:none;stroke:{_TEXT}"/>'
        entries.append((dashed, "baseline"))
    legend, height = _legend(entries, _TOP + _TALL + 54)
    return [*parts, *legend], _WIDTH, height


def _style(line: Line, i: int) -> str:
    if line.whole:
        return f"fill:none;stroke:{_TEXT};stroke-width:2.5"
    return f"fill:none;stroke:{_colour(i)};stroke-width:1.6"


def _drawn(
    line: Line,
    i: int,
    style: str,
    across: Callable[[float], float],
    up: Callable[[float], float],
    place: int,
) -> str:
    """A line with its gaps, marks and intervals."""
    points = [
        (across(x), None if y is None else up(y)) for x, y in zip(line.x, line.y, strict=True)
    ]
    way = ""
    for there, some in groupby(points, key=lambda at: at[1] is not None):
        run = [f"{_n(x)} {_n(y)}" for x, y in some if y is not None]
        if there:  # a point by itself has a line of no length, whose round ends show
            way += "M" + "L".join(run if len(run) > 1 else run * 2)
    known = [(n, x, y) for n, (x, y) in enumerate(points) if y is not None]
    dashes = ' stroke-dasharray="5 4"' if line.baseline else ""
    out = f'<path d="{way}"{dashes} stroke-linecap="round" stroke-linejoin="round"/>'
    if len(known) <= _FEW:
        shown = known
    else:  # marks of several lines are side by side
        shown = (
            [] if line.baseline or line.whole else known[5 + 3 * place :: max(1, len(known) // 4)]
        )
    top = max(line.counts or [1]) or 1
    for n, x, y in shown:
        r = 3.5 if line.counts is None else 2 + 5 * math.sqrt(line.counts[n] / top)
        said = f"{line.x[n]:.4g}: {line.y[n]:.4g}" if line.counts or len(known) <= _FEW else ""
        said += f", n {line.counts[n]:,}" if line.counts else ""
        titled = f"<title>{_safe(said)}</title>" if said else ""
        out += f'<path d="{_mark(i, x, y, r)}">{titled}</path>'
    if line.low is not None and line.high is not None:
        reach = zip(points, line.low, line.high, strict=True)
        whiskers = [
            f"M{_n(x)} {_n(up(low))}V{_n(up(high))}"
            for (x, _), low, high in reach
            if low is not None and high is not None
        ]
        out += f'<path d="{"".join(whiskers)}" opacity=".5"/>'
    faint = ";opacity:.75" if line.baseline else ""
    return f'<g style="{style}{faint}">{out}</g>'


def _legend(entries: Sequence[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Return rows of swatches and names, and the y position below them."""
    parts, x = [], 6.0
    for swatch, name in entries:
        room = min(_wide(name), _WIDTH - 44) + 32
        if x > 6 and x + room > _WIDTH:
            x, y = 6.0, y + 18
        parts.append(f'<g transform="translate({_n(x)} {_n(y)})">{swatch}')
        parts.append(_text(27, 0, name, room=_WIDTH - 44) + "</g>")
        x += room + 6
    return parts, y + 8


def _bars(chart: Bars) -> tuple[list[str], float, float]:
    """Bars below each other: name, bar with interval, value."""
    told = [_value(bar, chart) for bar in chart.bars]
    size = 11.0
    after = max(_wide(text, size) for text in told) + 14
    before = min(max(_wide(bar.name) for bar in chart.bars) + 16, _WIDTH - after - 130)
    across = _scale(chart.axis, before, _WIDTH - after)
    base = 22 + _ROW * len(chart.bars)
    marks = ticks(chart.axis, 4)
    grid = "".join(f"M{_n(across(v))} 20V{_n(base + 4)}" for v in marks)
    parts = [f'<path d="{grid}" style="fill:none;stroke:{_GRID}"/>']
    parts += [_text(across(v), base + 17, shortest(v), anchor="middle") for v in marks]
    parts.append(_text(4, 13, chart.axis.title, room=_WIDTH - 8))
    zero = across(min(max(0.0, chart.axis.low), chart.axis.high))
    for n, (bar, text) in enumerate(zip(chart.bars, told, strict=True)):
        y = 22 + _ROW * n
        parts.append(_text(4, y + 14, bar.name, room=before - 10))
        parts.append(_bar(bar, y, across, zero, dot=chart.dots))
        parts.append(_text(_WIDTH - 4, y + 14, text, anchor="end", size=size))
    entries = []
    if chart.reference is not None:
        value, name = chart.reference
        line = f'stroke-dasharray="2 3" style="fill:none;stroke:{_TEXT}"'
        parts.append(f'<path d="M{_n(across(value))} 20V{_n(base)}" {line}/>')
        entries.append((f'<path d="M11 -12v14" {line}/>', f"{name} {value:.4g}"))
    if any(bar.baseline is not None for bar in chart.bars):
        entries.append((f'<path d="{_mark(3, 11, -4, 4.5)}" {_HOLLOW}/>', "baseline"))
    if any(bar.low is not None for bar in chart.bars):
        entries.append((f'<path d="M0 -4h22" {_WHISKER}/>', "interval"))
    legend, height = _legend(entries, base + 36)
    return [*parts, *legend], _WIDTH, height if entries else base + 24


_HOLLOW = f'style="fill:var(--ground,#fff);stroke:{_TEXT};stroke-width:1.3"'
_WHISKER = f'style="fill:none;stroke:{_TEXT};stroke-width:1.3"'


def _value(bar: Bar, chart: Bars) -> str:
    """A bar's numbers in words."""
    if bar.value is None:
        return "undefined"
    if chart.counts:
        return f"{bar.value:,.0f}"
    sign = "+" if chart.dots else ""

    def number(value: float) -> str:
        if abs(value) >= 10 or (value.is_integer() and abs(value) >= 2):
            return f"{value:{sign},.4g}" if abs(value) < 1e4 else shortest(value)
        form = ".3f" if abs(value) >= 0.001 or not value else ".4f" if abs(value) > 5e-5 else ".0e"
        return f"{value:{sign}{form}}"

    said = number(bar.value)
    if bar.low is not None and bar.high is not None:
        said += f" [{number(bar.low)}, {number(bar.high)}]"
    if bar.says:
        return f"{said} {bar.says}"
    return said if bar.support is None else f"{said} n {shortest(bar.support)}"


def _bar(bar: Bar, y: float, across: Callable[[float], float], zero: float, *, dot: bool) -> str:
    parts = ""
    middle = y + _ROW / 2
    if bar.value is not None:
        at = across(bar.value)
        if dot:
            mark = {"better": 2, "worse": 4}.get(bar.says, 0)
            i = {"better": 2, "worse": 1}.get(bar.says, 7)
            parts += f'<path d="{_mark(mark, at, middle, 4.5)}" style="fill:{_colour(i)}"/>'
        else:
            low, wide = min(zero, at), abs(at - zero)
            parts += (
                f'<rect x="{_n(low)}" y="{_n(y + 4)}" width="{_n(max(wide, 0.8))}"'
                f' height="{_ROW - 8}" style="fill:{_colour(0)};opacity:.65"/>'
            )
    if bar.low is not None and bar.high is not None:
        low, high = across(bar.low), across(bar.high)
        ends = f"M{_n(low)} {_n(middle - 3)}v6M{_n(high)} {_n(middle - 3)}v6"
        parts += f'<path d="M{_n(low)} {_n(middle)}H{_n(high)}{ends}" {_WHISKER}/>'
    if bar.baseline is not None:
        hollow = _mark(3, across(bar.baseline), middle, 4.5)
        said = f"<title>baseline {bar.baseline:.4g}</title>"
        parts += f'<path d="{hollow}" {_HOLLOW}>{said}</path>'
    return parts


def _histogram(chart: Bars) -> tuple[list[str], float, float]:
    """Upright bars side by side; the baseline's as a dashed outline."""
    assert chart.across is not None
    across = _scale(chart.across, _LEFT + 4, _WIDTH - _RIGHT)
    up = _scale(chart.axis, _TOP + _TALL, _TOP)
    parts = _axes(chart.across, chart.axis, across, up, _WIDTH - _LEFT - _RIGHT)
    outline = ""
    for bar in chart.bars:
        low, high = bar.span or (0.0, 0.0)
        left, right = across(low), across(high)
        top = up(bar.value or 0.0)
        said = f"<title>{_safe(bar.name)}: {bar.value or 0.0:,.0f}</title>"
        if bar.value:
            parts.append(
                f'<rect x="{_n(left + 0.5)}" y="{_n(top)}" width="{_n(max(right - left - 1, 0.5))}"'
                f' height="{_n(_TOP + _TALL - top)}" style="fill:{_colour(0)};opacity:.75">'
                f"{said}</rect>"
            )
        if bar.baseline is not None:
            outline += f"{'L' if outline else 'M'}{_n(left)} {_n(up(bar.baseline))}H{_n(right)}"
    height = _TOP + _TALL + 42.0
    if outline:
        style = f'stroke-dasharray="5 4" style="fill:none;stroke:{_TEXT};stroke-width:1.6"'
        parts.append(f'<path d="{outline}" {style}/>')
        legend, height = _legend([(f'<path d="M0 -4h22" {style}/>', "baseline")], _TOP + _TALL + 54)
        parts += legend
    return parts, _WIDTH, height


def _matrix(chart: Matrix) -> tuple[list[str], float, float]:
    """A grid of counts, a cell as dark as its share of the row."""
    size = 11.0
    before = min(max(map(_wide, chart.rows)) + 12, 130.0)
    cell = min(max((_WIDTH - before - 4) / len(chart.columns), _CELL[0]), _CELL[1])
    longest = max(map(_wide, chart.columns))
    turned = longest > cell - 4
    top = 22 + (min(longest, 110.0) + 8 if turned else 18)
    tall = min(cell, 34.0)
    parts = [_text(4, 13, "actual \\ predicted")]
    for n, name in enumerate(chart.columns):
        x = before + cell * (n + 0.5)
        if turned:
            turn = f' transform="rotate(-90 {_n(x + 4)} {_n(top - 5)})"'
            parts.append(_text(x + 4, top - 5, name, room=top - 28, more=turn))
        else:
            parts.append(_text(x, top - 5, name, anchor="middle", room=cell - 4))
    for m, (name, counts) in enumerate(zip(chart.rows, chart.counts, strict=True)):
        y = top + tall * m
        parts.append(_text(4, y + tall / 2 + 4, name, room=before - 10))
        parts += _cells(chart, m, counts, (before, y, cell, tall), size)
    width = max(_WIDTH, before + cell * len(chart.columns) + 6)
    return parts, width, top + tall * len(chart.rows) + 8


def _cells(
    chart: Matrix,
    m: int,
    counts: Sequence[int],
    box: tuple[float, float, float, float],
    size: float,
) -> Iterator[str]:
    left, y, wide, tall = box
    total = sum(counts) or 1
    for n, count in enumerate(counts):
        right = m == n and chart.rows[m] == chart.columns[n]
        x = left + wide * n
        fill = f"fill:{_colour(0 if right else 1)};fill-opacity:{0.5 * count / total:.2f}"
        edge = f"stroke:{_TEXT};stroke-width:1.2" if right else f"stroke:{_GRID}"
        said = f"{count:,} of {chart.rows[m]} predicted as {chart.columns[n]}"
        said += f", {chart.before[m][n]:,} in the baseline" if chart.before is not None else ""
        yield (
            f'<rect x="{_n(x + 1)}" y="{_n(y + 1)}" width="{_n(wide - 2)}" height="{_n(tall - 2)}"'
            f' style="{fill};{edge}"><title>{_safe(said)}</title></rect>'
        )
        change = count - chart.before[m][n] if chart.before is not None else 0
        at = x + wide / 2, y + tall / 2
        if count or change:
            up = 2 if change else -4
            yield _text(at[0], at[1] - up, shortest(count), anchor="middle", size=size)
        if change:
            text = f"{'+' if change > 0 else '−'}{shortest(abs(change))}"
            yield _text(at[0], at[1] + 10, text, anchor="middle", size=size - 2)
