"""Layout of judged results: the metrics in their order."""

from __future__ import annotations

from ...schemas.layouts import Layout

LAYOUTS: dict[str | None, Layout] = {}
