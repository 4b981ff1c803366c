"""Plain values of both sides: lists, arrays, tensors and series instead of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import noted, refused
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

import evalengine as ee
from evalengine.ingest.problems import ChecksFailed

RNG = np.random.default_rng(3)
TRUE = RNG.integers(0, 3, 200)
GUESS = np.where(RNG.random(200) < 0.7, TRUE, RNG.integers(0, 3, 200))
SCORES = RNG.dirichlet([1.0, 1, 1], 200) + np.eye(3)[TRUE] * 0.3


class Tensor:
    """Public interface of a torch tensor: a shape, and ``__array__``."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.values


def scalars(values: Any) -> list[Any]:
    return [Tensor(value) for value in values]


FORMS = [list, tuple, np.array, pd.Series, pl.Series, pa.array, Tensor, scalars, pd.Index]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("names", [None, np.array(["ant", "bee", "cat"])])
def test_hard_labels(form: Any, names: Any) -> None:
    true, guess = (TRUE, GUESS) if names is None else (names[TRUE], names[GUESS])
    if names is not None and form is scalars:
        pytest.skip("there are no tensors of strings")
    sides = [form(side.tolist()) for side in (guess, true)]
    card = ee.score(*sides, task="classification")
    assert card.value("Accuracy") == accuracy_score(true, guess)
    assert card.value("F1", average="macro") == pytest.approx(
        f1_score(true, guess, average="macro")
    )


@pytest.mark.parametrize("form", FORMS)
def test_scores_of_two_classes(form: Any) -> None:
    score, true = SCORES[:, 1], TRUE == 1
    card = ee.score(form(score.tolist()), form(true.tolist()))
    assert card.value("ROCAUC") == pytest.approx(roc_auc_score(true, score))
    assert ee.score(score, true.astype(float)).value("ROCAUC") == card.value("ROCAUC")


@pytest.mark.parametrize("form", [np.array, Tensor, list, np.float32])
@pytest.mark.parametrize("names", [None, ["z", "y", "x"]])
def test_scores_by_class(form: Any, names: Any) -> None:
    """Columns are classes 0, 1, ... or the ``labels``; truths may be names or numbers."""
    normal = SCORES / SCORES.sum(axis=1, keepdims=True)
    want = roc_auc_score(TRUE, normal, multi_class="ovr", average=None)
    truths = [TRUE] if names is None else [TRUE, np.array(names)[TRUE]]
    for true in truths:
        card = ee.score(form(normal.tolist() if form is not np.float32 else normal), true,
                        labels=names)  # fmt: skip
        got = [card.value("ROCAUC", label_value=one) for one in names or range(3)]
        assert got == pytest.approx(want, abs=1e-5)
        assert card.value("Accuracy") == accuracy_score(TRUE, normal.argmax(axis=1))


def test_unnamed_classes_are_the_true_ones_in_order() -> None:
    card = ee.score(SCORES, np.array(["p", "q", "r"])[TRUE])
    assert "'p', 'q', 'r'" in noted(card, "classes_in_order", count=3).message
    assert card.value("Accuracy") == accuracy_score(TRUE, SCORES.argmax(axis=1))
    with refused("classes_differ", ee.InputError, counts=[3, 2]):
        ee.score(SCORES[TRUE < 2], np.array(["p", "q"])[TRUE[TRUE < 2]])


def test_numbers_are_positions_in_labels_that_are_names() -> None:
    card = ee.score(GUESS, TRUE, labels=["ant", "bee", "cat"])
    assert card.value("Accuracy") == accuracy_score(TRUE, GUESS)
    assert set(card.metrics["label_value"].drop_nulls()) == {"ant", "bee", "cat"}
    with refused("classes_differ", ee.InputError, counts=[2, 65]):
        ee.score(GUESS, TRUE, labels=["ant", "bee"])


def test_texts() -> None:
    ours, theirs = ["the cat sat", "a dog"], ["the cat sat down", "a dog"]
    want = ee.score({"text": ours, "reference": theirs}).value("ROUGE1")
    assert ee.score(ours, theirs, task="text").value("ROUGE1") == want
    assert ee.score(ours, theirs, metrics=["ROUGE1"]).value("ROUGE1") == want
    assert ee.score(ours, [[one] for one in theirs]).value("ROUGE1") == want
    for side in (ours, np.array(ours), pd.Series(ours)):
        with refused("task_ambiguous", ee.InputError, tasks=["classification", "text"]):
            ee.score(side, theirs)


