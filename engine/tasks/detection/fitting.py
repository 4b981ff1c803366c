"""The metrics that the tables at hand can carry: boxes with scores carry all of detection's."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.geometry_columns import GEOMETRY_NAMES
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.options import Options
from ...schemas.wording import option
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """All of them: the contract requires whatever they need."""
    return metrics, []


def needs_all_rows(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], settings: Settings, options: Options
) -> str:
    """Why only all rows together tell what is compared: the geometry that every row has.

    Args:
        ready: the tables.
        heads: the first rows of each; unused.
        settings: the run's settings; unused.
        options: whose ``convert_to`` or ``iou_type`` names the geometry.
    """
    names = {name for side in ready.sides.values() for name in side.naming.exprs}
    asked = options.convert_to is not None or options.iou_type is not None
    if asked or not names & set(GEOMETRY_NAMES):
        return ""
    return (
        "what polygons and masks are compared as is told from all rows; write"
        f" {option('convert_to', 'mask')} or another"
    )
