"""What leads in classification: numbers by label."""

from __future__ import annotations

from ...schemas.layouts import Entry, Layout, Spread

_CLASSES = Layout(
    headline=(),
    # Precision falls for labels that take what is lost of others; F1 falls for those that lose it.
    label_columns=tuple(Entry(name, name) for name in ("F1", "Precision", "Recall")),
    slice_columns=(),
    tables=(Spread("Reliability", "score_threshold", "bin from"),),
)

LAYOUTS: dict[str | None, Layout] = {None: _CLASSES}
"""Dialect -> layout; None is the task's own."""
