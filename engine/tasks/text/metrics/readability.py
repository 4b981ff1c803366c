"""Readability."""

from __future__ import annotations

import math
from typing import Any

from ....metrics.registry import Metric
from .parts import metric


def _readability(name: str, need: str, **rest: Any) -> Metric:
    return metric(
        name,
        need,
        spares=("reference",),
        range=(-math.inf, math.inf),
        better="neither",
        **rest,
    )


METRICS = (
    _readability(
        "FleschReadingEase",
        "flesch_reading_ease",
        definition="206.835 - 1.015 * words / sentences - 84.6 * syllables / words of the text,"
        " from about 0 (hard) to 100 (easy); mean over datums",
        formula=r"\left(206.835 - 1.015\, \frac{\text{words}}{\text{sentences}} - 84.6\,"
        r" \frac{\text{syllables}}{\text{words}}\right)",
        source="Flesch 1948; syllables as NLTK's SyllableTokenizer",
        aliases=("flesch_reading_ease", "flesch"),
    ),
    _readability(
        "FleschKincaidGrade",
        "flesch_kincaid_grade",
        definition="0.39 * words / sentences + 11.8 * syllables / words - 15.59 of the text, years"
        " of school; mean over datums",
        formula=r"\left(0.39\, \frac{\text{words}}{\text{sentences}} + 11.8\,"
        r" \frac{\text{syllables}}{\text{words}} - 15.59\right)",
        source="Kincaid et al. 1975; syllables as NLTK's SyllableTokenizer",
        aliases=("flesch_kincaid_grade", "flesch_kincaid_grade_level", "flesch_kincaid"),
    ),
)
