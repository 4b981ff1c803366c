"""Complete frames as aligned text or Markdown, without empty columns."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import polars as pl

from .summary import UNDEFINED, markdown_table, number, plain

_GAP = "  "


def aligned(frame: pl.DataFrame) -> str:
    """Format all rows of a frame as aligned text, numbers to the right, nulls as a dash.

    Lines are not wrapped; columns without any value are omitted.
    """
    frame = _filled(frame)
    right = [dtype.is_numeric() for dtype in frame.dtypes]
    columns = [[name, *cells] for name, cells in zip(frame.columns, _cells(frame), strict=True)]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        _GAP.join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
    return "\n".join([*lines, *([] if frame.height else ["no rows"])]) + "\n"


def markdown_frame(frame: pl.DataFrame) -> str:
    """Format all rows of a frame as a Markdown table; columns without any value are omitted."""
    frame = _filled(frame)
    right = [dtype.is_numeric() for dtype in frame.dtypes]
    rows = list(zip(*_cells(frame), strict=True))
    return markdown_table(frame.columns, rows, right=right) + "\n"


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format cells as an HTML table; "" without rows."""
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_frame(frame: pl.DataFrame) -> str:
    """Format all rows of a frame as an HTML table; columns without any value are omitted."""
    frame = _filled(frame)
    return html_table(frame.columns, list(zip(*_cells(frame), strict=True)))


def _filled(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop columns without any value; keep all of a frame without rows."""
    return frame.select(s for s in frame.iter_columns() if s.null_count() < len(s) or not len(s))


def _cells(frame: pl.DataFrame) -> list[list[str]]:
    return [[_text(value) for value in column.to_list()] for column in frame.iter_columns()]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return UNDEFINED if value is None else plain(str(value))
