"""Short forms of a scorecard: prompt text and Markdown, built from sections without rich."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..ingest.problems import count_of
from ..schemas.contract import DEFAULT_LABEL_KEY
from .grids import Row, amount, fixed
from .look import USUAL, Look
from .sections import Grid, Line, Number, Section, exact_headline, sections
from .shown import getting

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

UNDEFINED = "–"
BEST = 5
WORST = 10
SLICES = 30
BINS = 30
_NAMED = 3


def number(value: Number, *, counted: bool = False) -> str:
    """Format a number: 4 decimals, integers for counts, a dash if undefined."""
    if value is None:
        return UNDEFINED
    if value.is_integer() and (counted or abs(value) >= 2):
        return fixed(value, 0)
    return fixed(value, 4)


def cells(grid: Grid, row: Row) -> list[str]:
    """Return the numbers of a row, with their support if it differs from the row's support."""
    said = [
        number(value, counted=counted)
        for value, counted in zip(
            row.numbers, grid.counts or (False,) * len(row.numbers), strict=True
        )
    ]
    parts = row.parts or ("",) * len(said)
    reaches = row.reaches or ("",) * len(said)
    return [
        " ".join(filter(None, (one, reach, part and f"({part})")))
        for one, reach, part in zip(said, reaches, parts, strict=True)
    ]


def figure(line: Line) -> str:
    """Format a headline number, with its interval if there is one."""
    return f"{number(line.value, counted=line.counted)} {line.reach}".rstrip()


def supported(row: Row) -> str:
    """Format the support of a row."""
    if row.support is None or isinstance(row.support, str):
        return row.support or ""
    return amount(row.support)


