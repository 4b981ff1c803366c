"""Settings: the options of a tracking run with every default filled in."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from ...dialects import Dialect
from ...schemas.errors import OptionError, unknown
from ...schemas.options import Options
from ...schemas.wording import option
from .dialects import TrackingDefaults, TrackingRules

ALPHAS = tuple(np.arange(0.05, 0.99, 0.05).tolist())
"""Thresholds of HOTA, bit by bit as its authors' code has them."""

_IOU_TYPES = ("bbox", "segm")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a tracking run.

    Attributes:
        rules: the dialect's rules.
        alphas: ascending IoU thresholds over which HOTA and its parts are averaged.
        alphas_to_return: those with separate rows.
        overlap: IoU from which a pair may match in CLEAR and counts in identity.
        iou_type: ``bbox``, ``segm`` (masks), or None: boxes, if both sides have such columns.
        k: empty, since there are no cut-offs; the planner reads it for every task.
    """

    rules: TrackingRules
    alphas: tuple[float, ...] = ALPHAS
    alphas_to_return: tuple[float, ...] = ()
    overlap: float = 0.5
    iou_type: str | None = None
    k: tuple[int | None, ...] = ()


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: an unknown ``iou_type``, a threshold out of range, or one to return that is
            not an alpha.
    """
    if options.iou_type not in (None, *_IOU_TYPES):
        raise unknown(
            "iou_type of tracking",
            options.iou_type,
            _IOU_TYPES,
            before=f"{option('iou_type', options.iou_type)}: ",
        )
    alphas = ALPHAS
    if options.iou_thresholds is not None:
        wrong = [value for value in options.iou_thresholds if not 0 < value <= 1]
        if wrong or not options.iou_thresholds:
            raise OptionError(
                f"{option('iou_thresholds', wrong[0] if wrong else ())}: give one IoU threshold or"
                " more, each above 0 and at most 1.",
                code="option_value",
                option="iou_thresholds",
                value=wrong[0] if wrong else (),
            )
        alphas = tuple(sorted(set(options.iou_thresholds)))
    overlap = dialect.rules.overlap
    if options.match_threshold is not None:
        overlap = options.match_threshold
        if not 0 < overlap <= 1:
            raise OptionError(
                f"{option('match_threshold', overlap)}: give an IoU above 0 and at most 1.",
                code="option_value",
                option="match_threshold",
                value=overlap,
            )
    wanted = options.iou_thresholds_to_return or ()
    for value in wanted:
        if not any(math.isclose(value, one, abs_tol=1e-9) for one in alphas):
            raise OptionError(
                f"{option('iou_thresholds_to_return', value)} is not among iou_thresholds"
                f" {[round(one, 10) for one in alphas]}: add it there.",
                code="option_value",
                option="iou_thresholds_to_return",
                value=value,
            )
    returned = tuple(a for a in alphas if any(math.isclose(a, w, abs_tol=1e-9) for w in wanted))
    return Settings(
        rules=dialect.rules,
        alphas=alphas,
        alphas_to_return=returned,
        overlap=overlap,
        iou_type=options.iou_type,
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set."""
    defaults: TrackingDefaults = dialect.defaults
    return defaults.metrics
