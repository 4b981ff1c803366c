"""Settings: options of a run of spans with defaults filled in."""

from __future__ import annotations

from typing import Any

from ...dialects import Dialect
from ...schemas.errors import OptionError
from ...schemas.options import Options
from ...schemas.wording import option
from ..detection.preparing import EVENTS
from ..detection.settings import Settings as DetectionSettings
from .dialects import EQUAL, SpanRules

_OF_IMAGES: dict[str, Any] = {
    "area_ranges": {},
    "boundary_ratio": None,
    "keypoint_sigmas": None,
    "box_bins": 1,
    "least_in_bin": 1,
    "region_overlap": None,
}
"""Options of detection that spans do not have, and their values."""


class Settings(DetectionSettings, frozen=True, kw_only=True):
    """Settings of a run of spans: the dialect's rules, and options with defaults filled in.

    Attributes:
        equal_ious: IoU thresholds of precision, recall and F1; 1 for equal spans.
        at_ious: they were given, or are the dialect's, so that rows show them.
        at_scores: score thresholds were given, so that rows show them.
    """

    rules: SpanRules
    scheme: str | None = None
    span_ends: str = "exclusive"
    min_overlap_percentage: float = 1.0
    zero_division: float | None = None
    equal_ious: tuple[float, ...] = (1.0,)
    at_ious: bool = False
    at_scores: bool = False

    @property
    def ious_of_needs(self) -> dict[str, tuple[float, ...]]:
        """See :attr:`..detection.settings.Settings.ious_of_needs`."""
        return {**super().ious_of_needs, EQUAL: self.equal_ious}

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        rules = dialect.rules
        for name, applies in (
            ("scheme", "scheme" in dialect.defaults or dialect.name == "standard"),
            ("min_overlap_percentage", rules.schemas),
            ("collar", rules.events),
            ("percentage_of_length", rules.events),
        ):
            if getattr(options, name) is not None and not applies:
                raise OptionError(
                    f"{option(name)}: dialect {dialect.name} does not read it: remove it, or"
                    " choose a dialect that does.",
                    code="option_unfit",
                    option=name,
                )
        collar = values["collar"], values["percentage_of_length"]
        values |= _OF_IMAGES
        DetectionSettings.derive(values, options, dialect)
        at_ious = (options.iou_thresholds is not None or not rules.equal) and not rules.events
        values.update(
            geometry=EVENTS if rules.events else "box",
            collar=collar,
            at_ious=at_ious,
            at_scores=options.score_thresholds is not None,
            equal_ious=values["iou_thresholds"] if at_ious else (1.0,),
        )
