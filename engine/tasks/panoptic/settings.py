"""Settings: the options of a panoptic run with every default filled in."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect
from ...schemas.errors import OptionError, unknown
from ...schemas.options import Options
from ...schemas.wording import option
from .dialects import PanopticDefaults, PanopticRules

IOU_TYPES = ("segm", "boundary")
_RATIO = 0.02


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a panoptic run.

    Attributes:
        rules: the dialect's rules.
        boundary_ratio: width of boundaries as a share of the image's diagonal; None if only whole
            segments are compared.
        k: empty, since there are no cut-offs; the planner reads it for every task.
    """

    rules: PanopticRules
    boundary_ratio: float | None = None
    k: tuple[int | None, ...] = ()


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range, or boundaries in a dialect without them.
    """
    kind = options.iou_type or IOU_TYPES[0]
    if kind not in IOU_TYPES:
        raise unknown("type of panoptic IoU", kind, IOU_TYPES, before="iou_type: ")
    rules: PanopticRules = dialect.rules
    if kind == "boundary" and rules.joined_stuff:
        raise OptionError(
            f"{option('iou_type', kind)}: dialect {dialect.name!r} joins segments of stuff, whose"
            f" boundaries no reference defines. Write {option('dialect', 'coco')} or remove it.",
            code="options_conflict",
            option="iou_type",
            value=kind,
        )
    ratio = _RATIO if options.boundary_ratio is None else options.boundary_ratio
    if not 0 < ratio < 1:
        raise OptionError(
            f"{option('boundary_ratio', ratio)}: the width is a share of the diagonal, above 0 and"
            " below 1.",
            code="option_value",
            option="boundary_ratio",
            value=ratio,
        )
    return Settings(rules=rules, boundary_ratio=ratio if kind == "boundary" else None)


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set."""
    defaults: PanopticDefaults = dialect.defaults
    return defaults.metrics
