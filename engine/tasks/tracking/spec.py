"""Tracking as a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.problems import count_of
from ...metrics import Metric
from ...schemas.arrays import Array
from ...tallies.counts import CountsView
from ..contents import Content, Contents
from ..counted import counts_in_parts, frames_of, label_tables, view_of
from ..task import Cuts, Losses, Sample, Task
from .dialects import Settings
from .tallies import Tallies, error_rows, examine, merge, outcome_rows, rows_of, tally

# Loss of single sequences: HOTA, else another number; and their contents.

_JUDGES = ("HOTA", "MOTA", "IDF1")


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses | str:
    """See :class:`..task.JudgeDatums`."""
    judges = [name for name in _JUDGES if name in tallies.stats.columns]
    if not judges:
        return "sequences are judged by HOTA, MOTA or IDF1, and none was computed"
    (column,) = tallies.stats.columns[judges[0]]
    value = column.values[:, 0, 0]
    rows = tallies.tracks.rows
    totals = {
        name: np.bincount(rows.datum, getattr(rows, name), minlength=value.size)
        for name in ("truth", "found", "tp", "switches")
    }

    def why(codes: Array) -> list[str]:
        sentences = []
        for code in codes.tolist():
            truth, predicted, tp, switches = (int(totals[name][code]) for name in totals)
            parts = f"{count_of(truth, 'box', 'boxes')}, {predicted:,} predicted"
            if "clear" in tallies.counted:
                switched = count_of(switches, "switch", "switches")
                parts = f"{truth - tp:,} missed, {predicted - tp:,} too many, {switched}"
            sentences.append(parts)
        return sentences

    return Losses(
        metric=judges[0],
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [totals["truth"][codes] + totals["found"][codes]],
        why=why,
        by_score=False,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of sequences, the most boxes first."""
    rows = tallies.tracks.rows
    shown = {
        "boxes": rows.truth,
        "predicted": rows.found,
        "matched": rows.tp,
        "switches": rows.switches,
        "fragments": rows.fragments,
    }
    columns = {name: lambda at, values=values: f"{values[at]}" for name, values in shown.items()}
    return label_tables(tallies, rows, codes, rows.truth + rows.found, columns)


# Tiny tables that make every kernel of tracking run once.


def samples() -> Iterator[Sample]:
    """Two objects of two labels in two frames, one ignored."""
    truth = pl.DataFrame(
        {
            "sequence": ["a"] * 4,
            "frame": [1, 1, 2, 2],
            "object_id": [1, 2, 1, 2],
            "xmin": [0.0, 9.0, 1.0, 9.0],
            "ymin": [0.0] * 4,
            "xmax": [4.0, 12.0, 5.0, 12.0],
            "ymax": [4.0] * 4,
            "label_value": ["x", "y", "x", "y"],
            "ignored": [0, 1, 0, 0],
        }
    )
    predicted = truth.drop("ignored").rename({"object_id": "track_id"})
    yield predicted, truth, {"metrics": metrics.names("tracking")}
    square = [[0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0]]
    mask = {"size": [8, 8], "counts": [0, 8, 56]}
    shaped = truth.drop("xmin", "ymin", "xmax", "ymax").with_columns(
        polygon=pl.Series([square, None] * 2),
        mask=pl.Series([None, mask] * 2),
        region=pl.Series([0, 0, 0, 1]),
    )
    tracks = shaped.drop("ignored", "region").rename({"object_id": "track_id"})
    sizes = pl.DataFrame({"sequence": ["a"], "height": [8], "width": [8]})
    yield tracks, shaped, {"metrics": ["HOTA"], "iou_type": "segm", "datums": sizes}


# The plan of a tracking run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    at = settings.overlap
    lines = {
        "hota": f"match     HOTA: one assignment a frame, at {len(settings.alphas)} IoU thresholds",
        "clear": f"match     CLEAR: IoU of {at:g} or more, pairs of the frame before first",
        "identity": f"match     identity: one track an object, IoU of {at:g} or more",
        "events": "list      outcome of every box",
    }
    steps = [line for need, line in lines.items() if need in needs]
    return [*steps, "tally     by sequence and label", "sum       over sequences and labels"]


def cells_per_group(n_labels: int, settings: Settings, needs: frozenset[str]) -> int:
    """Numbers of one group of sequences."""
    return (5 * len(settings.alphas) + 20) * (n_labels + 1)


TASK = Task(
    name="tracking",
    settings=Settings,
    tally=tally,
    examine=examine,
    merge=merge,
    view=view_of(CountsView, "tracks"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(
        outcomes=rows_of("outcomes", outcome_rows), errors=rows_of("errors", error_rows)
    ),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    no_limits="no number of it rests on ties of scores, a cap or missing judgments",
    drawn=CountsView.drawn,
    warm=("parts",),
    in_parts=counts_in_parts("tracks", merge),
)
