"""Keypoints, compared by object keypoint similarity (OKS) instead of IoU.

Source: pycocotools ``COCOeval.computeOks`` and ``COCO.loadRes``; xtcocotools for people without
annotated area.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import Origin, Place, flat, offsets_of
from ...ingest.frames import Frames
from ...ingest.problems import Note, note_of
from ...kernels.boxes import (
    People,
    PersonRows,
    Points,
    oks_exponents,
    oks_means,
    pairs_reaching,
    person_extents,
    rows_by_datum,
)
from ...schemas.arrays import Array
from ...schemas.contract import HEAD_SIZE, KEYPOINTS, NUM_KEYPOINTS, OF_BOX
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.datums import Labels
from ..encoding import Workers
from .layers import Candidates, Shapes, joined
from .settings import Settings

_BLOCK = 1 << 14
"""Pairs whose exponents are in memory at a time."""
_MIRRORED = {
    17: tuple((left, left + 1) for left in range(2, 17, 2)),  # COCO's
    14: tuple((left, left + 1) for left in range(1, 12, 2)),  # CrowdPose's
}
_SIDES = ("predictions", "ground_truths")
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


class KeypointLayer(msgspec.Struct, frozen=True):
    """Layer of keypoints.

    Attributes:
        area: float64 [n], scale of distances for ground truths, and extent of the points for
            predictions.
        points: coordinates.
        people: further facts of ground truths; None for predictions.
        head: float64 [n], head sizes of ground truths, NaN if unknown, or None.
        mirror: int64, by index of a point's variance, the point on the other side, or the point
            itself.
    """

    area: Array
    points: Points
    people: People | None = None
    head: Array | None = None
    mirror: Array = np.zeros(0, np.int64)

    def candidates(
        self, other: KeypointLayer, compared: Candidates, threads: Workers
    ) -> tuple[Array, Array]:
        """See :meth:`.layers.Layer.candidates`."""
        ours, theirs = (
            PersonRows(start, place, key, row)
            for (start, place), key, row in zip(
                (rows_by_datum(datum, compared.n_datums) for datum in compared.datum),
                compared.key,
                compared.row,
                strict=True,
            )
        )
        arguments: Any = ours, theirs, self.points, other.points, other.people, compared.lowest
        parts = threads.over(
            ours.start, lambda first, last: pairs_reaching(first, last, *arguments)
        )
        return joined(parts)

    def similarity(
        self, other: KeypointLayer, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`: OKS, to which crowds make no difference."""
        out = np.empty(rows.size)
        arguments: Any = self.points, other.points, other.people

        def part(first: int, last: int) -> None:
            for at in range(first, last, _BLOCK):
                here = slice(at, min(at + _BLOCK, last))
                start, values = oks_exponents(rows[here], other_rows[here], *arguments)
                np.exp(values, out=values)
                out[here] = oks_means(start, values)

        threads.over(np.arange(rows.size + 1), part)
        return out


def points_of(column: pl.Series) -> Points:
    """Convert lists of x, y and visibility to kernel input."""
    parts = [flat(chunk) for chunk in column.get_chunks()]
    start = offsets_of(np.concatenate([np.diff(part) for _, (part,) in parts]))
    numbers = [values.cast(pl.Float64).to_numpy() for values, _ in parts]
    # NumPy's memory is in huge pages, unlike that of Polars, which would join chunks more slowly.
    every = numbers[0] if len(numbers) == 1 else np.concatenate(numbers)
    return Points(start, every)


