"""Layout of segmentation results: IoU and pixel accuracy."""

from __future__ import annotations

from ...schemas.layouts import Entry, Layout

_PIXELS = Layout(
    headline=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
    label_columns=(),
    slice_columns=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
)

LAYOUTS: dict[str | None, Layout] = {None: _PIXELS}
"""Dialect -> layout; None is the task's own."""
