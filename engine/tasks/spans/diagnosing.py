"""Why spans of the two sides do not match: another unit, an offset, or the meaning of ends."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...ingest.problems import Note
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY
from ...schemas.wording import option

_LEAST = 5  # pairs that are no coincidence
_MOST = 0.9  # share of the pairs that one reading has to explain
_FEW = 0.05  # share of matches below which a reason is looked for
_FRAMES = (23.976, 24.0, 25.0, 29.97, 30.0, 50.0, 59.94, 60.0)
_UNITS = {1000.0: "milliseconds", 60.0: "minutes", 3600.0: "hours"}
_LARGER = 1.5  # factor from which units differ
_SEEN = 1_000  # spans of the ground truths that are looked at for an overlap
_CHARACTERS = (3.0, 12.0)  # per token, with blanks

Ends = tuple[pl.DataFrame, pl.DataFrame]


def ends_of(ours: pl.DataFrame, theirs: pl.DataFrame) -> Ends:
    """Columns of both sides that a diagnosis needs, before they are consumed."""
    names = ["datum_id", "label_key", "label_value", "xmin", "xmax"]
    first, second = (side.select(name for name in names if name in side) for side in (ours, theirs))
    return first, second


def few_match(hits: int, ends: Ends) -> bool:
    """Return whether hardly any span matches though both sides have some."""
    return hits < _FEW * min(side.height for side in ends)


def reason(ends: Ends) -> Note | None:
    """Return a warning if one reading of the predictions would match nearly all spans.

    Spans of one datum and label are paired in order, where both sides have as many. Spans that no
    reading makes equal may overlap in one: see :func:`_rough`.
    """
    ours, theirs = (_numbered(side) for side in ends)
    key = ["datum_id", "label_key", "label_value", "place", "many"]
    joined = ours.join(theirs, on=key, how="inner", suffix="_true")
    corners = _corners(joined)
    cause = ""
    if joined.height >= _LEAST:
        cause = _ends(*corners) or _scale(*corners)
    cause = cause or _rough(ours, theirs, corners)
    if not cause:
        return None
    message = f"hardly any span of the two sides matches, and {cause}"
    return Note("spans_apart", message, joined.height, warning=True)


def _corners(both: pl.DataFrame) -> tuple[Array, Array, Array, Array]:
    start, end, true_start, true_end = (
        both[name].to_numpy() for name in ("xmin", "xmax", "xmin_true", "xmax_true")
    )
    return start, end, true_start, true_end


def _rough(ours: pl.DataFrame, theirs: pl.DataFrame, corners: tuple[Array, ...]) -> str:
    """Describe an offset or another unit after which spans overlap by half, and before do not."""
    key = ["datum_id", "label_key", "label_value"]
    true = theirs.head(_SEEN).with_row_index("true")
    pairs = ours.join(true, on=key, suffix="_true")
    start, end, true_start, true_end = _corners(pairs)
    row = pairs["true"].to_numpy()
    if true.height < _LEAST or not row.size:
        return ""

    def overlapping(scale: float, shift: float) -> float:
        """Share of the true spans of which a prediction covers half after the change."""
        begin, until = start / scale - shift, end / scale - shift
        shared = np.minimum(until, true_end) - np.maximum(begin, true_start)
        either = np.maximum(until, true_end) - np.minimum(begin, true_start)
        return float(np.unique(row[shared >= 0.5 * either]).size / true.height)

    if overlapping(1, 0) >= 1 - _MOST:
        return ""
    if corners[0].size >= _LEAST:
        shift = float(np.median(np.r_[corners[0] - corners[2], corners[1] - corners[3]]))
        if overlapping(1, shift) >= _MOST:
            return _shifted(float(f"{shift:.3g}"), "about ")
    last = ours.group_by("datum_id").agg(pl.col("xmax").max())
    last = last.join(theirs.group_by("datum_id").agg(true=pl.col("xmax").max()), on="datum_id")
    last = last.filter(pl.col("xmax") > 0, pl.col("true") > 0)
    scale = float((last["xmax"] / last["true"]).median() or 1)  # type: ignore[arg-type]
    if max(scale, 1 / scale) >= _LARGER and overlapping(scale, 0) >= _MOST:
        return _scaled(scale, "about ")
    return ""


def _numbered(side: pl.DataFrame) -> pl.DataFrame:
    if "label_key" not in side.columns:
        side = side.with_columns(label_key=pl.lit(DEFAULT_LABEL_KEY))
    group = ["datum_id", "label_key", "label_value"]
    ordered = side.sort("datum_id", "xmin", "xmax", maintain_order=True)
    return ordered.with_columns(place=pl.int_range(pl.len()).over(group), many=pl.len().over(group))


def _ends(start: Array, end: Array, true_start: Array, true_end: Array) -> str:
    """Describe ends that are one off, or an offset of both."""

    def most(equal: Array) -> bool:
        return bool(equal.mean() >= _MOST)

    shift, longer = start - true_start, end - true_end
    step = float(np.round(np.median(longer)))  # empty spans were made as short as floats allow
    if most(shift == 0) and abs(step) == 1 and most(np.abs(longer - step) < 1e-6):
        whose = "predictions'" if step < 0 else "ground truths'"
        return (
            f"the {whose} ends are one less than the others': there 'end' is the last place of a"
            f" span. Add 1 there; if it is so on both sides, {option('span_ends', 'inclusive')}."
        )
    common = float(np.median(shift))
    tolerance = 1e-6 * (1 + abs(common))
    if (
        common
        and most(np.abs(shift - common) <= tolerance)
        and most(np.abs(longer - common) <= tolerance)
    ):
        return _shifted(common)
    return ""


def _shifted(by: float, about: str = "") -> str:
    return (
        f"the predictions are {about}{abs(by):g} {'later' if by > 0 else 'earlier'}: do both"
        " sides count from the same place? Subtract the offset."
    )


def _scale(start: Array, end: Array, true_start: Array, true_end: Array) -> str:
    """Describe another unit of one side."""
    positive = (end > 0) & (true_end > 0)
    if positive.sum() < _LEAST:
        return ""
    ratio = end[positive] / true_end[positive]
    factor = float(np.median(ratio))
    finer, larger = _finer(factor)
    if larger < _LARGER:
        return ""
    steady = (np.abs(ratio / factor - 1) <= 0.02).mean() >= _MOST
    if steady and _unit(larger):
        return _scaled(factor)
    later = (end >= true_end) if factor > 1 else (end <= true_end)
    integral = all((one == np.floor(one)).all() for one in (start, end, true_start, true_end))
    if integral and later.mean() >= _MOST and _CHARACTERS[0] <= larger <= _CHARACTERS[1]:
        return (
            f"the numbers of the {finer} are about {larger:.1g} times the others': are those"
            " characters, and these tokens? Give both sides one of them."
        )
    return _scaled(factor) if steady else ""


def _finer(factor: float) -> tuple[str, float]:
    """Return the side with the larger numbers, and how many times they are the others'."""
    return ("predictions", factor) if factor > 1 else ("ground truths", 1 / factor)


def _unit(larger: float) -> str:
    frames = min(_FRAMES, key=lambda rate: abs(rate - larger))
    unit = next((name for unit, name in _UNITS.items() if abs(unit / larger - 1) <= 0.01), "")
    return f"frames at {frames:g} per second" if abs(frames / larger - 1) <= 0.01 else unit


def _scaled(factor: float, about: str = "") -> str:
    finer, larger = _finer(factor)
    asked = f": are those {unit}?" if (unit := _unit(larger)) else "."
    return (
        f"the numbers of the {finer} are {about}{larger:.4g} times the others'{asked} Give both"
        " sides one unit."
    )
