"""Layout of classification results, by label."""

from __future__ import annotations

from ...schemas.layouts import Entry, Layout, Spread

_CLASSES = Layout(
    headline=(),
    # F1 comes first: it falls for labels with misses; precision falls for labels that gain them.
    label_columns=tuple(Entry(name, name) for name in ("F1", "Precision", "Recall")),
    slice_columns=(),
    tables=(Spread("Reliability", "score_threshold", "bin from"),),
)

LAYOUTS: dict[str | None, Layout] = {None: _CLASSES}
"""Dialect -> layout; None is the task's own."""
