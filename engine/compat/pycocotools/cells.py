"""``evalImgs``: outcomes per category, area range and image, written and read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...tally.ranked import Ranked, Variants
from ...tasks.detection.matching import Matched
from ...tasks.detection.overlaps import label_of
from .annotations import numbers
from .sides import RESULTS, TRUTHS, Chosen

Cell = dict[str, Any]


class Grid(msgspec.Struct, frozen=True):
    """Grid of the cells: one per category, area range and image, in this order.

    Attributes:
        images: ids.
        categories: ids; only -1 if categories do not count.
        ranges: area ranges as given.
        thresholds: IoU thresholds as given.
        caps: numbers of top results per image and category that count; the largest was matched.
    """

    images: Sequence[Any]
    categories: Sequence[Any]
    ranges: Sequence[Any]
    thresholds: Sequence[float]
    caps: Sequence[int]

    @property
    def cap(self) -> int:
        """The largest."""
        return max(self.caps)


def bits_of(words: Array, variants: Variants) -> Array:
    """Words of bits by variant, bool [areas, thresholds, n]."""
    shape = len(variants.areas), len(variants.thresholds), words.shape[1]
    out = np.empty(shape, np.bool_)
    for bits, word in zip(words, variants.words, strict=True):
        for v in range(word.n_areas * word.n_thresholds):
            a, t = divmod(v, word.n_thresholds)
            at = word.first_area + a, word.first_threshold + t
            out[at] = (bits >> np.uint64(v)) & np.uint64(1) != 0
    return out


def words_of(bits: Array, variants: Variants) -> Array:
    """Pack bits into words, uint64 [words, n]."""
    out = np.zeros((len(variants.words), bits.shape[2]), np.uint64)
    for w, word in enumerate(variants.words):
        block = bits[word.places].reshape(word.n_areas * word.n_thresholds, bits.shape[2])
        for v, here in enumerate(block):
            out[w] |= here.astype(np.uint64) << np.uint64(v)
    return out


def cells_of(matched: Matched, results: Chosen, truths: Chosen, grid: Grid) -> list[Cell | None]:
    """Return all cells; None for those without rows.

    Args:
        matched: the match, with the ground truth of each result.
    """
    ranked = matched.ranked
    n_images, n_cells = len(grid.images), len(grid.images) * len(grid.categories)
    at = [ranked.variants.threshold_index(iou) for iou in grid.thresholds]
    # Sort results by category and image, best first; drop those beyond the cap.
    p_cell = label_of(ranked.start).astype(np.int64) * n_images + ranked.datum
    order = np.argsort(p_cell, kind="stable")
    order = order[ranked.rank[order] < grid.cap]
    p_start = _starts(p_cell[order], n_cells)
    rows = ranked.row[order].tolist()
    dt_ids, scores = [results.ids[i] for i in rows], [results.score[i] for i in rows]
    dt_number = numbers(results.rows, results.ids, "id", RESULTS)[ranked.row]
    g_cell = label_of(ranked.gt_start).astype(np.int64) * n_images + ranked.gt_datum
    g_start = _starts(g_cell, n_cells)
    gt_number = numbers(truths.rows, truths.ids, "id", TRUTHS)[ranked.gt_row]
    there = np.flatnonzero((np.diff(p_start) > 0) | (np.diff(g_start) > 0)).tolist()
    counted, ignored = (bits_of(w, ranked.variants) for w in (ranked.gt_counted, ranked.ignored))
    out: list[Cell | None] = [None] * (n_cells * len(grid.ranges))
    for a, area in enumerate(grid.ranges):
        took = matched.took[a][at]
        by_result = np.where(took >= 0, gt_number[took] if gt_number.size else 0.0, 0.0)[:, order]
        by_truth = np.zeros((len(at), gt_number.size))
        for t, of_threshold in enumerate(took):
            takers = np.flatnonzero(of_threshold >= 0)
            by_truth[t, of_threshold[takers]] = dt_number[takers]  # of several the last remains
        aside = ~counted[a, 0]
        last = np.lexsort((aside, g_cell))  # within a cell those that are ignored
        gt_ids = [truths.ids[i] for i in ranked.gt_row[last].tolist()]
        gt_aside, by_truth = aside[last].astype(np.int64), by_truth[:, last]
        set_aside = ignored[a][at][:, order]
        for cell in there:
            k, i = divmod(cell, n_images)
            p, g = (slice(start[cell], start[cell + 1]) for start in (p_start, g_start))
            out[(k * len(grid.ranges) + a) * n_images + i] = {
                "image_id": grid.images[i],
                "category_id": grid.categories[k],
                "aRng": area,
                "maxDet": grid.cap,
                "dtIds": dt_ids[p],
                "gtIds": gt_ids[g],
                "dtMatches": by_result[:, p],
                "gtMatches": by_truth[:, g],
                "dtScores": scores[p],
                "gtIgnore": gt_aside[g],
                "dtIgnore": set_aside[:, p],
            }
    return out


def _starts(cell: Array, n_cells: int) -> list[int]:
    """Offsets of ascending cells, [n_cells + 1]."""
    found: list[int] = np.searchsorted(cell, np.arange(n_cells + 1)).tolist()
    return found


def ranked_of(cells: Sequence[Any], grid: Grid, area: int) -> Ranked:
    """Return the tally of one area range from cells, which may have been set by the user.

    Args:
        cells: all cells of the grid, mappings or None.
        area: index of the area range.

    Raises:
        InputError: a number of cells other than the grid's.
    """
    n_images, n_ranges = len(grid.images), len(grid.ranges)
    n_cells = n_images * n_ranges * len(grid.categories)
    if len(cells) != n_cells:
        raise InputError(
            f"evalImgs holds {len(cells):,} entries, and {len(grid.categories):,} categories x"
            f" {n_ranges} area ranges x {n_images:,} images are {n_cells:,}: set params and"
            " _paramsEval to those that the entries are of."
        )
    distinct = sorted(set(grid.thresholds))
    at = [list(grid.thresholds).index(iou) for iou in distinct]
    variants = Variants(tuple(distinct), ((None, -np.inf, np.inf),))
    found = [
        (k, i, cell)
        for k in range(len(grid.categories))
        for i in range(n_images)
        if (cell := cells[(k * n_ranges + area) * n_images + i]) is not None
    ]
    n_thresholds = len(distinct)
    score = _flat(found, "dtScores")
    hit = _joined(found, "dtMatches", len(grid.thresholds)) != 0
    ignored = _joined(found, "dtIgnore", len(grid.thresholds)) != 0
    aside = _flat(found, "gtIgnore") != 0
    n, m = ([len(cell[key]) for *_, cell in found] for key in ("dtScores", "gtIgnore"))
    label, datum = (np.array([place[j] for place in found], np.int32) for j in (0, 1))
    p_label, p_datum = np.repeat(label, n), np.repeat(datum, n)
    rank = np.arange(score.size) - np.repeat(np.cumsum([0, *n])[:-1], n)
    order = np.lexsort((-score, p_label))
    ends = np.arange(len(grid.categories) + 1)
    g_label = np.repeat(label, m)
    _find_zeros(hit, found, n)
    hit, ignored = hit[at][:, order], ignored[at][:, order]
    counted = np.repeat(~aside[None, None], n_thresholds, axis=1)
    return Ranked(
        variants=variants,
        start=np.searchsorted(p_label[order], ends).astype(np.int64),
        score=score[order],
        datum=p_datum[order],
        row=order.astype(np.int64),
        rank=rank[order].astype(np.int32),
        hit=words_of((hit & ~ignored)[None], variants),
        ignored=words_of(ignored[None], variants),
        skipped=np.zeros(0, bool),
        tie=np.zeros(0),
        gt_start=np.searchsorted(g_label, ends).astype(np.int64),
        gt_datum=np.repeat(datum, m),
        gt_row=np.arange(aside.size, dtype=np.int64),
        gt_counted=words_of(counted, variants),
        cap=grid.cap,
        single=False,
    )


def _find_zeros(hit: Array, found: Sequence[tuple[int, int, Any]], n: Sequence[int]) -> None:
    """Mark results matched to a ground truth with id 0, by the match recorded on the ground truth.

    Args:
        hit: bool [thresholds, results], modified in place.
        n: number of results per cell.
    """
    lengths = [len(cell["gtIds"]) for *_, cell in found]
    of_cell = np.repeat(np.arange(len(found)), lengths)
    for c in np.unique(of_cell[_flat(found, "gtIds") == 0]).tolist():
        cell = found[c][2]
        ids = np.asarray(cell["dtIds"])
        here = hit[:, sum(n[:c]) :][:, : ids.size]
        for g in np.flatnonzero(np.asarray(cell["gtIds"]) == 0):
            by = np.asarray(cell["gtMatches"])[:, g, None]
            here |= (by != 0) & (by == ids)


def _flat(found: Sequence[tuple[int, int, Any]], key: str) -> Array:
    """Values of all cells one after the other, float64."""
    return np.fromiter(chain.from_iterable(cell[key] for *_, cell in found), np.float64)


def _joined(found: Sequence[tuple[int, int, Any]], key: str, n_thresholds: int) -> Array:
    """Values by threshold of all cells side by side, [thresholds, n]."""
    return np.concatenate([np.zeros((n_thresholds, 0)), *(c[key] for *_, c in found)], axis=1)
