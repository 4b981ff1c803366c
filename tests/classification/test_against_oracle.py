"""Random small tables: all numbers equal the oracle's and depend on no irrelevant property."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from classification.checking import (
    HARD,
    ONE_LABEL,
    RANKED,
    THRESHOLDS,
    check_curves,
    check_details,
    check_metrics,
)
from classification.rows import score
from classification.strategies import Drawn, by_bytes, drawn, modest, some_weights
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import evalengine as ee

ONE = [*HARD, *RANKED, *ONE_LABEL]
SEVERAL = [*HARD, *RANKED]


def run(tables: Drawn, **options: Any) -> ee.Scorecard:
    """Run every metric that fits the tables."""
    weights = options.pop("sample_weights", None)
    return score(
        tables.frames(weights),
        SEVERAL if tables.several else ONE,
        multilabel=tables.several or None,
        score_thresholds=list(THRESHOLDS),
        k=[1, 2],
        **options,
    )


@pytest.mark.parametrize("several", [False, True])
@modest
@given(st.data())
def test_everything(several: bool, data: st.DataObject) -> None:
    """Metrics, curves, examples, confusion and outcomes, with one label per datum or several."""
    tables = data.draw(drawn(several=several))
    card, oracle = run(tables), tables.oracle()
    check_metrics(card, oracle)
    check_curves(card, oracle)
    check_details(card, oracle)
    check_sums(card, tables)


def check_sums(card: ee.Scorecard, tables: Drawn) -> None:
    """tp + fp are the predictions at or above a threshold, tp + fn the ground truths."""
    for row in card.curves.iter_rows(named=True):
        label = (row["label_key"], row["label_value"])
        reaching = [p for p in tables.predictions if p[1:3] == label]
        reaching = [p for p in reaching if p[3] >= row["score_threshold"]]
        assert row["tp"] + row["fp"] == len(reaching)
        assert row["tp"] + row["fn"] == sum(t[1:] == label for t in tables.truths)
    if tables.several:
        return
    hard = sum(card.metrics.filter(pl.col("statistic").is_in(["tp", "fp"]))["value"])
    assert hard == len({p[:2] for p in tables.predictions})
    counted = card.confusion.filter(pl.col("actual").is_not_null())["count"].sum()
    assert counted == len(tables.truths)


@modest
@given(drawn(), st.data())
def test_sample_weights(tables: Drawn, data: st.DataObject) -> None:
    """Column ``weight``: datums without ground truth have weight 1."""
    weights = data.draw(some_weights(tables.datums))
    labelled = {row[0] for row in tables.truths}
    card = run(tables, sample_weights=weights)
    oracle = tables.oracle({d: w for d, w in weights.items() if d in labelled})
    check_metrics(card, oracle)
    check_curves(card, oracle)


@modest
@given(st.one_of(drawn(), drawn(several=True)))
def test_slices(tables: Drawn) -> None:
    """A slice has the numbers of its datums; the factor of Brier follows the labels of the run."""
    card = run(tables, by="part", datums=tables.datum_table())
    for group in sorted(set(tables.groups.values())):
        inside = [datum for datum, name in tables.groups.items() if name == group]
        part = tables.on(inside).oracle()
        part.n_labels = Counter(key for key, _ in tables.oracle().labels)
        check_metrics(card, part, ("part", group))
        check_curves(card, part, ("part", group))


@modest
@given(drawn(distinct=True), st.randoms(use_true_random=False))
def test_row_order(tables: Drawn, random: Any) -> None:
    """Shuffled rows give the same frames if no score ties within a datum."""
    predictions, truths = list(tables.predictions), list(tables.truths)
    random.shuffle(predictions)
    random.shuffle(truths)
    other = Drawn(
        tuple(predictions), tuple(truths), tables.datums, tables.labels, tables.groups, False
    )
    first, second = run(tables), run(other)
    for name in ("metrics", "curves", "confusion", "examples", "outcomes"):
        assert_frame_equal(first.frame(name), second.frame(name))


@modest
@given(drawn())
def test_kinds_of_ids_and_labels(tables: Drawn) -> None:
    """Ids and labels as strings in the same order give the same numbers."""
    ids = {datum: f"d{at}" for at, datum in enumerate(sorted(tables.datums, key=by_bytes))}
    labels = {value: f"l{at}" for at, value in enumerate(sorted(tables.labels, key=by_bytes))}
    other = Drawn(
        tuple((ids[d], k, labels[v], s) for d, k, v, s in tables.predictions),
        tuple((ids[d], k, labels[v]) for d, k, v in tables.truths),
        tuple(ids[d] for d in tables.datums),
        tuple(labels[v] for v in tables.labels),
        {},
        False,
    )
    first, second = run(tables), run(other)
    for name in ("metrics", "curves", "confusion", "examples"):
        columns = ["label_value", "actual", "predicted", "datum_id"]
        assert_frame_equal(
            first.frame(name).drop(columns, strict=False),
            second.frame(name).drop(columns, strict=False),
        )
        for column in {"label_value", "actual", "predicted"} & set(first.frame(name).columns):
            mine = [labels.get(v) for v in first.frame(name)[column].to_list()]
            assert mine == second.frame(name)[column].to_list()


@pytest.mark.parametrize("several", [False, True])
def test_the_oracle_by_hand(several: bool) -> None:
    """The oracle agrees with numbers worked out by hand."""
    tables = Drawn(
        (("u", "k", "a", 0.9), ("u", "k", "b", 0.2), ("v", "k", "a", 0.6), ("w", "k", "b", 0.7)),
        (("u", "k", "a"), ("v", "k", "b")),
        ("u", "v", "w"),
        ("a", "b"),
        {},
        several,
    )
    oracle = tables.oracle()
    assert [*map(float, oracle.counts(("k", "a")))] == [1, 1, 0, 1]
    assert [*map(float, oracle.counts(("k", "b")))] == [0, 1, 1, 1]
    assert oracle.area(("k", "a")) == 1
    assert oracle.area(("k", "b")) == 0
    assert oracle.cells(("k", "b"), 0.6) == {
        ("tn", "all"): 1, ("fn", "misclassifications"): 1, ("fp", "hallucinations"): 1,
    }  # fmt: skip
