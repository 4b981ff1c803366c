"""Weights of resamples: Poisson with mean 1, determined by seed, resample and key."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy import stats

import evalengine as ee
from evalengine.kernels.datums import MOST, draw_weights, swap_bits
from evalengine.tasks.encoding import hashes_of

IDS = pl.Series(range(2000))
KEYS = hashes_of(IDS)
MANY = draw_weights(KEYS, 0, 0, 500)
"""A million weights, uint8 [2000 datums, 500 resamples]."""


def test_distribution() -> None:
    """Mean and variance are within 4 standard errors of 1; frequencies pass a chi-square test."""
    n = MANY.size
    counts = np.bincount(MANY.ravel(), minlength=MOST + 1)
    assert counts.size == MOST + 1
    assert abs(MANY.mean() - 1) < 4 / np.sqrt(n)
    assert abs(MANY.var() - 1) < 4 * np.sqrt(3 / n)  # its fourth central moment is 4
    most = 6  # the tail is one cell, so that every cell expects enough
    expected = stats.poisson.pmf(np.arange(most), 1)
    found = np.append(counts[:most], counts[most:].sum())
    chance = stats.chisquare(found, n * np.append(expected, 1 - expected.sum())).pvalue
    assert 1e-4 < chance < 1 - 1e-4  # neither too far from it nor too close


def unrelated(first: np.ndarray, second: np.ndarray) -> None:
    """Check that a correlation is within 4 standard errors of 0."""
    r = np.corrcoef(first.ravel().astype(float), second.ravel().astype(float))[0, 1]
    assert abs(r) < 4 / np.sqrt(first.size)


def test_resamples_datums_and_seeds_are_independent() -> None:
    for distance in (1, 2, 3, 4):  # four resamples come from one word
        unrelated(MANY[:, distance:], MANY[:, :-distance])
    unrelated(MANY[1:], MANY[:-1])  # consecutive ids
    for seed in (1, 2, 1 << 32, -1):
        unrelated(MANY, draw_weights(KEYS, seed, 0, 500))
    neighbours = draw_weights(np.arange(2000, dtype=np.uint64), 0, 0, 500)  # unmixed keys
    unrelated(neighbours[1:], neighbours[:-1])
    unrelated(neighbours[:, 1:], neighbours[:, :-1])


def test_sums_of_resamples_have_the_variance_of_poisson() -> None:
    """Sizes of resamples are Poisson, too: the weights of many datums are independent."""
    sizes = MANY.sum(axis=0)
    n, mean = sizes.size, IDS.len()
    assert abs(sizes.mean() - mean) < 4 * np.sqrt(mean / n)
    assert abs(sizes.var(ddof=1) / mean - 1) < 4 * np.sqrt(2 / (n - 1))


def test_swaps_are_fair_and_independent() -> None:
    """Swaps are independent of each other, of the same draws' weights and of block borders."""
    swaps = swap_bits(KEYS, 0, 0, 500)
    assert set(np.unique(swaps)) == {0, 1}
    assert abs(swaps.mean() - 0.5) < 4 * 0.5 / np.sqrt(swaps.size)
    for distance in (1, 2, 63, 64):
        unrelated(swaps[:, distance:], swaps[:, :-distance])
    unrelated(swaps[1:], swaps[:-1])
    unrelated(swaps, MANY)
    unrelated(swaps, swap_bits(KEYS, 1, 0, 500))
    cuts = (0, 4, 60, 64, 72, 132, 500)
    blocks = [swap_bits(KEYS, 0, *cut) for cut in pairwise(cuts)]
    assert (np.concatenate(blocks, axis=1) == swaps).all()


def test_equal_keys_have_equal_weights() -> None:
    keys = KEYS[[5, 9, 5, 5, 9]]
    weights = draw_weights(keys, 3, 0, 200)
    assert (weights[[0, 0, 1]] == weights[[2, 3, 4]]).all()
    assert (weights[0] != weights[1]).any()


@pytest.mark.parametrize("blocks", [(0, 4, 500), (0, 64, 128, 500), (0, 100, 104, 496, 500)])
def test_blocks_equal_one_call(blocks: tuple[int, ...]) -> None:
    """Blocks may begin at any multiple of four, and the last one may end anywhere."""
    whole = np.concatenate([draw_weights(KEYS, 0, *cut) for cut in pairwise(blocks)], axis=1)
    assert (whole == MANY).all()
    assert (draw_weights(KEYS, 0, 0, 37) == MANY[:, :37]).all()


def test_rows_may_be_in_any_order() -> None:
    order = np.random.default_rng(1).permutation(KEYS.size)
    assert (draw_weights(KEYS[order], 0, 0, 500) == MANY[order]).all()


def test_ids_of_any_dtype_have_the_same_keys() -> None:
    ids = pl.Series([3, 1, 200])
    for dtype in (pl.Int16, pl.UInt8, pl.UInt64):
        assert (hashes_of(ids.cast(dtype)) == hashes_of(ids)).all()
    names = pl.Series(["é", "b", "é"])
    assert (hashes_of(names.cast(pl.Categorical)) == hashes_of(names)).all()
    first, second, third = hashes_of(names)
    assert first == third != second


@pytest.mark.parametrize(
    ("run", "truths"), [(pl.Int32, pl.Int64), (pl.UInt64, pl.Int16), (pl.Categorical, pl.String)]
)
def test_sides_may_have_ids_of_unlike_dtypes(
    run: type[pl.DataType], truths: type[pl.DataType]
) -> None:
    """The interval is that of equal dtypes on both sides."""
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(40), 5)
    found = pl.DataFrame(
        {"query_id": ids, "doc_id": np.tile(np.arange(5), 40), "score": rng.random(200)}
    )
    judged = found.select("query_id", "doc_id", relevance=pl.Series(rng.integers(0, 2, 200)))
    text = pl.String() in (run(), truths())
    if text:
        found, judged = (
            t.with_columns(pl.format("q{}", "query_id").alias("query_id")) for t in (found, judged)
        )

    def scored(first: type[pl.DataType], second: type[pl.DataType]) -> pl.DataFrame:
        sides = found.cast({"query_id": first}), judged.cast({"query_id": second})
        card = ee.score(*sides, task="retrieval", metrics=["nDCG@5"], intervals=0.95, draws=100)
        return card.metrics

    plain = scored(pl.String, pl.String) if text else scored(pl.Int64, pl.Int64)
    assert scored(run, truths).equals(plain)
