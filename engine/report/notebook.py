"""A scorecard in a notebook: headline, labels, confusion, slices, and one curve."""

from __future__ import annotations

import html
from itertools import islice
from typing import TYPE_CHECKING

from ..schemas.display import texts
from .charts import Numbers, Want, drawn, frames_of
from .summary import (
    footnotes,
    grid_table,
    headed,
    heading,
    headline_table,
    limited,
    made,
    ordered_notes,
    remarks,
    row_counts,
    sections,
    tables_of,
    unnumbered,
)
from .svg import svg
from .tables import Grid
from .text import as_html as as_table

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_NOTEBOOK = (10, 10)
_CURVES = ("precision_recall", "ks", "distribution", "calibration")
"""Charts in order of preference; the first available one is shown, plus the confusion matrix."""
_CONFUSION = "confusion"


def as_html(card: Scorecard) -> str:
    """Return the notebook view as HTML: headline numbers, per-label table, slices."""
    parts = [f"<p><b>Scorecard</b> {html.escape(heading(card))}</p>"]
    all_sections = sections(card)
    for section in all_sections:
        if headed(section, all_sections):
            parts.append(f"<h4>label key {html.escape(section.label_key or '')}</h4>")
        if section.headline:
            parts.append(as_table(headline_table(section)))
        parts += map(_grid, tables_of(section))
        parts += [f"<div><small>{html.escape(line)}</small></div>" for line in footnotes(section)]
    if empty := unnumbered(card, bool(all_sections)):
        parts.append(f"<div>{empty}</div>")
    parts += _pictures(card)
    parts += [
        f"<div><small>{'<b>warning:</b> ' * (kind == 'warning')}{html.escape(note)}</small></div>"
        for kind, note in ordered_notes(card)
    ]
    heights = dict(made(card))
    parts.append(
        "<div><small>frames: "
        + (
            ", ".join(f"<code>.{name}</code>{row_counts(heights, name)}" for name in card.frames)
            or "none"
        )
        + "</small></div>"
    )
    return "<div>" + "".join(parts) + "</div>"


def _grid(grid: Grid) -> str:
    shown, after, left_out = limited(grid, *_NOTEBOOK)
    table = grid_table(grid, shown)
    if left_out:
        table.rows.insert(after, texts(f"… {left_out} more", *[""] * (len(table.columns) - 1)))
    message = "; ".join(remarks(grid))
    return as_table(table) + (
        f"<div><small>{html.escape(message)}</small></div>" if message else ""
    )


def _pictures(card: Scorecard) -> list[str]:
    """Return one curve and the confusion matrix, if the run has them."""
    run, want = Numbers(card.metrics, frames_of(card)), Want(card.directions)
    curves = (one for kind in _CURVES for one in drawn(kind, run, None, want))
    shown = [*islice(curves, 1), *drawn(_CONFUSION, run, None, want)[:1]]
    return [
        f'<div style="max-width:30em"><b>{html.escape(one.title)}</b>{svg(one)}</div>'
        for one in shown
    ]