def as_keypoints(
    frames: Frames,
    labels: Labels,
    codes: tuple[Array, Array],
    origins: tuple[Origin, Origin],
    settings: Settings,
) -> tuple[Shapes, Shapes]:
    """Return both sides' keypoints as shapes.

    Args:
        codes: label codes of their rows, int32 [n] and [m].
        origins: names of rows in error messages.
        settings: sigmas of the labels, and whether box sizes override areas.

    Raises:
        InputError: rows of one label have different numbers of points, or another number than
            there are sigmas; people without an area and without a box.
    """
    if settings.rules.sized_by_box:
        frames.ground_truths = frames.ground_truths.drop("area", strict=False)
    tables = [getattr(frames, side) for side in _SIDES]
    ours, theirs = (
        points_of(
            table[KEYPOINTS.name]
            if KEYPOINTS.name in table.columns
            else pl.Series([[]] * table.height, dtype=pl.List(pl.Float64))
        )
        for table in tables
    )
    n_points = _n_points((ours, theirs), codes, len(labels), origins)
    boxes = _boxes(tables[1])
    labelled = None
    if NUM_KEYPOINTS.name in tables[1].columns:
        labelled = tables[1][NUM_KEYPOINTS.name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    area = _areas(frames, boxes, origins[1])
    variances = settings.sigmas.variances(labels, n_points)
    sides, shapes = shapes_of(ours, theirs, boxes, area, labelled, codes[1], n_points, variances)
    _note_unlabelled(frames, shapes.set_aside)
    layer = shapes.layers[0]
    assert isinstance(layer, KeypointLayer)
    layer = msgspec.structs.replace(
        layer,
        head=_heads(frames.ground_truths, theirs, settings),
        mirror=mirrors(n_points, variances[0], settings),
    )
    return sides, msgspec.structs.replace(shapes, layers=(layer,))


def shapes_of(
    ours: Points,
    theirs: Points,
    boxes: Array,
    area: Array,
    counted: Array | None,
    label: Array,
    n_points: Array,
    variances: tuple[Array, Array],
) -> tuple[Shapes, Shapes]:
    """Build the shapes of predictions and ground truths.

    Args:
        ours: points of the predictions.
        theirs: points of the ground truths.
        boxes: float64 [m, 4], x, y, width and height of each ground truth's box, NaN without one.
        area: float64 [m], scale of its distances.
        counted: float64 [m], declared number of labelled points, NaN if not declared; None if no
            row declares it.
        label: int32 [m], its label.
        n_points: int64 [labels], points of each label's rows.
        variances: int64 [labels], offset of each label; float64, (2 sigma)^2 of every point.
    """
    around, _ = person_extents(*ours, True)
    of_truths, labelled = person_extents(*theirs, False)
    at = variances[0][label]
    people = People(labelled, area, boxes, n_points[label], at, variances[1])
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    drawn = np.where((labelled > 0)[:, None], of_truths, corners)
    unlabelled = labelled == 0
    if counted is not None:
        unlabelled = np.where(np.isnan(counted), unlabelled, counted == 0)
    around_area = (around[:, 2] - around[:, 0]) * (around[:, 3] - around[:, 1])
    return (
        Shapes((KeypointLayer(around_area, ours),), around),
        Shapes((KeypointLayer(area, theirs, people),), drawn, set_aside=unlabelled),
    )


def _note_unlabelled(frames: Frames, unlabelled: Array | None) -> None:
    n = 0 if unlabelled is None else int(unlabelled.sum())
    if n:
        words = (
            "row without a labelled keypoint is",
            "rows without a labelled keypoint are",
            "ignored, as are predictions on them",
        )
        frames.notes.append(note_of("unlabelled_people", n, words, before="ground truths: "))


def _n_points(
    points: tuple[Points, Points],
    codes: tuple[Array, Array],
    n_labels: int,
    origins: tuple[Origin, Origin],
) -> Array:
    """Return the number of points of each label's rows, int64 [labels].

    Raises:
        InputError: rows of one label differ.
    """
    sizes = [np.diff(side.start) // 3 for side in points]
    out = np.zeros(n_labels, np.int64)
    for size, label in zip(sizes, codes, strict=True):
        np.maximum.at(out, label, size)
    for side, size, label, origin in zip(_SIDES, sizes, codes, origins, strict=True):
        wrong = (size > 0) & (size != out[label])
        Place(side, KEYPOINTS.name, None, origin).refuse(
            "keypoints_uneven",
            wrong,
            "with fewer keypoints than other rows of their label",
            "All rows of a label, predictions and ground truths, need the same points in the same"
            " order; those that are not there have visibility 0.",
            lambda row, size=size, label=label: f"{size[row]} of {out[label[row]]}",  # type: ignore[misc]
        )
    return out


def _boxes(frame: pl.DataFrame) -> Array:
    """x, y, width and height of every row's box, float64 [n, 4], NaN without one."""
    if not {*_CORNERS} <= {*frame.columns}:
        return np.full((frame.height, 4), np.nan)
    wide, high = (
        pl.col(f"{axis}max") - pl.col(f"{axis}min")
        if extent not in frame.columns
        else pl.coalesce(extent, pl.col(f"{axis}max") - pl.col(f"{axis}min"))
        for axis, extent in (("x", "box_width"), ("y", "box_height"))
    )
    corners = frame.select("xmin", "ymin", wide.alias("w"), high.alias("h"))
    return corners.cast(pl.Float64).fill_null(np.nan).to_numpy(order="c")


def _areas(frames: Frames, boxes: Array, origin: Origin) -> Array:
    """Return the scale of each person's distances, float64 [m].

    Raises:
        InputError: people without an area and without a box.
    """
    frame = frames.ground_truths
    if "area" in frame.columns:
        return frame["area"].cast(pl.Float64).to_numpy()
    area = boxes[:, 2] * boxes[:, 3] * OF_BOX
    Place("ground_truths", "area", None, origin).refuse(
        "area_missing",
        np.isnan(area),
        "without an area and without a box",
        "OKS needs the size of each person: give a column area, or boxes.",
    )
    if area.size:
        message = f"ground truths: without areas, people are as large as {OF_BOX:g} of their boxes."
        frames.notes.append(Note("areas_of_people", message))
    return area


def _heads(people: pl.DataFrame, points: Points, settings: Settings) -> Array | None:
    """Return head sizes, float64 [m], NaN if unknown; None if all are unknown."""
    if settings.head_segment is None:
        if HEAD_SIZE.name not in people.columns:
            return None
        return people[HEAD_SIZE.name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    one, other = (3 * (number - 1) for number in settings.head_segment)
    out = np.full(people.height, np.nan)
    rows = np.flatnonzero(np.diff(points.start) > max(one, other))
    labelled = (points.values[points.start[rows] + at + 2] > 0 for at in (one, other))
    rows = rows[np.logical_and(*labelled)]
    x, y = (
        points.values[points.start[rows] + one + axis]
        - points.values[points.start[rows] + other + axis]
        for axis in (0, 1)
    )
    out[rows] = np.sqrt(x * x + y * y)
    return out


def mirrors(n_points: Array, variance_at: Array, settings: Settings) -> Array:
    """Return the mirrored point of every point, or itself, int64 by index of its variance.

    Raises:
        InputError: points that no label has.
    """
    out: Array = np.zeros(int(n_points.sum()), np.int64)
    pairs = settings.mirrored
    wrong = [pair for pair in pairs or () if max(pair) > n_points.max(initial=0) > 0]
    if wrong:
        written = option("mirrored_keypoints", "=".join(map(str, wrong[0])))
        raise InputError(
            f"{written}: rows have {n_points.max()} keypoints, counted from 1.",
            code="unknown_keypoint",
            count=int(n_points.max()),
        )
    for size, at in zip(n_points.tolist(), variance_at.tolist(), strict=True):
        mirror = np.arange(size)
        for left, right in _MIRRORED.get(size, ()) if pairs is None else pairs:
            if max(left, right) <= size:
                mirror[left - 1], mirror[right - 1] = right - 1, left - 1
        out[at : at + size] = mirror
    return out
