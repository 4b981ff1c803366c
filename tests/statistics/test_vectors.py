"""Resamples of counts by distinct vectors are equivalent to weights of single datums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitions.cases import in_buckets
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine.kernels.datums import hash_integers, poisson_counts, swap_counts
from evalengine.statistics import paired, resamples
from evalengine.tallies import draws

N = 6000
NAMES = np.array(["a", "b", "c", "d"])
ASKED: dict[str, Any] = {"task": "classification", "intervals": 0.95, "draws": 600}


def from_datums(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    """Set the number of datums from which vectors are used."""
    for module in (draws, resamples, paired):
        monkeypatch.setattr(module, "LEAST", least)


def hard(seed: int, right: float = 0.8) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    actual = rng.choice(4, N, p=[0.6, 0.2, 0.15, 0.05])
    seen = np.where(rng.random(N) < right, actual, rng.integers(0, 4, N))
    return pl.DataFrame(
        {"datum_id": np.arange(N), "actual": NAMES[actual], "predicted": NAMES[seen]}
    )


def tables(shape: str) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(7)
    table = hard(1)
    if shape == "clusters":  # pairs of datums that are both right, or both wrong
        table = pl.concat([table.head(N // 2)] * 2).with_columns(
            datum_id=pl.int_range(N), doc=pl.int_range(N) % (N // 2)
        )
        return (table,), {"cluster": "doc"}
    if shape == "weights":
        return (table.with_columns(weight=pl.Series(rng.choice([0.5, 1.0, 3.0], N))),), {}
    if shape == "slices":
        return (table.with_columns(day=pl.Series(rng.integers(0, 3, N))),), {"by": ["day"]}
    if shape == "scores":
        score = rng.random(N)
        actual = rng.random(N) < score
        return (pl.DataFrame({"score": score, "actual": actual}),), {
            "metrics": ["F1", "MCC", "Accuracy"]
        }
    if shape == "several":  # a datum with both labels of a pair is right or wrong in both
        truth = pl.DataFrame(
            {"datum_id": np.repeat(np.arange(N), 2), "label_value": ["a", "b"] * N}
        )
        kept = np.repeat(rng.random(N) < 0.7, 2)
        scores = pl.Series(np.where(kept, 0.9, 0.1))
        return (truth.with_columns(score=scores), truth), {"multilabel": True, "metrics": "F1"}
    return (table,), {}


SHAPES = ("labels", "clusters", "weights", "slices", "scores", "several")


@pytest.mark.parametrize("shape", SHAPES)
def test_standard_errors_are_those_of_single_datums(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their standard error is known to 3 % from 600 resamples; independent cells would halve it."""
    sides, options = tables(shape)
    found = []
    for least in (1000, 10**9):
        from_datums(monkeypatch, least)
        found.append(ee.score(*sides, **ASKED, **options, method="percentile").metrics)
    differing = (found[0]["lower"] != found[1]["lower"]).sum()
    assert differing > found[0].height // 2  # vectors were used
    ratio = (found[0]["se"] / found[1]["se"]).drop_nulls().to_numpy()
    assert ratio.size
    assert np.abs(np.log(ratio)).max() < 0.2
    assert abs(np.log(ratio).mean()) < 0.08


