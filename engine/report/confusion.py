"""The confusion matrix as a grid to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from .grids import Grid, Row, names_of
from .shown import getting
from .spots import at_spots, every_spot, spots

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_LABELS = 20
"""Up to so many labels make a matrix; of more the most frequent pairs are shown, as many."""
_SPOTS = 3
_UNMATCHED = "(no truth)", "(missed)"


def confusion_grids(card: Scorecard, key: str | None, *, wide: bool = False) -> list[Grid]:
    """Return the confusion matrix of the whole set; for many labels its most frequent pairs.

    One grid per threshold if they are few, otherwise those nearest 0.5; the last one states the
    omissions.
    """
    if "confusion" not in card.frames:
        return []
    frame = card.frame("confusion").filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
    whole = frame.filter(pl.col("slice").is_null())
    if not whole.height:
        return []
    taken = at_spots(whole, spots(card, _SPOTS, wide=wide))
    named = _named(names_of(card.labels, key))
    grids = [
        (_pairs if _labels(whole).len() > _LABELS else _matrix)(
            rows, f"confusion {at}".strip(), named
        )
        for rows, at in taken
    ]
    left = max(1, every_spot(whole).height) - len(taken)
    n = frame.select("slice", "slice_value").drop_nulls().n_unique()
    rest = [f"{left} more pairs of thresholds" if left > 1 else "1 more pair"] if left else []
    rest += [f"{n} slice{'s' if n > 1 else ''}"] if n else []
    pairs = _labels(whole).len() > _LABELS
    if rest or pairs:
        said = f"; not shown: {', '.join(rest)}" if rest else ""
        last = grids[-1]
        note = f"{last.note}{said}; all: {getting('confusion')}"
        grids[-1] = last.noted(note)
    return grids


def _labels(rows: pl.DataFrame) -> pl.Series:
    return pl.concat([rows["actual"], rows["predicted"]]).unique().sort(nulls_last=True)


def _named(names: Mapping[Any, str]) -> Callable[[Any], str]:
    """Return a function for display names of labels, with the value if two have the same name."""
    twice = {name for name, n in Counter(names.values()).items() if n > 1}

    def called(value: Any) -> str:
        name = names.get(value)
        if name is None:
            return str(value)
        return f"{value} {name}" if name in twice else name

    return called


def _pairs(rows: pl.DataFrame, note: str, named: Callable[[Any], str]) -> Grid:
    """Pairs of different labels, the most frequent first."""
    off = rows.filter(pl.col("actual").ne_missing(pl.col("predicted")), pl.col("count") > 0).sort(
        "count", descending=True, maintain_order=True
    )
    shown = [
        Row(
            (
                _UNMATCHED[0] if actual is None else named(actual),
                _UNMATCHED[1] if predicted is None else named(predicted),
            ),
            (float(n),),
            None,
        )
        for actual, predicted, n in off.head(_LABELS)
        .select("actual", "predicted", "count")
        .iter_rows()
    ]
    note += f"; the {len(shown)} most frequent of {off.height:,} pairs off the diagonal"
    return Grid(
        "confusion",
        ("actual", "predicted"),
        ("count",),
        shown,
        {},
        note,
        counts=(True,),
        frame="confusion",
    )


def _matrix(rows: pl.DataFrame, note: str, named: Callable[[Any], str]) -> Grid:
    counts = {(row["actual"], row["predicted"]): row["count"] for row in rows.iter_rows(named=True)}
    values = _labels(rows).to_list()
    actual = [value for value in values if any(pair[0] == value for pair in counts)]
    predicted = [value for value in values if any(pair[1] == value for pair in counts)]
    return Grid(
        "confusion",
        ("actual \\ predicted",),
        tuple(_UNMATCHED[1] if p is None else named(p) for p in predicted),
        [
            Row(
                (_UNMATCHED[0] if a is None else named(a),),
                tuple(float(counts.get((a, p), 0)) for p in predicted),
                None,
            )
            for a in actual
        ],
        {},
        note,
        counts=(True,) * len(predicted),
        frame="confusion",
    )
