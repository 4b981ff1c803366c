"""Large binary tables are read in batches, which must tell the same as reading them whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.batches import assert_same_either_way, read_whole, same, saved, told

import evalengine as ee
from evalengine import api
from evalengine.inputs import batches
from evalengine.kernels.few_scores import MOST
from evalengine.metrics.registry import all_metrics
from evalengine.tasks.classification import streaming

rng = np.random.default_rng(31)
N = 9_000
METRICS = [m.name for m in all_metrics("classification").values() if set(m.needs) == {"scores"}]


@pytest.fixture(autouse=True)
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_LARGE", 1)


def table(score: np.ndarray, dtype: Any = pl.Int8, share: float = 0.3) -> pl.DataFrame:
    actual = pl.Series("actual", (rng.random(score.size) < share).astype(np.int8))
    return pl.DataFrame({"actual": actual.cast(dtype), "score": score})


FEW, MANY = np.round(rng.random(N), 2), rng.random(N)
MIXED = np.r_[FEW[: N // 2], MANY[N // 2 :]]


@pytest.mark.parametrize(
    ("score", "dtype", "positive"),
    [
        (FEW, pl.Int8, None),
        (FEW, pl.Int64, 0),
        (FEW.astype(np.float32), pl.Boolean, None),
        (FEW - 0.5, pl.UInt8, None),
        (MANY, pl.Int8, 0),
        (MANY, pl.Boolean, False),
        (MANY.astype(np.float32), pl.Int64, None),
        (MIXED, pl.Int8, None),
    ],
)
def test_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: Any, dtype: Any, positive: Any
) -> None:
    assert np.unique(MIXED).size > MOST
    paths = saved(tmp_path, table=table(score, dtype))
    options = {"metrics": METRICS, "positive_label": positive}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("score", [FEW, MANY])
def test_one_class_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: Any, share: float
) -> None:
    paths = saved(tmp_path, table=table(score, share=share))
    options = {"metrics": METRICS}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


def pair(low: int = 0, n_labels: int = 2, one: int = 1) -> dict[str, pl.DataFrame]:
    actual = rng.integers(0, n_labels, N).astype(np.int8)
    datum = np.arange(low, low + N)
    here, there = rng.permutation(N), rng.permutation(N)
    label = np.full(N, one, np.int8)
    return {
        "predictions": pl.DataFrame(
            {"datum_id": datum[here], "label_value": label, "score": MANY[here]}
        ),
        "groundtruths": pl.DataFrame({"datum_id": datum[there], "label_value": actual[there]}),
    }


@pytest.mark.parametrize(
    ("low", "n_labels", "one", "dtype"),
    [(0, 2, 1, pl.Int8), (-40, 2, 0, pl.Int64), (2**40, 5, 3, pl.UInt8), (7, 1, 1, pl.Int8)],
)
def test_two_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: int, n_labels: int, one: int, dtype: Any
) -> None:
    sides = pair(low, n_labels, one)
    cast = {name: side.cast({"label_value": dtype}) for name, side in sides.items()}
    paths = saved(tmp_path, **cast)
    options = {"metrics": METRICS}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


def alike(monkeypatch: pytest.MonkeyPatch, paths: list[Path], **options: Any) -> dict[str, Any]:
    """What is told of tables that cannot be read in batches: the same as without them."""
    assert streaming_of(paths, **options) is None
    tried = told(paths, **options)
    with read_whole(monkeypatch, streaming):
        same(tried, told(paths, **options))
    return tried


def streaming_of(paths: list[Path], **options: Any) -> Any:
    chosen = ee.Options(**options)
    plan, inputs = api._open(*(paths if len(paths) > 1 else [paths[0], None]), chosen, *[None] * 3)
    return api.planner.streamed(plan, inputs)


@pytest.mark.parametrize(
    ("column", "row", "value", "word"),
    [
        ("score", 8_500, None, "null"),
        ("score", 8_500, float("nan"), "NaN"),
        ("score", 17, float("inf"), "NaN or infinity"),
        ("actual", 8_500, None, "null"),
        ("actual", 8_500, 2, "label"),
        ("actual", 8_500, -1, "label"),
    ],
)
@pytest.mark.parametrize("score", [FEW, MANY])
def test_wrong_rows_of_one_table_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    score: Any,
    column: str,
    row: int,
    value: Any,
    word: str,
) -> None:
    rows = table(score)
    rows[row, column] = value
    said = alike(monkeypatch, saved(tmp_path, table=rows), metrics=("ROCAUC",))
    assert word in said["error"]


def test_a_zero_with_a_sign_ends_the_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = np.round(FEW, 1)
    score[N // 2 :][score[N // 2 :] == 0] = -0.0
    assert np.signbit(score).any()
    paths = saved(tmp_path, table=table(score))
    options = {"metrics": METRICS}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


@pytest.mark.parametrize("side", ["predictions", "groundtruths"])
@pytest.mark.parametrize("case", ["twice", "far", "gap", "null", "label", "fewer", "nan"])
def test_other_pairs_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str, case: str
) -> None:
    sides = pair()
    rows = sides[side]
    if case == "twice":
        rows[8_500, "datum_id"] = rows[3, "datum_id"]
    if case == "far":
        rows[8_500, "datum_id"] = 10**12
    if case == "gap":
        for name, both in sides.items():
            sides[name] = both.with_columns(
                pl.when(pl.col("datum_id") == N - 1)
                .then(N + 5)
                .otherwise("datum_id")
                .alias("datum_id")
            )
    if case == "null":
        rows[8_500, "datum_id"] = None
    if case == "label":
        rows[8_500, "label_value"] = 127 if side == "groundtruths" else 0
    if case == "fewer":
        sides[side] = rows.head(N - 1)
    if case == "nan":
        sides["predictions"][8_500, "score"] = float("nan")
    alike(monkeypatch, saved(tmp_path, **sides), metrics=("ROCAUC",))


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": ("ROCAUC", "F1")},
        {"metrics": ("ROCAUC",), "where": "score > 0.5"},
        {"metrics": ("ROCAUC",), "by": ("actual",)},
        {"metrics": ("ROCAUC",), "label_map": {0: 1}},
        {},
    ],
)
def test_whatever_else_is_asked_is_answered_from_whole_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    alike(monkeypatch, saved(tmp_path, table=table(FEW)), **options)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_scores_whose_sum_is_too_large_are_told_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """And without a warning of NumPy's, which would be an error here."""
    score = np.where(FEW > 0.5, value, FEW)
    said = alike(monkeypatch, saved(tmp_path, table=table(score)), metrics=("ROCAUC",))
    assert "error" not in said


