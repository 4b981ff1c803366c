"""What single datums hold that were judged: their verdicts."""

from __future__ import annotations

from typing import Any

from ...ingest.frames import Frames
from ..contents import Content, by_datum, rows_of
from ..workers import Workers


def contents(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`."""
    assert frames.table is not None
    verdicts = by_datum(frames.table)
    return [rows_of(verdicts[one].drop("datum_id")) if one in verdicts else None for one in ids]
