"""Arrays of 0 and 1: labels, images, or refused; columns; scikit-learn's names of truths."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
import refusals

import evalengine as ee

# fmt: off
TRUTH = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]])
SCORES = np.array(
    [[.9, .2, .6], [.4, .7, .1], [.2, .6, .3], [.1, .8, .7], [.8, .3, .2], [.6, .9, .4]]
)
# fmt: on
SAID = np.array(SCORES >= 0.5, int)


def refused(*given: Any, **options: Any) -> refusals.Refusal:
    with pytest.raises(ee.InputError) as error:
        ee.score(*given, **options)
    return refusals.Refusal(error.value)


@pytest.mark.parametrize("cast", [int, bool, float])
def test_narrow_arrays_of_0_and_1_are_questioned(cast: type) -> None:
    """scikit-learn reads them as labels, Torchmetrics as the caller asks."""
    message = refused(SAID.astype(cast), TRUTH.astype(cast))
    assert message.has("task_ambiguous", count=6)
    assert "shape (6, 3)" in refused(SAID, TRUTH, task="classification")
    assert ee.score(SAID, TRUTH, task="segmentation").value("PixelAccuracy") == 13 / 18
    assert ee.score(SAID, TRUTH, metrics=["mIOU"]).task == "segmentation"


@pytest.mark.parametrize("given", [SAID, SCORES])
def test_with_multilabel_they_are_labels(given: Any) -> None:
    """scikit-learn: f1_score(TRUTH, SAID, average="macro") and accuracy_score."""
    card = ee.score(given, TRUTH, multilabel=True, dialect="sklearn", labels=["a", "b", "c"])
    assert card.value("F1", average="macro") == pytest.approx(
        (2 / 3 + 6 / 7 + 1 / 2) / 3, abs=1e-15
    )
    assert card.value("Accuracy") == 1 / 6
    assert card.labels["label_value"].to_list() == ["a", "b", "c"]
    assert ", and labels names 2" in refused(given, TRUTH, multilabel=True, labels=["a", "b"])


def test_possible_images_are_images_with_a_note() -> None:
    card = ee.score(np.eye(40, dtype=int), np.eye(40, dtype=int))
    assert card.task == "segmentation"
    (note,) = [note for note in card.notes if "multilabel" in note]
    assert "of shape (40, 40)" in note
    assert not ee.score(np.eye(40, dtype=int), np.eye(40, dtype=int), metrics=["mIOU"]).notes


@pytest.mark.parametrize("cast", [int, float])
def test_scores_next_to_one_hot_truths_are_refused(cast: type) -> None:
    hot = np.eye(3)[[0, 1, 2, 1, 0, 2]].astype(cast)
    message = refused(SCORES, hot)
    assert message.has("several_classes")
    assert ("write task='text'" in message) is (cast is float)
    if cast is float:
        assert ee.score(SCORES, hot, task="text").metrics["metric"].to_list() == [
            "SemanticSimilarity"
        ]


def test_columns_are_values() -> None:
    assert ee.score(SAID[:, :1], TRUTH[:, :1]).value("Accuracy") == 4 / 6
    assert ee.score(SAID[:, :1], TRUTH[:, :1], task="segmentation").task == "segmentation"
    names = np.array([["cat"], ["dog"]])
    assert ee.score(names, names, task="classification").value("Accuracy") == 1.0


def test_names_of_scikit_learn_distinguish_classes_from_texts() -> None:
    given: dict[str, Any] = {"y_true": ["cat", "dog", "dog"], "y_pred": ["cat", "dog", "cat"]}
    assert ee.score(**given).value("Accuracy") == 2 / 3
    assert refused(y_true=["a b", "c"], y_pred=["a", "c"]).has(
        "task_ambiguous", tasks=["classification", "text"]
    )
    assert refused(given["y_pred"], given["y_true"]).has(
        "task_ambiguous", tasks=["classification", "text"]
    )


def test_a_label_next_to_a_prediction_is_the_true_one() -> None:
    table = pl.DataFrame({"label": ["a", "b", "a"], "prediction": ["a", "a", "a"]})
    card = ee.score(table)
    assert card.value("Accuracy") == 2 / 3
    assert any("prediction as predicted" in note for note in card.notes)
    assert ee.score(table.with_columns(text=pl.lit("some"))).task == "classification"
    two = table.with_columns(category="label")
    assert refused(two).has("task_unknown")


@pytest.mark.parametrize("labels", [(1, 2), (2, 1)])
def test_scores_of_classes_1_and_2_are_questioned(labels: tuple[int, int]) -> None:
    table = pl.DataFrame({"actual": [*labels, 1, 2], "score": [0.1, 0.9, 0.2, 0.8]})
    assert refused(table).has("option_missing", option="positive_label")
    assert ee.score(table, positive_label=2).value("Accuracy") in (0.5, 1.0)
    for other in (0, -1):
        kept = table.with_columns(pl.col("actual").replace(2, other))
        assert ee.score(kept).value("Accuracy") in (0.0, 0.5)
