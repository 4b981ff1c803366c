"""Rows of all labels that are sorted in ranges, compared with a single sort."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partitions.cases import in_buckets, write_sides
from polars.testing import assert_frame_equal
from unsliced_cases import plain

import evalengine as ee
from evalengine.schemas.tuning import tuned
from evalengine.tallies import stored
from evalengine.tallies.ranked import Ranked, RankedRun, Span, Variants, of_labels, without_rows
from evalengine.tallies.ranked_points import CountedRows, CountedScan, Points, point_blocks

Array = np.ndarray[Any, Any]
IOU = 0.5


def ranked(rng: np.random.Generator, n_labels: int) -> Ranked:
    """Generate ranked rows: labels without rows, scores that are mostly equal or all different."""
    n, m = rng.integers(0, 40, (2, n_labels)) * (rng.random((2, n_labels)) < 0.8)
    start, gt_start = np.r_[0, np.cumsum(n)], np.r_[0, np.cumsum(m)]
    kinds = int(rng.choice([1, 3, 1000]))
    parts = [np.sort(rng.integers(0, kinds, k) / kinds)[::-1] for k in n]
    score = np.concatenate([*parts, np.zeros(0)])
    total, truths = int(start[-1]), int(gt_start[-1])
    hit = rng.integers(0, 2, (1, total)).astype(np.uint64)
    return Ranked(
        variants=Variants((IOU,), ((None, -np.inf, np.inf),)),
        start=start,
        score=score,
        datum=rng.integers(0, 9, total).astype(np.int32),
        row=np.arange(total),
        rank=np.zeros(total, np.int32),
        hit=hit,
        ignored=~hit & rng.integers(0, 2, (1, total)).astype(np.uint64),
        gt_start=gt_start,
        gt_datum=rng.integers(0, 9, truths).astype(np.int32),
        gt_row=np.arange(truths),
        gt_counted=rng.integers(0, 2, (1, truths)).astype(np.uint64),
        single=False,
    )


def joined(blocks: Iterator[Points], n: int) -> list[tuple[Array, ...]]:
    """Concatenate thresholds, true and false positives per segment."""
    out: list[list[tuple[Array, ...]]] = [[] for _ in range(n)]
    for one in blocks:
        for s in range(n):
            here = slice(one.start[s], one.start[s + 1])
            out[s].append((one.threshold[here], one.tp[here], one.fp[here]))
    return [tuple(map(np.concatenate, zip(*rows, strict=True))) for rows in out]


@pytest.mark.parametrize("seed", range(14))
def test_same_points(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n_labels, n_keys = int(rng.integers(1, 7)), int(rng.integers(1, 3))
    tally = ranked(rng, n_labels)
    key = rng.integers(0, n_keys, n_labels).astype(np.int32)
    first = sorted({0, n_labels, *rng.integers(0, n_labels + 1, 2).tolist()})
    spans = []
    for a, b in pairwise(first):
        spans.append(Span((str(tmp_path / f"{a}"),), a, b))
        stored.save(of_labels(tally, a, b), *spans[-1].blocks)
    run = RankedRun(without_rows(tally), tuple(spans), tally.score.size)
    (whole,) = CountedScan(RankedRun.of(tally), IOU, key, n_keys).load_if_small()
    group = rng.integers(-1, 2, 9).astype(np.int32) if seed % 2 else None
    weights = rng.integers(0, 3, 9) if seed % 3 else None
    how = group, 1 if group is None else 2, weights
    most = int(rng.integers(1, 30))
    scan = CountedScan(run, IOU, key, n_keys)
    with tuned(drawn_bytes=40 * 4 * most):
        blocks = list(scan)
        here = joined(point_blocks(scan, *how), n_keys * how[1])
    assert sum(one.score.size for one in blocks) == whole.score.size
    for one in blocks:
        assert_small(one, most, n_labels)
    for ours, theirs in zip(here, joined(point_blocks([whole], *how), len(here)), strict=True):
        for column, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(column, other)


def assert_small(rows: CountedRows, most: int, n_labels: int) -> None:
    """Check that a block has at most ``most`` rows plus a few rows per label."""
    every = max(1, most // 4)
    assert rows.score.size <= most + (n_labels + 1) * every or np.unique(rows.score).size == 1


def test_runs_in_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per-datum rows and ECE over all labels, split into small ranges."""
    case = plain("detection", 4)
    given: dict[str, Any] = {**case.options, **case.tables, "task": "detection"}
    sides = write_sides(case, tmp_path)
    given["metrics"] = ["PerDatum", "ECE"]
    whole = ee.score(*sides, **given)
    in_buckets(monkeypatch)
    with tuned(drawn_bytes=1600):  # 10 of 50 rows at once
        bounded = ee.score(*sides, **given, memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert bounded.run["buckets"] > 1
    for frame in ("per_datum", "metrics"):
        assert_frame_equal(bounded.frame(frame), whole.frame(frame), check_exact=True)
