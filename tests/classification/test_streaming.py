"""Large binary tables are read in batches, which must tell the same as reading them whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.batches import assert_same_either_way, read_whole, same, saved, told

import evalengine as ee
from evalengine import api
from evalengine.executors.threads import Threads
from evalengine.inputs import batches
from evalengine.kernels.few_scores import MOST
from evalengine.metrics.registry import all_metrics
from evalengine.tally import score_ranges
from evalengine.tasks.classification import coded_slices, streaming

rng = np.random.default_rng(31)
N = 9_000
SCORES = [m for m in all_metrics("classification").values() if set(m.needs) == {"scores"}]
METRICS = [m.name for m in SCORES]
COUNTED = [m.name for m in SCORES if m.by_counts]
"""Of these no row is needed in the end, but those of slices."""


@pytest.fixture(autouse=True)
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_LARGE", 1)


def table(score: np.ndarray, dtype: Any = pl.Int8, share: float = 0.3) -> pl.DataFrame:
    actual = pl.Series("actual", (rng.random(score.size) < share).astype(np.int8))
    return pl.DataFrame({"actual": actual.cast(dtype), "score": score})


FEW, MANY = np.round(rng.random(N), 2), rng.random(N)
MIXED = np.r_[FEW[: N // 2], MANY[N // 2 :]]
LATE = np.r_[FEW, rng.random(9 * N)]
"""Scores that are few in the first batch."""


@pytest.mark.parametrize("metrics", [METRICS, COUNTED])
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
        (LATE, pl.Int8, None),
    ],
)
def test_one_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    metrics: list[str],
    score: Any,
    dtype: Any,
    positive: Any,
) -> None:
    assert np.unique(MIXED).size > MOST
    paths = saved(tmp_path, table=table(score, dtype))
    options = {"metrics": metrics, "positive_label": positive}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("score", [FEW, MANY])
@pytest.mark.parametrize("metrics", [METRICS, COUNTED])
def test_one_class_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: list[str], score: Any, share: float
) -> None:
    paths = saved(tmp_path, table=table(score, share=share))
    options = {"metrics": metrics}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


def test_rows_let_go_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of which few differ at first are only counted; later ones may need them after all."""
    read, rows = [], streaming._rows

    def noted(*given: Any, coded: bool) -> Any:
        read.append(coded)
        return rows(*given, coded=coded)

    monkeypatch.setattr(streaming, "_rows", noted)
    monkeypatch.setattr(batches.Batches, "__iter__", by_thousands)
    paths = saved(tmp_path, table=table(MIXED))
    assert_same_either_way(monkeypatch, streaming, paths, metrics=COUNTED)
    assert read == [False, True]


def by_thousands(self: batches.Batches) -> Iterator[pl.DataFrame]:
    """Batches of a thousand rows, and an empty one."""
    every = self._frame.collect()
    yield every.clear()
    yield from every.iter_slices(1000)


def sliced(score: Any, **parts: pl.Series) -> pl.DataFrame:
    return table(score).with_columns(**parts)


def part(dtype: Any, low: int = 0, n_groups: int = 300) -> pl.Series:
    """Groups in random order, of which some lack a class, and one value that is none's."""
    group = rng.integers(0, n_groups, N)
    group[group == 7] = 8
    return pl.Series((group + low).tolist(), dtype=dtype)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("metrics", [METRICS, COUNTED])
@pytest.mark.parametrize("score", [FEW, MANY])
@pytest.mark.parametrize(
    ("dtype", "low"),
    [(pl.Int32, 0), (pl.Int64, -150), (pl.UInt8, 5), (pl.UInt32, 1 << 30), (pl.Int16, -(1 << 15))],
)
def test_slices_of_integers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dtype: Any,
    low: int,
    score: Any,
    metrics: list[str],
    threads: int,
) -> None:
    monkeypatch.setattr(score_ranges, "_RANGE", 1000)
    n_groups = 200 if dtype == pl.UInt8 else 300
    paths = saved(tmp_path, table=sliced(score, part=part(dtype, low, n_groups)))
    options = {"metrics": metrics, "by": ("part",), "threads": threads}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


