"""Texts with their references, measured without a table: one pair takes microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import polars as pl

from .. import dialects
from ..executors import Threads
from ..schemas.errors import InputError
from ..schemas.options import Options
from ..tasks.packing import offsets_of
from ..tasks.text.pairs import Pairs
from ..tasks.text.settings import Settings, resolve
from ..tasks.workers import Workers

R = TypeVar("R")

_FEW = 256
"""Pairs that are measured by the thread that calls: to share them out would cost more."""


class _Alone:
    """A worker that does everything itself."""

    def over(self, offsets: np.ndarray[Any, Any], function: Callable[[int, int], R]) -> list[R]:
        return [function(0, offsets.size - 1)] if offsets.size > 1 else []

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        return [call() for call in calls]


def workers_for(pairs: Pairs) -> Workers:
    """Return only this thread for few pairs, otherwise all threads."""
    return _Alone() if len(pairs) < _FEW else Threads()


@lru_cache
def settings_of(dialect: str, **options: Any) -> Settings:
    """Return the settings of a text dialect, from hashable options.

    Raises:
        OptionError: a value out of range.
    """
    return resolve(Options(task="text", **options), dialects.get("text", dialect))


def pairs_of(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Pairs:
    """Pair candidates with their references.

    Args:
        references: one or more per candidate.

    Raises:
        InputError: a value that is not text, or a candidate without references.
    """
    many = np.fromiter(map(len, references), np.int64, len(references))
    if many.size and not many.all():
        raise InputError(f"text {int(np.argmin(many))} has no reference: give one or more.")
    flat = [one for those in references for one in those]
    return Pairs(_column("text", candidates), _column("reference", flat), offsets_of(many), {})


def _column(side: str, texts: Sequence[str]) -> pl.Series:
    try:
        column = pl.Series(side, texts, dtype=pl.String, strict=True)
    except (TypeError, UnicodeEncodeError, pl.exceptions.PolarsError):
        column = None
    if column is None or column.null_count():
        raise InputError(_wrong(side, texts))
    return column


def _wrong(side: str, texts: Sequence[Any]) -> str:
    """Return a message about the first value that is not text."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            return f"{side} {i} is not a string: {text!r}."
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return (
                    f"{side} {i} has half a surrogate pair at character {error.start}, which is no"
                    " text; write text.encode('utf-8', 'replace').decode()."
                )
    return f"{side}: these are not texts."