def test_files_win_over_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"datum_id": [1], "label_value": ["a"]}).write_csv("a")
    card = ee.score(["a"], ["a"], task="classification")
    assert card.value("Accuracy") == 1.0
    assert card.run["inputs"]["predictions"]["rows"] == 1
    with refused("file_missing", ee.ReadError, match=r"b\.csv"):
        ee.score(["a", "b.csv"], ["a"], task="classification")
    Path("cat").mkdir()  # a folder with the name of a class
    assert ee.score(["cat", "dog"], ["dog", "dog"], task="classification").value("Accuracy") == 0.5


@pytest.mark.parametrize(
    ("ours", "theirs", "facts"),
    [
        ([0, 1], [0, 1, 1], {"code": "lengths_differ", "lengths": [2, 3]}),
        ([0, 1], [0.5, 1], {"code": "not_whole", "side": "ground_truths", "count": 1}),
        ([0, "a"], [0, 1], {"code": "not_a_table"}),
        ([[0.1, 0.9], [0.2]], [0, 1], {"code": "lengths_differ", "lengths": [2, 1], "row": 1}),
        (SCORES, np.eye(3, dtype=int)[TRUE], {"code": "several_classes"}),
        ([["a"]], [["a"]], {"code": "task_ambiguous", "tasks": ["classification", "retrieval"]}),
        (np.zeros((3, 2)), ["a", "b", "c"], {"code": "classes_differ", "counts": [2, 3]}),
        (pl.Series([b"x"]), pl.Series([b"x"]), {"code": "task_unknown"}),
    ],
)
def test_refused(ours: Any, theirs: Any, facts: dict[str, Any]) -> None:
    with refused(**facts):
        ee.score(ours, theirs)


def test_a_tensor_that_is_not_an_array() -> None:
    class OnADevice(Tensor):
        def __array__(self, *_: Any, **__: Any) -> np.ndarray:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")

    with refused("not_a_table", ee.InputError, match=r"Tensor\.cpu"):
        ee.score(OnADevice([1]), [1])


def test_different_indexes_are_noted() -> None:
    first, second = pd.Series([0, 1], index=[1, 0]), pd.Series([0, 1])
    assert any("different indexes" in note for note in ee.score(first, second).notes)
    assert not any("indexes" in note for note in ee.score(second, second).notes)
    for mine, codes in ((first, {"indexes_differ"}), (second, set())):
        collector = ee.Collector("classification")
        collector.add(mine, second)
        assert {one.code for one in collector.score().findings} & {"indexes_differ"} == codes
    mine = pd.DataFrame({"prediction": [1.5, 2.0]}, index=["a", "b"])
    for index, differ in ((["b", "a"], True), (["a", "b"], False)):
        true = pd.DataFrame({"target": [1.5, 2.5]}, index=index)
        findings = {note.code for note in ee.score(mine, true, task="regression").findings}
        assert ("indexes_differ" in findings) == differ


def test_every_call_takes_values() -> None:
    assert ee.check(GUESS, TRUE).rows == {"table": 200}
    assert "classification" in ee.explain(GUESS, TRUE)
    compared = ee.compare(GUESS, TRUE, ground_truths=TRUE, metrics=["Accuracy"])
    assert compared.differences["difference"].to_list() == [1 - accuracy_score(TRUE, GUESS)]
    maps = np.arange(6).reshape(3, 2)
    assert ee.score(maps, maps).task == "segmentation"


