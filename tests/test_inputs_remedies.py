"""Slightly wrong input is read as intended, or refused with a remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee

N = 12


def codes(card: Any, severity: str | None = None) -> list[str]:
    return [one.code for one in card.findings if severity in (None, one.severity)]


def coco(folder: Path, named: Any, ids: Any, category: Any = 1) -> tuple[str, str]:
    """Return results that equal the ground truths, one box per image, each at another place."""
    box = [[40.0 * i, 10.0, 20.0, 20.0] for i in range(1, N + 1)]
    images = [
        {"id": i, "file_name": named(i), "width": 640, "height": 480} for i in range(1, N + 1)
    ]
    truths = {
        "images": images,
        "categories": [{"id": 1, "name": "car"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1, "bbox": box[i - 1], "area": 400.0}
            for i in range(1, N + 1)
        ],
    }
    results = [
        {"image_id": ids(i), "category_id": category, "bbox": box[i - 1], "score": i / 20}
        for i in range(1, N + 1)
    ]
    for name, content in (("results", results), ("truths", truths)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return str(folder / "results.json"), str(folder / "truths.json")


def measured(paths: tuple[str, str]) -> tuple[float, list[str], list[str]]:
    card = ee.score(*paths, metrics=["mAP"], iou_thresholds=[0.5])
    return card.value("mAP"), codes(card), codes(card, "warning")


def reversed_name(i: int) -> str:
    return f"{N + 1 - i}.jpg"


def test_texts_of_integer_ids_are_ids_before_names_of_files(tmp_path: Path) -> None:
    value, found, warned = measured(coco(tmp_path, lambda i: f"img_{i:03}.jpg", str))
    assert value == 1
    assert "ids_matched_as_numbers" in found
    assert not warned
    value, _, warned = measured(coco(tmp_path, reversed_name, str))
    assert (value, warned) == (1, ["ids_matched_as_numbers"])
    assert measured(coco(tmp_path, lambda i: f"{i}.jpg", str))[::2] == (1, [])
    assert measured(coco(tmp_path, reversed_name, reversed_name))[::2] == (1, [])
    assert measured(coco(tmp_path, lambda i: f"{i}.jpg", str, "1"))[::2] == (1, [])


def test_texts_that_fit_names_better_are_names(tmp_path: Path) -> None:
    """Names count from 0 and ids from 1: all names are on both sides, but not all ids."""
    value, _, warned = measured(coco(tmp_path, lambda i: f"{i - 1}.jpg", lambda i: str(i - 1)))
    assert (value, warned) == (1, [])


def test_neither_ids_nor_names(tmp_path: Path) -> None:
    with refused("no_common_id", ee.InputError) as caught:
        ee.score(*coco(tmp_path, lambda i: f"img_{i:03}.jpg", lambda i: f"k{i * 7919}"))
    assert "1, 2, 3" in str(caught.value)
    assert "img_001.jpg" in str(caught.value)


def written(folder: Path, text: str, name: str = "table.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize("names", ["y_true,y_pred", " y_true , y_pred ", "Y_TRUE ,y_pred"])
def test_blanks_in_a_header_do_not_change_the_task(names: str, tmp_path: Path) -> None:
    card = ee.score(written(tmp_path, f"{names}\n1,1\n0,1\n"))
    assert card.task == "classification"
    assert card.value("Accuracy") == 0.5


ROWS = pl.DataFrame({"churned": [1, 0, 1, 0], "prob": [0.9, 0.2, 0.4, 0.6], "site": [*"aabb"]})


@pytest.mark.parametrize("task", [None, "classification"])
def test_aliases_are_targets_of_columns(task: Any) -> None:
    alias = {"churned": "y_true", "prob": "y_score"}
    card = ee.score(ROWS, columns=alias, task=task, by=["site"])
    want = ee.score(ROWS, columns={"churned": "actual", "prob": "score"}, by=["site"])
    assert card.metrics.equals(want.metrics)
    measure = {"churned": "y_true", "prob": "yhat"}
    assert ee.score(ROWS, columns=measure).task == "regression"


BOXES = pl.DataFrame(
    {
        "datum_id": [1, 2],
        "label": ["a", "a"],
        **{name: [1.0 + at, 2.0 + at] for at, name in enumerate(("x1", "y1", "x2", "y2"))},
    }
)


def test_a_missing_corner_is_named() -> None:
    with refused("column_missing", ee.InputError) as caught:
        ee.score(BOXES.drop("y2").with_columns(score=0.5), BOXES)
    assert "'ymax'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("1,0,0.3\n2,1,0.8\n3,0,0.2\n", ""),
        ("1,car,5,3,57,43,0.3\n1,car,-1,35,78,44,0.9\n", "id,label,x1,y1,x2,y2\n1,car,1,2,3,4\n"),
        ("1 Q0 d5 1 0.5 t\n", "1 0 d5\n1 0 d29 0\n1 0 d44 1\n"),
    ],
)
def test_first_lines_that_are_data(text: str, other: str, tmp_path: Path) -> None:
    tables = [written(tmp_path, text, "a.run" if "Q0" in text else "a.csv")]
    if other:
        tables.append(written(tmp_path, other, "b.csv"))
    with pytest.raises(ee.InputError, match="looks like data"):
        ee.score(*tables)


def test_numbers_are_names_of_wide_scores(tmp_path: Path) -> None:
    """Numbers in a header are not data if other columns are recognised."""
    with pytest.raises(ee.InputError) as caught:
        ee.score(written(tmp_path, "id,y_pred,0,1\n1,0,0.3,0.7\n"), task="classification")
    assert "looks like data" not in str(caught.value)


@pytest.mark.parametrize(("wrong", "warns"), [(1, False), (3, True)])
def test_unknown_verdicts_of_many_datums_are_a_warning(wrong: int, warns: bool) -> None:
    words = ["correct"] * wrong + ["yes"] * (20 - wrong)
    table = pl.DataFrame({"datum_id": range(20), "metric": "Faithfulness", "verdict": words})
    noted(ee.score(table), "unknown_words", severity="warning" if warns else "note")


def test_results_per_row_suggest_their_task(tmp_path: Path) -> None:
    rows = pl.DataFrame({"id": ["a", "b"], "answer": ["x", "y"], "correct": [True, False]})
    for table in (rows, rows.select("id", "correct")):
        with pytest.raises(ee.InputError, match="task='values'"):
            ee.score(table)


QRELS = pl.DataFrame(
    {"query_id": ["q"] * 4 + ["r"] * 4, "doc_id": [*"abcdabcd"], "relevance": [1, 0, 0, 1] * 2}
)


@pytest.mark.parametrize(("scores", "warns"), [([1, 2, 3, 4], True), ([4, 3, 2, 1], False)])
def test_scores_that_are_ranks(scores: list[int], warns: bool) -> None:
    run = QRELS.select("query_id", "doc_id", score=pl.Series(scores * 2))
    assert ("scores_reversed" in codes(ee.score(run, QRELS))) == warns
    ranked = ee.score(run, QRELS, columns={"score": "rank"})
    assert "scores_reversed" not in codes(ranked)


@pytest.mark.parametrize("relevant", [1, 5, 8])
def test_distances_of_several_relevant_documents(relevant: int) -> None:
    """All relevant documents are last, so that their mean rank depends on their number."""
    rows = [(f"q{q}", f"d{q}-{d}", 1 - d / 10) for q in range(12) for d in range(10)]
    run = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    qrels = run.group_by("query_id").head(relevant).select("query_id", "doc_id")
    turned = run.with_columns(score=1 - pl.col("score"))
    assert "scores_reversed" not in codes(ee.score(run, qrels))
    assert "scores_reversed" in codes(ee.score(turned, qrels))


@pytest.mark.parametrize(("sign", "warns"), [(1, True), (-1, False)])
def test_scores_that_rise_along_ranks(sign: int, warns: bool) -> None:
    rows = [(q, f"d{r}", r + 1, sign * 0.1 * r) for q in "abc" for r in range(10)]
    run = pl.DataFrame(rows, ["query_id", "doc_id", "rank", "score"], orient="row")
    qrels = pl.DataFrame({"query_id": [*"abc"], "doc_id": ["d4"] * 3})
    findings = [one for one in ee.score(run, qrels).findings if one.code == "scores_against_ranks"]
    assert [one.facts["columns"] for one in findings] == [["score", "rank"]] * warns
    assert {one.severity for one in findings} <= {"note"}
    odd = run.with_columns(score=pl.when(pl.col("rank") == 3).then(9).otherwise("score"))
    assert "scores_against_ranks" not in codes(ee.score(odd, qrels))
    with refused("wrong_dtype", column="query_id"):
        ee.score(run.with_columns(pl.concat_list("query_id")), qrels)


def test_label_of_judgments_is_their_relevance() -> None:
    run = QRELS.select("query_id", "doc_id", score=pl.Series([1.0, 2, 3, 4] * 2))
    card, same = ee.score(run, QRELS.rename({"relevance": "label"})), ee.score(run, QRELS)
    assert card.task == "retrieval"
    assert card.metrics.equals(same.metrics)
    for name in ("rating", "is_relevant"):  # not read next to another column of relevance
        both = QRELS.rename({"relevance": "label"}).with_columns(pl.lit("good").alias(name))
        assert ee.score(run, both).metrics.equals(same.metrics)


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Boolean])
@pytest.mark.parametrize(
    "name", ["rating", "relevance_label", "relevance_grade", "rel_score", "is_relevant"]
)
def test_grades_that_are_not_read(name: str, dtype: Any) -> None:
    run = QRELS.select("query_id", "doc_id", score=pl.Series([1.0, 2, 3, 4] * 2))
    grades = QRELS.rename({"relevance": name}).cast({name: dtype})
    noted(ee.score(run, grades), "relevance_unread", count=4, severity="warning")
    others = ("chunk_index", "human_verified", "votes", "grade_level", "label_confidence")
    for sound in (
        QRELS.with_columns(pl.lit(0).alias(name)),
        grades.filter(pl.col(name).cast(pl.Boolean)),
        grades.cast({name: pl.String}),
        *(grades.rename({name: other}) for other in others),
    ):
        assert "relevance_unread" not in codes(ee.score(run, sound))


def test_grades_above_0_that_are_not_read_are_a_note() -> None:
    run = QRELS.select("query_id", "doc_id", score=pl.Series([1.0, 2, 3, 4] * 2))
    stars = QRELS.select("query_id", "doc_id", rating=pl.Series([1, 2, 3, 5] * 2))
    noted(ee.score(run, stars), "relevance_unread", count=0, lowest=1, highest=5, severity="note")
    alike = stars.with_columns(rating=pl.lit(3))
    assert "relevance_unread" not in codes(ee.score(run, alike))


def test_a_column_that_is_read_is_not_proposed() -> None:
    table = pl.DataFrame({"contexts": [["a"]], "reference_contexts": [["a"]]})
    with pytest.raises(ee.InputError, match=r"contexts\W+retrieved") as caught:
        ee.score(table, task="retrieval")
    assert "'reference_contexts'" not in str(caught.value)


def test_yolo_boxes_outside_of_the_image(tmp_path: Path) -> None:
    for folder, lines in (("t", "0 .5 .5 .1 .1\n"), ("p", "0 1.5 .5 .1 .1 .9\n0 .5 .5 .1 .1 .9\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(lines)
    card = ee.score(str(tmp_path / "p"), str(tmp_path / "t"))
    noted(card, "centres_outside", count=1)


def test_runs_with_ids_of_both_kinds_name_the_remedy() -> None:
    one = pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "b"], "predicted": ["a", "a"]})
    other = one.with_columns(datum_id=pl.format("img_{}", "datum_id"))
    with pytest.raises(ee.InputError, match="id_format"):
        ee.compare(one, other)
    ee.compare(one, other, id_format=["number"])


def test_a_column_that_was_replaced_may_distinguish_repeats() -> None:
    table = pl.DataFrame(
        {"id": [1, 1, 2, 2], "datum_id": [7, 8, 7, 8], "prediction": 1.5, "target": 2.5}
    )
    with refused("repeated_values", match="where='datum_id = 7'"):
        ee.score(table, task="regression", columns={"id": "datum_id"})
