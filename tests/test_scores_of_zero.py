"""Values near 0 are diagnosed: the message has the evidence, and its remedy repairs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee

N = 200


def truth_and_answers(seed: int = 0, classes: int = 4) -> tuple[Any, Any]:
    chance = np.random.default_rng(seed)
    truth = chance.integers(0, classes, N)
    return truth, np.where(chance.random(N) < 0.85, truth, chance.integers(0, classes, N))


def table(values: Any) -> pl.DataFrame:
    return pl.DataFrame({"datum_id": np.arange(len(values)), "label_value": values})


def warned(*sides: Any, **options: Any) -> str:
    (message,) = ee.check(*sides, **options).warnings
    assert message in ee.score(*sides, **options).warnings
    return message


def test_classes_in_another_order() -> None:
    truth, found = truth_and_answers()
    names, other = np.array(["ant", "bee", "cat", "dog"]), np.array(["cat", "dog", "ant", "bee"])
    message = warned(table(other[found]), table(names[truth]))
    assert "ant to cat, bee to dog" in message
    assert ee.check(table(names[found]), table(names[truth])).warnings == []
    # A model that always predicts one class, or guesses, is not a renaming.
    for bad in (np.full(N, 3), np.random.default_rng(1).integers(0, 4, N)):
        assert ee.check(table(bad), table(truth)).warnings == []


def test_scores_of_the_other_class() -> None:
    truth, found = truth_and_answers(1, 2)
    chance = np.random.default_rng(2).random(N)
    rows = pl.DataFrame({"actual": truth, "score": np.where(found, chance * 0.3, 1 - chance * 0.3)})
    assert ee.score(rows).value("ROCAUC") < 0.2
    truth_alone = rows.with_columns(actual=(rows["score"] < 0.5).cast(pl.Int64))
    message = warned(truth_alone)
    assert "AUC 0.000 in 200" in message
    assert "positive_label=0" in message
    assert ee.score(truth_alone, positive_label=0).value("ROCAUC") == 1.0
    assert ee.check(rows.with_columns(score=1 - pl.col("score"))).warnings == []


def lists(seed: int = 3) -> tuple[pl.DataFrame, pl.DataFrame]:
    chance = np.random.default_rng(seed)
    rows, judged = [], []
    for q in range(20):
        good = {int(d) for d in chance.choice(30, 3, replace=False)}
        judged += [(f"q{q}", f"d{d}", 1) for d in sorted(good)]
        rows += [(f"q{q}", f"d{d}", float(chance.random() + (d in good))) for d in range(30)]
    run = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    return run, pl.DataFrame(judged, ["query_id", "doc_id", "relevance"], orient="row")


def test_ranks_or_distances_as_scores() -> None:
    run, judged = lists()
    best = ee.score(run, judged, metrics=["MRR"]).value("MRR")
    assert ee.check(run, judged).warnings == []
    turned = run.with_columns(score=2.5 - pl.col("score"))
    assert 'columns={"score": "rank"}' in warned(turned, judged)
    mended = ee.score(turned, judged, metrics=["MRR"], columns={"score": "rank"})
    assert mended.value("MRR") == best


def maps(seed: int = 4) -> tuple[Any, Any]:
    """Return rectangles of two labels on a background, mostly found."""
    chance = np.random.default_rng(seed)
    truth = np.zeros((4, 24, 24), np.uint8)
    truth[:, 2:16, 1:8], truth[:, 17:23, 8:22] = 1, 2
    return np.where(chance.random(truth.shape) < 0.9, truth, 0).astype(np.uint8), truth


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda one: one.transpose(0, 2, 1), "rows and columns"),
        (lambda one: one[:, ::-1], "top and bottom"),
        (lambda one: one[:, :, ::-1], "left and right"),
    ],
)
def test_label_maps_that_were_rotated(change: Any, expected: str) -> None:
    predictions, truth = maps()
    assert expected in warned(np.ascontiguousarray(change(predictions)), truth)
    assert ee.check(predictions, truth).warnings == []
    with refused("grids_differ", ee.InputError, rows=[0], count=4):
        ee.score(predictions[:, :20].transpose(0, 2, 1).copy(), truth[:, :20])


def test_indices_that_are_shifted_or_scaled() -> None:
    predictions, truth = maps()
    good = ee.score(predictions, truth).value("mIOU")
    shifted = ee.check(predictions + 1, truth).warnings
    assert any("label_format=['-1']" in message for message in shifted)
    assert ee.score(predictions + 1, truth, label_format=["-1"]).value("mIOU") == good
    message = warned(predictions * 100, truth)
    assert 'label_map={"100": 1, "200": 2}' in message
    assert ee.score(predictions * 100, truth, label_map={"100": 1, "200": 2}).value("mIOU") == good


def test_void_that_counts() -> None:
    predictions, truth = maps()
    truth[:, :3] = 255
    notes = ee.score(predictions, truth).notes
    assert any("index 255 is only in the ground truths (12.5%" in note for note in notes)
    ignored = ee.score(predictions, truth, ignore_index=255)
    assert not any("index 255" in note for note in ignored.notes)
