"""The stage that merges the rows of labels from all buckets: whole labels or ranges of scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..tally import stored
from ..tally.parts import ROWS
from ..tally.ranked_groups import merge_groups, of_labels, with_datums
from .numbering import codes_of
from .score_ranges import ScoreRange, place, ranges_of, within
from .stages import group_file, part_file


def merge_rows(
    folder: str, group: int, labels: tuple[int, int], span: ScoreRange | None, parts: Sequence[int]
) -> None:
    """Merge the rows of some labels from all buckets: all of them, or one range of scores.

    Args:
        folder: the scratch folder.
        group: number of the group of labels.
        labels: the first of them, and one past the last.
        span: the range, of a group of one label that is cut; None of others.
        parts: the buckets.
    """
    target = group_file(folder, group, 0 if span is None else span.number)
    if target.exists():
        return
    rows, before = [], 0
    for bucket in parts:
        few = of_labels(stored.mapped(part_file(folder, bucket), ROWS), *labels)
        codes = codes_of(folder, bucket)
        if span is not None and span.first is not None:
            before += place(few, codes, span.first)
        rows.append(with_datums(few, codes) if span is None else within(few, codes, span))
    stored.save(merge_groups(rows, before), target, lasting=False)


def cut(folder: str, labels: tuple[int, int], most: int, parts: Sequence[int]) -> list[ScoreRange]:
    """The ranges of scores of a label that has more rows than a group may have.

    Args:
        folder: the scratch folder.
        labels: the label, and the next one.
        most: rows of a range, about.
        parts: the buckets.
    """
    buckets = [
        (of_labels(stored.mapped(part_file(folder, b), ROWS), *labels), codes_of(folder, b))
        for b in parts
    ]
    return ranges_of(buckets, most)
