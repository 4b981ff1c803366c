"""Charts as inline SVG, without scripts or fixed colours, with text for screen readers.

Colours are CSS custom properties with fallbacks readable on light and dark backgrounds: ``--c1`` to
``--c8``, ``--grid``, ``--ground``, ``--text``. Dashes and symbols distinguish lines without colour.
Wide figures scroll within the page.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any
from xml.sax.saxutils import escape

from ..schemas.display import COLOURS, Areas, Band, Chart, Line, Mark, Points, Scale, Texts
from .text import shorten_distinctly

_WIDTH = 480
_TALL = 250
_SIZE = 12
_SMALL = 11.0
_EM = 0.56
_ARROW = " → "
_ROW = 20
_CELL = (38.0, 68.0)
_GRID = "var(--grid,#8888884d)"
_TEXT = "var(--text,currentColor)"
_SYMBOLS = (
    "M{x0} {y}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
    "M{x0} {y0}h{d}v{d}h-{d}z",
    "M{x} {y0}l{r} {d}h-{d}z",
    "M{x} {y0}l{r} {r}l-{r} {r}l-{r} -{r}z",
    "M{x0} {y0}h{d}l-{r} {d}z",
    "M{x0} {y}h{d}M{x} {y0}v{d}",
    "M{x0} {y0}l{d} {d}m-{d} 0l{d} -{d}",
    "M{x0} {y}h{d}",
    "M{x} {y0}v{d}",
)
"""Paths of the symbols in :mod:`evalengine.schemas.display`."""

Place = Callable[[float], float]
"""Function from a value to a coordinate."""


def svg(chart: Chart) -> str:
    """Return a chart as an ``<svg>`` element that is as wide as its place, up to 720 pixels."""
    x, y = chart.x, chart.y
    left, right, top, tall, width = 46.0, 14.0, 26.0, float(_TALL), float(_WIDTH)
    turned = False
    if y.names:
        right = max((_wide(text, _SMALL) for text in y.after), default=0.0) + 14 if y.after else 6.0
        left = max(map(_wide, y.names)) + 16
        left = min(left, 130.0 if x.names else _WIDTH - right - 130)
        tall = float(_ROW * len(y.names))
    if x.names:
        cell = min(max((_WIDTH - left - right) / len(x.names), _CELL[0]), _CELL[1])
        longest = max(map(_wide, x.names))
        turned = longest > cell - 4
        top = 22 + (min(longest, 110.0) + 8 if turned else 18)
        tall = min(cell, 38.0) * len(y.names)
        width = max(width, left + cell * len(x.names) + right)
        right = width - left - cell * len(x.names)
    across, up = _place(x, left, width - right), _place(y, top + tall, top)
    parts = _axes(chart, (left, width - right, top, top + tall), across, up, turned=turned)
    parts += [_DRAW[type(mark)](mark, across, up) for mark in chart.marks]
    legend, height = _legend(chart.marks, top + tall + (20 if x.names else 54 if y.title else 36))
    least = f"min-width:{width * 0.8:.0f}px;" if width > _WIDTH else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" role="img"'
        f' class="chart" style="width:100%;{least}max-width:{width * 1.5:.0f}px;height:auto;'
        f'font:{_SIZE}px system-ui,sans-serif;fill:{_TEXT}">'
        f"<title>{_safe(chart.title)}</title><desc>{_safe(chart.alt)}</desc>"
        f"{''.join([*parts, *legend])}</svg>"
    )


def figure(chart: Chart) -> str:
    """Return a chart with title and note as a ``<figure>`` element."""
    note = f"<small>{_safe(chart.note)}</small>" if chart.note else ""
    return (
        f'<figure class="chart"><figcaption>{_safe(chart.title)}</figcaption>'
        f'<div style="overflow-x:auto">{svg(chart)}</div>{note}</figure>'
    )


def ticks(scale: Scale, most: int = 6) -> list[float]:
    """Return the values to mark: the scale's ticks if they are few, otherwise round numbers.

    Args:
        most: about the largest number of round numbers; there may be one more.
    """
    reach = scale.high - scale.low
    if scale.ticks is not None and len(scale.ticks) <= most + 2:
        gap = min((b - a for a, b in pairwise(scale.ticks)), default=reach)
        if gap >= reach / 20:
            return scale.ticks
    if reach <= 0:
        return [scale.low]
    rough = reach / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first = math.ceil(scale.low / step - 1e-9)
    last = math.floor(scale.high / step + 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]


def shortest(value: float) -> str:
    """Format a number of an axis or cell in about four characters."""
    for size, unit, mark in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= size:
            return f"{value / unit:.3g}{mark}"
    return f"{value:,.10g}"


def _place(scale: Scale, low: float, high: float) -> Place:
    """Return the function from a value to a coordinate; a scale of one value is centred."""
    if scale.names:
        first, step = min(low, high), abs(high - low) / len(scale.names)
        return lambda value: first + (value + 0.5) * step
    reach = scale.high - scale.low
    if reach <= 0:
        return lambda value: (low + high) / 2
    return lambda value: low + (value - scale.low) / reach * (high - low)


def _safe(text: str) -> str:
    """Escape text for XML and replace unprintable characters."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _n(value: float) -> str:
    """Format a coordinate with one decimal."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def _wide(text: str, size: float = _SIZE) -> float:
    """Estimate the width of a text in pixels."""
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
    displayed: str = "",
) -> str:
    """Return a text element; a text that is shortened or ``displayed`` otherwise is its title."""
    displayed = displayed or (text if room is None else _cut(text, room, size))
    title = f"<title>{_safe(text)}</title>" if displayed != text else ""
    more += f' text-anchor="{anchor}"' if anchor != "start" else ""
    more += f' font-size="{_n(size)}"' if size != _SIZE else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{more}>{_safe(displayed)}{title}</text>'


def _axes(
    chart: Chart, box: tuple[float, float, float, float], across: Place, up: Place, *, turned: bool
) -> list[str]:
    """Return the elements of both scales: grid, numbers, names and titles."""
    x, y, (left, right, top, base) = chart.x, chart.y, box
    parts = [_text(4, 14, y.title or x.title, room=_WIDTH - 8)]
    grid = ""
    if y.names:
        names = shorten_distinctly(y.names, left - 10, _cut, _wide)
        for n, name in enumerate(y.names):
            parts.append(_text(4, up(n) + 4, name, displayed=names[n]))
        parts += [
            _text(_WIDTH - 4, up(n) + 4, text, anchor="end", size=_SMALL)
            for n, text in enumerate(y.after)
        ]
    else:
        grid += "".join(f"M{_n(left)} {_n(up(v))}H{_n(right)}" for v in ticks(y))
        parts += [_text(left - 6, up(v) + 4, shortest(v), anchor="end") for v in ticks(y)]
    if x.names:
        room = top - 28 if turned else across(1) - across(0) - 4
        names = shorten_distinctly(x.names, room, _cut, _wide)
        for n, name in enumerate(x.names):
            at = across(n)
            if turned:
                turn = f' transform="rotate(-90 {_n(at + 4)} {_n(top - 5)})"'
                parts.append(_text(at + 4, top - 5, name, displayed=names[n], more=turn))
            else:
                parts.append(_text(at, top - 5, name, anchor="middle", displayed=names[n]))
    else:
        marked = ticks(x, 4 if y.names else 6)
        above = top if y.names else base
        grid += "".join(f"M{_n(across(v))} {_n(above)}V{_n(base + 4)}" for v in marked)
        scale_texts = dict(zip(marked, x.texts or map(shortest, marked), strict=True))
        if x.texts and sum(map(_wide, x.texts)) + _SIZE * (len(marked) - 1) > right - left:
            scale_texts |= dict.fromkeys(marked[:-1], "")  # names would overlap: show only the last
        sides = dict.fromkeys(marked, "middle")
        if x.texts:
            sides |= {marked[0]: "start", marked[-1]: "end"} if len(marked) > 1 else {}
        named = [v for v in marked if scale_texts[v]]
        parts += [_text(across(v), base + 17, scale_texts[v], anchor=sides[v]) for v in named]
        if y.title:
            parts.append(_text(right, base + 34, x.title, anchor="end", room=right - left))
    return [f'<path d="{grid}" style="fill:none;stroke:{_GRID}"/>', *parts]


def _colour(i: int) -> str:
    return f"var(--c{i % len(COLOURS) + 1},{COLOURS[i % len(COLOURS)]})" if i >= 0 else _TEXT


def _symbol(i: int, x: float, y: float, r: float) -> str:
    at = {"x": x, "y": y, "x0": x - r, "y0": y - r, "r": r, "d": 2 * r}
    return _SYMBOLS[i].format(**{name: _n(value) for name, value in at.items()})


def _stroke(mark: Line) -> str:
    dashes = f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
    faint = f";opacity:{mark.opacity:g}" if mark.opacity < 1 else ""
    width = f"stroke-width:{mark.width:g}"
    return f'{dashes} style="fill:none;stroke:{_colour(mark.colour)};{width}{faint}"'


def _line(mark: Line, across: Place, up: Place) -> str:
    path = ""
    for is_defined, some in groupby(
        zip(mark.x, mark.y, strict=True), key=lambda at: at[1] is not None
    ):
        if is_defined:  # a single point is a line of length 0, visible by its round caps
            run = [f"{_n(across(x))} {_n(up(y))}" for x, y in some if y is not None]
            path += "M" + "L".join(run if len(run) > 1 else run * 2)
    return f'<path d="{path}" stroke-linecap="round" stroke-linejoin="round"{_stroke(mark)}/>'


def _band(mark: Band, across: Place, up: Place) -> str:
    path = ""
    rows = zip(mark.x, mark.low, mark.high, strict=True)
    for is_defined, some in groupby(rows, key=lambda at: None not in at):
        if is_defined:
            run = list(some)
            edge = [f"{_n(across(x))} {_n(up(low or 0.0))}" for x, low, _ in run]
            edge += [f"{_n(across(x))} {_n(up(high or 0.0))}" for x, _, high in reversed(run)]
            path += f"M{'L'.join(edge)}z"
    look = f"fill:{_colour(mark.colour)};fill-opacity:{mark.opacity:g};stroke:none"
    return f'<path d="{path}" style="{look}"/>'


def _look(mark: Points) -> str:
    fill = "var(--ground,#fff)" if mark.hollow else "none" if mark.symbol >= 5 else None
    colour = _colour(mark.colour)
    return f'style="fill:{fill or colour};stroke:{colour};stroke-width:1.3"'


def _points(mark: Points, across: Place, up: Place) -> str:
    radius = mark.radius if len(mark.radius) > 1 else [*mark.radius] * len(mark.x)
    paths = [
        _symbol(mark.symbol, across(x), up(y), r)
        for x, y, r in zip(mark.x, mark.y, radius, strict=True)
    ]
    if mark.titles:
        titles = [f"<title>{_safe(title)}</title>" for title in mark.titles]
        symbols = "".join(
            f'<path d="{path}">{title}</path>' for path, title in zip(paths, titles, strict=True)
        )
    else:
        symbols = f'<path d="{"".join(paths)}"/>'
    return f"<g {_look(mark)}>{symbols}</g>"


def _areas(mark: Areas, across: Place, up: Place) -> str:
    out = ""
    for one in mark.areas:
        x, x1 = sorted((across(one.left), across(one.right)))
        y, y1 = sorted((up(one.low), up(one.high)))
        edge = f";stroke:{_TEXT};stroke-width:1.2" if one.outlined else ""
        message = f"<title>{_safe(one.title)}</title>" if one.title else ""
        rect = (
            f'<rect x="{_n(x + 0.5)}" y="{_n(y)}" width="{_n(max(x1 - x - 1, 0.8))}"'
            f' height="{_n(y1 - y)}" style="fill:{_colour(one.colour)};'
            f'fill-opacity:{one.opacity:.2f}{edge}">{message}</rect>'
        )
        out += f'<a href="{_safe(one.link)}">{rect}</a>' if one.link else rect
    return out


def _texts(mark: Texts, across: Place, up: Place) -> str:
    return "".join(
        _text(across(x), up(y) + 4, text, anchor="middle", size=_SMALL) for x, y, text in mark.texts
    )


_DRAW: dict[type[Any], Callable[[Any, Place, Place], str]] = {
    Line: _line,
    Band: _band,
    Points: _points,
    Areas: _areas,
    Texts: _texts,
}


def _legend(marks: Sequence[Mark], y: float) -> tuple[list[str], float]:
    """Return rows of samples and names, and the y position below them."""
    samples: dict[str, str] = {}
    for mark in reversed(marks):  # the last mark is on top, and first in the legend
        if not mark.legend:
            continue
        if isinstance(mark, Line):
            sample = f'<path d="M0 -4h22"{_stroke(mark)}/>'
        elif isinstance(mark, Band):
            look = f"fill:{_colour(mark.colour)};fill-opacity:{mark.opacity:g}"
            sample = f'<rect y="-9" width="22" height="10" style="{look}"/>'
        elif isinstance(mark, Points):
            sample = f'<path d="{_symbol(mark.symbol, 11, -4, 3.5)}" {_look(mark)}/>'
        else:
            sample = f'<rect y="-9" width="22" height="10" style="fill:{_colour(0)};opacity:.7"/>'
        samples[mark.legend] = sample + samples.get(mark.legend, "")
    parts, x = [], 6.0
    for name, sample in samples.items():
        room = min(_wide(name), _WIDTH - 44) + 32
        if x > 6 and x + room > _WIDTH:
            x, y = 6.0, y + 18
        parts.append(f'<g transform="translate({_n(x)} {_n(y)})">{sample}')
        parts.append(_text(27, 0, name, room=_WIDTH - 44) + "</g>")
        x += room + 6
    return parts, y + 8 if samples else y - 12
