"""Classification by counts in bounded memory: the numbers of a run in memory, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from merging.parts import Case
from partitions import cases

from evalengine.partitions import by_score, sizing

METRICS = ["Accuracy", "Precision", "Recall", "F1", "Jaccard", "BalancedAccuracy", "MCC",
           "CohenKappa", "HammingLoss", "Counts", "ROCAUC", "mROCAUC",
           "PrecisionRecallCurve"]  # fmt: skip
TINY = sizing.Sizes(n=4, scratch=1000, group_rows=16, datums_at_once=3, chunks=8)
"""Slabs of eight rows, in pieces of one."""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every run goes through buckets; says how many slabs were counted."""
    cases.in_buckets(monkeypatch, TINY)
    seen: list[int] = []
    real = by_score.count_slab

    def counting(folder: str, number: int, *rest: Any) -> None:
        seen.append(number)
        real(folder, number, *rest)

    monkeypatch.setattr(by_score, "count_slab", counting)
    return seen


def listed(seed: int, kind: str) -> Case:
    """Two tables of several labels, with ties; or lists alike, which are a grid; or one label."""
    rng = np.random.default_rng(seed)
    n = 40
    ids = rng.permutation(n)
    if kind == "one":
        table = pl.DataFrame({"actual": rng.integers(0, 2, n), "score": rng.integers(0, 6, n) / 5})
        return Case((table,), {"metrics": METRICS})
    if kind == "hard":
        words = ["a", "b", "c"]
        table = pl.DataFrame({"actual": rng.choice(words, n), "predicted": rng.choice(words, n)})
        return Case((table,), {"metrics": METRICS[:10]})
    rows = pl.DataFrame({"datum_id": np.repeat(ids, 3), "label_value": np.tile([3, 1, 2], n)})
    rows = rows.with_columns(score=pl.Series(rng.integers(0, 5, 3 * n) / 4).cast(pl.Float32))
    truths = pl.DataFrame({"datum_id": ids, "label_value": rng.integers(1, 5, n)})
    if kind == "listed":
        rows = rows.filter(pl.Series(rng.random(rows.height) < 0.7))
        truths = truths.filter(pl.Series(rng.random(n) < 0.8))
        rows = rows.sample(fraction=1, shuffle=True, seed=seed)
    return Case((rows, truths), {"metrics": METRICS, "score_thresholds": [0.25, 0.5]})


@pytest.mark.parametrize("dialect", ["standard", "valor", "sklearn"])
@pytest.mark.parametrize("kind", ["listed", "grid", "one", "hard"])
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32 - 1))
def test_counts_make_the_whole(
    kind: str,
    dialect: str,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
    counted: list[int],
) -> None:
    case = listed(seed, kind)
    case.options["dialect"] = dialect
    counted.clear()
    cases.same_as_in_memory(case, "classification", tmp_path_factory.mktemp("run"), files=2)
    assert (len(counted) > 1) == (kind != "hard")
