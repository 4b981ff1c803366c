"""Spans as a task: boxes of height 1, nervaluate's outcomes, and reasons why spans do not match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import dialects
from ...geometry.columns import offsets_of
from ...ingest.frames import Frames
from ...ingest.problems import Note, note_of
from ...kernels.spans import judge_schemas
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY, GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.ranked import Ranked, Variants
from ..contents import Content, Contents, Rows
from ..detection import spec, tallies
from ..detection.encode import Batch, Side, keep_rows
from ..detection.point_counts import PointCounts
from ..detection.spec import contents as contents_of_boxes
from ..encoding import Workers, mapped_labels
from ..task import Sample
from .dialects import EQUAL, OUTCOMES, SCHEMA_NAMES, SCHEMAS, SCOPES
from .metrics import RANKED, Settings

# Encoding: boxes of height 1, and nervaluate's outcomes.

_SPAN = ("start", "end")
_BEYOND = 1.01  # times the duration, which files round


def boxed(frames: Frames, settings: Settings) -> bool:
    """Replace the ends of spans by corners of boxes; return whether predictions have scores.

    Without scores, all get the same. Empty spans that are compared for equality become as short as
    floats allow, so that they equal themselves.
    """
    rules = settings.rules
    scored = "score" in frames.predictions.columns
    ranked = scored and not rules.harmonic
    _note_values(frames, settings)
    frames.heights = frames.heights or (frames.predictions.height, frames.ground_truths.height)
    for side in (PREDICTIONS, GROUND_TRUTHS):
        frame = getattr(frames, side)
        if "start" not in frame.columns:
            continue
        if rules.merged and not ranked and _may_repeat(frame):
            compared = frame
            if frames.label_map:  # spans may repeat others under the new label
                if "label_key" not in frame.columns:
                    compared = frame.with_columns(label_key=pl.lit(DEFAULT_LABEL_KEY))
                pairs = compared.select(pl.col("label_key").cast(pl.String), "label_value")
                compared = frame.with_columns(mapped_labels(pairs, frames.label_map).get_columns())
            key = ["datum_id", "label_key", "label_value", *_SPAN, *["ignore"] * rules.ignore]
            key = [name for name in key if name in compared.columns]
            distinct = pl.struct(key).is_first_distinct()
            if "score" in frame.columns:  # the highest, whatever the order of the rows
                distinct = (pl.int_range(pl.len()) == pl.col("score").arg_max()).over(key)
            first = compared.select(distinct).to_series()
            words = "repeated span", "repeated spans", "skipped"
            keep_rows(frames, side, first, "repeated_spans", words)
            frame = getattr(frames, side)
        start, end = (pl.col(name).cast(pl.Float64) for name in _SPAN)
        if settings.span_ends == "inclusive":
            end = end + 1.0
        elif rules.equal and not rules.events and not ranked:
            after = np.nextafter(frame["start"].cast(pl.Float64).to_numpy(), np.inf)
            end = pl.when(end > start).then(end).otherwise(pl.Series(after))
        score_column = [] if scored or side == GROUND_TRUTHS else [pl.lit(1.0).alias("score")]
        corners = frame.with_columns(
            start.alias("xmin"),
            pl.lit(0.0).alias("ymin"),
            end.alias("xmax"),
            pl.lit(1.0).alias("ymax"),
            *score_column,
        )
        setattr(frames, side, corners.drop(_SPAN))
    return scored


def _note_values(frames: Frames, settings: Settings) -> None:
    """Note spans before 0 or after the end of their recording, and ``ignore`` that is not read."""
    for side in (PREDICTIONS, GROUND_TRUTHS):
        frame = getattr(frames, side)
        if "start" not in frame.columns:
            continue
        before = f"{side.replace('_', ' ')}: "
        if n := int((frame["start"] < 0).sum()):
            words = "span", "spans", "with a negative start"
            frames.notes.append(note_of("starts_negative", n, words, before=before))
        if frames.datums is not None and "duration" in frames.datums.columns:
            last = frame.group_by("datum_id").agg(pl.col("end").max())
            joined = last.join(frames.datums.select("datum_id", "duration"), on="datum_id")
            beyond = joined.filter(pl.col("end") > pl.col("duration") * _BEYOND)["datum_id"].sort()
            if n := len(beyond):
                words = "recording", "recordings", "with spans that end after the duration"
                frames.notes.append(note_of("spans_after_end", n, words, beyond, before))
        if "ignore" not in frame.columns or settings.rules.ignore:
            continue
        if n := int(frame["ignore"].cast(pl.Boolean).sum()):
            words = "span", "spans", "with ignore counted: this dialect does not read it"
            frames.notes.append(note_of("ignore_unread", n, words, before=before))


def _may_repeat(frame: pl.DataFrame) -> bool:
    """Return whether a table is not strictly in the order of datums and starts."""
    datum, start = pl.col("datum_id"), pl.col("start")
    before = datum.shift(), start.shift()
    again = (datum < before[0]) | ((datum == before[0]) & (start <= before[1]))
    return bool(frame.select(again.any()).item())


def count_schemas(batch: Batch, settings: Settings) -> PointCounts:
    """Return the outcomes of all spans under each schema, as marks of rows.

    Every row is a prediction, or a ground truth, which has marks where it is missed.
    """
    ours, theirs = (_by_datum(batch, side) for side in (batch.predictions, batch.ground_truths))
    outcomes = judge_schemas(
        (ours.start, theirs.start),
        (ours.begin, theirs.begin),
        (ours.end, theirs.end),
        (ours.label, theirs.label),
        (batch.labels.key[ours.label], batch.labels.key[theirs.label]),
        settings.min_overlap_percentage,
    )
    datum, label = np.r_[ours.datum, theirs.datum], np.r_[ours.label, theirs.label]
    row = np.r_[2 * ours.row, 2 * theirs.row + 1]
    bits = np.concatenate([_flags(outcome) for outcome in outcomes])
    order = np.lexsort((row, datum, label))
    n_labels = len(batch.labels)
    none = np.zeros(n_labels + 1, np.int64)
    empty = np.zeros((1, 0), np.uint64)
    tally = Ranked(
        variants=Variants((0.0,), tuple((f"{name} 1", -np.inf, np.inf) for name in FLAGS)),
        start=none,
        score=np.zeros(0),
        datum=np.zeros(0, np.int32),
        row=np.zeros(0, np.int64),
        rank=np.zeros(0, np.int32),
        hit=empty,
        ignored=empty,
        gt_start=offsets_of(np.bincount(label, minlength=n_labels)),
        gt_datum=datum[order].astype(np.int32),
        gt_row=row[order],
        gt_counted=bits[order][None],
        single=batch.single,
    )
    return PointCounts(FLAGS, tally)


FLAGS = tuple(
    f"{scope} {schema} {outcome}"
    for scope in SCOPES
    for schema in SCHEMA_NAMES
    for outcome in OUTCOMES
)
"""Marks of rows: outcome under a schema, over all labels or within the label."""


class _Spans(msgspec.Struct, frozen=True):
    """Spans of one side by datum, then row; ``start`` are offsets by datum."""

    start: Array
    begin: Array
    end: Array
    datum: Array
    label: Array
    row: Array


def _by_datum(batch: Batch, side: Side) -> _Spans:
    rows = np.arange(side.datum.size) if side.rows is None else side.rows
    place = np.lexsort((rows, side.datum))
    boxes = side.boxes(place)
    start = offsets_of(np.bincount(side.datum, minlength=len(batch.datums)))
    bounds = boxes[:, 0], boxes[:, 2]
    return _Spans(start, *bounds, side.datum[place], side.label[place], rows[place])


def _flags(outcome: Array) -> Array:
    """Outcomes [2, 4, n], -1 for none, as bits in the order of :data:`FLAGS`, uint64 [n]."""
    out = np.zeros(outcome.shape[-1], np.uint64)
    for scope, schema in np.ndindex(*outcome.shape[:2]):
        code = outcome[scope, schema].astype(np.int64)
        at = (scope * len(SCHEMA_NAMES) + schema) * len(OUTCOMES) + np.maximum(code, 0)
        out |= np.where(code >= 0, np.uint64(1) << at.astype(np.uint64), np.uint64(0))
    return out


# Reasons why spans of the two sides do not match: another unit, an offset, or the meaning of ends.

_LEAST = 5  # pairs that are no coincidence
_MOST = 0.9  # share of the pairs that one reading has to explain
_FEW = 0.05  # share of matches below which a reason is looked for
_FRAMES = (23.976, 24.0, 25.0, 29.97, 30.0, 50.0, 59.94, 60.0)
_UNITS = {1000.0: "milliseconds", 60.0: "minutes", 3600.0: "hours"}
_LARGER = 1.5  # factor from which units differ
_SEEN = 1_000  # spans of the ground truths that are looked at for an overlap
_CHARACTERS = (3.0, 12.0)  # per token, with blanks

Sides = tuple[pl.DataFrame, pl.DataFrame]


def sides_of(ours: pl.DataFrame, theirs: pl.DataFrame) -> Sides:
    """Columns of both sides that a diagnosis needs, before they are consumed."""
    names = ["datum_id", "label_key", "label_value", "xmin", "xmax"]
    first, second = (side.select(name for name in names if name in side) for side in (ours, theirs))
    return first, second


def reason(sides: Sides) -> Note | None:
    """Return a warning if one reading of the predictions would match nearly all spans.

    Spans of one datum and label are paired in order, where both sides have as many. Spans that no
    reading makes equal may overlap in one: see :func:`_rough`.
    """
    ours, theirs = (_numbered(side) for side in sides)
    key = ["datum_id", "label_key", "label_value", "place", "many"]
    joined = ours.join(theirs, on=key, how="inner", suffix="_true")
    corners = _corners(joined)
    cause = ""
    if joined.height >= _LEAST:
        cause = _offset(*corners) or _scale(*corners)
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


def _offset(start: Array, end: Array, true_start: Array, true_end: Array) -> str:
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
    query = f": are those {unit}?" if (unit := _unit(larger)) else "."
    return (
        f"the numbers of the {finer} are {about}{larger:.4g} times the others'{query} Give both"
        " sides one unit."
    )


# Fit, explanations and the task.


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> tallies.Tallies:
    """Encode, match and tally spans as boxes of height 1."""
    scored = boxed(frames, settings)
    also = None
    if settings.rules.schemas and SCHEMAS in needs:

        def also(batch: Any) -> Any:
            return count_schemas(batch, settings)

    sides = sides_of(frames.predictions, frames.ground_truths)
    result = tallies.tally(frames, settings, needs, workers, also=also)
    thresholds = result.ranked.variants.thresholds
    lowest = min(settings.equal_ious if EQUAL in needs else thresholds)
    hits = int(result.ranked.outcomes(thresholds.index(lowest))[0].sum())
    few = hits < _FEW * min(side.height for side in sides)
    if few and (why := reason(sides)) is not None:
        frames.notes.append(why)
    _drop_idle(frames, scored)
    return result


def _drop_idle(frames: Frames, scored: bool) -> None:
    """Drop detection's warnings about images, and about scores if there were none; others name
    spans.
    """
    idle = {"boxes_apart"} if scored else {"boxes_apart", "tied_scores"}
    frames.notes = [
        msgspec.structs.replace(
            note, message=re.sub("boxes (of the|that)", r"spans \1", note.message)
        )
        for note in frames.notes
        if note.kind not in idle
    ]


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that the tables support: those of ranked spans need scores.

    Raises:
        InputError: no requested metric is supported.
    """
    run = frames.predictions
    if "score" in run.columns:
        if not requested and settings.rules.equal and not settings.rules.harmonic:
            metrics = tuple(one for one in metrics if one.name in RANKED) or metrics
        return metrics, []
    left = [one.name for one in metrics if one.name in RANKED]
    fitting = tuple(one for one in metrics if one.name not in RANKED)
    if not left or (not run.height and not fitting):
        return metrics, []
    why = "the predictions have no column 'score', by which they are ranked"
    if not fitting:
        raise InputError(
            f"{', '.join(left)}: {why}. Add it, or name it:"
            f" {option('columns', {'mine': 'score'})}; or ask for {option('metrics', ['F1'])}.",
            code="metric_unfit",
            metrics=left,
        )
    notes = [Note("without_scores", f"{', '.join(left)} skipped: {why}.")] if requested else []
    return fitting, notes


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    rules = settings.rules
    lines = [line for line in spec.explain(settings, needs) if not line.startswith("geometry")]
    how = "greedy, one to one, in the order of the rows" if rules.schemas else ""
    if rules.events:
        share = f"{settings.collar[1]:g} of the length"
        how = f"onset within {settings.collar[0]:g} s, offset within that or {share}; most pairs"
    last = settings.span_ends == "inclusive"
    end_line = f"ends      {'the last place of a span' if last else 'the first place after a span'}"
    return [*lines[:1], end_line, *([f"spans     {how}"] if how else []), *lines[1:]]


