"""Layout of tracking results: HOTA, MOTA, IDF1 and switches."""

from __future__ import annotations

from ...schemas.layouts import Entry, Layout

_TRACKS = Layout(
    headline=(),
    label_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
    slice_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
)

LAYOUTS: dict[str | None, Layout] = {None: _TRACKS}
"""Dialect -> layout; None is the task's own."""