def test_scikit_learns_names_identify_the_sides() -> None:
    """Precision of one order is recall of the other; the note is only for plain lists."""
    true, guess = TRUE.tolist(), GUESS.tolist()
    card = ee.score(y_true=true, y_pred=guess)
    assert card.value("F1", average="macro") == pytest.approx(
        f1_score(true, guess, average="macro")
    )
    assert card.metrics.equals(ee.score(guess, true).metrics)
    assert "order_of_values" not in [one.code for one in card.findings]
    message = noted(ee.score(guess, true), "order_of_values").message
    assert f"({guess[0]}, {guess[1]}, {guess[2]} and 197 more)" in message
    both = ee.score(y_true=TRUE == 0, y_pred=GUESS == 0, y_score=SCORES[:, 0])
    assert both.value("ROCAUC") == pytest.approx(roc_auc_score(TRUE == 0, SCORES[:, 0]))
    assert both.value("Accuracy") == accuracy_score(TRUE == 0, GUESS == 0)
    with refused("sides_given", ee.InputError):
        ee.score(y_pred=guess)
    with refused("given_twice", ee.InputError, options=["y_true", "y_pred", "y_score"]):
        ee.score(guess, y_true=true)
    with refused(
        "lengths_differ", ee.InputError, lengths={"y_true": 200, "y_pred": 200, "y_score": 200}
    ):
        ee.score(y_true=true, y_pred=guess, y_score=SCORES)
    with refused("sides_given", ee.InputError):
        ee.score(ground_truths=true)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_scores_has_one_column_per_class(frame: Any) -> None:
    """Columns may be in any order; without names they are classes by number."""
    names = np.array(["ant", "bee", "cat"])
    scores = frame(dict(zip(["cat", "ant", "bee"], SCORES[:, [2, 0, 1]].T, strict=True)))
    truth = pd.Series(names[TRUE])
    for card in (ee.score(scores, truth), ee.score(y_true=truth, y_score=scores)):
        for k, name in enumerate(names):
            own = roc_auc_score(k == TRUE, SCORES[:, k])
            assert card.value("ROCAUC", label_value=name) == pytest.approx(own)
    assert ee.score(pd.DataFrame(SCORES), TRUE).metrics.equals(ee.score(SCORES, TRUE).metrics)
    with pytest.raises(ChecksFailed) as caught:
        ee.score(frame(dict(zip("xyz", SCORES.T, strict=True))), truth)
    assert [one.kind for one in caught.value.problems] == ["labels_without_scores"]
    with refused("lengths_differ", ee.InputError, lengths=[200, 3]):
        ee.score(scores, truth[:3])


def test_series_whose_names_contradict_their_places_are_noted() -> None:
    true, guess = pd.Series(TRUE, name="y_true"), pd.Series(GUESS, name="y_pred")
    assert ee.score(guess, true).warnings == ()
    (message,) = ee.score(true, guess).warnings
    assert "'y_true' and the" in message
    assert ee.score(y_true=true, y_pred=guess).warnings == ()
    assert ee.score(y_true=guess, y_pred=true).warnings == ()  # given by the keywords


def test_integral_floats_are_classes() -> None:
    """They are classes in memory, as a table and in batches; names decide about 0 and 1."""
    true, guess = [1, 0, 1, 0], [1.0, 0.0, 2.0, 1.0]
    for card in (
        ee.score(guess, true),
        ee.score(y_true=true, y_pred=guess),
        ee.score({"y_true": true, "y_pred": guess}),
    ):
        assert card.value("Accuracy") == accuracy_score(true, guess) == 0.5
    folds = ([0, 1, 2, 0, 1, 1.0], [0, 1, 0, 0, 1, 0])  # without a true 2
    collector = ee.Collector()
    for start in (0, 2, 4):
        collector.add(*(side[start : start + 2] for side in folds))
    assert collector.score().value("Accuracy") == accuracy_score(*folds)
    hard = [1.0, 0.0, 1.0, 1.0]
    named = ee.score(y_true=true, y_pred=hard)
    assert named.metrics.equals(ee.score(y_true=true, y_pred=[1, 0, 1, 1]).metrics)
    assert ee.score(y_true=np.array(true) == 1, y_pred=hard).value("Accuracy") == 0.75
    assert ee.score(y_true=true, y_score=hard).value("ROCAUC") is not None
    assert ee.score(hard, true, metrics=["ROCAUC"]).value("ROCAUC") is not None
    assert ee.score([-1.0, 1.0], [-1, 1]).value("Accuracy") == 1.0


@pytest.mark.parametrize("guess", [[1.0, 0.0, 1.0, 1.0], [-3.0, 2.0, 5.0, 4.0]])
def test_integral_floats_that_may_be_scores_are_questioned(guess: list[float]) -> None:
    collector = ee.Collector()
    collector.add(guess, [1, 0, 1, 0])
    for call in (collector.score, lambda: ee.score(guess, [1, 0, 1, 0])):
        with pytest.raises(ee.InputError, match=r"y_pred=.*y_score="):
            call()


