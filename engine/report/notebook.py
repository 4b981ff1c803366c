"""A scorecard in a notebook: headline, labels, confusion, slices, and one curve."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .charts import charts, frames_of
from .summary import (
    beside,
    cells,
    figure,
    footnotes,
    headed,
    heading,
    limited,
    made,
    rows_said,
    sections,
    supported,
    tables_of,
    told,
    unnumbered,
)
from .svg import svg
from .tables import Grid

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_NOTEBOOK = (10, 10)
_CURVES = ("precision_recall", "ks", "distribution", "calibration")
"""Charts in order of preference; the first available one is shown, plus the confusion matrix."""
_CONFUSION = "confusion"


def as_html(card: Scorecard) -> str:
    """Return the notebook view as HTML: headline numbers, per-label table, slices."""
    parts = [f"<p><b>Scorecard</b> {html.escape(heading(card))}</p>"]
    found = sections(card)
    for section in found:
        if headed(section, found):
            parts.append(f"<h4>label key {html.escape(section.label_key or '')}</h4>")
        rows = [[line.title, figure(line), line.note] for line in section.headline]
        if rows:
            parts.append(_html_table(("metric", "value", "at"), rows, 1))
        parts += [_html_grid(grid) for grid in tables_of(section)]
        parts += [f"<div><small>{html.escape(line)}</small></div>" for line in footnotes(section)]
    if empty := unnumbered(card, bool(found)):
        parts.append(f"<div>{empty}</div>")
    parts += _pictures(card)
    parts += [
        f"<div><small>{'<b>warning:</b> ' * (kind == 'warning')}{html.escape(note)}</small></div>"
        for kind, note in told(card)
    ]
    heights = dict(made(card))
    parts.append(
        "<div><small>frames: "
        + (
            ", ".join(f"<code>.{name}</code>{rows_said(heights, name)}" for name in card.frames)
            or "none"
        )
        + "</small></div>"
    )
    return "<div>" + "".join(parts) + "</div>"


def _html_grid(grid: Grid) -> str:
    shown, after, left_out = limited(grid, *_NOTEBOOK)
    rows = [[*row.names, *cells(grid, row), supported(row)] for row in shown]
    header = (*grid.names, *grid.columns, "support")
    if left_out:
        rows.insert(after, [f"… {left_out} more", *[""] * (len(header) - 1)])
    table = _html_table(header, rows, len(grid.names))
    said = "; ".join(beside(grid))
    return f"{table}<div><small>{html.escape(said)}</small></div>" if said else table


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> str:
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]

    def cells(row: Sequence[str], tag: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        sides = ["left" if i < names or header[i] == "at" else "right" for i in kept]
        return "".join(
            f'<{tag}{scope} style="text-align:{side}">{html.escape(row[i])}</{tag}>'
            for i, side in zip(kept, sides, strict=True)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _pictures(card: Scorecard) -> list[str]:
    """One curve and the confusion matrix, as far as the run has them."""
    every = charts(card.metrics, frames_of(card), card.directions)
    curve = [one for kind in _CURVES for one in every if one.kind == kind][:1]
    confusion = [one for one in every if one.kind == _CONFUSION][:1]
    return [
        f'<div style="max-width:30em"><b>{html.escape(one.title)}</b>{svg(one)}</div>'
        for one in (*curve, *confusion)
    ]
