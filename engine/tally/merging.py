"""Merging tallies of disjoint sets of datums: the result is that of one run over all of them.

Codes are local to a tally; here they are mapped onto the datums and labels of the whole, and rows
are put back into the order of one run: label, descending score, tie, datum id, row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ..kernels.order import group_by_label, rank_by_score
from ..schemas.errors import InputError
from .counts import Counts
from .datums import Datums, Labels
from .ranked import Ranked

Array = np.ndarray[Any, Any]


def merge_datums(parts: Sequence[Datums]) -> tuple[Datums, list[Array]]:
    """All datums, and the new code of each old one, int32 a part.

    Raises:
        InputError: a datum stands in two parts; matching needs all its rows in one. Or ids of
            different dtypes.
    """
    dtypes = {part.id.dtype for part in parts}
    if len(dtypes) > 1:
        raise InputError(f"datum ids have different dtypes in the partitions: {dtypes}.")
    ids = pl.concat([part.id for part in parts])
    order = ids.arg_sort().to_numpy()
    sorted_ids = ids.gather(order)
    twice = sorted_ids.filter(sorted_ids.is_duplicated()).unique(maintain_order=True)
    if len(twice):
        raise InputError(
            f"{len(twice)} datums stand in more than one partition, first"
            f" {twice.head(3).to_list()}:"
            " put all rows of a datum into the same one."
        )
    code = np.empty(order.size, np.int32)
    code[order] = np.arange(order.size, dtype=np.int32)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    slices = pl.concat([part.slices for part in parts])
    dataset = None
    if any(part.dataset is not None for part in parts):
        blank = pl.Series("dataset", [None], dtype=pl.String)
        told = [
            blank.new_from_index(0, len(part)) if part.dataset is None else part.dataset
            for part in parts
        ]
        dataset = pl.concat(told).gather(order)
    merged = Datums(sorted_ids, slices[order] if slices.width else slices, dataset)
    return merged, np.split(code, cuts)


def merge_labels(parts: Sequence[Labels]) -> tuple[Labels, list[Array]]:
    """All labels, and the new code of each old one, int32 a part."""
    key = ["label_key", "label_value"]
    table = (
        pl.concat([part.frame for part in parts])
        .group_by(key)
        .agg(pl.col("label_name").drop_nulls().first())
        .sort(key)
    )
    coded = table.select(key).with_row_index("code")
    codes = [
        part.frame.join(coded, on=key, how="left", maintain_order="left")["code"]
        .cast(pl.Int32)
        .to_numpy()
        for part in parts
    ]
    return Labels.of(table), codes


def _joined(parts: Sequence[Ranked], name: str) -> Array:
    """One attribute of all parts, rows along the last axis."""
    return np.concatenate([getattr(part, name) for part in parts], axis=-1)


def _mapped(
    parts: Sequence[Ranked],
    start: str,
    datum: str,
    datums: Sequence[Array],
    labels: Sequence[Array],
) -> tuple[Array, Array]:
    """Global datum and label codes of the rows of all parts."""
    of_datum = [codes[getattr(part, datum)] for part, codes in zip(parts, datums, strict=True)]
    of_label = [
        np.repeat(codes, np.diff(getattr(part, start)))
        for part, codes in zip(parts, labels, strict=True)
    ]
    return np.concatenate(of_datum), np.concatenate(of_label)


def merge_ranked(
    parts: Sequence[Ranked],
    datums: Sequence[Array],
    labels: Sequence[Array],
    n_datums: int,
    n_labels: int,
) -> Ranked:
    """One ranked tally of all parts.

    Args:
        parts: tallies of disjoint sets of datums, at the same variants and cap.
        datums: new datum codes of each part, as :func:`merge_datums` gives them.
        labels: new label codes of each part, as :func:`merge_labels` gives them.
        n_datums: datums of the whole.
        n_labels: labels of the whole.

    Raises:
        InputError: the parts were matched differently, or their scores differ in precision.
    """
    if any((p.variants, p.cap) != (parts[0].variants, parts[0].cap) for p in parts):
        raise InputError("partitions were matched at different thresholds, ranges or caps.")
    precisions = {part.single for part in parts if part.score.size}
    if len(precisions) > 1:
        raise InputError(
            "scores are single precision in some partitions and double in others: cast them to one."
        )
    datum, label = _mapped(parts, "start", "datum", datums, labels)
    row, tie = _joined(parts, "row"), _joined(parts, "tie")
    # Rows of one datum and label lie in one part, by score: bring them into row order first.
    by_row = np.lexsort((row, datum))
    start, position = group_by_label(datum[by_row], label[by_row], n_datums, n_labels)
    laid = np.empty(row.size, np.int64)
    laid[position] = by_row
    score = _joined(parts, "score")
    if tie.size:
        order = laid[np.lexsort((-tie[laid], -score[laid], label[laid]))]
    else:
        ranked = np.empty(row.size, np.int32)
        rank_by_score(score[laid], start, 0, n_labels, ranked)
        order = laid[ranked]
    gt_datum, gt_label = _mapped(parts, "gt_start", "gt_datum", datums, labels)
    gt_start, gt_position = group_by_label(gt_datum, gt_label, n_datums, n_labels)
    gt_order = np.empty(gt_position.size, np.int64)
    gt_order[gt_position] = np.arange(gt_position.size)
    skipped = _joined(parts, "skipped")
    return Ranked(
        variants=parts[0].variants,
        start=start,
        score=score[order],
        datum=datum[order],
        row=row[order],
        rank=_joined(parts, "rank")[order],
        hit=_joined(parts, "hit")[:, order],
        ignored=_joined(parts, "ignored")[:, order],
        skipped=skipped[order] if skipped.size else skipped,
        tie=tie[order] if tie.size else tie,
        gt_start=gt_start,
        gt_datum=gt_datum[gt_order],
        gt_row=_joined(parts, "gt_row")[gt_order],
        gt_counted=_joined(parts, "gt_counted")[:, gt_order],
        cap=parts[0].cap,
        single=precisions.pop() if precisions else parts[0].single,
    )


def merge_counts(
    parts: Sequence[Counts], datums: Sequence[Array], labels: Sequence[Array]
) -> Counts:
    """All meetings across labels, under the codes of the whole."""
    triples = list(zip(parts, datums, labels, strict=True))
    return Counts(
        actual=np.concatenate([label[part.actual] for part, _, label in triples]),
        predicted=np.concatenate([label[part.predicted] for part, _, label in triples]),
        threshold=np.concatenate([part.threshold for part in parts]),
        scores=np.concatenate([part.scores for part in parts], axis=1),
        datum=np.concatenate([datum[part.datum] for part, datum, _ in triples]),
    )