def test_slices_of_several_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order they are asked for in; flags of a positive label 0."""
    rows = sliced(MANY, fold=part(pl.Int8, 0, 5), part=part(pl.Int32))
    paths = saved(tmp_path, table=rows)
    options = {"metrics": COUNTED, "by": ("fold", "part"), "positive_label": 0}
    assert_same_either_way(monkeypatch, streaming, paths, **options)


def texts(n_groups: int = 300) -> pl.Series:
    """Names whose order is not that of their numbers, with a star, an empty one and a long one."""
    odd = pl.col("group").replace_strict(
        {3: "", 4: "*", 5: r"\*", 6: "é" * 20, 9: "10*2"}, default=None
    )
    group = part(pl.Int32, n_groups=n_groups).to_frame("group")
    return group.select(pl.coalesce(odd, pl.col("group").cast(pl.String))).to_series()


@pytest.mark.parametrize("metrics", [METRICS, COUNTED])
@pytest.mark.parametrize("score", [FEW, MANY])
@pytest.mark.parametrize(
    "by",
    [
        ("name",), ("name", "fold"), ("fold*name",), ("part*part",), ("name*fold*name", "part"),
        ("part*fold", "fold", "name * fold"),
    ],
)  # fmt: skip
def test_slices_of_texts_and_crossed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: tuple[str, ...],
    score: Any,
    metrics: list[str],
) -> None:
    monkeypatch.setattr(batches.Batches, "__iter__", by_thousands)
    monkeypatch.setattr(streaming, "_LARGE", 1)
    rows = sliced(score, name=texts(40), part=part(pl.Int16, -20, 40), fold=part(pl.UInt8, 9, 12))
    paths = saved(tmp_path, table=rows)
    assert_same_either_way(monkeypatch, streaming, paths, metrics=metrics, by=by, threads=2)


def test_slices_of_columns_with_odd_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches.Batches, "__iter__", by_thousands)
    monkeypatch.setattr(streaming, "_LARGE", 1)
    odd = {"part*fold": texts(7), "part": part(pl.Int16, -20, 40), "fold ": part(pl.UInt8, 9, 12)}
    paths = saved(tmp_path, table=sliced(MANY, **odd))
    by = ("part*fold", r"part\*fold*fold ", "part *fold ")
    assert_same_either_way(monkeypatch, streaming, paths, metrics=("ROCAUC",), by=by, threads=2)


@pytest.mark.parametrize(
    ("column", "by"),
    [
        (pl.Series([None, *map(str, range(N - 1))]), "part"),
        (part(pl.Int32).cast(pl.Date), "part"),
        (pl.Series(map(str, range(N))), "part*part"),  # more pairs than a table has room for
        (part(pl.Int64) * 1_000_000, "part"),
        (part(pl.Int64) + (1 << 40), "part"),
        (pl.Series([None, *range(N - 1)], dtype=pl.Int32), "part"),
        (part(pl.UInt64), "part"),
    ],
)
def test_other_slices_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: pl.Series, by: str
) -> None:
    alike(
        monkeypatch, saved(tmp_path, table=sliced(MANY, part=column)), metrics=("ROCAUC",), by=(by,)
    )


def test_many_texts_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More texts in a column than are held; as many as are held; a batch that has new ones."""
    monkeypatch.setattr(batches.Batches, "__iter__", by_thousands)
    name = pl.Series(map(str, np.minimum(np.arange(N), 1999)))
    paths = saved(tmp_path, table=sliced(MANY, name=name))
    for most in (999, 1999):
        monkeypatch.setattr(coded_slices, "_MOST_TEXTS", most)
        alike(monkeypatch, paths, metrics=("ROCAUC",), by=("name",))
    monkeypatch.setattr(coded_slices, "_MOST_TEXTS", 2000)
    assert_same_either_way(monkeypatch, streaming, paths, metrics=("ROCAUC",), by=("name",))


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
    return api.planner.streamed(plan, inputs, Threads(1))


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
