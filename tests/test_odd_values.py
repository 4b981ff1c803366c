"""Codes of notes about values that give a metric another meaning than its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evalengine as ee


def codes(*sides: Any, **options: Any) -> set[str]:
    return {one.code for one in ee.score(*sides, **options).findings}


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ([1, 0, 0, 0, 1], True),
        ([1.0, 0.0, 0.0, 0.0, 1.0], True),
        ([1.0, 0.0, 0.0, 0.0, 0.9], False),
        ([1.0, 1.0, 1.0, 1.0, 1.0], False),
    ],
)
def test_decisions_instead_of_scores(score: list[float], expected: bool) -> None:
    table = pl.DataFrame({"actual": [1, 0, 1, 0, 1] * 20, "score": score * 20})
    for metrics in (["ROCAUC"], ["AP"]):
        assert ("scores_are_decisions" in codes(table, metrics=metrics)) == expected
    assert "scores_are_decisions" not in codes(table, metrics=["Accuracy"])
    assert "scores_are_decisions" not in codes(table.head(5), metrics=["ROCAUC"])


def test_decisions_of_several_labels() -> None:
    one_hot = {"a": [1.0, 0, 0] * 20, "b": [0.0, 1, 1] * 20, "c": [0.0] * 60}
    assert "scores_are_decisions" in codes(pl.DataFrame(one_hot), ["a", "b", "c"] * 20)


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_integral_scores_are_scores(form: Any) -> None:
    truth, percent = [1, 0, 1, 0], [90, 10, 5, 30]
    card = ee.score(y_true=form(truth), y_score=form(percent), metrics=["ROCAUC"])
    assert card.value("ROCAUC") == 0.5
    card = ee.score(y_true=form(truth), y_score=form([True, False, False, False]))
    assert card.value("ROCAUC") == 0.75


COMPOSED, DECOMPOSED = "caf\u00e9 cr\u00e8me", "cafe\u0301 cre\u0300me"


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        (DECOMPOSED, COMPOSED, True),
        (COMPOSED, DECOMPOSED, True),
        (DECOMPOSED, DECOMPOSED, False),
        (COMPOSED, COMPOSED, False),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", COMPOSED, False),
        ("a heart \u2764\ufe0f", COMPOSED, False),
    ],
)
def test_unicode_forms_of_texts(text: str, reference: str, expected: bool) -> None:
    table = pl.DataFrame({"text": [text] * 5, "reference": [reference] * 5})
    assert ("unicode_forms" in codes(table, metrics=["WER"])) == expected


@pytest.mark.parametrize(
    ("text", "references", "expected"),
    [
        ("the cat sat", ["['the cat sat', 'a cat sat']", '["a dog"]', "a", "b"], True),
        ("the cat sat", ["['the cat sat', 'a cat sat']", "a", "b"], False),
        ("the cat sat", ["[UNK]", "[1, 2]"], False),
        ('["a", "b"]', ['["a", "c"]', '["a"]'], False),  # an answer in JSON
        ("the cat sat", [["['a']"] * 2, ["['b']"]], False),
    ],
)
def test_references_that_are_texts_of_lists(
    text: str, references: list[Any], expected: bool
) -> None:
    table = pl.DataFrame({"text": [text] * len(references), "reference": references})
    assert ("lists_as_texts" in codes(table, metrics=["WER"])) == expected


def test_references_by_stream() -> None:
    found = ["the dog bit the man", "it was not unexpected at all"]
    streams = [found, ["the dog had bit the man", "no one was surprised at all"]]
    by_prediction = [list(references) for references in zip(*streams, strict=True)]
    options: dict[str, Any] = {"task": "text", "metrics": ["CorpusBLEU"]}
    assert "references_by_stream" in codes(found, streams, **options)
    assert "references_by_stream" not in codes(found, by_prediction, **options)


BOXES = ((10, 10, 100, 100), (120, 10, 150, 150), (10, 200, 40, 40))


def truths(**more: list[Any]) -> pl.DataFrame:
    corners = {
        "xmin": [x for x, *_ in BOXES],
        "ymin": [y for _, y, *_ in BOXES],
        "xmax": [x + w for x, _, w, _ in BOXES],
        "ymax": [y + h for _, y, _, h in BOXES],
    }
    boxes = {name: [float(value) for value in values] for name, values in corners.items()}
    return pl.DataFrame({"datum_id": [1, 1, 2], "label_value": ["a"] * 3, **boxes, **more})


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"area": [1.0] * 3}, "constant_area"),
        ({"area": [0.0] * 3}, "constant_area"),
        ({"area": [9000.0, 22500.0, 1600.0]}, None),
        ({"area": [0.06, 0.14, 0.01]}, "areas_apart"),
        ({"area": [40000.0, 90000.0, 6400.0]}, "areas_apart"),
        ({"area": [40000.0, 22500.0, 1600.0]}, None),
        ({"iscrowd": [1] * 3}, "all_crowds"),
        ({"iscrowd": [1, 1, 0]}, None),
    ],
)
def test_flags_of_all_ground_truths(more: dict[str, list[Any]], code: str | None) -> None:
    predictions = truths().with_columns(score=pl.lit(0.9))
    expected_codes = {"constant_area", "areas_apart", "all_crowds"}
    card = ee.score(predictions, truths(**more), dialect="coco")
    odd = {(note.code, note.severity) for note in card.findings if note.code in expected_codes}
    assert odd == ({(code, "warning")} if code else set())
    of_areas = {"constant_area", "areas_apart"}
    assert not of_areas & codes(predictions, truths(**more))  # no value by area


def test_areas_of_another_unit_with_their_ranges() -> None:
    found, shares = truths().with_columns(score=pl.lit(0.9)), truths(area=[0.06, 0.14, 0.01])
    ranges = {"all": (0, 1), "small": (0, 0.05), "large": (0.05, 1)}
    assert "areas_apart" not in codes(found, shares, dialect="coco", area_ranges=ranges)
    same = truths(area=[0.1] * 3)
    assert "constant_area" in codes(found, same, dialect="coco", area_ranges=ranges)


def test_areas_of_tiny_objects_with_inclusive_corners() -> None:
    sides = np.random.default_rng(0).integers(1, 5, (40, 2)).astype(float)
    at = np.arange(40) * 10.0
    given = {"datum_id": range(40), "label_value": ["a"] * 40, "xmin": at, "ymin": at}
    ends = {"xmax": at + sides[:, 0], "ymax": at + sides[:, 1]}
    tiny = pl.DataFrame({**given, **ends, "area": (sides + 1).prod(axis=1)})
    found = tiny.drop("area").with_columns(score=pl.lit(0.9))
    assert "areas_apart" not in codes(found, tiny, dialect="coco")
    wide = tiny.with_columns(area=pl.col("area") * 4)
    assert "areas_apart" in codes(found, wide, dialect="coco")


def test_ground_truths_that_are_all_ignored() -> None:
    predictions = truths().with_columns(score=pl.lit(0.9))
    assert "all_ignored" in codes(predictions, truths(ignore=[1] * 3))
    assert "all_ignored" in codes(predictions, truths(ignore=[0, 1, 0], iscrowd=[1, 0, 1]))
    assert "all_ignored" not in codes(predictions, truths(ignore=[1, 1, 0]))
    assert "all_ignored" not in codes(
        predictions, truths(ignore=[1] * 3), dialect="coco"
    )  # not read


def test_few_and_most_ground_truths_that_are_crowds_are_noted() -> None:
    def severities(n: int, crowds: int) -> set[str]:
        truth = pl.concat([truths()] * 4).head(n)
        truth = truth.with_columns(iscrowd=pl.int_range(pl.len()) < crowds)
        predictions = truths().with_columns(score=pl.lit(0.9))
        card = ee.score(predictions, truth, dialect="coco")
        return {note.severity for note in card.findings if note.code == "all_crowds"}

    assert severities(1, 1) == {"note"}
    assert severities(12, 11) == {"note"}
    assert severities(12, 12) == {"warning"}
    assert severities(12, 6) == severities(1, 0) == set()


def test_chunks_of_another_unicode_form() -> None:
    table = pl.DataFrame({"retrieved": [[DECOMPOSED, "x y"]] * 3, "relevant": [[COMPOSED]] * 3})
    assert "unicode_forms" in codes(table, match="exact_chunk")
    same = table.with_columns(relevant=pl.lit([DECOMPOSED]))
    assert "unicode_forms" not in codes(same, match="exact_chunk")


def test_queries_that_find_themselves() -> None:
    def noted(query: str, doc: str, judged: str, **options: Any) -> bool:
        ids = {"query_id": [query.format(i) for i in range(9)]}
        other = pl.DataFrame({**ids, "doc_id": ["other"] * 9, "score": [1.0] * 9})
        own = other.with_columns(doc_id=pl.Series([doc.format(i) for i in range(9)]), score=9.0)
        relevant = pl.Series([judged.format(i) for i in range(9)])
        qrels = pl.DataFrame({**ids, "doc_id": relevant, "relevance": [1] * 9})
        return "own_documents" in codes(pl.concat([other, own]), qrels, **options)

    assert noted("d{}", "d{}", "other")
    assert not noted("d{}", "d{}", "other", ignore_identical_ids=True)
    assert not noted("d{}", "d{}", "d{}")  # judged, and therefore intended
    assert not noted("q{}", "d{}", "other")
    assert not noted("{}", "{}", "other")  # numbers of other things
