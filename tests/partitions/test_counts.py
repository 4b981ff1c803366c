"""Classification by counts in bounded memory: the numbers of a run in memory, to the bit."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from merging.parts import Case
from partitions import cases

import evalengine as ee
from evalengine import api, planner
from evalengine.executors.threads import Threads
from evalengine.inputs.frames import checked_frames
from evalengine.partitions import by_score, running, sizing
from evalengine.partitions.score_pieces import key_at, place
from evalengine.partitions.slabs import BEFORE_ALL
from evalengine.tally.score_counts import (
    KINDS,
    add_scores,
    count_scores,
    rows_between,
    sum_slab,
)
from evalengine.tally.sorted_scores import HIT, OTHER, STRAY, Sorted
from evalengine.tasks.classification.counting import count, merge_counted

METRICS = ["Accuracy", "Precision", "Recall", "F1", "Jaccard", "BalancedAccuracy", "MCC",
           "CohenKappa", "HammingLoss", "Counts", "ROCAUC", "mROCAUC",
           "PrecisionRecallCurve"]  # fmt: skip
Array = np.ndarray[Any, Any]

TINY = sizing.Sizes(n=4, scratch=1000, group_rows=16, datums_at_once=3, chunks=8)
"""Slabs of 32 rows, in pieces of one."""


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


def some_scores(rng: np.random.Generator, n: int, spread: int) -> Array:
    """Scores with ties: of either precision, about one of single precision, or all alike."""
    kind = rng.integers(4)
    if kind == 0:
        return np.full(n, 0.25)
    near = float(np.float32(0.3))
    if kind == 1:
        return near + rng.integers(-4, 5, n) * 2.0**-30  # between floats of single precision
    if kind == 2:
        return rng.choice(np.array([near, np.nextafter(np.float32(0.3), np.float32(1))]), n)
    return rng.integers(-2, spread, n) / rng.choice([3, 4])  # thirds take double precision


def distinct(found: Sorted) -> Sorted:
    """Each score of a segment once, weighing as many rows as have it."""
    start, score, weight = [0], [], []
    for first, last in pairwise(found.start.tolist()):
        values, counts = np.unique(found.score[first:last], return_counts=True)
        score.append(values)
        weight.append(counts.astype(float))
        start.append(start[-1] + values.size)
    return Sorted(np.array(start), np.concatenate(score), np.concatenate(weight))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 4), spread=st.integers(1, 80))
def test_sums_of_slabs_are_those_of_all_pairs(seed: int, parts: int, spread: int) -> None:
    """Against every pair looked at; slabs are cut at any rows, scores are of either precision."""
    rng = np.random.default_rng(seed)
    n_labels, drawn, made = 3, [], []
    thresholds = np.array([-0.25, 0.0, 0.3])
    for _ in range(parts):
        n = int(rng.integers(0, 200))
        label, outcome = rng.integers(0, n_labels, n), rng.integers(0, 3, n)
        score = some_scores(rng, n, spread)
        drawn.append((label, outcome, score))
        order = np.lexsort((score, outcome, label))
        start = np.searchsorted((label * 3 + outcome)[order], np.arange(3 * n_labels + 1))
        found = Sorted(start, score[order], None)
        if rng.random() < 0.3:
            found = distinct(found)
        made.append(count_scores(found, np.arange(n_labels), n_labels, thresholds))
    runs = [run for _, some in made for run in some.values() if run.score.size]
    picked = [key_at(run, int(rng.integers(run.score.size))) for run in runs]
    keys = sorted({(key.label, key.ordered): key for key in picked}.items())
    ends = [BEFORE_ALL, *(key for _, key in keys), None]
    slabs = []
    for first, after in pairwise(ends):
        assert first is not None
        within = {
            kind: [
                rows_between(some[kind], place(some[kind], first), place(some[kind], after))
                for _, some in made
            ]
            for kind in KINDS
        }
        slabs.append(sum_slab(within, n_labels))
    sums = add_scores([own for own, _ in made], slabs)
    label, outcome, score = (np.concatenate(column) for column in zip(*drawn, strict=True))
    for k in range(n_labels):
        hit, other, _ = (score[(label == k) & (outcome == o)] for o in (HIT, OTHER, STRAY))
        won = 2 * (hit[:, None] > other).sum() + (hit[:, None] == other).sum()
        assert sums.twice[k] == won
        for o in (HIT, OTHER, STRAY):
            some = score[(label == k) & (outcome == o)]
            assert sums.rows[o, k] == some.size
            np.testing.assert_array_equal(
                sums.reached[o, k], (some[:, None] >= thresholds).sum(axis=0)
            )


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("keys", [0, 1, 2])
def test_score_columns_under_label_keys(
    sides: int, keys: int, tmp_path: Path, counted: list[int]
) -> None:
    """A bucket has rows of some keys alone, or no row of the predictions; a label is never true."""
    rng = np.random.default_rng(sides + keys)
    n = 12
    table = pl.DataFrame({f"p_{name}": rng.integers(0, 4, n) / 3 for name in "abc"})
    truths = pl.Series(rng.choice(["a", "b"], n))
    if keys:
        key = pl.Series(rng.choice(["first", "second"][:keys], n))
        table = table.with_columns(label_key=key)
    options = {"metrics": METRICS, "score_columns": "p_*"}
    if sides == 1:
        case = Case((table.with_columns(actual=truths),), options)
    else:
        ids = pl.Series("datum_id", rng.permutation(n))
        wide = table.with_columns(ids)
        long = wide.select(cs.exclude("^p_.*$")).with_columns(label_value=truths)
        case = Case((wide.head(3), long), options)
    card = cases.same_as_in_memory(case, "classification", tmp_path)
    assert counted
    told = [note for note in card.notes if "in the predictions only" in note]
    assert len(told) == 1
    assert "'c'" in told[0]


@pytest.mark.parametrize("twice", [1, 2, 3, 4, 8])
def test_values_that_stand_twice_make_one_message(
    twice: int, tmp_path: Path, counted: list[int]
) -> None:
    """Whatever number of them falls into each bucket: the words and counts are of the whole."""
    predictions, truths = listed(7, "grid").sides
    given = cases.written(
        Case((predictions, pl.concat([truths, truths.head(twice)])), {}), tmp_path
    )
    said = []
    for limit in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch")}):
        with pytest.raises(ee.InputError) as failure:
            ee.score(*given, task="classification", metrics=["F1"], **limit)
        said.append(str(failure.value))
    assert said[0] == said[1]
    assert f"{2 * twice} rows" in said[0]


def sequences() -> tuple[pl.DataFrame]:
    """A row each of several labels against as many."""
    actual = [["a", "b"], ["b"], ["a", "a", "b"], [], ["b", "b"], ["a"]]
    return (pl.DataFrame({"actual": actual, "predicted": [one[::-1] for one in actual]}),)


def test_what_needs_rows_is_not_counted(tmp_path: Path, counted: list[int]) -> None:
    """Weights, slices and metrics of single datums: merged whole, as they were."""
    case = listed(5, "listed")
    weight = pl.Series("weight", np.arange(case.sides[1].height) / 7)
    for i, (sides, options) in enumerate(
        [
            (case.sides, {"metrics": ["ROCAUC", "LogLoss"]}),
            ((case.sides[0], case.sides[1].with_columns(weight)), {"metrics": ["ROCAUC"]}),
            (case.sides, {"metrics": ["mROCAUC"], "average": "micro"}),
            ((case.sides[0], case.sides[1].with_columns(s=1)), {"metrics": ["F1"], "by": ["s"]}),
            (sequences(), {"metrics": ["F1"]}),
        ]
    ):
        (tmp_path / str(i)).mkdir()
        cases.same_as_in_memory(Case(sides, options), "classification", tmp_path / str(i))
    assert counted == []


@pytest.mark.parametrize("by", [[], ["s"]])
@pytest.mark.parametrize("every", [False, True])
def test_weights_of_zero_are_told_of_the_whole(every: bool, by: list[str], tmp_path: Path) -> None:
    """A label or slice of which one bucket has rows of weight 0 alone is not told of."""
    with pytest.MonkeyPatch.context() as patch:
        cases.in_buckets(patch, TINY)
        n = 30
        truths = pl.DataFrame({"datum_id": range(n), "label_value": [i % 3 for i in range(n)]})
        weight = pl.Series([0.0 if every or i % 3 == 1 else float(i == 2) for i in range(n)])
        sides = (
            truths.with_columns(score=0.5),
            truths.with_columns(
                weight=pl.when(pl.int_range(n) == 3).then(float(not every)).otherwise(weight),
                s=pl.int_range(n) // 10,
            ),
        )
        case = Case(sides, {"metrics": ["F1", "ROCAUC"], "by": by})
        card = cases.same_as_in_memory(case, "classification", tmp_path)
    told = [note for note in card.notes if "weight" in note]
    assert len(told) == (1 if every or not by else 2)


def test_a_condition_that_leaves_no_score(tmp_path: Path, counted: list[int]) -> None:
    case = listed(3, "listed")
    case.options["where"] = "score > 7"
    case.options["metrics"] = ["F1", "ROCAUC", "PrecisionRecallCurve"]
    cases.same_as_in_memory(case, "classification", tmp_path)
    assert counted == []


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("base", [1000, 10**9])
def test_a_tally_beyond_the_limit_is_told(
    held: bool,
    base: int,
    tmp_path: Path,
    counted: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where rows are merged in memory and take more than the limit; not where they are counted."""
    monkeypatch.setattr(running, "BASE", base)
    labels = [[at % 3, at % 2] for at in range(40)]
    sequences = pl.DataFrame({"actual": labels, "predicted": labels[::-1]})
    sides = (sequences,) if held else listed(5, "listed").sides
    paths = cases.written(Case(sides, {}), tmp_path, 1)
    card = ee.score(
        *paths,
        task="classification",
        metrics=["F1"] if held else ["ROCAUC"],
        memory_limit="1GB",
        scratch=str(tmp_path / "scratch"),
    )
    told = [note for note in card.notes if "the merged tally of all buckets takes" in note]
    assert len(told) == (base == 10**9 and held)
    assert bool(counted) == (not held)
    for note in told:
        assert "limit of 1.0 GB: give at least memory_limit='954MiB'" in note


def test_counts_take_no_weights_of_draws() -> None:
    """They are refused: left out, every draw would be the whole set."""
    rows = pl.DataFrame({"actual": [0, 1, 1, 0], "score": [0.1, 0.4, 0.3, 0.2]})
    plan, inputs = api._open(rows, None, ee.Options(metrics=["ROCAUC"]), *[None] * 3)
    frames = checked_frames(inputs, plan.task, plan.options)
    tallies, units, scores, _ = count(
        planner.run(plan, frames, Threads(1)), plan.settings, Threads(1)
    )
    whole = merge_counted([tallies], [units], [scores], [], plan.settings)
    with pytest.raises(RuntimeError, match="no rows to draw from"):
        planner.summarise(plan, whole, weights=np.ones(4, np.int64))