PIPELINE = [("POS", 0.9), ("NEG", 0.8), ("POS", 0.6)]


def test_pipelines_of_hugging_face_are_read() -> None:
    """The score of only the predicted label is not that of the positive one, and is not read."""
    one = [{"label": label, "score": score} for label, score in PIPELINE] * 10
    true = ["POS", "NEG", "NEG"] * 10
    lists = [[row] for row in one]  # top_k=1
    ways = ee.score(one, true), ee.score(lists, true), ee.score(y_true=true, y_pred=one)
    for card in ways:
        assert card.value("Accuracy") == pytest.approx(2 / 3)
        noted(card, "confidence_not_read", severity="note")
    other = {"POS": "NEG", "NEG": "POS"}
    every = [
        [{"label": label, "score": score}, {"label": other[label], "score": 1 - score}]
        for label, score in PIPELINE
    ]
    card = ee.score(every * 10, true, metrics=["Accuracy", "ROCAUC"])
    assert card.value("Accuracy") == pytest.approx(2 / 3)
    assert card.value("ROCAUC", label_value="POS") == 1
    with refused("lengths_differ", ee.InputError, lengths=[30, 29]):
        ee.score(one, true[1:])
    for odd in (None, {"label": "POS"}, []):
        with pytest.raises(ee.ReadError):
            ee.score([*one[:29], odd], true)
    with refused("types_mixed", ee.InputError):
        ee.score([*one[:29], one[29] | {"label": 1.5}], true)
    with refused("types_mixed", ee.InputError):
        ee.score([every[0], [every[1][0], every[1][1] | {"score": b"x"}]], true[:2])
    assert ee.score([one[0], one[1] | {"score": 1}], true[:2]).value("Accuracy") == 1


@pytest.mark.parametrize("task", [None, "classification"])
def test_numbers_beyond_integers_are_no_classes(task: str | None) -> None:
    with refused("not_whole", ee.InputError, count=2):
        ee.score([1e30, 2e30], [1e30, 3e30], task=task)
    card = ee.score([1e30, 2e30], [1e30, 3e30], metrics=["MAE"])
    assert card.value("MAE") == pytest.approx(0.5e30)


def test_arrays_within_mixed_lists_are_refused() -> None:
    with refused("not_a_table", ee.InputError):
        ee.score([["a"], [np.array([]), "b"]], [["a"], ["b"]], task="retrieval")


def test_missing_true_classes_do_not_mean_swapped_sides() -> None:
    with refused("not_whole", ee.InputError, count=20) as error:
        ee.score(np.array([0, 1, 2] * 20), np.array([0, 1, np.nan] * 20))
    assert "nan" in str(error.value)


def test_scores_of_labels_that_are_not_read() -> None:
    table = pl.DataFrame(
        {"y_true": ["a", "b"], "y_pred": ["a", "a"], "prob_a": [0.9, 0.6], "prob_b": [0.1, 0.4]}
    )
    noted(ee.score(table), "unread_column", count=2)
    card = ee.score(table, score_columns="prob_*", metrics=["ROCAUC"])
    assert "unread_column" not in {one.code for one in card.findings}
    for sound in (table.drop("prob_b"), table.with_columns(pl.col("prob_a").cast(pl.Int64))):
        assert "unread_column" not in {one.code for one in ee.score(sound).findings}


@pytest.mark.parametrize("make", [np.zeros, lambda n: pd.Series(np.zeros(n))])
def test_a_buffer_may_be_used_for_every_batch(make: Any) -> None:
    buffer, truths = make(3), make(3)
    plan = ee.plan({"prediction": buffer, "target": truths}, metrics=["MAE"])
    tallies, collector = [], ee.Collector("regression", metrics=["MAE"])
    for number in range(3):
        buffer[:] = number
        tallies.append(plan.tally({"prediction": buffer, "target": truths}))
        collector.add(buffer, truths)
    assert ee.merge(tallies).summarise().value("MAE") == 1.0
    assert collector.score().value("MAE") == 1.0
