"""Labels with more rows than a group, which are split by score over all buckets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging.parts import Case
from partitions.cases import FEW, boxes, in_buckets, same_as_in_memory

from evalengine.outofcore import stages
from evalengine.tallies.merging import merge_ranked
from evalengine.tallies.ranked import Ranked, Variants, of_labels, with_datums

Array = np.ndarray[Any, Any]
VARIANTS = Variants((0.5,), ((None, 0.0, 0.0),))
ROWS = ("start", "score", "datum", "rank", "hit", "ignored", "tie")


def ranked(rng: np.random.Generator, n: int, n_gt: int, datums: Array, *, tied: bool) -> Ranked:
    """Return sorted rows of three labels with many ties, with datums from ``datums``."""
    label = np.sort(rng.integers(0, 3, n))
    gt_label = np.sort(rng.integers(0, 3, n_gt))
    score, datum = rng.integers(0, 4, n) / 4, rng.choice(datums, n)
    tie = rng.integers(0, 2, n) / 2 if tied else np.zeros(0)
    order = np.lexsort((datum, *([-tie] if tied else []), -score, label))
    return Ranked(
        variants=VARIANTS,
        start=np.searchsorted(label, np.arange(4)).astype(np.int64),
        score=score[order],
        datum=datum[order].astype(np.int32),
        row=np.zeros(n, np.int8),
        rank=rng.integers(0, 9, n).astype(np.int32),
        hit=rng.integers(0, 2, (1, n)).astype(np.uint64),
        ignored=np.zeros((1, n), np.uint64),
        tie=tie[order] if tied else tie,
        gt_start=np.searchsorted(gt_label, np.arange(4)).astype(np.int64),
        gt_datum=rng.choice(datums, n_gt).astype(np.int32),
        gt_row=np.zeros(n_gt, np.int8),
        gt_counted=rng.integers(0, 2, (1, n_gt)).astype(np.uint64),
        single=False,
    )


def merged(parts: list[Ranked]) -> Ranked:
    """Merge one label of several buckets, with datum codes of the whole input."""
    return merge_ranked(parts, None, [np.zeros(1, np.int32)] * len(parts), 1)


def of_label(whole: Ranked, label: int) -> Ranked:
    return of_labels(whole, label, label + 1)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=4),
    most=st.integers(1, 40),
    tied=st.booleans(),
)
def test_concatenated_ranges_are_the_merged_rows(
    seed: int, sizes: list[tuple[int, int]], most: int, tied: bool
) -> None:
    """Rows have the order of a single merge; every ground truth is in one range."""
    rng = np.random.default_rng(seed)
    codes_of_buckets = [np.sort(codes) for codes in np.array_split(rng.permutation(40), len(sizes))]
    buckets = [
        (of_label(ranked(rng, n, m, np.arange(codes.size), tied=tied), 1), codes.astype(np.int32))
        for (n, m), codes in zip(sizes, codes_of_buckets, strict=True)
    ]
    made = [
        merged([stages.within(rows, codes, span) for rows, codes in buckets])
        for span in stages.ranges_of(buckets, most)
    ]
    whole = merged([with_datums(rows, codes) for rows, codes in buckets])
    for name in ROWS[1:]:
        if getattr(whole, name).shape[-1]:
            joined = np.concatenate([getattr(one, name) for one in made], axis=-1)
            np.testing.assert_array_equal(joined, getattr(whole, name))
    np.testing.assert_array_equal(sum(one.start for one in made), whole.start)
    np.testing.assert_array_equal(sum(one.gt_start for one in made), whole.gt_start)
    truths = sorted(
        (d, c) for one in made for d, c in zip(one.gt_datum, one.gt_counted[0], strict=True)
    )
    assert truths == sorted(zip(whole.gt_datum, whole.gt_counted[0], strict=True))


@pytest.mark.parametrize("tied", [False, True])
def test_ranges_stay_small(tied: bool) -> None:
    """Buckets may be equal or one may have nearly all rows; ties are split too."""
    rng = np.random.default_rng(3)
    codes_of_buckets = np.array_split(np.arange(4000), 5)
    for rows in ([2000] * 5, [9000, 10, 10, 10, 970]):
        buckets = [
            (of_label(ranked(rng, 3 * n, 0, np.arange(d.size), tied=tied), 1), d.astype(np.int32))
            for n, d in zip(rows, codes_of_buckets, strict=True)
        ]
        spans = stages.ranges_of(buckets, 1000)
        assert len(spans) > 8
        for span in spans:
            size = sum(stages.within(few, codes, span).score.size for few, codes in buckets)
            assert size <= 2500


@pytest.mark.parametrize("dialect", ["coco", "valor-lite", "valor-docs"])
def test_all_rows_with_one_label(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with one label and few scores are split by tie and datum."""
    seen: list[str] = []
    merge_rows = stages.merge_rows
    counted = lambda *call: (seen.append("span"), merge_rows(*call))  # noqa: E731
    monkeypatch.setattr(stages, "merge_rows", counted)
    in_buckets(monkeypatch)
    one = pl.lit("one").alias("label_value")
    weather = (pl.col("datum_id") % 3).alias("weather")
    predictions, truths = (side.with_columns(one, weather) for side in boxes(24))
    options = {"dialect": dialect, "by": ["weather"], "score_thresholds": [0.2, 0.5]}
    same_as_in_memory(Case((predictions, truths), options), "detection", tmp_path)
    assert len(seen) > 2 * 72 // FEW.group_rows


def test_a_label_with_only_ground_truths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    predictions, truths = boxes(40)  # 24 ground truths per label, more than a group
    few = predictions.filter(pl.col("label_value") == 1)
    same_as_in_memory(Case((few, truths), {}), "detection", tmp_path)