def test_infinities_of_both_signs_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = FEW.copy()
    score[[3, 500]] = np.inf, -np.inf
    said = alike(monkeypatch, saved(tmp_path, table=table(score)), metrics=("ROCAUC",))
    assert "2 rows with NaN or infinity" in said["error"]


@pytest.mark.parametrize("low", [-(2**63), 2**63 - N])
@pytest.mark.parametrize("first", ["lowest", "highest"])
def test_ids_at_the_ends_of_what_integers_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: int, first: str
) -> None:
    sides = pair()
    for name, side in sides.items():
        sides[name] = side.sort("datum_id", descending=first == "highest").with_columns(
            pl.col("datum_id") + low
        )
    paths = saved(tmp_path, **sides)
    options = {"metrics": METRICS}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


def test_the_lowest_id_does_not_follow_the_highest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differences of 64-bit integers run over there; those ids are far from one another."""
    half = np.arange(N // 2)
    ids = np.r_[2**63 - 1 - half, -(2**63) + half]
    sides = {
        name: side.sort("datum_id").with_columns(datum_id=ids) for name, side in pair().items()
    }
    alike(monkeypatch, saved(tmp_path, **sides), metrics=("ROCAUC",))


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("changed", ["table", "predictions", "groundtruths"])
def test_tables_that_change_while_they_are_read_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, more: int
) -> None:
    """Nothing is written beyond what there was room for, and no row is made up."""
    sides = {"table": table(MANY)} if changed == "table" else pair()
    whole_side = sides[changed]
    sides[changed] = whole_side.head(-1) if more < 0 else pl.concat([whole_side, whole_side[:1]])
    paths = saved(tmp_path, **sides)
    before = batches.Batches.__init__

    def told_wrongly(self: Any, *given: Any) -> None:
        before(self, *given)
        self.rows = N

    monkeypatch.setattr(batches.Batches, "__init__", told_wrongly)
    assert streaming_of(paths, metrics=("ROCAUC",)) is None
    with pytest.raises(OSError, match=r"more rows than the 9,000|8,999 rows where"):
        list(batches.Batches(*[pl.scan_parquet(paths[list(sides).index(changed)])] * 2))


def test_ids_that_are_not_named_in_the_tables_are_integers_in_a_row() -> None:
    from evalengine.tally.datums import Datums

    assert Datums(None, pl.DataFrame(), rows=3, low=-1).id.to_list() == [-1, 0, 1]