@pytest.mark.parametrize("shape", SHAPES)
def test_buckets_and_row_order(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_datums(monkeypatch, 1000)
    sides, options = tables(shape)
    options = {**ASKED, **options, "draws": 40}
    if shape == "scores":
        sides = (sides[0].with_row_index("datum_id"),)
    whole = ee.score(*sides, **options).metrics
    mixed = [side.sample(fraction=1.0, shuffle=True, seed=i) for i, side in enumerate(sides)]
    assert_frame_equal(ee.score(*mixed, **options).metrics, whole, check_exact=True)
    in_buckets(monkeypatch)
    paths = []
    for i, side in enumerate(mixed):
        side.write_parquet(tmp_path / f"{i}.parquet", row_group_size=500)
        paths.append(tmp_path / f"{i}.parquet")
    limit = {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}
    bounded = ee.score(*paths, **options, **limit)
    assert bounded.run["buckets"] > 1
    assert_frame_equal(bounded.metrics, whole, check_exact=True)


def test_metrics_by_rank_keep_weights_of_datums(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric by rank in the same run does not change counted values, and vice versa."""
    sides, _ = tables("scores")
    given: dict[str, Any] = {**ASKED, "draws": 40, "method": "percentile"}
    from_datums(monkeypatch, 1000)
    both = ee.score(*sides, metrics=["F1", "AP"], **given).metrics
    counted = ee.score(*sides, metrics="F1", **given).metrics
    from_datums(monkeypatch, 10**9)
    ranked = ee.score(*sides, metrics="AP", **given).metrics
    columns = ["label_value", "average", "value", "lower", "upper", "se"]
    for name, own in (("F1", counted), ("AP", ranked)):
        found = both.filter(pl.col("metric") == name)
        assert_frame_equal(found.select(columns), own.select(columns), check_exact=True)


def test_many_different_vectors_keep_weights_of_datums(monkeypatch: pytest.MonkeyPatch) -> None:
    table = hard(2).with_columns(weight=pl.Series(np.random.default_rng(0).random(N)))
    found = []
    for least in (1000, 10**9):
        from_datums(monkeypatch, least)
        found.append(ee.score(table, **{**ASKED, "draws": 20}).metrics)
    assert_frame_equal(*found, check_exact=True)


def test_few_clusters_are_summed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters whose vectors all differ have their own weights, with the same bits."""
    table = hard(3).with_columns(doc=pl.int_range(N) % 50)
    found = []
    for least in (1000, 10**9):
        from_datums(monkeypatch, least)
        found.append(ee.score(table, **{**ASKED, "draws": 40}, cluster="doc").metrics)
    assert_frame_equal(*found, check_exact=True)


@pytest.mark.parametrize("options", [{}, {"by": ["day"]}, {"cluster": "doc"}])
def test_comparisons(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs share the number of datums per pair of vectors, so that differences are paired."""
    first = hard(4)
    rng = np.random.default_rng(0)
    moved = rng.random(N) < 0.03
    second = first.with_columns(
        predicted=pl.Series(np.where(moved, NAMES[rng.integers(0, 4, N)], first["predicted"]))
    )
    if options:
        of = pl.Series(rng.integers(0, 3, N)) if "by" in options else pl.int_range(N) // 2
        name = "day" if "by" in options else "doc"
        first, second = (one.with_columns(of.alias(name)) for one in (first, second))
    given: dict[str, Any] = {"task": "classification", "draws": 600, **options}
    given["metrics"] = ["F1", "Accuracy", "MCC"]
    found = []
    for least in (1000, 10**9):
        from_datums(monkeypatch, least)
        found.append(ee.compare(first, second, **given).differences)
    assert found[0]["difference"].equals(found[1]["difference"])
    width = [(one["upper"] - one["lower"]).to_numpy() for one in found]
    assert np.abs(np.log(width[0] / width[1])).max() < 0.3
    gap = found[0]["p"] - found[1]["p"]
    assert gap.abs().max() < 0.12  # type: ignore[operator]
    from_datums(monkeypatch, 1000)
    other = ee.compare(second, first, **given).differences
    assert other["p"].equals(found[0]["p"])
    assert np.allclose(other["lower"], -found[0]["upper"], rtol=0, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 400), st.integers(0, 1000))
def test_numbers_of_datums_are_poisson(mean: int, seed: int) -> None:
    keys = hash_integers(np.arange(60))
    drawn = poisson_counts(keys, np.full(60, mean), seed, 0, 400)
    n = drawn.size
    assert (drawn >= 0).all()
    assert np.array_equal(drawn, np.rint(drawn))
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(mean / n)
    assert abs(drawn.var() / mean - 1) < 5 * np.sqrt((2 + 1 / mean) / n)
    z = (drawn - mean) / np.sqrt(mean)
    assert abs((z**3).mean() - 1 / np.sqrt(mean)) < 5 * np.sqrt(60 / n)
    some = poisson_counts(keys[7:9], np.full(2, mean), seed, 100, 108)
    assert np.array_equal(some, drawn[7:9, 100:108])  # depends only on a key and a resample


def test_small_means_have_the_probabilities_of_poisson() -> None:
    for mean in (1, 5, 12):
        drawn = poisson_counts(hash_integers(np.arange(200)), np.full(200, mean), 3, 0, 1000)
        k = np.arange(40)
        chance = np.exp(k * np.log(mean) - mean - np.cumsum(np.log(np.maximum(k, 1))))
        seen = np.bincount(drawn.astype(int).ravel(), minlength=40)[:40]
        some = chance * drawn.size > 20
        z = (seen - chance * drawn.size)[some] / np.sqrt(chance * drawn.size)[some]
        assert np.abs(z).max() < 4.5


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 400), st.integers(0, 1000))
def test_numbers_of_swaps_are_binomial(units: int, seed: int) -> None:
    drawn = swap_counts(hash_integers(np.arange(60)), np.full(60, units), seed, 0, 400)
    n = drawn.size
    assert drawn.min() >= 0
    assert drawn.max() <= units
    assert abs(drawn.mean() - units / 2) < 5 * np.sqrt(units / 4 / n)
    assert abs(drawn.var() / (units / 4) - 1) < 5 * np.sqrt(2 / n) + 1e-9
