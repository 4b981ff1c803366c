"""A scorecard in a few lines: for the prompt, for a notebook, as Markdown.

Everything is built from :mod:`evalengine.display.sections`; nothing here needs rich.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..schemas.contract import DEFAULT_LABEL_KEY
from .grids import Support
from .sections import Grid, Number, Section, exact_headline, sections

if TYPE_CHECKING:
    from ..scorecard import Scorecard

UNDEFINED = "–"
BEST = 5
WORST = 10
SLICES = 30
BINS = 30
_NAMED = 3
_NOTEBOOK = (10, 10)


def number(value: Number) -> str:
    """Four decimals, or as many digits as a count needs; a dash where undefined."""
    if value is None:
        return UNDEFINED
    if value.is_integer() and abs(value) >= 2:
        return f"{value:.0f}"
    return f"{value:.4f}"


def cell(grid: Grid, value: Number) -> str:
    """A number of a grid."""
    return f"{value:.0f}" if grid.counts and value is not None else number(value)


def plain(text: str) -> str:
    """Text that cannot break a line or steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str, width: int = 26) -> str:
    """Text in at most so many characters."""
    text = plain(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def limited(
    grid: Grid, best: int, worst: int
) -> tuple[list[tuple[tuple[str, ...], tuple[Number, ...], Support]], int, int]:
    """The first and last rows of a long table; undefined ones give way first.

    Returns:
        rows; after how many of them rows were left out; how many were left out.
    """
    if len(grid.rows) <= best + worst:
        return grid.rows, 0, 0
    defined = [row for row in grid.rows if row[1][0] is not None]
    rows = defined if len(defined) >= best + worst else grid.rows
    tail = rows[len(rows) - worst :] if worst else []
    return [*rows[:best], *tail], best, len(grid.rows) - best - worst


def reasons(undefined: dict[str, list[str]], kind: str = "") -> list[str]:
    """One line per reason why something is undefined."""
    lines = []
    for reason, names in undefined.items():
        said = ", ".join(plain(name) for name in names[:_NAMED])
        rest = len(names) - _NAMED
        if rest > 0:
            said += f" and {rest} more"
        lines.append(f"{UNDEFINED} {reason}: {kind}{said}")
    return lines


def heading(card: Scorecard) -> str:
    """Task, dialect, and what was read."""
    said = f"{card.task}, dialect {card.dialect}"
    read = [f"{n:,} {name.replace('_', ' ')}" for name, n in card.read.items()]
    return f"{said}: {', '.join(read)}" if read else said


def told(card: Scorecard) -> list[tuple[str, str]]:
    """Notes with what they are called, warnings first."""
    rest = [note for note in card.notes if note not in card.warnings]
    return [*(("warning", one) for one in card.warnings), *(("note", one) for one in rest)]


def _grids(section: Section) -> list[Grid]:
    return [grid for grid in (*section.tables, section.labels, *section.slices) if grid is not None]


def footnotes(section: Section) -> list[str]:
    """Why numbers of a section are undefined, each label once."""
    lines = reasons(section.undefined)
    if section.labels is not None:
        lines += reasons(section.labels.undefined, "label ")
    for grid in section.slices:
        lines += reasons(grid.undefined, f"{grid.title} ")
    return lines


def as_text(card: Scorecard) -> str:
    """What the prompt shows: the headline, the worst labels, what else there is."""
    lines = [f"Scorecard: {heading(card)}"]
    found = sections(card)
    for section in found:
        if section.label_key is not None and (
            len(found) > 1 or section.label_key != DEFAULT_LABEL_KEY
        ):
            lines.append(f"{plain(section.label_key)}:")
        width = max((len(line.title) for line in section.headline), default=0)
        lines += [
            f"  {line.title:<{width}}  {number(line.value)}"
            + (f"  {line.note}" if line.note else "")
            for line in section.headline
        ]
        lines += [f"  {grid.title}: {len(grid.rows)} rows" for grid in section.tables]
        if section.labels is not None:
            n = len(section.labels.rows)
            worst = [
                f"{shortened(' '.join(names))} {number(numbers[0])}"
                for names, numbers, _ in reversed(section.labels.rows[-_NAMED:])
                if numbers[0] is not None
            ]
            lines.append(
                f"  {n} label{'s' * (n != 1)}"
                + (f"; worst {section.labels.columns[0]}: {', '.join(worst)}" if worst else "")
            )
        for grid in section.slices:
            shown = [
                f"{shortened(' '.join(names))} {number(numbers[0])}"
                for names, numbers, _ in grid.rows[:_NAMED]
            ]
            n = len(grid.rows)
            lines.append(f"  {n} of {grid.title}; worst {grid.columns[0]}: {', '.join(shown)}")
        lines += [f"  {line}" for line in footnotes(section)]
    if len(lines) == 1:
        lines.append("  no numbers")
    lines += [f"  {kind}: {plain(note)}" for kind, note in told(card)]
    lines.append(f"  frames: {', '.join(card.frames) or 'none'}")
    return "\n".join(lines)


def markdown(card: Scorecard) -> str:
    """Headline, per-label table and slices as Markdown."""
    parts = [f"**{heading(card)}**"]
    exact = exact_headline(card)
    for section in sections(card):
        if section.label_key is not None:
            parts.append(f"### {_escaped(section.label_key)}")
        if section.headline:
            rows = [
                [
                    line.title,
                    number(line.value),
                    *([_digits(line.value)] if exact else []),
                    line.note,
                ]
                for line in section.headline
            ]
            header = ["metric", "value", *(["exact"] if exact else []), "at"]
            parts.append(_numbers_table(header, rows, 1))
        parts += [_markdown_grid(grid) for grid in _grids(section)]
        parts += [f"- {_escaped(line)}" for line in footnotes(section)]
    parts += [f"- {kind}: {_escaped(note)}" for kind, note in told(card)]
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def _markdown_grid(grid: Grid) -> str:
    rows = [
        [*names, *(cell(grid, one) for one in numbers), "" if support is None else str(support)]
        for names, numbers, support in grid.rows
    ]
    table = _numbers_table([*grid.names, *grid.columns, "support"], rows, len(grid.names))
    said = "; ".join(_beside(grid))
    return f"{table}\n\n{_escaped(said)}" if said else table


def _beside(grid: Grid) -> list[str]:
    """What a table does not show itself: where its columns were taken, and what it leaves out."""
    said = [grid.note] if grid.note else []
    if grid.hidden:
        said.append(f"{grid.hidden} more column{'s' * (grid.hidden > 1)} in the metrics frame")
    return said


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]
) -> str:
    """A Markdown table.

    Args:
        header: names of the columns.
        rows: cells by row.
        right: which columns stand to the right.
    """
    lines = [
        [_escaped(name) for name in header],
        ["---:" if to_right else "---" for to_right in right],
        *([_escaped(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _numbers_table(header: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> str:
    """A Markdown table without its empty columns, the first few of which hold names."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return markdown_table(
        [header[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        right=[i >= names and header[i] != "at" for i in kept],
    )


def _escaped(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _digits(value: Number) -> str:
    return UNDEFINED if value is None else repr(value)


def as_html(card: Scorecard) -> str:
    """What a notebook shows: headline numbers, then the per-label table and the slices."""
    parts = [f"<p><b>Scorecard</b> {html.escape(heading(card))}</p>"]
    found = sections(card)
    for section in found:
        if section.label_key is not None and (
            len(found) > 1 or section.label_key != DEFAULT_LABEL_KEY
        ):
            parts.append(f"<h4>{html.escape(section.label_key)}</h4>")
        rows = [[line.title, number(line.value), line.note] for line in section.headline]
        if rows:
            parts.append(_html_table(("metric", "value", "at"), rows, 1))
        parts += [_html_grid(grid) for grid in _grids(section)]
        parts += [f"<div><small>{html.escape(line)}</small></div>" for line in footnotes(section)]
    parts += [
        f"<div><small>{'<b>warning:</b> ' * (kind == 'warning')}{html.escape(note)}</small></div>"
        for kind, note in told(card)
    ]
    parts.append(
        "<div><small>frames: "
        + (", ".join(f"<code>.{name}</code>" for name in card.frames) or "none")
        + "</small></div>"
    )
    return "<div>" + "".join(parts) + "</div>"


def _html_grid(grid: Grid) -> str:
    shown, after, left_out = limited(grid, *_NOTEBOOK)
    rows = [
        [*names, *(cell(grid, one) for one in numbers), "" if support is None else f"{support}"]
        for names, numbers, support in shown
    ]
    header = (*grid.names, *grid.columns, "support")
    if left_out:
        rows.insert(after, [f"… {left_out} more", *[""] * (len(header) - 1)])
    table = _html_table(header, rows, len(grid.names))
    said = "; ".join(_beside(grid))
    return f"{table}<div><small>{html.escape(said)}</small></div>" if said else table


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> str:
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} style="text-align:{"left" if i < names or header[i] == "at" else "right"}">'
            f"{html.escape(row[i])}</{tag}>"
            for i in kept
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"
