"""Scores that must be probabilities, checked where row and column are still the user's own."""

from __future__ import annotations

import polars as pl

from ...inputs.frames import Frames
from ...inputs.problems import count_of
from ...inputs.wide import PREFIX
from ...schemas.contract import PREDICTIONS, ROW, TABLE
from ...schemas.errors import InputError
from ...schemas.wording import option

_SHOWN = 3


def check_probabilities(frames: Frames) -> None:
    """Refuse scores outside [0, 1].

    Args:
        frames: checked tables, not encoded yet; scores in a column, or in one for each label.

    Raises:
        InputError: naming the columns, how many values, and the first of them by row and column.
    """
    role = PREDICTIONS if frames.table is None else TABLE
    frame = frames.sides[role]
    names = ["score"]
    if frames.score_labels is not None:
        names = [f"{PREFIX}{label}" for label in frames.score_labels]
    names = [name for name in names if name in frame.columns and _beyond(frame[name])]
    if not names:
        return
    own = {canonical: mine for mine, canonical in frames.recognised.get(role, {}).items()}
    titles = [own.get(name, name.removeprefix(PREFIX)) for name in names]
    outside = [(pl.col(name) < 0) | (pl.col(name) > 1) for name in names]
    n = sum(frame.select(where.sum()).item() for where in outside)
    table = frame.lazy() if ROW in frame.columns else frame.lazy().with_row_index(ROW)
    some = table.select(ROW, *names).filter(pl.any_horizontal(outside))
    rows = some.head(_SHOWN).collect()
    found = [
        f"row {row[ROW]} ({title}={row[name]!r})"
        for row in rows.iter_rows(named=True)
        for name, title in zip(names, titles, strict=True)
        if not 0 <= row[name] <= 1
    ]
    columns = ", ".join(map(repr, titles))
    kept = any(note.kind == "where" for note in frames.notes)
    counted = f"rows that {option('where')} keeps" if kept else "rows"
    raise InputError(
        f"{role}: column{'s' if len(names) > 1 else ''} {columns}: {count_of(n, 'value')} outside"
        f" [0, 1], first ({counted} count from 0):"
        f" {'; '.join(found[:_SHOWN])}. Log loss, Brier score and calibration need probabilities:"
        " turn logits into probabilities, or leave these metrics out."
    )


def _beyond(scores: pl.Series) -> bool:
    """Whether any score lies outside [0, 1]."""
    if not len(scores):
        return False
    low, high = scores.min(), scores.max()
    return bool(low < 0 or high > 1)  # type: ignore[operator]
