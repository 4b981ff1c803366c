"""Single keypoints: found within a distance (PCK, PCKh), and errors of the others.

The tally only covers people. Instead of area ranges it has marks of points, such as ``near by box
3``: people whose third point has the mark count there, so that points are counted per group and
resample like ground truths.

Source: MPII's and mmpose's PCK; M. R. Ronchi and P. Perona (ICCV 2017) and its code coco-analyze.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.problems import Note, note_of
from ...kernels.boxes import FoundPoints, LaidPoints, flag_points, judged_points
from ...schemas.arrays import Array
from ...tallies.ranked import BITS, Ranked, Variants
from ...tallies.registry import stored_as
from .dialects import KINDS, OF_KINDS, PCK, PCKH, WRONG, labelled_points, named, point_flags
from .encode import Batch
from .errors import error_rows
from .keypoints import KeypointLayer
from .matching import Matched
from .overlaps import label_of, regular_ground_truths
from .settings import Settings

ANY = float(np.nextafter(0.0, 1.0))
"""OKS from which people are paired for PCK: any."""
_WHOSE = {PCK: "box, for PCK", PCKH: "head, for PCKh"}


def pairing(settings: Settings, needs: frozenset[str]) -> tuple[float, ...]:
    """Return the OKS thresholds at which people are paired with predictions."""
    by_kind = (settings.background_iou,) if KINDS in needs else ()
    return (*((ANY,) if {PCK, PCKH} & needs else ()), *by_kind)


@stored_as("detection.keypoints/1")
class PointCounts(msgspec.Struct, frozen=True):
    """Marks of single keypoints.

    Attributes:
        marks: names of the marks of every point.
        ranked: the tally, with marks of the first point, then the second, ...
    """

    marks: tuple[str, ...]
    ranked: Ranked


def count_points(
    batch: Batch, matched: Matched, settings: Settings, needs: frozenset[str], notes: list[Note]
) -> tuple[PointCounts, pl.DataFrame | None]:
    """Mark the points of all people that count.

    Args:
        batch: encoded tables of keypoints.
        matched: the match, with takers, including the thresholds of :func:`pairing`.
        needs: subset of :data:`.dialects.NEEDS`.
        notes: receives notes on people of unknown size.

    Returns:
        the marks; rows of the ``errors`` frame, one per wrong point, if needed.
    """
    ours, theirs = _layers(batch)
    assert theirs.people is not None
    ranked, people = matched.ranked, theirs.people
    laid_points = LaidPoints(ranked.gt_row, ranked.gt_datum, label_of(ranked.gt_start))
    regular = regular_ground_truths(matched)
    flags = point_flags(needs)
    n_points = int(people.n_points.max(initial=1))
    bits = np.zeros((-(-n_points * len(flags) // BITS), regular.size), np.uint64)
    points, truth = ours.points, theirs.points
    for need, size in ((PCK, np.fmax(people.boxes[:, 2], people.boxes[:, 3])), (PCKH, theirs.head)):
        if need in needs:
            assert size is not None
            unsized = regular & ~(size[laid_points.row] > 0)
            if unsized.any():
                words = ("person", "people", f"of unknown size ({_WHOSE[need]}) skipped")
                notes.append(
                    note_of("unsized", int(unsized.sum()), words, before="ground truths: ")
                )
            detected = _detected_people(matched, ANY)[0]
            first = flags.index(labelled_points(need)[0])
            flag_points(
                detected,
                regular,
                laid_points,
                points,
                truth,
                size,
                settings.share_of(need),
                first,
                len(flags),
                bits,
            )
    frame = None
    if KINDS in needs:
        detected, taker = _detected_people(matched, settings.background_iou)
        judged = judged_points(detected, laid_points, points, truth, people, theirs.mirror)
        pair, point, kind = judged[:3]
        place = detected.place[pair]
        at = point * len(flags) + flags.index(OF_KINDS[0]) + kind
        np.bitwise_or.at(bits, (at // BITS, place), np.uint64(1) << (at % BITS).astype(np.uint64))
        if WRONG in needs:
            frame = _rows(batch, matched, detected.place, taker, judged, settings.background_iou)
    none = np.zeros(ranked.n_labels + 1, np.int64)
    tally = Ranked(
        variants=_variants(n_points, flags),
        start=none,
        score=np.zeros(0),
        datum=np.zeros(0, np.int32),
        row=np.zeros(0, np.int64),
        rank=np.zeros(0, np.int32),
        hit=np.zeros((bits.shape[0], 0), np.uint64),
        ignored=np.zeros((bits.shape[0], 0), np.uint64),
        gt_start=ranked.gt_start,
        gt_datum=ranked.gt_datum,
        gt_row=ranked.gt_row,
        gt_counted=bits,
        single=ranked.single,
    )
    return PointCounts(flags, tally), frame


def _layers(batch: Batch) -> tuple[KeypointLayer, KeypointLayer]:
    ours, theirs = (side.shapes for side in (batch.predictions, batch.ground_truths))
    assert ours is not None
    assert theirs is not None
    mine, other = ours.layers[0], theirs.layers[0]
    assert isinstance(mine, KeypointLayer)
    assert isinstance(other, KeypointLayer)
    return mine, other


def _variants(n_points: int, flags: tuple[str, ...]) -> Variants:
    return Variants((0.0,), tuple((name, -np.inf, np.inf) for name in named(n_points, flags)))


def _detected_people(matched: Matched, threshold: float) -> tuple[FoundPoints, Array]:
    """People that were found from that OKS on, and the ranked prediction of each."""
    ranked = matched.ranked
    taker = matched.taker[ranked.variants.thresholds.index(threshold)]
    place = np.flatnonzero(taker >= 0)
    return FoundPoints(ranked.row[taker[place]], place), taker[place]


def _rows(
    batch: Batch,
    matched: Matched,
    place: Array,
    taker: Array,
    columns: tuple[Array, ...],
    threshold: float,
) -> pl.DataFrame:
    """Rows of the ``errors`` frame of points that are not good."""
    pair, point, kind, other, similarity = columns
    wrong = np.flatnonzero(kind > 0)
    wrong = wrong[np.lexsort((point[wrong], taker[pair[wrong]]))]
    at, swapped = pair[wrong], kind[wrong] == OF_KINDS.index("swap")
    return error_rows(
        batch,
        matched.ranked,
        predictions=taker[at],
        truths=place[at],
        error=np.array(OF_KINDS)[kind[wrong]],
        iou=similarity[wrong],
        threshold=threshold,
        keypoint=point[wrong] + 1,
        swapped=np.where(swapped, other[wrong], -1),
    )


def merge_points(parts: Sequence[PointCounts | None], merge: Any) -> PointCounts | None:
    """Merge marks of points.

    Args:
        parts: of disjoint sets of datums; all None if not requested.
        merge: merges tallies of the same variants.
    """
    present = [part for part in parts if part is not None]
    if not present:
        return None
    flags = present[0].marks
    most = max(len(part.ranked.variants.areas) for part in present)
    variants = _variants(most // len(flags), flags)
    words = -(-most // BITS)
    padded = [
        msgspec.structs.replace(
            part.ranked,
            variants=variants,
            **{
                name: np.pad(bits, ((0, words - bits.shape[0]), (0, 0)))
                for name in ("hit", "ignored", "gt_counted")
                for bits in (getattr(part.ranked, name),)
            },
        )
        for part in present
    ]
    return PointCounts(flags, merge(padded))
