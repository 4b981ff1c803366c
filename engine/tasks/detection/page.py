"""What the report draws from: precision by recall, counts by score threshold, confusions."""

from __future__ import annotations

from ..page_frames import hundredths, one_spot
from ..task import PageFrame

PAGE = (
    PageFrame(name="curves", metrics=("InterpolatedPrecisionRecallCurve",)),
    PageFrame(name="thresholds", metrics=("PrecisionRecallCurve",), options=hundredths),
    PageFrame(name="confusion", metrics=("ConfusionMatrix",), then=one_spot),
)
