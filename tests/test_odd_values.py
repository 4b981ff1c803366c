"""Values that make a number mean something else than its name says: the code of the note."""

from __future__ import annotations

from typing import Any

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
def test_decisions_in_place_of_scores(score: list[float], expected: bool) -> None:
    table = pl.DataFrame({"actual": [1, 0, 1, 0, 1] * 20, "score": score * 20})
    for metrics in (["ROCAUC"], ["AP"]):
        assert ("scores_are_decisions" in codes(table, metrics=metrics)) == expected
    assert "scores_are_decisions" not in codes(table, metrics=["Accuracy"])
    assert "scores_are_decisions" not in codes(table.head(5), metrics=["ROCAUC"])


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
        ({"iscrowd": [1] * 3}, "all_crowds"),
        ({"iscrowd": [1, 1, 0]}, None),
    ],
)
def test_marks_of_all_ground_truths(more: dict[str, list[Any]], code: str | None) -> None:
    found = truths().with_columns(score=pl.lit(0.9))
    odd = codes(found, truths(**more), dialect="coco") & {"constant_area", "all_crowds"}
    assert odd == ({code} if code else set())
    assert "constant_area" not in codes(found, truths(**more))  # no number by area
