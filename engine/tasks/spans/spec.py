"""Spans as a task: detection in one dimension."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from ... import dialects
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...schemas.wording import option
from ..contents import Content, Contents, Rows
from ..detection import spec, tallies
from ..detection.encode import encode_batch
from ..detection.losses import contents as contents_of_boxes
from ..encoding import Workers
from ..task import Sample
from .diagnosing import ends_of, few_match, reason
from .dialects import EQUAL, SCHEMAS
from .encode import boxed, count_schemas
from .metrics import RANKED
from .settings import Settings


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> tallies.Tallies:
    """Encode, match and tally spans as boxes of height 1."""
    scored = boxed(frames, settings)
    also = None
    if settings.rules.schemas and SCHEMAS in needs:

        def also(batch: Any) -> Any:
            return count_schemas(batch, settings)

    ends = ends_of(frames.predictions, frames.ground_truths)
    result = tallies.tally(frames, settings, needs, workers, also=also)
    asked = result.ranked.variants.thresholds
    lowest = min(settings.equal_ious if EQUAL in needs else asked)
    hits = int(result.ranked.outcomes(asked.index(lowest))[0].sum())
    if few_match(hits, ends) and (why := reason(ends)) is not None:
        frames.notes.append(why)
    _drop_idle(frames, scored)
    return result


def _examine(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Any:
    scored = boxed(frames, settings)
    batch = encode_batch(frames, settings, workers)
    _drop_idle(frames, scored)
    return batch


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
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that the tables support: those of ranked spans need scores.

    Raises:
        InputError: no requested metric is supported.
    """
    run = frames.predictions
    if "score" in run.columns:
        if not asked_for and settings.rules.equal and not settings.rules.harmonic:
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
    notes = [Note("without_scores", f"{', '.join(left)} skipped: {why}.")] if asked_for else []
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
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents),
    warm=("parts", "fits", "boxes", "rows"),
    examine=_examine,
    needs_all_rows=None,
    limits=(),
    no_limits="bounds are of the caps and ignored objects of images, which spans do not have",
)