def contents(
    frames: Frames, settings: Settings, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`: spans and their outcomes, as a table."""
    boxed(frames, settings)
    out: list[Content | None] = []
    for one in contents_of_boxes(frames, settings, ids, made_with, workers):
        boxes = getattr(one, "boxes", ())
        rows = tuple(
            (box.label, box.outcome, f"{box.corners[0]:g}", f"{box.corners[2]:g}") for box in boxes
        )
        left = getattr(one, "left_out", 0)
        out.append(Rows(columns=("label", "outcome", "start", "end"), rows=rows, left_out=left))
    return out


def samples() -> Iterator[Sample]:
    """Tags under each reading; spans and segments under each dialect."""
    tags = pl.DataFrame({"actual": [["B-A", "I-A", "O"]], "predicted": [["B-A", "O", "B-B"]]})
    truth = pl.DataFrame(
        {"datum_id": [1, 1], "label_value": ["a", "b"], "start": [0, 3], "end": [2, 5]}
    )
    predicted = truth.with_columns(score=pl.Series([0.9, 0.8]))
    for name in dialects.names("spans"):
        defaults = dialects.get("spans", name)
        if not defaults.rules.events and "mAP" not in (defaults.metrics or ()):
            yield tags, None, {"dialect": name}
        yield predicted, truth, {"dialect": name}
    sliced = truth.with_columns(kind=pl.lit("x"))
    yield predicted, sliced, {"metrics": ["mAP", "ConfusionMatrix", "Errors"], "by": "kind"}


TASK = msgspec.structs.replace(
    spec.TASK,
    name="spans",
    settings=Settings,
    fit=fit,
    tally=tally,
    examine=None,
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents),
    warm=("parts", "fits", "boxes", "rows"),
    needs_all_rows=None,
    limits=(),
    no_limits="bounds are of the caps and ignored objects of images, which spans do not have",
)
