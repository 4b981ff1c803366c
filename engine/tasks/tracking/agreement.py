"""Evidence that tracks would overlap under other frame numbers, exchanged columns, units or labels.

A run whose boxes match looks no closer. The exception is a side that counts its frames from another
number: slow objects then still match, so the frames are compared whenever the lowest ones differ.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.problems import Note
from ...tally.tracks import TrackRows
from ..box_agreement import (
    FEWEST,
    GOOD,
    LEAST,
    POOR,
    boxes_apart,
    fit,
    good_fit,
    labels_apart,
    sample,
)
from .encode import Batch, Side

Array = np.ndarray[Any, Any]

_MATCHED = 0.25  # share of the smaller side's rows; from here on the boxes agree
_BETTER = 0.05  # gain in the mean of best IoUs that other frame numbers have to bring
_SEQUENCES, _FRAMES = 8, 200  # that are looked at if boxes match but first frames differ
_SHIFTS = (1, -1)
_AT = 0.5  # IoU at which HOTA's matches are counted here


class _Units(msgspec.Struct, frozen=True):
    """Rows of one side by frame of a sequence.

    Attributes:
        datum: int64 [n], code of the frame: the same on both sides.
        label: int32 [n], label codes.
        corners: float64 [n, 4].
    """

    datum: Array
    label: Array
    corners: Array

    def boxes(self, rows: Array) -> Array:
        """Corners of some rows, float64 [k, 4]."""
        corners: Array = self.corners[rows]
        return corners


def disagreement(
    batch: Batch, truth: Side, found: Side, rows: TrackRows, alphas: tuple[float, ...]
) -> Note | None:
    """Return a warning of tracks that hardly match for a reason that can be named.

    Args:
        batch: all sequences.
        truth: ground truths that count.
        found: predictions that count.
        rows: counts by sequence and label.
        alphas: thresholds of HOTA.
    """
    n = min(truth.frame.size, found.frame.size)
    if not n:
        return None
    from_other = int(truth.frame.min()) - int(found.frame.min())
    near = int(np.abs(np.array(alphas) - _AT).argmin())
    matched = max(int(rows.tp.sum()), int(rows.common.sum()), int(rows.alpha_tp[:, near].sum()))
    poor = matched < _MATCHED * n
    if not poor and not from_other:
        return None
    if not poor:
        truth, found = _some(truth), _some(found)
        if not min(truth.frame.size, found.frame.size):
            return None
    ours, theirs, key = _units(truth, found)
    mine, others = sample(ours, theirs, _placed(key, 0))
    as_is = fit(mine.boxes, others.boxes) if others.boxes else 0.0
    shifts = dict.fromkeys((from_other, *(_SHIFTS if poor else ())))
    warning = _shifted(ours, theirs, key, [shift for shift in shifts if shift], as_is)
    if warning is not None or not poor:
        return warning
    if others.boxes and as_is >= POOR:
        warning = labels_apart(mine, others, batch.labels)
    elif others.boxes and found.masks is None:
        fewest = min(sum(map(len, mine.boxes)), sum(map(len, others.boxes)))
        warning = boxes_apart(mine.boxes, others.boxes, fewest)
    return warning or _exchanged(truth, found) or _no_common_frame(ours, theirs)


def _some(side: Side) -> Side:
    """The first frames of the first sequences: enough to compare frame numbers."""
    few = np.flatnonzero((side.datum < _SEQUENCES) & (side.frame < side.frame.min() + _FRAMES))
    return side.some(few) if few.size < side.datum.size else side


def _units(truth: Side, found: Side) -> tuple[_Units, _Units, Array]:
    """Rows of predictions and of ground truths by frame, and the key of every frame.

    Returns:
        predictions, ground truths, and int64 [n_units, 2]: sequence and frame of each code.
    """
    pairs = np.stack(
        [
            np.concatenate([found.datum, truth.datum]).astype(np.int64),
            np.concatenate([found.frame, truth.frame]),
        ]
    )
    order = np.lexsort(pairs[::-1])
    ordered = pairs[:, order]
    new = np.ones(order.size, bool)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    code = np.empty(order.size, np.int64)
    code[order] = np.cumsum(new) - 1
    n = found.frame.size
    ours = _Units(code[:n], found.label, found.boxes)
    theirs = _Units(code[n:], truth.label, truth.boxes)
    return ours, theirs, ordered[:, new].T


def _placed(key: Array, shift: int) -> Array:
    """The code of the frame that is ``shift`` later in the same sequence; -1 without one."""
    if not shift:
        return np.arange(len(key), dtype=np.int64)
    known = pl.DataFrame({"datum": key[:, 0], "frame": key[:, 1], "code": np.arange(len(key))})
    wanted = known.select("datum", frame=pl.col("frame") + shift)
    at = wanted.join(known, on=["datum", "frame"], how="left", maintain_order="left")["code"]
    places: Array = at.fill_null(-1).to_numpy()
    return places


def _shifted(
    ours: _Units, theirs: _Units, key: Array, shifts: list[int], as_is: float
) -> Note | None:
    """A warning of frames that are counted from another number on one side."""
    for shift in shifts:
        mine, others = sample(ours, theirs, _placed(key, shift))
        fewest = min(sum(map(len, mine.boxes)), sum(map(len, others.boxes)))
        if fewest < FEWEST:
            continue
        well = fit(mine.boxes, others.boxes)
        if well >= good_fit(fewest) and well >= as_is + _BETTER:
            return Note(
                "frames_shifted",
                "boxes overlap better once the frames of the predictions are changed by"
                f" {shift:+d}: one side counts its frames from another number, or is late, and the"
                " numbers mean little. Change column 'frame' of that side.",
                warning=True,
            )
    return None


def _exchanged(truth: Side, found: Side) -> Note | None:
    """A warning of predictions whose ids and frames are exchanged."""
    ids = found.ids.cast(pl.Int64, strict=False)
    if ids.null_count() or not len(ids):
        return None
    other = msgspec.structs.replace(found, frame=ids.to_numpy()[found.id])
    ours, theirs, key = _units(truth, other)
    mine, others = sample(ours, theirs, _placed(key, 0))
    fewest = min(sum(map(len, mine.boxes)), sum(map(len, others.boxes)))
    if fewest < LEAST or fit(mine.boxes, others.boxes) < GOOD:
        return None
    return Note(
        "frames_exchanged",
        "boxes of the two sides overlap once columns 'frame' and 'track_id' of the predictions are"
        " exchanged, and the numbers mean little as they are. In text files the frame is the first"
        " column; of a table, name both with --columns.",
        warning=True,
    )


def _no_common_frame(ours: _Units, theirs: _Units) -> Note | None:
    """A warning of sides without a frame in common."""
    if np.isin(ours.datum, theirs.datum).any():
        return None
    return Note(
        "no_common_frame",
        "no frame of a sequence is on both sides, and the numbers mean little: are columns 'frame'"
        " of both sides frame numbers, and of the same videos?",
        warning=True,
    )
