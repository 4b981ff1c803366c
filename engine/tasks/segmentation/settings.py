"""Settings: the options of a segmentation run with every default filled in."""

from __future__ import annotations

from typing import Any

import msgspec

from ...dialects import Dialect
from ...ingest.ids import steps_of
from ...schemas.errors import OptionError, unknown
from ...schemas.options import Options
from ...schemas.wording import option
from .dialects import SegmentationDefaults, SegmentationRules

INVALID = ("refuse", "repair")
_RATIO = 0.02


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a segmentation run.

    Attributes:
        rules: the dialect's rules.
        ignore_index: index of ground-truth pixels that are excluded, or None.
        background: index of pixels without a label, or None.
        resample: predicted rasters of another grid are resampled to the ground truth's.
        invalid_polygons: ``refuse`` or ``repair``.
        boundary_ratio: width of boundaries as a share of the image's diagonal.
        pixel_spacing: height and width of a pixel, in the unit of distances between outlines.
        surface_tolerance: maximum distance of outlines in NSD and BoundaryF1, in that unit.
        label_map: as given; applied to label maps once their labels are known.
        step: added to predicted indices, by ``label_format``.
        k: empty, since there are no cut-offs; the planner reads it for every task.
    """

    rules: SegmentationRules
    ignore_index: int | None
    background: int | None
    resample: bool
    invalid_polygons: str
    boundary_ratio: float
    pixel_spacing: tuple[float, float]
    surface_tolerance: float
    label_map: Any
    step: int = 0
    k: tuple[int | None, ...] = ()


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range.
    """
    rules: SegmentationRules = dialect.rules
    background = rules.background if options.background is None else options.background
    if background is not None and background == options.ignore_index:
        raise OptionError(
            f"{option('ignore_index', background)}: this index is background in dialect"
            f" {dialect.name!r} or by {option('background')}. Ignored pixels never count,"
            " background counts if the other side has a label; choose one.",
            code="options_conflict",
            option="ignore_index",
            value=background,
        )
    invalid = options.invalid_polygons or INVALID[0]
    if invalid not in INVALID:
        raise unknown("way with polygons", invalid, INVALID, before="invalid_polygons: ")
    ratio = _RATIO if options.boundary_ratio is None else options.boundary_ratio
    if not 0 < ratio < 1:
        raise OptionError(
            f"{option('boundary_ratio', ratio)}: the width is a share of the diagonal, above 0 and"
            " below 1.",
            code="option_value",
            option="boundary_ratio",
            value=ratio,
        )
    spacing = options.pixel_spacing or (1.0,)
    if len(spacing) > 2 or not all(0 < step < float("inf") for step in spacing):
        raise OptionError(
            f"{option('pixel_spacing', spacing)}: the height and the width of a pixel, above 0, or"
            " one number for both.",
            code="option_value",
            option="pixel_spacing",
            value=spacing,
        )
    tolerance = 1.0 if options.surface_tolerance is None else options.surface_tolerance
    if not 0 <= tolerance < float("inf"):
        raise OptionError(
            f"{option('surface_tolerance', tolerance)}: a distance from 0.",
            code="option_value",
            option="surface_tolerance",
            value=tolerance,
        )
    return Settings(
        rules=rules,
        ignore_index=options.ignore_index,
        background=background,
        resample=bool(options.resample),
        invalid_polygons=invalid,
        boundary_ratio=ratio,
        pixel_spacing=(spacing[0], spacing[-1]),
        surface_tolerance=tolerance,
        label_map=options.label_map,
        step=steps_of(options.label_format),
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set."""
    defaults: SegmentationDefaults = dialect.defaults
    return defaults.metrics