def plain(text: str) -> str:
    """Text that cannot break a line or steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str, width: int = 26) -> str:
    """Text in at most so many characters."""
    text = plain(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def limited(grid: Grid, best: int, worst: int, look: Look = USUAL) -> tuple[list[Row], int, int]:
    """Return the first and last rows of a long table; undefined rows are dropped first.

    Args:
        best: rows kept at the top.
        worst: rows kept at the end.
        look: may override both.

    Returns:
        rows; index of the gap; number of omitted rows.
    """
    if look.top is not None:
        best, worst = look.top or len(grid.rows), 0
    elif look.sort is not None:
        best, worst = best + worst, 0
    if len(grid.rows) <= best + worst:
        return grid.rows, 0, 0
    rows = [row for row in grid.rows if row.numbers[0] is not None] or grid.rows
    if len(rows) < best + worst:  # all that are defined; the gap is where the others would be
        after = len(rows) if grid.rows[0].numbers[0] is not None else 0
        return rows, after, len(grid.rows) - len(rows)
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
    """Return a line with task, dialect and the tables that were read."""
    said = f"{card.task}, dialect {card.dialect}"
    read = [
        f"{n:,} {name.replace('_', ' ').removesuffix('s' * (n == 1))}"
        + (_in_files(card.files[name]) if name in card.files else "")
        for name, n in card.read.items()
    ]
    return f"{said}: {', '.join(read)}" if read else said


def _in_files(n: int) -> str:
    return f" in {n:,} file{'s' if n != 1 else ''}"


def made(card: Scorecard) -> list[tuple[str, int]]:
    """Return the requested frames other than metrics, with their heights.

    Curves are included only if a metric that fills them was requested by name.
    """
    asked = [name for name in card.frames if name not in ("metrics", "curves")]
    if card.options.metrics is not None and "curves" in card.frames and card.height("curves"):
        asked.insert(0, "curves")
    return [(name, card.height(name)) for name in asked]


def also_made(card: Scorecard, *, written: bool = False) -> str:
    """Return a line that names the frames other than metrics and how to get them; may be empty.

    Args:
        written: all of them are already saved in a folder.
    """
    rows = dict(made(card))
    frames = ", ".join(f"{name}{rows_said(rows, name)}" for name in rows)
    rest = "" if written else ", write all with --out"
    return f"also made: {frames}; print one with --frame{rest}" if frames else ""


def unnumbered(card: Scorecard, shown: bool) -> str:
    """Return the text shown if there are no numbers; otherwise empty.

    Args:
        shown: there are numbers or tables.
    """
    if shown:
        return ""
    return "numbers are in the frames below" if made(card) else "no numbers"


def told(card: Scorecard) -> list[tuple[str, str]]:
    """Return (kind, note) pairs, warnings first."""
    rest = [note for note in card.notes if note not in card.warnings]
    return [*(("warning", one) for one in card.warnings), *(("note", one) for one in rest)]


def tables_of(section: Section) -> list[Grid]:
    return [grid for grid in (*section.tables, section.labels, *section.slices) if grid is not None]


def footnotes(section: Section) -> list[str]:
    """Why numbers of a section are undefined, each label once."""
    lines = reasons(section.undefined)
    if section.labels is not None:
        lines += reasons(section.labels.undefined, "label ")
    for grid in section.slices:
        lines += reasons(grid.undefined, f"{grid.title} ")
    return [*lines, section.unshown] if section.unshown else lines


def as_text(card: Scorecard) -> str:
    """Return the text for the prompt: the headline, the worst labels, other frames."""
    lines = [f"Scorecard: {heading(card)}"]
    found = sections(card)
    for section in found:
        if headed(section, found):
            lines.append(f"{plain(section.label_key or '')}:")
        width = max((len(line.title) for line in section.headline), default=0)
        lines += [
            f"  {line.title:<{width}}  {figure(line)}" + (f"  {line.note}" if line.note else "")
            for line in section.headline
        ]
        lines += [
            f"  {grid.title}: {count_of(len(grid.rows), 'row')}"
            + (f", {grid.note}" if grid.note else "")
            for grid in section.tables
        ]
        if section.labels is not None:
            n = len(section.labels.rows)
            headed_by = {line.row.get("metric") for line in section.headline}
            lines.append(
                f"  {n} label{'s' * (n != 1)}"
                + _worst(card, section.labels, last=True)
                + _worst_of_others(card, section.labels, headed_by)
            )
        lines += [
            f"  {len(grid.rows)} of {' x '.join(grid.names)}" + _worst(card, grid, last=False)
            for grid in section.slices
        ]
        lines += [f"  {line}" for line in footnotes(section)]
    if empty := unnumbered(card, len(lines) > 1):
        lines.append(f"  {empty}")
    lines += [f"  {kind}: {plain(note)}" for kind, note in told(card)]
    rows = dict(made(card))
    frames = [f"{name}{rows_said(rows, name)}" for name in card.frames]
    lines.append(f"  frames: {', '.join(frames) or 'none'}")
    return "\n".join(lines)


def rows_said(rows: dict[str, int], name: str) -> str:
    return f" ({rows[name]} row{'s' if rows[name] != 1 else ''})" if name in rows else ""


def headed(section: Section, found: Sequence[Section]) -> bool:
    """Return True if a section needs its label key as title: one of several, or not the default."""
    return section.label_key is not None and (
        len(found) > 1 or section.label_key != DEFAULT_LABEL_KEY
    )


def _worst(card: Scorecard, grid: Grid, *, last: bool) -> str:
    """Describe the worst rows of a table by its first column; empty if it has no direction.

    Args:
        grid: labels or slices, sorted; undefined rows are at the opposite end.
        last: the worst rows are the last ones.
    """
    if card.directions.get(grid.first) not in ("higher", "lower"):
        return ""
    rows = grid.rows[: -_NAMED - 1 : -1] if last else grid.rows[:_NAMED]
    said = [
        f"{shortened(' '.join(row.names))} {cells(grid, row)[0]}"
        + (f" ({row.support})" if isinstance(row.support, str) else "")
        for row in rows
        if row.numbers[0] is not None
    ]
    return f"; worst {grid.columns[0]}: {', '.join(said)}" if said else ""


def _worst_of_others(card: Scorecard, grid: Grid, headed_by: Collection[str | None]) -> str:
    """The worst labels by further metrics that were asked for and have no aggregate."""
    said = ""
    for place, title in enumerate(grid.columns[1:], 1):
        found = [(row, row.numbers[place]) for row in grid.rows]
        known = [(row, value) for row, value in found if value is not None]
        metric = next((at["metric"] for row, _ in known if (at := row.rows[place])), None)
        better = card.directions.get(metric or "")
        if card.options.metrics is None or metric in headed_by or better not in _SIGNS:
            continue
        known.sort(key=lambda one: _SIGNS[better] * one[1])
        worst = [
            f"{shortened(' '.join(row.names))} {cells(grid, row)[place]}"
            for row, _ in known[:_NAMED]
        ]
        said += f"; worst {title}: {', '.join(worst)}" if worst else ""
    return said


_SIGNS = {"higher": 1.0, "lower": -1.0}


def markdown(
    card: Scorecard, *, beside: bool = True, written: bool = False, look: Look = USUAL
) -> str:
    """Return headline, per-label table and slices as Markdown.

    Args:
        beside: name the frames other than metrics.
        written: all frames are already saved in a folder.
        look: order and number of rows; all rows unless it sets a number.
    """
    parts = [f"**{_escaped(heading(card))}**"]
    exact = exact_headline(card)
    found = sections(card, look)
    for section in found:
        if headed(section, found):
            parts.append(f"### label key {_escaped(section.label_key or '')}")
        if section.headline:
            rows = [
                [
                    line.title,
                    figure(line),
                    *([_digits(line.value)] if exact else []),
                    line.note,
                ]
                for line in section.headline
            ]
            header = ["metric", "value", *(["exact"] if exact else []), "at"]
            parts.append(_numbers_table(header, rows, 1))
        parts += [_markdown_grid(grid, look) for grid in tables_of(section)]
        parts += [f"- {_escaped(line)}" for line in footnotes(section)]
    if empty := unnumbered(card, bool(found)):
        parts.append(empty)
    parts += [f"- {kind}: {_escaped(note)}" for kind, note in told(card)]
    if beside and (line := also_made(card, written=written)):
        parts.append(f"- {_escaped(line)}")
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def _markdown_grid(grid: Grid, look: Look) -> str:
    shown, _, left_out = limited(grid, len(grid.rows), 0, look)
    rows = [[*row.names, *cells(grid, row), supported(row)] for row in shown]
    table = _numbers_table([*grid.names, *grid.columns, "support"], rows, len(grid.names))
    said = [*beside(grid), *([f"and {left_out:,} more rows"] if left_out else [])]
    return f"{table}\n\n{_escaped('; '.join(said))}" if said else table


def beside(grid: Grid) -> list[str]:
    """Return remarks on a table: thresholds of its columns, and hidden columns."""
    said = [grid.note] if grid.note else []
    if grid.hidden:
        said.append(
            f"{grid.hidden} more column{'s' * (grid.hidden > 1)} in the metrics frame:"
            f" {getting('metrics')}"
        )
    return said


def markdown_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool],
    escape: bool = True,
) -> str:
    """Return a Markdown table.

    Args:
        right: flags of the right-aligned columns.
        escape: cells are plain text; otherwise they are Markdown.
    """
    said = _escaped if escape else str
    lines = [
        [_escaped(name) for name in header],
        ["---:" if to_right else "---" for to_right in right],
        *([said(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _numbers_table(header: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> str:
    """Return a Markdown table without empty columns; the first ``names`` columns are names."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return markdown_table(
        [header[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        right=[i >= names and header[i] != "at" for i in kept],
    )


def _escaped(text: str) -> str:
    text = plain(text)
    for mark in "\\|[]`*":  # no table is broken, no image fetched, no link made by a label
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")


def _digits(value: Number) -> str:
    return UNDEFINED if value is None else repr(value)
